"""Runs the Python examples of Markdown files, and with --docstrings those of rushlight's docstrings.

Blocks fenced as `python` run one after the other in one namespace per file; a block with `>>>` is checked as a doctest.
A block fenced as a language and a path becomes that file, in a folder that the examples run in. With --commands the
lines of `console` blocks that start with `$ ` run there too; they may install packages into this environment.
"""

import argparse
import contextlib
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_markdown(path: Path, runner: doctest.DocTestRunner, commands: bool = False) -> int:
    """Runs the blocks of one file and returns how many there were."""
    text = path.read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "__main__"}
    blocks = 0
    for match in BLOCK.finditer(text):
        language, file, code = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        if file:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(code, encoding="utf-8")
        elif language == "console" and commands:
            for command in re.findall(r"^\$ (.*)$", code, re.MULTILINE):
                print(f"{path}:{line}: {command}", flush=True)
                subprocess.run(command, shell=True, check=True)
        elif language != "python":
            continue
        elif ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, namespace, f"{path}:{line}", str(path), line)
            test.globs = namespace
            runner.run(test, clear_globs=False)
        else:
            exec(compile("\n" * line + code, str(path), "exec"), namespace)
        blocks += 1
    return blocks


def documented() -> Iterator[tuple[str, object]]:
    """The objects of rushlight that carry a docstring, each once, with the name of the module that shows it."""
    package = importlib.import_module("rushlight")
    seen: set[int] = set()
    for module_info in pkgutil.walk_packages(package.__path__, "rushlight."):
        if module_info.name.endswith("__main__") or ".testing.conformance" in module_info.name:
            continue
        module = importlib.import_module(module_info.name)
        for name, value in [("", module), *vars(module).items()]:
            origin = getattr(value, "__module__", "") if name else module_info.name
            if id(value) in seen or not str(origin).startswith("rushlight"):
                continue
            seen.add(id(value))
            yield f"{module_info.name}.{name}", value
            if isinstance(value, type):
                for member, function in vars(value).items():
                    yield f"{module_info.name}.{name}.{member}", function


def run_docstrings(runner: doctest.DocTestRunner) -> int:
    """Runs the doctests of all docstrings and returns how many docstrings had one."""
    package = importlib.import_module("rushlight")
    parser = doctest.DocTestParser()
    count = 0
    for name, value in documented():
        text = getattr(value, "__doc__", None)
        if not isinstance(text, str) or ">>>" not in text or text is type(value).__doc__:
            continue  # nothing of its own, as an instance shows its class's
        count += 1
        namespace = {"rushlight": package, "torch": package}
        runner.run(parser.get_doctest(text, namespace, name, None, 0))
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--docstrings", action="store_true")
    parser.add_argument("--commands", action="store_true")
    arguments = parser.parse_args()
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    texts = [(path, path.resolve()) for path in arguments.files]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # for the files that examples write
        for path, place in texts:
            print(f"{path}: {run_markdown(place, runner, arguments.commands)} examples")
        if arguments.docstrings:
            print(f"docstrings: {run_docstrings(runner)} with examples")
    return 1 if runner.summarize().failed else 0


if __name__ == "__main__":
    sys.exit(main())
