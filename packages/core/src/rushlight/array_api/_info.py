"""What the namespace says of itself."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight import _registry

from ._dtypes import KINDS, isdtype


class Info:
    """What `__array_namespace_info__()` returns: dtypes and devices that can be asked for."""

    def capabilities(self) -> dict[str, Any]:
        """Which optional features there are."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Where arrays live unless a call says otherwise."""
        return torch.empty(0).device

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of what is made of Python numbers."""
        real = torch.get_default_dtype()
        complex_dtype = torch.promote_types(real, torch.complex64)
        return {
            "real floating": real,
            "complex floating": complex_dtype,
            "integral": torch.int64,
            "indexing": torch.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes of the standard by name, of one kind or of several."""
        found = (torch.bool, *KINDS["numeric"])
        return {str(dtype).rpartition(".")[2]: dtype for dtype in found if kind is None or isdtype(dtype, kind)}

    def devices(self) -> list[Any]:
        """The devices that can be used."""
        found = [torch.device("cpu")]
        for name in sorted(_registry.backends):
            if name not in ("cpu", "meta") and _registry.probe(name):
                found += [torch.device(name, index) for index in range(_registry.open_backend(name).device_count())]
        return found


def __array_namespace_info__() -> Info:  # noqa: N807, the standard's name
    """The namespace's dtypes, devices and capabilities."""
    return Info()
