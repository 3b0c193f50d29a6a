"""The product with a matrix of weights."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight._op import COMPOSITE, Op, Sample


def linear_composite(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    result = rl.matmul(input, weight.t() if weight.dim() == 2 else weight)
    return result if bias is None else result + bias


linear = (
    Op(
        "nn::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
        family=COMPOSITE,
        method=False,
        out=False,
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
