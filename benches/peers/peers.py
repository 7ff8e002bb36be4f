"""The same work in Sheaf, JAX and PyTorch, by turns, each in a process of its own; medians of the milliseconds of a call.

    peers.py --sheaf target/release/sheaf [--torch PYTHON] [--rounds 5]     with a Python that has JAX (scripts/jax-python)
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent

# The work, and how many calls are timed in a round.
WORKS = {"product": 60, "mlp": 400, "cnn": 60, "convolution": 20}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sheaf", type=Path)
    parser.add_argument("--torch", help="a Python with PyTorch; without one it is left out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--works", nargs="+", choices=list(WORKS), default=list(WORKS))
    parser.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return peer(*options.peer)
    print("| work | Sheaf, ms | JAX, ms | PyTorch, ms | ratio to the better |\n|---|---|---|---|---|")
    for work in options.works:
        times = {"sheaf": [], "jax": [], "torch": []}
        for _ in range(options.rounds):
            sheaf = [options.sheaf.absolute(), "run", f"{work}.shf", "--", str(WORKS[work])]
            times["sheaf"].append(milliseconds(sheaf))
            times["jax"].append(milliseconds([sys.executable, "peers.py", "--peer", "jax", work]))
            if options.torch:
                times["torch"].append(milliseconds([options.torch, "peers.py", "--peer", "torch", work]))
        print(line(work, times), flush=True)


def line(work, times):
    """A line of the table: medians, and Sheaf's as a multiple of the better of the others."""
    medians = {name: statistics.median(t) for name, t in times.items() if t}
    better = min(ms for name, ms in medians.items() if name != "sheaf")
    shown = [f"{medians[name]:.3g}" if name in medians else "" for name in times]
    return f"| {work} | {' | '.join(shown)} | {medians['sheaf'] / better:.2f} |"


def milliseconds(command):
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("ms ")]
    if done.returncode or not lines:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return float(lines[-1].split()[1])


def peer(name, work):
    step, state = {"jax": in_jax, "torch": in_torch}[name](work)
    for _ in range(12):
        state = step(state)
    start = time.perf_counter()
    for _ in range(WORKS[work]):
        state = step(state)
    if name == "jax":
        # Calls return before they are done.
        sys.modules["jax"].block_until_ready(state)
    print("ms", (time.perf_counter() - start) / WORKS[work] * 1e3)


def in_jax(work):
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    from jax import lax

    normal = lambda seed, *shape: jax.random.normal(jax.random.key(seed), shape)  # noqa: E731
    classes = lambda n: jax.random.randint(jax.random.key(3), (n,), 0, 10)  # noqa: E731

    def cross_entropy(logits, y):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1))

    def conv(x, k):
        return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def descent(loss, *data):
        step = jax.jit(lambda p: jax.tree.map(lambda v, d: v - 0.1 * d, p, jax.grad(loss)(p, *data)))
        return step

    if work == "product":
        a, b = normal(0, 1024, 1024), normal(1, 1024, 1024)
        product = jax.jit(lambda x: x @ b)
        return lambda _: product(a), a
    if work == "mlp":
        p = {"W1": 0.05 * normal(0, 784, 256), "b1": jnp.zeros(256), "W2": 0.05 * normal(1, 256, 10), "b2": jnp.zeros(10)}
        loss = lambda p, x, y: cross_entropy(jax.nn.relu(x @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"], y)  # noqa: E731
        return descent(loss, normal(2, 128, 784), classes(128)), p
    if work == "cnn":
        p = {"k1": 0.1 * normal(0, 3, 3, 1, 16), "k2": 0.1 * normal(1, 3, 3, 16, 32), "W": 0.05 * normal(4, 1568, 10), "b": jnp.zeros(10)}

        def loss(p, x, y):
            h = pool(jax.nn.relu(conv(x, p["k1"])))
            h = pool(jax.nn.relu(conv(h, p["k2"])))
            return cross_entropy(h.reshape(32, -1) @ p["W"] + p["b"], y)

        return descent(loss, normal(2, 32, 28, 28, 1), classes(32)), p
    loss = lambda k, x: jnp.mean(jnp.square(conv(x, k)))  # noqa: E731
    return descent(loss, normal(1, 8, 32, 32, 64)), 0.05 * normal(0, 3, 3, 64, 64)


def in_torch(work):
    import torch
    from torch.nn import functional as F

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    normal = torch.randn

    def descent(loss, *data):
        def step(p):
            p = [v.detach().requires_grad_() for v in p]
            gradients = torch.autograd.grad(loss(p, *data), p)
            with torch.no_grad():
                return [v - 0.1 * g for v, g in zip(p, gradients, strict=True)]

        return step

    if work == "product":
        a, b = normal(1024, 1024), normal(1024, 1024)
        return lambda _: a @ b, a
    if work == "mlp":
        loss = lambda p, x, y: F.cross_entropy(F.relu(x @ p[0] + p[1]) @ p[2] + p[3], y)  # noqa: E731
        p = [0.05 * normal(784, 256), torch.zeros(256), 0.05 * normal(256, 10), torch.zeros(10)]
        return descent(loss, normal(128, 784), torch.randint(0, 10, (128,))), p
    if work == "cnn":

        def loss(p, x, y):
            h = F.max_pool2d(F.relu(F.conv2d(x, p[0], padding=1)), 2)
            h = F.max_pool2d(F.relu(F.conv2d(h, p[1], padding=1)), 2)
            return F.cross_entropy(h.flatten(1) @ p[2] + p[3], y)

        p = [0.1 * normal(16, 1, 3, 3), 0.1 * normal(32, 16, 3, 3), 0.05 * normal(1568, 10), torch.zeros(10)]
        return descent(loss, normal(32, 1, 28, 28), torch.randint(0, 10, (32,))), p
    loss = lambda p, x: F.conv2d(x, p[0], padding=1).square().mean()  # noqa: E731
    return descent(loss, normal(8, 64, 32, 32)), [0.05 * normal(64, 64, 3, 3)]


if __name__ == "__main__":
    main()
