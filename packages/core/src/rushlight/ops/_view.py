"""Views: other shapes of the same memory. Kernels move metadata only, so they serve every device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import _C
from .._op import COMPOSITE, FUNCTION, VIEW, Op, Sample
from ._samples import Sampler, unary


def _calls(*calls: tuple[Any, ...], **kwargs: Any) -> Sampler:
    """Samples from (shape, *arguments); a trailing dict holds keywords. Each also with strides of another order."""

    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        for shape, *args in calls:
            named = {**kwargs, **args.pop()} if args and isinstance(args[-1], dict) else kwargs
            yield Sample((make(*shape), *args), named)
            if len(shape) > 1:
                yield Sample((make(*reversed(shape)).permute(*reversed(range(len(shape)))), *args), named)

    return samples


# -- sizes

view = (
    Op(
        "view(Tensor(a) self, int[] size) -> Tensor(a)",
        family=VIEW,
        function=False,
        doc="""The same elements in another shape, without a copy.

        Args:
            size: Sizes; one may be -1 and is inferred.

        Returns:
            View of shape `size`.

        Raises:
            RuntimeError: The sizes do not fit, or the strides do not allow it; `reshape` copies then.

        Example:
            >>> rushlight.arange(6).view(2, -1).shape
            torch.Size([2, 3])
        """,
    )
    .grad(self="reshape(grad, shape(self))")
    .samples(
        lambda make, dtype: (
            Sample((make(*s), t)) for s, t in (((2, 6), (3, 4)), ((4,), (-1,)), ((), (1, 1)), ((0, 3), (3, 0)))
        ),
        np.reshape,
    )
)
view_dtype = Op(
    "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    reads_strides=True,
    family=VIEW,
    function=False,
    differentiable=False,
    doc="The same bytes read as another dtype.",
).samples(lambda make, dtype: [Sample((make(2, 4), _C.uint8))])
view_as = Op(
    "view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    family=COMPOSITE,
    function=False,
    out=False,
    doc="`view` with the shape of `other`.",
).samples(lambda make, dtype: [Sample((make(2, 6), make(3, 4)))], lambda x, other: x.reshape(other.shape))
reshape = Op(
    "reshape(Tensor(a) self, int[] shape) -> Tensor(a)",
    family=COMPOSITE,
    out=False,
    doc="""The same elements in another shape: a view where the strides allow it, else a copy.

        Args:
            input: Tensor of any shape.
            shape: Sizes; one may be -1 and is inferred.

        Returns:
            Tensor of shape `shape`.

        Raises:
            RuntimeError: The sizes do not fit the number of elements.

        Example:
            >>> rushlight.reshape(rushlight.arange(4), (2, 2))
            tensor([[0, 1],
                    [2, 3]])
        """,
).samples(_calls(((2, 6), (3, 4)), ((2, 6), (-1,)), ((), (1,)), ((0, 3), (3, 0)), ((3, 4), (4, 3))), np.reshape)
reshape_as = Op(
    "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    family=COMPOSITE,
    function=False,
    out=False,
    doc="`reshape` with the shape of `other`.",
).samples(lambda make, dtype: [Sample((make(6, 2).t(), make(3, 4)))], lambda x, other: x.reshape(other.shape))
flatten = Op(
    "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
    family=COMPOSITE,
    out=False,
    doc="""Dimensions `start_dim` to `end_dim`, both included, as one.

        Args:
            input: Tensor of any shape; a 0-d one becomes 1-d.
            start_dim: First dimension to flatten.
            end_dim: Last dimension to flatten.

        Returns:
            The input where there is nothing to flatten, a view where possible, else a copy.

        Example:
            >>> rushlight.zeros(2, 3, 4).flatten(1).shape
            torch.Size([2, 12])
        """,
).samples(
    _calls(((2, 3, 4),), ((2, 3, 4), 1), ((2, 3, 4), 0, 1), ((),)),
    lambda x, start_dim=0, end_dim=-1: _flatten(x, start_dim, end_dim),
)
unflatten = Op(
    "unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)",
    family=COMPOSITE,
    out=False,
    doc="One dimension as several, whose sizes multiply up to it; one may be -1.",
).samples(
    _calls(((2, 12), 1, (3, 4)), ((6, 2), 0, (-1, 2)), ((6, 2), -2, (3, 2))),
    lambda x, dim, sizes: x.reshape(*x.shape[: dim % x.ndim], *sizes, *x.shape[dim % x.ndim + 1 :]),
)
ravel = Op(
    "ravel(Tensor(a) self) -> Tensor(a)",
    family=COMPOSITE,
    out=False,
    doc="All elements in one dimension: a view of contiguous memory, else a copy.",
).samples(unary(), np.ravel)
expand = (
    Op(
        "expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)",
        family=VIEW,
        function=False,
        doc="""Dimensions of size 1 repeated without a copy.

        Writing to the result is refused, since its elements share memory.

        Args:
            size: Sizes of the result; -1 keeps a size. New dimensions go in front.

        Returns:
            View of shape `size`.

        Raises:
            RuntimeError: A size differs and is not 1.

        Example:
            >>> rushlight.tensor([[1], [2]]).expand(2, 3)
            tensor([[1, 1, 1],
                    [2, 2, 2]])
        """,
    )
    .grad(self="sum_to(grad, self)")
    .samples(
        _calls(((3, 1), (3, 4)), ((3, 1), (2, -1, 4)), ((), (2, 3)), ((1,), (0,)), ((4,), (4,))),
        lambda x, size: np.broadcast_to(x, [x.shape[i - len(size)] if n < 0 else n for i, n in enumerate(size)]),
    )
)
expand_as = Op(
    "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    family=COMPOSITE,
    function=False,
    out=False,
    doc="`expand` to the shape of `other`.",
).samples(lambda make, dtype: [Sample((make(3, 1), make(2, 3, 4)))], lambda x, other: np.broadcast_to(x, other.shape))
broadcast_to = Op(
    "broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)", family=COMPOSITE, out=False, doc="`expand` as a function."
).samples(_calls(((3, 1), (3, 4)), ((), (2, 3))), np.broadcast_to)
unsqueeze = (
    Op(
        "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
        family=VIEW,
        doc="A new dimension of size 1 before dimension `dim`, which may be `ndim`.",
    )
    .grad(self="squeeze(grad, dim)")
    .samples(_calls(((3, 4), 0), ((3, 4), -1), ((3, 4), 1), ((), 0)), np.expand_dims)
)
squeeze = (
    Op(
        "squeeze(Tensor(a) self) -> Tensor(a)",
        family=VIEW,
        doc="""Dimensions of size 1 left out: all of them, or those of `dim` that have size 1.

        Args:
            input: Tensor of any shape.
            dim: One dimension or several; all without it.

        Returns:
            View of the input.

        Example:
            >>> rushlight.zeros(2, 1, 3, 1).squeeze(1).shape
            torch.Size([2, 3, 1])
        """,
    )
    .grad(self="reshape(grad, shape(self))")
    .samples(_calls(((2, 1, 3, 1),), ((1,),), ((),)), np.squeeze)
)
squeeze_dim = (
    Op("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", family=VIEW, doc=squeeze.doc)
    .grad(self="reshape(grad, shape(self))")
    .samples(
        _calls(((2, 1, 3, 1), 1), ((2, 1), 0), ((1, 2), -2)),
        lambda x, dim: np.squeeze(x, dim) if x.shape[dim] == 1 else x,
    )
)
squeeze_dims = (
    Op("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", family=VIEW, doc=squeeze.doc)
    .grad(self="reshape(grad, shape(self))")
    .samples(
        _calls(((2, 1, 3, 1), (1, -1)), ((1, 2), (0, 1))),
        lambda x, dim: np.squeeze(x, tuple(d for d in dim if x.shape[d] == 1)),
    )
)

# -- order of dimensions

permute = (
    Op(
        "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
        family=VIEW,
        doc="""The dimensions in another order.

        Args:
            input: Tensor of any shape.
            dims: Every dimension once.

        Returns:
            View whose dimension i is dimension `dims[i]` of the input.

        Raises:
            RuntimeError: `dims` is no permutation.

        Example:
            >>> rushlight.zeros(2, 3, 4).permute(2, 0, 1).shape
            torch.Size([4, 2, 3])
        """,
    )
    .grad(self="permute(grad, inverse_permutation(dims))")
    .samples(_calls(((2, 3, 4), (2, 0, 1)), ((2, 3), (-1, -2)), ((), ())), np.transpose)
)
transpose = (
    Op(
        "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
        family=VIEW,
        aliases=("swapaxes", "swapdims"),
        doc="Two dimensions exchanged.",
    )
    .grad(self="transpose(grad, dim0, dim1)")
    .samples(_calls(((2, 3, 4), 0, 2), ((2, 3), -1, 0), ((3,), 0, 0)), np.swapaxes)
)
t = (
    Op("t(Tensor(a) self) -> Tensor(a)", family=VIEW, doc="A matrix transposed; of fewer dimensions the tensor itself.")
    .grad(self="t(grad)")
    .samples(_calls(((2, 3),), ((3,),), ((),)), np.transpose)
)
adjoint = (
    Op(
        "adjoint(Tensor(a) self) -> Tensor(a)",
        family=COMPOSITE,
        out=False,
        doc="The last two dimensions exchanged, conjugated.",
    )
    .composite(lambda self: self.mH)
    .samples(_calls(((2, 3),), ((2, 3, 4),)), lambda x: np.conj(np.swapaxes(x, -1, -2)))
)


def _moveaxis(x: np.ndarray, source: Any, destination: Any) -> np.ndarray:
    return np.moveaxis(x, source, destination) if x.ndim else x


movedim = Op(
    "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
    family=COMPOSITE,
    out=False,
    aliases=("moveaxis",),
    doc="Dimensions moved to other places; the rest keep their order.",
).samples(_calls(((2, 3, 4), 0, 2), ((2, 3, 4), -1, 0), ((), 0, 0)), _moveaxis)
movedim_list = Op(
    "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    family=COMPOSITE,
    out=False,
    aliases=("moveaxis",),
    doc=movedim.doc,
).samples(_calls(((2, 3, 4), (0, 1), (-1, 0))), np.moveaxis)

# -- parts

select = (
    Op(
        "select.int(Tensor(a) self, int dim, int index) -> Tensor(a)",
        family=VIEW,
        doc="""One element of a dimension, which goes away: `select(x, 0, i)` is `x[i]`.

        Args:
            input: Tensor of at least one dimension.
            dim: Dimension.
            index: Position in it; negative ones count from the end.

        Returns:
            View without dimension `dim`.

        Raises:
            IndexError: `index` is out of range.
        """,
    )
    .grad(self="select_backward(grad, shape(self), dim, index)")
    .samples(_calls(((3, 4), 0, 1), ((3, 4), 1, -1), ((3,), 0, 0)), lambda x, dim, index: np.take(x, index, dim))
)
select_backward = (
    Op(
        "select_backward(Tensor grad, int[] input_sizes, int dim, int index) -> Tensor",
        family=FUNCTION,
        method=False,
        function=False,
        doc="Zeros with `grad` at one place of `dim`.",
    ).grad(grad="select(grad, dim, index)")
).samples(_calls(((3,), (3, 2), 1, 0)), lambda grad, sizes, dim, index: _put_numpy(grad, sizes, _along(dim, index)))
slice_ = (
    Op(
        "slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)",
        family=VIEW,
        method=False,
        doc="`x[start:end:step]` in one dimension.",
    ).grad(self="slice_backward(grad, shape(self), dim, start, end, step)")
).samples(
    _calls(((5, 2), 0, 1, 4, 2), ((5, 2), 1, None, None, 1)),
    lambda x, dim, *bounds: x[(slice(None),) * dim + (slice(*bounds),)],
)
slice_backward = (
    Op(
        "slice_backward(Tensor grad, int[] input_sizes, int dim, int? start, int? end, int step) -> Tensor",
        family=FUNCTION,
        method=False,
        function=False,
        doc="Zeros with `grad` in a slice of `dim`.",
    ).grad(grad="slice(grad, dim, start, end, step)")
).samples(
    _calls(((2,), (5,), 0, 1, 4, 2)),
    lambda grad, sizes, dim, *bounds: _put_numpy(grad, sizes, _along(dim, slice(*bounds))),
)
narrow = Op(
    "narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)",
    family=COMPOSITE,
    out=False,
    doc="`length` elements of a dimension from `start` on.",
).samples(
    _calls(((5, 4), 0, 1, 3), ((5, 4), -1, -2, 2), ((5, 4), 0, 5, 0)),
    lambda x, dim, start, length: _narrow(x, dim, start, length),
)
narrow_copy = (
    Op(
        "narrow_copy(Tensor self, int dim, int start, int length) -> Tensor",
        family=COMPOSITE,
        exact=True,
        doc="`narrow` as a copy.",
    )
    .composite(lambda self, dim, start, length: self.narrow(dim, start, length).clone())
    .samples(
        _calls(((5, 4), 0, 1, 3), ((5, 4), -1, -2, 2), ((5, 4), 0, 5, 0)),
        lambda x, dim, start, length: _narrow(x, dim, start, length),
    )
)
narrow_tensor = Op(
    "narrow.Tensor(Tensor(a) self, int dim, Tensor start, int length) -> Tensor(a)",
    dynamic=True,
    family=COMPOSITE,
    out=False,
    doc=narrow.doc,
).samples(
    lambda make, dtype: [Sample((make(4, 2), 0, _C.tensor(1), 2))],
    lambda x, dim, start, length: _narrow(x, dim, int(start), length),
)
split = (
    Op(
        "split.Tensor(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]",
        family=VIEW,
        doc="""Consecutive pieces of a dimension.

        Args:
            input: Tensor of at least one dimension.
            split_size: Length of every piece but the last, or a list of lengths that add up to the dimension's size.
            dim: Dimension.

        Returns:
            Tuple of views.

        Example:
            >>> [len(piece) for piece in rushlight.arange(5).split(2)]
            [2, 2, 1]
        """,
    )
    .grad(self="cat_grads(dim)")
    .samples(
        _calls(((5, 4), 2), ((5, 4), 3, 1), ((0, 2), 1)),
        lambda x, n, dim=0: np.split(x, range(n, x.shape[dim], n), dim),
    )
)
split_list = (
    Op(
        "split.sizes(Tensor(a) self, int[] split_size, int dim=0) -> Tensor(a)[]",
        family=COMPOSITE,
        out=False,
        doc=split.doc,
    )
    .composite(lambda self, split_size, dim: split_with_sizes.operator(self, split_size, dim))
    .samples(
        _calls(((5, 4), (2, 0, 3)), ((5, 4), (1, 3), -1)),
        lambda x, sizes, dim=0: np.split(x, np.cumsum(sizes)[:-1], dim),
    )
)
split_with_sizes: Op = (
    Op(
        "split_with_sizes(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
        family=VIEW,
        doc="`split` with a list of lengths.",
    )
    .grad(self="cat_grads(dim)")
    .samples(
        _calls(((5, 4), (2, 0, 3)), ((5, 4), (1, 3), -1)),
        lambda x, sizes, dim=0: np.split(x, np.cumsum(sizes)[:-1], dim),
    )
)
chunk = Op(
    "chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]",
    family=COMPOSITE,
    out=False,
    doc="At most `chunks` pieces of equal length; the last may be shorter.",
).samples(
    _calls(((5, 4), 2), ((5, 4), 3, 1)),
    lambda x, n, dim=0: np.split(x, range(-(-x.shape[dim] // n), x.shape[dim], -(-x.shape[dim] // n)), dim),
)


def _unsafe(record: Op, schema: str) -> Op:
    name, sampler = record.base, record.sampler
    assert sampler is not None
    return (
        Op(
            f"unsafe_{schema} -> Tensor(a)[]",
            out=False,
            doc=f"`{name}` whose pieces share memory but not version counters: the caller promises to write no two "
            "tensors that overlap.",
        )
        .grad(self="cat_grads(dim)")
        .samples(sampler, record.reference)
    )


unsafe_split = _unsafe(split, "split.Tensor(Tensor(a) self, int split_size, int dim=0)")
unsafe_split_with_sizes = _unsafe(split_with_sizes, "split_with_sizes(Tensor(a) self, int[] split_sizes, int dim=0)")
unsafe_chunk = _unsafe(chunk, "chunk(Tensor(a) self, int chunks, int dim=0)")
tensor_split = Op(
    "tensor_split.sections(Tensor(a) self, int sections, int dim=0) -> Tensor(a)[]",
    family=COMPOSITE,
    out=False,
    doc="Pieces between bounds, or a number of pieces whose lengths differ by one at most.",
).samples(_calls(((5, 4), 2), ((5, 4), 3, 1)), np.array_split)
tensor_split_indices = Op(
    "tensor_split.indices(Tensor(a) self, int[] indices, int dim=0) -> Tensor(a)[]",
    family=COMPOSITE,
    out=False,
    doc=tensor_split.doc,
).samples(_calls(((5, 4), (1, 3)), ((5, 4), (3, 1), 1)), np.array_split)
tensor_split_tensor = Op(
    "tensor_split.tensor_indices_or_sections"
    "(Tensor(a) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
    dynamic=True,
    family=COMPOSITE,
    out=False,
    mixed_devices=True,
    doc=tensor_split.doc,
).samples(
    lambda make, dtype: [Sample((make(5, 2), _C.tensor(2))), Sample((make(5, 2), _C.tensor([1, 3])))],
    lambda x, n, dim=0: np.array_split(x, n if n.ndim else int(n), dim),
)
hsplit = Op(
    "hsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]",
    family=COMPOSITE,
    out=False,
    doc="`tensor_split` along dimension 1, of a vector along its only one.",
).samples(_calls(((2, 4), 2), ((4,), 2)), np.hsplit)
hsplit_indices = Op(
    "hsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]", family=COMPOSITE, out=False, doc=hsplit.doc
).samples(_calls(((2, 4), (1, 3))), np.hsplit)
vsplit = Op(
    "vsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]",
    family=COMPOSITE,
    out=False,
    doc="`tensor_split` along dimension 0.",
).samples(_calls(((4, 2), 2)), np.vsplit)
vsplit_indices = Op(
    "vsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]", family=COMPOSITE, out=False, doc=vsplit.doc
).samples(_calls(((4, 2), (1, 3))), np.vsplit)
dsplit = Op(
    "dsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]",
    family=COMPOSITE,
    out=False,
    doc="`tensor_split` along dimension 2.",
).samples(_calls(((2, 2, 4), 2)), np.dsplit)
dsplit_indices = Op(
    "dsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]", family=COMPOSITE, out=False, doc=dsplit.doc
).samples(_calls(((2, 2, 4), (1, 3))), np.dsplit)
unbind = (
    Op(
        "unbind.int(Tensor(a) self, int dim=0) -> Tensor(a)[]",
        family=VIEW,
        doc="All elements of a dimension, as a tuple of views without it.",
    )
    .grad(self="stack_grads(dim)")
    .samples(_calls(((3, 4),), ((3, 4), 1), ((2,),)), lambda x, dim=0: list(np.moveaxis(x, dim, 0)))
)
diagonal = (
    Op(
        "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
        family=VIEW,
        doc="""The diagonal of two dimensions, as the last dimension of a view.

        Args:
            input: Tensor of at least two dimensions.
            offset: Which diagonal: above the main one when positive, below it when negative.
            dim1: First dimension of the matrices.
            dim2: Second dimension of the matrices.

        Returns:
            View without the two dimensions and with the diagonal's.

        Example:
            >>> rushlight.arange(4).view(2, 2).diagonal()
            tensor([0, 3])
        """,
    )
    .grad(self="diagonal_backward(grad, shape(self), offset, dim1, dim2)")
    .samples(_calls(((3, 4),), ((3, 4), 1), ((3, 4), -2), ((2, 3, 4), 0, 1, 2), ((2, 3, 4), 1, -1, 0)), np.diagonal)
)
diagonal_backward = (
    Op(
        "diagonal_backward(Tensor grad, int[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
        family=FUNCTION,
        method=False,
        function=False,
        doc="Zeros with `grad` on a diagonal.",
    ).grad(grad="diagonal(grad, offset, dim1, dim2)")
).samples(_calls(((2,), (2, 3), 0, 0, 1)), lambda grad, sizes, *args: _put_numpy(grad, sizes, (range(2), range(2))))
as_strided = (
    Op(
        "as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)",
        reads_strides=True,
        family=VIEW,
        doc="""Any sizes and strides over the tensor's storage.

        Args:
            input: Tensor.
            size: Sizes.
            stride: Elements between neighbours in each dimension, not negative.
            storage_offset: Elements before the first one; the input's by default.

        Returns:
            View; its elements may share memory.

        Raises:
            RuntimeError: The view would leave the storage.
        """,
    )
    .grad(self="as_strided_backward(grad, self, size, stride, storage_offset)")
    .samples(
        lambda make, dtype: (Sample((make(12), *args)) for args in (((3, 4), (4, 1)), ((2, 3), (1, 2), 2), ((), ()))),
        lambda x, size, stride, storage_offset=0: np.lib.stride_tricks.as_strided(
            x[storage_offset:], size, [n * x.itemsize for n in stride]
        ),
    )
)


def _part_scatter(name: str, arguments: str, sampler: Sampler, reference: Any) -> Op:
    """`<name>_scatter(self, src, ...)`: a copy of `self` with `src` where the view `<name>(self, ...)` would be."""
    return Op(
        f"{name}_scatter(Tensor self, Tensor src, {arguments}) -> Tensor",
        reads_strides=name == "as_strided",
        doc=f"""A copy of the input with `src` in the place that `{name}` gives a view of.

        Args:
            input: Tensor.
            src: Tensor of the shape of that view; converted to the dtype of the input. The rest is as of `{name}`.

        Returns:
            Tensor of the shape, dtype and memory order of the input.

        Raises:
            RuntimeError: `src` has another shape than the part.
        """,
    ).samples(sampler, reference)


def _with_part(x: np.ndarray, key: Any, src: np.ndarray) -> np.ndarray:
    result = x.copy()
    result[key] = src
    return result


select_scatter = _part_scatter(
    "select",
    "int dim, int index",
    lambda make, dtype: (Sample((make(3, 4), make(*s), *at)) for s, at in (((4,), (0, 1)), ((3,), (-1, -2)))),
    lambda x, src, dim, index: _with_part(x, _along(dim % x.ndim, index), src),
).grad(self="select_scatter(grad, zeros_of(src), dim, index)", src="select(grad, dim, index)")
slice_scatter = _part_scatter(
    "slice",
    "int dim=0, int? start=None, int? end=None, int step=1",
    lambda make, dtype: (
        Sample((make(5, 4), make(*s), *at)) for s, at in (((2, 4), (0, 1, 4, 2)), ((5, 2), (1, -2, None)), ((5, 4), ()))
    ),
    lambda x, src, dim=0, *bounds: _with_part(x, _along(dim, slice(*bounds or (None,))), src),
).grad(self="slice_scatter(grad, zeros_of(src), dim, start, end, step)", src="slice(grad, dim, start, end, step)")
diagonal_scatter = _part_scatter(
    "diagonal",
    "int offset=0, int dim1=0, int dim2=1",
    lambda make, dtype: (Sample((make(3, 4), make(3), *at)) for at in ((), (1,))),
    lambda x, src, offset=0: _with_part(x, (np.arange(3), np.arange(3) + offset), src),
).grad(self="diagonal_scatter(grad, zeros_of(src), offset, dim1, dim2)", src="diagonal(grad, offset, dim1, dim2)")
as_strided_scatter = _part_scatter(
    "as_strided",
    "int[] size, int[] stride, int? storage_offset=None",
    lambda make, dtype: (Sample((make(12), make(2, 3), (2, 3), (4, 1), offset)) for offset in (None, 1)),
    lambda x, src, size, stride, offset: _with_part(x, np.add.outer([0, 4], [0, 1, 2]) + (offset or 0), src),
).grad(
    ("self", "src"),
    lambda grad, self, size, stride, storage_offset: _as_strided_scatter_grad(grad, self, size, stride, storage_offset),
)
unfold = (
    Op(
        "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
        family=VIEW,
        function=False,
        doc="All windows of `size` elements in a dimension, `step` apart, with the window as a new last dimension.",
    )
    .grad(self="unfold_backward(grad, shape(self), dimension, size, step)")
    .samples(
        _calls(((7,), 0, 3, 2), ((2, 5), 1, 2, 1)),
        lambda x, dim, size, step: np.moveaxis(np.lib.stride_tricks.sliding_window_view(x, size, dim), dim, dim)[
            (slice(None),) * dim + (slice(None, None, step),)
        ],
    )
)
unfold_backward = (
    Op(
        "unfold_backward(Tensor grad_in, int[] input_sizes, int dim, int size, int step) -> Tensor",
        family=FUNCTION,
        method=False,
        function=False,
        doc="The sum of windows at the places where `unfold` took them.",
    )
    .composite(lambda grad_in, input_sizes, dim, size, step: _unfold_backward(grad_in, input_sizes, dim, size, step))
    .grad(grad_in="grad.unfold(dim, size, step)")
).samples(_calls(((2, 2), (4,), 0, 2, 2)), lambda grad, sizes, *args: grad.reshape(sizes))
alias = (
    Op(
        "alias(Tensor(a) self) -> Tensor(a)",
        family=VIEW,
        method=False,
        function=False,
        doc="The tensor as a view of itself.",
    )
    .grad(self="grad")
    .samples(unary(), lambda x: x)
)
detach = Op(
    "detach(Tensor(a) self) -> Tensor(a)",
    family=VIEW,
    differentiable=False,
    doc="The same memory without history: gradients do not flow through it.",
).samples(unary(), lambda x: x)

# -- parts of complex numbers

view_as_real = (
    Op(
        "view_as_real(Tensor(a) self) -> Tensor(a)",
        family=VIEW,
        method=False,
        doc="Complex numbers as pairs of real ones, in a new last dimension of size 2.",
    ).grad(self="view_as_complex(contiguous(grad))")
).samples(
    lambda make, dtype: [Sample((make(2, 3),))] if dtype.is_complex else [], lambda x: np.stack([x.real, x.imag], -1)
)
view_as_complex = (
    Op(
        "view_as_complex(Tensor(a) self) -> Tensor(a)",
        reads_strides=True,
        family=VIEW,
        method=False,
        doc="Pairs of real numbers, in a dense last dimension of size 2, as complex ones.",
    ).grad(self="view_as_real(grad)")
).samples(lambda make, dtype: [Sample((make(3, 2),))], lambda x: x[..., 0] + 1j * x[..., 1])
real = Op(
    "real(Tensor(a) self) -> Tensor(a)",
    family=COMPOSITE,
    method=False,
    out=False,
    doc="The real part as a view; of a real tensor itself.",
).samples(unary(), np.real)
imag = Op(
    "imag(Tensor(a) self) -> Tensor(a)",
    family=COMPOSITE,
    method=False,
    out=False,
    doc="The imaginary part of a complex tensor, as a view.",
).samples(lambda make, dtype: [Sample((make(2, 3),))] if dtype.is_complex else [], np.imag)

# -- in place

transpose_ = (
    Op(
        "transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)",
        family=VIEW,
        function=False,
        aliases=("swapaxes_", "swapdims_"),
        doc="`transpose` in place.",
    )
    .grad(self="transpose(grad, dim0, dim1)")
    .samples(lambda make, dtype: [Sample((make(2, 3), 0, 1))], np.swapaxes)
)
t_ = (
    Op("t_(Tensor(a!) self) -> Tensor(a!)", family=VIEW, function=False, doc="`t` in place.")
    .grad(self="t(grad)")
    .samples(lambda make, dtype: [Sample((make(2, 3),))], np.transpose)
)
squeeze_ = (
    Op("squeeze_(Tensor(a!) self) -> Tensor(a!)", family=VIEW, function=False, doc="`squeeze` in place.")
    .grad(self="reshape(grad, shape(self))")
    .samples(lambda make, dtype: [Sample((make(2, 1),))], np.squeeze)
)
squeeze_dim_ = (
    Op("squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", family=VIEW, function=False, doc=squeeze_.doc)
    .grad(self="reshape(grad, shape(self))")
    .samples(lambda make, dtype: [Sample((make(2, 1, 3), 1))], np.squeeze)
)
squeeze_dims_ = (
    Op("squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", family=VIEW, function=False, doc=squeeze_.doc)
    .grad(self="reshape(grad, shape(self))")
    .samples(lambda make, dtype: [Sample((make(2, 1, 3), (1,)))], np.squeeze)
)
unsqueeze_ = (
    Op("unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", family=VIEW, function=False, doc="`unsqueeze` in place.")
    .grad(self="squeeze(grad, dim)")
    .samples(lambda make, dtype: [Sample((make(2, 3), 1))], np.expand_dims)
)
as_strided_ = Op(
    "as_strided_(Tensor(a!) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a!)",
    family=VIEW,
    reads_strides=True,
    differentiable=False,
    doc="`as_strided` in place.",
).samples(lambda make, dtype: [Sample((make(6), (2, 3), (3, 1)))], lambda x, size, stride: x.reshape(size))
resize_ = Op(
    "resize_(Tensor(a!) self, int[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    family=VIEW,
    reads_strides=True,
    function=False,
    differentiable=False,
    doc="Other sizes over the same memory, more of it where needed; new elements are arbitrary.",
).samples(lambda make, dtype: [Sample((make(6), (2, 2)))], lambda x, size: x[:4].reshape(size))
resize_as_ = Op(
    "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    family=VIEW,
    reads_strides=True,
    differentiable=False,
    doc="`resize_` to the sizes of another tensor.",
).samples(lambda make, dtype: [Sample((make(6), make(2, 2)))], lambda x, template: x[:4].reshape(template.shape))
set_ = Op(
    "set_(Tensor(a!) self) -> Tensor(a!)",
    family=VIEW,
    reads_strides=True,
    function=False,
    differentiable=False,
    doc="Makes the tensor empty, over memory of its own.",
).samples(lambda make, dtype: [Sample((make(2),))], lambda x: x[:0])
set_source_tensor = Op(
    "set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)",
    family=VIEW,
    reads_strides=True,
    function=False,
    differentiable=False,
    doc="Makes the tensor another name for the memory of `source`.",
).samples(lambda make, dtype: [Sample((make(2), make(3)))], lambda x, source: source)
set_source_storage = Op(
    "set_.source_Storage(Tensor(a!) self, Any source) -> Tensor(a!)",
    family=VIEW,
    reads_strides=True,
    function=False,
    differentiable=False,
    doc="Makes the tensor all elements of a storage (an UntypedStorage, or a TypedStorage of the tensor's dtype).",
).samples(
    lambda make, dtype: [Sample((make(2), make(3).storage()))], lambda x, source: np.array(source.tolist(), x.dtype)
)
set_source_part = Op(
    "set_.source_Storage_storage_offset(Tensor(a!) self, Any source, int storage_offset, int[] size, int[] stride=[])"
    " -> Tensor(a!)",
    family=VIEW,
    reads_strides=True,
    function=False,
    differentiable=False,
    doc="""Makes the tensor part of the memory of a storage or tensor, which grows where it is too small.

    Args:
        source: An UntypedStorage, or a TypedStorage or Tensor of the tensor's dtype.
        storage_offset: Elements before the first one.
        size: Sizes.
        stride: Strides in elements; those of a contiguous tensor by default.

    Raises:
        RuntimeError: The storage is another's memory and too small.
    """,
).samples(
    lambda make, dtype: [Sample((make(2), make(6), 1, (2, 2), (2, 1)))],
    lambda x, source, offset, size, stride: source[1:5].reshape(2, 2),
)


# -- shared by rules


def _slice(x: Any, dim: int, start: int | None, end: int | None, step: int) -> Any:
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


def _unfold_backward(grad: Any, sizes: Sequence[int], dim: int, size: int, step: int) -> Any:
    whole = grad.new_zeros(sizes)
    if not sizes:
        return grad.reshape(())
    dim %= len(sizes)
    for i in range(size):
        n = grad.shape[dim]
        part = _slice(whole, dim, i, i + (n - 1) * step + 1, step)
        part.add_(grad.select(-1, i))
    return whole


def _as_strided_scatter_grad(grad: Any, self: Any, size: Any, stride: Any, offset: int | None) -> tuple[Any, Any]:
    # The gradient in memory laid out as the input was, so that the part is where it was, too.
    offset = self.storage_offset() if offset is None else offset
    geometries = ((self.shape, self.stride(), self.storage_offset()), (size, stride, offset))
    extent = max(1 + at + sum((n - 1) * step for n, step in zip(s, t, strict=True)) for s, t, at in geometries)
    memory = grad.new_zeros(extent).as_strided_scatter(grad, *geometries[0])
    rest = memory.as_strided_scatter(grad.new_zeros(size), *geometries[1])
    return rest.as_strided(*geometries[0]), memory.as_strided(*geometries[1])


def _flatten(x: np.ndarray, start: int, end: int) -> np.ndarray:
    if x.ndim == 0:
        return x.reshape(1)
    start, end = start % x.ndim, end % x.ndim
    return x.reshape(*x.shape[:start], -1, *x.shape[end + 1 :])


def _narrow(x: np.ndarray, dim: int, start: int, length: int) -> np.ndarray:
    start = start % x.shape[dim] if start < 0 else start
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, start + length),)]


def _along(dim: int, index: Any) -> tuple[Any, ...]:
    return (slice(None),) * dim + (index,)


def _put_numpy(grad: np.ndarray, sizes: Sequence[int], key: tuple[Any, ...]) -> np.ndarray:
    whole = np.zeros(sizes, grad.dtype)
    whole[key] = grad
    return whole
