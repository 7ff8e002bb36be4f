"""Every builtin with a meaning in JAX, beside that meaning."""

from dtypes import FLOATS, INTEGERS, WIDE
from table import elementwise, functions, indexing, library, reductions, shapes

ENTRIES = [
    entry
    for module in (elementwise, reductions, shapes, indexing, functions, library)
    for entry in module.ENTRIES
]

# Integers of all widths take the same rules: one entry for each of these tells.
WHOLE = {"+", "-", "*", "//", "mod", "neg", "abs", "sign", "square", "minimum", "maximum", "bit-and", "bit-or", "bit-xor"}
WHOLE |= {"=", "<", ">=", "where", "clamp", "max", "min", "sort", "argsort", "reshape", "transpose", "concat", "flip"}

# Where JAX has f64, its positions have 64 bits, and so has what it calls a float.
DEFAULTS = {"argmax", "argmin", "argsort", "float"}

for module in (elementwise, reductions, indexing, shapes):
    for entry in module.ENTRIES:
        # What only moves elements needs no rounding of 16 bits to be tried.
        entry.dtypes = FLOATS if module in (elementwise, reductions) else ("f64",)
        if entry.name in WHOLE:
            entry.dtypes += INTEGERS
        if entry.name in DEFAULTS:
            entry.dtypes = tuple(d for d in entry.dtypes if d not in WIDE)
