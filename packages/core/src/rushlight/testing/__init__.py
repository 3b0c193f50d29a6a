"""Tools for tests and backends: closeness, samples of operators, the conformance suite, devices of array libraries."""

from __future__ import annotations

from .._op import Sample
from ._array_api import arrayapi_backend
from ._comparison import assert_allclose, assert_close
from ._dtypes import (
    all_types,
    all_types_and,
    all_types_and_complex,
    all_types_and_complex_and,
    complex_types,
    floating_and_complex_types,
    floating_and_complex_types_and,
    floating_types,
    floating_types_and,
    get_all_complex_dtypes,
    get_all_device_types,
    get_all_dtypes,
    get_all_fp_dtypes,
    get_all_int_dtypes,
    integral_types,
    integral_types_and,
)
from ._groups import run_group
from ._samples import Maker, make_non_contiguous, make_tensor

__all__ = [
    "Maker",
    "Sample",
    "all_types",
    "all_types_and",
    "all_types_and_complex",
    "all_types_and_complex_and",
    "arrayapi_backend",
    "assert_allclose",
    "assert_close",
    "complex_types",
    "floating_and_complex_types",
    "floating_and_complex_types_and",
    "floating_types",
    "floating_types_and",
    "get_all_complex_dtypes",
    "get_all_device_types",
    "get_all_dtypes",
    "get_all_fp_dtypes",
    "get_all_int_dtypes",
    "integral_types",
    "integral_types_and",
    "make_non_contiguous",
    "make_tensor",
    "run_group",
]

for _name in __all__:
    globals()[_name].__module__ = __name__
