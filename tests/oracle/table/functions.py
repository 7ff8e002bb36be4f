"""Functions of functions: lists, trees, loops, transformations."""

import jax
import jax.numpy as jnp

from cases import Entry, i32, positive, real


def scanned(step, init, xs):
    return list(jax.lax.scan(step, init, xs))


def looped(count, body, init):
    for i in range(count):
        init = body(i, init)
    return init


def cube(x):
    return jnp.sum(x**3)


def rolled(w, x):
    return jnp.tanh(w @ x)


LISTS = [
    Entry("first", "(first x)", lambda x: x[0], [[real(3)], [real(2, 3)], [i32(3)]]),
    Entry("second", "(second x)", lambda x: x[1], [[real(3)], [real(2, 3)]]),
    Entry("last", "(last x)", lambda x: x[-1], [[real(3)], [real(2, 3)]]),
    Entry("rest", "(rest x)", lambda x: x[1:], [[real(3)], [real(2, 3)]]),
    Entry("nth", "(nth x -2)", lambda x: x[-2], [[real(3)], [real(2, 3)]]),
    Entry("take", "(take 2 x)", lambda x: x[:2], [[real(3)], [real(3, 2)]]),
    Entry("drop", "(drop 1 x)", lambda x: x[1:], [[real(3)], [real(3, 2)]]),
    Entry("map", "(map (fn [v] (* v (sin v))) x)", lambda x: [v * jnp.sin(v) for v in x], [[real(3)], [real(2, 3)]]),
    Entry("map", "(map (fn [u v] (@ u v)) x y)", lambda x, y: [u @ v for u, v in zip(x, y, strict=True)], [[real(2, 3), real(2, 3)]]),
    Entry("mapv", "(mapv (fn [v] (softmax v)) x)", lambda x: jnp.stack([jax.nn.softmax(v) for v in x]), [[real(3, 2)]]),
    Entry("reduce", "(reduce (fn [a v] (+ (* 0.5 a) (sin v))) 0.0 x)", lambda x: looped(len(x), lambda i, a: 0.5 * a + jnp.sin(x[i]), 0.0), [[real(4)], [real(3, 2)]]),
    Entry("reduce", "(reduce (fn [h m] (tanh (@ m h))) x y)", lambda x, y: looped(3, lambda i, h: rolled(y[i], h), x), [[real(2), real(3, 2, 2)]]),
    Entry("apply", "(apply + (list x y))", lambda x, y: x + y, [[real(3), real(2, 3)]]),
    Entry("zip", "(map (fn [[u v]] (* u v)) (zip x y))", lambda x, y: [u * v for u, v in zip(x, y, strict=True)], [[real(3), real(3)]]),
]

TREES = [
    Entry("tree-map", "(tree-map (fn [v] (* v v)) {:b x :a (list y)})", lambda x, y: {"b": x * x, "a": [y * y]}, [[real(3), real()]]),
    Entry("tree-map", "(tree-map - {:a x} {:a y})", lambda x, y: {"a": x - y}, [[real(3), real(3)]]),
    Entry("tree-reduce", "(tree-reduce (fn [a v] (+ (* 0.5 a) (sum v))) {:b x :a y} 0.0)",
          lambda x, y: 0.5 * (0.5 * 0 + jnp.sum(y)) + jnp.sum(x), [[real(3), real(2, 2)]]),
    Entry("flatten", "(flatten {:b x :a (list y 3.0)})", lambda x, y: [y, 3.0, x], [[real(3), real(2)]], order=0, batches=False),
    Entry("tree-unflatten", "(tree-unflatten {:b 0 :a 0} (list x y))", lambda x, y: {"b": y, "a": x}, [[real(3), real(2)]]),
    Entry("update", "(update {:a x :b y} :a square)", lambda x, y: {"a": x * x, "b": y}, [[real(3), real(2)]]),
    Entry("assoc", "(assoc {:a x} :b (* 2 y))", lambda x, y: {"a": x, "b": 2 * y}, [[real(3), real(2)]]),
    Entry("merge", "(merge {:a x :b x} {:b (sin y)})", lambda x, y: {"a": x, "b": jnp.sin(y)}, [[real(3), real(2)]]),
]

LOOPS = [
    Entry("scan", "(scan (fn [c v] (list (tanh (+ c v)) (* c v))) x y)",
          lambda x, y: scanned(lambda c, v: (jnp.tanh(c + v), c * v), x, y), [[real(), real(4)], [real(3), real(2, 3)]]),
    Entry("scan", "(scan (fn [{:keys [h k]} {:keys [u v]}] (list {:h (sin (+ h u)) :k (* k v)} {:s (+ h k)})) {:h x :k y} {:u z :v (cos z)})",
          lambda x, y, z: scanned(lambda c, i: ({"h": jnp.sin(c["h"] + i["u"]), "k": c["k"] * i["v"]}, {"s": c["h"] + c["k"]}),
                                  {"h": x, "k": y}, {"u": z, "v": jnp.cos(z)}), [[real(), real(), real(3)], [real(2), real(2), real(3, 2)]]),
    Entry("repeat", "(repeat [i 4] [a x] (sin (+ a (* 0.1 i))))", lambda x: looped(4, lambda i, a: jnp.sin(a + 0.1 * i), x), [[real(3)], [real()]]),
    Entry("repeat", "(repeat [i 3] [[a b] (list x y)] (list b (* 0.5 (+ a b))))",
          lambda x, y: list(looped(3, lambda i, s: (s[1], 0.5 * (s[0] + s[1])), (x, y))), [[real(3), real(3)]]),
    Entry("repeat", "(repeat [i 20] [a x] (* 0.9 (+ a (sin a))))", lambda x: looped(20, lambda i, a: 0.9 * (a + jnp.sin(a)), x), [[positive(2)]]),
    Entry("while", "(second (while (< n 3) [[n a] (list 0 x)] (list (+ n 1) (* a (cos a)))))", lambda x: looped(3, lambda i, a: a * jnp.cos(a), x), [[real(3)]]),
]

SELF = "(fn [v] (sum (* v (sin v) (sum v))))"


def itself(v):
    return jnp.sum(v * jnp.sin(v) * jnp.sum(v))


TRANSFORMS = [
    Entry("grad", f"((grad {SELF}) x)", jax.grad(itself), [[real(3)]], order=1),
    Entry("value-and-grad", f"((value-and-grad {SELF}) x)", lambda x: list(jax.value_and_grad(itself)(x)), [[real(3)]], order=1),
    Entry("value-and-grad", "((value-and-grad (fn [p] (sum (* (:u p) (:v p)))) ) {:v y :u x})",
          lambda x, y: list(jax.value_and_grad(lambda p: jnp.sum(p["u"] * p["v"]))({"v": y, "u": x})), [[real(3), real(3)]], order=1),
    Entry("grad", "((grad (fn [u v] (sum (* u u v))) :wrt '[0 1]) x y)",
          lambda x, y: list(jax.grad(lambda u, v: jnp.sum(u * u * v), (0, 1))(x, y)), [[real(3), real(3)]], order=1),
    Entry("jacobian", "((jacobian (fn [v] (* v (sum (sin v))))) x)", jax.jacobian(lambda v: v * jnp.sum(jnp.sin(v))), [[real(3)], [real(2, 2)]], order=1),
    Entry("hessian", f"((hessian {SELF}) x)", jax.hessian(itself), [[real(3)]], order=1),
    Entry("hessian", "((hessian (fn [v] (sum (** v 3)))) x)", jax.hessian(cube), [[real(3)]], order=1),
    Entry("stop-gradient", "(* x (stop-gradient (sin x)))", lambda x: x * jax.lax.stop_gradient(jnp.sin(x)), [[real(3)]], order=1),
    Entry("checkpoint", "((checkpoint (fn [v] (sin (* v v)))) x)", jax.checkpoint(lambda v: jnp.sin(v * v)), [[real(3)]]),
    Entry("vmap", "((vmap (vmap (fn [u v] (* u (sum v))) '[0 nil]) '[nil 0]) x y)",
          jax.vmap(jax.vmap(lambda u, v: u * jnp.sum(v), in_axes=(0, None)), in_axes=(None, 0)), [[real(3), real(2, 2)]]),
    Entry("vmap", "((vmap (fn [p] {:s (sum (:u p)) :t (* 2 (:v p))})) {:u x :v y})",
          lambda x, y: jax.vmap(lambda p: {"s": jnp.sum(p["u"]), "t": 2 * p["v"]})({"u": x, "v": y}), [[real(2, 3), real(2)]]),
    Entry("jvp", "((jvp (fn [u v] (* u (sin v)))) x y y x)",
          lambda x, y: list(jax.jvp(lambda u, v: u * jnp.sin(v), (x, y), (y, x))), [[real(3), real(3)]]),
    Entry("if", "(if (> (ndim x) 1) (sum x :axis 1) (sin x))", lambda x: x.sum(1) if x.ndim > 1 else jnp.sin(x), [[real(3)]]),
]

ENTRIES = LISTS + TREES + LOOPS + TRANSFORMS
