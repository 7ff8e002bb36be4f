"""Running examples with `sheaf test`."""

import json
import os
import random
import re
import signal
import subprocess
from dataclasses import dataclass, field

# A program that differs from JAX's by more than rounding is wrong; Case says how much rounding is fair.
TOLERANCE = 1e-4

# The ways of running; what one does right, the others must too. Of kernels, all is one kernel that can be; tuned programs
# have flags of the compiler that a tuning record may name, others in each file.
MODES = {
    "interpreted": ["--no-jit"],
    "compiled": ["--jit", "always"],
    "kernels": ["--jit", "always", "--kernels", "always"],
    "tuned": ["--jit", "always", "--kernels", "never"],
}

# The table of `cache/artifacts/src/tuning.rs`.
FLAGS = [
    "data-tiling", "ukernels", "im2col", "reassociate-reductions", "multi-use-fusion", "split-reduction",
    "propagate-transposes",
]

# In a large file the lines themselves are not shown, and a place stands alone.
PLACE = re.compile(r"^\s*(?:┌─ )?(\S.*?):(\d+):\d+(?:: .*)?$", re.MULTILINE)
ABOUT_EXPECTED = re.compile(r"<expected value")


# Limits of a file: half an hour, though the slowest takes minutes, and 12 GiB of addresses in each process.
SECONDS = 30 * 60
MEMORY = 12 << 30

# So much of the end of what a run said is shown.
SHOWN = 2000


@dataclass
class Example:
    """An expression, what it must give, and what it is about."""

    name: str
    code: str
    value: str
    # True if a program must give the value: not so if it follows from shapes alone.
    runs: bool = True
    # Its parts, for the search of a smaller one.
    origin: object = None


@dataclass
class Failure:
    """An example that was wrong, and what `sheaf test` said."""

    example: Example
    mode: str
    message: str


@dataclass
class Outcome:
    """Results of examples."""

    examples: int = 0
    compiled: int = 0
    known: int = 0
    failures: list = field(default_factory=list)


class Sheaf:
    """The program under test, a folder for its files, and a seed for the flags of tuned programs."""

    def __init__(self, program, folder, seconds=SECONDS, memory=MEMORY, seed=0):
        self.program = program
        self.folder = folder
        self.seconds = seconds
        self.memory = memory
        self.seed = seed

    def options(self, name, mode):
        """The options of a mode, for the file of this name."""
        if mode != "tuned":
            return MODES[mode]
        drawn = random.Random(f"{self.seed} {name}")
        flags = [flag for flag in FLAGS if drawn.random() < 0.5]
        return [*MODES[mode], "--flags", ",".join(flags or FLAGS)]

    def check(self, name, header, examples, mode, tolerance=TOLERANCE):
        """Runs examples in one mode. A run that does not come to its end is one failure, that of the file."""
        path = self.folder / f"{name}.shf"
        lines = header.rstrip("\n").split("\n")
        at = {}
        for example in examples:
            # The code, then its value on the next line.
            for row in (example.code, ";=> " + example.value):
                assert "\n" not in row, row
                lines.append(row)
                at[len(lines)] = example
        path.write_text("\n".join(lines) + "\n")
        command = [self.program, "test", "--json", "--tolerance", str(tolerance), *self.options(name, mode), str(path)]
        ending, printed, said = self.run(command)
        try:
            [report] = json.loads(printed)
        except ValueError:
            message = f"error: the file was not checked: {ending}\n{' '.join(command)} said last:\n{(printed + said)[-SHOWN:]}"
            whole = Failure(Example(f"all {len(examples)} examples of {name}", str(path), ""), mode, message.rstrip())
            return Outcome(len(examples), failures=[whole])
        outcome = Outcome(len(examples), report["compiled"], report["known"])
        outcome.failures = list(failures(said, at, mode, str(path)))
        if len(outcome.failures) != len(report["failures"]):
            raise SystemExit(f"oracle: {len(report['failures'])} failures were counted in {path}, but\n{said}")
        return outcome

    def run(self, command, folder=None):
        """Runs a command within the limits, in a folder: how it ended, what it printed, what it said."""
        # A shell sets the limit, since Python's own way (preexec_fn) can hang where there are threads, as here.
        limited = ["sh", "-c", f'ulimit -v {self.memory >> 10}; exec "$@"', "sh", *command]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        # A group of its own: the compiler that it starts ends with it, and leaves the pipes.
        with subprocess.Popen(limited, start_new_session=True, cwd=folder, **pipes) as run:
            try:
                printed, said = run.communicate(timeout=self.seconds)
                ending = f"it ended with {run.returncode}, within {self.memory >> 20} MiB of addresses"
            except subprocess.TimeoutExpired:
                ending = f"it took more than {self.seconds} s"
                printed, said = "", ""
            except BaseException:
                os.killpg(run.pid, signal.SIGKILL)
                raise
            if run.returncode is None:
                os.killpg(run.pid, signal.SIGKILL)
                printed, said = run.communicate()
        return ending, printed, said


def failures(text, at, mode, path):
    """The messages of a run, with their examples."""
    for message in re.split(r"^(?=error: )", text, flags=re.MULTILINE):
        if not message.startswith("error: "):
            continue
        lines = [int(line) for file, line in PLACE.findall(message) if file == path]
        # A place in the header is that of a definition which an example called.
        lines += [int(n) for n in re.findall(r"^\s*(\d+) │", message, flags=re.MULTILINE)]
        example = next((at[line] for line in lines if line in at), None)
        yield Failure(example or Example("the file itself", path, ""), mode, message.rstrip())
