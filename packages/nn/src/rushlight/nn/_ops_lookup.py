"""Rows of tables, and products of pairs of vectors."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample


def _sparse_rows_grad(grad: Tensor, indices: Tensor, padding_idx: int, weight_shape: tuple[int, ...]) -> Tensor:
    if padding_idx >= 0:
        kept = (indices != padding_idx).nonzero().reshape(-1)
        indices, grad = indices.index_select(0, kept), grad.index_select(0, kept)
    return rl.sparse_coo_tensor(indices.unsqueeze(0), grad, weight_shape, check_invariants=False)


sparse_rows = (
    Op(
        "_sparse_rows(Tensor weight, Tensor indices, int padding_idx) -> Tensor",
        method=False,
        function=False,
        out=False,
        doc="The rows of `weight` at `indices`, with a gradient of layout sparse_coo.",
    )
    .composite(lambda weight, indices, padding_idx: weight.index_select(0, indices))
    .grad(weight=_sparse_rows_grad, indices=None)
)


def embedding_composite(
    weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Tensor:
    if sparse and scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    if weight.dim() != 2:
        raise RuntimeError(f"'weight' must be 2-D, got {weight.dim()}-D.")
    flat = indices.reshape(-1)
    if sparse:
        rows = sparse_rows.operator(weight, flat, padding_idx)
        return rows.reshape((*indices.shape, weight.size(1)))
    rows = weight.index_select(0, flat)
    if scale_grad_by_freq:
        counts = rl.zeros(weight.size(0), dtype=weight.dtype, device=weight.device)
        counts.index_add_(0, flat, rl.ones(flat.shape, dtype=weight.dtype, device=weight.device))
        scaled = rows / counts.index_select(0, flat).unsqueeze(1)
        rows = rows.detach() + (scaled - scaled.detach())  # the values of rows with the gradient of scaled
    if padding_idx >= 0:
        rows = rl.where((flat == padding_idx).unsqueeze(1), rows.detach(), rows)
    return rows.reshape((*indices.shape, weight.size(1)))


embedding = (
    Op(
        "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False)"
        " -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="The rows of `weight` at `indices`; the row `padding_idx` gets no gradient.",
    )
    .composite(embedding_composite)
    .samples(
        lambda make, dtype: (
            Sample((make(5, 3), make.tensor([[0, 4, 4], [1, 2, 0]]))),
            Sample((make(5, 3), make.tensor([2, 4, 1]), 3, True)),
        ),
        lambda weight, indices, *rest: weight[indices],
    )
)


def bilinear_composite(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {tuple(input1.shape[:-1])} and {tuple(input2.shape[:-1])}"
        )
    out, in1, in2 = weight.shape
    for number, (input, size) in enumerate(((input1, in1), (input2, in2)), 1):
        if input.size(-1) != size:
            raise RuntimeError(
                f"bilinear(): input{number} size does not match weight size: got {input.size(-1)} but expected {size}"
            )
    left = (input1.reshape(-1, in1) @ weight.permute(1, 0, 2).reshape(in1, out * in2)).reshape(-1, out, in2)
    result = (left * input2.reshape(-1, 1, in2)).sum(-1, dtype=left.dtype).reshape((*input1.shape[:-1], out))
    return result if bias is None else result + bias


bilinear = (
    Op(
        "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="``input1 @ weight[k] @ input2 + bias[k]`` for each output k.",
    )
    .composite(bilinear_composite)
    .samples(
        lambda make, dtype: (
            Sample((make(2, 3), make(2, 4), make(5, 3, 4), make(5))),
            Sample((make(2, 6, 3), make(2, 6, 4), make(5, 3, 4))),
        )
    )
)


def cosine_similarity_composite(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    dtype = rl.promote_types(x1.dtype, x2.dtype)
    if not dtype.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {dtype}")
    x1, x2 = rl.broadcast_tensors(x1.to(dtype), x2.to(dtype))
    unit1, unit2 = (x / rl.norm(x, 2, dim, keepdim=True).clamp(min=eps) for x in (x1, x2))
    return (unit1 * unit2).sum(dim)


cosine_similarity = (
    Op(
        "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
        doc="The cosine of the angle between `x1` and `x2` along a dimension; norms count as at least `eps`.",
    )
    .composite(cosine_similarity_composite)
    .samples(lambda make, dtype: (Sample((make(3, 4), make(3, 4))), Sample((make(2, 3, 4), make(3, 4), -1))))
)
