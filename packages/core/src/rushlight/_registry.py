"""What is registered and which wheel brought it: operators, device types, kernels, layers, file formats.

Light, since `import rushlight` loads it; finding and loading plugins is `rushlight.plugin.manager`, imported at the
first need. The dispatcher calls `find_device_type` for a type that it lacks, `open_backend` when the first tensor of a
type is made, and `require` for what another wheel brings: each once, never per operator call.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _C
from .plugin.interface import (
    Available,
    Backend,
    Collectives,
    Format,
    Kernel,
    Layer,
    PluginError,
    Rendezvous,
    Unavailable,
)

if TYPE_CHECKING:
    from ._op import Op
    from .plugin.manager import Manager


class Contributions(NamedTuple):
    """What the hooks of one plugin returned; `kernels` by device type."""

    ops: Sequence[Op] = ()
    backends: Sequence[type[Backend]] = ()
    layers: Sequence[Layer] = ()
    formats: Sequence[Format] = ()
    collectives: Sequence[type[Collectives]] = ()
    rendezvous: Sequence[Rendezvous] = ()
    kernels: dict[str, Sequence[Kernel]] = {}


class Entry(NamedTuple):
    """Something registered, the wheel that brought it, and how errors name its plugin."""

    item: Any
    wheel: str
    origin: str = ""


ops: dict[str, Entry] = {}
backends: dict[str, Entry] = {}
layers: dict[str, Entry] = {}
formats: dict[str, Entry] = {}
collectives: dict[str, Entry] = {}
rendezvous: dict[str, Entry] = {}
kernels: dict[tuple[str, str], Entry] = {}
"""By (device type, operator)."""

opened: dict[str, Backend] = {}
"""The backends in use, by device type."""

CORE = "rushlight-core"
core = Contributions()

IDENTIFIED = {
    "collectives": "collectives have",
    "device type": "a device type has",
    "rendezvous": "a rendezvous has",
}
"""What is named by lower-case identifiers, as errors speak of it."""

ONLY_SYNTAX = 0x400
"""`ast.PyCF_ONLY_AST`, without importing ast."""

lock = threading.RLock()
_opening: dict[str, Any] = {}
"""Held by who opens a device type, by name."""

_attached: dict[tuple[str, str], Kernel] = {}
_manager: Manager | None = None


def manager() -> Manager:
    """The plugin manager, made at the first call."""
    global _manager
    if _manager is None:
        with lock:
            if _manager is None:
                from .plugin.manager import Manager

                _manager = Manager()
    return _manager


def register_core() -> None:
    """Commits what the core itself brings, through the hooks of any plugin but without searching for it."""
    global core
    from . import hooks

    _C.set_hook("find_device_type", find_device_type)
    _C.set_hook("open_backend", open_backend)
    ops_, backends_ = hooks.rushlight_register_ops(), hooks.rushlight_register_backends()
    core = Contributions(ops=ops_, backends=backends_, kernels={"cpu": [], "meta": []})
    commit(CORE, core)
    opened.update((name, backends[name].item()) for name in ("cpu", "meta"))  # open from the start


def commit(wheel: str, new: Contributions, origin: str = "") -> None:
    """Registers what a wheel brings: all of it, or nothing and PluginError says why.

    Args:
        wheel: The distribution.
        new: What it brings.
        origin: Names plugin, wheel and version in the errors of its devices.
    """
    with lock:
        parsed = check(wheel, new)
        layered = _C.layer_names()
        try:
            for layer in new.layers:
                layer.install()
        except BaseException:
            _C.keep_layers(layered)
            raise
        for backend in new.backends:
            _C.register_device_type(backend.name, origin)
        for op, schema in zip(new.ops, parsed, strict=True):
            op.define(schema)
        for _, table, items in _tables(new):
            table.update((item.name, Entry(item, wheel, origin)) for item in items)
        for device_type, given in new.kernels.items():
            kernels.update(((device_type, kernel.op), Entry(kernel, wheel, origin)) for kernel in given)
        if new.ops or new.kernels:
            _attach_kernels()


def check(wheel: str, new: Contributions) -> list[Any]:
    """Raises the PluginError of `commit`; returns what `Op.define` takes for each operator."""
    for kind, table, items in _tables(new):
        _check_names(wheel, kind, table, items)
    for device_type, given in new.kernels.items():
        _check_kernels(wheel, device_type, given)
    return [_parse(wheel, op, {backend.name for backend in new.backends}) for op in new.ops]


def _tables(new: Contributions) -> Sequence[tuple[str, dict[str, Entry], Sequence[Any]]]:
    return (
        ("operator", ops, new.ops),
        ("device type", backends, new.backends),
        ("file format", formats, new.formats),
        ("layer", layers, new.layers),
        ("collectives", collectives, new.collectives),
        ("rendezvous", rendezvous, new.rendezvous),
    )


def _check_names(wheel: str, kind: str, table: dict[str, Entry], items: Sequence[Any]) -> None:
    seen = set()
    for item in items:
        if item.name in table or item.name in seen:
            first = table[item.name].wheel if item.name in table else wheel
            raise PluginError(f"{wheel}: {kind} {item.name!r} is taken, {first} registers it too. Rename one of them.")
        if kind in IDENTIFIED and not (item.name.isidentifier() and item.name.islower()):
            raise PluginError(f"{wheel}: {IDENTIFIED[kind]} a lower-case identifier as name, got name={item.name!r}.")
        seen.add(item.name)


def _parse(wheel: str, op: Op, device_types: set[str]) -> Any:
    """What `op.define` takes, when all that it could fail at has been checked."""
    unknown = {*op.kernels, *op.unordered} - backends.keys() - device_types
    if unknown:
        raise PluginError(
            f"{wheel}: {op.name} has a kernel for a device type that no loaded plugin brings, got {unknown.pop()!r}. "
            "Return it from rushlight_register_kernels."
        )
    if wheel != CORE:
        for rule in op.grads.values():
            if isinstance(rule, str):
                _check_expression(op, rule)
    return op.parse()


def _check_expression(op: Op, rule: str) -> None:
    try:
        compile(rule.strip(), op.name, "eval", ONLY_SYNTAX)
    except SyntaxError as error:
        raise PluginError(f"{op.name}: a gradient rule is an expression, got {rule!r}: {error.msg}.") from None


def _check_kernels(wheel: str, device_type: str, items: Sequence[Kernel]) -> None:
    for kernel in items:
        if not _C.is_kernel(kernel.fn):
            raise PluginError(f'{wheel}: a kernel is a callable or a capsule named "rushlight.Kernel", got {kernel!r}.')
        taken = kernels.get((device_type, kernel.op))
        if taken and not kernel.override:
            raise PluginError(
                f"{wheel}: {kernel.op} has a kernel on {device_type!r}, {taken.wheel} registers it too. "
                "Pass override=True to replace it."
            )


def _attach_kernels() -> None:
    # A kernel may be there before the wheel that brings its operator is loaded.
    for key, (kernel, *_) in kernels.items():
        device_type, op = key
        if op in ops and _attached.get(key) is not kernel:
            _C.set_kernel(op, device_type, kernel.fn)
            _attached[key] = kernel


def find_device_type(name: str) -> None:
    """Registers a device type, or says all that is known. The dispatcher calls it for a type that it lacks.

    Raises:
        RuntimeError: No working plugin brings it.
    """
    if name not in backends:
        manager().load_all()
    if name not in backends:
        manager().raise_unknown_device(name)


def probe(name: str) -> Available | Unavailable:
    """What the backend of a registered device type says of itself; a fault of its plugin makes it unavailable."""
    from .plugin._patience import within_limit

    cls, wheel, origin = backends[name]
    if wheel == CORE:
        return cls.probe()
    try:
        answer = within_limit(cls.probe, f"probe() of {origin}")
    except Exception as error:
        return Unavailable(f"{origin} cannot be probed: {describe(error)}")
    if not isinstance(answer, (Available, Unavailable)):
        return Unavailable(f"{origin} cannot be probed: probe() must return Available or Unavailable, got {answer!r}")
    return answer


def describe(error: BaseException | None) -> str:
    """Type and first line of an exception."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__


def open_backend(name: str) -> Backend:
    """The backend of a device type, opened. The dispatcher calls it when the first tensor of the type is made.

    Raises:
        RuntimeError: The device is not available (or the type of error that its backend names), and why.
        PluginError: Opening it failed; the error of the plugin is the cause.
    """
    if name in opened:
        return opened[name]
    manager().load_all()  # not under the lock: plugins load in threads of their own, and may need it
    find_device_type(name)
    answer = probe(name)
    if not answer:
        raise answer.error(f"{answer.reason}; device type {name!r} is not available.")
    with _opening.setdefault(name, threading.RLock()):
        if name not in opened:
            manager().open_device(name, _opened(name))
        return opened[name]


def _opened(name: str) -> Backend:
    from .plugin._patience import within_limit

    cls, wheel, origin = backends[name]

    def open_() -> Backend:
        backend: Backend = cls()
        backend.open()
        return backend

    try:
        return open_() if wheel == CORE else within_limit(open_, f"open() of {origin}", cls.__module__)
    except Exception as error:
        raise PluginError(f"device type {name!r} of {origin or CORE} does not open: {describe(error)}") from error


def named(kind: str, table: dict[str, Entry], name: str) -> Any:
    """What is registered by a name in `collectives` or `rendezvous`, when every plugin has been asked.

    Raises:
        ValueError: Nothing is.
    """
    if name not in table:
        manager().load_all()
    if name not in table:
        known = ", ".join(sorted(table)) or "none"
        raise ValueError(f"{kind}: no plugin brings this name, got {name!r}. Installed are: {known}.")
    return table[name].item


def require(wheel: str, what: str) -> None:
    """Loads the plugin of one of rushlight's own wheels because `what` was asked for.

    Raises:
        AttributeError: The wheel is absent, left out or broken; the message says which and what to do.
    """
    manager().require(wheel, what)
