"""The stage of scale: the same work at growing sizes; values as JAX's, the growth of its time, and the ratio to JAX."""

import json
import math
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import enlarged
import works
from sheaf import Example, Failure, Outcome

# Timed calls of one size, of which the quickest counts.
ROUNDS = 3

# A round lasts so long, in seconds, where the work allows it: the clock of a program counts milliseconds.
ROUND = 0.03
MOST_CALLS = 200

# An exponent of growth from which on, and a ratio to JAX from which on, a row is marked.
STEEP, SLOW = 1.35, 5.0

# Compared values: the sums of a thousand blocks of each result, or the elements of a small one.
HEADER = """
(use nn)
(use optim)
(defn blocks-of [r]
  (let [v (reshape (* 1.0 r) '[-1]) n (size v) m (// n 1000)]
    (if (<= n 4000) v
      (concat (sum (reshape (slice v 0 (* 1000 m)) (list 1000 m)) :axis 1) (slice v (* 1000 m) n)))))
(defn report [size result] (io "save" (str "blocks-" size ".json") (map blocks-of (flatten result))))
"""


def stage(sheaf, arguments, report):
    """Every work in its modes; prints the table, and writes it to a file where one is named."""
    table = []
    chosen = [w for w in [*works.WORKS, *enlarged.WORKS] if not arguments.only or arguments.only in w.name][:: arguments.part]
    for work in chosen:
        sizes = work.sizes[: arguments.sizes]
        expected = {size: measured(work, size, arguments.values) for size in sizes}
        for mode in (m for m in work.modes if m in arguments.modes):
            outcome, seconds = run(sheaf, work, sizes, mode, expected, arguments.values)
            report.add(f"scale, {work.name}", mode, [outcome])
            table.append(Row(work.name, mode, sizes, seconds, [expected[s][1] for s in sizes]))
        # Drawn flags say nothing of times.
        if "tuned" in arguments.modes and "compiled" in work.modes:
            outcome, _ = run(sheaf, work, sizes, "tuned", expected, True)
            report.add(f"scale, {work.name}", "tuned", [outcome])
    if not arguments.values:
        text = "\n".join([*HEADINGS, *(row.text() for row in table)])
        print(text, flush=True)
        if arguments.table:
            Path(arguments.table).write_text(text + "\n")


def measured(work, size, values_only):
    """What JAX gives, in blocks with the magnitudes in them, and the seconds of a call."""
    arguments = [a.jax(seed, size) for seed, a in enumerate(work.arguments)]
    function = lambda *a: work.function(size, *a)  # noqa: E731
    call = jax.jit(function) if work.jit else function
    result = jax.block_until_ready(call(*arguments))
    blocks = [blocks_of(np.asarray(leaf)) for leaf in jax.tree.leaves(result)]
    return blocks, 0.0 if values_only else seconds_of(lambda: jax.block_until_ready(call(*arguments)))


def blocks_of(leaf):
    """Sums of blocks and sums of their magnitudes, in f64."""
    v = np.asarray(leaf, "float64").reshape(-1)
    if v.size <= 4000:
        return v, np.abs(v)
    m = v.size // 1000
    whole, rest = v[: 1000 * m].reshape(1000, m), v[1000 * m :]
    return np.concatenate([whole.sum(1), rest]), np.concatenate([np.abs(whole).sum(1), np.abs(rest)])


def seconds_of(call):
    start = time.perf_counter()
    call()
    calls = calls_for(time.perf_counter() - start)
    best = math.inf
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def calls_for(seconds):
    return max(1, min(MOST_CALLS, int(ROUND / max(seconds, 1e-9))))


def program(work, size, calls):
    """The work at one size: its result in blocks, and the milliseconds of each round."""
    names = ("x", "y", "z", "w")[: len(work.arguments)]
    lines = [HEADER]
    lines += [f"(def {name} {a.sheaf(seed, size)})" for seed, (name, a) in enumerate(zip(names, work.arguments, strict=True))]
    if work.setup:
        # A setup may replace an argument, which a file defines only once.
        lines = [line.replace("(def x ", "(def drawn ") for line in lines] if work.setup.startswith("(def x ") else lines
        lines.append(work.setup.replace("(cast x ", "(cast drawn ").replace("N", str(size)))
    parameters = " ".join(names)
    lines.append(f"(defn work [{parameters}] {work.code(size)})")
    lines.append(f"(report {size} (work {parameters}))")
    if calls:
        timed = f"(let [start (io \"time\")] (repeat [i {calls}] [r 0] (do (work {parameters}) 0)) (print \"ms\" (- (io \"time\") start)))"
        lines += [timed] * ROUNDS
    return "\n".join(lines) + "\n"


def run(sheaf, work, sizes, mode, expected, values_only):
    """Runs all sizes of a work in one mode: what was wrong, and the seconds of a call at each size."""
    outcome, seconds = Outcome(), []
    for size in sizes:
        blocks, jax_seconds = expected[size]
        calls = 0 if values_only else calls_for(jax_seconds)
        path = sheaf.folder / "scale.shf"
        path.write_text(program(work, size, calls))
        saved = sheaf.folder / f"blocks-{size}.json"
        saved.unlink(missing_ok=True)
        ending, printed, said = sheaf.run([sheaf.program, "run", str(path), *sheaf.options(f"{work.name} of {size}", mode)], sheaf.folder)
        outcome.examples += 1
        outcome.compiled += int(mode in ("compiled", "tuned"))
        times = [float(line.split()[1]) for line in printed.splitlines() if line.startswith("ms ")]
        seconds.append(min(times) / 1e3 / calls if times and calls else math.nan)
        trouble = compare(saved, blocks, work) if saved.exists() else f"error: {ending}\n{said[-1500:]}"
        if trouble:
            outcome.failures.append(Failure(Example(f"{work.name} of {size}", work.code(size), ""), mode, trouble))
    return outcome, seconds


def compare(saved, blocks, work):
    """Differences of the saved blocks; none where all are near."""
    given = [np.asarray(leaf, "float64").reshape(-1) for leaf in json.loads(saved.read_text())]
    if [g.shape for g in given] != [sums.shape for sums, _ in blocks]:
        return f"error: leaves of {[g.shape for g in given]} blocks where JAX has {[s.shape for s, _ in blocks]}"
    for leaf, (g, (sums, magnitudes)) in enumerate(zip(given, blocks, strict=True)):
        if work.of_largest:
            magnitudes = np.nanmax(magnitudes, initial=0)
        with np.errstate(invalid="ignore"):
            near = (g == sums) | (np.abs(g - sums) <= work.tolerance * magnitudes + 1e-6) | (np.isnan(g) & np.isnan(sums))
        if not near.all():
            i = int(np.argmin(near))
            return f"error: leaf {leaf}, block {i}: {g[i]!r}, and {sums[i]!r} in JAX ({int((~near).sum())} of {near.size} differ)"
    return None


HEADINGS = (
    "| work | mode | sizes | Sheaf, ms | growth | JAX, ms | ratio | |",
    "|---|---|---|---|---|---|---|---|",
)


class Row:
    """A line of the table. Growth is the exponent of the size in the time between the last two sizes: 1 is linear."""

    def __init__(self, name, mode, sizes, seconds, peers):
        self.name, self.mode, self.sizes, self.seconds, self.peers = name, mode, sizes, seconds, peers

    def growth(self):
        if len(self.sizes) < 2:
            return math.nan
        (a, b), (s, t) = self.sizes[-2:], self.seconds[-2:]
        return math.log(t / s) / math.log(b / a) if s > 0 and t > 0 else math.nan

    def text(self):
        ratio = self.seconds[-1] / self.peers[-1] if self.peers[-1] > 0 else math.nan
        # Below a millisecond a call shows only what it costs to call.
        steep = self.growth() > STEEP and self.seconds[-1] > 1e-3
        marks = " ".join(["steep"] * steep + ["slow"] * (ratio > SLOW and self.seconds[-1] > 1e-3))
        ms = lambda values: ", ".join(f"{1e3 * v:.3g}" for v in values)  # noqa: E731
        sizes = ", ".join(f"{s:,}" for s in self.sizes)
        return f"| `{self.name}` | {self.mode} | {sizes} | {ms(self.seconds)} | {self.growth():.2f} | {ms(self.peers)} | {ratio:.2f} | {marks} |"
