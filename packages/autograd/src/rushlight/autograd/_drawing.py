"""Pictures of the graph that backward walks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import rushlight
from rushlight import Tensor

from . import _C

_FRAME = re.compile(r'\s*File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*)')


class _Box(NamedTuple):
    """What is drawn for a node, a leaf or an output."""

    title: str
    lines: tuple[str, ...]
    kind: str  # "step", "leaf" or "output"
    where: str  # the whole path of the source line


class Drawing:
    """A picture of a graph, which notebooks show.

    Attributes:
        boxes: One for each step of backward, leaf and output.
        arrows: (index of a box, index of the one that uses it, label).
    """

    def __init__(self, boxes: Sequence[_Box], arrows: Sequence[tuple[int, int, str]]) -> None:
        self.boxes, self.arrows = tuple(boxes), tuple(arrows)

    def dot(self) -> str:
        """The graph in the language of Graphviz."""
        colour = {"step": "#ffffff", "leaf": "#dbeafe", "output": "#dcfce7"}
        text = ["digraph {", '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10];']
        for i, box in enumerate(self.boxes):
            label = "\\n".join(_dot_text(line) for line in (box.title, *box.lines))
            text.append(f'  n{i} [label="{label}", fillcolor="{colour[box.kind]}"];')
        for source, target, label in self.arrows:
            text.append(f"  n{source} -> n{target}" + (f' [label="{_dot_text(label)}"]' if label else "") + ";")
        return "\n".join([*text, "}"]) + "\n"

    def svg(self) -> str:
        """The graph as a picture that needs nothing else."""
        return _Layout(self).svg()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture, as the ending of the name says.

        Args:
            path: Ends in `.svg` or `.dot`.

        Raises:
            ValueError: It ends otherwise.
        """
        target = Path(path)
        if target.suffix not in (".dot", ".svg"):
            raise ValueError(f"save: the name ends in .dot or .svg, got path={os.fspath(path)!r}. Use one of these.")
        target.write_text(self.svg() if target.suffix == ".svg" else self.dot(), encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg()


def draw(
    tensors: Tensor | Sequence[Tensor], names: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] = ()
) -> Drawing:
    """Draws the graph behind tensors: leaves at the top, then the operators, with shapes and dtypes of their results.

    Operators that were recorded in anomaly mode (`rushlight.autograd.detect_anomaly`) show the line that called them.

    Args:
        tensors: Where the graph ends; each requires a gradient.
        names: Names of tensors, as `module.named_parameters()`; leaves among them show their name.

    Returns:
        The drawing, which `svg()` and `dot()` give as text and `save` writes.

    Raises:
        RuntimeError: A tensor requires no gradient.

    Example:
        >>> x = rushlight.ones(3, requires_grad=True)
        >>> drawing = rushlight.autograd.graph.draw((x * 2).sum(), {"x": x})
        >>> [box.title for box in drawing.boxes]
        ['output', 'SumBackward0', 'MulBackward0', 'x']
    """
    outputs = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
    known = {id(t): name for name, t in (names.items() if isinstance(names, Mapping) else names)}
    boxes: list[_Box] = []
    arrows: list[tuple[int, int, str]] = []
    index: dict[Any, int] = {}
    waiting: list[Any] = []

    def visit(node: Any) -> int:
        if node not in index:
            index[node] = len(boxes)
            boxes.append(_node_box(node, known))
            waiting.append(node)
        return index[node]

    for i, t in enumerate(outputs):
        node, output_nr = _C.gradient_edge(t)
        if node is None:
            raise RuntimeError(
                f"draw: a tensor does not require grad and has no graph, got tensors[{i}] of shape {tuple(t.shape)}. "
                "Give one that was computed from a tensor with requires_grad=True."
            )
        boxes.append(_Box(known.get(id(t), f"output {i}" if len(outputs) > 1 else "output"), _made(t), "output", ""))
        end = len(boxes) - 1
        arrows.append((visit(node), end, _label(node, output_nr)))
        while waiting:
            user = waiting.pop()
            for producer, nr in user.next_functions:
                if producer is not None:
                    arrows.append((visit(producer), index[user], _label(producer, nr)))
    return Drawing(boxes, arrows)


def _node_box(node: Any, names: Mapping[int, str]) -> _Box:
    leaf = getattr(node, "variable", None)
    if isinstance(leaf, Tensor):
        return _Box(names.get(id(leaf), "leaf"), _made(leaf), "leaf", "")
    lines = [_text(shape, dtype) for shape, dtype in node._made()]
    where = ""
    for frame in map(_FRAME.match, reversed(node._trace() or ())):
        if frame and not frame["file"].startswith(tuple(rushlight.__path__)):
            where = f"{frame['file']}:{frame['line']}, in {frame['function']}"
            lines.append(f"{Path(frame['file']).name}:{frame['line']}, in {frame['function']}")
            break
    return _Box(node.name(), tuple(lines), "step", where)


def _made(t: Tensor) -> tuple[str, ...]:
    return (_text(t.shape, t.dtype),)


def _text(shape: Iterable[int], dtype: Any) -> str:
    return f"{str(dtype).rpartition('.')[2]} {tuple(shape)}"


def _label(producer: Any, nr: int) -> str:
    return str(nr) if len(producer._made()) > 1 else ""


def _dot_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


class _Layout:
    """Boxes in layers: each below all that it uses, in the order that crosses fewest arrows, near its neighbours.

    The method is that of Sugiyama, Tagawa and Toda (1981), with the mean place of the neighbours as an item's aim.
    """

    LINE, TITLE, PADDING, BETWEEN, LAYER = 14, 16, 8, 24, 44
    LETTER = 6.4  # width of a letter at 11 pixels, rather too wide

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.width = [self.box_width(box) for box in drawing.boxes]
        self.layer = self.layers()
        self.before: list[list[int]] = [[] for _ in drawing.boxes]
        self.after: list[list[int]] = [[] for _ in drawing.boxes]
        self.paths = [self.path(source, target) for source, target, _ in drawing.arrows]
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer, default=0) + 1)]
        for item, layer in enumerate(self.layer):
            self.rows[layer].append(item)
        self.x = [0.0] * len(self.layer)
        self.place()

    def box_width(self, box: _Box) -> float:
        return self.LETTER * max(1.1 * len(box.title), *map(len, box.lines)) + 2 * self.PADDING

    def layers(self) -> list[int]:
        boxes, arrows = self.drawing.boxes, self.drawing.arrows
        users: list[list[int]] = [[] for _ in boxes]
        missing = [0] * len(boxes)
        for source, target, _ in arrows:
            users[source].append(target)
            missing[target] += 1
        layer = [0] * len(boxes)
        ready = [i for i, n in enumerate(missing) if not n]
        while ready:
            source = ready.pop()
            for target in users[source]:
                layer[target] = max(layer[target], layer[source] + 1)
                missing[target] -= 1
                if not missing[target]:
                    ready.append(target)
        for i, box in enumerate(boxes):
            if box.kind == "leaf":  # where it is first used
                layer[i] = min(layer[u] for u in users[i]) - 1
        return layer

    def path(self, source: int, target: int) -> list[int]:
        """The items that an arrow leads through: a place in each layer between its ends."""
        path = [source]
        for layer in range(self.layer[source] + 1, self.layer[target]):
            path.append(len(self.layer))
            self.layer.append(layer)
            self.width.append(0)
            self.before.append([])
            self.after.append([])
        path.append(target)
        for a, b in pairwise(path):
            self.after[a].append(b)
            self.before[b].append(a)
        return path

    def place(self) -> None:
        position = {item: float(i) for row in self.rows for i, item in enumerate(row)}
        down, up = (self.rows, self.before), (self.rows[::-1], self.after)
        for rows, neighbours in (down, up) * 4:
            for row in rows:
                aims = {item: _mean([position[n] for n in neighbours[item]], position[item]) for item in row}
                row.sort(key=aims.__getitem__)
                position.update((item, float(i)) for i, item in enumerate(row))
        for row in self.rows:
            self.align(row, [0.0] * len(row))
        for rows, neighbours in (down, up) * 6 + (down,):
            for row in rows:
                self.align(row, [_mean([self.x[n] for n in neighbours[item]], self.x[item]) for item in row])
        left = min((self.x[i] - self.width[i] / 2 for i in range(len(self.x))), default=0.0)
        self.x = [x - left + self.BETWEEN for x in self.x]

    def align(self, row: list[int], aims: list[float]) -> None:
        """Puts a row near its aims, without overlaps: the mean of pushing to the right and pushing to the left."""
        gaps = [(self.width[a] + self.width[b]) / 2 + self.BETWEEN for a, b in pairwise(row)]
        right, left = list(aims), list(aims)
        for i, gap in enumerate(gaps):
            right[i + 1] = max(right[i + 1], right[i] + gap)
        for i in range(len(gaps) - 1, -1, -1):
            left[i] = min(left[i], left[i + 1] - gaps[i])
        for item, a, b in zip(row, right, left, strict=True):
            self.x[item] = (a + b) / 2

    def height(self, item: int) -> float:
        if item >= len(self.drawing.boxes):
            return 0
        return self.TITLE + self.LINE * len(self.drawing.boxes[item].lines) + self.PADDING

    def svg(self) -> str:
        tops, y = [], float(self.BETWEEN)
        for row in self.rows:
            tops.append(y)
            y += max(map(self.height, row), default=0) + self.LAYER
        starts, ends = self.ports(0, 1), self.ports(-1, -2)
        shapes = [self.arrow(tops, i, starts[i], ends[i]) for i in range(len(self.paths))]
        shapes += [self.box(i, tops[self.layer[i]]) for i in range(len(self.drawing.boxes))]
        right = max((x + w / 2 for x, w in zip(self.x, self.width, strict=True)), default=0.0) + self.BETWEEN
        bottom = y - self.LAYER + self.BETWEEN
        return _SVG.format(width=f"{right:.0f}", height=f"{bottom:.0f}", shapes="\n".join(shapes))

    def ports(self, end: int, beside: int) -> list[float]:
        """Where each arrow meets the box at one of its ends, from left to right as what lies beside them."""
        of_box: dict[int, list[int]] = {}
        for i, path in enumerate(self.paths):
            of_box.setdefault(path[end], []).append(i)
        places = [0.0] * len(self.paths)
        for box, arrows in of_box.items():
            arrows.sort(key=lambda i: self.x[self.paths[i][beside]])
            step = min(16.0, self.width[box] / (len(arrows) + 1))
            for k, i in enumerate(arrows):
                places[i] = self.x[box] + (k - (len(arrows) - 1) / 2) * step
        return places

    def arrow(self, tops: list[float], number: int, start: float, end: float) -> str:
        source, *between, target = self.paths[number]
        x, y = start, tops[self.layer[source]] + self.height(source)
        curve = f"M{x:.1f},{y:.1f}"
        label = escape(self.drawing.arrows[number][2])
        text = f'<text class="nr" x="{x + 3:.1f}" y="{y + 12:.1f}">{label}</text>' if label else ""
        for item in (*between, target):
            x1, y1 = end if item == target else self.x[item], tops[self.layer[item]]
            middle = (y + y1) / 2
            curve += f" C{x:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}"
            x, y = x1, y1
            if item != target:
                y += max(map(self.height, self.rows[self.layer[item]]))
                curve += f" V{y:.1f}"
        return f'<path d="{curve}" marker-end="url(#tip)"/>{text}'

    def box(self, item: int, top: float) -> str:
        box, x, width = self.drawing.boxes[item], self.x[item], self.width[item]
        text = [f'<text class="title" x="{x:.1f}" y="{top + 15:.1f}">{escape(box.title)}</text>']
        for i, line in enumerate(box.lines):
            text.append(f'<text x="{x:.1f}" y="{top + 15 + self.LINE * (i + 1):.1f}">{escape(line)}</text>')
        return (
            f'<g class="{box.kind}"><title>{escape(box.where or box.title)}</title>'
            f'<rect x="{x - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" height="{self.height(item):.1f}" rx="5"/>'
            f"{''.join(text)}</g>"
        )


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


_SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">
<style>
text {{ font: 11px Helvetica, Arial, sans-serif; text-anchor: middle; fill: #374151; }}
.title {{ font-weight: bold; fill: #111827; }}
.nr {{ text-anchor: start; font-size: 9px; fill: #6b7280; }}
path {{ fill: none; stroke: #6b7280; }}
rect {{ stroke: #9ca3af; }}
.step rect {{ fill: #f9fafb; }} .leaf rect {{ fill: #dbeafe; }} .output rect {{ fill: #dcfce7; }}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<polygon points="0,0 8,4 0,8" fill="#6b7280"/></marker></defs>
<rect width="{width}" height="{height}" style="fill:#ffffff;stroke:none"/>
{shapes}
</svg>
"""
