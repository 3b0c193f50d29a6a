"""Products of matrices, tile by tile through local memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.plugin.source import Helpers, c_type, expression

from ._array import Array

TILE, STEP, EACH = 32, 16, 4
"""Rows and columns of a group's tile, how much of the inner dimension is in local memory, and rows and columns of one
work item: it keeps EACH * EACH sums in registers, so that every element read from local memory serves EACH times."""

_SOURCE = """{helpers}
#define TILE {tile}
#define STEP {step}
#define EACH {each}
#define LANES (TILE / EACH)
__kernel void run(__global const {stored} *a, __global const {stored} *b, __global {stored} *out,
                  const ulong m, const ulong n, const ulong k, const ulong a_at, const ulong b_at,
                  const ulong a_row, const ulong a_column, const ulong b_row, const ulong b_column,
                  const ulong a_batch, const ulong b_batch) {{
  __local {value} rows[STEP][TILE], columns[STEP][TILE];
  const uint x = get_local_id(0), y = get_local_id(1), lane = y * LANES + x;
  const ulong left = get_group_id(0) * TILE, top = get_group_id(1) * TILE, batch = get_group_id(2);
  a += a_at + batch * a_batch;
  b += b_at + batch * b_batch;
  {value} sums[EACH][EACH];
  for (uint i = 0; i < EACH; ++i)
    for (uint j = 0; j < EACH; ++j) sums[i][j] = 0;
  for (ulong start = 0; start < k; start += STEP) {{
    for (uint e = lane; e < STEP * TILE; e += LANES * LANES) {{
      const ulong inner = start + e % STEP, row = top + e / STEP, column = left + e / STEP;
      rows[e % STEP][e / STEP] = inner < k && row < m ? a[row * a_row + inner * a_column] : ({value})0;
      columns[e % STEP][e / STEP] = inner < k && column < n ? b[inner * b_row + column * b_column] : ({value})0;
    }}
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint s = 0; s < STEP; ++s)
      for (uint i = 0; i < EACH; ++i)
        for (uint j = 0; j < EACH; ++j) {{
          const {value} p = rows[s][y + i * LANES], q = columns[s][x + j * LANES];
          sums[i][j] = {total};
        }}
    barrier(CLK_LOCAL_MEM_FENCE);
  }}
  for (uint i = 0; i < EACH; ++i)
    for (uint j = 0; j < EACH; ++j) {{
      const ulong row = top + y + i * LANES, column = left + x + j * LANES;
      if (row < m && column < n) out[(batch * m + row) * n + column] = sums[i][j];
    }}
}}
"""


def matmul(a: Any, b: Any) -> Array:
    """NumPy's `matmul`: vectors, matrices and batches of them that broadcast."""
    dtype = np.result_type(a.dtype, b.dtype)
    a, b = (each if each.dtype == dtype else each.astype(dtype) for each in (a, b))
    left, right = (a[None, :] if a.ndim == 1 else a.compute()), (b[:, None] if b.ndim == 1 else b.compute())
    if left.shape[-1] != right.shape[-2]:
        raise ValueError(f"matmul: inner dimensions differ, got shapes {a.shape} and {b.shape}")
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    m, n = left.shape[-2], right.shape[-1]
    result = Array.empty((*batch, m, n), dtype, a.device)
    if result.size:
        left, right = (_one_batch(each.broadcast_to((*batch, *each.shape[-2:]))) for each in (left, right))
        _run(left, right, result)
    shape = (*batch, *([m] if a.ndim > 1 else []), *([n] if b.ndim > 1 else []))
    return result.reshape(shape)


def _one_batch(x: Array) -> Array:
    """The array as (batch, row, column); a copy only where the batch has no single stride."""
    if x.ndim == 3:
        return x
    count = int(np.prod(x.shape[:-2], dtype=int))
    sizes, strides = x.shape[:-2], x.strides[:-2]
    if all(s == 0 or n == 1 for n, s in zip(sizes, strides, strict=True)):
        return x.window((count, *x.shape[-2:]), (0, *x.strides[-2:]))
    if all(strides[d] == strides[d + 1] * sizes[d + 1] for d in range(len(sizes) - 1)):
        return x.window((count, *x.shape[-2:]), (strides[-1], *x.strides[-2:]))
    return x.reshape(count, *x.shape[-2:])


def _run(a: Array, b: Array, out: Array) -> None:
    kind, helpers = c_type(out.dtype), Helpers()
    product = helpers.resolve(expression("multiply", out.dtype).format("p", "q"), out.dtype)
    total = expression("add", out.dtype).format("sums[i][j]", product)
    source = _SOURCE.format(
        helpers=helpers.text, stored=kind.stored, value=kind.value, total=total, tile=TILE, step=STEP, each=EACH
    )
    batch, m, k = a.shape
    n = b.shape[-1]
    numbers = (m, n, k, a.offset, b.offset, *a.strides[1:], *b.strides[1:], a.strides[0], b.strides[0])
    lanes = TILE // EACH
    size = (-(-n // TILE) * lanes, -(-m // TILE) * lanes, batch)
    buffers = [a.memory.buffer, b.memory.buffer, out.memory.buffer]
    a.device.run(source, [*buffers, *map(np.uint64, numbers)], size, (lanes, lanes, 1))
