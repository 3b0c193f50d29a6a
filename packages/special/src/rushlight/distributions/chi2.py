"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor

from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The chi-squared distribution: the sum of the squares of `df` standard normal numbers.

    Args:
        df: Degrees of freedom, positive, a number or a tensor.
        validate_args: See `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.Chi2(torch.tensor(3.0)).mean
        tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def _stored(self) -> Any:
        return Gamma.arg_constraints

    @property
    def df(self) -> Tensor:
        """Degrees of freedom."""
        return self.concentration * 2
