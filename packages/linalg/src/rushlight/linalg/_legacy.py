"""Functions of rushlight itself beside those of linalg, with the order of arguments of PyTorch 1.9."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.plugin import COMPOSITE, Op, Sample

from ._errors import named
from ._matrices import (
    check_square,
    general,
    hermitian,
    inexact,
    lower,
    mH,
    mT,
    of_free_phase,
    product_of_svd,
    well_conditioned,
)
from ._ops_factor import lu_factor, lu_factor_ex
from ._ops_orthogonal import geqrf, ormqr, qr
from ._ops_product import multi_dot
from ._ops_solve import lu_solve, solve_triangular
from ._ops_spectral import _eigvals, _eigvalsh, _matrix_rank, eig, eigh, svd, svdvals

qr_function = (
    Op(
        "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
        family=COMPOSITE,
        exact=True,
        doc="""As `rushlight.linalg.qr` with mode="reduced", or "complete" with some=False.""",
    )
    .composite(lambda self, some: tuple(qr.operator(self, "reduced" if some else "complete")))
    .samples(
        lambda make, dtype: (Sample((general(make, 4, 2),)), Sample((general(make, 2, 3),), {"some": False})),
        lambda a, some=True: tuple(np.linalg.qr(a, "reduced" if some else "complete")),
    )
)
svd_function = (
    Op(
        "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
        family=COMPOSITE,
        exact=True,
        doc="""Singular value decomposition, A = U diag(S) V^H: as `rushlight.linalg.svd`, but V rather than V^H.

        Args:
            input: Tensor (*, m, n), float32, float64 or complex.
            some: Whether U and V have k = min(m, n) columns; else they are square.
            compute_uv: False for U and V of zeros.
        """,
    )
    .composite(lambda self, some, compute_uv: _svd(self, some, compute_uv))
    .samples(
        of_free_phase(lambda make, dtype: (Sample((general(make, 4, 2),)), Sample((general(make, 3, 3), False)))),
        determined=lambda U, S, V: product_of_svd(U, S, mH(V)),
    )
)
eig_function = (
    Op(
        "eig(Tensor self, bool eigenvectors=False) -> (Tensor eigenvalues, Tensor eigenvectors)",
        family=COMPOSITE,
        doc="""Eigenvalues of one real matrix as pairs of real numbers; `rushlight.linalg.eig` has complex ones.

        Args:
            input: Tensor (n, n), float32 or float64; of complex dtype the results are those of `rushlight.linalg.eig`.
            eigenvectors: Whether they are wanted; else they are empty.

        Returns:
            eigenvalues (n, 2), real and imaginary parts; eigenvectors (n, n): of a pair of conjugate eigenvalues the
            columns are the real and the imaginary part.
        """,
    )
    .composite(lambda self, eigenvectors: _eig(self, eigenvectors))
    .samples(of_free_phase(lambda make, dtype: (Sample((general(make, 3, 3), True)),)))
)
symeig = (
    Op(
        "symeig(Tensor self, bool eigenvectors=False, bool upper=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
        family=COMPOSITE,
        doc="""As `rushlight.linalg.eigh`, of the upper triangle by default.

        Args:
            input: Tensor (*, n, n), symmetric or Hermitian.
            eigenvectors: Whether they are wanted; else they are empty.
            upper: The triangle that is read.
        """,
    )
    .composite(lambda self, eigenvectors, upper: _symeig(self, eigenvectors, upper))
    .samples(lambda make, dtype: (Sample((hermitian(make, 2),)),), lambda a: (np.linalg.eigvalsh(a), np.zeros(0)))
)
lstsq_function = (
    Op(
        "lstsq(Tensor self, Tensor A) -> (Tensor solution, Tensor QR)",
        family=COMPOSITE,
        doc="""The X that minimises |A X - B| for A of full rank; `rushlight.linalg.lstsq` takes A first.

        Args:
            input: B, tensor (m, k).
            A: Tensor (m, n), m >= n.

        Returns:
            solution (m, k): X in its first n rows, and below what remains in the basis that completes Q; and QR (m, n),
            the factors of A as `rushlight.geqrf` gives them.
        """,
    )
    .composite(lambda self, A: _lstsq(self, A))
    .samples(inexact(lambda make, dtype: (Sample((make(4, 2), general(make, 4, 3))),)))
)
solve_function = (
    Op(
        "solve(Tensor self, Tensor A) -> (Tensor solution, Tensor LU)",
        family=COMPOSITE,
        doc="""Solves A X = B; `rushlight.linalg.solve` takes A first.

        Args:
            input: B, tensor (*, n, k).
            A: Tensor (*, n, n); batch dimensions broadcast.

        Returns:
            solution (*, n, k), and LU (*, n, n), the factors of A as `linalg.lu_factor` gives them.
        """,
    )
    .composite(lambda self, A: _solve(self, A))
    .samples(inexact(lambda make, dtype: (Sample((make(2, 3, 2), well_conditioned(make, 2))),)))
)
matrix_rank = (
    Op(
        "matrix_rank(Tensor self, float? tol=None, bool symmetric=False) -> Tensor",
        family=COMPOSITE,
        method=False,
        differentiable=False,
        doc="""As `rushlight.linalg.matrix_rank`; singular values up to `tol` count as zero.""",
    )
    .composite(
        named("matrix_rank")(
            lambda self, tol, symmetric: _matrix_rank(self, tol, None if tol is None else 0.0, symmetric)
        )
    )
    .samples(lambda make, dtype: (Sample((general(make, 4, 3),)),), lambda a: np.linalg.matrix_rank(a))
)
triangular_solve = (
    Op(
        "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
        "(Tensor solution, Tensor cloned_coefficient)",
        family=COMPOSITE,
        exact=True,
        doc="""Solves A X = B for triangular A; `rushlight.linalg.solve_triangular` takes A first.

        Args:
            input: B, tensor (*, n, k).
            A: Tensor (*, n, n); batch dimensions broadcast.
            upper: Whether A is upper triangular.
            transpose: Solve with the transpose of A.
            unitriangular: Whether to take the diagonal of A as ones.

        Returns:
            solution, and a copy of A.
        """,
    )
    .composite(
        lambda self, A, upper, transpose, unitriangular: _triangular_solve(self, A, upper, transpose, unitriangular)
    )
    .samples(
        inexact(lambda make, dtype: (Sample((make(3, 2), lower(make), False)),)),
        lambda b, a, upper: (np.linalg.solve(a, b), a),
    )
)
lu = (
    Op(
        "lu(Tensor self, bool pivot=True, bool get_infos=False) -> (Tensor, Tensor, Tensor)",
        family=COMPOSITE,
        doc="""As `rushlight.linalg.lu_factor`, or `lu_factor_ex` with get_infos=True.

        Args:
            input: Tensor (*, m, n).
            pivot: Must be True on the CPU.
            get_infos: Return info too instead of raising for a singular matrix.
        """,
    )
    .composite(
        named("lu")(
            lambda self, pivot, get_infos: tuple(
                lu_factor_ex.operator(self, pivot=pivot) if get_infos else lu_factor.operator(self, pivot=pivot)
            )
        )
    )
    .samples(inexact(lambda make, dtype: (Sample((well_conditioned(make, 2),)),)))
)


def chain_matmul(*matrices: Any, out: Any = None) -> Any:
    """Product of matrices in the cheapest order: `rushlight.linalg.multi_dot` with loose arguments.

    Args:
        *matrices: Two or more 2-d tensors, or one, which is returned.
        out: Tensor to write to.

    Returns:
        Tensor of two dimensions.

    Raises:
        RuntimeError: Sizes or dtypes do not fit.
    """
    if len(matrices) == 1 and not isinstance(matrices[0], (list, tuple)):
        return matrices[0]
    if len(matrices) == 1:
        matrices = tuple(matrices[0])
    for i, x in enumerate(matrices):
        if x.ndim != 2:
            raise RuntimeError(f"chain_matmul: tensor {i} must be 2D, but got {x.ndim}D.")
    return multi_dot.operator(list(matrices), out=out)


@named("svd")
def _svd(a: Any, some: bool, compute_uv: bool) -> Any:
    if compute_uv:
        U, S, Vh = svd.operator(a, not some)
        return U, S, mH(Vh)
    S = svdvals.operator(a)
    *batch, m, n = a.shape
    return a.new_zeros((*batch, m, m)), S, a.new_zeros((*batch, n, n))


@named("eig")
def _eig(a: Any, vectors: bool) -> Any:
    import rushlight

    check_square("eig", a, "input")
    if a.ndim != 2:
        raise RuntimeError(f"eig: input should be 2 dimensional, got {a.ndim} dimensions. Use linalg.eig for batches.")
    values, V = eig.operator(a) if vectors else (_eigvals.operator(a), a.new_empty(0))
    if a.is_complex():
        return values, V
    packed = rushlight.view_as_real(values)
    if not vectors:
        return packed, V
    second = rushlight.cat((values.new_zeros(1, dtype=rushlight.bool), (values.imag > 0)[:-1]))
    return packed, rushlight.where(second, -V.imag, V.real)


@named("symeig")
def _symeig(a: Any, vectors: bool, upper: bool) -> Any:
    uplo = "U" if upper else "L"
    if vectors:
        return tuple(eigh.operator(a, uplo))
    values = eigh.operator(a, uplo)[0] if a.requires_grad else _eigvalsh.operator(a, uplo)
    return values, a.new_empty(0)


@named("lstsq")
def _lstsq(b: Any, a: Any) -> Any:
    import rushlight

    if a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[0] or a.shape[0] < a.shape[1]:
        raise RuntimeError(
            "lstsq: Expected A (m, n) with m >= n and B (m, k), got shapes "
            f"{list(a.shape)} and {list(b.shape)}. Use linalg.lstsq for others."
        )
    n = a.shape[1]
    factors, tau = geqrf.operator(a)
    turned = ormqr.operator(factors, tau, b, True, True)
    X = solve_triangular.operator(factors[:n].triu(), turned[:n], upper=True)
    return rushlight.cat((X, turned[n:])), factors


@named("solve")
def _solve(b: Any, a: Any) -> Any:
    if a.ndim < 2 or b.ndim < 2:
        raise RuntimeError(
            f"solve: B and A should have at least two dimensions, got {b.ndim} and {a.ndim}. Use linalg.solve."
        )
    LU, pivots = lu_factor.operator(a)
    return lu_solve.operator(LU, pivots, b), LU


@named("triangular_solve")
def _triangular_solve(b: Any, a: Any, upper: bool, transpose: bool, unit: bool) -> Any:
    if a.ndim < 2 or b.ndim < 2:
        raise RuntimeError(
            f"torch.triangular_solve: Expected b and A to have at least 2 dimensions, but got {b.ndim} and {a.ndim}."
        )
    matrix, is_upper = (mT(a), not upper) if transpose else (a, upper)
    X = solve_triangular.operator(matrix, b, upper=is_upper, unitriangular=unit)
    return X, a.expand(*X.shape[:-2], *a.shape[-2:]).clone()
