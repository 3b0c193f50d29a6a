"""Solutions of linear systems. Kernels: csrc/solve.cpp."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.plugin import COMPOSITE, Op, Sample

from . import _arrays
from ._errors import LinAlgError, check_inverted, named
from ._matrices import (
    SHAPES,
    check_matrix,
    check_square,
    hermitian,
    identity,
    inexact,
    keeps_factors,
    lower,
    mH,
    mT,
    well_conditioned,
)

# -- square systems


def _is_vector(A_shape: Any, B_shape: Any) -> bool:
    """Whether B is a batch of vectors to `solve`: one, or of the shape of A without its last dimension."""
    return len(B_shape) == 1 or (len(B_shape) == len(A_shape) - 1 and tuple(B_shape) == tuple(A_shape[:-1]))


def _solve_grads(
    grad: Any, A: Any, B_shape: Any, X: Any, left: bool, factors: tuple[Any, Any] | None = None
) -> tuple[Any, Any]:
    vector = _is_vector(A.shape, B_shape)
    if vector:
        grad, X = grad.unsqueeze(-1), X.unsqueeze(-1)
    if factors:
        B_grad = lu_solve.operator(*factors, grad, left=left, adjoint=True)
    else:
        B_grad = solve.operator(mH(A), grad, left=left)
    A_grad = -(B_grad @ mH(X)) if left else -(mH(X) @ B_grad)
    return A_grad, B_grad.squeeze(-1) if vector else B_grad


def _solve_lu_grads(grad: Any, A: Any, B_shape: Any, results: Any, left: bool) -> tuple[Any, Any]:
    import rushlight

    X, *factors = results
    # The factors have no gradient themselves: what is differentiated again starts from A.
    return _solve_grads(grad, A, B_shape, X, left, None if rushlight.is_grad_enabled() else tuple(factors))


def _solve_samples(make: Any, dtype: Any) -> Any:
    for batch, n in SHAPES:
        yield Sample((well_conditioned(make, *batch, n=n), make(*batch, n, 2)))
    yield Sample((well_conditioned(make), make(3)))
    yield Sample((well_conditioned(make, 2), make(2, 3)))
    yield Sample((well_conditioned(make, 2), make(3, 4)))
    yield Sample((well_conditioned(make, 2, 1), make(3, 4, 3)), {"left": False})


def _np_solve(a: np.ndarray, b: np.ndarray, left: bool = True) -> np.ndarray:
    if not left:
        return np.swapaxes(np.linalg.solve(np.swapaxes(a, -2, -1), np.swapaxes(b, -2, -1)), -2, -1)
    return np.linalg.solve(a, b[..., None])[..., 0] if _is_vector(a.shape, b.shape) else np.linalg.solve(a, b)


_solve = (
    Op(
        "linalg::_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
        method=False,
        out=False,
        doc="What `solve` gives, whose gradient factors again.",
    )
    .array(_arrays.solve)
    .grad(("A", "B"), lambda grad, A, B_shape, result, left: _solve_grads(grad, A, B_shape, result, left))
    .samples(_solve_samples, _np_solve)
)
_solve_lu = (
    Op(
        "linalg::_solve_lu(Tensor A, Tensor B, *, bool left=True) -> (Tensor result, Tensor LU, Tensor pivots)",
        method=False,
        out=False,
        auxiliary=2,
        doc="What `solve` gives, with the factors for its gradient.",
    )
    .grad(("A", "B"), lambda grads, A, B_shape, results, left: _solve_lu_grads(grads[0], A, B_shape, results, left))
    .samples(_solve_samples)
)
solve: Op = (
    Op(
        "linalg::solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
        family=COMPOSITE,
        method=False,
        exact=True,
        doc="""Solves A X = B, or X A = B, for square A, by LU with partial pivoting (LAPACK getrf, getrs).

        Args:
            A: Tensor (*, n, n), float32, float64 or complex.
            B: Tensor (*, n, k), or (*, n) where that is the shape of A without its last dimension; batch dimensions
                broadcast.
            left: False for X A = B, with B (*, k, n).

        Returns:
            Tensor of the shape of B with the broadcast batch.

        Raises:
            LinAlgError: A matrix is singular; names the batch element.

        Example:
            >>> rushlight.linalg.solve(rushlight.eye(2) * 2, rushlight.ones(2))
            tensor([0.5000, 0.5000])
        """,
    )
    .composite(
        lambda A, B, *, left: (
            _solve_lu.operator(A, B, left=left)[0] if keeps_factors(A, B) else _solve.operator(A, B, left=left)
        )
    )
    .samples(_solve_samples, _np_solve)
)
solve_ex = (
    Op(
        "linalg::solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
        "(Tensor result, Tensor info)",
        method=False,
        doc="""Solutions as `solve` gives, and for every matrix whether there is one.

        Args:
            A: Tensor (*, n, n), float32, float64 or complex.
            B: As in `solve`.
            left: False for X A = B.
            check_errors: Raise LinAlgError as `solve` does.

        Returns:
            X, and info, int32 tensor of the batch of A: 0, or the index (from 1) of a zero on the diagonal of U.

        Example:
            >>> rushlight.linalg.solve_ex(rushlight.zeros(2, 2), rushlight.ones(2)).info
            tensor(1, dtype=torch.int32)
        """,
    )
    .array(_arrays.solve_ex)
    .grad(("A", "B"), lambda grads, A, B_shape, results, left: _solve_grads(grads[0], A, B_shape, results[0], left))
    .samples(_solve_samples, lambda a, b, left=True: (_np_solve(a, b, left), np.zeros(a.shape[:-2])))
)
solve_triangular: Op = (
    Op(
        "linalg::solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> "
        "Tensor",
        method=False,
        doc="""Solves A X = B, or X A = B, for triangular A (BLAS trsm). A singular A gives infinities or NaN.

        Args:
            A: Tensor (*, n, n), float32, float64 or complex; only the triangle that `upper` names is read.
            B: Tensor (*, n, k), or (*, k, n) with left=False; batch dimensions broadcast.
            upper: Whether A is upper triangular.
            left: False for X A = B.
            unitriangular: Whether to take the diagonal of A as ones and not to read it.

        Returns:
            Tensor of the shape of B with the broadcast batch.

        Example:
            >>> A = rushlight.tensor([[2.0, 0.0], [1.0, 1.0]])
            >>> rushlight.linalg.solve_triangular(A, rushlight.tensor([[2.0], [3.0]]), upper=False)
            tensor([[1.],
                    [2.]])
        """,
    )
    .array(_arrays.solve_triangular)
    .grad(
        ("self", "B"),
        lambda grad, self, result, upper, left, unitriangular: _triangular_grads(
            grad, self, result, upper, left, unitriangular
        ),
    )
    .samples(
        lambda make, dtype: (
            *(
                Sample((lower(make, *batch, n=n), make(*batch, n, 2)), {"upper": False, "unitriangular": unit})
                for batch, n in SHAPES
                for unit in (False, True)
            ),
            Sample((mT(lower(make, 2)), make(4, 3)), {"upper": True, "left": False}),
            Sample((mT(lower(make, 2)), make(3, 4)), {"upper": True}),
        ),
        lambda a, b, upper, left=True, unitriangular=False: _np_solve(_np_triangle(a, upper, unitriangular), b, left),
    )
)


def _np_triangle(a: np.ndarray, upper: bool, unit: bool) -> np.ndarray:
    triangle = np.triu(a) if upper else np.tril(a)
    if unit:
        triangle[..., np.arange(a.shape[-1]), np.arange(a.shape[-1])] = 1
    return triangle


def _triangular_grads(grad: Any, A: Any, X: Any, upper: bool, left: bool, unit: bool) -> tuple[Any, Any]:
    B_grad = solve_triangular.operator(mH(A), grad, upper=not upper, left=left, unitriangular=unit)
    A_grad = -(B_grad @ mH(X)) if left else -(mH(X) @ B_grad)
    return A_grad.triu(int(unit)) if upper else A_grad.tril(-int(unit)), B_grad


# -- systems whose factors are given

lu_solve: Op = (
    Op(
        "linalg::lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
        method=False,
        doc="""Solves A X = B for the LU factors of A (LAPACK getrs).

        Args:
            LU: Tensor (*, n, n), as `lu_factor` gives.
            pivots: Tensor (*, n), int32, as `lu_factor` gives.
            B: Tensor (*, n, k), or (*, k, n) with left=False; batch dimensions broadcast.
            left: False for X A = B.
            adjoint: Solve with the conjugate transpose of A.

        Returns:
            Tensor of the shape of B with the broadcast batch.

        Raises:
            RuntimeError: Shapes or dtypes do not fit, or pivots are not row numbers.

        Example:
            >>> LU, pivots = rushlight.linalg.lu_factor(rushlight.tensor([[2.0, 0.0], [0.0, 4.0]]))
            >>> rushlight.linalg.lu_solve(LU, pivots, rushlight.ones(2, 1))
            tensor([[0.5000],
                    [0.2500]])
        """,
    )
    .array(_arrays.lu_solve)
    .grad(
        ("LU", "B"),
        lambda grad, LU, pivots, result, left, adjoint: _lu_solve_grads(grad, LU, pivots, result, left, adjoint),
    )
    .samples(
        inexact(lambda make, dtype: _lu_solve_samples(make)), lambda *args, **kwargs: _np_lu_solve(*args, **kwargs)
    )
)
lu_solve_function = (
    Op(
        "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
        family=COMPOSITE,
        exact=True,
        doc="""As `rushlight.linalg.lu_solve`, with the right-hand side first.

        Args:
            input: Right-hand side (*, n, k).
            LU_data: Tensor (*, n, n).
            LU_pivots: Tensor (*, n), int32.
        """,
    )
    .composite(lambda self, LU, pivots: lu_solve.operator(LU, pivots, self))
    .samples(
        inexact(lambda make, dtype: (Sample((s.args[2], *s.args[:2])) for s in list(_lu_solve_samples(make))[:2])),
        lambda b, lu, pivots: _np_lu_solve(lu, pivots, b),
    )
)


def _lu_solve_samples(make: Any) -> Any:
    from ._ops_factor import lu_factor

    for batch, shape, options in (
        ((), (3, 2), {}),
        ((2,), (3, 4), {"adjoint": True}),
        ((2, 1), (4, 2, 3), {"left": False}),
        ((0,), (3, 1), {}),
    ):
        yield Sample((*lu_factor.operator(well_conditioned(make, *batch)), make(*shape)), options)


def _np_lu_solve(lu: np.ndarray, pivots: np.ndarray, b: np.ndarray, left: bool = True, adjoint: bool = False) -> Any:
    n = lu.shape[-1]
    a = (np.tril(lu, -1) + np.eye(n)) @ np.triu(lu)
    for where in np.ndindex(*lu.shape[:-2]):
        for i in reversed(range(n)):
            j = int(pivots[where][i]) - 1
            a[(*where, [i, j])] = a[(*where, [j, i])]
    return _np_solve(np.conj(np.swapaxes(a, -2, -1)) if adjoint else a, b, left)


def _lu_solve_grads(grad: Any, LU: Any, pivots: Any, X: Any, left: bool, adjoint: bool) -> tuple[Any, Any]:
    from ._ops_factor import _lower, _permutation

    B_grad = lu_solve.operator(LU, pivots, grad, left=left, adjoint=not adjoint)
    if left != adjoint:
        A_grad = -(B_grad @ mH(X))
        if not left:
            A_grad = -(mH(B_grad) @ X)
    else:
        A_grad = -(X @ mH(B_grad)) if left else -(mH(X) @ B_grad)
    # A = P L U, and P^T takes the rows of the gradient to those of L.
    order = _permutation.operator(pivots, LU.shape[-1]).unsqueeze(-1)
    A_grad = A_grad.gather(-2, order.expand(A_grad.shape))
    lower_grad = (A_grad @ mH(LU.triu())).tril(-1)
    return lower_grad + (mH(_lower(LU, LU.shape[-1])) @ A_grad).triu(), B_grad


ldl_solve = (
    Op(
        "linalg::ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
        method=False,
        doc="""Solves A X = B for the LDL factors of A (LAPACK sytrs, hetrs).

        Args:
            LD: Tensor (*, n, n), as `ldl_factor` gives.
            pivots: Tensor (*, n), int32, as `ldl_factor` gives.
            B: Tensor (*, n, k); batch dimensions broadcast.
            hermitian: What `ldl_factor` was told.

        Returns:
            Tensor of the shape of B with the broadcast batch.

        Raises:
            RuntimeError: Shapes or dtypes do not fit, or pivots are not what `ldl_factor` gives.

        Example:
            >>> LD, pivots = rushlight.linalg.ldl_factor(rushlight.eye(2) * 4)
            >>> rushlight.linalg.ldl_solve(LD, pivots, rushlight.ones(2, 1))
            tensor([[0.2500],
                    [0.2500]])
        """,
    )
    .grad(LD=None, B=lambda grad, LD, pivots, hermitian: _ldl_solve_grad(grad, LD, pivots, hermitian))
    .samples(inexact(lambda make, dtype: _ldl_samples(make)))
)


def _ldl_solve_grad(grad: Any, LD: Any, pivots: Any, is_hermitian: bool) -> Any:
    if is_hermitian or not LD.is_complex():
        return ldl_solve.operator(LD, pivots, grad, hermitian=is_hermitian)
    return ldl_solve.operator(LD, pivots, grad.conj()).conj()


def _ldl_samples(make: Any) -> Any:
    from ._ops_factor import ldl_factor

    for batch in ((), (2,)):
        factors = ldl_factor.operator(hermitian(make, *batch).detach(), hermitian=True)
        yield Sample((*factors, make(*batch, 3, 2)), {"hermitian": True})


# -- by Cholesky factors

cholesky_solve = (
    Op(
        "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
        exact=False,
        doc="""Solves A X = B for the Cholesky factor of A.

        Only the triangle that `upper` names is read. The gradient of the factor is that of (L L^H)^-1 B in all entries
        of L, as in PyTorch: the triangle of it is the gradient of the triangle.

        Args:
            input: Right-hand side B (*, n, k).
            input2: Factor L of A = L L^H, or U of A = U^H U, tensor (*, n, n); batch dimensions broadcast.
            upper: Whether the factor is upper triangular.

        Returns:
            Tensor of the shape of B with the broadcast batch.
        """,
    )
    .composite(lambda self, factor, upper: _cholesky_solve(self, factor, upper))
    .grad(
        ("self", "input2"),
        lambda grad, input2, result, upper, needs: _cholesky_solve_grads(grad, input2, result, upper, needs),
    )
    .samples(
        inexact(
            lambda make, dtype: (
                Sample((make(3, 2), lower(make))),
                Sample((make(2, 3, 2), mT(lower(make, 2)), True)),
            )
        ),
        lambda b, f, upper=False: np.linalg.solve(_np_gram(f, upper), b),
    )
)
cholesky_inverse = (
    Op(
        "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
        exact=False,
        doc="""Inverse of A from its Cholesky factor.

        Reads and differentiates the factor as `cholesky_solve` does.

        Args:
            input: Factor L of A = L L^H, or U of A = U^H U, tensor (*, n, n).
            upper: Whether the factor is upper triangular.

        Returns:
            Tensor (*, n, n).

        Raises:
            LinAlgError: The factor has a zero on its diagonal; names the batch element.
        """,
    )
    .composite(lambda self, upper: _cholesky_inverse(self, upper))
    .grad(self=lambda grad, self, result, upper: _factor_grad(-(result @ grad @ result), self, upper))
    .samples(
        inexact(lambda make, dtype: (Sample((lower(make),)), Sample((mT(lower(make, 2)), True)))),
        lambda f, upper=False: np.linalg.inv(_np_gram(f, upper)),
    )
)


def _np_gram(f: np.ndarray, upper: bool) -> np.ndarray:
    adjoint = np.conj(np.swapaxes(f, -2, -1))
    return adjoint @ f if upper else f @ adjoint


def _cholesky_solve(b: Any, factor: Any, upper: bool) -> Any:
    if b.ndim < 2 or factor.ndim < 2:
        raise RuntimeError(
            f"cholesky_solve: b and u should have at least 2 dimensions, but have {b.ndim} and {factor.ndim}."
        )
    first, second = (mH(factor), factor) if upper else (factor, mH(factor))
    half = solve_triangular.operator(first, b, upper=False)
    return solve_triangular.operator(second, half, upper=True)


def _cholesky_solve_grads(grad: Any, factor: Any, X: Any, upper: bool, needs: Any) -> tuple[Any, Any]:
    B_grad = cholesky_solve.operator(grad, factor, upper)
    return B_grad, _factor_grad(-(B_grad @ mH(X)), factor, upper) if needs[1] else None


def _factor_grad(A_grad: Any, factor: Any, upper: bool) -> Any:
    """The gradient of L, or of U, from that of A = L L^H = U^H U."""
    both = A_grad + mH(A_grad)
    return factor @ both if upper else both @ factor


def _cholesky_inverse(factor: Any, upper: bool) -> Any:
    check_square("cholesky_inverse", factor)
    zero = factor.diagonal(0, -2, -1) == 0
    if factor.numel() and zero.device.type != "meta" and bool(zero.any()):
        check_inverted("cholesky_inverse", zero.any(-1) * (zero.byte().argmax(-1) + 1))
    inverse = solve_triangular.operator(factor, identity(factor.shape[-1], factor), upper=upper)
    return inverse @ mH(inverse) if upper else mH(inverse) @ inverse


# -- least squares

_lstsq = (
    Op(
        "linalg::_lstsq(Tensor A, Tensor B, float rcond, str? driver) -> "
        "(Tensor solution, Tensor rank, Tensor singular_values)",
        method=False,
        out=False,
        auxiliary=2,
        doc="The X of least norm that minimises |A X - B|, for A and B of one batch (LAPACK gels, gelsy, ...).",
    )
    .array(_arrays.lstsq)
    .grad(("A", "B"), lambda grads, A, B, needs: _lstsq_grads(grads[0], A, B, needs))
    .samples(lambda make, dtype: (Sample((well_conditioned(make), make(3, 2), 0.0, "gelsd")),))
)
lstsq = (
    Op(
        "linalg::lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> "
        "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
        family=COMPOSITE,
        method=False,
        doc="""The X that minimises |A X - B|; of all such the one of least norm (LAPACK).

        Its gradient is that of the pseudoinverse of A times B, for A of constant rank.

        Args:
            A: Tensor (*, m, n), float32, float64 or complex.
            B: Tensor (*, m, k), or (*, m) where that is the shape of A without its last dimension.
            rcond: Singular values below rcond times the largest count as zero; by default the machine's precision
                times max(m, n).
            driver: "gelsy" (QR with pivoting, the default), "gels" (QR, for full rank), "gelsd" (singular values by
                divide and conquer) or "gelss".

        Returns:
            solution (*, n, k); residuals (*, k), the squared distances, or empty where m <= n or a rank is less than n
            or the driver is "gelsy"; rank (*), empty with "gels"; singular_values (*, min(m, n)), empty with "gels" and
            "gelsy".

        Raises:
            LinAlgError: An element is not finite, or with "gels" A lacks full rank.
            RuntimeError: Shapes or dtypes do not fit, or the driver is unknown.

        Example:
            >>> A = rushlight.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
            >>> rushlight.linalg.lstsq(A, rushlight.tensor([[1.0], [3.0], [5.0]])).solution
            tensor([[1.0000],
                    [2.0000]])
        """,
    )
    .composite(lambda self, b, rcond, *, driver: _lstsq_any(self, b, rcond, driver))
    .samples(
        lambda make, dtype: (Sample((well_conditioned(make, 2), make(2, 3, 2)), {"driver": "gelsd"}),),
        lambda a, b, driver: (
            np.linalg.solve(a, b),
            np.zeros(0),
            np.full(a.shape[:-2], a.shape[-1]),
            np.linalg.svd(a, compute_uv=False),
        ),
    )
)


def _lstsq_any(A: Any, B: Any, rcond: float | None, driver: str | None) -> Any:
    import rushlight

    check_matrix("torch.linalg.lstsq", A, "input")
    if B.ndim < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if not 0 <= A.ndim - B.ndim <= 1:
        raise RuntimeError(
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) "
            f"<= 1, got {A.ndim} and {B.ndim}."
        )
    vector = A.ndim - B.ndim == 1 and tuple(B.shape) == tuple(A.shape[:-1])
    rows = B.shape[-1] if vector or B.ndim == 1 else B.shape[-2]
    if A.shape[-2] != rows:
        raise RuntimeError(
            f"torch.linalg.lstsq: input.size(-2) should match other.size({-1 if vector else -2}), got "
            f"{A.shape[-2]} and {rows}."
        )
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"torch.linalg.lstsq: Expected input and other to have the same dtype, but got {A.dtype} and {B.dtype}."
        )
    columns = B.unsqueeze(-1) if vector else B
    batch = rushlight.broadcast_shapes(A.shape[:-2], columns.shape[:-2])
    A, columns = A.expand(*batch, *A.shape[-2:]), columns.expand(*batch, *columns.shape[-2:])
    m, n = A.shape[-2:]
    if rcond is None:
        rcond = rushlight.finfo(A.dtype).eps * max(m, n)
    X, rank, values = _lstsq.operator(A, columns, rcond, driver)
    residuals = (X.real if X.is_complex() else X).reshape(-1)[:0]
    if m > n and driver not in (None, "gelsy") and _has_full_rank(rank, n):
        residuals = (A @ X - columns).abs().square().sum(-2)
    return X.squeeze(-1) if vector else X, residuals, rank, values


def _has_full_rank(rank: Any, n: int) -> bool:
    return rank.device.type == "meta" or bool((rank == n).all())


def _lstsq_grads(grad: Any, A: Any, B: Any, needs: Any) -> tuple[Any, Any]:
    from ._ops_spectral import pinv, pinv_grad

    inverse = pinv.operator(A)
    return (
        pinv_grad(grad @ mH(B), inverse, A) if needs[0] else None,
        mH(inverse) @ grad if needs[1] else None,
    )


# -- tensors as matrices

tensorinv = (
    Op(
        "linalg::tensorinv(Tensor self, int ind=2) -> Tensor",
        family=COMPOSITE,
        method=False,
        doc="""The inverse of a tensor as a linear map from its last dimensions to its first `ind`.

        Args:
            A: Tensor whose first `ind` sizes have the same product as the others.
            ind: How many dimensions come first, at least 1.

        Returns:
            Tensor of shape A.shape[ind:] + A.shape[:ind].

        Raises:
            LinAlgError: The map is singular.
            RuntimeError: The products differ, or `ind` is not positive.

        Example:
            >>> rushlight.linalg.tensorinv(rushlight.eye(4).reshape(2, 2, 4)).shape
            torch.Size([4, 2, 2])
        """,
    )
    .composite(lambda self, ind: _tensorinv(self, ind))
    .samples(
        inexact(lambda make, dtype: (Sample((well_conditioned(make, n=4).reshape(2, 2, 4),)),)),
        lambda a, ind=2: np.linalg.tensorinv(a, ind),
    )
)
tensorsolve = (
    Op(
        "linalg::tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
        family=COMPOSITE,
        method=False,
        doc="""The X whose contraction with A over all of its dimensions is B.

        Args:
            A: Tensor of shape B.shape + X.shape, after `dims`; the products of the two parts are equal.
            B: The right-hand side.
            dims: Dimensions of A that are moved to its end first.

        Returns:
            Tensor of the last dimensions of A.

        Raises:
            LinAlgError: The map is singular.
            RuntimeError: The products of the sizes differ.

        Example:
            >>> A = rushlight.eye(4).reshape(2, 2, 4)
            >>> rushlight.linalg.tensorsolve(A, rushlight.ones(2, 2))
            tensor([1., 1., 1., 1.])
        """,
    )
    .composite(lambda self, other, dims: _tensorsolve(self, other, dims))
    .samples(
        inexact(
            lambda make, dtype: (
                Sample((well_conditioned(make, n=6).reshape(2, 3, 6), make(2, 3))),
                Sample((well_conditioned(make, n=6).reshape(6, 2, 3), make(2, 3), (0,))),
            )
        ),
        lambda a, b, dims=None: np.linalg.tensorsolve(a, b, dims),
    )
)


@named("linalg.tensorinv")
def _tensorinv(a: Any, ind: int) -> Any:
    from ._ops_factor import inv_ex

    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', got ind={ind} (linalg.tensorinv).")
    if ind > a.ndim:
        raise RuntimeError(
            f"linalg.tensorinv: ind is at most the number of dimensions, got ind={ind} and {a.ndim} dimensions."
        )
    to, source = tuple(a.shape[:ind]), tuple(a.shape[ind:])
    if math.prod(to) != math.prod(source):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{math.prod(source)} != {math.prod(to)} (linalg.tensorinv)."
        )
    inverse, info = inv_ex.operator(a.reshape(math.prod(to), math.prod(source)))
    if info.device.type != "meta" and bool(info):
        raise LinAlgError("linalg.tensorinv: Failed to invert the input tensor, because it is singular.")
    return inverse.reshape(source + to)


@named("linalg.tensorsolve")
def _tensorsolve(a: Any, b: Any, dims: Any) -> Any:
    if dims is not None:
        a = a.movedim(list(dims), list(range(a.ndim - len(dims), a.ndim)))
    to = tuple(a.shape[b.ndim :])
    if math.prod(to) != b.numel() or a.numel() != b.numel() ** 2:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {math.prod(to)} != {b.numel()} (linalg.tensorsolve)."
        )
    return solve.operator(a.reshape(b.numel(), b.numel()), b.flatten()).reshape(to)
