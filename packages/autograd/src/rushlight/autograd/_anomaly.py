"""Anomaly mode."""

from __future__ import annotations

from typing import Any

from . import _C


class set_detect_anomaly:
    """Turns anomaly detection on or off; as a context manager, until its end.

    Args:
        mode: True makes every operator remember its traceback, which an error in its backward then shows.
        check_nan: Whether backward raises when a gradient becomes NaN.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        if not isinstance(mode, bool) or not isinstance(check_nan, bool):
            raise TypeError(
                f"set_detect_anomaly: mode and check_nan must be bool, got mode={mode!r}, check_nan={check_nan!r}."
            )
        self.before = _C.get_anomaly()
        _C.set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        _C.set_anomaly(*self.before)


class detect_anomaly(set_detect_anomaly):
    """Context manager for finding the operator whose backward fails or gives NaN. It is slow: use it for debugging.

    Args:
        check_nan: Whether backward raises when a gradient becomes NaN.
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on."""
    return bool(_C.get_anomaly()[0])


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks for NaN."""
    return bool(_C.get_anomaly()[1])
