"""Finding, loading and committing plugins. Imported at the first need, never by `import rushlight`."""

from __future__ import annotations

import inspect
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, NoReturn

import pluggy

from .. import __version__, _areas, _registry, hooks
from .._op import Op
from .._registry import Contributions
from . import specs
from .interface import PLUGIN_API, Backend, Format, Kernel, Layer, PluginError, PluginWarning

__all__ = ["Manager", "Plugin"]

GROUP = "rushlight.plugins"
API_GROUP = "rushlight.plugin_api"
VARIABLE = "RUSHLIGHT_PLUGINS"

_NO_OPTIONS: pluggy.HookimplOpts = {
    "wrapper": False,
    "hookwrapper": False,
    "optionalhook": False,
    "tryfirst": False,
    "trylast": False,
    "specname": None,
}

INSTALLED, LOADED, FAILED, EXCLUDED = "installed", "loaded", "failed", "excluded"


@dataclass
class Plugin:
    """One entry point of the group, and what became of it.

    Attributes:
        name: Name of the entry point.
        wheel: The distribution that declares it.
        version: Version of the distribution.
        api: Version of the C API that its native code was built against, as "v1"; None where it has none.
        state: "installed" (not asked for yet), "loaded", "failed" or "excluded" (by RUSHLIGHT_PLUGINS).
        error: Why it failed.
        contributions: What it registered.
    """

    name: str
    wheel: str
    version: str
    entry_point: Any = field(default=None, repr=False)
    api: str | None = None
    state: str = INSTALLED
    error: BaseException | None = None
    contributions: Contributions = field(default=Contributions(), repr=False)

    @property
    def title(self) -> str:
        """Name, wheel and version, for messages."""
        return f"plugin {self.name!r} ({self.wheel} {self.version})"

    @property
    def is_ours(self) -> bool:
        """Whether it belongs to a wheel of the project itself, which the names in `_areas` lead to."""
        return self.name in _areas.WHEELS and self.wheel == f"rushlight-{self.name}"


class Manager(pluggy.PluginManager):
    """pluggy's manager, with every plugin's loading isolated and its contributions committed as one.

    Attributes:
        plugins: Every plugin that is installed, by name, sorted; the core first.
    """

    def __init__(self) -> None:
        super().__init__("rushlight")
        self._local = threading.local()
        self.add_hookspecs(specs)
        self.hook.rushlight_addhooks.call_historic(kwargs={"manager": self})
        core = Plugin("core", _registry.CORE, __version__, state=LOADED, contributions=_registry.core)
        self.plugins: dict[str, Plugin] = {"core": core}
        self.register(hooks, "core")
        for plugin in _installed():
            self._add(plugin)

    def _add(self, plugin: Plugin) -> None:
        other = self.plugins.get(plugin.name)
        if other:
            plugin.state = FAILED
            plugin.error = PluginError(f"{plugin.title} has the name of {other.title}. Uninstall one of them.")
            self.plugins[f"{plugin.name} ({plugin.wheel})"] = plugin
        else:
            self.plugins[plugin.name] = plugin

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        """A function is a hook by its name; pluggy's marker is only needed for its options."""
        if not name.startswith("rushlight_") or not inspect.isroutine(getattr(plugin, name)):
            return None
        return super().parse_hookimpl_opts(plugin, name) or _NO_OPTIONS

    # -- loading

    def load(self, name: str) -> Plugin:
        """Loads one plugin, unless it is loaded; a failure is kept in it and warned of."""
        plugin = self.plugins[name]
        # An area's package is imported before its hooks and may ask for its operators: they are loaded then and there.
        started = name in self._importing() and plugin.entry_point.module in sys.modules
        if plugin.state == INSTALLED and not started:
            self._importing().add(name)
            try:
                self._load(plugin)
            except (Exception, SystemExit) as error:
                self._fail(plugin, error)
            finally:
                self._importing().discard(name)
        return plugin

    def load_all(self, ours: bool = False) -> None:
        """Loads every plugin of third parties.

        Args:
            ours: The project's own as well, which otherwise load by the names that they provide.
        """
        for name, plugin in list(self.plugins.items()):
            if ours or not plugin.is_ours:
                self.load(name)

    def _importing(self) -> set[str]:
        importing: set[str] = self._local.__dict__.setdefault("importing", set())
        return importing

    def _load(self, plugin: Plugin) -> None:
        if plugin.api not in (None, f"v{PLUGIN_API}"):
            raise PluginError(
                f"{plugin.title} is built for {plugin.api} of the plugin API, but rushlight-core "
                f"{self.plugins['core'].version} has v{PLUGIN_API}. Install versions that fit."
            )
        module = plugin.entry_point.load()  # not under the lock: other threads may hold import locks and wait for it
        with _registry.lock:
            if plugin.state != INSTALLED:
                return
            try:
                self.register(module, plugin.name)
                self._check_hooks(module)
                plugin.contributions = self._collect(module)
                _registry.commit(plugin.wheel, plugin.contributions)
                plugin.state = LOADED
            except BaseException:
                with suppress(AssertionError):  # pluggy has refused it
                    self.unregister(module)
                raise

    def _fail(self, plugin: Plugin, error: BaseException) -> None:
        plugin.state, plugin.error = FAILED, error
        warnings.warn(f"{plugin.title} failed, all else works: {_line(error)}", PluginWarning, stacklevel=_outside())

    def _check_hooks(self, module: object) -> None:
        def unknown() -> list[str]:
            return [caller.name for caller in self.get_hookcallers(module) or () if _unspecified(caller, module)]

        if unknown():
            self.load_all(ours=True)  # the wheel that owns the hook may not be loaded yet
        if unknown():
            known = sorted(name for name in vars(self.hook) if name.startswith("rushlight_"))
            known = [name for name in known if getattr(self.hook, name).has_spec()]
            raise PluginError(f"unknown hook {', '.join(unknown())}. The hooks are {', '.join(known)}.")

    def _collect(self, module: object) -> Contributions:
        return Contributions(
            ops=self._ask(module, "ops", _is(Op)),
            backends=self._ask(module, "backends", lambda item: isinstance(item, type) and issubclass(item, Backend)),
            layers=self._ask(module, "layers", _is(Layer)),
            formats=self._ask(module, "formats", _is(Format)),
            kernels={name: self._ask_kernels(module, name) for name in _registry.opened},
        )

    def _ask_kernels(self, module: object, device_type: str) -> list[Kernel]:
        return self._ask(module, "kernels", _is(Kernel), device_type=device_type)

    def _ask(self, module: object, kind: str, is_valid: Callable[[Any], bool], **arguments: str) -> list[Any]:
        hook = f"rushlight_register_{kind}"
        others = [other for other in self.get_plugins() if other is not module]
        answers = self.subset_hook_caller(hook, others)(**arguments)
        items = [item for answer in answers for item in answer]
        for item in items:
            if not is_valid(item):
                raise PluginError(f"{hook}: returns something else than its declaration says, got {item!r}.")
        return items

    # -- at need

    def open_device(self, device_type: str) -> None:
        """Commits the kernels that plugins bring for a device type that has just been opened."""
        self.load_all()
        for name, plugin in self.plugins.items():
            if plugin.state == LOADED and device_type not in plugin.contributions.kernels:
                try:
                    new = self._ask_kernels(self.get_plugin(name), device_type)
                    _registry.commit(plugin.wheel, Contributions(kernels={device_type: new}))
                    plugin.contributions.kernels[device_type] = new
                except Exception as error:
                    self._fail(plugin, error)

    def require(self, wheel: str, what: str) -> None:
        """Loads one of the project's own plugins, see `rushlight._registry.require`."""
        plugin = self.plugins.get(wheel)
        if plugin is None:
            raise AttributeError(_areas.missing(what, wheel))
        self.load(wheel)
        if plugin.state == EXCLUDED:
            raise AttributeError(f"{what} needs the {plugin.title}; {VARIABLE}={os.environ[VARIABLE]} leaves it out.")
        if plugin.state == FAILED:
            raise AttributeError(f"{what} needs the {plugin.title}, which does not load.") from plugin.error

    def raise_unknown_device(self, name: str) -> NoReturn:
        """Raises the error for a device type that no loaded plugin brings."""
        known = ", ".join(sorted(_registry.backends))
        lines = [f"Expected one of {known} device type at start of device string: {name}"]
        failed = [plugin for plugin in self.plugins.values() if plugin.state == FAILED]
        for plugin in self.plugins.values():
            if plugin.state == EXCLUDED:
                lines.append(f"Installed but not active: {plugin.title}. Add {plugin.name} to {VARIABLE} to use it.")
            elif plugin.state == FAILED:
                lines.append(f"Failed: {plugin.title}: {_line(plugin.error)}")
        cause = next((p.error for p in failed if p.name == name), failed[0].error if failed else None)
        raise RuntimeError("\n".join(lines)) from cause


def _installed() -> Iterator[Plugin]:
    allowed = os.environ.get(VARIABLE, "").replace(" ", "")
    found, apis = (
        {(entry.name, entry.dist.name, entry.dist.version): entry for entry in entry_points(group=group) if entry.dist}
        for group in (GROUP, API_GROUP)
    )
    for key, entry in sorted(found.items()):
        plugin = Plugin(*key, entry, apis[key].value if key in apis else None)
        if allowed and plugin.name not in allowed.split(","):
            plugin.state = EXCLUDED
        yield plugin


def _is(type_: type) -> Callable[[Any], bool]:
    return lambda item: isinstance(item, type_)


def _unspecified(caller: pluggy.HookCaller, module: object) -> bool:
    implementations = [impl for impl in caller.get_hookimpls() if impl.plugin is module]
    return not caller.has_spec() and not any(impl.optionalhook for impl in implementations)


def _line(error: BaseException | None) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__


def _outside() -> int:
    """The stack level of the first caller that is not rushlight's or pluggy's own code."""
    frame, level = inspect.currentframe(), 0
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in ("rushlight", "pluggy"):
        frame, level = frame.f_back, level + 1
    return level
