"""Draws programs: expressions of a wanted shape, made of smaller ones."""

from dataclasses import dataclass, field

from programs import conditions, forms, simple
from programs.node import Node, constant

LAYER = {"W": (3, 3), "b": (3,)}
PARAMETERS = {"a": (3,), "b": (2, 3), "c": (), "e": (2,), "f": (3, 2), "g": (2, 2), "m": (3, 3), "layers": [LAYER, LAYER]}
DATA = (2, 3)
INDICES = (3,)

# Maximum nesting of expressions.
DEPTH = 5

# Makers of expressions, with their frequencies.
MAKERS = [(0.55, simple.MAKERS), (0.33, forms.MAKERS), (0.12, conditions.MAKERS)]


@dataclass(frozen=True)
class Scope:
    """Names in scope at a place."""

    # Names of tensors, with their shapes.
    tensors: dict = field(default_factory=dict)
    # Names of dictionaries, with the shapes of their entries.
    dicts: dict = field(default_factory=dict)
    # Names of functions: the shapes of their parameters, and that of the result.
    functions: dict = field(default_factory=dict)
    # Names of counters.
    counters: tuple = ()

    def tensor(self, **names):
        return Scope({**self.tensors, **names}, self.dicts, self.functions, self.counters)

    def dictionary(self, name, entries):
        return Scope(self.tensors, {**self.dicts, name: entries}, self.functions, self.counters)

    def function(self, name, parameters, result):
        return Scope(self.tensors, self.dicts, {**self.functions, name: (parameters, result)}, self.counters)

    def counter(self, name):
        return Scope(self.tensors, self.dicts, self.functions, (*self.counters, name))


class Generator:
    """Draws expressions with one source of random numbers."""

    def __init__(self, random):
        self.random = random
        self.names = 0

    def name(self, letter="v"):
        self.names += 1
        return f"{letter}{self.names}"

    def pick(self, items):
        return items[self.random.integers(len(items))]

    def number(self):
        return round(float(self.random.uniform(-1.5, 1.5)), 2) or 0.5

    def expression(self, shape, depth, scope):
        """An expression of that shape."""
        if depth <= 0 or (depth < DEPTH - 1 and self.random.random() < 0.08):
            return self.leaf(shape, scope)
        kind = self.random.choice(len(MAKERS), p=[share for share, _ in MAKERS])
        for _ in range(20):
            made = self.pick(MAKERS[kind][1])(self, shape, depth - 1, scope)
            if made is not None:
                return made
        return self.leaf(shape, scope)

    def leaf(self, shape, scope):
        """A name, an entry of a dictionary, or a number."""
        near = [Node(shape, n, n, uses=(n,)) for n, s in scope.tensors.items() if s == shape and n != "x"]
        far = [Node(shape, "x", "x", uses=("x",))] if shape == scope.tensors.get("x") else []
        for name, entries in scope.dicts.items():
            found = [Node(shape, f"(:{k} {name})", f'{name}["{k}"]', uses=(name,)) for k, s in entries.items() if s == shape]
            (far if name == "p" else near).extend(found)
        if shape == ():
            near += [Node((), f"(* 0.25 {n})", f"(0.25 * {n})", uses=(n,)) for n in scope.counters]
        # Bound names should be used, or most of a program would have no say in its value.
        groups = [g for g in (near, near, near, far) if g] or [[constant(shape, self.number())]]
        if self.random.random() < 0.05:
            return constant(shape, self.number())
        return self.pick(self.pick(groups))

    def program(self):
        """The body of a program: a number of p, x and k."""
        entries = {k: s for k, s in PARAMETERS.items() if isinstance(s, tuple)}
        scope = Scope().dictionary("p", entries).tensor(x=DATA)
        loss = self.expression((), DEPTH, scope)
        if self.random.random() < 0.25:
            extra = self.expression(self.pick(simple.SHAPES), DEPTH - 2, scope)
            return Node(None, "(list $0 {:extra $1 :loss $0})", '($0, {"extra": $1, "loss": $0})', (loss, extra))
        return loss
