"""Finding, loading and committing plugins. Imported at the first need, never by `import rushlight`."""

from __future__ import annotations

import inspect
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, NoReturn

import pluggy

from .. import __version__, _areas, _registry, hooks
from .._op import Op
from .._registry import Contributions
from . import specs
from ._patience import within_limit
from .interface import (
    PLUGIN_API,
    PLUGIN_API_MINOR,
    Backend,
    Collectives,
    Format,
    Kernel,
    Layer,
    PluginError,
    PluginWarning,
    Rendezvous,
)

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
        api: Version of the C API that its native code needs, as "v1" or "v1.2"; None where it has none.
        state: "installed" (not asked for yet), "loaded", "failed" or "excluded" (by RUSHLIGHT_PLUGINS).
        error: Why it failed.
        contributions: What it registered.
        lock: Held by the thread that loads it.
    """

    name: str
    wheel: str
    version: str
    entry_point: Any = field(default=None, repr=False)
    api: str | None = None
    state: str = INSTALLED
    error: BaseException | None = None
    contributions: Contributions = field(default=Contributions(), repr=False)
    lock: Any = field(default_factory=threading.RLock, repr=False)

    @property
    def title(self) -> str:
        """Name, wheel and version, for messages."""
        return f"plugin {self.name!r} ({self.wheel} {self.version})"

    @property
    def is_ours(self) -> bool:
        """Whether it belongs to a wheel of the project itself, which the names in `_areas` lead to."""
        return self.wheel == f"rushlight-{self.name}" and (self.name in _areas.WHEELS or self.wheel == _registry.CORE)


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
        loading = self._loading()
        if name in loading:
            # An area's package is imported before its hooks and may ask for its operators: they are loaded then and
            # there.
            if plugin.state == INSTALLED and plugin.entry_point.module not in sys.modules:
                self._load(plugin)
            return plugin
        with plugin.lock:
            if plugin.state == INSTALLED:
                loading.add(name)
                try:
                    self._load_in_time(plugin)
                except (Exception, SystemExit) as error:
                    self._fail(plugin, error)
                finally:
                    loading.discard(name)
        return plugin

    def load_all(self, ours: bool = False) -> None:
        """Loads every plugin of third parties.

        Args:
            ours: The project's own as well, which otherwise load by the names that they provide.
        """
        for name, plugin in list(self.plugins.items()):
            if ours or not plugin.is_ours:
                self.load(name)

    def _loading(self) -> set[str]:
        """The plugins that this thread is loading, or that the thread that waits for it is."""
        loading: set[str] = self._local.__dict__.setdefault("loading", set())
        return loading

    def _load_in_time(self, plugin: Plugin) -> None:
        _check_api(plugin, self.plugins["core"].version)
        # What this thread is importing holds an import lock that another thread would wait for.
        if plugin.is_ours or plugin.entry_point.module.partition(".")[0] in sys.modules:
            self._load(plugin)
            return
        loading = set(self._loading())

        def load() -> None:
            self._local.loading = loading
            self._load(plugin)

        within_limit(load, plugin.title)

    def _load(self, plugin: Plugin) -> None:
        # Not under the registry's lock: other threads may hold import locks and wait for it.
        try:
            module = plugin.entry_point.load()
        except ImportError as error:
            if plugin.entry_point.dist.read_text("METADATA") is None:
                raise PluginError(f"{plugin.title} was uninstalled while this process runs. Restart it.") from error
            raise
        if plugin.state != INSTALLED:
            return
        try:
            self.register(module, plugin.name)
            self._check_hooks(module)
            contributions = self._collect(module)
            self._check_rules(plugin, contributions)
            with _registry.lock:
                if plugin.state != INSTALLED:  # it came too late
                    raise PluginError(f"{plugin.title} has been given up.")
                for device_type in _registry.opened.keys() - contributions.kernels.keys():
                    contributions.kernels[device_type] = self._ask_kernels(module, device_type)
                _registry.commit(plugin.wheel, contributions, plugin.title)
                plugin.contributions, plugin.state = contributions, LOADED
        except BaseException:
            with suppress(AssertionError):  # pluggy has refused it
                self.unregister(module)
            raise

    def _fail(self, plugin: Plugin, error: BaseException, state: str = INSTALLED) -> None:
        with _registry.lock:
            if plugin.state != state:  # it was given up and is there all the same
                return
            plugin.state, plugin.error = FAILED, error
        warnings.warn(
            f"{plugin.title} failed, all else works: {_registry.describe(error)}", PluginWarning, stacklevel=_outside()
        )

    def _check_hooks(self, module: object) -> None:
        def unknown() -> list[str]:
            return [caller.name for caller in self.get_hookcallers(module) or () if _unspecified(caller, module)]

        if unknown():
            self.load_all(ours=True)  # the wheel that owns the hook may not be loaded yet
        if unknown():
            known = sorted(name for name in vars(self.hook) if name.startswith("rushlight_"))
            known = [name for name in known if getattr(self.hook, name).has_spec()]
            raise PluginError(f"unknown hook {', '.join(unknown())}. The hooks are {', '.join(known)}.")

    def _check_rules(self, plugin: Plugin, new: Contributions) -> None:
        ruled = [op for op in new.ops if op.grads]
        if not ruled or plugin.is_ours or "autograd" not in self.plugins:
            return
        with _registry.lock:
            _registry.check(plugin.wheel, new)  # its faults come first
        self.load("autograd")  # it knows what a rule means
        for op in ruled:
            self.hook.rushlight_check_op(op=op, siblings=new.ops)

    def _collect(self, module: object) -> Contributions:
        return Contributions(
            ops=self._ask(module, "ops", _is(Op)),
            backends=self._ask(module, "backends", _is_class(Backend)),
            layers=self._ask(module, "layers", _is(Layer)),
            formats=self._ask(module, "formats", _is(Format)),
            collectives=self._ask(module, "collectives", _is_class(Collectives)),
            rendezvous=self._ask(module, "rendezvous", _is(Rendezvous)),
            kernels={name: self._ask_kernels(module, name) for name in _registry.opened},
        )

    def _ask_kernels(self, module: object, device_type: str) -> list[Kernel]:
        return self._ask(module, "kernels", _is(Kernel), device_type=device_type)

    def _ask(self, module: object, kind: str, is_valid: Callable[[Any], bool], **arguments: str) -> list[Any]:
        hook = f"rushlight_register_{kind}"
        others = [other for other in self.get_plugins() if other is not module]
        answers = self.subset_hook_caller(hook, others)(**arguments)
        items: list[Any] = []
        for answer in answers:
            if not isinstance(answer, Iterable):
                raise PluginError(f"{hook}: returns something else than its declaration says, got {answer!r}.")
            items += answer
        for item in items:
            if not is_valid(item):
                raise PluginError(f"{hook}: returns something else than its declaration says, got {item!r}.")
        return items

    # -- at need

    def open_device(self, device_type: str, backend: Backend) -> None:
        """Puts a backend to use when the kernels that plugins bring for its device type are committed."""
        self.load_all()
        while True:
            with _registry.lock:
                plugins = [each for each in self.plugins.values() if each.state == LOADED]
                lacking = [each for each in plugins if device_type not in each.contributions.kernels]
                if not lacking:
                    _registry.opened[device_type] = backend
                    return
            for plugin in lacking:  # not under the lock: what a hook imports may register something
                try:
                    new = self._kernels_in_time(plugin, device_type)
                    _registry.commit(plugin.wheel, Contributions(kernels={device_type: new}), plugin.title)
                    plugin.contributions.kernels[device_type] = new
                except Exception as error:
                    self._fail(plugin, error, LOADED)

    def _kernels_in_time(self, plugin: Plugin, device_type: str) -> list[Kernel]:
        module = self.get_plugin(plugin.name)

        def ask() -> list[Kernel]:
            return self._ask_kernels(module, device_type)

        return ask() if plugin.is_ours else within_limit(ask, plugin.title, plugin.entry_point.module)

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
                lines.append(f"Failed: {plugin.title}: {_registry.describe(plugin.error)}")
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


def _is_class(base: type) -> Callable[[Any], bool]:
    return lambda item: isinstance(item, type) and issubclass(item, base)


def _unspecified(caller: pluggy.HookCaller, module: object) -> bool:
    implementations = [impl for impl in caller.get_hookimpls() if impl.plugin is module]
    return not caller.has_spec() and not any(impl.optionalhook for impl in implementations)


def _check_api(plugin: Plugin, core: str) -> None:
    """A plugin needs the C API of the same version, and of its minor version or a later one."""
    wanted = re.fullmatch(r"v(\d+)(?:\.(\d+))?", plugin.api or "v1")
    if not wanted or int(wanted[1]) != PLUGIN_API or int(wanted[2] or 0) > PLUGIN_API_MINOR:
        raise PluginError(
            f"{plugin.title} is built for {plugin.api} of the plugin API, but rushlight-core {core} has "
            f"v{PLUGIN_API}.{PLUGIN_API_MINOR}. Install versions that fit."
        )


def _outside() -> int:
    """The stack level of the first caller that is not rushlight's or pluggy's own code."""
    frame, level = inspect.currentframe(), 0
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in ("rushlight", "pluggy"):
        frame, level = frame.f_back, level + 1
    return level
