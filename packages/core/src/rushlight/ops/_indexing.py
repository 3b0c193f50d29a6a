"""Indexing: elements chosen by tensors of indices and by masks."""

from __future__ import annotations

from .._op import FUNCTION, Op

index = (
    Op("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", family=FUNCTION, method=False, function=False, out=False, mixed_devices=True, doc="`x[indices]` with index tensors.")
    .array(lambda xp, x, indices: x[tuple(slice(None) if i is None else i for i in indices)])
    .grad(self="index_put(zeros_of(self), indices, grad, True)")
)  # fmt: skip
index_put = (
    Op(
        "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        family=FUNCTION,
        inplace=True,
        out=False,
        mixed_devices=True,
        doc="""The input with `values` at the places that `indices` choose.

        Args:
            input: Tensor of any shape.
            indices: Tuple of index tensors and masks, one a dimension; None leaves a dimension whole.
            values: Tensor of the same dtype that broadcasts to the shape of `input[indices]`.
            accumulate: Whether values are added to what is there; places that occur more than once add up.

        Returns:
            Tensor of the shape of the input.

        Raises:
            IndexError: An index is out of bounds.

        Example:
            >>> x = rushlight.zeros(3)
            >>> x.index_put_((rushlight.tensor([0, 0, 2]),), rushlight.ones(3), accumulate=True)
            tensor([2., 0., 1.])
        """,
    )
    .grad(self="grad if accumulate else index_put(grad, indices, zeros_of(values), False)", values="index(grad, indices)")
)  # fmt: skip
