"""Gradients of sparse tensors against those of the dense computation."""

import numpy as np
import pytest

import rushlight as torch

COO, CSR = torch.sparse_coo, torch.sparse_csr
A = np.array([[0.0, 0.0, 3.0], [4.0, 0.0, 0.5]])


def leaf(layout=COO, duplicates=False):
    s = torch.from_numpy(A).to_sparse(layout=layout)
    if duplicates:
        s = torch.sparse_coo_tensor(
            torch.cat((s.indices(), s.indices()), 1), torch.cat((s.values(), s.values() * 0)), s.shape
        )
    return s.requires_grad_()


def dense_gradient(fn):
    x = torch.from_numpy(A.copy()).requires_grad_()
    fn(x).backward()
    return x.grad.numpy()


B = torch.from_numpy(np.arange(1.0, 7.0).reshape(3, 2))
W = torch.from_numpy(np.arange(1.0, 7.0).reshape(2, 3))

MASKED = {  # the gradient has the indices of the leaf
    "to_dense": (lambda x: (x.to_dense() * W).sum(), lambda x: (x * W).sum()),
    "sparse.mm": (lambda x: (torch.sparse.mm(x, B) ** 2).sum(), lambda x: ((x @ B) ** 2).sum()),
    "sparse.addmm": (lambda x: (torch.sparse.addmm(W[:, :2], x, B, beta=2, alpha=3) ** 2).sum(),
                     lambda x: ((2 * W[:, :2] + 3 * (x @ B)) ** 2).sum()),
    "sparse.sum": (lambda x: torch.sparse.sum(x) ** 2, lambda x: x.sum() ** 2),
    "sparse.sum 0": (lambda x: (torch.sparse.sum(x, 0).to_dense() ** 2).sum(), lambda x: (x.sum(0) ** 2).sum()),
    "sqrt": (lambda x: torch.sparse.sum(x.sin()), lambda x: x.sin().sum()),
    "values": (lambda x: (x.coalesce() if x.is_sparse else x).values().pow(3).sum(), lambda x: (x**3).sum()),
}  # fmt: skip


@pytest.mark.parametrize("kind", [COO, CSR, "duplicates"], ids=str)
@pytest.mark.parametrize("name", MASKED)
def test_masked(name, kind):
    x = leaf(COO, True) if kind == "duplicates" else leaf(kind)
    sparse, dense = MASKED[name]
    sparse(x).backward()
    assert x.grad.layout is x.layout
    np.testing.assert_allclose(x.grad.to_dense().numpy(), dense_gradient(dense) * (A != 0))


FULL = {  # as PyTorch: the rule of the operator, whatever the layout
    "mm": lambda x: ((x @ B) ** 2).sum(),
    "mv": lambda x: ((x @ B[:, 0]) ** 2).sum(),
    "sum": lambda x: x.sum() ** 2,
    "dense + sparse": lambda x: ((W + x) ** 2).sum(),
}


@pytest.mark.parametrize("name", FULL)
def test_full(name):
    x = leaf()
    FULL[name](x).backward()
    np.testing.assert_allclose(x.grad.to_dense().numpy(), dense_gradient(FULL[name]))


def test_dense_operand():
    b = B.clone().requires_grad_()
    (torch.sparse.mm(leaf().detach(), b) ** 2).sum().backward()
    np.testing.assert_allclose(b.grad.numpy(), 2 * A.T @ (A @ B.numpy()))
    m = W[:, :2].clone().requires_grad_()
    (m @ leaf().detach()).pow(2).sum().backward()
    np.testing.assert_allclose(m.grad.numpy(), 2 * (W.numpy()[:, :2] @ A) @ A.T)


def test_sparse_times_sparse():
    x, y = leaf(), leaf()
    torch.sparse.sum(torch.sparse.mm(x, y.t())).backward()
    ones = np.ones((2, 2))
    np.testing.assert_allclose(x.grad.to_dense().numpy(), (ones @ A) * (A != 0))
    np.testing.assert_allclose(y.grad.to_dense().numpy(), (ones @ A) * (A != 0))


def test_construction():
    values = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    s = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], values, (2, 3))
    (s.to_dense() * W).sum().backward()
    np.testing.assert_allclose(values.grad.numpy(), [3, 4, 4])
    x = W.clone().requires_grad_()
    torch.sparse.sum(x.to_sparse() * 2).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full((2, 3), 2.0))


def test_sampled_addmm():
    m = leaf(CSR)
    a = torch.ones(2, 4, dtype=torch.float64, requires_grad=True)
    b = torch.ones(4, 3, dtype=torch.float64, requires_grad=True)
    torch.sparse.sampled_addmm(m, a, b).values().sum().backward()
    mask = (A != 0).astype(float)
    np.testing.assert_allclose(m.grad.to_dense().numpy(), mask)
    np.testing.assert_allclose(a.grad.numpy(), mask @ np.ones((3, 4)))
    np.testing.assert_allclose(b.grad.numpy(), np.ones((4, 2)) @ mask)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name):
    a = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])
    x = torch.from_numpy(a).to_sparse().requires_grad_()
    y = torch.from_numpy(a).requires_grad_()
    (getattr(torch.sparse, name)(x, 1).to_dense() * W).sum().backward()
    (getattr(torch, name)(y, 1) * W).sum().backward()
    np.testing.assert_allclose(x.grad.to_dense().numpy(), y.grad.numpy(), atol=1e-12)


def test_gradients_accumulate():
    x = leaf()
    x.to_dense().sum().backward()
    x.to_dense().sum().backward()
    assert x.grad.is_sparse
    np.testing.assert_allclose(x.grad.to_dense().numpy(), 2.0 * (A != 0))
    x.sum().backward()  # a dense gradient, added to the sparse one
    np.testing.assert_allclose(x.grad.to_dense().numpy(), 2.0 * (A != 0) + 1)
    y = leaf()
    (y.to_dense().sum() + y.sum()).backward()
    np.testing.assert_allclose(y.grad.to_dense().numpy(), 1.0 * (A != 0) + 1)


def test_in_place_writes_are_noticed():
    x = leaf()
    y = x * 1
    z = torch.sparse.mm(y, B)
    y.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
