"""Distributions that are given by probabilities or by logits, whichever the caller has."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Size, Tensor

from .utils import lazy_property, logits_to_probs, probs_to_logits


def require_one(probs: Any, logits: Any) -> None:
    """Raises ValueError unless just one of them is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)): minus the logarithm of the probability of failure where x are the log-odds."""
    return rl.logaddexp(x, x.new_zeros(()))


class ProbsOrLogits:
    """`probs` and `logits`, of which one is given and the other follows."""

    _binary: bool

    @lazy_property
    def logits(self) -> Any:
        """Log-odds, or unnormalised logarithms of probabilities."""
        return probs_to_logits(self.probs, self._binary)

    @lazy_property
    def probs(self) -> Any:
        """Probabilities."""
        return logits_to_probs(self.logits, self._binary)

    @property
    def param_shape(self) -> Size:
        """Shape of the probabilities or logits."""
        return self._param.shape

    @property
    def _param(self) -> Any:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]


class Odds(ProbsOrLogits):
    """Of a success."""

    _binary = True


class Weights(ProbsOrLogits):
    """Of the categories along the last dimension."""

    _binary = False
