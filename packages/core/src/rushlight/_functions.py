"""Public functions that are no operators: type information, comparisons that answer True or False, settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _C
from .ops import _join, _matmul

__all__ = [
    "allclose",
    "broadcast_shapes",
    "einsum",
    "equal",
    "finfo",
    "get_device",
    "iinfo",
    "is_complex",
    "is_floating_point",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_tensor",
    "isclose",
    "numel",
]

_BFLOAT16 = {
    "bits": 16,
    "eps": 2.0**-7,
    "max": float(2.0**127 * (2 - 2.0**-7)),
    "min": -float(2.0**127 * (2 - 2.0**-7)),
    "tiny": 2.0**-126,
    "resolution": 0.01,
}


class finfo:
    """Limits of a floating-point dtype (the default dtype where none is given).

    Attributes:
        bits: Bits per real number.
        eps: The gap between 1 and the next number.
        max, min: The largest and smallest finite numbers.
        tiny, smallest_normal: The smallest positive normal number.
        resolution: The decimal resolution.
        dtype: Its name.

    Raises:
        TypeError: The dtype is an integer or bool.
    """

    def __init__(self, type: Any = None) -> None:
        dtype = _C.get_default_dtype() if type is None else type
        if not isinstance(dtype, _C.dtype):
            raise TypeError(f"torch.finfo() requires a floating point input type, got {dtype!r}.")
        real = dtype.to_real()
        if not real.is_floating_point:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{dtype}'")
        self.dtype = str(dtype).rpartition(".")[2]
        if real is _C.bfloat16:
            limits = _BFLOAT16
        else:
            info = np.finfo(str(real).rpartition(".")[2])
            limits = {
                "bits": info.bits,
                "eps": float(info.eps),
                "max": float(info.max),
                "min": float(info.min),
                "tiny": float(info.tiny),
                "resolution": 10.0**-info.precision,
            }
        self.bits = int(limits["bits"])
        self.eps, self.max, self.min = limits["eps"], limits["max"], limits["min"]
        self.tiny = self.smallest_normal = limits["tiny"]
        self.resolution = limits["resolution"]

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype: `bits`, `min`, `max` and the name `dtype`.

    Raises:
        TypeError: The dtype is a floating-point one or bool.
    """

    def __init__(self, type: Any) -> None:
        if not isinstance(type, _C.dtype) or type.is_floating_point or type.is_complex:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        if type is _C.bool:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        self.dtype = str(type).rpartition(".")[2]
        info = np.iinfo(self.dtype)
        self.bits, self.min, self.max = info.bits, int(info.min), int(info.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, _C.Tensor)


def get_device(input: Any) -> int:
    """The index of the device that a tensor is on, -1 on the CPU."""
    return input.get_device()


def _tensor(function: str, input: Any) -> Any:
    if not isinstance(input, _C.Tensor):
        raise TypeError(f"{function}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input


def is_floating_point(input: Any) -> bool:
    """Whether the dtype is float16, bfloat16, float32 or float64."""
    return _tensor("is_floating_point", input).is_floating_point()


def is_complex(input: Any) -> bool:
    """Whether the dtype is complex."""
    return _tensor("is_complex", input).is_complex()


def is_signed(input: Any) -> bool:
    """Whether the dtype can hold negative numbers."""
    return _tensor("is_signed", input).is_signed()


def is_nonzero(input: Any) -> bool:
    """Whether the one element of the tensor is not zero."""
    return bool(input)


def numel(input: Any) -> int:
    """The number of elements."""
    return _tensor("numel", input).numel()


def einsum(equation: str, *operands: Any) -> Any:
    """Sums of products by Einstein's convention.

    Args:
        equation: Labels of the dimensions of each operand and, after "->", of the result; "..." stands for any.
        *operands: Tensors, or one list of them; or, instead of an equation, operands and lists of label numbers in
            turn.

    Returns:
        Tensor with the dimensions that the equation names.

    Raises:
        RuntimeError: The equation does not fit the operands.

    Example:
        >>> rushlight.einsum("ij,j->i", rushlight.ones(2, 3), rushlight.ones(3))
        tensor([3., 3.])
    """
    if isinstance(equation, _C.Tensor):
        equation, operands = _from_sublists((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return _matmul.einsum.operator(equation, list(operands))


def _from_sublists(args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    spell = lambda labels: "".join("..." if label is Ellipsis else letters[label] for label in labels)
    pairs = len(args) // 2
    equation = ",".join(spell(args[2 * i + 1]) for i in range(pairs))
    if len(args) % 2:
        equation += "->" + spell(args[-1])
    return equation, args[0 : 2 * pairs : 2]


def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape and elements.

    Raises:
        RuntimeError: The devices differ.
    """
    if input.shape != other.shape:
        return False
    if input is other and not (input.is_floating_point() or input.is_complex()):  # NaN differs from itself
        return True
    return bool((input == other).all())


def is_same_size(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape."""
    return input.shape == other.shape


def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that tensors of some shapes broadcast to.

    Args:
        *shapes: Sequences of sizes; a number stands for a shape of one dimension.

    Returns:
        Size.

    Raises:
        RuntimeError: The shapes do not broadcast, or one is not of integers.
        ValueError: A size is negative.

    Example:
        >>> rushlight.broadcast_shapes((2, 1), (3,))
        torch.Size([2, 3])
    """
    result: list[int] = []
    for position, shape in enumerate(shapes):
        sizes = (shape,) if isinstance(shape, int) else shape
        if not isinstance(sizes, list | tuple) or not all(isinstance(n, int) for n in sizes):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}")
        result = [1] * (len(sizes) - len(result)) + result
        for d in range(-1, -len(sizes) - 1, -1):
            if sizes[d] < 0:
                raise ValueError(f"Attempting to broadcast a dimension with negative length! Got shape {shape}")
            if sizes[d] not in (1, result[d]) and result[d] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {sizes[d]} at {d}! Mismatching argument at index "
                    f"{position} had {shape}; but expected shape should be broadcastable to {result}"
                )
            if sizes[d] != 1:
                result[d] = sizes[d]
    return _C.Size(result)


def isclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Where `|input - other| <= atol + rtol * |other|`.

    Args:
        input: Tensor of any shape.
        other: Tensor of the same dtype that broadcasts with it.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: Whether two NaNs are close.

    Returns:
        Bool tensor.

    Raises:
        RuntimeError: The dtypes differ or a tolerance is negative.
    """
    for position, (name, value) in enumerate((("input", input), ("other", other)), 1):
        if not isinstance(value, _C.Tensor):
            raise TypeError(
                f"isclose(): argument '{name}' (position {position}) must be Tensor, not {type(value).__name__}"
            )
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}")
    if rtol < 0 or atol < 0:
        raise RuntimeError(
            f"{'rtol' if rtol < 0 else 'atol'} must be greater than or equal to zero, but got "
            f"{rtol if rtol < 0 else atol}"
        )
    close = input == other
    if not (input.is_floating_point() or input.is_complex()):
        if rtol == 0 and atol == 0:
            return close
        input, other = input.to(_C.float64), other.to(_C.float64)
    elif equal_nan:
        close = close | (input.isnan() & other.isnan())
    error = (input - other).abs()
    return close | (error.isfinite() & (error <= atol + rtol * other.abs()))


def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close, see `isclose`."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


for _name in ("allclose", "equal", "isclose", "is_nonzero", "is_same_size"):
    _C.add_method(_name, globals()[_name])


def _listed(tensors: tuple[Any, ...]) -> Any:
    """Tensors as loose arguments or as one sequence."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Coordinates of a grid: for every vector a tensor over all combinations.

    Args:
        *tensors: Vectors or 0-d tensors of one dtype, loose or as one sequence.
        indexing: "ij" (rows first, the default) or "xy" (columns first).

    Returns:
        Tuple of views, one a vector.

    Raises:
        RuntimeError: A tensor has more than one dimension, dtypes differ, or `indexing` is unknown.

    Example:
        >>> x, y = rushlight.meshgrid(rushlight.arange(2), rushlight.arange(3))
        >>> x.shape
        torch.Size([2, 3])
    """
    return _join.meshgrid.operator(_listed(tensors), indexing=indexing)


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Views of tensors, loose or as one sequence, expanded to the shape that they share."""
    return _join.broadcast_tensors.operator(_listed(tensors))


def block_diag(*tensors: Any) -> Any:
    """A matrix with matrices, vectors or numbers as tensors along its diagonal, zeros elsewhere."""
    return _join.block_diag.operator(_listed(tensors))


def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of one element of each vector, a row each; of one vector itself."""
    return _join.cartesian_prod.operator(_listed(tensors))


def atleast_1d(*tensors: Any) -> Any:
    """The tensor, or a tuple of several, with at least one dimension."""
    return _join.atleast_1d.operator(tensors[0] if len(tensors) == 1 else tensors)


def atleast_2d(*tensors: Any) -> Any:
    """The tensor, or a tuple of several, with at least two dimensions."""
    return _join.atleast_2d.operator(tensors[0] if len(tensors) == 1 else tensors)


def atleast_3d(*tensors: Any) -> Any:
    """The tensor, or a tuple of several, with at least three dimensions."""
    return _join.atleast_3d.operator(tensors[0] if len(tensors) == 1 else tensors)


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Consecutive pieces of a dimension, see `Tensor.split`."""
    return tensor.split(split_size_or_sections, dim)
