"""Ops that compute each element from the elements at the same place."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._op import COMPOSITE, Op, pointwise
from ._samples import binary, ternary, unary

# -- arithmetic

add = (
    Op(
        "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        family=pointwise(),
        inplace=True,
        doc="""Sum: `input + alpha * other`.

        Args:
            input: Tensor of any shape.
            other: Tensor that broadcasts with `input`, or a number.
            alpha: Multiplier of `other`.

        Returns:
            Tensor of the broadcast shape and the promoted dtype.

        Example:
            >>> rushlight.add(rushlight.tensor([1.0, 2.0]), 10)
            tensor([11., 12.])
        """,
    )
    .array(lambda xp, x, y, alpha: xp.logical_or(x, y) if _is_bool(x, y) else x + (y if alpha == 1 else y * alpha))
    .grad(self="grad", other="grad * conj(alpha)")
    .samples(binary())
)
sub = (
    Op(
        "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        family=pointwise("minus"),
        inplace=True,
        aliases=("subtract",),
        doc="Difference: `input - alpha * other`, of broadcast shape and promoted dtype.",
    )
    .array(lambda xp, x, y, alpha: x - (y if alpha == 1 else y * alpha))
    .grad(self="grad", other="-grad * conj(alpha)")
    .samples(binary())
)
rsub = (
    Op(
        "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        numbers=True,
        doc="`other - alpha * input`.",
    )
    .composite(lambda self, other, *, alpha: _rsub(self, other, alpha))
    .samples(binary(number=None))
)
mul = (
    Op(
        "mul.Tensor(Tensor self, Tensor other) -> Tensor",
        family=pointwise(),
        inplace=True,
        aliases=("multiply",),
        doc="Product of two tensors, or of a tensor and a number, of broadcast shape and promoted dtype.",
    )
    .array(lambda xp, x, y: x * y)
    .grad(self="grad * conj(other)", other="grad * conj(self)")
    .samples(binary())
)
div = (
    Op(
        "div.Tensor(Tensor self, Tensor other) -> Tensor",
        family=pointwise("float"),
        inplace=True,
        aliases=("divide", "true_divide"),
        doc="True quotient; integers divide in the default float dtype.",
    )
    .array(lambda xp, x, y: xp.true_divide(x, y))
    .grad(self="grad / conj(other)", other="-grad * conj(self / other / other)")
    .samples(binary(0.5, 4.0))
)
div_mode = (
    Op(
        "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
        numbers=True,
        family=COMPOSITE,
        aliases=("divide",),
        inplace=True,
        doc=div.doc,
    )
    .composite(lambda self, other, *, rounding_mode: _div_mode(self, other, rounding_mode))
    .samples(binary(1, 5, rounding_mode="floor"), lambda x, y, rounding_mode: np.floor_divide(x, y))
)
_div_trunc = (
    Op(
        "_div_trunc(Tensor self, Tensor other) -> Tensor",
        numbers=True,
        family=pointwise(loop="div_trunc"),
        method=False,
        doc="Quotient rounded towards zero.",
    )
    .array(lambda xp, x, y: xp.trunc(xp.true_divide(x, y)))
    .grad(self="zeros_of(self)", other="zeros_of(other)")
    .samples(binary(1, 5))
)
floor_divide = (
    Op(
        "floor_divide(Tensor self, Tensor other) -> Tensor",
        family=pointwise(loop="div_floor"),
        numbers=True,
        inplace=True,
        differentiable=False,
        doc="Quotient rounded towards minus infinity, as Python's `//`.",
    )
    .array(lambda xp, x, y: xp.floor_divide(x, y))
    .samples(binary(1, 5))
)
remainder = (
    Op(
        "remainder.Tensor(Tensor self, Tensor other) -> Tensor",
        family=pointwise(),
        inplace=True,
        doc="Remainder of floor division, with the sign of the divisor, as Python's `%`.",
    )
    .array(lambda xp, x, y: xp.remainder(x, y))
    .grad(self="grad", other="-grad * _div_floor(self, other)")
    .samples(binary(1, 5))
)
_div_floor = (
    Op(
        "_div_floor(Tensor self, Tensor other) -> Tensor",
        numbers=True,
        family=pointwise(loop="div_floor"),
        method=False,
        doc="Quotient rounded down.",
    )
    .array(lambda xp, x, y: xp.floor_divide(x, y))
    .grad(self="zeros_of(self)", other="zeros_of(other)")
    .samples(binary(1, 5))
)
fmod = (
    Op(
        "fmod.Tensor(Tensor self, Tensor other) -> Tensor",
        family=pointwise(),
        inplace=True,
        doc="Remainder of truncated division, with the sign of the dividend, as C's fmod.",
    )
    .array(lambda xp, x, y: xp.fmod(x, y))
    .grad(self="grad", other="-grad * _div_trunc(self, other)")
    .samples(binary(1, 5))
)
pow_number = (
    Op(
        "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
        family=pointwise("scalars", "pow_scalar"),
        inplace=True,
        doc="""`input` to the power `exponent`; either may be a number.

        Raises:
            RuntimeError: Integers to negative integer powers.
        """,
    )
    .array(lambda xp, x, exponent: xp.power(x, exponent))
    .grad(self="zeros_of(self) if exponent == 0 else grad * conj(exponent * self ** (exponent - 1))")
    .samples(unary(0.1, 3.0, 2))
)
pow_tensor = (
    Op(
        "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
        family=pointwise(loop="pow"),
        inplace=True,
        doc=pow_number.doc,
    )
    .array(lambda xp, x, y: xp.power(x, y))
    .grad(
        self="grad * conj(_pow_by_self(self, exponent))",
        exponent=lambda grad, self, exponent, result: _pow_exponent_grad(grad, self, exponent, result),
    )
    .samples(binary(0.1, 3.0, number=None))
)
pow_base = (
    Op(
        "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
        family=pointwise("scalars", "rpow_scalar"),
        doc=pow_number.doc,
    )
    .array(lambda xp, base, x: xp.power(base, x))
    .grad(
        exponent="grad * conj(_pow_by_exponent(zeros_of(exponent) + self, exponent)) if self == 0 or self == inf else "
        "grad * conj(result * log_number(self))"
    )
    .samples(lambda make, dtype: (_sample(2, make(3, 4, low=0, high=3)), _sample(3, make(low=0, high=3))))
)


def _pow_exponent_grad(grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    import rushlight

    if rushlight.is_grad_enabled():  # to be differentiated again
        slope = _pow_by_exponent.operator(self, exponent)
    else:  # the power is there already
        none = (result == 0) | ((self == 0) & (exponent == 0))
        slope = (result * self.to(result.dtype).log()).masked_fill(none, 0)
    return grad * slope.conj()


def _pow_slope(name: str, doc: str, array: Any, by_self: tuple[int, int], by_exponent: tuple[int, int]) -> Op:
    def grad(grad: Any, self: Any, exponent: Any, needs: Any) -> tuple[Any, Any]:
        orders = by_self, by_exponent
        slopes = (_second_slope(self, exponent, *n) if need else None for n, need in zip(orders, needs, strict=True))
        first, second = (s if s is None else grad * s.conj() for s in slopes)
        return first, second

    return (
        Op(
            f"_{name}(Tensor self, Tensor exponent) -> Tensor",
            family=pointwise(loop=name),
            method=False,
            out=False,
            doc=doc,
        )
        .array(lambda xp, x, y: array(xp, x, y).astype(x.dtype))
        .grad(("self", "exponent"), grad)
        .samples(binary(0.1, 3.0, number=None))
    )


def _second_slope(self: Any, exponent: Any, by_self: int, by_exponent: int) -> Any:
    """The derivative of that order of ``self ** exponent``, which is a power times a polynomial."""
    power, origin = self ** (exponent - by_self), False
    if by_exponent == 0:
        factor = exponent * (exponent - 1)
    elif by_self:
        factor = (exponent * self.log()).masked_fill(exponent == 0, 0) + 1
    else:
        factor, origin = self.log() ** 2, (self == 0) & (exponent == 0)
    vanishes = (power == 0) & ~factor.isfinite() | (factor == 0) & power.isinf() | origin
    return (power * factor).masked_fill(vanishes, 0)


_pow_by_self = _pow_slope(
    "pow_by_self",
    "The derivative of ``self ** exponent`` by `self`; of the exponent 0 it is 0 for every base.",
    lambda xp, x, y: _product_of_powers(xp, xp.power(x, y - 1), y, y == 0),
    (2, 0),
    (1, 1),
)
_pow_by_exponent = _pow_slope(
    "pow_by_exponent",
    "The derivative of ``self ** exponent`` by `exponent`; at ``0 ** 0`` it is 0.",
    lambda xp, x, y: _product_of_powers(xp, xp.power(x, y), xp.log(xp.where(x == 0, 1, x)), (x == 0) & (y == 0)),
    (1, 1),
    (0, 2),
)


def _product_of_powers(xp: Any, power: Any, factor: Any, none: Any) -> Any:
    none = none | (power == 0)
    return xp.where(none, 0, power * xp.where(none, 1, factor))


def _is_bool(*arrays: Any) -> bool:
    return all(
        isinstance(a, bool) or getattr(getattr(a, "dtype", None), "kind", "b" if isinstance(a, bool) else "") == "b"
        for a in arrays
    )


def _holds(x: Any, kind: type) -> bool:
    """Whether a tensor or number is floating or complex (`kind` float), or complex."""
    if not hasattr(x, "dtype"):
        return isinstance(x, (float, complex) if kind is float else complex)
    return x.dtype.is_complex or (kind is float and x.dtype.is_floating_point)


def check_factor(name: str, factor: Any, *operands: Any) -> None:
    """Refuses a factor that the dtype of the operands does not hold."""
    if isinstance(factor, float) and not any(_holds(x, float) for x in operands):
        raise RuntimeError(
            f"For integral input tensors, argument {name} must not be a floating point number, got {name}={factor}."
        )
    if isinstance(factor, complex) and not any(_holds(x, complex) for x in operands):
        raise RuntimeError(
            f"For non-complex input tensors, argument {name} must not be a complex number, got {name}={factor}."
        )


def _rsub(self: Any, other: Any, alpha: Any) -> Any:
    check_factor("alpha", alpha, self, other)
    return other - (self if alpha == 1 else self * alpha)


def _sample(*args: Any) -> Any:
    from .._op import Sample

    return Sample(args)


def _div_mode(self: Any, other: Any, mode: str | None) -> Any:
    if mode is None:
        return self / other
    if mode == "floor":
        return _div_floor.operator(self, other)
    if mode == "trunc":
        return _div_trunc.operator(self, other)
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'")


# -- one input


def _unary(
    name: str,
    doc: str,
    kernel: Any,
    grad: Any,
    low: float | None = None,
    high: float | None = None,
    promote: str = "float",
    reference: Any = None,
    **options: Any,
) -> Op:
    options.setdefault("inplace", True)
    options.setdefault("exact", promote == "same")
    op = Op(f"{name}(Tensor self) -> Tensor", family=pointwise(promote), doc=doc, **options).array(kernel)
    if grad is not NotImplemented:
        op.grad(self=grad)
    return op.samples(unary(low, high), reference)


neg = _unary("neg", "The negative.", lambda xp, x: -x, "-grad", promote="minus", exact=True, aliases=("negative",))
positive = (
    Op("positive(Tensor self) -> Tensor", family=COMPOSITE, out=False, doc="The input itself.")
    .composite(lambda self: _positive(self))
    .samples(unary(), lambda x: +x)
)
abs = _unary(
    "abs",
    "Absolute value; of a complex number its modulus, which is real.",
    lambda xp, x: xp.abs(x),
    "grad * sgn(self)",
    promote="real",
    exact=True,
    aliases=("absolute",),
)
sign = _unary(
    "sign", "-1, 0 or 1 by sign; NaN stays NaN.", lambda xp, x: _sign(xp, x), "zeros_of(self)", promote="same"
)
sgn = _unary(
    "sgn",
    "Sign, for complex numbers too: `x / |x|`, and 0 at 0.",
    lambda xp, x: (
        xp.where(x == 0, x, x / xp.abs(xp.where(x == 0, 1, x))).astype(x.dtype) if x.dtype.kind == "c" else _sign(xp, x)
    ),
    "where(self == 0, 0, (grad - real(grad * conj(result)) * result) / abs(self)) if is_complex(self) else "
    "zeros_of(self)",
    promote="same",
)
reciprocal = _unary("reciprocal", "1 / x.", lambda xp, x: 1 / x, "-grad * conj(result * result)", 0.5, 4)
sqrt = _unary("sqrt", "Square root; NaN below zero.", lambda xp, x: xp.sqrt(x), "grad / (2 * conj(result))", 0.1, 4)
rsqrt = _unary(
    "rsqrt", "1 / sqrt(x).", lambda xp, x: 1 / xp.sqrt(x), "-0.5 * grad * conj(result * result * result)", 0.5, 4
)
square = (
    Op("square(Tensor self) -> Tensor", family=COMPOSITE, inplace=True, doc="x * x; of bool in int64, as powers are.")
    .composite(lambda self: pow_number.operator(self, 2))
    .samples(unary(), lambda x: np.power(x, 2))
)
exp = _unary("exp", "e to the power x.", lambda xp, x: xp.exp(x), "grad * conj(result)", -3, 3)
exp2 = _unary("exp2", "2 to the power x.", lambda xp, x: xp.exp2(x), "grad * conj(result * 0.6931471805599453)", -3, 3)
expm1 = _unary(
    "expm1",
    "exp(x) - 1, exact for small x.",
    lambda xp, x: xp.expm1(x),
    "grad * conj(result + 1)",
    -1,
    1,
)
log = _unary("log", "Natural logarithm.", lambda xp, x: xp.log(x), "grad / conj(self)", 0.1, 4)
log2 = _unary(
    "log2", "Logarithm to base 2.", lambda xp, x: xp.log2(x), "grad / conj(self * 0.6931471805599453)", 0.1, 4
)
log10 = _unary(
    "log10", "Logarithm to base 10.", lambda xp, x: xp.log10(x), "grad / conj(self * 2.302585092994046)", 0.1, 4
)
log1p = _unary("log1p", "log(1 + x), exact for small x.", lambda xp, x: xp.log1p(x), "grad / conj(self + 1)", -0.5, 2)
sin = _unary("sin", "Sine of an angle in radians.", lambda xp, x: xp.sin(x), "grad * conj(cos(self))", -6, 6)
cos = _unary("cos", "Cosine of an angle in radians.", lambda xp, x: xp.cos(x), "-grad * conj(sin(self))", -6, 6)
tan = _unary(
    "tan", "Tangent of an angle in radians.", lambda xp, x: xp.tan(x), "grad * conj(1 + result * result)", -1, 1
)
asin = _unary(
    "asin",
    "Inverse sine, in radians.",
    lambda xp, x: xp.arcsin(x),
    "_asin_backward(grad, self)",
    -0.9,
    0.9,
    aliases=("arcsin",),
)
acos = _unary(
    "acos",
    "Inverse cosine, in radians.",
    lambda xp, x: xp.arccos(x),
    "-_asin_backward(grad, self)",
    -0.9,
    0.9,
    aliases=("arccos",),
)
atan = _unary(
    "atan",
    "Inverse tangent, in radians.",
    lambda xp, x: xp.arctan(x),
    "_atan_backward(grad, self)",
    -4,
    4,
    aliases=("arctan",),
)
sinh = _unary("sinh", "Hyperbolic sine.", lambda xp, x: xp.sinh(x), "grad * conj(cosh(self))", -3, 3)
cosh = _unary("cosh", "Hyperbolic cosine.", lambda xp, x: xp.cosh(x), "grad * conj(sinh(self))", -3, 3)
tanh = _unary(
    "tanh",
    "Hyperbolic tangent.",
    lambda xp, x: xp.tanh(x),
    "_tanh_backward(grad, result)",
    -3,
    3,
)
asinh = _unary(
    "asinh",
    "Inverse hyperbolic sine.",
    lambda xp, x: xp.arcsinh(x),
    "_asinh_backward(grad, self)",
    -4,
    4,
    aliases=("arcsinh",),
)
acosh = _unary(
    "acosh",
    "Inverse hyperbolic cosine.",
    lambda xp, x: xp.arccosh(x),
    "grad * conj(rsqrt(self - 1) * rsqrt(self - -1))",  # of differences, which keep the sign of a zero
    1.1,
    4,
    aliases=("arccosh",),
)
atanh = _unary(
    "atanh",
    "Inverse hyperbolic tangent.",
    lambda xp, x: xp.arctanh(x),
    "_atan_backward(grad, self * 1j) if is_complex(self) else grad / _one_minus_square(self)",
    -0.9,
    0.9,
    aliases=("arctanh",),
)
sigmoid = _unary(
    "sigmoid",
    "The logistic function 1 / (1 + exp(-x)).",
    lambda xp, x: 1 / (1 + xp.exp(-x)),
    "_sigmoid_backward(grad, result)",
    -4,
    4,
)
relu = _unary(
    "relu", "max(x, 0).", lambda xp, x: xp.maximum(x, 0), "_threshold_backward(grad, result, 0)", promote="same"
)
floor = _unary(
    "floor",
    "The largest integer that is not above x.",
    lambda xp, x: xp.floor(x).astype(x.dtype),
    "zeros_of(self)",
    promote="same",
)
ceil = _unary(
    "ceil",
    "The smallest integer that is not below x.",
    lambda xp, x: xp.ceil(x).astype(x.dtype),
    "zeros_of(self)",
    promote="same",
)
round = _unary(
    "round",
    "The nearest integer; halves go to the even one.",
    lambda xp, x: xp.round(x),
    "zeros_of(self)",
    promote="same",
)
round_decimals = (
    Op(
        "round.decimals(Tensor self, *, int decimals) -> Tensor",
        exact=True,
        family=pointwise(loop="round_decimals"),
        inplace=True,
        doc=round.doc,
    )
    .array(lambda xp, x, decimals: xp.round(x, decimals))
    .grad(self="zeros_of(self)")
    .samples(unary(-20, 20, decimals=1))
)
trunc = _unary(
    "trunc",
    "The integer part, towards zero.",
    lambda xp, x: xp.trunc(x).astype(x.dtype),
    "zeros_of(self)",
    promote="same",
    aliases=("fix",),
)
frac = _unary("frac", "x - trunc(x).", lambda xp, x: x - xp.trunc(x), "grad", promote="same")
deg2rad = _unary(
    "deg2rad", "Degrees to radians.", lambda xp, x: x * (np.pi / 180), "grad * 0.017453292519943295", -180, 180
)
rad2deg = _unary("rad2deg", "Radians to degrees.", lambda xp, x: x * (180 / np.pi), "grad * 57.29577951308232", -4, 4)
sinc = _unary(
    "sinc",
    "sin(pi x) / (pi x), and 1 at 0.",
    lambda xp, x: xp.sinc(x),
    lambda grad, self: _sinc_grad(grad, self),
    -3,
    3,
)
conj_physical = _unary(
    "conj_physical", "Complex conjugate, written out.", lambda xp, x: xp.conj(x), "conj(grad)", promote="same"
)
angle = _unary(
    "angle",
    "Argument of a complex number; of a real one 0, or pi below zero.",
    lambda xp, x: xp.angle(x),
    "where(self == 0, 0, grad * (1j / conj(where(self == 0, 1, self)))) if is_complex(self) else zeros_of(self)",
    promote="float_real",
    inplace=False,
)
logical_not = _unary(
    "logical_not",
    "True where the element is zero.",
    lambda xp, x: xp.logical_not(x),
    None,
    promote="bool",
    differentiable=False,
)
bitwise_not = _unary(
    "bitwise_not",
    "Every bit inverted; of a bool its negation.",
    lambda xp, x: xp.invert(x),
    None,
    promote="same",
    differentiable=False,
)
isnan = _unary(
    "isnan",
    "True for NaN.",
    lambda xp, x: xp.isnan(x),
    None,
    promote="bool",
    differentiable=False,
    inplace=False,
    out=False,
)
isinf = _unary(
    "isinf",
    "True for plus or minus infinity.",
    lambda xp, x: xp.isinf(x),
    None,
    promote="bool",
    differentiable=False,
    inplace=False,
    out=False,
)
isfinite = _unary(
    "isfinite",
    "True for what is neither infinite nor NaN.",
    lambda xp, x: xp.isfinite(x),
    None,
    promote="bool",
    differentiable=False,
    inplace=False,
    out=False,
)
isposinf = _unary(
    "isposinf",
    "True for plus infinity.",
    lambda xp, x: xp.isposinf(x),
    None,
    promote="bool",
    exact=True,
    differentiable=False,
    inplace=False,
)
isneginf = _unary(
    "isneginf",
    "True for minus infinity.",
    lambda xp, x: xp.isneginf(x),
    None,
    promote="bool",
    exact=True,
    differentiable=False,
    inplace=False,
)
signbit = _unary(
    "signbit",
    "True where the sign bit is set, -0.0 included.",
    lambda xp, x: xp.signbit(x) if x.dtype.kind == "f" else x < 0,
    None,
    promote="bool",
    exact=True,
    differentiable=False,
    inplace=False,
)
conj = (
    Op(
        "conj(Tensor self) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="Complex conjugate; a real tensor is returned as it is.",
    )
    .composite(lambda self: conj_physical.operator(self) if self.is_complex() else self)
    .samples(unary(), np.conj)
)
resolve_conj = (
    Op(
        "resolve_conj(Tensor self) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="The input: conjugates are always written out here.",
    )
    .composite(lambda self: self)
    .samples(unary(), lambda x: x)
)
resolve_neg = (
    Op(
        "resolve_neg(Tensor self) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="The input: negatives are always written out here.",
    )
    .composite(lambda self: self)
    .samples(unary(), lambda x: x)
)


def _positive(x: Any) -> Any:
    import rushlight

    if x.dtype is rushlight.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return x


def _sign(xp: Any, x: Any) -> Any:
    return x.copy() if x.dtype.kind == "b" else xp.sign(x)


def _sinc_grad(grad: Any, self: Any) -> Any:
    x = self * np.pi
    # The quotient cancels near 0, where the series pi * (-x/3 + x^3/30) is exact.
    near = x.abs() < 1e-2
    safe = x.masked_fill(near, 1)
    angle = x if x.is_complex() else (self - (self / 2).round() * 2) * np.pi  # of large numbers exactly
    slope = (angle.cos() - angle.sin() / safe) / safe * np.pi
    small = x.masked_fill(~near, 0)
    square = small * small
    series = small * (square * (square * (square / 45360 - 1 / 840) + 1 / 30) - 1 / 3) * np.pi
    value = slope.masked_fill(near, 0) + series
    return grad * (value.conj() if value.is_complex() else value)


# -- backwards that gradients share, fused

_threshold_backward = (
    Op(
        "_threshold_backward(Tensor grad, Tensor self, Scalar threshold) -> Tensor",
        family=pointwise(loop="threshold_backward"),
        method=False,
        out=False,
        doc="grad where self > threshold, else 0.",
    )
    .array(lambda xp, grad, x, threshold: xp.where(x > threshold, grad, grad * 0))
    .grad(grad="_threshold_backward(grad, self, threshold)", self=None)
    .samples(lambda make, dtype: (_sample(make(3, 4), make(3, 4), 0),))
)
_tanh_backward = (
    Op(
        "_tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
        family=pointwise(loop="tanh_backward"),
        method=False,
        out=False,
        doc="grad_output * conj(1 - output^2).",
    )
    .array(lambda xp, grad, y: grad * xp.conj(1 - y * y))
    .grad(grad_output="grad * (1 - output * output)", output="-2 * conj(grad * output) * grad_output")
    .samples(lambda make, dtype: (_sample(make(3, 4), make(3, 4)),))
)
_sigmoid_backward = (
    Op(
        "_sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
        family=pointwise(loop="sigmoid_backward"),
        method=False,
        out=False,
        doc="grad_output * conj(output * (1 - output)).",
    )
    .array(lambda xp, grad, y: grad * xp.conj(y * (1 - y)))
    .grad(grad_output="grad * output * (1 - output)", output="conj(grad * (1 - 2 * output)) * grad_output")
    .samples(lambda make, dtype: (_sample(make(3, 4), make(3, 4)),))
)

_one_minus_square = (
    Op(
        "_one_minus_square(Tensor self) -> Tensor",
        family=pointwise(loop="one_minus_square"),
        method=False,
        out=False,
        doc="1 - self^2, to full accuracy near 0 and near 1.",
    )
    .array(lambda xp, x: (1 - x) * (1 + x))
    .grad(self="-2 * grad * conj(self)")
    .samples(unary())
)
_asin_backward = (
    Op(
        "_asin_backward(Tensor grad_output, Tensor self) -> Tensor",
        family=pointwise(loop="asin_backward"),
        method=False,
        out=False,
        doc="grad_output / conj(sqrt(1 - self^2)).",
    )
    .array(lambda xp, grad, x: grad / xp.conj(xp.sqrt(1 - x) * xp.sqrt(1 + x)))
    .grad(
        grad_output="conj(_asin_backward(conj(grad), self))",
        self="_asin_backward(_asin_backward(_asin_backward(conj(grad) * grad_output * conj(self), self), self), self)",
    )
    .samples(lambda make, dtype: (_sample(make(3, 4), make(3, 4, low=-0.9, high=0.9)),))
)
_atan_backward = (
    Op(
        "_atan_backward(Tensor grad_output, Tensor self) -> Tensor",
        family=pointwise(loop="atan_backward"),
        method=False,
        out=False,
        doc="grad_output / conj(1 + self^2).",
    )
    .array(lambda xp, grad, x: grad / xp.conj(1 + x * x))
    .grad(
        grad_output="conj(_atan_backward(conj(grad), self))",
        self="-2 * _atan_backward(_atan_backward(conj(grad) * grad_output * conj(self), self), self) "
        "if is_complex(self) else -2 * _atan_backward(grad * grad_output, self) * _inversion(self, 1)",
    )
    .samples(lambda make, dtype: (_sample(make(3, 4), make(3, 4)),))
)
_asinh_backward = (
    Op(
        "_asinh_backward(Tensor grad_output, Tensor self) -> Tensor",
        family=pointwise(loop="asinh_backward"),
        method=False,
        out=False,
        doc="grad_output / conj(sqrt(1 + self^2)).",
    )
    .array(
        lambda xp, grad, x: (
            grad / (xp.conj(xp.sqrt(1 + x * x)) if x.dtype.kind == "c" else xp.hypot(x, xp.ones_like(x)))
        )
    )
    .grad(
        grad_output="conj(_asinh_backward(conj(grad), self))",
        self="-_asinh_backward(_asinh_backward(_asinh_backward(conj(grad) * grad_output * conj(self), self), self), "
        "self) if is_complex(self) else -_asinh_backward(grad * grad_output, self) * _inversion(self, 1)",
    )
    .samples(lambda make, dtype: (_sample(make(3, 4), make(3, 4)),))
)

# Of the vector (self, other), as long as it may be.
_direction = (
    Op(
        "_direction(Tensor self, Tensor other) -> Tensor",
        family=pointwise(loop="direction"),
        method=False,
        out=False,
        numbers=True,
        doc="``self / hypot(self, other)``; 0 at the origin, and of two infinities as of two equal numbers.",
    )
    .array(lambda xp, x, y: _direction_array(xp, x, y)[0])
    .grad(("self", "other"), lambda grad, self, other: _direction_grad(grad, self, other))
    .samples(lambda make, dtype: () if dtype.is_complex else (_sample(make(3, 4), make(3, 4)),))
)
_inversion = (
    Op(
        "_inversion(Tensor self, Tensor other) -> Tensor",
        family=pointwise(loop="inversion"),
        method=False,
        out=False,
        numbers=True,
        doc="``self / (self^2 + other^2)``; 0 at the origin.",
    )
    .array(lambda xp, x, y: xp.divide(*_direction_array(xp, x, y)))
    .grad(("self", "other"), lambda grad, self, other: _inversion_grad(grad, self, other))
    .samples(lambda make, dtype: () if dtype.is_complex else (_sample(make(3, 4), make(3, 4)),))
)


def _direction_array(xp: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """The direction, and the length, 1 instead of 0."""
    length = xp.hypot(x, y)
    length = xp.where(length == 0, length + 1, length)
    far = xp.isinf(x) | xp.isinf(y)
    x, y = (xp.where(far, xp.where(xp.isinf(v), xp.sign(v), v * 0), v) for v in (x, y))
    return x / xp.where(far, xp.hypot(x, y), length), length


def _polar(self: Any, other: Any) -> tuple[Any, Any, Any]:
    """Cosine and sine of the vector's angle, and its length, 1 instead of 0."""
    import rushlight

    if not isinstance(other, rushlight.Tensor):
        other = self.new_full((), other)
    length = rushlight.hypot(self, other)
    return _direction.operator(self, other), _direction.operator(other, self), length.masked_fill(length == 0, 1)


def _direction_grad(grad: Any, self: Any, other: Any) -> tuple[Any, Any]:
    cosine, sine, length = _polar(self, other)
    return grad * (sine * sine / length), -grad * (cosine * sine / length)


def _inversion_grad(grad: Any, self: Any, other: Any) -> tuple[Any, Any]:
    cosine, sine, length = _polar(self, other)
    return grad * ((sine - cosine) * (sine + cosine) / length / length), -2 * grad * (cosine * sine / length / length)


# -- two inputs


def _binary(
    name: str,
    doc: str,
    kernel: Any,
    promote: str = "same",
    low: float | None = None,
    high: float | None = None,
    number: Any = 2,
    **options: Any,
) -> Op:
    options.setdefault("inplace", True)
    schema = name if "(" in name else f"{name}(Tensor self, Tensor other) -> Tensor"
    return Op(schema, family=pointwise(promote), doc=doc, **options).array(kernel).samples(binary(low, high, number))


eq = _binary(
    "eq.Tensor(Tensor self, Tensor other) -> Tensor",
    "True where the elements are equal.",
    lambda xp, x, y: x == y,
    "bool",
    differentiable=False,
)
ne = _binary(
    "ne.Tensor(Tensor self, Tensor other) -> Tensor",
    "True where the elements differ.",
    lambda xp, x, y: x != y,
    "bool",
    differentiable=False,
    aliases=("not_equal",),
)
lt = _binary(
    "lt.Tensor(Tensor self, Tensor other) -> Tensor",
    "True where input < other.",
    lambda xp, x, y: x < y,
    "bool",
    differentiable=False,
    aliases=("less",),
)
le = _binary(
    "le.Tensor(Tensor self, Tensor other) -> Tensor",
    "True where input <= other.",
    lambda xp, x, y: x <= y,
    "bool",
    differentiable=False,
    aliases=("less_equal",),
)
gt = _binary(
    "gt.Tensor(Tensor self, Tensor other) -> Tensor",
    "True where input > other.",
    lambda xp, x, y: x > y,
    "bool",
    differentiable=False,
    aliases=("greater",),
)
ge = _binary(
    "ge.Tensor(Tensor self, Tensor other) -> Tensor",
    "True where input >= other.",
    lambda xp, x, y: x >= y,
    "bool",
    differentiable=False,
    aliases=("greater_equal",),
)
maximum = _binary(
    "maximum",
    "The larger element; NaN wins, ties share the gradient.",
    lambda xp, x, y: xp.maximum(x, y),
    number=None,
    inplace=False,
).grad(
    self="where(self == other, grad / 2, where(self < other, 0, grad))",
    other="where(self == other, grad / 2, where(self > other, 0, grad))",
)
minimum = _binary(
    "minimum",
    "The smaller element; NaN wins, ties share the gradient.",
    lambda xp, x, y: xp.minimum(x, y),
    number=None,
    inplace=False,
).grad(
    self="where(self == other, grad / 2, where(self > other, 0, grad))",
    other="where(self == other, grad / 2, where(self < other, 0, grad))",
)
fmax = _binary(
    "fmax", "The larger element; a NaN gives the other.", lambda xp, x, y: xp.fmax(x, y), number=None, inplace=False
).grad(self="where((self >= other) | isnan(other), grad, 0)", other="where((self >= other) | isnan(other), 0, grad)")
fmin = _binary(
    "fmin", "The smaller element; a NaN gives the other.", lambda xp, x, y: xp.fmin(x, y), number=None, inplace=False
).grad(self="where((self <= other) | isnan(other), grad, 0)", other="where((self <= other) | isnan(other), 0, grad)")
atan2 = _binary(
    "atan2",
    "Angle of the point (other, input), in radians, in [-pi, pi].",
    lambda xp, x, y: xp.arctan2(x, y),
    "float",
    0.5,
    3,
    None,
    aliases=("arctan2",),
).grad(self="grad * _inversion(other, self)", other="-grad * _inversion(self, other)")


def _logaddexp_array(xp: Any, x: Any, y: Any) -> Any:
    if x.dtype.kind != "c":
        return xp.logaddexp(x, y)
    larger = xp.where(xp.real(x) > xp.real(y), x, y)
    return larger + xp.log1p(xp.exp(xp.where(xp.real(x) > xp.real(y), y, x) - larger))


hypot = _binary(
    "hypot", "sqrt(input^2 + other^2) without overflow.", lambda xp, x, y: xp.hypot(x, y), "same", 0.5, 3, None
).grad(self="grad * _direction(self, other)", other="grad * _direction(other, self)")
copysign = _binary(
    "copysign.Tensor(Tensor self, Tensor other) -> Tensor",
    "The magnitude of input with the sign of other.",
    lambda xp, x, y: xp.copysign(x, y),
    "float",
    0.5,
    3,
).grad(self="grad * sign(self) * sign(result)", other="zeros_of(other)")
logaddexp = _binary(
    "logaddexp", "log(exp(input) + exp(other)), without overflow.", _logaddexp_array, "same", number=None, inplace=False
).grad(
    self="grad * conj(exp(self - logaddexp(self, other))) if is_complex(self) else grad * "
    "sigmoid(where((self == other) & isinf(self), 0, self - other))",
    other="grad * conj(exp(other - logaddexp(self, other))) if is_complex(other) else grad * "
    "sigmoid(where((self == other) & isinf(self), 0, other - self))",
)
logaddexp2 = _binary(
    "logaddexp2",
    "log2(2^input + 2^other), without overflow.",
    lambda xp, x, y: xp.logaddexp2(x, y),
    "same",
    number=None,
    inplace=False,
).grad(
    self="grad * sigmoid(where((self == other) & isinf(self), 0, (self - other) * 0.6931471805599453))",
    other="grad * sigmoid(where((self == other) & isinf(self), 0, (other - self) * 0.6931471805599453))",
)
heaviside = _binary(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    "0 below zero, 1 above, `values` at zero.",
    lambda xp, x, y: xp.heaviside(x, y).astype(x.dtype),
    "equal",
    number=None,
    exact=True,
    differentiable=False,
)
logical_and = _binary(
    "logical_and",
    "True where both are non-zero.",
    lambda xp, x, y: xp.logical_and(x, y),
    "bool",
    number=None,
    differentiable=False,
)
logical_or = _binary(
    "logical_or",
    "True where one is non-zero.",
    lambda xp, x, y: xp.logical_or(x, y),
    "bool",
    number=None,
    differentiable=False,
)
logical_xor = _binary(
    "logical_xor",
    "True where exactly one is non-zero.",
    lambda xp, x, y: xp.logical_xor(x, y),
    "bool",
    number=None,
    differentiable=False,
)
bitwise_and = _binary(
    "bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
    "Bits set in both; of bools, and.",
    lambda xp, x, y: xp.bitwise_and(x, y),
    number=3,
    differentiable=False,
)
bitwise_or = _binary(
    "bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor",
    "Bits set in either; of bools, or.",
    lambda xp, x, y: xp.bitwise_or(x, y),
    number=3,
    differentiable=False,
)
bitwise_xor = _binary(
    "bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor",
    "Bits set in exactly one; of bools, xor.",
    lambda xp, x, y: xp.bitwise_xor(x, y),
    number=3,
    differentiable=False,
)
bitwise_left_shift = _binary(
    "bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
    "Bits moved up by `other` places.",
    lambda xp, x, y: xp.left_shift(x, y),
    low=0,
    high=5,
    differentiable=False,
)
bitwise_right_shift = _binary(
    "bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
    "Bits moved down by `other` places, keeping the sign.",
    lambda xp, x, y: xp.right_shift(x, y),
    low=0,
    high=5,
    differentiable=False,
)

# -- more inputs

where = (
    Op(
        "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
        exact=True,
        family=pointwise("where", "where"),
        numbers=True,
        doc="""`input` where `condition` holds, else `other`.

        Args:
            condition: Bool tensor.
            input: Tensor or number that broadcasts with the condition.
            other: Tensor or number that broadcasts with the condition.

        Example:
            >>> rushlight.where(rushlight.tensor([True, False]), 1.0, 2.0)
            tensor([1., 2.])
        """,
        method=False,
    )
    .array(lambda xp, condition, x, y: xp.where(condition, x, y))
    .grad(condition=None, self="where(condition, grad, 0)", other="where(condition, 0, grad)")
    .samples(
        lambda make, dtype: (
            _sample(make.mask(3, 4), make(3, 4), make(3, 4)),
            _sample(make.mask(3, 1), make(4), make()),
            _sample(make.mask(4), make(3, 4), 0),
        )
    )
)
masked_fill = (
    Op(
        "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
        family=COMPOSITE,
        inplace=True,
        out=False,
        doc="`value` where `mask` is true, the input elsewhere; the dtype is the input's.",
    )
    .composite(lambda self, mask, value: _masked_fill(self, mask, value))
    .samples(
        lambda make, dtype: (_sample(make(3, 4), make.mask(3, 4), 1), _sample(make(3, 4), make.mask(4), 1)),
        lambda x, mask, value: np.where(mask, np.array(value, x.dtype), x),
    )
)
masked_fill_tensor = (
    Op(
        "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
        family=COMPOSITE,
        inplace=True,
        out=False,
        doc=masked_fill.doc,
    )
    .composite(lambda self, mask, value: _masked_fill(self, mask, value))
    .samples(
        lambda make, dtype: (_sample(make(3, 4), make.mask(3, 4), make()),),
        lambda x, mask, value: np.where(mask, value, x),
    )
)


def _bound(xp: Any, value: Any, x: Any) -> Any:
    return None if value is None else xp.asarray(value).astype(x.dtype)  # wraps around as the native kernel does


# The tensor overloads come first: a 0-d tensor is no number that must be read.
clamp_tensor = (
    Op(
        "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
        family=COMPOSITE,
        inplace=True,
        aliases=("clip",),
        doc="Each element brought into [min, max]; NaN stays NaN.",
    )
    .composite(lambda self, min, max: _clamp_tensor(self, min, max))
    .samples(
        lambda make, dtype: (_sample(make(3, 4), make(4), make(3, 4)),),
        lambda x, low, high: np.minimum(np.maximum(x, low), high),
    )
)
clamp = (
    Op(
        "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
        family=pointwise("scalars"),
        inplace=True,
        aliases=("clip",),
        doc=clamp_tensor.doc,
    )
    .array(lambda xp, x, low, high: xp.clip(x, _bound(xp, low, x), _bound(xp, high, x)))
    .grad(
        self="where(self <= max, grad, 0) if min is None else where(self >= min, grad, 0) if max is None else "
        "where((self >= min) & (self <= max), grad, 0)"
    )
    .samples(unary(None, None, -1, 1))
)
clamp_min_tensor = (
    Op(
        "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
        family=pointwise(loop="maximum"),
        numbers=False,
        inplace=True,
        doc="Each element, but at least `min`.",
    )
    .array(lambda xp, x, low: xp.maximum(x, low))
    .grad(self="where(self >= min, grad, 0)", min="where(self < min, grad, 0)")
    .samples(binary(number=None))
)
clamp_min = (
    Op("clamp_min(Tensor self, Scalar min) -> Tensor", family=COMPOSITE, inplace=True, doc=clamp_min_tensor.doc)
    .composite(lambda self, min: self.clamp(min=min))
    .samples(unary(None, None, 0), np.maximum)
)
clamp_max_tensor = (
    Op(
        "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
        family=pointwise(loop="minimum"),
        numbers=False,
        inplace=True,
        doc="Each element, but at most `max`.",
    )
    .array(lambda xp, x, high: xp.minimum(x, high))
    .grad(self="where(self <= max, grad, 0)", max="where(self > max, grad, 0)")
    .samples(binary(number=None))
)
clamp_max = (
    Op("clamp_max(Tensor self, Scalar max) -> Tensor", family=COMPOSITE, inplace=True, doc=clamp_max_tensor.doc)
    .composite(lambda self, max: self.clamp(max=max))
    .samples(unary(None, None, 0), np.minimum)
)
_clamp_between = (
    Op(
        "_clamp_between(Tensor self, Tensor min, Tensor max) -> Tensor",
        family=pointwise(loop="clamp_tensor"),
        method=False,
        out=False,
        doc="Each element, but at least `min`, and at most `max`.",
    )
    .array(lambda xp, x, low, high: xp.minimum(xp.maximum(x, low), high))
    .grad(
        self="where((self >= min) & (self <= max), grad, 0)",
        min="where((self < min) & (min < max), grad, 0)",
        max="where((self > max) | (min > max), grad, 0)",
    )
    .samples(ternary())
)
lerp = (
    Op(
        "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
        family=pointwise(loop="lerp_scalar"),
        inplace=True,
        doc="`input + weight * (end - input)`.",
    )
    .array(lambda xp, x, end, weight: x + weight * (end - x))
    .grad(self="grad * (1 - conj(weight))", end="grad * conj(weight)")
    .samples(lambda make, dtype: (_sample(make(3, 4), make(4), 0.3),))
)
lerp_tensor = (
    Op(
        "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
        family=pointwise(loop="lerp"),
        inplace=True,
        doc=lerp.doc,
    )
    .array(lambda xp, x, end, weight: x + weight * (end - x))
    .grad(self="grad * conj(1 - weight)", end="grad * conj(weight)", weight="grad * conj(end - self)")
    .samples(ternary(0, 1))
)
addcmul = (
    Op(
        "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
        family=pointwise(),
        inplace=True,
        doc="`input + value * tensor1 * tensor2`.",
    )
    .array(lambda xp, x, a, b, value: x + value * a * b)
    .grad(self="grad", tensor1="grad * conj(tensor2 * value)", tensor2="grad * conj(tensor1 * value)")
    .samples(ternary(value=2))
)
addcdiv = (
    Op(
        "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
        family=pointwise("quotient"),
        inplace=True,
        doc="`input + value * tensor1 / tensor2`, for floating-point tensors.",
    )
    .array(lambda xp, x, a, b, value: x + value * (a / b))
    .grad(
        self="grad",
        tensor1="grad * conj(value / tensor2)",
        tensor2="-grad * conj(value * tensor1 / tensor2 / tensor2)",
    )
    .samples(ternary(0.5, 2, value=2))
)
_replace = (
    Op(
        "_nan_to_num(Tensor self, Scalar nan, Scalar posinf, Scalar neginf) -> Tensor",
        family=pointwise("none", loop="nan_to_num"),
        method=False,
        out=False,
        doc="`nan_to_num` of floating or complex tensors, all numbers given.",
    )
    .array(lambda xp, x, nan, posinf, neginf: xp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf))
    .grad(self="where(isfinite(self), grad, 0)")
    .samples(unary(None, None, 0, 1, -1))
)
nan_to_num = (
    Op(
        "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
        exact=True,
        family=COMPOSITE,
        inplace=True,
        doc="NaN and infinities replaced: by 0, the largest and the smallest finite number where not given.",
    )
    .composite(lambda self, nan, posinf, neginf: _nan_to_num(self, nan, posinf, neginf))
    .samples(unary(), np.nan_to_num)
)


def _masked_fill(self: Any, mask: Any, value: Any) -> Any:
    import rushlight

    if mask.dtype is not rushlight.bool:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    if isinstance(value, rushlight.Tensor):
        if value.ndim:
            raise RuntimeError(
                f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} "
                "dimension(s)."
            )
        if not rushlight.can_cast(value.dtype, self.dtype):
            raise RuntimeError(f"value cannot be converted to type {self.dtype} without overflow")
        value = value.to(self.dtype)
    else:
        value = rushlight.full((), value, dtype=self.dtype, device=self.device)
    return rushlight.where(mask, value, self)


def _clamp_tensor(self: Any, low: Any, high: Any) -> Any:
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if low is None:
        return clamp_max_tensor.operator(self, high)
    return clamp_min_tensor.operator(self, low) if high is None else _clamp_between.operator(self, low, high)


def _nan_to_num(self: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    import rushlight

    if not (self.is_floating_point() or self.is_complex()):
        return self.clone()
    limits = rushlight.finfo(self.dtype)
    return _replace.operator(
        self,
        0.0 if nan is None else nan,
        limits.max if posinf is None else posinf,
        limits.min if neginf is None else neginf,
    )
