"""The base class of distributions."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import rushlight as rl
from rushlight import Size, Tensor

from . import constraints
from .utils import lazy_property, no_grad

__all__ = ["Distribution"]

_SCALAR = Size()
_PACKAGE = __name__.rpartition(".")[0] + "."


class _Undefined:
    """Stands for an attribute that a subclass gives."""

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        raise NotImplementedError


class Distribution:
    """A probability distribution, or a batch of them.

    Values have shape `sample_shape + batch_shape + event_shape`: independent draws, then distributions that differ in
    their parameters, then the dimensions of one value.

    Args:
        batch_shape: Shape of the batch of parameters.
        event_shape: Shape of one value.
        validate_args: Whether parameters and values are checked against their constraints, at the price of some
            passes over them; by default what `set_default_validate_args` says, True at first (False under `python -O`).

    Raises:
        ValueError: A parameter does not meet its constraint.

    Attributes:
        arg_constraints: Constraint of each parameter, by name.
        support: Constraint that the values meet.
        has_rsample: Whether `rsample` is there.
        has_enumerate_support: Whether `enumerate_support` is there.

    Example:
        >>> import rushlight as torch
        >>> normal = torch.distributions.Normal(torch.zeros(3), 1.0)
        >>> normal.batch_shape, normal.event_shape, normal.sample((5,)).shape
        (torch.Size([3]), torch.Size([]), torch.Size([5, 3]))
    """

    arg_constraints: Any = _Undefined()
    support: Any = _Undefined()
    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__
    _parts: ClassVar[tuple[str, ...]] = ()
    """Attributes that are distributions over the same batch."""

    def __init__(
        self, batch_shape: Any = _SCALAR, event_shape: Any = _SCALAR, validate_args: bool | None = None
    ) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether distributions made from now on check parameters and values by default.

        Args:
            value: True or False.

        Raises:
            ValueError: It is neither.
        """
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: takes True or False, got value={value!r}.")
        Distribution._validate_args = value

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """A distribution whose batch is broadcast; parameters are views, nothing is copied.

        Args:
            batch_shape: The new batch shape, which the present one broadcasts to.
            _instance: What a subclass that defines `expand` fills in, an instance that was not initialised.

        Raises:
            NotImplementedError: A subclass with an `__init__` of its own defines no `expand`.
        """
        cls = next(c for c in type(self).__mro__ if issubclass(c, Distribution) and c.__module__.startswith(_PACKAGE))
        if isinstance(cls.arg_constraints, _Undefined):
            raise NotImplementedError(f"{type(self).__name__}: a subclass of {cls.__name__} defines expand itself.")
        new = self._get_checked_instance(cls, _instance)
        batch_shape = Size(batch_shape)
        arg_constraints = self._stored
        for name, value in self.__dict__.items():
            if name in arg_constraints or not isinstance(getattr(type(self), name, None), lazy_property):
                new.__dict__[name] = value
        for name, constraint in arg_constraints.items():
            value = self.__dict__.get(name)
            if isinstance(value, Tensor):
                events = value.shape[value.dim() - constraint.event_dim :] if constraint.event_dim else ()
                new.__dict__[name] = value.expand(batch_shape + events)
        for name in self._parts:
            new.__dict__[name] = self.__dict__[name].expand(batch_shape)
        new._batch_shape = batch_shape
        return new

    @property
    def batch_shape(self) -> Size:
        """Shape of the batch of parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """Shape of one value."""
        return self._event_shape

    @property
    def mean(self) -> Any:
        """Mean; NaN or infinite where there is none."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Any:
        """Variance; NaN or infinite where there is none."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """Standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws values, without gradients.

        Args:
            sample_shape: Shape of the independent draws.

        Returns:
            Tensor of shape `sample_shape + batch_shape + event_shape`.
        """
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws values that are differentiable in the parameters, where `has_rsample`.

        Args:
            sample_shape: Shape of the independent draws.

        Returns:
            Tensor of shape `sample_shape + batch_shape + event_shape`.
        """
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """Deprecated: `sample((n,))`."""
        warnings.warn("sample_n(n) will be deprecated. Use .sample((n,)) instead.", FutureWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Any:
        """Logarithm of the density, or of the probability where discrete.

        Args:
            value: Values that broadcast with `batch_shape + event_shape`.

        Returns:
            Tensor of the shape of the batch of values.

        Raises:
            ValueError: A value is not in the support, or its shape does not fit; where arguments are validated.
        """
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Any:
        """Probability of values up to `value`; arguments as in `log_prob`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Any:
        """Quantiles, the inverse of `cdf`.

        Args:
            value: Probabilities.
        """
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values of a discrete distribution, where `has_enumerate_support`.

        Args:
            expand: Whether they are repeated over the batch.

        Returns:
            Tensor of shape `(n,) + batch_shape + event_shape`, with ones for the batch unless `expand`.
        """
        raise NotImplementedError

    def entropy(self) -> Any:
        """Entropy in nats, a tensor of the shape of the batch."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """Exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(sample_shape) + self._batch_shape + self._event_shape

    @property
    def _stored(self) -> Any:
        """Constraints of the parameters that an instance keeps, by name: what `expand` broadcasts."""
        return self.arg_constraints

    def _check_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize "
                "the distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # derived from another parameter
            value = getattr(self, name)
            valid = constraint.check(value)
            if not valid.all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def _validate_sample(self, value: Any) -> None:
        """Raises ValueError unless `value` is a tensor of the support whose shape fits."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        expected = self._batch_shape + self._event_shape
        shape = value.shape
        if shape != expected:
            self._check_shape(shape, expected)
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        valid = support.check(value)
        if not valid.all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _check_shape(self, shape: Size, expected: Size) -> None:
        event_dim = len(self._event_shape)
        if event_dim and shape[-event_dim:] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {shape} vs {self._event_shape}.")
        for i, j in zip(reversed(shape), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {expected}.")

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return type(self).__new__(type(self))

    def __repr__(self) -> str:
        given = (name for name in self.arg_constraints if name in self.__dict__)
        texts = (
            f"{name}: {value if value.numel() == 1 else value.size()}"
            for name, value in ((name, self.__dict__[name]) for name in given)
        )
        return f"{type(self).__name__}({', '.join(texts)})"


def nan_like(value: Tensor, shape: Any = None) -> Tensor:
    """NaNs of the dtype and device of a parameter."""
    return rl.full(value.shape if shape is None else shape, rl.nan, dtype=value.dtype, device=value.device)
