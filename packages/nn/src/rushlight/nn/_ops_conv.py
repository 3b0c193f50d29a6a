"""Convolutions and transposed convolutions in one to three dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample
from rushlight.nn._windows import Sizes, expand, offsets, pad, shifted

# Three ops carry all convolutions: the sum over windows, its gradient with respect to the image, which is the
# transposed convolution, and its gradient with respect to the weight. Each is the gradient of the others.


def _check(name: str, input: Tensor, weight: Tensor, bias: Tensor | None, groups: int, n: int, channels: int) -> None:
    if groups <= 0:
        raise RuntimeError(f"{name}: non-positive groups is not supported, got groups={groups}.")
    if weight.dim() != n + 2:
        raise RuntimeError(f"{name}: expected {n + 2}-dimensional weight, got weight of size {list(weight.shape)}")
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )
    if input.size(-n - 1) != channels:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected input{list(input.shape)} to have "
            f"{channels} channels, but got {input.size(-n - 1)} channels instead"
        )
    if input.dtype != weight.dtype:
        raise RuntimeError(f"Input type ({input.dtype}) and weight type ({weight.dtype}) should be the same")
    if bias is not None and bias.dtype != input.dtype:
        raise RuntimeError(f"Input type ({input.dtype}) and bias type ({bias.dtype}) should be the same")


def _check_steps(name: str, stride: Sizes, dilation: Sizes, groups: int = 1) -> None:
    if any(step <= 0 for step in stride):
        raise RuntimeError(f"{name}: non-positive stride is not supported, got stride={list(stride)}.")
    if any(step <= 0 for step in dilation):
        raise RuntimeError(f"{name}: dilation should be greater than zero, got dilation={list(dilation)}.")
    if groups <= 0:
        raise RuntimeError(f"{name}: non-positive groups is not supported, got groups={groups}.")


def _sides(name: str, padding: Any, kernel: Sizes, stride: Sizes, dilation: Sizes) -> list[tuple[int, int]]:
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding == "same":
        if any(step != 1 for step in stride):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        totals = [step * (size - 1) for step, size in zip(dilation, kernel, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    if isinstance(padding, str):
        raise RuntimeError(f"Invalid padding string: '{padding}'. Use 'same' or 'valid'.")
    sizes = expand("padding", padding, len(kernel))
    if any(size < 0 for size in sizes):
        raise RuntimeError(f"{name}: negative padding is not supported, got padding={list(sizes)}.")
    return [(size, size) for size in sizes]


def _by(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _convolve(input: Tensor, weight: Tensor, stride: Sizes, dilation: Sizes, groups: int) -> Tensor:
    """The sum over the positions of the window of a product of matrices each; (N, C, *) without padding."""
    batch, channels, *sizes = input.shape
    out, _, *kernel = weight.shape
    reach = [step * (size - 1) + 1 for step, size in zip(dilation, kernel, strict=True)]
    count = tuple((size - need) // step + 1 for size, need, step in zip(sizes, reach, stride, strict=True))
    total: Any = 0
    for offset in offsets(tuple(kernel)):
        part = shifted(input, offset, dilation, stride, count).reshape(batch, groups, channels // groups, -1)
        matrix = weight[(..., *offset)].reshape(groups, out // groups, channels // groups)
        total = total + rl.matmul(matrix, part)
    return total.reshape(batch, out, *count)


def _conv(n: int) -> Callable[..., Tensor]:
    name = f"conv{n}d"

    def conv_composite(
        input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> Tensor:
        _check(name, input, weight, bias, groups, n, weight.size(1) * groups)
        out = weight.size(0)
        if out % groups:
            raise RuntimeError(
                f"Given groups={groups}, expected weight to be at least {groups} at dimension 0 and divisible by it, "
                f"but got weight of size {list(weight.shape)} instead"
            )
        stride, dilation = expand("stride", stride, n), expand("dilation", dilation, n)
        _check_steps(name, stride, dilation)
        if bias is not None and tuple(bias.shape) != (out,):
            raise RuntimeError(
                f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with {out} elements, "
                f"but got bias of size {list(bias.shape)} instead"
            )
        batched = input.dim() == n + 2
        sides = _sides(name, padding, weight.shape[2:], stride, dilation)
        image = input if batched else input.unsqueeze(0)
        if any(before != after for before, after in sides):
            image, sides = pad(image, sides, 0), [(0, 0)] * n
        around = [before for before, _ in sides]
        _check_reach(image.shape[2:], weight.shape[2:], around, dilation)
        result = conv_forward.operator(image, weight, bias, stride, around, dilation, groups)
        return result if batched else result.squeeze(0)

    return conv_composite


def _check_reach(sizes: Sizes, kernel: Sizes, padding: Sequence[int], dilation: Sizes) -> None:
    padded = [size + 2 * p for size, p in zip(sizes, padding, strict=True)]
    if any(size < d * (k - 1) + 1 for size, k, d in zip(padded, kernel, dilation, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_by(padded)}). Kernel size: ({_by(kernel)}). "
            "Kernel size can't be greater than actual input size"
        )


def _conv_transpose(n: int) -> Callable[..., Tensor]:
    name = f"conv_transpose{n}d"

    def conv_transpose_composite(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: Any,
        padding: Any,
        output_padding: Any,
        groups: int,
        dilation: Any,
    ) -> Tensor:
        _check(name, input, weight, bias, groups, n, weight.size(0))
        stride, dilation = expand("stride", stride, n), expand("dilation", dilation, n)
        padding, extra = expand("padding", padding, n), expand("output_padding", output_padding, n)
        if any(more >= max(step, dil) for more, step, dil in zip(extra, stride, dilation, strict=True)):
            raise RuntimeError(
                f"output padding must be smaller than either stride or dilation, but got output_padding={list(extra)}, "
                f"stride={list(stride)}, dilation={list(dilation)}"
            )
        _check_steps(name, stride, dilation)
        if min(padding) < 0:
            raise RuntimeError(f"{name}: negative padding is not supported, got padding={list(padding)}.")
        if min(extra) < 0:
            raise RuntimeError(f"{name}: negative output_padding is not supported, got output_padding={list(extra)}.")
        batched = input.dim() == n + 2
        # Beyond a stride output_padding makes room for whole windows: those of zeros after the input.
        image = pad(
            input if batched else input.unsqueeze(0),
            [(0, more // step) for more, step in zip(extra, stride, strict=True)],
            0,
        )
        extra = tuple(more % step for more, step in zip(extra, stride, strict=True))
        size = [image.size(0), weight.size(1) * groups]
        for i in range(n):
            reach = dilation[i] * (weight.size(2 + i) - 1) + 1
            size.append((image.size(2 + i) - 1) * stride[i] - 2 * padding[i] + reach + extra[i])
        if min(size[2:]) <= 0:
            raise RuntimeError(
                f"Given input size per channel: {tuple(image.shape[2:])}. Calculated output size per channel: "
                f"{tuple(size[2:])}. Output size is too small"
            )
        if bias is not None and tuple(bias.shape) != (size[1],):
            raise RuntimeError(
                f"Given transposed=1, weight of size {list(weight.shape)}, expected bias to be 1-dimensional with "
                f"{size[1]} elements, but got bias of size {list(bias.shape)} instead"
            )
        result = conv_input.operator(image, weight, bias, size, stride, padding, dilation, groups)
        return result if batched else result.squeeze(0)

    return conv_transpose_composite


def conv_forward_composite(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Tensor:
    _check_steps("nn::conv_forward", stride, dilation, groups)
    result = _convolve(pad(input, [(p, p) for p in padding], 0), weight, stride, dilation, groups)
    return result if bias is None else result + bias.reshape(-1, *[1] * len(stride))


def conv_input_composite(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    size: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    _check_steps("nn::conv_input", stride, dilation, groups)
    n = len(stride)
    inputs, out = weight.shape[:2]
    # The gradient of a convolution is the convolution with the flipped window, its channels exchanged.
    flipped = weight.flip(tuple(range(2, n + 2))).reshape(groups, inputs // groups, out, *weight.shape[2:])
    flipped = flipped.transpose(1, 2).reshape(out * groups, inputs // groups, *weight.shape[2:])
    image = _spread(input, stride)
    sides = []
    for i in range(n):
        far = dilation[i] * (weight.size(2 + i) - 1)
        sides.append((far, size[2 + i] + 2 * padding[i] - image.size(2 + i)))
    result = _convolve(pad(image, sides, 0), flipped, (1,) * n, dilation, groups)
    for dim, cut in enumerate(padding, 2):
        result = result.narrow(dim, cut, size[dim])
    return result if bias is None else result + bias.reshape(-1, *[1] * n)


def conv_weight_composite(
    output_grad: Tensor, input: Tensor, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Tensor:
    _check_steps("nn::conv_weight", stride, dilation, groups)
    out, channels, *kernel = size
    batch, _, *count = output_grad.shape
    image = pad(input, [(p, p) for p in padding], 0)
    left = output_grad.reshape(batch, groups, out // groups, -1)
    parts = []
    for offset in offsets(tuple(kernel)):
        part = shifted(image, offset, dilation, stride, tuple(count)).reshape(batch, groups, channels, -1)
        parts.append(rl.matmul(left, part.transpose(-1, -2)).sum(0, dtype=left.dtype).reshape(out, channels))
    return rl.stack(parts, -1).reshape(size)


def _spread(input: Tensor, stride: Sequence[int]) -> Tensor:
    """The input with ``stride - 1`` zeros after each element but the last, in each of the last dimensions."""
    for dim, step in enumerate(stride, input.dim() - len(stride)):
        if step > 1:
            size = input.size(dim)
            wide = input.unsqueeze(dim + 1)
            zeros = rl.zeros(
                [step - 1 if d == dim + 1 else s for d, s in enumerate(wide.shape)],
                dtype=input.dtype,
                device=input.device,
            )
            input = rl.cat([wide, zeros], dim + 1).flatten(dim, dim + 1).narrow(dim, 0, (size - 1) * step + 1)
    return input


def _conv_samples(n: int) -> Callable[..., Any]:
    def samples(make: Any, dtype: Any) -> Any:
        image, window = (7, 6, 5)[:n], (3, 2, 2)[:n]
        yield Sample((make(2, 4, *image), make(3, 4, *window), make(3)))
        yield Sample((make(4, *image), make(6, 2, *window), make(6), 2, 1, 1, 2))
        yield Sample((make(1, 2, *image), make(3, 2, *window), None, 1, 2, 2))

    return samples


def _conv_transpose_samples(n: int) -> Callable[..., Any]:
    def samples(make: Any, dtype: Any) -> Any:
        image, window = (4, 3, 3)[:n], (3, 2, 2)[:n]
        yield Sample((make(2, 4, *image), make(4, 3, *window), make(3)))
        yield Sample((make(4, *image), make(4, 3, *window), make(6), 2, 1, 1, 2))

    return samples


def _conv_record(n: int) -> Op:
    return (
        Op(
            f"conv{n}d(Tensor input, Tensor weight, Tensor? bias=None, Any stride=1, Any padding=0, Any dilation=1, "
            "int groups=1) -> Tensor",
            family=COMPOSITE,
            method=False,
            out=False,
            doc=f"""{n}d convolution (cross-correlation).

            Args:
                input: (N, C, *) or (C, *).
                weight: (out, C / groups, *kernel).
                bias: (out,).
                stride: Step from window to window.
                padding: Zeros on both sides, "same" or "valid".
                dilation: Step inside the window.
                groups: Blocks into which the channels fall.

            Returns:
                (N, out, *) or (out, *).
            """,
        )
        .composite(_conv(n))
        .samples(_conv_samples(n))
    )


def _conv_transpose_record(n: int) -> Op:
    return (
        Op(
            f"conv_transpose{n}d(Tensor input, Tensor weight, Tensor? bias=None, Any stride=1, Any padding=0, "
            "Any output_padding=0, int groups=1, Any dilation=1) -> Tensor",
            family=COMPOSITE,
            method=False,
            out=False,
            doc=f"""{n}d transposed convolution: the gradient of `conv{n}d` with respect to its input.

            Args:
                input: (N, C, *) or (C, *).
                weight: (C, out / groups, *kernel).
                bias: (out,).
                stride: Step between the windows of neighbouring inputs.
                padding: Elements cut off on both sides of the output.
                output_padding: Elements added at the end of the output.
                groups: Blocks into which the channels fall.
                dilation: Step inside the window.

            Returns:
                (N, out, *) or (out, *).
            """,
        )
        .composite(_conv_transpose(n))
        .samples(_conv_transpose_samples(n))
    )


def _internal_samples(name: str) -> Callable[..., Any]:
    def samples(make: Any, dtype: Any) -> Any:
        for stride, padding, dilation, groups in ((1, 1, 1, 1), (2, 1, 1, 2), (2, 0, 2, 1)):
            geometry = ([stride] * 2, [padding] * 2, [dilation] * 2, groups)
            image, window = (2, 4, 7, 6), (6, 4 // groups, 3, 2)
            sides = zip(image[2:], window[2:], strict=True)
            out = [(size + 2 * padding - dilation * (k - 1) - 1) // stride + 1 for size, k in sides]
            if name == "conv_forward":
                yield Sample((make(*image), make(*window), make(6), *geometry))
            elif name == "conv_input":
                yield Sample((make(2, 6, *out), make(*window), make(4), list(image), *geometry))
            else:
                yield Sample((make(2, 6, *out), make(*image), list(window), *geometry))

    return samples


_GEOMETRY = "int[] stride, int[] padding, int[] dilation, int groups"

conv_forward = (
    Op(
        f"nn::conv_forward(Tensor input, Tensor weight, Tensor? bias, {_GEOMETRY}) -> Tensor",
        items=("input",),
        method=False,
        out=False,
        doc="Convolution of (N, C, *) with one number per dimension in each list.",
    )
    .composite(conv_forward_composite)
    .grad(
        input="conv_input(grad, conj(weight), None, shape(input), stride, padding, dilation, groups)",
        weight="conv_weight(grad, conj(input), shape(weight), stride, padding, dilation, groups)",
        bias="channel_sum(grad)",
    )
    .samples(_internal_samples("conv_forward"))
)
conv_input = (
    Op(
        f"nn::conv_input(Tensor input, Tensor weight, Tensor? bias, int[] size, {_GEOMETRY}) -> Tensor",
        items=("input", "size"),
        method=False,
        out=False,
        doc="The image of shape `size` that takes each element of the input to its window: transposed convolution.",
    )
    .composite(conv_input_composite)
    .grad(
        input="conv_forward(grad, conj(weight), None, stride, padding, dilation, groups)",
        weight="conv_weight(conj(input), grad, shape(weight), stride, padding, dilation, groups)",
        bias="channel_sum(grad)",
    )
    .samples(_internal_samples("conv_input"))
)
conv_weight = (
    Op(
        f"nn::conv_weight(Tensor output_grad, Tensor input, int[] size, {_GEOMETRY}) -> Tensor",
        method=False,
        out=False,
        doc="The gradient of a convolution with respect to its weight of shape `size`.",
    )
    .composite(conv_weight_composite)
    .grad(
        output_grad="conv_forward(conj(input), grad, None, stride, padding, dilation, groups)",
        input="conv_input(conj(output_grad), grad, None, shape(input), stride, padding, dilation, groups)",
    )
    .samples(_internal_samples("conv_weight"))
)
channel_sum = (
    Op("nn::channel_sum(Tensor input) -> Tensor", method=False, out=False, doc="The sum of each channel of (N, C, *).")
    .composite(lambda input: input.sum([0, *range(2, input.dim())]))
    .grad(input=lambda grad, input_shape: grad.reshape(1, -1, *[1] * (len(input_shape) - 2)).expand(input_shape))
    .samples(lambda make, dtype: (Sample((make(2, 3),)), Sample((make(2, 3, 4, 5),))))
)
conv1d, conv2d, conv3d = map(_conv_record, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_conv_transpose_record, (1, 2, 3))
