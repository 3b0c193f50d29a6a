"""Images sampled at the places of a grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample
from rushlight.nn._precision import wide
from rushlight.nn._vjp import vjp

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)
Tap = tuple[Tensor, Tensor | None]
"""Positions along a dimension, and their weights (None: 1)."""


def _unnormalized(grid: Tensor, size: int, align_corners: bool) -> Tensor:
    """Positions in elements, from positions of which -1 and 1 are the edges of the image."""
    return (grid + 1) * ((size - 1) / 2) if align_corners else ((grid + 1) * size - 1) / 2


def _folded(at: Tensor, size: int, padding: int, align_corners: bool) -> Tensor:
    """Positions outside the image moved into it, as the padding says."""
    if padding == REFLECTION:
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if span == 0:
            return rl.zeros_like(at)
        distance = (at - low).abs()
        extra = distance.fmod(span)
        odd = rl.floor(distance.detach() / span) % 2 == 1
        at = rl.where(odd, span - extra, extra) + low
    return at.clamp(0, size - 1) if padding != ZEROS else at


def _taps(at: Tensor, size: int, mode: int, padding: int, align_corners: bool) -> list[Tap]:
    if mode != BICUBIC:
        at = _folded(at, size, padding, align_corners)
        if mode == NEAREST:
            return [(at.round(), None)]
        first = at.detach().floor()
        return [(first, first + 1 - at), (first + 1, at - first)]
    first = at.detach().floor()
    share = at - first
    return [
        (_folded(first + offset, size, padding, align_corners), weight)
        for offset, weight in zip(range(-1, 3), _cubic_weights(share), strict=True)
    ]


def _cubic_weights(share: Tensor, a: float = -0.75) -> list[Tensor]:
    """The cubic convolution kernel of Keys (1981) for the four elements around a position."""

    def far(x: Tensor) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    return [far(share + 1), near(share), near(1 - share), far(2 - share)]


def grid_sample_composite(input: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
    dtype, input, grid = input.dtype, wide(input), wide(grid)
    sizes = input.shape[2:]
    lines = [
        _taps(_unnormalized(at, size, align_corners), size, mode, padding, align_corners)
        for at, size in zip(reversed(grid.unbind(-1)), sizes, strict=True)
    ]
    flat = input.flatten(2)
    channels = input.size(1)
    total: Any = 0
    for corner in itertools.product(*lines):
        place: Any = 0
        factor: Any = 1
        for (at, weight), size in zip(corner, sizes, strict=True):
            inside = (at >= 0) & (at <= size - 1)
            place = place * size + rl.where(inside, at, 0).to(rl.int64)
            factor = factor * rl.where(inside, 1.0 if weight is None else weight, 0.0)
        index = place.flatten(1).unsqueeze(1).expand(-1, channels, -1)
        value = flat.gather(2, index).unflatten(2, grid.shape[1:-1])
        total = total + value * factor.unsqueeze(1)
    return total.to(dtype)


def _grid_sample_backward(
    output_grad: Tensor,
    input: Tensor,
    grid: Tensor,
    mode: int,
    padding: int,
    align_corners: bool,
    of_input: bool,
    of_grid: bool,
) -> Any:
    def forward(input: Tensor, grid: Tensor) -> Tensor:
        return grid_sample_composite(input, grid, mode, padding, align_corners)

    found = vjp(forward, (input, grid), output_grad)
    grads = (rl.zeros_like(t) if g is None else g for g, t in zip(found, (input, grid), strict=True))
    return tuple(g if wanted else None for g, wanted in zip(grads, (of_input, of_grid), strict=True))


def grid_sample_grad(
    grad: Tensor, input: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool, needs: Sequence[bool]
) -> Any:
    backward = _grid_sample_backward if rl.is_grad_enabled() else grid_sample_backward.operator
    return backward(grad, input, grid, mode, padding, align_corners, *needs)


_OPTIONS = "int mode, int padding, bool align_corners"


def _grid_samples(make: Any, dtype: Any) -> Any:
    if not dtype.is_floating_point:
        return
    for mode in (BILINEAR, NEAREST, BICUBIC):
        for padding in (ZEROS, BORDER, REFLECTION):
            yield Sample((make(2, 3, 4, 5), make(2, 3, 2, 2, low=-1.3, high=1.3), mode, padding, False))
    yield Sample((make(1, 2, 3, 4, 5), make(1, 2, 3, 2, 3, low=-1.3, high=1.3), BILINEAR, REFLECTION, True))


grid_sample = (
    Op(
        f"nn::grid_sample(Tensor input, Tensor grid, {_OPTIONS}) -> Tensor",
        method=False,
        out=False,
        doc="""The elements of an image at the places of a grid.

        Args:
            input: (N, C, H, W) or (N, C, D, H, W).
            grid: (N, *, 2) or (N, *, 3): the places (x, y) or (x, y, z), from -1 to 1 in the image.
            mode: 0 (linear), 1 (nearest) or 2 (cubic).
            padding: What is outside: 0 (zeros), 1 (the border) or 2 (the image mirrored).
            align_corners: Whether -1 and 1 are the centres of the corner elements, rather than their corners.

        Returns:
            (N, C, *).
        """,
    )
    .composite(grid_sample_composite)
    .grad(("input", "grid"), grid_sample_grad)
    .samples(_grid_samples)
)
grid_sample_backward = (
    Op(
        f"nn::grid_sample_backward(Tensor output_grad, Tensor input, Tensor grid, {_OPTIONS}, bool of_input, "
        "bool of_grid) -> (Tensor, Tensor)",
        items=("output_grad", "input", "grid"),
        method=False,
        out=False,
        differentiable=False,
        doc="The gradients of `grid_sample` with respect to its input and grid, None for those that are not wanted.",
    )
    .composite(_grid_sample_backward)
    .samples(
        lambda make, dtype: (
            Sample(
                (
                    make(2, 3, 3, 2),
                    make(2, 3, 4, 5),
                    make(2, 3, 2, 2, low=-1.3, high=1.3),
                    mode,
                    padding,
                    False,
                    True,
                    True,
                )
            )
            for mode in (BILINEAR, NEAREST, BICUBIC)
            for padding in (ZEROS, BORDER, REFLECTION)
            if dtype.is_floating_point and dtype.itemsize >= 4
        )
    )
)


def _check_grid(name: str, input: Tensor, grid: Tensor, mode: int, padding: int) -> None:
    n = input.dim() - 2
    if n not in (2, 3) or grid.dim() != n + 2:
        raise RuntimeError(
            f"{name}(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if input.size(0) != grid.size(0):
        raise RuntimeError(
            f"{name}(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.size(-1) != n:
        raise RuntimeError(
            f"{name}(): expected grid to have size {n} in last dimension, but got grid with sizes {list(grid.shape)}"
        )
    if min(input.shape[2:]) <= 0:
        raise RuntimeError(
            f"{name}(): expected input to have non-empty spatial dimensions, but input has sizes {list(input.shape)}"
        )
    if not (mode in (0, 1, 2) and padding in (0, 1, 2)):
        raise RuntimeError(f"{name}(): mode and padding are 0, 1 or 2, got mode={mode} and padding={padding}.")
    if n == 3 and mode == BICUBIC:
        raise RuntimeError(f"{name}(): bicubic interpolation only supports 4D input")
    if input.dtype != grid.dtype:
        raise RuntimeError(
            f"{name}(): expected input and grid to have same dtype, but input has {input.dtype} and grid "
            f"has {grid.dtype}"
        )
    if not input.is_floating_point():
        raise NotImplementedError(f'"{name}" not implemented for {input.dtype}. Convert the input to floats.')


def _grid_sampler(name: str, ranks: Sequence[int], image: str) -> Op:
    def composite(input: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
        if len(ranks) == 1 and input.dim() != ranks[0]:
            raise RuntimeError(
                f"{name}(): expected {ranks[0]}D input and grid with same number of dimensions, but got input with "
                f"sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
            )
        _check_grid(name, input, grid, mode, padding)
        return grid_sample.operator(input, grid, mode, padding, align_corners)

    return (
        Op(
            f"{name}(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners)"
            " -> Tensor",
            family=COMPOSITE,
            method=False,
            out=False,
            doc=f"The elements of {image} at the places of a grid, see `rushlight.nn.functional.grid_sample`.",
        )
        .composite(composite)
        .samples(lambda make, dtype: (s for s in _grid_samples(make, dtype) if s.args[0].dim() in ranks))
    )


grid_sampler = _grid_sampler("grid_sampler", (4, 5), "an image or a volume")
grid_sampler_2d = _grid_sampler("grid_sampler_2d", (4,), "an image")
grid_sampler_3d = _grid_sampler("grid_sampler_3d", (5,), "a volume")


def _centres(size: int, align_corners: bool, like: Tensor) -> Tensor:
    """The places of the elements of a line."""
    if size <= 1:
        return rl.zeros(size, dtype=like.dtype, device=like.device)
    places = rl.linspace(-1, 1, size, dtype=like.dtype, device=like.device)
    return places if align_corners else places * (size - 1) / size


def affine_grid_composite(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    n = len(size) - 2
    if n not in (2, 3):
        raise RuntimeError(
            f"affine_grid_generator needs 4d (spatial) or 5d (volumetric) inputs, got size={tuple(size)}."
        )
    if theta.dim() != 3 or theta.size(0) != size[0] or tuple(theta.shape[1:]) != (n, n + 1):
        raise RuntimeError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {tuple(size)}. Got "
            f"{tuple(theta.shape)}."
        )
    lines = [_centres(length, align_corners, theta) for length in size[2:]]
    places = rl.stack(
        [*reversed(rl.meshgrid(*lines, indexing="ij")), rl.ones(size[2:], dtype=theta.dtype, device=theta.device)], -1
    )
    grid = places.reshape(1, -1, n + 1).expand(size[0], -1, -1).bmm(theta.transpose(1, 2))
    return grid.reshape(size[0], *size[2:], n)


affine_grid_generator = (
    Op(
        "affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="The grid of an affine map, see `rushlight.nn.functional.affine_grid`.",
    )
    .composite(affine_grid_composite)
    .samples(
        lambda make, dtype: (
            ()
            if not dtype.is_floating_point
            else (
                Sample((make(2, 2, 3), [2, 3, 4, 5], False)),
                Sample((make(1, 3, 4), [1, 2, 3, 4, 2], True)),
            )
        )
    )
)
