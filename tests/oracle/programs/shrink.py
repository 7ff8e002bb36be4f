"""The smallest program that still differs."""

from programs.node import constant

# Candidates that are looked at together, of so many in a round, the smallest first.
TOGETHER = 12
CANDIDATES = 96
ROUNDS = 40


def shrink(failure, attempt, check):
    """A smaller program with the same kind of failure; `attempt` makes an example of a program and its arguments, or
    nothing, and `check` gives the failures of examples."""
    for _ in range(ROUNDS):
        found = next_smaller(failure, attempt, check)
        if not found:
            break
        failure = found
    return failure


def next_smaller(failure, attempt, check):
    body, arguments = failure.example.origin
    candidates = smaller(body)[:CANDIDATES]
    for start in range(0, len(candidates), TOGETHER):
        examples = [attempt(candidate, arguments) for candidate in candidates[start : start + TOGETHER]]
        examples = [made for made in examples if made]
        alike = [f for f in (check(examples) if examples else []) if f.example.origin and kind(f) == kind(failure)]
        if alike:
            return min(alike, key=lambda f: f.example.origin[0].size)
    return None


def kind(failure):
    """Kind of a difference, without its numbers."""
    return failure.message.splitlines()[0].split(":")[1]


def smaller(body):
    """Programs with one expression replaced by a part of it or by a constant, the smallest first."""
    found = {}
    for node, scope, path in body.within():
        if node.size == 1:
            continue
        known = scope | {"p", "x", "k"}
        candidates = [part for part, _, way in node.within() if way and part.shape == node.shape and part.free <= known]
        if node.shape is None:
            candidates.append(node.parts[0])
        else:
            candidates.append(constant(node.shape, 0.5))
        for candidate in candidates:
            program = body.replaced(path, candidate)
            found[program.as_sheaf()] = program
    return sorted(found.values(), key=lambda program: program.size)
