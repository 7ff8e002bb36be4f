"""Expressions whose course hangs on values that only a run knows: conditionals, and loops of an unknown length."""

from programs.forms import inside
from programs.node import Node
from programs.simple import COMPARISONS, SHAPES

# A loop on a condition ends after so many iterations, if not before.
LONGEST = 6


def condition(g, depth, scope):
    """A comparison of two numbers, in both texts, with its parts."""
    sheaf, python = g.pick(COMPARISONS)
    return sheaf, python, tuple(g.expression((), depth - 1, scope) for _ in range(2))


def branch(g, shape, depth, scope):
    sheaf, python, parts = condition(g, depth, scope)
    parts += (g.expression(shape, depth, scope), g.expression(shape, depth, scope))
    return Node(shape, f"(if {sheaf} $2 $3)", f"cond({python}, lambda: $2, lambda: $3)", parts)


def three_branches(g, shape, depth, scope):
    sheaf, python, parts = condition(g, depth, scope)
    parts += tuple(g.expression(s, depth - 1, scope) for s in ((), shape, shape, shape))
    sheaf = f"(cond {sheaf} $3 (< $2 0.3) $4 :else $5)"
    return Node(shape, sheaf, f"cond({python}, lambda: $3, lambda: cond(($2) < 0.3, lambda: $4, lambda: $5))", parts)


def branch_of_dictionaries(g, shape, depth, scope):
    """A conditional that gives a dictionary, of which one entry is the same in both branches."""
    sheaf, python, parts = condition(g, depth, scope)
    u, v, same = g.name(), g.name(), g.name()
    first, second = g.pick(SHAPES), g.pick(SHAPES)
    parts += tuple(g.expression(s, depth - 1, scope) for s in (first, first, second))
    parts += (inside(g, shape, depth, scope, {u: first, v: second}),)
    sheaf = f"(let [{same} $4 {{:keys [{u} {v}]}} (if {sheaf} {{:{v} {same} :{u} $2}} {{:{u} $3 :{v} {same}}})] $5)"
    python = f"(lambda {same}: (lambda {u}, {v}: $5)(*cond({python}, lambda: ($2, {same}), lambda: ($3, {same}))))($4)"
    # The conditional stands where the name of the shared entry is known, but nothing in it uses that.
    return Node(shape, sheaf, python, parts, ((), (), (), (), (), (u, v)))


# Neither Sheaf nor JAX goes backwards through a loop of an unknown length: all that moves in it is taken for constant.


def until(g, shape, depth, scope):
    n, a, u, of = g.name("i"), g.name(), g.name(), g.pick(SHAPES)
    seen = type(scope)().counter(n)
    names = {a: shape, u: of}
    parts = (
        g.expression(shape, depth, scope), g.expression(of, depth - 1, scope),
        inside(g, (), depth - 2, seen, names), inside(g, shape, depth - 1, seen, names),
    )
    going = f"(logical-and (< {n} {LONGEST}) (< $2 0.8))"
    sheaf = f"(let [{u} (stop-gradient $1)] (second (while {going} [[{n} {a}] (list 0 (stop-gradient $0))] (list (+ {n} 1) $3))))"
    python = f"(lambda {u}: until({LONGEST}, lambda {n}, {a}: ($2) < 0.8, $0, lambda {n}, {a}: $3))(stopped($1))"
    return Node(shape, sheaf, python, parts, ((), (), (n, a, u), (n, a, u)))


def counted(g, shape, depth, scope):
    """A count that is an element of a tensor."""
    i, a, u, of = g.name("i"), g.name(), g.name(), g.pick([(2,), (3,)])
    names = {a: shape, u: of}
    body = inside(g, shape, depth - 1, type(scope)().counter(i), names)
    parts = (g.expression(shape, depth, scope), g.expression(of, depth - 1, scope), body)
    count = g.pick([(f"(+ 1 (argmax {u}))", f"1 + jnp.argmax({u})"), ("(get k 0)", "k[0]")])
    sheaf = f"(let [{u} (stop-gradient $1)] (repeat [{i} {count[0]}] [{a} (stop-gradient $0)] $2))"
    python = f"(lambda {u}: counted({count[1]}, $0, lambda {i}, {a}: $2))(stopped($1))"
    return Node(shape, sheaf, python, parts, ((), (), (i, a, u)))


MAKERS = [branch, branch, branch, three_branches, branch_of_dictionaries, until, counted]
