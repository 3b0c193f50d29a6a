"""Kernels as text: an expression over arrays becomes one kernel that stores, reduces or scans it, or writes to places.

The text is the key under which the compiled kernel is kept; shapes, strides and numbers are arguments of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._scalar import BOOL, INT64, Helpers, c_type, convert, expression, scalar

if TYPE_CHECKING:
    from ._expression import Expression

GROUP = 256
"""Work items of a group."""

RUN = 256
"""Elements that one work item reduces, so that many work together and errors of rounding stay small."""

SECTOR = 8
"""Neighbouring elements that memory gives at once, at least."""

_SMALL = 2**31


class Node(NamedTuple):
    """How an array that is not computed yet follows from others, element by element.

    Attributes:
        code: Expression over `{0}`, `{1}`...; with `source` the place in its memory.
        arguments: Expressions and numbers.
        dtypes: To which they are converted.
        dtype: That names helpers in `code`.
        source: Expression whose memory is read at the computed place.
        fold: How the elements of the only argument combine over the dimensions in which this array has the size 1;
            `store_lines` computes it.
    """

    code: str
    arguments: tuple[Any, ...]
    dtypes: tuple[np.dtype, ...]
    dtype: np.dtype
    source: Expression | None = None
    fold: Fold | None = None


class Fold(NamedTuple):
    """How elements combine: expression over `{0}` so far and the next one `{1}`, and the value that changes nothing."""

    code: str
    start: Any


def fold_of(name: str, dtype: np.dtype) -> Fold:
    """How a ufunc of two arguments combines many."""
    code = expression(name, dtype)
    if name not in ("maximum", "minimum"):
        return Fold(code, {"add": 0, "multiply": 1, "logical_or": False, "logical_and": True}[name])
    sign = -1 if name == "maximum" else 1
    if dtype.kind in "fV":
        return Fold(code, sign * math.inf)
    limits = (0, 1) if dtype == BOOL else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return Fold(code, limits[sign > 0])


class Source:
    """The text of one kernel as it grows, with its arguments.

    Args:
        shape: Of the space in which the elements are counted, in row-major order.
        order: Order of the dimensions of the arrays in that space.
    """

    def __init__(self, shape: Sequence[int], order: Sequence[int] | None = None) -> None:
        self.shape = tuple(shape)
        self._order = order
        self._helpers = Helpers()
        self._parameters: list[str] = []
        self._arguments: list[Any] = []
        self._offsets: list[int] = []
        self._strides: list[Sequence[int]] = []
        self._lines: list[str] = []
        self._names: dict[int, str] = {}
        self._operands: dict[int, tuple[str, str]] = {}
        self._may_fail = False

    def parameter(self, declaration: str, argument: Any) -> str:
        """Adds a parameter, as "const float {}"; returns its name."""
        name = f"a{len(self._parameters)}"
        self._parameters.append(declaration.format(name))
        self._arguments.append(argument)
        return name

    def operand(self, array: Expression, access: str = "const ") -> tuple[str, str]:
        """Adds an array that is broadcast to the space; returns pointer and place of the current element."""
        pointer = self.pointer(array, access)
        strides = (0,) * (len(self.shape) - len(array.shape)) + tuple(
            0 if n == 1 else stride for n, stride in zip(array.shape, array.strides, strict=True)
        )
        self._strides.append([strides[d] for d in self._order] if self._order else strides)
        self._offsets.append(array.offset)
        return pointer, f"p{len(self._offsets) - 1}"

    def pointer(self, array: Expression, access: str = "const ") -> str:
        """Adds the memory of an array."""
        return self.parameter(f"GLOBAL {access}{c_type(array.dtype).stored} *{{}}", array.buffer)

    def number(self, value: Any, dtype: np.dtype) -> str:
        """Adds a number."""
        return self.parameter(f"const {c_type(dtype).value} {{}}", scalar(value, dtype))

    def evaluate(self, value: Any, dtype: np.dtype) -> str:
        """The expression for the current element of an array, or for a number, in a dtype."""
        if not hasattr(value, "node"):
            return self.number(value, dtype)
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = self._statement(value)
        return convert(name, value.dtype, dtype)

    def _statement(self, array: Expression) -> str:
        kind = c_type(array.dtype)
        if array.node is None:
            if id(array) not in self._operands:
                self._operands[id(array)] = self.operand(array)
            code = self.resolve(kind.load.format(*self._operands[id(array)]), array.dtype)
        else:
            node = array.node
            codes = [self.evaluate(each, dtype) for each, dtype in zip(node.arguments, node.dtypes, strict=True)]
            code = self.resolve(node.code.format(*codes), node.dtype)
            if "FAULT" in code:
                self._may_fail = True
                code = code.replace("FAULT", "fault")
            if node.source is not None:
                code = kind.load.format(self.pointer(node.source), code)
        name = f"t{len(self._lines)}"
        self._lines.append(f"const {kind.value} {name} = {code};")
        return name

    def resolve(self, code: str, dtype: np.dtype) -> str:
        """`code` with the names of helpers for a dtype."""
        return self._helpers.resolve(code, dtype)

    def loop(self, known: dict[int, str]) -> str:
        """Statements that compute what `evaluate` named since the last loop, for the element `i`.

        `known` has the names of what is computed before the next loop.
        """
        text = " ".join(["<place>", *self._lines])
        self._lines, self._names = [], dict(known)
        return text

    def run(self, device: Any, work: int, body: str, before: str = "") -> None:
        """Starts the kernel for `work` items.

        In `body` is `id` the item's number; <element> stands for statements that compute what `evaluate` named for the
        element `i`, <place> for those of them that find its place in memory. `before` is what the kernel needs outside
        of it.
        """
        sizes, strides = collapse(self.shape, self._strides)
        reach = [sum((n - 1) * s for n, s in zip(sizes, each, strict=True)) for each in strides]
        ends = [offset + length for offset, length in zip(self._offsets, reach, strict=True)]
        index = "u32" if max(math.prod(sizes), work, *ends, 0) < _SMALL else "u64"
        count = len(strides)
        flat = len(sizes) <= 1 and all(s in ((), (0,), (1,)) for s in strides)
        if flat:
            steps = ["" if not s or s == (0,) else " + i" for s in strides]
            place = " ".join(f"const index_t p{k} = g.offset[{k}]{step};" for k, step in enumerate(steps))
            fields, values = "", []
        else:
            rank = 4 if len(sizes) <= 4 else 64
            pad = (0,) * (rank - len(sizes))
            places = ", ".join(f"p{k} = g.offset[{k}]" for k in range(count))
            sums = " ".join(f"p{k} += c * g.stride[{k}][d];" for k in range(count))
            place = (
                f"index_t rest = i, {places}; for (u32 d = g.rank; d-- > 0;) "
                f"{{ const index_t c = rest % g.size[d]; rest /= g.size[d]; {sums} }}"
            )
            fields = f" index_t rank, size[{rank}], stride[{max(count, 1)}][{rank}];"
            values = [len(sizes), *sizes, *pad, *(v for each in strides for v in (*each, *pad))]
        fields = f"typedef struct {{ index_t work, offset[{max(count, 1)}];{fields} }} Geometry;"
        body = body.replace("<element>", " ".join(["<place>", *self._lines])).replace("<place>", place)
        parameters = [*self._parameters, "const Geometry g"] + ["GLOBAL int *fault"] * self._may_fail
        source = (
            f"{before}typedef {index} index_t;\n{fields}\n{self._helpers.text}"
            f"KERNEL run({', '.join(parameters)}) {{ const index_t id = WORK_ITEM; "
            f"if (id >= g.work) return; {body} }}"
        )
        geometry = np.array([work, *(self._offsets or [0]), *values], "u4" if index == "u32" else "u8")
        device.run(source, [*self._arguments, geometry], (work,), (GROUP,))


def collapse(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The same walk over memory in as few dimensions as it takes."""
    kept: list[int] = []
    sizes: list[int] = []
    for d, n in enumerate(shape):
        if n == 1:
            continue
        if kept and all(each[kept[-1]] == each[d] * n for each in strides):
            kept[-1] = d
            sizes[-1] *= n
        else:
            kept.append(d)
            sizes.append(n)
    return tuple(sizes), [tuple(each[d] for d in kept) for each in strides]


def store(target: Expression, value: Any) -> None:
    """Writes an expression to an array of at least its shape."""
    work = math.prod(target.shape)
    if not work:
        return
    source = Source(target.shape)
    code = source.evaluate(value, target.dtype)
    pointer, place = source.operand(target, "")
    write = source.resolve(c_type(target.dtype).store.format(pointer, place, code), target.dtype)
    source.run(target.device, work, f"const index_t i = id; <element> {write}")


# A slot in memory changes only if nobody else has changed it since it was read.
_ATOMIC = """DEVICE void change(volatile GLOBAL {type} *at, {type} v) {{
  union {{ {bits} b; {type} t; }} old, changed;
  do {{ old.t = *at; changed.t = {change}; }} while (swap_{bits}(at, old.b, changed.b) != old.b);
}}
"""
_CHANGES = {"add": "old.t + v", "multiply": "old.t * v"}


def scatter(target: Expression, place: Expression, value: Any, change: str = "") -> None:
    """Writes an expression to computed places of an array's memory, or changes what is there.

    Args:
        target: Whose memory is written.
        place: Elements from the start of the memory.
        value: Of the shape of `place` or broadcast to it.
        change: "add" or "multiply"; equal places change more than once. For dtypes of four and eight bytes.
    """
    work = math.prod(place.shape)
    if not work:
        return
    source, kind = Source(place.shape), c_type(target.dtype)
    code, at = source.evaluate(value, target.dtype), source.evaluate(place, INT64)
    if change:
        pointer, before = (
            source.pointer(target, "volatile "),
            _ATOMIC.format(type=kind.value, change=_CHANGES[change], bits=f"u{8 * target.dtype.itemsize}"),
        )
        write = f"change({pointer} + {at}, {code});"
    else:
        pointer, before = source.pointer(target, ""), ""
        write = source.resolve(kind.store.format(pointer, at, code), target.dtype)
    source.run(target.device, work, f"const index_t i = id; <element> {write}", before)


def reduce(target: Expression, value: Any, axes: Sequence[int], fold: Fold) -> None:
    """Combines an expression over some of its dimensions.

    Args:
        target: Contiguous array of the shape of the other dimensions; elements combine in its dtype.
        value: Expression, or expression.
        axes: Dimensions of it, counted from the front.
        fold: How.
    """
    kept = [d for d in range(len(value.shape)) if d not in axes]
    order = [*kept, *axes]
    outputs, length = math.prod(value.shape[d] for d in kept), math.prod(value.shape[d] for d in axes)
    if not outputs:
        return
    runs = -(-length // RUN) if length > 2 * RUN else 1
    partial = target if runs == 1 else target.empty((outputs, runs), target.dtype, target.device)
    source = Source([value.shape[d] for d in order], order)
    code = source.evaluate(value, target.dtype)
    start, out = source.number(fold.start, target.dtype), source.pointer(partial, "")
    count, size = (source.parameter("const u64 {}", np.uint64(n)) for n in (runs, length))
    kind = c_type(target.dtype)
    combined = source.resolve(fold.code.format("sum", code), target.dtype)
    source.run(
        target.device,
        outputs * runs,
        f"const index_t line = id / (index_t){count}, first = id % (index_t){count} * {RUN}, length = {size}; "
        f"const index_t end = {count} == 1 || length - first < {RUN} ? length : first + {RUN}; "
        f"{kind.value} sum = {start}; "
        f"for (index_t r = first; r < end; ++r) {{ const index_t i = line * length + r; <element> sum = {combined}; }} "
        f"{source.resolve(kind.store.format(out, f'{_offset(source, partial)} + id', 'sum'), target.dtype)}",
    )
    if partial is not target:
        reduce(target, partial, (1,), fold)


def _folds(values: Sequence[Any]) -> list[Expression]:
    """The arrays that are folds in expressions, each behind those that it needs."""
    found: dict[int, Expression] = {}

    def visit(value: Any) -> None:
        node = getattr(value, "node", None)
        if node is None or id(value) in found:
            return
        for each in node.arguments:
            visit(each)
        if node.fold is not None:
            found[id(value)] = value

    for value in values:
        visit(value)
    return list(found.values())


def store_lines(
    targets: Sequence[Expression], values: Sequence[Any], axes: Sequence[int], space: Sequence[int]
) -> None:
    """Writes expressions over folds to arrays, as those of a softmax: one kernel, which reads each line once per fold.

    Args:
        targets: What is written, of the shape of `space` or of the size 1 in `axes`.
        values: Expressions of these shapes. Their folds are over `axes`, of values of the shape of `space`.
        axes: The dimensions that make a line.
        space: All sizes.
    """
    kept = [d for d in range(len(space)) if d not in axes]
    order = [*kept, *axes]
    lines, length = math.prod(space[d] for d in kept), math.prod(space[d] for d in axes)
    if not lines or not length:
        return
    # Work items of a line; a group has GROUP / lanes lines. Where the last dimension is across the lines, neighbours
    # read neighbouring lines, so that memory is read in whole sectors.
    across = max((d for d, n in enumerate(space) if n > 1), default=0) not in axes
    side_by_side = min(SECTOR, 1 << (lines - 1).bit_length()) if across else 1
    lanes = min(GROUP // side_by_side, 1 << max(length // 4 - 1, 0).bit_length())
    per_group = GROUP // lanes
    step = per_group if across else 1
    in_group, lane = (f"own % {per_group}", f"own / {per_group}") if across else (f"own / {lanes}", f"own % {lanes}")
    source = Source([space[d] for d in order], order)
    count, size = (source.number(n, INT64) for n in (lines, length))
    names: dict[int, str] = {}
    shared: dict[str, str] = {}
    body = [f"const u32 own = LOCAL_ITEM, lane = {lane}; const index_t line = id / {GROUP} * {per_group} + {in_group};"]
    each_element = f"if (line < {count}) for (index_t r = lane; r < {size}; r += {lanes}) {{ "
    each_element += f"const index_t i = line * {size} + r;"
    for k, array in enumerate(_folds(values)):
        assert array.node is not None
        assert array.node.fold is not None
        fold, dtype, kind = array.node.fold, array.node.dtype, c_type(array.node.dtype).value
        total = f"f{k}"
        code = source.evaluate(array.node.arguments[0], dtype)
        combined = source.resolve(fold.code.format(total, code), dtype)
        start = source.number(fold.start, dtype)
        names[id(array)] = total
        body.append(f"{kind} {total} = {start}; {each_element} {source.loop(names)} {total} = {combined}; }}")
        if lanes > 1:
            memory = shared.setdefault(kind, f"shared_{kind}")
            halves = source.resolve(fold.code.format(f"{memory}[own]", f"{memory}[own + n * {step}]"), dtype)
            body.append(
                f"{memory}[own] = {total}; BARRIER; for (u32 n = {lanes // 2}; n; n >>= 1) {{ "
                f"if (lane < n) {memory}[own] = {halves}; BARRIER; }} {total} = {memory}[own - lane * {step}]; BARRIER;"
            )
    for whole in (True, False):
        written = [pair for pair in zip(targets, values, strict=True) if (pair[0].shape == tuple(space)) == whole]
        if not written:
            continue
        writes = []
        for target, value in written:
            code = source.evaluate(value, target.dtype)
            pointer, place = source.operand(target, "")
            writes.append(source.resolve(c_type(target.dtype).store.format(pointer, place, code), target.dtype))
        head = each_element if whole else f"if (line < {count} && lane == 0) {{ const index_t i = line * {size};"
        body.append(f"{head} {source.loop(names)} {' '.join(writes)} }}")
    arrays = [f"SHARED {kind} {memory}[{GROUP}];" for kind, memory in shared.items()]
    source.run(targets[0].device, -(-lines // per_group) * GROUP, " ".join([*arrays, *body]))


def _offset(source: Source, array: Expression) -> str:
    return "0" if not array.offset else source.parameter("const u64 {}", np.uint64(array.offset))


def scan(target: Expression, value: Any, axis: int, fold: Fold) -> None:
    """Writes what `fold` has combined so far, at every place along one dimension, to a contiguous target."""
    order = [*(d for d in range(len(value.shape)) if d != axis), axis]
    length = value.shape[axis]
    work = math.prod(value.shape) // max(length, 1)
    if not work or not length:
        return
    source = Source([value.shape[d] for d in order], order)
    code = source.evaluate(value, target.dtype)
    pointer, place = source.operand(target, "")
    size = source.parameter("const u64 {}", np.uint64(length))
    kind = c_type(target.dtype)
    combined = source.resolve(fold.code.format("sum", code), target.dtype)
    source.run(
        target.device,
        work,
        f"{kind.value} sum; for (index_t r = 0; r < {size}; ++r) {{ const index_t i = id * {size} + r; <element> "
        f"sum = r ? {combined} : {code}; "
        f"{source.resolve(kind.store.format(pointer, place, 'sum'), target.dtype)} }}",
    )
