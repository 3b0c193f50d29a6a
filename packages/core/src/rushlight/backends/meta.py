"""The meta device: tensors that have shape, dtype and strides but no memory."""

from __future__ import annotations

from typing import NoReturn

from ..plugin.interface import Backend


class Meta(Backend):
    """Computes shapes and dtypes only: every operator runs its shape rule and no kernel."""

    name = "meta"

    def to_host(self, array: object) -> NoReturn:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
