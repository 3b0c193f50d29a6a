"""`assert_close`: PyTorch's rules and messages, computed by NumPy, so that no operator judges itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import rushlight

from ._dtypes import numpy_dtype

_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex128": (1e-7, 1e-7),
}


class _Mismatch(Exception):
    """Two values differ; `path` is where in the containers they are."""

    def __init__(self, message: str, path: str, kind: type[Exception] = AssertionError) -> None:
        super().__init__(message)
        self.message, self.path, self.kind = message, path, kind


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Asserts that two values agree: tensors, arrays, numbers, or sequences and mappings of them.

    Values are close where `abs(actual - expected) <= atol + rtol * abs(expected)`. Infinities are close only to
    themselves, NaNs only with `equal_nan`. Of meta tensors only the attributes are compared.

    Args:
        actual: What was computed.
        expected: What should have been.
        allow_subclasses: Whether the types need only be related, as a tensor and a subclass of it.
        rtol: Relative tolerance, given together with `atol`; by default that of the dtype: 1e-3 for float16, 1.6e-2 for
            bfloat16, 1.3e-6 for float32 and complex64, 1e-7 for float64 and complex128, else 0.
        atol: Absolute tolerance; by default 1e-5, 1e-7 for float64 and complex128, else 0.
        equal_nan: Whether NaN equals NaN.
        check_device: Whether devices must agree; else both are compared on the CPU.
        check_dtype: Whether dtypes must agree; else both are promoted.
        check_layout: Whether layouts must agree.
        check_stride: Whether strides must agree.
        msg: The message on failure, or a function from the generated message to it.

    Raises:
        AssertionError: They are not close.
        TypeError: Values of these two types cannot be compared.
        ValueError: Only one of `rtol` and `atol` is given.

    Example:
        >>> import rushlight as torch
        >>> torch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-7]))
        >>> torch.testing.assert_close(1.0, 2.0)
        Traceback (most recent call last):
        AssertionError: Scalars are not close!
        <BLANKLINE>
        Expected 2.0 but got 1.0.
        Absolute difference: 1.0 (up to 1e-07 allowed)
        Relative difference: 0.5 (up to 1e-07 allowed)
    """
    if (rtol is None) != (atol is None):
        absent = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {absent}.")
    if rtol is not None and atol is not None and min(rtol, atol) < 0:
        raise ValueError(f"assert_close: tolerances must not be negative, got rtol={rtol}, atol={atol}.")
    compare = _Comparison(
        allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride
    )
    try:
        compare(actual, expected, "")
    except _Mismatch as mismatch:
        text = mismatch.message
        if mismatch.path:
            text += f"\n\nThe failure occurred for item {mismatch.path}"
        if mismatch.kind is AssertionError and msg is not None:
            text = msg(text) if callable(msg) else msg
        raise mismatch.kind(text) from None


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """`assert_close` as PyTorch 1.9 knew it: NaNs are equal, devices, dtypes and strides are not compared."""
    if not isinstance(actual, rushlight.Tensor):
        actual = rushlight.tensor(actual)
    if not isinstance(expected, rushlight.Tensor):
        expected = rushlight.tensor(expected, dtype=actual.dtype)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )


class _Comparison:
    def __init__(
        self,
        allow_subclasses: bool,
        rtol: float | None,
        atol: float | None,
        equal_nan: bool,
        check_device: bool,
        check_dtype: bool,
        check_layout: bool,
        check_stride: bool,
    ) -> None:
        self.allow_subclasses = allow_subclasses
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan
        self.check_dtype = check_dtype
        self.attributes = [("shape", lambda t: t.shape)]
        if check_layout:
            self.attributes.append(("layout", lambda t: t.layout))
        if check_device:
            self.attributes.append(("device", lambda t: t.device))
        if check_dtype:
            self.attributes.append(("dtype", lambda t: t.dtype))
        if check_stride:
            self.attributes.append(("stride()", lambda t: t.stride()))

    def __call__(self, actual: Any, expected: Any, path: str) -> None:
        if _both(actual, expected, Sequence) and not (isinstance(actual, str) or isinstance(expected, str)):
            self.sequences(actual, expected, path)
        elif _both(actual, expected, Mapping):
            self.mappings(actual, expected, path)
        elif actual is None or expected is None:
            if actual is not expected:
                raise _Mismatch(f"None mismatch: {actual} is not {expected}", path)
        elif _both(actual, expected, (bool, np.bool_)):
            if actual != expected:
                raise _Mismatch(f"Booleans mismatch: {actual} is not {expected}", path)
        elif _is_number(actual) and _is_number(expected):
            self.numbers(actual, expected, path)
        elif self.related(actual, expected, rushlight.Tensor) or self.related(actual, expected, np.ndarray):
            self.tensors(actual, expected, path)
        else:
            raise _Mismatch(
                f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.",
                path,
                TypeError,
            )

    def related(self, actual: Any, expected: Any, base: type) -> bool:
        if not _both(actual, expected, base):
            return False
        if not self.allow_subclasses:
            return type(actual) is type(expected)
        return isinstance(actual, type(expected)) or isinstance(expected, type(actual))

    def sequences(self, actual: Sequence[Any], expected: Sequence[Any], path: str) -> None:
        if len(actual) != len(expected):
            raise _Mismatch(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path)
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            self(a, e, f"{path}[{i}]")

    def mappings(self, actual: Mapping[Any, Any], expected: Mapping[Any, Any], path: str) -> None:
        missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        if missing or additional:
            raise _Mismatch(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing, key=str)}\n"
                f"Additional keys in the actual mapping: {sorted(additional, key=str)}",
                path,
            )
        for key in expected:
            self(actual[key], expected[key], f"{path}[{key!r}]")

    def numbers(self, actual: Any, expected: Any, path: str) -> None:
        if self.check_dtype and type(actual) is not type(expected):
            raise _Mismatch(f"The (d)types do not match: {type(actual)} != {type(expected)}.", path)
        kinds = {int: "int64", float: "float64", complex: "complex128"}
        dtypes = [next((name for kind, name in kinds.items() if isinstance(x, kind)), "") for x in (actual, expected)]
        self.values(np.asarray(actual), np.asarray(expected), dtypes, path)

    def tensors(self, actual: Any, expected: Any, path: str) -> None:
        if isinstance(actual, np.ndarray):
            actual, expected = rushlight.from_numpy(actual), rushlight.from_numpy(expected)
        for name, get in self.attributes:
            if get(actual) != get(expected):
                message = f"The values for attribute '{name}' do not match: {get(actual)} != {get(expected)}."
                raise _Mismatch(message, path)
        if actual.device.type == "meta" or expected.device.type == "meta":
            return
        dtypes = [str(t.dtype).rpartition(".")[2] for t in (actual, expected)]
        common = numpy_dtype(rushlight.promote_types(actual.dtype, expected.dtype))
        strided = [t if t.layout is rushlight.strided else t.to_dense() for t in (actual, expected)]
        arrays = [t.numpy(force=True).astype(common) for t in strided]
        self.values(arrays[0], arrays[1], dtypes, path)

    def values(self, actual: np.ndarray, expected: np.ndarray, dtypes: list[str], path: str) -> None:
        rtol, atol = self.rtol, self.atol
        if rtol is None or atol is None:
            rtol, atol = map(max, *(_TOLERANCES.get(name, (0.0, 0.0)) for name in dtypes))
        with np.errstate(all="ignore"):
            distance = _distance(actual, expected)
            size = np.abs(expected.astype(np.float64) if expected.dtype.kind in "iub" else expected)
            close = (actual == expected) | (np.isfinite(distance) & (distance <= atol + rtol * size.astype(np.float64)))
            if self.equal_nan:
                close |= np.isnan(actual) & np.isnan(expected)
            if close.all():
                return
            relative = np.where(close, 0, distance / size)
            distance = np.where(close, 0, distance)
        raise _Mismatch(_report(actual, expected, close, distance, relative, rtol, atol), path)


def _both(actual: Any, expected: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(actual, kind) and isinstance(expected, kind)


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex, np.number)) and not isinstance(x, bool)


def _distance(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Absolute difference: exact for integers, in the arrays' own precision otherwise."""
    if actual.dtype.kind in "iub" and expected.dtype.kind in "iub":
        a, e = actual.astype(np.int64), expected.astype(np.int64)
        return np.where(a > e, a - e, e - a).view(np.uint64)
    return np.asarray(np.abs(actual - expected))


def _report(
    actual: np.ndarray,
    expected: np.ndarray,
    close: np.ndarray,
    distance: np.ndarray,
    relative: np.ndarray,
    rtol: float,
    atol: float,
) -> str:
    exact = rtol == atol == 0
    verdict = "equal" if exact else "close"
    up_to = ["" if exact else f" (up to {tolerance} allowed)" for tolerance in (atol, rtol)]
    if actual.ndim == 0:
        return (
            f"Scalars are not {verdict}!\n\nExpected {expected.item()} but got {actual.item()}.\n"
            f"Absolute difference: {distance.item()}{up_to[0]}\nRelative difference: {relative.item()}{up_to[1]}"
        )
    lines = []
    for name, values, tolerance in (("absolute", distance, up_to[0]), ("relative", relative, up_to[1])):
        index = np.unravel_index(np.argmax(values), values.shape)
        where = tuple(int(i) for i in index)
        lines.append(f"Greatest {name} difference: {values[index].item()} at index {where}{tolerance}")
    wrong = close.size - np.count_nonzero(close)
    head = f"Tensor-likes are not {verdict}!\n\nMismatched elements: {wrong} / {close.size} ({wrong / close.size:.1%})"
    return "\n".join([head, *lines])
