"""Expressions that bind no names: arithmetic, choice, reductions, matrices, arrangement."""

from programs.node import Node

SHAPES = [(), (2,), (3,), (2, 3), (3, 2), (3, 3), (2, 2)]

# Each in Sheaf and in Python; domains are kept where functions are smooth and tame.
UNARY = [
    ("(sin $0)", "jnp.sin($0)"), ("(cos $0)", "jnp.cos($0)"), ("(tanh $0)", "tanh($0)"), ("(neg $0)", "jnp.negative($0)"),
    ("(sigmoid $0)", "jax.nn.sigmoid($0)"), ("(abs $0)", "jnp.abs($0)"), ("(relu $0)", "jax.nn.relu($0)"),
    ("(gelu $0)", "jax.nn.gelu($0)"), ("(silu $0)", "jax.nn.silu($0)"), ("(softplus $0)", "jax.nn.softplus($0)"),
    ("(elu $0)", "jax.nn.elu($0)"), ("(leaky-relu $0 0.1)", "jax.nn.leaky_relu($0, 0.1)"), ("(erf $0)", "erf($0)"),
    ("(atan $0)", "jnp.arctan($0)"), ("(exp (tanh $0))", "jnp.exp(tanh($0))"), ("(square (sin $0))", "jnp.square(jnp.sin($0))"),
    ("(log (+ 1.5 (square $0)))", "jnp.log(1.5 + jnp.square($0))"), ("(sqrt (+ 1 (square $0)))", "jnp.sqrt(1 + jnp.square($0))"),
    ("(log1p (exp $0))", "jnp.log1p(jnp.exp($0))"), ("(expm1 (* 0.5 (tanh $0)))", "jnp.expm1(0.5 * tanh($0))"),
    ("(** (tanh $0) 3)", "tanh($0) ** 3"), ("(clamp $0 -1 1)", "jnp.clip($0, -1, 1)"), ("(reciprocal (+ 2 (sin $0)))", "1 / (2 + jnp.sin($0))"),
    ("(stop-gradient $0)", "jax.lax.stop_gradient($0)"), ("(-> $0 (* 0.5) (- 0.3) tanh)", "tanh(($0) * 0.5 - 0.3)"),
]

BINARY = [
    ("(+ $0 $1)", "(($0) + ($1))"), ("(- $0 $1)", "(($0) - ($1))"), ("(* $0 $1)", "(($0) * ($1))"),
    ("(/ $0 (+ 1.5 (square $1)))", "(($0) / (1.5 + jnp.square($1)))"), ("(maximum $0 $1)", "jnp.maximum($0, $1)"),
    ("(minimum $0 $1)", "jnp.minimum($0, $1)"), ("(atan2 $0 (+ 2 (sin $1)))", "jnp.arctan2($0, 2 + jnp.sin($1))"),
    ("(+ $0 1 (* 0.5 $1))", "(($0) + 1 + 0.5 * ($1))"), ("(** (+ 2 (sin $0)) (tanh $1))", "((2 + jnp.sin($0)) ** tanh($1))"),
]

# XLA compiles the gradient of an entry of `jnp.cumsum` wrongly: in `jit`, that of `cumsum(m, 0)[1]` has rows after it.
ONE_AXIS = [
    ("(softmax $0)", "jax.nn.softmax($0)"), ("(log-softmax $0 :axis 0)", "jax.nn.log_softmax($0, 0)"),
    ("(cumsum $0 :axis 0)", "jax.lax.associative_scan(jnp.add, $0, axis=0)"), ("(cumprod (tanh $0) :axis -1)", "jnp.cumprod(tanh($0), -1)"),
    ("(sort $0)", "jnp.sort($0)"), ("(flip $0)", "jnp.flip($0)"), ("(roll $0 1 :axis 0)", "jnp.roll($0, 1, 0)"),
    ("(- $0 (mean $0 :axis -1 :keepdims))", "(lambda t: t - jnp.mean(t, -1, keepdims=True))($0)"),
]

REDUCTIONS = [("sum", "jnp.sum"), ("mean", "jnp.mean"), ("max", "jnp.max"), ("min", "jnp.min"), ("logsumexp", "jax.nn.logsumexp"), ("var", "jnp.var")]

COMPARISONS = [("(> $0 $1)", "(($0) > ($1))"), ("(<= $0 $1)", "(($0) <= ($1))"),
               ("(logical-and (< $0 $1) (> $1 -0.5))", "jnp.logical_and(($0) < ($1), ($1) > -0.5)")]


def unary(g, shape, depth, scope):
    sheaf, python = g.pick(UNARY)
    return Node(shape, sheaf, python, (g.expression(shape, depth, scope),))


def narrower(g, shape):
    """A shape that broadcasts to another."""
    return g.pick([shape, shape, shape[len(shape) // 2 :], ()])


def binary(g, shape, depth, scope):
    sheaf, python = g.pick(BINARY)
    shapes = [shape, narrower(g, shape)]
    if g.random.random() < 0.5:
        shapes.reverse()
    return Node(shape, sheaf, python, tuple(g.expression(s, depth, scope) for s in shapes))


def choice(g, shape, depth, scope):
    sheaf, python = g.pick(COMPARISONS)
    parts = [g.expression(narrower(g, shape), depth - 1, scope) for _ in range(2)]
    parts += [g.expression(shape, depth, scope), g.expression(narrower(g, shape), depth, scope)]
    return Node(shape, f"(where {sheaf} $2 $3)", f"jnp.where({python}, $2, $3)", tuple(parts))


def one_axis(g, shape, depth, scope):
    if not shape:
        return None
    sheaf, python = g.pick(ONE_AXIS)
    return Node(shape, sheaf, python, (g.expression(shape, depth, scope),))


def reduction(g, shape, depth, scope):
    sheaf, python = g.pick(REDUCTIONS)
    if shape == ():
        part = g.expression(g.pick(SHAPES[1:]), depth, scope)
        return Node(shape, f"({sheaf} $0)", f"{python}($0)", (part,))
    if len(shape) > 1:
        return None
    axis = g.pick([0, 1])
    wider = (2, *shape) if axis == 0 else (*shape, 3)
    return Node(shape, f"({sheaf} $0 :axis {axis})", f"{python}($0, axis={axis})", (g.expression(wider, depth, scope),))


def product(g, shape, depth, scope):
    k = g.pick([2, 3])
    ways = {
        0: [("(@ $0 $1)", "(($0) @ ($1))", (k,), (k,)), ('(einsum "i,i->" $0 $1)', "jnp.einsum('i,i->', $0, $1)", (k,), (k,))],
        1: [("(@ $0 $1)", "(($0) @ ($1))", (*shape, k), (k,)), ("(@ $0 $1)", "(($0) @ ($1))", (k,), (k, *shape)),
            ('(einsum "ij,ij->i" $0 $1)', "jnp.einsum('ij,ij->i', $0, $1)", (*shape, k), (*shape, k))],
        2: [("(@ $0 $1)", "(($0) @ ($1))", (*shape[:1], k), (k, *shape[1:])), ("(outer $0 $1)", "jnp.outer($0, $1)", shape[:1], shape[1:]),
            ('(einsum "ki,kj->ij" $0 $1)', "jnp.einsum('ki,kj->ij', $0, $1)", (k, *shape[:1]), (k, *shape[1:]))],
    }
    sheaf, python, left, right = g.pick(ways[len(shape)])
    return Node(shape, sheaf, python, (g.expression(left, depth, scope), g.expression(right, depth, scope)))


def arranged(g, shape, depth, scope):
    """Elements moved: transposition, entries, slices, joins, scattering."""
    ways = []
    for d in (2, 3):
        if len(shape) < 2:
            ways += [("(get $0 1)", "($0)[1]", [(d, *shape)]), ("($0 -1)", "($0)[-1]", [(d, *shape)]),
                     ("(get $0 (argmax $1))", "($0)[jnp.argmax($1)]", [(d, *shape), (d,)])]
    if len(shape) == 2:
        ways += [("(transpose $0)", "jnp.transpose($0)", [shape[::-1]]), ("(tril $0)", "jnp.tril($0)", [shape]),
                 (f"(reshape $0 {shape[0]} -1)", f"jnp.reshape($0, ({shape[0]}, -1))", [shape[::-1]])]
    if shape == (3, 3):
        ways += [("(diag $0)", "jnp.diag($0)", [(3,)])]
    if shape == (3,):
        ways += [("(diag $0)", "jnp.diag($0)", [(3, 3)])]
    if shape[:1] == (2,):
        ways += [("(slice $0 0 -1)", "($0)[:-1]", [(3, *shape[1:])]), ("(stack $0 $1)", "jnp.stack([$0, $1])", [shape[1:]] * 2),
                 ("(dynamic-slice $0 1 2)", "($0)[1:3]", [(3, *shape[1:])])]
    if shape[-1:] == (2,):
        ways += [("(first (top_k $0 2))", "jax.lax.top_k($0, 2)[0]", [(*shape[:-1], 3)])]
    if shape[:1] == (3,):
        ways += [("(concat $0 (expand-dims $1 0))", "jnp.concatenate([$0, jnp.expand_dims($1, 0)])", [(2, *shape[1:]), shape[1:]]),
                 ("(get $0 k)", "($0)[k]", [(3, *shape[1:])]), ("(scatter-add $0 k $1)", "($0).at[k].add($1)", [shape, shape]),
                 ("(index-update $0 1 $1)", "($0).at[1].set($1)", [shape, shape[1:]]),
                 ("(append-and-roll $0 $1)", "jnp.concatenate([($0)[1:], jnp.asarray($1)[None]])", [shape, shape[1:]])]
    if not ways:
        return None
    sheaf, python, shapes = g.pick(ways)
    return Node(shape, sheaf, python, tuple(g.expression(s, depth, scope) for s in shapes))


def updated(g, shape, depth, scope):
    """Two updates of one value, or two joins that begin with it: neither may write over what the other one reads."""
    if shape[:1] != (3,):
        return None
    t, row, rows = g.name("t"), shape[1:], (2, *shape[1:])
    sheaf, python, shapes = g.pick([
        (f"(let [{t} $0] (+ (index-update {t} 0 $1) (* 0.5 (index-update {t} 0 $2))))",
         f"(lambda {t}: {t}.at[0].set($1) + 0.5 * {t}.at[0].set($2))($0)", [shape, row, row]),
        (f"(let [{t} $0] (- (index-update {t} 2 $1) {t}))", f"(lambda {t}: {t}.at[2].set($1) - {t})($0)", [shape, row]),
        (f"(let [{t} (expand-dims $0 0)] (- (concat {t} $1) (concat {t} $2)))",
         f"(lambda {t}: jnp.concatenate([{t}, $1]) - jnp.concatenate([{t}, $2]))(jnp.expand_dims($0, 0))", [row, rows, rows]),
    ])
    return Node(shape, sheaf, python, tuple(g.expression(s, depth, scope) for s in shapes))


MAKERS = [unary, unary, binary, binary, binary, choice, one_axis, reduction, product, arranged, updated]
