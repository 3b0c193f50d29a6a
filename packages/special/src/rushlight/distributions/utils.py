"""What distributions share: broadcasting of parameters, probabilities and logits, lazy attributes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import rushlight as rl
from rushlight import Tensor

__all__ = [
    "broadcast_all", "clamp_probs", "euler_constant", "lazy_property", "logits_to_probs", "probs_to_logits",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060

# Without the autograd wheel there is no graph to enter or to leave.
enable_grad = getattr(rl, "enable_grad", nullcontext)
no_grad = getattr(rl, "no_grad", nullcontext)


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Tensors of one shape from tensors and numbers; numbers take the dtype and device of the first tensor.

    Args:
        *values: Tensors whose shapes broadcast, and numbers.

    Returns:
        A tensor for each value.

    Raises:
        ValueError: A value is neither.

    Example:
        >>> import rushlight as torch
        >>> torch.distributions.utils.broadcast_all(torch.zeros(2), 1.0)
        (tensor([0., 0.]), tensor([1., 1.]))
    """
    tensors = [value for value in values if isinstance(value, Tensor)]
    if len(tensors) < len(values):
        if not all(isinstance(value, int | float | Tensor) or hasattr(value, "__torch_function__") for value in values):
            raise ValueError(
                "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                "__torch_function__."
            )
        like = (
            {"dtype": tensors[0].dtype, "device": tensors[0].device} if tensors else {"dtype": rl.get_default_dtype()}
        )
        values = tuple(rl.tensor(value, **like) if isinstance(value, int | float) else value for value in values)
    shape = values[0].shape
    if all(value.shape == shape for value in values):
        return values
    shapes = {value.shape for value in values if value.shape}
    if len(shapes) > 1:
        return tuple(rl.broadcast_tensors(*values))
    (shape,) = shapes
    return tuple(value if value.shape else value.expand(shape) for value in values)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities moved away from 0 and 1 by the dtype's machine epsilon, so that their logarithms are finite."""
    eps = rl.finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from logits: log-odds where binary, else unnormalised logarithms along the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logits from probabilities: log-odds where binary, else their logarithms; finite ones also from 0 and 1."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


class lazy_property:
    """An attribute that is computed when it is first read, then kept in the instance's `__dict__`.

    Args:
        wrapped: The method that computes it.
    """

    def __init__(self, wrapped: Callable[..., Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        with enable_grad():  # what is kept serves later calls, which may need gradients
            value = self.wrapped(instance)
        instance.__dict__[self.name] = value
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangle of matrices as vectors, row by row.

    Args:
        mat: Matrices (*, n, n).
        diag: The highest diagonal of the triangle, as in `tril`.

    Returns:
        Tensor (*, k) of the k elements of the triangle.

    Raises:
        ValueError: `diag` is outside of the matrix.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = rl.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Lower triangular matrices from vectors of their elements, row by row.

    Args:
        vec: Vectors (*, k).
        diag: The highest diagonal of the triangle, as in `tril`.

    Returns:
        Matrices (*, n, n), zero above the triangle.

    Raises:
        ValueError: No triangle has k elements.
    """
    # k = n (n + 1) / 2 + n diag, where no diagonal is cut off at an edge.
    k = vec.shape[-1]
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * k + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if abs(n - round(n)) > rl.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {k} which cannot be expressed as the lower triangular part of a "
            "square D x D matrix."
        )
    n = round(n)
    rows, columns = rl.tril_indices(n, n, diag, device=vec.device)
    flat = vec.new_zeros((*vec.shape[:-1], n * n))
    return flat.index_copy(-1, rows * n + columns, vec).unflatten(-1, (n, n))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    return rl.randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Summed over the `dim` rightmost dimensions."""
    return value.flatten(-dim).sum(-1) if dim else value
