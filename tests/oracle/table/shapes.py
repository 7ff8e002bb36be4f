"""Shapes, arrangement, creation and matrices."""

import jax
import jax.numpy as jnp

from cases import Entry, i32, real, truth, u32


def each(name, call, function, *shapes, order=2, kinds=(real, i32, u32, truth), **more):
    """A call that only moves elements: the same for all dtypes."""
    return Entry(name, call, function, [[kind(*s)] for kind in kinds for s in shapes], order=order, **more)


NUMBERS = (real, i32, u32)

SHAPES = [
    each("reshape", "(reshape x '[3 2])", lambda x: x.reshape(3, 2), (2, 3), (6,)),
    each("reshape", "(reshape x 2 -1)", lambda x: x.reshape(2, -1), (2, 3), (4, 1)),
    each("reshape", "(reshape x '[1])", lambda x: x.reshape(1), ()),
    each("transpose", "(transpose x)", jnp.transpose, (2, 3), (4,), (2, 1, 3)),
    each("transpose", "(transpose x '[1 2 0])", lambda x: jnp.transpose(x, (1, 2, 0)), (2, 3, 2)),
    each("tr", "(tr x)", jnp.transpose, (3, 2)),
    each("swapaxes", "(swapaxes x 0 -1)", lambda x: jnp.swapaxes(x, 0, -1), (2, 3), (2, 1, 3)),
    each("expand-dims", "(expand-dims x 0)", lambda x: jnp.expand_dims(x, 0), (3,), ()),
    each("expand-dims", "(expand-dims x -1)", lambda x: jnp.expand_dims(x, -1), (2, 3)),
    each("squeeze", "(squeeze x)", jnp.squeeze, (1, 3, 1), batches=False),
    each("squeeze", "(squeeze x :axis 0)", lambda x: jnp.squeeze(x, 0), (1, 3)),
    each("broadcast-to", "(broadcast-to x '[2 3])", lambda x: jnp.broadcast_to(x, (2, 3)), (3,), (2, 1), ()),
    each("flip", "(flip x)", jnp.flip, (4,), (2, 3)),
    each("flip", "(flip x :axis 1)", lambda x: jnp.flip(x, 1), (2, 3)),
    each("reverse", "(reverse x)", lambda x: jnp.flip(x, 0), (4,), (2, 3)),
    each("tile", "(tile x 2)", lambda x: jnp.tile(x, 2), (3,), (2, 2)),
    each("tile", "(tile x '[2 1 2])", lambda x: jnp.tile(x, (2, 1, 2)), (2,), (2, 3)),
    each("pad", "(pad x 1)", lambda x: jnp.pad(x, 1), (3,), (2, 2)),
    each("pad", "(pad x '[[1 0] [0 2]] :value 3)", lambda x: jnp.pad(x, ((1, 0), (0, 2)), constant_values=3), (2, 2), kinds=NUMBERS),
    each("roll", "(roll x 1)", lambda x: jnp.roll(x, 1), (4,), (2, 3)),
    each("roll", "(roll x -2 :axis 1)", lambda x: jnp.roll(x, -2, 1), (2, 3)),
    each("roll", "(roll x '[1 -1] :axis '[0 1])", lambda x: jnp.roll(x, (1, -1), (0, 1)), (2, 3)),
    each("tril", "(tril x)", jnp.tril, (3, 3), (2, 2, 3)),
    each("tril", "(tril x 1)", lambda x: jnp.tril(x, 1), (2, 3)),
    each("triu", "(triu x)", jnp.triu, (3, 3), (2, 2, 3)),
    each("triu", "(triu x -1)", lambda x: jnp.triu(x, -1), (3, 3)),
    each("diag", "(diag x)", jnp.diag, (3,), (2, 3)),
    each("diag", "(diag x 1)", lambda x: jnp.diag(x, 1), (2,), (3, 3)),
    each("trace", "(trace x)", jnp.trace, (3, 3), (2, 3), kinds=NUMBERS),
    each("stack", "(stack x (neg x))", lambda x: jnp.stack([x, -x]), (3,), (2, 2), (), kinds=NUMBERS),
    each("stack", "(stack (list x x) :axis 1)", lambda x: jnp.stack([x, x], 1), (3,), (2, 2)),
    Entry("concat", "(concat x y)", lambda x, y: jnp.concatenate([x, y]),
          [[k(2, *s), k(3, *s)] for k in (real, i32, u32, truth) for s in ((), (2,))]),
    Entry("concat", "(concat x y x :axis 1)", lambda x, y: jnp.concatenate([x, y, x], 1), [[real(2, 2), real(2, 1)]]),
    each("tensor-split", "(tensor-split x 2)", lambda x: list(jnp.array_split(x, 2)), (5,), (4, 2)),
    each("tensor-split", "(tensor-split x '[1 2] :axis 1)", lambda x: list(jnp.split(x, [1, 2], 1)), (2, 4)),
    Entry("append-and-roll", "(append-and-roll x y)", lambda x, y: jnp.concatenate([x[1:], y[None]]),
          [[real(3), real()], [real(2, 3), real(3)], [i32(3), i32()]]),
]

CREATION = [
    Entry("zeros-like", "(zeros-like x)", jnp.zeros_like, [[k(2, 3)] for k in (real, i32, u32, truth)], order=0, runs=False, batches=False),
    Entry("ones-like", "(ones-like x)", jnp.ones_like, [[k(2, 3)] for k in (real, i32, u32, truth)], order=0, runs=False, batches=False),
    Entry("full", "(full '[2 3] x)", lambda x: jnp.full((2, 3), x), [[k()] for k in (real, i32, u32, truth)]),
    Entry("zeros", "(zeros '[2 3] :dtype :u32)", lambda: jnp.zeros((2, 3), "uint32"), [[]], order=0, runs=False),
    Entry("ones", "(ones 2 3)", lambda: jnp.ones((2, 3)), [[]], order=0, runs=False),
    Entry("eye", "(eye 2 3)", lambda: jnp.eye(2, 3), [[]], order=0, runs=False),
    Entry("eye", "(eye 3 :dtype :i32)", lambda: jnp.eye(3, dtype="int32"), [[]], order=0, runs=False),
    Entry("arange", "(arange 2 11 3)", lambda: jnp.arange(2, 11, 3), [[]], order=0, runs=False),
    Entry("arange", "(arange 0 1 0.3)", lambda: jnp.arange(0, 1, 0.3), [[]], order=0, runs=False),
    Entry("range", "(range 5)", lambda: jnp.arange(5), [[]], order=0, runs=False),
    Entry("linspace", "(linspace -1 2 7)", lambda: jnp.linspace(-1, 2, 7), [[]], order=0, runs=False),
    Entry("tensor", "(tensor x :f32)", lambda x: x.astype("float32"), [[i32(3)]], order=0),
    Entry("one-hot", "(one-hot x 4)", lambda x: jax.nn.one_hot(x, 4), [[i32(3, low=-1, high=5)], [i32(2, 2, low=0, high=4)], [i32(low=0, high=4)]], order=0),
    each("float", "(float x)", lambda x: x.astype(float), (2, 3), (), order=1),
    each("int", "(int x)", lambda x: x.astype("int32"), (2, 3), (), order=0, kinds=(real, i32, truth)),
    *(
        each("cast", f"(cast x :{short})", lambda x, n=name: x.astype(n), (2, 3), (), kinds=kinds, order=0)
        for short, name, kinds in (
            ("f32", "float32", (real, i32, u32, truth)), ("i32", "int32", (real, i32, u32, truth)),
            ("u32", "uint32", (lambda *s: real(*s, low=0, high=9), i32, u32, truth)),
        )
    ),
    each("cast", "(cast x :bool)", lambda x: x.astype(bool), (2, 3), kinds=(real, lambda *s: i32(*s, low=0, high=2)), order=0),
]

MATRIX_SHAPES = (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((2, 2, 3), (3, 2)), ((2, 1, 2, 3), (3, 3, 2)))

MATRICES = [
    Entry("@", "(@ x y)", jnp.matmul, [[k(*a), k(*b)] for k in (real, i32, u32) for a, b in MATRIX_SHAPES]),
    Entry("dot", "(dot x y)", jnp.dot, [[k(*a), k(*b)] for k in (real, i32) for a, b in (*MATRIX_SHAPES[:4], ((), (3,)))]),
    Entry("outer", "(outer x y)", jnp.outer, [[k(2), k(3)] for k in (real, i32, u32)]),
    Entry("outer", "(outer x y)", jnp.outer, [[real(2, 2), real(3)]]),
    *(
        Entry("einsum", f'(einsum "{pattern}" {names})', lambda *a, p=pattern: jnp.einsum(p, *a), [[k(*s) for s in shapes] for k in (real, i32)])
        for pattern, names, *shapes in (
            ("ij,jk->ik", "x y", (2, 3), (3, 2)), ("ij->ji", "x", (2, 3)), ("ii", "x", (3, 3)), ("ij->", "x", (2, 3)),
            ("i,j->ij", "x y", (2,), (3,)), ("btd,dhk->bhtk", "x y", (2, 2, 3), (3, 2, 2)),
            ("...ij,...jk->...ik", "x y", (2, 2, 3), (3, 2)), ("ab,bc,cd->ad", "x y z", (2, 3), (3, 2), (2, 2)),
            ("bii->b", "x", (2, 3, 3)), ("ij,ij->i", "x y", (2, 3), (2, 3)), ("ii->i", "x", (3, 3)),
        )
    ),
]

# Nothing to compute, but the shapes and the neutral elements must be right.
EMPTY = [
    Entry(name, f"({name} x)", function, [[real(0, 3)]], order=0, runs=False)
    for name, function in (("sum", jnp.sum), ("product", jnp.prod), ("transpose", jnp.transpose), ("exp", jnp.exp), ("any", jnp.any), ("all", jnp.all))
] + [
    Entry("sum", "(sum x :axis 0)", lambda x: jnp.sum(x, 0), [[real(0, 3)]], order=0, runs=False),
    Entry("@", "(@ x y)", jnp.matmul, [[real(2, 0), real(0, 3)]], order=0, runs=False),
]

ENTRIES = SHAPES + CREATION + MATRICES + EMPTY
