"""examples/nanogpt in JAX: the same model, the same optimiser, the same draws from the same keys.

Sheaf's random functions are JAX's with `jax_threefry_partitionable`, which is JAX's own default, so the parameters and
the batches of a training need not be carried over: they are drawn again.
"""

import functools

import jax
import jax.numpy as jnp

CONFIG = {"context": 64, "width": 128, "n-layers": 4, "n-heads": 4}


def init_norm(width):
    return {"gamma": jnp.ones(width), "beta": jnp.zeros(width)}


def init_layer(key, config):
    width = config["width"]
    kq, kk, kv, ko, k1, k2 = jax.random.split(key, 6)
    residual = 0.02 / (2 * config["n-layers"]) ** 0.5
    normal = jax.random.normal
    return {
        "ln1": init_norm(width),
        "attention": {
            "Wq": 0.02 * normal(kq, (width, width)),
            "Wk": 0.02 * normal(kk, (width, width)),
            "Wv": 0.02 * normal(kv, (width, width)),
            "Wo": residual * normal(ko, (width, width)),
        },
        "ln2": init_norm(width),
        "mlp": {
            "W1": 0.02 * normal(k1, (width, 4 * width)),
            "b1": jnp.zeros(4 * width),
            "W2": residual * normal(k2, (4 * width, width)),
            "b2": jnp.zeros(width),
        },
    }


def init_params(key, vocabulary, config):
    k_tokens, k_positions, k_layers = jax.random.split(key, 3)
    width = config["width"]
    return {
        "tokens": 0.02 * jax.random.normal(k_tokens, (vocabulary, width)),
        "positions": 0.02 * jax.random.normal(k_positions, (config["context"], width)),
        "layers": [init_layer(k, config) for k in jax.random.split(k_layers, config["n-layers"])],
        "ln": init_norm(width),
    }


def layer_norm(x, p):
    centred = x - x.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
    return centred * scale * p["gamma"] + p["beta"]


def attention(x, p, config):
    batch, time, width = x.shape
    heads = config["n-heads"]

    def split(h):
        return h.reshape(batch, time, heads, width // heads).swapaxes(1, 2)

    q, k, v = (split(x @ p[name]) for name in ("Wq", "Wk", "Wv"))
    scores = q @ k.swapaxes(-1, -2) / jnp.sqrt(width // heads)
    mask = jnp.tril(jnp.ones((time, time), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -2e38))
    return (weights @ v).swapaxes(1, 2).reshape(batch, time, width) @ p["Wo"]


def block(h, p, config):
    h = h + attention(layer_norm(h, p["ln1"]), p["attention"], config)
    x = layer_norm(h, p["ln2"])
    p = p["mlp"]
    return h + jax.nn.gelu(x @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"]


def forward(ids, p, config):
    h = p["tokens"][ids] + p["positions"][: ids.shape[1]]
    for layer in p["layers"]:
        h = block(h, layer, config)
    return layer_norm(h, p["ln"]) @ p["tokens"].T


def loss(p, ids, targets, config):
    logs = jax.nn.log_softmax(forward(ids, p, config))
    return -jnp.take_along_axis(logs, targets[..., None], -1).mean()


def init_state(p):
    zeros = jax.tree.map(jnp.zeros_like, p)
    return p, zeros, zeros, 0


def adam_step(p, grads, m, v, t, lr, b1=0.9, b2=0.999, eps=1e-8):
    t = t + 1
    m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
    v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, grads)
    c1, c2 = 1 - b1**t, 1 - b2**t
    p = jax.tree.map(lambda p, m, v: p - lr * (m / c1) / (jnp.sqrt(v / c2) + eps), p, m, v)
    return p, m, v, t


def train_step(state, ids, targets, lr, config=CONFIG):
    p, m, v, t = state
    value, grads = jax.value_and_grad(functools.partial(loss, config=config))(p, ids, targets)
    return adam_step(p, grads, m, v, t, lr), value


def batch(key, text, n, context):
    starts = jax.random.randint(key, (n, 1), 0, len(text) - context)
    places = starts + jnp.arange(context)
    return text[places], text[places + 1]


def encode(text):
    """The text as numbers, and its alphabet."""
    alphabet = sorted(set(text))
    places = {c: i for i, c in enumerate(alphabet)}
    return jnp.array([places[c] for c in text], jnp.int32), alphabet
