"""Norms of vectors and matrices, and the condition number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.ops._dims import wrap_dim
from rushlight.plugin import COMPOSITE, Op, Sample, operators

from ._errors import named, renamed
from ._matrices import check_square, general, inexact, is_inexact, records_gradient
from ._ops_factor import inv_ex
from ._ops_spectral import svdvals

_norm_of = operators()["linalg_vector_norm"].operator  # native, and scaled where it has to be

vector_norm = (
    Op(
        "linalg::vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor",
        family=COMPOSITE,
        method=False,
        exact=True,
        doc="""Norm of vectors, `(sum |x|^ord)^(1/ord)`. Does not overflow where the norm itself fits.

        Args:
            x: Floating or complex tensor.
            ord: A number: inf and -inf for the largest and smallest magnitude, 0 for how many elements are not zero.
            dim: Dimension or dimensions of the vectors; by default x is one vector.
            keepdim: Whether they stay, with size 1.
            dtype: Dtype to convert to first.

        Returns:
            Real tensor. Its gradient at 0 is 0.

        Raises:
            RuntimeError: x is of integers, or empty and has no norm of this order.

        Example:
            >>> rushlight.linalg.vector_norm(rushlight.tensor([1e20, 1.0, 1.0]))
            tensor(1.0000e+20)
        """,
    )
    .composite(lambda self, ord, dim, keepdim, *, dtype: _vector(self, ord, dim, keepdim, dtype))
    .samples(
        lambda make, dtype: (
            Sample((make(3, 4), p), {"dim": dim, "keepdim": dim is not None})
            for p in (2, 1, 0, 3, 0.5, math.inf, -math.inf)
            for dim in (None, 0, (0, 1))
        ),
        lambda x, p, dim, keepdim: _np_vector_norm(x, p, dim, keepdim),
    )
)
matrix_norm = (
    Op(
        'linalg::matrix_norm(Tensor self, Any ord="fro", int[] dim=[-2,-1], bool keepdim=False, *, '
        "ScalarType? dtype=None) -> Tensor",
        family=COMPOSITE,
        method=False,
        exact=True,
        doc="""Norm of matrices.

        Args:
            A: Floating or complex tensor of at least two dimensions.
            ord: "fro" (Frobenius), "nuc" (sum of the singular values), 2 and -2 (largest and smallest singular value),
                1 and -1 (largest and smallest sum of magnitudes of a column), inf and -inf (of a row).
            dim: The two dimensions of the matrices.
            keepdim: Whether they stay, with size 1.
            dtype: Dtype to convert to first.

        Returns:
            Real tensor.

        Raises:
            RuntimeError: The order is unknown, or there are less than two dimensions.

        Example:
            >>> rushlight.linalg.matrix_norm(rushlight.tensor([[3.0, 0.0], [0.0, 4.0]]))
            tensor(5.)
        """,
    )
    .composite(lambda self, ord, dim, keepdim, *, dtype: _matrix("linalg.matrix_norm", self, ord, dim, keepdim, dtype))
    .samples(
        inexact(
            lambda make, dtype: (
                Sample((general(make, 2, 3, 2), ord), {"keepdim": keepdim})
                for ord in ("fro", "nuc", 1, -1, math.inf, -math.inf, 2, -2)
                for keepdim in (False, True)
                if ord in ("fro", 1, -1, math.inf, -math.inf) or dtype.itemsize > 2
            )
        ),
        lambda a, ord, keepdim: np.linalg.norm(a, ord, (-2, -1), keepdim),
    )
)
norm = (
    Op(
        "linalg::norm(Tensor self, Any ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
        "Tensor",
        family=COMPOSITE,
        method=False,
        exact=True,
        doc="""Norm of vectors or matrices: `vector_norm` or `matrix_norm`.

        Args:
            A: Floating or complex tensor.
            ord: Order of the norm; by default 2 of a vector, or of the flattened tensor where dim is left out too.
            dim: One dimension for vectors, two for matrices; by default all of a tensor of one or two dimensions.
            keepdim: Whether they stay, with size 1.
            dtype: Dtype to convert to first.

        Returns:
            Real tensor.

        Raises:
            RuntimeError: The order is unknown, or ord is given for more than two dimensions.

        Example:
            >>> rushlight.linalg.norm(rushlight.tensor([3.0, 4.0]))
            tensor(5.)
        """,
    )
    .composite(lambda self, ord, dim, keepdim, *, dtype: _norm(self, ord, dim, keepdim, dtype))
    .samples(
        inexact(
            lambda make, dtype: (
                Sample((make(3), 1)),
                Sample((make(3, 4),)),
                Sample((make(3, 4), math.inf)),
                Sample((make(2, 3, 4), "fro", (0, 2))),
                Sample((make(2, 3, 4), 3, 1)),
            )
        ),
        np.linalg.norm,
    )
)
cond = (
    Op(
        "linalg::cond(Tensor self, Any p=None) -> Tensor",
        family=COMPOSITE,
        method=False,
        doc="""Condition number, |A| |A^-1| in a matrix norm.

        Args:
            A: Tensor (*, m, n), float32, float64 or complex; square unless p is None, 2 or -2.
            p: Order of the norm, as in `matrix_norm`. By default 2: the largest singular value over the smallest.

        Returns:
            Real tensor (*); inf for a singular matrix. Its gradient is 0 where it has its least value.

        Raises:
            RuntimeError: The order is unknown, or A is not square.

        Example:
            >>> rushlight.linalg.cond(rushlight.tensor([[4.0, 0.0], [0.0, 2.0]]))
            tensor(2.)
        """,
    )
    .composite(lambda self, p: _cond(self, p))
    .samples(
        inexact(
            lambda make, dtype: (
                Sample((general(make, 2, 3, 3),), {"p": p})
                for p in (None, 2, -2, 1, -1, math.inf, -math.inf, "fro", "nuc")
            )
        ),
        lambda a, p: np.linalg.cond(a, p),
    )
)


def _np_vector_norm(x: np.ndarray, p: float, dim: Any, keepdim: bool) -> Any:
    if dim is None:
        return np.linalg.norm(x.ravel(), p)
    return np.linalg.vector_norm(x, ord=p, axis=dim, keepdims=keepdim)


def _vector(x: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if not is_inexact(x):
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {x.dtype}. "
            "Convert with .float() first."
        )
    if dtype is None:
        return _norm_of(x, ord, dim, keepdim)
    _check_dtype("linalg.vector_norm", x, dtype)
    return _norm_of(x, ord, dim, keepdim, dtype=dtype)


def _check_dtype(op: str, x: Any, dtype: Any) -> None:
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{op}: dtype should be floating point or complex, but got {dtype}")
    if x.is_complex() and not dtype.is_complex:
        raise RuntimeError(f"{op}: dtype should be complex for complex inputs, but got {dtype}")
    if not x.is_complex() and dtype.is_complex:
        raise RuntimeError(f"{op}: dtype should be real for real inputs, but got {dtype}")
    import rushlight

    if rushlight.promote_types(x.dtype, dtype) is not dtype:
        raise RuntimeError(
            f"{op}: the dtype of the input ({x.dtype}) should be convertible without narrowing to the specified dtype "
            f"({dtype})"
        )


def _matrix(op: str, A: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if ord == "fro" and dtype is None and A.ndim >= 2 and len(dim) == 2 and A.is_floating_point():
        return _norm_of(A, 2, dim, keepdim)  # which checks the rest
    name = ord if isinstance(ord, str) else abs(ord)
    if name not in ("fro", "nuc", 1, 2, math.inf):
        raise RuntimeError(
            f"linalg.matrix_norm: Order {ord} not supported. Choose fro, nuc, 1, -1, 2, -2, inf or -inf."
        )
    if not is_inexact(A):
        raise NotImplementedError(f"{op}: Expected a floating point or complex tensor as input. Got {A.dtype}")
    if A.ndim < 2:
        raise RuntimeError(f"{op}: The input tensor A must have at least 2 dimensions.")
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    row, column = (wrap_dim(d, A.ndim) for d in dim)
    if row == column:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if dtype is not None:
        _check_dtype("linalg.matrix_norm", A, dtype)
    if name == "fro":
        return _norm_of(A, 2, (row, column), keepdim, dtype=dtype)
    if dtype is not None:
        A = A.to(dtype)
    if name in (1, math.inf):
        along, over = (row, column) if name == 1 else (column, row)
        sums = _norm_of(A, 1, along, True)
        if ord > 0 and not A.shape[over]:
            result = sums.sum(over, True)
        else:
            result = sums.amax(over, True) if ord > 0 else sums.amin(over, True)
        return result if keepdim else result.squeeze((row, column))
    if (row, column) != (A.ndim - 2, A.ndim - 1):
        A = A.movedim((row, column), (-2, -1))
    try:
        values = svdvals.operator(A)
    except RuntimeError as error:
        raise renamed(error, op) from None
    if records_gradient(A):
        values = values.abs()  # whose gradient is 0 where they are
    if name == "nuc" or (ord > 0 and not values.shape[-1]):
        result = values.sum(-1)
    else:
        result = values.amax(-1) if ord > 0 else values.amin(-1)
    return result.unsqueeze(min(row, column)).unsqueeze(max(row, column)) if keepdim else result


def _norm(A: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if ord is None and dim is None:
        return _vector(A, 2, dim, keepdim, dtype)
    if dim is not None:
        dim = [dim] if isinstance(dim, int) else list(dim)
        if len(dim) not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {' '.join(map(str, dim))}"
            )
    elif A.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    if ord is None:
        return _vector(A, 2, dim, keepdim, dtype)
    if len(dim) == 2 if dim is not None else A.ndim == 2:
        return _matrix("linalg.norm", A, ord, (-2, -1) if dim is None else dim, keepdim, dtype)
    if isinstance(ord, str):
        raise RuntimeError(
            f"linalg.norm: The order {ord!r} is that of matrices, but got {1 if dim is None else len(dim)} dimension."
        )
    return _vector(A, ord, dim, keepdim, dtype)


@named("linalg.cond")
def _cond(A: Any, p: Any) -> Any:
    import rushlight

    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor A must have at least 2 dimensions.")
    if not is_inexact(A):
        raise NotImplementedError(f"linalg.cond: Expected a floating point or complex tensor as input. Got {A.dtype}")
    if isinstance(p, str):
        if p not in ("fro", "nuc"):
            raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
        check_square(f"linalg.cond(ord={p})", A)
    elif p is not None and abs(p) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if A.numel() == 0:
        return A.abs().new_zeros(A.shape[:-2])
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        values = svdvals.operator(A)
        first, last = values[..., 0], values[..., -1]
        ratio = last / first if p == -2 else first / last
        if not records_gradient(A) or A.device.type == "meta":
            return ratio
        # Where all values are equal it is at an extreme: the gradient is 0, not that of any two of them.
        reach = 10 * values.shape[-1] * rushlight.finfo(values.dtype).eps
        equal = ratio.detach() >= 1 - reach if p == -2 else ratio.detach() <= 1 + reach
        return ratio.masked_fill(equal, 1) if bool(equal.any()) else ratio
    check_square(f"linalg.cond(ord={p})", A)
    # Divided by a power of two, so that products of norms and of gradients stay in range.
    scale = A.detach().abs().amax((-2, -1), True).log2().floor().nan_to_num(0, 0, 0).exp2()
    A = A / scale
    size_of = lambda x: _matrix("linalg.cond", x, p, (-2, -1), False, None)
    inverse, info = inv_ex.operator(A)
    if p == "nuc":  # infinite elements have no singular values
        inverse = inverse.where((info == 0)[..., None, None], 0)
    return rushlight.where(info == 0, size_of(A) * size_of(inverse), math.inf)
