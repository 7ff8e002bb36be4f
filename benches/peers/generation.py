"""Generation by a GPT-2 of 124 million parameters in Sheaf and in JAX, by turns, each in a process of its own; medians of the
milliseconds of 64 tokens after 8, with a cache of keys and values, the likeliest each time.

    generation.py --sheaf target/release/sheaf [--rounds 5] [--device cuda]     with a Python that has JAX (scripts/jax-python)
"""

import argparse
import sys
import time
from pathlib import Path

from peers import HEAD, choose, line, milliseconds

LAYERS, HEADS, WIDTH, VOCABULARY, POSITIONS = 12, 12, 768, 50257, 1024

# Tokens of a call, and calls of a round.
COUNT, CALLS = 64, 4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sheaf", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    choose(options.device)
    if options.peer:
        return in_jax()
    print(HEAD)
    print(line("generation", measured(options)))


def measured(options):
    """The milliseconds of each round."""
    times = {"sheaf": [], "jax": [], "torch": []}
    for _ in range(options.rounds):
        times["sheaf"].append(milliseconds([options.sheaf.absolute(), "run", "--device", options.device, "generation.shf", "--", str(CALLS)]))
        times["jax"].append(milliseconds([sys.executable, "generation.py", "--device", options.device, "--peer"]))
    return times


def in_jax():
    import jax
    import jax.numpy as jnp
    from jax import lax

    def dense(seed, *shape):
        return {"W": 0.02 * jax.random.normal(jax.random.key(seed), shape), "b": jnp.zeros(shape[1])}

    def layer(i):
        sizes = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "fc": (WIDTH, 4 * WIDTH), "proj": (4 * WIDTH, WIDTH)}
        return {"ln1": unit, "ln2": unit, **{name: dense(4 * i + j, *size) for j, (name, size) in enumerate(sizes.items())}}

    unit = {"g": jnp.ones(WIDTH), "b": jnp.zeros(WIDTH)}
    wte, wpe = dense(1000, VOCABULARY, WIDTH)["W"], dense(1001, POSITIONS, WIDTH)["W"]
    p = {"wte": wte, "wpe": wpe, "ln": unit, "layers": [layer(i) for i in range(LAYERS)]}

    def norm(x, p):
        x = x - x.mean(-1, keepdims=True)
        return p["g"] * x / jnp.sqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5) + p["b"]

    def linear(x, p):
        return x @ p["W"] + p["b"]

    def attend(x, p, cache, t):
        q, k, v = (y.reshape(-1, HEADS, WIDTH // HEADS) for y in jnp.split(linear(x, p["qkv"]), 3, -1))
        keys, values = cache[0].at[t].set(k), cache[1].at[t].set(v)
        scores = jnp.einsum("bhd,tbhd->bht", q, keys) / (WIDTH // HEADS) ** 0.5
        weights = jax.nn.softmax(jnp.where(jnp.arange(keys.shape[0]) <= t, scores, -2e38))
        return linear(jnp.einsum("bht,tbhd->bhd", weights, values).reshape(x.shape), p["out"]), (keys, values)

    def logits(p, caches, ids, t):
        h, after = p["wte"][ids] + p["wpe"][t], []
        for layer, cache in zip(p["layers"], caches, strict=True):
            out, cache = attend(norm(h, layer["ln1"]), layer, cache, t)
            after.append(cache)
            h = h + out
            h = h + linear(jax.nn.gelu(linear(norm(h, layer["ln2"]), layer["fc"])), layer["proj"])
        return norm(h, p["ln"]) @ p["wte"].T, after

    @jax.jit
    def generate(p, prompt):
        total = prompt.shape[0] + COUNT
        given = jnp.concatenate([prompt, jnp.zeros(COUNT, prompt.dtype)])
        zero = jnp.zeros((total, 1, HEADS, WIDTH // HEADS))

        def step(state, xs):
            (row, caches), (t, given) = state, xs
            found, caches = logits(p, caches, row, t)
            row = jnp.where(t + 1 >= prompt.shape[0], found.argmax(-1), given[None])
            return (row, caches), row

        start = (given[:1], [(zero, zero)] * LAYERS)
        _, rows = lax.scan(step, start, (jnp.arange(total - 1), given[1:]))
        return rows[-8:, 0]

    ids = jax.block_until_ready(generate(p, jnp.arange(8)))
    start = time.perf_counter()
    for _ in range(CALLS):
        ids = generate(p, ids)
    jax.block_until_ready(ids)
    print("ms", (time.perf_counter() - start) / CALLS * 1e3)


if __name__ == "__main__":
    main()
