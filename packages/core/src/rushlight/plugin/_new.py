"""`python -m rushlight new-plugin`: writes a repository that builds, is found, and passes its own tests."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from keyword import iskeyword
from pathlib import Path

from .. import __version__, _areas

KINDS = {
    "backend": "A device type for rushlight",
    "collectives": "Communication between processes for rushlight",
    "ops": "Operators for rushlight",
    "rendezvous": "A meeting place of processes for rushlight",
}
"""What a plugin may bring, and how its wheel is summarised."""

OPTIONS = {"backend": "--device=@name@", "ops": "--operators=^@name@::"}
"""What pytest is called with: the part of the conformance suite that concerns the plugin."""


def new_plugin(name: str, kind: str, parent: Path) -> Path:
    """Writes the repository of a plugin.

    Args:
        name: The plugin's name; the wheel is `rushlight-NAME`, the package `rushlight_NAME`.
        kind: One of `KINDS`.
        parent: Folder that the repository's folder is made in.

    Returns:
        The repository's folder, `rushlight-NAME`.

    Raises:
        ValueError: The name is not a lower-case identifier, or one of rushlight's own.
        FileExistsError: The folder is there already.
    """
    if not (name.isidentifier() and name.isascii() and name.islower()) or iskeyword(name):
        raise ValueError(f"new-plugin: the name must be an identifier in lower case, got NAME={name!r}.")
    taken = sorted({"core", "cpu", "cuda", "meta", "numpy", *_areas.WHEELS})
    if name in taken:
        raise ValueError(f"new-plugin: the name is rushlight's own, got NAME={name!r}. Taken are {', '.join(taken)}.")
    if kind not in KINDS:
        raise ValueError(f"new-plugin: the kind must be one of {', '.join(KINDS)}, got KIND={kind!r}.")
    folder = parent / f"rushlight-{name}"
    folder.mkdir(parents=True)
    words = {"addopts": OPTIONS.get(kind, ""), "core": __version__, "summary": KINDS[kind]}
    words |= {"name": name, "Name": name.title().replace("_", "")}  # last, since the others may hold it
    templates = resources.files(__package__) / "_templates"
    for part in ("common", kind):
        _write(templates / part, folder, words)
    return folder


def _write(template: Traversable, target: Path, words: dict[str, str]) -> None:
    if template.is_dir():
        target.mkdir(exist_ok=True)
        for item in template.iterdir():
            name = item.name.removesuffix(".in").replace("dot-", ".")
            _write(item, target / (f"rushlight_{words['name']}" if name == "package" else name), words)
        return
    text = template.read_text(encoding="utf-8")
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    target.write_text(text, encoding="utf-8")
