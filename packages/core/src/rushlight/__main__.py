"""The command line, `python -m rushlight` or `rushlight`: what is installed, what runs where, PyTorch scripts as is.

python -m rushlight plugins                 every plugin: wheel, version, state, contributions
python -m rushlight doctor                  what is wrong with this installation; exit status 1 if anything
python -m rushlight capabilities            which operator runs how, by device and dtype
python -m rushlight capabilities --device cuda --html table.html
python -m rushlight new-plugin NAME --kind backend|collectives|ops|rendezvous
                                            writes the repository of a plugin that passes its own tests
python -m rushlight run script.py [args]    runs a script in which `torch` stands for rushlight
python -m rushlight run -m module [args]
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import runpy
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import distributions
from pathlib import Path
from types import ModuleType
from typing import Any

import rushlight

from . import _registry
from .plugin import PLUGIN_API, PluginWarning
from .plugin.manager import EXCLUDED, FAILED, VARIABLE, Manager, Plugin


def _load_everything() -> Manager:
    manager = _registry.manager()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)  # failures are listed below
        manager.load_all(ours=True)
    return manager


def plugins() -> int:
    """Prints every plugin: wheel, version, state and what it contributes."""
    rows = [("PLUGIN", "WHEEL", "VERSION", "STATE", "CONTRIBUTES")]
    for plugin in _load_everything().plugins.values():
        rows.append((plugin.name, plugin.wheel, plugin.version, plugin.state, _summary(plugin)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        print(*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4], sep="  ")
    return 0


def _summary(plugin: Plugin) -> str:
    if plugin.state == FAILED:
        return f"{type(plugin.error).__name__}: {plugin.error}".splitlines()[0]
    if plugin.state == EXCLUDED:
        return f"left out by {VARIABLE}={os.environ[VARIABLE]}"
    new = plugin.contributions
    named = {
        "devices": [backend.name for backend in new.backends],
        "layers": [layer.name for layer in new.layers],
        "formats": [format.name for format in new.formats],
        "collectives": [each.name for each in new.collectives],
        "rendezvous": [each.name for each in new.rendezvous],
    }
    parts = [f"{len(new.ops)} operators"] if new.ops else []
    parts += [f"{kind} {', '.join(names)}" for kind, names in named.items() if names]
    parts += [f"{len(kernels)} kernels for {device}" for device, kernels in new.kernels.items() if kernels]
    return "; ".join(parts) or "nothing"


def doctor() -> int:
    """Prints the state of the installation and what is wrong with it; 1 if anything is."""
    manager = _load_everything()
    print(f"rushlight-core {rushlight.__version__}, plugin API v{PLUGIN_API}, in {os.path.dirname(rushlight.__file__)}")
    print(f"Python {platform.python_version()}, NumPy {importlib.import_module('numpy').__version__}")
    print(f"{platform.platform()}, {os.cpu_count()} processors")

    print("\nDevices")
    for name, entry in sorted(_registry.backends.items()):
        answer = _registry.probe(name)
        print(f"  {name:8} {'available' if answer else f'not available: {answer.reason}'}  ({entry.wheel})")

    faults = list(_faults(manager))
    print("\nFaults" if faults else "\nNo fault found.")
    for fault in faults:
        print("  " + fault.replace("\n", "\n      "))
    return 1 if faults else 0


def _faults(manager: Manager) -> Any:
    for plugin in manager.plugins.values():
        if plugin.state == FAILED:
            trace = "".join(traceback.format_exception(plugin.error)).rstrip()
            yield f"{plugin.title} does not load. Fix it, or uninstall {plugin.wheel}.\n{trace}"
    for name in filter(None, os.environ.get(VARIABLE, "").replace(" ", "").split(",")):
        if name != "none" and name not in manager.plugins:
            yield f"{VARIABLE} names {name}, but no such plugin is installed."
    for distribution in distributions():
        name = distribution.name or ""
        if name.startswith("rushlight-") and _is_ours(name) and distribution.version != rushlight.__version__:
            yield (
                f"{name} {distribution.version} is beside rushlight-core {rushlight.__version__}. "
                f"Install one version of all (pip install '{name}=={rushlight.__version__}')."
            )


def _is_ours(distribution: str) -> bool:
    from ._areas import WHEELS

    return distribution.removeprefix("rushlight-") in {"core", *WHEELS}


def capabilities(device: str | None, html: str | None) -> int:
    """Prints which operator runs how by device and dtype, or writes a page that can be searched; 1 if it cannot."""
    from . import _capabilities

    _load_everything()
    try:
        table = _capabilities.capabilities(None if device is None else [device])
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    if html is None:
        print(_capabilities.as_text(table))
    else:
        Path(html).write_text(_capabilities.as_html(table), encoding="utf-8")
        print(f"{len(table.rows)} rows in {html}")
    return 0


def new_plugin(name: str, kind: str, folder: str) -> int:
    """Writes the repository of a plugin and says what to do next; 1 if it cannot."""
    from .plugin._new import new_plugin

    try:
        made = new_plugin(name, kind, Path(folder))
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{made} is a plugin. Next: cd {made}; pip install -e '.[test]'; pytest")
    return 0


class TorchFinder(MetaPathFinder):
    """Makes `import torch` and `import torch.x.y` give rushlight's modules. An installed PyTorch is not touched."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == "torch" or name.startswith("torch."):
            return ModuleSpec(name, _Alias("rushlight" + name.removeprefix("torch")))
        return None


class _Alias(Loader):
    """Gives a module that is known by another name, untouched."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.name)
        self.spec = module.__spec__  # the import system is about to replace it
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


def run(target: str, arguments: Sequence[str], is_module: bool = False) -> int:
    """Runs a script or module as `__main__`, with `torch` standing for rushlight.

    Args:
        target: Path of the script, or name of the module.
        arguments: What the script finds in `sys.argv[1:]`.
        is_module: Whether `target` is a module.

    Returns:
        0; an exception or exit of the script passes through.
    """
    sys.meta_path.insert(0, TorchFinder())
    sys.argv = [target, *arguments]
    if is_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(target))
        runpy.run_path(target, run_name="__main__")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m rushlight", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("plugins", help="list the plugins")
    commands.add_parser("doctor", help="say what is wrong with this installation")
    table = commands.add_parser("capabilities", help="say which operator runs how, by device and dtype")
    table.add_argument("--device", help="only this device type")
    table.add_argument("--html", metavar="FILE", nargs="?", const="capabilities.html", help="write a searchable page")
    maker = commands.add_parser("new-plugin", help="write the repository of a plugin")
    maker.add_argument("name", help="the plugin's name, a lower-case identifier; its wheel is rushlight-NAME")
    maker.add_argument("--kind", required=True, choices=["backend", "collectives", "ops", "rendezvous"])
    maker.add_argument("--into", default=".", metavar="FOLDER", help="where its folder is made (here)")
    runner = commands.add_parser("run", help="run a PyTorch script on rushlight")
    runner.add_argument("-m", dest="is_module", action="store_true", help="the target is a module")
    runner.add_argument("target", help="script or module")
    runner.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    options = parser.parse_args(argv)
    if options.command == "run":
        return run(options.target, options.arguments, options.is_module)
    if options.command == "new-plugin":
        return new_plugin(options.name, options.kind, options.into)
    if options.command == "capabilities":
        return capabilities(options.device, options.html)
    return {"plugins": plugins, "doctor": doctor}[options.command]()


if __name__ == "__main__":
    sys.exit(main())
