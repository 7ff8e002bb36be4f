"""100,000 draws of every sampler, from the same keys."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats as stats

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
    ("random-rademacher", "(random-rademacher k '[100000])", lambda k: jax.random.rademacher(k, (DRAWS,), "int32")),
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

# Formulas of uniform and normal numbers: to the rounding of the formula.
FORMULAS = [
    ("random-exponential", "(random-exponential k '[100000])", lambda k: jax.random.exponential(k, (DRAWS,))),
    ("random-laplace", "(random-laplace k '[100000])", lambda k: jax.random.laplace(k, (DRAWS,))),
    ("random-logistic", "(random-logistic k '[100000])", lambda k: jax.random.logistic(k, (DRAWS,))),
    ("random-gumbel", "(random-gumbel k '[100000])", lambda k: jax.random.gumbel(k, (DRAWS,))),
    # Numbers near the poles of the tangent are decided by the last bit of the angle.
    ("random-cauchy", "(atan (random-cauchy k '[100000]))", lambda k: jnp.arctan(jax.random.cauchy(k, (DRAWS,)))),
    ("random-truncated-normal", "(random-truncated-normal k -1 2 '[100000])", lambda k: jax.random.truncated_normal(k, -1, 2, (DRAWS,))),
    ("random-geometric", "(random-geometric k 0.3 '[100000])", lambda k: jax.random.geometric(k, 0.3, (DRAWS,))),
    ("random-multivariate-normal", "(random-multivariate-normal k [1 -2 0.5] [[2 0.5 0.1] [0.5 1 -0.3] [0.1 -0.3 3]] '[30000])", lambda k: jax.random.multivariate_normal(k, jnp.array([1, -2, 0.5]), jnp.array([[2, 0.5, 0.1], [0.5, 1, -0.3], [0.1, -0.3, 3]]), (30_000,))),
    ("orthogonal", "(orthogonal k '[12 12])", lambda k: jax.nn.initializers.orthogonal()(k, (12, 12))),
    ("orthogonal", "(orthogonal k '[3 4 6])", lambda k: jax.nn.initializers.orthogonal()(k, (3, 4, 6))),
]

# Methods of rejection and inversion, which are not JAX's: a name, the draws, and the distribution.
DISTRIBUTED = [
    ("random-gamma", "(random-gamma k 0.2 '[100000])", stats.gamma(0.2)),
    ("random-gamma", "(random-gamma k 3.5 '[100000])", stats.gamma(3.5)),
    ("random-gamma", "(random-gamma k 500 '[100000])", stats.gamma(500)),
    ("random-beta", "(random-beta k 0.5 0.3 '[100000])", stats.beta(0.5, 0.3)),
    ("random-beta", "(random-beta k 4 20 '[100000])", stats.beta(4, 20)),
    ("random-chisquare", "(random-chisquare k 5 '[100000])", stats.chi2(5)),
    ("random-t", "(random-t k 2.5 '[100000])", stats.t(2.5)),
    ("random-dirichlet", "(get (random-dirichlet k [0.5 2 3] '[100000]) ... 1)", stats.beta(2, 3.5)),
    # A coordinate of a point of the ball in three dimensions, and its norm to the power 3.
    ("random-ball", "(get (random-ball k 3 '[100000]) ... 0)", stats.beta(2, 2, -1, 2)),
    ("random-ball", "(** (norm (random-ball k 3 '[100000]) :axis -1) 3)", stats.uniform()),
    ("random-ball", "(** (sum (abs (random-ball k 2 '[100000] :p 1)) :axis -1) 2)", stats.uniform()),
    ("random-poisson", "(random-poisson k 0.7 '[100000])", stats.poisson(0.7)),
    ("random-poisson", "(random-poisson k 9.5 '[100000])", stats.poisson(9.5)),
    ("random-poisson", "(random-poisson k 10.5 '[100000])", stats.poisson(10.5)),
    ("random-poisson", "(random-poisson k 2000 '[100000])", stats.poisson(2000)),
    ("random-binomial", "(random-binomial k 12 0.3 '[100000])", stats.binom(12, 0.3)),
    ("random-binomial", "(random-binomial k 40 0.7 '[100000])", stats.binom(40, 0.7)),
    ("random-binomial", "(random-binomial k 100000 0.4 '[100000])", stats.binom(100000, 0.4)),
]

# Kolmogorov and Smirnov: the parts below any number differ by more than 2.1 / sqrt(n) once in 3,000 tests. A moment
# may be off by 4.5 of its standard deviations.
DISTANCE = 2.1 / DRAWS**0.5
DEVIATIONS = 4.5


def examples(seed):
    """Each counts the draws that differ. Integers are compared in parts that f32 holds exactly."""
    random = np.random.default_rng(seed)
    seeds = random.integers(0, 2**31, len(EXACT) + len(NEAR))
    for (name, code, function), s in zip(EXACT, seeds, strict=False):
        drawn = np.asarray(function(key(int(s))))
        yield counted(name, code, s, f"(!= drawn {notation.literal(drawn)})")
    for (name, code, function, units), s in zip(NEAR, seeds[len(EXACT) :], strict=True):
        drawn = np.asarray(function(key(int(s))))
        # A unit in the last place of each is a power of 2, and dividing by one is exact.
        unit = f"(* {units} {notation.literal(np.spacing(np.abs(drawn)).astype('float32'))})"
        yield counted(name, code, s, f"(> (abs (- drawn {notation.literal(drawn)})) {unit})")
    for name, code, function in FORMULAS:
        s = random.integers(0, 2**31)
        drawn = notation.literal(np.asarray(function(key(int(s))), "float32"))
        yield counted(name, code, s, f"(> (abs (- drawn {drawn})) (* 2e-6 (+ 1 (abs {drawn}))))")
    for name, code, distribution in DISTRIBUTED:
        yield distributed(name, code, random.integers(0, 2**31), distribution)


def distributed(name, code, seed, distribution):
    """Compares the parts of draws below 99 quantiles, and mean and variance where they have a variance."""
    points = np.unique(distribution.ppf(np.arange(1, 100) / 100).astype("float32"))
    parts = notation.literal(distribution.cdf(points).astype("float32"))
    away = f"(< (max (abs (- (mean (float (<= drawn (expand-dims {notation.literal(points)} 1))) :axis 1) {parts}))) {DISTANCE!r})"
    mean, variance, excess = map(float, distribution.stats("mvk"))
    tests = [away]
    if np.isfinite(excess):
        tests.append(f"(< (abs (- (mean drawn) {mean!r})) {DEVIATIONS * (variance / DRAWS) ** 0.5!r})")
        tests.append(f"(< (abs (- (var drawn) {variance!r})) {DEVIATIONS * variance * ((excess + 2) / DRAWS) ** 0.5!r})")
    about = f"{name}, the distribution of 100,000 draws: {code} with k of {seed}"
    return Example(about, f"(let [k [0 {seed}] :u32 drawn {code}] (list {' '.join(tests)}))", f"(list {' '.join('true' for _ in tests)})")


def counted(name, code, seed, differs):
    about = f"{name}, 100,000 draws that differ: {code} with k of {seed}"
    return Example(about, f"(let [k [0 {seed}] :u32 drawn {code}] (sum (int {differs})))", "tensor i32[] = 0")
