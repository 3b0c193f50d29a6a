"""A backend over any library that follows the Python array API standard."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any

import numpy as np

from rushlight.plugin import Available, Backend, Unavailable
from rushlight.plugin.strided import row_major

from ._array import Array, Memory
from ._namespace import Namespace


class ArrayAPI(Backend):
    """One device of an array library; `arrayapi_backend` makes the class of a device type."""

    library: ModuleType | str
    device: Any

    @classmethod
    def probe(cls) -> Available | Unavailable:
        package = cls.library.partition(".")[0] if isinstance(cls.library, str) else None
        if package and importlib.util.find_spec(package) is None:
            return Unavailable(f"{package} is not installed")
        return Available()

    def open(self) -> None:
        library = importlib.import_module(self.library) if isinstance(self.library, str) else self.library
        self.xp = Namespace(self.name, library, self.device)

    def allocate(self, nbytes: int, index: int) -> Memory:
        return Memory(self.xp, nbytes)

    def view(self, buffer: Memory, dtype: str, shape: Any, strides: Any, offset: int) -> Array:
        found = np.dtype(dtype)
        self.xp.native_dtype(found)
        size = found.itemsize
        return Array(buffer, found, shape, [s // size for s in strides], offset // size)

    def wrap(self, array: Any) -> tuple[Memory, str, tuple[int, ...], tuple[int, ...], int]:
        array = self.xp.ascontiguousarray(array)
        size = array.dtype.itemsize
        strides = tuple(s * size for s in row_major(array.shape))
        return array.memory, array.dtype.name, array.shape, strides, array.offset * size

    def from_host(self, array: np.ndarray, index: int) -> Array:
        return self.xp.wrap(self.xp.from_host(array))

    def to_host(self, array: Array) -> np.ndarray:
        return self.xp.to_host(array.values())

    def cast(self, array: Array, dtype: str) -> Array:
        return array.astype(dtype)


def arrayapi_backend(name: str, namespace: ModuleType | str, device: Any = None) -> type[Backend]:
    """Makes a device type of a library that follows the Python array API standard 2023.12 or later.

    A plugin with such a backend is this, and the two lines of its `pyproject.toml`::

        from rushlight.testing import arrayapi_backend

        def rushlight_register_backends():
            return [arrayapi_backend("dpnp", "dpnp")]

    Every operator that has an array kernel, or is composed of such, runs on it by the standard's functions. The
    library's arrays are never written to, so its views and copies do not matter; a write to a part of a tensor costs as
    much as one to the whole, and reading memory as another dtype goes through the host. What the library lacks, a dtype
    or a function, raises NotImplementedError by name.

    Args:
        name: Device type, as in `rushlight.device(name)`; an identifier in lower case.
        namespace: The library's namespace, or the name of the module, which is imported when the device is first used.
        device: The library's device that tensors live on; by default its default device.

    Returns:
        The class that `rushlight_register_backends` returns.

    Example:
        >>> import numpy
        >>> from rushlight.testing import arrayapi_backend
        >>> arrayapi_backend("host", numpy).name
        'host'
    """
    return type(f"ArrayAPI_{name}", (ArrayAPI,), {"name": name, "library": namespace, "device": device})
