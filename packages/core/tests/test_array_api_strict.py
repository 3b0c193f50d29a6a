"""rushlight.array_api against array-api-strict: every function of the standard 2024.12, in all of its dtypes."""

import inspect
import operator
import warnings
from itertools import product

import numpy as np
import pytest

import rushlight as torch
from rushlight import array_api as xp

strict = pytest.importorskip("array_api_strict")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    strict.set_array_api_strict_flags(api_version="2024.12")

BOOL = ["bool"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8"]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
DTYPES = BOOL + INTEGERS + FLOATS + COMPLEX
SHAPES = [(), (0,), (1,), (5,), (3, 4), (2, 0, 3), (2, 3, 3)]
PAIRS = [((), ()), ((3,), ()), ((2, 3), (3,)), ((2, 1), (1, 3)), ((0, 3), (1, 3)), ((2, 3), (2, 3))]
TOLERANCE = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12}


def values(dtype, shape, seed=0):
    """Numbers of either sign, among them equal ones, zeros, and in long float arrays infinities and NaN."""
    random = np.random.default_rng([seed, *shape])
    kind = np.dtype(dtype).kind
    if kind in "biu":
        return np.asarray(random.integers(-4 if kind == "i" else 0, 2 if kind == "b" else 5, shape)).astype(dtype)
    x = np.asarray(random.choice([-2.5, -1, -0.5, 0, 0.25, 0.75, 1, 1.5, 3], shape))
    if kind == "c":
        return np.asarray(x + 1j * random.choice([-1.5, -0.5, 0, 0.5, 2], shape)).astype(dtype)
    if x.size > 10:
        x.flat[random.choice(x.size, 4, replace=False)] = [np.nan, np.inf, -np.inf, -0.0]
    return x.astype(dtype)


def positive(dtype, shape):
    """Numbers above zero."""
    x = values(dtype, shape, 1)
    return np.where(x.real > 0, x, 1).astype(dtype)


def to(library, value):
    """A NumPy array, or a sequence with such, for a library; a dtype by its name."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy()) if library is xp else strict.asarray(value.copy())
    if isinstance(value, np.dtype):
        return getattr(library, value.name)
    return type(value)(to(library, each) for each in value) if isinstance(value, (list, tuple)) else value


def to_numpy(array):
    return array.resolve_conj().numpy() if isinstance(array, torch.Tensor) else np.from_dlpack(array)


def agree(result, expected):
    """Asserts equal structure, dtypes (sums of uint8 are int64) and shapes, and close elements."""
    if isinstance(expected, (tuple, list)):
        assert getattr(result, "_fields", None) == getattr(expected, "_fields", None)
        assert len(result) == len(expected)
        for each, other in zip(result, expected, strict=True):
            agree(each, other)
    elif isinstance(expected, type(strict.asarray(0))):
        result, expected = to_numpy(result), to_numpy(expected)
        assert result.dtype.name == expected.dtype.name.replace("uint64", "int64")
        assert result.shape == expected.shape
        tolerance = TOLERANCE.get(result.dtype.name, 0)
        np.testing.assert_allclose(result, expected.astype(result.dtype), tolerance, tolerance)
    else:
        assert result == expected


def compare(function, *arguments):
    """Asserts that a function of a namespace gives the same in both.

    Returns:
        Whether the standard has it for these arguments.
    """
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = function(strict, *to(strict, arguments))
    except (AttributeError, TypeError, ValueError, IndexError, OverflowError):
        return False
    agree(function(xp, *to(xp, arguments)), expected)
    return True


ONE = [
    *["abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert", "ceil", "conj", "cos", "cosh", "exp"],
    *["expm1", "floor", "imag", "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10", "logical_not"],
    *["negative", "positive", "real", "reciprocal", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan"],
    *["tanh", "trunc"],
]
TWO = [
    *["add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor"],
    *["copysign", "divide", "equal", "floor_divide", "greater", "greater_equal", "hypot", "less", "less_equal"],
    *["logaddexp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nextafter"],
    *["not_equal", "pow", "remainder", "subtract"],
]
UNSPECIFIED = {"floor_divide", "remainder", "pow", "bitwise_left_shift", "bitwise_right_shift"}
"""Functions that give integers anything beside zero or negative ones."""
ORDER = {"greater", "greater_equal", "less", "less_equal", "maximum", "minimum", "ge", "gt", "le", "lt"}
"""What the standard lacks for complex numbers, though array-api-strict does not always say so."""


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_array(name):
    assert sum(compare(lambda xp, x: getattr(xp, name)(x), values(*case)) for case in product(DTYPES, SHAPES))


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_arrays(name):
    count = 0
    for one, other, (shape, second) in product(DTYPES, DTYPES, PAIRS):
        careful = (name in UNSPECIFIED and other in INTEGERS) or (name == "divide" and {one, other} & set(COMPLEX))
        y = positive(other, second) if careful else values(other, second, 1)
        count += compare(lambda xp, x, y: getattr(xp, name)(x, y), values(one, shape), y)
    assert count


@pytest.mark.parametrize("name", TWO)
def test_numbers_beside_arrays(name):
    for dtype, number in product(DTYPES, (True, 2, 0.5, 1 + 2j)):
        if name in ORDER and (dtype in COMPLEX or number == 1 + 2j):
            continue
        x = positive(dtype, (5,))
        compare(lambda xp, x, number: getattr(xp, name)(x, number), x, number)
        compare(lambda xp, x, number: getattr(xp, name)(number, x), x, number)


AXIS = (None, 0, -1, 1)
AXES = (*AXIS, (0,), (0, -1), ())
REDUCTIONS = ["all", "any", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    count = 0
    for dtype, shape, axis, keep in product(DTYPES, SHAPES, AXES, (False, True)):
        x = values(dtype, shape)
        count += compare(lambda xp, x, axis, keep: getattr(xp, name)(x, axis=axis, keepdims=keep), x, axis, keep)
    assert count


def test_options_of_reductions():
    for name, correction in product(("std", "var"), (0, 1, 0.5)):
        x = values("float64", (3, 3))
        assert compare(lambda xp, x, name, c: getattr(xp, name)(x, axis=0, correction=c), x, name, correction)
    for name, dtype, other in product(("sum", "prod"), DTYPES[1:], DTYPES[1:]):
        x = values(dtype, (3, 3))
        if np.can_cast(dtype, other):
            assert compare(
                lambda xp, x, name, dtype: getattr(xp, name)(x, axis=0, dtype=dtype), x, name, np.dtype(other)
            )


def _dtype(xp, name):
    return None if name is None else getattr(xp, name)


def _turned(xp, x):
    return xp.matrix_transpose(x) if x.ndim > 1 else x


def _finite(xp, x):
    return xp.where(xp.isfinite(x), x, xp.ones_like(x))


def _flat(xp, x):
    return xp.reshape(x, (-1,))


def _falling(xp, x):
    """A vector in falling order, and the indices that sort it."""
    x = xp.flip(xp.sort(_flat(xp, x)))
    return x, xp.arange(x.shape[0] - 1, -1, -1)


def _cumulative(name):
    return [
        lambda xp, x, a=a, i=i, t=t: getattr(xp, name)(x, axis=a, include_initial=i, dtype=_dtype(xp, t))
        for a, i, t in product(AXIS, (False, True), (None, "float64"))
    ]


INF = float("inf")
BOUNDS = ((None, None), (1, None), (None, 2), (0, 3), (0.5, 2.5), (3, 1))
SHIFTS = ((1, None), (-2, 0), (7, -1), ((1, 2), (0, -1)))
# Calls by function; each is made for all dtypes and shapes, but where the standard does not take them.
CALLS = {
    "argmax": [lambda xp, x, a=a, k=k: xp.argmax(x, axis=a, keepdims=k) for a, k in product(AXIS, (False, True))],
    "argmin": [lambda xp, x, a=a, k=k: xp.argmin(x, axis=a, keepdims=k) for a, k in product(AXIS, (False, True))],
    "argsort": [lambda xp, x, a=a, d=d: xp.argsort(x, axis=a, descending=d) for a in (0, -1) for d in (False, True)],
    "sort": [lambda xp, x, a=a, d=d: xp.sort(x, axis=a, descending=d) for a, d in product((-1, 0), (False, True))],
    "cumulative_sum": _cumulative("cumulative_sum"),
    "cumulative_prod": _cumulative("cumulative_prod"),
    "diff": [lambda xp, x, a=a, n=n: xp.diff(_finite(xp, x), axis=a, n=n) for a, n in product((-1, 0), (0, 1, 2, 7))]
    + [lambda xp, x: xp.diff(_finite(xp, x), prepend=x, append=x[..., :1])],
    "nonzero": [lambda xp, x: xp.nonzero(x)],
    "unique_all": [lambda xp, x: xp.unique_all(_finite(xp, x))],
    "unique_counts": [lambda xp, x: xp.unique_counts(x)],
    "unique_inverse": [lambda xp, x: xp.unique_inverse(_finite(xp, x))],
    "unique_values": [lambda xp, x: xp.unique_values(x)],
    "searchsorted": [lambda xp, x, s=s: xp.searchsorted(_falling(xp, x)[0][::-1], x, side=s) for s in ("left", "right")]
    + [lambda xp, x: xp.searchsorted(_falling(xp, x)[0], x, sorter=_falling(xp, x)[1])],
    "clip": [lambda xp, x, low=low, high=high: xp.clip(x, low, high) for low, high in BOUNDS]
    + [lambda xp, x: xp.clip(x, xp.zeros_like(x), max=xp.ones_like(x)), lambda xp, x: xp.clip(x, min=x, max=2)],
    "where": [
        lambda xp, x: xp.where(x != x, x, xp.zeros_like(x)),
        lambda xp, x: xp.where(xp.asarray(True), x, 1),
        lambda xp, x: xp.where(xp.asarray(False), 1, x),
        lambda xp, x: xp.where(x == x, x, xp.zeros((2, 1, 1), dtype=x.dtype)),
    ],
    "concat": [lambda xp, x, a=a: xp.concat([x, x], axis=a) for a in AXIS]
    + [lambda xp, x: xp.concat([x, x[:1, ...]]), lambda xp, x: xp.concat((x, x[..., :1]), axis=-1)],
    "stack": [lambda xp, x, a=a: xp.stack([x, x], axis=a) for a in (0, -1, 1)],
    "unstack": [lambda xp, x, a=a: xp.unstack(x, axis=a) for a in (0, -1)],
    "expand_dims": [lambda xp, x, a=a: xp.expand_dims(x, axis=a) for a in (0, -1, 1)],
    "squeeze": [lambda xp, x, a=a: xp.squeeze(x, axis=a) for a in (0, -1, (0,), ())]
    + [lambda xp, x: xp.squeeze(x[None, ..., None], axis=(0, -1))],
    "flip": [lambda xp, x, a=a: xp.flip(x, axis=a) for a in (None, 0, -1, (0, -1))],
    "roll": [lambda xp, x, s=s, a=a: xp.roll(x, s, axis=a) for s, a in SHIFTS]
    + [lambda xp, x: xp.roll(x, 1, axis=(0, -1))],
    "moveaxis": [lambda xp, x, s=s, d=d: xp.moveaxis(x, s, d) for s, d in ((0, -1), (-1, 0), ((0, 1), (-1, 0)))],
    "permute_dims": [lambda xp, x: xp.permute_dims(x, tuple(reversed(range(x.ndim))))],
    "matrix_transpose": [lambda xp, x: xp.matrix_transpose(x)],
    "reshape": [lambda xp, x, s=s: xp.reshape(x, s) for s in ((-1,), (1, -1), (4, 3), (0,), (3, -1))]
    + [lambda xp, x, c=c: xp.reshape(x, (-1,), copy=c) for c in (True, False)],
    "repeat": [lambda xp, x, a=a, r=r: xp.repeat(x, r, axis=a) for a, r in product(AXIS, (0, 2))]
    + [lambda xp, x: xp.repeat(x, xp.arange(x.shape[0]), axis=0)],
    "tile": [lambda xp, x, r=r: xp.tile(x, r) for r in ((2,), (1, 2), (2, 0), (2, 1, 1, 3), ())],
    "broadcast_to": [lambda xp, x, s=s: xp.broadcast_to(x, s) for s in ((2, 3, 3), (5, 5), (1,), (2, 3, 4), ())],
    "broadcast_arrays": [lambda xp, x: xp.broadcast_arrays(x, x[..., None]), lambda xp, x: xp.broadcast_arrays(x)],
    "take": [
        lambda xp, x, i=i, a=a: xp.take(x, xp.asarray(i, dtype=xp.int64), axis=a)
        for i, a in product(([0], [], [0, 0], [-1]), AXIS)
    ],
    "take_along_axis": [lambda xp, x, a=a: xp.take_along_axis(x, xp.argsort(x, axis=a), axis=a) for a in (0, -1)],
    "tril": [lambda xp, x, k=k: xp.tril(x, k=k) for k in (0, 1, -1, 9, -9)],
    "triu": [lambda xp, x, k=k: xp.triu(x, k=k) for k in (0, 1, -1, 9, -9)],
    "meshgrid": [lambda xp, x, i=i: xp.meshgrid(_flat(xp, x), _flat(xp, x)[:2], indexing=i) for i in ("xy", "ij")]
    + [lambda xp, x: xp.meshgrid(*[_flat(xp, x)[:2]] * 3), lambda xp, x: xp.meshgrid(_flat(xp, x))],
    "astype": [lambda xp, x, t=t: xp.astype(xp.clip(_finite(xp, x), 0, 9), getattr(xp, t)) for t in DTYPES]
    + [lambda xp, x, t=t: xp.astype(_finite(xp, x), getattr(xp, t)) for t in DTYPES[-2:]],
    "zeros_like": [lambda xp, x, t=t: xp.zeros_like(x, dtype=_dtype(xp, t)) for t in (None, *DTYPES)],
    "ones_like": [lambda xp, x, t=t: xp.ones_like(x, dtype=_dtype(xp, t)) for t in (None, *DTYPES)],
    "full_like": [lambda xp, x, v=v: xp.full_like(x, v) for v in (True, 1)],
    "empty_like": [lambda xp, x, t=t: xp.zeros_like(xp.empty_like(x, dtype=_dtype(xp, t))) for t in (None, *DTYPES)],
    "asarray": [lambda xp, x, c=c: xp.asarray(x, copy=c) for c in (None, True, False)]
    + [lambda xp, x, t=t: xp.asarray(x, dtype=_dtype(xp, t)) for t in ("float64", "complex128")],
    "from_dlpack": [lambda xp, x: xp.from_dlpack(x)],
    "can_cast": [lambda xp, x: xp.can_cast(x, x.dtype)],
    "matmul": [lambda xp, x: xp.matmul(x, _turned(xp, x)), lambda xp, x: xp.matmul(x, x)],
    "vecdot": [lambda xp, x, a=a: xp.vecdot(x, x, axis=a) for a in (-1,)]
    + [lambda xp, x: xp.vecdot(x, x[:1, ...], axis=-1)],
    "tensordot": [
        lambda xp, x, a=a: xp.tensordot(x, x, axes=a) for a in (0, 1, ((0,), (0,)), ((0, 1), (0, 1)), ((-1,), (-1,)))
    ],
    "linalg.cross": [lambda xp, x, a=a: xp.linalg.cross(x, x + x, axis=a) for a in (-1, 0, 1)],
    "linalg.diagonal": [lambda xp, x, o=o: xp.linalg.diagonal(x, offset=o) for o in (0, 1, -1, 9, -9)],
    "linalg.trace": [lambda xp, x, o=o: xp.linalg.trace(x, offset=o) for o in (0, 1, -1, 9)]
    + [lambda xp, x: xp.linalg.trace(x, dtype=xp.complex128)],
    "linalg.outer": [lambda xp, x: xp.linalg.outer(x, x[:2])],
    "linalg.matmul": [lambda xp, x: xp.linalg.matmul(x, _turned(xp, x))],
    "linalg.matrix_transpose": [lambda xp, x: xp.linalg.matrix_transpose(x)],
    "linalg.tensordot": [lambda xp, x: xp.linalg.tensordot(x, x, axes=((0,), (0,)))],
    "linalg.vecdot": [lambda xp, x: xp.linalg.vecdot(x, x)],
    "linalg.vector_norm": [
        lambda xp, x, o=o, a=a, k=k: xp.linalg.vector_norm(_finite(xp, x), ord=o, axis=a, keepdims=k)
        for o, a, k in product((2, 1, 0, 3, 0.5, INF, -INF), (None, 0, -1, (0, 1)), (False, True))
    ],
    "fft.fftshift": [lambda xp, x, a=a: xp.fft.fftshift(x, axes=a) for a in (None, 0, (0, 1), -1)],
    "fft.ifftshift": [lambda xp, x, a=a: xp.fft.ifftshift(x, axes=a) for a in (None, 0, (0, 1), -1)],
}  # fmt: skip


ALONG = {"argsort", "cumulative_prod", "cumulative_sum", "sort", "squeeze", "take", "take_along_axis"}
"""Functions of arrays with dimensions."""


@pytest.mark.parametrize("name", CALLS)
def test_function(name):
    shapes = SHAPES[1:] if name in ALONG else SHAPES
    if name == "linalg.vector_norm":  # the largest of no elements is nothing
        shapes = [shape for shape in SHAPES if 0 not in shape]
    assert sum(compare(call, values(dtype, shape)) for call, dtype, shape in product(CALLS[name], DTYPES, shapes))


TRANSFORMS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn"]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    count = 0
    places = [{}, {"axis": 0}, {"n": 3}, {"n": 9}]
    if name.endswith("n"):
        places = [{}, {"axes": (0,)}, {"axes": (0, -1)}, {"s": (2,), "axes": (-1,)}]
    for dtype, shape, place, norm in product(DTYPES, [(3, 4), (2, 3, 3)], places, ("backward", "ortho", "forward")):
        x = np.nan_to_num(values(dtype, shape), posinf=1, neginf=2)
        count += compare(lambda xp, x, options: getattr(xp.fft, name)(x, **options), x, place | {"norm": norm})
    assert count


def test_frequencies():
    for n, name in product((1, 4, 5), ("fftfreq", "rfftfreq")):
        assert compare(lambda xp, n, name: getattr(xp.fft, name)(n, d=0.5, dtype=xp.float64), n, name)


def test_creation():
    for dtype in map(np.dtype, DTYPES):
        for shape in (3, (), (2, 0), (2, 3)):
            for name in ("zeros", "ones"):
                assert compare(lambda xp, name, *a: getattr(xp, name)(a[0], dtype=a[1]), name, shape, dtype)
            assert compare(lambda xp, *a: xp.zeros_like(xp.empty(a[0], dtype=a[1])), shape, dtype)
            assert compare(lambda xp, *a: xp.full(a[0], 1, dtype=a[1]), shape, dtype)
        for n, m, k in ((0, None, 0), (3, None, 1), (2, 4, -1), (4, 2, 2), (3, 0, 0), (2, 2, 9)):
            assert compare(lambda xp, n, m, k, dtype: xp.eye(n, m, k=k, dtype=dtype), n, m, k, dtype)
    for dtype, endpoint in product(map(np.dtype, FLOATS + COMPLEX), (True, False)):
        for where in ((0, 1, 5), (3, -2, 4), (1, 1, 3), (0, 1, 1), (0, 1, 0), (-1e3, 1e3, 50)):
            assert compare(lambda xp, a, e, dtype: xp.linspace(*a, dtype=dtype, endpoint=e), where, endpoint, dtype)
    for dtype in map(np.dtype, INTEGERS + FLOATS):
        for arguments in ((0,), (5,), (-3,), (2, 7), (7, 2), (7, 2, -2), (0, 5, 2), (5, 5)):
            assert compare(lambda xp, a, dtype: xp.arange(*a, dtype=dtype), arguments, dtype)
    for value, dtype in product((True, 1, [1, 2], [[True], [False]], []), map(np.dtype, DTYPES)):
        assert compare(lambda xp, value, dtype: xp.asarray(value, dtype=dtype), value, dtype)


def named(dtype):
    return str(dtype).rpartition(".")[2]


def test_promotion():
    for one, other in product(DTYPES, DTYPES):
        dtypes = getattr(xp, one), getattr(xp, other)
        try:
            expected = strict.result_type(getattr(strict, one), getattr(strict, other))
        except TypeError:  # not in the standard
            continue
        assert named(xp.result_type(*dtypes)) == named(expected)
        assert xp.can_cast(*dtypes) == strict.can_cast(getattr(strict, one), getattr(strict, other))
        for shapes in (((), (2,)), ((2,), ()), ((), ())):
            arrays = [xp.ones(shape, dtype=dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
            assert named(xp.result_type(*arrays)) == named(expected)


def test_kinds_and_limits():
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
    for dtype, kind in product(DTYPES, kinds):
        assert xp.isdtype(getattr(xp, dtype), kind) == strict.isdtype(getattr(strict, dtype), kind)
    for dtype in INTEGERS:
        ours, theirs = xp.iinfo(getattr(xp, dtype)), strict.iinfo(getattr(strict, dtype))
        assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)
    for dtype in FLOATS + COMPLEX:
        ours, theirs = xp.finfo(getattr(xp, dtype)), strict.finfo(getattr(strict, dtype))
        assert named(ours.dtype) == named(theirs.dtype)
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(ours, field) == getattr(theirs, field)


OPERATORS = ["add", "and_", "eq", "floordiv", "ge", "gt", "le", "lshift", "lt", "matmul", "mod", "mul", "ne", "or_"]
OPERATORS += ["pow", "rshift", "sub", "truediv", "xor"]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    count = 0
    change = getattr(operator, "i" + name.strip("_"), None)
    for dtype, shape in product(DTYPES, ((3, 3), (5,), ())):
        x, y = values(dtype, shape), positive(dtype, shape)
        count += compare(lambda _, x, y: getattr(operator, name)(x, y), x, y)
        if change and name != "matmul":
            compare(lambda _, x, y: change(x, y), x, y)
        for number in (True, 2, 0.5, 1j):
            if name in ORDER and (dtype in COMPLEX or number == 1j):
                continue
            compare(lambda _, x, number: getattr(operator, name)(x, number), y, number)
            compare(lambda _, x, number: getattr(operator, name)(number, x), y, number)
    assert count


def test_operators_of_one_array():
    for dtype, name in product(DTYPES, ("abs", "invert", "neg", "pos")):
        compare(lambda _, x, name: getattr(operator, name)(x), values(dtype, (3, 4)), name)
    for dtype, convert, number in product(DTYPES, (bool, int, float, complex, operator.index), (0, 1)):
        compare(lambda _, x, convert: convert(x), np.asarray(number).astype(dtype), convert)


KEYS = [
    *[(0,), (-1,), (slice(None),), (slice(1, 2),), (slice(None, None, 2),), (slice(None, None, -1),), (...,), (..., 0)],
    *[(0, ...), (None,), (None, ...), (..., None, 0), (0, 0), (0, None, 0), (slice(0, 1), slice(None), 0)],
    *[(slice(3, 1),), (slice(-2, None),), (0, slice(None)), (..., slice(None, 1)), (slice(2, 0, -1),), (slice(0, 0),)],
    *[(slice(-1, -4, -2), ...), (slice(0, 3, 3),), ()],
]


def assigned(xp, x, key):
    x[key] = xp.asarray(1, dtype=x.dtype)
    return x


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indices(key):
    count = 0
    for dtype, shape in product(("float32", "int64", "bool"), [(3, 4), (2, 3, 3), (5,), ()]):
        for each in (key, key[0]) if len(key) == 1 else (key,):
            count += compare(lambda _, x, key: x[key], values(dtype, shape), each)
            compare(assigned, values(dtype, shape), each)
    assert count


def test_indices_of_arrays():
    for dtype, shape in product(DTYPES, [(3, 4), (2, 3, 3), (5,)]):
        x = values(dtype, shape)
        for index in ([0, 1], [-1], [[0, 1], [1, 0]], []):
            key = np.asarray(index, np.int64)
            assert compare(lambda _, x, key: x[(key,) * x.ndim], x, key)
            assert compare(lambda _, x, key: x[(key,) + (0,) * (x.ndim - 1)], x, key)
        mask = values("bool", shape, 2)
        assert compare(lambda _, x, mask: x[mask], x, mask)
        assert compare(assigned, x, mask)


ERRORS = {
    ValueError: [
        lambda: xp.squeeze(xp.ones((2, 1)), axis=0),
        lambda: xp.take(xp.ones((2, 2)), xp.asarray([0])),
        lambda: xp.cumulative_sum(xp.ones((2, 2))),
        lambda: xp.cumulative_prod(xp.ones((2, 2))),
        lambda: xp.asarray([1], copy=False),
        lambda: xp.asarray(xp.ones(2), dtype=xp.int8, copy=False),
        lambda: xp.reshape(xp.ones((2, 2)).T, (4,), copy=False),
        lambda: xp.linalg.cross(xp.ones(2), xp.ones(2)),
        lambda: xp.nonzero(xp.ones(())),
        lambda: xp.ones(2).__array_namespace__(api_version="1999.01"),
        lambda: xp.result_type(1, 2.0),
        lambda: xp.isdtype(xp.bool, "unknown"),
    ],
    IndexError: [
        lambda: xp.expand_dims(xp.ones(2), axis=3),
        lambda: xp.expand_dims(xp.ones(2), axis=-4),
        lambda: xp.ones(2)[0, 0],
    ],
    TypeError: [
        lambda: operator.index(xp.ones(())),
        lambda: xp.add(1, 2),
    ],
    Exception: [
        lambda: xp.add(xp.ones(2), xp.ones(3)),
        lambda: xp.broadcast_to(xp.ones(2), (3,)),
        lambda: xp.vecdot(xp.ones(2), xp.ones(3)),
        lambda: xp.matmul(xp.ones(()), xp.ones(2)),
        lambda: xp.matmul(xp.ones((2, 3)), xp.ones((2, 3))),
        lambda: xp.concat([xp.ones((2, 2)), xp.ones((3, 3))], axis=0),
        lambda: xp.stack([xp.ones(2), xp.ones(3)]),
        lambda: xp.sum(xp.ones(2), axis=1),
        lambda: xp.flip(xp.ones(2), axis=1),
        lambda: xp.permute_dims(xp.ones((2, 2)), (0, 0)),
        lambda: xp.reshape(xp.ones(4), (3,)),
        lambda: float(xp.asarray(1 + 2j)),
        lambda: int(xp.asarray(1 + 2j)),
        lambda: bool(xp.ones(2)),
        lambda: xp.astype(xp.ones(2), "float32"),
    ],
}


@pytest.mark.parametrize(("kind", "call"), [(kind, call) for kind, calls in ERRORS.items() for call in calls])
def test_errors(kind, call):
    with pytest.raises(kind):
        call()


def test_names():
    standard = {name for name in strict.__all__ if name.islower() and "strict_flags" not in name} - {"__version__"}
    absent = {"uint16", "uint32", "uint64"} | {"broadcast_shapes", "isin"}  # the latter are of 2025.12
    assert standard - set(dir(xp)) <= absent
    assert set(strict.fft.__all__) <= set(dir(xp.fft))
    tested = {*ONE, *TWO, *REDUCTIONS, *CALLS} | {"arange", "empty", "eye", "full", "linspace", "ones", "zeros"}
    tested |= {"__array_namespace_info__", "finfo", "iinfo", "isdtype", "result_type"}
    assert {name for name in standard if inspect.isfunction(getattr(strict, name))} <= tested | absent
