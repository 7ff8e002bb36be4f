"""Values as Sheaf text."""

import math

import numpy as np

DTYPES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "bool": "bool",
}


# Floats that a vector literal is not without a cast.
FLOATS = ("float64", "float16", "bfloat16")


def number(x):
    """A number of a tensor: nine digits name an f32 exactly, and all that JAX has an f64."""
    exact = isinstance(x, np.float64)
    if isinstance(x, (bool, np.bool_)):
        return "true" if x else "false"
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    x = float(x)
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "(- inf)"
    text = repr(x) if exact else f"{x:.9g}"
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
    """An array as an expected value. All but singles are quoted, since a vector literal is f32."""
    if 0 in a.shape:
        return f"(zeros {shape(a.shape)})"
    if a.dtype.name not in ("float32", "bool") and a.ndim:
        dtype = DTYPES[a.dtype.name]
        # A quoted nan would be a symbol.
        return f"(do {rows(a)} :{dtype})" if a.dtype.name in FLOATS else f"(tensor '{rows(a)} :{dtype})"
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
