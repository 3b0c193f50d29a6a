"""How tensors print, exactly as in PyTorch: `repr`, `set_printoptions`."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _C

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_options = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors print.

    Args:
        precision: Digits after the point, 4 by default.
        threshold: Number of elements above which only the edges print, 1000 by default.
        edgeitems: Elements at each edge, 3 by default.
        linewidth: Characters a line, 80 by default.
        profile: "default", "short" or "full"; the other arguments change what it says.
        sci_mode: Whether numbers print in scientific notation; by default where their range asks for it.

    Raises:
        ValueError: There is no such profile.
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile must be one of {sorted(_PROFILES)}, got profile={profile!r}.")
        for name, value in _PROFILES[profile].items():
            setattr(_options, name, value)
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in given.items():
        if value is not None:
            setattr(_options, name, value)
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options that `set_printoptions` sets."""
    return {name: getattr(_options, name) for name in ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")}


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """`set_printoptions` for the length of a `with` block."""
    before = get_printoptions()
    try:
        set_printoptions(**options)
        yield
    finally:
        set_printoptions(**before)


class _Format:
    """The format that all numbers of a tensor share, found from the ones that print."""

    def __init__(self, values: list[Any], is_float: bool) -> None:
        self.is_float = is_float
        self.width = 1
        self.spec: str | None = None  # None: integers, with a point after them where they are floats
        if not is_float:
            self.width = max((len(str(v)) for v in values), default=1)
            return
        plain = [v for v in values if v != 0 and math.isfinite(v)]
        if not plain:
            return
        low, high = min(map(abs, plain)), max(map(abs, plain))
        whole = all(v == math.floor(v) for v in plain)
        scientific = high > 1e8 or high / low > 1000.0 or (not whole and low < 1e-4)
        if scientific if _options.sci_mode is None else _options.sci_mode:
            self.spec = f".{_options.precision}e"
        elif not whole:
            self.spec = f".{_options.precision}f"
        self.width = max(len(self.text(v)) for v in plain)

    def text(self, value: Any) -> str:
        if not self.is_float:
            return str(value)
        if self.spec is not None:
            return format(value, self.spec)
        return f"{value:.0f}" + ("." if math.isfinite(value) else "")

    def __call__(self, value: Any) -> str:
        return self.text(value).rjust(self.width)


class _ComplexFormat:
    def __init__(self, values: list[complex]) -> None:
        self.real = _Format([v.real for v in values], True)
        self.imag = _Format([v.imag for v in values], True)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = (self.imag(value.imag) + "j").lstrip()
        return self.real(value.real) + ("" if imag[0] in "+-" else "+") + imag


def _edges(tensor: Any) -> Any:
    """Nested lists of what prints of a big tensor: the first and last items of every dimension."""
    edge = _options.edgeitems
    if tensor.ndim == 1:
        return (
            tensor[:edge].tolist() + (tensor[-edge:].tolist() if edge else [])
            if len(tensor) > 2 * edge
            else tensor.tolist()
        )
    n = len(tensor)
    rows = range(n) if n <= 2 * edge else [*range(edge), *range(n - edge, n)]
    return [_edges(tensor[i]) for i in rows]


def _flat(data: Any) -> list[Any]:
    if not isinstance(data, list):
        return [data]
    if data and isinstance(data[0], list):
        return [v for row in data for v in _flat(row)]
    return data


def _body(data: Any, shape: tuple[int, ...], indent: int, summarize: bool, form: Any) -> str:
    if not shape:
        return form(data)
    edge = _options.edgeitems
    cut = summarize and shape[0] > 2 * edge
    if len(shape) == 1:
        items = [form(v) for v in data]
        if cut:
            items = [*items[:edge], " ...", *items[len(items) - edge :]] if edge else ["..."]
        per_line = max(1, (_options.linewidth - indent) // (form.width + 2))
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + f",\n{' ' * (indent + 1)}".join(lines) + "]"
    rows = [_body(row, shape[1:], indent + 1, summarize, form) for row in data]
    if cut:
        rows = [*rows[:edge], "...", *rows[len(rows) - edge :]]
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(rows) + "]"


def _values(tensor: Any, indent: int) -> str:
    shape = tuple(tensor.shape)
    summarize = tensor.numel() > _options.threshold
    data = _edges(tensor) if summarize and shape else tensor.tolist()
    values = _flat(data)
    form: Any = _ComplexFormat(values) if tensor.is_complex() else _Format(values, tensor.is_floating_point())
    return _body(data, shape, indent, summarize, form)


def _part(name: str, tensor: Any, indent: int) -> str:
    """A tensor that another one is made of, as "indices=tensor([[0, 1]])"."""
    text = f"{name}=tensor("
    text += _values(tensor, indent + len(text)) if tensor.numel() else f"[], size={tuple(tensor.shape)}"
    return text + ")"


def _quiet_dtype(dtype: _C.dtype) -> bool:
    default = _C.get_default_dtype()
    return dtype in (default, default.to_complex(), _C.int64, _C.bool)


def tensor_repr(tensor: Any) -> str:
    """The text of `repr(tensor)`."""
    name = (
        "tensor" if type(tensor) is _C.Tensor or getattr(tensor, "_prints_as_tensor", False) else type(tensor).__name__
    )
    prefix = f"{name}("
    suffixes = []
    default_device = _C.get_default_device()
    if tensor.device.type != default_device.type or tensor.device.index not in (None, default_device.index):
        suffixes.append(f"device='{tensor.device}'")
    plain = tensor.detach()
    payload = plain._payload
    if payload is not None:
        parts = getattr(payload, "parts", {})
        body = f",\n{' ' * len(prefix)}".join(_part(name, part, len(prefix)) for name, part in parts.items()) or "..."
        suffixes.append(f"size={tuple(plain.shape)}")
        if "values" in parts:
            suffixes.append(f"nnz={len(parts['values'])}")
        quiet = _quiet_dtype(plain.dtype)
    elif plain.is_meta:
        body = "..."
        suffixes.append(f"size={tuple(plain.shape)}")
        quiet = plain.dtype is _C.get_default_dtype()
    elif plain.numel() == 0:
        body = "[]"
        if plain.ndim != 1:
            suffixes.append(f"size={tuple(plain.shape)}")
        quiet = plain.dtype is _C.get_default_dtype()
    else:
        body = _values(plain, len(prefix))
        quiet = _quiet_dtype(plain.dtype)
    if not quiet:
        suffixes.append(f"dtype={plain.dtype}")
    if payload is not None:
        suffixes.append(f"layout={plain.layout}")
    forward = sys.modules.get("rushlight.autograd._C")
    if forward is not None and (tangent := forward.unpack_dual(tensor)[1]) is not None:
        suffixes.append(f"tangent={tangent}")
    if tensor.requires_grad:
        try:
            node = tensor.grad_fn
            suffixes.append("requires_grad=True" if node is None else f"grad_fn=<{type(node).__name__}>")
        except RuntimeError:  # a view made in no_grad whose base was written to can be seen, not used
            suffixes.append("grad_fn=<Invalid>")

    text = prefix + body
    column = len(text) - text.rfind("\n") + 1
    for i, suffix in enumerate(suffixes):
        if (plain.is_sparse and not i) or column + len(suffix) + 2 > _options.linewidth:
            text += f",\n{' ' * len(prefix)}{suffix}"
            column = len(prefix) + len(suffix)
        else:
            text += f", {suffix}"
            column += len(suffix) + 2
    return text + ")"


_C.set_hook("repr", tensor_repr)
