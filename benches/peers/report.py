"""All comparisons with JAX and PyTorch, by turns; writes their table, with versions, and a plot of the ratios to docs/benchmarks.md.

    report.py --sheaf target/release/sheaf [--torch PYTHON] [--rounds 5] [--generation]     with a Python that has JAX (scripts/jax-python)
"""

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import generation
import linalg
import loops
import peers
import training

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "benchmarks.md"
MARKS = "<!-- written by benches/peers/report.py: begin -->", "<!-- written by benches/peers/report.py: end -->"

# Loops without those that show growth with the number of steps.
LOOPS = ["lstm", "xor", "recurrent", "ode", "bandit"]

# A program's start to its first result, compiled before.
IN_JAX = "import jax, jax.numpy as jnp; print(jax.jit(lambda x: jnp.sum(x * x))(jnp.ones(1000)))"
IN_TORCH = "import torch; x = torch.ones(1000); print((x * x).sum())"

# Runs a command, and prints the kilobytes of memory that it had at most: the parent is small, since its own memory counts.
MEMORY = "import os, sys; pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ); print(os.wait4(pid, 0)[2].ru_maxrss)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sheaf", type=Path, required=True)
    parser.add_argument("--torch", help="a Python with PyTorch; without one it is left out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--generation", action="store_true", help="also a model of 124 million parameters, some minutes")
    parser.set_defaults(device="cpu")
    options = parser.parse_args()
    options.torch = options.torch and str(Path(options.torch).absolute())
    groups = {}
    for group, rows in works(options):
        print(f"{group}\n{peers.HEAD}")
        for name, times in rows:
            print(peers.line(name, times), flush=True)
            groups.setdefault(group, []).append((name, times))
    draw(options.sheaf, groups)
    write("\n".join([about(options), *tables(groups), memory(options), "", "![ratios](benchmarks.svg)"]))


def works(options):
    """Groups of works, each with its rows."""
    yield "Tensors and networks, ms of a call", peers.measured(options, peers.WORKS)
    yield "Loops, ms of a call", loops.measured(options, LOOPS)
    yield "Linear algebra, ms of a call", linalg.measured(options)
    if options.generation:
        yield "GPT-2 of 124 million parameters, ms of 71 steps", [("generation", generation.measured(options))]
        yield "GPT-2 of 124 million parameters, ms of a step of training", [("1 x 64", training.measured(options))]
    yield "Programs, ms each", [("start to first result", start(options))]


def start(options):
    """The milliseconds of a process that gives one result, by turns."""
    commands = first_results(options)
    found = {name: [] for name in ("sheaf", "jax", "torch")}
    for _ in range(options.rounds):
        for name, command in commands.items():
            begin = time.perf_counter()
            subprocess.run(command, cwd=HERE, check=True, capture_output=True)
            found[name].append((time.perf_counter() - begin) * 1e3)
    return found


def first_results(options):
    """Commands that give one result; Sheaf's program is compiled already."""
    commands = {"sheaf": [options.sheaf.absolute(), "run", "--jit", "always", "first.shf"], "jax": [sys.executable, "-c", IN_JAX]}
    if options.torch:
        commands["torch"] = [options.torch, "-c", IN_TORCH]
    subprocess.run(commands["sheaf"], cwd=HERE, check=True, capture_output=True)
    return commands


def tables(groups):
    for group, rows in groups.items():
        lines = [peers.HEAD.replace(", ms", "").replace("work", group, 1)]
        yield "\n".join([*lines, *(peers.line(name, times) for name, times in rows), ""])


def memory(options):
    names = {"sheaf": "Sheaf", "jax": "JAX", "torch": "PyTorch"}
    found = []
    for name, command in first_results(options).items():
        command = [sys.executable, "-c", MEMORY, *command]
        lines = subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True).stdout.splitlines()
        found.append(f"{names[name]} {int(lines[-1]) / 1024:.0f} MiB")
    return f"Memory of a process that gives one result: {', '.join(found)}."


def about(options):
    """The machine and the versions."""
    versions = [first_line([options.sheaf, "--version"]), f"JAX {first_line([sys.executable, '-c', 'import jax; print(jax.__version__)'])}"]
    if options.torch:
        versions.append(f"PyTorch {first_line([options.torch, '-c', 'import torch; print(torch.__version__)'])}")
    cpu = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    return (
        f"{datetime.date.today()}, {len(os.sched_getaffinity(0))} cores of {cpu or platform.machine()}; {', '.join(versions)}.\n"
        f"Medians of {options.rounds} rounds, by turns, each in a process of its own; ratios to the better of the others. `make benchmarks`\n"
        "measures again.\n"
    )


def first_line(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0]


def draw(sheaf, groups):
    """A picture of the ratios, with Sheaf's own `plot`: the works from the quickest to the slowest in each group."""
    series = {group.split(",")[0]: sorted(peers.ratio(times) for _, times in rows) for group, rows in groups.items() if len(rows) > 1}
    data = " ".join(f'"{name}" [{" ".join(f"{ratio:.4f}" for ratio in ratios)}]' for name, ratios in series.items())
    picture = PAGE.with_name("benchmarks.svg")
    title = "Time of Sheaf over that of the better of JAX and PyTorch"
    text = f'(plot "{picture.name}" {{{data}}} :kind :points :log-y :title "{title}" :x-label "works" :y-label "ratio")\n'
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "ratios.shf"
        program.write_text(text)
        subprocess.run([sheaf.absolute(), "run", program.name], cwd=folder, check=True)
        picture.write_bytes((Path(folder) / picture.name).read_bytes())


def write(text):
    page = PAGE.read_text()
    before, rest = page.split(MARKS[0])
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}")


if __name__ == "__main__":
    main()
