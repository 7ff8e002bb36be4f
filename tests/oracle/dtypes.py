"""The table again in other dtypes: which entries, with what tolerance."""

import dataclasses

# The dtype of JAX, the largest difference that is taken for rounding, relative to the value, and what operands are
# moved by to see where rounding decides: enough to make a 16-bit float its neighbour. Those are rounded after each
# operation, and JAX and Sheaf take some operations in another order.
DTYPES = {
    "f64": ("float64", 1e-9, 1e-15),
    "bf16": ("bfloat16", 0.1, 2**-7),
    "f16": ("float16", 0.02, 2**-11),
    "i8": ("int8", 0, 0),
    "i16": ("int16", 0, 0),
    "i64": ("int64", 0, 0),
    "u8": ("uint8", 0, 0),
    "u16": ("uint16", 0, 0),
}

FLOATS = ("f64", "bf16", "f16")
INTEGERS = ("i8", "i16", "i64", "u8", "u16")

# With 64 bits allowed, JAX has other defaults: only for the dtypes that need it.
WIDE = ("f64", "i64")


def recast(entry, name):
    """The entry with its floats, or its integers, in the dtype of that name; none if it has no such operands."""
    dtype = DTYPES[name][0]
    changed = "float32" if name in FLOATS else "int32"
    wanted = [
        [recast_operand(o, changed, dtype) for o in operands]
        for operands in entry.operands
        if any(o.dtype == changed for o in operands) and all(o.dtype in (changed, "bool") for o in operands)
        # Operands that are negative throughout have no unsigned counterpart.
        and not (dtype.startswith("u") and any(o.dtype == changed and o.high <= 0 for o in operands))
    ]
    if not wanted:
        return None
    # Second derivatives and batches take the same rules in every dtype, and rounding adds up in them.
    order = min(entry.order, 1) if name in FLOATS else 0
    return dataclasses.replace(entry, operands=wanted, order=order, batches=name in ("f64", "i8"))


def recast_operand(operand, changed, dtype):
    if operand.dtype != changed:
        return operand
    low = max(operand.low, 0) if dtype.startswith("u") else operand.low
    return dataclasses.replace(operand, dtype=dtype, low=low)
