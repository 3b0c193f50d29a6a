"""Sequences of different lengths as one tensor: padded to a common length, or packed without gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self, TypeVar

import rushlight as rl
from rushlight import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

T = TypeVar("T")
R = TypeVar("R")


class PackedSequence_(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def bind(optional: T | None, fn: Callable[[T], R]) -> R | None:
    """``fn(optional)``, or None where there is nothing."""
    return None if optional is None else fn(optional)


class PackedSequence(PackedSequence_):
    """Sequences of different lengths without gaps, time step by time step: what recurrent layers run over.

    Make one by `pack_padded_sequence` or `pack_sequence`.

    Args:
        data: (n, *) with the n elements of all sequences: first the first element of each, longest sequence first.
        batch_sizes: (t,) int64, how many sequences reach each time step.
        sorted_indices: (b,) the sequences as given, in the order in which they are packed; None: as they are.
        unsorted_indices: (b,) the inverse of that order.

    Example:
        >>> import rushlight as torch
        >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])])[:2]
        (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self)

    def pin_memory(self) -> Self:
        """The same in page-locked memory."""
        pin = lambda tensor: tensor.pin_memory()
        return type(self)(
            pin(self.data), self.batch_sizes, bind(self.sorted_indices, pin), bind(self.unsorted_indices, pin)
        )

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The same with `data` of another dtype or on another device; the indices follow to the device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        move = lambda indices: indices.to(data.device)
        return type(self)(data, self.batch_sizes, bind(self.sorted_indices, move), bind(self.unsorted_indices, move))

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """The same on a CUDA device."""
        return self.to(self.data.cuda(*args, **kwargs).device)

    def cpu(self) -> Self:
        """The same on the CPU."""
        return self.to("cpu")

    def double(self) -> Self:
        """The same with `data` of float64."""
        return self.to(rl.float64)

    def float(self) -> Self:
        """The same with `data` of float32."""
        return self.to(rl.float32)

    def half(self) -> Self:
        """The same with `data` of float16."""
        return self.to(rl.float16)

    def long(self) -> Self:
        """The same with `data` of int64."""
        return self.to(rl.int64)

    def int(self) -> Self:
        """The same with `data` of int32."""
        return self.to(rl.int32)

    def short(self) -> Self:
        """The same with `data` of int16."""
        return self.to(rl.int16)

    def char(self) -> Self:
        """The same with `data` of int8."""
        return self.to(rl.int8)

    def byte(self) -> Self:
        """The same with `data` of uint8."""
        return self.to(rl.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether `data` is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether `data` is in page-locked memory."""
        return self.data.is_pinned()


PackedSequence_.__name__ = PackedSequence_.__qualname__ = "PackedSequence_"


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another one.

    Args:
        permutation: (n,) int64, each of 0 to n - 1 once; or None, for which None is returned.
    """
    if permutation is None:
        return None
    return rl.empty_like(permutation).scatter_(0, permutation, rl.arange(len(permutation), device=permutation.device))


def _rows(lengths: Tensor, batch: int, steps: int, order: Tensor | None, batch_first: bool) -> Tensor:
    """Where packed elements stand in the padded tensor with its first two dimensions made one, (n,).

    Args:
        lengths: (batch,) decreasing.
        batch: How many sequences there are.
        steps: The length to which they are padded.
        order: (batch,) where the sequences stand in the padded tensor. None: in order.
        batch_first: Whether the first dimension of the padded tensor is the sequence.
    """
    step, sequence = (lengths > rl.arange(int(lengths[0])).unsqueeze(1)).nonzero(as_tuple=True)
    if order is not None:
        sequence = order[sequence]
    return sequence * steps + step if batch_first else step * batch + sequence


def _batch_sizes(lengths: Tensor) -> Tensor:
    """How many of the (decreasing) lengths reach each time step, (lengths[0],)."""
    return (lengths > rl.arange(int(lengths[0])).unsqueeze(1)).sum(1)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences.

    Args:
        input: (t, b, *), or (b, t, *) if `batch_first`: b sequences, padded to length t.
        lengths: (b,) the length of each, from 1 to t.
        batch_first: See above.
        enforce_sorted: Whether the lengths must be decreasing. Otherwise the sequences are sorted here.

    Raises:
        RuntimeError: A length is out of range, there is not one for each sequence, or they do not decrease.

    Example:
        >>> import rushlight as torch
        >>> padded = torch.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
        >>> packed = torch.nn.utils.rnn.pack_padded_sequence(padded, [2, 1, 3], batch_first=True, enforce_sorted=False)
        >>> packed.data, packed.batch_sizes
        (tensor([4, 1, 3, 5, 2, 6]), tensor([3, 2, 1]))
    """
    lengths = rl.as_tensor(lengths, dtype=rl.int64)
    if lengths.dim() != 1 or lengths.device.type != "cpu":
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device.type} tensor"
        )
    if input.dim() < 2:
        raise IndexError(
            f"pack_padded_sequence: input must have at least 2 dimensions, got input of shape {tuple(input.shape)}."
        )
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    batch, steps = input.shape[:2] if batch_first else (input.size(1), input.size(0))
    if len(lengths) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size={batch})"
        )
    order = None
    if not enforce_sorted:
        lengths, order = lengths.sort(descending=True)
    elif (lengths[1:] > lengths[:-1]).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if lengths[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if lengths[0] > steps:
        raise RuntimeError(
            f"pack_padded_sequence: a length must be at most the padded length {steps}, got {lengths[0]}."
        )
    rows = _rows(lengths, batch, steps, order, batch_first).to(input.device)
    data = input.flatten(0, 1).index_select(0, rows)
    return PackedSequence(data, _batch_sizes(lengths), None if order is None else order.to(input.device))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Pads packed sequences to a common length: the inverse of `pack_padded_sequence`.

    Args:
        sequence: The packed sequences.
        batch_first: Whether the sequence is the first dimension of the result, the time step the second.
        padding_value: What stands after the end of a sequence.
        total_length: The common length. Default: that of the longest sequence.

    Returns:
        The padded sequences, (t, b, *) or (b, t, *), and their lengths, (b,) int64, both in the order of `sequence`
        before it was sorted.

    Raises:
        ValueError: `total_length` is less than the length of the longest sequence.
    """
    sizes = sequence.batch_sizes
    longest = len(sizes)
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    steps, batch, data = total_length or longest, int(sizes[0]), sequence.data
    lengths = (sizes > rl.arange(batch).unsqueeze(1)).sum(1)
    order = bind(sequence.sorted_indices, lambda indices: indices.to("cpu"))
    rows = _rows(lengths, batch, steps, order, batch_first).to(data.device)
    padded = data.new_full((batch * steps, *data.shape[1:]), padding_value).index_copy(0, rows, data)
    shape = (batch, steps) if batch_first else (steps, batch)
    if sequence.unsorted_indices is not None:
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded.unflatten(0, shape), lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences of different lengths as one tensor, padded to the length of the longest.

    Args:
        sequences: (t, *) each, or one tensor with a sequence in each row.
        batch_first: Whether the sequence is the first dimension of the result, the time step the second.
        padding_value: What fills the gaps.
        padding_side: ``"left"`` or ``"right"``, where the gaps are.

    Returns:
        (longest t, b, *), or (b, longest t, *) if `batch_first`, of the dtype of the first sequence.

    Raises:
        RuntimeError: There is no sequence, they differ in more than the length, or `padding_side` is another word.

    Example:
        >>> import rushlight as torch
        >>> torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(3)], batch_first=True)
        tensor([[1., 1., 0.],
                [1., 1., 1.]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    for i, sequence in enumerate(sequences):
        if not isinstance(sequence, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(sequence).__name__}")
        if sequence.dim() == 0:
            raise RuntimeError(f"pad_sequence: a sequence must have a dimension, got sequences[{i}] of shape ().")
        if sequence.shape[1:] != sequences[0].shape[1:]:
            raise RuntimeError(
                "pad_sequence: sequences must differ in their first dimension only, got shapes "
                f"{tuple(sequences[0].shape)} and {tuple(sequence.shape)}."
            )
    first = sequences[0]
    batch, lengths = len(sequences), rl.tensor([len(sequence) for sequence in sequences])
    steps = int(lengths.max())
    sequence, step = (rl.arange(steps) < lengths.unsqueeze(1)).nonzero(as_tuple=True)
    if padding_side == "left":
        step = step + (steps - lengths)[sequence]
    rows = (sequence * steps + step if batch_first else step * batch + sequence).to(first.device)
    padded = first.new_full((batch * steps, *first.shape[1:]), padding_value)
    padded = padded.index_copy(0, rows, rl.cat([sequence.to(first.dtype) for sequence in sequences]))
    return padded.unflatten(0, (batch, steps) if batch_first else (steps, batch))


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor, each of its own length: the inverse of `pad_sequence`.

    Args:
        padded_sequences: (t, b, *), or (b, t, *) if `batch_first`.
        lengths: (b,) the length of each sequence.
        batch_first: See above.
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[: int(n)] for sequence, n in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences of different lengths.

    Args:
        sequences: (t, *) each.
        enforce_sorted: Whether they must come longest first. Otherwise they are sorted here.

    Raises:
        RuntimeError: There is no sequence, one is empty, or they are to be sorted and are not.
    """
    sequences = list(sequences)
    lengths = rl.tensor([len(sequence) for sequence in sequences], dtype=rl.int64)
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed one: the inverse of `pack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
