"""Arithmetic, comparison and activations, element by element."""

import jax
import jax.numpy as jnp
import jax.scipy.special as special

from cases import Entry, i32, positive, real, truth, u32

SMALL = lambda *shape: real(*shape, low=-0.9, high=0.9)  # noqa: E731


def unary(name, function, *kinds, order=2, call=None):
    """A function of one operand, of three shapes for each kind."""
    operands = [[kind(*shape)] for kind in kinds for shape in ((4,), (), (2, 1, 3))]
    return Entry(name, call or f"({name} x)", function, operands, order=order)


def binary(name, function, *kinds, order=2, call=None):
    """A function of two operands that broadcast."""
    shapes = (((4,), (4,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (3,)), ((2, 1, 2), ()))
    operands = [[a(*left), b(*right)] for a, b in kinds for left, right in shapes]
    return Entry(name, call or f"({name} x y)", function, operands, order=order)


FLOATS, INTS, UINTS, BOOLS = (real, real), (i32, i32), (u32, u32), (truth, truth)
MIXED = (real, i32)
NUMBERS = (FLOATS, INTS, UINTS, MIXED)
DIVISORS = (lambda *s: i32(*s, low=1), lambda *s: u32(*s, low=1))


def equals(a, b):
    return a == b


ARITHMETIC = [
    binary("+", jnp.add, *NUMBERS),
    Entry("+", "(+ x y z)", lambda x, y, z: x + y + z, [[real(3), real(2, 3), real()]]),
    binary("-", jnp.subtract, *NUMBERS),
    unary("-", jnp.negative, real, i32, u32),
    binary("*", jnp.multiply, *NUMBERS),
    binary("/", jnp.divide, (real, positive), (i32, DIVISORS[0]), (u32, DIVISORS[1])),
    binary("//", jnp.floor_divide, (real, positive), (i32, DIVISORS[0]), (u32, DIVISORS[1]), order=0),
    binary("mod", jnp.mod, (real, positive), (i32, DIVISORS[0]), (u32, DIVISORS[1])),
    binary("%", jnp.mod, (positive, lambda *s: real(*s, low=-2, high=-0.5)), order=1),
    binary("**", jnp.power, (positive, real), order=2),
    *(
        unary("**", lambda x, n=n: jnp.power(x, n), positive, *((i32, u32) if n > 0 else ()), call=f"(** x {n})")
        for n in (0, 1, 2, 3, 7, -1, -2)
        if n
    ),
    unary("**", lambda x: jnp.power(x, 0.5), positive, call="(** x 0.5)"),
    unary("**", lambda x: jnp.power(x, 3), real, call="(** x 3)"),
    unary("**", lambda x: jnp.power(2.0, x), real, call="(** 2.0 x)"),
    unary("neg", jnp.negative, real, i32, u32),
    unary("abs", jnp.abs, real, i32, u32),
    unary("sign", jnp.sign, real, i32, u32),
    unary("exp", jnp.exp, real, i32, truth),
    unary("expm1", jnp.expm1, real, SMALL),
    unary("log", jnp.log, positive, lambda *s: u32(*s, low=1)),
    unary("log1p", jnp.log1p, positive, SMALL),
    unary("log2", jnp.log2, positive),
    unary("sqrt", jnp.sqrt, positive, u32),
    unary("rsqrt", jax.lax.rsqrt, positive),
    unary("square", jnp.square, real, i32, u32),
    unary("reciprocal", jnp.reciprocal, positive),
    unary("sin", jnp.sin, real, i32),
    unary("cos", jnp.cos, real, i32),
    unary("tan", jnp.tan, SMALL),
    unary("asin", jnp.arcsin, SMALL),
    unary("acos", jnp.arccos, SMALL),
    unary("atan", jnp.arctan, real),
    binary("atan2", jnp.arctan2, FLOATS),
    unary("sinh", jnp.sinh, real),
    unary("cosh", jnp.cosh, real),
    unary("tanh", jnp.tanh, real, i32),
    unary("erf", special.erf, real),
    unary("floor", jnp.floor, real),
    unary("ceil", jnp.ceil, real),
    unary("round", jnp.round, real),
    binary("minimum", jnp.minimum, *NUMBERS),
    binary("maximum", jnp.maximum, *NUMBERS),
    Entry(
        "clamp", "(clamp x y z)", jnp.clip,
        [[real(2, 3), real(3, low=-1, high=0), real(low=0.2, high=1)], [i32(5), i32(low=-4, high=0), i32(5, low=0, high=5)]],
    ),
    Entry("clamp", "(clamp x -1 1)", lambda x: jnp.clip(x, -1, 1), [[real(5)]]),
    # Bounds that unsigned integers have too: JAX takes -1 for their greatest, Sheaf refuses it.
    Entry("clamp", "(clamp x 1 3)", lambda x: jnp.clip(x, 1, 3), [[i32(2, 3)]]),
    binary("ash", jnp.left_shift, (i32, lambda *s: i32(*s, low=0, high=5)), (u32, lambda *s: u32(*s, low=0, high=5)), order=0),
    binary("ash", jnp.right_shift, (i32, lambda *s: i32(*s, low=0, high=5)), call="(ash x (neg y))", order=0),
    binary("bit-and", jnp.bitwise_and, INTS, UINTS, BOOLS, order=0),
    binary("bit-or", jnp.bitwise_or, INTS, UINTS, BOOLS, order=0),
    binary("bit-xor", jnp.bitwise_xor, INTS, UINTS, BOOLS, order=0),
]

COMPARISON = [
    *(
        binary(name, function, (lambda *s: i32(*s, low=0, high=3),) * 2, FLOATS, UINTS, MIXED, order=0)
        for name, function in (
            ("=", equals), ("==", equals), ("!=", jnp.not_equal), ("<", jnp.less), (">", jnp.greater),
            ("<=", jnp.less_equal), (">=", jnp.greater_equal),
        )
    ),
    binary("=", equals, BOOLS, order=0),
    unary("not", jnp.logical_not, truth, order=0),
    unary("logical-not", jnp.logical_not, truth, lambda *s: i32(*s, low=0, high=3), order=0),
    binary("logical-and", jnp.logical_and, BOOLS, (lambda *s: i32(*s, low=0, high=2),) * 2, order=0),
    binary("logical-or", jnp.logical_or, BOOLS, (lambda *s: i32(*s, low=0, high=2),) * 2, order=0),
    Entry("isnan", "(isnan (/ x x))", lambda x: jnp.isnan(x / x), [[i32(6, low=0, high=2)]], order=0),
    Entry("isfinite", "(isfinite (/ 1 x))", lambda x: jnp.isfinite(1 / x), [[i32(6, low=0, high=2)]], order=0),
    Entry(
        "where", "(where x y z)", jnp.where,
        [
            [truth(2, 3), real(3), real(2, 1)], [truth(4), i32(4), i32()], [truth(3), u32(2, 3), u32(3)],
            [truth(3), truth(3), truth(3)], [truth(4), real(4), i32(4)], [truth(), real(3), real(3)],
        ],
    ),
    # The value of the branch not taken does not reach the gradient of the other.
    Entry(
        "where", "(where (> x 0) (log (where (> x 0) x 1)) 0)",
        lambda x: jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1)), 0), [[real(6)]],
    ),
]

ACTIVATIONS = [
    unary("relu", jax.nn.relu, real, i32),
    unary("leaky-relu", jax.nn.leaky_relu, real),
    unary("leaky-relu", lambda x: jax.nn.leaky_relu(x, 0.2), real, call="(leaky-relu x 0.2)"),
    unary("sigmoid", jax.nn.sigmoid, real),
    unary("gelu", jax.nn.gelu, real),
    unary("gelu", lambda x: jax.nn.gelu(x, approximate=False), real, call="(gelu x :exact)"),
    unary("silu", jax.nn.silu, real),
    unary("softplus", jax.nn.softplus, real, i32),
    unary("elu", jax.nn.elu, real),
    unary("elu", lambda x: jax.nn.elu(x, 1.5), real, call="(elu x :alpha 1.5)"),
    unary("selu", jax.nn.selu, real),
    unary("celu", jax.nn.celu, real),
    unary("celu", lambda x: jax.nn.celu(x, 0.5), real, call="(celu x :alpha 0.5)"),
    Entry("softmax", "(softmax x)", jax.nn.softmax, [[real(4)], [real(2, 3)], [real(2, 2, 3)], [i32(3)]]),
    Entry("softmax", "(softmax x :axis 0)", lambda x: jax.nn.softmax(x, 0), [[real(3, 2)]]),
    Entry("log-softmax", "(log-softmax x)", jax.nn.log_softmax, [[real(4)], [real(2, 3)]]),
    Entry("log-softmax", "(log-softmax x :axis 0)", lambda x: jax.nn.log_softmax(x, 0), [[real(3, 2)]]),
]

ENTRIES = ARITHMETIC + COMPARISON + ACTIVATIONS
