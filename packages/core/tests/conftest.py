"""A folder of installed plugins, made up by tests, and programs that run with it on their path."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


class Site:
    def __init__(self, folder: Path):
        self.folder = folder

    def wheel(self, name, source, *, version="1.0", entry=None, api=None):
        """Installs a wheel of one module; `name` with dashes is the wheel, with underscores the module."""
        module, entry = name.replace("-", "_"), entry or name.replace("-", "_")
        (self.folder / f"{module}.py").write_text(textwrap.dedent(source))
        info = self.folder / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        points = f"[rushlight.plugins]\n{entry} = {module}\n"
        if api:
            points += f"[rushlight.plugin_api]\n{entry} = {api}\n"
        (info / "entry_points.txt").write_text(points)

    def run(self, code, *, warnings="error", **env):
        """What a program prints; warnings are errors in it."""
        path = os.pathsep.join([str(self.folder), *filter(None, sys.path)])
        process = subprocess.run(
            [sys.executable, "-W", warnings, "-c", textwrap.dedent(code)],
            env={**os.environ, "PYTHONPATH": path, **env},
            capture_output=True,
            text=True,
            cwd=self.folder,
        )
        assert process.returncode == 0, process.stderr
        return process.stdout


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)
