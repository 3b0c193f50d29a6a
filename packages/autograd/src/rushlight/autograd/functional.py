"""Derivatives of functions of tensors: products with Jacobians and Hessians, and these matrices themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from . import forward_ad
from ._backward import grad
from ._batching import map_batch
from ._C import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Function = Callable[..., Any]
Tensors = tuple[Tensor, ...]
Grads = tuple["Tensor | None", ...]


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The product of a vector with the Jacobian of a function.

    Args:
        func: Takes the inputs, returns a Tensor or a tuple of them.
        inputs: A Tensor or a tuple of Tensors.
        v: The vector, shaped as the outputs; may be left out for one output with one element.
        create_graph: Whether the results can be differentiated.
        strict: Whether it is an error if an output is independent of an input.

    Returns:
        The outputs, and the product, shaped as the inputs.

    Raises:
        RuntimeError: `v` does not fit the outputs, or see `strict`.

    Example:
        >>> rushlight.autograd.functional.vjp(lambda x: x * x, rushlight.tensor([1.0, 2.0]), rushlight.ones(2))
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        leaves, single = _leaves("vjp", inputs, create_graph)
        outputs, single_output = _outputs("vjp", func(*leaves), strict)
        vector = _vector("vjp", v, outputs, "user-provided function returns")
        grads = _grad(outputs, leaves, vector, create_graph)
        _refuse_independent(grads, strict, "The output of the user-provided function is independent of input {}.")
    return _shaped(outputs, single_output, create_graph), _shaped(_filled(grads, leaves), single, create_graph)


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The product of the Jacobian of a function with a vector, by differentiating the backward pass.

    `rushlight.autograd.forward_ad` computes it in one forward pass.

    Args:
        func: Takes the inputs, returns a Tensor or a tuple of them.
        inputs: A Tensor or a tuple of Tensors.
        v: The vector, shaped as the inputs; may be left out for one input with one element.
        create_graph: Whether the results can be differentiated.
        strict: Whether it is an error if an output is independent of the inputs.

    Returns:
        The outputs, and the product, shaped as the outputs.

    Raises:
        RuntimeError: `v` does not fit the inputs, or see `strict`.

    Example:
        >>> rushlight.autograd.functional.jvp(lambda x: x.sum() * x, rushlight.ones(2), rushlight.tensor([1.0, 0.0]))
        (tensor([2., 2.]), tensor([3., 1.]))
    """
    with enable_grad():
        leaves, _ = _leaves("jvp", inputs, create_graph)
        vector = _vector("jvp", v, leaves, "input to the user-provided function is")
        outputs, single = _outputs("jvp", func(*leaves), strict)
        # The vector-Jacobian product is linear in its vector: its derivative by that is the Jacobian.
        dual = tuple(rushlight.zeros_like(out).requires_grad_() for out in outputs)
        products = _grad(outputs, leaves, dual, create_graph=True)
        _refuse_independent(products, strict, "The output of the user-provided function is independent of input {}.")
        grads = _grad(_filled(products, leaves), dual, vector, create_graph)
        _refuse_independent(grads, strict, "Output {} of the user-provided function does not depend on the inputs.")
    return _shaped(outputs, single, create_graph), _shaped(_filled(grads, outputs), single, create_graph)


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of a function.

    Args:
        func: Takes the inputs, returns a Tensor or a tuple of them.
        inputs: A Tensor or a tuple of Tensors.
        create_graph: Whether the result can be differentiated.
        strict: Whether it is an error if an output is independent of an input.
        vectorize: Whether one backward pass computes all rows, on batches of gradients.
        strategy: ``"reverse-mode"`` computes rows, ``"forward-mode"`` columns, which pays with few inputs.

    Returns:
        For each output and input a Tensor (*output shape, *input shape): a tuple of tuples, of which the levels for
        one output and for one input are left out.

    Raises:
        RuntimeError: See `strict`.

    Example:
        >>> rushlight.autograd.functional.jacobian(lambda x: x * x, rushlight.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    _check_strategy("jacobian", strategy, create_graph, strict, vectorize)
    if strategy == "forward-mode":
        return _jacobian_forward(func, inputs)
    with enable_grad():
        leaves, single = _leaves("jacobian", inputs, create_graph)
        outputs, single_output = _outputs("jacobian", func(*leaves), strict)
        rows = []
        for number, out in enumerate(outputs):
            blocks = _rows(out, leaves, create_graph, vectorize)
            message = f"Output {number} of the user-provided function is independent of input {{}}."
            _refuse_independent(blocks, strict, message)
            if strict and create_graph:
                _refuse_constant(blocks, "The jacobian of the user-provided function is independent of input {}.")
            filled = tuple(
                block if block is not None else _zeros(out, leaf) for block, leaf in zip(blocks, leaves, strict=True)
            )
            rows.append(_shaped(filled, single, create_graph))
    return rows[0] if single_output else tuple(rows)


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function with one number as its result.

    Args:
        func: Takes the inputs, returns a Tensor with one element.
        inputs: A Tensor or a tuple of Tensors.
        create_graph: Whether the result can be differentiated.
        strict: Whether it is an error if the gradient is independent of an input.
        vectorize: Whether one backward pass computes all rows, on batches of gradients.
        outer_jacobian_strategy: How the gradient is differentiated, see `jacobian`.

    Returns:
        For each pair of inputs a Tensor (*shape, *shape): a tuple of tuples, or one Tensor for one input.

    Raises:
        RuntimeError: The result has more than one element, or see `strict`.

    Example:
        >>> rushlight.autograd.functional.hessian(lambda x: (x ** 3).sum(), rushlight.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    _check_strategy("hessian", outer_jacobian_strategy, create_graph, strict, vectorize)
    single = isinstance(inputs, Tensor)

    def gradient(*leaves: Tensor) -> Any:
        recorded = tuple(leaf if leaf.requires_grad else leaf.requires_grad_() for leaf in leaves)
        out = _number("hessian", func(*recorded), strict)
        grads = _grad((out,), recorded, (rushlight.ones_like(out),), create_graph=True)
        _refuse_independent(grads, strict, "The output of the user-provided function is independent of input {}.")
        if strict:
            _refuse_constant(grads, _CONSTANT)
        return _filled(grads, recorded)

    rows = jacobian(gradient, inputs, create_graph=create_graph, vectorize=vectorize, strategy=outer_jacobian_strategy)
    return rows[0] if single else rows


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The product of a vector with the Hessian of a function.

    Args:
        func: Takes the inputs, returns a Tensor with one element.
        inputs: A Tensor or a tuple of Tensors.
        v: The vector, shaped as the inputs; may be left out for one input with one element.
        create_graph: Whether the results can be differentiated.
        strict: Whether it is an error if the gradient is independent of an input.

    Returns:
        The function's result, and the product, shaped as the inputs.

    Example:
        >>> rushlight.autograd.functional.vhp(lambda x: (x ** 3).sum(), rushlight.ones(2), rushlight.ones(2))
        (tensor(2.), tensor([6., 6.]))
    """

    def product(gradient: Tensors, leaves: Tensors, vector: Any) -> Any:
        return _grad(gradient, leaves, vector, create_graph)

    return _hessian_product("vhp", func, inputs, v, create_graph, strict, product)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The product of the Hessian of a function with a vector: `vhp`, as a Hessian is symmetric, by three passes.

    Args:
        func: Takes the inputs, returns a Tensor with one element.
        inputs: A Tensor or a tuple of Tensors.
        v: The vector, shaped as the inputs; may be left out for one input with one element.
        create_graph: Whether the results can be differentiated.
        strict: Whether it is an error if the gradient is independent of an input.

    Returns:
        The function's result, and the product, shaped as the inputs.

    Example:
        >>> rushlight.autograd.functional.hvp(lambda x: (x ** 3).sum(), rushlight.ones(2), rushlight.ones(2))
        (tensor(2.), tensor([6., 6.]))
    """

    def product(gradient: Tensors, leaves: Tensors, vector: Any) -> Any:
        dual = tuple(rushlight.zeros_like(leaf).requires_grad_() for leaf in leaves)
        products = _grad(gradient, leaves, dual, create_graph=True)
        return _grad(_filled(products, leaves), dual, vector, create_graph)

    return _hessian_product("hvp", func, inputs, v, create_graph, strict, product)


def _hessian_product(
    who: str, func: Function, inputs: Any, v: Any, create_graph: bool, strict: bool, product: Function
) -> Any:
    """The function's result and `product(gradient, leaves, vector)`, shaped as the inputs."""
    with enable_grad():
        leaves, single = _leaves(who, inputs, create_graph)
        vector = _vector(who, v, leaves, "input to the user-provided function is")
        out = _number(who, func(*leaves), strict)
        grads = product(_filled(_gradient(out, leaves, strict), leaves), leaves, vector)
        _refuse_independent(grads, strict, "The hessian of the user-provided function is independent of input {}.")
    return _shaped((out,), True, create_graph), _shaped(_filled(grads, leaves), single, create_graph)


_CONSTANT = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    "independent of the input."
)


def _as_tuple(who: str, what: str, value: Any) -> tuple[Tensors, bool]:
    if isinstance(value, Tensor):
        return (value,), True
    if not isinstance(value, tuple):
        raise TypeError(
            f"The {what} given to {who} must be either a Tensor or a tuple of Tensors but the given {what} has type "
            f"{type(value)}."
        )
    for index, item in enumerate(value):
        if not isinstance(item, Tensor):
            raise TypeError(
                f"The {what} given to {who} must be either a Tensor or a tuple of Tensors but the value at index "
                f"{index} has type {type(item)}."
            )
    return value, False


def _leaves(who: str, inputs: Any, create_graph: bool) -> tuple[Tensors, bool]:
    """The inputs as what is differentiated by; with `create_graph` connected with those of the caller."""
    tensors, single = _as_tuple(who, "inputs", inputs)
    leaves = tuple(x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in tensors)
    return leaves, single


def _outputs(who: str, value: Any, strict: bool) -> tuple[Tensors, bool]:
    outputs, single = _as_tuple(who, "outputs of the user-provided function", value)
    for number, out in enumerate(outputs):
        if strict and not out.requires_grad:
            raise RuntimeError(
                f"Output {number} of the user-provided function does not require gradients. The outputs must be "
                "computed in a differentiable manner from the input when running in strict mode."
            )
    return outputs, single


def _number(who: str, value: Any, strict: bool) -> Tensor:
    (out, *more), single = _outputs(who, value, strict)
    if more or not single:
        raise RuntimeError(f"The function given to {who} should return a single Tensor, got {type(value).__name__}.")
    if out.numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {who} should contain a single element, got shape "
            f"{tuple(out.shape)}."
        )
    return out


def _vector(who: str, v: Any, like: Tensors, subject: str) -> Tensors:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the {subject} a single Tensor with a single element. Pass v."
            )
        return (rushlight.ones_like(like[0]),)
    vector, single = _as_tuple(who, "v", v)
    if len(vector) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vector)}.")
    for index, (entry, one) in enumerate(zip(vector, like, strict=True)):
        if entry.shape != one.shape:
            raise RuntimeError(
                f"{'v' if single else f'Entry {index} in v'} has invalid size: should be {one.shape} but got "
                f"{entry.shape}."
            )
    return vector


def _grad(outputs: Sequence[Tensor], inputs: Tensors, vector: Tensors, create_graph: bool) -> Grads:
    """Gradients where there are any: outputs that depend on nothing are left out."""
    pairs = [(out, v) for out, v in zip(outputs, vector, strict=True) if out.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return grad(
        [out for out, _ in pairs],
        inputs,
        [v for _, v in pairs],
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )


def _gradient(out: Tensor, leaves: Tensors, strict: bool) -> Grads:
    grads = _grad((out,), leaves, (rushlight.ones_like(out),), create_graph=True)
    _refuse_independent(grads, strict, "The output of the user-provided function is independent of input {}.")
    if strict:
        _refuse_constant(grads, _CONSTANT)
    return grads


def _refuse_independent(grads: Grads, strict: bool, message: str) -> None:
    for number, g in enumerate(grads):
        if strict and g is None:
            raise RuntimeError(message.format(number) + " This is not allowed in strict mode.")


def _refuse_constant(grads: Grads, message: str) -> None:
    for number, g in enumerate(grads):
        if g is not None and not g.requires_grad:
            raise RuntimeError(
                message.format(number) + " This is not allowed in strict mode when derivatives of it are taken."
            )


def _filled(grads: Grads, like: Tensors) -> Tensors:
    return tuple(rushlight.zeros_like(x) if g is None else g for g, x in zip(grads, like, strict=True))


def _shaped(tensors: Tensors, single: bool, create_graph: bool) -> Any:
    kept = tensors if create_graph else tuple(t.detach() for t in tensors)
    return kept[0] if single else kept


def _zeros(output: Tensor, input: Tensor) -> Tensor:
    return rushlight.zeros((*output.shape, *input.shape), dtype=input.dtype, device=input.device)


def _rows(out: Tensor, leaves: Tensors, create_graph: bool, vectorize: bool) -> Grads:
    """The Jacobian of one output by each input, (*output shape, *input shape); None where it is independent."""
    if not out.requires_grad or out.numel() == 0:
        return (None,) * len(leaves)
    if out.is_complex():
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {out.dtype}. Take real and imag."
        )
    units = rushlight.eye(out.numel(), dtype=out.dtype, device=out.device).reshape(out.numel(), *out.shape)
    pass_over = functools.partial(
        grad, out, leaves, retain_graph=True, create_graph=create_graph, allow_unused=True, is_grads_batched=vectorize
    )
    found: Any
    if vectorize:
        found = pass_over(units)
    else:
        columns: Any = zip(*(pass_over(unit) for unit in units), strict=True)
        found = tuple(None if column[0] is None else rushlight.stack(column) for column in columns)
    return tuple(
        None if g is None else g.reshape((*out.shape, *leaf.shape)) for g, leaf in zip(found, leaves, strict=True)
    )


def _check_strategy(who: str, strategy: str, create_graph: bool, strict: bool, vectorize: bool) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            f'Expected strategy to be either "forward-mode" or "reverse-mode", got {strategy!r}. Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to '
            'use "reverse-mode".'
        )
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            f'torch.autograd.functional.{who}: `create_graph=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict and (vectorize or strategy == "forward-mode"):
        raise RuntimeError(
            f"torch.autograd.functional.{who}: `strict=True` and `vectorized=True` are not supported together. "
            "Please either set `strict=False` or `vectorize=False`."
        )


def _jacobian_forward(func: Function, inputs: Any) -> Any:
    """The Jacobian by columns: a forward pass for the elements of each input."""
    tensors, single = _as_tuple("jacobian", "inputs", inputs)
    tensors = tuple(x.detach() for x in tensors)
    outputs: Tensors = ()
    single_output = True

    def derivatives(k: int, unit: Tensor) -> Tensors:
        nonlocal outputs, single_output
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(t, unit) if i == k else t for i, t in enumerate(tensors)]
            outputs, single_output = _outputs("jacobian", func(*duals), strict=False)
            parts = [forward_ad.unpack_dual(out) for out in outputs]
            outputs = tuple(part.primal for part in parts)
        return tuple(rushlight.zeros_like(p.primal) if p.tangent is None else p.tangent for p in parts)

    columns: list[tuple[Any, ...]] = []  # by input and output, the elements of the input in front
    for k, x in enumerate(tensors):
        units = rushlight.eye(x.numel(), dtype=x.dtype, device=x.device).reshape((x.numel(), *x.shape))
        columns.append(map_batch(functools.partial(derivatives, k), units))
    rows = []
    for o, out in enumerate(outputs):
        blocks = tuple(
            column[o].detach().movedim(0, -1).reshape((*out.shape, *x.shape))
            for column, x in zip(columns, tensors, strict=True)
        )
        rows.append(blocks[0] if single else blocks)
    return rows[0] if single_output else tuple(rows)
