"""In-place writes, views of what was written, and the version counters that guard saved tensors."""

import numpy as np
import pytest

import rushlight as torch


def ones(*shape):
    return torch.ones(*shape, dtype=torch.float64)


def test_chain_of_inplace_operators(leaf):
    x, c = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x * 1
    y.mul_(c)
    y.add_(x)
    y.sum().backward()
    assert x.grad.tolist() == [4, 5]
    assert c.grad.tolist() == [1, 2]


def test_inplace_write_of_a_gradient_into_a_plain_tensor(leaf):
    x = leaf([1.0, 2.0])
    y = ones(2)
    y.add_(x)
    assert y.requires_grad
    assert not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_leaves_are_refused(leaf):
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.mul_(2)
    with pytest.raises(
        RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"
    ):
        x[0:1].mul_(2)
    with torch.no_grad():
        x.mul_(2)
    assert x.tolist() == [2, 4]


def test_saved_tensors_that_were_written_to(leaf):
    x = leaf([1.0, 2.0])
    y = x.tanh()
    y.mul_(2)
    with pytest.raises(
        RuntimeError,
        match=r"FloatTensor|DoubleTensor \[2\]\], which is output 0 of .*, is at version 1; expected version 0",
    ):
        y.sum().backward()
    h = x * 1
    z = h * h
    h.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_operators_that_save_nothing_do_not_mind(leaf):
    x = leaf([1.0, 2.0])
    h = x * 1
    z = h + 1
    h.zero_() if hasattr(h, "zero_") else h.fill_(0)
    z.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_write_through_a_view_reaches_the_base(leaf):
    x, w = leaf([1.0, 2.0, 3.0]), leaf([10.0])
    b = x * 1
    v = b[1:2]
    v.mul_(w)
    assert b.grad_fn.name() == "CopySlices"
    assert v.grad_fn.name() == "AsStridedBackward0"
    (b * torch.from_numpy(np.array([1.0, 2.0, 3.0]))).sum().backward()
    assert x.grad.tolist() == [1, 20, 3]
    assert w.grad.tolist() == [4]


def test_write_to_the_base_reaches_its_views(leaf):
    x = leaf([1.0, 2.0, 3.0])
    b = x * 1
    v = b[0:2]
    b.mul_(5)
    v.sum().backward()
    assert x.grad.tolist() == [5, 5, 0]


def test_views_from_before_the_base_required_grad(leaf):
    w = leaf([1.0, 2.0, 3.0])
    b = torch.zeros(3, dtype=torch.float64)
    v = b[1:]
    b.add_(w)
    assert v.requires_grad
    (v * v).sum().backward()
    assert w.grad.tolist() == [0, 4, 6]


def test_assigning_into_a_plain_buffer(leaf):
    x = leaf([1.0, 2.0])
    rows = torch.zeros(3, 2, dtype=torch.float64)
    for i in range(3):
        rows[i] = x * i
    rows.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_second_derivative_through_a_write_to_a_view(leaf):
    x = leaf([1.0, 2.0, 3.0])
    b = x * 1
    b[1:].mul_(x[1:] * 1)
    (g,) = torch.autograd.grad((b * b).sum(), x, create_graph=True)
    np.testing.assert_allclose(g.tolist(), [2, 4 * 8, 4 * 27])
    (h,) = torch.autograd.grad(g.sum(), x)
    np.testing.assert_allclose(h.tolist(), [2, 12 * 4, 12 * 9])


def test_views_made_without_gradients(leaf):
    x = leaf([1.0, 2.0]) * 1
    with torch.no_grad():
        v = x[0:1]
    assert v.requires_grad
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        v.mul_(2)


@pytest.mark.parametrize("use", ["v * 2", "v.grad_fn", "v.is_leaf", "v[0]", "v.register_hook(print)"])
def test_views_made_without_gradients_are_of_no_use_after_a_write(use, leaf):
    x = leaf([1.0, 2.0])
    with torch.no_grad():
        v = x[0:1]
        assert (v * 2).item() == 2
        x.mul_(3)
        assert (v * 2).item() == 6
    assert v.requires_grad
    assert v.detach().item() == 3
    assert repr(v) == "tensor([3.], dtype=torch.float64, grad_fn=<Invalid>)"
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
        eval(use, {"v": v})


def test_views_made_without_gradients_take_none(leaf):
    x = leaf([1.0, 2.0])
    with torch.no_grad():
        v = x[0:1]
    y = v * x
    y.sum().backward()
    assert v.grad is None
    assert x.grad.tolist() == [1, 1]
    assert torch.autograd.grad((v * x).sum(), v, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        v.backward()
    x.requires_grad_(False)
    assert not v.requires_grad


def test_refused_writes_write_nothing(leaf):
    x = leaf([1.0, 2.0]) * 1
    with torch.inference_mode():
        factor = ones(2) * 5
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x.mul_(factor)
    assert x.tolist() == [1, 2]


def test_copy_takes_no_more_dimensions_than_there_are():
    with pytest.raises(RuntimeError, match=r"output with shape \[2\] doesn't match the broadcast shape \[1, 2\]"):
        torch.zeros(2).copy_(torch.ones(1, 2))


def test_views_of_functions_with_several_results(leaf):
    x = leaf([[1.0, 2.0], [3.0, 4.0]]) * 1
    first = x.unbind(0)[0]
    with pytest.raises(RuntimeError, match="Output 0 of UnbindBackward0 is a view and is being modified inplace"):
        first.mul_(2)


def test_in_place_composites(leaf):
    x = leaf([-3.0, 0.5, 3.0])
    y = x * 1
    y.clamp_max_(1)
    y.masked_fill_(y < 0, 7.0)
    assert y.tolist() == [7, 0.5, 1]
    y.sum().backward()
    assert x.grad.tolist() == [0, 1, 0]


def test_copies_pass_gradients_to_their_source(leaf):
    x = leaf([1.0, 2.0])
    y = leaf([5.0, 6.0]) * 1
    y.copy_(x)
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_buffers_that_are_overwritten_forget_their_history(leaf):
    x = leaf([1.0, 2.0])
    y = torch.zeros(2, dtype=torch.float64)
    for _ in range(3):
        y.copy_(x)
    assert y.grad_fn.next_functions[0][0] is None


def test_detached_tensors_share_memory_and_versions(leaf):
    x = leaf([1.0, 2.0])
    y = x.tanh()
    d = y.detach()
    assert not d.requires_grad
    d.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_operators_that_turn_a_view_in_place(leaf):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    b = x * 1
    v = b[0:1]
    v.t_()
    (v * torch.from_numpy(np.array([[1.0], [2.0]]))).sum().backward()
    assert x.grad.tolist() == [[1, 2], [0, 0]]
    assert b.grad_fn.name() == "MulBackward0"


def test_writing_one_element_of_another_dtype_reaches_it():
    value = torch.tensor([2.0], requires_grad=True)
    x = torch.zeros(3, dtype=torch.float64)
    x[torch.tensor([True, False, True])] = value
    x.sum().backward()
    assert value.grad.tolist() == [2.0]


@pytest.mark.parametrize("call", ["div", "logaddexp", "logaddexp2", "add", "sub", "mul", "fmod"])
def test_results_that_a_rule_can_do_without_may_be_written_to(call):
    a, b = (torch.tensor([2.0, 3.0], requires_grad=True) for _ in range(2))
    y = getattr(torch, call)(a, b * 2)
    y.add_(1).relu_()
    y.sum().backward()
    c, d = (torch.tensor([2.0, 3.0], requires_grad=True) for _ in range(2))
    (getattr(torch, call)(c, d * 2) + 1).relu().sum().backward()
    assert a.grad.tolist() == c.grad.tolist()
    assert b.grad.tolist() == d.grad.tolist()


def test_values_with_leading_ones_of_their_own():
    x, y = torch.zeros(3), torch.ones(1, 1, requires_grad=True)
    x[torch.tensor([0, -1])] = y
    x.sum().backward()
    assert y.grad.tolist() == [[2.0]]


def test_writing_to_the_parts_of_complex_numbers():
    z = torch.tensor([1 + 2j, 3 - 1j, -2 + 0.5j], dtype=torch.complex128, requires_grad=True)

    def written(z, which):
        base = (z * 1j)[1:]
        parts = torch.view_as_real(base)
        if which == "real":
            base.real.mul_(torch.view_as_real(z * 2j)[1:, 0])
        elif which == "parts":
            parts.select(-1, 1).add_(parts[..., 0].exp())
        else:
            base.imag[0] = z.abs().sum()
        return base * parts[..., 0] + base.imag**2

    for which in ("real", "parts", "one"):
        assert torch.autograd.gradcheck(lambda z, which=which: written(z, which), (z,))
        assert torch.autograd.gradgradcheck(lambda z, which=which: written(z, which), (z,))


def test_writing_to_complex_views_of_real_numbers():
    x = torch.arange(8, dtype=torch.float64).requires_grad_()
    w = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)

    def written(x, w, which):
        base = (x * 1)[2:]
        pairs = torch.view_as_complex(base.view(3, 2))
        if which == "pair":
            pairs[1] = w * 2j
        elif which == "pairs":
            pairs[1:].mul_(w * (1 + 3j))
        elif which == "base":
            base[1:].mul_(w)
        else:
            pairs.imag.mul_(w)
        return (base**3).sum() + (pairs.abs() ** 2 * pairs.real).sum() + torch.view_as_real(pairs).sin().sum()

    for which in ("pair", "pairs", "base", "imag"):
        assert torch.autograd.gradcheck(lambda x, w, which=which: written(x, w, which), (x, w))
        assert torch.autograd.gradgradcheck(lambda x, w, which=which: written(x, w, which), (x, w))


def test_views_of_plain_memory_that_require_gradients_are_leaves():
    x = torch.ones(3)[:2].requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        x.mul_(2)


@pytest.mark.parametrize("split", ["tensor_split", "hsplit", "vsplit"])
def test_pieces_that_are_slices_may_be_written_to(split):
    x = torch.ones(4, 4, requires_grad=True)
    whole = x.clone()
    first = getattr(whole, split)(2)[0]
    first.mul_(3)
    whole.sum().backward()
    assert x.grad.sum().item() == 8 * 3 + 8
