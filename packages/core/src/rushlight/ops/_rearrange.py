"""Whole dimensions in other orders and numbers: triangles, diagonals, flips, repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _C
from .._op import COMPOSITE, Op, Sample
from ._view import _calls


def _np_fill_diagonal(x: np.ndarray, value: Any, wrap: bool = False) -> np.ndarray:
    x = x.copy()
    np.fill_diagonal(x, value, wrap)
    return x


def _triangle(name: str, part: str, numpy: Any) -> Op:
    return (
        Op(
            f"{name}(Tensor self, int diagonal=0) -> Tensor",
            inplace=True,
            doc=f"""The part of matrices on and {part} a diagonal; zeros elsewhere.

            Args:
                input: Tensor of at least two dimensions, of which the last two are the matrices'.
                diagonal: Which one: above the main diagonal when positive, below it when negative.

            Returns:
                Tensor of the shape of the input.

            Raises:
                RuntimeError: The input has less than two dimensions.
            """,
        )
        .array(lambda xp, x, diagonal: getattr(xp, name)(x, diagonal))
        .grad(self=f"{name}(grad, diagonal)")
        .samples(_calls(((3, 4),), ((3, 4), 1), ((4, 3), -2), ((2, 3, 3), 0)), numpy)
    )


tril = _triangle("tril", "below", np.tril)
triu = _triangle("triu", "above", np.triu)
diag_embed = (
    Op(
        "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
        doc=(
            "Matrices in dimensions `dim1` and `dim2` with the last dimension of the input on a diagonal, "
            "zeros elsewhere."
        ),
    )
    .grad(self="diagonal(grad, offset, dim1, dim2)")
    .samples(
        _calls(((3,),), ((2, 3), 1), ((2, 3), -1, 0, 2)),
        lambda x, offset=0, dim1=-2, dim2=-1: _diag_embed(x, offset, dim1, dim2),
    )
)
diag = (
    Op(
        "diag(Tensor self, int diagonal=0) -> Tensor",
        exact=True,
        family=COMPOSITE,
        doc="The matrix with a vector on a diagonal, or a copy of a matrix's diagonal.",
    )
    .composite(lambda self, diagonal: _diag(self, diagonal))
    .samples(_calls(((3,),), ((3,), -1), ((3, 4), 1)), np.diag)
)
fill_diagonal_ = (
    Op(
        "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
        family=COMPOSITE,
        function=False,
        doc="""Sets the elements whose indices are all equal to one number.

        Args:
            fill_value: The number.
            wrap: Whether the diagonal of a matrix of more rows than columns begins again after each square.

        Returns:
            This tensor.

        Raises:
            RuntimeError: There are less than two dimensions, or more than two that differ.

        Example:
            >>> rushlight.zeros(2, 2).fill_diagonal_(1)
            tensor([[1., 0.],
                    [0., 1.]])
        """,
    )
    .composite(lambda self, fill_value, wrap: _fill_diagonal(self, fill_value, wrap))
    .samples(_calls(((3, 3), 2), ((2, 4), 1), ((7, 3), 1), ((7, 3), 1, True), ((2, 2, 2), 1)), _np_fill_diagonal)
)
diagflat = (
    Op(
        "diagflat(Tensor self, int offset=0) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="The matrix with all elements on a diagonal.",
    )
    .composite(lambda self, offset: self.reshape(-1).diag_embed(offset))
    .samples(_calls(((3,),), ((2, 2), 1), ((), 0)), np.diagflat)
)
flip = (
    Op(
        "flip(Tensor self, int[] dims) -> Tensor",
        doc="""The elements of dimensions in reverse order, as a copy.

        Args:
            input: Tensor of any shape.
            dims: Dimensions, loose or as one sequence.

        Returns:
            Tensor of the shape of the input.

        Example:
            >>> rushlight.arange(3).flip(0)
            tensor([2, 1, 0])
        """,
    )
    .array(lambda xp, x, dims: xp.flip(x, tuple(dims)).copy())
    .grad(self="flip(grad, dims)")
    .samples(_calls(((3,), (0,)), ((2, 3, 4), (0, -1)), ((2, 3), (1,)), ((2, 3), ())), np.flip)
)
fliplr = (
    Op("fliplr(Tensor self) -> Tensor", family=COMPOSITE, out=False, doc="`flip` in dimension 1.")
    .composite(lambda self: _flip_one(self, 1))
    .samples(_calls(((2, 3),)), np.fliplr)
)
flipud = (
    Op("flipud(Tensor self) -> Tensor", family=COMPOSITE, out=False, doc="`flip` in dimension 0.")
    .composite(lambda self: _flip_one(self, 0))
    .samples(_calls(((2, 3),)), np.flipud)
)
roll = (
    Op(
        "roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor",
        out=False,
        doc="""Elements moved on by `shifts` in dimensions; those that leave come back at the other end.

        Args:
            input: Tensor of any shape.
            shifts: By how much, one number a dimension.
            dims: Dimensions; without them the tensor is rolled in row-major order as if it were flat.

        Returns:
            Tensor of the shape of the input.

        Raises:
            RuntimeError: `shifts` and `dims` differ in number.
        """,
    )
    .grad(self="roll(grad, negative(shifts), dims)")
    .samples(_calls(((5,), 2), ((2, 3), 1), ((2, 3), (1, -1), (0, 1)), ((2, 3), (4,), (1,))), np.roll)
)
rot90 = (
    Op(
        "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="Quarter turns in the plane of two dimensions, from the first towards the second.",
    )
    .composite(lambda self, k, dims: _rot90(self, k, dims))
    .samples(_calls(((2, 3),), ((2, 3), 2), ((2, 3, 4), -1, (0, 2))), lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims))
)

# -- repetitions

repeat = (
    Op(
        "repeat(Tensor self, int[] repeats) -> Tensor",
        function=False,
        out=False,
        doc="""The tensor as a tile, `repeats` times in each dimension; further dimensions go in front.

        Args:
            repeats: Numbers of times, at least one a dimension.

        Returns:
            A copy with sizes `repeats[i] * size[i]`.

        Raises:
            RuntimeError: There are less numbers than dimensions.
        """,
    )
    .grad(self=lambda grad, self_shape, repeats: _repeat_grad(grad, self_shape, repeats))
    .samples(_calls(((3,), (2,)), ((2, 3), (2, 1)), ((2, 3), (2, 1, 3)), ((), (2, 2)), ((2,), (0,))), np.tile)
)
tile = Op(
    "tile(Tensor self, int[] dims) -> Tensor",
    family=COMPOSITE,
    out=False,
    doc="`repeat`, with ones for dimensions in front that `dims` leaves out.",
).samples(_calls(((3,), (2,)), ((2, 3), (2,)), ((2, 3), (2, 1, 3))), np.tile)
repeat_interleave = (
    Op(
        "repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="""Every element of a dimension several times in a row.

        Args:
            input: Tensor of any shape.
            repeats: How often, one number for all or a vector with one each.
            dim: Dimension; without it the tensor is flattened.
            output_size: Size of the result in `dim`, accepted for compatibility.

        Returns:
            Tensor that is longer in `dim`.

        Raises:
            RuntimeError: A number is negative.
        """,
    )
    .composite(lambda self, repeats, dim, *, output_size: _interleave(self, repeats, dim))
    .samples(_calls(((3,), 2), ((2, 3), 2), ((2, 3), 3, 1), ((2, 3), 0, 0)), np.repeat)
)
repeat_interleave_each = (
    Op(
        "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor",
        dynamic=True,
        family=COMPOSITE,
        out=False,
        doc=repeat_interleave.doc,
    )
    .composite(lambda self, repeats, dim, *, output_size: _interleave_each(self, repeats, dim))
    .samples(
        lambda make, dtype: [
            Sample((make(2, 3), _C.tensor([1, 2], device=make.device), 0)),
            Sample((make(2), _C.tensor([0, 3], device=make.device))),
        ],
        np.repeat,
    )
)
repeat_interleave_indices = (
    Op(
        "repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor",
        dynamic=True,
        family=COMPOSITE,
        method=False,
        out=False,
        differentiable=False,
        doc="Every position `repeats` times in a row.",
    )
    .composite(lambda repeats, *, output_size: _positions(repeats, repeats.numel()))
    .samples(
        lambda make, dtype: [Sample((_C.tensor([1, 0, 2], device=make.device),))],
        lambda n: np.repeat(np.arange(len(n)), n),
    )
)


# -- definitions


def _diag(x: Any, k: int) -> Any:
    if x.ndim == 1:
        return x.diag_embed(k)
    if x.ndim == 2:
        return x.diagonal(k).clone()
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {x.ndim}D")


def _diag_embed(x: np.ndarray, offset: int, dim1: int, dim2: int) -> np.ndarray:
    matrices = np.zeros((*x.shape[:-1], x.shape[-1] + abs(offset), x.shape[-1] + abs(offset)), x.dtype)
    i = np.arange(x.shape[-1])
    matrices[..., i + max(-offset, 0), i + max(offset, 0)] = x
    return np.moveaxis(matrices, (-2, -1), (dim1, dim2))


def _fill_diagonal(x: Any, value: Any, wrap: bool) -> Any:
    if x.ndim < 2:
        raise RuntimeError(f"dimensions must larger than 1 (fill_diagonal_, got {x.ndim})")
    if x.ndim > 2:
        if len(set(x.shape)) > 1:
            raise RuntimeError(f"all dimensions of input must be of equal length, got shape={list(x.shape)}")
        x.as_strided((x.shape[0],), (sum(x.stride()),), x.storage_offset()).fill_(value)
        return x
    rows, columns = x.shape
    for top in range(0, rows, columns + 1) if wrap else (0,):
        x.narrow(0, top, min(columns, rows - top)).diagonal().fill_(value)
    return x


def _flip_one(x: Any, dim: int) -> Any:
    name = "fliplr" if dim else "flipud"
    if x.ndim <= dim:
        raise RuntimeError(f"Input must be >= {dim + 1}-d. ({name}, got {x.ndim} dimensions)")
    return x.flip(dim)


def _rot90(x: Any, k: int, dims: Sequence[int]) -> Any:
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if x.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {x.ndim}")
    for dim in dims:
        if not -x.ndim <= dim < x.ndim:
            raise RuntimeError(f"Rotation dim out of range, got dims = {dim} for a tensor of {x.ndim} dimensions")
    a, b = (dim % x.ndim for dim in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    match k % 4:
        case 1:
            return x.flip(b).transpose(a, b)
        case 2:
            return x.flip(a, b)
        case 3:
            return x.flip(a).transpose(a, b)
    return x.clone()


def _repeat_grad(grad: Any, shape: Sequence[int], repeats: Sequence[int]) -> Any:
    """Sums over the repetitions: each dimension seen as (repeats, size)."""
    if 0 in repeats:
        return grad.new_zeros(shape)
    padded = (1,) * (len(repeats) - len(shape)) + tuple(shape)
    split = [n for pair in zip(repeats, padded, strict=True) for n in pair]
    return grad.reshape(split).sum(tuple(range(0, len(split), 2))).reshape(shape) if split else grad


def _interleave(x: Any, repeats: int, dim: int | None) -> Any:
    if repeats < 0:
        raise RuntimeError(f"repeats can not be negative, got repeats={repeats}")
    if dim is None or not x.ndim:
        x, dim = x.reshape(-1), 0
    if not -x.ndim <= dim < x.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-x.ndim}, {x.ndim - 1}], but got {dim})"
        )
    dim %= x.ndim
    wide = x.unsqueeze(dim + 1).expand(*x.shape[: dim + 1], repeats, *x.shape[dim + 1 :])
    return wide.clone(memory_format=_C.contiguous_format).flatten(dim, dim + 1)


def _positions(repeats: Any, n: int) -> Any:
    if repeats.dtype not in (_C.int64, _C.int32):
        raise RuntimeError(f"repeats has to be Long or Int tensor, got {repeats.dtype}")
    if repeats.ndim > 1:
        raise RuntimeError(
            f"repeat_interleave only accept 1D vector as repeat, got a tensor of shape {list(repeats.shape)}"
        )
    counts = repeats.cpu().numpy()
    if (counts < 0).any():
        raise RuntimeError("repeats can not be negative")
    return _C.tensor(np.repeat(np.arange(n), counts), device=repeats.device)


def _interleave_each(x: Any, repeats: Any, dim: int | None) -> Any:
    if dim is None or not x.ndim:
        x, dim = x.reshape(-1), 0
    if not -x.ndim <= dim < x.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-x.ndim}, {x.ndim - 1}], but got {dim})"
        )
    if repeats.ndim and repeats.numel() not in (1, x.shape[dim]):
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.numel()} "
            f"and input.size({dim}) = {x.shape[dim]}"
        )
    return x.index_select(dim, _positions(repeats, x.shape[dim]))
