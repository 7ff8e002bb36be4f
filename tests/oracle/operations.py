"""How many operations the training steps of the XOR network and of the GPT have, in Sheaf and in JAX: both as StableHLO,
inlined and canonicalised by MLIR's own passes. Sheaf's are the golden files of `lang/tests/lang/golden.rs`."""

import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jax._src.interpreters import mlir
from jaxlib.mlir import ir, passmanager

ROOT = Path(__file__).parents[2]
PASSES = "builtin.module(inline,canonicalize,cse,canonicalize)"

# A reduction that Sheaf writes as a kernel, in dialects that JAX's MLIR lacks: its result, operands, body and types.
KERNEL = re.compile(
    r"(?P<result>%\S+) = flow\.dispatch\.region -> \((?P<type>[^)]*)\) \{\n"
    r".*?linalg\.generic .*? ins\((?P<operands>[^:]*) : (?P<types>[^)]*)\)(?P<body>.*?)flow\.return [^\n]*\n\s*\}",
    re.DOTALL,
)
KERNEL_OPERATION = re.compile(r"= (?:arith|math)\.")


def golden(name):
    """The text of a golden file, after its two-part head."""
    return (ROOT / f"lang/tests/lang/snapshots/lang__golden__{name}.snap").read_text().split("\n---\n", 1)[1]


def count(text):
    """The operations of a module and of the regions in it, without those that only end a region. A kernel counts as the
    operations of its body."""
    kernels = [len(KERNEL_OPERATION.findall(kernel["body"])) for kernel in KERNEL.finditer(text)]
    text = KERNEL.sub(r"\g<result> = stablehlo.custom_call @kernel(\g<operands>) : (\g<types>) -> \g<type>", text)
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        passmanager.PassManager.parse(PASSES).run(module.operation)
        operations = [name for name in names(module.operation) if name.startswith(("stablehlo.", "chlo."))]
        return sum(kernels) - len(kernels) + sum(1 for name in operations if name != "stablehlo.return")


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
