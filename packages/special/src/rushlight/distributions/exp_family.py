"""Exponential families."""

from __future__ import annotations

from typing import Any

import rushlight as rl

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution with density `exp(<t(x), theta> - F(theta) + k(x))`.

    A subclass gives the natural parameters `_natural_params`, a tuple of tensors, the log normaliser
    `_log_normalizer(*natural_params)` and the mean of the carrier measure `_mean_carrier_measure`. Entropy and
    divergences follow by differentiating F, Bregman divergences (Nielsen and Nock, 2010).
    """

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Any:
        """Entropy in nats, a tensor of the shape of the batch."""
        carrier = self._mean_carrier_measure
        params = [param.detach().requires_grad_() for param in self._natural_params]
        normalizer = self._log_normalizer(*params)
        gradients = rl.autograd.grad(normalizer.sum(), params, create_graph=True)
        result = normalizer - carrier
        for param, gradient in zip(params, gradients, strict=True):
            result = result - (param * gradient).reshape((*self._batch_shape, -1)).sum(-1)
        return result
