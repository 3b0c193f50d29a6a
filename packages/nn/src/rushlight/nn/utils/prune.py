"""Pruning: weights of which some elements are held at zero by a mask."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """The base of pruning methods; a subclass writes ``compute_mask`` and sets ``PRUNING_TYPE``.

    A pruned tensor is kept as the parameter ``<name>_orig`` and the buffer ``<name>_mask``; the attribute ``<name>`` is
    their product, computed before each forward.

    Attributes:
        PRUNING_TYPE: What a further method sees of a tensor that is pruned already: ``"unstructured"``: the elements
            that are left; ``"structured"``: the slices along ``dim`` that are left; ``"global"``: all of it.
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a tensor.

        Args:
            t: How important the elements are.
            default_mask: The mask so far, of the same shape.

        Returns:
            `default_mask` with further zeros.
        """

    def apply_mask(self, module: Any) -> Tensor:
        """The masked tensor of a module."""
        orig = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(orig.dtype) * orig

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prunes a tensor of a module by a method of this class, on top of those before.

        Args:
            module: The module.
            name: Name of the parameter.
            *args: Arguments of the class.
            importance_scores: How important the elements are. Default: the parameter itself.
            **kwargs: Keyword arguments of the class.

        Returns:
            The method, or the container of all methods.
        """
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        key = _find(module, name)
        if key is not None:
            before = module._forward_pre_hooks.pop(key)
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            method = container
        orig = getattr(module, name)
        if importance_scores is None:
            importance_scores = orig
        elif importance_scores.shape != orig.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{tuple(importance_scores.shape)} and {tuple(orig.shape)}."
            )
        if key is None:
            mask = method.compute_mask(importance_scores, rl.ones_like(orig))
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", orig)
        else:
            mask = method.compute_mask(importance_scores, getattr(module, f"{name}_mask").detach().clone())
        module.register_buffer(f"{name}_mask", mask)
        method(module, None)
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A tensor with zeros where the method prunes it.

        Args:
            t: The tensor.
            default_mask: A mask that is kept. Default: ones.
            importance_scores: How important the elements are. Default: `t`.
        """
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        return t * self.compute_mask(importance_scores, rl.ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Any) -> None:
        """Makes the masked tensor the parameter."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        orig = module._parameters.pop(f"{name}_orig")
        orig.data = weight.detach()
        del module._buffers[f"{name}_mask"]
        delattr(module, name)
        module.register_parameter(name, orig)


def _find(module: Module, name: str) -> int | None:
    """The key of the pruning hook of a tensor."""
    for key, hook in module.__dict__.get("_forward_pre_hooks", {}).items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return int(key)
    return None


class PruningContainer(BasePruningMethod):
    """Several methods for one tensor, of which the last one prunes what the others left.

    Args:
        *args: The methods, or one iterable of them.
    """

    PRUNING_TYPE = "container"

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        methods = args[0] if len(args) == 1 and not isinstance(args[0], BasePruningMethod) else args
        for i, method in enumerate(methods):
            if i == 0:
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Adds a method for the same tensor."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of the last method, within the given one."""
        method: Any = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype)
        where: Any
        if method.PRUNING_TYPE == "unstructured":
            where = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()
            left = mask.sum([d for d in range(t.dim()) if d != dim]) != 0
            where = (slice(None),) * dim + (left,)
        elif method.PRUNING_TYPE == "global":
            where = ...
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = mask.clone()
        mask[where] = method.compute_mask(t[where], mask[where]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but leaves the parameter in the form of a pruned one."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask so far."""
        return default_mask


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and int(amount) < 0) or (
        not isinstance(amount, numbers.Integral) and not 0.0 <= float(amount) <= 1.0
    ):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _count(amount: Any, size: int) -> int:
    """How many of `size` are pruned: an integer, or a share of them."""
    if not isinstance(amount, numbers.Integral):
        return round(float(amount) * size)
    if int(amount) > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return int(amount)


class _Unstructured(BasePruningMethod):
    """Prunes the elements with the least scores.

    Args:
        amount: How many elements, or which share of them.
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _check_amount(amount)
        self.amount = amount

    def _scores(self, t: Tensor) -> tuple[Tensor, bool]:
        """Scores of the elements, and whether the greatest ones go."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a tensor."""
        n = _count(self.amount, t.numel())
        mask = default_mask.clone(memory_format=rl.contiguous_format)
        if n:
            scores, largest = self._scores(t)
            mask.view(-1)[scores.reshape(-1).topk(n, largest=largest).indices] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random.

    Args:
        amount: How many elements, or which share of them.
    """

    def _scores(self, t: Tensor) -> tuple[Tensor, bool]:
        return rl.rand_like(t), True


class L1Unstructured(_Unstructured):
    """Prunes the elements with the least absolute values.

    Args:
        amount: How many elements, or which share of them.
    """

    def _scores(self, t: Tensor) -> tuple[Tensor, bool]:
        return t.detach().abs(), False


class _Structured(BasePruningMethod):
    """Prunes whole slices.

    Args:
        amount: How many slices, or which share of them.
        dim: The dimension that they are numbered by.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.dim = dim

    def _kept(self, t: Tensor, dim: int, n: int) -> Tensor:
        """Which slices are kept if n go: indices, or a mask."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a tensor."""
        if t.dim() <= 1:
            raise ValueError(
                f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} "
                f"with {t.dim()} dims"
            )
        if not -t.dim() <= self.dim < t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        dim = self.dim % t.dim()
        n = _count(self.amount, t.size(dim))
        if n == 0:
            return default_mask
        mask = rl.zeros_like(t)
        mask[(slice(None),) * dim + (self._kept(t, dim, n),)] = 1
        return mask * default_mask.to(mask.dtype)


class RandomStructured(_Structured):
    """Prunes slices at random.

    Args:
        amount: How many slices, or which share of them.
        dim: The dimension that they are numbered by.
    """

    def _kept(self, t: Tensor, dim: int, n: int) -> Tensor:
        scores = rl.rand(t.size(dim))
        return scores > scores.kthvalue(n).values


class LnStructured(_Structured):
    """Prunes the slices with the least norms.

    Args:
        amount: How many slices, or which share of them.
        n: The order of the norm.
        dim: The dimension that they are numbered by.
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t: Tensor, dim: int, n: int) -> Tensor:
        norms = t.detach().norm(self.n, [d for d in range(t.dim()) if d != dim])
        return norms.topk(t.size(dim) - n).indices


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask.

    Args:
        mask: Zeros and ones, of the shape of the tensor.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The product of both masks."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"CustomFromMask: mask must have the shape of the tensor, got {tuple(self.mask.shape)} and "
                f"{tuple(default_mask.shape)}."
            )
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Brings a parameter into the form of a pruned one, with a mask of ones; see `Identity`."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prunes elements of a parameter at random.

    Args:
        module: The module.
        name: Name of the parameter.
        amount: How many elements, or which share of them.

    Returns:
        `module`.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.nn.utils import prune
        >>> layer = prune.random_unstructured(torch.nn.Linear(2, 3), "weight", amount=1)
        >>> (layer.weight_mask == 0).sum()
        tensor(1)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prunes the elements of a parameter with the least absolute values.

    Args:
        module: The module.
        name: Name of the parameter.
        amount: How many elements, or which share of them.
        importance_scores: How important the elements are. Default: the parameter itself.

    Returns:
        `module`.
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prunes slices of a parameter at random.

    Args:
        module: The module.
        name: Name of the parameter.
        amount: How many slices, or which share of them.
        dim: The dimension that they are numbered by.

    Returns:
        `module`.
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prunes the slices of a parameter with the least norms.

    Args:
        module: The module.
        name: Name of the parameter.
        amount: How many slices, or which share of them.
        n: The order of the norm.
        dim: The dimension that they are numbered by.
        importance_scores: How important the elements are. Default: the parameter itself.

    Returns:
        `module`.
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prunes a parameter by a given mask of zeros and ones."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes elements of several parameters as if they were one.

    Args:
        parameters: Pairs of a module and the name of a parameter of it.
        pruning_method: A class whose ``PRUNING_TYPE`` is ``"unstructured"``.
        importance_scores: How important the elements of a pair are. Default: the parameter itself.
        **kwargs: Arguments of the class, such as ``amount``.

    Raises:
        TypeError: `parameters` is no iterable, or the class prunes structures.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if importance_scores is not None and not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores should be of type dict")
    pairs, scores = list(parameters), importance_scores or {}
    method: Any = pruning_method(**kwargs)
    method._tensor_name = "all"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    tensors = [getattr(module, name) for module, name in pairs]
    masks: list[Tensor] = [
        getattr(module, f"{name}_mask") if hasattr(module, f"{name}_mask") else rl.ones_like(tensor)
        for (module, name), tensor in zip(pairs, tensors, strict=True)
    ]
    values = [scores.get(pair, tensor).detach() for pair, tensor in zip(pairs, tensors, strict=True)]
    mask = PruningContainer(method).compute_mask(parameters_to_vector(values), parameters_to_vector(masks))
    for (module, name), part in zip(pairs, mask.split([tensor.numel() for tensor in tensors]), strict=True):
        custom_from_mask(module, name, part.view_as(getattr(module, name)))


def remove(module: Module, name: str) -> Module:
    """Makes a pruned parameter an ordinary one, with its zeros.

    Raises:
        ValueError: It is not pruned.
    """
    key = _find(module, name)
    if key is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    module._forward_pre_hooks.pop(key).remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of a module, or of a module in it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for part in module.modules()
        for hook in part.__dict__.get("_forward_pre_hooks", {}).values()
    )
