"""Products, powers and the exponential of matrices, and functions of the core under the names of linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.plugin import COMPOSITE, Op, Sample

from . import _C, _arrays
from ._errors import check_inverted, named
from ._matrices import LANES, SHAPES, alias, check_square, general, identity, inexact, is_inexact, mH, well_conditioned
from ._ops_factor import inv_ex

# -- functions of matrices

_matrix_exp: Op = (
    Op(
        "linalg::_matrix_exp(Tensor self) -> Tensor",
        method=False,
        out=False,
        doc="What `matrix_exp` gives, but of halves.",
    )
    .array(_arrays.matrix_exp)
    .grad(self=lambda grad, self: _matrix_exp_grad(grad, self))
    .samples(lambda make, dtype: _matrix_exp_samples(make, dtype), lambda a: _np_matrix_exp(a))
)
matrix_exp: Op = (
    Op(
        "linalg::matrix_exp(Tensor self) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""Exponential of square matrices.

        By Padé approximants with scaling and squaring: Higham, "The scaling and squaring method for the matrix
        exponential revisited" (2005).

        Args:
            A: Floating or complex tensor (*, n, n).

        Returns:
            Tensor (*, n, n); NaN where an element is not finite and n > 1. Halves are computed with in float32.

        Example:
            >>> rushlight.linalg.matrix_exp(rushlight.zeros(2, 2))
            tensor([[1., 0.],
                    [0., 1.]])
        """,
    )
    .composite(lambda self: _matrix_exp_any(self))
    .samples(lambda make, dtype: _matrix_exp_samples(make, dtype), lambda a: _np_matrix_exp(a))
)
matrix_exp_function = alias(
    "matrix_exp(Tensor self) -> Tensor", matrix_exp, "Alias of `rushlight.linalg.matrix_exp`.", out=False
)
_small_power = (
    Op(
        "linalg::_small_power(Tensor A, int n) -> Tensor",
        method=False,
        out=False,
        doc="Powers n > 0 of matrices (*, m, m) of order 1 to 8.",
    )
    .array(_arrays.power)
    .grad(A=lambda grad, A, n: _power_grad(grad, A, n))
    .samples(
        lambda make, dtype: (Sample((general(make, 2, 3, 3), n)) for n in (1, 2, 5) if dtype.itemsize > 2),
        lambda a, n: np.linalg.matrix_power(a, n),
    )
)


def _power_grad(grad: Any, A: Any, n: int) -> Any:
    # That of A^2k is that of A^k for the gradient A^k^H G + G A^k^H; a factor is split off an odd power.
    if n == 1:
        return grad
    if n % 2:
        rest = mH(_small_power.operator(A, n - 1))
        return grad @ rest + _power_grad(mH(A) @ grad, A, n - 1)
    half = mH(_small_power.operator(A, n // 2))
    return _power_grad(half @ grad + grad @ half, A, n // 2)


matrix_power = (
    Op(
        "linalg::matrix_power(Tensor self, int n) -> Tensor",
        family=COMPOSITE,
        method=False,
        exact=True,
        doc="""Powers of square matrices with an integer exponent, by repeated squaring.

        Args:
            A: Tensor (*, m, m).
            n: The exponent; where negative, floating or complex A is inverted.

        Returns:
            Tensor (*, m, m).

        Raises:
            LinAlgError: n is negative and a matrix is singular.
            RuntimeError: The matrices are not square.

        Example:
            >>> rushlight.linalg.matrix_power(rushlight.tensor([[1, 1], [1, 0]]), 10)
            tensor([[89, 55],
                    [55, 34]])
        """,
    )
    .composite(lambda self, n: _matrix_power(self, n))
    .samples(
        inexact(
            lambda make, dtype: (
                Sample((well_conditioned(make, 2), n)) for n in (0, 1, 2, 3, 5, -1, -2) if dtype.itemsize > 2
            )
        ),
        lambda a, n: np.linalg.matrix_power(a, n),
    )
)
matrix_power_function = alias(
    "matrix_power(Tensor self, int n) -> Tensor", matrix_power, "Alias of `rushlight.linalg.matrix_power`."
)


def _matrix_exp_samples(make: Any, dtype: Any) -> Any:
    return (Sample((make(*batch, n, n, low=-1, high=1),)) for batch, n in SHAPES if dtype.itemsize > 2)


def _np_matrix_exp(a: np.ndarray) -> Any:
    import scipy.linalg

    return scipy.linalg.expm(a) if a.size else a


def _matrix_exp_any(a: Any) -> Any:
    if a.is_floating_point() and a.dtype.itemsize == 2:
        return _matrix_exp.operator(a.float()).to(a.dtype)
    return _matrix_exp.operator(a)


def _matrix_exp_grad(grad: Any, a: Any) -> Any:
    # The upper right block of the exponential of [[A^H, G], [0, A^H]]; G is scaled so that it does not set the norm.
    import rushlight

    n = a.shape[-1]
    if n == 0:
        return grad
    adjoint = mH(a)
    top = rushlight.cat((adjoint, grad), -1)
    bottom = rushlight.cat((rushlight.zeros_like(adjoint), adjoint), -1)
    return _matrix_exp.operator(rushlight.cat((top, bottom), -2))[..., :n, n:]


@named("linalg.matrix_power")
def _matrix_power(a: Any, n: int) -> Any:
    import rushlight

    check_square("linalg.matrix_power", a, floating=n < 0)
    if n == 0:
        return identity(a.shape[-1], a) + a.masked_fill(a.new_ones((), dtype=rushlight.bool), 0)  # whose gradient is 0
    if n < 0:
        a, info = inv_ex.operator(a)
        check_inverted("linalg.matrix_power", info)
        n = -n
        if n == 1:
            return a
    elif n == 1:
        return a.clone()
    if 0 < a.shape[-1] <= LANES and is_inexact(a) and a.dtype.itemsize > 2:
        return _small_power.operator(a, n)
    result = None
    while True:
        if n & 1:
            result = a if result is None else result @ a
        n >>= 1
        if not n:
            return result
        a = a @ a


# -- products

multi_dot = (
    Op(
        "linalg::multi_dot(Tensor[] tensors) -> Tensor",
        family=COMPOSITE,
        method=False,
        exact=True,
        doc="""Product of two or more matrices in the order that takes the fewest operations.

        Args:
            tensors: 2-d tensors of one dtype whose sizes fit; the first may be a row vector, the last a column vector,
                of one dimension.

        Returns:
            Tensor of two dimensions, less one for each vector.

        Raises:
            RuntimeError: There are less than two tensors, or their sizes or dtypes do not fit.

        Example:
            >>> rushlight.linalg.multi_dot([rushlight.ones(2, 3), rushlight.ones(3, 4), rushlight.ones(4)])
            tensor([12., 12.])
        """,
    )
    .composite(_C.multi_dot)
    .samples(
        lambda make, dtype: (
            (
                Sample(([make(2, 3), make(3, 4), make(4, 2)],)),
                Sample(([make(3), make(3, 4), make(4)],)),
                Sample(([make(2, 3), make(3)],)),
            )
            if (dtype.is_floating_point or dtype.is_complex) and dtype.itemsize > 2
            else ()
        ),
        np.linalg.multi_dot,
    )
)


vecdot = (
    Op(
        "linalg::vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
        family=COMPOSITE,
        method=False,
        exact=True,
        doc="""Inner products along a dimension, of the conjugate of x where complex.

        Args:
            x: Floating or complex tensor.
            y: Tensor of the same dtype; the shapes broadcast.
            dim: The dimension of the vectors.

        Returns:
            Tensor of the broadcast shape without `dim`.

        Raises:
            RuntimeError: The dtypes differ, or are not floating or complex.

        Example:
            >>> rushlight.linalg.vecdot(rushlight.tensor([1.0, 2.0]), rushlight.tensor([3.0, 4.0]))
            tensor(11.)
        """,
    )
    .composite(lambda x, y, *, dim: _vecdot(x, y, dim))
    .samples(
        inexact(
            lambda make, dtype: (
                Sample((make(3), make(3))),
                Sample((make(2, 3), make(3))),
                Sample((make(3, 2), make(3, 1)), {"dim": 0}),
            )
        ),
        lambda x, y, dim=-1: (np.conj(x) * y).sum(dim),
    )
)


def _vecdot(x: Any, y: Any, dim: int) -> Any:
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype}")
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {x.dtype} and y of type "
            f"{y.dtype} instead"
        )
    if x.ndim == y.ndim == 1 and x.shape == y.shape and dim in (0, -1):
        return x.vdot(y)
    if x.ndim and y.ndim and dim in (-1, max(x.ndim, y.ndim) - 1) and x.shape[-1] == y.shape[-1]:
        return (x.conj().unsqueeze(-2) @ y.unsqueeze(-1)).squeeze(-1).squeeze(-1)
    return (x.conj() * y).sum(dim)


# -- functions of the core


def _core(name: str) -> Any:
    import rushlight

    return getattr(rushlight, name)


cross = (
    Op(
        "linalg::cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
        family=COMPOSITE,
        method=False,
        exact=True,
        doc="""Cross products of vectors of three elements.

        Args:
            input: Tensor with size 3 in `dim`.
            other: Tensor of the same dtype and number of dimensions that broadcasts with it.
            dim: The dimension of the vectors.

        Returns:
            Tensor of the broadcast shape.

        Raises:
            RuntimeError: The dimension has another size, or dtypes or numbers of dimensions differ.

        Example:
            >>> rushlight.linalg.cross(rushlight.tensor([1, 0, 0]), rushlight.tensor([0, 1, 0]))
            tensor([0, 0, 1])
        """,
    )
    .composite(lambda self, other, *, dim: _core("cross")(self, other, dim))
    .samples(lambda make, dtype: (Sample((make(4, 3), make(1, 3))),), lambda a, b: np.cross(a, b))
)
diagonal = (
    Op(
        "linalg::diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
        family=COMPOSITE,
        method=False,
        doc="""A view of the diagonals of matrices, as `rushlight.diagonal` with other defaults.

        Args:
            A: Tensor (*, m, n).
            offset: Which diagonal: positive above the main one.
            dim1: First dimension of the matrices.
            dim2: Second dimension of the matrices.

        Returns:
            Tensor (*, k), a view.

        Example:
            >>> rushlight.linalg.diagonal(rushlight.tensor([[1, 2], [3, 4]]))
            tensor([1, 4])
        """,
    )
    .composite(lambda A, *, offset, dim1, dim2: A.diagonal(offset, dim1, dim2))
    .samples(
        lambda make, dtype: (Sample((make(2, 3, 4),), {"offset": k}) for k in (0, 1, -1)),
        lambda a, offset: np.diagonal(a, offset, -2, -1),
    )
)
matrix_transpose = (
    Op(
        "linalg::matrix_transpose(Tensor(a) A) -> Tensor(a)",
        family=COMPOSITE,
        method=False,
        doc="""A view of the matrices transposed.

        Args:
            A: Tensor (*, m, n).

        Returns:
            Tensor (*, n, m), a view.

        Example:
            >>> rushlight.linalg.matrix_transpose(rushlight.zeros(2, 3)).shape
            torch.Size([3, 2])
        """,
    )
    .composite(lambda A: A.mT)
    .samples(lambda make, dtype: (Sample((make(2, 3, 4),)),), lambda a: np.swapaxes(a, -2, -1))
)
trace = (
    Op(
        "linalg::trace(Tensor A, *, int offset=0) -> Tensor",
        family=COMPOSITE,
        method=False,
        doc="""Sums of the diagonals of matrices; of integers in int64.

        Args:
            A: Tensor (*, m, n).
            offset: Which diagonal: positive above the main one.

        Returns:
            Tensor (*).

        Example:
            >>> rushlight.linalg.trace(rushlight.tensor([[1, 2], [3, 4]]))
            tensor(5)
        """,
    )
    .composite(lambda A, *, offset: A.diagonal(offset, -2, -1).sum(-1))
    .samples(
        lambda make, dtype: (Sample((make(2, 3, 4),), {"offset": 1}),) if dtype.itemsize > 1 else (),
        lambda a, offset: np.trace(a, offset, -2, -1),
    )
)
vander = (
    Op(
        "linalg::vander(Tensor x, *, int? N=None) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""Vandermonde matrices: the powers of each element, from 0 on.

        Args:
            x: Tensor (*, n).
            N: How many powers; by default n.

        Returns:
            Tensor (*, n, N).

        Raises:
            RuntimeError: N is less than 2.

        Example:
            >>> rushlight.linalg.vander(rushlight.tensor([1, 2, 3]))
            tensor([[1, 1, 1],
                    [1, 2, 4],
                    [1, 3, 9]])
        """,
    )
    .composite(lambda x, *, N: _vander(x, N))
    .samples(
        lambda make, dtype: (
            (Sample((make(3, low=-1, high=2),)), Sample((make(2, 3, low=-1, high=2),), {"N": 4}))
            if dtype.itemsize > 1
            else ()
        ),
        lambda x, N=None: x[..., None] ** np.arange(N or x.shape[-1]),
    )
)


def _vander(x: Any, N: int | None) -> Any:
    import rushlight

    if x.dtype is rushlight.bool:
        raise NotImplementedError("\"vander\" not implemented for 'Bool'")
    if x.ndim == 0:
        x = x.unsqueeze(0)
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError(f"N must be greater than 1, got N={count} (linalg.vander).")
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(rushlight.int64)
    column = x.unsqueeze(-1)
    return rushlight.cat((rushlight.ones_like(column), column.expand(*x.shape, count - 1).cumprod(-1)), -1)
