"""Layers beyond those of the table library, against the same written in JAX: cells by flax's equations."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from cases import Entry, i32, ranked, real, truth


def small(*shape):
    return real(*shape, low=-0.7, high=0.7)


def rnn(x, h, wx, wh):
    h = jnp.tanh(x @ wx + h @ wh + 0.1)
    return h, h


def gru(x, h, wx, wh):
    ar, az, an = jnp.split(x @ wx + 0.1, 3, -1)
    br, bz, bn = jnp.split(h @ wh, 3, -1)
    r, z = jax.nn.sigmoid(ar + br), jax.nn.sigmoid(az + bz)
    n = jnp.tanh(an + r * (bn + 0.2))
    h = (1 - z) * n + z * h
    return h, h


def lstm(x, state, wx, wh):
    h, c = state
    i, f, g, o = jnp.split(x @ wx + h @ wh + 0.1, 4, -1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return h, (h, c)


def lstm_state(x, h, wx, wh):
    out, (h, c) = lstm(x, (h, 0.5 * h), wx, wh)
    return [out, {"c": c, "h": h}]


def unrolled(cell, x, state, wx, wh, lengths=None, backwards=False):
    """[outputs state] of a cell along axis 1, step by step."""
    outputs = [None] * x.shape[1]
    for t in reversed(range(x.shape[1])) if backwards else range(x.shape[1]):
        out, new = cell(x[:, t], state, wx, wh)
        if lengths is not None:
            on = (t < jnp.array(lengths))[:, None]
            new = jax.tree.map(lambda a, b: jnp.where(on, a, b), new, state)
            out = jnp.where(on, out, 0)
        outputs[t], state = out, new
    return [jnp.stack(outputs, 1), state]


def recurrent_lstm(x, wx, wh, **more):
    zero = jnp.zeros((x.shape[0], wh.shape[0]))
    outputs, (h, c) = unrolled(lstm, x, (zero, zero), wx, wh, **more)
    return [outputs, {"c": c, "h": h}]


def recurrent_rnn(x, wx, wh, **more):
    return unrolled(rnn, x, jnp.zeros((x.shape[0], wh.shape[0])), wx, wh, **more)


def standard(x, axes):
    return (x - x.mean(axes, keepdims=True)) / jnp.sqrt(x.var(axes, keepdims=True) + 1e-5)


def group_norm(x, gamma, beta, groups=2):
    parts = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    return standard(parts, (1, 3)).reshape(x.shape) * gamma + beta


def instance_norm(x, gamma, beta):
    return standard(x, tuple(range(1, x.ndim - 1))) * gamma + beta


def spectral(w, u, turns=1):
    m = w.reshape(-1, w.shape[-1])
    fixed = lax.stop_gradient(m)
    u = lax.stop_gradient(u)
    unit = lambda v: v * lax.rsqrt(jnp.sum(v * v) + 1e-12)  # noqa: E731
    for _ in range(turns):
        v = unit(fixed @ u)
        u = unit(v @ fixed)
    return [w / (v @ m @ u), u]


def conv(x, kernel, stride=1, padding="VALID", dilation=1, groups=1):
    n = kernel.ndim - 2
    names = ("NHWC", "HWIO", "NHWC") if n == 2 else ("NHC", "HIO", "NHC")
    return lax.conv_general_dilated(x, kernel, (stride,) * n, padding, rhs_dilation=(dilation,) * n, feature_group_count=groups, dimension_numbers=names)


def conv_transpose(x, kernel, stride=1, padding="VALID"):
    n = kernel.ndim - 2
    names = ("NHWC", "HWIO", "NHWC") if n == 2 else ("NHC", "HIO", "NHC")
    return lax.conv_transpose(x, kernel, (stride,) * n, padding, dimension_numbers=names)


def adaptive(x, *sizes):
    for axis, size in enumerate(sizes, 1):
        n = x.shape[axis]
        parts = [x.take(np.arange(i * n // size, -(-(i + 1) * n // size)), axis).mean(axis) for i in range(size)]
        x = jnp.stack(parts, axis)
    return x


def positions(n, d):
    angles = jnp.arange(n)[:, None] * 10000.0 ** (-2 * jnp.arange(d // 2) / d)
    return jnp.stack([jnp.sin(angles), jnp.cos(angles)], -1).reshape(n, d)


def alibi(heads, n):
    """Slopes as in the paper's program."""
    below = 2 ** int(np.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / below) for i in range(below)]
    slopes += [2 ** (-4 * (i + 1) / below) for i in range(2 * below)][::2][: heads - below]
    i = jnp.arange(n)
    return -jnp.array(slopes)[:, None, None] * jnp.abs(i[:, None] - i)


def grouped(q, k, v, mask=None):
    times = q.shape[-3] // k.shape[-3]
    k, v = jnp.repeat(k, times, -3), jnp.repeat(v, times, -3)
    scores = q @ jnp.swapaxes(k, -1, -2) / jnp.sqrt(q.shape[-1])
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    weights = jax.nn.softmax(scores)
    return [weights @ v, weights]


def window(n, w):
    back = jnp.arange(n)[:, None] - jnp.arange(n)
    return (back >= 0) & (back < w)


def experts(x, gate, w1, w2, top=2, act=jax.nn.relu):
    """Row by row, expert by expert."""
    scores = x @ gate
    best, places = lax.top_k(scores, top)
    weights = jax.nn.softmax(best)
    rows, chosen = [], jnp.zeros(gate.shape[-1])
    for n in range(x.shape[0]):
        all_ = jnp.stack([act(x[n] @ w1[e] + 0.1) @ w2[e] + 0.2 for e in range(gate.shape[-1])])
        rows.append(weights[n] @ all_[places[n]])
        chosen = chosen.at[places[n]].add(1 / (top * x.shape[0]))
    balance = gate.shape[-1] * jnp.sum(chosen * jax.nn.softmax(scores).mean(0))
    return [jnp.stack(rows), balance]


RNN = "{:Wx %s :Wh %s :b (full (shape %s 0) 0.1)}"
GRU = "{:Wx %s :Wh %s :b (full (shape %s 1) 0.1) :bn (full (shape %s 0) 0.2)}"
LSTM = "{:Wx %s :Wh %s :b (full (shape %s 1) 0.1)}"
EXPERTS = "{:gate y :W1 z :b1 (full (list 3 (shape z 2)) 0.1) :W2 w :b2 (full (list 3 (shape w 2)) 0.2)}"

RECURRENT = [
    Entry("rnn-cell", f"(rnn-cell x y {RNN % ('z', 'w', 'w')})", lambda *a: list(rnn(*a)), [[real(3), real(2), small(3, 2), small(2, 2)], [real(4, 5), real(4, 3), small(5, 3), small(3, 3)]]),
    Entry("gru-cell", f"(gru-cell x y {GRU % ('z', 'w', 'w', 'w')})", lambda *a: list(gru(*a)), [[real(3), real(2), small(3, 6), small(2, 6)], [real(4, 5), real(4, 3), small(5, 9), small(3, 9)]]),
    Entry("lstm-cell", f"(lstm-cell x {{:h y :c (* 0.5 y)}} {LSTM % ('z', 'w', 'w')})", lstm_state, [[real(3), real(2), small(3, 8), small(2, 8)], [real(4, 5), real(4, 3), small(5, 12), small(3, 12)]]),
    Entry("recurrent", f"(recurrent rnn-cell x {RNN % ('y', 'z', 'z')})", recurrent_rnn, [[real(2, 3, 2), small(2, 2), small(2, 2)], [real(2, 5, 3), small(3, 4), small(4, 4)]]),
    Entry("recurrent", f"(recurrent rnn-cell x {RNN % ('y', 'z', 'z')} :reverse :lengths [2 4])", lambda *a: recurrent_rnn(*a, lengths=[2, 4], backwards=True), [[real(2, 4, 2), small(2, 2), small(2, 2)]]),
    Entry("recurrent", f"(recurrent lstm-cell x {LSTM % ('y', 'z', 'z')} :lengths [2 3])", lambda *a: recurrent_lstm(*a, lengths=[2, 3]), [[real(2, 3, 2), small(2, 8), small(2, 8)]]),
    Entry("recurrent", f"(recurrent gru-cell x {GRU % ('z', 'w', 'w', 'w')} :state y)", lambda x, h, *a: unrolled(gru, x, h, *a), [[real(2, 3, 2), real(2, 2), small(2, 6), small(2, 6)]]),
]

NORMS = [
    Entry("group-norm", "(group-norm x {:gamma y :beta z} 2)", group_norm, [[ranked(2, 3, 4), real(4), real(4)], [ranked(2, 3, 4, 6), real(6), real(6)]]),
    Entry("instance-norm", "(instance-norm x {:gamma y :beta z})", instance_norm, [[ranked(2, 4, 2), real(2), real(2)], [ranked(2, 3, 4, 3), real(3), real(3)]]),
    Entry("weight-norm", "(weight-norm x y)", lambda w, g: w * g / jnp.sqrt(jnp.sum(w * w, tuple(range(w.ndim - 1)), keepdims=True)), [[real(3, 2), real(2)], [real(3, 3, 2, 4), real(4)]]),
    Entry("spectral-norm", "(spectral-norm x y)", spectral, [[real(3, 2), real(2)], [real(3, 2, 4), real(4)]], order=1),
    Entry("spectral-norm", "(spectral-norm x y 3)", lambda w, u: spectral(w, u, 3), [[real(2, 3), real(3)]], order=1),
]

CONVOLUTIONS = [
    Entry("conv1d", "(conv1d x y :dilation 2)", lambda x, y: conv(x, y, dilation=2), [[real(1, 6, 2), real(3, 2, 2)]]),
    Entry("conv1d", "(conv1d x y :groups 2 :stride 2 :padding 1)", lambda x, y: conv(x, y, 2, [(1, 1)], groups=2), [[real(2, 5, 4), real(2, 2, 6)]]),
    Entry("conv2d", "(conv2d x y :dilation '[2 1] :padding :same)", lambda x, y: lax.conv_general_dilated(x, y, (1, 1), "SAME", rhs_dilation=(2, 1), dimension_numbers=("NHWC", "HWIO", "NHWC")), [[real(1, 4, 3, 2), real(2, 2, 2, 1)]]),
    Entry("conv2d", "(conv2d x y :groups 3 :padding :same)", lambda x, y: conv(x, y, 1, "SAME", groups=3), [[real(1, 3, 4, 3), real(3, 3, 1, 3)], [real(1, 4, 4, 3), real(3, 3, 1, 3)]]),
    Entry("conv2d", "(conv2d x y :groups 2 :dilation 2 :stride 2)", lambda x, y: conv(x, y, 2, "VALID", 2, 2), [[real(1, 5, 6, 4), real(2, 2, 2, 2)]]),
    Entry("conv-transpose", "(conv-transpose x y)", conv_transpose, [[real(1, 3, 2), real(2, 2, 2)], [real(1, 3, 2, 2), real(2, 3, 2, 1)]]),
    Entry("conv-transpose", "(conv-transpose x y :stride 2)", lambda x, y: conv_transpose(x, y, 2), [[real(1, 3, 2), real(3, 2, 2)], [real(1, 3, 2, 2), real(1, 1, 2, 1)]]),
    Entry("conv-transpose", "(conv-transpose x y :stride 2 :padding :same)", lambda x, y: conv_transpose(x, y, 2, "SAME"), [[real(1, 3, 2), real(3, 2, 2)], [real(1, 3, 3, 2), real(4, 4, 2, 1)]]),
    Entry("conv-transpose", "(conv-transpose x y :stride 3 :padding :same)", lambda x, y: conv_transpose(x, y, 3, "SAME"), [[real(1, 3, 2), real(2, 2, 2)]]),
]

POOLS = [
    Entry("global-avg-pool", "(global-avg-pool x)", lambda x: x.mean(tuple(range(1, x.ndim - 1))), [[real(2, 3, 2)], [real(2, 6, 7, 3)]]),
    Entry("global-max-pool", "(global-max-pool x)", lambda x: x.max(tuple(range(1, x.ndim - 1))), [[ranked(2, 3, 2)], [ranked(2, 4, 5, 3)]]),
    Entry("adaptive-avg-pool", "(adaptive-avg-pool x 2)", lambda x: adaptive(x, *[2] * (x.ndim - 2)), [[real(2, 5, 2)], [real(1, 7, 4, 3)]]),
    Entry("adaptive-avg-pool", "(adaptive-avg-pool x '[3 1])", lambda x: adaptive(x, 3, 1), [[real(1, 7, 4, 2)]]),
]

ATTENTION = [
    Entry("sinusoidal-positions", "(+ x (sinusoidal-positions 5 6))", lambda x: x + positions(5, 6), [[real(5, 6)]]),
    Entry("sinusoidal-positions", "(sinusoidal-positions 50 32)", lambda: positions(50, 32), [[]]),
    Entry("alibi-bias", "(+ x (alibi-bias 4 3))", lambda x: x + alibi(4, 3), [[real(4, 3, 3)]]),
    Entry("alibi-bias", "(alibi-bias 6 5)", lambda: alibi(6, 5), [[]]),
    Entry("alibi-bias", "(alibi-bias 12 9)", lambda: alibi(12, 9), [[]]),
    Entry("grouped-attention", "(grouped-attention x y z)", grouped, [[real(4, 3, 2), real(2, 4, 2), real(2, 4, 3)], [real(2, 4, 2, 3), real(2, 2, 3, 3), real(2, 2, 3, 2)]]),
    Entry("grouped-attention", "(grouped-attention x y z :mask (window-mask 4 2))", lambda q, k, v: grouped(q, k, v, window(4, 2)), [[real(2, 4, 2), real(1, 4, 2), real(1, 4, 3)]]),
    Entry("grouped-attention", "(grouped-attention x y z :mask (length-mask (expand-dims w -1) 3))", lambda q, k, v, n: grouped(q, k, v, jnp.arange(3) < n[:, None, None, None]), [[real(2, 2, 3, 2), real(2, 1, 3, 2), real(2, 1, 3, 2), i32(2, low=1, high=4)]]),
    Entry("window-mask", "(logical-and x (window-mask 5 3))", lambda x: x & window(5, 3), [[truth(5, 5)]], order=0),
    Entry("length-mask", "(length-mask x 6)", lambda n: jnp.arange(6) < n[..., None, None], [[i32(3, low=0, high=7)], [i32(2, 3, low=0, high=7)]]),
]

OTHERS = [
    Entry("mixture-of-experts", f"(mixture-of-experts x {EXPERTS})", experts, [[real(4, 2), real(2, 3), small(3, 2, 3), small(3, 3, 2)], [real(5, 3), real(3, 3), small(3, 3, 4), small(3, 4, 2)]]),
    Entry("mixture-of-experts", f"(mixture-of-experts x {EXPERTS} :top 1 :activation tanh)", lambda *a: experts(*a, top=1, act=jnp.tanh), [[real(4, 2), real(2, 3), small(3, 2, 3), small(3, 3, 2)]]),
    Entry("lora-linear", "(lora-linear x y [1 2] {:A z :B w} 3)", lambda x, w, a, b: x @ w + jnp.array([1.0, 2.0]) + 3 / a.shape[1] * x @ a @ b, [[real(3), real(3, 2), real(3, 2), real(2, 2)], [real(3, 4), real(4, 2), real(4, 3), real(3, 2)]]),
]

ENTRIES = RECURRENT + NORMS + CONVOLUTIONS + POOLS + ATTENTION + OTHERS
