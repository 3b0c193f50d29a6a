"""Records of the linear algebra ops. Kernels are in csrc/module.cpp, LAPACK routines are named in the docstrings."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.plugin import COMPOSITE, Op, Sample

from . import _C
from ._errors import LinAlgError

_C.set_error(LinAlgError)


def _mH(x: Any) -> Any:
    return x.transpose(-2, -1).conj()


def _well_conditioned(make: Any, *batch: int, n: int = 3) -> Any:
    import rushlight

    x = make(*batch, n, n, low=-1, high=1)
    return x + 2 * n * rushlight.eye(n, dtype=x.dtype, device=x.device)


def _positive_definite(make: Any, *batch: int, n: int = 3) -> Any:
    import rushlight

    x = make(*batch, n, n, low=-1, high=1)
    return x @ _mH(x) + n * rushlight.eye(n, dtype=x.dtype, device=x.device)


_SHAPES: tuple[tuple[tuple[int, ...], int], ...] = (((), 3), ((2,), 4), ((2, 3), 2), ((0,), 3), ((), 0), ((), 1))

inv = (
    Op(
        "linalg::inv(Tensor A) -> Tensor",
        method=False,
        doc="""Inverse of every matrix of a batch, by LU with partial pivoting (LAPACK getrf, getri).

        Args:
            A: Tensor (*, n, n), float32, float64 or complex.

        Returns:
            Tensor (*, n, n).

        Raises:
            LinAlgError: A matrix is singular; names the batch element.

        Example:
            >>> rushlight.linalg.inv(rushlight.tensor([[2.0, 1.0], [1.0, 1.0]]))
            tensor([[ 1., -1.],
                    [-1.,  2.]])
        """,
    )
    .array(lambda xp, a: xp.linalg.inv(a))
    .grad(A=lambda grad, result: -(_mH(result) @ grad @ _mH(result)))
    .samples(lambda make, dtype: (Sample((_well_conditioned(make, *batch, n=n),)) for batch, n in _SHAPES))
)
inverse = (
    Op("inverse(Tensor self) -> Tensor", family=COMPOSITE, doc="Alias of `rushlight.linalg.inv`.")
    .composite(lambda self: inv.operator(self))
    .samples(lambda make, dtype: (Sample((_well_conditioned(make, 2),)),), np.linalg.inv)
)
det = (
    Op(
        "linalg::det(Tensor A) -> Tensor",
        method=False,
        doc="""Determinant of every matrix of a batch, from its LU factors (LAPACK getrf).

        Args:
            A: Tensor (*, n, n), float32, float64 or complex.

        Returns:
            Tensor (*); 1 for n = 0.

        Example:
            >>> rushlight.linalg.det(rushlight.eye(3) * 2)
            tensor(8.)
        """,
    )
    .array(lambda xp, a: xp.linalg.det(a))
    .grad(A=lambda grad, A, result: (grad).unsqueeze(-1).unsqueeze(-1) * _cofactors(A, result).conj())
    .samples(lambda make, dtype: (Sample((_well_conditioned(make, *batch, n=n),)) for batch, n in _SHAPES))
)
det_function = (
    Op("det(Tensor self) -> Tensor", family=COMPOSITE, out=False, doc="Alias of `rushlight.linalg.det`.")
    .composite(lambda self: det.operator(self))
    .samples(lambda make, dtype: (Sample((_well_conditioned(make, 2),)),), np.linalg.det)
)
_solve: Op = (
    Op(
        "linalg::_solve(Tensor A, Tensor B) -> Tensor",
        method=False,
        out=False,
        doc="X of A X = B for A (*, n, n) and B (*, n, k) with equal batch dimensions (LAPACK getrf, getrs).",
    )
    .array(lambda xp, a, b: xp.linalg.solve(a, b))
    .grad(
        A=lambda grad, A, result: -(_solve.operator(_mH(A), grad) @ _mH(result)),
        B=lambda grad, A: _solve.operator(_mH(A), grad),
    )
    .samples(
        lambda make, dtype: (Sample((_well_conditioned(make, *batch, n=n), make(*batch, n, 2))) for batch, n in _SHAPES)
    )
)
solve = (
    Op(
        "linalg::solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
        family=COMPOSITE,
        exact=True,
        method=False,
        doc="""Solves A X = B, or X A = B, for square A.

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
    .composite(lambda A, B, *, left: _solve_any(A, B, left))
    .samples(
        lambda make, dtype: (
            Sample((_well_conditioned(make), make(3))),
            Sample((_well_conditioned(make, 2), make(2, 3, 4))),
            Sample((_well_conditioned(make, 2), make(3, 4))),
        ),
        lambda a, b: np.linalg.solve(a, b[..., None])[..., 0] if b.ndim == 1 else np.linalg.solve(a, b),
    )
)
cholesky = (
    Op(
        "linalg::cholesky(Tensor self, *, bool upper=False) -> Tensor",
        method=False,
        doc="""Cholesky factor L of a Hermitian positive-definite matrix, A = L L^H (LAPACK potrf).

        Args:
            self: Tensor (*, n, n); only the triangle that `upper` names is read.
            upper: Return the upper factor U of A = U^H U instead.

        Returns:
            Tensor (*, n, n), triangular.

        Raises:
            LinAlgError: A matrix is not positive-definite; names the batch element and the minor.

        Example:
            >>> rushlight.linalg.cholesky(rushlight.eye(2) * 4)
            tensor([[2., 0.],
                    [0., 2.]])
        """,
    )
    .array(
        lambda xp, a, upper: (
            xp.conj(xp.swapaxes(xp.linalg.cholesky(xp.conj(xp.swapaxes(a, -2, -1))), -2, -1))
            if upper
            else xp.linalg.cholesky(a)
        )
    )
    .grad(self=lambda grad, upper, result: _cholesky_grad(grad, upper, result))
    .samples(
        lambda make, dtype: (
            Sample((_positive_definite(make, *batch, n=n),), {"upper": upper})
            for batch, n in _SHAPES
            for upper in (False, True)
        ),
        lambda a, upper: np.conj(np.swapaxes(np.linalg.cholesky(a), -2, -1)) if upper else np.linalg.cholesky(a),
    )
)
cholesky_function = (
    Op("cholesky(Tensor self, bool upper=False) -> Tensor", family=COMPOSITE, doc="As `rushlight.linalg.cholesky`.")
    .composite(lambda self, upper: cholesky.operator(self, upper=upper))
    .samples(lambda make, dtype: (Sample((_positive_definite(make, 2),)),), lambda a: np.linalg.cholesky(a))
)


def _cofactors(a: Any, determinant: Any) -> Any:
    """The matrices of cofactors, d det / d A, also where A is singular and has no inverse."""
    import rushlight

    n = a.shape[-1]
    if n == 0:
        return a
    if bool((determinant != 0).all()):
        return determinant.unsqueeze(-1).unsqueeze(-1) * inv.operator(a).transpose(-2, -1)
    if n == 1:
        return rushlight.ones_like(a)
    rows = [[j for j in range(n) if j != i] for i in range(n)]
    minors = [[det.operator(a[..., rows[i], :][..., rows[j]]) * (-1) ** (i + j) for j in range(n)] for i in range(n)]
    return rushlight.stack([rushlight.stack(row, -1) for row in minors], -2)


def _solve_any(A: Any, B: Any, left: bool) -> Any:
    if A.ndim < 2 or B.ndim < 1:
        raise RuntimeError(
            "linalg.solve: The input tensor A must have at least 2 dimensions and B at least 1. Got shapes "
            f"{list(A.shape)} and {list(B.shape)}."
        )
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    if vector:
        if not left:
            raise RuntimeError(
                "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
                "linalg.solve is equivalent to B / A.squeeze(-1)"
            )
        B = B.unsqueeze(-1)
    if not left:
        return _solve_any(A.transpose(-2, -1), B.transpose(-2, -1), True).transpose(-2, -1)
    batch = (
        np.broadcast_shapes(tuple(A.shape[:-2]), tuple(B.shape[:-2])) if A.shape[:-2] != B.shape[:-2] else A.shape[:-2]
    )
    X = _solve.operator(A.expand(*batch, *A.shape[-2:]), B.expand(*batch, *B.shape[-2:]))
    return X.squeeze(-1) if vector else X


def _cholesky_grad(grad: Any, upper: bool, result: Any) -> Any:
    # Murray, "Differentiation of the Cholesky decomposition" (2016), eq. 9.
    L, G = (_mH(result), _mH(grad)) if upper else (result, grad)
    phi = (_mH(L) @ G).tril()
    phi = 0.5 * (phi + _mH(phi.tril(-1)))
    return _mH(_solve.operator(_mH(L), _mH(_solve.operator(_mH(L), phi))))


def records() -> list[Op]:
    """Every record of this wheel."""
    return [value for value in globals().values() if isinstance(value, Op)]
