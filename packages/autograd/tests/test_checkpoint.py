"""Checkpoints: the same gradients and random numbers with fewer saved tensors."""

import gc

import pytest

import rushlight as torch
from rushlight.autograd import grad, graph
from rushlight.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    detach_variable,
    set_checkpoint_early_stop,
)

BOTH = pytest.mark.parametrize("use_reentrant", [True, False])


def layers(calls):
    def one(x):
        calls.append("one")
        return (x * x).exp() * x

    def two(x):
        calls.append("two")
        return x.tanh() * x.sin()

    return [one, two, one, two]


@BOTH
def test_gradients(use_reentrant, leaf):
    x, y, calls = leaf([0.3, 0.7]), leaf([2.0, 3.0]), []
    one, two, *_ = layers(calls)

    def function(x, scale, y):
        return two(one(x) * y) * scale, y * 3

    a, b = checkpoint(function, x, 2.0, y, use_reentrant=use_reentrant)
    assert calls == ["one", "two"]
    (a.sum() + b.sum()).backward()
    assert calls == ["one", "two"] * 2
    found = [x.grad, y.grad]
    a, b = function(x, 2.0, y)
    for got, expected in zip(found, grad(a.sum() + b.sum(), (x, y)), strict=True):
        assert torch.allclose(got, expected)


@BOTH
def test_random_numbers_come_out_again(use_reentrant, leaf):
    x = leaf([1.0] * 50)

    def function(x):
        return x * torch.rand(50, dtype=torch.float64) * x

    torch.manual_seed(3)
    y = checkpoint(function, x, use_reentrant=use_reentrant)
    following = torch.rand(3)
    y.sum().backward()
    assert torch.allclose(x.grad, 2 * y.detach())
    again = torch.rand(3)
    torch.manual_seed(3)
    torch.rand(50, dtype=torch.float64)
    assert torch.equal(torch.rand(3), following)
    assert torch.equal(torch.rand(3), again)


@BOTH
def test_sequences(use_reentrant, leaf):
    for segments in (1, 2, 3, 4):
        x, calls = leaf([0.3, 0.7]), []
        y = checkpoint_sequential(layers(calls), segments, x, use_reentrant=use_reentrant)
        assert len(calls) == 4
        y.sum().backward()
        expected = x.detach().requires_grad_()
        result = expected
        for step in layers([]):
            result = step(result)
        assert torch.allclose(x.grad, grad(result.sum(), expected)[0])


def test_higher_derivatives_and_several_passes(leaf):
    x = leaf([0.3, 0.7])
    one, *_ = layers([])
    y = checkpoint(one, x, use_reentrant=False)
    (first,) = grad(y.sum(), x, create_graph=True)
    (plain,) = grad(one(x).sum(), x, create_graph=True)
    assert torch.allclose(grad(first.sum(), x, retain_graph=True)[0], grad(plain.sum(), x)[0])
    grad(y.sum(), x, retain_graph=True)
    grad(y.sum(), x)
    with pytest.raises(RuntimeError, match="second time"):
        grad(y.sum(), x)


def test_nested(leaf):
    x = leaf([0.3, 0.7])
    one, two, *_ = layers([])

    def inner(x):
        return checkpoint(one, x, use_reentrant=False) * x

    y = checkpoint(lambda x: two(inner(x)), x, use_reentrant=False)
    (got,) = grad(y.sum(), x)
    assert torch.allclose(got, grad(two(one(x) * x).sum(), x)[0])


def test_nothing_is_kept_and_early_stop_spares_the_rest(leaf):
    x, calls = leaf([1.0]), []

    def function(x):
        y = x * x
        calls.append(1)
        return y + 1

    y = checkpoint(function, x, use_reentrant=False)
    y.backward()
    assert calls == [1]
    with set_checkpoint_early_stop(False):
        y = checkpoint(function, x, use_reentrant=False)
    y.backward()
    assert calls == [1] * 3
    gc.collect()
    alive = []
    with graph.saved_tensors_hooks(lambda t: alive.append(t) or t, lambda t: t):
        checkpoint(lambda x: x.exp().sin().tan(), x, use_reentrant=False)
    assert not alive


def test_keyword_arguments_and_contexts(leaf):
    from contextlib import contextmanager

    seen = []

    @contextmanager
    def note(what):
        seen.append(what)
        yield

    x = leaf([2.0])
    y = checkpoint(lambda x, *, n: x**n, x, n=3, use_reentrant=False, context_fn=lambda: (note("first"), note("again")))
    assert seen == ["first"]
    y.backward()
    assert seen == ["first", "again"]
    assert x.grad.item() == 12
    with torch.no_grad():
        assert checkpoint(lambda x: x * 2, x, use_reentrant=False).item() == 4


def test_functions_that_change_their_mind(leaf):
    def changing(first, then):
        calls = iter([first, then])
        return lambda x: next(calls)(x)

    x = leaf([1.0, 2.0])
    y = checkpoint(changing(lambda x: (x * x).exp(), lambda x: x + 1), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match=r"during forward: 3\nNumber of tensors saved during recomputation: 0"):
        y.sum().backward()
    y = checkpoint(changing(torch.exp, lambda x: x[:1].exp()), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="different metadata"):
        y.sum().backward()


def test_wrong_use(leaf):
    x = leaf([1.0])
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed"):
        checkpoint(torch.exp, x)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(torch.exp, x.detach(), use_reentrant=True)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: n"):
        checkpoint(torch.exp, x, use_reentrant=True, n=1)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(torch.exp, x, use_reentrant=False, determinism_check="maybe")
    y = checkpoint(torch.exp, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="incompatible with .grad\\(\\)"):
        grad(y.sum(), x)
    with pytest.raises(RuntimeError, match="Only tuple of tensors"):
        detach_variable(x)
    (detached, three) = detach_variable((x * 2, 3))
    assert detached.is_leaf
    assert detached.requires_grad
    assert three == 3
