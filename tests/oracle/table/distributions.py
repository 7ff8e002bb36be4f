"""Special functions, and the densities, cumulative distributions and quantiles of distributions, against JAX where it has them
with derivatives, and else against SciPy in 64 bits."""

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import jax.scipy.stats as stats
import numpy as np
import scipy.special
import scipy.stats

from cases import Entry, Operand, i32, positive, real


def difference(function, i):
    """The partial derivative by argument i, by differences of the fourth order."""

    def derivative(*args):
        step = 1e-3 * np.maximum(np.abs(args[i]), 0.1)
        at = lambda n: function(*args[:i], args[i] + n * step, *args[i + 1 :])  # noqa: E731
        return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)

    return derivative


def by_scipy(function):
    """A function of NumPy as one of JAX, computed in 64 bits, with derivatives of any order."""

    def host(*args):
        return np.asarray(function(*(np.asarray(a, "float64") for a in args)), "float32")

    @jax.custom_jvp
    def call(*args):
        shape = jnp.broadcast_shapes(*(jnp.shape(a) for a in args))
        args = [jnp.broadcast_to(a, shape) for a in args]
        return jax.pure_callback(host, jax.ShapeDtypeStruct(shape, "float32"), *args, vmap_method="broadcast_all")

    @call.defjvp
    def tangent(primals, tangents):
        moved = jnp.zeros(jnp.broadcast_shapes(*(jnp.shape(a) for a in primals)), "float32")
        for i, (p, t) in enumerate(zip(primals, tangents, strict=True)):
            if jnp.issubdtype(jnp.asarray(p).dtype, jnp.floating):
                moved = moved + by_scipy(difference(function, i))(*primals) * t
        return call(*primals), moved

    return call


def within(low, high):
    return lambda *shape: real(*shape, low=low, high=high)


def counts(high):
    return lambda *shape: i32(*shape, low=0, high=high)


def of_one(name, function, *kinds):
    """A function of one operand: derivatives of one shape of each kind, values of others, and of more numbers at once."""
    return [row for kind in kinds for row in of_more(name, function, kind)]


def of_more(name, function, *kinds, call=None):
    """A function of several operands that broadcast: derivatives of one shape, values of others, and of more numbers at once."""
    n = len(kinds)
    call = call or f"({name} {' '.join('xyzw'[:n])})"
    shapes = [((2, 1, 2),) + ((2,),) * (n - 1), ((2, 1),) * (n - 1) + ((1, 3),), ((),) * n, ((40,),) * n]
    operands = [[kind(*shape) for kind, shape in zip(kinds, row, strict=True)] for row in shapes]
    return [Entry(name, call, function, operands[:1]), Entry(name, call, function, operands[1:], order=0, batches=False)]


def family(name, kind, distribution, *parameters, logpdf=None, cdf=None, ppf=None):
    """The three functions of a continuous distribution, those without parameters with loc and scale, too."""
    names = (("logpdf", logpdf, kind), ("cdf", cdf, kind), ("ppf", ppf, chance))
    rows = []
    for suffix, function, first in names:
        function = function or by_scipy(getattr(distribution, suffix))
        if parameters:
            rows += of_more(f"{name}-{suffix}", function, first, *parameters)
        else:
            rows += of_more(f"{name}-{suffix}", function, first, within(-0.2, 0.2), positive)
            rows += of_more(f"{name}-{suffix}", function, first)[1:]
    return rows


def discrete(name, kind, distribution, *parameters):
    """The two functions of a discrete distribution."""
    return [
        row
        for suffix in ("logpmf", "cdf")
        for row in of_more(f"{name}-{suffix}", by_scipy(getattr(distribution, suffix)), kind, *parameters)
    ]


def chance(*shape):
    return Operand(shape, "float32", 0.03, 0.97)


TAIL = within(-0.999, 0.999)
# Shapes of distributions, and numbers inside of them.
SHAPE, LARGE = within(0.4, 6), within(20, 60)
INSIDE = within(0.02, 0.98)

SPECIAL = [
    *of_one("erfinv", special.erfinv, within(-0.95, 0.95), TAIL),
    *of_one("erfc", special.erfc, real, within(2, 5)),
    *of_one("gammaln", by_scipy(scipy.special.gammaln), within(2.2, 6), within(0.1, 0.8), LARGE, within(-1.85, -1.65)),
    *of_one("digamma", by_scipy(scipy.special.digamma), within(1.8, 6), within(0.1, 1.2), LARGE, within(-2.5, -2.3)),
    *of_more("betaln", by_scipy(scipy.special.betaln), SHAPE, SHAPE),
    *of_more("betaln", by_scipy(scipy.special.betaln), LARGE, SHAPE),
    *of_more("gammainc", by_scipy(scipy.special.gammainc), SHAPE, positive),
    *of_more("gammainc", by_scipy(scipy.special.gammainc), LARGE, LARGE),
    *of_more("gammaincc", by_scipy(scipy.special.gammaincc), SHAPE, positive),
    *of_more("gammaincc", by_scipy(scipy.special.gammaincc), LARGE, LARGE),
    *of_more("betainc", by_scipy(scipy.special.betainc), SHAPE, SHAPE, INSIDE),
    *of_more("betainc", by_scipy(scipy.special.betainc), LARGE, LARGE, within(0.3, 0.7)),
]

CONTINUOUS = [
    *family("normal", real, None, logpdf=stats.norm.logpdf, cdf=stats.norm.cdf, ppf=stats.norm.ppf),
    *family("exponential", positive, None, logpdf=stats.expon.logpdf, cdf=stats.expon.cdf, ppf=stats.expon.ppf),
    *family("laplace", positive, scipy.stats.laplace, logpdf=stats.laplace.logpdf, cdf=stats.laplace.cdf),
    *family("logistic", real, None, logpdf=stats.logistic.logpdf, cdf=stats.logistic.cdf, ppf=stats.logistic.ppf),
    *family("gumbel", real, scipy.stats.gumbel_r),
    *family("cauchy", real, None, logpdf=stats.cauchy.logpdf, cdf=stats.cauchy.cdf, ppf=stats.cauchy.ppf),
    # Within the support whatever loc and scale are.
    *of_more("uniform-logpdf", stats.uniform.logpdf, within(0.3, 0.9), within(-0.2, 0.2), within(1.2, 3)),
    *of_more("uniform-cdf", stats.uniform.cdf, within(0.3, 0.9), within(-0.2, 0.2), within(1.2, 3)),
    *of_more("uniform-ppf", stats.uniform.ppf, chance, within(-0.2, 0.2), within(1.2, 3)),
    *family("gamma", positive, scipy.stats.gamma, SHAPE, logpdf=stats.gamma.logpdf),
    *family("chisquare", positive, scipy.stats.chi2, SHAPE, logpdf=stats.chi2.logpdf),
    *family("t", real, scipy.stats.t, SHAPE),
    *family("beta", INSIDE, scipy.stats.beta, SHAPE, SHAPE),
    *family("truncated-normal", within(-0.9, 0.9), scipy.stats.truncnorm, within(-2, -1), within(1, 2)),
    *of_more("gamma-cdf", by_scipy(lambda x, a, loc, scale: scipy.stats.gamma.cdf(x, a, loc, scale)), positive, SHAPE, within(-0.2, 0.2), positive),
]

DISCRETE = [
    *discrete("bernoulli", counts(2), scipy.stats.bernoulli, INSIDE),
    *discrete("geometric", lambda *s: i32(*s, low=1, high=9), scipy.stats.geom, INSIDE),
    *discrete("poisson", counts(9), scipy.stats.poisson, positive),
    *discrete("poisson", lambda *s: i32(*s, low=20, high=60), scipy.stats.poisson, LARGE),
    *of_more("binomial-logpmf", by_scipy(lambda k, n, p: scipy.stats.binom.logpmf(k, n, p)), counts(9), lambda *s: i32(*s, low=9, high=20), INSIDE),
    *of_more("binomial-cdf", by_scipy(lambda k, n, p: scipy.stats.binom.cdf(k, n, p)), counts(9), lambda *s: i32(*s, low=9, high=20), INSIDE),
    Entry("categorical-logpmf", "(categorical-logpmf x y)", lambda k, z: jnp.take_along_axis(jax.nn.log_softmax(z), k[..., None], -1)[..., 0],
          [[i32(2, low=0, high=3), real(2, 3)], [i32(low=0, high=4), real(4)]]),
    Entry("categorical-cdf", "(categorical-cdf x y)", lambda k, z: jnp.take_along_axis(jnp.cumsum(jax.nn.softmax(z), -1), k[..., None], -1)[..., 0],
          [[i32(2, low=0, high=3), real(2, 3)], [i32(low=0, high=4), real(4)]]),
]



def normal_of(x, mean, z):
    return stats.multivariate_normal.logpdf(x, mean, jnp.eye(3) + z @ z.T)


def dirichlet_of(x, alpha):
    x = x / jnp.sum(x, -1, keepdims=True)
    return jnp.sum((alpha - 1) * jnp.log(x) - special.gammaln(alpha), -1) + special.gammaln(jnp.sum(alpha, -1))


MULTIVARIATE = [
    Entry("dirichlet-logpdf", "(dirichlet-logpdf (normalize x) y)", dirichlet_of, [[positive(3), SHAPE(3)], [positive(2, 3), SHAPE(3)], [positive(4, 3), SHAPE(4, 3)]]),
    Entry("multivariate-normal-logpdf", "(multivariate-normal-logpdf x y (+ (eye 3) (@ z (transpose z))))", normal_of,
          [[real(3), real(3), real(3, 3)], [real(2, 3), real(3), real(3, 3)]]),
    Entry("multivariate-normal-logpdf", "(multivariate-normal-logpdf x (zeros 20) (+ (eye 20) (@ y (transpose y))))",
          lambda x, y: stats.multivariate_normal.logpdf(x, jnp.zeros(20), jnp.eye(20) + y @ y.T), [[real(6, 20), real(20, 5, low=-0.4, high=0.4)]], order=1, batches=False),
]

ENTRIES = SPECIAL + CONTINUOUS + DISCRETE + MULTIVARIATE
