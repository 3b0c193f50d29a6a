"""Differences, derivatives and integrals of sampled functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _C
from .._op import COMPOSITE, Op, Sample
from ._dims import wrap_dim, wrap_dims
from ._half import rounded_once
from ._view import _calls


def _along(x: Any, dim: int, start: int, length: int) -> Any:
    return x.narrow(dim, start, max(length, 0))


# -- differences


@rounded_once
def _diff(x: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    if x.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    dim = wrap_dim(dim, x.ndim)
    for more in (prepend, append):
        if more is None:
            continue
        if more.ndim != x.ndim:
            raise RuntimeError(
                f"diff expects prepend or append to be the same dimension as input, got {more.ndim} and {x.ndim}"
            )
        for d in range(x.ndim):
            if d != dim and more.shape[d] != x.shape[d]:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({d}) = {x.shape[d]}, but got tensor.size({d}) = "
                    f"{more.shape[d]}"
                )
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return x.clone()
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        from ._join import cat

        x = cat.operator(parts, dim)
    for _ in range(min(n, x.shape[dim])):
        later, earlier = _along(x, dim, 1, x.shape[dim] - 1), _along(x, dim, 0, x.shape[dim] - 1)
        x = later ^ earlier if x.dtype is _C.bool else later - earlier
    return x


diff = (
    Op(
        "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
        family=COMPOSITE,
        doc="""Differences of neighbours along a dimension, `n` times over; of bools whether they differ.

        Args:
            input: Tensor of at least one dimension.
            n: How often; 0 gives a copy of the input alone, as in NumPy.
            dim: Dimension to go along.
            prepend: Tensor to put in front first, of the shape of the input but for `dim`.
            append: Tensor to put behind first.

        Returns:
            Tensor that is shorter by `n` in `dim`.

        Raises:
            RuntimeError: The input is 0-d, `n` is negative, or a shape does not fit.

        Example:
            >>> rushlight.diff(rushlight.tensor([1, 4, 9]))
            tensor([3, 5])
        """,
    )
    .composite(lambda self, n, dim, prepend, append: _diff(self, n, dim, prepend, append))
    .samples(
        lambda make, dtype: [
            Sample((make(5),)),
            Sample((make(3, 4), 2, 0)),
            Sample((make(3, 4), 0)),
            Sample((make(3, 4), 5)),
            Sample((make(4, 3).t(), 1, 1), {"prepend": make(3, 2), "append": make(3, 1)}),
        ],
        lambda x, n=1, dim=-1, prepend=None, append=None: np.diff(
            x, n, dim, *(np._NoValue if more is None else more for more in (prepend, append))
        ),
    )
)

# -- derivatives


@rounded_once
def _gradient(x: Any, spacing: Any, dim: Any, edge_order: int) -> Any:
    dims = list(range(x.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    given = spacing is not None and not isinstance(spacing, (int, float, complex))
    if given and len(spacing) != len(dims):
        if dim is None:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                f"'self.dim() = {x.ndim}', since dim argument was not given, but got a list of length {len(spacing)}"
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have "
            f"the same length, but got a spacing argument of length {len(spacing)} and a dim argument of length "
            f"{len(dims)}."
        )
    if x.dtype is _C.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError(f"torch.gradient only supports edge_order=1 and edge_order=2, got edge_order={edge_order}.")
    dims = wrap_dims(dims, x.ndim)
    for d in dims:
        if x.shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1, got "
                f"shape={tuple(x.shape)}, dim={d} and edge_order={edge_order}"
            )
    steps = list(spacing) if given else [1 if spacing is None else spacing] * len(dims)
    for step in steps:
        if isinstance(step, _C.Tensor) and step.ndim != 1:
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got an element with "
                f"{step.ndim} dimensions!"
            )
    return tuple(
        (_uneven if isinstance(step, _C.Tensor) else _even)(x, d, step, edge_order)
        for d, step in zip(dims, steps, strict=True)
    )


def _even(x: Any, dim: int, step: Any, edge_order: int) -> Any:
    from ._join import cat

    n = x.shape[dim]
    at = lambda i: _along(x, dim, i % n, 1)
    inside = (_along(x, dim, 2, n - 2) - _along(x, dim, 0, n - 2)) / (2 * step)
    if edge_order == 1:
        first, last = (at(1) - at(0)) / step, (at(-1) - at(-2)) / step
    else:
        first = (at(1) * 2 - at(0) * 1.5 - at(2) * 0.5) / step
        last = (at(-1) * 1.5 - at(-2) * 2 + at(-3) * 0.5) / step
    return cat.operator([first, inside, last], dim)


def _uneven(x: Any, dim: int, points: Any, edge_order: int) -> Any:
    """Parabolas through three neighbours, see `numpy.gradient`."""
    from ._join import cat

    n = x.shape[dim]
    widths = points.diff()
    shaped = lambda t: t.reshape(-1, *[1] * (x.ndim - dim - 1))
    at = lambda i: _along(x, dim, i % n, 1)
    before, after = shaped(widths[:-1]), shaped(widths[1:])
    inside = (
        _along(x, dim, 0, n - 2) * (-after / (before * (before + after)))
        + _along(x, dim, 1, n - 2) * ((after - before) / (before * after))
        + _along(x, dim, 2, n - 2) * (before / (after * (before + after)))
    )
    if edge_order == 1:
        first, last = (at(1) - at(0)) / widths[0], (at(-1) - at(-2)) / widths[-1]
    else:
        a, b = widths[0], widths[1]
        first = at(0) * (-(2 * a + b) / (a * (a + b))) + at(1) * ((a + b) / (a * b)) + at(2) * (-a / (b * (a + b)))
        a, b = widths[-2], widths[-1]
        last = at(-3) * (b / (a * (a + b))) + at(-2) * (-(a + b) / (a * b)) + at(-1) * ((a + 2 * b) / (b * (a + b)))
    return cat.operator([first, inside, last], dim)


def _gradient_samples(make: Any, dtype: Any) -> Iterator[Sample]:
    yield Sample((make(5),))
    yield Sample((make(4, 3),), {"dim": 0, "spacing": 2.0})
    yield Sample((make(4, 3),), {"dim": (1, 0), "spacing": (2, 0.5), "edge_order": 2})
    double = dtype in (_C.float64, _C.complex128)
    points = _C.tensor([0.0, 1.0, 1.5, 4.0], dtype=_C.float64 if double else _C.float32, device=make.device)
    yield Sample((make(2, 4, 3),), {"dim": (1,), "spacing": (points,)})
    yield Sample((make(4, 3),), {"dim": (0,), "spacing": (points,), "edge_order": 2})


def _gradient_reference(x: Any, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    dims = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    steps = spacing if isinstance(spacing, tuple) else [spacing] * len(dims)
    derivative: Any = np.gradient
    return tuple(derivative(x, step, axis=d, edge_order=edge_order) for d, step in zip(dims, steps, strict=True))


gradient = (
    Op(
        "gradient(Tensor self, *, Any spacing=None, Any dim=None, int edge_order=1) -> Tensor[]",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""Derivatives of a sampled function, by central differences that are exact for parabolas.

        Args:
            input: Values of the function on a grid.
            spacing: Distance of the samples, by default 1: a number, or one number for each of `dim`, or vectors of
                coordinates.
            dim: Dimension or dimensions to differentiate along, by default all.
            edge_order: 1 for the difference of two points at the edges, 2 for a parabola through three.

        Returns:
            Tuple of tensors of the shape of the input, one for each of `dim`.

        Raises:
            RuntimeError: Spacings and dimensions differ in number, a dimension is too short or given twice.

        Example:
            >>> rushlight.gradient(rushlight.tensor([1.0, 4.0, 9.0]))
            (tensor([3., 4., 5.]),)
        """,
    )
    .composite(lambda self, *, spacing, dim, edge_order: _gradient(self, spacing, dim, edge_order))
    .samples(_gradient_samples, _gradient_reference)
)

# -- integrals


def _widths(name: str, y: Any, x: Any, dim: int) -> Any:
    """Distances of the samples, in the shape that goes with `y` without its first element along `dim`."""
    if x.ndim == 0:
        raise RuntimeError(f"{name}: There must be one `x` value for each sample point, got a 0-d x.")
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(
                f"{name}: There must be one `x` value for each sample point, got {x.shape[0]} for {y.shape[dim]} points"
            )
        return x.diff().reshape(-1, *[1] * (y.ndim - dim - 1))
    if x.ndim < y.ndim:
        x = x.reshape(*[1] * (y.ndim - x.ndim), *x.shape)
    return x.diff(dim=dim + x.ndim - y.ndim)


def _areas(name: str, y: Any, dim: int, width: Callable[[], Any]) -> Any:
    """Twice the areas of the trapezoids."""
    n = y.shape[dim]
    return (_along(y, dim, 0, n - 1) + _along(y, dim, 1, n - 1)) * width()


def _check_integrand(name: str, y: Any, dim: int, x: Any, dx: Any) -> int:
    if y.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if y.dtype is _C.bool:
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported, got dtype={y.dtype}.")
    if x is not None and x.dtype is _C.bool:
        raise RuntimeError(f"{name}: received a bool input for `x`, but bool is not supported, got dtype={x.dtype}.")
    if isinstance(dx, (complex, bool)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number, got dx={dx}.")
    return wrap_dim(dim, y.ndim)


@rounded_once
def _trapezoid(name: str, y: Any, x: Any, dx: Any, dim: int) -> Any:
    dim = _check_integrand(name, y, dim, x, dx)
    if y.shape[dim] == 0:
        shape = [n for d, n in enumerate(y.shape) if d != dim]
        return y.new_zeros(shape)
    if x is not None:
        return _areas(name, y, dim, lambda: _widths(name, y, x, dim)).sum(dim) / 2
    n = y.shape[dim]
    ends = (_along(y, dim, 0, 1) + _along(y, dim, n - 1, 1)).squeeze(dim) * 0.5
    return (y.sum(dim) - ends) * dx


@rounded_once
def _cumulative_trapezoid(name: str, y: Any, x: Any, dx: Any, dim: int) -> Any:
    dim = _check_integrand(name, y, dim, x, dx)
    if y.shape[dim] == 0:
        return y.new_empty(y.shape)
    if x is None:
        return _areas(name, y, dim, lambda: dx).cumsum(dim) * 0.5
    return _areas(name, y, dim, lambda: _widths(name, y, x, dim)).cumsum(dim) * 0.5


def _np_cumulative(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    y = np.moveaxis(y, dim, -1)
    width = dx if x is None else np.diff(x)
    return np.moveaxis(np.cumsum((y[..., 1:] + y[..., :-1]) * width, -1) / 2, -1, dim)


def _integral(name: str, rule: Callable[..., Any], doc: str, reference: Any, **options: Any) -> tuple[Op, Op]:
    text = f"""{doc}

        Args:
            y: Values of the function.
            x: Where they are: a vector for `dim`, or a tensor that broadcasts with `y`.
            dx: Their distance, where there is no `x`.
            dim: Dimension to integrate over.

        Returns:
            Tensor of the integral; of integers in the default dtype.

        Raises:
            RuntimeError: The dtype is bool, or `x` does not fit.

        Example:
            >>> rushlight.{name}(rushlight.tensor([1.0, 2.0, 3.0]))
            {options.pop("example")}
        """
    options |= {"family": COMPOSITE, "method": False, "out": False, "doc": text}
    with_x = Op(f"{name}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", **options)
    with_dx = Op(f"{name}.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", **options)
    return (
        with_x.composite(lambda y, x, *, dim: rule(name, y, x, 1, dim)).samples(
            lambda make, dtype: [
                Sample((make(5), make(5))),
                Sample((make(2, 5), make(5))),
                Sample((make(2, 5), make(2, 5))),
            ],
            reference,
        ),
        with_dx.composite(lambda y, *, dx, dim: rule(name, y, None, dx, dim)).samples(
            _calls(((5,),), ((2, 5),), ((1,),)), reference
        ),
    )


def _np_trapezoid(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    return np.trapezoid(y, x, dx, dim)


trapezoid_x, trapezoid = _integral(
    "trapezoid",
    _trapezoid,
    "Integral by the trapezoidal rule along a dimension.",
    _np_trapezoid,
    aliases=("trapz",),
    example="tensor(4.)",
)
cumulative_trapezoid_x, cumulative_trapezoid = _integral(
    "cumulative_trapezoid",
    _cumulative_trapezoid,
    "Running integral by the trapezoidal rule, one element shorter than `y` along the dimension.",
    _np_cumulative,
    example="tensor([1.5000, 4.0000])",
)
