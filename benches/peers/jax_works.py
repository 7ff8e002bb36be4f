"""The works of peers.py in JAX: for each, a step and the state that it starts from."""

import jax
import jax.numpy as jnp
from jax import lax


def normal(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


def classes(rows, count=10):
    return jax.random.randint(jax.random.key(3), (rows,), 0, count)


def cross_entropy(logits, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1))


def conv(x, k):
    return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def descent(loss, *data):
    """A step of gradient descent."""
    return jax.jit(lambda p: jax.tree.map(lambda v, d: v - 0.1 * d, p, jax.grad(loss)(p, *data)))


def product():
    a, b = normal(0, 1024, 1024), normal(1, 1024, 1024)
    step = jax.jit(lambda x: x @ b)
    return lambda _: step(a), a


def mlp():
    p = {"W1": 0.05 * normal(0, 784, 256), "b1": jnp.zeros(256), "W2": 0.05 * normal(1, 256, 10), "b2": jnp.zeros(10)}

    def loss(p, x, y):
        return cross_entropy(jax.nn.relu(x @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"], y)

    return descent(loss, normal(2, 128, 784), classes(128)), p


def cnn():
    p = {"k1": 0.1 * normal(0, 3, 3, 1, 16), "k2": 0.1 * normal(1, 3, 3, 16, 32), "W": 0.05 * normal(4, 1568, 10), "b": jnp.zeros(10)}

    def loss(p, x, y):
        h = pool(jax.nn.relu(conv(x, p["k1"])))
        h = pool(jax.nn.relu(conv(h, p["k2"])))
        return cross_entropy(h.reshape(32, -1) @ p["W"] + p["b"], y)

    return descent(loss, normal(2, 32, 28, 28, 1), classes(32)), p


def convolution():
    def loss(k, x):
        return jnp.mean(jnp.square(conv(x, k)))

    return descent(loss, normal(1, 8, 32, 32, 64)), 0.05 * normal(0, 3, 3, 64, 64)


def attention():
    p = {name: 0.1 * normal(seed, 8, 1024, 64) for seed, name in enumerate("qkv")}
    causal = jnp.tril(jnp.ones((1024, 1024), bool))

    def loss(p):
        scores = jnp.einsum("hid,hjd->hij", p["q"], p["k"]) / 8
        weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf))
        return jnp.mean(jnp.square(weights @ p["v"]))

    return descent(loss), p


def entropy():
    def loss(w, x, y):
        return cross_entropy(x @ w, y)

    return descent(loss, normal(1, 256, 128), classes(256, 20_000)), 0.05 * normal(0, 128, 20_000)


def embedding():
    def loss(table, ids):
        return jnp.mean(jnp.square(table[ids]))

    return descent(loss, classes(1024, 20_000)), normal(0, 20_000, 128)


def sums():
    step = jax.jit(lambda x: (x.sum(0), x.sum()))
    x = normal(0, 2048, 2048)
    return lambda _: step(x), step(x)


def sort():
    step = jax.jit(jnp.sort)
    x = normal(0, 200_000)
    return lambda _: step(x), x


def top_k():
    step = jax.jit(lambda x: jax.lax.top_k(x, 40)[1])
    x = normal(0, 64, 50_257)
    return lambda _: step(x), x


def elementwise():
    return jax.jit(lambda x: jnp.exp(jnp.tanh(x))), normal(0, 4_000_000)
