"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight as rl
from rushlight import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after another.

    Args:
        parameters: Tensors on one device.

    Returns:
        (n,) with the n elements of all of them; gradients reach the parameters.

    Raises:
        TypeError: The parameters are on different devices.

    Example:
        >>> import rushlight as torch
        >>> torch.nn.utils.parameters_to_vector([torch.zeros(1, 2), torch.ones(1)])
        tensor([0., 0., 1.])
    """
    parameters = list(parameters)
    _check_devices(parameters)
    return rl.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes the parameters views of the slices of a vector: the inverse of `parameters_to_vector`.

    Args:
        vec: (n,) with an element for each one of the parameters.
        parameters: Tensors on one device, whose ``data`` is set.

    Raises:
        TypeError: `vec` is no tensor, or the parameters are on different devices.
        RuntimeError: `vec` is too short.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}. Pass a vector of all elements.")
    parameters = list(parameters)
    _check_devices(parameters)
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = vec[start:end].view_as(parameter).data
        start = end


def _check_devices(parameters: Iterable[Tensor]) -> None:
    devices = {parameter.device for parameter in parameters}
    if len(devices) > 1:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported, got "
            f"{sorted(map(str, devices))}. Convert the parameters of each device on their own."
        )
