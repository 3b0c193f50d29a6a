"""Scans, and what depends on the order of elements: sorting, medians, searching, counting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .. import _C
from .._op import COMPOSITE, REDUCTION, Op, Sample
from ._pointwise import _logaddexp_array
from ._samples import Sampler

_AT_PLACE = "scatter(zeros_of(self), dim, results[1], grads[0])"
_AT_REDUCED_PLACE = (
    "scatter(zeros_of(self), dim, unsqueeze_reduced(results[1], self, dim, keepdim),"
    " unsqueeze_reduced(grads[0], self, dim, keepdim))"
)


def _along(*before: Any, scalar: bool = True, **kwargs: Any) -> Sampler:
    """Calls `op(x, *before, dim)` along every dimension of dense and strided tensors of distinct elements."""

    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        shapes = ((5,), (3, 4), (2, 3, 4), ()) if scalar else ((5,), (3, 4), (2, 3, 4))
        for shape in shapes:
            for dim in range(-1, max(len(shape), 1)):
                yield Sample((make(*shape), *before, dim), kwargs)
        yield Sample((make(4, 3).t(), *before, 0), kwargs)

    return samples


def _array_axis(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The array function for tensors that may be 0-d, where an axis means nothing."""

    def along(xp: Any, x: Any, axis: int) -> Any:
        return fn(xp, x, axis) if x.ndim else fn(xp, x.reshape(1), 0).reshape(x.shape)

    return along


def _sum_dtype(x: Any, dtype: Any) -> Any:
    return dtype if dtype is not None else np.int64 if x.dtype.kind in "iub" else x.dtype


# -- scans

cumsum = (
    Op(
        "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        any_out=True,
        family=REDUCTION,
        inplace=True,
        doc="""Sums of the elements up to each one along `dim`.

        Args:
            input: Tensor of any shape.
            dim: Dimension to sum along.
            dtype: Dtype to convert to first; integers and bool sum in int64 by default.

        Returns:
            Tensor of the same shape.

        Example:
            >>> rushlight.tensor([1, 2, 3]).cumsum(0)
            tensor([1, 3, 6])
        """,
    )
    .array(
        lambda xp, x, dim, dtype: _array_axis(lambda xp, x, axis: xp.cumsum(x, axis=axis, dtype=_sum_dtype(x, dtype)))(
            xp, x, dim
        )
    )
    .grad(self="_reverse_cumsum(grad, dim)")
    .samples(_along())
)
reverse_cumsum = (
    Op(
        "_reverse_cumsum(Tensor self, int dim) -> Tensor",
        family=REDUCTION,
        function=False,
        method=False,
        doc="Sums of the elements from each one on along `dim`.",
    )
    .array(
        lambda xp, x, dim: _array_axis(
            lambda xp, x, axis: xp.flip(xp.cumsum(xp.flip(x, axis), axis=axis, dtype=_sum_dtype(x, None)), axis)
        )(xp, x, dim)
    )
    .grad(self="cumsum(grad, dim)")
    .samples(_along())
)
cumprod = (
    Op(
        "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        any_out=True,
        family=REDUCTION,
        inplace=True,
        doc="Products of the elements up to each one along `dim`; integers and bool in int64.",
    )
    .array(
        lambda xp, x, dim, dtype: _array_axis(lambda xp, x, axis: xp.cumprod(x, axis=axis, dtype=_sum_dtype(x, dtype)))(
            xp, x, dim
        )
    )
    .grad(self=lambda grad, self, dim: _cumprod_grad(grad, self, dim))
    .samples(_along())
)
logcumsumexp = (
    Op(
        "logcumsumexp(Tensor self, int dim) -> Tensor",
        family=REDUCTION,
        doc="`log(cumsum(exp(input)))` along `dim`, without overflow.",
    )
    .array(lambda xp, x, dim: _array_axis(lambda xp, x, axis: _logcumsumexp(xp, x, axis))(xp, x, dim))
    .grad(self=lambda grad, result, self, dim: _logcumsumexp_grad(grad, result, self, dim))
    .samples(_along())
)


def _logcumsumexp(xp: Any, x: Any, axis: int) -> Any:
    if x.dtype.kind == "c":
        steps = list(xp.moveaxis(x, axis, 0))
        for i in range(1, len(steps)):
            steps[i] = _logaddexp_array(xp, steps[i - 1], steps[i])
        return xp.stack(steps, axis) if steps else x
    return xp.logaddexp.accumulate(x, axis=axis)


def _running(name: str, adjective: str, better: str) -> Op:
    def array(xp: Any, x: Any, dim: int) -> Any:
        if x.ndim == 0:
            return x.copy(), xp.zeros((), dtype="int64")
        x = xp.moveaxis(x, dim, 0)
        values, indices = x.copy(), xp.zeros(x.shape, dtype="int64")
        for i in range(1, x.shape[0]):
            take = getattr(xp, better)(x[i], values[i - 1])
            values[i] = xp.where(take, x[i], values[i - 1])
            indices[i] = xp.where(take, i, indices[i - 1])
        return xp.moveaxis(values, 0, dim), xp.moveaxis(indices, 0, dim)

    return (
        Op(
            f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
            family=REDUCTION,
            doc=f"The {adjective} elements up to each one along `dim` and their indices: the last of equals; NaN "
            "stays.",
        )
        .array(array)
        .grad(self="scatter_add(zeros_of(self), dim, results[1], grads[0])")
        .samples(_along(), partial(array, np))
    )


cummax = _running("cummax", "largest", "greater_equal")
cummin = _running("cummin", "smallest", "less_equal")

# -- sorting


def _order(xp: Any, x: Any, dim: int, descending: bool = False) -> Any:
    """The stable order of NumPy, which has no descending one."""
    if x.ndim == 0:
        return xp.zeros((), dtype="int64")
    if not descending:
        return xp.argsort(x, axis=dim, kind="stable")
    return xp.flip(x.shape[dim] - 1 - xp.argsort(xp.flip(x, dim), axis=dim, kind="stable"), dim)


def _sorted(xp: Any, x: Any, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    order = _order(xp, x, dim, descending)
    return (x.copy() if x.ndim == 0 else xp.take_along_axis(x, order, dim)), order


_SORT_DOC = """The elements in order along `dim`, and where each came from; equals keep their order, NaN is last.

Args:
    input: Real tensor.
    dim: Dimension to sort along.
    descending: Largest first.
    stable: Accepted for PyTorch's sake: every sort is stable.

Returns:
    (values, indices), both of the shape of the input.

Example:
    >>> rushlight.tensor([3, 1, 2]).sort().values
    tensor([1, 2, 3])
"""
sort = (
    Op(
        "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
        family=REDUCTION,
        doc=_SORT_DOC,
    )
    .array(lambda xp, x, dim, descending: _sorted(xp, x, dim, descending))
    .grad(self=_AT_PLACE)
    .samples(_along(), partial(_sorted, np))
)
sort_stable = (
    Op(
        "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
        "indices)",
        family=REDUCTION,
        doc=_SORT_DOC,
    )
    .array(lambda xp, x, stable, dim, descending: _sorted(xp, x, dim, descending))
    .grad(self=_AT_PLACE)
    .samples(
        lambda make, dtype: (Sample((make(3, 40),), {"stable": True, "descending": d}) for d in (False, True)),
        partial(_sorted, np),
    )
)
argsort = (
    Op(
        "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
        family=REDUCTION,
        differentiable=False,
        doc="The indices that `sort` returns.",
    )
    .array(lambda xp, x, dim, descending: _order(xp, x, dim, descending))
    .samples(_along(), partial(_order, np))
)
argsort_stable = (
    Op(
        "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
        family=REDUCTION,
        differentiable=False,
        doc=argsort.doc,
    )
    .array(lambda xp, x, stable, dim, descending: _order(xp, x, dim, descending))
    .samples(lambda make, dtype: (Sample((make(3, 4),), {"stable": True}),), lambda x, stable: _order(np, x, -1))
)
msort = (
    Op(
        "msort(Tensor self) -> Tensor",
        exact=True,
        family=COMPOSITE,
        doc="The elements in order along the first dimension.",
    )
    .composite(lambda self: self.sort(0).values)
    .samples(lambda make, dtype: (Sample((make(4, 3),)), Sample((make(5),))), lambda x: _sorted(np, x, 0)[0])
)


def _top(xp: Any, x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    values, order = _sorted(xp, x, dim, largest)
    if x.ndim == 0:
        return values, order
    first = tuple(slice(k) if d == dim % x.ndim else slice(None) for d in range(x.ndim))
    return values[first], order[first]


def _distinct(make: Any, dtype: Any, *shape: int) -> Any:
    """Elements in no order, no two equal: kernels may choose among equals as they like."""
    if dtype.is_floating_point and dtype.itemsize > 2:
        return make(*shape)
    n = math.prod(shape)
    return make.tensor((np.arange(n) * 7 % 199).reshape(shape)).to(dtype)


topk = (
    Op(
        "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
        family=REDUCTION,
        doc="""The `k` largest (or smallest) elements along `dim`, in order, and where they are.

        Args:
            input: Real tensor, not of bool.
            k: How many, at most the size of `dim`.
            dim: Dimension to search along.
            largest: False for the smallest.
            sorted: Whether the result is in order; otherwise it is as the selection leaves it.

        Returns:
            (values, indices) with size `k` in `dim`. Of equal elements the CPU chooses those that PyTorch chooses.
        """,
    )
    .array(lambda xp, x, k, dim, largest, sorted: _top(xp, x, k, dim, largest))
    .grad(self=_AT_PLACE)
    .samples(
        lambda make, dtype: (
            Sample((_distinct(make, dtype, *shape), k, dim), {"largest": largest})
            for shape, k, dim in (
                ((5,), 2, 0),
                ((3, 4), 3, 1),
                ((3, 4), 3, 0),
                ((2, 3, 4), 0, 1),
                ((199,), 2, -1),
                ((), 1, 0),
            )
            for largest in (True, False)
            if dtype != _C.bool
        ),
        partial(_top, np),
    )
)


def _picked(xp: Any, x: Any, dim: int, keepdim: bool, k: int) -> Any:
    if x.ndim == 0:
        return x.copy(), xp.zeros((), dtype="int64")
    values, order = _sorted(xp, x, dim)
    values, order = (xp.take(each, [k], axis=dim) for each in (values, order))
    return (values, order) if keepdim else (xp.squeeze(values, dim), xp.squeeze(order, dim))


def _median_of(xp: Any, x: Any, dim: int, keepdim: bool = False) -> Any:
    return _picked(xp, x, dim, keepdim, (x.shape[dim] - 1) // 2 if x.ndim else 0)


_KEPT: Sampler = lambda make, dtype: (
    Sample((make(*shape), dim), {"keepdim": keepdim})
    for shape, dim in (((5,), 0), ((3, 4), 1), ((2, 3, 4), 1), ((), 0))
    for keepdim in (False, True)
)
kthvalue = (
    Op(
        "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
        family=REDUCTION,
        doc="The `k`-th smallest element along `dim`, counted from 1, and its index.",
    )
    .nondeterministic("cuda")
    .array(lambda xp, x, k, dim, keepdim: _picked(xp, x, dim, keepdim, k - 1))
    .grad(self=_AT_REDUCED_PLACE)
    .samples(
        lambda make, dtype: (
            Sample((_distinct(make, dtype, *shape), k, dim))
            for shape, k, dim in (
                ((5,), 1, -1),
                ((3, 4), 2, 0),
                ((3, 4), 4, 1),
                ((2, 3, 4), 3, 1),
                ((199,), 70, 0),
                ((), 1, 0),
            )
            if dtype != _C.bool
        ),
        lambda x, k, dim: _picked(np, x, dim, False, k - 1),
    )
)
median = (
    Op(
        "median(Tensor self) -> Tensor",
        family=REDUCTION,
        doc="The median: of an even number the lower of the two in the middle, NaN if there is any.",
    )
    .array(lambda xp, x: _median_of(xp, x.reshape(-1), 0)[0])
    .grad(self="grad * eq(self, result) / sum(eq(self, result))")
    .samples(lambda make, dtype: (Sample((make(*shape),)) for shape in ((5,), (3, 4), ())))
)
median_dim = (
    Op(
        "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        family=REDUCTION,
        doc=median.doc,
    )
    .array(lambda xp, x, dim, keepdim: _median_of(xp, x, dim, keepdim))
    .grad(self=_AT_REDUCED_PLACE)
    .samples(_KEPT, partial(_median_of, np))
)
nanmedian = (
    Op("nanmedian(Tensor self) -> Tensor", family=REDUCTION, doc="The median of the elements that are not NaN.")
    .array(lambda xp, x: _median_of(xp, x[~xp.isnan(x)].reshape(-1), 0)[0])
    .grad(self="grad * eq(self, result) / sum(eq(self, result))")
    .samples(lambda make, dtype: (Sample((make(*shape),)) for shape in ((5,), (3, 4), ())))
)
nanmedian_dim = (
    Op(
        "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        family=REDUCTION,
        doc=nanmedian.doc,
    )
    .grad(self=_AT_REDUCED_PLACE)
    .samples(_KEPT, partial(_median_of, np))
)
mode = (
    Op(
        "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
        family=REDUCTION,
        doc="The most frequent element along `dim`, of those the smallest, and the last index of it.",
    )
    .grad(self=_AT_REDUCED_PLACE)
    .samples(lambda make, dtype: (Sample((make(6, 5), dim)) for dim in (0, 1, -1)))
)

# -- searching and counting

searchsorted = (
    Op(
        "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? "
        "side=None, Tensor? sorter=None) -> Tensor",
        family=REDUCTION,
        method=False,
        differentiable=False,
        doc="""Where each value would be inserted into sorted boundaries to keep them sorted.

        Args:
            sorted_sequence: Boundaries in ascending order along the last dimension, (n) or (*, n).
            input: Values, of any shape or (*, m).
            out_int32: int32 results instead of int64.
            right: After equal boundaries instead of before them.
            side: "left" or "right", in other words.
            sorter: The order in which `sorted_sequence` is sorted.

        Returns:
            Tensor of the shape of the values.
        """,
    )
    .array(
        lambda xp, boundaries, x, out_int32, right, side, sorter: _search(
            xp, boundaries, x, out_int32, right or side == "right", sorter
        )
    )
    .samples(
        lambda make, dtype: (
            Sample((_ascending(make(*b)), make(*v)), {"right": right})
            for b, v in (((5,), (3, 4)), ((3, 5), (3, 4)), ((0,), (3,)), ((4,), ()))
            for right in (False, True)
        )
    )
)
searchsorted_number = (
    Op(
        "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? "
        "side=None, Tensor? sorter=None) -> Tensor",
        exact=True,
        family=COMPOSITE,
        method=False,
        differentiable=False,
        doc=searchsorted.doc,
    )
    .composite(
        lambda sorted_sequence, self, **options: searchsorted.operator(
            sorted_sequence, _number_tensor(self, sorted_sequence), **options
        )
    )
    .samples(lambda make, dtype: (Sample((_ascending(make(5)), 1)),), lambda b, v: np.searchsorted(b, v))
)
bucketize = (
    Op(
        "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        exact=True,
        family=COMPOSITE,
        method=False,
        differentiable=False,
        doc="The index of the bucket between `boundaries` (1-d, ascending) that each value falls into.",
    )
    .composite(
        lambda self, boundaries, *, out_int32, right: searchsorted.operator(
            boundaries, self, out_int32=out_int32, right=right
        )
    )
    .samples(lambda make, dtype: (Sample((make(3, 4), _ascending(make(5)))),), lambda x, b: np.searchsorted(b, x))
)
bucketize_number = (
    Op(
        "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        exact=True,
        family=COMPOSITE,
        method=False,
        differentiable=False,
        doc=bucketize.doc,
    )
    .composite(
        lambda self, boundaries, *, out_int32, right: searchsorted.operator(
            boundaries, _number_tensor(self, boundaries), out_int32=out_int32, right=right
        )
    )
    .samples(lambda make, dtype: (Sample((1, _ascending(make(5)))),), lambda x, b: np.searchsorted(b, x))
)
bincount = (
    Op(
        "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
        differentiable=False,
        dynamic=True,
        out=False,
        doc="How often each integer from 0 on occurs in a 1-d tensor, or the sum of the weights where it does.",
    )
    .nondeterministic("cuda")
    .array(lambda xp, x, weights, minlength: xp.bincount(x, weights, minlength))
    .samples(
        lambda make, dtype: (
            Sample((make(9, low=0, high=5),), {"minlength": minlength})
            for minlength in (0, 8)
            if not (dtype.is_floating_point or dtype.is_complex)
        )
    )
)
_FEW_VALUES = 16  # that are compared one by one instead of sorted
_ISIN = """True where an element is one of some values; NaN never is.

        Args:
            elements: Tensor of any shape, or a number.
            test_elements: The values, a tensor of any shape or a number.
            assume_unique: Accepted for PyTorch's sake; repeated values cost nothing.
            invert: Whether to tell which elements are not among the values.

        Returns:
            Bool tensor of the shape of `elements`.

        Raises:
            RuntimeError: A dtype is bool or complex.

        Example:
            >>> rushlight.isin(rushlight.tensor([1, 2, 3]), rushlight.tensor([2, 5]))
            tensor([False,  True, False])
        """
_ISIN_OPTIONS = "*, bool assume_unique=False, bool invert=False) -> Tensor"
isin = (
    Op(
        f"isin.Tensor_Tensor(Tensor elements, Tensor test_elements, {_ISIN_OPTIONS}",
        family=COMPOSITE,
        exact=True,
        differentiable=False,
        doc=_ISIN,
    )
    .composite(lambda elements, test_elements, *, assume_unique, invert: _isin(elements, test_elements, invert))
    .samples(
        lambda make, dtype: (
            Sample((make(*shape, low=0, high=9), make(n, low=0, high=9)), {"invert": n == 3})
            for shape in ((3, 4), (), (0,))
            for n in (0, 3, 60)
        ),
        np.isin,
    )
)
isin_number = (
    Op(
        f"isin.Tensor_Scalar(Tensor elements, Scalar test_element, {_ISIN_OPTIONS}",
        family=COMPOSITE,
        exact=True,
        differentiable=False,
        doc=_ISIN,
    )
    .composite(
        lambda elements, test_element, *, assume_unique, invert: _isin(*_number_among(elements, test_element), invert)
    )
    .samples(lambda make, dtype: [Sample((make(3, 4, low=0, high=5), 2))], np.isin)
)
isin_of_number = (
    Op(
        f"isin.Scalar_Tensor(Scalar element, Tensor test_elements, {_ISIN_OPTIONS}",
        family=COMPOSITE,
        exact=True,
        differentiable=False,
        doc=_ISIN,
    )
    .composite(
        lambda element, test_elements, *, assume_unique, invert: _isin(
            *_number_among(test_elements, element)[::-1], invert
        )
    )
    .samples(lambda make, dtype: [Sample((2, make(3, 4, low=0, high=5)))], np.isin)
)
histc = (
    Op(
        "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
        exact=True,
        family=COMPOSITE,
        differentiable=False,
        doc="Histogram of `bins` equal bins between `min` and `max` (between the extremes where those are equal); what "
        "lies outside is not counted.",
    )
    .composite(lambda self, bins, min, max: _histc(self, bins, min, max))
    .samples(
        lambda make, dtype: (Sample((make(50, low=-2, high=2), 4)), Sample((make(50, low=-2, high=2), 3, -1, 1))),
        lambda x, bins, low=0, high=0: np.histogram(x, bins, (low, high) if low != high else None)[0],
    )
)
quantile = (
    Op(
        'quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor',
        exact=True,
        family=COMPOSITE,
        doc="""Quantiles of the elements, of all or along `dim`.

        Args:
            input: float32 or float64 tensor.
            q: Fraction in [0, 1], a number or a 1-d tensor of them, which becomes the first dimension of the result.
            dim: Dimension; by default the flattened tensor.
            keepdim: Whether the dimension stays, with size 1.
            interpolation: Between neighbours: "linear", "lower", "higher", "midpoint" or "nearest".
        """,
    )
    .composite(lambda self, q, dim, keepdim, *, interpolation: _quantile(self, q, dim, keepdim, interpolation, False))
    .samples(
        _quantile_samples := lambda make, dtype: (
            Sample((make(*shape), _fractions(make, q), *dim))
            for shape in ((9,), (3, 4))
            for q in ((), (3,))
            for dim in ((), (0,), (-1,))
        ),
        lambda x, q, dim=None: np.quantile(x, q, axis=dim),
    )
)
quantile_number = (
    Op(
        'quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> '
        "Tensor",
        exact=True,
        family=COMPOSITE,
        doc=quantile.doc,
    )
    .composite(lambda self, q, dim, keepdim, *, interpolation: _quantile(self, q, dim, keepdim, interpolation, False))
    .samples(
        lambda make, dtype: (Sample((make(3, 4), 0.3, *dim)) for dim in ((), (1,))),
        lambda x, q, dim=None: np.quantile(x, q, axis=dim),
    )
)
nanquantile = (
    Op(
        'nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> '
        "Tensor",
        exact=True,
        family=COMPOSITE,
        doc="`quantile` of the elements that are not NaN.",
    )
    .composite(lambda self, q, dim, keepdim, *, interpolation: _quantile(self, q, dim, keepdim, interpolation, True))
    .samples(_quantile_samples, lambda x, q, dim=None: np.nanquantile(x, q, axis=dim))
)
nanquantile_number = (
    Op(
        'nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> '
        "Tensor",
        exact=True,
        family=COMPOSITE,
        doc=nanquantile.doc,
    )
    .composite(lambda self, q, dim, keepdim, *, interpolation: _quantile(self, q, dim, keepdim, interpolation, True))
    .samples(lambda make, dtype: (Sample((make(3, 4), 0.3)),), lambda x, q: np.nanquantile(x, q))
)
unique = (
    Op(
        "unique(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None) -> "
        "Tensor",
        family=COMPOSITE,
        differentiable=False,
        dynamic=True,
        out=False,
        doc="""The distinct elements in ascending order, or with `dim` the distinct slices along it.

        Args:
            input: Real tensor.
            sorted: Accepted for PyTorch's sake: the result is always in order.
            return_inverse: Whether to return where each element of the input is in the result, too.
            return_counts: Whether to return how often each occurs, too.
            dim: Dimension whose slices are compared; by default elements are.

        Returns:
            Tensor, or a tuple of it, the inverse and the counts, as asked for.
        """,
    )
    .composite(
        lambda self, sorted, return_inverse, return_counts, dim: _unique(
            self, return_inverse, return_counts, dim, False
        )
    )
    .samples(
        lambda make, dtype: (Sample((x,)) for x in (make(20, low=-3, high=3).to(dtype), make(3, 4), make(0))),
        lambda x: np.unique(x),
    )
)
unique_consecutive = (
    Op(
        "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Tensor",
        family=COMPOSITE,
        differentiable=False,
        dynamic=True,
        out=False,
        doc="The elements without those that equal the one before; arguments and results as of `unique`.",
    )
    .composite(lambda self, return_inverse, return_counts, dim: _unique(self, return_inverse, return_counts, dim, True))
    .samples(
        lambda make, dtype: (Sample((make(20, low=-2, high=2),)), Sample((make(0),))),
        lambda x: x[np.concatenate(([True], x[1:] != x[:-1]))] if x.size else x,
    )
)


def _ascending(x: Any) -> Any:
    return x.sort(-1).values if not x.is_complex() else x


def _fractions(make: Any, shape: Any) -> Any:
    import rushlight

    return (
        rushlight.tensor(0.3, dtype=make.dtype, device=make.device)
        if shape == ()
        else rushlight.tensor([0.0, 0.4, 1.0], dtype=make.dtype, device=make.device)
    )


def _number_tensor(number: Any, like: Any) -> Any:
    import rushlight

    return rushlight.tensor(number, device=like.device)


def _search(xp: Any, boundaries: Any, x: Any, out_int32: bool, right: bool, sorter: Any) -> Any:
    side = "right" if right else "left"
    if boundaries.ndim == 1:
        found = xp.searchsorted(boundaries, x, side=side, sorter=sorter)
    else:
        rows = boundaries.reshape(-1, boundaries.shape[-1])
        orders = [None] * rows.shape[0] if sorter is None else sorter.reshape(rows.shape)
        values = x.reshape(rows.shape[0], -1)
        found = xp.stack(
            [xp.searchsorted(b, v, side=side, sorter=o) for b, v, o in zip(rows, values, orders, strict=True)]
        )
        found = found.reshape(x.shape)
    return xp.asarray(found).astype("int32" if out_int32 else "int64")


def _cumprod_grad(grad: Any, self: Any, dim: int) -> Any:
    # After the first zero every product is zero. There the gradient is that of the products with one in its place.
    import rushlight

    if rushlight.is_grad_enabled() and self.ndim and not self.is_meta and (self == 0).any():
        return _cumprod_grad_by_elements(grad, self, dim)
    reverse = reverse_cumsum.operator
    zeros = (self == 0).cumsum(dim)
    before = zeros == 0
    first = (self == 0) & (zeros == 1)
    filled = rushlight.where(before, self, 1)
    usual = reverse(grad * self.cumprod(dim).conj(), dim) / filled.conj()
    at_zero = reverse(grad * rushlight.where(first, 1, self).cumprod(dim).conj(), dim)
    return rushlight.where(before, usual, rushlight.where(first, at_zero, 0))


def _cumprod_grad_by_elements(grad: Any, self: Any, dim: int) -> Any:
    # For derivatives of any order: the products without each of the elements, in the square of the time and memory.
    import rushlight

    x, grad = self.movedim(dim, -1), grad.movedim(dim, -1)
    left_out = rushlight.eye(x.shape[-1], dtype=rushlight.bool, device=x.device)
    products = x.unsqueeze(-2).masked_fill(left_out, 1).cumprod(-1).triu()
    return (grad.unsqueeze(-2) * products.conj()).sum(-1).movedim(-1, dim)


def _logcumsumexp_grad(grad: Any, result: Any, self: Any, dim: int) -> Any:
    import rushlight

    reverse = lambda logs: logs.flip(dim).logcumsumexp(dim).flip(dim) if self.ndim else logs
    if self.is_complex():
        return (reverse(grad.log() - result.conj()) + self.conj()).exp()

    def part(positive: Any) -> Any:
        logs = rushlight.where(positive > 0, positive, 1).log()
        logs = rushlight.where((positive > 0) & (result != -float("inf")), logs - result, -float("inf"))
        return (reverse(logs) + self).exp()

    return part(grad) - part(-grad)


def _number_among(tensor: Any, number: float) -> tuple[Any, Any]:
    """Both in a dtype that holds the number: that of arithmetic between them, and int64 among integers."""
    import rushlight

    dtype = rushlight.result_type(tensor, number)
    if not (dtype.is_floating_point or dtype.is_complex or dtype is rushlight.bool):
        dtype = rushlight.int64
    return tensor.to(dtype), rushlight.full((), number, dtype=dtype, device=tensor.device)


def _isin(elements: Any, values: Any, invert: bool) -> Any:
    import rushlight

    for tensor in (elements, values):
        if tensor.is_complex() or tensor.dtype is rushlight.bool:
            raise RuntimeError(f"Unsupported input type encountered for isin(): got dtype={tensor.dtype}.")
    dtype = rushlight.result_type(elements, values)
    elements, values = elements.to(dtype), values.to(dtype).flatten()
    if values.numel() <= _FEW_VALUES:
        found = (elements.unsqueeze(-1) == values).any(-1)
    else:
        values = values.sort().values
        places = rushlight.searchsorted(values, elements.contiguous()).clamp(max=values.numel() - 1)
        found = values[places] == elements
    return ~found if invert else found


def _histc(self: Any, bins: int, low: float, high: float) -> Any:
    import rushlight

    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} (histc)")
    if not self.is_floating_point():
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{self.dtype}'")
    if self.device.type == "meta":
        return rushlight.empty(bins, dtype=self.dtype, device="meta")
    x = self.flatten()
    if self.dtype.itemsize == 2:
        x = x.float()
    if low == high and x.numel():
        low, high = x.min().item(), x.max().item()
    if low == high:
        low, high = low - 1, high + 1
    if not low <= high:
        raise RuntimeError(f"torch.histc: max must be larger than min, got min={low}, max={high}")
    outside = ~((x >= low) & (x <= high))
    places = ((x - low) / (high - low)).mul_(bins).clamp_(max=bins - 1).masked_fill_(outside, bins)
    return rushlight.bincount(places.to(rushlight.int64), minlength=bins + 1)[:bins].to(self.dtype)


def _quantile(self: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str, skip_nan: bool) -> Any:
    import rushlight

    name = "nanquantile" if skip_nan else "quantile"
    if self.dtype not in (rushlight.float32, rushlight.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype, got {self.dtype}")
    if self.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if not isinstance(q, rushlight.Tensor):
        q = rushlight.tensor(q, dtype=self.dtype, device=self.device)
    if q.dtype != self.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if q.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor, but got shape {tuple(q.shape)}")
    if self.device.type != "meta" and not ((q >= 0) & (q <= 1)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    x = self.flatten() if dim is None else self.movedim(dim, -1) if self.ndim else self.reshape(1)
    x = x.sort(-1).values
    last = (~x.isnan()).sum(-1, True) - 1 if skip_nan else rushlight.full((1,), x.shape[-1] - 1, device=x.device)
    rank = (q.reshape(-1, *(1,) * x.ndim) * last.clamp(min=0).to(x.dtype)).expand(-1, *x.shape[:-1], 1)
    if interpolation in ("lower", "higher", "nearest"):
        rank = {"lower": rank.floor, "higher": rank.ceil, "nearest": rank.round}[interpolation]()
    below = rank.floor()
    weight = rank - below if interpolation == "linear" else rushlight.full_like(rank, 0.5) * (rank != below)
    rows = x.expand(rank.shape[0], *x.shape)
    low = rows.gather(-1, below.to(rushlight.int64))
    result = low.lerp(rows.gather(-1, rank.ceil().to(rushlight.int64)), weight)
    if not skip_nan:
        result = rushlight.where(x.isnan().any(-1, True), float("nan"), result)
    result = result.squeeze(-1)
    if keepdim:
        result = (
            result.reshape(-1, *(1,) * self.ndim)
            if dim is None
            else result.unsqueeze(dim % self.ndim + 1 if self.ndim else 1)
        )
        if self.ndim == 0:
            result = result.reshape(-1)
    return result.squeeze(0) if q.ndim == 0 else result


def _unique_by_counting(self: Any, return_inverse: bool, return_counts: bool) -> Any:
    """For integers that lie close together; None for others."""
    n = self.numel()
    if n == 0 or self.is_floating_point() or self.is_complex() or self.is_meta:
        return None
    low, high = (int(x) for x in self.aminmax())
    if high - low >= 2 * n:
        return None
    places = self.flatten().to(_C.int64) - low
    counts = places.bincount()
    found = counts.nonzero().flatten()
    results = [(found + low).to(self.dtype)]
    if return_inverse:
        results.append(((counts != 0).cumsum(0) - 1)[places].reshape(self.shape))
    if return_counts:
        results.append(counts[found])
    return results[0] if len(results) == 1 else tuple(results)


def _unique(self: Any, return_inverse: bool, return_counts: bool, dim: int | None, consecutive: bool) -> Any:
    import rushlight

    if dim is None and not consecutive:
        counted = _unique_by_counting(self, return_inverse, return_counts)
        if counted is not None:
            return counted
    order = None
    if dim is None:
        in_order = self.flatten()
        if not consecutive:
            in_order, order = in_order.sort()
        differs = in_order[1:] != in_order[:-1]
    else:
        slices = self.movedim(dim, 0) if self.ndim else self.reshape(1)
        in_order = slices.reshape(slices.shape[0], -1 if slices.numel() else 0)
        if not consecutive:
            order = rushlight.arange(in_order.shape[0], device=self.device)
            for column in range(in_order.shape[1] - 1, -1, -1):  # stable sorts, the most significant last
                order = order[in_order[order, column].argsort()]
            in_order = in_order[order]
        differs = (in_order[1:] != in_order[:-1]).any(1)
    n = in_order.shape[0]
    is_new = rushlight.cat([differs.new_ones(min(n, 1)), differs])
    if dim is None:
        results = [in_order[is_new]]
    else:
        values = slices[is_new if order is None else order[is_new]]
        results = [values.movedim(0, dim) if self.ndim else values]
    if return_inverse:
        place = is_new.cumsum(0).sub_(1)
        if order is not None:
            place = rushlight.zeros_like(place).scatter(0, order, place)
        results.append(place.reshape(self.shape) if dim is None else place)
    if return_counts:
        first = is_new.nonzero().flatten()
        results.append(rushlight.cat((first[1:], first.new_full((min(n, 1),), n))) - first)
    return results[0] if len(results) == 1 else tuple(results)
