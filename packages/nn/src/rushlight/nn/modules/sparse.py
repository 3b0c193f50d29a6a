"""Look-up tables of vectors."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F, init
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["Embedding"]


class Embedding(Module):
    """A learned vector for each of a number of indices.

    Args:
        num_embeddings: How many vectors there are.
        embedding_dim: Their length.
        padding_idx: A vector that starts as zeros and is not trained.
        max_norm: Vectors that are used and longer than this are shortened.
        norm_type: The norm for `max_norm`.
        scale_grad_by_freq: Whether a vector's gradient is divided by how often it occurs in the input.
        sparse: Whether the gradient of `weight` is sparse.
        _weight: First value of `weight`.
        _freeze: Whether `weight` is not trained.
        device: Where the parameter is made.
        dtype: Its type.

    Attributes:
        weight: (num_embeddings, embedding_dim), normally distributed.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            self.weight = Parameter(
                rl.empty((num_embeddings, embedding_dim), device=device, dtype=dtype), requires_grad=not _freeze
            )
            self.reset_parameters()
        else:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with rl.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        """Indices (*) to vectors (*, embedding_dim)."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        """Sizes and what is not the default."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        if self.sparse:
            text += ", sparse=True"
        return text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A layer with given vectors.

        Args:
            embeddings: (num_embeddings, embedding_dim), shared.
            freeze: Whether they are not trained.
            padding_idx: As in the class, and so on.
            max_norm: As in the class.
            norm_type: As in the class.
            scale_grad_by_freq: As in the class.
            sparse: As in the class.
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(
            num_embeddings=rows,
            embedding_dim=columns,
            _weight=embeddings,
            _freeze=freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )
