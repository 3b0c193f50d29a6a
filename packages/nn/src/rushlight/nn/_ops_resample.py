"""Resampling: images of another size, one dimension at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample
from rushlight.nn._precision import wide


def _along(weights: Tensor, tap: int, dim: int, ndim: int) -> Tensor:
    return weights.select(1, tap).reshape([-1 if d == dim else 1 for d in range(ndim)])


def resample_composite(input: Tensor, places: Tensor, weights: Tensor, dim: int) -> Tensor:
    total: Any = 0
    for tap in range(places.size(1)):
        taken = input.index_select(dim, places.select(1, tap))
        total = total + taken * _along(weights, tap, dim, input.dim())
    return total


def resample_adjoint_composite(input: Tensor, places: Tensor, weights: Tensor, dim: int, size: int) -> Tensor:
    shape = [*input.shape]
    shape[dim] = size
    total = input.new_zeros(shape)
    for tap in range(places.size(1)):
        total = total.index_add(dim, places.select(1, tap), input * _along(weights, tap, dim, input.dim()))
    return total


def _resample_samples(*size: int) -> Callable[..., Any]:
    def samples(make: Any, dtype: Any) -> Any:
        if dtype.is_floating_point:
            places = make.tensor([[0, 1], [2, 1], [1, 1], [0, 3]])
            for dim in (0, 1, 2):
                yield Sample((make(4, 4, 4), places, make(4, 2, requires_grad=False), dim, *size))

    return samples


resample = (
    Op(
        "nn::resample(Tensor input, Tensor places, Tensor weights, int dim) -> Tensor",
        method=False,
        out=False,
        doc="""Weighted sums of slices along a dimension.

        Slice `i` of the result is the sum over k of ``weights[i, k]`` times the slice ``places[i, k]`` of the input.
        """,
    )
    .composite(resample_composite)
    .grad(
        input="resample_adjoint(grad, places, weights, dim, item(shape(input), dim))",
        places=None,
        weights=None,
    )
    .samples(_resample_samples())
)
resample_adjoint = (
    Op(
        "nn::resample_adjoint(Tensor input, Tensor places, Tensor weights, int dim, int size) -> Tensor",
        method=False,
        out=False,
        doc="Adds ``weights[i, k]`` times slice `i` of the input to the slice ``places[i, k]`` of `size` zero slices.",
    )
    .composite(resample_adjoint_composite)
    .grad(input="resample(grad, places, weights, dim)", places=None, weights=None)
    .samples(_resample_samples(4))
)


# -- where the samples of a line lie, and with which weights


def _step(size: int, out: int, factor: float | None, align_corners: bool, real: type[np.floating]) -> np.floating:
    """Distance of neighbouring samples in the input, in the precision of the input."""
    if align_corners:
        return real(size - 1) / real(out - 1) if out > 1 else real(0)
    return real(1.0 / factor) if factor else real(size) / real(out)


def _centres(
    size: int, out: int, factor: float | None, align_corners: bool, real: type[np.floating]
) -> np.ndarray[Any, Any]:
    step, at = _step(size, out, factor, align_corners, real), np.arange(out, dtype=real)
    return step * at if align_corners else step * (at + real(0.5)) - real(0.5)


def _nearest_taps(size: int, out: int, factor: float | None, _: bool, __: type[np.floating], shift: float) -> Any:
    step = _step(size, out, factor, False, np.float32)
    places = np.minimum(np.floor((np.arange(out, dtype=np.float32) + np.float32(shift)) * step), size - 1)
    return places[:, None], np.ones((out, 1))


def _linear_taps(size: int, out: int, factor: float | None, align_corners: bool, real: type[np.floating]) -> Any:
    centres = np.maximum(_centres(size, out, factor, align_corners, real), 0)
    first = np.minimum(np.floor(centres), size - 1)
    share = np.minimum(centres - first, 1)
    return np.stack([first, np.minimum(first + 1, size - 1)], 1), np.stack([1 - share, share], 1)


def _cubic_taps(size: int, out: int, factor: float | None, align_corners: bool, real: type[np.floating]) -> Any:
    centres = _centres(size, out, factor, align_corners, real)
    offsets = np.arange(-1, 3)
    places = np.floor(centres)[:, None] + offsets
    distance = np.abs(centres[:, None] - np.floor(centres)[:, None] - offsets.astype(real))
    return np.clip(places, 0, size - 1), _keys(distance, -0.75)


def _keys(distance: np.ndarray[Any, Any], a: float) -> np.ndarray[Any, Any]:
    """The cubic convolution kernel of Keys (1981) at distances up to 2."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


def _triangle(distance: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.maximum(1 - distance, 0)


def _lanczos(distance: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.where(distance < 3, np.sinc(distance) * np.sinc(distance / 3), 0)


_FILTERS: dict[str, tuple[int, Callable[..., Any]]] = {
    "linear": (1, _triangle),
    "cubic": (2, lambda distance: _keys(distance, -0.5)),
    "lanczos": (3, _lanczos),
}
"""By kind: the radius of the filter in samples, and its values at distances."""


def _smooth_taps(
    size: int, out: int, factor: float | None, align_corners: bool, real: type[np.floating], kind: str
) -> Any:
    """A filter that is stretched by the step where that is above one, so that nothing is skipped."""
    radius, values = _FILTERS[kind]
    step = _step(size, out, factor, align_corners, real)
    stretch = max(step, real(1))
    centres, support = step * (np.arange(out, dtype=real) + real(0.5)), real(radius) * stretch
    first = np.maximum((centres - support + real(0.5)).astype(np.int64), 0)
    count = np.minimum((centres + support + real(0.5)).astype(np.int64), size) - first
    taps = np.arange(max(count.max(initial=1), 1))
    weights = values(np.abs((taps + first[:, None] - centres[:, None] + real(0.5)) / stretch))
    weights = np.where(taps < count[:, None], weights, 0)
    places = first[:, None] + np.minimum(taps, np.maximum(count[:, None] - 1, 0))
    return np.minimum(places, size - 1), weights / weights.sum(1, keepdims=True)


_SMOOTH = {f"{kind}, smooth": partial(_smooth_taps, kind=kind) for kind in _FILTERS}
_KINDS: dict[str, Callable[..., Any]] = {
    "nearest": partial(_nearest_taps, shift=0.0),
    "nearest-exact": partial(_nearest_taps, shift=0.5),
    "linear": _linear_taps,
    "cubic": _cubic_taps,
    **_SMOOTH,
}


@lru_cache(256)
def _taps(
    kind: str, size: int, out: int, factor: float | None, align_corners: bool, double: bool
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Positions (out, k) in a line of `size` elements, and their weights."""
    real = np.float64 if double else np.float32
    places, weights = _KINDS[kind](size, out, factor, align_corners, real)
    return np.ascontiguousarray(places, np.int64), np.ascontiguousarray(weights, real)


# -- whole images


_SPATIAL = ("D", "H", "W")


def upsample_composite(
    input: Tensor, size: Sequence[int], kind: str, align_corners: bool, factors: Sequence[float]
) -> Tensor:
    n = len(size)
    _check_image(kind, input, size)
    if kind not in _KINDS:
        raise ValueError(f"upsample: unknown kind, got kind={kind!r}. Use one of {', '.join(sorted(_KINDS))}.")
    last = n == 2 and not input.is_contiguous() and input.is_contiguous(memory_format=rl.channels_last)
    image = wide(input.permute(0, 2, 3, 1) if last else input)
    image = image.float() if input.dtype == rl.uint8 else image
    first = 1 if last else 2
    for i in _order(input.shape[2:], size):
        own, out = input.size(i + 2), size[i]
        factor = factors[i] if factors else None
        if kind == "nearest" and n == 2 and out in (own, 2 * own):
            factor = None  # as PyTorch, which has short cuts for these in two dimensions
        copies = kind in ("linear", *_SMOOTH) or (input.dtype == rl.uint8 and kind == "cubic")
        if out == own and (factor is None or copies):
            continue
        line = (kind, own, out, factor, align_corners, image.dtype == rl.float64)
        places, weights = map(rl.from_numpy, _taps(*line))
        if places.device != image.device:
            places, weights = places.to(image.device), weights.to(image.device)
        image = resample.operator(image, places, weights, first + i)
        if input.dtype == rl.uint8:
            image = image.round().clamp(0, 255)
    if image is input:
        return input.clone()
    image = image.to(input.dtype)
    return image.permute(0, 3, 1, 2) if last else image


def _order(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """The dimensions, those first that shrink, so that there is less to do for the others; else the last one first."""
    return sorted(range(len(after)), key=lambda i: (after[i] >= before[i], -i))


def _check_image(kind: str, input: Tensor, size: Sequence[int]) -> None:
    n = len(size)
    if input.dim() != n + 2:
        raise RuntimeError(
            f"It is expected input_size equals to {n + 2}, but got size {input.dim()}. upsample of {n} dimensions "
            f"takes an input (N, C, {', '.join(_SPATIAL[-n:])})."
        )
    if min(*input.shape[2:], *size) <= 0:
        ours, wanted = (
            ", ".join(f"{letter}: {length}" for letter, length in zip(_SPATIAL[-n:], lengths, strict=True))
            for lengths in (input.shape[2:], size)
        )
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input ({ours}) output ({wanted})")
    if max(size) >= 2**31:
        raise RuntimeError(f"upsample: sizes must be below 2^31, got size={list(size)}. Ask for less.")
    if input.size(1) == 0:
        raise RuntimeError(
            f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes {list(input.shape)}. Only the batch "
            "may be empty."
        )
    if not input.is_floating_point() and not (input.dtype == rl.uint8 and (n == 2 or "nearest" in kind)):
        raise NotImplementedError(f'"upsample_{kind}" not implemented for {input.dtype}. Convert the input to floats.')


def _upsample_samples(make: Any, dtype: Any) -> Any:
    if dtype.is_floating_point:
        yield Sample((make(2, 3, 4), [7], "linear", False))
        yield Sample((make(1, 2, 4, 5), [8, 3], "nearest", False))
        yield Sample((make(1, 2, 4, 5), [3, 6], "cubic", True))
        yield Sample((make(1, 2, 6, 5), [3, 4], "linear, smooth", False, [0.5, 0.8]))
        yield Sample((make(1, 2, 3, 4, 2), [2, 5, 4], "linear", False))


upsample = (
    Op(
        "nn::upsample(Tensor input, int[] size, str kind, bool align_corners, float[] factors=[]) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""An image of another size.

        Args:
            input: (N, C, *), floating point or uint8.
            size: Sizes of the output's last dimensions.
            kind: "nearest", "nearest-exact", "linear", "cubic", or "linear, smooth", "cubic, smooth" and "lanczos,
                smooth", which see every element also where the image shrinks.
            align_corners: Whether the centres of the corner elements stay in place, rather than their corners.
            factors: Of the sizes, where the steps between samples follow from them and not from the sizes.

        Returns:
            (N, C, *size).
        """,
    )
    .composite(upsample_composite)
    .samples(_upsample_samples)
)
