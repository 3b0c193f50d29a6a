"""Random tensors. The same seed gives the numbers that PyTorch's CPU generator gives, on every device."""

from __future__ import annotations

from typing import Any

from .._op import COMPOSITE, FACTORY, FUNCTION, Op
from ._factory import _LIKE, _OPTIONS

_GENERATOR = "Generator? generator=None"
_WITH_GENERATOR = _OPTIONS.replace("*, ", f"*, {_GENERATOR}, ", 1)
_LIKE_WITH_GENERATOR = _LIKE.replace("*, ", f"*, {_GENERATOR}, ", 1)


def _factory(schema: str, doc: str) -> Op:
    return Op(f"{schema} -> Tensor", family=FACTORY, method=False, differentiable=False, doc=doc)


def _fill(schema: str, doc: str) -> Op:
    return Op(f"{schema} -> Tensor(a!)", function=False, doc=doc).grad(self="zeros_of(self)")


rand = _factory(
    f"rand(int[] size, {_WITH_GENERATOR})",
    """Numbers drawn uniformly from [0, 1).

    Args:
        size: Sizes, as ints or one sequence.
        generator: Stream to draw from; by default the one that `manual_seed` seeds.

    Returns:
        Floating tensor of `size`.

    Example:
        >>> _ = rushlight.manual_seed(0)
        >>> rushlight.rand(2)
        tensor([0.4963, 0.7682])
    """,
)
randn = _factory(
    f"randn(int[] size, {_WITH_GENERATOR})",
    """Numbers drawn from the normal distribution with mean 0 and variance 1.

    Args:
        size: Sizes, as ints or one sequence.
        generator: Stream to draw from; by default the one that `manual_seed` seeds.

    Returns:
        Floating or complex tensor of `size`; the two parts of a complex number have variance 1/2 each.
    """,
)
randint = _factory(
    f"randint(int high, int[] size, {_WITH_GENERATOR})",
    """Integers drawn uniformly from [low, high), int64 by default.

    Args:
        low: Smallest integer; 0 where left out.
        high: One above the largest integer.
        size: Sizes.
        generator: Stream to draw from; by default the one that `manual_seed` seeds.

    Raises:
        RuntimeError: `low` is not below `high`, or the dtype does not hold them.
    """,
)
randint_low = _factory(f"randint.low(int low, int high, int[] size, {_WITH_GENERATOR})", randint.doc or "")
randperm = _factory(
    f"randperm(int n, {_WITH_GENERATOR})", "The integers from 0 to n - 1 in random order, int64 by default."
)
rand_like = _factory(
    f"rand_like(Tensor self, {_LIKE_WITH_GENERATOR})", "`rand` with the shape, dtype and device of the input."
)
randn_like = _factory(
    f"randn_like(Tensor self, {_LIKE_WITH_GENERATOR})", "`randn` with the shape, dtype and device of the input."
)
randint_like = _factory(
    f"randint_like(Tensor self, int high, {_LIKE_WITH_GENERATOR})",
    "`randint` with the shape, dtype and device of the input.",
)
randint_like_low = _factory(
    f"randint_like.low_dtype(Tensor self, int low, int high, {_LIKE_WITH_GENERATOR})", randint_like.doc or ""
)

uniform_ = _fill(
    f"uniform_(Tensor(a!) self, float from=0, float to=1, *, {_GENERATOR})",
    "Fills with numbers drawn uniformly from [from, to) and returns the tensor.",
)
normal_ = _fill(
    f"normal_(Tensor(a!) self, float mean=0, float std=1, *, {_GENERATOR})",
    "Fills with numbers drawn from a normal distribution and returns the tensor.",
)
random_ = _fill(
    f"random_(Tensor(a!) self, *, {_GENERATOR})",
    """Fills with integers and returns the tensor.

    Args:
        from: Smallest integer; 0 where left out.
        to: One above the largest; by default all that the dtype holds exactly.
        generator: Stream to draw from.
    """,
)
random_to = _fill(f"random_.to(Tensor(a!) self, int to, *, {_GENERATOR})", random_.doc or "")
random_from = _fill(f"random_.from(Tensor(a!) self, int from, int? to, *, {_GENERATOR})", random_.doc or "")
bernoulli_ = _fill(
    f"bernoulli_.float(Tensor(a!) self, float p=0.5, *, {_GENERATOR})",
    "Fills with ones, each with probability `p`, and zeros; returns the tensor.",
)
bernoulli_tensor = _fill(f"bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, {_GENERATOR})", bernoulli_.doc or "")
exponential_ = _fill(
    f"exponential_(Tensor(a!) self, float lambd=1, *, {_GENERATOR})",
    "Fills with numbers drawn from the exponential distribution of rate `lambd` and returns the tensor.",
)
cauchy_ = _fill(
    f"cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, {_GENERATOR})",
    "Fills with numbers drawn from the Cauchy distribution and returns the tensor.",
)
log_normal_ = _fill(
    f"log_normal_(Tensor(a!) self, float mean=1, float std=2, *, {_GENERATOR})",
    "Fills with the exponentials of normal numbers and returns the tensor.",
)
geometric_ = _fill(
    f"geometric_(Tensor(a!) self, float p, *, {_GENERATOR})",
    "Fills with the number of trials up to the first success, each of probability `p`; returns the tensor.",
)

bernoulli = Op(
    f"bernoulli(Tensor self, *, {_GENERATOR}) -> Tensor",
    family=FUNCTION,
    doc="Ones, each with the probability that the input holds at its place, and zeros; the dtype is the input's.",
).grad(self="zeros_of(self)")
bernoulli_p = Op(
    f"bernoulli.p(Tensor self, float p, *, {_GENERATOR}) -> Tensor", family=COMPOSITE, out=False, doc=bernoulli.doc
).composite(lambda self, p, *, generator: _filled_like(self, "bernoulli_", p, generator=generator))
poisson = Op(
    f"poisson(Tensor self, {_GENERATOR}) -> Tensor",
    method=False,
    out=False,
    doc="Numbers drawn from the Poisson distributions whose rates the input holds.",
).grad(self="zeros_of(self)")
normal = Op(
    f"normal.Tensor_float(Tensor mean, float std=1, *, {_GENERATOR}) -> Tensor",
    family=COMPOSITE,
    method=False,
    doc="""Numbers drawn from normal distributions.

    Args:
        mean: Mean, or a tensor of means.
        std: Standard deviation, or a tensor of them that broadcasts with the means.
        size: Sizes, where both are numbers.
        generator: Stream to draw from.

    Raises:
        RuntimeError: A standard deviation is negative.
    """,
).composite(lambda mean, std, *, generator: _normal(mean, std, generator))
normal_float_tensor = Op(
    f"normal.float_Tensor(float mean, Tensor std, *, {_GENERATOR}) -> Tensor",
    family=COMPOSITE,
    method=False,
    doc=normal.doc,
).composite(lambda mean, std, *, generator: _normal(mean, std, generator))
normal_tensors = Op(
    f"normal.Tensor_Tensor(Tensor mean, Tensor std, *, {_GENERATOR}) -> Tensor",
    family=COMPOSITE,
    method=False,
    doc=normal.doc,
).composite(lambda mean, std, *, generator: _normal(mean, std, generator))
normal_floats = Op(
    f"normal.float_float(float mean, float std, int[] size, {_WITH_GENERATOR}) -> Tensor",
    family=COMPOSITE,
    method=False,
    doc=normal.doc,
).composite(
    lambda mean, std, size, *, generator, dtype, layout, device, pin_memory: _sized_normal(
        mean, std, size, generator, dtype, device
    )
)
multinomial = Op(
    f"multinomial(Tensor self, int num_samples, bool replacement=False, *, {_GENERATOR}) -> Tensor",
    family=COMPOSITE,
    differentiable=False,
    doc="""Indices drawn with the probabilities that the rows of the input are proportional to.

    Args:
        input: Weights, (n) or (rows, n); finite, not negative, not all 0.
        num_samples: Draws from each row.
        replacement: Whether an index may be drawn again.
        generator: Stream to draw from.

    Returns:
        int64 tensor, (num_samples) or (rows, num_samples).
    """,
).composite(
    lambda self, num_samples, replacement, *, generator: _multinomial(self, num_samples, replacement, generator)
)
_with_replacement = Op(
    f"_multinomial_with_replacement(Tensor self, int num_samples, *, {_GENERATOR}) -> Tensor",
    function=False,
    method=False,
    out=False,
    differentiable=False,
    doc="`multinomial` with replacement, of weights that are known to be valid.",
)


def _filled_like(like: Any, fill: str, *args: Any, generator: Any) -> Any:
    import rushlight

    return getattr(rushlight.empty_like(like), fill)(*args, generator=generator)


def _normal(mean: Any, std: Any, generator: Any) -> Any:
    import rushlight

    if not isinstance(std, rushlight.Tensor):
        return rushlight.empty_like(mean).normal_(0, std, generator=generator) + mean
    if std.is_complex():
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if std.numel() and not (std >= 0).all():
        raise RuntimeError("normal expects all elements of std >= 0.0")
    like = mean + std
    return rushlight.empty(like.shape, dtype=like.dtype, device=like.device).normal_(generator=generator) * std + mean


def _sized_normal(mean: float, std: float, size: Any, generator: Any, dtype: Any, device: Any) -> Any:
    import rushlight

    return rushlight.empty(size, dtype=dtype, device=device).normal_(mean, std, generator=generator)


def _multinomial(self: Any, samples: int, replacement: bool, generator: Any) -> Any:
    import rushlight

    if self.ndim not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim, got shape {tuple(self.shape)} (multinomial)")
    if not self.is_floating_point():
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {_C_NAMES.get(str(self.dtype), self.dtype)}"
        )
    if samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and samples > self.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if self.numel():
        if not ((self >= 0) & (self < float("inf"))).all():
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
        if (self.sum(-1) == 0).any():
            raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if replacement and samples > 1:
        return _with_replacement.operator(self, samples, generator=generator)
    # The largest of p / e with e exponential is index i with probability p[i] / sum(p).
    race = self / _filled_like(self, "exponential_", generator=generator)
    return race.argmax(-1, keepdim=True) if samples == 1 else rushlight.topk(race, samples).indices


_C_NAMES = {
    "torch.int64": "Long",
    "torch.int32": "Int",
    "torch.int16": "Short",
    "torch.int8": "Char",
    "torch.uint8": "Byte",
    "torch.bool": "Bool",
}
