"""Sparse tensors: random calls give what PyTorch gives, in value, dtype, layout, shape and printed form."""

import random

import numpy as np
import pytest
import torch

import rushlight

LIBS = (torch, rushlight)
DTYPES = ("float32", "float64", "int64", "int32", "complex128", "float16")
MATRICES = ("float32", "float64", "complex128")
FUNCTIONS = {
    *(
        "abs",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "ceil",
        "expm1",
        "floor",
        "frac",
        "isinf",
        "isnan",
        "log1p",
        "nan_to_num",
    ),
    *("neg", "relu", "round", "sgn", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc"),
}

pytestmark = pytest.mark.filterwarnings("ignore:Sparse", "ignore:Casting complex values")


class Draw:
    """Random arguments, alike for both libraries: each method returns a pair."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.shape = tuple(self.random.choice((1, 2, 3, 5)) for _ in range(self.random.choice((1, 2, 2, 3))))
        self.sparse_dim = self.random.randint(1, len(self.shape))
        self.dtype = self.random.choice(DTYPES)
        self.dim = self.random.randint(-len(self.shape), len(self.shape) - 1)

    def sparse(self, shape=None, sparse_dim=None, dtype=None):
        shape, n = shape or self.shape, sparse_dim or self.sparse_dim
        nnz = self.random.choice((0, 2, 3, 8))
        indices = np.stack([self.numbers.integers(0, size, nnz) for size in shape[:n]])
        values = self.numbers.integers(0, 4, (nnz, *shape[n:]))
        coalesced = self.random.random() < 0.6
        for lib in LIBS:
            kind = getattr(lib, dtype or self.dtype)
            t = lib.sparse_coo_tensor(lib.from_numpy(indices), lib.from_numpy(values).to(kind), shape)
            yield t.coalesce() if coalesced else t

    def dense(self, shape=None, dtype=None):
        values = self.numbers.integers(0, 4, shape or self.shape)
        return [lib.from_numpy(values).to(getattr(lib, dtype or self.dtype)) for lib in LIBS]


def elementwise(draw):
    name = draw.random.choice(sorted(FUNCTIONS))
    return name, [draw.sparse()], lambda lib, s: getattr(lib, name)(s)


def arithmetic(draw):
    name, number = draw.random.choice(("add", "sub", "mul")), draw.random.choice((2, 3))
    other = draw.sparse(dtype=draw.random.choice(DTYPES))
    scaled = name != "mul" and not draw.dtype.startswith("float16")
    options = {"alpha": number} if scaled else {}
    return name, [draw.sparse(), other], lambda lib, s, t: getattr(lib, name)(s, t, **options)


def with_dense(draw):
    name = draw.random.choice(("add", "mul"))
    return name, [draw.dense(), draw.sparse()], lambda lib, d, s: getattr(lib, name)(d, s)


def with_number(draw):
    name, number = draw.random.choice((("mul", 2), ("mul", 0.5), ("div", 2), ("pow", 2), ("floor_divide", 2)))
    return name, [draw.sparse()], lambda lib, s: getattr(lib, name)(s, number)


def reduction(draw):
    dims = draw.random.sample(range(len(draw.shape)), draw.random.randint(1, len(draw.shape)))
    if draw.random.random() < 0.5:
        return "sum", [draw.sparse()], lambda lib, s: s.sum(dims, keepdim=len(dims) == 1)
    return "sparse.sum", [draw.sparse(dtype="float64")], lambda lib, s: lib.sparse.sum(s, dims)


def shape(draw):
    n, dim = len(draw.shape), draw.dim
    index = draw.random.randint(0, draw.shape[dim] - 1)
    name, fn = draw.random.choice(
        (
            ("select", lambda lib, s: s.select(dim, index)),
            ("index_select", lambda lib, s: s.index_select(dim, lib.tensor([index, 0, index]))),
            ("unsqueeze", lambda lib, s: s.unsqueeze(dim)),
            ("permute", lambda lib, s: s.permute(*reversed(range(n)))),
            ("cat", lambda lib, s: lib.cat([s, s], dim)),
            ("stack", lambda lib, s: lib.stack([s, s], dim)),
            ("coalesce", lambda lib, s: s.coalesce()),
            ("to_dense", lambda lib, s: s.to_dense()),
            ("to", lambda lib, s: s.to(lib.float64)),
            ("zeros_like", lambda lib, s: lib.zeros_like(s)),
        )
    )
    return name, [draw.sparse()], fn


def masks(draw):
    name, sources = draw.random.choice((("dense", draw.dense()), ("sparse", draw.sparse())))
    return f"sparse_mask of {name}", [sources, draw.sparse()], lambda lib, x, mask: x.sparse_mask(mask)


def softmax(draw):
    name, dim = draw.random.choice(("softmax", "log_softmax")), draw.dim
    return name, [draw.sparse(dtype="float64")], lambda lib, s: getattr(lib.sparse, name)(s, dim)


def products(draw):
    n, k, m = (draw.random.choice((1, 2, 4)) for _ in range(3))
    dtype = draw.random.choice(MATRICES)
    a, b = draw.sparse((n, k), 2, dtype), draw.sparse((k, m), 2, dtype)
    d, c, v = draw.dense((k, m), dtype), draw.dense((n, m), dtype), draw.dense((k,), dtype)
    name, args, fn = draw.random.choice(
        (
            ("mm", [a, d], lambda lib, s, x: s @ x),
            ("csr mm", [a, d], lambda lib, s, x: s.to_sparse_csr() @ x),
            ("sparse mm", [a, b], lambda lib, s, t: lib.sparse.mm(s, t)),
            ("mv", [a, v], lambda lib, s, x: s @ x),
            ("addmm", [c, a, d], lambda lib, x, s, y: lib.addmm(x, s, y, beta=2, alpha=3)),
            ("csr", [a], lambda lib, s: s.to_sparse_csr()),
            ("csr t", [a], lambda lib, s: s.to_sparse_csr().t()),
            ("csr +", [a], lambda lib, s: s.to_sparse_csr() + s.to_sparse_csr()),
            ("csr *", [a], lambda lib, s: s.to_sparse_csr() * 2),
            ("csr to coo", [a], lambda lib, s: s.to_sparse_csr().to_sparse()),
        )
    )
    return name, args, fn


KINDS = [elementwise, arithmetic, with_dense, with_number, reduction, shape, masks, softmax, products]


def outcome(lib, fn, args):
    try:
        return fn(lib, *args)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return error


def check(theirs, ours):
    assert str(ours.layout) == str(theirs.layout)
    assert str(ours.dtype) == str(theirs.dtype)
    wide = "complex128" if theirs.is_complex() else "float64"
    a, b = (t.to_dense().to(getattr(lib, wide)).numpy() for lib, t in zip(LIBS, (theirs, ours), strict=True))
    assert a.shape == b.shape
    np.testing.assert_allclose(b, a, rtol=1e-5 if theirs.dtype.itemsize > 2 else 2e-3, atol=1e-6)
    ordered = theirs.layout is torch.sparse_csr or (theirs.is_sparse and theirs.is_coalesced())
    signed = ordered and (theirs.is_complex() or not theirs.values().all())  # zeros, whose sign is left open
    if ordered and not signed and np.array_equal(a, b):
        assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_random_calls(kind):
    refused = 0
    for seed in range(400):
        name, args, fn = kind(Draw(seed))
        theirs, ours = (outcome(lib, fn, each) for lib, each in zip(LIBS, zip(*args, strict=True), strict=True))
        if isinstance(theirs, Exception):
            refused += 1  # what PyTorch refuses may work here
            continue
        assert not isinstance(ours, Exception), f"{name}, seed {seed}: {ours!r}"
        try:
            check(theirs, ours)
        except AssertionError as error:
            raise AssertionError(f"{name}, seed {seed}: {args}") from error
    assert refused < 200
