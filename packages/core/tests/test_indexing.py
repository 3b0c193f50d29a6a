"""x[key] and x[key] = value against NumPy, edges and errors as PyTorch has them."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import rushlight as torch


def to_torch(key):
    if isinstance(key, tuple):
        return tuple(map(to_torch, key))
    return torch.from_numpy(np.array(key)) if isinstance(key, np.ndarray) else key


@st.composite
def arrays_and_keys(draw):
    """An array with strides in any order, and a key of slices, integers, None, ellipsis, index arrays and masks."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4))
    order = draw(st.permutations(range(len(shape))))
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape).transpose(order)
    key = draw(hnp.basic_indices(array.shape, max_dims=3, allow_newaxis=True)) if draw(st.booleans()) else ()
    key = list(key) if isinstance(key, tuple) else [key]
    dim = sum(k is not None for k in key)
    # Beside index arrays NumPy counts integers as such arrays too, where PyTorch selects first.
    if Ellipsis in key or any(isinstance(k, int) for k in key):
        return array, tuple(key)
    for size in array.shape[dim : dim + draw(st.integers(0, 3))]:
        if draw(st.booleans()):
            key.append(draw(hnp.arrays(np.bool_, size)))
        elif size:
            places = draw(st.sampled_from([(2,), (1, 2), (2, 1)]))
            key.append(draw(hnp.arrays(np.int64, places, elements=st.integers(-size, size - 1))))
        else:
            key.append(slice(None))
    return array, tuple(key)


@settings(max_examples=400, deadline=None)
@given(arrays_and_keys())
def test_get_item_as_numpy(case):
    array, key = case
    try:
        expected = np.asarray(array[key])
    except IndexError:
        with pytest.raises(IndexError):
            torch.from_numpy(array)[to_torch(key)]
        return
    actual = torch.from_numpy(array)[to_torch(key)]
    assert tuple(actual.shape) == expected.shape
    np.testing.assert_array_equal(actual.numpy(), expected)


@settings(max_examples=400, deadline=None)
@given(arrays_and_keys(), st.booleans())
def test_set_item_as_numpy(case, number):
    array, key = case
    expected = array.copy()
    tensor = torch.from_numpy(array.copy())
    try:
        expected[key]
    except IndexError:
        return
    expected[key] = 7
    tensor[to_torch(key)] = 7 if number else torch.tensor(7.0)
    np.testing.assert_array_equal(tensor.numpy(), expected)


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        ((0, 5), IndexError, "index 5 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        (1.0, IndexError, "only integers, slices"),
        ({}, IndexError, "only integers, slices"),
        (2**70, ValueError, "Overflow when unpacking long long"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        ([[0, 1], [0, 1, 2]], IndexError, "shape mismatch: indexing tensors could not be broadcast"),
        ([7], IndexError, "index 7 is out of bounds for dimension 0 with size 2"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_bad_keys(key, error, message):
    x = torch.zeros(2, 3)
    with pytest.raises(error, match=message):
        x[key]
    with pytest.raises(error, match=message):
        x[key] = 1


def test_bad_index_tensors():
    x = torch.zeros(2, 3)
    with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool"):
        x[torch.zeros(1)]
    with pytest.raises(IndexError, match=r"The shape of the mask \[3\] at index 0 does not match"):
        x[torch.zeros(3, dtype=torch.bool)]


def test_zero_dimensional():
    x = torch.tensor(1.5)
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        x[0]
    assert x[None].shape == (1,)
    assert x[...].item() == 1.5
    assert x[True].shape == (1,)
    assert x[False].shape == (0,)
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(x)


def test_negative_steps():
    x = torch.arange(5)
    assert x[::-1].tolist() == [4, 3, 2, 1, 0]
    assert x[3:0:-2].tolist() == [3, 1]
    x[::-1] = torch.tensor([9, 8, 7, 6, 5])
    assert x.tolist() == [5, 6, 7, 8, 9]


BACKWARDS = {
    "rows": (slice(None, None, -1),),
    "every other column": (..., slice(None, None, -2)),
    "all": (slice(None, None, -1),) * 3,
}


@pytest.mark.parametrize("key", BACKWARDS.values(), ids=BACKWARDS)
@pytest.mark.parametrize(
    ("ours", "numpys"),
    [
        (lambda x: x + x[::-1], lambda x: x + x[::-1]),
        (lambda x: x.sqrt(), np.sqrt),
        (lambda x: x.sum(1), lambda x: x.sum(1)),
        (lambda x: x.cumsum(0), lambda x: x.cumsum(0)),
        (lambda x: x.argmax(-1), lambda x: x.argmax(-1)),
        (lambda x: x.sort(1).values, lambda x: np.sort(x, 1)),
        (lambda x: x @ x.mT, lambda x: x @ np.swapaxes(x, 1, 2)),
        (lambda x: x.reshape(-1), lambda x: x.reshape(-1)),
        (lambda x: x.permute(2, 0, 1)[1:], lambda x: x.transpose(2, 0, 1)[1:]),
        (lambda x: x[x > 20], lambda x: x[x > 20]),
        (lambda x: x[[1, 0], :, torch.tensor([0, 1])], lambda x: x[[1, 0], :, [0, 1]]),
        (lambda x: x.contiguous(), np.ascontiguousarray),
        (lambda x: x.float(), lambda x: x.astype(np.float32)),
        (lambda x: torch.cat([x, x]), lambda x: np.concatenate([x, x])),
        (lambda x: torch.add(x, 1, out=x), lambda x: x + 1),
        (lambda x: x.mul_(2), lambda x: 2 * x),
        (lambda x: x.diagonal(), lambda x: x.diagonal()),
        (lambda x: x.unfold(1, 2, 1), lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 1)),
        (torch.from_dlpack, lambda x: x),
        (lambda x: torch.from_numpy(np.asarray(x)), lambda x: x),
        (copy.deepcopy, lambda x: x),
        (lambda x: pickle.loads(pickle.dumps(x)), lambda x: x),
    ],
)
def test_views_that_go_backwards_work_everywhere(key, ours, numpys):
    array = np.arange(60.0).reshape(3, 4, 5)
    expected = numpys(array[key])
    result = ours(torch.from_numpy(array.copy())[key])
    assert tuple(result.shape) == expected.shape
    np.testing.assert_array_equal(result.numpy(), expected)


def test_views_share_memory_and_masks_do_not():
    x = torch.zeros(2, 3)
    x[0][1] = 1
    x[:, 2].fill_(2)
    assert x.tolist() == [[0, 1, 2], [0, 0, 2]]
    x[x > 0].fill_(9)
    assert x.max().item() == 2


def test_set_item_values():
    x = torch.zeros(2, 3)
    x[0] = torch.ones(1, 1, 3)  # leading ones may go
    assert x[0].tolist() == [1, 1, 1]
    x[0] = torch.tensor([1, 2, 3])  # converted
    assert x[0].tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match=r"can't assign a list to a torch.FloatTensor"):
        x[0] = [1, 2, 3]
    with pytest.raises(RuntimeError, match="expanded size of the tensor"):
        x[0] = torch.ones(2)
    with pytest.raises(RuntimeError, match=r"shape mismatch: value tensor of shape \[2\]"):
        x[[0, 1]] = torch.ones(2)
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
        x[[0, 1]] = torch.ones(2, 3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="value cannot be converted"):
        x[0] = 1 + 2j
    with pytest.raises(TypeError, match="does not support deleting"):
        del x[0]


def test_writing_to_shared_elements_is_refused():
    x = torch.zeros(3).expand(2, 3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x[:] = 1
    x[0] = 1  # one row alone shares nothing
    assert x.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_set_item_from_itself():
    x = torch.arange(5)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]
    x[torch.tensor([0, 1])] = x[3:]
    assert x.tolist() == [2, 3, 1, 2, 3]


def test_set_item_bumps_the_version_once():
    x = torch.zeros(3)
    before = x._version
    x[0] = 1
    x[torch.tensor([1])] = 2
    assert x._version == before + 2


def test_index_put_accumulates_in_order():
    x = torch.zeros(3)
    x.index_put_((torch.tensor([0, 0, 2]),), torch.tensor([1.0, 2.0, 4.0]), accumulate=True)
    assert x.tolist() == [3, 0, 4]


@pytest.mark.parametrize("op", [torch.gather, torch.scatter, torch.scatter_add])
def test_lines_check_their_indices(op):
    x, more = torch.zeros(2, 3), () if op is torch.gather else (torch.zeros(2, 1),)
    for bad in (3, -1):
        with pytest.raises(RuntimeError, match=f"index {bad} is out of bounds for dimension 1 with size 3"):
            op(x, 1, torch.tensor([[0], [bad]]), *more)
    with pytest.raises(RuntimeError, match="same number of dimensions"):
        op(x, 1, torch.tensor([0]), *more)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, dim, index, ones: x.scatter_(dim, index, ones),
        lambda x, dim, index, ones: x.scatter_(dim, index, 1.0),
        lambda x, dim, index, ones: x.scatter_add_(dim, index, ones),
        lambda x, dim, index, ones: x.scatter_reduce_(dim, index, ones, "prod", include_self=False),
    ],
)
@pytest.mark.parametrize("dim", [0, 1])
def test_a_bad_index_leaves_the_target_as_it_is(write, dim):
    x = torch.zeros(64, 64)
    index = torch.randint(0, 64, (64, 64))
    index[63, 63] = 64
    with pytest.raises(RuntimeError, match=f"index 64 is out of bounds for dimension {dim} with size 64"):
        write(x, dim, index, torch.ones(64, 64))
    assert not x.any()


def test_scatter_of_equal_places_takes_the_last():
    x = torch.zeros(2).scatter(0, torch.tensor([1, 1, 1]), torch.tensor([1.0, 2.0, 3.0]))
    assert x.tolist() == [0, 3]


def test_big_masks_agree_with_numpy():
    array = np.random.default_rng(0).standard_normal((300, 1000)).astype(np.float32)
    x = torch.from_numpy(array.copy())
    np.testing.assert_array_equal(x[x > 0.5].numpy(), array[array > 0.5])
    np.testing.assert_array_equal(torch.nonzero(x > 0.5).numpy(), np.argwhere(array > 0.5))
    x[x > 0.5] = 0
    np.testing.assert_array_equal(x.numpy(), np.where(array > 0.5, 0, array))


@pytest.mark.parametrize("size", [65536, 65537])  # the last that two bytes number, and the first beyond
@pytest.mark.parametrize(("reduce", "ufunc"), [("sum", np.add), ("prod", np.multiply), ("amax", np.maximum)])
def test_scatter_of_many_into_long_lines_agrees_with_numpy(size, reduce, ufunc):
    rng = np.random.default_rng(0)
    index, source = rng.integers(0, size, (5, 4000)), rng.integers(-9, 9, (5, 4000))
    index[-1, -1] = size - 1
    expected = np.ones((5, size), dtype=np.int64)
    ufunc.at(expected, (np.arange(5)[:, None], index), source)
    x, index = torch.ones(5, size, dtype=torch.int64), torch.from_numpy(index)
    assert (x.scatter_reduce(1, index, torch.from_numpy(source), reduce).numpy() == expected).all()
    for bad in (-1, size, 2**32):
        index[-1, -1] = bad
        with pytest.raises(RuntimeError, match="out of bounds"):
            x.scatter_add_(1, index, torch.from_numpy(source))
        assert (x == 1).all()  # nothing was written


def test_big_scatter_add_agrees_with_numpy():
    rng = np.random.default_rng(0)
    index, source = rng.integers(0, 50, (200, 300)), rng.integers(0, 9, (200, 300))
    for dim in (0, 1):
        shape = [300, 300]
        shape[dim] = 50
        expected = np.zeros(shape, np.int64)
        where = [np.broadcast_to(i, index.shape) for i in np.indices(index.shape, sparse=True)]
        where[dim] = index
        np.add.at(expected, tuple(where), source)
        actual = torch.zeros(shape, dtype=torch.int64).scatter_add_(
            dim, torch.from_numpy(index), torch.from_numpy(source)
        )
        np.testing.assert_array_equal(actual.numpy(), expected)


def test_operands_that_share_memory():
    index = torch.tensor([0, 1, 0])
    index.scatter_(0, index, torch.tensor([10**12, 5, 7]))
    assert index.tolist() == [7, 5, 0]
    mask = torch.tensor([True, False] * 5000)
    mask.masked_scatter_(mask, torch.zeros(10000, dtype=torch.bool))
    assert not mask.any()
    mask = torch.tensor([True] * 8)
    mask[mask] = False
    assert not mask.any()


def test_masks_with_other_bytes_than_one():
    mask = torch.tensor([2, 0, 255, 1] * 5000, dtype=torch.uint8).view(torch.bool)
    x = torch.arange(20000)
    assert len(x[mask]) == len(torch.nonzero(mask)) == 15000
    assert x.masked_scatter(mask, x)[:4].tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce_gradients_with_zeros_and_equals(reduce, include_self):
    pytest.importorskip("rushlight.autograd", exc_type=ImportError)
    x = torch.tensor([[0.0, 2.0, 3.0], [1.0, 0.5, -1.0]], dtype=torch.float64, requires_grad=True)
    src = torch.tensor([[0.0, 5.0, 0.0, 9.0], [0.0, 4.0, 7.0, 9.0]], dtype=torch.float64, requires_grad=True)
    index = torch.tensor([[0, 1, 1], [0, 0, 0]])
    if reduce in ("amax", "amin"):  # equal extremes have no derivative
        src = torch.arange(1.1, 9, dtype=torch.float64).view(2, 4).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x, src: x.scatter_reduce(0, index, src, reduce, include_self=include_self), (x, src)
    )


def test_equal_extremes_share_their_gradient():
    pytest.importorskip("rushlight.autograd", exc_type=ImportError)
    x, src = torch.tensor([2.0, 0.0], requires_grad=True), torch.tensor([2.0, 2.0, 1.0], requires_grad=True)
    x.scatter_reduce(0, torch.tensor([0, 0, 0]), src, "amax").sum().backward()
    assert x.grad.tolist() == [pytest.approx(1 / 3), 1]
    assert src.grad.tolist() == [pytest.approx(1 / 3), pytest.approx(1 / 3), 0]


def test_scatter_reduce_takes_nan_and_rounds_integer_means_down():
    index = torch.tensor([0, 0])
    assert torch.zeros(1).scatter_reduce(0, index, torch.tensor([float("nan"), 1.0]), "amax").isnan()
    assert torch.tensor([-7]).scatter_reduce(0, index, torch.tensor([1, 4]), "mean").tolist() == [-1]
    with pytest.raises(RuntimeError, match="reduce argument must be either sum, prod, mean, amax or amin, got max"):
        torch.zeros(1).scatter_reduce(0, index, torch.zeros(2), "max")
    with pytest.raises(RuntimeError, match="Expected self.dtype to be equal to src.dtype"):
        torch.zeros(1, dtype=torch.float16).scatter_reduce(0, index, torch.zeros(2), "sum")


@pytest.mark.parametrize(
    ("index", "shape", "error", "message"),
    [
        ([0, 3], (2, 2), IndexError, "index out of range"),
        ([0], (2, 2), RuntimeError, r"Number of indices \(1\)"),
        ([[0, 1]], (2, 2), IndexError, "supposed to be a vector"),
        ([0.0, 1.0], (2, 2), RuntimeError, "Expected dtype int32/int64"),
        ([0, 1], (2, 3), RuntimeError, "source tensor shape must match"),
    ],
)
def test_index_reduce_checks_its_arguments(index, shape, error, message):
    with pytest.raises(error, match=message):
        torch.zeros(2, 2).index_reduce(0, torch.tensor(index), torch.zeros(shape), "prod")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32, torch.complex128])
@pytest.mark.parametrize("dim", [0, 1])
def test_big_index_add_is_the_same_for_any_number_of_threads(dtype, dim):
    generator = np.random.default_rng(0)
    places, source = generator.integers(0, 50, 300), generator.integers(0, 3, (300, 300))
    x = torch.zeros(*((50, 300) if dim == 0 else (300, 50)), dtype=dtype)
    expected = np.zeros(x.shape, dtype=np.int64)
    np.add.at(expected, (slice(None),) * dim + (places,), source)
    threads = torch.get_num_threads()
    try:
        for n in (1, 2, 7):
            torch.set_num_threads(n)
            result = x.index_add(dim, torch.from_numpy(places), torch.from_numpy(source).to(dtype))
            assert result.equal(torch.from_numpy(expected).to(dtype))
    finally:
        torch.set_num_threads(threads)


def test_an_index_out_of_bounds_is_named_wherever_it_is():
    x, index = torch.zeros(1000, 50), torch.zeros(1000, 500, dtype=torch.int64)
    index[700, 3] = 50
    for call in (lambda: x.gather(1, index), lambda: x.scatter_add(1, index, torch.zeros(1000, 500))):
        with pytest.raises(RuntimeError, match="index 50 is out of bounds for dimension 1 with size 50"):
            call()
    rows, columns = torch.zeros(100_000, dtype=torch.int64), torch.zeros(100_000, dtype=torch.int64)
    columns[99_999] = -51
    for call in (lambda: x[rows, columns], lambda: x.index_put((rows, columns), torch.tensor(1.0))):
        with pytest.raises(IndexError, match="index -51 is out of bounds for dimension 1 with size 50"):
            call()


def test_unravel_index():
    places = np.random.default_rng(0).integers(0, 24, (3, 5))
    for ours, numpys in zip(
        torch.unravel_index(torch.from_numpy(places), (2, 3, 4)), np.unravel_index(places, (2, 3, 4)), strict=True
    ):
        np.testing.assert_array_equal(ours.numpy(), numpys)
    assert torch.unravel_index(torch.tensor(3), 5)[0] == 3
    assert torch.unravel_index(torch.tensor([0]), ()) == ()
    with pytest.raises(TypeError, match="expected 'indices' to be integer dtype"):
        torch.unravel_index(torch.tensor([1.0]), (2,))
    with pytest.raises(ValueError, match="'shape' cannot have negative values"):
        torch.unravel_index(torch.tensor([1]), (2, -1))


def test_nonzero_static():
    x = torch.tensor([[1, 0], [2, 3]])
    assert x.nonzero_static(size=2).tolist() == [[0, 0], [1, 0]]
    assert x.nonzero_static(size=4, fill_value=9).tolist() == [[0, 0], [1, 0], [1, 1], [9, 9]]
    with pytest.raises(RuntimeError, match="'size' must be an non-negative integer"):
        x.nonzero_static(size=-1)


def random_key(generator, shape):
    """A key of everything at once; integers and separated arrays excepted, where NumPy and PyTorch differ."""
    key, dim = [], 0
    while dim < len(shape):
        n, kind = shape[dim], generator.integers(6)
        if kind == 0:
            key.append(None)
            continue
        if kind == 1:
            key.append(generator.random(n) > 0.5)
        elif kind == 2 and n:
            key.append(generator.integers(-n, n, (2, 1) if generator.random() < 0.5 else (1,)))
        else:
            bounds = [None if generator.random() < 0.3 else int(generator.integers(-n - 1, n + 2)) for _ in range(2)]
            key.append(slice(*bounds, int(generator.choice([1, 2, -1, -3]))))
        dim += 1
    if generator.random() < 0.3:
        key[-1:] = [Ellipsis]
    return tuple(key)


def test_random_keys_read_and_write_as_numpy():
    generator = np.random.default_rng(0)
    for _ in range(500):
        order = generator.permutation(3)
        array = np.arange(60).reshape(3, 4, 5).transpose(order)
        key = random_key(generator, array.shape)
        x = torch.from_numpy(array.copy())
        try:
            expected = array[key]
        except IndexError:
            with pytest.raises(IndexError):
                x[to_torch(key)]
            continue
        np.testing.assert_array_equal(x[to_torch(key)].numpy(), expected, err_msg=str(key))
        values = np.full(expected.shape[1:], -1)
        written = array.copy()
        written[key] = values
        x[to_torch(key)] = torch.from_numpy(values)
        np.testing.assert_array_equal(x.numpy(), written, err_msg=str(key))


def test_one_element_of_another_dtype_where_a_mask_says_so():
    for value in (torch.tensor(3.7), torch.tensor([3.7]), torch.tensor([[3.7]])):
        x = torch.zeros(2, 3, dtype=torch.int64)
        x[torch.tensor([True, False]), 0] = value
        assert x.tolist() == [[3, 0, 0], [0, 0, 0]]
        with pytest.raises(RuntimeError, match="source and destination dtypes match"):
            x[[0]] = value
    x[True] = torch.tensor([1.5, 2.5, 3.5])
    x[False] = 9
    assert x.tolist() == [[1, 2, 3], [1, 2, 3]]


@pytest.mark.parametrize("dtype", [torch.bool, torch.int16, torch.float32, torch.float64, torch.complex128])
@pytest.mark.parametrize("shape", [(7,), (20000,), (100, 101), (20, 1, 40), (3, 4, 3, 2), (2, 100, 3)])
def test_flip_agrees_with_numpy(dtype, shape):
    x = (torch.arange(math.prod(shape)) % 3).reshape(shape).to(dtype)
    for dims in [(d,) for d in range(len(shape))] + [tuple(range(len(shape)))]:
        assert np.array_equal(torch.flip(x, dims).numpy(), np.flip(x.numpy(), dims))
        swapped = x.transpose(0, -1)
        assert np.array_equal(torch.flip(swapped, dims).numpy(), np.flip(swapped.numpy(), dims))
    assert np.array_equal(x[::-1].clone().numpy(), x.numpy()[::-1])


@pytest.mark.parametrize("index", [6, -7])
def test_take_names_the_bad_index(index):
    with pytest.raises(IndexError, match=f"tried to access index {index} on a tensor of 6 elements"):
        torch.take(torch.ones(2, 3), torch.tensor([0, 5, -6, index]))


@pytest.mark.parametrize("op", ["scatter", "scatter_add"])
@pytest.mark.parametrize("shapes", [((4,), (1,), ()), ((1,), (), (2,)), ((), (1,), (3,)), ((4,), (0,), ())])
def test_scatter_takes_0d_tensors_as_vectors_of_one_element(op, shapes):
    x, index, src = (torch.ones(s, dtype=torch.float64) for s in shapes)
    index = torch.zeros_like(index, dtype=torch.int64)
    wanted = x.numpy().reshape(-1).copy()
    if index.numel():
        wanted[0] = 2 if op == "scatter_add" else 1
    result = getattr(torch, op)(x, 0, index, src)
    assert result.shape == x.shape
    assert np.array_equal(result.numpy().reshape(-1), wanted)


@pytest.mark.parametrize(
    ("op", "shapes", "error"),
    [
        ("scatter", ((), (2,), ()), RuntimeError),
        ("scatter", ((), (1,), (2, 3)), RuntimeError),
        ("index_add", ((4,), (1,), ()), RuntimeError),
        ("index_add", ((), (1,), (1,)), RuntimeError),
        ("index_add", ((4,), (2,), ()), IndexError),
        ("index_copy", ((4, 3), (1,), ()), RuntimeError),
        ("index_copy", ((4, 3), (1,), (1,)), IndexError),
        ("index_copy", ((4,), (2,), (1,)), IndexError),
        ("index_copy", ((), (1,), (2, 3)), RuntimeError),
    ],
)
def test_sources_that_do_not_fit(op, shapes, error):
    x, index, src = (torch.zeros(s) for s in shapes)
    with pytest.raises(error):
        getattr(torch, op)(x, 0, index.to(torch.int64), src)
    assert not x.any()


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99, 1])
@pytest.mark.parametrize("shape", [(63,), (64,), (200_000,), (70_000, 2), (3, 5, 7, 65), (1000, 1, 130), (3, 0)])
def test_masks_of_any_share(shape, share):
    rng = np.random.default_rng(0)
    mask, x = rng.random(shape) < share, rng.random(shape)
    places = torch.tensor(mask)
    assert np.array_equal(places.nonzero().numpy(), np.argwhere(mask))
    assert np.array_equal(torch.tensor(x)[places].numpy(), x[mask])
    source = np.arange(x.size) * 1.0
    expected = x.copy()
    expected[mask] = source[: mask.sum()]
    assert np.array_equal(torch.tensor(x).masked_scatter(places, torch.tensor(source)).numpy(), expected)
