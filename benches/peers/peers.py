"""The same work in Sheaf, JAX and PyTorch, by turns, each in a process of its own; medians of the milliseconds of a call.

    peers.py --sheaf target/release/sheaf [--torch PYTHON] [--rounds 5] [--device cuda]     with a Python that has JAX (scripts/jax-python)

All compute with f32 throughout, also on GPUs, whose libraries would round products to tf32.
"""

import argparse
import importlib
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent

# The work, and how many calls are timed in a round.
WORKS = {
    "product": 60, "mlp": 400, "cnn": 60, "convolution": 20, "attention": 10, "entropy": 40, "embedding": 200, "sums": 200, "sort": 20,
    "top_k": 20, "elementwise": 100,
}

HEAD = "| work | Sheaf, ms | JAX, ms | PyTorch, ms | ratio to the better |\n|---|---|---|---|---|"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sheaf", type=Path)
    parser.add_argument("--torch", help="a Python with PyTorch; without one it is left out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--works", nargs="+", choices=list(WORKS), default=list(WORKS))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    choose(options.device)
    if options.peer:
        return peer(options.peer[0], options.device, options.peer[1])
    print(HEAD)
    for work, times in measured(options, options.works):
        print(line(work, times), flush=True)


def choose(device):
    """Puts the work of this process in JAX, and of those that it starts, on a device."""
    os.environ["JAX_PLATFORMS"] = device
    os.environ["JAX_DEFAULT_MATMUL_PRECISION"] = "highest"


def in_torch(device):
    """PyTorch, for work on a device: with all cores of the processor."""
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.set_default_device(device)
    return torch


def measured(options, works):
    """Each work with the milliseconds of its rounds."""
    for work in works:
        times = {"sheaf": [], "jax": [], "torch": []}
        for _ in range(options.rounds):
            sheaf = [options.sheaf.absolute(), "run", "--jit", "always", "--device", options.device, f"{work}.shf", "--", str(WORKS[work])]
            times["sheaf"].append(milliseconds(sheaf))
            times["jax"].append(milliseconds([sys.executable, "peers.py", "--device", options.device, "--peer", "jax", work]))
            if options.torch:
                times["torch"].append(milliseconds([options.torch, "peers.py", "--device", options.device, "--peer", "torch", work]))
        yield work, times


def line(work, times):
    """A line of the table: medians, and Sheaf's as a multiple of the better of the others."""
    cells = [shown(statistics.median(t)) if t else "" for t in times.values()]
    return f"| {work} | {' | '.join(cells)} | {ratio(times):.2f} |"


def shown(number):
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def ratio(times):
    """Sheaf's median as a multiple of the better of the others'."""
    medians = {name: statistics.median(t) for name, t in times.items() if t}
    return medians.pop("sheaf") / min(medians.values())


def milliseconds(command):
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("ms ")]
    if done.returncode or not lines:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return float(lines[-1].split()[1])


def peer(name, device, work):
    torch = in_torch(device) if name == "torch" else None
    step, state = getattr(importlib.import_module(f"{name}_works"), work)()
    print("ms", timed(step, state, WORKS[work], torch))


def timed(step, state, calls, torch=None):
    """The milliseconds of a step, whose result is the next one's argument: after twelve others, and done when the clock is read."""
    for count in (12, calls):
        start = time.perf_counter()
        for _ in range(count):
            state = step(state)
        # Calls return before they are done.
        if torch is None:
            sys.modules["jax"].block_until_ready(state)
        elif torch.get_default_device().type == "cuda":
            torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls * 1e3


if __name__ == "__main__":
    main()
