"""Expressions that bind names: let, functions, loops, maps, transformations."""

from programs.node import Node
from programs.simple import SHAPES, UNARY


def inside(g, shape, depth, scope, names):
    """An expression that sees more names, and uses them all."""
    tensors = {n: s for n, s in names.items() if isinstance(s, tuple)}
    scope = scope.tensor(**tensors)
    for name, entries in names.items():
        if isinstance(entries, dict):
            scope = scope.dictionary(name, entries)
    body = g.expression(shape, depth, scope)
    for name, kind in names.items():
        if name not in body.free:
            sheaf, python = name, name
            if isinstance(kind, dict):
                key = next(iter(kind))
                sheaf, python = f"(:{key} {name})", f'{name}["{key}"]'
            body = Node(shape, f"(+ $0 (* 0.3 (mean {sheaf})))", f"(($0) + 0.3 * jnp.mean({python}))", (body,), uses=(name,))
    return body


def let(g, shape, depth, scope):
    name, bound = g.name(), g.pick(SHAPES)
    parts = (g.expression(bound, depth, scope), inside(g, shape, depth, scope, {name: bound}))
    return Node(shape, f"(let [{name} $0] $1)", f"(lambda {name}: $1)($0)", parts, ((), (name,)))


def arranged_twice(g, shape, depth, scope):
    """A tensor in two arrangements: a matrix and its transpose, or a vector as a column and as a row."""
    if len(shape) != 2 or shape[0] != shape[1]:
        return None
    y = g.name()
    if g.random.random() < 0.5:
        part = g.expression(shape, depth, scope)
        return Node(shape, f"(let [{y} $0] (+ (tanh {y}) (transpose {y})))", f"(lambda {y}: jnp.tanh({y}) + {y}.T)($0)", (part,))
    part = g.expression(shape[:1], depth, scope)
    pairs = f"(let [{y} $0] (- (expand-dims {y} 1) (tanh (expand-dims {y} 0))))"
    return Node(shape, pairs, f"(lambda {y}: {y}[:, None] - jnp.tanh({y}[None, :]))($0)", (part,))


def dictionary(g, shape, depth, scope):
    """A dictionary by name, or taken apart."""
    first, second = g.pick(SHAPES), g.pick(SHAPES)
    values = (g.expression(first, depth, scope), g.expression(second, depth - 1, scope))
    if g.random.random() < 0.5:
        d = g.name("d")
        body = inside(g, shape, depth, scope, {d: {"u": first, "v": second}})
        return Node(shape, f"(let [{d} {{:v $1 :u $0}}] $2)", f'(lambda {d}: $2)({{"u": $0, "v": $1}})', (*values, body), ((), (), (d,)))
    u, v = g.name(), g.name()
    body = inside(g, shape, depth, scope, {u: first, v: second})
    pattern = g.pick([f"{{:keys [{u} {v}]}} {{:{u} $0 :{v} $1}}", f"[{u} {v}] (list $0 $1)"])
    return Node(shape, f"(let [{pattern}] $2)", f"(lambda {u}, {v}: $2)($0, $1)", (*values, body), ((), (), (u, v)))


def closure(g, shape, depth, scope):
    """A function that is defined and then called, maybe more than once."""
    f, a, b = g.name("f"), g.name(), g.name()
    parameters, result = (g.pick(SHAPES), g.pick(SHAPES)), g.pick([shape, g.pick(SHAPES)])
    body = inside(g, result, depth - 1, scope, {a: parameters[0], b: parameters[1]})
    outside = g.expression(shape, depth, scope.function(f, parameters, result))
    if f not in outside.free:
        given = tuple(g.leaf(s, scope) for s in parameters)
        outside = Node(shape, f"(+ $0 (mean ({f} $1 $2)))", f"(($0) + jnp.mean({f}($1, $2)))", (outside, *given), uses=(f,))
    return Node(shape, f"(let [{f} (fn [{a} {b}] $0)] $1)", f"(lambda {f}: $1)(lambda {a}, {b}: $0)", (body, outside), ((a, b), (f,)))


def call(g, shape, depth, scope):
    fitting = [(f, parameters) for f, (parameters, result) in scope.functions.items() if result == shape]
    if not fitting:
        return None
    f, (a, b) = g.pick(fitting)
    return Node(shape, f"({f} $0 $1)", f"{f}($0, $1)", (g.expression(a, depth - 1, scope), g.expression(b, depth - 1, scope)), uses=(f,))


def repeat(g, shape, depth, scope):
    i, a = g.name("i"), g.name()
    count = g.pick([1, 2, 3, 4])
    init = g.expression(shape, depth, scope)
    body = inside(g, shape, depth - 1, scope.counter(i), {a: shape})
    return Node(shape, f"(repeat [{i} {count}] [{a} $0] $1)", f"repeat({count}, $0, lambda {i}, {a}: $1)", (init, body), ((), (i, a)))


def long_repeat(g, shape, depth, scope):
    """More iterations than are unrolled."""
    i, a = g.name("i"), g.name()
    body = inside(g, shape, depth - 2, scope.counter(i), {a: shape})
    sheaf = f"(repeat [{i} 20] [{a} $0] (* 0.7 (tanh (+ {a} $1))))"
    python = f"repeat(20, $0, lambda {i}, {a}: 0.7 * tanh({a} + ($1)))"
    return Node(shape, sheaf, python, (g.expression(shape, depth, scope), body), ((), (i, a)))


def repeat_pair(g, shape, depth, scope):
    i, a, b = g.name("i"), g.name(), g.name()
    other = g.pick(SHAPES)
    inner, names = scope.counter(i), {a: shape, b: other}
    parts = (g.expression(shape, depth, scope), g.expression(other, depth - 1, scope), inside(g, shape, depth - 1, inner, names), inside(g, other, depth - 1, inner, names))
    sheaf = f"(first (repeat [{i} 3] [[{a} {b}] (list $0 $1)] (list $2 $3)))"
    python = f"repeat(3, ($0, $1), lambda {i}, s: (lambda {a}, {b}: ($2, $3))(*s))[0]"
    return Node(shape, sheaf, python, parts, ((), (), (i, a, b), (i, a, b)))


def while_loop(g, shape, depth, scope):
    n, a = g.name("i"), g.name()
    count = g.pick([1, 2, 3])
    parts = (g.expression(shape, depth, scope), inside(g, shape, depth - 1, scope.counter(n), {a: shape}))
    sheaf = f"(second (while (< {n} {count}) [[{n} {a}] (list 0 $0)] (list (+ {n} 1) $1)))"
    return Node(shape, sheaf, f"repeat({count}, $0, lambda {n}, {a}: $1)", parts, ((), (n, a)))


def reduce(g, shape, depth, scope):
    """Over the rows of a tensor."""
    a, row = g.name(), g.name()
    of = g.pick([(), (2,), (3,)])
    body = inside(g, shape, depth - 1, scope, {a: shape, row: of})
    parts = (g.expression(shape, depth, scope), g.expression((3, *of), depth, scope), body)
    return Node(shape, f"(reduce (fn [{a} {row}] $2) $0 $1)", f"reduce(lambda {a}, {row}: $2, $0, $1)", parts, ((), (), (a, row)))


def layers(g, shape, depth, scope):
    """Over a list of dictionaries."""
    h, layer = g.name(), g.name("d")
    if shape[-1:] != (3,) or "p" not in scope.dicts:
        return None
    body = inside(g, shape, depth - 1, scope.tensor(**{h: shape}).dictionary(layer, {"W": (3, 3), "b": (3,)}), {})
    sheaf = f"(reduce (fn [{h} {layer}] (+ (tanh (+ (@ {h} (:W {layer})) (:b {layer}))) $1)) $0 (:layers p))"
    python = f'reduce(lambda {h}, {layer}: tanh({h} @ {layer}["W"] + {layer}["b"]) + ($1), $0, p["layers"])'
    return Node(shape, sheaf, python, (g.expression(shape, depth, scope), body), ((), (h, layer)), uses=("p",))


def scan(g, shape, depth, scope):
    c, row = g.name(), g.name()
    of, state = g.pick([(), (2,), (3,)]), g.pick(SHAPES)
    if shape[:1] == (3,) and len(shape) < 3:
        output, take, count, part = shape[1:], "second", 3, 1
    else:
        output, take, count, part, state = (), "first", 3, 0, shape
    names = {c: state, row: of}
    parts = (g.expression(state, depth - 1, scope), g.expression((count, *of), depth, scope), inside(g, state, depth - 1, scope, names), inside(g, output, depth - 1, scope, names))
    sheaf = f"({take} (scan (fn [{c} {row}] (list $2 $3)) $0 $1))"
    python = f"scan(lambda {c}, {row}: ($2, $3), $0, $1)[{part}]"
    return Node(shape, sheaf, python, parts, ((), (), (c, row), (c, row)))


def mapped(g, shape, depth, scope):
    """Rows mapped one by one, or all at once."""
    if not shape:
        return None
    row, of = g.name(), g.pick([(), (2,), (3,)])
    parts = (g.expression((shape[0], *of), depth, scope), inside(g, shape[1:], depth, scope, {row: of}))
    sheaf = g.pick([f"(mapv (fn [{row}] $1) $0)", f"((vmap (fn [{row}] $1)) $0)", f"((vmap (fn [{row}] $1)) $0)"])
    return Node(shape, sheaf, f"jnp.stack([jnp.asarray((lambda {row}: $1)(t)) for t in ($0)])", parts, ((), (row,)))


def dictionary_mapped(g, shape, depth, scope):
    """A dictionary of which every entry goes through a function."""
    d, v = g.name("d"), g.name()
    sheaf, python = g.pick(UNARY)
    sheaf, python = sheaf.replace("$0", v), python.replace("$0", v)
    first, second = g.pick(SHAPES), g.pick(SHAPES)
    body = inside(g, shape, depth, scope, {d: {"u": first, "v": second}})
    parts = (g.expression(first, depth, scope), g.expression(second, depth - 1, scope), body)
    sheaf = f"(let [{d} (tree-map (fn [{v}] {sheaf}) {{:v $1 :u $0}})] $2)"
    python = f'(lambda {d}: $2)(tree_map(lambda {v}: {python}, {{"u": $0, "v": $1}}))'
    return Node(shape, sheaf, python, parts, ((), (), (d,)))


def all_leaves(g, shape, depth, scope):
    """A number of all parameters."""
    if shape or "p" not in scope.dicts:
        return None
    a, v = g.name(), g.name()
    sheaf, python = g.pick(UNARY)
    sheaf, python = sheaf.replace("$0", v), python.replace("$0", v)
    return Node(
        (), f"(tree-reduce (fn [{a} {v}] (+ (* 0.5 {a}) (mean {sheaf}))) p $0)",
        f"tree_reduce(lambda {a}, {v}: 0.5 * {a} + jnp.mean({python}), p, $0)", (g.expression((), depth, scope),), uses=("p",),
    )


def listed(g, shape, depth, scope):
    """The entries of a list, mapped and added up."""
    v = g.name()
    parts = (g.expression(shape, depth, scope), g.expression(shape, depth - 1, scope), inside(g, shape, depth - 1, scope, {v: shape}))
    return Node(shape, f"(reduce + 0.0 (map (fn [{v}] $2) (list $0 $1)))", f"reduce(lambda a, b: a + b, 0.0, [(lambda {v}: $2)(t) for t in ($0, $1)])", parts, ((), (), (v,)))


def gradient(g, shape, depth, scope):
    v = g.name()
    parts = (g.expression(shape, depth, scope), inside(g, (), depth, scope, {v: shape}))
    return Node(shape, f"((grad (fn [{v}] $1)) $0)", f"grad(lambda {v}: $1)($0)", parts, ((), (v,)))


def tangent(g, shape, depth, scope):
    v, at = g.name(), g.pick(SHAPES)
    parts = (g.expression(at, depth - 1, scope), g.expression(at, depth - 1, scope), inside(g, shape, depth, scope, {v: at}))
    return Node(shape, f"(second ((jvp (fn [{v}] $2)) $0 $1))", f"tangent(lambda {v}: $2, $0, $1)", parts, ((), (), (v,)))


def recomputed(g, shape, depth, scope):
    v, of = g.name(), g.pick(SHAPES)
    parts = (g.expression(of, depth, scope), inside(g, shape, depth, scope, {v: of}))
    return Node(shape, f"((checkpoint (fn [{v}] $1)) $0)", f"jax.checkpoint(lambda {v}: $1)($0)", parts, ((), (v,)))


MAKERS = [
    let, let, arranged_twice, dictionary, dictionary, closure, closure, call, call, call, repeat, repeat, long_repeat, repeat_pair, while_loop,
    reduce, reduce, layers, layers, scan, scan, mapped, mapped, dictionary_mapped, all_leaves, listed, gradient, tangent, recomputed,
]
