"""The capability table tells the truth of ops that are known, and its page works in a browser."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from rushlight import _capabilities
from rushlight._op import operators

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

DEVICE = """
import numpy as np
from rushlight.plugin import Backend, Kernel, Op, Unavailable

class Device(Backend):
    name = "half_done"
    xp = np

class Absent(Backend):
    name = "absent"

    @classmethod
    def probe(cls):
        return Unavailable("no board is plugged in")

def no_floats(x):
    if x.is_floating_point():
        raise NotImplementedError("no floats here")
    return x

def rushlight_register_backends():
    return [Device, Absent]

def rushlight_register_kernels(device_type):
    return [Kernel("neg", no_floats)] if device_type == "half_done" else []

def rushlight_register_ops():
    from rushlight.plugin import Sample
    samples = lambda make, dtype: [Sample((make(2),))]
    here = Op("half::on_cpu_only(Tensor self) -> Tensor", doc="Itself.").kernel("cpu", lambda x: x * 1)
    last = Op("half::unordered(Tensor self) -> Tensor", doc="Itself.").array(lambda xp, x: x * 1)
    return [here.samples(samples), last.samples(samples).nondeterministic("half_done")]
"""


@pytest.fixture(scope="module")
def on_cpu():
    return {row.op: row for row in _capabilities.capabilities(["cpu"]).rows}


def test_what_the_cpu_does(on_cpu):
    assert on_cpu["add.Tensor"].dtypes["float32"] == "native"
    assert on_cpu["add.Tensor"].wheel == "rushlight-core"
    assert set(on_cpu["sub.Tensor"].dtypes) == set(on_cpu["add.Tensor"].dtypes) - {"bool"}
    assert "int64" not in on_cpu["softmax.int"].dtypes
    assert on_cpu["broadcast_to"].dtypes["float32"] == "composite"
    assert not any("missing" in row.dtypes.values() for row in on_cpu.values())


def test_gradients(on_cpu):
    for name, expected in {"exp": True, "broadcast_to": True, "float": True, "int": False, "eq.Tensor": False}.items():
        assert on_cpu[name].differentiable is expected, name


def test_every_public_operator_has_a_row(on_cpu):
    records = {op.name for operator in operators.values() for op in operator.records}
    assert {name for name in records if not name.rpartition("::")[2].startswith("_")} == set(on_cpu)


@pytest.fixture
def rushlight(site):
    site.wheel("half-done", DEVICE)

    def run(*arguments):
        path = os.pathsep.join([str(site.folder), *filter(None, sys.path)])
        return subprocess.run(
            [sys.executable, "-m", "rushlight", *arguments],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            cwd=site.folder,
        )

    return run


def test_a_device_that_lacks_some(rushlight):
    lines = rushlight("capabilities", "--device", "half_done").stdout.splitlines()
    rows = {line.split()[0]: line for line in lines if line}
    assert re.search(r"native: .*int64.*\| missing: float32 float64", rows["neg"])
    assert re.search(r"missing: .*float32", rows["half::on_cpu_only"])
    assert "not deterministic" in rows["half::unordered"]
    assert "array: " in rows["exp"]


def test_a_device_that_is_absent_is_told_from_the_records(rushlight):
    out = rushlight("capabilities", "--device", "absent").stdout
    assert "not available here, this is what the records say: no board is plugged in" in out
    assert re.search(r"exp +array: .*float32", out)


def test_an_unknown_device(rushlight):
    result = rushlight("capabilities", "--device", "cpux")
    assert result.returncode == 1
    assert result.stderr.startswith("Expected one of absent, cpu, cuda, half_done, meta device type")


VIEWS = [
    ("device=half_done&search=neg", '<td class="missing">missing</td>', "on_cpu_only"),
    ("device=absent", "no board is plugged in", "half_done"),
    ("device=cpu&search=half+cpu_only", "1 operators", "softmax"),
    ("device=half_done&native=off&array=off&composite=off", "half::on_cpu_only", "softmax"),
]
"""What the address of the page asks for, what it shows then, and what it does not."""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on PATH")
def test_page_in_a_browser(rushlight, site):
    assert rushlight("capabilities", "--html").stdout.endswith("rows in capabilities.html\n")
    page = (site.folder / "capabilities.html").as_uri()
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={site.folder}/profile"]
    for state, shown, hidden in VIEWS:
        dump = [*command, "--dump-dom", f"{page}#{state}"]
        dom = subprocess.run(dump, capture_output=True, text=True, timeout=120).stdout
        table = dom[dom.index('<p id="reason"') : dom.index("<script>")]
        assert shown in table, state
        assert hidden not in table, state
