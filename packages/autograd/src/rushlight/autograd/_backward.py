"""backward and grad: the entries to the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from rushlight import Tensor

from . import _C

Tensors: TypeAlias = "Tensor | Sequence[Tensor]"
OptionalTensors: TypeAlias = "Tensor | Sequence[Tensor | None] | None"


def backward(
    tensors: Tensors,
    grad_tensors: OptionalTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: OptionalTensors = None,
    inputs: Tensors | None = None,
) -> None:
    """Computes the gradients of the leaves of the graph and adds them to their `.grad`.

    Args:
        tensors: Where to start, of any shapes.
        grad_tensors: Gradient with respect to each of `tensors`, of its shape; None for those with one element.
        retain_graph: Keep what the graph saved, so that another pass can run; by default as `create_graph`.
        create_graph: Record the pass itself, for higher derivatives.
        grad_variables: Old name of `grad_tensors`.
        inputs: Only these tensors get their gradient.

    Raises:
        RuntimeError: A tensor has no history, a gradient has the wrong shape or is missing, or a saved tensor was
            written to or released.

    Example:
        >>> x = rushlight.tensor([1.0, 2.0], requires_grad=True)
        >>> rushlight.autograd.backward((x * x).sum())
        >>> x.grad
        tensor([2., 4.])
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("backward: grad_tensors and grad_variables are the same argument. Use grad_tensors.")
        grad_tensors = grad_variables
    _C.backward(tensors, grad_tensors, retain_graph, create_graph, inputs)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: OptionalTensors = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Gradients of `outputs` with respect to `inputs`, returned; no `.grad` changes.

    Args:
        outputs: What is differentiated, of any shapes.
        inputs: With respect to what.
        grad_outputs: Gradient with respect to each of `outputs` (the vector of the vector-Jacobian product), of its
            shape; None for outputs with one element.
        retain_graph: Keep what the graph saved, so that another pass can run; by default as `create_graph`.
        create_graph: Record the pass itself, for higher derivatives.
        only_inputs: Accepted for compatibility; only True has a meaning.
        allow_unused: Give None for inputs that the outputs do not depend on, instead of an error.
        is_grads_batched: `grad_outputs` have a further first dimension, and so have the gradients: one pass runs for
            all of its entries.
        materialize_grads: Give zeros instead of None.

    Returns:
        A gradient for each input, of its shape.

    Raises:
        RuntimeError: As `backward`, and for an input that was not used.

    Example:
        >>> x = rushlight.tensor(3.0, requires_grad=True)
        >>> rushlight.autograd.grad(x ** 2, x)
        (tensor(6.),)
    """
    if not only_inputs:
        raise ValueError("grad: only_inputs=False has no meaning any more, got only_inputs=False. Use backward().")
    if is_grads_batched:
        return _batched(outputs, inputs, grad_outputs, create_graph, retain_graph, allow_unused, materialize_grads)
    return _C.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)


def _batched(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: OptionalTensors,
    create_graph: bool,
    retain_graph: bool | None,
    allow_unused: bool | None,
    materialize_grads: bool,
) -> tuple[Any, ...]:
    from ._batching import map_batch

    batches = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs or ())
    results = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    for i, (out, g) in enumerate(zip(results, batches, strict=False)):
        if g is not None and (not g.ndim or g.shape[1:] != out.shape):
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{i}] has a shape of {g.shape[1:]} and output[{i}] "
                f"has a shape of {out.shape}."
            )
    sizes = [len(g) for g in batches if g is not None]
    if len(set(sizes)) != 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, "
            f"got sizes {sizes} for the mapped dimension"
        )

    def one_pass(*row: Tensor | None) -> tuple[Tensor | None, ...]:
        return _C.grad(outputs, inputs, row, retain_graph, create_graph, allow_unused, materialize_grads)

    return map_batch(one_pass, *batches)
