"""Elements around the last dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample
from rushlight.nn import _windows


def _pairs(padding: Sequence[int]) -> list[tuple[int, int]]:
    """(before, after) for each of the last dimensions, in order; the argument counts from the last one."""
    return list(zip(padding[-2::-2], padding[::-2], strict=True))


_MODES = ("constant", "reflect", "replicate", "circular")


def _sources(mode: int, size: int, before: int, after: int, device: rl.device) -> Tensor:
    """The elements that stand along a padded dimension."""
    places = rl.arange(-before, size + after, device=device)
    if mode == _MODES.index("replicate"):
        return places.clamp(0, size - 1)
    if mode == _MODES.index("reflect"):
        return size - 1 - (size - 1 - places.abs()).abs()
    # Negative padding cuts, what is left goes round.
    first, kept = max(-before, 0), size + min(before, 0) + min(after, 0)
    return first + (places - first) % max(kept, 1)


def pad_around_composite(self: Tensor, padding: Sequence[int], mode: int, value: float) -> Tensor:
    sides = _pairs(padding)
    dims = range(self.dim() - len(sides), self.dim())
    if mode:
        for dim, (before, after) in zip(dims, sides, strict=True):
            self = self.index_select(dim, _sources(mode, self.size(dim), before, after, self.device))
        return self
    for dim, (before, after) in zip(dims, sides, strict=True):
        self = self.narrow(dim, max(-before, 0), self.size(dim) + min(before, 0) + min(after, 0))
    grown = [(max(before, 0), max(after, 0)) for before, after in sides]
    return _windows.pad(self, grown, value) if any(map(any, grown)) else self.clone()


def pad_around_adjoint_composite(grad: Tensor, size: Sequence[int], padding: Sequence[int], mode: int) -> Tensor:
    if not mode:
        return pad_around.operator(grad, [-p for p in padding], mode, 0)
    sides = _pairs(padding)
    for dim, (before, after) in enumerate(sides, len(size) - len(sides)):
        sources = _sources(mode, size[dim], before, after, grad.device)
        shape = [*grad.shape]
        shape[dim] = size[dim]
        grad = grad.new_zeros(shape).index_add(dim, sources, grad)
    return grad


pad_around = (
    Op(
        "nn::pad_around(Tensor self, int[] pad, int mode, Scalar value) -> Tensor",
        method=False,
        out=False,
        doc="""Elements around the last dimensions.

        Args:
            self: Tensor of any shape.
            pad: How many elements before and after, from the last dimension on; negative numbers take elements away.
            mode: 0 (one value), 1 (mirrored without the edge), 2 (the edge again) or 3 (from the other side).
            value: The value of mode 0.
        """,
    )
    .composite(pad_around_composite)
    .grad(self="pad_around_adjoint(grad, shape(self), pad, mode)")
    .samples(
        lambda make, dtype: (
            *(Sample((make(2, 3, 4), [2, -1, 1, 0], mode, 0)) for mode in range(4)),
            Sample((make(2, 3, 4), [0, 0, 1, 2], 0, 1)),
        )
    )
)
pad_around_adjoint = (
    Op(
        "nn::pad_around_adjoint(Tensor grad, int[] size, int[] pad, int mode) -> Tensor",
        method=False,
        out=False,
        doc="The adjoint of `pad_around` on tensors of shape `size`: every element is added to its source.",
    )
    .composite(pad_around_adjoint_composite)
    .grad(grad="pad_around(grad, pad, mode, 0)")
    .samples(
        lambda make, dtype: (
            Sample((make(2, 4, 5), [2, 3, 4], [2, -1, 1, 0], mode))
            for mode in range(4)
            if dtype.is_floating_point or dtype.is_complex
        )
    )
)


def _too_long(padding: Sequence[int], self: Tensor) -> str:
    return (
        "Padding length should be less than or equal to two times the input dimension but got padding length "
        f"{len(padding)} and input of dimension {self.dim()}"
    )


def constant_pad_nd_composite(self: Tensor, padding: Sequence[int], value: float) -> Tensor:
    if len(padding) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(padding)}")
    sides = _pairs(padding)
    if len(sides) > self.dim():
        raise RuntimeError(_too_long(padding, self))
    for dim, (before, after) in enumerate(sides, self.dim() - len(sides)):
        if self.size(dim) + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError(
                f"narrow(): length must be non-negative, got size {self.size(dim)} and padding {(before, after)} of "
                f"dimension {dim}."
            )
    return pad_around.operator(self, padding, 0, value)


constant_pad_nd = (
    Op(
        "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""Puts one value around the last dimensions.

        Args:
            input: Tensor of any shape.
            pad: How many elements before and after, from the last dimension on; negative numbers take elements away.
            value: The value.
        """,
    )
    .composite(constant_pad_nd_composite)
    .samples(
        lambda make, dtype: (
            Sample((make(3, 4), [1, 2])),
            Sample((make(3, 4), [1, 0, 0, 2], 3)),
            Sample((make(3, 4), [-1, 2, -1, -1])),
        )
    )
)


def _check_sides(mode: str, size: int, before: int, after: int) -> None:
    if mode == "circular" and max(before, after) > size:
        raise RuntimeError("Padding value causes wrapping around more than once.")
    if mode == "reflect" and max(before, after) >= size:
        raise RuntimeError(
            "Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at a dimension of size {size}"
        )
    result, kept = size + before + after, size + min(before, 0) + min(after, 0)
    if result < 0 or size == 0 or (mode == "circular" and kept <= 0 < result):
        raise RuntimeError(
            f"{mode} padding: nothing is left to pad with, got padding ({before}, {after}) for size {size}."
        )


def pad_composite(self: Tensor, padding: Sequence[int], mode: str, value: float | None) -> Tensor:
    if len(padding) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, got padding={list(padding)}.")
    if mode == "constant":
        return constant_pad_nd.operator(self, padding, 0 if value is None else value)
    if mode not in _MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}. Use circular, constant, reflect or replicate.")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    sides = _pairs(padding)
    if len(sides) > self.dim():
        raise RuntimeError(_too_long(padding, self))
    if self.dtype == rl.bool and mode != "circular":
        raise NotImplementedError(f'"{mode}_pad" not implemented for {self.dtype}. Convert the input to uint8.')
    if not 1 <= len(sides) <= 3 or self.dim() not in (len(sides) + 1, len(sides) + 2):
        raise NotImplementedError(f"Padding size {len(padding)} is not supported for {self.dim()}D input tensor.")
    for dim, (before, after) in enumerate(sides, self.dim() - len(sides)):
        _check_sides(mode, self.size(dim), before, after)
    return pad_around.operator(self, padding, _MODES.index(mode), 0)


pad = (
    Op(
        "nn::pad(Tensor self, int[] pad, str mode='constant', float? value=None) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""Puts elements around the last dimensions.

        Args:
            input: (N, C, *) or (C, *), or any shape for constant padding.
            pad: How many elements before and after, from the last dimension on; negative numbers take elements away.
            mode: "constant", "reflect" (mirrored without the edge), "replicate" (the edge again) or "circular".
            value: For constant padding. Default: 0.
        """,
    )
    .composite(pad_composite)
    .samples(
        lambda make, dtype: (
            Sample((make(3, 4), [1, 2])),
            *(Sample((make(2, 3, 4), [2, 1], mode)) for mode in ("reflect", "replicate", "circular")),
            *(Sample((make(1, 2, 3, 4), [1, 2, -1, 1], mode)) for mode in ("reflect", "replicate", "circular")),
        )
    )
)
