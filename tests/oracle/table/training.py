"""Optimisers, schedules, losses and metrics of the module training, against the same written in JAX by optax's formulas."""

import math

import jax
import jax.numpy as jnp

from cases import Entry, Operand, i32, positive, ranked, real, truth


def probabilities(*shape):
    return Operand(shape, "float32", 0.05, 0.95)


def running(decay, mean, new):
    return decay * mean + (1 - decay) * new


def nesterov(p, g, m, lr=0.1, beta=0.9):
    m = beta * m + g
    return [p - lr * (g + beta * m), m]


def adagrad(p, g, v, lr=0.1):
    v = v + g * g
    return [p - lr * g * jax.lax.rsqrt(v + 1e-7), v]


def adadelta(p, g, v, d, lr=1.0):
    v = running(0.9, v, g * g)
    step = g * jnp.sqrt(d + 1e-6) / jnp.sqrt(v + 1e-6)
    return [p - lr * step, v, running(0.9, d, step * step)]


def nadam(p, g, m, v, t=3, lr=0.1):
    t = t + 1
    m, v = running(0.9, m, g), running(0.999, v, g * g)
    ahead = 0.9 * m / (1 - 0.9 ** (t + 1)) + 0.1 * g / (1 - 0.9**t)
    return [p - lr * ahead / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v, t]


def radam(p, g, m, v, t=3, lr=0.1, b2=0.999):
    t = t + 1
    m, v = running(0.9, m, g), running(b2, v, g * g)
    mean, square = m / (1 - 0.9**t), v / (1 - b2**t)
    most = 2 / (1 - b2) - 1
    length = most - 2 * t * b2**t / (1 - b2**t)
    step = mean
    if length >= 5:
        r = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
        step = r * mean / (jnp.sqrt(square) + 1e-8)
    return [p - lr * step, m, v, t]


def lamb(p, g, m, v, t=3, lr=0.1, decay=0.0):
    t = t + 1
    m, v = running(0.9, m, g), running(0.999, v, g * g)
    step = m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-6) + decay * p
    trust = jnp.sqrt(jnp.sum(p * p)) / jnp.sqrt(jnp.sum(step * step))
    return [p - lr * trust * step, m, v, t]


def equalised(x, turns=5):
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / (jnp.sqrt(jnp.sum(x * x)) + 1e-8)
    for _ in range(turns):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
    return x.T if tall else x


def muon(p, g, m, t=3, lr=0.1, beta=0.95, turns=5):
    t = t + 1
    m = running(beta, m, g)
    ahead = beta * m / (1 - beta ** (t + 1)) + (1 - beta) * g / (1 - beta**t)
    step = math.sqrt(max(1, p.shape[1] / p.shape[0])) * equalised(ahead, turns)
    return [p - lr * step, m]


def clipped(p, step, lr):
    step = step / jnp.maximum(1, jnp.sqrt(jnp.mean(step * step)))
    return p - lr * jnp.maximum(1e-3, jnp.sqrt(jnp.mean(p * p))) * step


def adafactor_matrix(p, g, r, c, t=3, lr=0.1):
    decay = 1 - (t + 1.0) ** -0.8
    squares = g * g + 1e-30
    r = running(decay, r, squares.mean(-1))
    c = running(decay, c, squares.mean(-2))
    step = g * ((r / r.mean(-1, keepdims=True)) ** -0.5)[..., None] * (c**-0.5)[..., None, :]
    return [clipped(p, step, lr), c, r, t + 1]


def adafactor_vector(p, g, v, t=3, lr=0.1):
    v = running(1 - (t + 1.0) ** -0.8, v, g * g + 1e-30)
    return [clipped(p, g * v**-0.5, lr), v]


def shampoo(p, g, *sums, lr=0.1, eps=1e-6):
    k = p.ndim
    new, step = [], g
    for axis, s in enumerate(sums):
        s = s + jnp.sum(g * g, axis=tuple(i for i in range(k) if i != axis))
        new.append(s)
        step = step * ((s + eps) ** (-1 / (2 * k))).reshape([-1 if i == axis else 1 for i in range(k)])
    return [p - lr * step, new]


def accumulated(p, x):
    return [jnp.mean(jnp.tanh(x @ p)), jax.grad(lambda p: jnp.mean(jnp.tanh(x @ p)))(p)]


OPTIMISERS = [
    Entry("nesterov-step", "(nesterov-step x y z 0.1 0.9)", nesterov, [[real(3), real(3), real(3)], [real(6, 5), real(6, 5), real(6, 5)]]),
    Entry("adagrad-step", "(adagrad-step x y z 0.1)", adagrad, [[real(3), real(3), positive(3)], [real(6, 5), real(6, 5), positive(6, 5)]]),
    Entry("adadelta-step", "(adadelta-step x y z w 1)", adadelta, [[real(3), positive(3), positive(3), positive(3)], [real(6, 5), positive(6, 5), positive(6, 5), positive(6, 5)]]),
    Entry("nadam-step", "(nadam-step x y z w 3 0.1)", nadam, [[real(3), positive(3), real(3), positive(3)], [real(6, 5), positive(6, 5), real(6, 5), positive(6, 5)]], order=1, batches=False),
    Entry("nadam-step", "(slice (nadam-step x y z w 3 0.1) 0 3)", lambda *a: nadam(*a)[:3], [[real(3), positive(3), real(3), positive(3)]]),
    Entry("radam-step", "(slice (radam-step x y z w 3 0.1) 0 3)", lambda *a: radam(*a)[:3], [[real(3), positive(3), real(3), positive(3)], [real(6, 5), positive(6, 5), real(6, 5), positive(6, 5)]]),
    Entry("radam-step", "(slice (radam-step x y z w 9 0.1 :b2 0.9) 0 3)", lambda *a: radam(*a, t=9, b2=0.9)[:3], [[real(3), positive(3), real(3), positive(3)]]),
    Entry("lamb-step", "(slice (lamb-step x y z w 3 0.1) 0 3)", lambda *a: lamb(*a)[:3], [[real(3), positive(3), real(3), positive(3)], [real(6, 5), positive(6, 5), real(6, 5), positive(6, 5)]]),
    Entry("lamb-step", "(slice (lamb-step x y z w 3 0.1 :decay 0.1) 0 3)", lambda *a: lamb(*a, decay=0.1)[:3], [[real(3), positive(3), real(3), positive(3)]]),
    Entry("muon-step", "(slice (muon-step x y z (zeros-like x) 3 0.1) 0 2)", muon, [[real(2, 3), real(2, 3), real(2, 3)], [real(6, 4), real(6, 4), real(6, 4)]]),
    Entry("muon-step", "(slice (muon-step x y z (zeros-like x) 3 0.1 :turns 2) 0 2)", lambda *a: muon(*a, turns=2), [[real(3, 2), real(3, 2), real(3, 2)]]),
    Entry("adafactor-step", "(let [[p {:keys [rows columns]} t] (adafactor-step x y {:rows z :columns w} 3 0.1)] (list p columns rows t))", adafactor_matrix, [[real(2, 3), positive(2, 3), positive(2), positive(3)], [real(6, 5), positive(6, 5), positive(6), positive(5)]], order=1, batches=False),
    Entry("adafactor-step", "(let [[p {:keys [rows]} _] (adafactor-step x y {:rows z :columns 0.0} 3 0.1)] (list p rows))", adafactor_vector, [[real(3), positive(3), positive(3)]]),
    Entry("shampoo-step", "(shampoo-step x y (list (list z w)) 0.1)", lambda p, g, r, c: [(s := shampoo(p, g, r, c))[0], [s[1]]], [[real(2, 3), real(2, 3), positive(2), positive(3)], [real(6, 5), real(6, 5), positive(6), positive(5)]]),
    Entry("shampoo-step", "(shampoo-step x y (list (list z)) 0.1)", lambda p, g, r: [(s := shampoo(p, g, r))[0], [s[1]]], [[real(3), real(3), positive(3)]]),
    Entry("adafactor-state", "(adafactor-state {:a x :b y} 2)", lambda x, y: {"columns": {"a": jnp.zeros(3), "b": 0.0}, "rows": {"a": jnp.zeros(2), "b": jnp.zeros(4)}}, [[real(2, 3), real(4)]], order=0, batches=False),
    Entry("shampoo-state", "(shampoo-state {:a x :b y})", lambda x, y: [[jnp.zeros(2), jnp.zeros(3)], [jnp.zeros(4)]], [[real(2, 3), real(4)]], order=0, batches=False),
    Entry("ema-step", "(ema-step {:a x} {:a y} 0.9)", lambda x, y: {"a": running(0.9, x, y)}, [[real(3), real(3)], [real(6, 5), real(6, 5)]]),
    Entry("lookahead-step", "(slice (lookahead-step x y 5) 0 2)", lambda f, s: [s + 0.5 * (f - s)] * 2, [[real(3), real(3)], [real(6, 5), real(6, 5)]]),
    Entry("lookahead-step", "(slice (lookahead-step x y 5 4) 0 2)", lambda f, s: [f, s], [[real(3), real(3)]]),
    Entry("accumulated-grads", "((accumulated-grads (fn [p x] (mean (tanh (@ x p)))) 2) x y)", accumulated, [[real(3), real(4, 3)], [real(8), real(64, 8)]]),
    Entry("tree-map-with-path", "(tree-map-with-path (fn [path a b] (if (= (last path) :b) (* a b) (+ a b))) {:w x :b (list y)} {:w y :b (list x)})", lambda x, y: {"b": [y + x], "w": x + y}, [[real(3), real(3)]]),
    Entry("tree-map-with-path", "(tree-map-with-path (fn [path a] (if (= (last path) :b) (square a) a)) {:b x :w y})", lambda x, y: {"b": x * x, "w": y}, [[real(3), real(2, 2)]]),
    Entry("freeze-grads", "(freeze-grads {:b x :w (square y)} (fn [path] (contains? path :b)))", lambda x, y: {"b": jnp.zeros_like(x), "w": y * y}, [[real(3), real(2, 2)]]),
]


def polynomial(x, end=0.0, power=1.0, begin=0, lr=0.5, steps=10):
    left = 1 - jnp.clip(x - begin, 0, steps) / steps
    return (lr - end) * left**power + end


def eased(a, b, done):
    return a + (b - a) / 2 * (1 - jnp.cos(jnp.pi * done))


def one_cycle(x, lr=0.5, top=30, total=100, div=25.0, final=1e4):
    rising = eased(lr / div, lr, jnp.clip(x / top, 0, 1))
    falling = eased(lr, lr / (div * final), jnp.clip((x - top) / (total - top), 0, 1))
    return jnp.where(x < top, rising, falling)


def restarts(x, lr=0.5, steps=10, factor=1, shrink=1.0):
    out, start, length = jnp.zeros(jnp.shape(x)), 0, steps
    for i in range(8):
        out = jnp.where(x >= start, lr * shrink**i * eased(1, 0, (x - start) / length), out)
        start, length = start + length, length * factor
    return out


SCHEDULES = [
    Entry("polynomial-decay", "(polynomial-decay 0.5 x 10)", polynomial, [[real(low=1, high=9)], [i32(low=0, high=20)], [i32(50, low=0, high=20)]]),
    Entry("polynomial-decay", "(polynomial-decay 0.5 x 10 0.1 3 2)", lambda x: polynomial(x, 0.1, 3.0, 2), [[real(5, low=3, high=11)], [i32(5, low=0, high=20)]]),
    Entry("one-cycle", "(one-cycle 0.5 x 100)", one_cycle, [[real(5, low=1, high=29)], [real(5, low=31, high=99)], [i32(50, low=0, high=120)]]),
    Entry("cosine-restarts", "(cosine-restarts 0.5 x 10)", restarts, [[real(5, low=1, high=9)], [real(5, low=11, high=19)], [i32(50, low=0, high=80)]]),
    Entry("cosine-restarts", "(cosine-restarts 0.5 x 10 2 0.5)", lambda x: restarts(x, factor=2, shrink=0.5), [[real(5, low=11, high=29)], [i32(50, low=0, high=600)]]),
    Entry("cosine-restarts", "(cosine-restarts 0.5 x 10 :factor 1.5)", lambda x: restarts(x, factor=1.5), [[real(5, low=11, high=24)], [i32(50, low=0, high=200)]]),
]


def focal(x, t, gamma=2.0, alpha=None):
    p = jax.nn.sigmoid(x)
    loss = -t * jax.nn.log_sigmoid(x) - (1 - t) * jax.nn.log_sigmoid(-x)
    p_t = p * t + (1 - p) * (1 - t)
    weight = 1 if alpha is None else alpha * t + (1 - alpha) * (1 - t)
    return jnp.mean(weight * loss * (1 - p_t) ** gamma)


def distance(a, b):
    return jnp.sqrt(jnp.sum((a - b) ** 2, -1) + 1e-6)


def triplet(a, p, n, margin=1.0):
    return jnp.mean(jnp.maximum(distance(a, p) - distance(a, n) + margin, 0))


def contrastive(a, b, same, margin=1.0):
    d = jnp.sqrt(jnp.sum((a - b) ** 2, -1))
    return jnp.mean(0.5 * (same * d**2 + (1 - same) * jnp.maximum(margin - d, 0) ** 2))


def info_nce(a, b, temperature):
    a = a / jnp.linalg.norm(a, axis=-1, keepdims=True)
    b = b / jnp.linalg.norm(b, axis=-1, keepdims=True)
    s = a @ b.T / temperature
    return -0.5 * (jnp.mean(jnp.diag(jax.nn.log_softmax(s))) + jnp.mean(jnp.diag(jax.nn.log_softmax(s.T))))


def ctc_one(logits, labels, frames, count, blank=0):
    """-log p of one sequence, with logaddexp over two rows of states: labels and the blanks around them (optax's form)."""
    chances = jax.nn.log_softmax(logits)
    n = labels.shape[0]
    never = -1e5
    repeat = jnp.concatenate([labels[1:] == labels[:-1], jnp.zeros(1, bool)])
    blanks = jnp.where(jnp.arange(n + 1) == 0, 0.0, never)
    marks = jnp.full(n, never)

    def step(state, frame):
        blanks, marks, t = state
        to_blank = frame[blank]
        emit = frame[labels]
        skip = jnp.where(repeat, never, marks)
        into = jnp.logaddexp(marks, jnp.logaddexp(blanks[:-1], jnp.concatenate([jnp.array([never]), skip[:-1]])))
        new_marks = into + emit
        new_blanks = jnp.logaddexp(blanks, jnp.concatenate([jnp.array([never]), marks])) + to_blank
        marks = jnp.where(t < frames, new_marks, marks)
        blanks = jnp.where(t < frames, new_blanks, blanks)
        return (blanks, marks, t + 1), None

    (blanks, marks, _), _ = jax.lax.scan(step, (blanks, marks, 0), chances)
    last = jnp.logaddexp(blanks[count], jnp.where(count > 0, marks[count - 1], never))
    return -last


def ctc(logits, labels, lengths=None, counts=None, blank=0):
    b, t, _ = logits.shape
    lengths = jnp.full(b, t) if lengths is None else lengths
    counts = jnp.full(b, labels.shape[1]) if counts is None else counts
    return jnp.mean(jax.vmap(lambda *a: ctc_one(*a, blank))(logits, labels, lengths, counts))


LOSSES = [
    Entry("smooth-labels", "(smooth-labels x 0.1)", lambda x: 0.9 * x + 0.1 / x.shape[-1], [[probabilities(4)], [probabilities(2, 3)], [probabilities(8, 6)]]),
    Entry("smooth-labels", "(cross-entropy-loss x (smooth-labels (one-hot y 4) 0.1))", lambda x, y: -jnp.mean(jnp.sum((0.9 * jax.nn.one_hot(y, 4) + 0.025) * jax.nn.log_softmax(x), -1)), [[real(3, 4), i32(3, low=0, high=4)]]),
    Entry("focal-loss", "(focal-loss x y)", focal, [[real(4), probabilities(4)], [real(8, 6), probabilities(8, 6)]]),
    Entry("focal-loss", "(focal-loss x y 3 0.25)", lambda x, y: focal(x, y, 3.0, 0.25), [[real(4), probabilities(4)]]),
    Entry("hinge-loss", "(hinge-loss x y)", lambda x, y: jnp.mean(jnp.maximum(0, 1 - x * y)), [[real(6), real(6)], [real(8, 6), real(8, 6)]]),
    Entry("triplet-loss", "(triplet-loss x y z)", triplet, [[real(3, 2), real(3, 2), real(3, 2)], [real(6, 5), real(6, 5), real(6, 5)]]),
    Entry("contrastive-loss", "(contrastive-loss x y z 3)", lambda a, b, s: contrastive(a, b, s, 3.0), [[real(3, 2), real(3, 2), probabilities(3)], [real(8, 5), real(8, 5), probabilities(8)]]),
    Entry("info-nce-loss", "(info-nce-loss x y 0.5)", lambda a, b: info_nce(a, b, 0.5), [[real(3, 2), real(3, 2)], [real(6, 5), real(6, 5)]]),
    Entry("ctc-loss", "(ctc-loss x y)", ctc, [[real(2, 4, 3), i32(2, 2, low=1, high=3)], [real(2, 6, 4), i32(2, 3, low=1, high=4)]]),
    Entry("ctc-loss", "(ctc-loss x y :lengths [3 4] :label-lengths [1 2])", lambda x, y: ctc(x, y, jnp.array([3, 4]), jnp.array([1, 2])), [[real(2, 4, 3), i32(2, 2, low=1, high=3)]]),
    Entry("ctc-loss", "(ctc-loss x y :blank 3 :label-lengths [0 2])", lambda x, y: ctc(x, y, None, jnp.array([0, 2]), 3), [[real(2, 5, 4), i32(2, 2, low=0, high=3)]]),
]


def ratio(a, b):
    return jnp.where(b > 0, a / jnp.where(b > 0, b, 1), 0.0)


def precision(p, t):
    return ratio(jnp.sum(p & t, 0, dtype=float), jnp.sum(p, 0))


def recall(p, t):
    return precision(t, p)


def f1(p, t):
    return ratio(2 * jnp.sum(p & t, 0, dtype=float), jnp.sum(p, 0) + jnp.sum(t, 0))


def auc(scores, positive):
    apart = scores[:, None] - scores[None, :]
    pairs = positive[:, None] & ~positive[None, :]
    return jnp.sum(jnp.where(pairs, (apart > 0) + 0.5 * (apart == 0), 0.0)) / jnp.sum(pairs)


def of_classes(f, n):
    return lambda p, t: f(p[:, None] == jnp.arange(n), t[:, None] == jnp.arange(n))


def perplexity(x, y):
    return jnp.exp(-jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1)))


METRICS = [
    Entry("accuracy-score", "(accuracy-score x y)", lambda x, y: jnp.mean(x == y), [[i32(9, low=0, high=3), i32(9, low=0, high=3)], [i32(50, 30, low=0, high=3), i32(50, 30, low=0, high=3)]]),
    Entry("accuracy-score", "(accuracy-score x y)", lambda x, y: jnp.mean(x.argmax(-1) == y), [[ranked(9, 3), i32(9, low=0, high=3)]], order=0),
    Entry("confusion-matrix", "(confusion-matrix x y 3)", lambda x, y: jnp.zeros((3, 3), int).at[y, x].add(1), [[i32(9, low=0, high=3), i32(9, low=0, high=3)], [i32(500, low=0, high=3), i32(500, low=0, high=3)]]),
    Entry("precision-score", "(precision-score x y)", precision, [[truth(9), truth(9)], [truth(500), truth(500)]]),
    Entry("precision-score", "(precision-score x y :classes 3)", of_classes(precision, 3), [[i32(9, low=0, high=3), i32(9, low=0, high=3)]]),
    Entry("recall-score", "(recall-score x y)", recall, [[truth(9), truth(9)], [truth(500), truth(500)]]),
    Entry("recall-score", "(recall-score x y :classes 3)", of_classes(recall, 3), [[i32(9, low=0, high=3), i32(9, low=0, high=3)]]),
    Entry("f1-score", "(f1-score x y)", f1, [[truth(9), truth(9)], [truth(500), truth(500)]]),
    Entry("f1-score", "(f1-score x y :classes 3)", of_classes(f1, 3), [[i32(9, low=0, high=3), i32(9, low=0, high=3)]]),
    Entry("auc-score", "(auc-score x y)", auc, [[ranked(20), truth(20)], [ranked(300), truth(300)]], order=0),
    Entry("auc-score", "(auc-score (float x) y)", auc, [[i32(30, low=0, high=5), truth(30)]], order=0),
    Entry("perplexity-score", "(perplexity-score x y)", perplexity, [[real(3, 4), i32(3, low=0, high=4)], [real(8, 6), i32(8, low=0, high=6)]]),
]

ENTRIES = OPTIMISERS + SCHEDULES + LOSSES + METRICS
