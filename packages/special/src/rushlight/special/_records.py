"""What the records of the special functions share."""

from __future__ import annotations

import functools
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


def of_real_orders(name: str) -> Callable[..., Any]:
    """The array kernel of a function of SciPy of which the last argument may be complex, and no other."""
    kernel = host(name)

    def parted(xp: Any, *args: Any) -> Any:
        *orders, x = args
        if any(hasattr(arg, "dtype") and arg.dtype.kind == "c" for arg in args):
            orders = [xp.asarray(order) for order in orders]
            if any(order.imag.any() for order in orders):
                raise NotImplementedError(f'"special::{name}" not implemented for complex orders and parameters')
            args = (*(order.real for order in orders), x)
        return kernel(xp, *args)

    return parted


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


def number_like(value: Any, other: Any) -> Any:
    """A 0-d tensor for a number in the place of a tensor; it weighs no more in promotion than the number."""
    dtype = other.dtype if other.is_floating_point() or other.is_complex() else rushlight.get_default_dtype()
    return rushlight.scalar_tensor(value, dtype=dtype, device=other.device)


def of_tensors(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A gradient rule of an op that takes numbers too, for one that is written for tensors."""

    @functools.wraps(rule)
    def wrapped(**arguments: Any) -> Any:
        grad = arguments["grad"]
        return rule(**{n: v if isinstance(v, rushlight.Tensor) else number_like(v, grad) for n, v in arguments.items()})

    return wrapped


def slope(
    op: Op, at: int, rate: Callable[..., Any], complement: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """The gradient rule in a parameter that no closed form serves: a central difference of eighth order.

    The step is 0.03 over the rate at which the function changes, so that truncation and rounding both stay near 1e-12
    of the function. Made of the operator itself, the rule differentiates again.

    Args:
        op: The function.
        at: Which argument.
        rate: Of change by a factor of e, of the arguments; as large as 3 over the distance to a singularity.
        complement: One less the function, for one that is a probability: its difference serves where it is smaller.
    """
    weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)

    def rule(grad: Any, *args: Any) -> Any:
        # In float64, since a difference magnifies what float32 rounds.
        wide = [arg.to(rushlight.complex128) if arg.is_complex() else arg.double() for arg in args]
        step = 0.03 / rate(*(arg.detach() for arg in wide))

        def difference(function: Callable[..., Any]) -> Any:
            def shifted(steps: int) -> Any:
                return function(*wide[:at], wide[at] + steps * step, *wide[at + 1 :])

            return sum(w * (shifted(k) - shifted(-k)) for k, w in enumerate(weights, 1)) / step

        total = difference(op.operator)
        if complement is not None:
            total = total.where(op.operator(*wide).detach() < 0.5, -difference(complement))
        return grad * total.to(grad.dtype).conj()

    return rule


def pole_distance(x: Any) -> Any:
    """From x, which is real whatever its dtype, to the next of 0, -1, -2 and so on."""
    x = x.real if x.is_complex() else x
    return x.where(x > 0, (x - x.round()).abs())
