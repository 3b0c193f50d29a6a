"""Deterministic algorithms: what must not depend on the order of threads, or on the rest of a batch."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _C, _registry

_MODES = {"default": (False, False), "warn": (True, True), "error": (True, False)}


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False, batch_invariant: bool = False) -> None:
    """Asks for results that are bitwise equal from run to run and for any number of threads.

    On the CPU all operators are deterministic with or without it. Elsewhere an operator that is not raises; see
    `deterministic_report`. New tensors of `empty` and its kin hold NaN, or the largest integer, while the mode is on
    (see `rushlight.utils.deterministic.fill_uninitialized_memory`).

    Args:
        mode: Whether to ask for it.
        warn_only: Warn instead of raising.
        batch_invariant: Also make a row of a result independent of how many rows the batch has: matrix products then
            take one way for all sizes, at the cost of speed for few rows.

    Raises:
        RuntimeError: From then on, an operator without a deterministic implementation on its device.

    Example:
        >>> rushlight.use_deterministic_algorithms(True)
        >>> rushlight.empty(2)
        tensor([nan, nan])
        >>> rushlight.use_deterministic_algorithms(False)
    """
    for name, value in (("mode", mode), ("warn_only", warn_only), ("batch_invariant", batch_invariant)):
        if not isinstance(value, bool):
            kind = type(value).__name__
            raise TypeError(f"use_deterministic_algorithms(): argument '{name}' must be bool, not {kind}")
    _C.set_determinism(mode, warn_only, _C.determinism()[2], batch_invariant)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic algorithms are asked for."""
    return _C.determinism()[0]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether an operator that is not deterministic only warns."""
    return _C.determinism()[1]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Sets both at once.

    Args:
        debug_mode: "default" or 0, "warn" or 1, "error" or 2.

    Raises:
        TypeError: It is neither int nor str.
        RuntimeError: It is none of these.
    """
    if not isinstance(debug_mode, int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
    elif 0 <= debug_mode < len(_MODES):
        debug_mode = list(_MODES)[debug_mode]
    else:
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    mode, warn_only = _MODES[debug_mode]
    use_deterministic_algorithms(mode, warn_only=warn_only, batch_invariant=_C.determinism()[3])


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: see `set_deterministic_debug_mode`."""
    mode, warn_only, *_ = _C.determinism()
    return (1 if warn_only else 2) if mode else 0


class DeterminismReport(NamedTuple):
    """Which operators are deterministic on a device type.

    Attributes:
        device_type: As "cuda".
        deterministic: Equal calls give equal bits, for any number of threads.
        seeded: Random: equal after equal seeds.
        nondeterministic: The order of threads decides; they raise in deterministic mode.
    """

    device_type: str
    deterministic: tuple[str, ...]
    seeded: tuple[str, ...]
    nondeterministic: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"operators on {self.device_type}"]
        for kind in ("deterministic", "seeded", "nondeterministic"):
            lines.append(f"{kind:>18} {len(getattr(self, kind)):5}")
        lines.extend(f"{'':18}       {name}" for name in self.nondeterministic)
        return "\n".join(lines)


def deterministic_report(device: Any = "cpu") -> DeterminismReport:
    """Says ahead of time what is deterministic on a device, over all operators that are loaded.

    Args:
        device: Device or device type.

    Example:
        >>> rushlight.deterministic_report("cpu").nondeterministic
        ()
    """
    device_type = _C.device(device).type
    kinds: dict[str, list[str]] = {"deterministic": [], "seeded": [], "nondeterministic": []}
    for name, op in sorted(_registry.ops.items()):
        unordered = device_type in op.item.unordered
        kinds["nondeterministic" if unordered else "seeded" if op.item.arbitrary else "deterministic"].append(name)
    return DeterminismReport(device_type, *(tuple(names) for names in kinds.values()))
