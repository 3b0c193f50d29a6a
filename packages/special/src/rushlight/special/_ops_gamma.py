"""The gamma function's family."""

from __future__ import annotations

import math
from typing import Any

from rushlight.plugin import COMPOSITE, Op, Sample, pointwise

from ._gamma_rules import gamma_density, gammaincc_slope, zeta_slope
from ._records import document, host, of_tensors, samples, scipy_reference, unary

gammaln = unary(
    "gammaln",
    "Logarithm of the absolute value of the gamma function; infinite at its poles.",
    (0.2, 6),
    "grad * digamma(self)",
    "rushlight.tensor([0.5, 4.0]) -> tensor([0.5724, 1.7918])",
    aliases=("lgamma",),
    inplace=True,
    source="polynomials on segments below 8, Stirling's formula beyond, reflection below 1/2 (DLMF 5.5, 5.11).",
)


def _digamma(name: str, **options: Any) -> Op:
    return unary(
        name,
        "Logarithmic derivative of the gamma function; NaN at its negative poles.",
        (0.2, 6),
        "grad * _trigamma(self)",
        "rushlight.tensor([0.5, 4.0]) -> tensor([-1.9635,  1.2561])",
        scipy="digamma",
        source="polynomials on segments, with its positive root as a factor; DLMF 5.5 and 5.11 elsewhere.",
        **options,
    )


digamma = _digamma("digamma", aliases=("digamma",), inplace=True)
psi = _digamma("psi")
_trigamma = unary(
    "_trigamma",
    "Derivative of digamma.",
    (0.2, 6),
    "grad * _polygamma(2, self)",
    "rushlight.tensor([0.5, 4.0]) -> tensor([4.9348, 0.2838])",
    array=lambda xp, x: host("polygamma")(xp, 1, x),
)
_polygamma = (
    Op("special::_polygamma(int n, Tensor self) -> Tensor", family=pointwise("float"), method=False, out=False)
    .array(lambda xp, n, x: host("polygamma")(xp, n, x))
    .grad(self="grad * _polygamma(n + 1, self)")
    .samples(
        lambda make, dtype: (Sample((n, make(3, 4, low=0.5, high=6))) for n in (2, 3, 5)), scipy_reference("polygamma")
    )
)


def _polygamma_of(n: int, self: Any) -> Any:
    if n < 0:
        raise RuntimeError(
            f"polygamma(n, x) does not support negative n. got n={n}. It is the n-th derivative of digamma."
        )
    return digamma.operator(self) if n == 0 else _trigamma.operator(self) if n == 1 else _polygamma.operator(n, self)


polygamma = (
    Op(
        "special::polygamma(int n, Tensor self) -> Tensor",
        family=COMPOSITE,
        aliases=("polygamma",),
        method=False,
        doc="""The n-th derivative of the digamma function.

        Args:
            n: Order, at least 0.
            input: Real tensor of any shape.

        Returns:
            Tensor of the same shape; integers and bool give the default float dtype. Infinite at 0 and the negative
            integers, there with the sign that it has on their right.

        Raises:
            RuntimeError: n is negative.

        Source: n! zeta(n + 1, x), the Hurwitz zeta function by Euler and Maclaurin (DLMF 25.11.12, 25.11.28).

        Example:
            >>> rushlight.special.polygamma(2, rushlight.tensor([1.0, -0.5]))
            tensor([-2.4041, -0.8288])
        """,
    )
    .composite(_polygamma_of)
    .samples(
        lambda make, dtype: (Sample((n, make(3, 4, low=0.5, high=6))) for n in (0, 1, 2, 3)),
        scipy_reference("polygamma"),
    )
)
polygamma_method = (
    Op(
        "special::polygamma.method(Tensor self, int n) -> Tensor",
        family=COMPOSITE,
        aliases=("polygamma",),
        inplace=True,
        doc=polygamma.doc,
    )
    .composite(lambda self, n: _polygamma_of(n, self))
    .samples(
        lambda make, dtype: [Sample((make(3, 4, low=0.5, high=6), 2))], lambda x, n: scipy_reference("polygamma")(n, x)
    )
)


_MAX_DIMENSION = 1 << 20  # it takes as many evaluations of gammaln


def _multigammaln(self: Any, p: int) -> Any:
    if p < 1:
        raise RuntimeError(
            f"p has to be greater than or equal to 1, got p={p}. It is the dimension of multigammaln(a, p)."
        )
    if p > _MAX_DIMENSION:
        raise RuntimeError(f"multigammaln: p is too large, got p={p}. Pass at most {_MAX_DIMENSION}.")
    if self.dtype.is_floating_point and self.dtype.itemsize < 8:  # what is added up rounds as often
        return _multigammaln(self.double(), p).to(self.dtype)
    total = gammaln.operator(self)
    if p > 1:
        total = total + p * (p - 1) / 4 * math.log(math.pi)
    for j in range(1, p):
        total = total + gammaln.operator(self - j / 2)
    return total


multigammaln = (
    Op(
        "special::multigammaln(Tensor self, int p) -> Tensor",
        family=COMPOSITE,
        aliases=("mvlgamma",),
        inplace=True,
        doc="""Logarithm of the multivariate gamma function of dimension p.

        Args:
            input: Real tensor of any shape, greater than (p - 1) / 2.
            p: Dimension, at least 1.

        Returns:
            Tensor of the same shape; integers and bool give the default float dtype.

        Raises:
            RuntimeError: p is less than 1, or more than 1048576.

        Example:
            >>> rushlight.special.multigammaln(rushlight.tensor([2.0, 3.0]), 2)
            tensor([0.4516, 1.5502])
        """,
    )
    .composite(_multigammaln)
    .samples(
        lambda make, dtype: (Sample((make(3, 4, low=2, high=6), p)) for p in (1, 2, 4)),
        lambda a, p: _each(a, p),
        {"float16": (2e-2, 2e-2), "bfloat16": (2e-1, 2e-1)},
    )
)


def _each(a: Any, p: int) -> Any:
    import numpy as np

    return np.vectorize(lambda value: scipy_reference("multigammaln")(float(value), p))(a)


_GAMMAINC = {"input": "The parameter a, not negative.", "other": "The limit x of the integral, not negative."}
_GAMMAINC_SOURCE = (
    "series and continued fraction (DLMF 8.7.3, 8.9.2, 8.11.4); for large a near x Temme's\nuniform expansion (8.12)."
)
gammainc: Op = (
    Op(
        "special::gammainc(Tensor self, Tensor other) -> Tensor",
        family=pointwise("float"),
        aliases=("igamma",),
        inplace=True,
        doc=document(
            "gammainc",
            "Regularized lower incomplete gamma function P(a, x).",
            _GAMMAINC,
            "rushlight.tensor([0.5, 3.0]), rushlight.tensor([1.0, 1.0]) -> tensor([0.8427, 0.0803])",
            _GAMMAINC_SOURCE,
        ),
    )
    .array(host("gammainc"))
    .grad(
        self=lambda grad, self, other: -grad * gammaincc_slope(self, other),
        other=lambda grad, self, other: grad * gamma_density(self, other),
    )
    .samples(samples((0.5, 6), (0.1, 9)), scipy_reference("gammainc"))
)
gammaincc: Op = (
    Op(
        "special::gammaincc(Tensor self, Tensor other) -> Tensor",
        family=pointwise("float"),
        aliases=("igammac",),
        inplace=True,
        doc=document(
            "gammaincc",
            "Regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).",
            _GAMMAINC,
            "rushlight.tensor([0.5, 3.0]), rushlight.tensor([1.0, 1.0]) -> tensor([0.1573, 0.9197])",
            _GAMMAINC_SOURCE,
        ),
    )
    .array(host("gammaincc"))
    .grad(
        self=lambda grad, self, other: grad * gammaincc_slope(self, other),
        other=lambda grad, self, other: -grad * gamma_density(self, other),
    )
    .samples(samples((0.5, 6), (0.1, 9)), scipy_reference("gammaincc"))
)


zeta: Op = (
    Op(
        "special::zeta(Tensor self, Tensor other) -> Tensor",
        family=pointwise("float"),
        numbers=True,
        doc=document(
            "zeta",
            "Hurwitz zeta function, the sum of (q + k)^-s over k = 0, 1, 2 and so on.",
            {
                "input": "The exponent s, tensor or number; NaN below 1, infinite at it.",
                "other": "The offset q, tensor or number; infinite at 0 and negative integers.",
            },
            "rushlight.tensor([2.0, 4.0]), 1 -> tensor([1.6449, 1.0823])",
            "the formula of Euler and Maclaurin (DLMF 25.11.28).",
        ),
    )
    .array(host("zeta"))
    .grad(
        self=of_tensors(lambda grad, self, other: grad * zeta_slope(self, other).where(self >= 1, math.nan)),
        other="-grad * self * zeta(self + 1, other)",
    )
    .samples(samples((1.5, 6), (0.5, 6)), scipy_reference("zeta"))
)

OPS = [value for value in globals().values() if isinstance(value, Op)]
