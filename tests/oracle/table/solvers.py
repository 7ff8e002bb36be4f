"""Solvers, against the solutions written in closed form, by dense matrices or by the same steps in JAX."""

import jax
import jax.numpy as jnp

from cases import Entry, Operand, ranked, real


def near(low, high, *shape):
    """Floats of a range."""
    return Operand(shape, "float32", low, high)


def dominant(x):
    """A matrix that every method solves well."""
    return 4 * jnp.eye(x.shape[0]) + x


DOMINANT = "(+ (* 4 (eye {n})) {x})"


def symmetric(x):
    return dominant(0.25 * (x + x.T))


SYMMETRIC = "(+ (* 4 (eye {n})) (* 0.25 (+ x (transpose x))))"


def runge_kutta(f, y, ts, steps):
    rows = [y]
    for a, b in zip(ts[:-1], ts[1:], strict=True):
        h = (b - a) / steps
        for i in range(steps):
            t = a + i * h
            k1 = f(y, t)
            k2 = f(y + h / 2 * k1, t + h / 2)
            k3 = f(y + h / 2 * k2, t + h / 2)
            k4 = f(y + h * k3, t + h)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        rows.append(y)
    return jnp.stack(rows)


def euler(f, y, ts):
    rows = [y]
    for a, b in zip(ts[:-1], ts[1:], strict=True):
        y = y + (b - a) * f(y, a)
        rows.append(y)
    return jnp.stack(rows)


def logistic(x, k):
    """The solution of dy/dt = k y (1 - y) at the times 0, 1 and 2."""
    grown = jnp.exp(k * jnp.arange(3.0)[:, None])
    return x * grown / (1 + x * (grown - 1))


TIMES = jnp.array([0.0, 0.5, 1.25])

LOGISTIC = "(fn [y t k] (* k y (- 1 y)))"

ODE = [
    Entry("odeint", "(odeint (fn [y t k] (* t (- (sin y) (* k y)))) x [0 0.5 1.25] :args (list y) :method :rk4 :steps 2)", lambda x, k: runge_kutta(lambda y, t: t * (jnp.sin(y) - k * y), x, TIMES, 2), [[real(2), real(2)], [real(), real()]]),
    Entry("odeint", "(odeint (fn [y t] (* (+ t y) (cos y))) x [0 0.5 1.25] :method :euler)", lambda x: euler(lambda y, t: (t + y) * jnp.cos(y), x, TIMES), [[real(2)]]),
    Entry("odeint", f"(odeint {LOGISTIC} x [0 1 2] :args (list y) :rtol 1e-6 :atol 1e-7)", logistic, [[near(0.2, 0.8, 2), near(0.5, 1.5)]], order=0),
    # The adjoint equation has no derivative in forward mode, in JAX neither.
    Entry("odeint", f"((grad (fn [x y] (sum (square (odeint {LOGISTIC} x [0 1 2] :args (list y) :rtol 1e-6 :atol 1e-7)))) :wrt '[0 1]) x y)", lambda x, k: list(jax.grad(lambda x, k: jnp.sum(logistic(x, k) ** 2), (0, 1))(x, k)), [[near(0.2, 0.8, 2), near(0.5, 1.5)]], order=0),
    Entry("odeint", f"(odeint {LOGISTIC} x [0 1 2] :args (list y) :rtol 1e-6 :atol 1e-7 :max-steps 40 :gradient :recompute)", logistic, [[near(0.3, 0.7, 2), near(0.5, 1.0)]], batches=False),
]

SYSTEMS = [
    Entry("cg", f"(cg {SYMMETRIC.format(n=3)} y)", lambda x, y: jnp.linalg.solve(symmetric(x), y), [[real(3, 3), real(3)]]),
    Entry("cg", "(cg (fn [v d] (tree-map * d v)) {:a y} :args (list {:a x}))", lambda x, y: {"a": y / x}, [[near(1, 2, 3), real(3)]]),
    Entry("cg", "(cg (+ (* 8 (eye 40)) (* 0.25 (+ x (transpose x)))) y)", lambda x, y: jnp.linalg.solve(4 * jnp.eye(40) + symmetric(x), y), [[near(-1, 1, 40, 40), real(40)]], order=0, batches=False),
    Entry("gmres", f"(gmres {DOMINANT.format(n=3, x='x')} y)", lambda x, y: jnp.linalg.solve(dominant(x), y), [[near(-1, 1, 3, 3), real(3)]]),
    Entry("gmres", "(gmres (+ (* 12 (eye 40)) x) y)", lambda x, y: jnp.linalg.solve(8 * jnp.eye(40) + dominant(x), y), [[near(-1, 1, 40, 40), real(40)]], order=0, batches=False),
]

IMPLICIT = [
    # The real root of v + 4 v^3 = x.
    Entry("root", "(root (fn [v] (- (+ v (* 4 v v v)) x)) 1.0)", lambda x: jnp.sinh(jnp.arcsinh(x * 3 * jnp.sqrt(3.0)) / 3) / jnp.sqrt(3.0), [[near(0.5, 3)]]),
    Entry("root", "(root (fn [v m] (- (@ m v) y)) [1 1] :args (list (+ (* 4 (eye 2)) x)))", lambda x, y: jnp.linalg.solve(dominant(x), y), [[near(-1, 1, 2, 2), real(2)]]),
    # Newton's iteration for the square root.
    Entry("fixed-point", "(fixed-point (fn [v a] (* 0.5 (+ v (/ a v)))) (ones-like x) :args (list x))", jnp.sqrt, [[near(0.5, 3)], [near(0.5, 3, 3)]]),
    Entry("fixed-point", "(fixed-point (fn [v m b] (+ (* 0.25 (@ m v)) b)) (zeros-like y) :args (list x y))", lambda x, y: jnp.linalg.solve(jnp.eye(2) - 0.25 * x, y), [[near(-1, 1, 2, 2), real(2)]]),
    # Values alone: a minimum is flat, and known to the root of the rounding.
    Entry("minimize", "(round (* 100 (:x (minimize (fn [v] (sum (+ (square (- v x)) (* 0.1 (square (square (- v x))))))) y))))", lambda x, y: jnp.round(100 * x) + 0 * y, [[ranked(3), real(3)]], order=0, batches=False),
    Entry("minimize", "(round (* 100 (:x (minimize (fn [v] (sum (+ (square (- v x)) (* 0.1 (square (square (- v x))))))) y :method :l-bfgs))))", lambda x, y: jnp.round(100 * x) + 0 * y, [[ranked(3), real(3)]], order=0, batches=False),
]


def interpolated(x, y):
    return jnp.interp(x, jnp.array([-1.5, -0.25, 0.0, 1.0, 1.5]), y)


POINTS = [
    Entry("interp", "(interp x [-1.5 -0.25 0 1 1.5] y)", interpolated, [[ranked(7), real(5)], [ranked(2, 3), real(5)]]),
    Entry("interp", "(interp x y [1 2 4])", lambda x, y: jnp.interp(x, y, jnp.array([1.0, 2.0, 4.0])), [[near(-1, 1, 4), near(1, 3, 3)]], order=0, batches=False),
    Entry("interp", "(interp x (arange 10) (sin (arange 10)))", lambda x: jnp.interp(x, jnp.arange(10.0), jnp.sin(jnp.arange(10.0))), [[near(1, 8, 20)]], order=0, batches=False),
    Entry("trapezoid", "(trapezoid x y)", lambda x, y: jnp.trapezoid(x, y), [[real(4), real(4)], [real(2, 3), real(3)], [real(2, 3), real(2, 3)]]),
    Entry("trapezoid", "(trapezoid x :dx 0.5 :axis 0)", lambda x: jnp.trapezoid(x, dx=0.5, axis=0), [[real(4)], [real(2, 3)], [real(200, 2)]]),
]

ENTRIES = ODE + SYSTEMS + IMPLICIT + POINTS
