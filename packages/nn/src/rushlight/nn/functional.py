"""Layers and losses as functions of tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import _ops

Size = int | Sequence[int]

linear = _ops.linear
bilinear = _ops.bilinear
conv1d = _ops.conv1d
conv2d = _ops.conv2d
conv3d = _ops.conv3d
conv_transpose1d = _ops.conv_transpose1d
conv_transpose2d = _ops.conv_transpose2d
conv_transpose3d = _ops.conv_transpose3d
avg_pool1d = _ops.avg_pool1d
avg_pool2d = _ops.avg_pool2d
avg_pool3d = _ops.avg_pool3d
gelu = _ops.gelu
logsigmoid = _ops.log_sigmoid
pad = _ops.pad
prelu = _ops.prelu
softplus = _ops.softplus
hardshrink = _ops.hardshrink
tanh = rl.tanh
sigmoid = rl.sigmoid


# -- activations


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x), elementwise; `inplace` writes the input."""
    return rl.relu_(input) if inplace else rl.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6), elementwise; `inplace` writes the input."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """X clamped to [`min_val`, `max_val`]; `inplace` writes the input.

    Raises:
        ValueError: `min_val` is above `max_val`.
    """
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val, got min_val={min_val}, max_val={max_val}.")
    return _ops.hardtanh_(input, min_val, max_val) if inplace else _ops.hardtanh(input, min_val, max_val)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """X where x > 0, else ``alpha * (exp(x) - 1)``; `inplace` writes the input."""
    return _ops.elu_(input, alpha) if inplace else _ops.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalising ELU of Klambauer et al. (2017); `inplace` writes the input."""
    return _ops.selu_(input) if inplace else _ops.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``; `inplace` writes the input."""
    return _ops.celu_(input, alpha) if inplace else _ops.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """X where x > 0, else ``negative_slope * x``; `inplace` writes the input."""
    return _ops.leaky_relu_(input, negative_slope) if inplace else _ops.leaky_relu(input, negative_slope)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh` that writes its input."""
    return hardtanh(input, min_val, max_val, inplace=True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu` that writes its input."""
    return elu(input, alpha, inplace=True)


def selu_(input: Tensor) -> Tensor:
    """`selu` that writes its input."""
    return selu(input, inplace=True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu` that writes its input."""
    return celu(input, alpha, inplace=True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu` that writes its input."""
    return leaky_relu(input, negative_slope, inplace=True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold` that writes its input."""
    return _ops.threshold_(input, threshold, value)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second half."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even, got a 0-d input.")
    return _ops.glu(input, dim)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``, also known as swish; `inplace` writes the input."""
    return _ops.silu_(input) if inplace else _ops.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``; `inplace` writes the input."""
    return _ops.mish_(input) if inplace else _ops.mish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(x + 3, 0), 6) / 6``; `inplace` writes the input."""
    return _ops.hardsigmoid_(input) if inplace else _ops.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * hardsigmoid(x)``; `inplace` writes the input."""
    return _ops.hardswish_(input) if inplace else _ops.hardswish(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """X where x > `threshold`, else `value`; `inplace` writes the input."""
    return _ops.threshold_(input, threshold, value) if inplace else _ops.threshold(input, threshold, value)


def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """`x` moved by `lambd` towards 0, which it does not pass; written to `out` if given.

    Raises:
        RuntimeError: `lambd` is negative.
    """
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return _ops.softshrink(input, lambd, out=out)


def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``."""
    return input - rl.tanh(input)


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    return input / (rl.abs(input) + 1)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` along a dimension.

    Args:
        input: Any shape.
        dim: The dimension that sums to 1. Leaving it out is deprecated.
        dtype: To which the input is converted first.
    """
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return rl.softmax(input, dim) if dtype is None else rl.softmax(input, dim, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The `softmax` of ``-x``."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return softmax(-input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`, without its loss of digits; arguments as there."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return rl.log_softmax(input, dim) if dtype is None else rl.log_softmax(input, dim, dtype=dtype)


def _implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution (Jang et al., 2017).

    Args:
        logits: Unnormalised log probabilities.
        tau: The temperature.
        hard: Whether the sample is one-hot, with the gradient of the soft one.
        eps: Unused.
        dim: The dimension of the categories.
    """
    gumbels = -rl.empty_like(logits).exponential_().log()
    soft = softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    one_hot = rl.zeros_like(logits).scatter_(dim, soft.max(dim, keepdim=True)[1], 1.0)
    return one_hot - soft.detach() + soft


# -- dropout


def _check_p(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability `p` and scales the others by ``1 / (1 - p)``, in training only.

    Args:
        input: Any shape.
        p: The probability of a zero.
        training: False: the input comes back.
        inplace: Whether the input is written.

    Raises:
        ValueError: `p` is outside [0, 1].
    """
    _check_p(p)
    return _ops.dropout_(input, p, training) if inplace else _ops.dropout(input, p, training)


def _feature_dropout(name: str, input: Tensor, p: float, training: bool, inplace: bool, batched: int) -> Tensor:
    _check_p(p)
    ndim = input.dim()
    if ndim not in (batched - 1, batched):
        warnings.warn(
            f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a "
            f"future release. Expected a {batched - 1}-D or {batched}-D input.",
            stacklevel=3,
        )
    op = _ops.feature_dropout_ if inplace else _ops.feature_dropout
    if ndim != batched - 1:
        return op(input, p, training)
    result = op(input.unsqueeze_(0) if inplace else input.unsqueeze(0), p, training)
    return result.squeeze_(0) if inplace else result.squeeze(0)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of an input (N, C, L) or (C, L)."""
    return _feature_dropout("dropout1d", input, p, training, inplace, 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of an input (N, C, H, W)."""
    _check_p(p)
    return (_ops.feature_dropout_ if inplace else _ops.feature_dropout)(input, p, training)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of an input (N, C, D, H, W) or (C, D, H, W)."""
    return _feature_dropout("dropout3d", input, p, training, inplace, 5)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of SELU networks (Klambauer et al., 2017)."""
    _check_p(p)
    return (_ops.alpha_dropout_ if inplace else _ops.alpha_dropout)(input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels."""
    _check_p(p)
    return (_ops.feature_alpha_dropout_ if inplace else _ops.feature_alpha_dropout)(input, p, training)


# -- pooling


def _max_pool(plain: Callable[..., Tensor], indexed: Callable[..., Any]) -> Callable[..., Any]:
    def pool(
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        op = indexed if return_indices else plain
        return op(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)

    pool.__name__ = pool.__qualname__ = plain.__name__
    pool.__doc__ = """The maximum of each window.

    Args:
        input: (N, C, *) or (C, *).
        kernel_size: Size of the window.
        stride: Step from window to window. Default: `kernel_size`.
        padding: Elements of minus infinity on both sides.
        dilation: Step inside the window.
        ceil_mode: Whether a last, partial window counts.
        return_indices: Whether the flat positions of the maxima are returned too.

    Returns:
        The maxima, or with `return_indices` the pair of maxima and positions.
    """
    return pool


max_pool1d = _max_pool(_ops.max_pool1d, _ops.max_pool1d_with_indices)
max_pool2d = _max_pool(_ops.max_pool2d, _ops.max_pool2d_with_indices)
max_pool3d = _max_pool(_ops.max_pool3d, _ops.max_pool3d_with_indices)


def adaptive_avg_pool1d(input: Tensor, output_size: Size) -> Tensor:
    """Averages windows such that the output has `output_size` elements."""
    return _ops.adaptive_avg_pool1d(input, output_size)


def _full_size(output_size: Any, input: Tensor, n: int) -> Any:
    """One entry per spatial dimension; None stands for the input's size."""
    if isinstance(output_size, int):
        return output_size
    if input.dim() <= len(output_size):
        raise ValueError(
            f"Input dimension should be at least {len(output_size) + 1}, got input.shape={list(input.shape)}."
        )
    if len(output_size) != n:
        raise RuntimeError(f"adaptive_avg_pool{n}d: output_size must be {n} numbers, got output_size={output_size}.")
    return tuple(own if size is None else size for size, own in zip(output_size, input.shape[-n:], strict=True))


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Averages windows such that the output is `output_size` (H, W); None in it keeps the input's size."""
    return _ops.adaptive_avg_pool2d(input, _full_size(output_size, input, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Averages windows such that the output is `output_size` (D, H, W); None in it keeps the input's size."""
    return _ops.adaptive_avg_pool3d(input, _full_size(output_size, input, 3))


# -- normalisation


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel to mean 0 and variance 1, then scales and shifts it.

    Args:
        input: (N, C, *).
        running_mean: (C,); used if not `training`, else updated.
        running_var: (C,), likewise.
        weight: (C,), the scale.
        bias: (C,), the shift.
        training: Whether the statistics are those of the batch.
        momentum: Weight of the batch in the running statistics.
        eps: Added to the variance.

    Raises:
        ValueError: Training with one value per channel.
    """
    if training:
        size = input.shape
        count = input.numel() // size[1] if len(size) > 1 and size[1] else 0
        if count == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")
    return _ops.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises over the last dimensions to mean 0 and variance 1, then scales and shifts elementwise.

    Args:
        input: (*, *normalized_shape).
        normalized_shape: The last dimensions.
        weight: `normalized_shape`, the scale.
        bias: `normalized_shape`, the shift.
        eps: Added to the variance.
    """
    return _ops.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalises each group of channels to mean 0 and variance 1, then scales and shifts each channel.

    Args:
        input: (N, C, *).
        num_groups: How many groups the channels make; it divides C.
        weight: (C,), the scale.
        bias: (C,), the shift.
        eps: Added to the variance.
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    return _ops.group_norm(input, num_groups, weight, bias, eps)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """The input divided by its `p`-norm along `dim`, which counts as at least `eps`."""
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / norm if out is None else rl.div(input, norm, out=out)


# -- embedding and shapes


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` at the indices `input`.

    Args:
        input: Indices, any shape.
        weight: (rows, d).
        padding_idx: A row that gets no gradient; negative ones count from the end.
        max_norm: Rows that are used and longer than this are shortened, in place.
        norm_type: The norm for `max_norm`.
        scale_grad_by_freq: Whether a row's gradient is divided by how often the row occurs in `input`.
        sparse: Whether the gradient of `weight` is sparse.

    Returns:
        (*input.shape, d).
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise AssertionError(f"Padding_idx must be within num_embeddings, got padding_idx={padding_idx}.")
        padding_idx %= rows
    if max_norm is not None:
        with rl.no_grad():
            used = rl.zeros(weight.size(0), dtype=rl.bool, device=weight.device)
            used[input] = True
            norms = weight.norm(norm_type, 1)
            scale = rl.where(used & (norms > max_norm), max_norm / (norms + 1e-7), 1)
            weight.mul_(scale.unsqueeze(1))
    return _ops.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Integers as rows of zeros with a single 1.

    Args:
        tensor: int64 class numbers, any shape.
        num_classes: Length of a row. Default: the greatest class number + 1.

    Returns:
        int64, (*tensor.shape, num_classes).
    """
    if tensor.dtype != rl.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor, got {tensor.dtype}.")
    if tensor.numel() == 0 and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if tensor.numel():
        if int(tensor.min()) < 0:
            raise RuntimeError("Class values must be non-negative.")
        greatest = int(tensor.max())
        if num_classes == -1:
            num_classes = greatest + 1
        elif greatest >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    return (tensor.unsqueeze(-1) == rl.arange(num_classes, device=tensor.device)).to(rl.int64)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between `x1` and `x2` along a dimension; norms count as at least `eps`."""
    return _ops.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The `p`-norm of ``x1 - x2 + eps`` along the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)


# -- losses


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction, also from the two deprecated arguments that came before it."""
    if size_average is None and reduce is None:
        return reduction
    reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=3
    )
    return reduction


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _reduction_number(reduction: str) -> int:
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction. Use one of mean, none, sum.")
    return _REDUCTIONS[reduction]


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    kind = _reduction_number(reduction)
    return loss if kind == 0 else loss.mean() if kind == 1 else loss.sum()


def _same_shape(name: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). "
            "This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )
        input, target = rl.broadcast_tensors(input, target)
    return input, target


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Negative log likelihood of the classes `target` under the softmax of `input`.

    Args:
        input: Scores (N, C), (C,) or (N, C, *).
        target: Class numbers (N, *), or probabilities of the input's shape.
        weight: (C,), a factor for each class.
        size_average: Deprecated, see `reduction`.
        ignore_index: Class number that does not count.
        reduce: Deprecated, see `reduction`.
        reduction: ``"mean"`` (weighted), ``"sum"`` or ``"none"``.
        label_smoothing: Share of the target spread over all classes.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return _ops.cross_entropy_loss(input, target, weight, _reduction_number(reduction), ignore_index, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the entries of `input`, log probabilities (N, C, *), at the classes `target` (N, *).

    Arguments as in `cross_entropy`.
    """
    reduction = _reduction(size_average, reduce, reduction)
    return _ops.nll_loss_nd(input, target, weight, _reduction_number(reduction), ignore_index)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``(input - target) ** 2``, reduced; `weight` is a factor for each element."""
    reduction = _reduction(size_average, reduce, reduction)
    input, target = _same_shape("mse_loss", input, target)
    return _weighted((input - target) ** 2, weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``|input - target|``, reduced; `weight` is a factor for each element."""
    reduction = _reduction(size_average, reduce, reduction)
    input, target = _same_shape("l1_loss", input, target)
    return _weighted((input - target).abs(), weight, reduction)


def _weighted(loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if weight is None:
        return _reduced(loss, reduction)
    if weight.shape != loss.shape:
        raise ValueError(f"Weights and input must have the same size, got {weight.shape} and {loss.shape}.")
    if reduction == "mean":
        return (loss * weight).sum() / weight.sum()
    return _reduced(loss * weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """``d ** 2 / (2 * beta)`` where d = ``|input - target|`` < `beta`, else ``d - beta / 2``, reduced."""
    reduction = _reduction(size_average, reduce, reduction)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta, got beta={beta}.")
    input, target = _same_shape("smooth_l1_loss", input, target)
    distance = (input - target).abs()
    if beta == 0:
        return _reduced(distance, reduction)
    return _reduced(rl.where(distance < beta, distance * distance * (0.5 / beta), distance - 0.5 * beta), reduction)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """``d ** 2 / 2`` where d = ``|input - target|`` < `delta`, else ``delta * (d - delta / 2)``, reduced."""
    if delta <= 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta, got delta={delta}.")
    input, target = _same_shape("huber_loss", input, target)
    distance = (input - target).abs()
    loss = rl.where(distance < delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta))
    return _weighted(loss, weight, reduction)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-(target * log(input) + (1 - target) * log(1 - input))``, reduced; logarithms count as at least -100.

    Args:
        input: Probabilities in [0, 1].
        target: Of the input's shape.
        weight: A factor, broadcast to the input's shape.
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    reduction = _reduction(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    return _ops.binary_cross_entropy(input, target, weight, _reduction_number(reduction))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of ``sigmoid(input)``, exact for large logits; `pos_weight` is the positives' factor."""
    reduction = _reduction(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    softplus_minus = rl.log1p(rl.exp(-input.abs())) + rl.clamp(-input, min=0)  # log(1 + exp(-input))
    factor = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    loss = (1 - target) * input + factor * softplus_minus
    return _reduced(loss if weight is None else loss * weight, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """``target * (log(target) - input)``, reduced: the Kullback-Leibler divergence.

    Args:
        input: Log probabilities.
        target: Probabilities, or their logarithms if `log_target`.
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: ``"batchmean"`` (the divergence itself), ``"mean"``, ``"sum"`` or ``"none"``.
        log_target: See `target`.
    """
    reduction = _reduction(size_average, reduce, reduction)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    if log_target:
        loss = target.exp() * (target - input)
    else:
        safe = rl.where(target > 0, target, rl.ones_like(target))
        loss = target * (safe.log() - input)
    if reduction != "batchmean":
        return _reduced(loss, reduction)
    return loss.sum() / input.size(0) if input.dim() else loss.sum()


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of counts `target` under Poisson distributions.

    Args:
        input: Rates, or their logarithms if `log_input`.
        target: Counts.
        log_input: See `input`.
        full: Whether Stirling's approximation of ``log(target!)`` is added.
        size_average: Deprecated, see `reduction`.
        eps: Added to rates before their logarithm.
        reduce: Deprecated, see `reduction`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    reduction = _reduction(size_average, reduce, reduction)
    loss = input.exp() - target * input if log_input else input - target * rl.log(input + eps)
    if full:
        positive = rl.where(target > 1, target, rl.ones_like(target))
        stirling = positive * positive.log() - positive + 0.5 * rl.log(2 * rl.pi * positive)
        loss = loss + rl.where(target > 1, stirling, rl.zeros_like(stirling))
    return _reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of `target` under normal distributions with means `input` and variances `var`.

    Args:
        input: Means.
        target: Observations, of the input's shape or broadcast to it.
        var: Variances: a number, or the input's shape, of which one dimension may be 1 or the last left out.
        full: Whether the constant ``log(2 * pi) / 2`` is added.
        eps: The least variance; it has no gradient.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    variance = rl.full_like(input, var) if isinstance(var, (int, float)) else var
    if variance.numel() and bool((variance < 0).any()):
        raise ValueError(f"var has negative entry/entries, the least is {variance.min().item()}.")
    if variance.shape == input.shape[:-1] and input.dim():
        variance = variance.unsqueeze(-1)
    elif variance.dim() != input.dim() or [
        size for size, whole in zip(variance.shape, input.shape, strict=True) if size != whole
    ] not in ([], [1]):
        raise ValueError(
            "var is of incorrect size: it has the input's shape, of which one dimension may be 1 or the last left out, "
            f"got var of shape {list(variance.shape)} and input of shape {list(input.shape)}."
        )
    _reduction_number(reduction)
    variance = variance + (variance.clamp(min=eps) - variance).detach()
    loss = 0.5 * (rl.log(variance) + (input - target) ** 2 / variance)
    if full:
        loss = loss + 0.9189385332046727
    return _reduced(loss, reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``, reduced; `target` 1 or -1 says which should be greater."""
    reduction = _reduction(size_average, reduce, reduction)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The input where `target` is 1, ``max(0, margin - input)`` where it is -1, reduced."""
    reduction = _reduction(size_average, reduce, reduction)
    zeros = rl.zeros_like(input)
    loss = rl.where(target != 1, (margin - input).clamp(min=0), zeros) + rl.where(target != -1, input, zeros)
    return _reduced(loss, reduction)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target * input))``, reduced; `target` is 1 or -1."""
    reduction = _reduction(size_average, reduce, reduction)
    return _reduced(rl.log1p(rl.exp(-target * input)), reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cosine where `target` is 1, ``max(0, cosine - margin)`` where it is -1, reduced.

    Args:
        input1: (N, D) or (D,).
        input2: The same shape.
        target: (N,) or ().
        margin: See above.
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    reduction = _reduction(size_average, reduce, reduction)
    if target.dim() + 1 != input1.dim() or input1.shape != input2.shape:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    eps = 1e-12
    dot, square1, square2 = (input1 * input2).sum(-1), (input1 * input1).sum(-1) + eps, (input2 * input2).sum(-1) + eps
    cosine = dot / rl.sqrt(square1 * square2)
    zeros = rl.zeros_like(cosine)
    loss = rl.where(target == 1, 1 - cosine, zeros) + rl.where(target == -1, (cosine - margin).clamp(min=0), zeros)
    return _reduced(loss, reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, reduced, with the `p`-norm distance d.

    With `swap` the negative's distance is the lesser of those to anchor and positive.
    """
    reduction = _reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = rl.minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduced((near - far + margin).clamp(min=0), reduction)
