"""Cholesky, LU and LDL factors, inverses and determinants. Kernels: csrc/factor.cpp."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.plugin import COMPOSITE, Op, Sample

from . import _arrays
from ._errors import named
from ._matrices import (
    RECTANGLES,
    SHAPES,
    alias,
    check_matrix,
    hermitian,
    identity,
    inexact,
    keeps_factors,
    mH,
    mT,
    positive_definite,
    square_samples,
    well_conditioned,
)
from ._ops_solve import lu_solve, solve_triangular

# -- inverse

_INV_GRAD = "-matmul(matmul(adjoint(result), grad), adjoint(result))"

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
    .array(_arrays.inv)
    .grad(A=_INV_GRAD)
    .samples(square_samples())
)
inv_ex = (
    Op(
        "linalg::inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
        method=False,
        doc="""Inverses, and for every matrix whether it has one.

        Args:
            A: Tensor (*, n, n), float32, float64 or complex.
            check_errors: Raise LinAlgError for a singular matrix, as `inv` does.

        Returns:
            The inverses, and info, int32 tensor (*): 0, or for a singular matrix the index (from 1) of a zero on the
            diagonal of U, and the inverse is not meaningful.

        Example:
            >>> rushlight.linalg.inv_ex(rushlight.zeros(1, 2, 2)).info
            tensor([1], dtype=torch.int32)
        """,
    )
    .array(_arrays.inv_ex)
    .grad(A="-matmul(matmul(adjoint(results[0]), grads[0]), adjoint(results[0]))")
    .samples(square_samples(), lambda a: (np.linalg.inv(a), np.zeros(a.shape[:-2])))
)
inverse = alias("inverse(Tensor self) -> Tensor", inv, "Alias of `rushlight.linalg.inv`.")

# -- determinants

_inv_lu = (
    Op(
        "linalg::_inv_lu(Tensor LU, Tensor pivots) -> Tensor",
        method=False,
        out=False,
        differentiable=False,
        doc="Inverses from the factors that `lu_factor` gives.",
    )
    .array(lambda xp, LU, pivots: _arrays.lu_solve(xp, LU, pivots, xp.eye(LU.shape[-1], dtype=LU.dtype), True, False))
    .samples(inexact(lambda make, dtype: (Sample(tuple(lu_factor.operator(well_conditioned(make, 2)))),)))
)
_det = (
    Op(
        "linalg::_det(Tensor A) -> Tensor",
        method=False,
        out=False,
        doc="What `det` gives, whose gradient factors again.",
    )
    .array(_arrays.det)
    .grad(A=lambda grad, A, result: grad[..., None, None] * _cofactors(A, result).conj())
    .samples(square_samples(), lambda a: np.linalg.det(a))
)
_det_lu = (
    Op(
        "linalg::_det_lu(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
        method=False,
        out=False,
        auxiliary=2,
        doc="What `det` gives, with the factors for its gradient.",
    )
    .grad(
        A=lambda grads, A, results: (
            None if grads[0] is None else grads[0][..., None, None] * _cofactors(A, results[0], results[1:]).conj()
        )
    )
    .samples(square_samples())
)
det = (
    Op(
        "linalg::det(Tensor A) -> Tensor",
        family=COMPOSITE,
        method=False,
        exact=True,
        doc="""Determinant of every matrix of a batch, from its LU factors (LAPACK getrf).

        Its gradient is the matrix of cofactors, also where A is singular.

        Args:
            A: Tensor (*, n, n), float32, float64 or complex.

        Returns:
            Tensor (*); 1 for n = 0.

        Example:
            >>> rushlight.linalg.det(rushlight.eye(3) * 2)
            tensor(8.)
        """,
    )
    .composite(lambda A: _det_lu.operator(A)[0] if keeps_factors(A) else _det.operator(A))
    .samples(square_samples(), lambda a: np.linalg.det(a))
)
det_function = alias("det(Tensor self) -> Tensor", det, "Alias of `rushlight.linalg.det`.", out=False)
_slogdet = (
    Op(
        "linalg::_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
        method=False,
        out=False,
        doc="What `slogdet` gives, whose gradient factors again.",
    )
    .array(_arrays.slogdet)
    .grad(A=lambda grads, results, A: _slogdet_grad(grads, results[0], A))
    .samples(square_samples(), lambda a: tuple(np.linalg.slogdet(a)))
)
_slogdet_lu = (
    Op(
        "linalg::_slogdet_lu(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
        method=False,
        out=False,
        auxiliary=2,
        doc="What `slogdet` gives, with the factors for its gradient.",
    )
    .grad(A=lambda grads, results, A: _slogdet_grad(grads, results[0], A, results[2:]))
    .samples(square_samples())
)
slogdet = (
    Op(
        "linalg::slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
        family=COMPOSITE,
        method=False,
        exact=True,
        doc="""Sign and logarithm of the absolute value of determinants, which themselves may overflow.

        Args:
            A: Tensor (*, n, n), float32, float64 or complex.

        Returns:
            The sign, of absolute value 1 or, for a singular matrix, 0, and log|det|, real, then -inf; each (*).

        Example:
            >>> rushlight.linalg.slogdet(rushlight.eye(2) * 1e30).logabsdet
            tensor(138.1551)
        """,
    )
    .composite(lambda A: tuple(_slogdet_lu.operator(A)[:2]) if keeps_factors(A) else tuple(_slogdet.operator(A)))
    .samples(square_samples(), lambda a: tuple(np.linalg.slogdet(a)))
)
slogdet_function = (
    Op(
        "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
        family=COMPOSITE,
        exact=True,
        doc="Alias of `rushlight.linalg.slogdet`.",
    )
    .composite(lambda self: tuple(slogdet.operator(self)))
    .samples(square_samples(), lambda a: tuple(np.linalg.slogdet(a)))
)
logdet = (
    Op(
        "logdet(Tensor self) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="""Logarithm of determinants: NaN where a real one is negative, -inf where it is 0.

        Args:
            input: Tensor (*, n, n), float32, float64 or complex.

        Returns:
            Tensor (*).
        """,
    )
    .composite(lambda self: _logdet(self))
    .samples(square_samples(), lambda a: np.log(np.linalg.det(a)))
)


def _cofactors(a: Any, determinant: Any, factors: Any = None) -> Any:
    """The matrices of cofactors, d det / d A, also where A is singular and has no inverse."""
    import rushlight

    n = a.shape[-1]
    if n <= 1:
        return rushlight.ones_like(a)
    if a.device.type == "meta" or _is_far_from_singular(a, determinant):
        return determinant[..., None, None] * mT(_inverse(a, factors))
    if n > _MINORS:
        cofactors = _cofactors_by_lu(a, factors)
        return _cofactors_by_svd(a) if cofactors is None else cofactors
    rows = [[j for j in range(n) if j != i] for i in range(n)]
    minors = [[det.operator(a[..., rows[i], :][..., rows[j]]) * (-1) ** (i + j) for j in range(n)] for i in range(n)]
    return rushlight.stack([rushlight.stack(row, -1) for row in minors], -2)


def _inverse(a: Any, factors: Any) -> Any:
    """By the LU factors, if they are given and the result will not be differentiated: they have no gradient."""
    import rushlight

    if factors is None or rushlight.is_grad_enabled():
        return inv_ex.operator(a)[0]
    return _inv_lu.operator(*factors)


def _is_far_from_singular(a: Any, determinant: Any) -> bool:
    """Whether det(A) A^-1 is accurate for all matrices, and its gradient where that will be asked for."""
    import rushlight

    with_gradient = rushlight.is_grad_enabled()
    with rushlight.no_grad():
        size = determinant.abs()
        info = rushlight.finfo(size.dtype)
        bound = _largest_log(a).exp() * info.eps ** (1 / 3) if with_gradient else 0
        return bool(((size > info.tiny) & (size < info.max) & (size > bound)).all())


def _largest_log(a: Any) -> Any:
    """Hadamard's bound of log|det|: the product of the lengths of the rows."""
    return a.abs().square().sum(-1).log().sum(-1) / 2


_MINORS = 8
"""The largest order for which cofactors are computed as determinants, which can be differentiated again."""


def _cofactors_by_lu(a: Any, factors: Any) -> Any:
    """The cofactors of matrices that are far from singular, though their determinants overflow or vanish; else None."""
    import rushlight

    n, with_gradient = a.shape[-1], rushlight.is_grad_enabled()
    LU, pivots = lu_factor_ex.operator(a)[:2] if factors is None or with_gradient else factors
    diagonal = LU.diagonal(0, -2, -1)
    with rushlight.no_grad():
        log = diagonal.abs().log().sum(-1)
        info = rushlight.finfo(log.dtype)
        least = _largest_log(a) + math.log(info.eps) / 3 if with_gradient else -math.inf
        if not bool(((log > least) & log.isfinite()).all()):
            return None
        power = (log / (n * math.log(2))).round()  # 2^power is about the size of an element of the diagonal
        odd = (pivots != rushlight.arange(1, n + 1, device=a.device)).sum(-1) % 2
    product = (diagonal * (-power).exp2().unsqueeze(-1)).prod(-1) * (1 - 2 * odd)
    half = (power * n / 2).round()
    inverse = lu_solve.operator(LU, pivots, identity(n, a)) if with_gradient else _inv_lu.operator(LU, pivots)
    scales = (product, half.exp2(), (power * n - half).exp2())  # of which none overflows where the cofactors do not
    for scale in scales:
        inverse = inverse * scale[..., None, None]
    return mT(inverse)


def _cofactors_by_svd(a: Any) -> Any:
    # A = U S V^H: cof(A) = det(U) det(V^H) conj(U) cof(S) conj(V^H), and cof(S) has the products of the other values.
    import rushlight

    from ._ops_spectral import svd, turns

    if rushlight.is_grad_enabled():
        # Where singular values are 0 the gradients of svd are silent: noise far below rounding lets them speak.
        with rushlight.no_grad():
            everywhere = a.new_ones((a.shape[-1], a.shape[-1]), dtype=rushlight.bool)
            noise = turns(everywhere, a.dtype) * a.abs().amax((-2, -1), True) * rushlight.finfo(a.dtype).eps ** 2
        a = a + noise
    u, s, vh = svd.operator(a)
    n = s.shape[-1]
    one = rushlight.ones_like(s[..., :1])
    before = rushlight.cat((one, s[..., : n - 1]), -1).cumprod(-1)
    after = rushlight.cat((one, s.flip(-1)[..., : n - 1]), -1).cumprod(-1).flip(-1)
    scale = det.operator(u) * det.operator(vh)
    return scale[..., None, None] * ((u * (before * after).unsqueeze(-2)) @ vh).conj()


def _slogdet_grad(grads: Any, sign: Any, a: Any, factors: Any = None) -> Any:
    # d log det = tr(A^-1 dA): its real part is d log|det|, its imaginary part the change of the phase.
    sign_grad, factor = grads[:2]
    if a.is_complex() and sign_grad is not None:
        turn = (sign_grad.conj() * sign).imag * -1j
        factor = turn if factor is None else factor + turn
    if factor is None:
        return None
    return factor[..., None, None] * mH(_inverse(a, factors))


def _logdet(a: Any) -> Any:
    sign, log = slogdet.operator(a)
    return sign.log() + log if a.is_complex() else log.where(sign >= 0, float("nan"))


# -- Cholesky

cholesky = (
    Op(
        "linalg::cholesky(Tensor self, *, bool upper=False) -> Tensor",
        method=False,
        doc="""Cholesky factor L of a Hermitian positive-definite matrix, A = L L^H (LAPACK potrf).

        Args:
            A: Tensor (*, n, n); only the triangle that `upper` names is read.
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
    .array(_arrays.cholesky)
    .grad(self=lambda grad, upper, result: _cholesky_grad(grad, upper, result))
    .samples(
        lambda make, dtype: (
            Sample((positive_definite(make, *batch, n=n),), {"upper": upper})
            for batch, n in SHAPES
            for upper in (False, True)
        )
    )
)
cholesky_ex = (
    Op(
        "linalg::cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
        method=False,
        doc="""Cholesky factors, and for every matrix whether it has one.

        Args:
            A: Tensor (*, n, n), float32, float64 or complex.
            upper: Return upper factors instead.
            check_errors: Raise LinAlgError as `cholesky` does.

        Returns:
            The factors, and info, int32 tensor (*): 0, or the order of the first minor that is not positive-definite.

        Example:
            >>> rushlight.linalg.cholesky_ex(-rushlight.eye(2)).info
            tensor(1, dtype=torch.int32)
        """,
    )
    .array(_arrays.cholesky_ex)
    .grad(self=lambda grads, upper, results: _cholesky_grad(grads[0], upper, results[0]))
    .samples(
        lambda make, dtype: (Sample((positive_definite(make, *batch, n=n),)) for batch, n in SHAPES),
        lambda a: (np.linalg.cholesky(a), np.zeros(a.shape[:-2])),
    )
)
cholesky_function = (
    Op("cholesky(Tensor self, bool upper=False) -> Tensor", family=COMPOSITE, doc="As `rushlight.linalg.cholesky`.")
    .composite(named("cholesky")(lambda self, upper: cholesky.operator(self, upper=upper)))
    .samples(lambda make, dtype: (Sample((positive_definite(make, 2),)),), lambda a: np.linalg.cholesky(a))
)


def _cholesky_grad(grad: Any, upper: bool, result: Any) -> Any:
    # Murray, "Differentiation of the Cholesky decomposition" (2016), eq. 9; the gradient is Hermitian.
    L, G = (mH(result), mH(grad)) if upper else (result, grad)
    phi = (mH(L) @ G).tril()
    phi = 0.5 * (phi + mH(phi.tril(-1)))
    half = solve_triangular.operator(mH(L), phi, upper=True)
    return solve_triangular.operator(L, half, upper=False, left=False)


# -- LU

lu_factor: Op = (
    Op(
        "linalg::lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
        method=False,
        doc="""LU factors with partial pivoting, in the compact form that `lu_solve` takes (LAPACK getrf).

        Args:
            A: Tensor (*, m, n), float32, float64 or complex.
            pivot: Must be True on the CPU.

        Returns:
            LU (*, m, n), L below the diagonal, whose own ones are left out, and U above; pivots (*, min(m, n)), int32,
            the row (from 1) that each row changed places with in turn.

        Raises:
            LinAlgError: U has a zero on the diagonal.

        Example:
            >>> rushlight.linalg.lu_factor(rushlight.tensor([[1.0, 2.0], [4.0, 6.0]])).LU
            tensor([[4.0000, 6.0000],
                    [0.2500, 0.5000]])
        """,
    )
    .array(_arrays.lu_factor)
    .grad(A=lambda grads, results: _lu_factor_grad(grads[0], *results))
    .samples(
        lambda make, dtype: (Sample((well_conditioned(make, *batch, n=n),)) for batch, n in SHAPES),
        lambda a: _np_lu_factor(a),
    )
)
lu_factor_ex = (
    Op(
        "linalg::lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> "
        "(Tensor LU, Tensor pivots, Tensor info)",
        method=False,
        doc="""LU factors as `lu_factor` gives, and for every matrix whether they can be solved with.

        Args:
            A: Tensor (*, m, n), float32, float64 or complex.
            pivot: Must be True on the CPU.
            check_errors: Raise LinAlgError as `lu_factor` does.

        Returns:
            LU, pivots, and info, int32 tensor (*): 0, or the index (from 1) of a zero on the diagonal of U.

        Example:
            >>> rushlight.linalg.lu_factor_ex(rushlight.zeros(2, 2)).info
            tensor(1, dtype=torch.int32)
        """,
    )
    .array(_arrays.lu_factor_ex)
    .grad(A=lambda grads, results: _lu_factor_grad(grads[0], *results[:2]))
    .samples(
        lambda make, dtype: (
            Sample((make(*shape, low=1, high=2),)) for shape in RECTANGLES if min(shape[-2:]) != 2 or shape[-1] != 3
        ),
        lambda a: (*_np_lu_factor(a), np.zeros(a.shape[:-2])),
    )
)
_permutation = (
    Op(
        "linalg::_permutation(Tensor pivots, int m) -> Tensor",
        method=False,
        out=False,
        differentiable=False,
        doc="The order (*, m) that swaps of rows by pivots (*, k) lead to: row i comes from the i-th.",
    )
    .array(_arrays.permutation)
    .samples(
        lambda make, dtype: (
            (Sample((lu_factor.operator(well_conditioned(make, 2)).pivots, 4)),)
            if dtype.is_floating_point and dtype.itemsize > 2
            else ()
        )
    )
)
lu_unpack = (
    Op(
        "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> "
        "(Tensor P, Tensor L, Tensor U)",
        family=COMPOSITE,
        method=False,
        exact=True,
        doc="""P, L and U of A = P L U from the compact form that `linalg.lu_factor` gives.

        Args:
            LU_data: Tensor (*, m, n).
            LU_pivots: Tensor (*, min(m, n)), int32.
            unpack_data: Whether L and U are wanted; else they are empty.
            unpack_pivots: Whether P is wanted; else it is empty.

        Returns:
            P (*, m, m), L (*, m, k) with ones on the diagonal, and U (*, k, n), for k = min(m, n).

        Raises:
            RuntimeError: Dtypes or shapes do not fit.
        """,
    )
    .composite(lambda LU, pivots, data, unpack: _lu_unpack(LU, pivots, data, unpack))
    .samples(inexact(lambda make, dtype: (Sample(tuple(lu_factor.operator(well_conditioned(make, 2, n=3)))),)))
)
lu = (
    Op(
        "linalg::lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
        family=COMPOSITE,
        method=False,
        exact=True,
        doc="""LU decomposition with partial pivoting, A = P L U (LAPACK getrf).

        Args:
            A: Tensor (*, m, n), float32, float64 or complex.
            pivot: Must be True on the CPU.

        Returns:
            P (*, m, m), a permutation, L (*, m, k), lower triangular with ones on the diagonal, and U (*, k, n), upper
            triangular, for k = min(m, n).

        Example:
            >>> rushlight.linalg.lu(rushlight.tensor([[1.0, 2.0], [4.0, 6.0]])).P
            tensor([[0., 1.],
                    [1., 0.]])
        """,
    )
    .composite(lambda A, *, pivot: _lu(A, pivot))
    .samples(
        lambda make, dtype: (Sample((well_conditioned(make, *batch, n=n),)) for batch, n in SHAPES),
        lambda a: _np_lu(a),
    )
)


def _np_lu(a: np.ndarray) -> Any:
    import scipy.linalg

    if not a.size:
        return np.zeros(a.shape), np.zeros(a.shape), np.zeros(a.shape)
    return scipy.linalg.lu(a)


def _np_lu_factor(a: np.ndarray) -> Any:
    import scipy.linalg

    m, n = a.shape[-2:]
    if not a.size:
        return a, np.zeros((*a.shape[:-2], min(m, n)))
    pairs = [scipy.linalg.lu_factor(x) for x in a.reshape(-1, m, n)]
    return (
        np.stack([factors for factors, _ in pairs]).reshape(a.shape),
        np.stack([pivots + 1 for _, pivots in pairs]).reshape(*a.shape[:-2], min(m, n)),
    )


@named("linalg.lu")
def _lu(a: Any, pivot: bool) -> Any:
    factors, pivots, _ = lu_factor_ex.operator(a, pivot=pivot)
    return _lu_unpack(factors, pivots, True, True)


def _lu_unpack(factors: Any, pivots: Any, data: bool, unpack: bool) -> Any:
    import rushlight

    check_matrix("lu_unpack", factors, "LU_data")
    m, n = factors.shape[-2:]
    k = min(m, n)
    if unpack and pivots.dtype is not rushlight.int32:
        raise RuntimeError(
            f"torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype, got "
            f"dtype={pivots.dtype}."
        )
    if unpack and tuple(pivots.shape) != (*factors.shape[:-2], k):
        raise RuntimeError(
            f"lu_unpack: LU_pivots has the batch of LU_data and min(m, n) elements, got shape {list(pivots.shape)}."
        )
    nothing = factors.new_empty(0)
    L, U = (_lower(factors, k), factors[..., :k, :].triu()) if data else (nothing, nothing)
    P = nothing
    if unpack:
        order = _permutation.operator(pivots, m)
        P = factors.new_zeros((*factors.shape[:-2], m, m)).scatter(-2, order.unsqueeze(-2), 1)
    return P, L, U


def _lower(factors: Any, k: int) -> Any:
    """L of the compact form."""
    return factors[..., :k].tril(-1) + identity(max(factors.shape[-2], k), factors)[: factors.shape[-2], :k]


def _lu_factor_grad(grad: Any, factors: Any, pivots: Any) -> Any:
    """The gradient of A = P L U, from those of L below and U above the diagonal, in the compact form."""
    import rushlight

    m, n = factors.shape[-2:]
    k = min(m, n)
    L, U = _lower(factors, k), factors[..., :k, :].triu()
    square = factors[..., :k, :k]
    L1, U1 = _lower(square, k), square.triu()
    lower_grad, upper_grad = grad[..., :k].tril(-1), grad[..., :k, :].triu()
    # dL and dU are the triangles of L1^-1 dA U1^-1, whose rest is products with what lies outside the square.
    inner = (mH(L1) @ lower_grad[..., :k, :]).tril(-1) + (upper_grad[..., :k] @ mH(U1)).triu()
    if m > n:
        inner = inner - (mH(L[..., k:, :]) @ lower_grad[..., k:, :]).triu()
    if n > m:
        inner = inner - (upper_grad[..., k:] @ mH(U[..., k:])).tril(-1)
    inner = solve_triangular.operator(mH(L1), inner, upper=True)
    result = solve_triangular.operator(mH(U1), inner, upper=False, left=False)
    if m > n:
        rest = solve_triangular.operator(mH(U1), lower_grad[..., k:, :], upper=False, left=False)
        result = rushlight.cat((result, rest), -2)
    if n > m:
        rest = solve_triangular.operator(mH(L1), upper_grad[..., k:], upper=True)
        result = rushlight.cat((result, rest), -1)
    order = _permutation.operator(pivots, m)
    return rushlight.zeros_like(result).scatter(-2, order.unsqueeze(-1).expand(result.shape), result)


# -- LDL

ldl_factor_ex = Op(
    "linalg::ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> "
    "(Tensor LD, Tensor pivots, Tensor info)",
    method=False,
    differentiable=False,
    doc="""LDL factors as `ldl_factor` gives, and for every matrix whether they can be solved with.

        Args:
            A: Tensor (*, n, n), symmetric or Hermitian; its lower triangle is read.
            hermitian: Whether a complex matrix is Hermitian rather than symmetric.
            check_errors: Raise LinAlgError where D is singular.

        Returns:
            LD, pivots, and info, int32 tensor (*): 0, or the index (from 1) of a zero of D.
        """,
).samples(square_samples(hermitian))
ldl_factor = Op(
    "linalg::ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    method=False,
    differentiable=False,
    doc="""Compact LDL factors of symmetric or Hermitian matrices, which may be indefinite (LAPACK sytrf, hetrf).

        Args:
            A: Tensor (*, n, n), float32, float64 or complex; its lower triangle is read.
            hermitian: Whether a complex matrix is Hermitian rather than symmetric.

        Returns:
            LD (*, n, n), with the blocks of D on the diagonal and L below, and pivots (*, n), int32, as `ldl_solve`
            takes them.

        Raises:
            LinAlgError: D is singular.

        Example:
            >>> rushlight.linalg.ldl_factor(rushlight.tensor([[4.0, 2.0], [2.0, 3.0]])).LD
            tensor([[4.0000, 0.0000],
                    [0.5000, 2.0000]])
        """,
).samples(square_samples(hermitian))
