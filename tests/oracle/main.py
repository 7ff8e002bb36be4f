"""The oracle suite: what Sheaf computes, against JAX (see CONTRIBUTING.md)."""

import argparse
import functools
import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"

import cases
import dtypes
import operations
import samplers
import scale
import share
from programs import compare
from programs.shrink import shrink
from sheaf import MODES, TOLERANCE, Example, Failure, Sheaf

# A run repeats the one before, unless it is told otherwise.
SEED = 20260101

# Number of files checked at a time, and of processes of JAX.
PROCESSES = 2

# Examples of one file; sheaf makes a program of every 24.
FILE = 48


def main():
    arguments = options()
    started = time.monotonic()
    share.keep(arguments.cache)
    print(f"oracle: seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="sheaf-oracle-") as folder:
        folder = Path(arguments.keep or folder)
        folder.mkdir(parents=True, exist_ok=True)
        sheaf = Sheaf(arguments.sheaf, folder, seed=arguments.seed)
        report = Report()
        for stage in arguments.stages:
            STAGES[stage](sheaf, arguments, report)
        print(f"oracle: {time.monotonic() - started:.0f} s")
        sys.exit(report.end())


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sheaf", required=True, help="the program under test")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--stages", nargs="+", choices=list(STAGES), default=list(STAGES))
    parser.add_argument("--programs", type=int, default=500, help="how many random programs")
    parser.add_argument("--part", type=int, default=1, help="take one of so many builtins' examples")
    parser.add_argument("--modes", nargs="+", default=list(MODES))
    parser.add_argument("--only", help="builtins with this in their name")
    parser.add_argument("--cache", help="a folder for what XLA compiled")
    parser.add_argument("--sizes", type=int, default=3, help="in the stage of scale: no more than so many sizes of each work")
    parser.add_argument("--values", action="store_true", help="in the stage of scale: values alone, no times")
    parser.add_argument("--table", help="in the stage of scale: a file for the table")
    parser.add_argument("--keep", help="a folder for the files of examples")
    return parser.parse_args()


class Report:
    """Comparisons and differences so far."""

    def __init__(self):
        self.failures = []

    def add(self, what, mode, outcomes):
        count = sum(o.examples for o in outcomes)
        wrong = [f for o in outcomes for f in o.failures]
        text = f"oracle: {what}, {mode}: {count} examples, {len(wrong)} differ"
        if mode in ("compiled", "tuned"):
            text += f"; {sum(o.compiled for o in outcomes)} ran as programs"
            text += f", {sum(o.known for o in outcomes)} needed none"
        print(text, flush=True)
        # A line at once for each failure, shown in full at the end: a run takes a while.
        for failure in wrong:
            print(f"  {failure.example.name}: {failure.message.splitlines()[0]}", flush=True)
        self.failures += wrong

    def end(self):
        for failure in self.failures[:20]:
            print(f"\n{failure.mode}: {failure.example.name}\n  {failure.example.code}\n  ;=> {failure.example.value}\n{failure.message}")
        if len(self.failures) > 20:
            print(f"\nand {len(self.failures) - 20} more:")
            for failure in self.failures[20:]:
                print(f"  {failure.mode}: {failure.example.name}: {failure.message.splitlines()[0]}")
        return 1 if self.failures else 0


def run(sheaf, what, header, examples, modes, report, tolerance=TOLERANCE):
    """Checks examples in files."""
    parts = [examples[i : i + FILE] for i in range(0, len(examples), FILE)]
    for mode in modes:
        with ThreadPoolExecutor(PROCESSES) as pool:
            jobs = [pool.submit(sheaf.check, f"{what}-{i}", header, part, mode, tolerance) for i, part in enumerate(parts)]
            report.add(what, mode, [job.result() for job in jobs])


def processes(cache, dtype=None):
    """Processes in which JAX works: tracing holds Python's lock, and a process that runs XLA cannot be forked."""
    return ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"), share.prepare, (cache, dtype))


def builtins(sheaf, arguments, report):
    """Every builtin with a meaning in JAX."""
    which = (arguments.seed, arguments.only, arguments.part, None)
    answers = functools.partial(share.answers, *which)
    with processes(arguments.cache) as pool:
        examples = [e for found in pool.map(answers, range(len(share.groups(*which)))) for e in found]
    count = len({e.name for e in share.entries(arguments.only)})
    print(f"oracle: {count} builtins, {len(examples)} examples", flush=True)
    run(sheaf, "builtins", cases.HEADER, examples, arguments.modes, report)


def others(sheaf, arguments, report):
    """The table again in other dtypes."""
    for dtype, (_, tolerance, _) in dtypes.DTYPES.items():
        which = (arguments.seed, arguments.only, arguments.part, dtype)
        answers = functools.partial(share.answers, *which)
        with processes(arguments.cache, dtype) as pool:
            examples = [e for found in pool.map(answers, range(len(share.groups(*which)))) for e in found]
        count = len({e.name for e in share.entries(arguments.only, dtype)})
        print(f"oracle: {count} builtins in {dtype}, {len(examples)} examples", flush=True)
        run(sheaf, f"builtins-{dtype}", cases.HEADER, examples, arguments.modes, report, tolerance)


def draws(sheaf, arguments, report):
    """Every sampler, 100,000 times."""
    examples = list(samplers.examples(arguments.seed))
    run(sheaf, "samplers", samplers.HEADER, examples, arguments.modes, report)


def programs(sheaf, arguments, report):
    """Random programs, of which the first that differs is made small."""
    draw = functools.partial(compare.draw, arguments.seed)
    # The next seed has other programs: what XLA made of these is not kept.
    pool = processes(cache=None)
    made_small = False
    # Not all at once: a nightly run has more of them than memory should hold.
    for start in range(0, arguments.programs, BLOCK):
        examples, drawn = [], 0
        for example, attempts in pool.map(draw, range(start, min(start + BLOCK, arguments.programs)), chunksize=10):
            examples.append(example)
            drawn += attempts
        what = f"programs {start} to {start + len(examples) - 1}"
        print(f"oracle: {what}: {drawn} were drawn for {len(examples)}", flush=True)
        before = len(report.failures)
        run(sheaf, f"programs-{start}", "", examples, arguments.modes, report)
        # A file that was not checked says nothing of its programs.
        failure = next((f for f in report.failures[before:] if f.example.origin), None)
        if failure and not made_small:
            made_small = True
            small = shrink(failure, compare.attempt, lambda found: sheaf.check("shrinking", "", found, failure.mode).failures)
            body, _ = small.example.origin
            small.example.name = f"{failure.example.name}, made small; in JAX {compare.python(body)}"
            report.failures.insert(0, small)
    pool.shutdown()


def sizes(_, __, report):
    """The operations of two training steps."""
    for name, sheaf, jax in operations.counts():
        print(f"oracle: operations of {name}: {sheaf}, {jax} in JAX", flush=True)
        if sheaf > jax:
            report.failures.append(Failure(Example(name, "", ""), "operations", f"error: {sheaf} operations, {jax} in JAX"))


STAGES = {
    "operations": sizes, "builtins": builtins, "dtypes": others, "samplers": draws, "programs": programs, "scale": scale.stage,
}
BLOCK = 96

# The processes that draw programs import this file, too.
if __name__ == "__main__":
    main()
