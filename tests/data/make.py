"""Writes the golden files of this folder, with NumPy: `$(scripts/jax-python) tests/data/make.py`.

Pickles of every protocol, and pickles that ask for code, contain themselves or are deep, for the tests of `io`.
"""

import collections
import os
import pickle
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent

PLAIN = {
    "a": [1, 2.5, "x", None, True, (3, -4)],
    "n": 2**40,
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "f": np.asfortranarray(np.arange(4, dtype=">i2").reshape(2, 2)),
    "s": np.float64(1.5),
    "b": b"\x01\xff",
    "e": {},
    7: "seven",
}


class Evil:
    def __reduce__(self):
        return (os.system, ("echo this ran",))


def write(name, value, protocol=4):
    (FOLDER / name).write_bytes(pickle.dumps(value, protocol=protocol))


def nested(depth, pair):
    value = 0
    for _ in range(depth):
        value = [value, value] if pair else [value]
    return value


for protocol in range(6):
    write(f"plain{protocol}.pkl", PLAIN, protocol)
for protocol in (0, 2, 4):
    write(f"evil{protocol}.pkl", {"x": Evil()}, protocol)
write("ordered.pkl", collections.OrderedDict(a=1))
write("object.pkl", np.array([1, "a"], dtype=object))
itself = []
itself.append(itself)
write("cycle.pkl", itself)
write("laughs.pkl", nested(60, pair=True))
write("deep.pkl", nested(400, pair=False))

for name, array in {
    "f.npy": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "big.npy": np.arange(3, dtype=">i4"),
    "bool.npy": np.array([True, False]),
    "half.npy": np.array([1.5, -2], dtype=np.float16),
    "scalar.npy": np.float64(2.5),
    "empty.npy": np.zeros((0, 3), dtype=np.int64),
    "records.npy": np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]),
    "text.npy": np.array(["ab", "c"]),
    "complex.npy": np.zeros(2, dtype=np.complex64),
    "u8.npy": np.zeros(2, dtype=np.uint64),
}.items():
    np.save(FOLDER / name, array)
np.save(FOLDER / "object.npy", np.array([1, "a"], dtype=object), allow_pickle=True)
np.savez(FOLDER / "stored.npz", **{"l1.W": np.eye(2, dtype=np.float32), "step": np.int32(7)})
np.savez_compressed(FOLDER / "deflated.npz", a=np.arange(1000), b=np.ones((2, 2)))
