"""Transformers: encoders, decoders and their layers."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, ClassVar

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F, init
from rushlight.nn.modules.attention import MultiheadAttention
from rushlight.nn.modules.container import ModuleList
from rushlight.nn.modules.dropout import Dropout
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]


def _activation(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def _clones(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """A causal mask to add to scores: minus infinity above the diagonal.

    Args:
        sz: Positions of the sequence.
        device: Where it is made.
        dtype: Its type.

    Returns:
        (sz, sz).
    """
    return rl.triu(rl.full((sz, sz), -math.inf, dtype=dtype, device=device), diagonal=1)


def _is_causal(mask: Tensor | None, is_causal: bool | None, size: int) -> bool:
    """What is stated; where nothing is, whether the mask is the causal one."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    if mask.dim() != 2 or tuple(mask.shape) != (size, size):
        return False
    causal = generate_square_subsequent_mask(size, mask.device, mask.dtype if mask.is_floating_point() else None)
    return bool((mask == (causal if mask.is_floating_point() else causal != 0)).all())


class _Layer(Module):
    """What both kinds of layers share: a feed-forward block, and adding what a block gives to its input."""

    _attentions: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in self._attentions:
            attention = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first, **made)
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        self.norm_first = norm_first
        blocks = range(1, len(self._attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, **made))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):  # pickles from before it was kept
            self.activation = F.relu

    def _add(self, x: Tensor, number: int, block: Callable[[Tensor], Tensor]) -> Tensor:
        norm, drop = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        return x + drop(block(norm(x))) if self.norm_first else norm(x + drop(block(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward block, each added to its input and normalised.

    Args:
        d_model: Features of input and output.
        nhead: Heads of the attention.
        dim_feedforward: Features inside the feed-forward block.
        dropout: Probability of a zero, in training.
        activation: Of the feed-forward block: "relu", "gelu" or a function.
        layer_norm_eps: Added to the variance.
        batch_first: Whether batches are (N, S, features) instead of (S, N, features).
        norm_first: Whether blocks normalise what they are given, instead of the sum.
        bias: Whether linear layers and norms have biases.
        device: Where the parameters are made.
        dtype: Their type.

    Example:
        >>> import rushlight as torch
        >>> torch.nn.TransformerEncoderLayer(16, 4, 32)(torch.zeros(5, 2, 16)).shape
        torch.Size([5, 2, 16])
    """

    _attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Runs the layer.

        Args:
            src: (S, N, d_model), (N, S, d_model) with `batch_first`, or (S, d_model).
            src_mask: (S, S) or (N * nhead, S, S), true for what is hidden, or added to the scores.
            src_key_padding_mask: (N, S) or (S,), likewise.
            is_causal: States that `src_mask` is causal.

        Returns:
            The shape of `src`.
        """
        padding = F._canonical_mask(src_key_padding_mask, "src_key_padding_mask", src_mask, "src_mask", src.dtype)
        mask = F._canonical_mask(src_mask, "src_mask", None, "", src.dtype, False)

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)[0]

        return self._add(self._add(src, 1, attend), 2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory and a feed-forward block, each added to its input and normalised.

    Args:
        d_model: Features of input and output.
        nhead: Heads of the attentions.
        dim_feedforward: Features inside the feed-forward block.
        dropout: Probability of a zero, in training.
        activation: Of the feed-forward block: "relu", "gelu" or a function.
        layer_norm_eps: Added to the variance.
        batch_first: Whether batches are (N, T, features) instead of (T, N, features).
        norm_first: Whether blocks normalise what they are given, instead of the sum.
        bias: Whether linear layers and norms have biases.
        device: Where the parameters are made.
        dtype: Their type.

    Example:
        >>> import rushlight as torch
        >>> torch.nn.TransformerDecoderLayer(16, 4, 32)(torch.zeros(5, 2, 16), torch.zeros(7, 2, 16)).shape
        torch.Size([5, 2, 16])
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Runs the layer.

        Args:
            tgt: (T, N, d_model), (N, T, d_model) with `batch_first`, or (T, d_model).
            memory: (S, N, d_model), likewise: what an encoder gave.
            tgt_mask: (T, T) or (N * nhead, T, T), true for what is hidden, or added to the scores.
            memory_mask: (T, S), likewise.
            tgt_key_padding_mask: (N, T) or (T,), likewise.
            memory_key_padding_mask: (N, S) or (S,), likewise.
            tgt_is_causal: States that `tgt_mask` is causal.
            memory_is_causal: States that `memory_mask` is causal.

        Returns:
            The shape of `tgt`.
        """

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]

        def look_up(x: Tensor) -> Tensor:
            return self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal
            )[0]

        return self._add(self._add(self._add(tgt, 1, attend), 2, look_up), 3, self._feed_forward)


class TransformerEncoder(Module):
    """A stack of encoder layers.

    Args:
        encoder_layer: The layer, of which copies are made.
        num_layers: How many.
        norm: Applied to what the last one gives.
        enable_nested_tensor: Unused: padded positions are computed as any others.
        mask_check: Unused.

    Example:
        >>> import rushlight as torch
        >>> layer = torch.nn.TransformerEncoderLayer(16, 4, 32)
        >>> torch.nn.TransformerEncoder(layer, 2)(torch.zeros(5, 2, 16)).shape
        torch.Size([5, 2, 16])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Runs all layers.

        Args:
            src: (S, N, E), (N, S, E) with `batch_first`, or (S, E).
            mask: (S, S) or (N * nhead, S, S), true for what is hidden, or added to the scores.
            src_key_padding_mask: (N, S) or (S,), likewise.
            is_causal: States that `mask` is causal; None looks.

        Returns:
            The shape of `src`.
        """
        padding = F._canonical_mask(src_key_padding_mask, "src_key_padding_mask", mask, "mask", src.dtype)
        mask = F._canonical_mask(mask, "mask", None, "", src.dtype, False)
        batch_first = self.num_layers > 0 and self.layers[0].self_attn.batch_first
        causal = _is_causal(mask, is_causal, src.size(1 if batch_first and src.dim() == 3 else 0))
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """A stack of decoder layers.

    Args:
        decoder_layer: The layer, of which copies are made.
        num_layers: How many.
        norm: Applied to what the last one gives.

    Example:
        >>> import rushlight as torch
        >>> layer = torch.nn.TransformerDecoderLayer(16, 4, 32)
        >>> torch.nn.TransformerDecoder(layer, 2)(torch.zeros(5, 2, 16), torch.zeros(7, 2, 16)).shape
        torch.Size([5, 2, 16])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Runs all layers; arguments as those of `TransformerDecoderLayer`, `tgt_is_causal` None looks.

        Returns:
            The shape of `tgt`.
        """
        batch_first = self.num_layers > 0 and self.layers[0].self_attn.batch_first
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt.size(1 if batch_first and tgt.dim() == 3 else 0))
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder, and a decoder that looks up what it gave (A. Vaswani et al., Attention Is All You Need, 2017).

    Args:
        d_model: Features of inputs and output.
        nhead: Heads of the attentions.
        num_encoder_layers: Layers of the encoder.
        num_decoder_layers: Layers of the decoder.
        dim_feedforward: Features inside the feed-forward blocks.
        dropout: Probability of a zero, in training.
        activation: Of the feed-forward blocks: "relu", "gelu" or a function.
        custom_encoder: Takes the place of the encoder.
        custom_decoder: Takes the place of the decoder.
        layer_norm_eps: Added to the variance.
        batch_first: Whether batches are (N, S, features) instead of (S, N, features).
        norm_first: Whether blocks normalise what they are given, instead of the sum.
        bias: Whether linear layers and norms have biases.
        device: Where the parameters are made.
        dtype: Their type.

    Example:
        >>> import rushlight as torch
        >>> model = torch.nn.Transformer(16, 4, 1, 1, 32)
        >>> model(torch.zeros(7, 2, 16), torch.zeros(5, 2, 16)).shape
        torch.Size([5, 2, 16])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        settings = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
            device, dtype,
        )  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*settings), num_encoder_layers, norm())
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*settings), num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    generate_square_subsequent_mask = staticmethod(generate_square_subsequent_mask)

    def _reset_parameters(self) -> None:
        """Draws new initial values for all matrices."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encodes `src`, and decodes `tgt` with what came out. Masks are true for what is hidden, or added to scores.

        Args:
            src: (S, N, d_model), (N, S, d_model) with `batch_first`, or (S, d_model).
            tgt: (T, N, d_model), likewise.
            src_mask: (S, S) or (N * nhead, S, S).
            tgt_mask: (T, T) or (N * nhead, T, T).
            memory_mask: (T, S) or (N * nhead, T, S).
            src_key_padding_mask: (N, S) or (S,).
            tgt_key_padding_mask: (N, T) or (T,).
            memory_key_padding_mask: (N, S) or (S,).
            src_is_causal: States that `src_mask` is causal; None looks.
            tgt_is_causal: States that `tgt_mask` is causal; None looks.
            memory_is_causal: States that `memory_mask` is causal.

        Returns:
            The shape of `tgt`.

        Raises:
            RuntimeError: Batches or features do not fit.
        """
        if src.dim() == 3:
            batch = 0 if self.batch_first else 1
            if src.size(batch) != tgt.size(batch):
                raise RuntimeError(
                    "the batch number of src and tgt must be equal, got "
                    f"src of size {list(src.shape)} and tgt of size {list(tgt.shape)}."
                )
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError(
                f"the feature number of src and tgt must be equal to d_model, got src of size {list(src.shape)} and "
                f"tgt of size {list(tgt.shape)} for d_model={self.d_model}."
            )
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip
