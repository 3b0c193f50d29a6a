"""Transforms: invertible maps between spaces, with the logarithms of their Jacobian determinants."""

from __future__ import annotations

import functools
import math
import operator
import weakref
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Size, Tensor

from . import constraints
from .distribution import Distribution
from .utils import _sum_rightmost, lazy_property, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform",
    "identity_transform",
]  # fmt: skip


class Transform:
    """A map with an inverse and a Jacobian determinant.

    A subclass gives `_call`, `_inverse` and `log_abs_det_jacobian`, sets `domain`, `codomain` and `bijective`, and
    `sign` where it is monotone. A map that is not bijective has a right inverse: `t(t.inv(t(x))) == t(x)`.

    Args:
        cache_size: 1 keeps the last pair of input and output, so that the inverse of an output is the very input: for
            inverses that are expensive or lose precision. 0 keeps none.

    Attributes:
        domain: Constraint of inputs.
        codomain: Constraint of outputs.
        bijective: Whether there is one input to each output.

    Raises:
        ValueError: `cache_size` is neither 0 nor 1.

    Example:
        >>> import rushlight as torch
        >>> transform = torch.distributions.ExpTransform()
        >>> transform.inv(transform(torch.tensor([0.0, 1.0])))
        tensor([0., 1.])
    """

    domain: Any
    codomain: Any
    bijective: Any = False

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: weakref.ref[Transform] | None = None
        self._cached_x_y: tuple[Any, Any] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}  # weak references do not pickle

    @property
    def event_dim(self) -> int:
        """How many rightmost dimensions make one value, where the same for inputs and outputs."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Any:
        """The inverse transform."""
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        """1 where the map increases, -1 where it decreases: a number or a tensor, of monotone univariate maps."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same map with another `cache_size`."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        """The output for an input."""
        if self._cache_size == 0:
            return self._call(x)
        known, y = self._cached_x_y
        if x is known:
            return y
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size == 0:
            return self._inverse(y)
        x, known = self._cached_x_y
        if y is known:
            return x
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Logarithm of the absolute value of the determinant of dy/dx.

        Args:
            x: Inputs.
            y: Their outputs.

        Returns:
            Tensor of the shape of the batch of inputs.
        """
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """Shape of the outputs for inputs of a shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Shape of the inputs to outputs of a shape."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a transform, whose cache it shares."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._forward = transform

    @property
    def domain(self) -> Any:
        return self._forward.codomain

    @property
    def codomain(self) -> Any:
        return self._forward.domain

    @property
    def bijective(self) -> Any:
        return self._forward.bijective

    @property
    def sign(self) -> Any:
        return self._forward.sign

    @property
    def inv(self) -> Any:
        return self._forward

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._forward.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._forward == other._forward

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        return self._forward._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._forward.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._forward.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._forward.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._forward!r})"


class ComposeTransform(Transform):
    """Transforms one after the other.

    Args:
        parts: The transforms, the first that applies first.
        cache_size: See `Transform`; each part caches then.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.distributions import AffineTransform, ComposeTransform, ExpTransform
        >>> ComposeTransform([ExpTransform(), AffineTransform(1.0, 2.0)])(torch.tensor(0.0))
        tensor(3.)
    """

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts
        super().__init__(cache_size=cache_size)

    @lazy_property
    def domain(self) -> Any:
        """Constraint of inputs, of as many dimensions as any part needs."""
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim = max(event_dim + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _with_event_dim(self.parts[0].domain, event_dim)

    @lazy_property
    def codomain(self) -> Any:
        """Constraint of outputs, of as many dimensions as any part needs."""
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim = max(event_dim + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _with_event_dim(self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self) -> bool:
        """Whether all parts are."""
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        """Product of the signs of the parts."""
        return math.prod(part.sign for part in self.parts)

    @property
    def inv(self) -> Any:
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv, inverse._inv = weakref.ref(inverse), weakref.ref(self)
        return inverse

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return rl.zeros_like(x)
        points = [x]
        for part in self.parts[:-1]:
            points.append(part(points[-1]))
        points.append(y)
        terms = []
        event_dim = self.domain.event_dim
        for part, before, after in zip(self.parts, points[:-1], points[1:], strict=True):
            extra = event_dim - part.domain.event_dim
            terms.append(_sum_rightmost(part.log_abs_det_jacobian(before, after), extra))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


def _with_event_dim(constraint: Any, event_dim: int) -> Any:
    extra = event_dim - constraint.event_dim
    return constraints.independent(constraint, extra) if extra else constraint


class IndependentTransform(Transform):
    """A transform whose rightmost batch dimensions are part of the event: Jacobian terms are summed over them.

    Args:
        base_transform: Transform of the parts.
        reinterpreted_batch_ndims: How many dimensions to take into the event.
        cache_size: See `Transform`.
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size)

    @property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> Any:
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        self._check(x, self.domain)
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        self._check(y, self.codomain)
        return self.base_transform.inv(y)

    def _check(self, value: Any, space: Any) -> None:
        if value.dim() < space.event_dim:
            raise ValueError("Too few dimensions on input")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Gives the rightmost dimensions another shape.

    Args:
        in_shape: Shape of an input.
        out_shape: Shape of its output.
        cache_size: See `Transform`.

    Raises:
        ValueError: The shapes have different numbers of elements.
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Any) -> Any:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Any) -> Any:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.out_shape, self.in_shape)


def _reshaped(shape: Any, old: Size, new: Size) -> Size:
    shape = Size(shape)
    if len(shape) < len(old):
        raise ValueError("Too few dimensions on input")
    cut = len(shape) - len(old)
    if shape[cut:] != old:
        raise ValueError(f"Shape mismatch: expected {tuple(shape[cut:])} but got {old}")
    return shape[:cut] + new


class ExpTransform(Transform):
    """`exp(x)`, from the reals to the positive numbers."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """`x ** exponent` of positive numbers.

    Args:
        exponent: Number or tensor, not 0.
        cache_size: See `Transform`.
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.exponent = rl.as_tensor(exponent)

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)

    @lazy_property
    def sign(self) -> Any:
        """Sign of the exponent."""
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return _broadcast(shape, self.exponent)

    def inverse_shape(self, shape: Any) -> Any:
        return _broadcast(shape, self.exponent)


class SigmoidTransform(Transform):
    """`1 / (1 + exp(-x))`, from the reals to the open unit interval; the inverse is logit."""

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SigmoidTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        limits = rl.finfo(x.dtype)
        return x.sigmoid().clamp(limits.tiny, 1 - limits.eps)

    def _inverse(self, y: Any) -> Any:
        limits = rl.finfo(y.dtype)
        y = y.clamp(limits.tiny, 1 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -_softplus(-x) - _softplus(x)


class SoftplusTransform(Transform):
    """`log(1 + exp(x))`, from the reals to the positive numbers."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftplusTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return _softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -_softplus(-x)


def _softplus(x: Any) -> Any:
    return rl.logaddexp(x, x.new_zeros(()))


class TanhTransform(Transform):
    """`tanh(x)`, from the reals to (-1, 1).

    Values near the ends are rounded to them, which have no inverse: `cache_size=1` keeps the input.
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TanhTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2.0 * (math.log(2.0) - x - _softplus(-2.0 * x))


class AbsTransform(Transform):
    """`abs(x)`; not bijective, the inverse is the identity."""

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """`loc + scale * x`.

    Args:
        loc: Number or tensor.
        scale: Number or tensor, not 0.
        event_dim: How many rightmost dimensions make one value.
        cache_size: See `Transform`.
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def domain(self) -> Any:
        return _with_event_dim(constraints.real, self._event_dim)

    codomain = domain

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    __hash__ = object.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if isinstance(self.scale, Tensor):
            result = self.scale.abs().log().expand(rl.broadcast_shapes(x.shape, self.scale.shape))
        else:
            result = rl.full_like(x, math.log(abs(self.scale)))
        return _sum_rightmost(result, self._event_dim)

    def forward_shape(self, shape: Any) -> Any:
        return _broadcast(shape, self.loc, self.scale)

    inverse_shape = forward_shape


def _broadcast(shape: Any, *parameters: Any) -> Any:
    """A shape broadcast with those of the parameters that are tensors."""
    others = [p.shape for p in parameters if isinstance(p, Tensor) and p.shape and p.shape != shape]
    return rl.broadcast_shapes(shape, *others) if others else shape


def _same(a: Any, b: Any) -> bool:
    equal = a == b
    return bool(equal.all()) if isinstance(equal, Tensor) else equal


class CorrCholeskyTransform(Transform):
    """Vectors of length n (n - 1) / 2 to Cholesky factors of n by n correlation matrices.

    Partial correlations are the hyperbolic tangents of the elements, and a row of the factor breaks a stick of length 1
    by them (Lewandowski, Kurowicka and Joe, 2009).
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = rl.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), diag=-1)
        left = (1 - partial.square()).sqrt().cumprod(-1)
        n = partial.shape[-1]
        diagonal = rl.eye(n, dtype=x.dtype, device=x.device)
        shifted = rl.cat([left.new_ones((*left.shape[:-1], 1)), left[..., :-1]], -1)
        return (partial + diagonal) * shifted

    def _inverse(self, y: Any) -> Any:
        partial = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(self._left(y), diag=-1).sqrt()
        return partial.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        # An element of the factor is its partial correlation times the root of what its row has left there.
        left = tril_matrix_to_vec(self._left(y)[..., 1:, 1:], diag=-1)
        return 0.5 * left.log().sum(-1) - 2 * (x + _softplus(-2 * x) - math.log(2.0)).sum(-1)

    @staticmethod
    def _left(y: Any) -> Any:
        """Sums of the squares of the elements of a row from each element on: 1 less those before it, to rounding."""
        return y.square().flip(-1).cumsum(-1).flip(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        k = shape[-1]
        n = round((0.25 + 2 * k) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != k:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


class SoftmaxTransform(Transform):
    """`softmax(x)` along the last dimension; not bijective, the inverse is the logarithm."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return x.softmax(-1)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        return _at_least_a_vector(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _at_least_a_vector(shape)


def _at_least_a_vector(shape: Any) -> Any:
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")
    return shape


class StickBreakingTransform(Transform):
    """Vectors of length k - 1 to points of the simplex of k coordinates, by breaking a stick at logistic fractions."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        limits = rl.finfo(x.dtype)
        fraction = (x - self._offset(x)).sigmoid().clamp(limits.tiny, 1 - limits.eps)
        left = (1 - fraction).cumprod(-1)
        ones = left.new_ones((*left.shape[:-1], 1))
        return rl.cat([fraction, ones], -1) * rl.cat([ones, left], -1)

    def _inverse(self, y: Any) -> Any:
        broken = y[..., :-1]
        left = y.flip(-1).cumsum(-1).flip(-1)[..., 1:]  # 1 less what was broken off, to rounding
        left = left.clamp(min=rl.finfo(y.dtype).tiny)
        return broken.log() - left.log() + self._offset(broken)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - self._offset(x)
        return (-x - _softplus(-x) + y[..., :-1].log()).sum(-1)

    @staticmethod
    def _offset(x: Any) -> Any:
        """Makes 0 the centre of the simplex: the i-th fraction is then 1 / (k - i)."""
        return rl.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()

    def forward_shape(self, shape: Any) -> Any:
        return (*_at_least_a_vector(shape)[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        return (*_at_least_a_vector(shape)[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """Square matrices to Cholesky factors: the strictly lower triangle, and the exponential of the diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Square matrices to positive definite ones, by way of `LowerCholeskyTransform`."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(rl.linalg.cholesky(y))


class _PartsTransform(Transform):
    """Transforms that each map a part of a value along a dimension."""

    transforms: list[Transform]
    dim: int

    @property
    def bijective(self) -> Any:
        return all(transform.bijective for transform in self.transforms)

    def _split(self, value: Any) -> Sequence[Any]:
        raise NotImplementedError

    def _join(self, parts: list[Any], dim: int) -> Any:
        raise NotImplementedError

    def _call(self, x: Any) -> Any:
        return self._join([t(part) for t, part in zip(self.transforms, self._split(x), strict=True)], self.dim)

    def _inverse(self, y: Any) -> Any:
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._split(y), strict=True)], self.dim)


class CatTransform(_PartsTransform):
    """Transforms of the parts of a value along a dimension.

    Args:
        tseq: Transform of each part.
        dim: The dimension.
        lengths: Length of each part; 1 where left out.
        cache_size: See `Transform`.
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        _require_transforms("CatTransform", tseq)
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"CatTransform: each transform has a length, got {len(self.transforms)} transforms and "
                f"lengths={lengths!r}."
            )
        self.dim = dim

    @lazy_property
    def event_dim(self) -> int:
        """The most dimensions that a part has in its event."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """Length of the whole."""
        return sum(self.lengths)

    @constraints.dependent_property
    def domain(self) -> Any:
        """Those of the parts."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Those of the parts."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _split(self, value: Any) -> Sequence[Any]:
        _require_dim("CatTransform", value, self.dim)
        if value.size(self.dim) != self.length:
            raise AssertionError(f"x.size({self.dim}) = {value.size(self.dim)} must equal length {self.length}")
        return value.split(self.lengths, self.dim)

    def _join(self, parts: list[Any], dim: int) -> Any:
        return rl.cat(parts, dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        terms = []
        for transform, before, after in zip(self.transforms, self._split(x), self._split(y), strict=True):
            term = transform.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, self.event_dim - transform.event_dim))
        dim = self.dim if self.dim < 0 else self.dim - x.dim()
        dim += self.event_dim
        return rl.cat(terms, dim) if dim < 0 else functools.reduce(operator.add, terms)


class StackTransform(_PartsTransform):
    """Transforms of the slices of a value along a dimension.

    Args:
        tseq: Transform of each slice.
        dim: The dimension that counts them.
        cache_size: See `Transform`.
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        _require_transforms("StackTransform", tseq)
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    @constraints.dependent_property
    def domain(self) -> Any:
        """Those of the slices."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Those of the slices."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _split(self, value: Any) -> Sequence[Any]:
        _require_dim("StackTransform", value, self.dim)
        if value.size(self.dim) != len(self.transforms):
            raise AssertionError(
                f"x.size({self.dim}) = {value.size(self.dim)} must equal len(transforms) {len(self.transforms)}"
            )
        return value.unbind(self.dim)

    def _join(self, parts: list[Any], dim: int) -> Any:
        return rl.stack(parts, dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        slices = zip(self.transforms, self._split(x), self._split(y), strict=True)
        return rl.stack([t.log_abs_det_jacobian(before, after) for t, before, after in slices], self.dim)


def _require_transforms(who: str, transforms: Sequence[Any]) -> None:
    if not all(isinstance(t, Transform) for t in transforms):
        raise AssertionError(f"{who}: takes transforms, got tseq={transforms!r}.")


def _require_dim(who: str, value: Any, dim: int) -> None:
    if not -value.dim() <= dim < value.dim():
        raise AssertionError(f"{who}: the value has no dimension {dim}, got a value of shape {value.shape}.")


class CumulativeDistributionTransform(Transform):
    """The distribution function of a univariate distribution: it makes uniform numbers of the distribution's.

    Args:
        distribution: Distribution with `cdf` and `icdf`.
        cache_size: See `Transform`.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.distributions import CumulativeDistributionTransform, Laplace
        >>> CumulativeDistributionTransform(Laplace(0.0, 1.0))(torch.tensor(0.0))
        tensor(0.5000)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)


identity_transform = ComposeTransform([])
