"""The table of the stage of scale: what is done at several sizes, in Sheaf and in JAX."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from table import distributions, elementwise, indexing, reductions

# Elements of a large tensor; the last is more than f32 counts to.
LARGE = (100_000, 1_000_000, 17_000_000)

# Iterations of a loop.
LONG = (10, 1_000, 10_000)

# The subject is the work of one step, or of the host.
SHORT = (10, 100, 1_000)


@dataclass
class Argument:
    """A tensor that both sides draw from the same key."""

    kind: str
    # Extents, each a number or a function of the size.
    extents: tuple
    low: float = -2.0
    high: float = 2.0

    def shape(self, size):
        return tuple(e(size) if callable(e) else e for e in self.extents)

    def sheaf(self, seed, size):
        shape = " ".join(map(str, self.shape(size)))
        key = f"(random-key {seed})"
        if self.kind == "int32":
            return f"(random-randint {key} '[{shape}] {int(self.low)} {int(self.high)})"
        uniform = f"(random-uniform {key} '[{shape}] :low {float(self.low)!r} :high {float(self.high)!r})"
        return f"(> {uniform} {(self.low + self.high) / 2!r})" if self.kind == "bool" else uniform

    def jax(self, seed, size):
        key, shape = jax.random.key(seed), self.shape(size)
        if self.kind == "int32":
            return jax.random.randint(key, shape, int(self.low), int(self.high))
        uniform = jax.random.uniform(key, shape, minval=self.low, maxval=self.high)
        return uniform > (self.low + self.high) / 2 if self.kind == "bool" else uniform


@dataclass
class Work:
    """One thing to do at several sizes. `call` and `setup` are Sheaf, with `N` for the size and x, y, z for the arguments."""

    name: str
    call: str
    # Takes the size and the arguments; None where JAX has nothing alike, and only growth is shown.
    function: object
    arguments: list
    sizes: tuple = LARGE
    setup: str = ""
    modes: tuple = ("interpreted", "compiled")
    # Maximum error of sums of a thousandth of the result, relative to the magnitudes in them.
    tolerance: float = 2e-5
    # True if each number of a result depends on all of an argument: its error is then relative to the largest of the result.
    of_largest: bool = False
    # True if JAX compiles the function; else it runs as it stands.
    jit: bool = True

    def code(self, size):
        return self.call.replace("N", str(size))


def n(size):
    return size


def rows(size):
    return max(1, size // 1_000)


def vector(kind="float32", low=-2.0, high=2.0):
    return Argument(kind, (n,), low, high)


def of_entries():
    """Element-wise builtins and reductions of the table of small sizes, at large ones: one call of each spelling."""
    seen = set()
    for entry in [*elementwise.ENTRIES, *reductions.ENTRIES, *indexing.ENTRIES, *distributions.ENTRIES]:
        operands = next((o for o in entry.operands if all(len(x.shape) <= 1 for x in o) and any(x.shape for x in o)), None)
        # Counting the equal ones of two draws, or ranks of distinct numbers, wants no large tensor of its own.
        if operands is None or entry.call in seen or "grad" in entry.call or entry.name in LEFT_OUT:
            continue
        if any(x.dtype not in ("float32", "int32", "bool") for x in operands):
            continue
        is_sum = entry in reductions.ENTRIES
        # Of a vector, reductions over an axis are those over all.
        if is_sum and ":" in entry.call:
            continue
        seen.add(entry.call)
        # Numbers of one sign: a sum of both is near zero, where rounding is all that is left.
        low = lambda x: max(x.low, 0.1) if is_sum and x.dtype == "float32" else x.low  # noqa: E731
        arguments = [Argument(x.dtype, (n,) if x.shape else (), low(x), x.high) for x in operands]
        function = lambda size, *a, f=entry.function: f(*a)  # noqa: E731
        sizes = LARGE if is_sum else LARGE[:2]
        yield Work(entry.call, entry.call, function, arguments, sizes)


# Products of a million numbers are 0 or infinite, sorts have rows of their own, and `get` of rows as well.
LEFT_OUT = {"product", "cumprod", "sort", "argsort", "top_k", "embedding", "get", "scatter-add", "index-update", "call", "clamp"}


def matrix(kind="float32"):
    return Argument(kind, (rows, 1_000), 0.1)


REDUCTIONS = [
    Work(f"({name} x{options}), a matrix", f"({name} x{options})", lambda size, x, f=f, k=k: f(x, **k), [matrix()], (1_000_000, 16_000_000))
    for name, f in (("sum", jnp.sum), ("mean", jnp.mean), ("std", jnp.std), ("logsumexp", jax.nn.logsumexp), ("cumsum", jnp.cumsum), ("max", jnp.max))
    for options, k in ((" :axis 0", {"axis": 0}), (" :axis 1", {"axis": 1}))
] + [
    Work("mean about 1000", "(mean (+ 1000 x))", lambda size, x: jnp.mean(1000 + x), [vector()]),
    Work("std about 1000", "(std (+ 1000 x))", lambda size, x: jnp.std(1000 + x), [vector()], tolerance=1e-4),
    Work("dot", "(dot x y)", lambda size, x, y: jnp.dot(x, y), [vector(low=0), vector(low=0)]),
    Work("gradient of mse-loss", "((grad (fn [v] (mse-loss v y))) x)", lambda size, x, y: 2 * (x - y) / size, [vector(), vector()]),
    Work("gradient of a bias", "((grad (fn [b] (mean (square (+ y b))))) x)",
         lambda size, x, y: jax.grad(lambda b: jnp.mean(jnp.square(y + b)))(x), [Argument("float32", (1_000,)), matrix()], (1_000_000, 16_000_000)),
    Work("a matrix by a vector", "(@ x y)", lambda size, x, y: x @ y, [matrix(), Argument("float32", (1_000,), 0.1)], (1_000_000, 16_000_000)),
    Work("a vector by a matrix", "(@ y x)", lambda size, x, y: y @ x, [matrix(), Argument("float32", (rows,), 0.1)], (1_000_000, 16_000_000)),
    Work("products of matrices", "(@ x y)", lambda size, x, y: x @ y,
         [Argument("float32", (n, n), 0.1), Argument("float32", (n, n), 0.1)], (128, 256, 512)),
]

ARRANGED = [
    Work("sort", "(sort x)", lambda size, x: jnp.sort(x), [vector()], (10_000, 100_000)),
    Work("argsort", "(argsort x)", lambda size, x: jnp.argsort(x), [vector("int32", 0, 1_000_000_000)], (10_000, 100_000)),
    Work("top_k 10", "(first (top_k x 10))", lambda size, x: jax.lax.top_k(x, 10)[0], [vector()], (10_000, 100_000)),
    Work("median", "(median x)", lambda size, x: jnp.median(x), [vector()], (10_000, 100_000)),
    Work("rows by index", "(get x y)", lambda size, x, y: x[y], [matrix(), Argument("int32", (rows,), 0, 100)], LARGE[:2]),
    Work("embedding and its gradient", "((grad (fn [e] (mean (square (embedding e y))))) x)",
         lambda size, x, y: jax.grad(lambda e: jnp.mean(jnp.square(e[y])))(x), [Argument("float32", (1_000, 64)), Argument("int32", (n,), 0, 1_000)], (1_000, 100_000)),
    Work("scatter-add", "(scatter-add x y z)", lambda size, x, y, z: x.at[y].add(z),
         [Argument("float32", (1_000,)), vector("int32", 0, 1_000), vector()], LARGE[:2]),
    Work("index-update", "(index-update x 5 7.0)", lambda size, x: x.at[5].set(7.0), [vector()], LARGE[:2]),
    Work("transpose", "(transpose x)", lambda size, x: x.T, [matrix()], LARGE[:2]),
    Work("concat", "(concat x y)", lambda size, x, y: jnp.concatenate([x, y]), [vector(), vector()], LARGE[:2]),
    Work("tile", "(tile x 3)", lambda size, x: jnp.tile(x, 3), [vector()], LARGE[:2]),
    Work("roll", "(roll x 7)", lambda size, x: jnp.roll(x, 7), [vector()], LARGE[:2]),
    Work("reverse", "(reverse x)", lambda size, x: jnp.flip(x), [vector()], LARGE[:2]),
    Work("one-hot", "(one-hot x 100)", lambda size, x: jax.nn.one_hot(x, 100), [vector("int32", 0, 100)], (10_000, 100_000)),
    Work("softmax of rows", "(softmax x)", lambda size, x: jax.nn.softmax(x), [matrix()], LARGE[:2]),
    Work("arange", "(sum (* x (arange N)))", lambda size, x: jnp.sum(x * jnp.arange(size)), [vector(low=0)], LARGE[:2]),
    Work("random-normal", "(random-normal x '[N])", lambda size, x: jax.random.normal(jax.random.wrap_key_data(x.astype("uint32")), (size,)),
         [Argument("int32", (2,), 0, 1_000_000)], LARGE[:2], setup="(def x (cast x :u32))"),
    Work("vmap over rows", "((vmap (fn [r] (/ r (norm r)))) x)", lambda size, x: jax.vmap(lambda r: r / jnp.linalg.norm(r))(x), [matrix()], LARGE[:2]),
]

SQUARE = [Argument("float32", (n, n), 0.1)]
# Matrices whose factors are no differences of large numbers.
DEFINITE = "(+ (+ x (transpose x)) (* 4 N (eye N)))"


def definite(size, x):
    return x + x.T + 4 * size * jnp.eye(size)


# Signs that rounding decides, those of eigenvectors say, and elements near zero beside large ones are no part of the results.
FACTORS = [
    Work("cholesky", f"(cholesky {DEFINITE})", lambda size, x: jnp.linalg.cholesky(definite(size, x)), SQUARE, (64, 256, 1_024)),
    Work("solve", f"(solve {DEFINITE} x)", lambda size, x: jnp.linalg.solve(definite(size, x), x), SQUARE, (64, 256, 1_024), tolerance=2e-4),
    Work("qr", f"(diag (second (qr {DEFINITE})))", lambda size, x: jnp.diag(jnp.linalg.qr(definite(size, x))[1]), SQUARE, (64, 256, 1_024), modes=("compiled",), tolerance=2e-4),
    Work("eigvalsh", "(eigvalsh (+ x (transpose x)))", lambda size, x: jnp.linalg.eigvalsh(x + x.T), SQUARE, (64, 128, 256), modes=("compiled",), tolerance=2e-4),
    Work("singular values", "(second (svd x))", lambda size, x: jnp.linalg.svd(x)[1], SQUARE, (64, 128, 256), modes=("compiled",), tolerance=2e-4),
]


def affine(size, x):
    return jax.lax.fori_loop(0, size, lambda i, v: 0.99 * v + 0.01 * jnp.sin(v), x)


def recurrent(h, v):
    h = jnp.tanh(0.9 * h + v)
    return h, h


STATE = Argument("float32", (32,))
INPUTS = Argument("float32", (n, 32))

LOOPS = [
    Work("repeat", "(repeat [i N] [v x] (+ (* 0.99 v) (* 0.01 (sin v))))", affine, [STATE], LONG),
    Work("while", "(first (while (< k N) [[v k] [x 0]] [(+ (* 0.99 v) (* 0.01 (sin v))) (+ k 1)]))", affine, [STATE], LONG),
    Work("reduce over rows", "(reduce (fn [h v] (tanh (+ (* 0.9 h) v))) x y)",
         lambda size, x, y: jax.lax.scan(recurrent, x, y)[0], [STATE, INPUTS], LONG),
    Work("scan", "(scan (fn [h v] (let [h (tanh (+ (* 0.9 h) v))] (list h h))) x y)",
         lambda size, x, y: jax.lax.scan(recurrent, x, y), [STATE, INPUTS], SHORT),
    Work("gradient of a scan", "((grad (fn [x] (sum (second (scan (fn [h v] (let [h (tanh (+ (* 0.9 h) v))] (list h h))) x y))))) x)",
         lambda size, x, y: jax.grad(lambda x: jnp.sum(jax.lax.scan(recurrent, x, y)[1]))(x), [STATE, INPUTS], SHORT),
    Work("gradient of a repeat", "((grad (fn [x] (sum (repeat [i N] [v x] (+ (* 0.99 v) (* 0.01 (sin v))))))) x)",
         lambda size, x: jax.grad(lambda x: jnp.sum(jax.lax.scan(lambda v, _: (0.99 * v + 0.01 * jnp.sin(v), None), x, None, size)[0]))(x), [STATE], SHORT),
    Work("map over rows", "(mapv (fn [v] (* 2 v)) x)", lambda size, x: jax.vmap(lambda v: 2 * v)(x), [INPUTS], LONG),
]

TREE = "(def tree (zipmap (map (fn [i] (str \"k\" i)) (range N)) (map (fn [i] (+ x i)) (range N))))"


def leaves(size, x):
    return {f"k{i}": x + i for i in range(size)}


TREES = [
    Work("tree-map over leaves", "(reduce + 0.0 (map sum (vals (tree-map (fn [v] (* 2 v)) tree))))",
         lambda size, x: sum(jnp.sum(2 * v) for v in leaves(size, x).values()), [STATE], SHORT, TREE),
    Work("gradient by leaves", "(reduce + 0.0 (map sum (vals ((grad (fn [t] (reduce + 0.0 (map (fn [v] (sum (* v v))) (vals t))))) tree))))",
         lambda size, x: sum(jnp.sum(2 * v) for v in leaves(size, x).values()), [STATE], SHORT, TREE),
    Work("sgd-step of leaves", "(reduce + 0.0 (map sum (vals (sgd-step tree tree 0.1))))",
         lambda size, x: sum(jnp.sum(v - 0.1 * v) for v in leaves(size, x).values()), [STATE], SHORT, TREE),
]

# `--jit always` compiles a program for each size that such a value takes, as it is told to.
GROWING = ("interpreted",)

# Lengths of lists and dictionaries that grow.
GROWN = (1_000, 10_000, 100_000)

# The host's own work: no program is expected of it, and JAX's side is Python.
HOST = [
    Work("append in a loop", "(len (reduce (fn [xs i] (append xs i)) '[] (range N)))",
         lambda size: len(list(range(size))), [], GROWN, modes=GROWING, jit=False),
    Work("rest in a loop", "(len (while (> (len xs) 1) [xs (map identity (range N))] (rest xs)))",
         lambda size: len(list(range(size))) // size, [], GROWN, modes=GROWING, jit=False),
    Work("assoc in a loop", "(len (keys (reduce (fn [d i] (assoc d (str \"k\" i) i)) {} (range N))))",
         lambda size: len({f"k{i}": i for i in range(size)}), [], GROWN, modes=GROWING, jit=False),
    Work("dissoc in a loop", "(len (repeat [i N] [d (zipmap (map str (range N)) (range N))] (dissoc d (str i))))",
         lambda size: 0 * len({f"k{i}": i for i in range(size)}), [], GROWN, modes=GROWING, jit=False),
    Work("a history of losses", "(len (repeat [i N] [history '[]] (append history (sum x))))",
         lambda size, x: len(list(range(size))), [Argument("float32", (3,))], GROWN, modes=GROWING, jit=False),
    Work("sum of numbers", "(repeat [i N] [s 0] (+ s i))", lambda size: sum(range(size)), [], (10, 1_000, 100_000), jit=False),
    Work("calls with a growing tensor", "(sum (reduce (fn [v i] (concat v [1.0])) x (range N)))",
         lambda size, x: jnp.sum(x) + size, [STATE], SHORT, modes=GROWING, jit=False),
    Work("calls with the same arguments", "(repeat [i N] [v x] (step v))", affine, [STATE], LONG,
         "(defn step [v] (+ (* 0.99 v) (* 0.01 (sin v))))"),
    Work("lines of a text", "(len (io \"load\" \"lines.txt\"))", lambda size: 8 * size - 1, [], (1_000, 100_000),
         "(io \"save\" \"lines.txt\" (str-call \"join\" \"\\n\" (map (fn [i] (format \"{:07}\" i)) (range N))))", jit=False),
    Work("numbers of a csv", "(sum (io \"load\" \"numbers.csv\"))", lambda size: np.float32(3.0 * size), [], (1_000, 100_000),
         "(io \"save\" \"numbers.csv\" (tile [[1.0 2.0]] (list N 1)))", jit=False),
    Work("a json of numbers", "(sum (tensor (io \"load\" \"numbers.json\")))", lambda size: np.float32(size), [], (1_000, 100_000),
         "(io \"save\" \"numbers.json\" (ones '[N]))", jit=False),
]

WORKS = [*of_entries(), *REDUCTIONS, *ARRANGED, *FACTORS, *LOOPS, *TREES, *HOST]
