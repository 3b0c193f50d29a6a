"""Orthogonal polynomials p(x, n) of degree n: float degrees are cut to integers, negative ones give 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.plugin import COMPOSITE, Op, Sample, pointwise

from ._records import document, number_like

OPS: list[Op] = []
_MAX_DEGREE = 1 << 20


def _array_kernel(first: Callable[..., Any], following: Callable[..., Any], shifted: bool) -> Callable[..., Any]:
    """From the degrees 0 and 1 up to the highest, each taken where it is asked for."""

    def kernel(xp: Any, x: Any, n: Any) -> Any:
        x = 2 * x - 1 if shifted else x
        n = xp.trunc(xp.asarray(n, dtype=x.dtype))
        known = n <= _MAX_DEGREE
        n = xp.where(known, n, -1)
        before, now = xp.ones_like(x + n), first(x) + 0 * n
        result = xp.where(n == 0, before, xp.where(n == 1, now, 0))
        for k in range(1, int(n.max()) if n.size else 0):
            before, now = now, following(x, k, now, before)
            result = xp.where(n == k + 1, now, result)
        return xp.where(known, result, float("nan"))

    return kernel


def _polynomial(
    name: str,
    summary: str,
    first: Callable[..., Any],
    following: Callable[..., Any],
    slope: Callable[..., Any],
    printed: str,
    shifted: bool = False,
) -> Callable[..., Any]:
    """Makes the records of a polynomial, and returns it as a function of tensors.

    Args:
        name: Name of the function.
        summary: First line of the docstring.
        first: The degree 1 of x.
        following: The degree k + 1 of (x, k, degree k, degree k - 1).
        slope: The derivative, of (x, n).
        printed: The value at [0.5, 2] of degree 3.
        shifted: Whether the polynomial is one of 2 x - 1.
    """
    arguments = {
        "input": "The argument x, tensor or number.",
        "n": "The degree, tensor or number, without gradient; above 1048576 the result is NaN but for Chebyshev's.",
    }
    example = f"rushlight.tensor([0.5, 2.0]), 3 -> {printed}"
    doc = document(name, summary, arguments, example, "recurrences, DLMF 18.9; Chebyshev's high degrees by DLMF 18.5.")
    values = (
        Op(f"special::{name}(Tensor x, Tensor n) -> Tensor", family=pointwise("float"), numbers=True, doc=doc)
        .array(_array_kernel(first, following, shifted))
        .grad(x=lambda grad, x, n: grad * slope(x, n.trunc() if hasattr(n, "trunc") else int(n)), n=None)
        .samples(lambda make, dtype: (Sample((make(3, 4, low=-0.9, high=0.9), n)) for n in (0, 1, 2, 5)))
    )
    of_number = (
        Op(
            f"special::{name}.x_scalar(Scalar x, Tensor n) -> Tensor",
            family=COMPOSITE,
            differentiable=False,
            doc=doc,
        )
        .composite(lambda x, n: values.operator(number_like(x, n), n))
        .samples(lambda make, dtype: [Sample((0.3, make(4, low=0, high=5)))])
    )
    OPS.extend([values, of_number])
    return lambda *args: values.operator(*args)


def _chebyshev_step(x: Any, k: int, now: Any, before: Any) -> Any:
    return 2 * x * now - before


def _derived(name: str, first: Callable[..., Any], following: Callable[..., Any], factor: Callable[..., Any]) -> Any:
    """A family with a parameter alpha, whose derivatives are its own at alpha + 1: those of all orders are exact."""
    op = Op(f"special::{name}(Tensor x, Tensor n, float alpha) -> Tensor", family=pointwise("float"), numbers=True)

    def kernel(xp: Any, x: Any, n: Any, alpha: float) -> Any:
        if x.dtype.kind == "c":
            raise NotImplementedError(f'"special::{name}" not implemented for {x.dtype}')
        steps = _array_kernel(lambda x: first(x, alpha), lambda *args: following(*args, alpha), False)
        return steps(xp, x, n)

    op.array(kernel).grad(x=lambda grad, x, n, alpha: grad * factor(alpha) * op.operator(x, n - 1, alpha + 1), n=None)
    op.samples(lambda make, dtype: (Sample((make(3, 4, low=-0.9, high=0.9), n, 1.5)) for n in (0, 1, 2, 5)))
    OPS.append(op)
    return op


# The derivatives of Legendre's polynomials, of Chebyshev's second kind and of Laguerre's (DLMF 18.9.19, 18.9.23).
_gegenbauer = _derived(
    "_gegenbauer",
    lambda x, alpha: 2 * alpha * x,
    lambda x, k, now, before, alpha: (2 * (k + alpha) * x * now - (k + 2 * alpha - 1) * before) / (k + 1),
    lambda alpha: 2 * alpha,
)
_laguerre = _derived(
    "_laguerre",
    lambda x, alpha: 1 + alpha - x,
    lambda x, k, now, before, alpha: ((2 * k + 1 + alpha - x) * now - (k + alpha) * before) / (k + 1),
    lambda alpha: -1,
)


def _u_slope(x: Any, n: Any) -> Any:
    return 2 * _gegenbauer.operator(x, n - 1, 2.0)


def _chebyshev(prefix: str, shifted: bool, printed: tuple[str, str, str, str]) -> tuple[Callable[..., Any], ...]:
    what = "Shifted Chebyshev polynomial" if shifted else "Chebyshev polynomial"
    argument = ", of 2 x - 1." if shifted else "."

    def inner(slope: Callable[..., Any]) -> Callable[..., Any]:
        return (lambda x, n: 2 * slope(2 * x - 1, n)) if shifted else slope

    kinds = (
        ("t", "first", lambda x: x, lambda x, n: n * chebyshev_u(x, n - 1)),
        ("u", "second", lambda x: 2 * x, _u_slope),
        ("v", "third", lambda x: 2 * x - 1, lambda x, n: _u_slope(x, n) - _u_slope(x, n - 1)),
        ("w", "fourth", lambda x: 2 * x + 1, lambda x, n: _u_slope(x, n) + _u_slope(x, n - 1)),
    )
    return tuple(
        _polynomial(
            f"{prefix}chebyshev_polynomial_{letter}",
            f"{what} of the {ordinal} kind{argument}",
            first,
            _chebyshev_step,
            inner(slope),
            shown,
            shifted,
        )
        for (letter, ordinal, first, slope), shown in zip(kinds, printed, strict=True)
    )


chebyshev_t, chebyshev_u, _, _ = _chebyshev(
    "", False, ("tensor([-1., 26.])", "tensor([-1., 56.])", "tensor([-1., 41.])", "tensor([-1., 71.])")
)
_chebyshev(
    "shifted_",
    True,
    ("tensor([-0., 99.])", "tensor([ -0., 204.])", "tensor([  1., 169.])", "tensor([ -1., 239.])"),
)
hermite_h: Callable[..., Any] = _polynomial(
    "hermite_polynomial_h",
    "Hermite polynomial of the physicists.",
    lambda x: 2 * x,
    lambda x, k, now, before: 2 * (x * now - k * before),
    lambda x, n: 2 * n * hermite_h(x, n - 1),
    "tensor([-5., 40.])",
)
hermite_he: Callable[..., Any] = _polynomial(
    "hermite_polynomial_he",
    "Hermite polynomial of probability theory.",
    lambda x: x,
    lambda x, k, now, before: x * now - k * before,
    lambda x, n: n * hermite_he(x, n - 1),
    "tensor([-1.3750,  2.0000])",
)
_polynomial(
    "laguerre_polynomial_l",
    "Laguerre polynomial.",
    lambda x: 1 - x,
    lambda x, k, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1),
    lambda x, n: -_laguerre.operator(x, n - 1, 1.0),
    "tensor([-0.1458, -0.3333])",
)
_polynomial(
    "legendre_polynomial_p",
    "Legendre polynomial.",
    lambda x: x,
    lambda x, k, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1),
    lambda x, n: _gegenbauer.operator(x, n - 1, 1.5),
    "tensor([-0.4375, 17.0000])",
)
