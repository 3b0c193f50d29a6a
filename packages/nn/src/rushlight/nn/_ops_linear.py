"""The product with a matrix of weights."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample


def linear_composite(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if weight.dim() == 2 and input.dim() > 2:
        flat = linear_2d.operator(input.reshape(-1, input.size(-1)), weight, bias)
        return flat.reshape((*input.shape[:-1], weight.size(0)))
    if weight.dim() == 2 and input.dim() == 2:
        return linear_2d.operator(input, weight, bias)
    result = rl.matmul(input, weight.t() if weight.dim() == 2 else weight)
    return result if bias is None else result + bias


linear = (
    Op(
        "nn::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
        family=COMPOSITE,
        exact=True,
        method=False,
        doc="``input @ weight.T + bias``: (*, in) with weight (out, in) and bias (out,) to (*, out).",
    )
    .composite(linear_composite)
    .samples(
        lambda make, dtype: (
            Sample((make(3, 4), make(5, 4), make(5))),
            Sample((make(2, 3, 4), make(5, 4))),
            Sample((make(4), make(5, 4), make(5))),
        )
    )
)


def linear_2d_composite(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return rl.mm(input, weight.t()) if bias is None else rl.addmm(bias, input, weight.t())


linear_2d = (
    Op(
        "nn::linear_2d(Tensor input, Tensor weight, Tensor? bias) -> Tensor",
        method=False,
        out=False,
        doc="`linear` of a matrix: its gradients have the memory order of what they are for.",
    )
    .composite(linear_2d_composite)
    .grad(input="mm(grad, conj(weight))", weight="mm(t(grad), conj(input))", bias="sum_to(grad, bias)")
    .samples(lambda make, dtype: (Sample((make(3, 4), make(5, 4), make(5))), Sample((make(3, 4), make(5, 4), None))))
)
