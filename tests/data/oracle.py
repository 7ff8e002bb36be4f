"""Data files beside NumPy and the Python library safetensors: `oracle.py write FOLDER`, then Sheaf, then `oracle.py check FOLDER`.

`write` puts arrays of every dtype there, in every format and layout. A Sheaf program (`tests/tests/data_oracle.rs`) loads
them and saves what it found; `check` compares that bit by bit with the arrays.
"""

import pickle
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

DTYPES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16,
    "u32": np.uint32, "f16": np.float16, "f32": np.float32, "f64": np.float64,
}
SHAPES = {"scalar": (), "row": (5,), "none": (0, 3), "cube": (2, 3, 4)}


def arrays():
    random = np.random.default_rng(20260101)
    found = {}
    for name, dtype in DTYPES.items():
        for kind, shape in SHAPES.items():
            bits = random.integers(0, 256, size=(*shape, np.dtype(dtype).itemsize), dtype=np.uint8)
            if name == "bool":
                bits &= 1
            found[f"{name}.{kind}"] = np.ascontiguousarray(bits).view(dtype).reshape(shape)
    return found


def half():
    return np.arange(-4, 4, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(2, 4)


def write(folder):
    found = arrays()
    for name, array in found.items():
        np.save(folder / f"{name}.npy", array)
    np.save(folder / "fortran.npy", np.asfortranarray(found["f32.cube"]))
    np.save(folder / "big.npy", found["i32.cube"].astype(">i4"))
    np.savez(folder / "stored.npz", **found)
    np.savez_compressed(folder / "packed.npz", **found)
    safetensors.numpy.save_file(found | {"bf16.half": half()}, folder / "all.safetensors", metadata={"format": "np"})
    found["u16.row"].tofile(folder / "row.bin")
    for protocol in range(6):
        (folder / f"p{protocol}.pkl").write_bytes(pickle.dumps({"arrays": found, "list": [1, "two", 3.5, None]}, protocol))


def same(what, found, wanted):
    wanted = np.asarray(wanted)
    if found.dtype != wanted.dtype or found.shape != wanted.shape or found.tobytes() != wanted.tobytes():
        sys.exit(f"{what}: {found!r} is not {wanted!r}")


def check(folder):
    found = arrays()
    ways = ["npy", "stored", "packed", "tensors"] + [f"p{protocol}" for protocol in range(6)]
    with safetensors.safe_open(folder / "out.safetensors", framework="np") as out:
        names = set(out.keys())
        for way in ways:
            for name, array in found.items():
                same(f"{way}.{name}", out.get_tensor(f"{way}.{name}"), array)
                names.remove(f"{way}.{name}")
        same("bf16", out.get_tensor("tensors.bf16.half"), half())
        same("fortran", out.get_tensor("fortran"), found["f32.cube"])
        same("big", out.get_tensor("big"), found["i32.cube"])
        same("row", out.get_tensor("row"), found["u16.row"])
        same("step", out.get_tensor("step"), np.int64(12))
        names -= {"tensors.bf16.half", "fortran", "big", "row", "step"}
    if names:
        sys.exit(f"more was saved: {sorted(names)}")
    with np.load(folder / "out.npz") as out:
        for name, array in found.items():
            same(f"npz {name}", out[name], array)
    for name, array in found.items():
        same(f"npy {name}", np.load(folder / f"out-{name}.npy"), array)
    same("bin", np.fromfile(folder / "out.bin", dtype=np.uint16), found["u16.row"])
    print(f"{len(found)} arrays, {len(ways)} ways: all the same")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](Path(sys.argv[2]))
