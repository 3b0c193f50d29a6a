"""Softmax over so many classes that the rare ones are only looked at where they are needed."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.container import ModuleList, Sequential
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax in two steps (Grave et al., 2017): frequent classes and clusters, then the classes of a cluster.

    Args:
        in_features: Length of the input.
        n_classes: How many classes there are, the most frequent first.
        cutoffs: The first class of each cluster, increasing.
        div_value: By how much each further cluster's inner size is smaller.
        head_bias: Whether the first step has a bias.
        device: Where the parameters are made.
        dtype: Their type.

    Raises:
        ValueError: `cutoffs` are not increasing numbers between 1 and ``n_classes - 1``.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        increasing = cutoffs == sorted(set(cutoffs)) and all(int(cut) == cut for cut in cutoffs)
        if not increasing or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                f"value is between 1 and n_classes-1, got cutoffs={cutoffs} and n_classes={n_classes}."
            )
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            inner = int(in_features // (div_value ** (i + 1)))
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, bias=False, **options),
                    Linear(inner, high - low, bias=False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        self.head.reset_parameters()
        for project, classify in self.tail:
            project.reset_parameters()
            classify.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> Any:
        """The log probability of each target, and minus their mean.

        Args:
            input_: (N, in_features) or (in_features,).
            target_: Class numbers (N,) or ().

        Returns:
            A named tuple ``(output, loss)`` of (N,) or () and ().
        """
        if target_.dim() not in (0, 1):
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input_.dim() != target_.dim() + 1:
            raise RuntimeError(
                f"{target_.dim()}D target tensor expects {target_.dim() + 1}D input tensors, but found inputs with "
                f"sizes {input_.size()}."
            )
        if target_.dim() and input_.size(0) != target_.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        input, target = (input_, target_) if target_.dim() else (input_.unsqueeze(0), target_.unsqueeze(0))
        least, greatest = (int(target.min()), int(target.max())) if target.numel() else (0, 0)
        if least < 0 or greatest >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{least}, {greatest}] "
                "were found. "
            )
        head = F.log_softmax(self.head(input), 1)
        output = rl.zeros(target.shape, dtype=input.dtype, device=input.device)
        column = target.clone()  # of the head: the class, or the cluster
        for i, cluster in enumerate(self.tail):
            low, high = self.cutoffs[i : i + 2]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel():
                scores = F.log_softmax(cluster(input.index_select(0, rows)), 1)
                relative = target.index_select(0, rows) - low
                output = output.index_copy(0, rows, scores.gather(1, relative.unsqueeze(1)).squeeze(1))
                column.index_fill_(0, rows, self.shortlist_size + i)
        output = output + head.gather(1, column.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if target_.dim() else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log probabilities (N, n_classes) of all classes for inputs (N, in_features)."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            parts.append(F.log_softmax(cluster(input), 1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return rl.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class (N,) for inputs (N, in_features)."""
        scores = self.head(input)
        output = scores.argmax(1)
        beyond = output >= self.shortlist_size
        if not bool(beyond.any()):
            return output
        rows = beyond.nonzero().squeeze(1)
        return output.index_copy(0, rows, self.log_prob(input.index_select(0, rows)).argmax(1))
