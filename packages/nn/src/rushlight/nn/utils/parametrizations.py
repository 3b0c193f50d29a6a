"""Parametrizations that are often wanted: orthogonal, spectrally normalised and weight-normalised weights."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.functional import normalize
from rushlight.nn.modules.module import Module
from rushlight.nn.utils import parametrize
from rushlight.nn.utils.spectral_norm import as_matrix, divided, output_dim
from rushlight.nn.utils.weight_norm import norm_except, normalized

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_MAPS = ("cayley", "householder", "matrix_exp")


def _orthogonal_factor(matrix: Tensor) -> Tensor:
    """Q of the QR decomposition in which R has a positive diagonal."""
    reflectors, tau = rl.geqrf(matrix)
    signs = reflectors.diagonal(dim1=-2, dim2=-1).sgn()
    return rl.linalg.householder_product(reflectors, tau) * signs.unsqueeze(-2)


def _is_orthogonal(matrix: Tensor) -> bool:
    n, k = matrix.shape[-2:]
    eps = 10 * n * rl.finfo(matrix.dtype).eps
    identity = rl.eye(k, dtype=matrix.dtype, device=matrix.device).expand(*matrix.shape[:-2], k, k)
    return bool(rl.allclose(matrix.mH @ matrix, identity, atol=eps))


class _Orthogonal(Module):
    """A matrix with orthonormal columns, or rows where it is wide.

    With a base, it is the base times an orthogonal matrix that begins as the identity (Lezcano Casado, 2019).
    """

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)
        self.use_trivialization = use_trivialization

    def forward(self, x: Tensor) -> Tensor:
        is_wide = x.size(-2) < x.size(-1)
        if is_wide:
            x = x.mT
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            below = x.tril(-1)
            tau = 2.0 / (1.0 + (below * below).sum(-2))
            q = rl.linalg.householder_product(below, tau)
            q = q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)  # the diagonal holds signs
        else:
            x = x.tril()
            if n != k:
                x = rl.cat([x, x.new_zeros(*x.shape[:-1], n - k)], -1)
            skew = x - x.mH
            if self.orthogonal_map == "matrix_exp":
                q = rl.linalg.matrix_exp(skew)
            else:
                identity = rl.eye(n, dtype=x.dtype, device=x.device)
                q = rl.linalg.solve(identity - 0.5 * skew, identity + 0.5 * skew)
            q = q[..., :k]
        if self.use_trivialization and self.base is not None:
            q = self.base @ q
        return q.mT if is_wide else q

    @rl.no_grad()  # type: ignore[untyped-decorator]
    def right_inverse(self, q: Tensor) -> Tensor:
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {q.shape}."
            )
        given = q
        is_wide = q.size(-2) < q.size(-1)
        if is_wide:
            q = q.mT
        n, k = q.shape[-2:]
        if not self.use_trivialization:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            reflectors, tau = rl.geqrf(q)
            diagonal = reflectors.diagonal(dim1=-2, dim2=-1)
            signs = diagonal.sign().where(diagonal != 0, 1.0)
            diagonal.copy_(signs.where(tau != 0, -signs))  # forward reflects where LAPACK (tau = 0) did not
            return reflectors.mT if is_wide else reflectors
        if n == k:
            self.base = q.clone() if _is_orthogonal(q) else _orthogonal_factor(q)
        else:  # the base is square: it needs columns that are orthogonal to the given ones
            others = rl.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
            self.base = _orthogonal_factor(rl.cat([q, others], -1))
        # What every map takes to the identity.
        start = rl.zeros_like(given, memory_format=rl.contiguous_format)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keeps a weight orthogonal (unitary where complex): its columns, or rows where it is wide, are orthonormal.

    Args:
        module: The module.
        name: Name of the weight, (*, n, k).
        orthogonal_map: ``"matrix_exp"``, the exponential of a skew matrix; ``"cayley"``, its Cayley transform; or
            ``"householder"``, a product of reflections, for real weights. Default: the first for square or complex
            weights, else the last.
        use_trivialization: Whether the map is centred at the value of the weight, so that any orthogonal matrix can
            be assigned.

    Returns:
        `module`.

    Raises:
        ValueError: There is no such weight, it has less than 2 dimensions, or the map does not exist or fit.
        AttributeError: The wheel rushlight-linalg, which brings the maps, is not installed.

    Example:
        >>> import rushlight as torch
        >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(20, 40))
        >>> torch.dist(layer.weight.T @ layer.weight, torch.eye(20)).item() < 1e-4
        True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        is_square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if is_square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    part = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return parametrize.register_parametrization(module, name, part, unsafe=True)


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.dim()
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % ndim
        self.eps = eps
        self.n_power_iterations = n_power_iterations
        if ndim > 1:  # a vector is divided by its norm
            matrix = as_matrix(weight.detach(), self.dim)
            for name, size in zip(("_u", "_v"), matrix.shape, strict=True):
                self.register_buffer(name, normalize(matrix.new_empty(size).normal_(0, 1), dim=0, eps=eps))
            self._power_method(matrix, 15)

    @rl.no_grad()  # type: ignore[untyped-decorator]
    def _power_method(self, matrix: Tensor, n: int) -> None:
        for _ in range(n):
            self._u.copy_(normalize(matrix.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(normalize(matrix.mH.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        return divided(weight, matrix, self._u.clone(), self._v.clone())

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divides a weight by its greatest singular value (Miyato et al., 2018).

    Args:
        module: The module.
        name: Name of the weight.
        n_power_iterations: Iterations of the power method whenever the weight is read in training mode.
        eps: The least norm that vectors are divided by.
        dim: The dimension that outputs are numbered by. Default: 0, for transposed convolutions 1.

    Returns:
        `module`.

    Raises:
        ValueError: There is no such weight, or `n_power_iterations` is not positive.

    Example:
        >>> import rushlight as torch
        >>> layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(20, 40))
        >>> abs(torch.linalg.matrix_norm(layer.weight, 2).item() - 1) < 0.2
        True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    part = _SpectralNorm(weight, n_power_iterations, output_dim(module) if dim is None else dim, eps)
    return parametrize.register_parametrization(module, name, part)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return normalized(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Computes a weight from its length and its direction (Salimans and Kingma, 2016).

    They are ``parametrizations.<name>.original0`` and ``original1``. State dicts of the former
    `rushlight.nn.utils.weight_norm` load too.

    Args:
        module: The module.
        name: Name of the weight.
        dim: The dimension whose slices have a length each; None: one length for all.

    Returns:
        `module`.

    Example:
        >>> import rushlight as torch
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(20, 40))
        >>> layer.parametrizations.weight.original0.shape
        torch.Size([40, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        for i, suffix in enumerate("gv"):
            old = f"{prefix}{name}_{suffix}"
            if old in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(old)

    module._register_load_state_dict_pre_hook(rename)
    return module
