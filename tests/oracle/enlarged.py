"""Names of the wider library at large sizes: calls of the table of small ones, with larger operands."""

import jax
import jax.numpy as jnp
from table import fourier, layers, linear, solvers, training
from works import LARGE, Argument, Work, n, rows

ENTRIES = {entry.call: entry for module in (fourier, layers, linear, solvers, training) for entry in module.ENTRIES}


def enlarged(call, *extents, sizes=LARGE[:2], bounds=None, modes=("interpreted", "compiled"), **more):
    """The entry with this call on operands of these extents, of its own ranges unless there are other bounds."""
    entry = ENTRIES[call]
    small = entry.operands[-1]
    ranges = [bounds if bounds and o.dtype == "float32" else (o.low, o.high) for o in small]
    arguments = [Argument(o.dtype, e, *r) for o, e, r in zip(small, extents, ranges, strict=True)]
    return Work(call, call, lambda size, *a: entry.function(*a), arguments, sizes, modes=modes, **more)


def times(factor):
    return lambda size: factor * size


def half(size):
    return size // 2 + 1


SMALL = (-0.1, 0.1)
SQUARE, COLUMN = (n, n), (n,)
MATRICES = (64, 256, 512)
MATRIX = (rows, 1_000)
FACTOR = {"sizes": MATRICES, "bounds": SMALL, "tolerance": 2e-4}
DIAGONAL = "(+ x (* 6 (eye (shape x -1))))"
ORDERED = "(+ x (diag (+ 1 (arange (shape x -1)))))"
VECTORS = "((fn [[w v]] (list w (* v v) (* v (sum v :axis -2 :keepdims)))) (eigh %s))" % ORDERED
BIAS = "{:Wx y :Wh z :b (full (shape z %d) 0.1)}"
GATED = "{:Wx z :Wh w :b (full (shape w 1) 0.1) :bn (full (shape w 0) 0.2)}"
EXPERTS = "{:gate y :W1 z :b1 (full (list 3 (shape z 2)) 0.1) :W2 w :b2 (full (list 3 (shape w 2)) 0.2)}"
STEPS = (10, 100, 1_000)

LINEAR = [
    enlarged(f"(triangular-solve {DIAGONAL} y :lower)", SQUARE, (n, 3), **FACTOR),
    enlarged(f"(cho-solve {DIAGONAL} y)", SQUARE, COLUMN, **FACTOR),
    enlarged(f"(inv {DIAGONAL})", SQUARE, **FACTOR),
    enlarged(f"(slogdet {DIAGONAL})", SQUARE, **FACTOR),
    enlarged(f"(det (* 0.2 {DIAGONAL}))", SQUARE, **{**FACTOR, "sizes": (16, 64, 128)}),
    enlarged(f"(rest (lu {DIAGONAL}))", SQUARE, **FACTOR),
    enlarged(f"(qr {DIAGONAL})", SQUARE, **FACTOR),
    # Eigenvalues 1 apart, of 1 to 128: rotations end at off-diagonals of 1.3e-6 of the lengths of two rows.
    enlarged(VECTORS, SQUARE, bounds=SMALL, sizes=(32, 64, 128), modes=("compiled",), of_largest=True, tolerance=3e-4),
    enlarged(f"(pinv {ORDERED})", SQUARE, bounds=SMALL, sizes=(32, 64, 128), modes=("compiled",), tolerance=5e-4),
    enlarged("(matrix-rank x)", SQUARE, sizes=(32, 64, 128), modes=("compiled",)),
    enlarged("(lstsq x y)", (times(4), n), (times(4), 1), sizes=(16, 64, 128), modes=("compiled",), tolerance=5e-4),
    enlarged("(matrix-power x 3)", SQUARE, **FACTOR),
    enlarged("(expm x)", SQUARE, **{**FACTOR, "sizes": (32, 64, 128)}),
    enlarged("(kron x y)", COLUMN, (1_000,), sizes=(100, 10_000)),
    enlarged("(multi-dot (list x y z))", COLUMN, (n, 2), (2,), bounds=(0.1, 2)),
    enlarged("(vector-norm x :ord 3 :axis -1)", MATRIX),
    enlarged("(matrix-norm x :ord 1)", (4, rows, 1_000)),
    enlarged("(norm x :ord 1)", MATRIX),
]

FOURIER = [enlarged(f"({name} (list x y))", *both, sizes=(1_024, 65_536, 1_000_003), of_largest=True)
           for name, both in (("fft", (COLUMN, COLUMN)), ("ifft", (COLUMN, COLUMN)), ("irfft", ((half,), (half,))))] + [
    enlarged("(rfft x)", COLUMN, sizes=(1_024, 65_536, 1_000_003), of_largest=True),
    enlarged("(fft2 (list x y))", MATRIX, MATRIX, of_largest=True),
    enlarged("(ifft2 (list x y))", MATRIX, MATRIX, of_largest=True),
    enlarged("(rfft2 x)", MATRIX, of_largest=True),
    enlarged("(irfft2 (list x y))", (1, rows, 501), (1, rows, 501), of_largest=True),
    enlarged("(convolve x y)", COLUMN, (1_000,), sizes=(10_000, 100_000), of_largest=True),
]

LAYERS = [
    enlarged(f"(recurrent rnn-cell x {BIAS % 0})", (8, n, 16), (16, 32), (32, 32), sizes=STEPS, bounds=SMALL),
    enlarged(f"(recurrent lstm-cell x {BIAS % 1} :lengths [2 3])", (2, n, 3), (3, 16), (4, 16), sizes=STEPS),
    enlarged(f"(recurrent gru-cell x {GATED} :state y)", (2, n, 3), (2, 4), (3, 12), (4, 12), sizes=STEPS, bounds=SMALL),
    enlarged("(group-norm x {:gamma y :beta z} 2)", (rows, 16, 16, 6), (6,), (6,)),
    enlarged("(instance-norm x {:gamma y :beta z})", (rows, 16, 16, 3), (3,), (3,)),
    enlarged("(weight-norm x y)", (3, 3, rows, 100), (100,)),
    enlarged("(spectral-norm x y)", MATRIX, (1_000,), tolerance=1e-4),
    enlarged("(conv1d x y :dilation 2)", (1, n, 2), (3, 2, 2)),
    enlarged("(conv2d x y :groups 3 :padding :same)", (1, rows, 100, 3), (3, 3, 1, 3)),
    enlarged("(conv-transpose x y :stride 2 :padding :same)", (1, rows, 100, 2), (3, 3, 2, 4)),
    enlarged("(global-avg-pool x)", (2, rows, 100, 3), bounds=(0.1, 2)),
    enlarged("(global-max-pool x)", (2, rows, 100, 3)),
    enlarged("(adaptive-avg-pool x '[3 1])", (1, rows, 100, 2), bounds=(0.1, 2)),
    enlarged("(grouped-attention x y z)", (2, 4, rows, 16), (2, 2, rows, 16), (2, 2, rows, 16)),
    enlarged("(length-mask x 6)", MATRIX),
    enlarged(f"(mixture-of-experts x {EXPERTS})", (rows, 3), (3, 3), (3, 3, 4), (3, 4, 2), sizes=(10_000, 40_000)),
    enlarged("(lora-linear x y [1 2] {:A z :B w} 3)", (rows, 100), (100, 2), (100, 3), (3, 2), of_largest=True),
]

OPTIMISERS = [enlarged(call, *[MATRIX] * count) for call, count in (
    ("(nesterov-step x y z 0.1 0.9)", 3), ("(adagrad-step x y z 0.1)", 3), ("(adadelta-step x y z w 1)", 4), ("(nadam-step x y z w 3 0.1)", 4),
    ("(slice (radam-step x y z w 3 0.1) 0 3)", 4), ("(slice (lamb-step x y z w 3 0.1) 0 3)", 4), ("(ema-step {:a x} {:a y} 0.9)", 2),
    ("(slice (lookahead-step x y 5) 0 2)", 2))] + [
    enlarged("(slice (muon-step x y z (zeros-like x) 3 0.1) 0 2)", SQUARE, SQUARE, SQUARE, sizes=(64, 256), tolerance=2e-4),
    enlarged("(let [[p {:keys [rows columns]} t] (adafactor-step x y {:rows z :columns w} 3 0.1)] (list p columns rows t))",
             MATRIX, MATRIX, (rows,), (1_000,)),
    enlarged("(shampoo-step x y (list (list z w)) 0.1)", MATRIX, MATRIX, (rows,), (1_000,)),
    enlarged("((accumulated-grads (fn [p x] (mean (tanh (@ x p)))) 2) x y)", (8,), (n, 8)),
] + [enlarged(call, COLUMN) for call in ("(polynomial-decay 0.5 x 10)", "(one-cycle 0.5 x 100)", "(cosine-restarts 0.5 x 10)")]

LOSSES = [
    enlarged("(smooth-labels x 0.1)", MATRIX),
    enlarged("(focal-loss x y)", MATRIX, MATRIX),
    enlarged("(hinge-loss x y)", MATRIX, MATRIX),
    enlarged("(triplet-loss x y z)", MATRIX, MATRIX, MATRIX),
    enlarged("(contrastive-loss x y z 3)", MATRIX, MATRIX, (rows,)),
    enlarged("(info-nce-loss x y 0.5)", (rows, 100), (rows, 100)),
    enlarged("(ctc-loss x y)", (2, n, 20), (2, 5), sizes=STEPS, tolerance=1e-4),
    enlarged("(confusion-matrix x y 3)", COLUMN, COLUMN),
    enlarged("(precision-score x y)", COLUMN, COLUMN),
    enlarged("(recall-score x y)", COLUMN, COLUMN),
    enlarged("(f1-score x y)", COLUMN, COLUMN),
    enlarged("(auc-score x y)", COLUMN, COLUMN, sizes=(1_000, 10_000)),
    enlarged("(perplexity-score x y)", MATRIX, (rows,)),
]



def cubic_root(size, x):
    """v + 4 v^3 = x, by Newton's method."""
    return jax.lax.fori_loop(0, 30, lambda _, v: v - (v + 4 * v**3 - x) / (1 + 12 * v**2), jnp.ones_like(x))


SOLVERS = [
    Work("root", "(root (fn [v] (- (+ v (* 4 v v v)) x)) (ones-like x))", cubic_root, [Argument("float32", COLUMN, 0.5, 3)], (10, 100, 300)),
    Work("gmres", "(gmres (+ (* 4 N (eye N)) x) y)", lambda size, x, y: jnp.linalg.solve(4 * size * jnp.eye(size) + x, y),
         [Argument("float32", SQUARE), Argument("float32", COLUMN)], (64, 512), of_largest=True),
    *[enlarged(f"(round (* 100 (:x (minimize (fn [v] (sum (+ (square (- v x)) (* 0.1 (square (square (- v x))))))) y{method}))))", COLUMN, COLUMN, sizes=(10, 200))
      for method in ("", " :method :l-bfgs")],
    enlarged("(odeint (fn [y t] (* (+ t y) (cos y))) x [0 0.5 1.25] :method :euler)", COLUMN),
    enlarged("(odeint (fn [y t k] (* k y (- 1 y))) x [0 1 2] :args (list y) :rtol 1e-6 :atol 1e-7)", COLUMN, ()),
    enlarged("(cg (fn [v d] (tree-map * d v)) {:a y} :args (list {:a x}))", COLUMN, COLUMN, tolerance=2e-4),
    enlarged("(fixed-point (fn [v a] (* 0.5 (+ v (/ a v)))) (ones-like x) :args (list x))", COLUMN, tolerance=1e-4),
    enlarged("(interp x [-1.5 -0.25 0 1 1.5] y)", MATRIX, (5,)),
    enlarged("(trapezoid x y)", MATRIX, MATRIX, of_largest=True),
]

WORKS = [*LINEAR, *FOURIER, *LAYERS, *OPTIMISERS, *LOSSES, *SOLVERS]
