"""Checkpointing: trade computing for memory by computing again, in backward, what backward needs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.amp import autocast_mode
from rushlight.autograd import Function, backward, enable_grad, graph, is_grad_enabled, no_grad

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_early_stop",
    "set_device_states",
]

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]

_early_stop: bool | None = None  # what set_checkpoint_early_stop says


class CheckpointError(RuntimeError):
    """What was computed again is not what was computed first."""


class _Enough(BaseException):
    """Ends a recomputation: everything that was saved is there again."""


def noop_context_fn() -> Contexts:
    """Two contexts that do nothing."""
    return nullcontext(), nullcontext()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Context manager: whether checkpoints made inside stop recomputing as soon as nothing more is needed.

    Args:
        enable: Overrides the argument `early_stop` of `checkpoint`.
    """
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same values as leaves of a graph of their own; what is no Tensor stays.

    Args:
        inputs: Tensors and others.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns where no input requires a gradient, so that a reentrant checkpoint gives none."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=3)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The CUDA devices of the arguments, and the states of their generators."""
    devices = sorted({x.device.index for x in args if isinstance(x, Tensor) and x.is_cuda})
    return devices, [rl.cuda.get_rng_state(device) for device in devices]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor]) -> None:
    """Sets the states of the generators of CUDA devices."""
    for device, state in zip(devices, states, strict=True):
        rl.cuda.set_rng_state(state, device)


class _Casts:
    """What `autocast` made of the operators that a function calls."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        types = {"cpu", *(x.device.type for x in args if isinstance(x, Tensor))}
        self.modes = [
            (name, autocast_mode.get_autocast_dtype(name), autocast_mode.is_autocast_enabled(name))
            for name in types
            if autocast_mode.is_autocast_available(name)
        ]
        self.cache_enabled = autocast_mode.is_autocast_cache_enabled()

    @contextmanager
    def again(self) -> Iterator[None]:
        """Inside, it makes the same of them."""
        with ExitStack() as contexts:
            for mode in self.modes:
                contexts.enter_context(autocast_mode.autocast(*mode, self.cache_enabled))
            yield


class _RandomState:
    """The states of the generators that a function may draw from."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.cpu = rl.get_rng_state()
        self.devices, self.states = get_device_states(*args)

    @contextmanager
    def again(self) -> Iterator[None]:
        """Inside, the generators give what they gave then; after it they go on as if nothing had happened."""
        cpu, states = rl.get_rng_state(), [rl.cuda.get_rng_state(device) for device in self.devices]
        rl.set_rng_state(self.cpu)
        set_device_states(self.devices, self.states)
        try:
            yield
        finally:
            rl.set_rng_state(cpu)
            set_device_states(self.devices, states)


# -- reentrant: a backward pass inside the backward pass


class CheckpointFunction(Function):
    """The node of a reentrant checkpoint: its backward runs the function again, and a backward pass through it."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.casts = _Casts(args)
        ctx.random = _RandomState(args) if preserve_rng_state else None
        ctx.others = [None if isinstance(x, Tensor) else x for x in args]
        ctx.is_tensor = [isinstance(x, Tensor) for x in args]
        ctx.save_for_backward(*(x for x in args if isinstance(x, Tensor)))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if graph.is_selective_pass():
            raise RuntimeError(
                "When use_reentrant=True, rushlight.utils.checkpoint is incompatible with .grad() or passing an "
                "`inputs` parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or "
                "call .backward() without passing the `inputs` argument."
            )
        tensors = iter(ctx.saved_tensors)
        inputs = detach_variable(
            tuple(next(tensors) if is_tensor else x for x, is_tensor in zip(ctx.others, ctx.is_tensor, strict=True))
        )
        with enable_grad(), ctx.casts.again(), ctx.random.again() if ctx.random else nullcontext():
            outputs = ctx.run_function(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        wanted = [i for i, output in enumerate(outputs) if isinstance(output, Tensor) and output.requires_grad]
        if not wanted:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([outputs[i] for i in wanted], [grads[i] for i in wanted])
        return None, None, *(x.grad if isinstance(x, Tensor) else None for x in inputs)


# -- not reentrant: saved tensors that are computed when they are asked for


class _Frame:
    """What one checkpointed call saved: the numbers of the tensors, and the tensors once they are computed again."""

    def __init__(self, recompute: Callable[[], Any], early_stop: bool, compare: bool) -> None:
        self.recompute, self.early_stop, self.compare = recompute, early_stop, compare
        self.descriptions: list[tuple[Any, ...]] = []
        self.tensors: dict[int, Tensor] = {}

    def pack(self, tensor: Tensor) -> int:
        self.descriptions.append(_describe(tensor))
        return len(self.descriptions) - 1

    def unpack(self, number: int) -> Tensor:
        if number not in self.tensors:
            self.compute_again()
        return self.tensors.pop(number)

    def compute_again(self) -> None:
        expected, count = self.descriptions, 0
        differing: list[str] = []

        def pack(tensor: Tensor) -> None:
            nonlocal count
            if count < len(expected):
                self.tensors[count] = tensor
                if self.compare and expected[count] != _describe(tensor):
                    differing.append(
                        f"tensor at position {count}:\nsaved metadata: {expected[count]}\n"
                        f"recomputed metadata: {_describe(tensor)}"
                    )
            count += 1
            if self.early_stop and count == len(expected):
                raise _Enough

        def unpack(_: None) -> Tensor:
            raise RuntimeError(
                "checkpoint: backward inside of the checkpointed function is not supported. Pass use_reentrant=True."
            )

        try:
            with enable_grad(), graph.saved_tensors_hooks(pack, unpack):
                self.recompute()
        except _Enough:
            pass
        if count != len(expected):
            raise CheckpointError(
                "rushlight.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(expected)}\n"
                f"Number of tensors saved during recomputation: {count}. Make the function give the same each time."
            )
        if differing:
            raise CheckpointError(
                "rushlight.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                "during the forward pass.\n" + "\n".join(differing)
            )


def _describe(tensor: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.dtype, tensor.device


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Calls a function without keeping what it saves for backward, which is computed again when backward needs it.

    Args:
        function: Called now and once more in each backward pass; it must give the same both times.
        *args: Its arguments.
        use_reentrant: True runs a backward pass inside the backward pass (the old way: no `autograd.grad`, no keyword
            arguments, an input must require a gradient); False computes saved tensors when they are asked for.
        context_fn: Gives a context for the first call and one for those in backward.
        determinism_check: ``"default"`` compares shapes, dtypes and devices of what is computed again; ``"none"``
            compares nothing.
        early_stop: Whether computing again ends as soon as the last saved tensor is there.
        preserve_rng_state: Whether random numbers come out as in the first call.
        **kwargs: Keyword arguments of `function`.

    Returns:
        What `function` returns.

    Raises:
        CheckpointError: The function did something else when it was called again.

    Example:
        >>> from rushlight.utils.checkpoint import checkpoint
        >>> x = rushlight.ones(2, requires_grad=True)
        >>> checkpoint(lambda x: (x.exp() * x).sum(), x, use_reentrant=False).backward()
        >>> x.grad
        tensor([5.4366, 5.4366])
    """
    if use_reentrant is None:
        warnings.warn(
            "rushlight.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False "
            "is recommended; without it, it is True.",
            stacklevel=2,
        )
        use_reentrant = True
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'] but got {determinism_check}")
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn:
            raise ValueError("Passing `context_fn` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    first, again = context_fn()
    if not is_grad_enabled():
        with first:
            return function(*args, **kwargs)
    casts = _Casts((*args, *kwargs.values()))
    random = _RandomState((*args, *kwargs.values())) if preserve_rng_state else None

    def recompute() -> None:
        with casts.again(), random.again() if random else nullcontext(), again:
            function(*args, **kwargs)

    frame = _Frame(recompute, early_stop if _early_stop is None else _early_stop, determinism_check == "default")
    with graph.saved_tensors_hooks(frame.pack, frame.unpack), first:
        return function(*args, **kwargs)


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Calls functions one after the other, in segments of which all but the last are checkpointed.

    Args:
        functions: A `Sequential` or a list of modules or functions of one argument.
        segments: How many.
        input: What the first function gets.
        use_reentrant: See `checkpoint`.
        preserve_rng_state: See `checkpoint`.

    Returns:
        What the last function returns.
    """
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(steps) // segments

    def run(part: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
        def segment(x: Any) -> Any:
            for step in part:
                x = step(x)
            return x

        return segment

    for start in range(0, size * (segments - 1), size or 1):
        input = checkpoint(
            run(steps[start : start + size]), input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state
        )
    return run(steps[size * (segments - 1) :])(input)
