"""Programs as examples: their values and gradients in JAX."""

import re

import jax
import jax.numpy as jnp
import numpy as np

import notation
from cases import NUDGE, unfair
from programs import meaning
from programs.generate import DATA, INDICES, PARAMETERS, Generator
from sheaf import Example

PARAMETER = re.compile(r"\(:\w+ p\)")

# Programs of more expressions find no more than small ones do, and IREE takes seconds for each.
SIZE = 40

# Beyond this a program multiplies its rounding errors.
LARGEST = 1e4


def inputs(random):
    """Parameters, data and indices."""

    def draw(shape):
        return random.uniform(-1.5, 1.5, shape).astype("float32").round(3)

    params = jax.tree.map(draw, PARAMETERS, is_leaf=lambda s: isinstance(s, tuple))
    return params, draw(DATA), random.integers(0, 3, INDICES).astype("int32")


def python(body):
    return f"lambda p, x, k: {body.as_python()}"


def example(name, body, arguments, random, strict=False):
    """The example of a program, or nothing where rounding alone decides what it gives, or, with `strict`, where it
    hangs on less than two of the parameters."""
    with_extra = body.shape is None
    function = meaning.function(python(body))

    def loss(by, *a):
        meaning.moved = by
        value = function(*a)
        return (jnp.asarray(value[0]), value[1]) if with_extra else jnp.asarray(value)

    compiled = jax.jit(jax.value_and_grad(loss, argnums=1, has_aux=with_extra))
    found = compiled(0.0, *arguments)
    for leaf in jax.tree.leaves(found):
        if not np.isfinite(leaf).all() or np.abs(leaf).max() > LARGEST:
            return None
    moving = [g for g in jax.tree.leaves(found[1]) if np.any(g)]
    if strict and len(moving) < 2:
        return None
    # Every approximation of tanh reaches 1 elsewhere, by a few units in the last place: 1 - tanh² is 0 in one and 4e-7
    # in another.
    if unfair(lambda a: [compiled(random.choice([-NUDGE, NUDGE]), *a)], arguments, [found], random):
        return None
    aux = " :aux" if with_extra else ""
    written = " ".join(map(notation.argument, arguments))
    code = f"((value-and-grad (fn [p x k] {body.as_sheaf()}){aux}) {written})"
    return Example(name, code, notation.tree(found), origin=(body, arguments))


def attempt(body, arguments):
    """An example for the shrinker."""
    try:
        return example("shrunk", body, arguments, np.random.default_rng(0))
    except Exception:  # noqa: BLE001 (a candidate that JAX does not take is none)
        return None


def draw(seed, index):
    """Program number `index` of a seed, with how many were drawn for it."""
    for attempt in range(200):
        random = np.random.default_rng([seed, index, attempt])
        body = Generator(random).program()
        if body.size > SIZE or len(set(PARAMETER.findall(body.as_sheaf()))) < 3:
            continue
        arguments = inputs(random)
        made = example(f"program {index} of seed {seed}", body, arguments, random, strict=True)
        if made:
            return made, attempt + 1
    raise SystemExit(f"oracle: no fair program {index} of seed {seed}")
