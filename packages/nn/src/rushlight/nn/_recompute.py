"""Gradients of a composite operator by recording it once more: where its native gradient does not serve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor


def gradients(
    function: Callable[..., Sequence[Tensor]],
    inputs: Sequence[Tensor | None],
    grads: Sequence[Tensor | None],
) -> tuple[Tensor | None, ...]:
    """The gradients of `function(*inputs)` with respect to its inputs, to be differentiated again if grad mode is on.

    Args:
        function: Made of differentiable operators.
        inputs: Its arguments; None stays None.
        grads: Gradients of its first results; None for one that has none.

    Returns:
        A gradient for each input; None for None and for what no result depends on.
    """
    again = rl.is_grad_enabled()
    with rl.enable_grad():
        # Views, so that an input that is given twice has two gradients.
        own = [
            x if x is None else x.view_as(x) if again and x.requires_grad else x.detach().requires_grad_()
            for x in inputs
        ]
        results = function(*own)
        pairs = [(y, g) for y, g in zip(results, grads, strict=False) if g is not None and y.requires_grad]
        wanted = [x for x in own if x is not None]
        found: Any = rl.autograd.grad(
            [y for y, _ in pairs], wanted, [g for _, g in pairs], create_graph=again, allow_unused=True
        )
    rest = iter(found)
    return tuple(None if x is None else next(rest) for x in own)
