"""The capability table: which operator runs how on which device in which dtype, from the records.

Every record's first sample is run, once per dtype on each device that can be used; for a device that cannot be used
here the table says what the records and the CPU promise.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any, NamedTuple

import rushlight

from . import _C, _registry
from ._op import COMPOSITE as COMPOSITE_FAMILY
from .plugin.interface import Backend
from .testing import Maker, get_all_dtypes

NATIVE, ARRAY, COMPOSITE, FALLBACK, MISSING = "native", "array", "composite", "fallback", "missing"


class Row(NamedTuple):
    """What one operator can do on one device.

    Attributes:
        op: Name of the operator, with namespace and overload.
        wheel: The wheel that brings it.
        device: Device type.
        dtypes: By dtype name "native" (a kernel of the device), "array" (the array kernel over its namespace),
            "composite" (other operators), "fallback" (the CPU stands in) or "missing"; without the dtypes that the
            operator does not take anywhere.
        deterministic: Whether equal calls give equal results.
        differentiable: Whether it has a gradient.
    """

    op: str
    wheel: str
    device: str
    dtypes: dict[str, str]
    deterministic: bool
    differentiable: bool


class Table(NamedTuple):
    """Rows by device and operator, and why a device cannot be used, or ""."""

    rows: list[Row]
    devices: dict[str, str]


def capabilities(devices: Iterable[str] | None = None) -> Table:
    """The table of every public operator of every installed wheel.

    Args:
        devices: Device types; by default every registered one that computes.

    Raises:
        RuntimeError: A device type is unknown.
    """
    _registry.manager().load_all(ours=True)
    devices = [name for name in _registry.backends if name != "meta"] if devices is None else list(devices)
    for name in devices:
        _registry.find_device_type(name)
    reasons = {name: getattr(_registry.probe(name), "reason", "") for name in devices}
    entries = [entry for _, entry in sorted(_registry.ops.items()) if not entry.item.base.startswith("_")]
    rows = []
    with _in_peace():
        taken = [[dtype for dtype in get_all_dtypes() if _runs(entry.item, dtype, "cpu")] for entry in entries]
        for device in devices:
            usable = device != "cpu" and not reasons[device]
            backend = _registry.open_backend(device) if usable else _registry.backends[device].item
            rows += [_row(*each, device, backend, usable) for each in zip(entries, taken, strict=True)]
    return Table(rows, reasons)


def implementation(op: Any, device: str, backend: Backend | type[Backend]) -> str:
    """How an operator would run on a device: one of the words of `Row.dtypes`."""
    info = _C.op_info(op.name)
    own = [*info["native"], *info["python"]]
    has_loops = device == "cpu" and info["loops"]
    if op.family is not COMPOSITE_FAMILY and (has_loops or info["everywhere"] or device in own):
        return NATIVE
    if info["array"]:
        return ARRAY
    if info["composite"] or op.family is COMPOSITE_FAMILY:
        return COMPOSITE
    return FALLBACK if backend.fallback else MISSING


def is_differentiable(op: Any) -> bool:
    """Whether an operator has a gradient: a rule for some argument, or parts that have."""
    has_rule = any(rule not in (None, NotImplemented) for rule in op.grads.values())
    return bool(op.differentiable and (has_rule or op.composite_kernel or op.family is COMPOSITE_FAMILY))


def _row(entry: Any, dtypes: list[Any], device: str, backend: Any, usable: bool) -> Row:
    op = entry.item
    how = implementation(op, device, backend)
    found = {_name(dtype): MISSING if usable and not _runs(op, dtype, device) else how for dtype in dtypes}
    return Row(op.name, entry.wheel, device, found, device not in op.unordered, is_differentiable(op))


def _runs(op: Any, dtype: Any, device: str) -> bool:
    try:
        sample = next(iter(op.sampler(Maker(dtype, device), dtype) if op.sampler else ()), None)
        if sample is None:
            return False
        op.operator(*sample.args, **sample.kwargs)
    except Exception:  # whatever a device says of what it cannot
        return False
    return True


@contextmanager
def _in_peace() -> Iterator[None]:
    """Neither warnings nor a random stream that goes on elsewhere."""
    state = rushlight.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            rushlight.set_rng_state(state)


def _name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def as_text(table: Table) -> str:
    """The table for a terminal: a line per operator, dtypes grouped by how they run."""
    lines = []
    for device, reason in table.devices.items():
        rows = [row for row in table.rows if row.device == device]
        counts = Counter(how for row in rows for how in row.dtypes.values())
        summary = ", ".join(f"{n} {how}" for how, n in counts.most_common())
        lines += [f"{device}: {len(rows)} operators; by dtype {summary}"]
        lines += [f"  not available here, this is what the records say: {reason}"] if reason else []
        width = max((len(row.op) for row in rows), default=0)
        for row in rows:
            notes = ["" if row.deterministic else "not deterministic", "" if row.differentiable else "no gradient"]
            lines.append("; ".join(filter(None, [f"  {row.op:{width}}  {_grouped(row.dtypes)}", *notes])))
        lines.append("")
    return "\n".join(lines)


def _grouped(dtypes: dict[str, str]) -> str:
    groups: dict[str, list[str]] = {}
    for dtype, how in dtypes.items():
        groups.setdefault(how, []).append(dtype)
    return " | ".join(f"{how}: {' '.join(names)}" for how, names in groups.items()) or "no sample"


def as_html(table: Table) -> str:
    """The table as one HTML page that can be searched and filtered; it loads nothing from elsewhere."""
    page = resources.files(__package__).joinpath("_capabilities.html").read_text(encoding="utf-8")
    data = {
        "version": rushlight.__version__,
        "dtypes": [_name(dtype) for dtype in get_all_dtypes()],
        "devices": table.devices,
        "rows": [row._asdict() for row in table.rows],
    }
    return page.replace("/*DATA*/null", json.dumps(data, separators=(",", ":")).replace("</", "<\\/"))
