"""The record of an operator: schema, kernels, gradient and samples of one op in one place.

Everything else derives from it: the function, the method, `op_`, `out=`, the meta result, the conformance tests and the
capability table. A record changes nothing until `define` is called, which the registry does when the wheel that brings
it is loaded.
"""

from __future__ import annotations

import copyreg
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import _C


@dataclass(frozen=True)
class Family:
    """What a kind of op shares: the C++ prologue that checks, promotes, infers the shape and allocates.

    Attributes:
        name: "function", "pointwise", "reduction", "view", "factory" or "composite".
        promote: How a pointwise op picks dtypes, see `pointwise`.
        loop: Name of the native loops, where it is not the op's own.
    """

    name: str
    promote: str = "same"
    loop: str | None = None


FUNCTION = Family("function")
REDUCTION = Family("reduction")
VIEW = Family("view")
FACTORY = Family("factory")
COMPOSITE = Family("composite")


def pointwise(promote: str = "same", loop: str | None = None) -> Family:
    """The family of ops that compute each element from the elements at the same place.

    Args:
        promote: "same" (the promoted dtype of all tensors), "float" (integers compute in the default float dtype),
            "bool" (the result is bool), "real" (complex gives real), "float_real" (both), "where" (the first tensor is
            a bool condition), "scalars" (number parameters take part), "none" (the first tensor's dtype),
            "minus" (as "same", and bool is refused), "equal" (as "same", and tensors of several dtypes are refused),
            "quotient" (as "same", and integers over integers, the last two tensors, are refused).
        loop: Name of the native loops, where it is not the op's own.
    """
    return Family("pointwise", promote, loop)


class Sample(NamedTuple):
    """One call of an op: `op(*args, **kwargs)`."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = {}


_SCHEMA_NAME = re.compile(r"(?:(?P<namespace>\w+)::)?(?P<base>\w+)(?:\.(?P<overload>\w+))?\(")

operators: dict[str, Any] = {}
"""The callable of every name, as "add", "add_" or "linalg::inv"; overloads share one."""


def operator_named(key: str) -> Any:
    """The operator of a key of `operators`, whose wheel is loaded where need be."""
    if key not in operators and "::" in key:
        from . import _registry

        _registry.require(key.partition("::")[0], f"the operator {key}")
    return operators[key]


def reduce_operator(operator: Any) -> tuple[Any, ...]:
    """What pickle keeps of an operator: its key."""
    base = operator.records[0]._key
    key = next(name for name in (base, f"{base}_", operator.__name__) if operators.get(name) is operator)
    return operator_named, (key,)


copyreg.pickle(_C.Operator, reduce_operator)


class Op:
    """The record of one operator, or of one overload of it.

    Args:
        schema: Signature in PyTorch's schema grammar: `"name.overload(Type arg=default, *, ...) -> Type"`, with a
            namespace where it is not in `rushlight` itself (`"linalg::inv(Tensor A) -> Tensor"`).
        family: Kind of op.
        method: Whether it is a method of Tensor too; by default when the first parameter is `Tensor self`.
        function: Whether it is a function of its module.
        inplace: Whether `op_` exists.
        out: Whether `out=` is accepted.
        aliases: Further names of the function and method.
        differentiable: False for an op whose results never carry gradients.
        mixed_devices: Whether the arguments may live on different devices.
        numbers: Whether it takes Python numbers for tensors after the first; by default a pointwise op whose overload
            is named "Tensor" does, as PyTorch's overload beside "Scalar".
        dynamic: Whether the shape of the result depends on the elements of the arguments; it has no meta result then.
        arbitrary: Whether equal calls give different values, as random numbers or uninitialised memory.
        reads_strides: Whether the result depends on where the elements are in memory, as that of `as_strided`.
        exact: Whether `out=` and the in-place form take only tensors of the dtype of the result, not those that it
            can be cast to; by default so but for pointwise and composite ops.
        any_out: Whether `out=` takes tensors of every dtype, also those that the result cannot be cast to. It stands
            for a `dtype` parameter that is not given.
        auxiliary: How many of the last results only serve the gradient rule: they carry no gradient themselves.
        items: Arguments (tensors, or sizes of one) whose first dimension counts items that do not affect each other,
            as do all results. A batch of gradients is folded into it and costs one call.
        doc: Docstring of the public function, Google style.

    Example:
        >>> from rushlight._op import Op, pointwise
        >>> double = Op("double_it(Tensor self) -> Tensor", family=pointwise(), doc="Twice the input.")
        >>> double = double.array(lambda xp, x: x + x).grad(self="grad * 2")
    """

    def __init__(
        self,
        schema: str,
        *,
        family: Family = FUNCTION,
        method: bool | None = None,
        function: bool = True,
        inplace: bool = False,
        out: bool = True,
        aliases: Iterable[str] = (),
        differentiable: bool = True,
        mixed_devices: bool = False,
        numbers: bool | None = None,
        dynamic: bool = False,
        arbitrary: bool = False,
        reads_strides: bool = False,
        exact: bool | None = None,
        any_out: bool = False,
        auxiliary: int = 0,
        items: Iterable[str] = (),
        doc: str | None = None,
    ) -> None:
        match = _SCHEMA_NAME.match(schema)
        if not match:
            raise ValueError(f"Op: a schema starts with a name and '(', got schema={schema!r}.")
        self.schema = schema
        self.namespace: str | None = match["namespace"]
        self.base: str = match["base"]
        self.name = schema[: schema.index("(")]
        self.family = family
        self.method = (
            schema[schema.index("(") :].startswith(("(Tensor self", "(Tensor(a) self", "(Tensor(a!) self"))
            if method is None
            else method
        )
        self.function = function
        self.inplace = inplace
        self.out = out
        self.aliases = tuple(aliases)
        self.differentiable = differentiable
        self.mixed_devices = mixed_devices
        self.numbers = family.name == "pointwise" and match["overload"] == "Tensor" if numbers is None else numbers
        self.dynamic = dynamic
        self.arbitrary = arbitrary
        self.reads_strides = reads_strides
        self.exact = family.name not in ("pointwise", "composite") and not any_out if exact is None else exact
        self.any_out = any_out
        self.auxiliary = auxiliary
        self.items = tuple(items)
        self.doc = doc
        self.grads: dict[tuple[str, ...], Any] = {}
        self.tangent: Any = None
        self.array_kernel: Callable[..., Any] | None = None
        self.composite_kernel: Callable[..., Any] | None = None
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.unordered: tuple[str, ...] = ()
        self.layouts: dict[Any, tuple[Callable[..., Any], bool, Callable[..., Any] | None]] = {}
        self.sampler: Callable[..., Iterable[Sample]] | None = None
        self.reference: Callable[..., Any] | None = None
        self.tolerance: dict[str, tuple[float, float]] = {}
        self.determined: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return f"Op({self.schema!r})"

    # -- what it computes

    def kernel(self, device_type: str, fn: Callable[..., Any]) -> Op:
        """Gives the kernel of one device type, a callable on tensors. Native CPU kernels bind by the op's name."""
        self.kernels[device_type] = fn
        return self

    def array(self, fn: Callable[..., Any]) -> Op:
        """Gives the array kernel `fn(xp, *args)`: runs on every device through its array namespace.

        Tensors arrive as arrays (of the promoted dtype in the pointwise family), dtypes as NumPy dtypes, the rest as
        the schema says.
        """
        self.array_kernel = fn
        return self

    def composite(self, fn: Callable[..., Any]) -> Op:
        """Gives the definition over other ops, for every device; differentiable through its parts."""
        self.composite_kernel = fn
        return self

    def layout(
        self, layout: Any, fn: Callable[..., Any], *, composite: bool = False, inplace: Callable[..., Any] | None = None
    ) -> Op:
        """Gives what runs where an argument has a layout other than strided, a callable on tensors.

        It serves the in-place and `out=` forms too: what it returns replaces their target. May be called when the op is
        defined already, so that a layout can bring its own.

        Args:
            layout: As `rushlight.sparse_coo`.
            fn: Takes tensors as the schema says.
            composite: Whether `fn` is made of other ops and differentiable through them; else the gradient is the rule
                of this record, whose ops meet the layout in turn.
            inplace: Writes to its first argument, for an in-place form that can spare making the result; NotImplemented
                where it cannot.
        """
        self.layouts[layout] = fn, composite, inplace
        if self._key in operators:
            _C.set_layout_kernel(self.name, layout, fn, composite, inplace)
        return self

    def nondeterministic(self, *device_types: str) -> Op:
        """Says where equal calls may differ, because the order of threads decides: there the op raises in
        deterministic mode.
        """
        self.unordered = device_types
        return self

    # -- how it differentiates

    def grad(self, names: Sequence[str] | None = None, rule: Any = None, /, **rules: Any) -> Op:
        """Gives gradient rules, as data: only the autograd wheel reads them.

        Args:
            names: Parameters that `rule` serves together, returning a tuple of gradients.
            rule: A callable for `names`.
            **rules: By parameter: an expression over ops (`"grad * conj(other)"`) or a callable, whose parameters are
                the op's own, `grad` and `result`; None states that there is no gradient, NotImplemented that
                differentiating raises.
        """
        if names is not None:
            self.grads[tuple(names)] = rule
        self.grads.update({(name,): value for name, value in rules.items()})
        return self

    def jvp(self, rule: Any) -> Op:
        """Gives the forward-mode rule, where it is simpler than the one that the gradients imply."""
        self.tangent = rule
        return self

    # -- how it is tested

    def samples(
        self,
        fn: Callable[..., Iterable[Sample]],
        reference: Callable[..., Any] | None = None,
        tolerance: dict[str, tuple[float, float]] | None = None,
        determined: Callable[..., Any] | None = None,
    ) -> Op:
        """Gives calls to test with.

        Args:
            fn: `fn(make, dtype)` yields `Sample`s; `make(*shape, low=, high=)` makes a tensor of the dtype.
            reference: The same function in NumPy, SciPy or mpmath; without it the array kernel over NumPy.
            tolerance: (relative, absolute) by dtype name, where the defaults are too strict.
            determined: Makes of the results what every device has to agree on, as a product whose factors are free to
                differ; by default it is the results.
        """
        self.sampler = fn
        self.reference = reference
        self.tolerance = tolerance or {}
        self.determined = determined
        return self

    # -- registration

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters."""
        names: tuple[str, ...] = _C.parameters(self.schema)
        return names

    def parse(self) -> Any:
        """Reads the schema and checks the record against it, which registers nothing yet.

        Returns:
            What `define` takes.

        Raises:
            ValueError: The schema does not follow the grammar, or a gradient rule is for a parameter that it lacks.
            TypeError: A kernel cannot be called.
        """
        parsed, parameters = _C.parse_op(
            self.schema, self.family.name, self.family.promote, self, self.differentiable, self.mixed_devices, self.out,
            self.numbers, self.family.loop or self.base, self.exact, self.any_out,
        )  # fmt: skip
        for name in (name for names in self.grads for name in names):
            if name not in parameters:
                known = ", ".join(parameters)
                raise ValueError(f"{self.name}: grad() gives the rule of a parameter, got {name!r}. They are {known}.")
        layouts = (part for kernel in self.layouts.values() for part in (kernel[0], kernel[2]))
        for fn in (self.array_kernel, self.composite_kernel, *self.kernels.values(), *layouts):
            if fn is not None and not _C.is_kernel(fn):
                raise TypeError(f"{self.name}: a kernel must be callable, got {fn!r}.")
        return parsed

    def define(self, parsed: Any = None) -> None:
        """Registers the op with the dispatcher and puts its names in place.

        Args:
            parsed: What `parse` returned, if it has been called.
        """
        _C.add_op(parsed or self.parse())
        if self.array_kernel is not None:
            quiet = np.errstate(all="ignore")  # infinities and NaNs are results, not events
            _C.set_kernel(self.name, None, quiet(self.array_kernel))
        if self.composite_kernel is not None:
            _C.set_kernel(self.name, "", self.composite_kernel)
        for device_type, fn in self.kernels.items():
            _C.set_kernel(self.name, device_type, fn)
        for layout, kernel in self.layouts.items():
            _C.set_layout_kernel(self.name, layout, *kernel)
        for device_type in self.unordered:
            _C.set_unordered(self.name, device_type)
        area = f"rushlight.{self.namespace}" if self.namespace else "rushlight"
        self._publish(self._key, self.base, area, self.method and not self.namespace)
        for alias in self.aliases:  # of an op of an area they are functions of rushlight itself, and methods
            self._publish(alias, alias, "rushlight", self.method)

    @property
    def _key(self) -> str:
        return f"{self.namespace}::{self.base}" if self.namespace else self.base

    def _publish(self, key: str, name: str, area: str, method: bool) -> None:
        for suffix in ("", "_") if self.inplace else ("",):
            operator = operators.get(key + suffix)
            if operator is not None:
                _C.add_overload(operator, self.name)
                operator.__doc__ = operator.__doc__ or self.doc
            else:
                operator = operators[key + suffix] = _C.make_operator(name + suffix, [self.name], bool(suffix))
                operator.__doc__ = self.doc
                operator.__module__ = area
            if self.function and area in sys.modules:
                vars(sys.modules[area]).setdefault(name + suffix, operator)
            if method:
                _C.add_method(name + suffix, operator)

    @property
    def operator(self) -> Any:
        """The public callable, once defined."""
        return operators[self._key]
