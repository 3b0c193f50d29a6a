"""What the records of the special functions share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import rushlight
from rushlight.plugin import Op, Sample, pointwise

SHAPES = ((), (5,), (3, 4), (0,))
Range = tuple[float, float]


def library(array: Any, name: str) -> Any:
    """The function `name` of SciPy for arrays of NumPy, of CuPy for CuPy's; an array's own where it has `special`."""
    own = getattr(array, "special", None)
    if own is not None:
        return getattr(own, name)
    modules = {"numpy": "scipy.special", "ml_dtypes": "scipy.special", "cupy": "cupyx.scipy.special"}
    module = modules.get(type(array).__module__.partition(".")[0])
    if module is None:
        raise NotImplementedError(
            f"special::{name}: no kernel for arrays of type {type(array).__qualname__}. "
            "A plugin gives one through rushlight_register_kernels(device_type)."
        )
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"special::{name}: computed by SciPy, which is missing. pip install scipy") from error


def in_double(arg: Any) -> Any:
    """Floats of less, since functions for those of two and four bytes, where there are any, lose digits."""
    narrow = hasattr(arg, "dtype") and arg.dtype.itemsize < 8 and arg.dtype.kind not in "iub"
    return arg.astype("float64") if narrow else arg


def host(name: str) -> Callable[..., Any]:
    """The array kernel of a function of SciPy and CuPy; narrower floats compute in double and round once."""

    def kernel(xp: Any, *args: Any) -> Any:
        array = next(arg for arg in args if hasattr(arg, "dtype"))
        function = library(array, name)
        try:
            return function(*map(in_double, args))
        except TypeError as error:  # as SciPy has no loop for complex numbers
            raise NotImplementedError(f'"special::{name}" not implemented for {array.dtype}') from error

    return kernel


def scipy_reference(name: str) -> Callable[..., Any]:
    """The function of SciPy, as the oracle of samples."""

    def reference(*args: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*args)

    return reference


def samples(*ranges: Range) -> Callable[..., Iterator[Sample]]:
    """Tensors with values in a range for each argument, of all ranks, broadcast and strided.

    Args:
        *ranges: (low, high); all are `low` where both are equal.
    """

    def make_all(make: Any, dtype: Any) -> Iterator[Sample]:
        def tensor(shape: tuple[int, ...], low: float, high: float) -> Any:
            return make(*shape, low=low, high=high) if low < high else rushlight.full_like(make(*shape), low)

        for shape in SHAPES:
            yield Sample(tuple(tensor(shape, *range_) for range_ in ranges))
        first, *rest = ranges
        yield Sample((tensor((4, 3), *first).t(), *(tensor((3, 1), *range_) for range_ in rest)))

    return make_all


def document(name: str, summary: str, arguments: dict[str, str], example: str, source: str = "") -> str:
    """A docstring in Google's style; all of these functions return one value for each element."""
    lines = [summary, "", "Args:"]
    lines += [f"    {key}: {text}" for key, text in arguments.items()]
    lines += ["", "Returns:", "    Tensor of the broadcast shape; integers and bool give the default float dtype."]
    if source:
        lines += ["", f"Source: {source}"]
    call, _, printed = example.partition(" -> ")
    lines += ["", "Example:", f"    >>> rushlight.special.{name}({call})"]
    lines += [f"    {line}" for line in printed.split("\n")]
    return "\n".join(lines)


def unary(
    name: str,
    summary: str,
    range_: Range,
    grad: Any,
    example: str,
    *,
    array: Any = None,
    reference: Any = None,
    source: str = "",
    scipy: str | None = None,
    loop: str | None = None,
    **options: Any,
) -> Op:
    """The record of a function of one variable.

    Args:
        name: Name of the function.
        summary: First line of the docstring.
        range_: Values of the samples.
        grad: Gradient rule.
        example: "arguments -> what is printed".
        array: Array kernel, where it is not the function `scipy` of SciPy.
        reference: Oracle of the samples, where it is neither.
        source: Of the method.
        scipy: Name in SciPy, the same by default.
        loop: Name of the native loops, where it is not the function's own.
        **options: Further ones of `Op`.
    """
    doc = document(name, summary, {"input": "Real tensor of any shape."}, example, source)
    op = Op(f"special::{name}(Tensor self) -> Tensor", family=pointwise("float", loop), doc=doc, **options)
    op.array(array or host(scipy or name))
    if grad is not NotImplemented:
        op.grad(self=grad)
    return op.samples(samples(range_), reference or (None if array else scipy_reference(scipy or name)))


def far_slope(x: Any, coefficients: Sequence[float], power: float, step: int) -> Any:
    """The derivative of ``sum_k coefficients[k] x^-(power + k step)``, an asymptotic series, for large x > 0.

    Rules that subtract a function from its derivative's other half lose there what this keeps.
    """
    factors = [-(power + k * step) * c for k, c in enumerate(coefficients)]
    inverse = 1 / x
    variable = inverse * inverse if step == 2 else inverse
    total = factors[-1] * variable
    for factor in factors[-2:0:-1]:
        total = (total + factor) * variable
    return (total + factors[0]) * x ** -(power + 1)


def slope(op: Op, at: int, *, above: float | None = 0) -> Callable[..., Any]:
    """The gradient rule in a parameter that no closed form serves: a central difference of eighth order.

    The step is a fiftieth of the distance to `above`, so that truncation and rounding both stay near 1e-11 of the
    function. Made of the operator itself, the rule differentiates again.

    Args:
        op: The function.
        at: Which argument.
        above: Where the domain of the parameter ends; None: nowhere, the step is at least 0.02.
    """
    weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)

    def rule(grad: Any, *args: Any) -> Any:
        # In float64, since a difference magnifies what float32 rounds.
        wide = [arg.double() if isinstance(arg, rushlight.Tensor) else arg for arg in args]
        x = wide[at]
        step = (x - (above or 0)).detach().abs() * 0.02
        step = step.clamp(min=0.02) if above is None else step

        def shifted(steps: int) -> Any:
            return op.operator(*wide[:at], x + steps * step, *wide[at + 1 :])

        total = sum(w * (shifted(k) - shifted(-k)) for k, w in enumerate(weights, 1))
        return grad * (total / step).to(grad.dtype)

    return rule
