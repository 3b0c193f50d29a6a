"""Reductions: sums, extremes, truth, variance and norms over any dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._op import COMPOSITE, REDUCTION, Op, Sample


def _axis(dim: Any) -> Any:
    """NumPy's axis of a dim argument: None and the empty list are all dimensions."""
    if dim is None or isinstance(dim, int):
        return dim
    return None if not dim else dim[0] if len(dim) == 1 else tuple(dim)  # 0-d arrays take 0, but not (0,)


def _sum_dtype(x: Any, dtype: Any) -> Any:
    return dtype if dtype is not None else np.int64 if x.dtype.kind in "iub" else x.dtype


def _over_dims(
    *extra: Any,
    low: float | None = None,
    high: float | None = None,
    lists: bool = True,
    whole: bool = True,
    empty: bool = True,
) -> Any:
    """Samples of reductions: none, one and several dims, kept and not, of dense, strided and empty tensors."""

    def samples(make: Any, dtype: Any) -> Any:
        shapes = [(3, 4), (2, 3, 4), (5,), ()] + ([(0, 3)] if empty else [])
        for shape in shapes:
            x = make(*shape, low=low, high=high)
            if whole:
                yield Sample((x, *extra))
            yield Sample((x, *extra, 0))
            yield Sample((x, *extra, -1), {"keepdim": True})
            if lists and len(shape) > 1:
                yield Sample((x, *extra, (0, -1)), {"keepdim": True})
        yield Sample((make(4, 3, low=low, high=high).t(), *extra, 0))
        yield Sample((make(6, 4, low=low, high=high)[::2, 1:], *extra, 1))

    return samples


# -- sums

sum_ = (
    Op(
        "sum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        exact=False,
        family=REDUCTION,
        doc="""Sum of the elements, over all dimensions or those of `dim`.

        Args:
            input: Tensor of any shape.
            dim: Dimension or dimensions to sum over; by default all.
            keepdim: Whether they stay, with size 1.
            dtype: Dtype to convert to first; integers and bool sum in int64 by default.

        Returns:
            Tensor without the dimensions of `dim`.

        Example:
            >>> rushlight.ones(2, 3).sum(0)
            tensor([2., 2., 2.])
        """,
    )
    .array(lambda xp, x, dim, keepdim, dtype: xp.sum(x, axis=_axis(dim), keepdims=keepdim, dtype=_sum_dtype(x, dtype)))
    .grad(self="expand_reduced(grad, self, dim, keepdim)")
    .samples(_over_dims())
)
nansum = (
    Op(
        "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        exact=False,
        family=REDUCTION,
        doc="`sum` with every NaN as zero.",
    )
    .array(
        lambda xp, x, dim, keepdim, dtype: xp.nansum(x, axis=_axis(dim), keepdims=keepdim, dtype=_sum_dtype(x, dtype))
    )
    .grad(self="expand_reduced(grad, self, dim, keepdim) * logical_not(isnan(self))")
    .samples(_over_dims())
)
mean = (
    Op(
        "mean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        exact=False,
        family=REDUCTION,
        doc="""Mean of the elements, over all dimensions or those of `dim`.

        Args:
            input: Floating or complex tensor of any shape.
            dim: Dimension or dimensions; by default all.
            keepdim: Whether they stay, with size 1.
            dtype: Dtype to convert to first.

        Returns:
            Tensor without the dimensions of `dim`; NaN where there is nothing to average.

        Raises:
            RuntimeError: The dtype is an integer's or bool.
        """,
    )
    .array(
        lambda xp, x, dim, keepdim, dtype: xp.mean(
            x, axis=_axis(dim) if x.ndim else None, keepdims=keepdim, dtype=dtype
        )
    )
    .grad(self="expand_reduced(grad / reduced_numel(self, dim), self, dim, keepdim)")
    .samples(_over_dims(empty=False))
)
nanmean = (
    Op(
        "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        family=COMPOSITE,
        doc="`mean` of the elements that are not NaN.",
    )
    .composite(lambda self, dim, keepdim, *, dtype: _nanmean(self, dim, keepdim, dtype))
    .samples(
        _over_dims(empty=False), lambda x, dim=None, keepdim=False: np.nanmean(x, axis=_axis(dim), keepdims=keepdim)
    )
)
prod = (
    Op(
        "prod(Tensor self, int? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        exact=False,
        family=REDUCTION,
        doc="Product of the elements, over all dimensions or along `dim`; integers and bool in int64.",
    )
    .array(lambda xp, x, dim, keepdim, dtype: xp.prod(x, axis=dim, keepdims=keepdim, dtype=_sum_dtype(x, dtype)))
    .grad(self=lambda grad, self, dim, keepdim: _prod_grad(grad, self, dim, keepdim))
    .samples(_over_dims(lists=False))
)

# -- extremes

_EXTREMES = (
    "(eq(self, unsqueeze_reduced(result, self, dim, keepdim))"
    " | (isnan(self) & isnan(unsqueeze_reduced(result, self, dim, keepdim))))"
)
_EXTREME_GRAD = f"unsqueeze_reduced(grad, self, dim, keepdim) * {_EXTREMES} / sum({_EXTREMES}, dim, True)"
amax = (
    Op(
        "amax(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
        family=REDUCTION,
        doc="Largest element over the dimensions of `dim` (by default all); NaN wins, ties share the gradient.",
    )
    .array(lambda xp, x, dim, keepdim: xp.max(x, axis=_axis(dim), keepdims=keepdim))
    .grad(self=_EXTREME_GRAD)
    .samples(_over_dims(empty=False))
)
amin = (
    Op(
        "amin(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
        family=REDUCTION,
        doc="Smallest element over the dimensions of `dim` (by default all); NaN wins, ties share the gradient.",
    )
    .array(lambda xp, x, dim, keepdim: xp.min(x, axis=_axis(dim), keepdims=keepdim))
    .grad(self=_EXTREME_GRAD)
    .samples(_over_dims(empty=False))
)
aminmax = (
    Op(
        "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
        family=REDUCTION,
        doc="Smallest and largest element, over all dimensions or along `dim`.",
    )
    .array(lambda xp, x, dim, keepdim: (xp.min(x, axis=dim, keepdims=keepdim), xp.max(x, axis=dim, keepdims=keepdim)))
    .grad(
        self="unsqueeze_reduced(grads[0], self, dim, keepdim) * eq(self, unsqueeze_reduced(results[0], self, dim, "
        "keepdim))"
        " / sum(eq(self, unsqueeze_reduced(results[0], self, dim, keepdim)), dim, True)"
        " + unsqueeze_reduced(grads[1], self, dim, keepdim) * eq(self, unsqueeze_reduced(results[1], self, dim, "
        "keepdim))"
        " / sum(eq(self, unsqueeze_reduced(results[1], self, dim, keepdim)), dim, True)"
    )
    .samples(
        lambda make, dtype: (
            Sample((make(3, 4),)),
            Sample((make(3, 4),), {"dim": 1, "keepdim": True}),
            Sample((make(2, 3, 4),), {"dim": 0}),
        )
    )
)

_PLACE_DOC = """Index of the {0} element of the flattened tensor, or along `dim`: the first of equals, of NaN if any.

Args:
    input: Real tensor.
    dim: Dimension to search along; by default the flattened tensor.
    keepdim: Whether it stays, with size 1.

Returns:
    int64 tensor.

Example:
    >>> rushlight.tensor([3, 9, 1]).{1}()
    tensor({2})
"""
argmax = (
    Op(
        "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        family=REDUCTION,
        differentiable=False,
        doc=_PLACE_DOC.format("largest", "argmax", 1),
    )
    .array(lambda xp, x, dim, keepdim: xp.argmax(x, axis=dim, keepdims=keepdim))
    .samples(_over_dims(lists=False, empty=False))
)
argmin = (
    Op(
        "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        family=REDUCTION,
        differentiable=False,
        doc=_PLACE_DOC.format("smallest", "argmin", 2),
    )
    .array(lambda xp, x, dim, keepdim: xp.argmin(x, axis=dim, keepdims=keepdim))
    .samples(_over_dims(lists=False, empty=False))
)


def _extreme(name: str, place: str, adjective: str) -> tuple[Op, Op, Op]:
    """The three overloads of max and min: of all elements, along a dimension with the indices, of two tensors."""
    doc = f"""The {adjective} element; with `dim` those along it and their indices; with `other` the {adjective} of two.

    Args:
        input: Tensor of any shape.
        dim: Dimension to reduce.
        keepdim: Whether it stays, with size 1.
        other: Tensor to compare with element by element, as `{name}imum` does.

    Returns:
        Tensor, or (values, indices) with `dim`: the first of equals, and NaN if there is any.
    """
    whole = (
        Op(f"{name}(Tensor self) -> Tensor", family=REDUCTION, exact=False, doc=doc)
        .array(lambda xp, x: getattr(xp, name)(x))
        .grad(
            self="grad * (eq(self, result) | (isnan(self) & isnan(result)))"
            " / sum(eq(self, result) | (isnan(self) & isnan(result)))"
        )
        .samples(lambda make, dtype: (Sample((make(*shape),)) for shape in ((), (5,), (3, 4))))
    )
    along = (
        Op(
            f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
            family=REDUCTION,
            doc=doc,
        )
        .array(
            lambda xp, x, dim, keepdim: (
                getattr(xp, name)(x, axis=dim, keepdims=keepdim),
                getattr(xp, place)(x, axis=dim, keepdims=keepdim),
            )
        )
        .grad(
            self="scatter(zeros_of(self), dim, unsqueeze_reduced(results[1], self, dim, keepdim), "
            "unsqueeze_reduced(grads[0], self, dim, keepdim))"
        )
        .samples(_over_dims(lists=False, whole=False, empty=False))
    )
    pair = (
        Op(f"{name}.other(Tensor self, Tensor other) -> Tensor", family=COMPOSITE, doc=doc)
        .composite(lambda self, other: _of_two(f"{name}imum", self, other))
        .samples(lambda make, dtype: (Sample((make(3, 4), make(4))),), getattr(np, f"{name}imum"))
    )
    return whole, pair, along


max_, max_other, max_dim = _extreme("max", "argmax", "largest")
min_, min_other, min_dim = _extreme("min", "argmin", "smallest")

# -- truth

any_ = (
    Op(
        "any(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
        family=REDUCTION,
        differentiable=False,
        doc="Whether any element is not zero; bool, or uint8 for uint8.",
    )
    .array(lambda xp, x, dim, keepdim: _truth(xp.any, x, dim, keepdim))
    .samples(_over_dims())
)
all_ = (
    Op(
        "all(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
        family=REDUCTION,
        differentiable=False,
        doc="Whether all elements are not zero; bool, or uint8 for uint8.",
    )
    .array(lambda xp, x, dim, keepdim: _truth(xp.all, x, dim, keepdim))
    .samples(_over_dims())
)
count_nonzero = (
    Op(
        "count_nonzero(Tensor self, int[1]? dim=None) -> Tensor",
        family=REDUCTION,
        differentiable=False,
        doc="Number of elements that are not zero, int64.",
    )
    .array(lambda xp, x, dim: xp.asarray(xp.count_nonzero(x, axis=_axis(dim))))
    .samples(lambda make, dtype: (Sample((make(3, 4), *dim)) for dim in ((), (0,), ((0, 1),), (-1,))))
)

# -- variance


def _spread(name: str, root: bool, with_mean: bool) -> tuple[Op, ...]:
    what = "Standard deviation" if root else "Variance"
    doc = f"""{what}{" and mean" if with_mean else ""} of the elements, over all dimensions or those of `dim`.

    The squared deviations are divided by `n - correction`. Two passes over blocks that fit the cache, merged by the
    formula of Chan, Golub and LeVeque (1979): no cancellation, whatever the mean.

    Args:
        input: Floating or complex tensor.
        dim: Dimension or dimensions; by default all.
        unbiased: False for correction=0.
        correction: Degrees of freedom to take away; 1 by default.
        keepdim: Whether the dimensions stay, with size 1.
    """
    results = "(Tensor, Tensor)" if with_mean else "Tensor"

    def array(xp: Any, x: Any, dim: Any, correction: Any, keepdim: Any) -> Any:
        ddof = 1 if correction is None else correction
        spread = (xp.std if root else xp.var)(x, axis=_axis(dim), ddof=ddof, keepdims=keepdim)
        return (spread, xp.mean(x, axis=_axis(dim), keepdims=keepdim)) if with_mean else spread

    def rule(dim: str, correction: str, keepdim: str) -> str:
        grad, result = ("grads[0]", "results[0]") if with_mean else ("grad", "result")
        slope, factor = f"self - mean(self, {dim}, True)", 2
        if root:  # the ratio comes first, which does not leave the range; 0 where all elements are equal
            root_of = f"unsqueeze_reduced(where({result} == 0, inf, {result}), self, {dim}, {keepdim})"
            slope, factor = f"({slope}) / {root_of}", 1
        scale = f"{factor} / (reduced_numel(self, {dim}) - {correction})"
        total = f"unsqueeze_reduced({grad}, self, {dim}, {keepdim}) * (({slope}) * ({scale}))"
        if with_mean:
            total += f" + expand_reduced(grads[1] / reduced_numel(self, {dim}), self, {dim}, {keepdim})"
        return total

    return (
        Op(
            f"{name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
            f"{results}",
            family=REDUCTION,
            exact=False,
            method=not with_mean,
            doc=doc,
        )
        .array(array)
        .grad(self=rule("dim", "(1 if correction is None else correction)", "keepdim"))
        .samples(
            lambda make, dtype: (
                Sample((make(3, 4),)),
                Sample((make(3, 4), 0), {"correction": 0}),
                Sample((make(2, 3, 4), (0, 2)), {"keepdim": True}),
                Sample((make(4, 3).t(), 1), {"correction": 2}),
            )
        ),
        Op(
            f"{name}(Tensor self, bool unbiased=True) -> {results}",
            family=REDUCTION,
            exact=False,
            method=not with_mean,
            doc=doc,
        )
        .array(lambda xp, x, unbiased: array(xp, x, None, int(unbiased), False))
        .grad(self=rule("None", "unbiased", "False"))
        .samples(lambda make, dtype: (Sample((make(3, 4), False)),)),
        Op(
            f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> {results}",
            family=REDUCTION,
            exact=False,
            method=not with_mean,
            doc=doc,
        )
        .array(lambda xp, x, dim, unbiased, keepdim: array(xp, x, dim, int(unbiased), keepdim))
        .grad(self=rule("dim", "unbiased", "keepdim"))
        .samples(lambda make, dtype: (Sample((make(3, 4), 0, False)), Sample((make(3, 4), 1, True, True)))),
    )


var_correction, var, var_dim = _spread("var", root=False, with_mean=False)
std_correction, std, std_dim = _spread("std", root=True, with_mean=False)
var_mean_correction, var_mean, var_mean_dim = _spread("var_mean", root=False, with_mean=True)
std_mean_correction, std_mean, std_mean_dim = _spread("std_mean", root=True, with_mean=True)

# -- norms

vector_norm = (
    Op(
        "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
        "dtype=None) -> Tensor",
        family=REDUCTION,
        function=False,
        method=False,
        doc="""`(sum |x|^ord)^(1/ord)` over the dimensions of `dim`.

        The largest or smallest magnitude for an infinite `ord`, the number of elements that are not zero for 0. Does
        not overflow where the norm itself fits.
        """,
    )
    .array(
        lambda xp, x, ord, dim, keepdim, dtype: _vector_norm(
            xp, _of_floats(x if dtype is None else x.astype(dtype)), ord, _axis(dim), keepdim
        )
    )
    .grad(self=lambda grad, result, self, ord, dim, keepdim: _norm_grad(grad, result, self, ord, dim, keepdim))
    .samples(
        lambda make, dtype: (
            Sample((make(3, 4), p, *dim), {"keepdim": bool(dim)})
            for p in (2, 1, 0, 3, 0.5, float("inf"), -float("inf"))
            for dim in ((), (0,), ((0, 1),))
        )
    )
)
norm = (
    Op(
        'norm(Tensor self, Any p="fro", int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor',
        exact=True,
        family=COMPOSITE,
        doc="""Norm of vectors, or the Frobenius norm of matrices, over `dim` (by default of the flattened tensor).

        Args:
            input: Floating or complex tensor.
            p: Exponent of the vector norm, inf, -inf, or "fro" for 2. "nuc" needs rushlight.linalg.
            dim: Dimension or dimensions; by default all.
            keepdim: Whether they stay, with size 1.
            dtype: Dtype to convert to first.
        """,
    )
    .composite(lambda self, p, dim, keepdim, *, dtype: _norm(self, p, dim, keepdim, dtype))
    .samples(
        _over_dims(2, empty=False), lambda x, p=2, dim=None, keepdim=False: _vector_norm(np, x, p, _axis(dim), keepdim)
    )
)
dist = (
    Op(
        "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="The p-norm of `input - other`.",
    )
    .composite(lambda self, other, p: _norm(self - other, p, None, False, None))
    .samples(
        lambda make, dtype: (Sample((make(3, 4), make(4), p)) for p in (2, 1, float("inf"))),
        lambda x, y, p=2: _vector_norm(np, x - y, p, None, False),
    )
)
sum_to_size = (
    Op(
        "sum_to_size(Tensor self, int[] size) -> Tensor",
        family=COMPOSITE,
        function=False,
        out=False,
        doc="""The sum over what broadcasting to the shape of this tensor repeats: the gradient of `expand`.

        Args:
            size: A shape that broadcasts to this tensor's, loose ints or one sequence.

        Returns:
            Tensor of that shape; the tensor itself where it has it.

        Raises:
            RuntimeError: The shape does not broadcast to this tensor's.
        """,
    )
    .composite(lambda self, size: _sum_to_size(self, tuple(size)))
    .samples(
        lambda make, dtype: (Sample((make(2, 3), size)) for size in ((3,), (2, 1), (1, 1), (2, 3), ())),
        lambda x, size: x.sum(tuple(range(x.ndim - len(size)))).sum(
            tuple(d for d, n in enumerate(size) if n == 1), keepdims=True
        ),
    )
)


def _sum_to_size(x: Any, size: tuple[int, ...]) -> Any:
    if not size:
        return x.sum()
    lead = x.ndim - len(size)
    if lead < 0 or any(n not in (1, m) for n, m in zip(size, x.shape[lead:], strict=True)):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(x.shape)}}}.")
    dims = [d for d, m in enumerate(x.shape) if d < lead or (size[d - lead] == 1 and m != 1)]
    return x.sum(dims, keepdim=True).reshape(size) if dims else x


def _truth(fn: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    axis = () if dim is not None and not isinstance(dim, int) and len(dim) == 0 else _axis(dim)
    result = fn(x, axis=axis, keepdims=keepdim)
    return result.astype(x.dtype) if x.dtype == np.uint8 else result


def _of_floats(x: Any) -> Any:
    if x.dtype.kind in "biu":
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {x.dtype}. Pass dtype=."
        )
    return x


def _vector_norm(xp: Any, x: Any, p: float, axis: Any, keepdim: bool) -> Any:
    size = xp.abs(x)
    if p == float("inf"):
        return xp.max(size, axis=axis, keepdims=keepdim)
    if p == -float("inf"):
        return xp.min(size, axis=axis, keepdims=keepdim)
    if p == 0:
        return xp.sum(size != 0, axis=axis, keepdims=keepdim).astype(size.dtype)
    return xp.sum(size**p, axis=axis, keepdims=keepdim) ** (1 / p)


def _of_two(name: str, self: Any, other: Any) -> Any:
    import rushlight

    return getattr(rushlight, name)(self, other)


def _dims(self: Any, dim: Any) -> list[int]:
    dims = [dim] if isinstance(dim, int) else list(dim) if dim is not None and len(dim) else range(self.ndim)
    return [d % max(self.ndim, 1) for d in dims] if self.ndim else []


def _restored(x: Any, self: Any, dim: Any, keepdim: bool) -> Any:
    """The result of a reduction of `self` with the reduced dimensions back, as size 1."""
    if keepdim:
        return x
    for d in sorted(_dims(self, dim)):
        x = x.unsqueeze(d)
    return x


def _nanmean(self: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if not (self.is_floating_point() or self.is_complex()):
        name = str(self.dtype).rpartition(".")[2]
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {name}")
    return self.nansum(dim, keepdim, dtype=dtype) / (~self.isnan()).sum(dim, keepdim)


def _prod_grad(grad: Any, self: Any, dim: Any, keepdim: bool) -> Any:
    # Products of the elements before and after each one: right where there are zeros, and differentiable again.
    import rushlight

    if self.ndim == 0:
        return grad
    x = self.reshape(-1) if dim is None else self
    along = 0 if dim is None else dim
    grad = grad.reshape(1) if dim is None else _restored(grad, self, dim, keepdim)
    n = x.shape[along]
    if n == 0:
        return rushlight.zeros_like(self)
    one = rushlight.ones_like(x.narrow(along, 0, 1))
    before = _running_product(rushlight.cat((one, x.narrow(along, 0, n - 1)), along), along)
    after = _running_product(rushlight.cat((one, x.flip(along).narrow(along, 0, n - 1)), along), along).flip(along)
    return (grad * (before * after).conj()).reshape(self.shape)


def _running_product(x: Any, dim: int) -> Any:
    import rushlight

    n, reach = x.shape[dim], 1
    while reach < n:  # each element holds the product of `reach` elements up to it; doubling takes log2(n) rounds
        x = rushlight.cat((x.narrow(dim, 0, reach), x.narrow(dim, reach, n - reach) * x.narrow(dim, 0, n - reach)), dim)
        reach *= 2
    return x


def _norm_grad(grad: Any, result: Any, self: Any, p: float, dim: Any, keepdim: bool) -> Any:
    import rushlight

    grad, result = _restored(grad, self, dim, keepdim), _restored(result, self, dim, keepdim)
    if p == 0:
        return rushlight.zeros_like(self)
    if p == 1:
        return self.sgn() * grad
    if p in (float("inf"), -float("inf")):
        hit = self.abs() == result
        return self.sgn() * (grad * hit / hit.sum(dim, True))
    # Ratios come first, which neither over- nor underflow, as a gradient over a length may.
    length, grad = result.masked_fill(result == 0, 1), grad.masked_fill(result == 0, 0)
    if p == 2:
        return self / length * grad
    size = self.abs()
    power = ((size / length).masked_fill(size == 0, 1) ** (p - 1)).masked_fill(size == 0, 0)
    return self.sgn() * power * grad


def _norm(self: Any, p: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if isinstance(p, str):
        if p == "nuc":
            import rushlight

            matrix = self if dtype is None else self.to(dtype)
            return rushlight.linalg.matrix_norm(matrix, "nuc", tuple(range(self.ndim)) if dim is None else dim, keepdim)
        if p != "fro":
            raise RuntimeError(f"norm: p is a number, 'fro' or 'nuc', got p={p!r}.")
        if isinstance(dim, (tuple, list)) and len(dim) > 2:
            raise RuntimeError(f"norm: dim must be a 2-tuple of the dimensions of a matrix for p='fro', got dim={dim}.")
        p = 2
    return vector_norm.operator(self, 2 if p is None else p, dim, keepdim, dtype=dtype)
