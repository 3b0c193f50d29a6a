"""Tensors among NumPy's functions, scalars and arrays."""

import operator

import numpy as np
import pytest

import rushlight as torch

OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge,
]  # fmt: skip
INTEGER_OPERATORS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


def same(tensor, expected):
    assert isinstance(tensor, torch.Tensor)
    array = tensor.numpy()
    assert array.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("op", [*OPERATORS, *INTEGER_OPERATORS, operator.matmul], ids=lambda op: op.__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8"])
def test_operators_with_arrays_are_numpys_in_either_order(op, dtype):
    if op in INTEGER_OPERATORS and dtype.startswith("float"):
        pytest.skip("of integers only")
    a, b = np.array([3, 1, 2], np.int64), np.array([1, 1, 2], dtype)
    same(op(a, torch.from_numpy(b)), op(a, b))
    same(op(torch.from_numpy(b), a), op(b, a))
    if op is not operator.matmul:
        zero_d = np.array(2, np.int64)
        same(op(zero_d, torch.from_numpy(b)), op(zero_d, b))


def test_inplace_operators_with_arrays():
    x = alias = torch.ones(3)
    x += np.arange(3.0)
    same(x, np.arange(1.0, 4.0))
    same(alias, np.ones(3, np.float32))  # as `x = x + array`, which has another dtype
    a = np.arange(3.0)
    a += torch.ones(3)
    same(a, np.arange(1.0, 4.0))  # NumPy leaves the operator to Tensor


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("scalar", [np.float64(2), np.float32(2), np.int8(2), np.uint16(2)], ids=repr)
def test_numpy_scalars_are_numbers(op, scalar):
    x = torch.tensor([3.0, 1.0])
    same(op(x, scalar), op(np.array([3, 1], np.float32), np.float32(2)))
    same(op(scalar, x), op(np.float32(2), np.array([3, 1], np.float32)))


@pytest.mark.parametrize("integer", [np.int64, np.int32, np.uint8])
def test_numpy_scalars_as_sizes_dimensions_indices_and_values(integer):
    one, two = integer(1), integer(2)
    assert torch.zeros(two, one).shape == torch.zeros((two, one)).shape == (2, 1)
    assert torch.arange(two).tolist() == [0, 1]
    x = torch.arange(6).view(two, 3)
    assert x.sum(one).tolist() == x.sum(dim=(one,)).tolist() == [3, 12]
    assert x[one, two] == 5
    assert x[one:, two].tolist() == [5]
    assert x.size(one) == 3
    assert x.transpose(integer(0), one).reshape((one, integer(6))).shape == (1, 6)
    assert torch.full((two,), np.float32(1.5)).tolist() == [1.5, 1.5]
    x[one] = two
    assert x.fill_(two).unique().tolist() == [2]
    assert torch.where(torch.tensor([True, False]), np.float32(1), np.float32(2)).tolist() == [1, 2]


@pytest.mark.parametrize("fn", [np.sin, np.exp, np.abs, np.negative, np.isnan, np.isfinite, np.square, np.logical_not])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)], ids=str)
def test_ufuncs_make_tensors(fn, shape):
    a = np.full(shape, 1.5, np.float32)
    same(fn(torch.from_numpy(a)), fn(a))


def test_ufuncs_of_several_operands_and_out():
    x = torch.tensor([1.0, 2.0])
    same(np.maximum(x, np.array([2.0, 1.0])), [2.0, 2.0])
    same(np.add.reduce(x), np.float32(3))
    target = np.zeros(2, np.float32)
    assert np.add(x, x, out=target) is target
    whole, parts = np.modf(torch.tensor([1.25]))
    assert (whole.tolist(), parts.tolist()) == ([0.25], [1.0])


def test_tensors_that_require_a_gradient_are_no_arrays():
    pytest.importorskip("rushlight.autograd", exc_type=ImportError)
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        np.sin(x)
    with pytest.raises(BufferError, match="requires a gradient"):
        memoryview(x)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "any", "all", "cumsum", "argmax"])
def test_functions_that_call_methods(name):
    a = np.array([[3.0, 1.0], [2.0, 4.0]])
    result = getattr(np, name)(torch.from_numpy(a), axis=1)
    np.testing.assert_array_equal(np.asarray(result), getattr(np, name)(a, axis=1))


def test_array_protocol():
    x = torch.arange(3.0)
    view = np.asarray(x)
    view[0] = 7
    assert x[0] == 7
    assert np.shares_memory(np.asarray(x, copy=False), view)
    assert not np.shares_memory(np.array(x), view)
    assert not np.shares_memory(np.asarray(x, copy=True), view)
    assert np.shares_memory(x.__array__(np.float32), view)
    assert np.asarray(x, dtype="int8").dtype == np.int8
    assert np.asarray(x, np.float16).tolist() == [7, 1, 2]
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        np.asarray(x, dtype="float64", copy=False)
    with pytest.raises(TypeError, match="meta"):
        np.asarray(torch.ones(2, device="meta"))


def test_arrays_indexed_and_written_by_tensors():
    a = np.arange(10)
    assert a[torch.tensor([1, 2])].tolist() == [1, 2]
    assert a[torch.tensor(3)] == 3
    a[:3] = torch.tensor([7, 8, 9])
    assert a[:4].tolist() == [7, 8, 9, 3]


def test_python_numbers():
    assert complex(torch.tensor(1 + 2j)) == 1 + 2j
    assert complex(torch.tensor([2])) == 2
    assert float(torch.tensor(2 + 0j)) == 2.0
    assert int(torch.tensor(2.7)) == 2
    with pytest.raises(RuntimeError, match="value cannot be converted to type double without overflow"):
        float(torch.tensor(1j))
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        int(torch.tensor(1j))
    with pytest.raises(ValueError, match="only one element tensors"):
        complex(torch.ones(2))


@pytest.mark.parametrize(
    ("make", "strides"),
    [
        (lambda a: a[::-1], (-3, 1)),
        (lambda a: a[:, ::-2], (3, -2)),
        (lambda a: a.T, (1, 3)),
        (lambda a: np.asfortranarray(a), (1, 2)),
        (lambda a: np.broadcast_to(a[0], (2, 3)), (0, 1)),
        (lambda a: a[:, :0], (3, 1)),
    ],
)
def test_from_numpy_of_any_layout(make, strides):
    a = make(np.arange(6.0).reshape(2, 3))
    x = torch.from_numpy(a)
    assert x.stride() == strides
    same(x, a)
    same(x + 0, a)
    if a.size and a.flags.writeable:
        x[0, 0] = -1
        assert a[0, 0] == -1


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (np.zeros(2, ">f4"), ValueError, "byte order different from the native byte order"),
        (np.zeros(2, [("a", "i4")]), TypeError, "can't convert np.ndarray of type"),
        (np.zeros(2, "M8[s]"), TypeError, "can't convert np.ndarray of type datetime64"),
        (np.zeros(2, object), TypeError, "can't convert np.ndarray of type object"),
        (np.zeros(2, "U3"), TypeError, "can't convert np.ndarray of type <U3"),
        (np.zeros(2, np.longdouble), TypeError, "can't convert np.ndarray of type"),
        (np.zeros(3, [("a", "i1"), ("b", "f4")])["b"], ValueError, "strides not a multiple of the element byte size"),
        (np.zeros(9, np.uint8)[1:].view("f4"), ValueError, "not aligned"),
        ([1.0], TypeError, "expected np.ndarray"),
    ],
)
def test_from_numpy_refuses(array, error, message):
    with pytest.raises(error, match=message):
        torch.from_numpy(array)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32, torch.complex64])
def test_memoryview(dtype):
    x = torch.arange(6).to(dtype).view(2, 3)
    view = memoryview(x.T)
    expected = memoryview(x.T.numpy())
    assert (view.format, view.shape, view.strides) == (expected.format, expected.shape, expected.strides)
    assert view.tobytes() == x.T.numpy().tobytes()
    np.asarray(view)[0, 1] = 0
    assert x[1, 0] == 0
    assert bytes(memoryview(x)) == x.numpy().tobytes()
    with pytest.raises(BufferError, match="another device"):
        memoryview(torch.ones(2, device="meta"))
    assert memoryview(torch.from_numpy(np.broadcast_to(np.ones(1), 3))).readonly


def test_asarray_of_buffers_reads_their_bytes():
    memory = bytearray(np.array([1.0, 2.0], np.float32))
    x = torch.asarray(memory)
    assert x.tolist() == [1.0, 2.0]
    x[0] = 3
    assert np.frombuffer(memory, np.float32)[0] == 3
    assert torch.asarray(b"\1\2", dtype=torch.uint8).tolist() == [1, 2]
    assert torch.asarray(memoryview(b"\1\0"), dtype=torch.int16, copy=True).add_(1).tolist() == [2]


class Exporter:
    """Speaks DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_asarray_of_dlpack():
    a = np.arange(3)
    torch.asarray(Exporter(a))[0] = 5
    assert a[0] == 5
    assert torch.asarray(Exporter(a), copy=True).fill_(0).sum() == 0
    assert a[0] == 5


def test_capsules():
    from rushlight.utils.dlpack import from_dlpack, to_dlpack

    x = torch.arange(3)
    y = from_dlpack(to_dlpack(x))
    y[0] = 9
    assert x[0] == 9
    assert torch.utils.dlpack.to_dlpack is to_dlpack


@pytest.mark.parametrize("value", [-256, -255, -1, 0, 255, 256])
def test_every_way_to_a_uint8_takes_the_same_numbers(value):
    mask = torch.tensor([True])
    x = torch.zeros(1, dtype=torch.uint8)
    ways = [
        lambda: torch.tensor([value], dtype=torch.uint8),
        lambda: torch.tensor(value, dtype=torch.uint8),
        lambda: torch.as_tensor([value], dtype=torch.uint8),
        lambda: torch.asarray([value], dtype=torch.uint8),
        lambda: torch.full((1,), value, dtype=torch.uint8),
        lambda: torch.full_like(x, value),
        lambda: x.new_full((1,), value),
        lambda: x.new_tensor([value]),
        lambda: x.clone().fill_(value),
        lambda: x.masked_fill(mask, value),
        lambda: x.index_fill(0, torch.tensor([0]), value),
        lambda: x.scatter(0, torch.tensor([0]), value),
        lambda: x.clone().__setitem__(0, value),
        lambda: x.clone().__setitem__(mask, value),
    ]
    for way in ways:
        if abs(value) > 255:
            with pytest.raises(RuntimeError, match="value cannot be converted to type uint8 without overflow"):
                way()
        else:
            result = way()
            assert result is None or result.tolist() in ([value % 256], value % 256)
