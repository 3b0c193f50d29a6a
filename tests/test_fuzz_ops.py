"""Operators with random arguments, a few of each; `python tests/fuzz_ops.py` goes on for as long as one likes."""

import subprocess
import sys
import time
from pathlib import Path

import fuzz_ops
import pytest


def test_a_few_calls_of_every_operator():
    script = str(Path(fuzz_ops.__file__))
    process = subprocess.run([sys.executable, script, "--rounds", "5"], capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("", "done"),
        ("import os; os.abort()", "exit status -6"),
        ("import time; time.sleep(60)", "hangs for 0.3 s"),
    ],
)
def test_how_a_process_ends(code, end):
    command = [sys.executable, "-c", f"print('> 7 add 0', flush=True); {code}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
        watched = fuzz_ops.watch(process, 0.3, time.monotonic() + 60)
    assert watched.lines == [(">", "7 add 0")]
    assert watched.end.startswith(end)


def test_parameters_of_a_schema():
    found = fuzz_ops.parameters("f.x(Tensor(a!) self, int[2] size=[0, 1], *, Scalar? fill=None) -> (Tensor, Tensor)")
    assert found == [("Tensor", "self", False, False), ("int[]", "size", False, True), ("Scalar", "fill", True, True)]
