"""Every builtin with a meaning in JAX, beside that meaning."""

from dtypes import FLOATS, INTEGERS, WIDE
from table import distributions, elementwise, fourier, functions, indexing, layers, library, linear, reductions, shapes, solvers, training

ENTRIES = [
    entry
    for module in (elementwise, reductions, shapes, indexing, functions, library, distributions, linear, fourier, solvers, layers, training)
    for entry in module.ENTRIES
]

# Integers of all widths take the same rules: one entry for each of these tells.
WHOLE = {"+", "-", "*", "//", "mod", "neg", "abs", "sign", "square", "minimum", "maximum", "bit-and", "bit-or", "bit-xor"}
WHOLE |= {"=", "<", ">=", "where", "clamp", "max", "min", "sort", "argsort", "reshape", "transpose", "concat", "flip"}

# With f64 in JAX, its positions have 64 bits, and so have its plain floats.
DEFAULTS = {"argmax", "argmin", "argsort", "float"}

for module in (elementwise, reductions, indexing, shapes):
    for entry in module.ENTRIES:
        # Functions that only move elements need no trial of rounding to 16 bits.
        entry.dtypes = FLOATS if module in (elementwise, reductions) else ("f64",)
        if entry.name in WHOLE:
            entry.dtypes += INTEGERS
        if entry.name in DEFAULTS:
            entry.dtypes = tuple(d for d in entry.dtypes if d not in WIDE)
