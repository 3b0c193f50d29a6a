"""Array kernels of what sparse tensors are made of, for devices without native ones.

Sums are taken in the order of the elements, so they are the same in every run, also where threads add at random.
"""

from __future__ import annotations

from typing import Any


def coo_keys(xp: Any, indices: Any, size: list[int]) -> Any:
    keys = xp.zeros(indices.shape[1:], dtype=indices.dtype)
    for row, n in enumerate(size):
        keys = keys * n + indices[row]
    return keys


def coo_indices(xp: Any, keys: Any, size: list[int]) -> Any:
    rows = []
    for n in reversed(size):
        rows.append(keys % max(n, 1))
        keys = keys // max(n, 1)
    return xp.stack(rows[::-1]) if rows else xp.zeros((0, *keys.shape), dtype=keys.dtype)


def coo_sum(xp: Any, keys: Any, values: Any) -> Any:
    if not keys.shape[0]:
        return keys, values
    order = xp.argsort(keys, kind="stable")
    keys = keys[order]
    fresh = xp.concatenate([xp.ones(1, dtype="bool"), keys[1:] != keys[:-1]])
    starts = xp.nonzero(fresh)[0]
    counts = xp.concatenate([starts[1:], xp.full(1, keys.shape[0], dtype=starts.dtype)]) - starts
    total = values[order[starts]]
    for nth in range(1, int(xp.max(counts))):
        more = xp.nonzero(counts > nth)[0]
        total[more] = total[more] + values[order[starts[more] + nth]]
    return keys[starts], total


def coo_merge(xp: Any, a: Any, b: Any) -> Any:
    both = xp.concatenate([a, b])
    keys, _ = coo_sum(xp, both, both)
    return keys, xp.searchsorted(keys, a), xp.searchsorted(keys, b)


def coo_find(xp: Any, keys: Any, wanted: Any) -> Any:
    if not keys.shape[0]:
        return xp.full(wanted.shape, -1, dtype="int64")
    place = xp.minimum(xp.searchsorted(keys, wanted), keys.shape[0] - 1)
    return xp.where(keys[place] == wanted, place, -1)


def csr_rows(xp: Any, crow: Any, nnz: int) -> Any:
    return xp.searchsorted(crow, xp.arange(nnz, dtype=crow.dtype), side="right") - 1


def csr_crow(xp: Any, rows: Any, n: int) -> Any:
    return xp.searchsorted(rows, xp.arange(n + 1, dtype=rows.dtype))


def coo_matmul(xp: Any, indices: Any, values: Any, mat2: Any, rows: int) -> Any:
    result = xp.zeros((rows, mat2.shape[1]), dtype=values.dtype)
    keys, sums = coo_sum(xp, indices[0], values[:, None] * mat2[indices[1]])
    result[keys] = sums
    return result


def csr_matmul(xp: Any, crow: Any, col: Any, values: Any, mat2: Any) -> Any:
    rows = csr_rows(xp, crow, col.shape[0])
    return coo_matmul(xp, xp.stack([rows, col.astype(rows.dtype)]), values, mat2, crow.shape[0] - 1)


def csr_matmul_csr(
    xp: Any, crow: Any, col: Any, values: Any, other_crow: Any, other_col: Any, other_values: Any, cols: int
) -> Any:
    lengths = other_crow[col + 1] - other_crow[col]
    ends = xp.cumsum(lengths, axis=0)
    count = int(ends[-1]) if ends.shape[0] else 0
    pair = xp.searchsorted(ends, xp.arange(count, dtype=ends.dtype), side="right")  # which element each product takes
    other = other_crow[col[pair]] + xp.arange(count, dtype=ends.dtype) - (ends[pair] - lengths[pair])
    keys = csr_rows(xp, crow, col.shape[0])[pair] * cols + other_col[other]
    keys, sums = coo_sum(xp, keys, values[pair] * other_values[other])
    return csr_crow(xp, keys // max(cols, 1), crow.shape[0] - 1), keys % max(cols, 1), sums


def sampled_products(xp: Any, rows: Any, cols: Any, mat1: Any, mat2: Any) -> Any:
    return xp.sum(mat1[rows] * mat2[cols], axis=-1)
