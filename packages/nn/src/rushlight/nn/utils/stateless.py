"""Calls of modules with parameters and buffers that are given, not those that the module has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rushlight import Tensor
from rushlight.nn.modules.module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Tensor],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other parameters and buffers, which it has only during the call.

    Args:
        module: Unchanged, but for state that its forward keeps elsewhere.
        parameters_and_buffers: Tensors by path, as ``module.named_parameters()`` gives them; what the call assigns to
            them is written back to it.
        args: The positional arguments, or a single one that is no tuple.
        kwargs: The keyword arguments.
        tie_weights: Whether a tensor that stands in several places is replaced in all of them.
        strict: Whether the paths must be exactly those of all parameters and buffers.

    Returns:
        What the module returns.

    Raises:
        RuntimeError: With `strict`, a path is missing or unexpected.
        TypeError: A value is no tensor.
        ValueError: Different tensors are given for one that stands in several places.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.nn.utils.stateless import functional_call
        >>> layer = torch.nn.Linear(2, 2, bias=False)
        >>> functional_call(layer, {"weight": torch.eye(2)}, torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _replaced(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **({} if kwargs is None else kwargs))


@contextmanager
def _replaced(module: Module, given: Any, tie_weights: bool, strict: bool) -> Iterator[None]:
    """The module with the given tensors in place of its own."""
    tensors = _tied(module, given) if tie_weights else dict(given)
    if strict:
        _check_paths(module, tensors)
    places = {path: _place(module, path, tensor) for path, tensor in tensors.items()}
    before = {path: members.get(name, members) for path, (members, name) in places.items()}
    try:
        for path, (members, name) in places.items():
            members[name] = tensors[path]
        yield
    finally:
        for path, (members, name) in places.items():
            now, was = members[name], before[path]
            if was is members:  # there was nothing
                del members[name]
            else:
                members[name] = was
            if path in given and now is not tensors[path]:
                given[path] = now


def _place(module: Module, path: str, tensor: Any) -> tuple[dict[str, Any], str]:
    """The dict that holds what a path leads to, and its name there."""
    prefix, _, name = path.rpartition(".")
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    owner: Any = module
    for part in prefix.split(".") if prefix else ():
        if not hasattr(owner, part):
            raise AttributeError(f"{owner._get_name()} has no attribute `{part}`")
        owner = getattr(owner, part)
        if not isinstance(owner, Module):
            raise TypeError(f"submodule `{part}`: {owner} is not an instance of torch.nn.Module")
    members = next((m for m in (owner._parameters, owner._buffers) if name in m), owner.__dict__)
    return members, name


def _members(module: Module) -> dict[str, Tensor]:
    """Parameters and buffers in all places where they stand."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _tied(module: Module, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The given tensors, also in the other places of the tensors that they replace."""
    places: dict[int, list[str]] = {}
    for path, tensor in _members(module).items():
        places.setdefault(id(tensor), []).append(path)
    everywhere = dict(given)
    for paths in places.values():
        values = [given[path] for path in paths if path in given]
        if not values or len(paths) == 1:
            continue
        if any(value is not values[0] for value in values):
            named = sorted(path for path in paths if path in given)
            raise ValueError(
                f"functional_call got multiple values for keys {named}, which are tied. Consider using "
                "tie_weights=False"
            )
        everywhere.update(dict.fromkeys(paths, values[0]))
    return everywhere


def _check_paths(module: Module, tensors: Mapping[str, Tensor]) -> None:
    known = _members(module)
    wrong = [
        f"{kind} key(s): {', '.join(map(repr, sorted(paths)))}."
        for kind, paths in (("Unexpected", tensors.keys() - known.keys()), ("Missing", known.keys() - tensors.keys()))
        if paths
    ]
    if wrong:
        raise RuntimeError("\n\t".join([f"Error(s) in reparametrizing for {type(module).__name__}:", *wrong]))
