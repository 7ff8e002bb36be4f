"""Entries, slices, scattering and order."""

import jax
import jax.numpy as jnp

from cases import Entry, i32, ranked, real, truth, u32

INDEX = i32(low=0, high=3)


def indices(*shape):
    return i32(*shape, low=0, high=3)


def unlike(*shape):
    return i32(*shape, low=-50, high=50)


def cut(x, start, length):
    return jax.lax.dynamic_slice_in_dim(x, start, length)


def top(x, k):
    return list(jax.lax.top_k(x, k))


def places(x):
    """Indices of which none occurs twice, made of ranks."""
    return jnp.argsort(x)[:2]


ENTRIES = [
    Entry("get", "(get x y)", lambda x, y: x[y],
          [[k(3, *s), indices(*i)] for k in (real, i32, u32, truth) for s in ((), (2,)) for i in ((), (4,), (2, 2))]),
    Entry("get", "(get x -1)", lambda x: x[-1], [[real(3)], [real(2, 3)], [u32(3)]]),
    Entry("call", "(x 1)", lambda x: x[1], [[real(3)], [real(2, 3)], [truth(2)]]),
    Entry("call", "(x 1:3)", lambda x: x[1:3], [[real(4)], [real(3, 2)], [i32(3)]]),
    Entry("slice", "(slice x 1 -1)", lambda x: x[1:-1], [[k(*s)] for k in (real, i32, u32, truth) for s in ((4,), (3, 2))]),
    Entry("slice", "(slice x -2)", lambda x: x[-2:], [[real(4)]]),
    Entry("dynamic-slice", "(dynamic-slice x y 2)", lambda x, y: cut(x, y, 2),
          [[real(4), i32(low=-2, high=6)], [real(3, 2), INDEX], [i32(4), INDEX], [truth(4), INDEX]]),
    Entry("dynamic-slice", "(dynamic-slice x (list y 1) '[1 2])",
          lambda x, y: jax.lax.dynamic_slice(x, (y, 1), (1, 2)), [[real(3, 3), INDEX]]),
    Entry("index-update", "(index-update x y z)", lambda x, y, z: x.at[y].set(z),
          [[real(3), INDEX, real()], [real(3, 2), INDEX, real(2)], [i32(3), INDEX, i32()]]),
    Entry("index-update", "(index-update x y z)", lambda x, y, z: x.at[y].set(z.astype(x.dtype)), [[i32(3), INDEX, real()], [u32(4), INDEX, real(low=0)]], order=0),
    Entry("index-update", "(index-update x 1:3 y)", lambda x, y: x.at[1:3].set(y), [[real(4), real(2)], [real(3, 2), real()]]),
    Entry("index-update", "(index-update x (slice (argsort z) 0 2) y)", lambda x, y, z: x.at[places(z)].set(y),
          [[real(3), real(2), ranked(3)], [real(3, 2), real(2, 2), ranked(3)], [u32(3), u32(2), ranked(3)]]),
    Entry("scatter-add", "(scatter-add x y z)", lambda x, y, z: x.at[y].add(z),
          [[k(*a), indices(*i), k(*v)] for k in (real, i32, u32)
           for a, i, v in (((3,), (4,), (4,)), ((3,), (), ()), ((3, 2), (4,), (4, 2)), ((3, 2), (2, 2), (2, 2, 2)))]),
    Entry("sort", "(sort x)", jnp.sort, [[k(*s)] for k in (ranked, unlike, u32) for s in ((5,), (2, 3))]),
    # Long rows are sorted in another way than short ones.
    Entry("sort", "(sort x)", jnp.sort, [[k(*s)] for k in (ranked, u32) for s in ((70,), (2, 40))], order=0),
    Entry("argsort", "(argsort x)", jnp.argsort, [[unlike(70)], [i32(3, 40, low=0, high=3)], [ranked(40)]], order=0),
    Entry("sort", "(sort x :axis 0)", lambda x: jnp.sort(x, 0), [[ranked(3, 2)]]),
    Entry("sort", "(sort x :reverse)", lambda x: jnp.sort(x, descending=True), [[ranked(5)], [u32(2, 3)]]),
    Entry("argsort", "(argsort x)", jnp.argsort, [[k(*s)] for k in (ranked, i32, u32) for s in ((5,), (2, 3))], order=0),
    Entry("argsort", "(argsort x :axis 0)", lambda x: jnp.argsort(x, 0), [[ranked(3, 2)]], order=0),
    Entry("argsort", "(argsort x :reverse)", lambda x: jnp.argsort(x, descending=True), [[ranked(5)], [i32(6, low=0, high=3)]], order=0),
    Entry("top_k", "(top_k x 2)", lambda x: top(x, 2), [[ranked(4)], [ranked(2, 3)], [i32(5)], [u32(4)]], order=0),
    Entry("top_k", "(first (top_k x 2))", lambda x: top(x, 2)[0], [[ranked(4)], [ranked(2, 3)]]),
    Entry("searchsorted", "(searchsorted (sort x) y)", lambda x, y: jnp.searchsorted(jnp.sort(x), y),
          [[ranked(5), real(4)], [ranked(9), real(2, 3)], [i32(6), i32(8)]], order=0),
    Entry("searchsorted", "(searchsorted (sort x) y :side :right)", lambda x, y: jnp.searchsorted(jnp.sort(x), y, side="right"),
          [[ranked(5), real(4)], [i32(6), i32(8)]], order=0),
    Entry("embedding", "(embedding x y)", lambda x, y: x[y], [[real(3, 2), indices(4)], [real(3, 2), indices(2, 2)]]),
]
