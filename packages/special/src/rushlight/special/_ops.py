"""Records of the special functions; native loops are in csrc/module.cpp."""

from __future__ import annotations

import math
from typing import Any

from rushlight.plugin import Op, Sample, pointwise

from . import _C as _C  # registers the native loops


def _unary(low: float, high: float) -> Any:
    def samples(make: Any, dtype: Any) -> Any:
        for shape in ((), (5,), (3, 4), (0,)):
            yield Sample((make(*shape, low=low, high=high),))
        yield Sample((make(4, 3, low=low, high=high).t(),))

    return samples


def _scipy(name: str) -> Any:
    def reference(*args: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*args)

    return reference


def _host(name: str) -> Any:
    """The array kernel for arrays of NumPy and CuPy, whose special functions are SciPy's and CuPy's."""

    def kernel(xp: Any, *args: Any) -> Any:
        from importlib import import_module

        kind = type(next(arg for arg in args if not isinstance(arg, int)))
        library = {"numpy": "scipy.special", "cupy": "cupyx.scipy.special"}.get(kind.__module__.partition(".")[0])
        if library is None:
            raise NotImplementedError(
                f"special::{name}: no kernel for arrays of type {kind.__qualname__}. "
                "A plugin gives one through rushlight_register_kernels(device_type)."
            )
        return getattr(import_module(library), name)(*args)

    return kernel


erf = (
    Op(
        "special::erf(Tensor self) -> Tensor",
        family=pointwise("float"),
        inplace=True,
        aliases=("erf",),
        doc="""Error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.

        Args:
            input: Real tensor of any shape.

        Returns:
            Tensor of the same shape, floating-point.

        Example:
            >>> rushlight.special.erf(rushlight.tensor([0.0, 1.0]))
            tensor([0.0000, 0.8427])
        """,
    )
    .array(_host("erf"))
    .grad(self=f"grad * {2 / math.sqrt(math.pi)!r} * exp(-(self * self))")
    .samples(_unary(-3, 3), _scipy("erf"))
)
erfc = (
    Op(
        "special::erfc(Tensor self) -> Tensor",
        family=pointwise("float"),
        inplace=True,
        aliases=("erfc",),
        doc="Complementary error function 1 - erf(x), accurate where it is small.",
    )
    .array(_host("erfc"))
    .grad(self=f"-grad * {2 / math.sqrt(math.pi)!r} * exp(-(self * self))")
    .samples(_unary(-3, 3), _scipy("erfc"))
)
expit = (
    Op(
        "special::expit(Tensor self) -> Tensor",
        family=pointwise("float", loop="sigmoid"),
        method=False,
        doc="The logistic function 1 / (1 + exp(-x)); the same as `rushlight.sigmoid`.",
    )
    .array(lambda xp, x: 1 / (1 + xp.exp(-x)))
    .grad(self="_sigmoid_backward(grad, result)")
    .samples(_unary(-4, 4))
)
gammaln = (
    Op(
        "special::gammaln(Tensor self) -> Tensor",
        family=pointwise("float"),
        inplace=True,
        aliases=("lgamma",),
        doc="Logarithm of the absolute value of the gamma function.",
    )
    .array(_host("gammaln"))
    .grad(self=lambda grad, self: grad * digamma.operator(self))
    .samples(_unary(0.2, 6), _scipy("gammaln"))
)
digamma: Op = (
    Op(
        "special::digamma(Tensor self) -> Tensor",
        family=pointwise("float"),
        inplace=True,
        aliases=("digamma",),
        doc="Logarithmic derivative of the gamma function (Abramowitz and Stegun 6.3).",
    )
    .array(_host("digamma"))
    .grad(self=lambda grad, self: grad * polygamma.operator(1, self))
    .samples(_unary(0.2, 6), _scipy("digamma"))
)
psi = (
    Op(
        "special::psi(Tensor self) -> Tensor",
        family=pointwise("float"),
        method=False,
        doc="Alias of `rushlight.special.digamma`.",
    )
    .array(_host("digamma"))
    .grad(self=lambda grad, self: grad * polygamma.operator(1, self))
    .samples(_unary(0.2, 6), _scipy("digamma"))
)
polygamma: Op = (
    Op(
        "special::polygamma(int n, Tensor self) -> Tensor",
        family=pointwise("float"),
        aliases=("polygamma",),
        method=False,
        doc="The n-th derivative of the digamma function, by the Hurwitz zeta function.",
    )
    .array(lambda xp, n, x: _host("polygamma")(xp, n, x))
    .grad(self=lambda grad, n, self: grad * polygamma.operator(n + 1, self))
    .samples(lambda make, dtype: (Sample((n, make(3, 4, low=0.5, high=6))) for n in (1, 2, 3)), _scipy("polygamma"))
)


def records() -> list[Op]:
    """Every record of this wheel."""
    return [value for value in globals().values() if isinstance(value, Op)]
