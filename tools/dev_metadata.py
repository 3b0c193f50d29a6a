"""Writes packages/*/src/*.egg-info: a source tree on PYTHONPATH then shows its entry points as installed wheels do."""

import tomllib
from pathlib import Path


def main() -> None:
    for pyproject in sorted(Path(__file__).parents[1].glob("packages/*/pyproject.toml")):
        source = pyproject.parent / "src"
        if not source.is_dir():
            continue
        project = tomllib.loads(pyproject.read_text())["project"]
        info = source / f"{project['name'].replace('-', '_')}.egg-info"
        info.mkdir(exist_ok=True)
        header = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}"]
        header += [f"Requires-Dist: {requirement}" for requirement in project["dependencies"]]
        (info / "PKG-INFO").write_text("\n".join(header) + "\n")
        lines = []
        for group, entries in project.get("entry-points", {}).items():
            lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()), ""]
        (info / "entry_points.txt").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
