"""Fourier transforms: of whole dimensions (`rushlight.fft`) and of short pieces of a signal (stft, istft).

Three operators do the work: complex to complex, real to complex and complex to real. All others are made of them, and
so are the gradients.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import _C
from .._op import COMPOSITE, FACTORY, Op, Sample
from ._dims import wrap_dim
from ._join import cat
from ._view import _calls

# How a transform of n points is scaled, as an argument of the three operators.
NOT, BY_ROOT, BY_N = range(3)

_NAMES = ("backward", "ortho", "forward")
"""NumPy's names for the scales of a forward transform; of an inverse one they are the other way round."""


def _norm(normalization: int, forward: bool = True) -> str:
    if normalization not in (NOT, BY_ROOT, BY_N):
        raise RuntimeError(f"Unsupported normalization mode {normalization} (fft: {NOT}, {BY_ROOT} or {BY_N})")
    return _NAMES[normalization if forward else -1 - normalization]


def _c2c_array(xp: Any, x: Any, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    if not dim:
        return xp.array(x, order="C")
    if forward:
        return xp.ascontiguousarray(xp.fft.fftn(x, axes=dim, norm=_norm(normalization)))
    return xp.ascontiguousarray(xp.fft.ifftn(x, axes=dim, norm=_norm(normalization, False)))


def _r2c_array(xp: Any, x: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    transform = xp.fft.rfftn if onesided else xp.fft.fftn
    return xp.ascontiguousarray(transform(x, axes=dim, norm=_norm(normalization)))


def _c2r_array(xp: Any, x: Any, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    sizes = [x.shape[d] for d in dim[:-1]] + [last_dim_size]
    return xp.ascontiguousarray(xp.fft.irfftn(x, s=sizes, axes=dim, norm=_norm(normalization, False)))


def _r2c_grad(grad: Any, self: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    if onesided:
        grad = _fit(grad, dim[-1:], [self.shape[dim[-1]]])
    return c2c.operator(grad, dim, normalization, False).real


def _c2r_grad(grad: Any, self: Any, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    from ._join import cat

    spectrum = r2c.operator(grad, dim, normalization, True)
    # What stands for its mirror image too counts twice: all but the first and, of an even size, the last.
    last, kept = dim[-1], spectrum.shape[dim[-1]]
    twice = last_dim_size - kept
    parts = [spectrum.narrow(last, 0, 1), 2 * spectrum.narrow(last, 1, twice)]
    return cat.operator([*parts, spectrum.narrow(last, 1 + twice, kept - 1 - twice)], last)


_CALL = "of dimensions, scaled by 1 (normalization 0), 1/sqrt(n) (1) or 1/n (2)"
c2c = (
    Op(
        "_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor",
        method=False,
        out=False,
        doc=f"Complex transform {_CALL}.",
    )
    .array(_c2c_array)
    .grad(self="_fft_c2c(grad, dim, normalization, not forward)")
    .samples(
        lambda make, dtype: (
            [Sample((make(3, 4), (1, 0), 1, True)), Sample((make(5), (0,), 2, False))] if dtype.is_complex else []
        )
    )
)
r2c = (
    Op(
        "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
        method=False,
        out=False,
        doc=f"Real transform {_CALL}; onesided without the mirror image in the last of them.",
    )
    .array(_r2c_array)
    .grad(self=_r2c_grad)
    .samples(
        lambda make, dtype: (
            [Sample((make(3, 4), (1, 0), 1, True)), Sample((make(5), (0,), 2, False))]
            if dtype in (_C.float32, _C.float64)
            else []
        )
    )
)
c2r = (
    Op(
        "_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor",
        method=False,
        out=False,
        doc=f"Inverse {_CALL}, of the half in the last of them to the real signal of `last_dim_size`.",
    )
    .array(_c2r_array)
    .grad(self=_c2r_grad)
    .samples(
        lambda make, dtype: (
            [Sample((make(3, 3), (0, 1), 1, 4)), Sample((make(3), (0,), 2, 5))] if dtype.is_complex else []
        )
    )
)

# -- arguments


def _scale(norm: str | None, forward: bool) -> int:
    if norm not in (None, "backward", "forward", "ortho"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return BY_ROOT
    return BY_N if (norm == "forward") is forward else NOT


def _floating(x: Any) -> Any:
    """The input, integers in the default dtype."""
    if x.dtype in (_C.float16, _C.bfloat16):
        raise RuntimeError(
            f"Unsupported dtype {'Half' if x.dtype is _C.float16 else 'BFloat16'}: fft takes single and double "
            "precision. Convert with .float()."
        )
    return x if x.is_floating_point() or x.is_complex() else x.to(_C.get_default_dtype())


def _complex(x: Any) -> Any:
    x = _floating(x)
    return x if x.is_complex() else x.to(x.dtype.to_complex())


def _real(name: str, x: Any, wanted: str = "expects a real input tensor, but got") -> Any:
    if x.is_complex():
        raise RuntimeError(f"{name} {wanted} dtype={x.dtype}")
    return _floating(x)


def _fit(x: Any, dims: Sequence[int], sizes: Sequence[int]) -> Any:
    """The tensor cut, or padded with zeros, to sizes of some dimensions."""
    from ._join import cat

    for dim, size in zip(dims, sizes, strict=True):
        if size < x.shape[dim]:
            x = x.narrow(dim, 0, size)
        elif size > x.shape[dim]:
            shape = list(x.shape)
            shape[dim] = size - shape[dim]
            x = cat.operator([x, x.new_zeros(shape)], dim)
    return x


def _points(n: int) -> int:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _one(x: Any, n: int | None, dim: int) -> tuple[int, int]:
    """The dimension and the number of points of a one-dimensional transform."""
    if x.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = wrap_dim(dim, x.ndim)
    return dim, _points(x.shape[dim] if n is None else n)


def _many(x: Any, s: Any, dim: Any) -> tuple[list[int], list[int]]:
    """The dimensions and the numbers of points of an n-dimensional transform."""
    if dim is not None:
        dims = [wrap_dim(d, x.ndim) for d in ([dim] if isinstance(dim, int) else dim)]
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"FFT dims must be unique, got dim={tuple(dim)}")
    sizes = None if s is None else [s] if isinstance(s, int) else list(s)
    if sizes is None:
        dims = dims if dim is not None else list(range(x.ndim))
        sizes = [x.shape[d] for d in dims]
    elif dim is not None:
        if len(dims) != len(sizes):
            raise RuntimeError(
                f"When given, dim and shape arguments must have the same length, got dim={tuple(dims)} and "
                f"s={tuple(sizes)}"
            )
    else:
        if len(sizes) > x.ndim:
            raise RuntimeError(f"Got shape with {len(sizes)} values but input tensor only has {x.ndim} dimensions.")
        dims = list(range(x.ndim - len(sizes), x.ndim))
    return dims, [_points(x.shape[d] if n == -1 else n) for d, n in zip(dims, sizes, strict=True)]


# -- transforms


def _fft(x: Any, n: int | None, dim: int, norm: str | None, forward: bool) -> Any:
    x, scale = _floating(x), _scale(norm, forward)
    dim, n = _one(x, n, dim)
    if not x.is_complex() and forward:
        return r2c.operator(_fit(x, [dim], [n]), [dim], scale, False)
    return c2c.operator(_fit(_complex(x), [dim], [n]), [dim], scale, forward)


def _rfft(name: str, x: Any, n: int | None, dim: int, norm: str | None, forward: bool) -> Any:
    x = _real(name, x)
    dim, n = _one(x, n, dim)
    half = r2c.operator(_fit(x, [dim], [n]), [dim], _scale(norm, forward), True)
    return half if forward else half.conj()


def _irfft(x: Any, n: int | None, dim: int, norm: str | None, forward: bool) -> Any:
    x = _complex(x)
    dim, _ = _one(x, 1, dim)
    n = _points(2 * (x.shape[dim] - 1) if n is None else n)
    x = _fit(x, [dim], [n // 2 + 1])
    return c2r.operator(x.conj() if forward else x, [dim], _scale(norm, forward), n)


def _fftn(x: Any, s: Any, dim: Any, norm: str | None, forward: bool) -> Any:
    x = _complex(x)
    dims, sizes = _many(x, s, dim)
    return c2c.operator(_fit(x, dims, sizes), dims, _scale(norm, forward), forward)


def _rfftn(name: str, x: Any, s: Any, dim: Any, norm: str | None) -> Any:
    x = _real(name, x, "expects a real-valued input tensor, but got")
    dims, sizes = _many(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return r2c.operator(_fit(x, dims, sizes), dims, _scale(norm, True), True)


def _half_sizes(name: str, x: Any, s: Any, dim: Any) -> tuple[list[int], list[int], int]:
    """Dimensions and sizes of the half spectrum, and the size of the signal in the last of them."""
    dims, sizes = _many(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    given = s is not None and (s if isinstance(s, int) else s[-1]) != -1
    last = _points(sizes[-1] if given else 2 * (x.shape[dims[-1]] - 1))
    return dims, [*sizes[:-1], last // 2 + 1], last


def _irfftn(name: str, x: Any, s: Any, dim: Any, norm: str | None) -> Any:
    x = _complex(x)
    dims, sizes, last = _half_sizes(name, x, s, dim)
    return c2r.operator(_fit(x, dims, sizes), dims, _scale(norm, False), last)


def _hfftn(name: str, x: Any, s: Any, dim: Any, norm: str | None) -> Any:
    x, scale = _complex(x), _scale(norm, True)
    dims, sizes, last = _half_sizes(name, x, s, dim)
    x = c2c.operator(_fit(x, dims, sizes), dims[:-1], scale, True)
    return c2r.operator(x.conj(), dims[-1:], scale, last)


def _ihfftn(name: str, x: Any, s: Any, dim: Any, norm: str | None) -> Any:
    x, scale = _real(name, x, "only supports floating-point dtypes, but found:"), _scale(norm, False)
    dims, sizes = _many(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    half = r2c.operator(_fit(x, dims, sizes), dims[-1:], scale, True).conj()
    return c2c.operator(half, dims[:-1], scale, False)


# -- operators


def _samples(*calls: tuple[Any, ...], real: bool = False) -> Callable[[Any, Any], Iterator[Sample]]:
    def samples(make: Any, dtype: Any) -> Iterator[Sample]:
        if not (real and dtype.is_complex) and dtype not in (_C.float16, _C.bfloat16):
            yield from _calls(*calls)(make, dtype)

    return samples


_KINDS = {
    "fft": ("Fourier transform", "complex"),
    "ifft": ("Inverse Fourier transform", "complex"),
    "rfft": ("Fourier transform of a real signal, without its mirror image", "complex"),
    "irfft": ("Inverse of `rfft`, from half a spectrum to a real signal", "real"),
    "hfft": ("Fourier transform of half a signal that is Hermitian, which is real", "real"),
    "ihfft": ("Inverse of `hfft`, from a real spectrum to half a Hermitian signal", "complex"),
}


_NORM = """"backward" scales the inverse by 1/n (the default), "forward" the transform by 1/n, "ortho" both by
                1/sqrt(n)."""
_RAISES = "RuntimeError: There are no points, `norm` is unknown, or the dtype does not fit."


def _one_dimension(kind: str, rule: Callable[..., Any]) -> Op:
    what, result = _KINDS[kind]
    return (
        Op(
            f"fft::{kind}(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor",
            family=COMPOSITE,
            doc=f"""{what}, along one dimension.

        Args:
            input: Tensor; integers compute in the default dtype.
            n: Number of points of the signal: the input is cut, or padded with zeros, to fit.
            dim: Dimension.
            norm: {_NORM}

        Returns:
            {result.capitalize()} tensor.

        Raises:
            {_RAISES}
        """,
        )
        .composite(lambda self, n, dim, norm: rule(self, n, dim, norm))
        .samples(
            _samples(
                ((8,),),
                ((3, 7),),
                ((3, 4), 5, 0),
                ((3, 8), 3, -1, "ortho"),
                ((3, 8), None, 1, "forward"),
                real=kind in ("rfft", "ihfft"),
            ),
            lambda x, n=None, dim=-1, norm=None: getattr(np.fft, kind)(x, n, dim, norm),
        )
    )


def _dimensions(kind: str, suffix: str, rule: Callable[..., Any], reference: Callable[..., Any]) -> Op:
    what, result = _KINDS[kind]
    default = "None" if suffix == "n" else "[-2, -1]"
    return (
        Op(
            f"fft::{kind}{suffix}(Tensor self, int[1]? s=None, int[1]? dim={default}, str? norm=None) -> Tensor",
            family=COMPOSITE,
            doc=f"""{what}, along {"several" if suffix == "n" else "two"} dimensions.

        Args:
            input: Tensor; integers compute in the default dtype.
            s: Number of points of the signal in each dimension, -1 for what it has; the input is cut, or padded with
                zeros, to fit.
            dim: Dimensions, by default {"all, or as many of the last as `s` has" if suffix == "n" else "the last two"}.
            norm: {_NORM}

        Returns:
            {result.capitalize()} tensor.

        Raises:
            {_RAISES}
        """,
        )
        .composite(lambda self, s, dim, norm: rule(self, s, dim, norm))
        .samples(
            _samples(
                ((4, 5),),
                ((2, 3, 4),),
                ((3, 4), (5, 2)),
                ((3, 4, 2), None, (0, 2), "ortho"),
                ((3, 4), (3, -1), (1, 0), "forward"),
                real=kind in ("rfft", "ihfft"),
            ),
            reference,
        )
    )


def _reference(kind: str, default: Any) -> Callable[..., Any]:
    """NumPy's transform; -1 and the Hermitian ones, which it lacks, made from the others."""

    def reference(x: Any, s: Any = None, dim: Any = default, norm: str | None = None) -> Any:
        axes = tuple(range(x.ndim))[-len(s) :] if s is not None and dim is None else dim
        if s is not None:
            s = [x.shape[d] if n == -1 else n for d, n in zip(axes, s, strict=True)]
            if kind in ("irfft", "hfft") and s[-1] == x.shape[axes[-1]]:
                s[-1] = 2 * (s[-1] - 1)
        opposite: Any = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}[norm]
        if kind == "hfft":
            return np.fft.irfftn(np.conj(x), s, axes, opposite)
        if kind == "ihfft":
            return np.conj(np.fft.rfftn(x, s, axes, opposite))
        return getattr(np.fft, f"{kind}n")(x, s, axes, norm)

    return reference


fft = _one_dimension("fft", lambda x, n, dim, norm: _fft(x, n, dim, norm, True))
ifft = _one_dimension("ifft", lambda x, n, dim, norm: _fft(x, n, dim, norm, False))
rfft = _one_dimension("rfft", lambda x, n, dim, norm: _rfft("rfft", x, n, dim, norm, True))
irfft = _one_dimension("irfft", lambda x, n, dim, norm: _irfft(x, n, dim, norm, False))
hfft = _one_dimension("hfft", lambda x, n, dim, norm: _irfft(x, n, dim, norm, True))
ihfft = _one_dimension("ihfft", lambda x, n, dim, norm: _rfft("ihfft", x, n, dim, norm, False))


def _both(kind: str, rule: Callable[[str, Any, Any, Any, Any], Any]) -> tuple[Op, Op]:
    return (
        _dimensions(kind, "2", lambda *args: rule(f"{kind}2", *args), _reference(kind, (-2, -1))),
        _dimensions(kind, "n", lambda *args: rule(f"{kind}n", *args), _reference(kind, None)),
    )


fft2, fftn = _both("fft", lambda name, x, s, dim, norm: _fftn(x, s, dim, norm, True))
ifft2, ifftn = _both("ifft", lambda name, x, s, dim, norm: _fftn(x, s, dim, norm, False))
rfft2, rfftn = _both("rfft", _rfftn)
irfft2, irfftn = _both("irfft", _irfftn)
hfft2, hfftn = _both("hfft", _hfftn)
ihfft2, ihfftn = _both("ihfft", _ihfftn)

# -- what goes with them


def _frequencies(name: str, n: int, d: float, dtype: Any, device: Any, half: bool) -> Any:
    dtype = dtype or _C.get_default_dtype()
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype, got dtype={dtype}")
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}] ({name})")
    cycles = np.arange(n // 2 + 1) if half else np.concatenate((np.arange((n + 1) // 2), np.arange(-(n // 2), 0)))
    with np.errstate(all="ignore"):  # a spacing of 0 gives infinities
        return _C.tensor(cycles / np.float64(n * d), dtype=dtype, device=device)


def _frequency_op(name: str, half: bool) -> Op:
    options = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
    return (
        Op(
            f"fft::{name}(int n, float d=1.0, {options}) -> Tensor",
            family=FACTORY,
            differentiable=False,
            doc=f"""The frequencies of what `{"rfft" if half else "fft"}` of n points gives, in cycles per unit of `d`.

        Args:
            n: Number of points of the signal.
            d: Distance of its samples.
            dtype: Floating-point dtype, by default the default one.
            device: Where it lives, by default the default device.

        Returns:
            Vector.

        Raises:
            RuntimeError: `n` is negative or the dtype is an integer's.
        """,
        )
        .composite(lambda n, d, *, dtype, device, **_: _frequencies(name, n, d, dtype, device, half))
        .samples(
            lambda make, dtype: (
                Sample(args, {"dtype": dtype, "device": make.device})
                for args in ((5,), (6, 0.5), (1,))
                if dtype.is_floating_point
            ),
            lambda n, d=1.0, *, dtype, device: getattr(np.fft, name)(n, d),
        )
    )


fftfreq = _frequency_op("fftfreq", False)
rfftfreq = _frequency_op("rfftfreq", True)


def _shift(x: Any, dim: Any, back: bool) -> Any:
    dims = list(range(x.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if x.ndim == 0:
        raise RuntimeError("`shifts` required: a 0-d tensor has no dimension to shift.")
    sizes = [x.shape[wrap_dim(d, x.ndim)] for d in dims]
    return x.roll([(n + 1) // 2 if back else n // 2 for n in sizes], dims)


def _shift_op(name: str, back: bool, doc: str) -> Op:
    return (
        Op(f"fft::{name}(Tensor self, int[1]? dim=None) -> Tensor", family=COMPOSITE, out=False, doc=doc)
        .composite(lambda self, dim: _shift(self, dim, back))
        .samples(
            _calls(((5,),), ((4, 3),), ((4, 3), (0,)), ((4, 3), -1)), lambda x, dim=None: getattr(np.fft, name)(x, dim)
        )
    )


fftshift = _shift_op("fftshift", False, "A spectrum with the zero frequency in the middle of `dim`, by default all.")
ifftshift = _shift_op("ifftshift", True, "The inverse of `fftshift`.")

# -- short pieces of a signal


def _pad_ends(x: Any, before: int, after: int, mode: str) -> Any:
    """Longer at both ends of the last dimension."""
    n = x.shape[-1]
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(
            f"Unrecognised padding mode {mode}: known are circular, constant, reflect, replicate."
        )
    longest = n - 1 if mode == "reflect" else n if mode == "circular" else None
    if longest is not None and max(before, after) > longest:
        raise RuntimeError(
            "Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at the last dimension of input {list(x.shape)}"
        )
    if mode == "reflect":
        left, right = x[..., 1 : before + 1].flip(-1), x[..., n - 1 - after : n - 1].flip(-1)
    elif mode == "circular":
        left, right = x[..., n - before :], x[..., :after]
    elif mode == "replicate":
        left, right = x[..., :1].expand(*x.shape[:-1], before), x[..., -1:].expand(*x.shape[:-1], after)
    else:
        left, right = (x.new_zeros((*x.shape[:-1], size)) for size in (before, after))
    return cat.operator([left, x, right], -1)


def _describe(name: str, x: Any, **arguments: Any) -> str:
    text = ", ".join(
        f"{key}=window{list(value.shape)}" if isinstance(value, _C.Tensor) else f"{key}={value}"
        for key, value in arguments.items()
    )
    return f"{name}({x.dtype}{list(x.shape)}, {text}) : "


def _centred(window: Any, n_fft: int) -> Any:
    short = n_fft - window.shape[0]
    return _pad_ends(window, short // 2, short - short // 2, "constant") if short else window


def _stft(
    x: Any,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Any,
    center: bool,
    pad_mode: str,
    normalized: bool,
    onesided: bool | None,
    return_complex: bool | None,
    align_to_window: bool | None,
) -> Any:
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    is_complex = x.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not is_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if center and align_to_window:
        raise RuntimeError(f"stft align_to_window should only be set when center = false, got center={center}.")
    what = _describe("stft", x, n_fft=n_fft, hop_length=hop, win_length=length, window=window)
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(what + "expected a tensor of floating point or complex values")
    if x.ndim not in (1, 2):
        raise RuntimeError(what + "expected a 1D or 2D tensor")
    signal = x.unsqueeze(0) if x.ndim == 1 else x
    if center and n_fft > 0:
        signal = _pad_ends(signal, n_fft // 2, n_fft // 2, pad_mode)
    if not 0 < n_fft <= signal.shape[1]:
        raise RuntimeError(what + f"expected 0 < n_fft < {signal.shape[1]}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(what + f"expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(what + f"expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and (window.ndim != 1 or window.shape[0] != length):
        raise RuntimeError(
            what + f"expected a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{list(window.shape)}"
        )
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    onesided = not is_complex if onesided is None else onesided
    if align_to_window:
        before = (n_fft - length) // 2
        signal = _pad_ends(signal, before, n_fft - length - before, "constant")
    if window is None and length < n_fft:
        window = x.new_ones(length)
    frames = signal.unfold(1, n_fft, hop)
    if window is not None:
        frames = frames * _centred(window, n_fft)
    scale = BY_ROOT if normalized else NOT
    if frames.is_complex():
        spectrum = c2c.operator(frames, [2], scale, True)
    else:
        spectrum = r2c.operator(_floating(frames), [2], scale, onesided)
    spectrum = spectrum.transpose(1, 2)
    if x.ndim == 1:
        spectrum = spectrum.squeeze(0)
    return spectrum if return_complex else _as_real(spectrum)


def _as_real(x: Any) -> Any:
    from ._view import view_as_real

    return view_as_real.operator(x)


def _istft(
    x: Any,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Any,
    center: bool,
    normalized: bool,
    onesided: bool | None,
    length: int | None,
    return_complex: bool,
) -> Any:
    from ._view import unfold_backward

    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    what = _describe("istft", x, n_fft=n_fft, hop_length=hop, win_length=width, window=window, length=length)
    if not x.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if x.numel() == 0:
        raise RuntimeError(what + "input tensor cannot be empty.")
    if x.ndim not in (2, 3):
        raise RuntimeError(what + f"expected a tensor with 2 or 3 dimensions, but got {x.ndim}")
    spectrum = x.unsqueeze(0) if x.ndim == 2 else x
    if onesided is None:
        onesided = spectrum.shape[1] != n_fft
    wanted = n_fft // 2 + 1 if onesided else n_fft
    if spectrum.shape[1] != wanted:
        raise RuntimeError(
            what + f"expected the frequency dimension (3rd to the last) of the input tensor to be {wanted} when "
            f"onesided={onesided}, but got {spectrum.shape[1]}"
        )
    if not 0 < hop <= width:
        raise RuntimeError(what + "expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(what + "expected 0 < win_length <= n_fft")
    if window is not None and (window.ndim != 1 or window.shape[0] != width):
        raise RuntimeError(what + "Invalid window shape. window has to be 1D and length of `win_length`")
    if return_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not return_complex and window is not None and window.is_complex():
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if window is None:
        window = x.new_ones(width, dtype=x.dtype if return_complex else x.dtype.to_real())
    window = _centred(window, n_fft)

    spectrum, scale = spectrum.transpose(1, 2), BY_ROOT if normalized else BY_N
    if return_complex:
        frames = c2c.operator(spectrum, [2], scale, False)
    else:
        frames = c2r.operator(spectrum.narrow(2, 0, n_fft // 2 + 1), [2], scale, n_fft)
    count = frames.shape[1]
    total = n_fft + hop * (count - 1)
    # Frames add up where they overlap, and so do the squares of the window, by which the signal is divided.
    signal = unfold_backward.operator(frames * window, [frames.shape[0], total], 1, n_fft, hop)
    envelope = unfold_backward.operator((window * window).expand(1, count, n_fft), [1, total], 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - (n_fft // 2 if center else 0)
    kept = max(min(end, total) - start, 0)
    signal, envelope = signal.narrow(1, start, kept), envelope.narrow(1, start, kept)
    if kept and not envelope.is_meta and envelope.abs().min().item() <= 1e-11:
        raise RuntimeError(what + "window overlap add min: 1. Choose a window and a hop that leave no gap.")
    signal = signal / envelope
    if end > total:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the "
            "tail. Please check your center and hop_length settings.",
            stacklevel=3,
        )
        signal = _pad_ends(signal, 0, end - total, "constant")
    return signal.squeeze(0) if x.ndim == 2 else signal


def _np_stft(
    x: Any, n_fft: int, hop_length: int, *, window: Any = None, center: bool = True, return_complex: bool = True
) -> Any:
    x = np.pad(x, n_fft // 2, "reflect") if center else x
    starts = range(0, len(x) - n_fft + 1, hop_length)
    frames = np.stack([x[i : i + n_fft] for i in starts]) * (1 if window is None else window)
    return (np.fft.fft if np.iscomplexobj(frames) else np.fft.rfft)(frames).T


def _stft_samples(make: Any, dtype: Any) -> Iterator[Sample]:
    if dtype in (_C.float32, _C.float64) or dtype.is_complex:
        yield Sample((make(20), 8, 3), {"return_complex": True})
        yield Sample((make(20), 8, 4), {"window": make(8), "center": False, "return_complex": True})


def _istft_samples(make: Any, dtype: Any) -> Iterator[Sample]:
    if dtype.is_complex:
        yield Sample((make(5, 6), 8, 4), {"window": make(8, low=0.5, high=1).abs().detach()})
        yield Sample((make(2, 5, 6), 8, 2), {"center": False})


def _np_istft(x: Any, n_fft: int, hop_length: int, *, window: Any = None, center: bool = True) -> Any:
    frames = np.fft.irfft(np.moveaxis(x, -2, -1), n_fft)
    window = np.ones(n_fft) if window is None else window
    signal = np.zeros((*x.shape[:-2], n_fft + hop_length * (x.shape[-1] - 1)))
    squares = np.zeros(signal.shape[-1])
    for i in range(x.shape[-1]):
        at = slice(i * hop_length, i * hop_length + n_fft)
        signal[..., at] += frames[..., i, :] * window
        squares[at] += window**2
    inside = slice(n_fft // 2, -(n_fft // 2)) if center else slice(None)
    return signal[..., inside] / squares[inside]


stft = (
    Op(
        "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
        "bool center=True, str pad_mode='reflect', bool normalized=False, bool? onesided=None, "
        "bool? return_complex=None, bool? align_to_window=None) -> Tensor",
        family=COMPOSITE,
        out=False,
        doc="""Fourier transforms of pieces of a signal that overlap, each times a window.

        Args:
            input: Signal (*, n), of one dimension or two, real or complex.
            n_fft: Points of a piece.
            hop_length: From the start of one piece to that of the next, by default `n_fft // 4`.
            win_length: Points of the window, by default `n_fft`; a shorter window stands in the middle of a piece.
            window: Vector of `win_length` elements, by default ones.
            center: Whether the signal is padded at both ends so that piece t is centred at `t * hop_length`.
            pad_mode: How: "reflect", "constant", "replicate" or "circular".
            normalized: Whether the transforms are scaled by 1/sqrt(n_fft).
            onesided: Whether only half the spectrum is given, by default where signal and window are real.
            return_complex: Whether the result is complex, or real with a last dimension of two parts.
            align_to_window: Without `center`: whether the window rather than the piece begins at `t * hop_length`.

        Returns:
            Tensor (*, frequencies, pieces).

        Raises:
            RuntimeError: Sizes do not fit each other, or `return_complex` is left out for a real signal.
        """,
    )
    .composite(_stft)
    .samples(_stft_samples, _np_stft)
)
istft = (
    Op(
        "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
        "bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) "
        "-> Tensor",
        family=COMPOSITE,
        out=False,
        doc="""The signal whose `stft` is nearest to the input, in the sense of least squares (Griffin and Lim, 1984).

        Args:
            input: Complex tensor (*, frequencies, pieces), as `stft` gives it.
            n_fft: Points of a piece.
            hop_length: From the start of one piece to that of the next, by default `n_fft // 4`.
            win_length: Points of the window, by default `n_fft`.
            window: The vector that `stft` was given.
            center: Whether the signal was padded at both ends.
            normalized: Whether the transforms were scaled.
            onesided: Whether the input is half the spectrum, by default where it does not have `n_fft` frequencies.
            length: Length of the signal; what lies beyond is cut, what is missing zero.
            return_complex: Whether the signal is complex.

        Returns:
            Tensor (*, n).

        Raises:
            RuntimeError: Sizes do not fit each other, or the windows leave a gap.
        """,
    )
    .composite(_istft)
    .samples(_istft_samples, _np_istft)
)
