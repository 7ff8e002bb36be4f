"""Losses, layers and optimisers, against the same written in JAX."""

import jax
import jax.numpy as jnp
from jax import lax

from cases import Entry, Operand, i32, positive, ranked, real, truth


def probabilities(*shape):
    return Operand(shape, "float32", 0.05, 0.95)


def small(*shape):
    return real(*shape, low=-0.7, high=0.7)


def cross_entropy(logits, targets):
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1)
    return -jnp.mean(picked)


def huber(x, y, delta=1.0):
    d = jnp.abs(x - y)
    return jnp.mean(jnp.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)))


def bce(p, t):
    return -jnp.mean(t * jnp.log(p) + (1 - t) * jnp.log1p(-p))


def bce_logits(z, t):
    return jnp.mean(-t * jax.nn.log_sigmoid(z) - (1 - t) * jax.nn.log_sigmoid(-z))


def layer_norm(x, gamma, beta):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma + beta


def rms_norm(x, gamma):
    return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * gamma


def batch_norm(x, gamma, beta):
    return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5) * gamma + beta


def conv(x, kernel, stride=1, padding="VALID"):
    spatial = kernel.ndim - 2
    strides = (stride,) * spatial
    if isinstance(padding, int):
        padding = [(padding, padding)] * spatial
    names = ("NHWC", "HWIO", "NHWC") if spatial == 2 else ("NHC", "HIO", "NHC")
    return lax.conv_general_dilated(x, kernel, strides, padding, dimension_numbers=names)


def pool(x, window, init, combine, stride=None, padding="VALID"):
    dims = (1, window, window, 1) if x.ndim == 4 else (1, window, 1)
    step = stride or window
    strides = (1, step, step, 1) if x.ndim == 4 else (1, step, 1)
    return lax.reduce_window(x, init, combine, dims, strides, padding)


def max_pool(x, window, **more):
    return pool(x, window, -jnp.inf, lax.max, **more)


def avg_pool(x, window, **more):
    return pool(x, window, 0.0, lax.add, **more) / window ** (x.ndim - 2)


def attention(q, k, v, mask=None):
    scores = q @ jnp.swapaxes(k, -1, -2) / jnp.sqrt(q.shape[-1])
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    weights = jax.nn.softmax(scores)
    return [weights @ v, weights]


def heads(x, wq, wo, n):
    t, d = x.shape
    split = lambda h: h.reshape(t, n, d // n).swapaxes(0, 1)  # noqa: E731
    h = split(x @ wq)
    out, weights = attention(h, split(x @ wo), h, jnp.tril(jnp.ones((t, t), bool)))
    return [out.swapaxes(0, 1).reshape(t, d) @ wo, weights]


def rope(x, positions):
    d = x.shape[-1]
    angle = positions[:, None] * 10000.0 ** (-2 * jnp.arange(d // 2) / d)
    a, b = x[..., 0::2], x[..., 1::2]
    turned = [a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)]
    return jnp.stack(turned, -1).reshape(x.shape)


def adam(p, g, m, v, decay=0.0, lr=0.1, t=4):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    step = (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return [p - lr * (step + decay * p), m, v, t]


def clip(g, limit):
    norm = jnp.sqrt(jnp.sum(g * g))
    return g * jnp.where(norm > limit, limit / norm, 1)


LOSSES = [
    Entry("sparse-cross-entropy", "(sparse-cross-entropy x y)", cross_entropy, [[real(3, 4), i32(3, low=0, high=4)], [real(2, 2, 3), i32(2, 2, low=0, high=3)]]),
    Entry("cross-entropy-loss", "(cross-entropy-loss x y)", cross_entropy, [[real(3, 4), i32(3, low=0, high=4)]]),
    Entry("cross-entropy-loss", "(cross-entropy-loss x y)", lambda x, y: -jnp.mean(jnp.sum(y * jax.nn.log_softmax(x), -1)), [[real(3, 4), positive(3, 4)]]),
    Entry("mse-loss", "(mse-loss x y)", lambda x, y: jnp.mean((x - y) ** 2), [[real(4), real(4)], [real(2, 3), real(2, 3)]]),
    Entry("mae-loss", "(mae-loss x y)", lambda x, y: jnp.mean(jnp.abs(x - y)), [[real(4), real(4)]]),
    Entry("huber-loss", "(huber-loss x y)", huber, [[real(6), real(6)]]),
    Entry("binary-cross-entropy", "(binary-cross-entropy x y)", bce, [[probabilities(4), probabilities(4)]]),
    Entry("binary-cross-entropy", "(binary-cross-entropy x y :logits)", bce_logits, [[real(4), probabilities(4)]]),
    Entry("kl-divergence", "(kl-divergence x y)", lambda p, q: jnp.mean(jnp.sum(p * jnp.log(p / q), -1)), [[probabilities(4), probabilities(4)], [probabilities(2, 3), probabilities(2, 3)]]),
]

LAYERS = [
    Entry("linear", "(linear x y z)", lambda x, w, b: x @ w + b, [[real(2, 3), real(3, 2), real(2)]]),
    Entry("normalize", "(normalize x)", lambda x: x / jnp.sum(x, -1, keepdims=True), [[positive(4)], [positive(2, 3)]]),
    Entry("layer-norm", "(layer-norm x {:gamma y :beta z})", layer_norm, [[ranked(2, 4), real(4), real(4)]]),
    Entry("rms-norm", "(rms-norm x {:gamma y})", rms_norm, [[positive(2, 3), real(3)]]),
    Entry("batch-norm", "(first (batch-norm x {:gamma y :beta z} {:mean [0 0] :var [1 1]} true))", batch_norm, [[ranked(4, 2), real(2), real(2)]]),
    Entry("conv1d", "(conv1d x y)", conv, [[real(1, 5, 2), real(2, 2, 2)]]),
    Entry("conv1d", "(conv1d x y :stride 2 :padding :same)", lambda x, y: conv(x, y, 2, "SAME"), [[real(1, 5, 1), real(3, 1, 2)]]),
    Entry("conv2d", "(conv2d x y)", conv, [[real(1, 3, 4, 2), real(2, 2, 2, 1)]]),
    Entry("conv2d", "(conv2d x y :stride 2 :padding 1)", lambda x, y: conv(x, y, 2, 1), [[real(1, 4, 4, 1), real(3, 3, 1, 2)]]),
    Entry("max-pool", "(max-pool x 2)", lambda x: max_pool(x, 2), [[ranked(1, 4, 2, 2)], [ranked(1, 4, 2)]]),
    Entry("max-pool", "(max-pool x 2 :stride 1 :padding :same)", lambda x: max_pool(x, 2, stride=1, padding="SAME"), [[ranked(1, 3, 3, 1)]]),
    Entry("avg-pool", "(avg-pool x 2)", lambda x: avg_pool(x, 2), [[real(1, 4, 2, 2)], [real(1, 4, 2)]]),
    Entry("attention", "(attention x y z)", attention, [[real(2, 3), real(4, 3), real(4, 2)], [real(2, 2, 2), real(2, 3, 2), real(2, 3, 2)]]),
    Entry("attention", "(attention x y z :mask (causal-mask 3))", lambda q, k, v: attention(q, k, v, jnp.tril(jnp.ones((3, 3), bool))), [[real(3, 2), real(3, 2), real(3, 2)]]),
    Entry("multi-head-attention", "(multi-head-attention x {:Wq y :Wk z :Wv y :Wo z} {:n-heads 2 :causal true})", lambda x, y, z: heads(x, y, z, 2), [[real(3, 4, low=-1, high=1), small(4, 4), small(4, 4)]]),
    Entry("rope", "(rope x y)", rope, [[real(3, 4), i32(3, low=0, high=5)]]),
]

OPTIMISERS = [
    Entry("sgd-step", "(sgd-step {:a x} {:a y} 0.1)", lambda x, y: {"a": x - 0.1 * y}, [[real(3), real(3)]]),
    Entry("momentum-step", "(momentum-step x y z 0.1 0.9)", lambda p, g, m: [p - 0.1 * (0.9 * m + g), 0.9 * m + g], [[real(3), real(3), real(3)]]),
    Entry("adam-step", "(adam-step x y z w 3 0.1)", adam, [[real(3), positive(3), real(3), positive(3)]], order=1, batches=False),
    Entry("adamw-step", "(adamw-step x y z w 3 0.1)", lambda p, g, m, v: adam(p, g, m, v, 0.01), [[real(3), positive(3), real(3), positive(3)]], order=1, batches=False),
    Entry("lion-step", "(lion-step x y z 0.1)", lambda p, g, m: [p - 0.1 * jnp.sign(0.9 * m + 0.1 * g), 0.99 * m + 0.01 * g], [[real(3), real(3), real(3)]]),
    Entry("rmsprop-step", "(rmsprop-step x y z 0.1)", lambda p, g, v: [p - 0.1 * g / (jnp.sqrt(0.9 * v + 0.1 * g * g) + 1e-8), 0.9 * v + 0.1 * g * g], [[real(3), positive(3), positive(3)]]),
    Entry("global-norm", "(global-norm {:a x :b (list y)})", lambda x, y: jnp.sqrt(jnp.sum(x * x) + jnp.sum(y * y)), [[real(3), real(2, 2)]]),
    Entry("clip-by-global-norm", "(clip-by-global-norm x 1)", lambda x: clip(x, 1), [[real(4)], [real(2, low=-0.5, high=0.5)]]),
    Entry("cosine-decay", "(cosine-decay 0.1 x 0 100)", lambda x: 0.05 * (1 + jnp.cos(jnp.pi * x / 100)), [[real(low=1, high=99)], [i32(low=1, high=99)]]),
    Entry("linear-warmup", "(linear-warmup 0.1 x 10)", lambda x: 0.1 * jnp.minimum(1, x / 10), [[real(low=1, high=9)], [i32(low=1, high=20)]]),
    Entry("causal-mask", "(logical-and x (causal-mask 3))", lambda x: jnp.logical_and(x, jnp.tril(jnp.ones((3, 3), bool))), [[truth(3, 3)]], order=0),
]

ENTRIES = LOSSES + LAYERS + OPTIMISERS
