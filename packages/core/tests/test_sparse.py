"""Sparse layouts against dense NumPy arrays."""

import copy
import pickle

import numpy as np
import pytest

import rushlight as torch

RNG = np.random.default_rng(7)
DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128, torch.int64, torch.int32, torch.uint8]


def array(*shape, dtype=torch.float64, density=0.3):
    """A NumPy array most of whose elements are zero, small integers so that sums are exact."""
    values = RNG.integers(1, 5, shape) * (RNG.random(shape) < density)
    as_complex = values * (1 + 2j) if dtype.is_complex else values
    return as_complex.astype(torch.zeros(0, dtype=dtype).numpy().dtype)


def coo(a, sparse_dim=None, duplicates=False):
    t = torch.from_numpy(np.array(a))
    s = t.to_sparse() if sparse_dim is None else t.to_sparse(sparse_dim)
    if not duplicates:
        return s
    # The same tensor with every element split in two, in another order.
    indices, values = s.indices(), s.values()
    order = torch.from_numpy(RNG.permutation(2 * s._nnz()))
    both = torch.cat((values, values * 0))
    return torch.sparse_coo_tensor(torch.cat((indices, indices), 1)[:, order], both[order], s.shape)


def check(result, expected):
    dense = result.to_dense()
    assert tuple(dense.shape) == expected.shape
    np.testing.assert_allclose(dense.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(5,), (4, 6), (2, 3, 4), (0, 3), (3, 0), (1, 1), ()])
def test_round_trip(shape, dtype):
    a = array(*shape, dtype=dtype)
    s = torch.from_numpy(np.array(a)).to_sparse()
    assert s.layout is torch.sparse_coo
    assert s.is_sparse
    assert not s.is_sparse_csr
    assert s.dtype is dtype
    assert s._nnz() == np.count_nonzero(a)
    assert s.is_coalesced()
    np.testing.assert_array_equal(s.indices().numpy(), np.array(np.nonzero(np.atleast_1d(a)))[: len(shape)])
    check(s, a)


@pytest.mark.parametrize("sparse_dim", [1, 2, 3])
def test_hybrid(sparse_dim):
    a = array(3, 4, 2)
    s = coo(a, sparse_dim)
    assert (s.sparse_dim(), s.dense_dim()) == (sparse_dim, 3 - sparse_dim)
    check(s, a)
    check(s + s, 2 * a)
    check(s * 3, 3 * a)
    check(s * coo(a, sparse_dim), a * a)
    check(s * torch.from_numpy(a), a * a)
    for dim in range(3):
        check(s.sum(dim), a.sum(dim))
        check(s.select(dim, 1), np.take(a, 1, dim))
        check(s.index_select(dim, torch.tensor([1, 0, 1])), np.take(a, [1, 0, 1], dim))
        check(torch.cat([s, s], dim), np.concatenate([a, a], dim))
    for dim in range(4):
        check(s.unsqueeze(dim), np.expand_dims(a, dim))
        check(torch.stack([s, s], dim), np.stack([a, a], dim))


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16, torch.bfloat16, torch.bool], ids=str)
def test_coalesce(dtype):
    indices = torch.from_numpy(RNG.integers(0, 4, (2, 50)))
    values = torch.from_numpy(RNG.integers(0, 3, 50)).to(dtype)
    s = torch.sparse_coo_tensor(indices, values, (4, 4))
    assert not s.is_coalesced()
    expected = np.zeros((4, 4), dtype=np.int64)
    np.add.at(expected, tuple(indices.numpy()), values.to(torch.int64).numpy())
    c = s.coalesce()
    places = c.indices().numpy()
    assert c.is_coalesced()
    assert places.shape == (2, c._nnz())
    assert (np.diff(places[0] * 4 + places[1]) > 0).all()
    expected = expected > 0 if dtype is torch.bool else expected
    np.testing.assert_array_equal(c.to_dense().to(torch.float64).numpy(), expected.astype(np.float64))
    np.testing.assert_array_equal(s.to_dense().to(torch.float64).numpy(), expected.astype(np.float64))


@pytest.mark.parametrize("duplicates", [False, True])
def test_arithmetic(duplicates):
    a, b = array(5, 7), array(5, 7)
    s, t, d = coo(a, duplicates=duplicates), coo(b, duplicates=duplicates), torch.from_numpy(b)
    check(s + t, a + b)
    check(torch.add(s, t, alpha=2), a + 2 * b)
    check(s - t, a - b)
    check(d + s, a + b)
    check(d - s, b - a)
    check(s * t, a * b)
    check(s * d, a * b)
    check(d * s, a * b)
    check(s * d[0], a * b[0])
    check(2 * s, 2 * a)
    check(s / 2, a / 2)
    check(s // 2, a // 2)
    check(-s, -a)
    check(s**2, a**2)
    check(s.sqrt(), np.sqrt(a))
    check(s.sin(), np.sin(a))
    check(s.clone().mul_(3), 3 * a)
    check(s.clone().add_(t), a + b)
    check(d.clone().add_(s), a + b)
    check(d.clone().mul_(s), a * b)
    check(s.to(torch.float32), a)
    assert s.sum().item() == a.sum()
    check(s.sum(0), a.sum(0))
    check(s.sum(1, keepdim=True), a.sum(1, keepdims=True))
    assert np.isclose(s.norm().item(), np.linalg.norm(a))
    check(s.t(), a.T)
    check(s.permute(1, 0), a.T)
    check(s[2], a[2])
    check(s[:, 3], a[:, 3])
    assert (s + t).dtype is torch.float64
    assert (s.to(torch.int32) * 0.5).dtype is torch.float32


def test_promotion():
    a = array(3, 3, dtype=torch.int32)
    s = coo(a)
    assert (s + s.to(torch.float32)).dtype is torch.float32
    assert (s / 2).dtype is torch.float32
    assert s.sum().dtype is torch.int64
    with pytest.raises(RuntimeError, match="can't be cast"):
        s.add_(s.to(torch.float32))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc], ids=str)
@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("n", [1, 2, 17, 200])
def test_products(layout, dtype, n):
    plain = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    a, b = array(9, 12, dtype=plain), array(12, n, dtype=plain)
    s = torch.from_numpy(a).to(dtype).to_sparse(layout=layout)
    d, e = torch.from_numpy(b).to(dtype), torch.from_numpy(np.ascontiguousarray(b.T)).to(dtype).to_sparse()

    def same(result, expected):
        assert result.dtype is dtype
        np.testing.assert_allclose(result.to_dense().to(plain).numpy(), expected, rtol=1e-2)

    same(s @ d, a @ b)
    same(torch.sparse.mm(s, d), a @ b)
    same(torch.mv(s, d[:, 0]), a @ b[:, 0])
    same(d.t() @ s.t(), (a @ b).T)
    same(s @ e.t(), a @ b)
    same(torch.addmm(torch.ones(n, dtype=dtype), s, d, beta=2, alpha=3), 2 + 3 * (a @ b))


def test_bmm():
    a, b = array(4, 3, 5), array(4, 5, 2)
    check(torch.bmm(coo(a), torch.from_numpy(b)), a @ b)


def test_large_product_in_parallel():
    a, b = array(3000, 400, density=0.02), RNG.standard_normal((400, 33))
    s = coo(a)
    np.testing.assert_allclose((s @ torch.from_numpy(b)).numpy(), a @ b, atol=1e-9)
    np.testing.assert_allclose((s.to_sparse_csr() @ torch.from_numpy(b)).numpy(), a @ b, atol=1e-9)
    check(s.t() @ s, a.T @ a)


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc], ids=str)
def test_compressed(layout):
    a, b = array(4, 6), array(4, 6)
    s, t = (torch.from_numpy(x).to_sparse(layout=layout) for x in (a, b))
    assert s.layout is layout
    assert s.is_sparse_csr == (layout is torch.sparse_csr)
    assert not s.is_sparse
    check(s, a)
    check(s.to_sparse(), a)
    check(s.to_sparse(layout=torch.sparse_csc), a)
    check(s + t, a + b)
    check(s - t, a - b)
    check(s * t, a * b)
    check(s * 2, 2 * a)
    check(s * torch.from_numpy(b), a * b)
    check(s.sin(), np.sin(a))
    check(s.t(), a.T)
    check(s.t().to_sparse_csr(), a.T)
    check(s[1], a[1])
    assert (s + t).layout is layout
    assert s.t().layout is not layout
    assert s.sum().item() == a.sum()


def test_scipy():
    sparse = pytest.importorskip("scipy.sparse")
    m = sparse.random_array((6, 8), density=0.3, rng=np.random.default_rng(1), format="csr")
    t = torch.sparse_csr_tensor(m.indptr, m.indices, m.data, m.shape)
    np.testing.assert_array_equal(t.to_dense().numpy(), m.toarray())
    assert t.crow_indices().dtype is torch.int32
    product = (t @ t.t()).to_sparse_csr()
    again = sparse.csr_array((product.values(), product.col_indices(), product.crow_indices()), product.shape)
    np.testing.assert_allclose(again.toarray(), (m @ m.T).toarray())


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("sparse_dim", [1, 2, 3])
def test_softmax(dim, sparse_dim):
    a = array(3, 4, 5, density=0.6)
    s = coo(a, sparse_dim)
    kept = coo((a != 0).astype(float) if sparse_dim == 3 else np.ones_like(a), sparse_dim).to_dense().numpy() != 0
    for axis in range(sparse_dim, 3):
        kept |= kept.any(axis, keepdims=True)
    stored = np.zeros_like(a, dtype=bool)
    stored[tuple(s.indices().numpy())] = True
    exp = np.where(stored, np.exp(a), 0)
    with np.errstate(invalid="ignore"):
        expected = np.where(stored, exp / exp.sum(dim, keepdims=True), 0)
    check(torch.sparse.softmax(s, dim), expected)
    logs = torch.sparse.log_softmax(s, dim).to_dense().numpy()
    np.testing.assert_allclose(logs[stored], np.log(expected[stored]), atol=1e-12)


def test_sparse_mask():
    a, mask = array(4, 5), array(4, 5)
    check(torch.from_numpy(a).sparse_mask(coo(mask)), a * (mask != 0))
    check(coo(a, duplicates=True).sparse_mask(coo(mask)), a * (mask != 0))
    check(torch.from_numpy(a).sparse_mask(coo(mask).to_sparse_csr()), a * (mask != 0))


def test_sampled_addmm():
    a, b, mask = RNG.standard_normal((4, 3)), RNG.standard_normal((3, 5)), array(4, 5)
    m = coo(mask).to_sparse_csr()
    result = torch.sparse.sampled_addmm(m, torch.from_numpy(a), torch.from_numpy(b), beta=2, alpha=3)
    check(result, 2 * mask + 3 * (a @ b) * (mask != 0))


def test_factories():
    for make in (torch.zeros, torch.empty):
        s = make(2, 3, layout=torch.sparse_coo, dtype=torch.int32)
        assert s.layout is torch.sparse_coo
        assert s._nnz() == 0
        assert s.dtype is torch.int32
    assert torch.zeros(2, 3, layout=torch.sparse_csr).crow_indices().tolist() == [0, 0, 0]
    assert torch.zeros_like(torch.ones(2, 3), layout=torch.sparse_coo).is_sparse
    assert torch.zeros_like(coo(array(2, 3)))._nnz() == 0
    with pytest.raises(RuntimeError, match="not implemented for sparse layout"):
        torch.ones(2, 3, layout=torch.sparse_coo)


def test_in_place():
    s = coo(array(3, 4))
    other = s.detach()
    s.zero_()
    assert s._nnz() == 0
    assert other._nnz() == 0
    s.copy_(coo(np.eye(3, 4)))
    check(s, np.eye(3, 4))
    s.sparse_resize_((5, 6), 2, 0)
    assert s.shape == (5, 6)
    assert s._nnz() == 3
    with pytest.raises(RuntimeError, match="shrinking the size of sparse dimensions"):
        s.sparse_resize_((2, 6), 2, 0)
    s.sparse_resize_and_clear_((2, 6), 1, 1)
    assert s.shape == (2, 6)
    assert s._nnz() == 0
    assert s.dense_dim() == 1
    out = torch.zeros(0, layout=torch.sparse_coo, dtype=torch.float64)
    torch.add(coo(np.eye(3)), coo(np.eye(3)), out=out)
    check(out, 2 * np.eye(3))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc], ids=str)
def test_copies(layout):
    a = array(3, 4)
    s = torch.from_numpy(a).to_sparse(layout=layout)
    for t in (pickle.loads(pickle.dumps(s)), copy.copy(s), copy.deepcopy(s), s.clone(), torch.as_tensor(s)):
        assert t.layout is layout
        check(t, a)


BAD = [
    (
        ([[0, 2], [0, 0]], [1.0, 2.0], (2, 2)),
        "size is inconsistent with indices: for dim 0, size is 2 but found index 2",
    ),
    (([[0, -1], [0, 0]], [1.0, 2.0], (2, 2)), "found negative index -1 for dim 0"),
    (([[0, -1]], [1.0, 2.0]), "found negative index -1 for dim 0"),
    (([[0, 1]], [1.0, 2.0, 3.0], (2,)), "indices and values must have same nnz"),
    (([[0, 1], [0, 0]], [1.0, 2.0], (2,)), "'len\\(size\\) == sparse_dim \\+ dense_dim' is not satisfied"),
    (([0, 1], [1.0, 2.0], (2,)), "indices must be sparse_dim x nnz"),
    (([[0, 1]], [[1.0, 2.0], [3.0, 4.0]], (2, 3)), "values has incorrect size"),
    (([[0]], [1.0], (-1,)), "negative dimension"),
    (([[0], [0]], [1.0], (2**40, 2**40)), "numel"),
]


@pytest.mark.parametrize(("args", "message"), BAD, ids=range(len(BAD)))
def test_bad_coo(args, message):
    with pytest.raises(RuntimeError, match=message):
        torch.sparse_coo_tensor(*args)


BAD_CSR = [
    (([0, 1, 2], [0, 5], [1.0, 2.0], (2, 2)), "0 <= col_indices < ncols"),
    (([0, 1, 2], [0, -1], [1.0, 2.0], (2, 2)), "0 <= col_indices < ncols"),
    (([0, 3, 2], [0, 1], [1.0, 2.0], (2, 2)), "<= ncols` is not satisfied"),
    (([1, 1, 2], [0, 1], [1.0, 2.0], (2, 2)), "crow_indices\\[..., 0\\] == 0"),
    (([0, 1, 1], [0, 1], [1.0, 2.0], (2, 2)), "crow_indices\\[..., -1\\] == nnz"),
    (([0, 2, 2], [1, 0], [1.0, 2.0], (2, 2)), "sorted and distinct"),
    (([0, 1, 2], [0, 1], [1.0, 2.0, 3.0], (2, 2)), "must be equal to nnz"),
    (([0, 1], [0, 1], [1.0, 2.0], (2, 2)), "number of rows \\+ 1"),
    (([0.0, 1, 2], [0, 1], [1.0, 2.0], (2, 2)), "same dtype"),
]


@pytest.mark.parametrize(("args", "message"), BAD_CSR, ids=range(len(BAD_CSR)))
def test_bad_csr(args, message):
    with pytest.raises(RuntimeError, match=message):
        torch.sparse_csr_tensor(*args)


def test_indices_are_never_trusted():
    s = coo(np.eye(3))
    s._indices()[0, 0] = 10**9
    d = torch.ones(3, 3, dtype=torch.float64)
    for use in (
        s.to_dense,
        lambda: s @ d,
        lambda: d + s,
        lambda: s * s.clone(),
        lambda: s.to_sparse_csr(),
        lambda: s @ s,
    ):
        with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
            use()
    r = coo(np.eye(3)).to_sparse_csr()
    r.col_indices()[1] = 10**9
    for use in (lambda: r @ d, lambda: r @ r, r.to_dense):
        with pytest.raises(RuntimeError):
            use()
    r = coo(np.eye(3)).to_sparse_csr()
    r.crow_indices()[1] = 10**9
    for use in (lambda: r @ d, lambda: r @ r, r.to_dense):
        with pytest.raises(RuntimeError):
            use()


def test_memory_is_refused():
    s = coo(np.eye(3))
    for use in (s.numpy, s.tolist, lambda: np.asarray(s)):
        with pytest.raises(TypeError, match="to_dense"):
            use()
    with pytest.raises(RuntimeError, match="data pointer"):
        s.data_ptr()
    with pytest.raises(RuntimeError, match="nbytes is not defined"):
        _ = s.nbytes
    with pytest.raises(BufferError):
        s.__dlpack__()
    for use in (s.exp, lambda: s > 0, lambda: s.view(9), lambda: s.cumsum(0), lambda: s[0:1], lambda: torch.ones(3)[s]):
        with pytest.raises((NotImplementedError, TypeError, RuntimeError)):
            use()
    with pytest.raises(NotImplementedError, match="Could not run 'aten::exp' with arguments from the 'SparseCPU'"):
        s.exp()
    assert torch.tensor(3.0).to_sparse().item() == 3


def test_every_operator_refuses_or_computes():
    """No operator reads memory that a sparse tensor does not have."""
    from rushlight import _registry
    from rushlight.testing import Maker

    for op in [entry.item for entry in _registry.ops.values()]:
        if op.base.startswith("_") or not op.sampler:
            continue
        for sample in list(op.sampler(Maker(torch.float32), torch.float32))[:4]:
            args = [
                a.to_sparse() if isinstance(a, torch.Tensor) and a.is_floating_point() and not i else a
                for i, a in enumerate(sample.args)
            ]
            try:
                result = op.operator(*args, **sample.kwargs)
            except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
                continue
            repr(result)


def test_printing():
    s = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    assert repr(s) == (
        "tensor(indices=tensor([[0, 1],\n                       [2, 0]]),\n       values=tensor([3., 4.]),\n"
        "       size=(2, 3), nnz=2, layout=torch.sparse_coo)"
    )
    assert repr(s.to_sparse_csr()) == (
        "tensor(crow_indices=tensor([0, 1, 2]),\n       col_indices=tensor([2, 0]),\n"
        "       values=tensor([3., 4.]), size=(2, 3), nnz=2, layout=torch.sparse_csr)"
    )


def test_a_layout_of_ones_own():
    """What docs/guide/adding-a-layout.md says."""
    from rushlight.plugin import layout_tensor, new_layout, operators

    diagonal = new_layout("diagonal")

    class Diagonal:
        layout = diagonal

        def __init__(self, values):
            self.parts = {"values": values}

    def make(values):
        return layout_tensor(Diagonal(values), (len(values), len(values)), values.dtype)

    ops = operators()
    ops["_to_dense"].layout(diagonal, lambda self, masked_grad: torch.diag(self._payload.parts["values"]))
    ops["mm"].layout(diagonal, lambda self, mat2: self._payload.parts["values"].unsqueeze(1) * mat2)
    d, m = make(torch.tensor([1.0, 2.0])), torch.ones(2, 2)
    np.testing.assert_array_equal((d @ m).numpy(), [[1, 1], [2, 2]])
    np.testing.assert_array_equal(d.to_dense().numpy(), [[1, 0], [0, 2]])
    assert repr(d) == "tensor(values=tensor([1., 2.]), size=(2, 2), nnz=2, layout=torch.diagonal)"
    with pytest.raises(NotImplementedError, match="no implementation for the layout diagonal"):
        d + d


def test_products_that_stay_sparse():
    a, b, c = array(5, 4), array(4, 3), array(5, 3)
    s, d = coo(a, duplicates=True), torch.from_numpy(b)
    rows = torch.hspmm(s, d)
    assert (rows.sparse_dim(), rows.dense_dim()) == (1, 1)
    check(rows, a @ b)
    check(torch.smm(s, d), a @ b)
    check(torch.sspaddmm(coo(c), s, d, beta=2, alpha=3), 2 * c + 3 * (a @ b))
    with pytest.raises(RuntimeError, match="hspmm: expected a sparse_coo and a dense matrix"):
        torch.hspmm(d, d)


@pytest.mark.parametrize("shape", [(4, 4), (2, 5), (5, 2)])
def test_spdiags(shape):
    sparse = pytest.importorskip("scipy.sparse")
    diagonals, offsets = RNG.standard_normal((4, 4)), [0, -2, 3, -1]
    result = torch.sparse.spdiags(torch.from_numpy(diagonals), torch.tensor(offsets), shape)
    check(result, sparse.spdiags(diagonals, offsets, *shape).toarray())
    assert torch.sparse.spdiags(torch.ones(1, 2), torch.tensor([0]), (2, 2), torch.sparse_csr).is_sparse_csr
    with pytest.raises(RuntimeError, match="duplicate"):
        torch.sparse.spdiags(torch.ones(2, 2), torch.tensor([0, 0]), (2, 2))


def test_checks_can_be_left_out():
    checks = torch.sparse.check_sparse_tensor_invariants
    assert checks.is_enabled()
    with checks(False):
        assert not checks.is_enabled()
        s = torch.sparse_coo_tensor([[7]], [1.0], (2,))
        r = torch.sparse_csr_tensor([0, 1], [7], [1.0], (1, 2))
    assert checks.is_enabled()
    for t in (s, r, torch.sparse_coo_tensor([[7]], [1.0], (2,), check_invariants=False)):
        with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
            t.to_dense()
