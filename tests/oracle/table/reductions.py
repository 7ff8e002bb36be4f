"""Reductions and running sums."""

import jax
import jax.numpy as jnp

from cases import Entry, i32, positive, ranked, real, truth, u32


def frobenius(x, axis=None, keepdims=False):
    return jnp.sqrt(jnp.sum(jnp.square(x * 1.0), axis=axis, keepdims=keepdims))


def logsumexp(x, axis=None, keepdims=False):
    return jax.nn.logsumexp(x, axis=axis, keepdims=keepdims)


def mean(x, axis=None, keepdims=False):
    return jnp.mean(x, axis=axis, keepdims=keepdims)


WAYS = (
    ("", {}), (" :axis 0", {"axis": 0}), (" :axis -1 :keepdims", {"axis": -1, "keepdims": True}),
    (" :axis '[0 2]", {"axis": (0, 2)}), (" :keepdims", {"keepdims": True}),
)


def reduction(name, function, *kinds, order=2):
    """A reduction over all axes, the first, the last, two of them."""
    for options, keywords in WAYS:
        if "[" in options:
            shapes = ((2, 3, 2),)
        else:
            shapes = ((2, 3), (4,)) if "axis" in keywords else ((2, 3), (), (3,))
        operands = [[kind(*s)] for kind in kinds for s in shapes]
        yield Entry(name, f"({name} x{options})", lambda x, k=keywords: function(x, **k), operands, order=order)


def positions(name, function):
    """The place of the greatest or least."""
    kinds = (ranked, lambda *s: i32(*s, low=0, high=3), lambda *s: u32(*s, low=0, high=3))
    for options, keywords in (("", {}), (" :axis 0", {"axis": 0}), (" :axis -1 :keepdims", {"axis": -1, "keepdims": True})):
        operands = [[kind(*s)] for kind in kinds for s in ((5,), (2, 3))]
        yield Entry(name, f"({name} x{options})", lambda x, k=keywords: function(x, **k), operands, order=0)


def quantiles(name, function):
    """A part of the elements in order, over all axes or one."""
    part = (0.3,) if name == "quantile" else ()
    given = "".join(f" {q}" for q in part)
    for options, keywords in (("", {}), (" :axis 0", {"axis": 0}), (" :axis -1 :keepdims", {"axis": -1, "keepdims": True})):
        yield Entry(name, f"({name} x{given}{options})", lambda x, k=keywords: function(x, *part, **k),
                    [[ranked(5)], [ranked(3, 4)]], order=1)


def running(name, function, *kinds):
    """Running sums or products along an axis, or of all elements."""
    for options, axis in (("", None), (" :axis 0", 0), (" :axis -1", -1)):
        operands = [[kind(*s)] for kind in kinds for s in ((4,), (2, 3))]
        yield Entry(name, f"({name} x{options})", lambda x, a=axis: function(x, axis=a), operands)


def ties(name, function):
    """Gradients where several elements are the greatest: each gets its share."""
    whole = lambda *s: i32(*s, low=0, high=2)  # noqa: E731
    call = f"((grad (fn [f] (* 3 ({name} f)))) (* 1.0 x))"
    return Entry(name, call, lambda x: jax.grad(lambda f: 3 * function(f))(x * 1.0), [[whole(5)], [whole(2, 3)]], order=0)


ENTRIES = [
    *reduction("sum", jnp.sum, real, i32, u32, truth),
    *reduction("mean", mean, real, i32, u32, truth),
    *reduction("var", jnp.var, real),
    *reduction("std", jnp.std, ranked, order=2),
    *reduction("product", jnp.prod, real, i32, u32, truth),
    *reduction("min", jnp.min, ranked, i32, u32, truth),
    *reduction("max", jnp.max, ranked, i32, u32, truth),
    *reduction("logsumexp", logsumexp, real),
    *reduction("norm", frobenius, positive, i32),
    *reduction("any", jnp.any, truth, lambda *s: i32(*s, low=0, high=2), order=0),
    *reduction("all", jnp.all, truth, lambda *s: i32(*s, low=0, high=2), order=0),
    *positions("argmax", jnp.argmax),
    *positions("argmin", jnp.argmin),
    *running("cumsum", jnp.cumsum, real, i32, u32, truth),
    *running("cumprod", jnp.cumprod, real, i32, u32),
    *quantiles("quantile", jnp.quantile),
    *quantiles("median", jnp.median),
    Entry("quantile", "(quantile x '[0 0.3 1] :axis 1)", lambda x: jnp.quantile(x, jnp.array([0, 0.3, 1]), axis=1), [[ranked(2, 5)]], order=1),
    ties("max", jnp.max),
    ties("min", jnp.min),
]
