"""Nonlinearities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample, pointwise
from rushlight.nn._precision import check_floats


def _unary(*arguments: Any) -> Callable[..., Any]:
    def samples(make: Any, dtype: Any) -> Any:
        for shape in ((), (5,), (3, 4), (2, 0, 3)):
            yield Sample((make(*shape, low=-4, high=4), *arguments))
        yield Sample((make(4, 3, low=-4, high=4).t(), *arguments))

    return samples


def _backward(name: str, slope: Callable[..., Any], curvature: Any, loop: str | None = None) -> Op:
    """The record of ``grad * slope(x)``, the gradient of the op `name`, and of its own gradient by x."""
    return (
        Op(
            f"nn::{name}_backward(Tensor output_grad, Tensor self) -> Tensor",
            family=pointwise(loop=loop),
            method=False,
            doc=f"The gradient of ``{name}``.",
        )
        .array(lambda xp, grad, x: grad * slope(xp, x))
        .grad(output_grad=f"{name}_backward(grad, self)", self=curvature)
        .samples(_binary)
    )


def _binary(make: Any, dtype: Any) -> Any:
    for shape in ((), (5,), (3, 4), (2, 0, 3)):
        yield Sample((make(*shape), make(*shape, low=-4, high=4)))


def _logistic(xp: Any, x: Any) -> Any:
    return 1 / (1 + xp.exp(-x))


hardtanh = (
    Op(
        "nn::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
        family=pointwise(),
        method=False,
        inplace=True,
        doc="x clamped to [`min_val`, `max_val`].",
    )
    .array(lambda xp, x, low, high: xp.clip(x, low, high))
    .grad(self="where((self > min_val) & (self < max_val), grad, 0)")
    .samples(_unary(0, 2))
)
elu = (
    Op(
        "nn::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
        family=pointwise(),
        method=False,
        inplace=True,
        doc="``scale * x`` where x > 0, else ``scale * alpha * (exp(input_scale * x) - 1)``.",
    )
    .array(
        lambda xp, x, alpha, scale, input_scale: xp.where(
            x > 0, x * scale, xp.expm1(xp.minimum(x, 0) * input_scale) * (alpha * scale)
        )
    )
    .grad(
        self="where(self > 0, grad * scale, "
        "grad * exp(clamp(self, max=0) * input_scale) * (alpha * scale * input_scale))"
    )
    .samples(_unary(1.5))
)
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
selu = (
    Op(
        "selu(Tensor self) -> Tensor",
        family=COMPOSITE,
        method=False,
        inplace=True,
        out=False,
        doc="The self-normalising ELU of Klambauer et al. (2017).",
    )
    .composite(lambda self: elu.operator(self, _SELU_ALPHA, _SELU_SCALE))
    .samples(_unary())
)


def celu_composite(self: Tensor, alpha: float) -> Tensor:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU, got alpha=0.")
    return elu.operator(self, alpha, 1, 1 / alpha)


celu = (
    Op(
        "celu(Tensor self, Scalar alpha=1.0) -> Tensor",
        family=COMPOSITE,
        method=False,
        inplace=True,
        out=False,
        doc="``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``.",
    )
    .composite(celu_composite)
    .samples(_unary(2.0))
)
leaky_relu = (
    Op(
        "nn::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
        family=pointwise(),
        method=False,
        inplace=True,
        doc="x where x > 0, else ``negative_slope * x``.",
    )
    .array(lambda xp, x, slope: xp.where(x > 0, x, x * slope))
    .grad(self="where(self > 0, grad, grad * negative_slope)")
    .samples(_unary(0.2))
)


def glu_composite(self: Tensor, dim: int) -> Tensor:
    check_floats("glu", self)
    if self.shape[dim] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim % self.dim()} is size {self.shape[dim]}"
        )
    first, second = self.chunk(2, dim)
    return first * rl.sigmoid(second)


glu = (
    Op(
        "nn::glu(Tensor self, int dim=-1) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="The first half along `dim` times the sigmoid of the second half.",
    )
    .composite(glu_composite)
    .samples(
        lambda make, dtype: () if not dtype.is_floating_point else (Sample((make(3, 4),)), Sample((make(4, 3), 0)))
    )
)
logistic = (
    Op(
        "nn::logistic(Tensor self) -> Tensor",
        family=pointwise(loop="sigmoid"),
        method=False,
        doc="`sigmoid` for the rules below: its derivatives do not cancel where it is nearly 1.",
    )
    .array(_logistic)
    .grad(self="grad * conj(logistic(self) * logistic(-self))")
    .samples(_unary())
)
silu = (
    Op("nn::silu(Tensor self) -> Tensor", family=pointwise(), method=False, inplace=True, doc="``x * sigmoid(x)``.")
    .array(lambda xp, x: (x if x.dtype.kind == "c" else xp.maximum(x, -1000)) * _logistic(xp, x))
    .grad(
        self="grad * conj(logistic(self) * (1 + self * logistic(-self))) if is_complex(self) "
        "else silu_backward(grad, self)"
    )
    .samples(_unary())
)
silu_backward = _backward(
    "silu",
    lambda xp, x: _logistic(xp, x) * (1 + x * _logistic(xp, -x)),
    "grad * output_grad * logistic(self) * logistic(-self) * (2 - clamp(self, -1000, 1000) * tanh(self / 2))",
)


def softplus_array(xp: Any, x: Any, beta: float, threshold: float) -> Any:
    scaled = x * beta
    return xp.where(scaled > threshold, x, xp.log1p(xp.exp(xp.minimum(scaled, threshold))) / beta)


softplus = (
    Op(
        "nn::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
        family=pointwise(),
        exact=True,
        method=False,
        doc="``log(1 + exp(beta * x)) / beta``; x itself where ``beta * x > threshold``.",
    )
    .array(softplus_array)
    .grad(self="where(self * beta > threshold, grad, grad * logistic(self * beta))")
    .samples(_unary(2.0, 5.0))
)
mish = (
    Op(
        "nn::mish(Tensor self) -> Tensor",
        family=pointwise(),
        method=False,
        inplace=True,
        doc="``x * tanh(softplus(x))`` (Misra, 2019).",
    )
    .array(lambda xp, x: xp.maximum(x, -1000) * xp.tanh(xp.logaddexp(x, 0)))
    .grad(self="mish_backward(grad, self)")
    .samples(_unary())
)


def _mish_slope(xp: Any, x: Any) -> Any:
    x = xp.clip(x, -1000, 1000)
    softplus = xp.logaddexp(x, 0)
    return xp.tanh(softplus) + x * _logistic(xp, x) / xp.cosh(xp.minimum(softplus, 100)) ** 2


def mish_curvature(grad: Tensor, output_grad: Tensor, self: Tensor) -> Tensor:
    """The second derivative, as a quotient in exp(-``|x|``)."""
    x = self.clamp(-1000, 1000)
    right, e = x > 0, (-x.abs()).exp()
    d = rl.where(right, 1 + 2 * e * (1 + e), e * (e + 2) + 2)
    slope = 4 * e * (1 + e) * rl.where(right, e, 1) / (d * d)
    bend = rl.where(
        right,
        -4 * e * e * ((2 + 3 * e) * d - 4 * e * (1 + e) * (1 + 2 * e)),
        4 * e * ((1 + 2 * e) * d - 4 * e * (1 + e) ** 2),
    )
    return grad * output_grad * (2 * slope + x * bend / (d * d * d))


mish_backward = _backward("mish", _mish_slope, mish_curvature)
softsign = (
    Op(
        "nn::softsign(Tensor self) -> Tensor",
        family=pointwise("float"),
        method=False,
        out=False,
        doc="``x / (1 + |x|)``.",
    )
    .array(lambda xp, x: xp.clip(x, -1e30, 1e30) / (1 + xp.minimum(xp.abs(x), 1e30)))
    .grad(self="grad / (abs(self) + 1) / (abs(self) + 1)")
    .samples(_unary())
)
tanhshrink = (
    Op(
        "nn::tanhshrink(Tensor self) -> Tensor",
        family=pointwise("float"),
        method=False,
        out=False,
        doc="``x - tanh(x)``.",
    )
    .array(lambda xp, x: x - xp.tanh(x))
    .grad(self="grad * square(tanh(self))")
    .samples(_unary())
)
hardsigmoid = (
    Op(
        "nn::hardsigmoid(Tensor self) -> Tensor",
        family=pointwise(),
        method=False,
        inplace=True,
        doc="``min(max(x + 3, 0), 6) / 6``.",
    )
    .array(lambda xp, x: xp.clip(x + 3, 0, 6) / 6)
    .grad(self="where((self > -3) & (self < 3), grad / 6, 0)")
    .samples(_unary())
)
hardswish = (
    Op(
        "nn::hardswish(Tensor self) -> Tensor",
        family=pointwise(),
        method=False,
        inplace=True,
        doc="``x * min(max(x + 3, 0), 6) / 6``.",
    )
    .array(lambda xp, x: x * xp.clip(x + 3, 0, 6) / 6)
    .grad(self="where(self <= -3, 0, where(self < 3, grad * (self / 3 + 0.5), grad))")
    .samples(_unary())
)
threshold = (
    Op(
        "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
        family=pointwise(),
        method=False,
        inplace=True,
        doc="x where x > `threshold`, else `value`.",
    )
    .array(lambda xp, x, threshold, value: xp.where(x <= threshold, xp.asarray(value, dtype=x.dtype), x))
    .grad(self="where(self <= threshold, 0, grad)")
    .samples(_unary(0.5, 2.0))
)
log_sigmoid = (
    Op(
        "nn::log_sigmoid(Tensor self) -> Tensor",
        family=pointwise(),
        exact=True,
        method=False,
        doc="``log(sigmoid(x))``.",
    )
    .array(lambda xp, x: xp.minimum(x, 0) - xp.log1p(xp.exp(-xp.abs(x))))
    .grad(self="grad * logistic(-self)")
    .samples(_unary())
)


# ---- GELU: D. Hendrycks and K. Gimpel, Gaussian Error Linear Units (2016) ----

_TANH_SLOPE, _TANH_CUBIC = math.sqrt(2 / math.pi), 0.044715

# -log(1 - erf(x)) / x on [0, 6], by the Remez exchange; most array libraries have no erf.
_ERF = (
    1.1283791670955126,
    0.6366197723675909,
    0.10277260330131567,
    -0.019128446993099107,
    -0.00020919485387737487,
    0.0016962076695674676,
    -0.0005901324287910702,
    2.5904495224445383e-05,
    6.442048339881502e-05,
    -2.9575689217712992e-05,
    3.169702869884354e-06,
    3.1329280236763404e-06,
    -2.0371593688714306e-06,
    5.706129415282259e-07,
    -1.1697768276735372e-08,
    -6.573802135738731e-08,
    3.4586381477866424e-08,
    -1.0773763803360436e-08,
    2.360601372992709e-09,
    -3.7608488689473304e-10,
    4.301945055690651e-11,
    -3.364476636944259e-12,
    1.6149330348253233e-13,
    -3.592335373963067e-15,
)


def erf(xp: Any, x: Any) -> Any:
    special = getattr(x, "special", None)  # of arrays whose device has it
    if special is not None:
        return special.erf(x)
    size, exponent = xp.minimum(xp.abs(x), 6), 0
    for coefficient in reversed(_ERF):
        exponent = exponent * size + coefficient
    return -xp.sign(x) * xp.expm1(-size * exponent)


def normal_cdf(xp: Any, x: Any) -> Any:
    return 0.5 * (1 + erf(xp, x * math.sqrt(0.5)))


def gelu_reference(x: Any) -> Any:
    return np.vectorize(lambda each: 0.5 * each * (1 + math.erf(each * math.sqrt(0.5))), otypes=[x.dtype])(x)


def gelu_exact_slope(xp: Any, x: Any) -> Any:
    x = xp.clip(x, -40, 40)
    return normal_cdf(xp, x) + x * xp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def gelu_tanh_array(xp: Any, x: Any) -> Any:
    x = xp.maximum(x, -1000)
    return x * _logistic(xp, 2 * _TANH_SLOPE * (x + _TANH_CUBIC * x * x * x))


def gelu_tanh_slope(xp: Any, x: Any) -> Any:
    x = xp.clip(x, -40, 40)
    y = 2 * _TANH_SLOPE * (x + _TANH_CUBIC * x * x * x)
    slope = 2 * _TANH_SLOPE * (1 + 3 * _TANH_CUBIC * x * x)
    return _logistic(xp, y) * (1 + x * slope * _logistic(xp, -y))


def gelu_tanh_curvature(grad: Tensor, output_grad: Tensor, self: Tensor) -> Tensor:
    x = self.clamp(-40, 40)
    inner = _TANH_SLOPE * (x + _TANH_CUBIC * x * x * x)
    slope = 2 * _TANH_SLOPE * (1 + 3 * _TANH_CUBIC * x * x)
    bend = x * (12 * _TANH_SLOPE * _TANH_CUBIC * x - slope * slope * inner.tanh())
    rise, fall = logistic.operator(2 * inner), logistic.operator(-2 * inner)
    return grad * output_grad * rise * fall * (2 * slope + bend)


gelu_exact = (
    Op("nn::gelu_exact(Tensor self) -> Tensor", family=pointwise(loop="gelu"), method=False, doc="``x * P(X <= x)``.")
    .array(lambda xp, x: x * normal_cdf(xp, x))
    .grad(self="gelu_exact_backward(grad, self)")
    .samples(_unary(), gelu_reference)
)
gelu_exact_backward = _backward(
    "gelu_exact",
    gelu_exact_slope,
    "grad * output_grad * (2 - clamp(self, -40, 40) ** 2) * "
    f"exp(-0.5 * clamp(self, -40, 40) ** 2) * {1 / math.sqrt(2 * math.pi)!r}",
    loop="gelu_backward",
)
gelu_tanh = (
    Op("nn::gelu_tanh(Tensor self) -> Tensor", family=pointwise(), method=False, doc="``gelu_exact``, nearly, by tanh.")
    .array(gelu_tanh_array)
    .grad(self="gelu_tanh_backward(grad, self)")
    .samples(_unary())
)
gelu_tanh_backward = _backward("gelu_tanh", gelu_tanh_slope, gelu_tanh_curvature)


def gelu_composite(self: Tensor, *, approximate: str) -> Tensor:
    if approximate == "tanh":
        return gelu_tanh.operator(self)
    if approximate == "none":
        return gelu_exact.operator(self)
    raise RuntimeError(f"approximate argument must be either none or tanh, got approximate={approximate!r}.")


gelu = (
    Op(
        "nn::gelu(Tensor self, *, str approximate='none') -> Tensor",
        family=COMPOSITE,
        exact=True,
        method=False,
        inplace=True,
        doc="x times the normal distribution function of x, or its approximation by tanh.",
    )
    .composite(gelu_composite)
    .samples(lambda make, dtype: [Sample((make(3, 4),), {"approximate": form}) for form in ("none", "tanh")])
)


def prelu_composite(self: Tensor, weight: Tensor) -> Tensor:
    if weight.dim() > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}")
    if self.dtype != weight.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {self.dtype} and {weight.dtype}")
    if weight.numel() != 1:
        if self.dim() < 1:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = self.size(1) if self.dim() > 1 else 1
        if channels != weight.numel():
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} "
                f"and channel size = {channels}."
            )
    slopes = weight.reshape([-1] + [1] * (self.dim() - 2)) if self.dim() > 2 else weight.reshape(-1)
    if self.dim() == 0:
        slopes = weight.reshape(())
    return rl.where(self > 0, self, slopes * self)


prelu = (
    Op(
        "prelu(Tensor self, Tensor weight) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="x where x > 0, else x times `weight`, of which there is one or one for each channel.",
    )
    .composite(prelu_composite)
    .samples(lambda make, dtype: (Sample((make(3, 4), make(1))), Sample((make(2, 3, 4), make(3)))))
)


softshrink = (
    Op(
        "nn::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
        family=pointwise(),
        exact=True,
        method=False,
        doc="x moved by `lambd` towards 0, which it does not pass.",
    )
    .array(lambda xp, x, lambd: xp.where(x > lambd, x - lambd, xp.where(x < -lambd, x + lambd, x * 0)))
    .grad(self="where((self >= -lambd) & (self <= lambd), 0, grad)")
    .samples(_unary())
)
hardshrink = (
    Op(
        "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
        family=pointwise(),
        exact=True,
        doc="x where ``|x| > lambd``, else 0.",
    )
    .array(lambda xp, x, lambd: xp.where((x >= -lambd) & (x <= lambd), xp.zeros_like(x), x))
    .grad(self="where((self >= -lambd) & (self <= lambd), 0, grad)")
    .samples(_unary())
)


def rrelu_composite(self: Tensor, lower: Any, upper: Any, training: bool, generator: Any) -> Tensor:
    check_floats("rrelu", self)
    if lower > upper:
        raise RuntimeError(f"rrelu: lower must not be above upper, got lower={lower} and upper={upper}.")
    if not training:
        return leaky_relu.operator(self, (lower + upper) / 2)
    slopes = rl.ones(self.shape, dtype=rl.float64, device=self.device)
    below = self.detach() <= 0
    count = int(below.sum()) if not self.is_meta else 0
    # As PyTorch: a double for each element that is not positive, in order, between bounds rounded to the dtype.
    low, high = rl.tensor([lower, upper], dtype=self.dtype, device="cpu").tolist()
    drawn = rl.empty(count, dtype=rl.float64, device=self.device).uniform_(generator=generator)
    slopes[below] = drawn * (high - low) + low
    return self * slopes.to(self.dtype)


rrelu = (
    Op(
        "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
        "Generator? generator=None) -> Tensor",
        family=COMPOSITE,
        method=False,
        inplace=True,
        out=False,
        arbitrary=True,
        doc="""x where x > 0, else x times a slope, drawn in training and else the mean (Xu et al., 2015).

        Args:
            input: Floating point, any shape.
            lower: The least slope.
            upper: The greatest slope.
            training: Whether the slopes are drawn from the uniform distribution between them.
            generator: Where the numbers come from.
        """,
    )
    .composite(rrelu_composite)
    .samples(_unary())
)
