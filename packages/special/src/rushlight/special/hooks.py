"""What rushlight-special brings to the core."""

from __future__ import annotations

from rushlight.plugin import Op


def rushlight_register_ops() -> list[Op]:
    from . import _ops

    return _ops.records()
