"""Several tensors as one, and shapes that several tensors share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import _C
from .._op import COMPOSITE, FUNCTION, Op, Sample
from ._samples import Sampler


def _lists(*calls: tuple[Any, ...]) -> Sampler:
    """Samples from (shapes, *arguments): a list of tensors first."""

    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        for shapes, *args in calls:
            yield Sample(([make(*shape) for shape in shapes], *args))

    return samples


cat = (
    Op(
        "cat(Tensor[] tensors, int dim=0) -> Tensor",
        exact=False,
        family=FUNCTION,
        method=False,
        aliases=("concat", "concatenate"),
        doc="""Tensors one after the other in a dimension.

        Args:
            tensors: Tensors of the same shape apart from `dim`; empty vectors are passed over.
            dim: Dimension.

        Returns:
            Tensor of the promoted dtype.

        Raises:
            ValueError: The list is empty.
            RuntimeError: The shapes do not fit.

        Example:
            >>> rushlight.cat([rushlight.tensor([1, 2]), rushlight.tensor([3])])
            tensor([1, 2, 3])
        """,
    )
    .grad(tensors="unjoin(grad, tensors, dim)")
    .samples(
        _lists((((2, 3), (1, 3)),), (((2, 3), (2, 1)), 1), (((2,),),), (((0,), (2, 2)),)),
        lambda tensors, dim=0: np.concatenate([t for t in tensors if t.shape != (0,)], dim),
    )
)
stack = (
    Op(
        "stack(Tensor[] tensors, int dim=0) -> Tensor",
        exact=False,
        family=FUNCTION,
        method=False,
        doc="""Tensors of one shape side by side in a new dimension.

        Args:
            tensors: Tensors of equal shape.
            dim: Where the new dimension goes.

        Returns:
            Tensor of the promoted dtype.

        Raises:
            RuntimeError: The list is empty, or the shapes differ.

        Example:
            >>> rushlight.stack([rushlight.tensor(1), rushlight.tensor(2)])
            tensor([1, 2])
        """,
    )
    .grad(tensors="unbind(grad, dim)")
    .samples(_lists((((2, 3), (2, 3)),), (((2, 3), (2, 3)), -1), (((), ()),)), np.stack)
)


def _joined(name: str, doc: str, aliases: Sequence[str], fn: Callable[[Any], Any], numpy: Any) -> Op:
    op = Op(f"{name}(Tensor[] tensors) -> Tensor", family=COMPOSITE, method=False, aliases=aliases, doc=doc)
    return op.composite(fn).samples(_lists((((2,), (2,)),), (((2, 3), (2, 3)),), (((), ()),)), numpy)


hstack = _joined(
    "hstack",
    "`cat` in dimension 1, of vectors in their only one.",
    (),
    lambda tensors: _cat([_at_least(t, 1) for t in tensors], 1 if tensors and tensors[0].ndim > 1 else 0),
    np.hstack,
)
vstack = _joined(
    "vstack",
    "`cat` in dimension 0 of tensors seen as matrices.",
    ("row_stack",),
    lambda tensors: _cat([_at_least(t, 2) for t in tensors], 0),
    np.vstack,
)
dstack = _joined(
    "dstack",
    "`cat` in dimension 2 of tensors seen as having three.",
    (),
    lambda tensors: _cat([_at_least(t, 3) for t in tensors], 2),
    np.dstack,
)
column_stack = _joined(
    "column_stack",
    "Vectors as the columns of a matrix; matrices side by side.",
    (),
    lambda tensors: _cat([t if t.ndim > 1 else t.reshape(-1, 1) for t in tensors], 1),
    np.column_stack,
)


def _atleast(n: int, numpy: Any) -> tuple[Op, Op]:
    doc = f"The tensor, or each of several, with at least {n} dimension{'s' if n > 1 else ''}."
    one = Op(
        f"atleast_{n}d(Tensor self) -> Tensor", family=COMPOSITE, method=False, function=False, out=False, doc=doc
    ).composite(lambda self: _at_least(self, n))
    many = Op(
        f"atleast_{n}d.Sequence(Tensor[] tensors) -> Tensor[]",
        family=COMPOSITE,
        method=False,
        function=False,
        out=False,
        mixed_devices=True,
        doc=doc,
    )
    shapes = ((), (2,), (2, 3), (2, 3, 4))
    one.samples(lambda make, dtype: (Sample((make(*shape),)) for shape in shapes), numpy)
    many.composite(lambda tensors: tuple(_at_least(t, n) for t in tensors))
    return one, many.samples(_lists((shapes,)), lambda tensors: numpy(*tensors))


atleast_1d, atleast_1d_list = _atleast(1, np.atleast_1d)
atleast_2d, atleast_2d_list = _atleast(2, np.atleast_2d)
atleast_3d, atleast_3d_list = _atleast(3, np.atleast_3d)
broadcast_tensors = (
    Op(
        "broadcast_tensors(Tensor[] tensors) -> Tensor[]",
        family=COMPOSITE,
        method=False,
        function=False,
        out=False,
        doc="Views of tensors, expanded to the shape that they share; those that have it stay themselves.",
    )
    .composite(lambda tensors: _broadcast(tensors))
    .samples(_lists((((2, 1), (3,)),), (((), (2,)),)), lambda tensors: np.broadcast_arrays(*tensors))
)
meshgrid = (
    Op(
        "meshgrid(Tensor[] tensors, *, str? indexing=None) -> Tensor[]",
        family=COMPOSITE,
        method=False,
        function=False,
        out=False,
        doc="""Coordinates of a grid: for every vector a tensor over all combinations.

        Args:
            tensors: Vectors or 0-d tensors of one dtype.
            indexing: "ij" (rows first, the default) or "xy" (columns first).

        Returns:
            Tuple of views, one a vector.

        Raises:
            RuntimeError: A tensor has more than one dimension, dtypes differ, or `indexing` is unknown.
        """,
    )
    .composite(lambda tensors, *, indexing: _meshgrid(tensors, indexing))
    .samples(_lists((((2,), (3,)),), (((2,), (3,), (4,)),)), lambda tensors: np.meshgrid(*tensors, indexing="ij"))
)
block_diag = (
    Op(
        "block_diag(Tensor[] tensors) -> Tensor",
        family=COMPOSITE,
        method=False,
        function=False,
        out=False,
        doc="A matrix with matrices along its diagonal, zeros elsewhere.",
    )
    .composite(lambda tensors: _block_diag(tensors))
    .samples(_lists((((2, 3), (1, 1)),), (((2,), ()),)), lambda tensors: _block_diag_numpy(tensors))
)
cartesian_prod = (
    Op(
        "cartesian_prod(Tensor[] tensors) -> Tensor",
        family=COMPOSITE,
        method=False,
        function=False,
        out=False,
        doc="All combinations of one element of each vector, a row each; of one vector itself.",
    )
    .composite(lambda tensors: _cartesian_prod(tensors))
    .samples(
        _lists((((2,), (3,)),), (((2,),),)),
        lambda tensors: np.array(list(itertools.product(*tensors))) if len(tensors) > 1 else tensors[0],
    )
)
combinations = (
    Op(
        "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="All choices of `r` elements of a vector, a row each, as `itertools.combinations`.",
    )
    .composite(lambda self, r, with_replacement: _combinations(self, r, with_replacement))
    .samples(
        lambda make, dtype: (Sample((make(4), *args)) for args in ((), (3,), (2, True))),
        lambda x, r=2, again=False: np.array(list(_choices(again)(x, r))),
    )
)


# -- definitions


def _cat(tensors: Sequence[Any], dim: int) -> Any:
    return cat.operator(tensors, dim)


def _at_least(x: Any, n: int) -> Any:
    if x.ndim >= n:
        return x
    if n == 3 and x.ndim:
        return x.unsqueeze(-1) if x.ndim == 2 else x.unsqueeze(0).unsqueeze(-1)
    return x.unsqueeze(0) if n - x.ndim == 1 else x.reshape((1,) * n)


def _broadcast(tensors: Sequence[Any]) -> tuple[Any, ...]:
    shape: list[int] = []
    for t in tensors:
        padded = [1] * (len(shape) - t.ndim) + list(t.shape)
        shape = [1] * (len(padded) - len(shape)) + shape
        for d, (a, b) in enumerate(zip(shape, padded, strict=True)):
            if a != b and 1 not in (a, b):
                raise RuntimeError(
                    f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {d}"
                )
        shape = [b if a == 1 else a for a, b in zip(shape, padded, strict=True)]
    return tuple(t if list(t.shape) == shape else t.expand(shape) for t in tensors)


def _meshgrid(tensors: Sequence[Any], indexing: str | None) -> tuple[Any, ...]:
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for t in tensors:
        if t.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor of shape {list(t.shape)}"
            )
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(tensors) > 1
    order = [tensors[1], tensors[0], *tensors[2:]] if swap else tensors
    shape = [t.numel() for t in order]
    grids = [t.reshape([1] * i + [-1] + [1] * (len(shape) - i - 1)).expand(shape) for i, t in enumerate(order)]
    if swap:
        grids[:2] = grids[1::-1]
    return tuple(grids)


def _matrix(t: Any, i: int) -> Any:
    if t.ndim > 2:
        raise RuntimeError(
            f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.ndim} dimensions"
        )
    return t.reshape((1, -1)) if t.ndim < 2 else t


def _block_diag(tensors: Sequence[Any]) -> Any:
    if not tensors:
        return _C.tensor([[]])
    blocks = [_matrix(t, i) for i, t in enumerate(tensors)]
    width, rows, at = sum(b.shape[1] for b in blocks), [], 0
    height = max(b.shape[0] for b in blocks)
    zeros = blocks[0].new_zeros(height, width)
    for b in blocks:
        rows.append(_cat([zeros[: b.shape[0], :at], b, zeros[: b.shape[0], at + b.shape[1] :]], 1))
        at += b.shape[1]
    return _cat(rows, 0)


def _block_diag_numpy(tensors: Sequence[np.ndarray]) -> np.ndarray:
    blocks = [np.atleast_2d(t) for t in tensors]
    result = np.zeros(np.sum([b.shape for b in blocks], axis=0), blocks[0].dtype)
    row = column = 0
    for b in blocks:
        result[row : row + b.shape[0], column : column + b.shape[1]] = b
        row, column = row + b.shape[0], column + b.shape[1]
    return result


def _cartesian_prod(tensors: Sequence[Any]) -> Any:
    for t in tensors:
        if t.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack.operator([g.flatten() for g in _meshgrid(tensors, None)], 1)


def _choices(with_replacement: bool) -> Any:
    return itertools.combinations_with_replacement if with_replacement else itertools.combinations


def _combinations(x: Any, r: int, with_replacement: bool) -> Any:
    if x.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return x.new_empty(0)
    if r == 2:
        from ._creation import triu_indices

        n = x.numel()
        first, second = triu_indices.operator(n, n, int(not with_replacement), device=x.device).unbind(0)
        return stack.operator([x[first], x[second]], 1)
    # More than there are cannot be chosen, which the generator would find out slowly.
    chosen = _choices(with_replacement)(range(x.numel()), r) if with_replacement or r <= x.numel() else ()
    places = np.array(list(chosen), np.int64).reshape(-1, r)
    return x[_C.tensor(places, device=x.device)]
