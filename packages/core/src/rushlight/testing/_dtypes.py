"""Sets of dtypes for parametrised tests, by PyTorch 1.9's names."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import rushlight as torch
from rushlight import _registry

Dtypes = tuple[Any, ...]

_INTEGRAL = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_FLOATING = (torch.float32, torch.float64)
_COMPLEX = (torch.complex64, torch.complex128)


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """NumPy's dtype of the same name; that of bfloat16 is ml_dtypes'."""
    name = str(dtype).rpartition(".")[2]
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def floating_types() -> Dtypes:
    """float32 and float64."""
    return _FLOATING


def floating_types_and(*dtypes: Any) -> Dtypes:
    """float32, float64 and the given ones."""
    return _FLOATING + dtypes


def integral_types() -> Dtypes:
    """uint8 and the signed integers."""
    return _INTEGRAL


def integral_types_and(*dtypes: Any) -> Dtypes:
    """uint8, the signed integers and the given ones."""
    return _INTEGRAL + dtypes


def complex_types() -> Dtypes:
    """complex64 and complex128."""
    return _COMPLEX


def floating_and_complex_types() -> Dtypes:
    """float32, float64, complex64 and complex128."""
    return _FLOATING + _COMPLEX


def floating_and_complex_types_and(*dtypes: Any) -> Dtypes:
    """float32, float64, complex64, complex128 and the given ones."""
    return _FLOATING + _COMPLEX + dtypes


def all_types() -> Dtypes:
    """float32, float64 and the integers."""
    return _FLOATING + _INTEGRAL


def all_types_and(*dtypes: Any) -> Dtypes:
    """float32, float64, the integers and the given ones."""
    return _FLOATING + _INTEGRAL + dtypes


def all_types_and_complex() -> Dtypes:
    """float32, float64, the integers, complex64 and complex128."""
    return _FLOATING + _INTEGRAL + _COMPLEX


def all_types_and_complex_and(*dtypes: Any) -> Dtypes:
    """float32, float64, the integers, complex64, complex128 and the given ones."""
    return _FLOATING + _INTEGRAL + _COMPLEX + dtypes


def get_all_dtypes(
    include_half: bool = True, include_bfloat16: bool = True, include_bool: bool = True, include_complex: bool = True
) -> list[Any]:
    """Every dtype, minus the kinds that are switched off."""
    found = [*_INTEGRAL, *get_all_fp_dtypes(include_half, include_bfloat16)]
    found += [torch.bool] if include_bool else []
    found += _COMPLEX if include_complex else ()
    return found


def get_all_fp_dtypes(include_half: bool = True, include_bfloat16: bool = True) -> list[Any]:
    """float32, float64 and the half-precision dtypes that are not switched off."""
    return [*_FLOATING, *([torch.float16] if include_half else []), *([torch.bfloat16] if include_bfloat16 else [])]


def get_all_int_dtypes() -> list[Any]:
    """uint8 and the signed integers."""
    return list(_INTEGRAL)


def get_all_complex_dtypes() -> list[Any]:
    """complex64 and complex128."""
    return list(_COMPLEX)


def get_all_device_types() -> list[str]:
    """The registered device types that can be used and have memory, "cpu" first."""
    available = (name for name in list(_registry.backends) if name != "meta" and _registry.probe(name))
    return sorted(available, key=lambda name: (name != "cpu", name))
