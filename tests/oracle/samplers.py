"""100,000 draws of every sampler, from the same keys."""

import jax
import jax.numpy as jnp
import numpy as np

import notation
from sheaf import Example

DRAWS = 100_000

HEADER = "(use nn)"


def key(seed):
    return jax.random.key(seed)


def data(k):
    return jax.random.key_data(k)


# A name, the draws in Sheaf from the key k, and in JAX: these are equal, bit for bit.
EXACT = [
    ("random-split", "(random-split k 50000)", lambda k: data(jax.random.split(k, 50_000))),
    ("fold-in", "((vmap (fn [n] (fold-in k n))) (arange 50000))", lambda k: data(jax.vmap(lambda n: jax.random.fold_in(k, n))(jnp.arange(50_000)))),
    ("random-uniform", "(random-uniform k '[100000])", lambda k: jax.random.uniform(k, (DRAWS,))),
    ("random-uniform", "(random-uniform k '[100 1000] :low -2 :high 3)", lambda k: jax.random.uniform(k, (100, 1000), minval=-2, maxval=3)),
    ("random-uniform", "(cast (random-uniform k '[100000] :low -2 :high 3 :dtype :bf16) :f32)", lambda k: jax.random.uniform(k, (DRAWS,), jnp.bfloat16, -2, 3).astype("float32")),
    ("random-uniform", "(cast (random-uniform k '[100000] :dtype :f16) :f32)", lambda k: jax.random.uniform(k, (DRAWS,), jnp.float16).astype("float32")),
    ("random-randint", "(random-randint k '[100000] -7 1000)", lambda k: jax.random.randint(k, (DRAWS,), -7, 1000)),
    ("random-randint", "(random-randint k '[100000] -2147483648 2147483647)", lambda k: jax.random.randint(k, (DRAWS,), -(2**31), 2**31 - 1)),
    ("random-bernoulli", "(random-bernoulli k 0.3 '[100000])", lambda k: jax.random.bernoulli(k, 0.3, (DRAWS,))),
    ("choice", "(choice k 17 '[100000])", lambda k: jax.random.choice(k, 17, (DRAWS,))),
    ("choice", "(choice k 4 '[100000] :p [0.1 0.2 0.3 0.4])", lambda k: jax.random.choice(k, 4, (DRAWS,), p=jnp.array([0.1, 0.2, 0.3, 0.4]))),
    ("choice", "(choice k 100000 '[50000] :replace false)", lambda k: jax.random.choice(k, DRAWS, (50_000,), replace=False)),
    ("random-permutation", "(random-permutation k 100000)", lambda k: jax.random.permutation(k, DRAWS)),
    ("random-categorical", "(random-categorical k [0.5 -1 2 0] :shape 100000)", lambda k: jax.random.categorical(k, jnp.array([0.5, -1, 2, 0]), shape=(DRAWS,))),
]

# Normals: to units in the last place, as many as the last number says.
NEAR = [
    ("random-normal", "(random-normal k '[100000])", lambda k: jax.random.normal(k, (DRAWS,)), 4),
    ("xavier-normal", "(xavier-normal k '[400 250])", lambda k: jax.random.normal(k, (400, 250)) * jnp.sqrt(2 / 650), 8),
    ("xavier-uniform", "(xavier-uniform k '[400 250])", lambda k: jax.nn.initializers.glorot_uniform()(k, (400, 250)), 8),
    ("kaiming-uniform", "(kaiming-uniform k '[400 250])", lambda k: jax.nn.initializers.he_uniform()(k, (400, 250)), 8),
    ("lecun-uniform", "(lecun-uniform k '[400 250])", lambda k: jax.nn.initializers.lecun_uniform()(k, (400, 250)), 8),
    ("kaiming-normal", "(kaiming-normal k '[400 250])", lambda k: jax.random.normal(k, (400, 250)) * jnp.sqrt(2 / 400), 8),
    ("lecun-normal", "(lecun-normal k '[400 250])", lambda k: jax.random.normal(k, (400, 250)) * jnp.sqrt(1 / 400), 8),
]


def examples(seed):
    """Each counts the draws that differ. Integers are compared in parts that f32 holds exactly."""
    seeds = np.random.default_rng(seed).integers(0, 2**31, len(EXACT) + len(NEAR))
    for (name, code, function), s in zip(EXACT, seeds, strict=False):
        drawn = np.asarray(function(key(int(s))))
        yield counted(name, code, s, f"(!= drawn {notation.literal(drawn)})")
    for (name, code, function, units), s in zip(NEAR, seeds[len(EXACT) :], strict=True):
        drawn = np.asarray(function(key(int(s))))
        # A unit in the last place of each is a power of 2, and dividing by one is exact.
        unit = f"(* {units} {notation.literal(np.spacing(np.abs(drawn)).astype('float32'))})"
        yield counted(name, code, s, f"(> (abs (- drawn {notation.literal(drawn)})) {unit})")


def counted(name, code, seed, differs):
    about = f"{name}, 100,000 draws that differ: {code} with k of {seed}"
    return Example(about, f"(let [k [0 {seed}] :u32 drawn {code}] (sum (int {differs})))", "tensor i32[] = 0")
