"""The smallest program that still differs."""

import numpy as np

from programs import compare
from programs.node import constant

# Candidates of one round, the smallest first.
CANDIDATES = 60
ROUNDS = 30


def shrink(failure, check):
    """A smaller program with the same kind of failure; `check` gives the failures of examples."""
    kind = failure.message.splitlines()[0].split(":")[1]
    for _ in range(ROUNDS):
        body, arguments = failure.example.origin
        examples = []
        for candidate in smaller(body):
            made = attempt(candidate, arguments)
            if made:
                examples.append(made)
            if len(examples) == CANDIDATES:
                break
        failures = [f for f in check(examples) if f.example.origin and f.message.splitlines()[0].split(":")[1] == kind]
        if not failures:
            break
        failure = min(failures, key=lambda f: f.example.origin[0].size)
    return failure


def attempt(body, arguments):
    try:
        return compare.example("shrunk", body, arguments, np.random.default_rng(0))
    except Exception:  # noqa: BLE001 (a candidate that JAX does not take is none)
        return None


def smaller(body):
    """Programs with one expression replaced by a part of it or by a leaf, the smallest first."""
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
