"""Loops in Sheaf, in JAX and, the LSTM, in PyTorch, by turns, each in a process of its own; medians of the milliseconds of a call.

    loops.py --sheaf target/release/sheaf [--torch PYTHON] [--rounds 5] [--works scan lstm ...]     with a Python that has JAX
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

from peers import HEAD, in_torch, line, milliseconds

# The work: its program, its second argument, and how many calls are timed in a round.
LENGTHS = [100, 200, 400, 800, 1600, 3200, 6400]
WORKS = {
    **{f"scan {n}": ("scan", n, max(8, 6400 // n)) for n in LENGTHS},
    **{f"scan gradient {n}": ("scan_gradient", n, max(8, 3200 // n)) for n in LENGTHS},
    "lstm": ("lstm", 0, 40),
    "xor loop": ("xor", 0, 200),
    "xor call": ("xor", 1, 10_000),
    "recurrent": ("recurrent", 16, 200),
    "ode": ("ode", 0, 200),
    "bandit": ("bandit", 0, 200),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sheaf", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--works", nargs="+", default=list(WORKS), help="all whose names begin so")
    parser.add_argument("--torch", help="a Python with PyTorch; without one it is left out")
    parser.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--crossover", action="store_true", help="loops as kernels, and as blocks, by their size")
    options = parser.parse_args()
    if options.peer:
        return peer(*options.peer)
    if options.crossover:
        return crossover(options)
    print(HEAD)
    for work, times in measured(options, options.works):
        print(line(work, times), flush=True)


def measured(options, works):
    """Each work whose name begins as one of these, with the milliseconds of its rounds."""
    for work, (program, argument, calls) in WORKS.items():
        if not any(work.startswith(start) for start in works):
            continue
        times = {"sheaf": [], "jax": [], "torch": []}
        for _ in range(options.rounds):
            sheaf = [options.sheaf.absolute(), "run", "--jit", "always", f"{program}.shf", "--", str(calls), str(argument)]
            times["sheaf"].append(milliseconds(sheaf))
            times["jax"].append(milliseconds([sys.executable, "loops.py", "--peer", "jax", work]))
            if options.torch and work == "lstm":
                times["torch"].append(milliseconds([options.torch, "loops.py", "--peer", "torch", work]))
        yield work, times


def crossover(options):
    print("| step | as kernels, ms | as blocks, ms | chosen, ms |\n|---|---|---|---|")
    for program, sizes in {"chain": (64, 256, 1024, 4096, 16384), "recurrent": (8, 16, 32, 64, 128, 256)}.items():
        for size in sizes:
            times = {"always": [], "never": [], "auto": []}
            for _ in range(options.rounds):
                for way, found in times.items():
                    command = ["run", "--jit", "always", "--place", "local-sync", "--kernels", way, f"{program}.shf"]
                    found.append(milliseconds([options.sheaf.absolute(), *command, "--", "40", str(size)]))
            print(f"| {program} {size} | {' | '.join(f'{statistics.median(t):.3g}' for t in times.values())} |", flush=True)


def peer(name, work):
    step, state = in_jax(work) if name == "jax" else lstm_in_torch()
    # Calls of JAX return before they are done.
    wait = sys.modules["jax"].block_until_ready if name == "jax" else lambda state: state
    calls = WORKS[work][2]
    for _ in range(12):
        state = step(state)
    wait(state)
    start = time.perf_counter()
    for _ in range(calls):
        state = step(state)
    wait(state)
    print("ms", (time.perf_counter() - start) / calls * 1e3)


def lstm_in_torch():
    torch = in_torch("cpu")
    lstm, xs = torch.nn.LSTM(64, 128), torch.randn(50, 32, 64)

    def step(_):
        lstm.zero_grad()
        lstm(xs)[0].square().mean().backward()
        with torch.no_grad():
            for p in lstm.parameters():
                p -= 0.1 * p.grad

    return step, None


def in_jax(work):
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    from jax import lax

    program, argument, _ = WORKS[work]
    normal = lambda seed, *shape: jax.random.normal(jax.random.key(seed), shape)  # noqa: E731

    def descend(loss, rate, *data):
        return lambda p: jax.tree.map(lambda v, d: v - rate * d, p, jax.grad(loss)(p, *data))

    def recurrence(h, xs):
        def body(h, x):
            h = jnp.tanh(0.9 * h + x)
            return h, h

        return lax.scan(body, h, xs)

    if program == "scan":
        xs = normal(0, argument, 32, 128)
        work = jax.jit(recurrence)
        return lambda state: work(state[0], xs), (jnp.zeros((32, 128)), 0)
    if program == "scan_gradient":
        start = {"h": jnp.zeros((32, 128)), "xs": normal(0, argument, 32, 128)}
        work = jax.jit(jax.grad(lambda p: jnp.sum(recurrence(p["h"], p["xs"])[1] ** 2)))
        return lambda _: work(start), start
    if program == "lstm":

        def cell(p, state, x):
            h, c = state
            i, f, g, o = jnp.split(x @ p["Wx"] + h @ p["Wh"] + p["b"], 4, 1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        def loss(p, xs):
            zero = jnp.zeros((32, 128))
            return jnp.mean(lax.scan(lambda s, x: cell(p, s, x), (zero, zero), xs)[1] ** 2)

        p = {"Wx": 0.1 * normal(1, 64, 512), "Wh": 0.1 * normal(2, 128, 512), "b": jnp.zeros(512)}
        return jax.jit(descend(loss, 0.1, normal(0, 50, 32, 64))), p
    if program == "xor":
        x = jnp.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
        y = jnp.array([[0.0], [1], [1], [0]])

        def loss(p):
            h = jnp.tanh(x @ p["W1"] + p["b1"])
            return jnp.mean((jax.nn.sigmoid(h @ p["W2"] + p["b2"]) - y) ** 2)

        p = {"W1": normal(0, 2, 8), "b1": jnp.zeros(8), "W2": normal(1, 8, 1), "b2": jnp.zeros(1)}
        step = descend(loss, 0.5)
        if argument == 0:
            return jax.jit(lambda p: lax.fori_loop(0, 500, lambda i, p: step(p), p)), p
        return jax.jit(step), p
    if program == "recurrent":

        def loss(p, xs):
            def body(h, x):
                h = jnp.tanh(x @ p["W"] + h @ p["U"] + p["b"])
                return h, h

            return jnp.mean(lax.scan(body, jnp.zeros(16), xs)[1] ** 2)

        p = {"W": 0.3 * normal(1, 8, 16), "U": 0.3 * normal(2, 16, 16), "b": jnp.zeros(16)}
        return jax.jit(descend(loss, 0.1, normal(0, 100, 8))), p
    if program == "ode":

        def slope(y):
            a, b = y
            return jnp.stack([b, 5.0 * (1 - a * a) * b - a])

        def body(state):
            y, t = state
            h = 0.01
            k1 = slope(y)
            k2 = slope(y + 0.5 * h * k1)
            k3 = slope(y + 0.5 * h * k2)
            k4 = slope(y + h * k3)
            return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), t + h

        return jax.jit(lambda y: lax.while_loop(lambda s: s[1] < 20.0, body, (y, 0.0))[0]), jnp.array([2.0, 0.0])

    def pull(means, i, state):
        q, n, total = state
        k = jax.random.fold_in(jax.random.key(1), i)
        explore = jax.random.uniform(jax.random.fold_in(k, 1)) < 0.1
        arm = jnp.where(explore, jax.random.randint(jax.random.fold_in(k, 2), (), 0, 10), jnp.argmax(q))
        hit = jax.nn.one_hot(arm, 10)
        reward = jnp.sum(hit * means) + jax.random.normal(jax.random.fold_in(k, 3))
        n = n + hit
        return q + hit * (reward - q) / jnp.maximum(n, 1.0), n, total + reward

    start = (jnp.zeros(10), jnp.zeros(10), 0.0)
    work = jax.jit(lambda means: lax.fori_loop(0, 1000, lambda i, s: pull(means, i, s), start))
    means = normal(0, 10)
    return lambda _: work(means), 0


if __name__ == "__main__":
    main()
