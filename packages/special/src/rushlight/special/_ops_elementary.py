"""Entropies, logits and products with logarithms."""

from __future__ import annotations

from typing import Any

from rushlight.plugin import COMPOSITE, Op, Sample, pointwise

from ._records import document, number_like, samples, scipy_reference, unary

expit = unary(
    "expit",
    "The logistic function 1 / (1 + exp(-x)); the same as `rushlight.sigmoid`.",
    (-4, 4),
    "_sigmoid_backward(grad, result)",
    "rushlight.tensor([0.0, 2.0]) -> tensor([0.5000, 0.8808])",
    array=lambda xp, x: 1 / (1 + xp.exp(-x)),
    loop="sigmoid",
    method=False,
)
entr = unary(
    "entr",
    "Entropy -x log(x); 0 at 0 and minus infinity below.",
    (0.1, 3),
    "grad * where(self < 0, nan, -log(self) - 1)",
    "rushlight.tensor([-1.0, 0.0, 0.5]) -> tensor([  -inf, 0.0000, 0.3466])",
)
logit = (
    Op(
        "special::logit(Tensor self, float? eps=None) -> Tensor",
        family=pointwise("float"),
        aliases=("logit",),
        inplace=True,
        doc=document(
            "logit",
            "log(x / (1 - x)), the inverse of `expit`; NaN outside [0, 1].",
            {"input": "Real tensor of any shape.", "eps": "x is limited to [eps, 1 - eps] first, where given."},
            "rushlight.tensor([0.0, 0.5, 0.9]) -> tensor([  -inf, 0.0000, 2.1972])",
        ),
    )
    .array(lambda xp, x, eps: _logit(xp, x if eps is None else xp.clip(x, eps, 1 - eps)))
    .grad(self="_logit_backward(grad, self, eps)")
    .samples(lambda make, dtype: (Sample((make(3, 4, low=0.01, high=0.99), eps)) for eps in (None, 0.2)))
)


_logit_backward = (
    Op(
        "special::_logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
        family=pointwise("float"),
        method=False,
        out=False,
    )
    .array(lambda xp, grad, x, eps: _logit_slope(xp, grad, x, eps))
    .grad(
        grad_output="_logit_backward(grad, self, eps)",
        self="_logit_backward(grad, self, eps) * grad_output * (2 * self - 1) / (self * (1 - self))",
    )
    .samples(lambda make, dtype: [Sample((make(3, 4), make(3, 4, low=0.1, high=0.9), 0.2))])
)


def _logit(xp: Any, x: Any) -> Any:
    return xp.log(x / (1 - x))


def _logit_slope(xp: Any, grad: Any, x: Any, eps: float | None) -> Any:
    low, outside = (0.0, float("nan")) if eps is None else (eps, 0.0)
    return xp.where((x >= low) & (x <= 1 - low), grad / (x * (1 - x)), outside)


def _times_log(name: str, summary: str, other: str, grads: dict[str, str], printed: str, **options: Any) -> list[Op]:
    arguments = {"input": "Tensor or number x.", "other": "Tensor or number y; one of both is a tensor."}
    doc = document(name, summary, arguments, f"rushlight.tensor([0.0, 2.0]), {other} -> {printed}")
    loop = options.pop("loop", None)
    values = (
        Op(
            f"special::{name}.Tensor(Tensor self, Tensor other) -> Tensor",
            family=pointwise("float", loop),
            inplace=bool(options),
            doc=doc,
            **options,
        )
        .array(lambda xp, x, y: _product(xp, name, x, y))
        .grad(**grads)
        .samples(samples((0.5, 3), (0.5, 3)), scipy_reference(name))
    )
    of_number = (
        Op(f"special::{name}.self_scalar(Scalar self, Tensor other) -> Tensor", family=COMPOSITE, doc=doc, **options)
        .composite(lambda self, other: values.operator(number_like(self, other), other))
        .samples(lambda make, dtype: [Sample((2, make(4, low=0.5, high=3)))], scipy_reference(name))
    )
    return [values, of_number]


def _product(xp: Any, name: str, x: Any, y: Any) -> Any:
    log = xp.log(y) if name == "xlogy" else xp.log1p(y)
    return xp.where(y != y, y, xp.where(x == 0, 0, x * log))


OPS = [
    *(value for value in list(globals().values()) if isinstance(value, Op)),
    *_times_log(
        "xlogy",
        "x log(y), which is 0 where x is 0 unless y is NaN.",
        "0",
        {
            "self": "grad * where((self == 0) & (other <= 0), 0, log(other))",
            "other": "grad * (self / where((self == 0) & (other == 0), 1, other))",
        },
        "tensor([0., -inf])",
        aliases=("xlogy",),
        loop="xlogy",
    ),
    *_times_log(
        "xlog1py",
        "x log(1 + y), which is 0 where x is 0 unless y is NaN.",
        "1",
        {
            "self": "grad * where((self == 0) & (other <= -1), 0, log1p(other))",
            "other": "grad * (self / where((self == 0) & (other == -1), 1, other + 1))",
        },
        "tensor([0.0000, 1.3863])",
    ),
]
