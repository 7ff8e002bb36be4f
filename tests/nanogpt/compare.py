"""Takes the step that step.shf saved again in JAX, and compares: `python compare.py FOLDER`.

The folder holds text.txt and step.json. Both begin with the parameters and the batch that Sheaf saved; that JAX draws the
same ones from the same keys is compared as well.
"""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import gpt

TOLERANCE = 1e-4


def tensors(tree):
    """A tree from JSON with its arrays as tensors; lists of dictionaries are trees, as are lists of those."""
    if isinstance(tree, dict):
        return {key: tensors(value) for key, value in tree.items()}
    if isinstance(tree, list) and isinstance(tree[0], dict):
        return [tensors(value) for value in tree]
    return np.asarray(tree, np.float32)


def largest_difference(what, sheaf, jax_, unit=None):
    """The largest difference of two trees, leaf by leaf; the unit is the largest element of a leaf unless one is
    given."""
    if jax.tree.structure(sheaf) != jax.tree.structure(jax_):
        sys.exit(f"{what}: another structure\n{jax.tree.structure(sheaf)}\n{jax.tree.structure(jax_)}")
    worst, where = 0.0, ""
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(sheaf), jax.tree.leaves(jax_)):
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        if x.shape != y.shape:
            sys.exit(f"{what}{jax.tree_util.keystr(path)}: {x.shape} and {y.shape}")
        difference = np.abs(x - y).max() / (unit or max(np.abs(y).max(), 1e-30))
        if np.isnan(difference):
            sys.exit(f"{what}{jax.tree_util.keystr(path)}: not a number")
        if difference > worst:
            worst, where = difference, jax.tree_util.keystr(path)
    print(f"{what:12} {len(jax.tree.leaves(sheaf)):3} leaves, largest difference {worst:.1e} {where}")
    return worst


def main():
    folder = Path(sys.argv[1])
    saved = json.loads((folder / "step.json").read_text())
    ids, alphabet = gpt.encode((folder / "text.txt").read_text())
    start = gpt.init_state(tensors(saved["parameters"]))
    state = tuple(tensors(tree) for tree in saved["state"][:3]) + (saved["state"][3],)
    pieces = jnp.asarray(saved["ids"], jnp.int32), jnp.asarray(saved["targets"], jnp.int32)

    drawn = gpt.init_params(jax.random.key(1), len(alphabet), gpt.CONFIG)
    drawn_pieces = gpt.batch(jax.random.key(2), ids, 12, gpt.CONFIG["context"])
    if not all(jnp.array_equal(a, b) for a, b in zip(pieces, drawn_pieces)):
        sys.exit("the batches differ")
    after, value = jax.jit(gpt.train_step)(start, *pieces, 0.001)
    if state[3] != 1 or after[3] != 1:
        sys.exit(f"the step counter is {state[3]} in Sheaf and {after[3]} in JAX, not 1")
    differences = [
        largest_difference("start", start[0], drawn),
        largest_difference("loss", saved["loss"], float(value)),
        # Absolute: where a gradient is as small as the eps of Adam, 1e-8, its rounding is as large as itself, and Adam's
        # first step may be anything from -lr to lr.
        largest_difference("parameters", state[0], after[0], unit=1.0),
        # A tenth of the gradients, and a thousandth of their squares.
        largest_difference("m", state[1], after[1]),
        largest_difference("v", state[2], after[2]),
    ]
    if max(differences) > TOLERANCE:
        sys.exit(f"a difference is larger than {TOLERANCE}")


if __name__ == "__main__":
    main()
