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


def constant_pad_nd_composite(self: Tensor, padding: Sequence[int], value: float) -> Tensor:
    if len(padding) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(padding)}")
    sides = _pairs(padding)
    if len(sides) > self.dim():
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(padding)} and input of dimension {self.dim()}"
        )
    for dim, (before, after) in enumerate(sides, self.dim() - len(sides)):
        kept = self.size(dim) + min(before, 0) + min(after, 0)
        if kept < 0:
            raise RuntimeError(
                f"narrow(): length must be non-negative, got size {self.size(dim)} and padding {(before, after)} of "
                f"dimension {dim}."
            )
        self = self.narrow(dim, max(-before, 0), kept)
    return _windows.pad(self, [(max(before, 0), max(after, 0)) for before, after in sides], value)


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


def _source(mode: str, at: int, size: int) -> int:
    """The element that stands at a position, which may be outside [0, size)."""
    if mode == "replicate":
        return min(max(at, 0), size - 1)
    if mode == "circular":
        return at % size
    return size - 1 - abs(size - 1 - abs(at))


def _check_sides(mode: str, size: int, before: int, after: int) -> None:
    if mode == "circular" and max(before, after) > size:
        raise RuntimeError("Padding value causes wrapping around more than once.")
    if mode == "reflect" and max(before, after) >= size:
        raise RuntimeError(
            "Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at a dimension of size {size}"
        )
    if size + before + after < 0 or size == 0:
        raise RuntimeError(
            f"{mode} padding: the result has no elements, got padding ({before}, {after}) for size {size}."
        )


def pad_composite(self: Tensor, padding: Sequence[int], mode: str, value: float | None) -> Tensor:
    if len(padding) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, got padding={list(padding)}.")
    if mode == "constant":
        return constant_pad_nd.operator(self, padding, 0 if value is None else value)
    if mode not in ("circular", "reflect", "replicate"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}. Use circular, constant, reflect or replicate.")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    sides = _pairs(padding)
    if not 1 <= len(sides) <= 3 or self.dim() not in (len(sides) + 1, len(sides) + 2):
        raise NotImplementedError(f"Padding size {len(padding)} is not supported for {self.dim()}D input tensor.")
    for dim, (before, after) in enumerate(sides, self.dim() - len(sides)):
        size = self.size(dim)
        _check_sides(mode, size, before, after)
        if mode == "circular":  # negative padding cuts first, what is left goes round
            self = self.narrow(dim, max(-before, 0), size + min(before, 0) + min(after, 0))
            size, before, after = self.size(dim), max(before, 0), max(after, 0)
        sources = [_source(mode, at, size) for at in range(-before, size + after)]
        self = self.index_select(dim, rl.tensor(sources, dtype=rl.int64, device=self.device))
    return self


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
