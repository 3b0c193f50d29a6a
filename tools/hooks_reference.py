"""Writes docs/guide/hooks-reference.md from the docstrings of the hooks and of what they return; --check compares."""

import argparse
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rushlight.plugin import interface, specs

PAGE = Path(__file__).parents[1] / "docs/guide/hooks-reference.md"
SOURCES = "../../packages/core/src/rushlight/plugin"
RETURNED = (
    interface.Backend,
    interface.Kernel,
    interface.Layer,
    interface.Format,
    interface.Collectives,
    interface.Store,
    interface.Rendezvous,
    interface.Available,
    interface.Unavailable,
    interface.DeviceProperties,
)
HEAD = f"""# Hooks reference

Written by `tools/hooks_reference.py` from the docstrings of [specs.py]({SOURCES}/specs.py) and
[interface.py]({SOURCES}/interface.py); a check keeps it current. [Hooks](hooks.md) tells when plugins
are loaded and what happens when one fails.
"""


def markdown(text: str) -> str:
    """A Google style docstring as Markdown: sections become lists, indented code becomes fenced."""
    parts: list[str] = []
    for part in inspect.cleandoc(text).replace("``", "`").split("\n\n"):
        head, _, body = part.partition("\n")
        if head in ("Args:", "Attributes:", "Raises:", "Returns:"):
            items = re.sub("^    ", "  ", dedented(body), flags=re.MULTILINE)
            parts += head, re.sub(r"^(\w+): ", r"- `\1`: ", items, flags=re.MULTILINE)
        elif not part.startswith("    "):
            parts.append(part)
        elif parts[-1].startswith("```"):
            parts[-1] = f"{parts[-1].removesuffix('```')}\n{dedented(part)}\n```"
        else:
            parts[-1] = parts[-1].removesuffix("::") + ":"
            parts.append(f"```text\n{dedented(part)}\n```")
    return "\n\n".join(parts)


def dedented(text: str) -> str:
    """The text without the first indentation of its lines."""
    return re.sub("^    ", "", text, flags=re.MULTILINE)


def sections(namespace: Any, module: str, head: str) -> Iterator[str]:
    """A section for each public function that a module or class of `module` defines itself, in their order."""
    for name in vars(namespace):
        function = getattr(namespace, name)
        if not name.startswith("_") and inspect.isroutine(function) and function.__module__ == module:
            signature = f"{name}{inspect.signature(function)}".replace("'", "")
            yield f"{head}{name}\n\n```text\n{signature}\n```\n\n{markdown(function.__doc__ or '')}\n"


def page() -> str:
    """The text of the page."""
    parts = [HEAD, *sections(specs, specs.__name__, "## ")]
    for kind in RETURNED:
        parts.append(f"## {kind.__name__}\n\n{markdown(kind.__doc__ or '')}\n")
        parts += sections(kind, kind.__module__, f"### {kind.__name__}.")
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the page is current")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        print(f"{PAGE.name} is not current. Run python tools/hooks_reference.py.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
