"""Random tensors. A seed gives the numbers of PyTorch's CPU generator on each device without a generator of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._op import COMPOSITE, FACTORY, FUNCTION, Op, Sample
from ._factory import _LIKE, _OPTIONS, _like, _ranged
from ._samples import Sampler

_GENERATOR = "Generator? generator=None"
_WITH_GENERATOR = _OPTIONS.replace("*, ", f"*, {_GENERATOR}, ", 1)
_LIKE_WITH_GENERATOR = _LIKE.replace("*, ", f"*, {_GENERATOR}, ", 1)


def _sized(*before: Any) -> Sampler:
    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        for size in ((), (20,), (2, 3), (2, 0)):
            yield Sample((*before, size), {"dtype": dtype, "device": make.device})

    return samples


def _factory(schema: str, samples: Sampler, doc: str) -> Op:
    return Op(
        f"{schema} -> Tensor", family=FACTORY, method=False, differentiable=False, arbitrary=True, doc=doc
    ).samples(samples)


def _fill(schema: str, doc: str, *calls: tuple[Any, ...]) -> Op:
    record = Op(f"{schema} -> Tensor(a!)", function=False, arbitrary=True, doc=doc).grad(self="zeros_of(self)")
    return record.samples(
        lambda make, dtype: (
            Sample((x, *extra)) for extra in calls or ((),) for x in (make(3, 4), make(4, 3).t(), make())
        )
    )


rand = _factory(
    f"rand(int[] size, {_WITH_GENERATOR})",
    _sized(),
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
    _sized(),
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
    _sized(10),
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
randint_low = _factory(
    f"randint.low(int low, int high, int[] size, {_WITH_GENERATOR})", _sized(2, 10), randint.doc or ""
)
randperm = _factory(
    f"randperm(int n, {_WITH_GENERATOR})",
    _ranged((0,), (1,), (10,)),
    "The integers from 0 to n - 1 in random order, int64 by default.",
)
rand_like = _factory(
    f"rand_like(Tensor self, {_LIKE_WITH_GENERATOR})", _like(), "`rand` with the shape, dtype and device of the input."
)
randn_like = _factory(
    f"randn_like(Tensor self, {_LIKE_WITH_GENERATOR})",
    _like(),
    "`randn` with the shape, dtype and device of the input.",
)
randint_like = _factory(
    f"randint_like(Tensor self, int high, {_LIKE_WITH_GENERATOR})",
    _like(2),
    "`randint` with the shape, dtype and device of the input.",
)
randint_like_low = _factory(
    f"randint_like.low_dtype(Tensor self, int low, int high, {_LIKE_WITH_GENERATOR})",
    _like(0, 2),
    randint_like.doc or "",
)

uniform_ = _fill(
    f"uniform_(Tensor(a!) self, float from=0, float to=1, *, {_GENERATOR})",
    "Fills with numbers drawn uniformly from [from, to) and returns the tensor.",
    (),
    (2, 3),
)
normal_ = _fill(
    f"normal_(Tensor(a!) self, float mean=0, float std=1, *, {_GENERATOR})",
    "Fills with numbers drawn from a normal distribution and returns the tensor.",
    (),
    (2, 3),
)
random_ = _fill(
    f"random_(Tensor(a!) self, *, {_GENERATOR})",
    """Fills with integers and returns the tensor.

    Args:
        from: Smallest integer; 0 where left out.
        to: One above the largest; by default all that the dtype holds exactly.
        generator: Stream to draw from.
    """,
    (),
)
random_to = _fill(f"random_.to(Tensor(a!) self, int to, *, {_GENERATOR})", random_.doc or "", (2,))
random_from = _fill(
    f"random_.from(Tensor(a!) self, int from, int? to, *, {_GENERATOR})", random_.doc or "", (0, 2), (0, None)
)
bernoulli_tensor = Op(
    f"bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, {_GENERATOR}) -> Tensor(a!)",
    function=False,
    arbitrary=True,
    doc="Fills with ones, each with probability `p` (number or tensor), and zeros; returns the tensor.",
)
bernoulli_tensor.grad(self="zeros_of(self)", p=None).samples(
    lambda make, dtype: (Sample((make(3, 4), make(*p, low=0, high=1))) for p in ((3, 4), (4,), ()))
)
bernoulli_ = _fill(
    f"bernoulli_.float(Tensor(a!) self, float p=0.5, *, {_GENERATOR})",
    bernoulli_tensor.doc or "",
    (),
    (0.3,),
)
exponential_ = _fill(
    f"exponential_(Tensor(a!) self, float lambd=1, *, {_GENERATOR})",
    "Fills with numbers drawn from the exponential distribution of rate `lambd` and returns the tensor.",
    (),
    (2,),
)
cauchy_ = _fill(
    f"cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, {_GENERATOR})",
    "Fills with numbers drawn from the Cauchy distribution and returns the tensor.",
    (),
)
log_normal_ = _fill(
    f"log_normal_(Tensor(a!) self, float mean=1, float std=2, *, {_GENERATOR})",
    "Fills with the exponentials of normal numbers and returns the tensor.",
    (),
)
geometric_ = _fill(
    f"geometric_(Tensor(a!) self, float p, *, {_GENERATOR})",
    "Fills with the number of trials up to the first success, each of probability `p`; returns the tensor.",
    (0.3,),
)


def _drawn_like(fill: Op, sample: tuple[Any, ...] = ()) -> Op:
    """The form of a filling op that leaves its argument alone: `uniform(x)` is `empty_like(x).uniform_()`."""
    arguments = fill.schema[: fill.schema.rindex(" -> ")].partition("Tensor(a!) self")[2]
    return (
        Op(
            f"{fill.base.rstrip('_')}(Tensor self{arguments} -> Tensor",
            family=COMPOSITE,
            method=False,
            differentiable=False,
            arbitrary=True,
            doc=f"A new tensor like the input that `{fill.base}` has filled.",
        )
        .composite(lambda self, *args, generator: _filled_like(self, fill.base, *args, generator=generator))
        .samples(lambda make, dtype: (Sample((make(3, 4), *sample)),))
    )


uniform = _drawn_like(uniform_)
exponential = _drawn_like(exponential_)
cauchy = _drawn_like(cauchy_)
log_normal = _drawn_like(log_normal_)
geometric = _drawn_like(geometric_, (0.3,))
bernoulli = Op(
    f"bernoulli(Tensor self, *, {_GENERATOR}) -> Tensor",
    any_out=True,
    family=FUNCTION,
    differentiable=False,
    arbitrary=True,
    doc="Ones, each with the probability that the input holds at its place, and zeros; the dtype is the input's.",
).samples(lambda make, dtype: (Sample((make(3, 4, low=0, high=1),)), Sample((make(low=0, high=1),))))
bernoulli_p = (
    Op(
        f"bernoulli.p(Tensor self, float p, *, {_GENERATOR}) -> Tensor",
        family=COMPOSITE,
        out=False,
        differentiable=False,
        arbitrary=True,
        doc=bernoulli.doc,
    )
    .composite(lambda self, p, *, generator: _filled_like(self, "bernoulli_", p, generator=generator))
    .samples(lambda make, dtype: (Sample((make(3, 4), 0.3)),))
)
poisson = Op(
    f"poisson(Tensor self, {_GENERATOR}) -> Tensor",
    method=False,
    out=False,
    differentiable=False,
    arbitrary=True,
    doc="Numbers drawn from the Poisson distributions whose rates the input holds.",
).samples(lambda make, dtype: (Sample((make(3, 4, low=0, high=20),)),))
binomial = (
    Op(
        f"binomial(Tensor count, Tensor prob, {_GENERATOR}) -> Tensor",
        method=False,
        out=False,
        arbitrary=True,
        doc="""Numbers of successes in numbers of trials.

        Args:
            count: Floating tensor of numbers of trials; below 0 counts as 0.
            prob: Tensor of the chances of each trial, of the same dtype, that broadcasts with `count`.
            generator: Stream to draw from.

        Returns:
            Tensor of the dtype of `count`; NaN where either is.

        Raises:
            ValueError: A dtype is not a floating one.
            RuntimeError: The dtypes differ or the shapes do not broadcast.
        """,
    )
    .grad(count="zeros_of(count)", prob="zeros_of(prob)")
    .samples(
        lambda make, dtype: (
            [Sample((make(3, 1, low=0, high=40).round(), make(4, low=0, high=1)))] if dtype.is_floating_point else []
        )
    )
)

_standard_gamma = (
    Op(
        f"_standard_gamma(Tensor self, {_GENERATOR}) -> Tensor",
        method=False,
        out=False,
        arbitrary=True,
        doc="""Numbers drawn from gamma distributions of scale 1 (Marsaglia and Tsang, 2000), differentiable.

        Args:
            input: Shape parameters, float32 or float64, not negative.
            generator: Stream to draw from.

        Returns:
            Tensor like the input, at least the smallest normal number of the dtype.
        """,
    )
    .grad(self="grad * _standard_gamma_grad(self, result)")
    .samples(lambda make, dtype: (Sample((make(*shape, low=0.1, high=9),)) for shape in ((3, 4), (), (0,))))
)
_sample_dirichlet = (
    Op(
        f"_sample_dirichlet(Tensor self, {_GENERATOR}) -> Tensor",
        method=False,
        out=False,
        arbitrary=True,
        doc="""Points of the simplex drawn from Dirichlet distributions, differentiable.

        Args:
            input: Concentrations (*, k), float32 or float64, not negative.
            generator: Stream to draw from.

        Returns:
            Tensor like the input whose last dimension sums to 1.
        """,
    )
    .grad(self=lambda grad, self, result: _dirichlet_gradient(grad, self, result))
    .samples(lambda make, dtype: (Sample((make(*shape, low=0.1, high=9),)) for shape in ((3, 4), (4,), (2, 0))))
)
_standard_gamma_grad = (
    Op(
        "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
        method=False,
        out=False,
        doc="""How a gamma number of scale 1 moves with its shape while its quantile stays.

        Implicit reparameterisation (Figurnov, Mohamed and Mnih, 2018), to about 1e-9 of its value.

        Args:
            input: Shape parameters, float32 or float64.
            output: Numbers drawn with them, of the same dtype; the two broadcast.
        """,
    )
    .grad(self=NotImplemented, output=NotImplemented)
    .samples(
        lambda make, dtype: (
            Sample((make(*shape, low=0.2, high=20), make(4, low=0.2, high=20))) for shape in ((3, 4), (3, 1), (4,))
        )
    )
)
_dirichlet_grad = (
    Op(
        "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
        method=False,
        out=False,
        doc="""How a coordinate of a Dirichlet point moves with its concentration while its quantile stays, over 1 - x.

        Implicit reparameterisation (Figurnov, Mohamed and Mnih, 2018), to about 1e-7 of its value
        near the mean and 1e-6 far from it.

        Args:
            x: Coordinates, float32 or float64.
            alpha: Their concentrations.
            total: Sums of the concentrations of their points; the three have one dtype and broadcast.
        """,
    )
    .grad(x=NotImplemented, alpha=NotImplemented, total=NotImplemented)
    .samples(
        lambda make, dtype: (
            Sample((make(3, 4, low=0.1, high=0.9), make(*shape, low=0.2, high=5), make(4, low=6, high=9)))
            for shape in ((3, 4), (3, 1), (4,))
        )
    )
)


def _dirichlet_gradient(grad: Any, concentration: Any, x: Any) -> Any:
    total = concentration.sum(-1, True)
    return _dirichlet_grad.operator(x, concentration, total) * (grad - (x * grad).sum(-1, True))


def _normal_overload(parameters: str, samples: Sampler) -> Op:
    doc = """Numbers drawn from normal distributions.

    Args:
        mean: Mean, or a tensor of means.
        std: Standard deviation, or a tensor of them that broadcasts with the means.
        size: Sizes, where both are numbers.
        generator: Stream to draw from.

    Raises:
        RuntimeError: A standard deviation is negative.
    """
    return Op(
        f"normal.{parameters} -> Tensor",
        family=COMPOSITE,
        exact=parameters.startswith("Tensor_Tensor"),
        method=False,
        differentiable=False,
        arbitrary=True,
        doc=doc,
    ).samples(samples)


normal = _normal_overload(
    f"Tensor_float(Tensor mean, float std=1, *, {_GENERATOR})",
    lambda make, dtype: iter((Sample((make(3, 4),)), Sample((make(3, 4), 2)))),
)
normal.composite(lambda mean, std, *, generator: _normal(mean, std, generator))
normal_float_tensor = _normal_overload(
    f"float_Tensor(float mean, Tensor std, *, {_GENERATOR})",
    lambda make, dtype: iter((Sample((1.5, make(3, 4, low=0, high=2))),)),
)
normal_float_tensor.composite(lambda mean, std, *, generator: _normal(mean, std, generator))
normal_tensors = _normal_overload(
    f"Tensor_Tensor(Tensor mean, Tensor std, *, {_GENERATOR})",
    lambda make, dtype: iter((Sample((make(3, 1), make(4, low=0, high=2))),)),
)
normal_tensors.composite(lambda mean, std, *, generator: _normal(mean, std, generator))
normal_floats = _normal_overload(f"float_float(float mean, float std, int[] size, {_WITH_GENERATOR})", _sized(1.0, 2.0))
normal_floats.composite(
    lambda mean, std, size, *, generator, dtype, layout, device, pin_memory: _sized_normal(
        mean, std, size, generator, dtype, device
    )
)
multinomial = (
    Op(
        f"multinomial(Tensor self, int num_samples, bool replacement=False, *, {_GENERATOR}) -> Tensor",
        exact=True,
        family=COMPOSITE,
        differentiable=False,
        arbitrary=True,
        doc="""Indices drawn with the probabilities that the rows of the input are proportional to.

        Args:
            input: Weights, (n) or (rows, n); finite, not negative, not all 0.
            num_samples: Draws from each row.
            replacement: Whether an index may be drawn again.
            generator: Stream to draw from.

        Returns:
            int64 tensor, (num_samples) or (rows, num_samples).
        """,
    )
    .composite(
        lambda self, num_samples, replacement, *, generator: _multinomial(self, num_samples, replacement, generator)
    )
    .samples(
        lambda make, dtype: (
            Sample((make(*shape, low=0.1, high=1), *extra))
            for shape in ((4,), (3, 4))
            for extra in ((1,), (3,), (9, True))
        )
    )
)
_with_replacement = Op(
    f"_multinomial_with_replacement(Tensor self, int num_samples, *, {_GENERATOR}) -> Tensor",
    function=False,
    method=False,
    out=False,
    differentiable=False,
    arbitrary=True,
    doc="`multinomial` with replacement, of weights that are known to be valid.",
).samples(lambda make, dtype: () if dtype.is_complex else (Sample((make(3, 4, low=0.1, high=1), 5)),))


def _filled_like(like: Any, fill: str, *args: Any, generator: Any) -> Any:
    import rushlight

    return getattr(rushlight.empty_like(like), fill)(*args, generator=generator)


def _normal(mean: Any, std: Any, generator: Any) -> Any:
    import rushlight

    if not isinstance(std, rushlight.Tensor):
        return rushlight.empty_like(mean).normal_(0, std, generator=generator) + mean
    if std.is_complex():
        raise RuntimeError(f"normal expects standard deviation to be non-complex, got dtype {std.dtype}")
    if std.numel() and std.device.type != "meta" and not (std >= 0).all():
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
            "multinomial only supports floating-point dtypes for input, got: "
            f"{_C_NAMES.get(str(self.dtype), self.dtype)}"
        )
    if samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and samples > self.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if self.numel() and self.device.type != "meta":
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
