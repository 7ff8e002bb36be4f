"""Values as Sheaf text."""

import math

import numpy as np

DTYPES = {"float32": "f32", "int32": "i32", "uint32": "u32", "bool": "bool"}


def number(x):
    """A number of a tensor: nine digits name an f32 exactly."""
    if isinstance(x, (bool, np.bool_)):
        return "true" if x else "false"
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    x = float(x)
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "(- inf)"
    text = f"{x:.9g}"
    # Without a point it would be an integer.
    return text if set(text) & set(".e") else text + ".0"


def rows(a):
    """The elements of an array in brackets; of an array without axes just the number."""
    if a.ndim == 0:
        return number(a[()])
    return "[" + " ".join(rows(x) for x in a) + "]"


def literal(a):
    """An array as an argument: a literal, which `sheaf test` makes an argument of the compiled program."""
    a = np.asarray(a)
    dtype = DTYPES[a.dtype.name]
    cast = "" if dtype in ("f32", "bool") else f" :{dtype}"
    if 0 in a.shape:
        return f"(zeros {shape(a.shape)} :dtype :{dtype})"
    if a.ndim == 0:
        return f"(first [{number(a[()])}]{cast})"
    return rows(a) + cast


def shape(extents):
    """A shape as a quoted list."""
    return "'[" + " ".join(map(str, extents)) + "]"


def elements(a):
    """An array as an expected value. Integers are quoted, since a vector literal is f32."""
    if 0 in a.shape:
        return f"(zeros {shape(a.shape)})"
    if a.dtype.kind in "iu" and a.ndim:
        return f"(tensor '{rows(a)} :{DTYPES[a.dtype.name]})"
    return rows(a)


def expected(value):
    """What JAX gave, as it stands after `;=>`: for an array with its dtype and shape, unless its type is weak."""
    if hasattr(value, "dtype") and not getattr(value, "weak_type", False):
        a = np.asarray(value)
        extents = "x".join(map(str, a.shape))
        return f"tensor {DTYPES[a.dtype.name]}[{extents}] = {elements(a)}"
    return tree(value)


def tree(value):
    """Dictionaries and lists of arrays as an expression, also as an argument."""
    if isinstance(value, dict):
        return "{" + " ".join(f":{k} {tree(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "(list " + " ".join(map(tree, value)) + ")"
    return elements(np.asarray(value))


def argument(value):
    """Dictionaries and lists of arrays as an argument."""
    if isinstance(value, dict):
        return "{" + " ".join(f":{k} {argument(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "(list " + " ".join(map(argument, value)) + ")"
    return literal(value)
