"""Tensors from the properties of another one, from parts, and less usual ranges."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

import numpy as np

from .. import _C
from .._op import COMPOSITE, FACTORY, Op, Sample
from ._samples import Sampler

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_NEW_ARGS = """size: Its shape, as loose ints or one sequence.
        dtype: Dtype of the result, by default this tensor's.
        device: Where it lives, by default where this tensor does.
        requires_grad: Whether it records gradients.

    Returns:
        Tensor of shape `size`."""


def _new(name: str, parameters: str, doc: str, *extra: Any, arbitrary: bool = False) -> Op:
    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        for size in ((), (3,), (2, 0)):
            yield Sample((make(2), size, *extra))

    op = Op(
        f"{name}(Tensor self, {parameters}, {_OPTIONS}) -> Tensor",
        family=FACTORY,
        function=False,
        differentiable=False,
        out=False,
        arbitrary=arbitrary,
        doc=f"{doc}, with the dtype and device of this tensor.\n\n    Args:\n        {_NEW_ARGS}",
    )
    return op.samples(samples)


new_empty = _new("new_empty", "int[] size", "A tensor whose elements are whatever was in memory", arbitrary=True)
new_zeros = _new("new_zeros", "int[] size", "A tensor of zeros")
new_ones = _new("new_ones", "int[] size", "A tensor of ones")
new_full = _new("new_full", "int[] size, Scalar fill_value", "A tensor of one number", 3)
new_empty_strided = Op(
    f"new_empty_strided(Tensor self, int[] size, int[] stride, {_OPTIONS}) -> Tensor",
    family=FACTORY,
    function=False,
    differentiable=False,
    out=False,
    arbitrary=True,
    doc="`empty_strided` with the dtype and device of this tensor.",
).samples(lambda make, dtype: [Sample((make(2), (2, 3), (1, 2)))])
scalar_tensor = (
    Op(
        f"scalar_tensor(Scalar s, {_OPTIONS}) -> Tensor",
        family=FACTORY,
        differentiable=False,
        out=False,
        doc="A 0-d tensor of one number, of the default dtype where none is given.",
    )
    .composite(lambda s, *, dtype, device, **_: _full((), s, dtype or _C.get_default_dtype(), device))
    .samples(
        lambda make, dtype: [Sample((1,), {"dtype": dtype, "device": make.device})],
        lambda s, dtype, device: np.array(s),
    )
)


def _full(size: Any, value: Any, dtype: Any, device: Any) -> Any:
    from ._factory import full

    return full.operator(size, value, dtype=dtype, device=device)


def _logspace(start: Any, end: Any, steps: int, base: float, dtype: Any, device: Any) -> Any:
    from ._factory import linspace

    complex_ends = isinstance(start, complex) or isinstance(end, complex)
    default = _C.get_default_dtype()
    dtype = dtype or (default.to_complex() if complex_ends else default)
    if complex_ends and not dtype.is_complex:
        raise RuntimeError(
            f"torch.logspace(): inferred dtype {default.to_complex()} can't be safely cast to passed dtype {dtype}."
        )
    if dtype is _C.bool:
        raise NotImplementedError("\"logspace_cpu\" not implemented for 'Bool'")
    wide = _C.complex128 if dtype.is_complex else _C.float64
    if not (dtype.is_complex or dtype.is_floating_point):  # as linspace
        start, end = int(start), int(end)
    return (base ** linspace.operator(start, end, steps, dtype=wide, device=device)).to(dtype)


logspace = (
    Op(
        f"logspace(Scalar start, Scalar end, int steps, float base=10.0, {_OPTIONS}) -> Tensor",
        family=FACTORY,
        differentiable=False,
        doc="""`steps` powers of `base`, whose exponents are evenly spaced from `start` to `end`, both included.

        Args:
            start: First exponent.
            end: Last exponent.
            steps: Number of elements.
            base: What is raised.
            dtype: Dtype of the result, by default the default float dtype.
            device: Where it lives, by default the default device.

        Returns:
            Tensor of shape `(steps,)`.

        Example:
            >>> rushlight.logspace(0, 2, 3)
            tensor([  1.,  10., 100.])
        """,
    )
    .composite(lambda start, end, steps, base, *, dtype, device, **_: _logspace(start, end, steps, base, dtype, device))
    .samples(
        lambda make, dtype: (
            [Sample((0, 2, 5), {"dtype": dtype, "device": make.device})] if dtype.is_floating_point else []
        ),
        lambda start, end, steps, dtype, device: np.logspace(start, end, steps),
    )
)


def _range(start: Any, end: Any, step: Any, dtype: Any, device: Any) -> Any:
    from ._factory import arange

    dtype = dtype or _C.get_default_dtype()
    if not all(isfinite(x) for x in (start, end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError(
            f"upper bound and lower bound inconsistent with step sign, got start={start}, end={end}, step={step}"
        )
    n = int((end - start) / step + 1)
    if dtype.is_floating_point:
        return (arange.operator(n, dtype=_C.float64, device=device) * step + start).to(dtype)
    return arange.operator(n, dtype=dtype, device=device) * int(step) + int(start)


range_ = (
    Op(
        f"range(Scalar start, Scalar end, Scalar step=1, {_OPTIONS}) -> Tensor",
        family=FACTORY,
        differentiable=False,
        doc="""The numbers from `start` to `end`, both included, `step` apart. Deprecated in favour of `arange`.

        Args:
            start: The first number.
            end: Bound that the last does not pass.
            step: Distance, not zero.
            dtype: Dtype of the result, by default the default float dtype.
            device: Where it lives, by default the default device.

        Returns:
            Tensor of shape `(floor((end - start) / step) + 1,)`.

        Raises:
            RuntimeError: `step` is zero or leads away from `end`, or a bound is not finite.
        """,
    )
    .composite(lambda start, end, step, *, dtype, device, **_: _range(start, end, step, dtype, device))
    .samples(
        lambda make, dtype: (
            [Sample((0, 5), {"dtype": dtype, "device": make.device}), Sample((1, 8, 3), {"device": make.device})]
            if dtype.is_floating_point
            else []
        ),
        lambda start, end, step=1, *, dtype=None, device: np.arange(start, end + 1, step),
    )
)


def _pair(name: str) -> Sampler:
    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        if str(dtype) in ("torch.float32", "torch.float64"):
            yield Sample((make(3, low=0), make(3)))
            yield Sample((make(2, 1, low=0), make(3)))

    return samples


def _complex(real: Any, imag: Any) -> Any:
    from ._join import stack
    from ._view import view_as_complex

    if real.dtype not in (_C.float16, _C.float32, _C.float64):
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {real.dtype} and {imag.dtype}"
        )
    if real.dtype is not imag.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {real.dtype} but got scalar type {imag.dtype} for second argument"
        )
    if real.dtype is _C.float16:
        real, imag = real.float(), imag.float()
    return view_as_complex.operator(stack.operator(_broadcast(real, imag), -1))


def _broadcast(*tensors: Any) -> Any:
    from ._join import broadcast_tensors

    return broadcast_tensors.operator(tensors)


complex_ = (
    Op(
        "complex(Tensor real, Tensor imag) -> Tensor",
        exact=True,
        family=COMPOSITE,
        doc="""A complex tensor of two real ones.

        Args:
            real: Real parts, float32 or float64.
            imag: Imaginary parts, of the same dtype; broadcasts with `real`.

        Returns:
            Tensor of complex64 or complex128.

        Raises:
            RuntimeError: The dtypes differ or are not floating-point.
        """,
    )
    .composite(_complex)
    .samples(_pair("complex"), lambda real, imag: real + 1j * imag)
)
polar = (
    Op(
        "polar(Tensor abs, Tensor angle) -> Tensor",
        exact=True,
        family=COMPOSITE,
        doc="A complex tensor of magnitudes `abs` and angles `angle` in radians.",
    )
    .composite(lambda abs, angle: _complex(abs * angle.cos(), abs * angle.sin()))
    .samples(_pair("polar"), lambda magnitude, angle: magnitude * np.exp(1j * angle))
)


tril_indices = Op(
    f"tril_indices(int row, int col, int offset=0, {_OPTIONS}) -> Tensor",
    family=FACTORY,
    differentiable=False,
    out=False,
    doc=(
        "Coordinates of the elements on and below a diagonal of a (row, col) matrix, row by row: shape (2, n), int64."
    ),
).samples(
    lambda make, dtype: (Sample(args, {"device": make.device}) for args in ((3, 3), (2, 4, 1), (4, 2, -1))),
    lambda row, col, offset=0, *, device: np.stack(np.tril_indices(row, offset, col)),
)
triu_indices = Op(
    f"triu_indices(int row, int col, int offset=0, {_OPTIONS}) -> Tensor",
    family=FACTORY,
    differentiable=False,
    out=False,
    doc=(
        "Coordinates of the elements on and above a diagonal of a (row, col) matrix, row by row: shape (2, n), int64."
    ),
).samples(
    lambda make, dtype: (Sample(args, {"device": make.device}) for args in ((3, 3), (2, 4, 1), (4, 2, -1))),
    lambda row, col, offset=0, *, device: np.stack(np.triu_indices(row, offset, col)),
)
