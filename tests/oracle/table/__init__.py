"""Every builtin with a meaning in JAX, beside that meaning."""

from table import elementwise, functions, indexing, library, reductions, shapes

ENTRIES = [
    entry
    for module in (elementwise, reductions, shapes, indexing, functions, library)
    for entry in module.ENTRIES
]
