"""Linear algebra and the Fourier transform in Sheaf, and in JAX, which calls LAPACK and pocketfft; medians of the milliseconds of a call.

    linalg.py --sheaf target/release/sheaf     with a Python that has JAX (scripts/jax-python)
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

import jax.scipy.linalg
from jax_works import jax, jnp, normal
from peers import HEAD, line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sheaf", type=Path, required=True)
    print(HEAD)
    for name, times in measured(parser.parse_args()):
        print(line(name, times), flush=True)


def measured(options):
    """Each work with its milliseconds, which are medians already."""
    sheaf = in_sheaf(options.sheaf.absolute())
    for name, (step, argument) in works().items():
        yield name, {"sheaf": [sheaf[name]], "jax": [milliseconds(jax.jit(step), argument)], "torch": []}


def in_sheaf(program):
    done = subprocess.run([program, "run", "--jit", "always", "linalg.shf"], cwd=Path(__file__).parent, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return {name: float(ms) for name, ms in (line.rsplit(" ", 1) for line in done.stdout.splitlines())}


def works():
    square = normal(0, 500, 500)
    definite, dominant = square @ square.T + 500 * jnp.eye(500), square + 30 * jnp.eye(500)
    blocks, small = normal(0, 32, 16, 16), square[:200, :200]
    definites = blocks @ blocks.transpose(0, 2, 1) + 16 * jnp.eye(16)
    return {
        "cholesky 500": (jnp.linalg.cholesky, definite),
        "solve 500": (lambda x: jnp.linalg.solve(x, normal(0, 500)), dominant),
        "qr 500": (jnp.linalg.qr, square),
        "32 cholesky 16": (jnp.linalg.cholesky, definites),
        "32 solve 16": (lambda x: jnp.linalg.solve(x, normal(0, 32, 16, 1)), definites),
        "32 qr 16": (jnp.linalg.qr, definites),
        "eigh 200": (jnp.linalg.eigh, small + small.T),
        "svd 200": (lambda x: jnp.linalg.svd(x, full_matrices=False), small),
        "Gaussian process 500": (jax.grad(process_loss), jnp.array([0.4, 0.0, -1.2])),
        "rfft 65536": (jnp.fft.rfft, normal(0, 65_536)),
    }


def process_loss(scales):
    """-log p(y | x) of a Gaussian process, for each of 500 points, by the logarithms of its length, height and noise."""
    x = jnp.linspace(-2.0, 2.0, 500)
    y = jnp.sin(3 * x)
    length, height, noise = jnp.exp(scales)
    distance = (x[:, None] - x) / length
    covariance = height**2 * jnp.exp(-0.5 * distance**2) + (1e-5 + noise**2) * jnp.eye(500)
    factor = jnp.linalg.cholesky(covariance)
    weights = jax.scipy.linalg.cho_solve((factor, True), y)
    return (0.5 * y @ weights + jnp.sum(jnp.log(jnp.diag(factor)))) / 500


def milliseconds(step, argument):
    jax.block_until_ready(step(argument))
    rounds = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(10):
            jax.block_until_ready(step(argument))
        rounds.append((time.perf_counter() - start) / 10 * 1e3)
    return statistics.median(rounds)


if __name__ == "__main__":
    main()
