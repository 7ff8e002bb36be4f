"""From a builtin and its equivalent in JAX to examples: forward, derivatives, batches."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

import notation
from sheaf import TOLERANCE, Example

# The differentiated function: a number that depends on every element in another way, and not linearly.
HEADER = """
(use nn)
(use optim)
(defn weights-of [r] (* 0.125 (+ 1 (arange (size r)))))
(defn weights-like [r] (if (contains? {:bf16 1 :f16 1 :f64 1} (dtype r)) (cast (weights-of r) (dtype r)) (weights-of r)))
(defn weigh-leaf [r] (sum (* r (+ r (reshape (weights-like r) (shape r))))))
(defn weigh [tree] (reduce + 0.0 (map weigh-leaf (flatten tree))))
"""


def weigh(tree):
    """The same in JAX."""
    leaves = [jnp.asarray(x) for x in jax.tree.leaves(tree)]
    total = jnp.zeros((), leaves[0].dtype if jnp.issubdtype(leaves[0].dtype, jnp.floating) else "float32")
    for r in leaves:
        total = total + jnp.sum(r * (r + jnp.reshape(jnp.arange(1, r.size + 1) * 0.125, r.shape).astype(total.dtype)))
    return total


# The dtypes of JAX whose operands have gradients.
FLOATS = ("float32", "float64", "bfloat16", "float16")


@dataclass
class Operand:
    """An argument: its shape, its dtype, and the range of its elements."""

    shape: tuple
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0
    # True if all elements are clearly different, so that their order does not hang on rounding.
    distinct: bool = False

    def draw(self, random, batch=()):
        """An array; with `batch`, arrays stacked along new first axes."""
        extents = (*batch, *self.shape)
        if self.dtype == "bool":
            return random.random(extents) < 0.5
        if self.dtype not in FLOATS:
            return random.integers(int(self.low), int(self.high), extents).astype(self.dtype)
        if self.distinct:
            count = int(np.prod(extents))
            even = np.linspace(self.low, self.high, max(count, 2))[:count]
            return random.permutation(even).reshape(extents).astype(jnp.dtype(self.dtype))
        return random.uniform(self.low, self.high, extents).astype(jnp.dtype(self.dtype))


def real(*shape, low=-2.0, high=2.0):
    """Floats of a range."""
    return Operand(shape, "float32", low, high)


def positive(*shape):
    """Floats away from zero, where logarithms and quotients are steep."""
    return Operand(shape, "float32", 0.3, 3.0)


def ranked(*shape):
    """Floats of which no two are near each other."""
    return Operand(shape, "float32", -2.0, 2.0, distinct=True)


def i32(*shape, low=-9, high=10):
    """Integers."""
    return Operand(shape, "int32", low, high)


def u32(*shape, low=0, high=10):
    """Integers without sign."""
    return Operand(shape, "uint32", low, high)


def truth(*shape):
    """Booleans."""
    return Operand(shape, "bool")


@dataclass
class Entry:
    """A builtin, a call of it on x, y and z, and the function of JAX that means the same."""

    name: str
    call: str
    function: object
    # Each a list of operands for one set of examples.
    operands: list
    # Maximum number of differentiations.
    order: int = 2
    batches: bool = True
    # True if its value needs a program to be run.
    runs: bool = True
    # In which dtypes its operands are drawn besides (see dtypes.py).
    dtypes: tuple = ()
    names: tuple = field(init=False)

    def __post_init__(self):
        self.names = ("x", "y", "z", "w")[: len(self.operands[0])]


def questions(entry, random):
    """All questions about an entry."""
    seen = {}
    for operands in entry.operands:
        yield drawn(entry, "forward", [(o, ()) for o in operands], random, entry.call, entry.function)
        if any(0 in o.shape for o in operands):
            continue
        # Other shapes of the same dtypes take the same rules.
        dtypes = tuple(o.dtype for o in operands)
        seen[dtypes] = seen.get(dtypes, 0) + 1
        floats = [i for i, o in enumerate(operands) if o.dtype in FLOATS]
        if seen[dtypes] > (2 if floats else 1):
            continue
        if entry.order and floats:
            yield from derivatives(entry, operands, floats, random)
        if entry.batches and operands:
            yield from batches(entry, operands, floats, random)


def derivatives(entry, operands, floats, random):
    """Gradients by each float operand, of gradients by the first, and tangents."""
    plain = [(o, ()) for o in operands]
    params = " ".join(entry.names)
    loss = f"(fn [{params}] (weigh {entry.call}))"

    def jax_loss(*args):
        return weigh(entry.function(*args))

    for i in floats:
        code = f"((grad {loss} :wrt {i}) {params})"
        yield drawn(entry, f"gradient {i}", plain, random, code, jax.grad(jax_loss, i))
    first = floats[0]
    if entry.order > 1:
        inner = f"((grad {loss} :wrt {first}) {params})"
        code = f"((grad (fn [{params}] (weigh {inner})) :wrt {first}) {params})"
        twice = jax.grad(lambda *args: weigh(jax.grad(jax_loss, first)(*args)), first)
        yield drawn(entry, "second gradient", plain, random, code, twice)
    # The operand moves in the direction of another draw of it.
    name = entry.names[first]
    code = f"(second ((jvp (fn [{name}] {entry.call})) {name} t))"

    def tangent(*args):
        *args, t = args
        moved = lambda a: entry.function(*args[:first], a, *args[first + 1 :])
        primal, moves = jax.jvp(moved, (args[first],), (t,))
        # JAX has a dtype of its own for the tangents of integers.
        return jax.tree.map(lambda p, m: jnp.zeros_like(p) if m.dtype == jax.dtypes.float0 else m, primal, moves)

    yield drawn(entry, "tangent", [*plain, (operands[first], ())], random, code, tangent, (*entry.names, "t"))


def batches(entry, operands, floats, random):
    """Maps over all operands, over the first alone along its last axis, over a gradient, and gradients of maps."""
    params = " ".join(entry.names)
    all_batched = [(o, (3,)) for o in operands]
    code = f"((vmap (fn [{params}] {entry.call})) {params})"
    yield drawn(entry, "batch", all_batched, random, code, jax.vmap(entry.function))

    first = [(o, (2,) if i == 0 else ()) for i, o in enumerate(operands)]
    axes = [-1] + [None] * (len(operands) - 1)
    written = " ".join("nil" if a is None else str(a) for a in axes)
    code = f"((vmap (fn [{params}] {entry.call}) '[{written}]) {params})"
    mapped = jax.vmap(entry.function, in_axes=axes)
    yield drawn(entry, "batch of the first", first, random, code, mapped, last_axis=True)

    if not entry.order or not floats:
        return
    i = floats[0]
    loss = f"(fn [{params}] (weigh {entry.call}))"
    code = f"((vmap (grad {loss} :wrt {i})) {params})"
    gradient = jax.grad(lambda *args: weigh(entry.function(*args)), i)
    yield drawn(entry, "batch of gradients", all_batched, random, code, jax.vmap(gradient))
    code = f"((grad (fn [{params}] (weigh ((vmap (fn [{params}] {entry.call})) {params}))) :wrt {i}) {params})"
    of_batch = jax.grad(lambda *args: weigh(jax.vmap(entry.function)(*args)), i)
    yield drawn(entry, "gradient of a batch", all_batched, random, code, of_batch)


@dataclass
class Question:
    """An example whose value is still to be computed."""

    name: str
    call: str
    function: object
    operands: list
    names: tuple
    runs: bool
    last_axis: bool
    random: object
    arrays: list = None

    def draw(self):
        """Draws the operands."""
        self.arrays = [o.draw(self.random, batch) for o, batch in self.operands]
        if self.last_axis:
            self.arrays[0] = np.moveaxis(self.arrays[0], 0, -1)

    def answered(self, value):
        """The example, with what JAX gave."""
        bindings = " ".join(f"{n} {notation.literal(a)}" for n, a in zip(self.names, self.arrays, strict=True))
        return Example(self.name, f"(let [{bindings}] {self.call})", notation.expected(value), runs=self.runs)


def drawn(entry, what, operands, random, call, function, names=None, last_axis=False):
    """A question with operands of an entry."""
    name = f"{entry.name}, {what}"
    # A source of its own: who answers a question need not have answered those before it.
    [own] = random.spawn(1)
    return Question(name, call, function, operands, names or entry.names, entry.runs, last_axis, own)


# Shift of inputs, relative to themselves: a few units in the last place.
NUDGE = 3e-7

# Questions whose answers XLA compiles together, which takes half of the time.
TOGETHER = 24


def answers(group, tolerance=TOLERANCE, nudge=NUDGE):
    """Examples of a group of questions, with operands at which the comparison is fair."""
    for _ in range(16):
        for question in group:
            question.draw()
        functions = [q.function for q in group]
        compiled = jax.jit(lambda all, fs=functions: [f(*a) for f, a in zip(fs, all, strict=True)])
        arrays = [q.arrays for q in group]
        values = compiled(arrays)
        doubtful = unfair(compiled, arrays, values, group[0].random, tolerance, nudge)
        yield from (q.answered(v) for i, (q, v) in enumerate(zip(group, values, strict=True)) if i not in doubtful)
        group = [group[i] for i in doubtful]
        if not group:
            return
    for question in group:
        print(f"oracle: left out, since rounding decides it wherever it was tried: {question.name}: {question.call}")


def unfair(function, arguments, values, random, tolerance=TOLERANCE, by=NUDGE):
    """Which of several values are not the same, to a part of the tolerance, where inputs are moved by as much as
    rounding moves intermediate results. Another order of the same operations may give others of those, too, and a
    comparison would say nothing."""

    def nudge(a):
        a = np.asarray(a)
        if a.dtype.kind in "iub":
            return a
        return (a.astype("float64") * (1 + by * random.choice([-1, 1], a.shape))).astype(a.dtype)

    doubtful = []
    # Of 8,859 examples, two nudges let one pass whose two answers were each as far from that in f64 as from each other.
    moved = [function(jax.tree.map(nudge, arguments)) for _ in range(4)]
    for i, value in enumerate(values):
        if not all(near(a, b, tolerance) for m in moved for a, b in zip(jax.tree.leaves(value), jax.tree.leaves(m[i]), strict=True)):
            doubtful.append(i)
    return doubtful


def near(a, b, tolerance=TOLERANCE):
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind in "iub":
        return np.array_equal(a, b)
    a, b = a.astype("float64"), b.astype("float64")
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= 0.2 * (tolerance * np.abs(a) + 1e-6))
    return bool(same.all())
