"""Orders: sorting, searching in sorted lines, and the positions of what is set."""

from __future__ import annotations

import numpy as np

from rushlight.plugin.source import GROUP, Helpers, Node, c_type, fold_of, scan, scatter

from ._array import BOOL, INT64, Array, arange

# One step of K. E. Batcher's bitonic sort (1968), on the order of each line: elements `apart` from each other are
# exchanged. Equal elements go by their index, so the sort is stable; what is beyond the line is larger than all.
_STEP = """{helpers}
int is_less(__global const {stored} *line, long a, long b, long n) {{
  if (a >= n || b >= n) return a < b;
  const {value} x = {load_a}, y = {load_b};
  return {less} || (!({more}) && a < b);
}}
__kernel void run(__global long *order, __global const {stored} *x, const ulong work, const ulong width,
                  const ulong n, const ulong run_length, const ulong apart) {{
  const ulong id = get_global_id(0);
  if (id >= work) return;
  const ulong line = id / width, i = id % width, other = i ^ apart;
  if (other < i) return;
  __global long *places = order + line * width;
  const int up = (i & run_length) == 0;
  const long a = places[i], b = places[other];
  if (is_less(x + line * n, b, a, n) == up) {{ places[i] = b; places[other] = a; }}
}}
"""
_LESS = {"f": ("(x < y || (x == x && y != y))", "(x > y || (x != x && y == y))"), "": ("(x < y)", "(x > y)")}


def argsort(x: Array) -> Array:
    """The stable order of each line along the last dimension, int64; NaN comes last."""
    if x.dtype.kind == "c":
        raise NotImplementedError(f'opencl: "argsort" not implemented for {x.dtype}. Sort its absolute value.')
    x = x.contiguous()
    if x.offset:
        x = x.copy()
    n = x.shape[-1]
    lines = x.size // max(n, 1)
    width = 1 << max(n - 1, 0).bit_length()
    order = arange(width, x.device).broadcast_to((lines, width)).copy()
    kind, helpers = c_type(x.dtype), Helpers()
    less, more = _LESS["f" if x.dtype.kind in "fV" else ""]
    source = _STEP.format(
        stored=kind.stored, value=kind.value, less=less, more=more, helpers=helpers.text,
        load_a=kind.load.format("line", "a"), load_b=kind.load.format("line", "b"),
    )  # fmt: skip
    run_length = 2
    while run_length <= width and x.size:
        apart = run_length // 2
        while apart:
            numbers = map(np.uint64, (lines * width, width, n, run_length, apart))
            x.device.run(source, [order.memory.buffer, x.memory.buffer, *numbers], (lines * width,), (GROUP,))
            apart //= 2
        run_length *= 2
    return order[:, :n].reshape(x.shape)


_SEARCH = """{helpers}
__kernel void run(__global long *found, __global const {stored} *edges, __global const {stored} *values,
                  const ulong work, const ulong n) {{
  const ulong id = get_global_id(0);
  if (id >= work) return;
  const {value} y = {load_value};
  ulong low = 0, high = n;
  while (low < high) {{
    const ulong middle = (low + high) / 2;
    const {value} x = {load_edge};
    if ({goes_on}) low = middle + 1; else high = middle;
  }}
  found[id] = low;
}}
"""


def searchsorted(edges: Array, values: Array, right: bool) -> Array:
    """For each value how many elements of a sorted vector are less, with `right` not greater, int64."""
    dtype = np.result_type(edges.dtype, values.dtype)
    if dtype.kind == "c":
        raise NotImplementedError(f'opencl: "searchsorted" not implemented for {dtype}. Search its absolute value.')
    edges, values = (each.astype(dtype).compute() for each in (edges, values))
    result = Array.empty(values.shape, INT64, values.device)
    kind = c_type(dtype)
    less, more = _LESS["f" if dtype.kind in "fV" else ""]
    source = _SEARCH.format(
        stored=kind.stored, value=kind.value, helpers="", goes_on=f"!{more}" if right else less,
        load_value=kind.load.format("values", "id"), load_edge=kind.load.format("edges", "middle"),
    )  # fmt: skip
    if values.size:
        buffers = [array.memory.buffer for array in (result, edges, values)]
        values.device.run(source, [*buffers, np.uint64(values.size), np.uint64(edges.size)], (values.size,), (GROUP,))
    return result


def positions(x: Array) -> Array:
    """Where in row-major order the elements are that are not zero, int64."""
    flat = x.astype(BOOL).reshape(-1)
    if not flat.size:
        return Array.empty((0,), INT64, x.device)
    rank = Array.empty(flat.shape, INT64, x.device)
    scan(rank, flat, 0, fold_of("add", INT64))
    count = int(rank[-1])
    found = Array.empty((count + 1,), INT64, x.device)
    # What is not set goes to a place behind the others.
    place = Array.put_off(
        flat.shape, INT64, Node("({0} ? {1} - 1 : {2})", (flat, rank, count), (BOOL, INT64, INT64), INT64)
    )
    scatter(found, place, arange(flat.size, x.device))
    return found[:count]
