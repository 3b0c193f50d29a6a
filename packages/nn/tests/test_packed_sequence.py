"""Padded and packed sequences against what slices of the sequences say."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight.nn.utils.rnn import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)


def sequences(*lengths, tail=(2,)):
    torch.manual_seed(0)
    return [torch.randn(n, *tail, dtype=torch.float64, requires_grad=True) for n in lengths]


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("lengths", [(3, 1, 4), (2, 2), (0, 3), (1,)])
@pytest.mark.parametrize("tail", [(), (2,), (2, 3)])
def test_pad_sequence(batch_first, side, lengths, tail):
    given = sequences(*lengths, tail=tail)
    padded = pad_sequence(given, batch_first, padding_value=7, padding_side=side)
    rows = padded if batch_first else padded.transpose(0, 1)
    longest = max(lengths)
    assert rows.shape == (len(lengths), longest, *tail)
    for row, sequence, n in zip(rows, given, lengths, strict=True):
        kept, gap = (row[longest - n :], row[: longest - n]) if side == "left" else (row[:n], row[n:])
        assert torch.equal(kept, sequence)
        assert (gap == 7).all()
    (padded * padded).sum().backward()
    assert all(torch.equal(sequence.grad, 2 * sequence.detach()) for sequence in given)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize(("lengths", "is_sorted"), [((4, 2, 2, 1), True), ((1, 4, 2, 4), False), ((3,), True)])
@pytest.mark.parametrize("tail", [(), (2,), (2, 3)])
def test_packing_goes_through_time(batch_first, lengths, is_sorted, tail):
    given = sequences(*lengths, tail=tail)
    padded = pad_sequence(given, batch_first)
    packed = pack_padded_sequence(padded, torch.tensor(lengths), batch_first, enforce_sorted=is_sorted)
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    steps = [[given[i][t] for i in order if lengths[i] > t] for t in range(max(lengths))]
    assert packed.batch_sizes.tolist() == [len(step) for step in steps]
    assert torch.equal(packed.data, torch.stack([row for step in steps for row in step]))
    if is_sorted:
        assert packed.sorted_indices is packed.unsorted_indices is None
    else:
        assert packed.sorted_indices.tolist() == order
        assert packed.sorted_indices[packed.unsorted_indices].tolist() == list(range(len(lengths)))
    again, n = pad_packed_sequence(packed, batch_first, padding_value=0.0)
    assert torch.equal(again, padded)
    assert n.tolist() == list(lengths)
    (again * again).sum().backward()
    assert all(torch.equal(sequence.grad, 2 * sequence.detach()) for sequence in given)
    for back, sequence in zip(unpack_sequence(packed), given, strict=True):
        assert torch.equal(back, sequence)


def test_padding_options():
    packed = pack_sequence([torch.tensor([1, 2]), torch.tensor([3])])
    padded, _ = pad_packed_sequence(packed, batch_first=True, padding_value=-1, total_length=4)
    assert padded.tolist() == [[1, 2, -1, -1], [3, -1, -1, -1]]
    with pytest.raises(ValueError, match="Expected total_length to be at least"):
        pad_packed_sequence(packed, total_length=1)
    assert [s.tolist() for s in unpad_sequence(padded, torch.tensor([2, 1]), batch_first=True)] == [[1, 2], [3]]


def test_bad_lengths():
    x = torch.zeros(4, 3)
    for lengths, sort, message in (
        ([4, 2], False, "`len\\(lengths\\)` to be equal to batch_size"),
        ([1, 2, 3], True, "must be sorted in decreasing order"),
        ([4, 2, 0], True, "has to be greater than 0"),
        ([4, -2, 1], False, "has to be greater than 0"),
        ([5, 2, 1], True, "at most the padded length 4, got 5"),
        ([[4, 2, 1]], True, "1D CPU int64"),
        (4, True, "1D CPU int64"),
    ):
        with pytest.raises(RuntimeError, match=message):
            pack_padded_sequence(x, lengths, enforce_sorted=sort)
    with pytest.raises(RuntimeError, match="Cannot pack empty"):
        pack_padded_sequence(torch.zeros(0, 3), [1, 1, 1])
    with pytest.raises(IndexError):
        pack_padded_sequence(torch.zeros(3), [3])


def test_bad_sequences():
    for given, error in (
        ([], "empty list"),
        (5, "Expected iterable"),
        ([torch.zeros(1, 2), torch.zeros(1, 3)], "first dimension only"),
        ([torch.tensor(1.0)], "must have a dimension"),
    ):
        with pytest.raises(RuntimeError, match=error):
            pad_sequence(given)
    with pytest.raises(RuntimeError, match="padding_side"):
        pad_sequence([torch.zeros(1)], padding_side="middle")
    with pytest.raises(TypeError, match="expected Tensor as element 1"):
        pad_sequence([torch.zeros(1), 2])


def test_packed_sequences_convert_and_copy():
    packed = pack_sequence([torch.zeros(1), torch.ones(2)], enforce_sorted=False)
    assert packed.to("cpu") is packed
    double = packed.double()
    assert double.data.dtype is torch.float64
    assert double.sorted_indices.dtype is torch.int64
    for other in (pickle.loads(pickle.dumps(packed)), copy.deepcopy(packed)):
        assert type(other) is PackedSequence
        assert other.data.tolist() == packed.data.tolist()
        assert other.sorted_indices.tolist() == [1, 0]
    assert not packed.is_cuda
    assert invert_permutation(None) is None
    assert invert_permutation(torch.tensor([2, 0, 1])).tolist() == [1, 2, 0]
    with pytest.raises(ValueError, match="batch_sizes should always be on CPU"):
        PackedSequence(torch.zeros(1), torch.ones(1, dtype=torch.int64, device="meta"))
