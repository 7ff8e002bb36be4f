"""Expressions that print both as Sheaf and as Python."""

import re
from dataclasses import dataclass
from functools import cached_property

PART = re.compile(r"\$(\d)")


@dataclass(frozen=True)
class Node:
    """An expression of f32, of one shape. `$0`, `$1` stand for its parts in both texts."""

    shape: tuple
    sheaf: str
    python: str
    parts: tuple = ()
    # For each part the names that are bound in it, beyond those around.
    binds: tuple = ()
    # The name that a leaf is, or the function that is called.
    uses: tuple = ()

    def bound(self, i):
        return self.binds[i] if i < len(self.binds) else ()

    @cached_property
    def free(self):
        """The names that must be known around it."""
        names = set(self.uses)
        for i, part in enumerate(self.parts):
            names |= part.free - set(self.bound(i))
        return frozenset(names)

    @cached_property
    def size(self):
        return 1 + sum(part.size for part in self.parts)

    def as_sheaf(self):
        return PART.sub(lambda m: self.parts[int(m[1])].as_sheaf(), self.sheaf)

    def as_python(self):
        return PART.sub(lambda m: self.parts[int(m[1])].as_python(), self.python)

    def within(self, scope=frozenset(), path=()):
        """Each expression in this one, with the names around it and the way to it."""
        yield self, scope, path
        for i, part in enumerate(self.parts):
            yield from part.within(scope | set(self.bound(i)), (*path, i))

    def replaced(self, path, other):
        """This one with another expression at the end of a way."""
        if not path:
            return other
        parts = list(self.parts)
        parts[path[0]] = parts[path[0]].replaced(path[1:], other)
        return Node(self.shape, self.sheaf, self.python, tuple(parts), self.binds, self.uses)


def constant(shape, number):
    """A number everywhere."""
    if not shape:
        return Node((), f"{number}", f"number({number})")
    extents = " ".join(map(str, shape))
    return Node(shape, f"(full '[{extents}] {number})", f"jnp.full({shape}, {number})")
