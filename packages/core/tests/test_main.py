"""python -m rushlight plugins, doctor and run."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def rushlight(tmp_path, site):
    def run(*arguments, **env):
        path = os.pathsep.join([str(site.folder), *filter(None, sys.path)])
        return subprocess.run(
            [sys.executable, "-m", "rushlight", *arguments],
            env={**os.environ, "PYTHONPATH": path, **env},
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )

    return run


def test_plugins_lists_state_and_contributions(rushlight, site):
    site.wheel("broken", "raise OSError('no driver')", version="2.3")
    site.wheel("left-out", "")
    out = rushlight("plugins", RUSHLIGHT_PLUGINS="broken").stdout.splitlines()
    rows = {line.split()[0]: line.split(maxsplit=4)[1:] for line in out}
    assert rows["core"][2] == "loaded"
    assert "operators; devices cpu, cuda, meta" in rows["core"][3]
    assert rows["broken"] == ["broken", "2.3", "failed", "OSError: no driver"]
    assert rows["left_out"] == ["left-out", "1.0", "excluded", "left out by RUSHLIGHT_PLUGINS=broken"]


def test_doctor_names_what_is_wrong(rushlight, site):
    site.wheel("broken", "raise OSError('no driver')")
    result = rushlight("doctor", RUSHLIGHT_PLUGINS="broken,absent")
    assert result.returncode == 1
    assert "plugin 'broken' (broken 1.0) does not load. Fix it, or uninstall broken." in result.stdout
    assert "OSError: no driver" in result.stdout
    assert "RUSHLIGHT_PLUGINS names absent, but no such plugin is installed." in result.stdout


def test_doctor_of_a_sound_installation(rushlight):
    result = rushlight("doctor")
    assert result.returncode == 0, result.stdout
    assert "No fault found." in result.stdout


def test_doctor_finds_wheels_of_another_version(rushlight, site):
    site.wheel("rushlight-mobile", "", version="99.0", entry="mobile")
    assert "rushlight-mobile 99.0 is beside rushlight-core" in rushlight("doctor").stdout


def test_run_gives_torch(rushlight, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "sibling.py").write_text("value = 7\n")
    (tmp_path / "folder" / "script.py").write_text(
        "import sys, torch, torch.testing, sibling\n"
        "from torch.testing import assert_close\n"
        "import rushlight.testing\n"
        "print(torch.__name__, torch.__spec__.name, torch.testing is rushlight.testing)\n"
        "print(sys.argv, __name__, sibling.value)\n"
    )
    result = rushlight("run", "folder/script.py", "--flag", "-x", "1")
    assert result.stdout.splitlines() == [
        "rushlight rushlight True",
        "['folder/script.py', '--flag', '-x', '1'] __main__ 7",
    ], result.stderr


def test_run_of_a_module(rushlight, tmp_path):
    (tmp_path / "program.py").write_text("import sys, torch\nprint(torch.__name__, sys.argv[1:])\n")
    assert rushlight("run", "-m", "program", "a").stdout == "rushlight ['a']\n"


def test_run_passes_exit_status_and_errors(rushlight, tmp_path):
    (tmp_path / "exits.py").write_text("raise SystemExit(5)\n")
    (tmp_path / "fails.py").write_text("import torch.no_such_module\n")
    assert rushlight("run", "exits.py").returncode == 5
    assert "No module named 'rushlight.no_such_module'" in rushlight("run", "fails.py").stderr
