"""Times what `jax.jit` does in the first call of the GPT training step, in milliseconds, as one line of JSON:
`python first_call.py VOCABULARY [lower]`, where `lower` leaves it at that.

`lower` traces and makes StableHLO, `compile` makes machine code. The first is also timed again in the warm process, with
a new function: what JAX keeps of its own library functions is then there already.
"""

import json
import statistics
import sys
import time

import jax
import jax.numpy as jnp

import gpt


def milliseconds(f):
    start = time.perf_counter()
    result = f()
    return 1e3 * (time.perf_counter() - start), result


def main():
    state = gpt.init_state(gpt.init_params(jax.random.key(0), int(sys.argv[1]), gpt.CONFIG))
    ids = jnp.zeros((12, gpt.CONFIG["context"]), jnp.int32)
    arguments = state, ids, ids, 0.001

    def lower():
        return jax.jit(lambda *args: gpt.train_step(*args)).lower(*arguments)

    first, lowered = milliseconds(lower)
    again = statistics.median(milliseconds(lower)[0] for _ in range(7))
    times = {"lower": first, "lower_again": again}
    if sys.argv[2:] == ["lower"]:
        print(json.dumps(times))
        return
    compiling, program = milliseconds(lowered.compile)
    program(*arguments)[1].block_until_ready()
    calling = statistics.median(
        milliseconds(lambda: jax.block_until_ready(program(*arguments)))[0] for _ in range(7)
    )
    print(json.dumps({**times, "compile": compiling, "call": calling}))


if __name__ == "__main__":
    main()
