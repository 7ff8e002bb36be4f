"""A step of training of a GPT-2 of 124 million parameters, gradient and Adam, in Sheaf, JAX and PyTorch by turns, each in a process
of its own; medians of its milliseconds.

    training.py --sheaf target/release/sheaf [--torch PYTHON] [--rounds 5] [--device cuda] [--batch 1] [--time 64]
"""

import argparse
import sys
from pathlib import Path

from generation import HEADS, LAYERS, POSITIONS, VOCABULARY, WIDTH
from peers import HEAD, choose, in_torch, line, milliseconds, timed

RATE = 1e-4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sheaf", type=Path)
    parser.add_argument("--torch", help="a Python with PyTorch; without one it is left out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=10, help="steps of a round, after twelve")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--time", type=int, default=64)
    parser.add_argument("--peer", choices=["jax", "torch"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    choose(options.device)
    if options.peer:
        return print("ms", {"jax": with_jax, "torch": with_torch}[options.peer](options))
    print(HEAD)
    print(line(f"training, {options.batch} x {options.time}", measured(options, options.batch, options.time, options.calls)))


def measured(options, batch=1, length=64, calls=10):
    """The milliseconds of each round."""
    sheaf = [options.sheaf.absolute(), "run", "--jit", "always", "--device", options.device, "training.shf", "--"]
    sizes = ["--calls", str(calls), "--batch", str(batch), "--time", str(length)]
    arguments = ["training.py", "--device", options.device, *sizes, "--peer"]
    times = {"sheaf": [], "jax": [], "torch": []}
    for _ in range(options.rounds):
        times["sheaf"].append(milliseconds([*sheaf, str(calls), str(batch), str(length)]))
        times["jax"].append(milliseconds([sys.executable, *arguments, "jax"]))
        if options.torch:
            times["torch"].append(milliseconds([options.torch, *arguments, "torch"]))
    return times


def with_jax(options):
    from functools import partial

    import jax
    import jax.numpy as jnp

    def dense(seed, *shape):
        return {"W": 0.02 * jax.random.normal(jax.random.key(seed), shape), "b": jnp.zeros(shape[1])}

    def layer(i):
        sizes = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "fc": (WIDTH, 4 * WIDTH), "proj": (4 * WIDTH, WIDTH)}
        return {"ln1": unit(), "ln2": unit(), **{name: dense(4 * i + j, *size) for j, (name, size) in enumerate(sizes.items())}}

    def unit():
        return {"g": jnp.ones(WIDTH), "b": jnp.zeros(WIDTH)}

    def norm(x, p):
        x = x - x.mean(-1, keepdims=True)
        return p["g"] * x / jnp.sqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5) + p["b"]

    def linear(x, p):
        return x @ p["W"] + p["b"]

    def attend(x, p):
        q, k, v = (y.reshape(*x.shape[:2], HEADS, -1) for y in jnp.split(linear(x, p["qkv"]), 3, -1))
        return linear(jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape), p["out"])

    def loss(p, ids):
        h = p["wte"][ids[:, :-1]] + p["wpe"][: ids.shape[1] - 1]
        for layer in p["layers"]:
            h = h + attend(norm(h, layer["ln1"]), layer)
            h = h + linear(jax.nn.gelu(linear(norm(h, layer["ln2"]), layer["fc"])), layer["proj"])
        logits = jax.nn.log_softmax(norm(h, p["ln"]) @ p["wte"].T)
        return -jnp.mean(jnp.take_along_axis(logits, ids[:, 1:, None], -1))

    @partial(jax.jit, donate_argnums=0)
    def step(state, ids):
        p, m, v, t = state
        t = t + 1
        g = jax.grad(loss)(p, ids)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        scale = RATE / (1 - 0.9**t)
        p = jax.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), p, m, v)
        return p, m, v, t

    p = {
        "wte": dense(1000, VOCABULARY, WIDTH)["W"],
        "wpe": dense(1001, POSITIONS, WIDTH)["W"],
        "ln": unit(),
        "layers": [layer(i) for i in range(LAYERS)],
    }
    ids = jax.random.randint(jax.random.key(4), (options.batch, options.time + 1), 0, VOCABULARY)
    zeros = [jax.tree.map(jnp.zeros_like, p) for _ in range(2)]
    return timed(lambda state: step(state, ids), (p, *zeros, jnp.array(0.0)), options.calls)


def with_torch(options):
    torch = in_torch(options.device)
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.fc, self.proj = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, h):
            batch, time, _ = h.shape
            q, k, v = (x.view(batch, time, HEADS, -1).transpose(1, 2) for x in self.qkv(self.ln1(h)).chunk(3, -1))
            found = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            h = h + self.out(found.transpose(1, 2).reshape(h.shape))
            return h + self.proj(functional.gelu(self.fc(self.ln2(h)), approximate="tanh"))

    wte, wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(POSITIONS, WIDTH)
    body = nn.Sequential(*[Block() for _ in range(LAYERS)], nn.LayerNorm(WIDTH))
    optimizer = torch.optim.Adam([*wte.parameters(), *wpe.parameters(), *body.parameters()], lr=RATE)
    ids = torch.randint(0, VOCABULARY, (options.batch, options.time + 1))

    def step(_):
        optimizer.zero_grad()
        h = body(wte(ids[:, :-1]) + wpe(torch.arange(options.time)))
        functional.cross_entropy((h @ wte.weight.T).flatten(0, 1), ids[:, 1:].flatten()).backward()
        optimizer.step()

    return timed(step, None, options.calls, torch)


if __name__ == "__main__":
    main()
