"""What records of this wheel share: views, triangles, and matrices to test with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.plugin import COMPOSITE, Op, Sample

from ._errors import named

SHAPES: tuple[tuple[tuple[int, ...], int], ...] = (((), 3), ((2,), 4), ((2, 3), 2), ((0,), 3), ((), 0), ((), 1))
"""Batch dimensions and orders of the square matrices that operators are tested with."""

RECTANGLES: tuple[tuple[int, ...], ...] = ((3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 3, 2), (3, 0), (0, 3), (1, 1))


def mT(x: Any) -> Any:
    """The matrices transposed."""
    return x.transpose(-2, -1)


def mH(x: Any) -> Any:
    """The matrices transposed and conjugate."""
    return x.adjoint() if x.is_complex() else x.transpose(-2, -1)


def identity(n: int, like: Any) -> Any:
    """The identity in the dtype and on the device of a tensor."""
    import rushlight

    return rushlight.eye(n, dtype=like.dtype, device=like.device)


def is_inexact(x: Any) -> bool:
    """Whether the elements are floating or complex."""
    return bool(x.is_floating_point() or x.is_complex())


def check_matrix(op: str, a: Any, name: str = "A", *, floating: bool = True) -> None:
    """Raises RuntimeError where there are no two dimensions, or no floating elements if they are asked for."""
    if a.ndim < 2:
        raise RuntimeError(
            f"{op}: The input tensor {name} must have at least 2 dimensions. Got a tensor with {a.ndim}. "
            "Add batch dimensions in front."
        )
    if floating and not is_inexact(a):
        raise NotImplementedError(f"{op}: Expected a floating point or complex tensor as input. Got {a.dtype}")


def check_square(op: str, a: Any, name: str = "A", *, floating: bool = True) -> None:
    """Raises RuntimeError where the matrices are not square, or as `check_matrix`."""
    check_matrix(op, a, name, floating=floating)
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"{op}: {name} must be batches of square matrices, but they are {a.shape[-2]} by {a.shape[-1]} matrices"
        )


def general(make: Any, *shape: int) -> Any:
    """A matrix or a batch of them, whose singular values are apart."""
    import rushlight

    m, n = shape[-2:]
    ramp = rushlight.arange(1.0, min(m, n) + 1).to(make.dtype).to(make.device)
    spread = rushlight.zeros(m, n, dtype=make.dtype, device=make.device)
    spread.diagonal().copy_(ramp)
    return make(*shape, low=-0.3, high=0.3) + spread


def well_conditioned(make: Any, *batch: int, n: int = 3) -> Any:
    """Square matrices far from singular ones."""
    x = make(*batch, n, n, low=-1, high=1)
    return x + 2 * n * identity(n, x)


def hermitian(make: Any, *batch: int, n: int = 3) -> Any:
    """Hermitian matrices whose eigenvalues are apart."""
    x = general(make, *batch, n, n)
    return x + mH(x)


def positive_definite(make: Any, *batch: int, n: int = 3) -> Any:
    """Hermitian matrices with positive eigenvalues."""
    x = make(*batch, n, n, low=-1, high=1)
    return x @ mH(x) + n * identity(n, x)


def lower(make: Any, *batch: int, n: int = 3) -> Any:
    """Lower triangular matrices far from singular ones."""
    return well_conditioned(make, *batch, n=n).tril()


def square_samples(make_one: Callable[..., Any] = well_conditioned) -> Callable[..., Iterator[Sample]]:
    """Samples of one square matrix each."""
    return lambda make, dtype: (Sample((make_one(make, *batch, n=n),)) for batch, n in SHAPES)


def inexact(samples: Callable[..., Any]) -> Callable[..., Any]:
    """Samples for floating and complex dtypes only."""
    return lambda make, dtype: samples(make, dtype) if dtype.is_floating_point or dtype.is_complex else ()


def of_free_phase(samples: Callable[..., Any], *, always_complex: bool = False) -> Callable[..., Any]:
    """Samples of vectors whose phase is free: where that is a complex number, their gradients alone mean nothing."""
    return lambda make, dtype: (
        () if make.requires_grad and (always_complex or dtype.is_complex) else samples(make, dtype)
    )


def product_of_eigen(values: Any, vectors: Any) -> tuple[Any, Any]:
    """What does not depend on the phases of orthonormal eigenvectors: the values, and the matrix."""
    return values, (vectors * values.unsqueeze(-2)) @ mH(vectors)


def product_of_svd(U: Any, S: Any, Vh: Any) -> tuple[Any, Any]:
    """What does not depend on the phases of singular vectors: the values, and the matrix."""
    k = S.size(-1)
    return S, (U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :]


def alias(schema: str, record: Op, doc: str, *, out: bool = True) -> Op:
    """A function of rushlight itself, and method, that stands for an operator of this wheel."""
    assert record.sampler
    return (
        Op(schema, family=COMPOSITE, out=out, exact=True, doc=doc)
        .composite(named(schema.partition("(")[0])(lambda *args, **kwargs: record.operator(*args, **kwargs)))
        .samples(record.sampler, record.reference or (record.array_kernel and _on_numpy(record)))
    )


def _on_numpy(record: Op) -> Callable[..., Any]:
    import numpy as np

    return lambda *args, **kwargs: record.array_kernel(np, *args, **kwargs)  # type: ignore[misc]


def records_gradient(x: Any) -> bool:
    """Whether what is computed from a tensor now will be differentiated."""
    import rushlight

    return bool(x.requires_grad and rushlight.is_grad_enabled())


LANES = 8
"""The largest order of which many matrices are computed with at once, one in each lane of a vector."""


def keeps_factors(*tensors: Any) -> bool:
    """Whether the LU factors of the first tensor's matrices are worth keeping for the gradient."""
    A = tensors[0]
    if A.device.type != "cpu" or A.ndim < 2 or A.shape[-1] <= LANES:
        return False
    return any(records_gradient(x) for x in tensors)
