"""Functions for the Python side of a program: the forms of Sheaf that Python has no expression for."""

import functools

import jax
import jax.numpy as jnp
from jax.scipy.special import erf  # noqa: F401 (programs use it)


# By how much, relative to itself, each `tanh` of the program being traced is moved.
moved = 0.0


def tanh(x):
    return moved_tanh(jnp.asarray(x), moved)


@jax.custom_jvp
def moved_tanh(x, by):
    y = jnp.tanh(x)
    return y * (1 + jnp.asarray(by).astype(y.dtype))


@moved_tanh.defjvp
def _(primals, tangents):
    y = moved_tanh(*primals)
    return y, (1 - y * y) * tangents[0]


def number(x):
    return jnp.asarray(x)


def repeat(count, init, body):
    if count > 5:
        return jax.lax.fori_loop(0, count, body, jnp.asarray(init, "float32"))
    for i in range(count):
        init = body(i, init)
    return init


def cond(condition, yes, no):
    # JAX wants arrays of both, and a branch may be a plain number.
    give = lambda branch: lambda: jax.tree.map(jnp.asarray, branch())  # noqa: E731
    return jax.lax.cond(condition, give(yes), give(no))


def stopped(x):
    return jax.lax.stop_gradient(jnp.asarray(x))


def until(longest, going, init, body):
    def more(state):
        return jnp.logical_and(state[0] < longest, going(*state))

    def step(state):
        return state[0] + 1, stopped(body(*state))

    return jax.lax.while_loop(more, step, (0, stopped(init)))[1]


def counted(count, init, body):
    return jax.lax.fori_loop(0, count, lambda i, a: stopped(body(i, a)), stopped(init))


def reduce(f, init, items):
    return functools.reduce(f, items, init)


def scan(f, init, items):
    outputs = []
    for item in items:
        init, output = f(init, item)
        outputs.append(output)
    return init, jnp.stack(outputs)


def tree_map(f, tree):
    return jax.tree.map(f, tree)


def tree_reduce(f, tree, init):
    return functools.reduce(f, jax.tree.leaves(tree), init)


def grad(f):
    return jax.grad(lambda v: jnp.asarray(f(v)))


def tangent(f, at, direction):
    # A literal is f32 or f64 as the rest of the program.
    at = jnp.asarray(at)
    return jax.jvp(lambda v: jnp.asarray(f(v)), (at,), (jnp.asarray(direction).astype(at.dtype),))[1]


def function(text):
    """The function that a program's Python text is."""
    return eval(text, dict(globals()))  # noqa: S307 (the text is the generator's own)
