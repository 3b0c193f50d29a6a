"""The CUDA backend over a CuPy of NumPy's arrays, whose generated kernels a C++ compiler runs on the host."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FAKE = Path(__file__).with_name("fake_cuda")


@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "c++")) is None, reason="there is no C++ compiler")
def test_without_a_gpu():
    path = os.pathsep.join([str(FAKE), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", str(FAKE / "check_cuda.py")]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
