"""The graph of a model: the operators that a call of it runs, in the scopes of the modules that run them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import Module
from rushlight.nn.utils.summary import tensors_in
from rushlight.overrides import TorchFunctionMode
from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef


def graph(model: Module, args: tuple[Any, ...]) -> GraphDef:
    """Calls a model once, in evaluation mode and without gradients, and notes what it runs.

    Args:
        model: The model; its modes are as before afterwards.
        args: The arguments of the call.
    """
    recorder = _Recorder(model)
    for i, tensor in enumerate(tensors_in(args)):
        recorder.add(f"input/{i}", "Input", [], [tensor])
    modes = {module: module.training for module in model.modules()}
    hooks = recorder.hooks()
    try:
        model.eval()
        with rl.no_grad(), recorder:
            outputs = model(*args)
    finally:
        for hook in hooks:
            hook.remove()
        for module, mode in modes.items():
            module.training = mode
    for i, tensor in enumerate(tensors_in(outputs)):
        recorder.add(f"output/{i}", "Output", [recorder.source(tensor)], [tensor])
    return GraphDef(node=recorder.nodes, versions=VersionDef(producer=22))


class _Recorder(TorchFunctionMode):
    """Sees every call of an operator, and makes a node of it."""

    def __init__(self, model: Module) -> None:
        self.nodes: list[NodeDef] = []
        self._sources: dict[int, str] = {}  # by the id of a tensor, which node gave it
        self._alive: list[Tensor] = []  # so that no id is used twice
        self._taken: Counter[str] = Counter()
        self._scopes = [""]
        self._paths: dict[Module, str] = {}
        self._owned: dict[int, tuple[str, str]] = {}  # parameters and buffers
        for name, module in model.named_modules():
            above = self._paths[model.get_submodule(name.rpartition(".")[0])] + "/" if name else ""
            label = type(module).__name__ + (f"[{name.rpartition('.')[2]}]" if name else "")
            self._paths[module] = above + label
            for kind, members in ("Parameter", module.named_parameters), ("Buffer", module.named_buffers):
                for member, tensor in members(recurse=False):
                    self._owned.setdefault(id(tensor), (f"{self._paths[module]}/{member}", kind))

    def hooks(self) -> list[Any]:
        """Hooks on the modules that keep track of which of them runs."""

        def enter(module: Module, _: Any) -> None:
            self._scopes.append(self._paths[module] + "/")

        def leave(*_: Any) -> None:
            self._scopes.pop()

        return [
            hook
            for module in self._paths
            for hook in (
                module.register_forward_pre_hook(enter),
                module.register_forward_hook(leave, always_call=True),
            )
        ]

    def add(self, name: str, op: str, inputs: list[str], outputs: list[Tensor], arguments: str = "") -> str:
        """Adds a node, and the outputs as what it gives; returns its name, which gets a number where it is taken."""
        self._taken[name] += 1
        if self._taken[name] > 1:
            name = f"{name}_{self._taken[name] - 1}"
        shapes = [TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in t.shape]) for t in outputs]
        attributes = {"_output_shapes": AttrValue(list=AttrValue.ListValue(shape=shapes))}
        if arguments:
            attributes["arguments"] = AttrValue(s=arguments.encode())
        self.nodes.append(NodeDef(name=name, op=op, input=inputs, attr=attributes))
        for i, tensor in enumerate(outputs):
            self._sources[id(tensor)] = f"{name}:{i}" if i else name
            self._alive.append(tensor)
        return name

    def source(self, tensor: Tensor) -> str:
        """What gave a tensor: a node, or a parameter, a buffer or a constant, which become nodes here."""
        if id(tensor) not in self._sources:
            name, kind = self._owned.get(id(tensor), (f"{self._scopes[-1]}constant", "Constant"))
            self.add(name, kind, [], [tensor])
        return self._sources[id(tensor)]

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        inputs = [self.source(tensor) for tensor in tensors_in((args, kwargs))]
        result = func(*args, **kwargs)
        outputs = list(tensors_in(result))
        if outputs:
            plain = [repr(x) for x in args if not list(tensors_in(x))]
            plain += [f"{name}={x!r}" for name, x in kwargs.items() if not list(tensors_in(x))]
            self.add(self._scopes[-1] + func.__name__, func.__name__, inputs, outputs, ", ".join(plain))
        return result
