"""Work of several kinds and sizes on one core, on two, and as Sheaf chooses, by turns, each in a process of its own; medians of the
milliseconds of a call.

    placement.py --sheaf target/release/sheaf [--rounds 5] [--works add product ...]
"""

import argparse
import re
import statistics
import subprocess
from pathlib import Path

from peers import HERE, milliseconds, shown

DATA = "(def x (random-normal (random-key 0) '[{n} {n}])) (def y (random-normal (random-key 1) '[{n} {n}]))"
ROWS = "(def x (random-normal (random-key 0) '[{n}]))"

# The work: its sizes, its data, the function, and the first state.
WORKS = {
    "add": ([512, 768, 1024, 1448, 2048], DATA, "(defn work [s] (+ s y))", "x"),
    "tanh": ([256, 512, 1024, 1448, 2048], DATA, "(defn work [s] (tanh s))", "x"),
    "sums": ([512, 768, 1024, 1448, 2048], DATA, "(defn sums [x] (list (sum x :axis 0) (sum x)))\n(defn work [_] (sums x))", "(sums x)"),
    "softmax": ([256, 512, 768, 1024, 2048], DATA, "(defn work [s] (softmax s))", "x"),
    "product": ([96, 128, 192, 256, 384], DATA, "(defn work [s] (@ s y))", "x"),
    "vector by matrix": (
        [512, 1024, 1448, 2048, 4096],
        ROWS + "(def y (random-normal (random-key 1) '[{n} {n}]))",
        "(defn work [s] (@ s y))",
        "x",
    ),
    "adam": (
        [65536, 131072, 262144, 524288, 1048576],
        ROWS,
        "(defn work [[p m v t]] (adam-step p x m v t 0.001))",
        "(list x (zeros '[{n}]) (zeros '[{n}]) 0)",
    ),
    "gelu, gradient": ([65536, 131072, 262144, 524288, 1048576], ROWS, "(defn work [s] ((grad (fn [s] (sum (gelu s)))) s))", "x"),
}

HEAD = "| work | size | operations | one core, ms | two cores, ms | chosen, ms |\n|---|---|---|---|---|---|"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sheaf", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--works", nargs="+", choices=list(WORKS), default=list(WORKS))
    options = parser.parse_args()
    print(HEAD)
    for work in options.works:
        sizes, *texts = WORKS[work]
        for size in sizes:
            data, function, state = (text.replace("{n}", str(size)) for text in texts)
            code = f"(use ./timed.shf) {data} {function} (timed work {state})"
            run = [options.sheaf.absolute(), "run", "--jit", "always", "-c", code]
            calls = max(20, min(5000, int(500 / milliseconds([*run, "--", "100"]))))
            times = {"local-sync": [], "local-task:2": [], "auto": []}
            for _ in range(options.rounds):
                for place, found in times.items():
                    found.append(milliseconds([*run, "--place", place, "--", str(calls)]))
            medians = " | ".join(shown(statistics.median(t)) for t in times.values())
            print(f"| {work} | {size} | {operations(run)} | {medians} |", flush=True)


def operations(run):
    """The estimate of a call, as `--explain` says it."""
    said = subprocess.run([*run, "--explain", "--", "1"], cwd=HERE, capture_output=True, text=True).stderr
    return re.search(r"^(?:work|sums),.*?a call is about ([\d,]+) operations", said, re.S | re.M).group(1)


if __name__ == "__main__":
    main()
