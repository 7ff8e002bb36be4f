"""Running examples with `sheaf test`."""

import json
import re
import subprocess
from dataclasses import dataclass, field

# A program that differs from JAX's by more than rounding is wrong; Case says how much rounding is fair.
TOLERANCE = 1e-4

# The two ways of running; what one does right, the other must too.
MODES = {"interpreted": ["--no-jit"], "compiled": ["--jit", "always"]}

# In a large file the lines themselves are not shown, and a place stands alone.
PLACE = re.compile(r"^\s*(?:┌─ )?(\S.*?):(\d+):\d+(?:: .*)?$", re.MULTILINE)
ABOUT_EXPECTED = re.compile(r"<expected value")


@dataclass
class Example:
    """An expression, what it must give, and what it is about."""

    name: str
    code: str
    value: str
    # Whether a program must give the value: not so where it follows from shapes alone.
    runs: bool = True
    # What it was made of, for the one who takes it apart.
    origin: object = None


@dataclass
class Failure:
    """An example that was wrong, and what `sheaf test` said."""

    example: Example
    mode: str
    message: str


@dataclass
class Outcome:
    """What became of examples."""

    examples: int = 0
    compiled: int = 0
    known: int = 0
    failures: list = field(default_factory=list)


class Sheaf:
    """The program under test, and a folder for its files."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder

    def check(self, name, header, examples, mode):
        """Runs examples in one mode."""
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
        command = [self.program, "test", "--json", "--tolerance", str(TOLERANCE), *MODES[mode], str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        try:
            [report] = json.loads(run.stdout)
        except ValueError:
            raise SystemExit(f"oracle: {' '.join(command)} ended with {run.returncode}:\n{run.stdout}{run.stderr}") from None
        outcome = Outcome(len(examples), report["compiled"], report["known"])
        outcome.failures = list(failures(run.stderr, at, mode, str(path)))
        if len(outcome.failures) != len(report["failures"]):
            raise SystemExit(f"oracle: {len(report['failures'])} failures were counted in {path}, but\n{run.stderr}")
        return outcome


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
