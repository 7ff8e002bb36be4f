"""Linear algebra."""

import jax.numpy as jnp
import jax.scipy.linalg as jsl

from cases import Entry, real


def mt(x):
    return jnp.swapaxes(x, -1, -2)


def definite(x):
    """A positive definite matrix, as DEFINITE writes it."""
    return x @ mt(x) + 2 * jnp.eye(x.shape[-1])


DEFINITE = "(+ (@ x (swapaxes x -1 -2)) (* 2 (eye (shape x -1))))"

# A triangle, and a matrix, that are far from singular.
STEADY = "(+ x (* 6 (eye (shape x -1))))"


def steady(x):
    return x + 6 * jnp.eye(x.shape[-1])


def triangular(lower, trans=0, unit=False):
    return lambda x, y: jsl.solve_triangular(steady(x), y, lower=lower, trans=trans, unit_diagonal=unit)


TRIANGLES = [
    Entry("cholesky", f"(cholesky {DEFINITE})", lambda x: jnp.linalg.cholesky(definite(x)), [[real(3, 3)], [real(2, 2, 2)], [real(60, 60, low=-0.1, high=0.1)]]),
    Entry("cholesky", "(cholesky x)", jnp.linalg.cholesky, [[real(2, 2)]], order=0),
    Entry("triangular-solve", f"(triangular-solve {STEADY} y)", triangular(False), [[real(3, 3), real(3)], [real(2, 2), real(2, 3)]]),
    Entry("triangular-solve", f"(triangular-solve {STEADY} y :lower)", triangular(True), [[real(3, 3), real(3, 1)], [real(2, 2, 2), real(2, 2, 1)], [real(53, 53, low=-0.1, high=0.1), real(53, 3)]]),
    Entry("triangular-solve", f"(triangular-solve {STEADY} y :lower :trans)", triangular(True, 1), [[real(3, 3), real(3, 2)]]),
    Entry("triangular-solve", f"(triangular-solve {STEADY} y :trans :unit)", triangular(False, 1, True), [[real(3, 3, low=-0.5, high=0.5), real(3)]]),
    Entry("cho-solve", f"(cho-solve {STEADY} y)", lambda x, y: jsl.cho_solve((steady(x), True), y), [[real(3, 3), real(3)], [real(2, 2), real(2, 3)], [real(50, 50, low=-0.1, high=0.1), real(50)]]),
]

SYSTEMS = [
    Entry("solve", f"(solve {STEADY} y)", lambda x, y: jnp.linalg.solve(steady(x), y), [[real(3, 3), real(3)], [real(2, 2, 2), real(2, 2, 1)], [real(50, 50, low=-0.1, high=0.1), real(50, 2)]]),
    Entry("solve", "(solve x y)", jnp.linalg.solve, [[real(4, 4), real(4)]], order=0),
    Entry("inv", f"(inv {STEADY})", lambda x: jnp.linalg.inv(steady(x)), [[real(3, 3)], [real(2, 2, 2)]]),
    Entry("det", "(det x)", jnp.linalg.det, [[real(2, 2)], [real(3, 3)]]),
    Entry("det", f"(det (* 0.2 {STEADY}))", lambda x: jnp.linalg.det(0.2 * steady(x)), [[real(4, 4)], [real(2, 5, 5)]]),
    Entry("slogdet", f"(slogdet {STEADY})", lambda x: list(jnp.linalg.slogdet(steady(x))), [[real(3, 3)], [real(2, 2, 2)], [real(60, 60, low=-0.1, high=0.1)]]),
    Entry("slogdet", "(slogdet x)", lambda x: list(jnp.linalg.slogdet(x)), [[real(5, 5)]], order=0),
    Entry("lu", "(lu x)", lambda x: list(jsl.lu(x)), [[real(3, 3)], [real(60, 60)]], order=0, batches=False),
    Entry("lu", "(lu x)", lambda x: list(jsl.lu(x)), [[real(2, 3)], [real(4, 2)], [real(50, 20)]], order=0, batches=False),
    Entry("lu", f"(rest (lu (concat {STEADY} x :axis -1)))", lambda x: list(jsl.lu(jnp.concatenate([steady(x), x], -1))[1:]), [[real(2, 2)]]),
    Entry("lu", f"(rest (lu (concat {STEADY} x :axis -2)))", lambda x: list(jsl.lu(jnp.concatenate([steady(x), x], -2))[1:]), [[real(2, 2)]]),
    Entry("lu", f"(rest (lu {STEADY}))", lambda x: list(jsl.lu(steady(x))[1:]), [[real(3, 3)], [real(2, 2)]]),
]


NORMS = [
    Entry("vector-norm", "(vector-norm x)", lambda x: jnp.linalg.norm(x.reshape(-1)), [[real(3)], [real(2, 3)]]),
    *(Entry("vector-norm", f"(vector-norm x :ord {o} :axis -1)", lambda x, o=o: jnp.linalg.norm(x, o, -1), [[real(3)], [real(2, 3)]]) for o in (1, 3, 2.5)),
    Entry("vector-norm", "(vector-norm x :ord (/ 1.0 0.0) :axis 0 :keepdims)", lambda x: jnp.linalg.norm(x, jnp.inf, 0, True), [[real(2, 3)]]),
    Entry("vector-norm", "(vector-norm x :ord 0)", lambda x: jnp.linalg.norm(x, 0), [[real(3)]], order=0),
    Entry("matrix-norm", "(matrix-norm x)", lambda x: jnp.linalg.norm(x, axis=(-2, -1)), [[real(2, 3)], [real(2, 2, 2)]]),
    *(Entry("matrix-norm", f"(matrix-norm x :ord {o})", lambda x, o=o: jnp.linalg.norm(x, o, (-2, -1)), [[real(2, 3)], [real(2, 2, 2)]]) for o in (1, -1)),
    Entry("matrix-norm", "(matrix-norm x :ord (/ -1.0 0.0) :keepdims)", lambda x: jnp.linalg.norm(x, -jnp.inf, (-2, -1), True), [[real(2, 3)]]),
    *(Entry("matrix-norm", f"(matrix-norm (+ x (* 3 (eye 2))) :ord {o})", lambda x, o=o: jnp.linalg.norm(x + 3 * jnp.eye(2), o, (-2, -1)), [[real(2, 2)]], order=1) for o in (2, -2)),
    Entry("matrix-norm", "(matrix-norm (+ x (* 3 (eye 2))) :ord :nuc)", lambda x: jnp.linalg.norm(x + 3 * jnp.eye(2), "nuc", (-2, -1)), [[real(2, 2)]], order=1),
    *(Entry("norm", f"(norm x :ord {o})", lambda x, o=o: jnp.linalg.norm(x, o), [[real(3)], [real(2, 3)]]) for o in (1, -1)),
    Entry("norm", "(norm x :ord 3 :axis 0 :keepdims)", lambda x: jnp.linalg.norm(x, 3, 0, True), [[real(2, 3)]]),
    Entry("norm", "(norm x :ord 1 :axis '[-1 0])", lambda x: jnp.linalg.norm(x, 1, (-1, 0)), [[real(2, 3)], [real(2, 2, 2)]]),
]


def reduced(x):
    return list(jnp.linalg.qr(x))


ORTHOGONAL = [
    Entry("qr", "(qr x)", reduced, [[real(3, 4)], [real(2, 3)], [real(5, 5)], [real(4, 2)], [real(70, 50)]], order=0, batches=False),
    Entry("qr", f"(qr {STEADY})", lambda x: reduced(steady(x)), [[real(3, 3)], [real(2, 2, 2)]]),
    Entry("qr", "(qr (concat x (* 3 (eye 2)) :axis -2))", lambda x: reduced(jnp.concatenate([x, 3 * jnp.eye(2)], -2)), [[real(2, 2)]]),
]

# A matrix whose eigenvalues and singular values are apart.
APART = "(+ x (diag (+ 1 (arange (shape x -1)))))"


def apart(x):
    return x + jnp.diag(jnp.arange(1.0, x.shape[-1] + 1))


def small(*shape):
    return real(*shape, low=-0.3, high=0.3)


# What does not depend on the signs of vectors.
VECTORS = "(fn [[w v]] (list w (* v v) (* v (sum v :axis -2 :keepdims))))"


def vectors(pair):
    w, v = pair
    return [w, v * v, v * v.sum(-2, keepdims=True)]


SINGULAR = "(fn [[u s vt]] (list s (* u u) (* (swapaxes u -1 -2) (sum vt :axis -1 :keepdims))))"


def singular(x):
    u, s, vt = jnp.linalg.svd(x, full_matrices=False)
    return [s, u * u, mt(u) * vt.sum(-1, keepdims=True)]


SPECTRAL = [
    Entry("eigh", f"({VECTORS} (eigh {APART}))", lambda x: vectors(jnp.linalg.eigh(apart(x))), [[small(3, 3)], [small(2, 4, 4)], [small(20, 20)]]),
    Entry("eigh", "(first (eigh x))", lambda x: jnp.linalg.eigh(x)[0], [[real(5, 5)], [real(1, 1)]], order=0),
    Entry("eigvalsh", f"(eigvalsh {APART})", lambda x: jnp.linalg.eigvalsh(apart(x)), [[small(3, 3)], [small(2, 2, 2)], [small(21, 21)]]),
    Entry("svd", f"({SINGULAR} (svd {APART}))", lambda x: singular(apart(x)), [[small(3, 3)], [small(2, 2, 2)], [small(20, 20)]]),
    Entry("svd", "(second (svd x))", lambda x: jnp.linalg.svd(x, full_matrices=False)[1], [[real(4, 3)], [real(2, 5)], [real(3, 1)]], order=1),
    Entry("svd", f"({SINGULAR} (svd (concat {APART} y :axis -2)))", lambda x, y: singular(jnp.concatenate([apart(x), y], -2)), [[small(3, 3), small(2, 3)]]),
    Entry("pinv", "(pinv x)", jnp.linalg.pinv, [[real(4, 2)], [real(2, 2, 3)]], order=0),
    Entry("pinv", f"(pinv {APART})", lambda x: jnp.linalg.pinv(apart(x)), [[small(3, 3)]]),
    Entry("pinv", f"(pinv (concat {APART} y :axis -2))", lambda x, y: jnp.linalg.pinv(jnp.concatenate([apart(x), y], -2)), [[small(2, 2), small(1, 2)]]),
    Entry("matrix-rank", "(matrix-rank x)", jnp.linalg.matrix_rank, [[real(3, 3)], [real(2, 4)]], order=0),
    Entry("lstsq", f"(lstsq (concat {APART} y :axis 0) z)", lambda x, y, z: list(jnp.linalg.lstsq(jnp.concatenate([apart(x), y], 0), z)), [[real(2, 2), real(2, 2), real(4, 2)]]),
    Entry("lstsq", "(lstsq x y)", lambda x, y: list(jnp.linalg.lstsq(x, y)), [[real(5, 3), real(5, 1)], [real(3, 3), real(3, 1)]], order=0, batches=False),
]

PRODUCTS = [
    Entry("matrix-power", "(matrix-power x 3)", lambda x: jnp.linalg.matrix_power(x, 3), [[real(3, 3)], [real(2, 2, 2)]]),
    Entry("matrix-power", f"(matrix-power {STEADY} -2)", lambda x: jnp.linalg.matrix_power(steady(x), -2), [[real(3, 3)]]),
    Entry("matrix-power", "(matrix-power x 0)", lambda x: jnp.linalg.matrix_power(x, 0), [[real(3, 3)]], order=0),
    Entry("expm", "(expm x)", jsl.expm, [[real(3, 3)], [real(2, 2, 2)], [real(12, 12, low=-1, high=1)]]),
    Entry("kron", "(kron x y)", jnp.kron, [[real(2, 3), real(2, 2)], [real(3), real(2)]]),
    Entry("multi-dot", "(multi-dot (list x y z))", lambda x, y, z: jnp.linalg.multi_dot([x, y, z]), [[real(2, 3), real(3, 4), real(4, 2)], [real(3), real(3, 2), real(2)]]),
]

ENTRIES = TRIANGLES + SYSTEMS + NORMS + ORTHOGONAL + SPECTRAL + PRODUCTS
