"""How many operations the training steps of the XOR network and of the GPT have, in Sheaf and in JAX: both as StableHLO,
inlined and canonicalised by MLIR's own passes. Sheaf's are the golden files of `lang/tests/lang/golden.rs`."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jax._src.interpreters import mlir
from jaxlib.mlir import ir, passmanager

ROOT = Path(__file__).parents[2]
PASSES = "builtin.module(inline,canonicalize,cse,canonicalize)"


def golden(name):
    """The text of a golden file, after its two-part head."""
    return (ROOT / f"lang/tests/lang/snapshots/lang__golden__{name}.snap").read_text().split("\n---\n", 1)[1]


def count(text):
    """The operations of a module and of the regions in it, without those that only end a region."""
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        passmanager.PassManager.parse(PASSES).run(module.operation)
        return sum(1 for name in names(module.operation) if name.startswith(("stablehlo.", "chlo."))) - sum(
            1 for name in names(module.operation) if name == "stablehlo.return"
        )


def names(operation):
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation.name
                yield from names(inner.operation)


def xor_step():
    """`train-step` of `examples/xor/train.shf`."""

    def loss(p, x, y):
        h = jax.nn.relu(x @ p["l1"]["W"] + p["l1"]["b"])
        return jnp.mean((jax.nn.sigmoid(h @ p["l2"]["W"] + p["l2"]["b"]) - y) ** 2)

    def step(p, x, y, lr):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        return jax.tree.map(lambda w, g: w - lr * g, p, grads), value

    layer = lambda m, n: {"W": jnp.zeros((m, n)), "b": jnp.zeros(n)}
    return jax.jit(step).lower({"l1": layer(2, 8), "l2": layer(8, 1)}, jnp.zeros((4, 2)), jnp.zeros((4, 1)), 0.7)


def gpt_step():
    """`train-step` of `examples/nanogpt/model.shf`, for 73 characters and 12 texts."""
    sys.path.insert(0, str(ROOT / "tests/nanogpt"))
    import gpt

    state = gpt.init_state(gpt.init_params(jax.random.key(0), 73, gpt.CONFIG))
    ids = jnp.zeros((12, gpt.CONFIG["context"]), jnp.int32)
    return jax.jit(gpt.train_step).lower(state, ids, ids, 0.001)


def counts():
    """The name of each step, and the numbers of its operations in Sheaf and in JAX."""
    for name, lowered in [("xor_step", xor_step), ("gpt_step", gpt_step)]:
        yield name, count(golden(name)), count(lowered().as_text())
