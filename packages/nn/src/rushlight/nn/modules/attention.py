"""Attention of several heads."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F, init
from rushlight.nn.modules.linear import NonDynamicallyQuantizableLinear
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of several heads, each with a part of the features (A. Vaswani et al., 2017).

    Args:
        embed_dim: Features of query and output.
        num_heads: Divides `embed_dim`.
        dropout: Probability of a zero among the weights of keys, in training.
        bias: Whether the projections have biases.
        add_bias_kv: Whether there is a learned further key and value.
        add_zero_attn: Whether there is a further key and value of zeros.
        kdim: Features of the key, by default `embed_dim`.
        vdim: Features of the value, by default `embed_dim`.
        batch_first: Whether batches are (N, L, features) instead of (L, N, features).
        device: Where the parameters are made.
        dtype: Their type.

    Attributes:
        in_proj_weight: (3 * embed_dim, embed_dim), where `kdim` and `vdim` are `embed_dim`.
        q_proj_weight: (embed_dim, embed_dim), where they are not.
        k_proj_weight: (embed_dim, kdim), likewise.
        v_proj_weight: (embed_dim, vdim), likewise.
        in_proj_bias: (3 * embed_dim,), or None.
        out_proj: The linear layer behind the heads.
        bias_k: (1, 1, embed_dim), or None.
        bias_v: (1, 1, embed_dim), or None.

    Example:
        >>> import rushlight as torch
        >>> x = torch.zeros(5, 2, 16)
        >>> out, weights = torch.nn.MultiheadAttention(16, 4)(x, x, x)
        >>> out.shape, weights.shape
        (torch.Size([5, 2, 16]), torch.Size([2, 5, 5]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError(
                f"embed_dim must be divisible by num_heads, got embed_dim={embed_dim} and num_heads={num_heads}."
            )
        shapes: dict[str, tuple[int, ...] | None] = dict.fromkeys(
            ("q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_weight", "in_proj_bias")
        )
        if self._qkv_same_embed_dim:
            shapes["in_proj_weight"] = (3 * embed_dim, embed_dim)
        else:
            shapes["q_proj_weight"] = (embed_dim, embed_dim)
            shapes["k_proj_weight"] = (embed_dim, self.kdim)
            shapes["v_proj_weight"] = (embed_dim, self.vdim)
        if bias:
            shapes["in_proj_bias"] = (3 * embed_dim,)
        shapes["bias_k"] = shapes["bias_v"] = (1, 1, embed_dim) if add_bias_kv else None
        for name, shape in shapes.items():
            empty = None if shape is None else Parameter(rl.empty(shape, device=device, dtype=dtype))
            self.register_parameter(name, empty)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draws new initial values."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def _name_in_errors(self) -> str:
        return f"MultiheadAttention(embed_dim={self.embed_dim}, num_heads={self.num_heads})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)  # pickles from before there were kdim and vdim
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attention of the queries to the keys.

        Args:
            query: (L, N, embed_dim), (N, L, embed_dim) with `batch_first`, or (L, embed_dim).
            key: (S, N, kdim), likewise.
            value: (S, N, vdim), likewise.
            key_padding_mask: (N, S) or (S,), true for keys that do not count, or added to the scores.
            need_weights: Whether the weights of keys are returned; without them memory does not grow with L * S.
            attn_mask: (L, S) or (N * num_heads, L, S), likewise.
            average_attn_weights: Whether the returned weights are the mean of the heads.
            is_causal: States that `attn_mask` is causal; it may then not be read.

        Returns:
            The output in the shape of the query, and the weights (N, L, S), (N, num_heads, L, S) or None.

        Raises:
            AssertionError: Dimensions do not fit.
            RuntimeError: Masks have the wrong shape, or `is_causal` comes without one.
        """
        turned = self.batch_first and query.dim() == 3
        if turned:
            first, second, third = query, key, value
            query = first.transpose(1, 0)
            key = query if second is first else second.transpose(1, 0)
            value = query if third is first else key if third is second else third.transpose(1, 0)
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training,
            key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return out.transpose(1, 0) if turned else out, weights
