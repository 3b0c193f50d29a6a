"""QR and Householder reflectors. Kernels: csrc/orthogonal.cpp."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.plugin import COMPOSITE, Op, Sample

from . import _arrays
from ._matrices import RECTANGLES, general, identity, inexact, mH
from ._ops_solve import solve_triangular

qr = (
    Op(
        'linalg::qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)',
        method=False,
        doc="""QR decomposition, A = Q R (LAPACK geqrf, orgqr).

        Args:
            A: Tensor (*, m, n), float32, float64 or complex.
            mode: "reduced" for k = min(m, n) columns of Q, "complete" for all m, "r" for R of "reduced" alone.

        Returns:
            Q (*, m, k) with orthonormal columns, empty for mode="r"; R (*, k, n), upper triangular. Its diagonal
            is real, of either sign.

        Raises:
            RuntimeError: The mode is unknown. In backward: the mode is "r", or "complete" with m > n.

        Example:
            >>> rushlight.linalg.qr(rushlight.tensor([[3.0], [4.0]])).R
            tensor([[-5.]])
        """,
    )
    .array(_arrays.qr)
    .grad(A=lambda grads, results, mode: _qr_grad(grads, results, mode))
    .samples(
        lambda make, dtype: (
            Sample((general(make, *shape),), {"mode": mode})
            for shape in RECTANGLES
            for mode in ("reduced", "complete")
            if mode == "reduced" or not make.requires_grad
        ),
        lambda a, mode: tuple(np.linalg.qr(a, mode)),
    )
)


def _qr_grad(grads: Any, results: Any, mode: str) -> Any:
    # Roberts and Roberts, "QR and LQ decomposition matrix backpropagation algorithms for square, wide, and deep
    # matrices" (2020).
    import rushlight

    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to require gradients and your inputs are tall (m > n), or "
            "linalg.qr(A, mode='complete') if your inputs are wide (m < n)."
        )
    (Q_grad, R_grad), (Q, R) = grads, results
    m, n = Q.shape[-2], R.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols. Use mode='reduced'."
        )
    if m >= n:
        return _qr_grad_tall(Q_grad, R_grad, Q, R)
    # A = [X Y] = Q [U V], with V = Q^H Y.
    Y_grad = None
    U_grad = None
    if R_grad is not None:
        U_grad, V_grad = R_grad[..., :m], R_grad[..., m:]
        Y_grad = Q @ V_grad
        through_Q = (Q @ R[..., m:]) @ mH(V_grad)
        Q_grad = through_Q if Q_grad is None else Q_grad + through_Q
    X_grad = _qr_grad_tall(Q_grad, U_grad, Q, R[..., :m])
    if Y_grad is None:
        Y_grad = X_grad.new_zeros((*X_grad.shape[:-1], n - m))
    return rushlight.cat((X_grad, Y_grad), -1)


def _qr_grad_tall(Q_grad: Any, R_grad: Any, Q: Any, R: Any) -> Any:
    import rushlight

    inner = rushlight.zeros_like(R)
    if R_grad is not None:
        inner = R @ mH(R_grad)
    if Q_grad is not None:
        inner = inner - mH(Q_grad) @ Q
    diagonal = inner.diagonal(0, -2, -1)  # of R it is real
    inner = inner.tril(-1)
    inner = inner + mH(inner) + (diagonal.real if diagonal.is_complex() else diagonal).to(inner.dtype).diag_embed()
    result = Q @ inner if Q_grad is None else Q_grad + Q @ inner
    return solve_triangular.operator(mH(R), result, upper=False, left=False)


geqrf = Op(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    differentiable=False,
    exact=False,
    doc="""QR decomposition as LAPACK's geqrf leaves it: R and the reflectors whose product is Q.

        Args:
            input: Tensor (*, m, n), float32, float64 or complex.

        Returns:
            a (*, m, n), with R on and above the diagonal and the vectors of the reflectors below, and tau
            (*, min(m, n)), their scales: what `linalg.householder_product` and `ormqr` take.
        """,
).samples(lambda make, dtype: (Sample((general(make, *shape),)) for shape in RECTANGLES))
householder_product = (
    Op(
        "linalg::householder_product(Tensor input, Tensor tau) -> Tensor",
        method=False,
        exact=False,
        doc="""The first n columns of the product of Householder reflectors I - tau_i v_i v_i^H (LAPACK orgqr).

        Args:
            A: Tensor (*, m, n) with m >= n: v_i is column i below the diagonal, with 1 on it and 0 above.
            tau: Tensor (*, k) with k <= n.

        Returns:
            Tensor (*, m, n).

        Raises:
            RuntimeError: Shapes or dtypes do not fit.

        Example:
            >>> a, tau = rushlight.geqrf(rushlight.tensor([[3.0], [4.0]]))
            >>> rushlight.linalg.householder_product(a, tau)
            tensor([[-0.6000],
                    [-0.8000]])
        """,
    )
    .array(_arrays.householder_product)
    .grad(("input", "tau"), lambda grad, input, tau: _householder_grads(grad, input, tau))
    .samples(
        lambda make, dtype: (
            Sample((make(*shape), make(*tau, low=0.2, high=0.9)))
            for shape, tau in (((3, 3), (3,)), ((4, 2), (2,)), ((2, 4, 3), (2, 2)), ((0, 3, 2), (0, 2)), ((3, 0), (0,)))
        ),
        lambda a, tau: _np_householder(a, tau),
        {"complex64": (1e-4, 1e-5)},
    )
)
orgqr = (
    Op(
        "orgqr(Tensor self, Tensor input2) -> Tensor",
        family=COMPOSITE,
        doc="Alias of `rushlight.linalg.householder_product`.",
    )
    .composite(lambda self, tau: householder_product.operator(self, tau))
    .samples(
        inexact(lambda make, dtype: (Sample((make(4, 2), make(2, low=0.2, high=0.9))),)),
        lambda a, tau: _np_householder(a, tau),
    )
)
ormqr = (
    Op(
        "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
        doc="""Products with the m x m matrix Q of Householder reflectors, which is not made (LAPACK ormqr).

        Args:
            input: Tensor (*, m, k), the reflectors as `geqrf` gives.
            tau: Tensor (*, k).
            other: Tensor (*, m, n), or (*, n, m) with left=False.
            left: Q other rather than other Q.
            transpose: With the conjugate transpose of Q.

        Returns:
            Tensor of the shape of `other`.

        Raises:
            RuntimeError: Shapes or dtypes do not fit.
        """,
    )
    .grad(
        ("self", "input2", "input3"),
        lambda grad, self, input2, input3, left, transpose, needs: _ormqr_grads(
            grad, self, input2, input3, left, transpose, needs
        ),
    )
    .samples(
        lambda make, dtype: (
            Sample((make(4, 2), make(2, low=0.2, high=0.9), make(4, 3))),
            Sample((make(2, 3, 3), make(2, 3, low=0.2, high=0.9), make(2, 4, 3), False, True)),
        ),
        lambda a, tau, c, left=True, transpose=False: _np_ormqr(a, tau, c, left, transpose),
    )
)


def _np_householder(a: np.ndarray, tau: np.ndarray, full: bool = False) -> np.ndarray:
    m, n = a.shape[-2:]
    product = np.broadcast_to(np.eye(m, dtype=a.dtype), (*a.shape[:-2], m, m))
    for i in range(tau.shape[-1]):
        v = a[..., i : i + 1] * (np.arange(m)[:, None] > i) + (np.arange(m)[:, None] == i)
        product = product @ (np.eye(m) - tau[..., i, None, None] * v @ np.conj(np.swapaxes(v, -2, -1)))
    return product if full else product[..., :n]


def _np_ormqr(a: np.ndarray, tau: np.ndarray, c: np.ndarray, left: bool, transpose: bool) -> np.ndarray:
    q = _np_householder(a, tau, full=True)
    q = np.conj(np.swapaxes(q, -2, -1)) if transpose else q
    return q @ c if left else c @ q


def _householder_grads(grad: Any, a: Any, tau: Any) -> tuple[Any, Any]:
    # Q = I - V T V1^H for the first n rows V1 of V and T = D (I + S D)^-1, where D = diag(tau) and S is V^H V above the
    # diagonal: Schreiber and Van Loan, "A storage-efficient WY representation for products of Householder
    # transformations" (1989). Products and triangles alone, also where a reflector is singular.
    import rushlight

    (m, n), k = a.shape[-2:], tau.shape[-1]
    V = a[..., :k].tril(-1) + identity(max(m, k), a)[:m, :k]
    top, scale = V[..., :n, :], tau.unsqueeze(-2)
    S = (mH(V) @ V).triu(1)
    inner = S * scale + identity(k, a)
    T = solve_triangular.operator(inner, tau.diag_embed(), upper=True, left=False, unitriangular=True)
    between = mH(V) @ grad
    of_T = -(between @ top)
    of_D = solve_triangular.operator(mH(inner), of_T, upper=False, left=False, unitriangular=True)
    of_inner = -(mH(T) @ of_D)
    of_S = (of_inner * scale.conj()).triu(1)
    of_V = V @ (of_S + mH(of_S)) - grad @ (top @ mH(T))
    of_top = -(mH(between) @ T)
    of_V = rushlight.cat((of_V[..., :n, :] + of_top, of_V[..., n:, :]), -2)
    a_grad = rushlight.cat((of_V.tril(-1), rushlight.zeros_like(a[..., k:])), -1)
    return a_grad, of_D.diagonal(0, -2, -1) + (S.conj() * of_inner).sum(-2)


def _ormqr_grads(grad: Any, a: Any, tau: Any, c: Any, left: bool, transpose: bool, needs: Any) -> tuple[Any, Any, Any]:
    import rushlight

    c_grad = ormqr.operator(a, tau, grad, left, not transpose) if needs[2] else None
    if not needs[0] and not needs[1]:
        return None, None, c_grad
    m, k = a.shape[-2:]
    square = rushlight.cat((a, a.new_zeros((*a.shape[:-1], m - k))), -1) if m > k else a[..., :m]
    Q_grad = grad @ mH(c) if left else mH(c) @ grad
    a_grad, tau_grad = _householder_grads(mH(Q_grad) if transpose else Q_grad, square, tau)
    if k > m:
        a_grad = rushlight.cat((a_grad, rushlight.zeros_like(a[..., m:])), -1)
    return a_grad[..., :k], tau_grad, c_grad
