"""Share of one of several processes: it makes the questions again, since functions cannot be sent."""

import functools
import os

import jax
import numpy as np

import cases
import dtypes
import table


# Programs run once or thrice: XLA takes a quarter of the time for code that is only as fast as it must be. Samplers are
# compared bit for bit, and with code as it is otherwise.
QUICK = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false"


def prepare(cache, dtype=None):
    """Makes a process ready."""
    # XLA would keep intermediate results of 16-bit floats in 32.
    os.environ["XLA_FLAGS"] = QUICK + " --xla_allow_excess_precision=false"
    jax.config.update("jax_enable_x64", dtype in dtypes.WIDE)
    keep(cache)


def keep(cache):
    """With a folder for what XLA compiled, the same questions again need no compilation."""
    if cache:
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


def entries(only, dtype=None):
    """The builtins with a text in their name, in another dtype where one is given."""
    found = [e for e in table.ENTRIES if not only or only in e.name]
    if dtype is None:
        return found
    recast = (dtypes.recast(e, dtype) for e in found if dtype in e.dtypes)
    return [e for e in recast if e is not None]


@functools.cache
def groups(seed, only, part, dtype=None):
    """Groups of one of so many questions about builtins."""
    questions = []
    for i, entry in enumerate(entries(only, dtype)):
        questions += cases.questions(entry, np.random.default_rng([seed, i]))
    questions = questions[::part]
    return [questions[i : i + cases.TOGETHER] for i in range(0, len(questions), cases.TOGETHER)]


def answers(seed, only, part, dtype, index):
    """Examples of one group."""
    group = groups(seed, only, part, dtype)[index]
    if dtype is None:
        return list(cases.answers(group))
    _, tolerance, nudge = dtypes.DTYPES[dtype]
    return list(cases.answers(group, tolerance, nudge))
