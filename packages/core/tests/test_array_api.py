"""rushlight.array_api against NumPy's main namespace, which follows the same standard."""

import inspect

import numpy as np
import pytest

import rushlight as torch
from rushlight import array_api as xp

BOOL = ("bool",)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
NUMERIC = REAL + COMPLEX
ALL = BOOL + NUMERIC
SHAPES = [(), (0,), (3,), (2, 3), (2, 0, 3)]
TOLERANCE = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12}


def values(dtype, shape=(2, 3), seed=0, special=True):
    """An array of any numbers, infinities and NaN among the real floating ones."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        return random.integers(0 if dtype == "uint8" else -4, 5, shape).astype(dtype)
    a = np.asarray(random.uniform(-3, 3, shape), dtype)
    if dtype in COMPLEX:
        a = np.asarray(a + 1j * random.uniform(-3, 3, shape), dtype)
    elif special and a.size > 2:
        a.flat[:3] = random.choice([np.inf, -np.inf, np.nan, -0.0, 0.0, 1.5, 2.5], 3)
    return a


def ours(value):
    """The same argument for rushlight."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, (list, tuple)):
        return type(value)(map(ours, value))
    if isinstance(value, np.dtype):
        return getattr(torch, value.name)
    return value


def check(name, *args, np_name=None, **kwargs):
    """Asserts that both namespaces return the same."""
    with np.errstate(all="ignore"):
        expected = getattr(np, np_name or name)(*args, **kwargs)
    compare(getattr(xp, name)(*ours(args), **{key: ours(value) for key, value in kwargs.items()}), expected)


def compare(result, expected):
    if isinstance(expected, (tuple, list)):
        assert len(result) == len(expected)
        for r, e in zip(result, expected, strict=True):
            compare(r, e)
        return
    assert isinstance(result, torch.Tensor)
    expected = np.asarray(expected)
    assert str(result.dtype) == f"torch.{expected.dtype.name.replace('uint64', 'int64')}"
    tolerance = TOLERANCE.get(expected.dtype.name, 0)
    np.testing.assert_allclose(result.numpy(), expected, tolerance, tolerance, strict=expected.dtype != np.uint64)


INEXACT = FLOATS + COMPLEX
UNARY = {
    **dict.fromkeys(["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1"], INEXACT),
    **dict.fromkeys(["log", "log1p", "log2", "log10", "reciprocal", "sin", "sinh", "sqrt", "tan", "tanh"], INEXACT),
    **dict.fromkeys(["abs", "conj", "isfinite", "isinf", "isnan", "negative", "positive", "real", "round"], NUMERIC),
    **dict.fromkeys(["sign", "square"], NUMERIC),
    **dict.fromkeys(["ceil", "floor", "trunc"], REAL),
    "bitwise_invert": BOOL + INTEGERS,
    "imag": COMPLEX,
    "logical_not": BOOL,
    "signbit": FLOATS,
}


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name, dtypes in UNARY.items() for dtype in dtypes])
def test_unary(name, dtype):
    for shape in SHAPES:
        check(name, values(dtype, shape))


BINARY = {
    **dict.fromkeys(["add", "subtract", "multiply", "maximum", "minimum"], REAL),
    **dict.fromkeys(["less", "less_equal", "greater", "greater_equal"], REAL),
    **dict.fromkeys(["equal", "not_equal"], ALL),
    **dict.fromkeys(["atan2", "copysign", "divide", "hypot", "logaddexp", "floor_divide", "remainder", "pow"], FLOATS),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], BOOL + INTEGERS),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], BOOL),
}


@pytest.mark.parametrize(("name", "dtypes"), BINARY.items(), ids=BINARY)
def test_binary(name, dtypes):
    for first in dtypes:
        for second in dtypes:
            if {first, second} & {"bool"} and first != second:
                continue  # mixed kinds are not in the standard
            if "uint8" in (first, second) and {first, second} & set(FLOATS):
                continue
            if (first in INTEGERS) != (second in INTEGERS) or (first in COMPLEX) != (second in COMPLEX):
                continue
            for a, b in (((2, 3), (2, 3)), ((3,), ()), ((), ()), ((2, 1), (3,)), ((0, 3), (1, 3))):
                check(name, values(first, a), values(second, b, 1))


@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division(name, dtype):
    check(name, values(dtype), np.where(values(dtype, seed=1) == 0, 1, values(dtype, seed=1)).astype(dtype))


@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(name, dtype):
    check(name, values(dtype), np.abs(values(dtype, seed=1)).astype(dtype))


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "pow", "equal"])
def test_complex_binary(name, dtype):
    check(name, values(dtype), values(dtype, (3,), 1))
    check(name, values(dtype), values("float32", (3,), 1, special=False))


@pytest.mark.parametrize("dtype", NUMERIC)
def test_numbers_take_the_dtype_of_the_array(dtype):
    for number in (2, 2.5, 2j):
        if (dtype in INTEGERS and number != 2) or (dtype in FLOATS and number == 2j):
            continue
        check("add", values(dtype), number)
        check("multiply", number, values(dtype, ()))
        check("where", values("bool"), values(dtype), number)
        check("equal", values(dtype), number)


def test_operands_without_arrays():
    with pytest.raises(TypeError, match="at least one operand must be an array"):
        xp.add(1, 2)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "min", "all", "any", "count_nonzero"])
@pytest.mark.parametrize("dtype", ALL)
def test_reductions(name, dtype):
    kinds = {"mean": FLOATS + COMPLEX, "var": FLOATS, "std": FLOATS, "max": REAL, "min": REAL, "sum": NUMERIC}
    if dtype not in kinds.get(name, NUMERIC if name == "prod" else ALL):
        pytest.skip("not in the standard")
    for shape in SHAPES:
        for axis in (None, 0, -1, (0, -1), (), (0,)):
            axes = axis if isinstance(axis, tuple) else () if axis is None else (axis,)
            if len(axes) > len(shape) or (name in ("max", "min") and 0 in shape):
                continue
            for keepdims in (False, True):
                if name in ("mean", "var", "std") and 0 in shape:
                    continue  # NumPy warns
                check(name, values(dtype, shape, special=False), axis=axis, keepdims=keepdims)
    if name in ("var", "std"):
        check(name, values(dtype, special=False), axis=1, correction=1.0)
    if name in ("sum", "prod"):
        check(name, values(dtype, special=False), dtype=np.dtype("complex128" if dtype in COMPLEX else "float64"))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", REAL)
def test_argmax(name, dtype):
    for axis in (None, 0, -1):
        for keepdims in (False, True):
            check(name, values(dtype), axis=axis, keepdims=keepdims)
    check(name, values(dtype, ()))


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("dtype", NUMERIC)
def test_cumulative(name, dtype):
    for include in (False, True):
        check(name, values(dtype, special=False), axis=1, include_initial=include)
        check(name, values(dtype, (3,), special=False), include_initial=include)
    check(name, values(dtype, special=False), axis=0, dtype=np.dtype("complex128"))
    with pytest.raises(ValueError, match="axis is needed"):
        getattr(xp, name)(xp.ones((2, 2)))


@pytest.mark.parametrize("dtype", REAL)
def test_sorting(dtype):
    for shape in ((0,), (7,), (3, 5)):
        a = values(dtype, shape)
        for axis in (0, -1):
            check("sort", a, axis=axis, stable=True)
            check("argsort", a, axis=axis, stable=True)
            order = xp.argsort(ours(a), axis=axis, descending=True)
            compare(xp.sort(ours(a), axis=axis, descending=True), np.take_along_axis(a, order.numpy(), axis))
    ties = torch.tensor([1, 0, 1, 0], dtype=getattr(torch, dtype))
    assert xp.argsort(ties, descending=True).tolist() == [0, 2, 1, 3]
    a = np.sort(values(dtype, (6,), special=False))
    for side in ("left", "right"):
        check("searchsorted", a, values(dtype, (2, 2), 3, special=False), side=side)
    shuffled = np.array([3, 0, 2, 1, 5, 4])
    check("searchsorted", a[shuffled], a[:2], sorter=np.argsort(shuffled))


@pytest.mark.parametrize("dtype", ALL)
def test_sets_and_searches(dtype):
    for shape in ((0,), (7,), (3, 5), ()):
        a = values(dtype, shape, special=False)
        check("unique_values", a, np_name="unique")
        for name in ("unique_counts", "unique_inverse", "unique_all"):
            check(name, a)
        if shape:
            check("nonzero", a)
    assert xp.unique_all(torch.tensor([3, 1, 3]))._fields == ("values", "indices", "inverse_indices", "counts")
    with pytest.raises(ValueError, match="without dimensions"):
        xp.nonzero(xp.asarray(1))


def test_every_nan_is_different():
    result = xp.unique_all(torch.tensor([float("nan"), 1.0, float("nan")]))
    assert result.counts.tolist() == [1, 1, 1]
    assert sorted(result.indices.tolist()) == [0, 1, 2]


@pytest.mark.parametrize("dtype", ALL)
def test_manipulation(dtype):
    a, b = values(dtype, (2, 3)), values(dtype, (2, 3), 1)
    check("concat", [a, b])
    check("concat", [a, b[:, :1]], axis=1)
    check("concat", [a, b[0]], axis=None)
    check("stack", [a, b], axis=-1)
    check("unstack", a, axis=1)
    check("expand_dims", a, axis=-1)
    check("squeeze", a[None, :, None], axis=(0, 2))
    check("flip", a)
    check("flip", a, axis=(0,))
    check("roll", a, 2)
    check("roll", a, (1, -1), axis=(0, 1))
    check("permute_dims", a, (1, 0))
    check("moveaxis", a, 0, -1)
    check("matrix_transpose", a)
    check("reshape", a, (3, -1))
    check("reshape", a, (6,), copy=True)
    check("broadcast_to", a, (4, 2, 3))
    check("broadcast_arrays", a, b[:1])
    check("tile", a, (2, 1, 2))
    check("repeat", a, 2)
    check("repeat", a, np.array([1, 2], np.int8), axis=0)
    check("take", a, np.array([2, 0]), axis=1)
    check("take_along_axis", a, np.array([[2, 0], [1, 1]]), axis=1)
    check("tril", a, k=1)
    check("triu", a)
    check("meshgrid", a[0], b[:, 0])
    check("meshgrid", a[0], b[:, 0], indexing="ij")
    if dtype != "bool":
        check("diff", a)
        check("diff", a, axis=0, prepend=b[:1], append=b)
        check("diff", a, n=2)
        check("diff", a, n=4)


def test_manipulation_errors():
    with pytest.raises(ValueError, match="squeeze: only dimensions of size 1"):
        xp.squeeze(xp.ones((2, 1)), 0)
    with pytest.raises(ValueError, match="take: axis is needed"):
        xp.take(xp.ones((2, 2)), xp.asarray([0]))
    with pytest.raises(ValueError, match="matrices have two dimensions"):
        xp.matrix_transpose(xp.ones(2))
    with pytest.raises(ValueError, match="copy=None"):
        xp.reshape(xp.ones((2, 2)).T, (4,), copy=False)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 2.5, 1e300, -1e300, 5e-324])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [name for name, dtypes in (UNARY | BINARY).items() if "float64" in dtypes])
def test_special_values_and_signs_of_zero(name, dtype):
    with np.errstate(over="ignore", under="ignore"):
        a = SPECIAL.astype(dtype)
    args = (a,) if name in UNARY else [np.ascontiguousarray(side).ravel() for side in np.meshgrid(a, a)]
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(*args)
    result = getattr(xp, name)(*ours(args))
    compare(result, expected)
    if expected.dtype != bool:
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(result.numpy())[zero], np.signbit(expected)[zero])


@pytest.mark.parametrize("dtype", COMPLEX)
def test_results_of_complex_zeros(dtype):
    zeros = xp.asarray([complex(re, im) for re in (0.0, -0.0) for im in (0.0, -0.0)], dtype=getattr(xp, dtype))
    assert [str(z) for z in xp.sign(zeros).tolist()] == ["0j"] * 4
    assert [str(z) for z in xp.expm1(zeros).tolist()] == ["0j", "-0j"] * 2


@pytest.mark.parametrize("dtype", REAL)
def test_clip(dtype):
    a = values(dtype, (3, 4), special=False)
    for low, high in ((-1, 2), (None, 1), (0, None), (None, None), (values(dtype, (4,), 2, special=False), 3)):
        check("clip", a, low, high)


def test_creation():
    for dtype in map(np.dtype, ALL):
        for name in ("zeros", "ones"):
            check(name, shape=(2, 3), dtype=dtype)
            check(name, 3, dtype=dtype)
        check("full", (2,), 1, dtype=dtype)
        check("eye", 3, 4, k=1, dtype=dtype)
        check("eye", 3, k=-9, dtype=dtype)
    for arguments in ((3,), (1, 4), (5, 1, -2), (0, 1, 0.25), (3, 1), (1, 3, -1), (0.0,), (0, -1.0), (2, 1, 0.5)):
        expected = np.arange(*arguments)
        compare(xp.arange(*arguments), expected.astype(np.float32) if expected.dtype == np.float64 else expected)
    for endpoint in (False, True):
        check("linspace", -1, 2, 5, endpoint=endpoint, dtype=np.dtype("float64"))
        check("linspace", 1j, 2, 5, endpoint=endpoint, dtype=np.dtype("complex128"))
        assert xp.linspace(0, 1j, 3, endpoint=endpoint).dtype == xp.complex64
    assert xp.linspace(0, 1, 1, endpoint=False).tolist() == [0]
    assert xp.empty(shape=(2, 3), dtype=xp.int8).shape == (2, 3)
    assert xp.full((2,), True).dtype == xp.bool
    assert xp.full((), 1).dtype == xp.int64
    assert xp.asarray([1.0, 2]).dtype == xp.float32
    assert xp.meshgrid() == []
    assert isinstance(xp.meshgrid(xp.ones(2), xp.ones(3)), list)


def test_asarray_reads_buffers_by_their_format():
    import array

    source = array.array("h", [1, 2])
    x = xp.asarray(source)
    assert x.dtype == xp.int16
    x[0] = 7
    assert source[0] == 7
    with pytest.raises(ValueError, match="copy=False"):
        xp.asarray([1], copy=False)


def test_dtypes():
    assert xp.isdtype(xp.float32, "real floating")
    assert xp.isdtype(xp.int8, ("bool", "integral"))
    assert xp.isdtype(torch.bfloat16, "numeric")
    assert not xp.isdtype(xp.bool, "numeric")
    assert not xp.isdtype(xp.float32, (xp.float64, "bool"))
    with pytest.raises(ValueError, match="unknown kind"):
        xp.isdtype(xp.bool, "boolean")
    assert xp.can_cast(xp.int32, xp.int64)
    assert not xp.can_cast(xp.ones(1, dtype=xp.float64), xp.float32)
    assert xp.result_type(xp.ones((), dtype=xp.float64), xp.ones(2, dtype=xp.float32)) == xp.float64
    assert xp.result_type(xp.int8, 1) == xp.int8
    assert xp.result_type(xp.float32, 1j) == xp.complex64
    with pytest.raises(ValueError, match="numbers alone"):
        xp.result_type(1, 2)
    for dtype in FLOATS + COMPLEX:
        info, expected = xp.finfo(getattr(xp, dtype)), np.finfo(dtype)
        assert (info.bits, info.eps, info.max, info.min) == (expected.bits, expected.eps, expected.max, expected.min)
        assert (info.smallest_normal, str(info.dtype)[6:]) == (expected.smallest_normal, expected.dtype.name)
    for dtype in INTEGERS:
        info, expected = xp.iinfo(xp.ones(1, dtype=getattr(xp, dtype))), np.iinfo(dtype)
        assert (info.bits, info.max, info.min) == (expected.bits, expected.max, expected.min)
    x = xp.ones(2)
    assert xp.astype(x, xp.float32, copy=False) is x
    assert xp.astype(x, xp.float32) is not x
    assert xp.astype(x, xp.int8, device="meta").is_meta


@pytest.mark.parametrize("dtype", NUMERIC)
def test_products(dtype):
    a, b = values(dtype, (2, 3), special=False), values(dtype, (3, 4), 1, special=False)
    check("matmul", a, b)
    check("matmul", a[0], b)
    check("vecdot", a, b.T[:2])
    check("vecdot", a[:, :, None], b[None], axis=1)
    check("tensordot", a, b, axes=1)
    check("tensordot", a, a, axes=((0, 1), (0, 1)))
    for name, args in (("outer", (a[0], b[0])), ("cross", (a, b.T[:2])), ("trace", (a,)), ("diagonal", (a,))):
        expected = getattr(np.linalg, name)(*args)
        compare(getattr(xp.linalg, name)(*ours(args)), expected)
    if dtype in FLOATS + COMPLEX:
        for order in (0, 1, 2, 3, np.inf, -np.inf):
            for axis in (None, 0, (0, 1), (-1,)):
                compare(
                    xp.linalg.vector_norm(ours(a), axis=axis, ord=order, keepdims=True),
                    np.linalg.vector_norm(a, axis=axis, ord=order, keepdims=True),
                )


def test_product_errors():
    with pytest.raises(ValueError, match="vecdot: both need one size"):
        xp.vecdot(xp.ones(3), xp.ones(1))
    with pytest.raises(ValueError, match="vectors have 3 elements"):
        xp.linalg.cross(xp.ones(2), xp.ones(2))
    with pytest.raises(AttributeError, match="no attribute 'eig'"):
        xp.linalg.eig


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_fourier_transforms(dtype):
    a = values(dtype, (3, 4), special=False)
    for names, options in (
        (("fft", "ifft", "irfft", "hfft"), ({}, {"n": 5, "axis": 0, "norm": "ortho"})),
        (("fftn", "ifftn", "irfftn"), ({}, {"s": (2, 3), "axes": (0, 1), "norm": "forward"})),
        (("fftshift", "ifftshift"), ({}, {"axes": 1})),
        (() if dtype in COMPLEX else ("rfft", "ihfft"), ({}, {"n": 3})),
        (() if dtype in COMPLEX else ("rfftn",), ({}, {"axes": (0,)})),
    ):
        for name in names:
            for each in options:
                compare(getattr(xp.fft, name)(ours(a), **each), getattr(np.fft, name)(a, **each))
    for name in ("fftfreq", "rfftfreq"):
        compare(getattr(xp.fft, name)(5, d=0.5, dtype=xp.float64), getattr(np.fft, name)(5, d=0.5))
        assert getattr(xp.fft, name)(5).dtype == xp.float32


def test_array_object():
    x = torch.ones((2, 3))
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="unknown version"):
        x.__array_namespace__(api_version="2020.01")
    assert x.to_device("meta").is_meta
    assert x.to_device(x.device) is x
    with pytest.raises(ValueError, match="streams"):
        x.to_device("cpu", stream=1)


def test_inspection():
    info = xp.__array_namespace_info__()
    assert info.default_device() == torch.device("cpu")
    assert torch.device("cpu") in info.devices()
    assert info.default_dtypes()["complex floating"] == xp.complex64
    assert set(info.dtypes()) == set(ALL)
    assert set(info.dtypes(kind=("bool", "signed integer"))) == {"bool", "int8", "int16", "int32", "int64"}
    assert info.capabilities()["max dimensions"] == 64
    torch.zeros((1,) * 64)
    assert xp.__array_api_version__ == "2024.12"


def test_every_function_says_what_it_does():
    for module in (xp, xp.fft, xp.linalg):
        for name, function in vars(module).items():
            if inspect.isroutine(function) and not name.startswith("_"):
                assert inspect.getdoc(function), name
