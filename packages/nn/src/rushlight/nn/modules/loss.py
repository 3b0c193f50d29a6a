"""Losses as layers; the formulas are with the functions of the same names in `rushlight.nn.functional`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.distance import PairwiseDistance
from rushlight.nn.modules.module import Module

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "SmoothL1Loss",
    "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip


class _Loss(Module):
    """A loss with a reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Args:
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: How the losses of the elements are combined.
    """

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = F._reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    """A loss with a factor for each class or element.

    Args:
        weight: The factors, kept as a buffer.
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: How the losses of the elements are combined.
    """

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """``|input - target|``, reduced."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two inputs of one shape."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """``(input - target) ** 2``, reduced."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two inputs of one shape."""
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """The squared error below `beta`, the absolute error above it, joined smoothly.

    Args:
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: How the losses of the elements are combined.
        beta: See above.
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two inputs of one shape."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """The squared error below `delta`, `delta` times the absolute error above it, joined smoothly.

    Args:
        reduction: How the losses of the elements are combined.
        delta: See above.
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two inputs of one shape."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_WeightedLoss):
    """Minus the log probabilities of the target classes.

    Args:
        weight: (C,), a factor for each class.
        size_average: Deprecated, see `reduction`.
        ignore_index: A class number that does not count.
        reduce: Deprecated, see `reduction`.
        reduction: How the losses of the elements are combined.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Log probabilities (N, C, *) and class numbers (N, *)."""
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """`NLLLoss` by its old name for images."""


class CrossEntropyLoss(_WeightedLoss):
    """Negative log likelihood of the target classes under the softmax of the input.

    Args:
        weight: (C,), a factor for each class.
        size_average: Deprecated, see `reduction`.
        ignore_index: A class number that does not count.
        reduce: Deprecated, see `reduction`.
        reduction: How the losses of the elements are combined.
        label_smoothing: Share of the target spread over all classes.

    Example:
        >>> import rushlight as torch
        >>> torch.nn.CrossEntropyLoss()(torch.zeros(2, 4), torch.tensor([0, 3]))
        tensor(1.3863)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Scores (N, C, *), and class numbers (N, *) or probabilities of the same shape."""
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """Binary cross-entropy of probabilities."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two inputs of one shape."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross-entropy of the sigmoid of the input.

    Args:
        weight: A factor for each element of the batch.
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: How the losses of the elements are combined.
        pos_weight: A factor for the positive targets of each class.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two inputs of one shape."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence of log probabilities from a target.

    Args:
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: How the losses of the elements are combined; ``"batchmean"`` gives the divergence itself.
        log_target: Whether the target is given as log probabilities.
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two inputs of one shape."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """Negative log likelihood of counts under Poisson distributions.

    Args:
        log_input: Whether the input holds the logarithms of the rates.
        full: Whether Stirling's approximation of ``log(target!)`` is added.
        size_average: Deprecated, see `reduction`.
        eps: Added to rates before their logarithm.
        reduce: Deprecated, see `reduction`.
        reduction: How the losses of the elements are combined.
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """Two inputs of one shape."""
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """Negative log likelihood of observations under normal distributions.

    Args:
        full: Whether the constant ``log(2 * pi) / 2`` is added.
        eps: The least variance.
        reduction: How the losses of the elements are combined.
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """Means, observations and variances."""
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))``, reduced."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two inputs of one shape, the second of 1 and -1."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class _MarginLoss(_Loss):
    """A loss with a margin.

    Args:
        margin: The margin.
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: How the losses of the elements are combined.
    """

    _default_margin = 0.0

    def __init__(
        self,
        margin: float | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = self._default_margin if margin is None else margin


class HingeEmbeddingLoss(_MarginLoss):
    """The input where the target is 1, ``max(0, margin - input)`` where it is -1; the margin is 1 by default."""

    _default_margin = 1.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two inputs of one shape, the second of 1 and -1."""
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    """``max(0, -target * (input1 - input2) + margin)``, reduced; the margin is 0 by default."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Three inputs of one shape, the last of 1 and -1."""
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """1 - cosine where the target is 1, ``max(0, cosine - margin)`` where it is -1; the margin is 0 by default."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Two inputs (N, D), and (N,) of 1 and -1."""
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, reduced.

    Args:
        margin: See above.
        p: The norm of the distance.
        eps: Added to differences.
        swap: Whether the lesser of the negative's distances to anchor and positive counts.
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: How the losses of the elements are combined.
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Three inputs (N, D)."""
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction
        )


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with a distance of one's own.

    Args:
        distance_function: Two inputs (N, D) to (N,). Default: the distance of `PairwiseDistance`.
        margin: By how much the negative should be farther from the anchor than the positive.
        swap: Whether the negative's distance is the lesser of those to anchor and positive.
        reduction: How the losses of the elements are combined.

    Raises:
        ValueError: `margin` is not positive.
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Three inputs (N, D)."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class MultiMarginLoss(_WeightedLoss):
    """The hinge loss of one class against the others.

    Args:
        p: The power of the hinge, 1 or 2.
        margin: By how much the target's score should be above the others.
        weight: (C,), a factor for each target class.
        size_average: Deprecated, see `reduction`.
        reduce: Deprecated, see `reduction`.
        reduction: How the losses of the samples are combined.
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"only p == 1 and p == 2 supported, got p={p}.")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Scores (N, C) and class numbers (N,), or both without N."""
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The hinge loss of several classes against the others."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Scores (N, C) and labels (N, C), of which those from the first -1 on do not count; or both without N."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over the classes of the binary cross-entropy of ``sigmoid(input)``."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Scores (N, C) and zeros and ones (N, C)."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class CTCLoss(_Loss):
    """Minus the log probability of label sequences, over all alignments (Graves et al., 2006).

    Args:
        blank: The class that stands for no label.
        reduction: ``"mean"`` (of the losses by target length), ``"sum"`` or ``"none"``.
        zero_infinity: Whether losses of targets that do not fit the input, and their gradients, are 0.
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        """Log probabilities (T, N, C), targets (N, S) and the lengths (N,) of both."""
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
