"""Bounds on gradients: of their common norm, or of each element."""

from __future__ import annotations

import math
import types
import warnings
from collections.abc import Iterable, Sequence

import rushlight as rl
from rushlight import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _listed(tensors: Tensor | Iterable[Tensor]) -> Sequence[Tensor]:
    if isinstance(tensors, types.GeneratorType):
        tensors = list(tensors)
        if not tensors:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _grads(parameters: Sequence[Tensor]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


@rl.no_grad()  # type: ignore[untyped-decorator]
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of the vector that all elements of all tensors make.

    Args:
        tensors: A tensor or several, of any shapes.
        norm_type: The order of the norm; infinity is the greatest absolute value.
        error_if_nonfinite: Whether a norm that is infinite or NaN raises.
        foreach: Accepted; there is one implementation.

    Returns:
        The norm, () on the device of the first tensor.

    Raises:
        RuntimeError: The norm is not finite and `error_if_nonfinite`.

    Example:
        >>> import rushlight as torch
        >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([[4.0]])])
        tensor(5.)
    """
    order = float(norm_type)
    norms = [tensor.norm(order) for tensor in _listed(tensors)]
    if not norms:
        return rl.tensor(0.0)
    total = rl.stack([norm.to(norms[0].device) for norm in norms]).norm(order)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it cannot be clipped. "
            "To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@rl.no_grad()  # type: ignore[untyped-decorator]
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales gradients in place by ``max_norm / total_norm`` where that is below 1.

    Args:
        parameters: A tensor or several, whose gradients are scaled.
        max_norm: The greatest norm that the gradients may have.
        total_norm: Their norm, as `get_total_norm` gives it.
        foreach: Accepted; there is one implementation.
    """
    # Without a look at the value: 1 changes nothing, and another device need not be waited for.
    scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for grad in _grads(_listed(parameters)):
        grad.mul_(scale.to(grad.device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales gradients in place so that their common norm is at most `max_norm` (Pascanu et al., 2013).

    Args:
        parameters: A tensor or several, whose gradients are scaled.
        max_norm: The greatest norm that the gradients may have.
        norm_type: The order of the norm.
        error_if_nonfinite: Whether a norm that is infinite or NaN raises.
        foreach: Accepted; there is one implementation.

    Returns:
        The norm before, ().

    Raises:
        RuntimeError: The norm is not finite and `error_if_nonfinite`.

    Example:
        >>> import rushlight as torch
        >>> w = torch.zeros(2, requires_grad=True)
        >>> w.grad = torch.tensor([3.0, 4.0])
        >>> torch.nn.utils.clip_grad_norm_(w, max_norm=1.0), w.grad
        (tensor(5.), tensor([0.6000, 0.8000]))
    """
    parameters = _listed(parameters)
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The former name of `clip_grad_norm_`, deprecated."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)


@rl.no_grad()  # type: ignore[untyped-decorator]
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Brings each element of the gradients into ``[-clip_value, clip_value]``, in place.

    Args:
        parameters: A tensor or several, whose gradients are clipped.
        clip_value: The greatest absolute value.
        foreach: Accepted; there is one implementation.
    """
    bound = float(clip_value)
    for grad in _grads(_listed(parameters)):
        grad.clamp_(-bound, bound)
