"""Eigenvalues, singular values, and what is defined by them. Kernels: csrc/spectral.cpp."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.plugin import COMPOSITE, Op, Sample

from . import _arrays
from ._errors import named
from ._matrices import (
    RECTANGLES,
    check_matrix,
    check_square,
    general,
    hermitian,
    identity,
    inexact,
    mH,
    of_free_phase,
    product_of_eigen,
    product_of_svd,
    records_gradient,
    square_samples,
)
from ._ops_solve import solve

# -- Hermitian matrices

eigh = (
    Op(
        'linalg::eigh(Tensor A, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)',
        method=False,
        doc="""Eigenvalues and eigenvectors of Hermitian matrices, A = V diag(L) V^H (LAPACK syevd, heevd).

        Where eigenvalues are equal, gradients are right for what does not depend on the choice of their vectors, as
        long as the gradient does not vanish on the diagonal of that block. Second derivatives are right there for
        V diag(L) V^H itself, for projectors onto whole eigenspaces and for functions of the values alone, see
        `eigvalsh`.

        Args:
            A: Tensor (*, n, n), float32, float64 or complex.
            UPLO: The triangle that is read, "L" or "U".

        Returns:
            eigenvalues (*, n), real, ascending; eigenvectors (*, n, n), orthonormal columns.

        Raises:
            LinAlgError: An element is not finite, or the algorithm does not converge; names the batch element.
            RuntimeError: In backward: the loss depends on the phases of complex vectors, which are arbitrary.

        Example:
            >>> rushlight.linalg.eigh(rushlight.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
            tensor([1., 3.])
        """,
    )
    .grad(A=lambda grads, results: _eigh_grad(*grads, *results))
    .samples(of_free_phase(square_samples(hermitian)), determined=product_of_eigen)
)
_eigvalsh = (
    Op(
        'linalg::_eigvalsh(Tensor A, str UPLO="L") -> Tensor',
        method=False,
        out=False,
        doc="The eigenvalues of `eigh`, without the vectors.",
    )
    .array(_arrays.eigvalsh)
    .grad(A=lambda grad, A, UPLO: _eigh_grad(grad, None, *eigh.operator(A, UPLO)))
    .samples(square_samples(hermitian), lambda a: np.linalg.eigvalsh(a))
)
_eigvalsh_recorded = (
    Op(
        'linalg::_eigvalsh_recorded(Tensor A, str UPLO="L") -> (Tensor values, Tensor vectors, Tensor zero)',
        method=False,
        out=False,
        doc="What `eigvalsh` gives, with the vectors for its gradient, and zeros of the shape of A, see `turns`.",
    )
    .composite(lambda A, UPLO: (*eigh.operator(A, UPLO), A.new_zeros(A.shape)))
    .grad(A=lambda grads, results: _eigvalsh_grad(grads, *results))
    .samples(
        of_free_phase(square_samples(hermitian)),
        determined=lambda values, vectors, zero: (*product_of_eigen(values, vectors), zero),
    )
)
eigvalsh = (
    Op(
        'linalg::eigvalsh(Tensor A, str UPLO="L") -> Tensor',
        family=COMPOSITE,
        method=False,
        exact=True,
        doc="""Eigenvalues of Hermitian matrices, ascending (LAPACK syevd, heevd).

        Functions that are smooth in A, as sums over the values, have their second derivatives, by two backward passes,
        also where values are equal.

        Args:
            A: Tensor (*, n, n), float32, float64 or complex.
            UPLO: The triangle that is read, "L" or "U".

        Returns:
            Real tensor (*, n).

        Raises:
            LinAlgError: As `eigh`.

        Example:
            >>> rushlight.linalg.eigvalsh(rushlight.tensor([[2.0, 1.0], [1.0, 2.0]]))
            tensor([1., 3.])
        """,
    )
    .composite(
        lambda A, UPLO: _eigvalsh_recorded.operator(A, UPLO)[0] if records_gradient(A) else _eigvalsh.operator(A, UPLO)
    )
    .samples(square_samples(hermitian), lambda a: np.linalg.eigvalsh(a))
)


def _phases(inner: Any, op: str) -> Any:
    import rushlight

    with rushlight.no_grad():
        noise = rushlight.finfo(inner.dtype).eps ** 0.5 * inner.abs().amax((-2, -1)).unsqueeze(-1)
        turns = inner.imag.diagonal(0, -2, -1).abs() > noise.clamp(min=1e-2)
    if inner.device.type != "meta" and bool(turns.any()):
        raise RuntimeError(
            f"{op}: The vectors in the complex case are specified up to multiplication by e^{{i phi}}. The specified "
            "loss function depends on this quantity, so it is ill-defined. Use what does not, as absolute values or "
            "products V f(L) V^H."
        )
    return turns


# An operator, since it asks for a truth value, which one entry of a batch of gradients has not.
_check_phase = (
    Op(
        "linalg::_check_phase(Tensor inner, str op) -> Tensor",
        method=False,
        out=False,
        differentiable=False,
        doc="Raises where the loss changes as vectors are multiplied by a phase: `inner` is V^H times their gradient.",
    )
    .composite(_phases)
    .samples(lambda make, dtype: [Sample((hermitian(make), "eig"))] if dtype.is_complex else [])
)


def _close(values: Any) -> Any:
    """Which pairs of values are equal but for rounding."""
    import rushlight

    values = values.detach()
    reach = 10 * values.shape[-1] * rushlight.finfo(values.dtype).eps
    difference = (values.unsqueeze(-1) - values.unsqueeze(-2)).abs()
    return difference <= reach * (values.unsqueeze(-1).abs() + values.unsqueeze(-2).abs())


def _noise(values: Any) -> float:
    """What rounding leaves of products with vectors that should be 0, relative to their largest."""
    import rushlight

    eps = float(rushlight.finfo(values.dtype).eps)
    return max(100 * values.shape[-1] * eps, eps**0.75)


def _over(numerator: Any, denominator: Any) -> Any:
    """The quotient, 0 where both are."""
    import rushlight

    nothing = (numerator == 0) & (denominator == 0)
    return rushlight.where(nothing, 0, numerator / denominator.masked_fill(nothing, 1))


def _in_block(diagonal: Any, size: Any, close: Any) -> Any:
    """What a spectral function f(A) = V f(L) V^H needs inside of a block of equal values.

    There the derivative of V f(L) V^H is f'(l) (V^H G V), of which V^H (the gradient of V) holds the multiple by 2 f(l)
    or so, and the gradient of L the diagonal: their ratio is the same over the block.
    """
    import rushlight

    d = size.diagonal(0, -2, -1)
    d = d.real if d.is_complex() else d
    with rushlight.no_grad():
        weight, scale = close.to(d.dtype), d.abs().amax(-1, True)
        x = _over(d, scale)  # whose squares do not overflow
        top, bottom = (weight @ (diagonal * x).unsqueeze(-1)), (weight @ (x * x).unsqueeze(-1))
        ratio = _over(_over(top, bottom), scale.unsqueeze(-1)).squeeze(-1)
        tiny = x.abs() <= 1e-6
    if rushlight.is_grad_enabled():  # the derivative of the ratio is that of each value
        own = (diagonal / d.masked_fill(tiny, 1)).masked_fill(tiny, 0)
        ratio = ratio + (own - own.detach())
    return _between(ratio)


def _between(x: Any) -> Any:
    """The means of every two elements."""
    return (x.unsqueeze(-1) + x.unsqueeze(-2)) / 2


# Functions of values alone have second derivatives where values are equal: the derivatives of V g(L) V^H. For an
# incoming E the gradient of L holds g' times the diagonal of M = V^H E V, and inside of a block of equal values g' M is
# needed. M comes as the gradient of zeros that are added to V g(L) V^H, and g' by comparison with its diagonal, which
# turned vectors keep from being zero.


def turns(close: Any, dtype: Any, seed: int = 0) -> Any:
    """Unitary matrices in general position that mix the vectors of each block of close values."""
    import rushlight

    n = close.shape[-1]
    i = rushlight.arange(1, n + 1, dtype=rushlight.float64, device=close.device)
    scattered = (i.unsqueeze(-1) ** 2 * (i + seed) * 0.6180339887498949) % 1 - 0.5
    skew = scattered - scattered.mT
    if dtype.is_complex:
        skew = rushlight.complex(skew, scattered + scattered.mT)
    skew = (skew / n**0.5).to(dtype) * close
    one = identity(n, skew)
    return solve.operator(one - skew, one + skew)  # Cayley's transform


def _by_values(left: Any, values_grad: Any, right: Any, values: Any, zero: Any, separate: bool) -> Any:
    """V g(L) V^H, or U g(S) V^H, as a function that may be differentiated again."""
    import rushlight

    if not rushlight.is_grad_enabled():
        return (left * values_grad.unsqueeze(-2)) @ right
    with rushlight.no_grad():
        apart = (values_grad.unsqueeze(-1) - values_grad.unsqueeze(-2)).abs()
        noise = _noise(values)
        alike = apart <= noise * values_grad.abs().unsqueeze(-1)
        first, second = _pair_of_turns(values, _close(values) & alike & alike.mT, separate, left.dtype)
    return (left @ first * values_grad.unsqueeze(-2)) @ (mH(second) @ right) + zero


def _pair_of_turns(values: Any, close: Any, separate: bool, dtype: Any) -> tuple[Any, Any]:
    """The turns of the vectors on both sides, which are apart where singular values are 0."""
    first = turns(close, dtype)
    if not separate:
        return first, first
    nothing = values == 0
    return first, turns(close, dtype, 1).where(nothing.unsqueeze(-1) & nothing.unsqueeze(-2), first)


def _in_block_of_values(diagonal: Any, M: Any, values: Any, close: Any, separate: bool) -> tuple[Any, Any]:
    """What stands inside of a block of equal values: g' M and what else the gradient of the values holds; and g'."""
    import rushlight

    with rushlight.no_grad():
        first, second = _pair_of_turns(values, close, separate, M.dtype)
        d = (mH(first) @ M @ second).diagonal(0, -2, -1)
        d = d.real if d.is_complex() else d
        weight = close.to(d.dtype) / close.sum(-1, True)
        mean = lambda x: (weight @ x.unsqueeze(-1)).squeeze(-1)
        nothing = (values == 0) if separate else values.new_zeros(values.shape, dtype=rushlight.bool)
        centred = lambda x: x - mean(x).masked_fill(nothing, 0)  # g is odd in singular values: at 0 it is 0
        size = d.abs().amax(-1, True)
        scale = 1 / size.masked_fill(size == 0, 1)
        off = centred(d) * scale
        slope = _over(mean(centred(diagonal) * off), mean(off * off)) * scale
    rest = (first * (diagonal - slope * d).unsqueeze(-2)) @ mH(second)
    whole = M.where(nothing.unsqueeze(-1) & nothing.unsqueeze(-2), (M + mH(M)) / 2)
    return slope.unsqueeze(-1) * whole + rest, slope


def _eigvalsh_grad(grads: Any, values: Any, V: Any, zero: Any) -> Any:
    values_grad, vectors_grad, through = grads
    if vectors_grad is None and through is None:
        return None if values_grad is None else _by_values(V, values_grad, mH(V), values, zero, False)
    vectors_grad = V.new_zeros(V.shape) if vectors_grad is None else vectors_grad
    return _eigh_grad(values_grad, vectors_grad, values, V, through)


def _eigh_grad(values_grad: Any, vectors_grad: Any, values: Any, V: Any, through: Any = None) -> Any:
    # V (diag(gL) + skew(V^H gV) / (l_j - l_i)) V^H; where two values are equal a loss that does not depend on the
    # choice of the vectors has no skew part, and `_in_block` gives what is left.
    import rushlight

    if vectors_grad is None:
        return None if values_grad is None else (V * values_grad.unsqueeze(-2)) @ mH(V)
    if V.numel() == 0:
        return rushlight.zeros_like(V)
    inner = mH(V) @ vectors_grad
    if V.is_complex():
        _check_phase.operator(inner, "linalg_eigh_backward")
    skew = (inner - mH(inner)) / 2
    gap = values.unsqueeze(-2) - values.unsqueeze(-1)
    close = _close(values)
    noise = _noise(values)
    block = close & (skew.detach().abs() <= noise * inner.detach().abs().amax((-2, -1), True))
    block = block | rushlight.eye(values.shape[-1], dtype=rushlight.bool, device=values.device)
    symmetric = (inner + mH(inner)) / 2
    diagonal = rushlight.zeros_like(values) if values_grad is None else values_grad
    if through is None:
        inside = _in_block(diagonal, symmetric, close) * symmetric
        inside = inside - inside.diagonal(0, -2, -1).diag_embed() + diagonal.to(inside.dtype).diag_embed()
        inside = (inside + mH(inside)) / 2
    else:
        inside = _in_block_of_values(diagonal, mH(V) @ through @ V, values, close, False)[0]
    return V @ rushlight.where(block, inside, skew / gap.masked_fill(block, 1)) @ mH(V)


# -- any square matrix

eig = (
    Op(
        "linalg::eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
        method=False,
        doc="""Eigenvalues and eigenvectors of square matrices, A V = V diag(L) (LAPACK geev).

        Args:
            A: Tensor (*, n, n), float32, float64 or complex.

        Returns:
            eigenvalues (*, n) and eigenvectors (*, n, n), columns of norm 1: complex, in no order.

        Raises:
            LinAlgError: An element is not finite, or the algorithm does not converge; names the batch element.
            RuntimeError: In backward: the loss depends on the phases of the vectors, which are arbitrary.

        Example:
            >>> rushlight.linalg.eig(rushlight.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
            tensor([0.+1.j, 0.-1.j])
        """,
    )
    .grad(self=lambda grads, results: _eig_grad(*grads, *results))
    .samples(of_free_phase(square_samples(lambda make, *batch, n: general(make, *batch, n, n)), always_complex=True))
)
_eigvals = (
    Op(
        "linalg::_eigvals(Tensor self) -> Tensor",
        method=False,
        out=False,
        doc="The eigenvalues of `eig`, without the vectors.",
    )
    .grad(self=lambda grad, self: _eig_grad(grad, None, *eig.operator(self)))
    .samples(square_samples(lambda make, *batch, n: general(make, *batch, n, n).triu()), lambda a: np.linalg.eigvals(a))
)
eigvals = (
    Op(
        "linalg::eigvals(Tensor self) -> Tensor",
        family=COMPOSITE,
        method=False,
        doc="""Eigenvalues of square matrices, complex, in no order (LAPACK geev).

        Args:
            A: Tensor (*, n, n), float32, float64 or complex.

        Returns:
            Complex tensor (*, n).

        Raises:
            LinAlgError: As `eig`.

        Example:
            >>> rushlight.linalg.eigvals(rushlight.tensor([[0.0, 1.0], [-1.0, 0.0]]))
            tensor([0.+1.j, 0.-1.j])
        """,
    )
    .composite(lambda self: _eigvals_recorded(self) if records_gradient(self) else _eigvals.operator(self))
    .samples(square_samples(lambda make, *batch, n: general(make, *batch, n, n).triu()), lambda a: np.linalg.eigvals(a))
)


@named("linalg.eigvals")
def _eigvals_recorded(A: Any) -> Any:
    return eig.operator(A)[0]


def _eig_grad(values_grad: Any, vectors_grad: Any, values: Any, V: Any) -> Any:
    # Boeddeker et al., "On the computation of complex-valued gradients with application to statistically optimum
    # beamforming" (2017), eq. 4.77, with vectors of norm 1.
    import rushlight

    if vectors_grad is None:
        if values_grad is None:
            return None
        return solve.operator(mH(V), values_grad.unsqueeze(-1) * mH(V))
    if V.numel() == 0:
        return rushlight.zeros_like(V)
    inner = mH(V) @ vectors_grad
    diagonal = inner.diagonal(0, -2, -1)
    _check_phase.operator(inner, "linalg_eig_backward")
    inner = inner - (mH(V) @ V) * diagonal.real.unsqueeze(-2)
    gap = (values.unsqueeze(-2) - values.unsqueeze(-1)).conj()
    inner = _over(inner.tril(-1), gap.tril(-1)) + _over(inner.triu(1), gap.triu(1))
    if values_grad is not None:
        inner = inner + values_grad.diag_embed()
    return solve.operator(mH(V), inner @ mH(V))


# -- singular values

svd = (
    Op(
        "linalg::svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
        method=False,
        doc="""Singular value decomposition, A = U diag(S) V^H (LAPACK gesdd, gesvd where that does not converge).

        Where singular values are equal or zero, gradients are right for what does not depend on the choice of their
        vectors. Where several are exactly 0, the gradients of U and V vanish with them, and what they would say of that
        block off its diagonal counts as 0. Second derivatives are right at equal values for U diag(S) V^H itself and
        for functions of the values alone, see `svdvals`.

        Args:
            A: Tensor (*, m, n), float32, float64 or complex.
            full_matrices: Whether U and V are square; else they have k = min(m, n) columns.
            driver: None; others are for CUDA.

        Returns:
            U (*, m, m or k), S (*, k), real, descending, and Vh (*, n or k, n).

        Raises:
            LinAlgError: An element is not finite, or the algorithm does not converge; names the batch element.
            RuntimeError: In backward: the loss depends on the phases of complex vectors, which are arbitrary.

        Example:
            >>> rushlight.linalg.svd(rushlight.tensor([[0.0, 3.0], [4.0, 0.0]])).S
            tensor([4., 3.])
        """,
    )
    .grad(A=lambda grads, results: _svd_grad(*grads, *results))
    .samples(
        of_free_phase(
            lambda make, dtype: (
                Sample((general(make, *shape),), {"full_matrices": full})
                for shape in RECTANGLES
                for full in (False, True)
                if not (full and make.requires_grad)
            )
        ),
        determined=product_of_svd,
    )
)
_svdvals = (
    Op(
        "linalg::_svdvals(Tensor A, *, str? driver=None) -> Tensor",
        method=False,
        out=False,
        doc="The singular values of `svd`, without the vectors.",
    )
    .array(_arrays.svdvals)
    .grad(A=lambda grad, A: _svd_grad(None, grad, None, *svd.operator(A, False)))
    .samples(
        lambda make, dtype: (Sample((general(make, *shape),)) for shape in RECTANGLES),
        lambda a: np.linalg.svd(a, compute_uv=False),
    )
)
_svdvals_recorded = (
    Op(
        "linalg::_svdvals_recorded(Tensor A, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh, Tensor zero)",
        method=False,
        out=False,
        doc="What `svdvals` gives, with the vectors for its gradient, and zeros of the shape of A, see `turns`.",
    )
    .composite(lambda A, driver: (*svd.operator(A, False, driver=driver), A.new_zeros(A.shape)))
    .grad(A=lambda grads, results: _svdvals_grad(grads, *results))
    .samples(
        of_free_phase(lambda make, dtype: (Sample((general(make, *shape),)) for shape in RECTANGLES)),
        determined=lambda U, S, Vh, zero: (*product_of_svd(U, S, Vh), zero),
    )
)
svdvals = (
    Op(
        "linalg::svdvals(Tensor A, *, str? driver=None) -> Tensor",
        family=COMPOSITE,
        method=False,
        exact=True,
        doc="""Singular values, descending (LAPACK gesdd).

        Functions that are smooth in A, as sums of even powers, have their second derivatives, by two backward passes,
        also where values are equal, and those of square A where they are zero.

        Args:
            A: Tensor (*, m, n), float32, float64 or complex.
            driver: None; others are for CUDA.

        Returns:
            Real tensor (*, min(m, n)).

        Raises:
            LinAlgError: As `svd`.

        Example:
            >>> rushlight.linalg.svdvals(rushlight.tensor([[0.0, 3.0], [4.0, 0.0]]))
            tensor([4., 3.])
        """,
    )
    .composite(
        lambda A, *, driver: (
            _svdvals_recorded.operator(A, driver)[1] if records_gradient(A) else _svdvals.operator(A, driver=driver)
        )
    )
    .samples(
        lambda make, dtype: (Sample((general(make, *shape),)) for shape in RECTANGLES),
        lambda a: np.linalg.svd(a, compute_uv=False),
    )
)


def _svdvals_grad(grads: Any, U: Any, S: Any, Vh: Any, zero: Any) -> Any:
    U_grad, S_grad, V_grad, through = grads
    if U_grad is None and V_grad is None and through is None:
        return None if S_grad is None else _by_values(U, S_grad, Vh, S, zero, True)
    U_grad = U.new_zeros(U.shape) if U_grad is None else U_grad
    return _svd_grad(U_grad, S_grad, V_grad, U, S, Vh, through)


def _svd_grad(U_grad: Any, S_grad: Any, V_grad: Any, U: Any, S: Any, Vh: Any, through: Any = None) -> Any:
    # U T V^H with T = diag(gS) + P / (2 (s_j - s_i)) + Q / (2 (s_j + s_i)), where P and Q are sum and difference of the
    # skew parts of U^H gU and V^H gV, and what gU and gV have outside of the spans of U and V.
    import rushlight

    k = S.shape[-1]
    U, Vh = U[..., :k], Vh[..., :k, :]
    V_grad = None if V_grad is None else mH(V_grad[..., :k, :])
    U_grad = None if U_grad is None else U_grad[..., :k]
    if U_grad is None and V_grad is None:
        return None if S_grad is None else (U * S_grad.unsqueeze(-2)) @ Vh
    if S.numel() == 0:
        return U.new_zeros((*U.shape[:-1], Vh.shape[-1]))
    zero = rushlight.zeros_like
    V = mH(Vh)
    left = mH(U) @ U_grad if U_grad is not None else None
    right = Vh @ V_grad if V_grad is not None else None
    left, right = zero(right) if left is None else left, zero(left) if right is None else right
    if U.is_complex():
        _check_phase.operator(left + right, "svd_backward")
    X, Y = left - mH(left), right - mH(right)
    P, Q = X + Y, X - Y
    diagonal = zero(S) if S_grad is None else S_grad
    gap, sums = S.unsqueeze(-2) - S.unsqueeze(-1), S.unsqueeze(-2) + S.unsqueeze(-1)
    with rushlight.no_grad():
        close = _close(S)
        noise = _noise(S)
        scale = (left.abs() + right.abs()).amax((-2, -1), True)
        block = close & (P.abs() <= noise * scale)
        block = block | rushlight.eye(k, dtype=rushlight.bool, device=S.device)
    if through is None:
        inside = _inside(diagonal, left, right, S, close, noise * scale)
        inside = inside - inside.diagonal(0, -2, -1).diag_embed() + diagonal.to(inside.dtype).diag_embed()
    else:
        M = mH(U) @ through @ V
        inside, slope = _in_block_of_values(diagonal, M, S, close, True)
    T = rushlight.where(block, inside, P / (2 * gap).masked_fill(block, 1)) + _over(Q, 2 * sums)
    result = U @ T @ Vh
    if through is not None:  # beside the spans of U and V, where singular values are 0
        slope = slope.masked_fill(S != 0, 0).unsqueeze(-2)
        if U.shape[-2] > k:
            result = result + ((through @ V - U @ M) * slope) @ Vh
        if Vh.shape[-1] > k:
            result = result + (U * slope) @ (mH(U) @ through - M @ Vh)
    if U_grad is not None and U.shape[-2] > k:
        outside = _over(U_grad - U @ left, S.unsqueeze(-2))
        result = result + outside @ Vh
    if V_grad is not None and Vh.shape[-1] > k:
        outside = _over(V_grad - V @ right, S.unsqueeze(-2))
        result = result + U @ mH(outside)
    return result


def _inside(diagonal: Any, left: Any, right: Any, S: Any, close: Any, noise: Any) -> Any:
    """The symmetric part inside of blocks of equal singular values, see `_in_block`."""
    import rushlight

    left, right = (left + mH(left)) / 2, (right + mH(right)) / 2
    ratio = _in_block(diagonal, left, close)
    with rushlight.no_grad():
        # A product U f(S) V^H shows in both; without a diagonal its f is taken for the identity.
        both = (left - right).abs() <= noise
        d = left.diagonal(0, -2, -1).abs()
        speaks = (d > noise[..., 0]) | (diagonal.abs() > noise[..., 0])
        silent = ~(close & speaks.unsqueeze(-2)).any(-1, True)
    ratio = rushlight.where(silent, _between((1 / S.masked_fill(S == 0, 1)).masked_fill(S == 0, 0)), ratio) * both
    return ratio * (left + right) / 2


# -- pseudoinverse

pinv = (
    Op(
        "linalg::pinv(Tensor self, *, Any atol=None, Any rtol=None, bool hermitian=False) -> Tensor",
        method=False,
        exact=False,
        doc="""Moore-Penrose pseudoinverse, by singular values (LAPACK gesdd) or, where Hermitian, eigenvalues.

        Its gradient is that at constant rank.

        Args:
            A: Tensor (*, m, n), float32, float64 or complex.
            rcond: As rtol, and may be given by position.
            atol: Singular values up to max(atol, rtol * the largest) count as zero: number or tensor (*). By default 0.
            rtol: By default max(m, n) times the machine's precision, or 0 where atol is given and positive.
            hermitian: Whether A is Hermitian.

        Returns:
            Tensor (*, n, m).

        Raises:
            LinAlgError: An element is not finite, or the algorithm does not converge.

        Example:
            >>> rushlight.linalg.pinv(rushlight.tensor([[2.0, 0.0], [0.0, 0.0]]))
            tensor([[0.5000, 0.0000],
                    [0.0000, 0.0000]])
        """,
    )
    .composite(lambda self, *, atol, rtol, hermitian: _pinv(self, atol, rtol, hermitian))
    .grad(self=lambda grad, self, result: pinv_grad(grad, result, self), atol=None, rtol=None)
    .samples(
        lambda make, dtype: (
            *(Sample((general(make, *shape),)) for shape in RECTANGLES),
            Sample((hermitian(make, 2),), {"hermitian": True}),
        ),
        lambda a, hermitian=False: np.linalg.pinv(a),
    )
)
pinv_rcond = (
    Op(
        "linalg::pinv.rcond(Tensor self, Any rcond, bool hermitian=False) -> Tensor",
        family=COMPOSITE,
        method=False,
        doc="As `pinv` with rtol=rcond.",
    )
    .composite(lambda self, rcond, hermitian: pinv.operator(self, rtol=rcond, hermitian=hermitian))
    .samples(
        lambda make, dtype: (Sample((general(make, 3, 2), 1e-15)),),
        lambda a, rcond, hermitian=False: np.linalg.pinv(a),
    )
)
pinverse = (
    Op(
        "pinverse(Tensor self, float rcond=1e-15) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="As `rushlight.linalg.pinv` with `rtol=rcond`.",
    )
    .composite(named("pinverse")(lambda self, rcond: pinv.operator(self, rtol=rcond)))
    .samples(lambda make, dtype: (Sample((general(make, 3, 2),)),), lambda a: np.linalg.pinv(a))
)


def _cutoff(op: str, A: Any, largest: Any, atol: Any, rtol: Any) -> Any:
    """The value up to which singular values count as zero, from their largest (*, 1)."""
    import rushlight

    for name, value in (("atol", atol), ("rtol", rtol)):
        if isinstance(value, rushlight.Tensor) and value.is_complex():
            raise RuntimeError(f"{op}: {name} tensor of complex type is not supported.")
    if rtol is None:
        rtol = rushlight.finfo(A.dtype).eps * max(A.shape[-2:])
        if isinstance(atol, rushlight.Tensor):
            rtol = rushlight.where(atol > 0, 0.0, rtol)
        elif atol is not None and atol > 0:
            rtol = 0.0
    absolute, relative = (
        value.to(largest.dtype).unsqueeze(-1) if isinstance(value, rushlight.Tensor) else value or 0.0
        for value in (atol, rtol)
    )
    return rushlight.maximum(largest * relative, rushlight.zeros_like(largest) + absolute)


@named("linalg.pinv")
def _pinv(A: Any, atol: Any, rtol: Any, is_hermitian: bool) -> Any:
    import rushlight

    check_matrix("linalg.pinv", A)
    if A.numel() == 0:
        return A.new_zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]))
    if is_hermitian:
        check_square("linalg.pinv", A)
        L, V = eigh.operator(A)
        size = L.abs()
        small = size <= _cutoff("linalg.pinv", A, size.amax(-1, True), atol, rtol)
        return (V * rushlight.where(small, 0, 1 / L).unsqueeze(-2)) @ mH(V)
    U, S, Vh = svd.operator(A, False)
    small = _cutoff("linalg.pinv", A, S[..., :1], atol, rtol) >= S
    return (mH(Vh) * rushlight.where(small, 0, 1 / S).unsqueeze(-2)) @ mH(U)


def pinv_grad(grad: Any, P: Any, A: Any) -> Any:
    """The gradient of a pseudoinverse P of A at constant rank.

    Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems" (1973), eq. 4.12.
    """
    import rushlight

    m, n = A.shape[-2:]
    if not A.numel():
        return mH(grad)
    size = P.detach().abs().amax((-2, -1), True)  # P^H P may be out of range where the gradient is not
    size = size.clamp(min=rushlight.finfo(size.dtype).tiny)
    Ph, Gh = mH(P), mH(grad)
    if m <= n:
        K = Gh @ P
        KPh = K @ Ph
        return KPh - mH(P @ K) - (A @ P) @ KPh + (Ph / size @ P) @ (Gh - K @ A) * size
    K = P @ Gh
    PhK = Ph @ K
    return PhK - mH(K @ P) - PhK @ (P @ A) + (Gh - A @ K) @ (P @ (Ph / size)) * size


matrix_rank = (
    Op(
        "linalg::matrix_rank(Tensor self, *, Any atol=None, Any rtol=None, bool hermitian=False) -> Tensor",
        family=COMPOSITE,
        method=False,
        differentiable=False,
        doc="""How many singular values of each matrix exceed max(atol, rtol * the largest).

        Args:
            A: Tensor (*, m, n), float32, float64 or complex.
            tol: As atol with rtol=0, and may be given by position.
            atol: Number or tensor (*). By default 0.
            rtol: Number or tensor (*). By default max(m, n) times the machine's precision, or 0 where atol is given and
                positive.
            hermitian: Whether A is Hermitian: the absolute eigenvalues are counted.

        Returns:
            int64 tensor (*).

        Raises:
            LinAlgError: An element is not finite, or the algorithm does not converge.

        Example:
            >>> rushlight.linalg.matrix_rank(rushlight.ones(2, 2))
            tensor(1)
        """,
    )
    .composite(lambda self, *, atol, rtol, hermitian: _matrix_rank(self, atol, rtol, hermitian))
    .samples(
        lambda make, dtype: (
            *(Sample((general(make, *shape),)) for shape in RECTANGLES if 0 not in shape),
            Sample((hermitian(make, 2),), {"hermitian": True}),
        ),
        lambda a, hermitian=False: np.linalg.matrix_rank(a, hermitian=hermitian),
    )
)
matrix_rank_tol = (
    Op(
        "linalg::matrix_rank.tol(Tensor self, Any tol, bool hermitian=False) -> Tensor",
        family=COMPOSITE,
        method=False,
        differentiable=False,
        doc="As `matrix_rank` with atol=tol and rtol=0.",
    )
    .composite(lambda self, tol, hermitian: _matrix_rank(self, tol, 0.0, hermitian))
    .samples(lambda make, dtype: (Sample((general(make, 3, 2), 0.1)),), lambda a, tol: np.linalg.matrix_rank(a, tol))
)


@named("linalg.matrix_rank")
def _matrix_rank(A: Any, atol: Any, rtol: Any, is_hermitian: bool) -> Any:
    import rushlight

    check_matrix("linalg.matrix_rank", A)
    A = A.detach()
    if is_hermitian:
        check_square("linalg.matrix_rank", A)
        values = eigvalsh.operator(A).abs()
        largest = values.amax(-1, True) if A.numel() else values[..., :1]
    else:
        values = svdvals.operator(A)
        largest = values[..., :1]
    if not values.numel():
        return rushlight.zeros(A.shape[:-2], dtype=rushlight.int64, device=A.device)
    return (values > _cutoff("torch.linalg.matrix_rank", A, largest, atol, rtol)).sum(-1)


# -- decompositions of low rank

svd_lowrank = (
    Op(
        "svd_lowrank(Tensor A, int? q=6, int? niter=2, Tensor? M=None) -> (Tensor U, Tensor S, Tensor V)",
        family=COMPOSITE,
        method=False,
        out=False,
        arbitrary=True,
        doc="""Singular value decomposition of a matrix near one of rank q, by random projections.

        Halko, Martinsson and Tropp, "Finding structure with randomness" (2009), algorithms 4.4 and 5.1.

        Args:
            A: Tensor (*, m, n), float32, float64 or complex.
            q: How many singular values are sought, at most min(m, n): somewhat more than the rank.
            niter: Rounds of subspace iteration.
            M: Tensor (*, m, n) or (*, 1, n) that is subtracted from A.

        Returns:
            U (*, m, q), S (*, q), descending, and V (*, n, q).

        Raises:
            ValueError: `q` or `niter` is out of range.
        """,
    )
    .composite(named("svd_lowrank")(lambda A, q, niter, M: _svd_lowrank(A, q, niter, M)))
    .samples(inexact(lambda make, dtype: (Sample((general(make, 4, 3),), {"q": 2}),)))
)
pca_lowrank = (
    Op(
        "pca_lowrank(Tensor A, int? q=None, bool center=True, int niter=2) -> (Tensor U, Tensor S, Tensor V)",
        family=COMPOSITE,
        method=False,
        out=False,
        arbitrary=True,
        doc="""Principal components of the rows of a matrix, by `svd_lowrank` of the matrix less the mean of its rows.

        Args:
            A: Tensor (*, m, n), float32, float64 or complex: m samples of n features.
            q: How many components, at most min(m, n); by default min(6, m, n).
            center: Whether to subtract the mean.
            niter: Rounds of subspace iteration.

        Returns:
            U (*, m, q), S (*, q), descending, and V (*, n, q), whose columns are the principal directions.

        Raises:
            ValueError: `q` or `niter` is out of range.
        """,
    )
    .composite(named("pca_lowrank")(lambda A, q, center, niter: _pca_lowrank(A, q, center, niter)))
    .samples(inexact(lambda make, dtype: (Sample((general(make, 4, 3),), {"q": 2}),)))
)


_MOST_ROUNDS = 1000


def _svd_lowrank(A: Any, q: int | None, niter: int | None, M: Any) -> Any:
    import rushlight

    from ._ops_orthogonal import qr

    check_matrix("svd_lowrank", A)
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if q < 0 or niter < 0:
        raise ValueError(f"svd_lowrank: q and niter are not negative, got q={q} and niter={niter}.")
    if niter > _MOST_ROUNDS:
        raise ValueError(f"svd_lowrank: niter is at most {_MOST_ROUNDS}, got niter={niter}. A few rounds converge.")
    if M is not None:
        A = A - M
    flipped = A.shape[-2] < A.shape[-1]
    if flipped:
        A = mH(A)
    R = rushlight.randn(A.shape[-1], min(q, A.shape[-1]), dtype=A.dtype, device=A.device)
    Q = qr.operator(A @ R)[0]
    for _ in range(niter):
        Q = qr.operator(A @ qr.operator(mH(A) @ Q)[0])[0]
    U, S, Vh = svd.operator(mH(Q) @ A, False)
    U, V = Q @ U, mH(Vh)
    return (V, S, U) if flipped else (U, S, V)


def _pca_lowrank(A: Any, q: int | None, center: bool, niter: int) -> Any:
    check_matrix("pca_lowrank", A)
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return _svd_lowrank(A, q, niter, A.mean(-2, keepdim=True) if center else None)
