"""Connectionist temporal classification (Graves et al., 2006)."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample

_NEVER = float("-inf")


def _states(targets: Tensor, blank: int) -> Tensor:
    """The labels with blanks around them: (N, 2 * S + 1)."""
    labels = rl.full((targets.size(0), 2 * targets.size(1) + 1), blank, dtype=rl.int64, device=targets.device)
    labels[:, 1::2] = targets
    return labels


def _skips(labels: Tensor) -> Tensor:
    """Which states may be reached from two states before: a label that differs from the one before it."""
    skips = rl.zeros(labels.shape, dtype=rl.bool, device=labels.device)
    skips[:, 3::2] = labels[:, 3::2] != labels[:, 1:-2:2]
    return skips


def _shifted(scores: Tensor, by: int) -> Tensor:
    """Scores of the states `by` places before; there is nothing before the first."""
    if by >= scores.size(1):
        return rl.full_like(scores, _NEVER)
    border = rl.full((scores.size(0), by), _NEVER, dtype=scores.dtype, device=scores.device)
    return rl.cat([border, scores.narrow(1, 0, scores.size(1) - by)], 1)


def _reached(scores: Tensor, skips: Tensor) -> Tensor:
    skipped = rl.where(skips, _shifted(scores, 2), _NEVER)
    return rl.logaddexp(rl.logaddexp(scores, _shifted(scores, 1)), skipped)


def ctc_scores_composite(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> tuple[Tensor, Tensor]:
    steps, batch, _ = log_probs.shape
    labels = _states(targets, blank)
    skips = _skips(labels)
    emitted = log_probs.gather(2, labels.expand(steps, *labels.shape))
    start = rl.full(labels.shape, _NEVER, dtype=log_probs.dtype, device=log_probs.device)
    start[:, 0] = 0
    scores, history = start, []
    for step in range(steps):
        goes_on = (step < input_lengths).unsqueeze(1)
        scores = rl.where(goes_on, _reached(scores, skips) + emitted[step], scores)
        history.append(rl.where(goes_on, scores, _NEVER))
    last = 2 * target_lengths.unsqueeze(1)
    label = rl.where(target_lengths > 0, scores.gather(1, (last - 1).clamp(min=0)).squeeze(1), _NEVER)
    label = rl.where(input_lengths > 0, label, _NEVER)
    loss = -rl.logaddexp(scores.gather(1, last).squeeze(1), label)
    history = rl.stack(history, 1) if history else log_probs.new_empty(batch, 0, labels.size(1))
    return loss, history


def ctc_backward_composite(
    output_grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    loss: Tensor,
    history: Tensor,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    steps = log_probs.size(0)
    labels = _states(targets, blank)
    emitted = log_probs.gather(2, labels.expand(steps, *labels.shape))
    state = rl.arange(labels.size(1), device=labels.device)
    last = 2 * target_lengths.unsqueeze(1)
    skips = _skips(labels).flip(1)
    final = rl.where((state == last) | (state == last - 1), 0.0, _NEVER).to(log_probs.dtype)
    later, grads = final, []
    for step in reversed(range(steps)):
        here = (step < input_lengths).unsqueeze(1)
        first = (step == input_lengths - 1).unsqueeze(1)
        moved = _reached_backward(later, skips)
        scores = rl.where(first, final, moved)
        share = rl.exp(history[:, step] + scores + loss.unsqueeze(1))
        spent = rl.zeros_like(log_probs[step]).scatter_add(1, labels, share)
        grads.append(rl.where(here, rl.exp(log_probs[step]) - spent, 0))
        later = rl.where(here, scores + emitted[step], later)
    if not grads:
        return rl.zeros_like(log_probs)
    grad = rl.stack(grads[::-1]) * output_grad.unsqueeze(1)
    return rl.where((loss == rl.inf).unsqueeze(1), 0, grad) if zero_infinity else grad


def _reached_backward(scores: Tensor, flipped_skips: Tensor) -> Tensor:
    """As `_reached`, from the states after each."""
    back = scores.flip(1)
    skipped = rl.where(_shifted_bool(flipped_skips), _shifted(back, 2), _NEVER)
    return rl.logaddexp(rl.logaddexp(back, _shifted(back, 1)), skipped).flip(1)


def _shifted_bool(skips: Tensor) -> Tensor:
    moved = rl.zeros_like(skips)
    moved[:, 2:] = skips[:, :-2]
    return moved


def ctc_grad(
    grads: Sequence[Tensor],
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    zero_infinity: bool,
    results: Sequence[Tensor],
) -> Tensor:
    given = (grads[0], log_probs, targets, input_lengths, target_lengths, *results, blank, zero_infinity)
    return ctc_backward.operator(*given)


_INPUTS = "Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths"


def _ctc_arguments(make: Any) -> Any:
    scores = make(5, 2, 4, requires_grad=False).log_softmax(2)
    return scores, make.tensor([[1, 2], [3, 3]]), make.tensor([5, 4]), make.tensor([2, 2])


ctc = (
    Op(
        f"nn::ctc({_INPUTS}, int blank, bool zero_infinity) -> (Tensor, Tensor)",
        method=False,
        out=False,
        auxiliary=1,
        doc="""Minus the log likelihood of each target, and the logarithms of the forward variables.

        The gradient is that of the scores of which `log_probs` is the log-softmax, as PyTorch has it.
        """,
    )
    .composite(
        lambda log_probs, targets, inputs, lengths, blank, _: ctc_scores_composite(
            log_probs, targets, inputs, lengths, blank
        )
    )
    .grad(log_probs=ctc_grad, targets=None, input_lengths=None, target_lengths=None)
    .samples(
        lambda make, dtype: (
            Sample((*_ctc_arguments(make), 0, False)) for _ in range(1) if dtype in (rl.float32, rl.float64)
        )
    )
)
ctc_backward = (
    Op(
        f"nn::ctc_backward(Tensor output_grad, {_INPUTS}, Tensor loss, Tensor history, int blank, bool zero_infinity) "
        "-> Tensor",
        method=False,
        out=False,
        differentiable=False,
        doc="The gradient of `ctc` with respect to its log probabilities.",
    )
    .composite(ctc_backward_composite)
    .samples(
        lambda make, dtype: (
            Sample((make(2), *arguments, *ctc.operator(*arguments, 0, False), 0, False))
            for arguments in ([_ctc_arguments(make)] if dtype in (rl.float32, rl.float64) else [])
        )
    )
)


def _indices(values: Sequence[int], device: Any) -> Tensor:
    return rl.tensor([operator.index(value) for value in values], dtype=rl.int64, device=device)


def _lengths(name: str, values: Any, batch: int, most: int, device: Any) -> Tensor:
    lengths = values if isinstance(values, Tensor) else _indices(values, device)
    if lengths.dtype not in (rl.int64, rl.int32, rl.uint8):
        raise RuntimeError(f"{name} must be integral, got {lengths.dtype}.")
    lengths = lengths.to(rl.int64).reshape(-1)
    if lengths.numel() != batch:
        raise RuntimeError(f"{name} must be of size batch_size, got {lengths.numel()} for a batch of {batch}.")
    if batch and not lengths.is_meta:
        least, greatest = int(lengths.min()), int(lengths.max())
        if least < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {least}")
        if 0 <= most < greatest:
            raise RuntimeError(f"Expected {name} to have value at most {most}, but got value {greatest}")
    return lengths


def _padded(targets: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """Targets (N, S) from those of all samples one after the other."""
    total, longest = int(lengths.sum()), int(lengths.max()) if lengths.numel() else 0
    if targets.numel() != total:
        raise RuntimeError(
            f"Expected tensor to have size {total} at dimension 0, but got size {targets.numel()} for argument #2 "
            "'targets'"
        )
    padded = rl.full((lengths.numel(), longest), blank, dtype=rl.int64, device=targets.device)
    padded[rl.arange(longest, device=targets.device) < lengths.unsqueeze(1)] = targets
    return padded


def ctc_loss_composite(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    reduction: int,
    zero_infinity: bool,
) -> Tensor:
    if log_probs.dim() not in (2, 3):
        raise RuntimeError(f"ctc_loss: expected log_probs (T, N, C) or (T, C), got {list(log_probs.shape)}.")
    if log_probs.dtype not in (rl.float32, rl.float64):
        raise NotImplementedError(f'"ctc_loss_cpu" not implemented for {log_probs.dtype}')
    if targets.dtype not in (rl.int64, rl.int32):
        raise RuntimeError(f"ctc_loss: targets must be int64 or int32, got {targets.dtype}.")
    single = log_probs.dim() == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    targets = targets.to(rl.int64)
    if single and targets.dim() == 1:
        targets = targets.unsqueeze(0)
    input_lengths = _lengths("input_lengths", input_lengths, batch, steps, log_probs.device)
    target_lengths = _lengths("target_lengths", target_lengths, batch, -1, log_probs.device)
    if targets.dim() == 1:
        targets = _padded(targets, target_lengths, blank)
    elif targets.dim() != 2 or targets.size(0) != batch:
        raise RuntimeError(f"ctc_loss: expected targets of shape ({batch}, S), got {list(targets.shape)}.")
    longest = int(target_lengths.max()) if batch and not target_lengths.is_meta else 0
    if longest > targets.size(1):
        raise RuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size {targets.size(1)} for "
            "argument #2 'targets'"
        )
    if targets.numel() and not targets.is_meta:
        used = rl.arange(targets.size(1), device=targets.device) < target_lengths.unsqueeze(1)
        targets = rl.where(used, targets, blank)
        least, greatest = int(targets.min()), int(targets.max())
        if least < 0 or greatest >= classes:
            raise RuntimeError(
                f"ctc_loss: targets must be class numbers from 0 to {classes - 1}, got "
                f"{least if least < 0 else greatest}."
            )
    loss = ctc.operator(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)[0]
    if zero_infinity:
        loss = rl.where(loss == rl.inf, 0, loss)
    if reduction == 1:
        return (loss / target_lengths.clamp(min=1).to(loss.dtype)).mean()
    if reduction == 2:
        return loss.sum()
    return loss.squeeze(0) if single else loss


ctc_loss = (
    Op(
        "ctc_loss(Tensor log_probs, Tensor targets, Any input_lengths, Any target_lengths, int blank=0, "
        "int reduction=1, bool zero_infinity=False) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="""The connectionist temporal classification loss, see `rushlight.nn.functional.ctc_loss`.

        Args:
            log_probs: (T, N, C) or (T, C), logarithms of probabilities.
            targets: (N, S), or those of all samples one after the other; without the blank.
            input_lengths: (N,), at most T.
            target_lengths: (N,), at most S.
            blank: The class that stands for no label.
            reduction: 0 (none), 1 (the mean of the losses by target length) or 2 (sum).
            zero_infinity: Whether losses of targets that do not fit the input, and their gradients, are 0.
        """,
    )
    .composite(ctc_loss_composite)
    .samples(
        lambda make, dtype: (
            Sample((*_ctc_arguments(make), 0, reduction))
            for reduction in (0, 1, 2)
            if dtype in (rl.float32, rl.float64)
        )
    )
)
