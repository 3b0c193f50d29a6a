"""`rushlight new-plugin`: what it refuses, and that it writes plugins; `nox -s new_plugin` runs their own tests."""

import ast
import os
import re
import subprocess
import sys
import tomllib

import pytest

from rushlight.__main__ import main
from rushlight.plugin._new import KINDS, new_plugin

LISTED = {
    "backend": "devices made_up",
    "collectives": "collectives made_up",
    "ops": "1 operators",
    "rendezvous": "rendezvous made_up",
}
"""What `python -m rushlight plugins` shows of the plugin made_up of each kind."""


@pytest.mark.parametrize("name", ["", "Upper", "two words", "a-b", "9lives", "../up", "a.b", "ünder", "class", "None"])
def test_names_that_are_no_identifiers(tmp_path, name):
    with pytest.raises(ValueError, match=r"new-plugin: the name must be an identifier in lower case, got NAME="):
        new_plugin(name, "ops", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["core", "cpu", "cuda", "linalg", "meta"])
def test_names_of_our_own(tmp_path, name):
    with pytest.raises(ValueError, match=r"new-plugin: the name is rushlight's own"):
        new_plugin(name, "backend", tmp_path)


def test_unknown_kind(tmp_path):
    with pytest.raises(ValueError, match="the kind must be one of backend, collectives, ops, rendezvous, got KIND='x'"):
        new_plugin("made_up", "x", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_there_is_left_alone(tmp_path, capsys):
    (tmp_path / "rushlight-made_up").mkdir()
    assert main(["new-plugin", "made_up", "--kind", "ops", "--into", str(tmp_path)]) == 1
    assert "rushlight-made_up" in capsys.readouterr().err
    assert not list((tmp_path / "rushlight-made_up").iterdir())


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_is_written_parses(tmp_path, kind):
    folder = new_plugin("made_up", kind, tmp_path)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"pyproject.toml", "README.md", ".gitignore", ".github/workflows/test.yml"} < {
        path.relative_to(folder).as_posix() for path in files
    }
    for path in files:
        text = path.read_text()
        assert not re.search(r"@\w+@", text), path
        if path.suffix == ".py":
            assert ast.get_docstring(ast.parse(text)), path
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert project["project"]["name"] == "rushlight-made_up"
    assert project["project"]["entry-points"]["rushlight.plugins"] == {"made_up": "rushlight_made_up.hooks"}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_is_written_is_a_plugin(tmp_path, kind):
    folder = new_plugin("made_up", kind, tmp_path)
    info = folder / "src" / "rushlight_made_up-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rushlight-made_up\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[rushlight.plugins]\nmade_up = rushlight_made_up.hooks\n")
    path = os.pathsep.join([str(folder / "src"), *filter(None, sys.path)])
    result = subprocess.run(
        [sys.executable, "-m", "rushlight", "plugins"],
        env={**os.environ, "PYTHONPATH": path, "RUSHLIGHT_PLUGINS": "made_up"},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    line = next(line for line in result.stdout.splitlines() if line.startswith("made_up"))
    assert line.split(maxsplit=4)[3:] == ["loaded", LISTED[kind]]
