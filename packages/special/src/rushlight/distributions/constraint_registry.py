"""Transforms to constrained spaces, by constraint.

`biject_to(constraint)` is bijective: with its Jacobian, densities move between the spaces, as Hamiltonian Monte Carlo
wants. `transform_to(constraint)` may have more unconstrained dimensions than the space itself, which optimisers fare
better with.

Example:
    >>> import rushlight as torch
    >>> from rushlight.distributions import constraints, transform_to
    >>> transform_to(constraints.positive)(torch.tensor(0.0))
    tensor(1.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Makes transforms from the unconstrained reals to the space of a constraint, by factories for its class.

    Example:
        >>> from rushlight.distributions import ConstraintRegistry, ExpTransform, constraints
        >>> registry = ConstraintRegistry()
        >>> _ = registry.register(constraints.positive, lambda constraint: ExpTransform())
        >>> registry(constraints.positive)
        ExpTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[..., Any]] = {}

    def register(self, constraint: Any, factory: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """Registers a factory for a class of constraints.

        Args:
            constraint: The class, or a constraint of it.
            factory: Takes a constraint and returns a transform; where left out, a decorator is returned.

        Returns:
            The factory.

        Raises:
            TypeError: `constraint` is no constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        cls = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(cls, type) or not issubclass(cls, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[cls] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """A transform to the space of a constraint.

        Args:
            constraint: The constraint.

        Raises:
            NotImplementedError: No factory is registered for its class.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(factory: Callable[..., Any]) -> Callable[..., Any]:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


_both(constraints.real)(lambda constraint: transforms.identity_transform)


@biject_to.register(constraints.independent)
def _biject_to_independent(constraint: Any) -> Any:
    base = biject_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@transform_to.register(constraints.independent)
def _transform_to_independent(constraint: Any) -> Any:
    base = transform_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@_both(constraints.greater_than, constraints.greater_than_eq)
def _transform_to_greater_than(constraint: Any) -> Any:
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


@_both(constraints.less_than)
def _transform_to_less_than(constraint: Any) -> Any:
    mirror = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), mirror])


@_both(constraints.interval, constraints.half_open_interval)
def _transform_to_interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, int | float) and isinstance(high, int | float) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform())
for _kind in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_kind, lambda constraint: transforms.PositiveDefiniteTransform())
_both(constraints.corr_cholesky)(lambda constraint: transforms.CorrCholeskyTransform())


@biject_to.register(constraints.cat)
def _biject_to_cat(constraint: Any) -> Any:
    parts = [biject_to(part) for part in constraint.cseq]
    return transforms.CatTransform(parts, constraint.dim, constraint.lengths)


@transform_to.register(constraints.cat)
def _transform_to_cat(constraint: Any) -> Any:
    parts = [transform_to(part) for part in constraint.cseq]
    return transforms.CatTransform(parts, constraint.dim, constraint.lengths)


@biject_to.register(constraints.stack)
def _biject_to_stack(constraint: Any) -> Any:
    return transforms.StackTransform([biject_to(part) for part in constraint.cseq], constraint.dim)


@transform_to.register(constraints.stack)
def _transform_to_stack(constraint: Any) -> Any:
    return transforms.StackTransform([transform_to(part) for part in constraint.cseq], constraint.dim)
