"""The inner structure of numbers: divisors, exponents and mantissas, neighbours, powers in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _C
from .._op import COMPOSITE, Op, Sample, pointwise
from ._factory import empty_like
from ._samples import binary, unary

gcd = (
    Op(
        "gcd(Tensor self, Tensor other) -> Tensor",
        family=pointwise(),
        inplace=True,
        differentiable=False,
        doc="""Greatest common divisor, by Stein's algorithm; of 0 and x it is |x|.

        Args:
            input: Tensor of integers.
            other: Tensor of integers that broadcasts with `input`.

        Returns:
            Tensor of the broadcast shape and the promoted dtype.

        Raises:
            NotImplementedError: The dtype is not an integer's.

        Example:
            >>> rushlight.gcd(rushlight.tensor([12, -8]), rushlight.tensor([18, 0]))
            tensor([6, 8])
        """,
    )
    .array(lambda xp, x, y: xp.gcd(x, y))
    .samples(binary(number=None))
)
lcm = (
    Op(
        "lcm(Tensor self, Tensor other) -> Tensor",
        family=pointwise(),
        inplace=True,
        differentiable=False,
        doc="Least common multiple of integers, not negative; of 0 and x it is 0.",
    )
    .array(lambda xp, x, y: xp.lcm(x, y))
    .samples(binary(number=None))
)
ldexp = (
    Op(
        "ldexp(Tensor self, Tensor other) -> Tensor",
        family=pointwise("float"),
        inplace=True,
        doc="`input * 2 ** other`; integers compute in the default dtype.",
    )
    .array(lambda xp, x, exponent: x * xp.exp2(exponent))
    .grad(self="grad * conj(exp2(other))", other="grad * conj(result * 0.6931471805599453)")
    .samples(binary(-3, 3, number=None))
)
nextafter = (
    Op(
        "nextafter(Tensor self, Tensor other) -> Tensor",
        family=pointwise(),
        inplace=True,
        doc="The neighbour of `input`, among the numbers of its dtype, in the direction of `other`.",
    )
    .array(lambda xp, x, y: xp.nextafter(x, y))
    .grad(self="where(self == other, 0, grad)", other="zeros_of(other)")
    .samples(
        lambda make, dtype: (
            binary(number=None)(make, dtype) if dtype in (_C.float32, _C.float64) else []  # arrays have no halves
        )
    )
)


def _check_frexp(dtype: Any, floating: bool) -> None:
    if not floating:
        raise RuntimeError(f"torch.frexp() only supports floating-point dtypes, got input of dtype {dtype}")


def _frexp_meta(x: Any) -> Any:
    _check_frexp(x.dtype, x.is_floating_point())
    return empty_like.operator(x), empty_like.operator(x, dtype=_C.int32)


def _frexp(xp: Any, x: Any) -> Any:
    _check_frexp(x.dtype, x.dtype.kind == "f")
    mantissa, exponent = xp.frexp(x)
    # Infinities and NaN have no exponent, C leaves it open.
    return mantissa, xp.where(xp.isfinite(x), exponent, 0).astype(np.int32)


_frexp_mantissa = (
    Op("_frexp_mantissa(Tensor self) -> Tensor", family=pointwise(), method=False, out=False, differentiable=False)
    .array(lambda xp, x: xp.frexp(x)[0])
    .samples(unary())
)
_frexp_exponent = (
    Op("_frexp_exponent(Tensor self) -> Tensor", family=pointwise(), method=False, out=False, differentiable=False)
    .array(lambda xp, x: xp.where(xp.isfinite(x), xp.frexp(x)[1], 0).astype(x.dtype))
    .samples(unary())
)


def _frexp_cpu(x: Any) -> Any:
    _check_frexp(x.dtype, x.is_floating_point())
    return _frexp_mantissa.operator(x), _frexp_exponent.operator(x).to(_C.int32)


frexp = (
    Op(
        "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
        doc="""Mantissas in ±[0.5, 1) and int32 exponents, such that `input = mantissa * 2 ** exponent`.

        Args:
            input: Floating-point tensor.

        Returns:
            Named tuple (mantissa, exponent).

        Raises:
            RuntimeError: The dtype is not a floating-point one.

        Example:
            >>> mantissa, exponent = rushlight.frexp(rushlight.tensor([3.0]))
            >>> mantissa, exponent
            (tensor([0.7500]), tensor([2], dtype=torch.int32))
        """,
    )
    .array(_frexp)
    .kernel("cpu", _frexp_cpu)
    .kernel("meta", _frexp_meta)
    .grad(self="grads[0] / exp2(results[1])")
    .samples(unary())
)

# -- powers in double precision


def _is_complex(value: Any) -> bool:
    return value.is_complex() if isinstance(value, _C.Tensor) else isinstance(value, complex)


def _double(base: Any, exponent: Any) -> Any:
    return _C.complex128 if _is_complex(base) or _is_complex(exponent) else _C.float64


def _float_power(base: Any, exponent: Any) -> Any:
    dtype = _double(base, exponent)
    base, exponent = (x.to(dtype) if isinstance(x, _C.Tensor) else x for x in (base, exponent))
    return base**exponent


_FLOAT_POWER = """`input ** exponent` in double precision: float64, or complex128 where either is complex.

        Args:
            input: Tensor, or a number.
            exponent: Tensor that broadcasts with it, or a number.

        Returns:
            Tensor of float64 or complex128.

        Raises:
            RuntimeError: In place, where the tensor does not have the dtype of the result.
        """
float_power = (
    Op(
        "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
        family=COMPOSITE,
        inplace=True,
        exact=True,
        doc=_FLOAT_POWER,
    )
    .composite(lambda self, exponent: _float_power(self, exponent))
    .samples(binary(0.5, 3, number=None), lambda x, y: np.float_power(x, y))
)
float_power_base = (
    Op("float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", family=COMPOSITE, exact=True, doc=_FLOAT_POWER)
    .composite(lambda self, exponent: _float_power(self, exponent))
    .samples(lambda make, dtype: [Sample((2, make(3, 4, low=0, high=3)))], lambda x, y: np.float_power(x, y))
)
float_power_number = (
    Op(
        "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
        family=COMPOSITE,
        inplace=True,
        exact=True,
        doc=_FLOAT_POWER,
    )
    .composite(lambda self, exponent: _float_power(self, exponent))
    .samples(unary(0.5, 3, 2), lambda x, y: np.float_power(x, y))
)
isreal = (
    Op(
        "isreal(Tensor self) -> Tensor",
        family=COMPOSITE,
        out=False,
        differentiable=False,
        doc="True where the imaginary part is zero, as it is of every real number.",
    )
    .composite(lambda self: self.imag == 0 if self.is_complex() else self.new_ones(self.shape, dtype=_C.bool))
    .samples(unary(), np.isreal)
)
