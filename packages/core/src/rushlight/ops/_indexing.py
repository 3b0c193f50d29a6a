"""Elements moved to and from places that indices and masks name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import _C
from .._op import COMPOSITE, FUNCTION, Op, Sample
from ._samples import Sampler, unary


def _indexed(*calls: tuple[Any, ...]) -> Sampler:
    """Samples from (shape, dim, index, *shapes of further tensors); a trailing dict holds keywords."""

    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        for shape, dim, index, *rest in calls:
            named = rest.pop() if rest and isinstance(rest[-1], dict) else {}
            places = _C.tensor(index, dtype=_C.int64, device=make.device)
            extra = [make(*each) if isinstance(each, tuple) else each for each in rest]
            yield Sample((make(*shape), dim, places, *extra), named)
            if len(shape) == 2:
                yield Sample((make(*reversed(shape)).t(), dim, places, *extra), named)

    return samples


def _masked(*calls: tuple[Any, ...]) -> Sampler:
    """Samples from (shape, mask, *shapes of further tensors)."""

    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        for shape, mask, *rest in calls:
            extra = [make(*each) if isinstance(each, tuple) else each for each in rest]
            yield Sample((make(*shape), _C.tensor(mask, device=make.device), *extra))

    return samples


# -- index tensors in any dimension


def _key(indices: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(slice(None) if i is None else i for i in indices)


def _index_put(xp: Any, x: Any, indices: Sequence[Any], values: Any, accumulate: bool) -> Any:
    result = x.copy()
    if accumulate:
        xp.add.at(result, _key(indices), values)
    else:
        result[_key(indices)] = values
    return result


index = (
    Op(
        "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
        family=FUNCTION,
        method=False,
        function=False,
        out=False,
        mixed_devices=True,
        doc="`x[indices]`, with an index tensor or a mask for every dimension that is not None.",
    )
    .array(lambda xp, x, indices: x[_key(indices)])
    .grad(self="index_put(zeros_of(self), indices, grad, True)")
    .samples(
        lambda make, dtype: (
            Sample((make(4, 3), tuple(None if i is None else _C.tensor(i, device=make.device) for i in indices)))
            for indices in (([2, 0],), (None, [[1, 1], [0, 2]]), ([0, 3], [2, -1]), ([True, False, True, False],))
        )
    )
)
index_put = (
    Op(
        "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        family=FUNCTION,
        inplace=True,
        out=False,
        mixed_devices=True,
        doc="""The input with `values` at the places that `indices` choose.

        Args:
            input: Tensor of any shape.
            indices: Tuple of index tensors and masks, one a dimension; None leaves a dimension whole.
            values: Tensor of the same dtype that broadcasts to the shape of `input[indices]`.
            accumulate: Whether values are added to what is there; places that occur more than once add up.

        Returns:
            Tensor of the shape of the input.

        Raises:
            IndexError: An index is out of bounds.

        Example:
            >>> x = rushlight.zeros(3)
            >>> x.index_put_((rushlight.tensor([0, 0, 2]),), rushlight.ones(3), accumulate=True)
            tensor([2., 0., 1.])
        """,
    )
    .nondeterministic("cuda")
    .array(_index_put)
    .grad(
        self="grad if accumulate else index_put(grad, indices, zeros_of(values), False)",
        values="sum_to(index(grad, indices), values)",
    )
    .samples(
        lambda make, dtype: (
            Sample((make(4, 3), (_C.tensor(rows, device=make.device),), make(*shape), accumulate))
            for rows, shape, accumulate in (
                ([2, 0], (2, 3), False),
                ([1, 1, 3], (3,), True),
                ([True, False, True, False], (), False),
            )
        ),
        lambda x, indices, values, accumulate: _index_put(np, x, indices, values, accumulate),
    )
)

# -- one dimension by a vector of indices


def _along(x: Any, dim: int, index: Any) -> tuple[Any, ...]:
    return (slice(None),) * (dim % max(x.ndim, 1)) + (index,)


def _index_write(xp: Any, x: Any, dim: int, index: Any, source: Any, alpha: Any = None) -> Any:
    result = x.copy()
    key = _along(x, dim, xp.reshape(index, -1))
    if alpha is None:
        result[key] = source
    else:
        xp.add.at(result, key, source * xp.asarray(alpha, dtype=source.dtype))
    return result


index_select = (
    Op(
        "index_select(Tensor self, int dim, Tensor index) -> Tensor",
        doc="""The slices of a dimension that a vector of indices names.

        Args:
            input: Tensor of any shape.
            dim: Dimension.
            index: Vector of int32 or int64, not negative.

        Returns:
            Tensor with as many slices in `dim` as there are indices.

        Raises:
            IndexError: An index is out of range.

        Example:
            >>> rushlight.index_select(rushlight.arange(6).view(2, 3), 1, rushlight.tensor([2, 0]))
            tensor([[2, 0],
                    [5, 3]])
        """,
    )
    .array(lambda xp, x, dim, index: xp.take(x, xp.reshape(index, -1), axis=dim))
    .grad(self="index_add(zeros_of(self), dim, index, grad)", index=None)
    .samples(_indexed(((3, 4), 0, [2, 0, 2]), ((3, 4), -1, [1]), ((5,), 0, [])))
)
index_add = (
    Op(
        "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
        inplace=True,
        doc=(
            "The input with slices of `source`, times `alpha`, added at the indices of a dimension; equal "
            "indices add up."
        ),
    )
    .nondeterministic("cuda")
    .array(lambda xp, x, dim, index, source, alpha: _index_write(xp, x, dim, index, source, alpha))
    .grad(self="grad", index=None, source="index_select(grad, dim, index) * conj(alpha)")
    .samples(
        _indexed(((3, 4), 0, [2, 0, 2], (3, 4)), ((3, 4), 1, [1], (3, 1), {"alpha": 2})),
        lambda x, dim, index, source, alpha=1: _index_write(np, x, dim, index, source, alpha),
    )
)
index_copy = (
    Op(
        "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
        inplace=True,
        doc="The input with slices of `source` in place of its own at the indices of a dimension.",
    )
    .nondeterministic("cuda")
    .array(lambda xp, x, dim, index, source: _index_write(xp, x, dim, index, source))
    .grad(self="index_fill(grad, dim, index, 0)", index=None, source="index_select(grad, dim, index)")
    .samples(_indexed(((3, 4), 0, [2, 0], (2, 4)), ((3, 4), 1, [1], (3, 1))))
)
index_fill = (
    Op(
        "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
        inplace=True,
        doc="The input with one number in the slices that a vector of indices names.",
    )
    .array(lambda xp, x, dim, index, value: _index_write(xp, x, dim, index, value))
    .grad(self="index_fill(grad, dim, index, 0)", index=None)
    .samples(_indexed(((3, 4), 0, [2, 0], 1), ((3, 4), 1, [-1], 1)))
)
index_fill_tensor = (
    Op(
        "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
        inplace=True,
        mixed_devices=True,
        doc=index_fill.doc,
    )
    .array(lambda xp, x, dim, index, value: _index_write(xp, x, dim, index, value))
    .grad(self="index_fill(grad, dim, index, 0)", index=None, value="sum(grad - index_fill(grad, dim, index, 0))")
    .samples(_indexed(((3, 4), 0, [2, 0], ())))
)

# -- a line along a dimension for every place of the index


def _lines(xp: Any, dim: int, index: Any) -> tuple[Any, ...]:
    dims = range(index.ndim)
    grid = [xp.arange(n).reshape([n if e == d else 1 for e in dims]) for d, n in enumerate(index.shape)]
    grid[dim] = index
    return tuple(grid)


def _scatter(xp: Any, x: Any, dim: int, index: Any, src: Any, reduce: str = "") -> Any:
    if not x.ndim:
        x, index = x.reshape(1), index.reshape(1)
        src = src.reshape(1) if hasattr(src, "reshape") else src
        return _scatter(xp, x, dim, index, src, reduce).reshape(())
    result = x.copy()
    if hasattr(src, "ndim") and src.ndim:
        src = src[tuple(slice(n) for n in index.shape)]
    key = _lines(xp, dim, index)
    if not reduce:
        result[key] = src
    else:
        (xp.add if reduce == "add" else xp.multiply).at(result, key, xp.asarray(src, dtype=x.dtype))
    return result


gather = (
    Op(
        "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
        doc="""Elements along a dimension: `out[i][j] = input[index[i][j]][j]` for `dim` 0 of a matrix.

        Args:
            input: Tensor of any shape.
            dim: Dimension along which indices point.
            index: Tensor of int64 of the same number of dimensions; no longer than `input` in the others.
            sparse_grad: Accepted for compatibility; gradients are dense.

        Returns:
            Tensor of the shape of `index`.

        Raises:
            RuntimeError: An index is out of bounds, or the shapes do not fit.

        Example:
            >>> rushlight.gather(rushlight.tensor([[1, 2], [3, 4]]), 1, rushlight.tensor([[0, 0], [1, 0]]))
            tensor([[1, 1],
                    [4, 3]])
        """,
    )
    .array(
        lambda xp, x, dim, index, sparse_grad: x[_lines(xp, dim, index)] if x.ndim else x.reshape(index.shape).copy()
    )
    .grad(self="scatter_add(zeros_of(self), dim, index, grad)", index=None)
    .samples(
        _indexed(
            ((2, 3), 1, [[0, 2], [1, 1]]),
            ((3, 2), 0, [[2, 0]]),
            ((4,), 0, [3, 3, 0]),
            ((2, 3, 2), 1, [[[2, 0]], [[1, 1]]]),
        ),
        lambda x, dim, index: x[_lines(np, dim, index)],
    )
)
scatter = (
    Op(
        "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
        inplace=True,
        doc="""The input with elements of `src` at places along a dimension, the reverse of `gather`.

        Args:
            input: Tensor of any shape.
            dim: Dimension along which indices point.
            index: Tensor of int64 of the same number of dimensions. Of equal places the last one wins.
            src: Tensor at least as long as `index` in every dimension, or a number.
            reduce: "add" or "multiply" to combine with what is there.

        Returns:
            Tensor of the shape of the input.

        Raises:
            RuntimeError: An index is out of bounds, or the shapes do not fit.

        Example:
            >>> rushlight.zeros(3).scatter(0, rushlight.tensor([2, 0]), rushlight.tensor([1.0, 2.0]))
            tensor([2., 0., 1.])
        """,
    )
    .nondeterministic("cuda")
    .array(lambda xp, x, dim, index, src: _scatter(xp, x, dim, index, src))
    .grad(
        self="scatter(grad, dim, index, 0)",
        index=None,
        src=lambda grad, dim, index, src_shape: _source_grad(grad, dim, index, src_shape),
    )
    .samples(_indexed(((2, 3), 1, [[0, 2], [1, 0]], (2, 2)), ((3, 2), 0, [[2, 0]], (2, 3)), ((4,), 0, [3, 0], (2,))))
)
scatter_value = (
    Op("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", inplace=True, doc=scatter.doc)
    .array(lambda xp, x, dim, index, value: _scatter(xp, x, dim, index, value))
    .grad(self="scatter(grad, dim, index, 0)", index=None)
    .samples(_indexed(((2, 3), 1, [[0, 2], [1, 0]], 1)))
)


def _reduce_grad(grad: Any, dim: int, index: Any, src_shape: Sequence[int], reduce: str) -> Any:
    if reduce != "add":
        raise RuntimeError(
            "scatter: reduce='multiply' is not differentiable. Use scatter_add, or multiply by a gathered factor."
        )
    return _source_grad(grad, dim, index, src_shape)


def _same_grad(grad: Any, reduce: str) -> Any:
    if reduce != "add":
        raise RuntimeError(
            "scatter: reduce='multiply' is not differentiable. Use scatter_add, or multiply by a gathered factor."
        )
    return grad


scatter_reduce = (
    Op(
        "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
        inplace=True,
        doc=scatter.doc,
    )
    .nondeterministic("cuda")
    .nondeterministic("cuda")
    .array(lambda xp, x, dim, index, src, reduce: _scatter(xp, x, dim, index, src, reduce))
    .grad(self=_same_grad, index=None, src=_reduce_grad)
    .samples(
        _indexed(((2, 3), 1, [[0, 0], [1, 0]], (2, 2), {"reduce": "add"})),
        lambda x, dim, index, src, reduce: _scatter(np, x, dim, index, src, reduce),
    )
)
scatter_value_reduce = (
    Op(
        "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
        inplace=True,
        doc=scatter.doc,
    )
    .nondeterministic("cuda")
    .array(lambda xp, x, dim, index, value, reduce: _scatter(xp, x, dim, index, value, reduce))
    .grad(self=_same_grad, index=None)
    .samples(
        _indexed(((2, 3), 1, [[0, 0], [1, 0]], 1, {"reduce": "add"})),
        lambda x, dim, index, value, reduce: _scatter(np, x, dim, index, value, reduce),
    )
)
scatter_add = (
    Op(
        "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
        inplace=True,
        doc="The input with elements of `src` added at places along a dimension; equal places add up.",
    )
    .nondeterministic("cuda")
    .array(lambda xp, x, dim, index, src: _scatter(xp, x, dim, index, src, "add"))
    .grad(
        self="grad",
        index=None,
        src=lambda grad, dim, index, src_shape: _source_grad(grad, dim, index, src_shape),
    )
    .samples(_indexed(((2, 3), 1, [[0, 0], [1, 0]], (2, 2)), ((3, 2), 0, [[2, 0]], (1, 2)), ((4,), 0, [3, 3, 0], (3,))))
)


def _numpy_reduce(x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True) -> Any:
    combine = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}.get(reduce, np.add)
    result, counts = x.copy(), np.full(x.shape, int(include_self))
    for at in np.ndindex(*index.shape):
        place = (*at[:dim], index[at], *at[dim + 1 :])
        result[place] = combine(result[place], src[at]) if counts[place] else src[at]
        counts[place] += 1
    if reduce != "mean":
        return result
    counts = np.maximum(counts, 1)
    return result // counts if x.dtype.kind in "iu" else (result / counts).astype(x.dtype)


def _reduced_grads(
    grad: Any, result: Any, self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool
) -> tuple[Any, Any]:
    """Gradients of `scatter_reduce` for the input and the source; equal extremes share theirs."""
    src_shape = src.shape
    if src.ndim != index.ndim:  # a 0-d source or index counts as a vector
        src = src.reshape(-1)[: index.numel()].reshape(index.shape)
    src = src[tuple(slice(n) for n in index.shape)]

    def collected(x: Any, start: Any) -> Any:  # sums over what went into each element
        return (start if include_self else start.new_zeros(start.shape)).scatter_add(dim, index, x)

    def spread(x: Any) -> Any:
        return x.gather(dim, index)

    if reduce == "sum":
        own, others = grad, spread(grad)
    elif reduce == "mean":
        ones = (src.new_ones(src.shape, dtype=_C.int64), self.new_ones(self.shape, dtype=_C.int64))
        own = grad / collected(*ones).clamp(min=1)
        others = spread(own)
    elif reduce == "prod":
        # The product of all but one is zero where another zero is, else that of what is not zero.
        zero, src_zero = (self == 0).to(_C.int64), (src == 0).to(_C.int64)
        filled, src_filled = _where(self == 0, 1, self), _where(src == 0, 1, src)
        product = filled.scatter_reduce(dim, index, src_filled, "prod", include_self=include_self)
        zeros, share = collected(src_zero, zero), grad * product.conj()
        own = _where(zeros == zero, share / filled.conj(), 0)
        others = _where(spread(zeros) == src_zero, spread(share) / src_filled.conj(), 0)
    else:
        taken, src_taken = (self == result).to(grad.dtype), (src == spread(result)).to(grad.dtype)
        share = grad / collected(src_taken, taken).clamp(min=1)
        own, others = taken * share, src_taken * spread(share)
    return own if include_self else own.scatter(dim, index, 0), _in_corner(others, src_shape)


def _source_grad(grad: Any, dim: int, index: Any, shape: Sequence[int]) -> Any:
    return _in_corner(grad.gather(dim, index), shape)


def _in_corner(grad: Any, shape: Sequence[int]) -> Any:
    """The gradient of a source that is longer than the index: nothing reads what lies beyond."""
    if grad.shape == shape:
        return grad
    whole = grad.new_zeros(shape)
    if not grad.numel():
        return whole
    if grad.ndim != len(shape):  # a 0-d source or index counts as a vector
        grad = grad.reshape([1] * len(shape))
    whole[tuple(slice(n) for n in grad.shape)] = grad
    return whole


_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
scatter_reduce_two = (
    Op(
        "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True)"
        " -> Tensor",
        inplace=True,
        doc="""The elements of `src` that go to the same place along a dimension, reduced to one.

        Args:
            input: Tensor of any shape.
            dim: Dimension along which indices point.
            index: Tensor of int32 or int64 of the same number of dimensions.
            src: Tensor of the same dtype, at least as long as `index` in every dimension.
            reduce: "sum", "prod", "mean", "amax" or "amin".
            include_self: Whether the element of the input takes part.

        Returns:
            Tensor of the shape of the input, which is left as it is where no index points.

        Raises:
            RuntimeError: An index is out of bounds, the shapes do not fit, or `reduce` is none of these.

        Example:
            >>> x, places = rushlight.zeros(2), rushlight.tensor([0, 1, 0])
            >>> x.scatter_reduce(0, places, rushlight.tensor([1.0, 2.0, 3.0]), "amax")
            tensor([3., 2.])
        """,
    )
    .nondeterministic("cuda")
    .grad(
        ("self", "src"),
        lambda grad, result, self, dim, index, src, reduce, include_self: _reduced_grads(
            grad, result, self, dim, index, src, reduce, include_self
        ),
    )
    .grad(index=None)
    .samples(
        _indexed(
            *(
                ((3, 3), dim, [[0, 1, 1], [0, 0, 2]], (2, 4), reduce, {"include_self": include})
                for reduce in _REDUCTIONS
                for include in (True, False)
                for dim in (0, 1)
            )
        ),
        _numpy_reduce,
    )
)
index_reduce = (
    Op(
        "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True)"
        " -> Tensor",
        exact=True,
        family=COMPOSITE,
        inplace=True,
        doc="""The slices of `source` that go to the same index of a dimension, reduced to one.

        Args:
            input: Tensor of any shape.
            dim: Dimension.
            index: Vector of int32 or int64, not negative.
            source: Tensor of the same dtype with as many slices in `dim` as there are indices.
            reduce: "prod", "mean", "amax" or "amin".
            include_self: Whether the slices of the input take part.

        Returns:
            Tensor of the shape of the input.

        Raises:
            IndexError: An index is out of range.
            RuntimeError: The shapes or dtypes do not fit, or `reduce` is none of these.
        """,
    )
    .nondeterministic("cuda")
    .composite(
        lambda self, dim, index, source, reduce, *, include_self: _index_reduce(
            self, dim, index, source, reduce, include_self
        )
    )
    .samples(
        _indexed(
            *(
                ((3, 4), dim, [1, 0, 1], (3, 4) if dim == 0 else (3, 3), reduce, {"include_self": include})
                for reduce in _REDUCTIONS[1:]
                for include in (True, False)
                for dim in (0, 1)
            )
        ),
        lambda x, dim, index, source, reduce, include_self: _numpy_reduce(
            x, dim, np.broadcast_to(np.expand_dims(index, 1 - dim), source.shape), source, reduce, include_self
        ),
    )
)


def _index_reduce(x: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool) -> Any:
    if reduce not in _REDUCTIONS[1:]:
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    if index.dtype not in (_C.int32, _C.int64):
        raise RuntimeError(f"index_reduce_(): Expected dtype int32/int64 for index but got: {index.dtype}")
    if index.ndim > 1:
        raise IndexError(
            "index_reduce_(): Index is supposed to be a vector, "
            f"but got dim: {index.ndim} and size: {list(index.shape)}"
        )
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"index_reduce_(): self ({x.dtype}) and source ({source.dtype}) must have the same scalar type"
        )
    at = dim + x.ndim if dim < 0 else dim
    if not source.ndim and index.numel() != 1:
        raise IndexError(f"index_reduce_(): When source is scalar, index should have one element (got {index.numel()})")
    if source.ndim != x.ndim or any(d != at and n != x.shape[d] for d, n in enumerate(source.shape)):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(x.shape)} source.shape = {list(source.shape)}"
        )
    size, slices = (x.shape[dim], source.shape[dim]) if x.ndim else (1, 1)
    if index.numel() != slices:
        raise RuntimeError(
            f"index_reduce_(): Number of indices ({index.numel()}) should be equal to source.size(dim): ({slices}), "
            f"for dim: {at}"
        )
    if index.device.type != "meta" and index.numel() and not 0 <= int(index.min()) <= int(index.max()) < size:
        raise IndexError(f"index out of range in self: index_reduce() got an index outside of [0, {size})")
    index = index.reshape([-1 if d == at else 1 for d in range(x.ndim)]).expand(source.shape)
    return x.scatter_reduce(dim, index, source, reduce, include_self=include_self)


take_along_dim = (
    Op(
        "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
        exact=True,
        family=COMPOSITE,
        doc="`gather` whose other dimensions broadcast; without `dim` over all elements in order.",
    )
    .composite(lambda self, indices, dim: _take_along_dim(self, indices, dim))
    .samples(
        lambda make, dtype: [
            Sample((make(2, 3), _C.tensor([[0, 2]], device=make.device), 1)),
            Sample((make(2, 3), _C.tensor([5, 0], device=make.device))),
        ],
        lambda x, index, dim=None: (
            np.take(x, index) if dim is None else np.take_along_axis(x, np.broadcast_to(index, (2, 2)), dim)
        ),
    )
)


def _take_along_dim(x: Any, indices: Any, dim: int | None) -> Any:
    if indices.dtype is not _C.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype}")
    if dim is None:
        return x.reshape(-1).gather(0, indices.reshape(-1))
    if x.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {x.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    if not -max(x.ndim, 1) <= dim < max(x.ndim, 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-x.ndim}, {x.ndim - 1}], but got {dim})"
        )
    dim %= max(x.ndim, 1)
    shape = np.broadcast_shapes(*((*t.shape[:dim], 1, *t.shape[dim + 1 :]) for t in (x, indices)))
    indices = _where(indices < 0, indices + x.shape[dim], indices) if x.ndim else indices
    others = [-1 if d == dim else n for d, n in enumerate(shape)]
    return x.expand(others).gather(dim, indices.expand(others))


# -- by position among all elements

take = (
    Op(
        "take(Tensor self, Tensor index) -> Tensor",
        doc="Elements by their position in row-major order; the shape is that of `index`, int64.",
    )
    .array(lambda xp, x, index: xp.take(x, index))
    .grad(self="put(zeros_of(self), index, grad, True)", index=None)
    .samples(
        lambda make, dtype: [
            Sample((make(2, 3), _C.tensor([[5, -1], [0, 2]], device=make.device))),
            Sample((make(3, 2).t(), _C.tensor([4, 1], device=make.device))),
        ]
    )
)
put = (
    Op(
        "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
        inplace=True,
        out=False,
        doc=(
            "The input with elements of `source` at positions in row-major order, added to what is there "
            "if `accumulate`."
        ),
    )
    .nondeterministic("cuda")
    .array(
        lambda xp, x, index, source, accumulate: _index_put(
            xp, x.reshape(-1), (index.reshape(-1),), source.reshape(-1), accumulate
        ).reshape(x.shape)
    )
    .grad(
        self="grad if accumulate else put(grad, index, zeros_of(source), False)",
        index=None,
        source="reshape(take(grad, index), shape(source))",
    )
    .samples(
        lambda make, dtype: (
            Sample((make(2, 3), _C.tensor(places, device=make.device), make(2), accumulate))
            for places, accumulate in (([5, 0], False), ([1, 1], True))
        )
    )
)

# -- by mask

masked_select = (
    Op(
        "masked_select(Tensor self, Tensor mask) -> Tensor",
        dynamic=True,
        doc="""The elements whose mask is set, in one dimension.

        Args:
            input: Tensor of any shape.
            mask: Tensor of bool; the two broadcast.

        Returns:
            Vector, in row-major order of the broadcast shape.

        Example:
            >>> x = rushlight.arange(4)
            >>> rushlight.masked_select(x, x > 1)
            tensor([2, 3])
        """,
    )
    .array(lambda xp, x, mask: xp.broadcast_arrays(x, mask)[0][xp.broadcast_arrays(x, mask)[1]])
    .grad(self=lambda grad, self, mask: _scattered(self, mask, grad), mask=None)
    .samples(
        _masked(
            ((2, 3), [[True, False, True], [False, False, True]]), ((2, 3), [True, False, True]), ((), [True, False])
        )
    )
)
masked_scatter = (
    Op(
        "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
        inplace=True,
        out=False,
        doc="The input with the first elements of `source` where the mask is set, in row-major order.",
    )
    .array(lambda xp, x, mask, source: _masked_scatter(xp, x, mask, source))
    .grad(
        self="masked_fill(grad, mask, 0)",
        mask=None,
        source=lambda grad, mask, source_shape: _selected(grad, mask, source_shape),
    )
    .samples(
        _masked(((2, 3), [[True, False, True], [False, False, True]], (4,)), ((2, 3), [True, False, True], (2, 2)))
    )
)


def _masked_scatter(xp: Any, x: Any, mask: Any, source: Any) -> Any:
    x, mask = xp.broadcast_arrays(x, mask)
    result = x.copy()
    result[mask] = source.reshape(-1)[: int(mask.sum())]
    return result


def _scattered(like: Any, mask: Any, grad: Any) -> Any:
    shape = np.broadcast_shapes(like.shape, mask.shape)
    return grad.new_zeros(shape).masked_scatter(mask.expand(shape), grad)


def _selected(grad: Any, mask: Any, shape: Sequence[int]) -> Any:
    chosen = grad.masked_select(mask)
    total = int(np.prod(shape))
    padded = chosen.new_zeros(total)
    return padded.index_copy(0, _arange(chosen), chosen).reshape(shape)


def _where(condition: Any, a: Any, b: Any) -> Any:
    from ._pointwise import where

    return where.operator(condition, a, b)


def _arange(like: Any) -> Any:
    from ._factory import arange

    return arange.operator(like.numel(), device=like.device)


nonzero = (
    Op(
        "nonzero(Tensor self, *, bool as_tuple=False) -> Tensor",
        dynamic=True,
        differentiable=False,
        doc="""The coordinates of the elements that are not zero.

        Args:
            input: Tensor of any shape.
            as_tuple: Whether to return one vector a dimension, fit for indexing.

        Returns:
            Tensor of int64, a row of coordinates for each element; or a tuple of vectors.

        Example:
            >>> rushlight.nonzero(rushlight.tensor([0, 3, 4]))
            tensor([[1],
                    [2]])
        """,
    )
    .array(
        lambda xp, x, as_tuple: (
            tuple(xp.nonzero(x.reshape(x.shape or (1,))))
            if as_tuple
            else xp.stack(xp.nonzero(x), axis=-1).astype("int64")
            if x.ndim
            else xp.zeros((int(x != 0), 0), dtype="int64")
        )
    )
    .samples(unary(), lambda x: np.argwhere(x))
)
argwhere = (
    Op(
        "argwhere(Tensor self) -> Tensor",
        dynamic=True,
        family=COMPOSITE,
        out=False,
        differentiable=False,
        doc="`nonzero` without options.",
    )
    .composite(lambda self: nonzero.operator(self))
    .samples(unary(), np.argwhere)
)
nonzero_static = (
    Op(
        "nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor",
        family=COMPOSITE,
        differentiable=False,
        doc="""`nonzero` with a fixed number of rows: the first `size` of them, or all and then rows of `fill_value`.

        Args:
            input: Tensor of any shape.
            size: Rows of the result.
            fill_value: What rows hold that no element stands for.

        Returns:
            Tensor (size, dimensions of the input) of int64.

        Raises:
            RuntimeError: `size` is negative.
        """,
    )
    .composite(lambda self, *, size, fill_value: _nonzero_static(self, size, fill_value))
    .samples(
        lambda make, dtype: (
            Sample((make(3, 4),), {"size": size, "fill_value": fill}) for size, fill in ((5, -1), (14, 7), (0, 0))
        ),
        lambda x, size, fill_value: np.concatenate(
            (np.argwhere(x), np.full((size, x.ndim), fill_value)), dtype=np.int64
        )[:size],
    )
)
unravel_index = (
    Op(
        "unravel_index(Tensor indices, int[1] shape) -> Tensor[]",
        family=COMPOSITE,
        method=False,
        out=False,
        differentiable=False,
        doc="""Coordinates of the elements of a tensor of `shape` that positions in row-major order name.

        Args:
            indices: Integer tensor of any shape.
            shape: Sizes, or one size.

        Returns:
            Tuple of int64 tensors, one a dimension, in the shape of `indices`. Positions beyond the last one wrap
            around.

        Raises:
            TypeError: `indices` are not integers.
            ValueError: A size is negative.

        Example:
            >>> rushlight.unravel_index(rushlight.tensor([5, 2]), (2, 3))
            (tensor([1, 0]), tensor([2, 2]))
        """,
    )
    .composite(lambda indices, shape: _unravel_index(indices, shape))
    .samples(
        lambda make, dtype: [
            Sample((_C.tensor([[5, 7], [0, 11]], device=make.device), (3, 4))),
            Sample((_C.tensor(3, device=make.device), (4,))),
        ],
        lambda x, shape: np.unravel_index(x, shape),
    )
)


def _nonzero_static(x: Any, size: int, fill_value: int) -> Any:
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got size={size}")
    rows = x.new_full((size, x.ndim), fill_value, dtype=_C.int64)
    if x.device.type != "meta":
        found = nonzero.operator(x)[:size]
        rows[: len(found)] = found
    return rows


def _unravel_index(indices: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype is _C.bool:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(shape)}")
    steps = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    indices = indices.to(_C.int64)
    return tuple(indices // max(step, 1) % n for step, n in zip(steps, shape, strict=True))


where_condition = (
    Op(
        "where(Tensor condition) -> Tensor[]",
        dynamic=True,
        family=COMPOSITE,
        method=False,
        out=False,
        differentiable=False,
        doc="`nonzero(condition, as_tuple=True)`.",
    )
    .composite(lambda condition: nonzero.operator(condition, as_tuple=True))
    .samples(lambda make, dtype: [Sample((make(2, 3),)), Sample((make(4),))], np.nonzero)
)
