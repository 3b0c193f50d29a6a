"""The graph that backward walks: its nodes, and hooks on what it saves."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple
from weakref import WeakSet

from rushlight import Tensor
from rushlight.plugin import claim as _claim

from . import _C
from ._C import Node as Node
from ._drawing import Drawing as Drawing, draw as draw

__all__ = [
    "Drawing",
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "draw",
    "get_gradient_edge",
    "increment_version",
    "is_selective_pass",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class saved_tensors_hooks:
    """Context manager: what operators inside save for backward goes through two functions.

    Hooks of a single saved tensor: ``y.grad_fn._raw_saved_self.register_hooks(pack_hook, unpack_hook)``.

    Args:
        pack_hook: Called with each tensor that is saved; returns anything. It must not write to the tensor.
        unpack_hook: Called in backward with what `pack_hook` returned; gives back a tensor of the same values.

    Raises:
        RuntimeError: Hooks are disabled, see `disable_saved_tensors_hooks`.

    Example:
        >>> x = rushlight.ones(2, requires_grad=True)
        >>> with rushlight.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), rushlight.tensor):
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C.push_saved_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *error: object) -> None:
        _C.pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Context manager: what operators inside save for backward waits in the memory of the host.

    Args:
        pin_memory: Whether the copies are in page-locked memory, where the device has such.
        device_type: Unused; tensors go back to the device that they came from.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> Any:
            kept = tensor.cpu()
            return tensor.device, kept.pin_memory() if pin_memory and not tensor.is_cpu else kept

        super().__init__(pack, lambda packed: packed[1].to(packed[0], non_blocking=pin_memory))


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Context manager inside which `saved_tensors_hooks` raises.

    Args:
        error_message: What the RuntimeError says.
    """
    before = _C.disable_saved_hooks(error_message)
    try:
        yield
    finally:
        _C.disable_saved_hooks(before)


def is_selective_pass() -> bool:
    """Whether the backward pass that runs in this thread computes the gradients of given inputs only."""
    return _C.is_selective_pass()


def increment_version(tensor: Tensor | list[Tensor] | tuple[Tensor, ...]) -> None:
    """Counts as an in-place write, so that a backward that saved the tensor before is refused.

    Args:
        tensor: What was written to behind rushlight's back; or several.
    """
    if not isinstance(tensor, Tensor | list | tuple):
        raise RuntimeError(f"increment_version expect a Iterable[Tensor] as input, got {type(tensor).__name__}.")
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C.increment_version(one)


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes: what `backward` and `grad` need of it, without keeping its elements.

    Attributes:
        node: The step of backward that takes the gradient.
        output_nr: Which result of that step's operator the tensor is.
        ownership_token: Accepted for compatibility; a node keeps alive what it needs.
    """

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge that stands for a tensor in `backward` and `grad`, as one of their tensors or inputs.

    Args:
        tensor: Requires a gradient.

    Raises:
        RuntimeError: It requires none.

    Example:
        >>> x = rushlight.tensor(3.0, requires_grad=True)
        >>> y = x * x
        >>> rushlight.autograd.grad(rushlight.autograd.graph.get_gradient_edge(y), x)
        (tensor(6.),)
    """
    node, output_nr = _C.gradient_edge(tensor)
    if node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(node, output_nr)


class _Handles:
    """Takes several hooks off at once."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Takes the hooks off; twice does no harm."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[[Sequence[Tensor | None]], None] | Callable[[Tensor], None],
    *,
    mode: Literal["all", "any"] = "all",
) -> Any:
    """Calls a function once in a backward pass, when the gradients of several tensors are known.

    Args:
        tensors: Require gradients.
        fn: For ``"all"`` it takes a gradient for each tensor, None for those that the pass does not reach; for
            ``"any"`` the first gradient that is known.
        mode: ``"all"`` or ``"any"``.

    Returns:
        A handle, whose `remove()` takes the hook off.

    Raises:
        ValueError: `mode` is neither.
        RuntimeError: A tensor requires no gradient.

    Example:
        >>> a, b = (rushlight.tensor(v, requires_grad=True) for v in (2.0, 3.0))
        >>> handle = rushlight.autograd.graph.register_multi_grad_hook((a, b), print)
        >>> (a * b).backward()
        [tensor(3.), tensor(2.)]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    nodes = [get_gradient_edge(t).node for t in tensors]
    passes: dict[int, tuple[int, list[Tensor | None]]] = {}  # by number: gradients still to come, and those known

    def all_known(index: int, grad: Tensor | None) -> None:
        number = _C.running_pass()
        if number not in passes:
            passes[number] = sum(_C.pass_reaches(n) for n in nodes), [None] * len(tensors)
        missing, grads = passes[number]
        grads[index] = grad
        passes[number] = missing - 1, grads
        if missing == 1:
            fn(passes.pop(number)[1])  # type: ignore[arg-type]

    seen: deque[int] = deque(maxlen=64)  # passes nest, but not that deep

    def first_known(grad: Tensor) -> None:
        number = _C.running_pass()
        if number not in seen:
            seen.append(number)
            fn(grad)  # type: ignore[arg-type]

    def hook(index: int) -> Callable[[Tensor], None]:
        return first_known if mode == "any" else lambda grad: all_known(index, grad)

    return _Handles([t.register_hook(hook(i)) for i, t in enumerate(tensors)])


class _Kept:
    """A saved tensor, or a copy of it from before it was written to."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor: Tensor | None = tensor


class _MutationContext:
    """What `allow_mutation_on_saved_tensors` gives: `clear()` forgets what was saved."""

    def __init__(self) -> None:
        self.by_memory: dict[int, WeakSet[_Kept]] = {}
        self.alive: WeakSet[_Kept] = WeakSet()

    def pack(self, tensor: Tensor) -> _Kept:
        kept = _Kept(tensor)
        self.alive.add(kept)
        self.by_memory.setdefault(tensor.untyped_storage().data_ptr(), WeakSet()).add(kept)
        return kept

    def unpack(self, kept: _Kept) -> Tensor:
        if kept.tensor is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context "
                "in which the graph was originally recorded."
            )
        return kept.tensor

    def before_write(self, target: Tensor) -> None:
        for kept in self.by_memory.pop(target.untyped_storage().data_ptr(), ()):
            kept.tensor = self.unpack(kept).clone()

    def clear(self) -> None:
        """Drops the saved tensors: backward through what was recorded in the context is an error from here on."""
        for kept in self.alive:
            kept.tensor = None
        self.by_memory.clear()


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_MutationContext]:
    """Context manager: a tensor that was saved for backward is copied when it is written to, and backward goes on.

    Backward must run inside too.

    Raises:
        RuntimeError: Such a context is active in this thread already.

    Example:
        >>> x = rushlight.ones(2, requires_grad=True)
        >>> with rushlight.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x.clone()
        ...     out = (y ** 2).sum()
        ...     y = y.sin_()
        ...     out.backward()
        >>> x.grad
        tensor([2., 2.])
    """
    context = _MutationContext()
    before = _C.set_before_write(context.before_write)
    if before is not None:
        _C.set_before_write(before)
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    try:
        with saved_tensors_hooks(context.pack, context.unpack):
            yield context
    finally:
        _C.set_before_write(None)
        context.clear()


_claim(globals())
