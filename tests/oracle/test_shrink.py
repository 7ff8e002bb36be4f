"""Making a program small, without JAX and without Sheaf: what fails is said by the text alone."""

import unittest
from dataclasses import dataclass

from programs import shrink
from programs.node import Node, constant


@dataclass
class Example:
    origin: tuple


@dataclass
class Failure:
    example: Example
    message: str


def attempt(body, arguments):
    return Example((body, arguments))


def failing(*needed, message="error: this compiled gives another value"):
    """A check that an example fails if all of these texts are in it."""

    def check(examples):
        return [Failure(e, message) for e in examples if all(n in e.origin[0].as_sheaf() for n in needed)]

    return check


def name(text):
    return Node((), text, text, uses=(text,))


def add(a, b):
    return Node((), "(+ $0 $1)", "($0 + $1)", (a, b))


def sine(a):
    return Node((), "(sin $0)", "sin($0)", (a,))


def let(n, value, body):
    return Node((), f"(let [{n} $0] $1)", f"(lambda {n}: $1)($0)", (value, body), ((), (n,)))


def small(body, check):
    [failure] = check([attempt(body, ())])
    return shrink.shrink(failure, attempt, check).example.origin[0]


class Shrink(unittest.TestCase):
    def test_what_has_no_part_in_it_goes(self):
        body = add(sine(add(name("x"), sine(name("x")))), add(name("x"), add(sine(name("p")), constant((), 0.2))))
        found = small(body, failing("(sin p)"))
        self.assertEqual(found.as_sheaf(), "(sin p)")
        self.assertEqual(found.as_python(), "sin(p)")

    def test_what_needs_two_parts_keeps_both(self):
        body = add(add(sine(name("x")), name("x")), add(name("p"), sine(sine(name("k")))))
        self.assertEqual(small(body, failing("(sin x)", "k")).as_sheaf(), "(+ (sin x) k)")

    def test_a_name_is_not_taken_from_where_it_is_bound(self):
        body = let("v", sine(name("x")), add(name("v"), sine(add(name("v"), name("x")))))
        found = small(body, failing("(sin (+ v"))
        self.assertLessEqual(found.free, {"p", "x", "k"})
        self.assertEqual(found.as_sheaf(), "(let [v x] (sin (+ v x)))")

    def test_another_kind_of_failure_is_not_followed(self):
        whole = add(sine(name("x")), name("p"))

        def check(examples):
            other = failing("x", message="error: this cannot be compiled: for a reason")
            same = failing("(sin x) p")
            return same(examples) or other(examples)

        self.assertEqual(small(whole, check).as_sheaf(), "(+ (sin x) p)")

    def test_a_program_with_an_extra_value_loses_it(self):
        body = Node(None, "(list $0 $1)", "($0, $1)", (sine(name("x")), name("p")))
        self.assertEqual(small(body, failing("(sin x)")).as_sheaf(), "(sin x)")

    def test_candidates_that_jax_does_not_take_are_left_out(self):
        body = add(sine(name("x")), name("p"))
        check = failing("sin")
        [failure] = check([attempt(body, ())])
        found = shrink.shrink(failure, lambda b, a: attempt(b, a) if "p" in b.as_sheaf() else None, check)
        self.assertEqual(found.example.origin[0].as_sheaf(), "(+ (sin x) p)")


if __name__ == "__main__":
    unittest.main()
