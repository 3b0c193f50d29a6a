"""The C API across versions: what was built against an earlier minor version loads, what needs a later one does not."""

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import rushlight
from rushlight.plugin import PLUGIN_API, PLUGIN_API_MINOR

DATA = Path(__file__).parent / "data" / "api"
KEPT = sorted(path.name for path in DATA.iterdir() if path.is_dir())
COMPILER = next(filter(None, map(shutil.which, [os.environ.get("CXX") or "c++", "g++", "clang++"])), None)

needs_compiler = pytest.mark.skipif(COMPILER is None or os.name != "posix", reason="no C++ compiler that takes -shared")

HOOKS = """
from rushlight.plugin import Op

def rushlight_register_ops():
    import _kept
    return [Op("kept::scaled(Tensor self, float factor) -> Tensor", doc="Times a number.")]
"""


LAYERS = """
from rushlight.plugin import Layer, Op

def broken():
    raise OSError("no room")

def rushlight_register_ops():
    return [Op("layered::f(Tensor self) -> Tensor", doc="None.")]

def rushlight_register_layers():
    import _layer
    return [Layer("counter", 50, _layer.install), Layer("second", 60, {second})]
"""


def build(folder, headers, *options, source="plugin", module="_kept"):
    """Compiles a source of the data against headers."""
    target = folder / f"{module}{sysconfig.get_config_var('EXT_SUFFIX')}"
    command = [COMPILER, "-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-O1", *options]
    if sysconfig.get_platform().startswith("macosx"):
        command += ["-undefined", "dynamic_lookup"]
    includes = [f"-I{headers}", f"-I{sysconfig.get_paths()['include']}"]
    subprocess.run([*command, *includes, str(DATA / f"{source}.cpp"), "-o", str(target)], check=True)


def declared(constant, header):
    return int(re.search(rf"{constant} = (\d+)", header.read_text())[1])


def test_versions_of_python_and_c_agree():
    header = Path(rushlight.get_include()) / "rushlight" / "api.h"
    assert declared("RL_ABI", header) == PLUGIN_API
    assert declared("RL_MINOR", header) == PLUGIN_API_MINOR


def test_headers_are_kept_by_version():
    assert KEPT
    for name in KEPT:
        header = DATA / name / "rushlight" / "api.h"
        assert name == f"{declared('RL_ABI', header)}.{declared('RL_MINOR', header)}"


@needs_compiler
@pytest.mark.parametrize("version", KEPT)
def test_plugin_of_an_earlier_version_loads(site, version):
    site.wheel("kept", HOOKS, api=f"v{version}")
    build(site.folder, DATA / version)
    out = site.run(
        """
        import rushlight
        rushlight.plugin.load("kept")
        import _kept
        x = rushlight.arange(6, dtype=rushlight.float64).reshape(2, 3)
        print(rushlight.ops.kept.scaled(x, 0.5).tolist())
        print(_kept.through_the_table(x).tolist(), _kept.product())
        print(*_kept.versions())
        """
    )
    abi, minor = version.split(".")
    assert out.splitlines() == [
        "[[0.0, 0.5, 1.0], [1.5, 2.0, 2.5]]",
        "[0.0, 4.0, 8.0, 12.0, 16.0, 20.0] (19.0, 22.0, 43.0, 50.0)",
        f"{abi} {minor} {PLUGIN_API} {PLUGIN_API_MINOR}",
    ]


@needs_compiler
def test_plugin_that_needs_a_later_version_is_refused_by_its_own_check(site):
    site.wheel("kept", HOOKS)  # it does not say in its metadata what it needs
    later = site.folder / "include" / "rushlight"
    shutil.copytree(Path(rushlight.get_include()) / "rushlight", later)
    api = (later / "api.h").read_text()
    (later / "api.h").write_text(re.sub(r"RL_MINOR = \d+", "RL_MINOR = 99", api))
    build(site.folder, later.parent)
    out = site.run(
        """
        import rushlight
        plugin = rushlight.plugin.load("kept")
        print(type(plugin.error).__name__, plugin.error)
        print(rushlight.ones(2) + 1)
        """,
        warnings="ignore",
    )
    assert out.splitlines() == [
        f"ImportError kept 1.0: built for rushlight C API 1.99, but the installed rushlight-core has {PLUGIN_API}."
        f"{PLUGIN_API_MINOR}. Install matching versions of both wheels.",
        "tensor([2., 2.])",
    ]


@needs_compiler
@pytest.mark.parametrize(
    ("second", "fault"), [("print", None), ("broken", "no room"), ("_layer.install", "'counter' is registered already")]
)
def test_layers_are_all_there_or_none(site, second, fault):
    site.wheel("layered", LAYERS.format(second=second))
    build(site.folder, rushlight.get_include(), source="layer", module="_layer")
    out = site.run(
        """
        import rushlight
        plugin = rushlight.plugin.load("layered")
        print(plugin.state, plugin.error)
        import _layer
        _layer.ask()
        rushlight.ones(2) + 1
        print(_layer.seen() > 0, "layered::f" in rushlight.plugin.operators())
        """,
        warnings="ignore",
    )
    first, last = out.splitlines()[-2:]
    assert first.startswith("failed" if fault else "loaded")
    assert (fault or "") in first
    assert last == ("False False" if fault else "True True")


@pytest.mark.parametrize(
    ("api", "loads"), [("v1", True), ("v1.0", True), ("v1.99", False), ("v2", False), ("1", False)]
)
def test_metadata_is_read_before_any_code_runs(site, api, loads):
    site.wheel("native", "print('its code runs')", version="3.1", api=api)
    out = site.run(
        "import rushlight; print(rushlight.plugin.load('native').error)",
        warnings="ignore",
    )
    assert ("its code runs" in out) == loads
    if not loads:
        assert f"plugin 'native' (native 3.1) is built for {api} of the plugin API, but rushlight-core" in out
