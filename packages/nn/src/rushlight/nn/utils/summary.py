"""A table of a model's layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import rushlight as rl
from rushlight.nn.modules.module import Module

__all__ = ["ModelSummary", "Row", "summary"]


@dataclass
class Row:
    """A line of the table: one module.

    Attributes:
        name: Path of the module, empty for the model itself.
        kind: Its class.
        depth: How deep it is nested.
        outputs: Shapes of its outputs, one for each call; empty where it was not called.
        parameters: Elements of the parameters that are its own, not of its parts or of a line above.
    """

    name: str
    kind: str
    depth: int
    outputs: list[str] = field(default_factory=list)
    parameters: int = 0


@dataclass
class ModelSummary:
    """What `summary` found out; `print` shows the table.

    Attributes:
        rows: A line for each module.
        parameters: Elements of all parameters, shared ones once.
        trainable: Of those that require gradients.
        nbytes: Memory of parameters and buffers.
    """

    rows: list[Row]
    parameters: int
    trainable: int
    nbytes: int

    def __str__(self) -> str:
        lines = [("Layer", "Output", "Parameters")]
        for row in self.rows:
            label = "  " * row.depth + (f"{row.name.rpartition('.')[2]}: {row.kind}" if row.name else row.kind)
            calls = f" ({len(row.outputs)} calls)" if len(row.outputs) > 1 else ""
            lines.append((label, (row.outputs[-1] if row.outputs else "") + calls, f"{row.parameters:,}"))
        first, second, third = (max(len(line[i]) for line in lines) for i in range(3))
        table = [f"{a:<{first}}  {b:<{second}}  {c:>{third}}".rstrip() for a, b, c in lines]
        rule = "-" * (first + second + third + 4)
        total = f"{self.parameters:,} parameters, {self.trainable:,} of them trainable, {_megabytes(self.nbytes)}"
        return "\n".join([table[0], rule, *table[1:], rule, total])


def summary(model: Module, *inputs: Any, depth: int | None = None, **kwargs: Any) -> ModelSummary:
    """Lists the layers of a model with their parameters, and with the shapes that they give for an input.

    Args:
        model: The model.
        *inputs: What it is called with, once, without gradients and in evaluation mode; left out, it is not called.
        depth: How deep modules are listed; all of them where left out.
        **kwargs: Further arguments of that call.

    Returns:
        The table, which `print` shows.

    Example:
        >>> import rushlight as torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        >>> print(torch.nn.utils.summary(model, torch.zeros(1, 4)))
        Layer        Output  Parameters
        -------------------------------
        Sequential   (1, 2)           0
          0: Linear  (1, 8)          40
          1: ReLU    (1, 8)           0
          2: Linear  (1, 2)          18
        -------------------------------
        58 parameters, 58 of them trainable, 0.0002 MB
    """
    rows: dict[Module, Row] = {}
    seen: set[int] = set()
    for name, module in model.named_modules():
        own = [p for p in module.parameters(recurse=False) if id(p) not in seen]
        seen.update(map(id, own))
        nested = name.count(".") + 1 if name else 0
        rows[module] = Row(name, type(module).__name__, nested, parameters=sum(p.numel() for p in own))
    if inputs or kwargs:
        _call(model, rows, inputs, kwargs)
    parameters = list(model.parameters())
    tensors = [*parameters, *model.buffers()]
    return ModelSummary(
        rows=[row for row in rows.values() if depth is None or row.depth <= depth],
        parameters=sum(p.numel() for p in parameters),
        trainable=sum(p.numel() for p in parameters if p.requires_grad),
        nbytes=sum(t.numel() * t.element_size() for t in tensors),
    )


def _call(model: Module, rows: dict[Module, Row], inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    def note(module: Module, _: Any, output: Any) -> None:
        rows[module].outputs.append(", ".join(str(tuple(tensor.shape)) for tensor in tensors_in(output)))

    hooks = [module.register_forward_hook(note) for module in rows]
    training = {module: module.training for module in rows}
    try:
        model.eval()
        with rl.no_grad():
            model(*inputs, **kwargs)
    finally:
        for module, mode in training.items():
            module.training = mode
        for hook in hooks:
            hook.remove()


def tensors_in(value: Any) -> Iterator[rl.Tensor]:
    """The tensors among nested lists, tuples and dicts."""
    if isinstance(value, rl.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)


def _megabytes(nbytes: int) -> str:
    return f"{nbytes / 1e6:.2f} MB" if nbytes >= 1e5 else f"{nbytes / 1e6:.1g} MB"
