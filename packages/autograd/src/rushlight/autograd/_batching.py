"""A vectorised map over operators: one backward pass for a batch of gradients.

A batched tensor stands for all entries of a batch at once. It has the shape of one entry, and its payload keeps the
tensor of all of them, with the batch as dimension 0. Operators meet it through the layout's `call` and run once on the
whole batch, by the rule of their family or of their name; without one they run entry by entry.
"""

from __future__ import annotations

import functools
import itertools
import operator as operators
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.plugin import Op, layout_tensor, new_layout

from . import _C

batched = new_layout("batched")

Rule = Callable[..., Any]


class Batch:
    """The payload: the tensor of all entries, and the number of the map that they belong to."""

    layout = batched

    def __init__(self, value: Tensor, level: int) -> None:
        self.value, self.level = value, level

    def call(self, record: Op, inplace: bool, *args: Any, **kwargs: Any) -> Any:
        """One call of an operator with a batched tensor among its arguments."""
        call = _Call(record, inplace, args, kwargs)
        rule = _RULES.get(record.name) or _RULES.get(record.base) or _FAMILIES.get(record.family.name, _shifted)
        if rule is _decompose and record.composite_kernel is None:
            rule = _shifted  # what it does natively may read memory
        return rule(call)


_levels = itertools.count(1)


def map_batch(fn: Callable[..., Iterable[Tensor | None]], *batches: Tensor | None) -> tuple[Tensor | None, ...]:
    """Calls `fn` once with the entries of batches.

    Args:
        fn: Takes a tensor for each batch, returns tensors or None.
        *batches: Tensors (n, *shape) with one n; None stays None.

    Returns:
        The results (n, *shape) for all entries.
    """
    level = next(_levels)
    n = next(len(b) for b in batches if b is not None)
    results = fn(*(None if b is None else _wrap(b, level) for b in batches))
    return tuple(None if r is None else _all_entries(r, n, level) for r in results)


def _wrap(value: Tensor, level: int) -> Tensor:
    return layout_tensor(Batch(value, level), value.shape[1:], value.dtype, value.device)


def _payload(value: Any, level: int) -> Batch | None:
    """What keeps the entries of a tensor that is batched in this map."""
    payload = getattr(value, "_payload", None)
    return payload if isinstance(payload, Batch) and payload.level == level else None


def _all_entries(value: Tensor, n: int, level: int) -> Tensor:
    payload = _payload(value, level)
    return value.expand(n, *value.shape) if payload is None else payload.value


@functools.cache
def _parameters(op: str) -> tuple[str, ...]:
    return tuple(_C.signature(op)[0])


class _Call:
    """The call of an operator, and its arguments by name."""

    def __init__(self, record: Op, inplace: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.record, self.inplace = record, inplace
        self.names = _parameters(record.name)
        self.args = dict(zip(self.names, args, strict=False), **kwargs)
        self.positional = len(args)
        payloads = [p for t in self.tensors() if isinstance(p := t._payload, Batch)]
        self.level = max(p.level for p in payloads)  # of nested maps the innermost
        self.n = next(len(p.value) for p in payloads if p.level == self.level)
        if inplace and self.batch(args[0]) is None:
            raise RuntimeError(
                f"vmap: {record.base.rstrip('_')}_(self, *extra_args) is not possible because there exists a Tensor in "
                "extra_args that has more elements than `self`, which is not batched. Use the operator that returns a "
                "new tensor."
            )

    def tensors(self, but: Sequence[str] = ()) -> Iterator[Tensor]:
        for value in (value for name, value in self.args.items() if name not in but):
            yield from (t for t in (value if isinstance(value, list) else (value,)) if isinstance(t, Tensor))

    @property
    def along(self) -> set[str]:
        """The arguments that name dimensions."""
        return {name for name in _DIMS.intersection(self.args) if not isinstance(self.args[name], Tensor)}

    @property
    def rank(self) -> int:
        """Of one entry of the first argument."""
        return next(self.tensors()).ndim

    def batch(self, value: Any) -> Batch | None:
        return _payload(value, self.level)

    def map_tensors(self, fn: Callable[[Tensor], Any]) -> dict[str, Any]:
        """The arguments, the tensors among them by way of `fn`."""

        def one(value: Any) -> Any:
            if isinstance(value, Tensor):
                return fn(value)
            return [one(v) for v in value] if isinstance(value, list) else value

        return {name: one(value) for name, value in self.args.items()}

    def entries(self, value: Tensor) -> Tensor:
        """All entries (n, *shape) of an argument, equal ones where it is not batched."""
        return _all_entries(value, self.n, self.level)

    def run(self, arguments: dict[str, Any]) -> Any:
        """The operator itself, on other arguments."""
        values = list(arguments.values())
        operator = self.record.operator
        if isinstance(values[0], int | float | complex):  # a number, which Python's operators take on the left
            return getattr(operators, _ON_THE_LEFT.get(self.record.base, self.record.base))(values[0], values[1])
        if self.inplace and not self.record.base.endswith("_"):
            operator = getattr(Tensor, f"{self.record.base}_")
        return operator(*values[: self.positional], **dict(list(arguments.items())[self.positional :]))

    def finish(self, result: Any) -> Any:
        """Batched tensors of what the operator gave for all entries; after a write its target."""
        if self.inplace:
            return self.args[self.names[0]]
        if isinstance(result, Tensor):
            return _wrap(result, self.level)
        if isinstance(result, tuple | list):
            return tuple(self.finish(r) for r in result)
        return result


_ON_THE_LEFT = {"div": "truediv"}


def _each(call: _Call) -> Any:
    """Entry by entry: the rule of operators that have none."""

    def entry(i: int) -> Callable[[Tensor], Any]:
        def take(t: Tensor) -> Tensor:
            batch = call.batch(t)
            one = t if batch is None else batch.value[i]
            return one.clone() if batch is not None and call.record.reads_strides and not call.inplace else one

        return take

    results = [call.run(call.map_tensors(entry(i))) for i in range(call.n)]
    if call.inplace or not results:
        return call.finish(None) if call.inplace else _no_entries(call)
    several = isinstance(results[0], tuple | list)
    columns = list(zip(*(results if several else ((r,) for r in results)), strict=True))
    if all(isinstance(r, Tensor) or r is None for column in columns for r in column):
        stacked = tuple(None if c[0] is None else _wrap(rushlight.stack(c), call.level) for c in columns)
        return stacked if several else stacked[0]
    raise NotImplementedError(
        f"{call.record.name}: it gives something other than tensors, which may differ from entry to entry of a batch. "
        "Leave is_grads_batched (or vectorize) off."
    )


def entry_by_entry(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` of batched tensors, by calls with one entry of each."""

    def each(*args: Any) -> tuple[Tensor | None, ...]:
        payloads = [p for a in args if isinstance(p := getattr(a, "_payload", None), Batch)]
        if not payloads:
            return fn(*args)
        level = max(p.level for p in payloads)
        n = next(len(p.value) for p in payloads if p.level == level)
        rows = []
        for i in range(n):
            row = fn(*((b.value[i] if (b := _payload(a, level)) else a) for a in args))
            rows.append(row if isinstance(row, tuple) else (row,))
        return tuple(
            None if column[0] is None else _wrap(rushlight.stack(column), level) for column in zip(*rows, strict=True)
        )

    return each


def _no_entries(call: _Call) -> Any:
    """The result for a batch without entries, which takes a call to know its shape."""

    def stand_in(t: Tensor) -> Tensor:
        return t if call.batch(t) is None else rushlight.zeros(t.shape, dtype=t.dtype, device=t.device)

    result = call.run(call.map_tensors(stand_in))
    several = isinstance(result, tuple | list)
    empty = tuple(_wrap(r.unsqueeze(0)[:0], call.level) for r in (result if several else (result,)))
    return empty if several else empty[0]


def _folded(call: _Call) -> Any:
    """Operators whose items do not affect each other: all entries are one long list of items."""
    arguments = dict(call.args)
    for name in call.record.items:
        value = arguments[name]
        if isinstance(value, Tensor):
            count = value.shape[0]
            arguments[name] = call.entries(value).reshape(call.n * count, *value.shape[1:])
        else:  # a size
            arguments[name] = (call.n * value[0], *value[1:])

    def unfold(result: Any) -> Any:
        if isinstance(result, tuple | list):
            return tuple(unfold(r) for r in result)
        return None if result is None else result.reshape(call.n, count, *result.shape[1:])

    return call.finish(unfold(call.run(arguments)))


def _composed(call: _Call) -> Any:
    """By the definition over other operators, which take batches in turn."""
    kernel = call.record.composite_kernel
    if kernel is None or call.inplace:
        return _each(call)
    values = list(call.args.values())
    return kernel(*values[: call.positional], **dict(list(call.args.items())[call.positional :]))


def _decompose(call: _Call) -> Any:
    return NotImplemented


def _aligned(call: _Call, value: Tensor, rank: int) -> Tensor:
    """All entries with the dimensions that broadcasting to `rank` adds, behind that of the batch."""
    batch = call.batch(value)
    if batch is None:
        return value
    missing = rank - value.ndim
    return batch.value.reshape(call.n, *(1,) * missing, *value.shape) if missing > 0 else batch.value


def _pointwise(call: _Call) -> Any:
    tensors = list(call.tensors())
    rank = max(t.ndim for t in tensors)
    promoted = _promoted(call, tensors)

    def align(t: Tensor) -> Tensor:
        value = _aligned(call, t, rank)
        return value.to(promoted) if promoted is not None and value is not t else value

    return call.finish(call.run(call.map_tensors(align)))


def _promoted(call: _Call, tensors: Sequence[Tensor]) -> Any:
    """What batched arguments have to be cast to, since those without dimensions weigh more with one for the batch."""
    if call.inplace or all(t.ndim or call.batch(t) is None for t in tensors) or len({t.dtype for t in tensors}) == 1:
        return None
    if any(t.dtype == rushlight.bool for t in tensors):
        return None  # conditions and masks stay what they are
    promoted, *others = (rushlight.empty((0,) * t.ndim, dtype=t.dtype) for t in tensors)
    for other in others:
        shape = max(promoted.shape, other.shape, key=len)
        promoted = rushlight.empty(shape, dtype=rushlight.result_type(promoted, other))
    return promoted.dtype


_DIMS = frozenset(("dim", "dims", "dim0", "dim1", "dim2", "dimension", "source", "destination"))
_SIZES = frozenset(("input_sizes", "size"))


def _shift(dim: Any) -> Any:
    if isinstance(dim, tuple | list):
        return tuple(_shift(d) for d in dim)
    return dim + 1 if dim >= 0 else dim


def _shifted(call: _Call) -> Any:
    """Operators along dimensions: these are one further behind. Those of linear algebra take batches as they are."""
    if call.record.items and all(call.batch(t) is None for t in call.tensors(but=call.record.items)):
        return _folded(call)
    ranks = {t.ndim for t in call.tensors()}
    takes_batches = call.record.namespace == "linalg" and min(ranks) >= 2
    if len(ranks) > 1 or 0 in ranks or not (takes_batches or call.along):
        return _composed(call)
    return _along(call)


def _along(call: _Call) -> Any:
    arguments = call.map_tensors(call.entries)
    for name in call.names:
        value = arguments[name]
        if name in call.along:
            if value is None or value == ():
                return _each(call)
            arguments[name] = _shift(value)
        elif name in _SIZES and isinstance(value, tuple):
            arguments[name] = (call.n, *value)
    return call.finish(call.run(arguments))


def _reduction(call: _Call) -> Any:
    """As `_shifted`; without dimensions it is over all but that of the batch."""
    if call.args.get("dim", 0) in (None, ()) and "int[1]" in call.record.schema:
        call.args["dim"] = tuple(range(call.rank))
    return _shifted(call)


def _elementwise(call: _Call) -> Any:
    """Operators that do the same to every element of one tensor."""
    return call.finish(call.run(call.map_tensors(call.entries)))


def _expand(call: _Call) -> Any:
    self, size = call.args["self"], call.args["size"]
    value = _aligned(call, self, len(size))
    return call.finish(value.expand(call.n, *size))


def _reshape(call: _Call) -> Any:
    self, shape = call.entries(call.args["self"]), tuple(call.args[call.names[1]])
    if -1 in shape and not self.numel():
        return _each(call)
    return call.finish(self.reshape(call.n, *shape))


def _flatten(call: _Call) -> Any:
    value, rank = call.entries(call.args["self"]), max(call.rank, 1)
    if not call.rank:
        return call.finish(value.reshape(call.n, 1))
    start, end = call.args["start_dim"] % rank + 1, call.args["end_dim"] % rank + 1
    return call.finish(value.flatten(start, end))


def _no_number(call: _Call) -> Any:
    raise RuntimeError(
        "vmap: It looks like you're calling .item() on a Tensor, or asking for its truth value: it has another one in "
        f"every entry of a batch, got a batch of {call.n} tensors of shape {tuple(call.args['self'].shape)}. Use "
        "operators on tensors, as where, or leave is_grads_batched (or vectorize) off."
    )


def _permute(call: _Call) -> Any:
    rank = call.rank
    return call.finish(call.entries(call.args["self"]).permute(0, *(d % rank + 1 for d in call.args["dims"])))


def _squeeze(call: _Call) -> Any:
    self = call.args["self"]
    return call.finish(call.entries(self).reshape(call.n, *(n for n in self.shape if n != 1)))


def _unsqueeze(call: _Call) -> Any:
    return call.finish(call.entries(call.args["self"]).unsqueeze(_shift(call.args["dim"])))


def _view_as_complex(call: _Call) -> Any:
    return call.finish(rushlight.view_as_complex(call.entries(call.args["self"]).contiguous()))


def _transpose(call: _Call) -> Any:
    value = call.entries(call.args["self"])
    return call.finish(value.transpose(1, 2) if call.rank == 2 else value)


def _as_strided(call: _Call) -> Any:
    value = call.entries(call.args["self"]).contiguous()
    offset = call.args["storage_offset"] or 0
    return call.finish(
        value.as_strided(
            (call.n, *call.args["size"]), (value.stride(0), *call.args["stride"]), value.storage_offset() + offset
        )
    )


def _new_zeros(call: _Call) -> Any:
    value = call.entries(call.args["self"])
    return call.finish(value.new_zeros((call.n, *call.args["size"]), dtype=call.args["dtype"]))


def _stack(call: _Call) -> Any:
    return call.finish(rushlight.stack([call.entries(t) for t in call.args["tensors"]], _shift(call.args["dim"])))


def _cat(call: _Call) -> Any:
    tensors = call.args["tensors"]
    if any(t.ndim != tensors[0].ndim for t in tensors):
        return _each(call)  # empty vectors of old times
    return call.finish(rushlight.cat([call.entries(t) for t in tensors], _shift(call.args["dim"])))


def _product(call: _Call) -> Any:
    """Products of matrices, vectors and batches of matrices."""
    a, b = call.tensors()
    left, right = (t if (batch := call.batch(t)) is None else batch.value for t in (a, b))
    if call.record.base in ("mm", "bmm"):
        return call.finish(left @ right)
    if call.record.base == "dot":
        return call.finish((left * right).sum(-1))
    if call.batch(a) is None:  # a matrix and vectors
        return call.finish(right @ left.t())
    return call.finish((left @ right.unsqueeze(-1)).squeeze(-1))


def _matmul(call: _Call) -> Any:
    a, b = call.tensors()
    rank = max(a.ndim, b.ndim, 2)
    left = _aligned(call, a if a.ndim > 1 else a.unsqueeze(0), rank)
    right = _aligned(call, b if b.ndim > 1 else b.unsqueeze(1), rank)
    product = left @ right
    if b.ndim == 1:
        product = product.squeeze(-1)
    return call.finish(product.squeeze(-1 if b.ndim == 1 else -2) if a.ndim == 1 else product)


def _selected(call: _Call) -> Any:
    """Operators whose index is a vector for all entries."""
    index = call.args["index"]
    if call.batch(index) is not None or not call.rank:
        return _each(call)
    arguments = call.map_tensors(lambda t: t if t is index or not t.ndim else call.entries(t))
    return call.finish(call.run(dict(arguments, dim=_shift(call.args["dim"]))))


def _adjacent(indices: Sequence[Tensor | None]) -> bool:
    given = [i for i, index in enumerate(indices) if index is not None]
    return given == list(range(given[0], given[-1] + 1)) if given else False


def _index(call: _Call) -> Any:
    indices = call.args["indices"]
    if any(call.batch(i) is not None for i in indices) or not _adjacent(indices):
        return _each(call)
    return call.finish(call.run(dict(call.args, self=call.entries(call.args["self"]), indices=[None, *indices])))


def _index_put(call: _Call) -> Any:
    self, indices, values, accumulate = (call.args[name] for name in call.names)
    if any(call.batch(i) is not None for i in indices) or not _adjacent(indices):
        return _each(call)
    given = [i for i in indices if i is not None]
    taken = sum(i.ndim if i.dtype == rushlight.bool else 1 for i in given)
    selected = 1 if any(i.dtype == rushlight.bool for i in given) else 0
    rank = max(selected, *(0 if i.dtype == rushlight.bool else i.ndim for i in given)) + self.ndim - taken
    arguments = (call.entries(self), [None, *indices], _aligned(call, values, rank), accumulate)
    return call.finish(call.run(dict(zip(call.names, arguments, strict=True))))


def _flat_index(call: _Call) -> Tensor | None:
    """Where `take` and `put` look in an entry as one line; None where that differs from entry to entry."""
    index = call.args["index"]
    if call.batch(index) is not None or call.inplace:
        return None
    index = index.reshape(-1)
    return rushlight.where(index < 0, index + call.args["self"].numel(), index)


def _take(call: _Call) -> Any:
    index = _flat_index(call)
    if index is None:
        return _each(call)
    lines = call.entries(call.args["self"]).reshape(call.n, call.args["self"].numel())
    return call.finish(lines.index_select(1, index).reshape(call.n, *call.args["index"].shape))


def _put(call: _Call) -> Any:
    index = _flat_index(call)
    if index is None:
        return _each(call)
    self, source = call.args["self"], call.entries(call.args["source"])
    lines = call.entries(self).reshape(call.n, self.numel())
    source = source.reshape(call.n, index.numel())
    result = rushlight.index_put(lines, [None, index], source, call.args.get("accumulate", False))
    return call.finish(result.reshape(call.n, *self.shape))


def _masked_select(call: _Call) -> Any:
    self, mask = call.args["self"], call.args["mask"]
    if call.batch(mask) is not None:
        return _each(call)
    shape = rushlight.broadcast_shapes(self.shape, mask.shape)
    value = _aligned(call, self, len(shape)).expand(call.n, *shape).reshape(call.n, -1)
    return call.finish(value[:, mask.expand(shape).reshape(-1)])


def _masked_scatter(call: _Call) -> Any:
    self, mask, source = call.args["self"], call.args["mask"], call.args["source"]
    if call.batch(mask) is not None or call.inplace:
        return _each(call)
    shape = rushlight.broadcast_shapes(self.shape, mask.shape)
    mask = mask.expand(shape).reshape(-1)
    value = call.entries(self).reshape(call.n, *(1,) * (len(shape) - self.ndim), *self.shape)
    lines = value.expand(call.n, *shape).reshape(call.n, mask.numel())
    taken = call.entries(source).reshape(call.n, source.numel())[:, : int(mask.sum())]
    return call.finish(rushlight.index_put(lines, [None, mask], taken).reshape(call.n, *shape))


def _as_strided_scatter(call: _Call) -> Any:
    value, args = call.entries(call.args["self"]).contiguous(), call.args
    size, stride = (call.n, *args["size"]), (value.stride(0), *args["stride"])
    offset = args.get("storage_offset") or 0
    return call.finish(rushlight.as_strided_scatter(value, call.entries(args["src"]), size, stride, offset))


def _solve(call: _Call) -> Any:
    """Solutions by a factorization: its batches broadcast with those of the right hand side."""
    factors, pivots, right = (call.args[name] for name in call.names[:3])
    rank = max(factors.ndim, right.ndim)
    ranks = {id(factors): rank, id(pivots): rank - 1, id(right): rank}
    return call.finish(call.run(call.map_tensors(lambda t: _aligned(call, t, ranks[id(t)]))))


def _roll(call: _Call) -> Any:
    self, dims = call.args["self"], call.args.get("dims", ())
    if dims:
        return _along(call)
    lines = call.entries(self).reshape(call.n, self.numel())
    return call.finish(lines.roll(call.args["shifts"], 1).reshape(call.n, *self.shape))


_FAMILIES: dict[str, Rule] = {
    "pointwise": _pointwise,
    "reduction": _reduction,
    "composite": _decompose,
}

_RULES: dict[str, Rule] = {
    **dict.fromkeys(
        (
            "clone", "_cast", "_move", "contiguous", "alias", "detach", "view_as_real", "real", "imag",
            "tril", "triu", "to.dtype", "fill_", "zero_", "zeros_like", "ones_like", "empty_like", "full_like", "isnan",
        ),
        _elementwise,
    ),
    **dict.fromkeys(("mm", "bmm", "mv", "dot"), _product),
    **dict.fromkeys(("index_select", "index_add", "index_fill", "index_copy"), _selected),
    **dict.fromkeys(("select_scatter", "diagonal_scatter", "select_backward"), _along),
    "_to_dense": _no_number,
    "as_strided": _as_strided,
    "as_strided_scatter": _as_strided_scatter,
    "cat": _cat,
    "copy_": _pointwise,
    "fill_.Tensor": _pointwise,
    "expand": _expand,
    "flatten.using_ints": _flatten,
    "index": _index,
    "linalg::ldl_solve": _solve,
    "linalg::lu_solve": _solve,
    "masked_scatter": _masked_scatter,
    "masked_select": _masked_select,
    "matmul": _matmul,
    "index_put": _index_put,
    "new_zeros": _new_zeros,
    "ormqr": _elementwise,
    "permute": _permute,
    "put": _put,
    "reshape": _reshape,
    "roll": _roll,
    "squeeze": _squeeze,
    "squeeze.dim": _shifted,
    "squeeze.dims": _shifted,
    "stack": _stack,
    "take": _take,
    "t": _transpose,
    "unsqueeze": _unsqueeze,
    "view": _reshape,
    "view.dtype": _each,
    "view_as_complex": _view_as_complex,
}  # fmt: skip
