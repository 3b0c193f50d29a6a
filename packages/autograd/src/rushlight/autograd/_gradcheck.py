"""Checks gradients against finite differences.

Complex numbers count as pairs of reals: the gradient for the vector 1 holds the derivatives of the real part of an
output, that for the vector 1j those of its imaginary part.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from rushlight import Tensor

from . import forward_ad
from ._backward import grad

Function = Callable[..., Any]


class GradcheckError(RuntimeError):
    """Analytical and numerical gradients differ."""


def gradcheck(
    func: Function,
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
) -> bool:
    """Compares the gradients of a function with central finite differences.

    Args:
        func: Takes the inputs and returns a Tensor or a tuple; results that require no grad are left out.
        inputs: Arguments of `func`; the Tensors that require grad are checked, in float64 or complex128.
        eps: Step of the finite differences.
        atol: Absolute tolerance.
        rtol: Relative tolerance.
        raise_exception: False: return False instead of raising.
        nondet_tol: By how much two runs of backward may differ.
        check_undefined_grad: Also run backward where only some of several results have a gradient.
        check_grad_dtypes: Also require that gradients have the dtype of their inputs.
        check_batched_grad: Also compare `is_grads_batched=True` with single passes.
        check_forward_ad: Also compare the tangents of forward mode.
        check_backward_ad: False: compare no gradients of backward.
        fast_mode: Compare one random projection of the Jacobian instead of all of it.

    Returns:
        Whether all gradients agree.

    Raises:
        GradcheckError: They differ; the message shows where.

    Example:
        >>> x = rushlight.tensor([0.5, 2.0], dtype=rushlight.float64, requires_grad=True)
        >>> rushlight.autograd.gradcheck(lambda x: x ** 3, x)
        True
    """
    arguments: tuple[Any, ...] = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = [i for i, a in enumerate(arguments) if isinstance(a, Tensor) and a.requires_grad]
    if not checked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, "
            "but none of the them have requires_grad=True."
        )
    for i in checked:
        if arguments[i].element_size() < (16 if arguments[i].is_complex() else 8):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. "
                "This check will likely fail if all the inputs are not of double precision floating point or complex.",
                stacklevel=2,
            )
    if not (check_backward_ad or check_forward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    check = _Check(func, arguments, checked, eps, atol, rtol)
    try:
        if not check.outputs:
            check.constant()
            return True
        if check_forward_ad:
            (check.tangent_projection if fast_mode else check.tangents)()
        if not check_backward_ad:
            return True
        (check.projection if fast_mode else check.jacobians)()
        check.repeatable(nondet_tol)
        if check_undefined_grad:
            check.undefined()
        if check_grad_dtypes:
            check.dtypes()
        if check_batched_grad:
            check.batched()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Function,
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    gen_non_contig_grad_outputs: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    **options: Any,
) -> bool:
    """Compares second derivatives with finite differences of the first.

    Args:
        func: As in `gradcheck`.
        inputs: As in `gradcheck`.
        grad_outputs: Vectors to differentiate with; random ones by default.
        gen_non_contig_grad_outputs: Make the random ones with strides.
        check_fwd_over_rev: Also compare the tangents that forward mode gives the first derivatives.
        check_rev_over_rev: False: do not differentiate the first derivatives by backward.
        **options: As in `gradcheck`.
    """
    arguments: tuple[Any, ...] = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    outputs = _differentiable(func(*arguments))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        vectors = [_like(o, rng, strided=gen_non_contig_grad_outputs).requires_grad_() for o in outputs]
    else:
        vectors = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    n = len(vectors)

    def first(*args: Any) -> tuple[Tensor, ...]:
        inner = [a for a in args[:-n] if isinstance(a, Tensor) and a.requires_grad]
        found = grad(_differentiable(func(*args[:-n])), inner, args[-n:], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        first,
        (*arguments, *vectors),
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        **options,
    )


def _differentiable(result: Any) -> list[Tensor]:
    results = result if isinstance(result, tuple | list) else (result,)
    return [r for r in results if isinstance(r, Tensor) and r.requires_grad]


def _tensors(result: Any) -> list[Tensor]:
    results = result if isinstance(result, tuple | list) else (result,)
    return [r for r in results if isinstance(r, Tensor) and (r.is_floating_point() or r.is_complex())]


def _array(t: Tensor) -> np.ndarray:
    return np.array(t.detach().numpy())


def _reals(array: np.ndarray) -> np.ndarray:
    """A vector of the real numbers behind the elements."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "c":
        flat = np.stack((flat.real, flat.imag), -1).reshape(-1)
    return flat.astype(np.float64)


def _like(t: Tensor, rng: np.random.Generator, strided: bool = False) -> Tensor:
    import rushlight

    shape = (*t.shape, 2) if strided else tuple(t.shape)
    value = rng.standard_normal(shape)
    if t.is_complex():
        value = value + 1j * rng.standard_normal(shape)
    full = rushlight.from_numpy(np.asarray(value).astype(t.detach().numpy().dtype))
    return full[..., 0] if strided else full


class _Check:
    def __init__(
        self, func: Function, arguments: tuple[Any, ...], checked: list[int], eps: float, atol: float, rtol: float
    ) -> None:
        self.func, self.arguments, self.checked = func, arguments, checked
        self.eps, self.atol, self.rtol = eps, atol, rtol
        result = func(*arguments)
        self.outputs = _differentiable(result)
        results = result if isinstance(result, tuple | list) else (result,)
        if results and not any(isinstance(r, Tensor) for r in results):
            raise TypeError(f"gradcheck: func returns Tensors, got {result!r}. Return what is to be differentiated.")
        self.inputs = [arguments[i] for i in checked]
        # Where none requires grad, all are to be constant.
        self.which = [i for i, t in enumerate(_tensors(result)) if t.requires_grad or not self.outputs]

    def values(self) -> list[np.ndarray]:
        results = _tensors(self.func(*self.arguments))
        return [_reals(_array(results[i])) for i in self.which]

    def gradients(self, vectors: Sequence[Tensor | None]) -> list[np.ndarray]:
        pairs = [(o, v) for o, v in zip(self.outputs, vectors, strict=True) if v is not None]
        if not pairs:
            return [np.zeros(len(_reals(_array(x)))) for x in self.inputs]
        outputs, given = zip(*pairs, strict=True)
        found = grad(outputs, self.inputs, given, retain_graph=True, allow_unused=True)
        return [
            _reals(np.zeros_like(_array(x)) if g is None else _array(g))
            for g, x in zip(found, self.inputs, strict=True)
        ]

    def slope(self, x: Tensor, direction: np.ndarray) -> list[np.ndarray]:
        """Derivatives of all outputs when x moves along `direction`, an array of its shape."""
        memory = x.detach().numpy()
        before = memory.copy()
        try:
            memory[...] = before + self.eps * direction
            up = self.values()
            memory[...] = before - self.eps * direction
            down = self.values()
        finally:
            memory[...] = before
        return [(u - d) / (2 * self.eps) for u, d in zip(up, down, strict=True)]

    def constant(self) -> None:
        for k, x in zip(self.checked, self.inputs, strict=True):
            if any(np.any(slope) for direction in self.directions(x) for slope in self.slope(x, direction)):
                raise GradcheckError(
                    "Numerical gradient for function expected to be zero, since no result requires grad, but it is "
                    f"not with respect to input {k}. Return what depends on the input with its history."
                )

    def jacobians(self) -> None:
        for k, x in enumerate(self.inputs):
            numerical = self.numerical(x)
            for o in range(len(self.outputs)):
                self.compare(self.analytical(o, k), numerical[o], o, self.checked[k])

    @staticmethod
    def directions(x: Tensor) -> Iterator[np.ndarray]:
        """The unit vectors of the space of an input."""
        for index in np.ndindex(*x.shape):
            for unit in (1, 1j) if x.is_complex() else (1,):
                direction = np.zeros(tuple(x.shape), dtype=complex if x.is_complex() else float)
                direction[index] = unit
                yield direction

    def numerical(self, x: Tensor) -> list[np.ndarray]:
        columns = [self.slope(x, direction) for direction in self.directions(x)]
        sizes = [len(_reals(_array(o))) for o in self.outputs]
        return [np.array([c[o] for c in columns]).reshape(len(columns), n) for o, n in enumerate(sizes)]

    def analytical(self, o: int, k: int) -> np.ndarray:
        import rushlight

        output = self.outputs[o]
        columns = []
        for index in np.ndindex(*output.shape):
            for unit in (1, 1j) if output.is_complex() else (1,):
                vector = np.zeros(tuple(output.shape), dtype=complex if output.is_complex() else float)
                vector[index] = unit
                vectors: list[Tensor | None] = [None] * len(self.outputs)
                vectors[o] = rushlight.from_numpy(vector.astype(output.detach().numpy().dtype))
                columns.append(self.gradients(vectors)[k])
        return np.array(columns).reshape(len(columns), len(_reals(_array(self.inputs[k])))).T

    def projection(self) -> None:
        rng = np.random.default_rng(0)
        vectors = [_like(o, rng) for o in self.outputs]
        weights = [_reals(_array(v)) for v in vectors]
        for k, (x, g) in enumerate(zip(self.inputs, self.gradients(vectors), strict=True)):
            direction = _array(_like(x, rng))
            numerical = sum(w @ s for w, s in zip(weights, self.slope(x, direction), strict=True))
            self.compare(np.array([[g @ _reals(direction)]]), np.array([[numerical]]), 0, self.checked[k])

    def along(self, k: int, direction: np.ndarray) -> list[np.ndarray]:
        """Tangents of all outputs when checked input k moves along `direction`, an array of its shape."""
        import rushlight

        x = self.inputs[k]
        tangent = rushlight.from_numpy(np.ascontiguousarray(direction).astype(x.detach().numpy().dtype))
        with forward_ad.dual_level():
            arguments = list(self.arguments)
            arguments[self.checked[k]] = forward_ad.make_dual(x, tangent)
            results = _tensors(self.func(*arguments))
            found = [forward_ad.unpack_dual(results[i]) for i in self.which]
        return [_reals(_array(rushlight.zeros_like(f.primal) if f.tangent is None else f.tangent)) for f in found]

    def tangents(self) -> None:
        for k, x in enumerate(self.inputs):
            numerical, columns = self.numerical(x), [self.along(k, direction) for direction in self.directions(x)]
            for o, expected in enumerate(numerical):
                forward = np.array([column[o] for column in columns]).reshape(expected.shape)
                self.compare(forward, expected, o, self.checked[k], "forward")

    def tangent_projection(self) -> None:
        rng = np.random.default_rng(0)
        for k, x in enumerate(self.inputs):
            direction = _array(_like(x, rng))
            for o, (forward, expected) in enumerate(
                zip(self.along(k, direction), self.slope(x, direction), strict=True)
            ):
                self.compare(forward[None], expected[None], o, self.checked[k], "forward")

    def compare(self, analytical: np.ndarray, numerical: np.ndarray, output: int, index: int, mode: str = "") -> None:
        close = np.isclose(analytical, numerical, rtol=self.rtol, atol=self.atol, equal_nan=True)
        if close.all():
            return
        row, column = np.argwhere(~close)[0]
        raise GradcheckError(
            f"Jacobian mismatch{f' in {mode} mode' if mode else ''} for output {output} with respect to input {index}, "
            f"first at input element {row}, "
            f"output element {column}: analytical {analytical[row, column]!r}, numerical {numerical[row, column]!r} "
            f"({np.count_nonzero(~close)} of {close.size} differ; complex elements count as two).\n"
            f"numerical:\n{numerical}\nanalytical:\n{analytical}"
        )

    def repeatable(self, tolerance: float) -> None:
        vectors = [_like(o, np.random.default_rng(0)) for o in self.outputs]
        for index, first, second in zip(self.checked, self.gradients(vectors), self.gradients(vectors), strict=True):
            if not np.allclose(first, second, rtol=0, atol=tolerance, equal_nan=True):
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    f"gives different values, although analytical gradient matches numerical gradient (input {index})."
                )

    def undefined(self) -> None:
        if len(self.outputs) < 2:
            return
        rng = np.random.default_rng(0)
        vectors = [_like(o, rng) for o in self.outputs]
        whole = self.gradients(vectors)
        parts = [self.gradients([v if i == o else None for i, v in enumerate(vectors)]) for o in range(len(vectors))]
        for k, expected in enumerate(whole):
            if not np.allclose(sum(p[k] for p in parts), expected, rtol=self.rtol, atol=self.atol, equal_nan=True):
                raise GradcheckError(
                    "Expected backward to handle undefined output grads: the gradients for single outputs do not "
                    f"add up to that for all of them (input {self.checked[k]})."
                )

    def dtypes(self) -> None:
        vectors = [_like(o, np.random.default_rng(0)) for o in self.outputs]
        for x, g in zip(
            self.inputs, grad(self.outputs, self.inputs, vectors, retain_graph=True, allow_unused=True), strict=True
        ):
            if g is not None and g.dtype != x.dtype:
                raise GradcheckError(f"grad is {g.dtype}, its input is {x.dtype}.")

    def batched(self) -> None:
        import rushlight

        rng = np.random.default_rng(0)
        rows = [[_like(o, rng) for o in self.outputs] for _ in range(2)]
        stacked = [rushlight.stack(column) for column in zip(*rows, strict=True)]
        together = grad(self.outputs, self.inputs, stacked, retain_graph=True, allow_unused=True, is_grads_batched=True)
        for i, row in enumerate(rows):
            for g, expected in zip(together, self.gradients(row), strict=True):
                if g is not None and not np.allclose(
                    _reals(_array(g[i])), expected, rtol=self.rtol, atol=self.atol, equal_nan=True
                ):
                    raise GradcheckError("Gradients of a batch differ from those of its entries.")
