"""Views: strides, sharing, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import rushlight as torch


@st.composite
def strided(draw):
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=4))
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).transpose(draw(st.permutations(range(len(shape)))))
    return np.asarray(array[tuple(slice(None, None, draw(st.sampled_from([1, 2]))) for _ in shape)])


@settings(max_examples=300, deadline=None)
@given(strided(), st.data())
def test_reshape_copies_only_where_numpy_does(array, data):
    size, shape = array.size, []
    while size > 1:
        factor = data.draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
        shape.append(factor)
        size //= factor
    x = torch.from_numpy(array)
    y = x.reshape(shape)
    np.testing.assert_array_equal(y.numpy(), array.reshape(shape))
    shares = np.shares_memory(array.reshape(shape), array)
    assert (y.data_ptr() == x.data_ptr()) == shares
    if shares:
        assert x.view(shape).tolist() == y.tolist()
    else:
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            x.view(shape)


def test_views_know_their_base_and_share_versions():
    x = torch.zeros(2, 3)
    y = x.view(6)[1:].unsqueeze(0)
    assert y._base is x
    y.fill_(1)
    assert x._version == 1
    assert x.tolist() == [[0, 1, 1], [1, 1, 1]]


def test_detach_shares_memory_and_is_no_view():
    x = torch.zeros(2)
    y = x.detach()
    y.fill_(3)
    assert x.tolist() == [3, 3]
    assert y._base is None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.view(4), RuntimeError, r"shape '\[4\]' is invalid for input of size 6"),
        (lambda x: x.view(-1, -1), RuntimeError, "only one dimension can be inferred"),
        (lambda x: x.view(-2, 3), RuntimeError, "invalid shape dimension -2"),
        (lambda x: torch.zeros(0).view(-1, 0), RuntimeError, "cannot reshape tensor of 0 elements"),
        (lambda x: x.view(2**40, 2**40), RuntimeError, "is invalid for input of size 6"),
        (lambda x: x.expand(3), RuntimeError, "must be greater or equal to the number of dimensions"),
        (lambda x: x.expand(-1, 4), RuntimeError, "must match the existing size"),
        (lambda x: x.expand(2**40, 2**40, 2, 3), RuntimeError, "overflow"),
        (lambda x: x.permute(0, 0), RuntimeError, "duplicate dims are not allowed"),
        (lambda x: x.transpose(0, 5), IndexError, "Dimension out of range"),
        (lambda x: x.squeeze(5), IndexError, "Dimension out of range"),
        (lambda x: x.unsqueeze(5), IndexError, "Dimension out of range"),
        (lambda x: x.select(0, 5), IndexError, "out of range for tensor of size"),
        (lambda x: x.narrow(0, 1, 5), RuntimeError, "exceeds dimension size"),
        (lambda x: x.narrow(0, 3, 0), IndexError, "start out of range"),
        (lambda x: x.split(0), RuntimeError, "split_size can only be 0"),
        (lambda x: x.split([1, 2]), RuntimeError, "to sum exactly to 2"),
        (lambda x: x.chunk(0), RuntimeError, "greater than 0"),
        (lambda x: x.diagonal(0, 1, 1), RuntimeError, "cannot be identical"),
        (lambda x: x.unfold(0, 5, 1), RuntimeError, "maximum size"),
        (lambda x: x.unfold(0, 1, 0), RuntimeError, "step is 0 but must be > 0"),
        (lambda x: x.as_strided((3,), (-1,)), RuntimeError, "Negative strides are not supported"),
        (lambda x: x.as_strided((30,), (1,)), RuntimeError, "out of bounds for storage of size 24"),
        (lambda x: x.as_strided((2, 2), (2**62, 2**62)), RuntimeError, "out of bounds for storage"),
        (lambda x: x.flatten(1, 0), RuntimeError, "start_dim cannot come after end_dim"),
        (lambda x: x.unflatten(1, (2, 2)), RuntimeError, "don't multiply up to the size of dim 1"),
        (lambda x: x.view(torch.float64), RuntimeError, "must be divisible by 2"),
        (lambda x: torch.imag(x), RuntimeError, "imag is not implemented"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(torch.zeros(2, 3))


def test_bad_diagonals_are_empty():
    x = torch.zeros(2, 3)
    assert x.diagonal(5).shape == (0,)
    assert x.diagonal(-5).shape == (0,)
    assert x.diagonal(2**62).shape == (0,)


def test_view_as_another_dtype():
    x = torch.tensor([1, 2**32], dtype=torch.int64)
    assert x.view(torch.int32).tolist() == [1, 0, 0, 1]
    assert x.view(torch.int32).view(torch.int64).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match=r"self.stride\(-1\) must be 1"):
        torch.zeros(4, 4).t().view(torch.int16)


def test_complex_parts_are_views():
    x = torch.zeros(2, dtype=torch.complex64)
    x.real.fill_(1)
    x.imag = torch.tensor([2.0, 3.0])
    assert x.tolist() == [1 + 2j, 1 + 3j]
    assert torch.view_as_complex(torch.view_as_real(x)).tolist() == x.tolist()


def test_transposed_attributes():
    x = torch.arange(6).view(2, 3)
    assert x.T.tolist() == x.mT.tolist() == x.H.tolist() == [[0, 3], [1, 4], [2, 5]]
    with pytest.warns(UserWarning, match="deprecated"):
        assert torch.zeros(2, 3, 4).T.shape == (4, 3, 2)
    assert torch.zeros(2, 3, 4).mT.shape == (2, 4, 3)
    number = torch.tensor(1 + 2j)
    for name, value in (("mT", 1 + 2j), ("mH", 1 - 2j), ("H", 1 - 2j)):
        with pytest.warns(UserWarning, match=f"{name} is deprecated on 0-D"):
            assert getattr(number, name).item() == value
    with pytest.raises(RuntimeError, match="only supported on matrices"):
        torch.zeros(3).mT


def test_in_place_forms_change_the_geometry():
    x = torch.arange(6).view(2, 3)
    assert x.t_() is x
    assert x.shape == (3, 2)
    assert x.unsqueeze_(0).squeeze_().transpose_(0, 1).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_resize_keeps_elements_and_grows():
    x = torch.arange(4)
    x.resize_(2)
    assert x.tolist() == [0, 1]
    x.resize_(4)
    assert x.tolist() == [0, 1, 2, 3]
    x.resize_(100, 100)
    assert x.shape == (100, 100)
    assert x[0, :4].tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="overflow"):
        x.resize_(2**40, 2**40)


def test_views_on_meta():
    x = torch.zeros(2, 3, device="meta")
    assert x.t().view_as(torch.zeros(3, 2, device="meta")).shape == (3, 2)
    assert [p.shape for p in x.split(1)] == [(1, 3), (1, 3)]
    assert x[:, 1:].shape == (2, 2)


def test_scatter_into_a_part_keeps_the_order_of_memory():
    x = torch.arange(12.0).view(3, 4)
    expected = x.numpy().copy()
    expected[:, 1] = 7
    columns = x.t().select_scatter(torch.full((3,), 7.0), 0, 1)
    assert columns.stride() == (1, 4)
    np.testing.assert_array_equal(columns.numpy(), expected.T)
    assert x[0, 1] == 1
    with pytest.raises(RuntimeError, match="expected src to have a size equal to the slice of self"):
        x.slice_scatter(torch.zeros(4), 0, 1)


def test_as_strided_scatter_reaches_all_of_the_storage():
    x = torch.arange(12.0)[4:]
    assert x.as_strided_scatter(torch.tensor([-1.0, -2.0]), (2,), (5,), 0).tolist() == [4, -2, 6, 7, 8, 9, 10, 11]
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        x.as_strided_scatter(torch.zeros(2), (2,), (20,), 0)


def test_as_strided_scatter_gradient():
    pytest.importorskip("rushlight.autograd", exc_type=ImportError)
    x = torch.arange(6.0, dtype=torch.float64, requires_grad=True)
    src = torch.ones(2, dtype=torch.float64, requires_grad=True)
    for make in (lambda x: x, lambda x: (2 * x).view(2, 3).t(), lambda x: (2 * x)[1:]):

        def scattered(x, src, make=make):
            return make(x).as_strided_scatter(src, (2,), (2,), 2)

        assert torch.autograd.gradcheck(scattered, (x, src))


def test_unsafe_pieces_share_memory_but_no_version():
    x = torch.arange(5.0)
    pieces = x.unsafe_split(2)
    assert [piece.tolist() for piece in pieces] == [[0, 1], [2, 3], [4]]
    assert not pieces[0]._is_view()
    pieces[0].zero_()
    assert x.tolist() == [0, 0, 2, 3, 4]
    assert x._version == 0
    assert [len(piece) for piece in x.unsafe_chunk(2)] == [3, 2]
    assert [len(piece) for piece in x.unsafe_split_with_sizes([1, 4])] == [1, 4]


@pytest.mark.parametrize("call", [torch.chunk, torch.tensor_split, torch.hsplit, torch.unsafe_chunk])
def test_billions_of_empty_pieces_are_refused(call):
    with pytest.raises(RuntimeError, match="makes at most 16777216 pieces"):
        call(torch.empty(0), 2**31)


def test_changing_sizes_in_place_writes_no_memory():
    frozen = np.zeros((2, 3), "f4")
    frozen.flags.writeable = False
    for make in (lambda: torch.ones(1, 3).expand(2, 3), lambda: torch.from_numpy(frozen)):
        assert make().transpose_(0, 1).shape == (3, 2)
        assert make().unsqueeze_(0).squeeze_().t_().shape == (3, 2)
        assert make().as_strided_((2,), (1,)).shape == (2,)
        assert make().set_(torch.ones(5)).shape == (5,)
        with pytest.raises(RuntimeError):
            make().zero_()
