"""Trains examples/nanogpt in JAX from the same seed and compares the losses: `python train.py TEXT OUTPUT`.

OUTPUT is what train.shf printed. The last losses may differ by 1 %.
"""

import re
import sys
from pathlib import Path

import jax

import gpt

TOLERANCE = 0.01
LEARNING_RATE = 0.001
BATCH = 12
LINE = re.compile(r"step +([\d,]+)  loss ([\d.]+)  test loss ([\d.]+)")


def main():
    text, output = (Path(path).read_text() for path in sys.argv[1:3])
    sheaf = {int(n.replace(",", "")): (float(a), float(b)) for n, a, b in LINE.findall(output)}
    if not sheaf:
        sys.exit(f"{sys.argv[2]} has no line such as `step 1,000  loss 1.2345  test loss 1.2345`")

    seed = jax.random.key(1337)
    k_params, k_training, k_tests = (jax.random.fold_in(seed, i) for i in range(3))
    ids, alphabet = gpt.encode(text)
    border = len(ids) - len(ids) // 10
    context = gpt.CONFIG["context"]
    test = gpt.batch(k_tests, ids[border:], 100, context)
    test_loss = jax.jit(lambda p: gpt.loss(p, *test, gpt.CONFIG))
    step = jax.jit(gpt.train_step)
    batch = jax.jit(lambda key: gpt.batch(key, ids[:border], BATCH, context))

    state = gpt.init_state(gpt.init_params(k_params, len(alphabet), gpt.CONFIG))
    print("         loss                        test loss")
    print("  step   Sheaf   JAX     difference  Sheaf   JAX     difference")
    for i in range(max(sheaf)):
        state, value = step(state, *batch(jax.random.fold_in(k_training, i)), LEARNING_RATE)
        if i + 1 in sheaf:
            pairs = list(zip(sheaf[i + 1], (float(value), float(test_loss(state[0])))))
            differences = [abs(a - b) / b for a, b in pairs]
            columns = (f"{a:.4f}  {b:.4f}  {d:10.3%}" for (a, b), d in zip(pairs, differences))
            print(f"{i + 1:6,}   {'  '.join(columns)}", flush=True)
    if max(differences) > TOLERANCE:
        sys.exit(f"the last losses differ by more than {TOLERANCE:.0%}")


if __name__ == "__main__":
    main()
