"""Array kernels: what an array namespace (CuPy's, a plugin's) computes where the native kernels of the CPU do not run.

Only what such libraries share is taken for given: inv, solve, cholesky, qr, eigh and svd of batches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


def _of_numbers(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Refuses dtypes that the native kernels do not take."""

    @wraps(fn)
    def checked(xp: Any, a: Any, *args: Any) -> Any:
        if a.dtype.kind not in "fc" or a.dtype.itemsize < 4:
            raise NotImplementedError(
                f"linalg.{fn.__name__}: Expected a floating point or complex tensor as input. Got {a.dtype}"
            )
        return fn(xp, a, *args)

    return checked


def _H(xp: Any, a: Any) -> Any:
    return xp.conj(xp.swapaxes(a, -2, -1))


def _real(a: Any) -> Any:
    return a.real if a.dtype.kind == "c" else a


def _info(xp: Any, good: Any) -> Any:
    """0 for the good matrices, 1 for the others: libraries do not say more."""
    return xp.where(good, 0, 1).astype("int32")


def _all_finite(xp: Any, a: Any) -> Any:
    return xp.all(xp.isfinite(a), axis=(-2, -1))


def _safe(xp: Any, fn: Any, a: Any) -> tuple[Any, Any]:
    """fn(a) and info, where a library may raise for a singular matrix or give infinities."""
    _, U = lu_parts(xp, a)
    good = xp.all(xp.diagonal(U, 0, -2, -1) != 0, axis=-1)
    fixed = xp.where(good[..., None, None], a, xp.eye(a.shape[-1], dtype=a.dtype))
    return xp.where(good[..., None, None], fn(fixed), xp.asarray(xp.nan, dtype=a.dtype)), _info(xp, good)


@_of_numbers
def cholesky(xp: Any, a: Any, upper: bool) -> Any:
    """A = L L^H, or U^H U."""
    return _H(xp, xp.linalg.cholesky(_H(xp, a))) if upper else xp.linalg.cholesky(a)


@_of_numbers
def cholesky_ex(xp: Any, a: Any, upper: bool, check_errors: bool) -> Any:
    """The factors column by column, so that a matrix that has none does not raise."""
    n = a.shape[-1]
    a = _H(xp, a) if upper else a
    L = xp.zeros_like(a)
    for j in range(n):
        known = L[..., j:, :j] @ _H(xp, L[..., j : j + 1, :j])
        column = a[..., j:, j : j + 1] - known
        L[..., j:, j : j + 1] = column / xp.sqrt(_real(column[..., :1, :]))
    diagonal = _real(xp.diagonal(L, 0, -2, -1))
    return _H(xp, L) if upper else L, _info(xp, xp.all(diagonal > 0, axis=-1))


@_of_numbers
def inv_ex(xp: Any, a: Any, check_errors: bool) -> Any:
    """Inverses, NaN for singular matrices."""
    return _safe(xp, xp.linalg.inv, a)


@_of_numbers
def lu_factor_ex(xp: Any, a: Any, pivot: bool, check_errors: bool) -> Any:
    """The compact factors, pivots and info, by elimination column by column."""
    a = a.copy()
    m, n = a.shape[-2:]
    least = min(m, n)
    pivots = xp.zeros((*a.shape[:-2], least), dtype="int32")
    for k in range(least):
        size = xp.abs(_real(a[..., k:, k])) + xp.abs(a[..., k:, k].imag if a.dtype.kind == "c" else 0)
        row = xp.argmax(size, axis=-1) + k
        pivots[..., k] = row + 1
        index = xp.broadcast_to(row[..., None, None], (*a.shape[:-2], 1, n))
        there, here = xp.take_along_axis(a, index, -2), a[..., k : k + 1, :].copy()
        moved = xp.arange(m)[:, None] == row[..., None, None]
        a = xp.where(moved, here, a)
        a[..., k : k + 1, :] = there
        top = a[..., k : k + 1, k : k + 1]
        a[..., k + 1 :, k : k + 1] = a[..., k + 1 :, k : k + 1] / xp.where(top == 0, xp.ones_like(top), top)
        a[..., k + 1 :, k + 1 :] = a[..., k + 1 :, k + 1 :] - a[..., k + 1 :, k : k + 1] * a[..., k : k + 1, k + 1 :]
    zero = xp.diagonal(a, 0, -2, -1) == 0
    first = xp.argmax(zero, axis=-1) + 1 if least else xp.zeros(a.shape[:-2], dtype="int64")
    return a, pivots, xp.where(xp.any(zero, axis=-1), first, 0).astype("int32")


@_of_numbers
def lu_factor(xp: Any, a: Any, pivot: bool) -> Any:
    """The compact factors and pivots."""
    return lu_factor_ex(xp, a, pivot, False)[:2]


def lu_parts(xp: Any, a: Any) -> tuple[Any, Any]:
    """L and U of the factors with their rows in order."""
    factors = lu_factor_ex(xp, a, True, False)[0]
    n = factors.shape[-1]
    return xp.tril(factors, -1) + xp.eye(n, dtype=a.dtype), xp.triu(factors)


def permutation(xp: Any, pivots: Any, m: int) -> Any:
    """The order of rows that swaps lead to."""
    order = xp.broadcast_to(xp.arange(m), (*pivots.shape[:-1], m)).copy()
    for k in range(pivots.shape[-1]):
        j = pivots[..., k : k + 1].astype("int64") - 1
        here, there = order[..., k : k + 1].copy(), xp.take_along_axis(order, j, -1)
        order = xp.where(xp.arange(m) == j, here, order)
        order[..., k : k + 1] = there
    return order


@_of_numbers
def lu_solve(xp: Any, lu: Any, pivots: Any, b: Any, left: bool, adjoint: bool) -> Any:
    """Solves with A = P L U put together again: a library's own solver is faster than substitution in arrays."""
    n = lu.shape[-1]
    product = (xp.tril(lu, -1) + xp.eye(n, dtype=lu.dtype)) @ xp.triu(lu)
    back = xp.argsort(permutation(xp, pivots, n), axis=-1)
    a = xp.take_along_axis(product, xp.broadcast_to(back[..., None], product.shape), -2)
    return solve(xp, _H(xp, a) if adjoint else a, b, left)


@_of_numbers
def solve(xp: Any, a: Any, b: Any, left: bool) -> Any:
    """X of A X = B or X A = B; batches broadcast."""
    if not left:
        return xp.swapaxes(solve(xp, xp.swapaxes(a, -2, -1), xp.swapaxes(b, -2, -1), True), -2, -1)
    if b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]):
        return xp.linalg.solve(a, b[..., None])[..., 0]
    return xp.linalg.solve(a, b)


@_of_numbers
def solve_ex(xp: Any, a: Any, b: Any, left: bool, check_errors: bool) -> Any:
    """Solutions, NaN for singular matrices, and info."""
    n = a.shape[-1]
    good = _info(xp, xp.all(xp.diagonal(lu_parts(xp, a)[1], 0, -2, -1) != 0, axis=-1))
    a = xp.where((good == 0)[..., None, None], a, xp.nan * xp.eye(n, dtype=a.dtype)) if bool((good != 0).any()) else a
    return solve(xp, a, b, left), good


@_of_numbers
def solve_triangular(xp: Any, a: Any, b: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    """Solves with the triangle alone."""
    a = xp.triu(a) if upper else xp.tril(a)
    if unitriangular:
        eye = xp.eye(a.shape[-1], dtype=a.dtype)
        a = a * (1 - eye) + eye
    return solve(xp, a, b, left)


@_of_numbers
def qr(xp: Any, a: Any, mode: str) -> Any:
    """Q and R; Q is empty for mode="r"."""
    if mode == "r":
        return xp.empty(0, dtype=a.dtype), xp.linalg.qr(a, "r")
    if mode not in ("reduced", "complete"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    return tuple(xp.linalg.qr(a, mode))


@_of_numbers
def householder_product(xp: Any, a: Any, tau: Any) -> Any:
    """The first columns of the product of reflectors, from the last on."""
    m, n = a.shape[-2:]
    Q = xp.broadcast_to(xp.eye(m, n, dtype=a.dtype), a.shape).copy()
    for i in reversed(range(tau.shape[-1])):
        rows = xp.arange(m)[:, None]
        v = xp.where(rows > i, a[..., i : i + 1], (rows == i).astype(a.dtype))
        Q = Q - tau[..., i, None, None] * v @ (_H(xp, v) @ Q)
    return Q


@_of_numbers
def eigh(xp: Any, a: Any, UPLO: str) -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    return tuple(xp.linalg.eigh(a, UPLO.upper()))


@_of_numbers
def svd(xp: Any, a: Any, full_matrices: bool, driver: Any) -> Any:
    """U, S and V^H."""
    return tuple(xp.linalg.svd(a, full_matrices=full_matrices))


@_of_numbers
def matrix_exp(xp: Any, a: Any) -> Any:
    """Scaling and squaring with the Padé approximant of degree 13, see csrc/exponential.cpp."""
    n = a.shape[-1]
    if n == 0 or a.size == 0:
        return a.copy()
    if n == 1:
        return xp.exp(a)
    norm = xp.max(xp.sum(xp.abs(a), axis=-2), axis=-1)
    finite = xp.isfinite(norm)
    squarings = xp.ceil(xp.maximum(xp.log2(xp.where(finite & (norm > 0), norm, 1) / 5.371920351148152), 0))
    x = xp.where(finite[..., None, None], a, 0) * (2.0**-squarings)[..., None, None].astype(norm.dtype)
    b = [1.0]
    for k in range(13, 0, -1):
        b.insert(0, b[0] * k * (27 - k) / (14 - k))
    eye = xp.eye(n, dtype=a.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x2 @ x4
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * eye)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * eye
    result = xp.linalg.solve(even - odd, even + odd)
    for step in range(int(xp.max(squarings))):
        result = xp.where((squarings > step)[..., None, None], result @ result, result)
    return xp.where(finite[..., None, None], result, xp.nan).astype(a.dtype)


@_of_numbers
def eigvalsh(xp: Any, a: Any, UPLO: str) -> Any:
    """Eigenvalues of Hermitian matrices."""
    return xp.linalg.eigvalsh(a, UPLO.upper())


@_of_numbers
def svdvals(xp: Any, a: Any, driver: Any) -> Any:
    """Singular values."""
    return xp.linalg.svd(a, compute_uv=False)


@_of_numbers
def inv(xp: Any, a: Any) -> Any:
    """Inverses."""
    return xp.linalg.inv(a)


@_of_numbers
def power(xp: Any, a: Any, n: int) -> Any:
    """Powers n > 0 by repeated squaring."""
    if n == 1:
        return a.copy()
    half = power(xp, a, n // 2)
    return half @ half @ a if n % 2 else half @ half


@_of_numbers
def det(xp: Any, a: Any) -> Any:
    """Determinants."""
    return xp.linalg.det(a)


@_of_numbers
def slogdet(xp: Any, a: Any) -> Any:
    """Signs and logarithms of determinants."""
    return tuple(xp.linalg.slogdet(a))


@_of_numbers
def lstsq(xp: Any, a: Any, b: Any, rcond: float, driver: Any) -> Any:
    """The solution of least norm, by singular values whatever the driver."""
    U, s, vh = xp.linalg.svd(a, full_matrices=False)
    large = s > rcond * xp.max(s, axis=-1, keepdims=True, initial=0)
    scale = xp.where(large, 1 / xp.where(large, s, 1), 0)
    x = _H(xp, vh) @ (scale[..., None] * (_H(xp, U) @ b))
    rank = xp.sum(large, axis=-1).astype("int64")
    none = xp.empty(0)
    by_svd = driver in ("gelsd", "gelss")
    return x, none.astype("int64") if driver == "gels" else rank, s if by_svd else none.astype(s.dtype)
