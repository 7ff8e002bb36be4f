"""Runs that do not come to their end, without JAX and without Sheaf: a script stands for the program under test."""

import tempfile
import time
import unittest
from pathlib import Path

from sheaf import Example, Sheaf

EXAMPLES = [Example("one", "(+ 1 1)", "2", origin=("body", "arguments"))]


class Limits(unittest.TestCase):
    def check(self, script, **limits):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "program")
            program.write_text(f"#!/usr/bin/env python3\n{script}\n")
            program.chmod(0o755)
            return Sheaf(str(program), Path(folder), **limits).check("file", "", EXAMPLES, "compiled")

    def failure(self, script, **limits):
        outcome = self.check(script, **limits)
        self.assertEqual((outcome.examples, outcome.compiled, len(outcome.failures)), (1, 0, 1))
        [failure] = outcome.failures
        # Nothing can be made small of it.
        self.assertIsNone(failure.example.origin)
        self.assertEqual(failure.example.name, "all 1 examples of file")
        return failure.message

    def test_a_run_that_ends_is_counted(self):
        outcome = self.check("""print('[{"compiled": 1, "known": 0, "failures": []}]')""")
        self.assertEqual((outcome.examples, outcome.compiled, outcome.failures), (1, 1, []))

    def test_time(self):
        # Processes that it started hold its pipes, and must end with it.
        script = """import subprocess, sys; print("at work", file=sys.stderr, flush=True); subprocess.run(["sleep", "600"])"""
        started = time.monotonic()
        message = self.failure(script, seconds=2)
        self.assertLess(time.monotonic() - started, 60)
        self.assertTrue(message.startswith("error: the file was not checked: it took more than 2 s\n"), message)
        self.assertTrue(message.endswith("said last:\nat work"), message)

    def test_memory(self):
        message = self.failure("x = bytearray(1 << 30)", memory=256 << 20)
        line = "error: the file was not checked: it ended with 1, within 256 MiB of addresses\n"
        self.assertTrue(message.startswith(line), message)
        self.assertTrue(message.endswith("MemoryError"), message)

    def test_a_signal(self):
        message = self.failure("import os; os.abort()")
        self.assertIn("it ended with -6, within 12288 MiB", message)


if __name__ == "__main__":
    unittest.main()
