"""User-defined functions."""

import pytest

import rushlight as torch
from rushlight.autograd import Function, gradcheck, gradgradcheck
from rushlight.autograd.function import once_differentiable


def ones(*shape):
    return torch.ones(*shape, dtype=torch.float64)


class Cube(Function):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad * ctx.scale, None


class Exp(Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        assert isinstance(inputs, tuple)
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


class Split(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        return a * 2 + b * 3


def test_gradients(leaf):
    x = leaf([1.0, 2.0])
    y = Cube.apply(x, 2.0)
    assert y.grad_fn.name() == "CubeBackward"
    y.sum().backward()
    assert x.grad.tolist() == [6, 24]
    assert gradcheck(Cube.apply, x)
    assert gradgradcheck(Cube.apply, x)


def test_saved_results_keep_their_history_without_a_cycle(leaf):
    x = leaf([0.5])
    assert gradcheck(Exp.apply, x)
    assert gradgradcheck(Exp.apply, x)


def test_several_results_and_missing_gradients(leaf):
    x = leaf([1.0])
    a, b = Split.apply(x)
    assert (a.output_nr, b.output_nr) == (0, 1)
    b.backward(ones(1))
    assert x.grad.tolist() == [3]


def test_grads_that_are_not_materialized(leaf):
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 1

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a, b))
            return b

    x = leaf([1.0])
    Two.apply(x)[1].backward(ones(1))
    assert seen[0][0] is None


def test_needs_input_grad(leaf):
    seen = []

    class Probe(Function):
        @staticmethod
        def forward(ctx, a, b, n):
            seen.append(ctx.needs_input_grad)
            return a * b

        @staticmethod
        def backward(ctx, grad):
            return grad, None, None

    y = Probe.apply(leaf([1.0]), ones(1), 3)
    assert seen == [(True, False, False)]
    assert y.requires_grad


def test_nothing_is_recorded_without_need(leaf):
    assert not Cube.apply(ones(1)).requires_grad
    with torch.no_grad():
        assert not Cube.apply(leaf([1.0])).requires_grad


def test_non_differentiable_results(leaf):
    class Sign(Function):
        @staticmethod
        def forward(ctx, x):
            s = x > 0
            t = x * 2
            ctx.mark_non_differentiable(t)
            return x * 3, s, t

        @staticmethod
        def backward(ctx, grad, *others):
            return grad * 3

    x = leaf([1.0])
    y, s, t = Sign.apply(x)
    assert (y.requires_grad, s.requires_grad, t.requires_grad) == (True, False, False)
    y.backward(ones(1))
    assert x.grad.item() == 3


def test_marking_dirty(leaf):
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf([1.0])
    h = x * 1
    assert Double.apply(h) is h
    h.backward(ones(1))
    assert x.grad.item() == 2
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        Double.apply(leaf([1.0]))


def test_returning_an_input(leaf):
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    x = leaf([1.0])
    y = Same.apply(x)
    assert y is not x
    y.backward(ones(1))
    assert x.grad.item() == 5


def test_once_differentiable(leaf):
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

    x = leaf([3.0])
    assert torch.autograd.grad(Once.apply(x), x, ones(1))[0].item() == 6
    (g,) = torch.autograd.grad(Once.apply(x), x, ones(1).requires_grad_(), create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.backward(ones(1))


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        ((None,), RuntimeError, "incorrect number of gradients \\(expected 2, got 1\\)"),
        ((None, ones(1)), RuntimeError, "different from None at position 2"),
        (("no", None), RuntimeError, "expected Variable or None \\(got str\\)"),
        ((ones(3), None), RuntimeError, "invalid gradient at index 0"),
    ],
)
def test_wrong_gradients(returned, error, message, leaf):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        def backward(ctx, grad):
            return returned

    with pytest.raises(error, match=message):
        Wrong.apply(leaf([1.0, 2.0]), 2).sum().backward()


def test_wrong_use(leaf):
    with pytest.raises(RuntimeError, match="should not be instantiated"):
        Cube()

    class Nothing(Function):
        pass

    with pytest.raises(NotImplementedError, match="forward"):
        Nothing.apply(leaf([1.0]))
    y = Cube.apply(leaf([1.0]))
    y.backward(ones(1))
    with pytest.raises(RuntimeError, match="second time"):
        y.backward(ones(1))


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (
            lambda ctx, x: ctx.mark_dirty(3) or x * 2,
            "mark_dirty can only accept variables, but argument 0 is of",
        ),
        (lambda ctx, x: ctx.mark_dirty(x) or x * 2, "marked as dirty during the forward method were not returned"),
        (lambda ctx, x: ctx.mark_non_differentiable(3) or x * 2, "mark_non_differentiable only accepts variable"),
    ],
)
def test_wrong_marks(forward, message, leaf):
    marked = type("Marked", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(lambda ctx, g: g)})
    with pytest.raises(RuntimeError, match=message):
        marked.apply(leaf([1.0]) * 1)


@pytest.mark.parametrize("value", [3, None, "text"])
def test_results_that_are_no_tensors(value, leaf):
    odd = type("Odd", (Function,), {"forward": staticmethod(lambda ctx, x: value)})
    assert odd.apply(leaf([1.0])) is value
