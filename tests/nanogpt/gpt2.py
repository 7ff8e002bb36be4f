"""Trains the model of examples/nanogpt at the size of GPT-2 for ten steps, in Sheaf and in JAX by turns, and compares:

    gpt2.py --sheaf target/release/sheaf [--layers 12] [--rounds 2]         with a Python that has JAX (scripts/jax-python)

Each run is a process of its own, on Linux. Sheaf runs once with empty caches; what it compiles then is there in the rounds.
Memory is the most that a process had resident at one time, from its start to its end. JAX compiles within its process;
Sheaf's compiler is a process of its own, whose memory is told apart, with the most that both had together. JAX is told to
donate the state of the training, as one does where memory counts; Sheaf finds out by itself.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
MODEL = HERE.parent.parent / "examples/nanogpt/model.shf"

# Bounds of Sheaf's figures, as multiples of JAX's.
INIT_TIMES = 3
PEAK_TIMES = 1.5
# The absolute difference that the losses of a step may have; they are between 0 and 12.
LOSS = 1e-3

# Number of draws of the parameters in a process of `init`: the first, and another.
INITS = 4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sheaf", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return peer(json.loads(options.peer))
    sizes = {name: getattr(options, name) for name in ("layers", "heads", "width", "context", "vocabulary", "rate")}
    init = {**sizes, "inits": INITS, "steps": 0}
    train = {**sizes, "inits": 0, "steps": options.steps}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for program in (MODEL, HERE / "gpt2.shf"):
            shutil.copy(program, folder)
        sheaf = [options.sheaf.absolute(), "run", "gpt2.shf", "--jit", "always"]
        home = {"SHEAF_HOME": str(folder / "home")}
        if installed := toolchains(options.sheaf):
            (folder / "home/data").mkdir(parents=True)
            (folder / "home/data/toolchains").symlink_to(installed)

        def in_sheaf(given):
            (folder / "given.json").write_text(json.dumps(given))
            return Run(sheaf, folder, home)

        def in_jax(given):
            return Run([sys.executable, HERE / "gpt2.py", "--peer", json.dumps(given)], folder, {"JAX_PLATFORMS": "cpu"})

        cold_init, cold = in_sheaf(init), in_sheaf(train)
        runs = {"init": ([], []), "train": ([], [])}
        for _ in range(options.rounds):
            for what, given in (("init", init), ("train", train)):
                for kept, run in zip(runs[what], (in_sheaf, in_jax), strict=True):
                    kept.append(run(given))
    sys.exit(report(cold_init, cold, runs))


def toolchains(sheaf):
    """The folder of the compilers that this user has, so that none is fetched for an empty SHEAF_HOME."""
    which = subprocess.run([sheaf, "toolchain", "which"], capture_output=True, text=True)
    found = [p for p in Path(which.stdout.strip()).parents if p.name == "toolchains"] if which.returncode == 0 else []
    return found[0].absolute() if found else None


def report(cold_init, cold, runs):
    """Prints the table; the faults, if there are any."""

    def both(what, figure):
        return [statistics.median(figure(run) for run in side) for side in runs[what]]

    def line(name, pair, unit, most=None):
        ratio = pair[0] / pair[1]
        fault = most is not None and ratio > most
        bound = f" of {most}" if most else ""
        print(f"| {name}, {unit} | {pair[0]:,.2f} | {pair[1]:,.2f} | {ratio:.2f}{bound} |")
        return [f"{name}: {ratio:.2f} times as much as JAX, not {most}"] if fault else []

    print("| | Sheaf | JAX | ratio |\n|---|---|---|---|")
    faults = []
    faults += line("init-params, first call", both("init", lambda run: run.inits[0] / 1e3), "s", INIT_TIMES)
    faults += line("init-params, again", both("init", lambda run: statistics.median(run.inits[1:]) / 1e3), "s", INIT_TIMES)
    line("peak of drawing the parameters", both("init", lambda run: run.peak), "MB")
    line("a step", both("train", lambda run: statistics.median(run.times[1:]) / 1e3), "s")
    line("first step", both("train", lambda run: run.times[0] / 1e3), "s")
    line("whole process", both("train", lambda run: run.seconds), "s")
    faults += line("peak", both("train", lambda run: run.peak), "MB", PEAK_TIMES)
    jax_peak = statistics.median(run.peak for run in runs["train"][1])
    faults += line("peak with empty caches", [cold.own_peak, jax_peak], "MB", PEAK_TIMES)
    print(
        f"\nWith empty caches: {cold_init.seconds:.0f} s for the parameters and {cold.seconds:.0f} s for the training. "
        f"Peak of the compiler's process {cold.helper_peak:,.0f} MB, of both at one time {cold.together:,.0f} MB."
    )
    print("\n| step | Sheaf | JAX | difference |\n|---|---|---|---|")
    jax_losses = runs["train"][1][0].losses
    for i, (a, b) in enumerate(zip(runs["train"][0][0].losses, jax_losses, strict=True)):
        print(f"| {i + 1} | {a:.6f} | {b:.6f} | {abs(a - b):.1e} |")
    for run in [cold, *runs["train"][0]]:
        worst = max(abs(a - b) for a, b in zip(run.losses, jax_losses, strict=True))
        if not worst <= LOSS:
            faults.append(f"the losses differ by {worst:.1e}, which is more than {LOSS}")
    return "\n".join(faults)


class Run:
    """A process from its start to its end: what it printed, the seconds it took, and its memory in MB."""

    def __init__(self, command, folder, variables):
        start = time.perf_counter()
        with open(folder / "output", "w+") as output:
            process = subprocess.Popen(
                command, cwd=folder, env={**os.environ, **variables}, stdout=output, stderr=subprocess.STDOUT
            )
            self.own_peak = self.helper_peak = self.together = 0
            ended = threading.Event()
            watch = threading.Thread(target=self._watch, args=(process.pid, ended))
            watch.start()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            ended.set()
            watch.join()
            self.seconds = time.perf_counter() - start
            output.seek(0)
            text = output.read()
        if process.returncode:
            sys.exit(f"{' '.join(map(str, command))} failed:\n{text}")
        # Of the process, or of one that it has waited for.
        self.peak = usage.ru_maxrss * 1024 / 1e6
        if self.helper_peak == 0:
            self.own_peak = self.together = self.peak
        lines = [words for words in map(str.split, text.splitlines()) if words]
        self.inits = [float(words[1]) for words in lines if words[0] == "init"]
        self.losses = [float(words[1]) for words in lines if words[0] == "step"]
        self.times = [float(words[2]) for words in lines if words[0] == "step"]

    def _watch(self, pid, ended):
        while not ended.wait(0.02):
            own, helpers = memory(pid), [memory(child) for child in descendants(pid)]
            self.own_peak = max(self.own_peak, own["VmHWM"])
            self.helper_peak = max([self.helper_peak, *(helper["VmHWM"] for helper in helpers)])
            self.together = max(self.together, sum(each["VmRSS"] for each in [own, *helpers]))


def memory(pid):
    """Resident memory of a process, now and at its peak, in MB."""
    try:
        lines = [line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    except OSError:
        lines = []
    return {"VmHWM": 0, "VmRSS": 0} | {w[0][:-1]: int(w[1]) * 1024 / 1e6 for w in lines if w[0] in ("VmHWM:", "VmRSS:")}


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None


def descendants(pid):
    """The processes that a process has started; not its copy, which a new one is for a moment."""
    try:
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    children = [int(child) for text in lists for child in text.split()]
    children = [child for child in children if command_line(child) != command_line(pid)]
    return children + [below for child in children for below in descendants(child)]


def peer(given):
    import jax

    import gpt

    config = {"context": given["context"], "width": given["width"], "n-layers": given["layers"], "n-heads": given["heads"]}
    text = jax.random.randint(jax.random.key(2), (1, given["context"] + 1), 0, given["vocabulary"])

    def milliseconds(f, *args):
        start = time.perf_counter()
        result = jax.block_until_ready(f(*args))
        return result, 1e3 * (time.perf_counter() - start)

    def init():
        return gpt.init_params(jax.random.key(1), given["vocabulary"], config)

    for _ in range(given["inits"]):
        p, taken = milliseconds(init)
        print(f"init {taken:.1f} {p['positions'][0, 0]:.6f}")
        del p
    if given["steps"]:
        p, m, v, t = gpt.init_state(init())
        # Donated buffers must be there once for each place.
        state = p, m, jax.tree.map(jax.numpy.copy, v), t
        del p, m, v
        step = jax.jit(
            lambda state, ids, targets, rate: gpt.train_step(state, ids, targets, rate, config), donate_argnums=0
        )
    for _ in range(given["steps"]):
        (state, value), taken = milliseconds(step, state, text[:, :-1], text[:, 1:], given["rate"])
        print(f"step {value:.7f} {taken:.1f}")


if __name__ == "__main__":
    main()
