"""Hooks on what is saved for backward, and where anomaly mode finds what broke a graph."""

import gc
import sys
import weakref

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import Function, Variable, detect_anomaly, grad, graph, set_detect_anomaly


def through_numpy(log):
    """Hooks that keep arrays, and note what they are asked for."""

    def pack(tensor):
        log.append("pack")
        return tensor.numpy().copy()

    def unpack(array):
        log.append("unpack")
        return torch.from_numpy(array)

    return graph.saved_tensors_hooks(pack, unpack)


def composed(x):
    y = (x * x).exp() / x
    return torch.cat([x, y, x.tanh()]).prod()


def test_saved_tensors_hooks_keep_derivatives_of_any_order(leaf):
    x, log = leaf([0.5, 1.5]), []
    with through_numpy(log):
        result = composed(x)
    assert log
    assert set(log) == {"pack"}
    packed = len(log)
    (first,) = grad(result, x, create_graph=True)
    assert log.count("unpack") == packed  # one each
    (plain,) = grad(composed(x), x, create_graph=True)
    assert np.allclose(first.detach().numpy(), plain.detach().numpy())
    assert np.allclose(grad(first.sum(), x)[0].numpy(), grad(plain.sum(), x)[0].numpy())


def test_saved_tensors_hooks_of_functions(leaf):
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            result = x * x
            ctx.save_for_backward(x, result, None)
            return result

        @staticmethod
        def backward(ctx, g):
            x, result, nothing = ctx.saved_tensors
            assert nothing is None
            return g * 2 * result / x

    x, log = leaf([3.0]), []
    with through_numpy(log):
        y = Square.apply(x)
    assert log == ["pack", "pack"]
    (first,) = grad(y.sum(), x, create_graph=True)
    assert first.item() == 6
    assert grad(first.sum(), x)[0].item() == pytest.approx(2)


def test_the_innermost_hooks_count_and_what_they_compute_is_not_packed(leaf):
    x, log = leaf([1.0, 2.0]), []
    with through_numpy(log), graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
        y = (x * x).sum()
    assert not log
    y.backward()
    assert x.grad.tolist() == [2, 4]


def test_packed_values_are_released_with_the_graph(leaf):
    class Held:
        def __init__(self, tensor):
            self.tensor = tensor

    held = []

    def pack(tensor):
        value = Held(tensor)
        held.append(weakref.ref(value))
        return value

    x = leaf([1.0])
    with graph.saved_tensors_hooks(pack, lambda value: value.tensor):
        y = (x.exp() * x).sum()
        z = (x.exp() * x).sum()
    y.backward()
    del z
    gc.collect()
    assert [ref() for ref in held] == [None] * len(held)


def test_save_on_cpu(leaf):
    x = leaf([2.0])
    with graph.save_on_cpu():
        y = x**3
    y.backward()
    assert x.grad.item() == 12


def test_hooks_that_are_wrong(leaf):
    x = leaf([1.0])
    with graph.saved_tensors_hooks(lambda t: 1, lambda value: value):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type int"):
        y.backward()
    writing = graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda value: value)
    with pytest.raises(RuntimeError, match="modifying its input in place"), writing:
        x * x
    with pytest.raises(KeyError), graph.saved_tensors_hooks({}.__getitem__, lambda value: value):
        torch.cat([x, x]).prod()
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), graph.save_on_cpu():
            pass
        with graph.disable_saved_tensors_hooks("nor here"):
            pass
        with pytest.raises(RuntimeError, match="not here"), graph.save_on_cpu():
            pass
    with graph.save_on_cpu():
        (x * x).backward()


def test_versions_can_be_incremented(leaf):
    x, c = leaf([1.0]), torch.ones(1, dtype=torch.float64)
    y = x * c
    graph.increment_version([c])
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        y.backward()
    with pytest.raises(TypeError, match="expected a Tensor"):
        graph.increment_version([3])


# -- anomaly mode


def here(offset):
    import sys

    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno + offset}, in {frame.f_code.co_qualname}"


@pytest.mark.filterwarnings("ignore:Error detected")
def test_anomaly_mode_finds_the_write(leaf):
    w, x = leaf([1.0, 2.0]), torch.ones(2, dtype=torch.float64)
    with detect_anomaly():
        y = w * x
        x[0] = 5
        line = here(-1)
        x.mul_(2)
        with pytest.raises(RuntimeError) as error:
            y.sum().backward()
        assert f" at {line}." in str(error.value)
        y = w * w
        with torch.no_grad():
            w.add_(1)
        line = here(-1)
        with pytest.raises(RuntimeError) as error:
            y.sum().backward()
        assert f"It was written to by add_ at {line}." in str(error.value)
        y = w.exp()
        torch.add(x, 1, out=x)
        z = y * x
        torch.add(x, 1, out=x)
        line = here(-1)
        with pytest.raises(RuntimeError) as error:
            z.sum().backward()
        assert f"It was written to by add(out=...) at {line}." in str(error.value)
    y = w * x
    x.mul_(2)
    with pytest.raises(RuntimeError, match="Hint: enable anomaly detection"):
        y.sum().backward()


def test_anomaly_mode_names_the_operator_and_the_input_of_nan(leaf):
    x = leaf([0.0])
    with detect_anomaly():
        y = x.sqrt() * 0
        with (
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0(.|\n)*y = x.sqrt"),
            pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values in its 0th output.* 'self'"),
        ):
            y.backward()
    with detect_anomaly(check_nan=False):
        (x.sqrt() * 0).backward()
    set_detect_anomaly(True)
    set_detect_anomaly(False)
    (x.sqrt() * 0).backward()


def test_variable_is_tensor():
    x = Variable(torch.ones(2), requires_grad=True)
    assert isinstance(x, Variable)
    assert type(x) is torch.Tensor
    assert x.requires_grad
    assert Variable().numel() == 0
    assert torch.detach_(x * 2).is_leaf


def test_edges_stand_for_tensors(leaf):
    x = leaf([1.0, 2.0])
    y = x * x
    out = (y * y).sum()
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn
    np.testing.assert_allclose(grad(out, edge, retain_graph=True)[0], [2, 8])
    np.testing.assert_allclose(grad(edge, x, torch.ones(2), retain_graph=True)[0], [2, 4])
    np.testing.assert_allclose(grad(graph.get_gradient_edge(out), x, retain_graph=True)[0], [4, 32])
    torch.autograd.backward(out, inputs=[graph.get_gradient_edge(x)])
    np.testing.assert_allclose(x.grad, [4, 32])
    with pytest.raises(RuntimeError, match="gradient edge for a Tensor that does not require gradients"):
        graph.get_gradient_edge(torch.ones(2))
    with pytest.raises(ValueError, match="it has 1 outputs, got output_nr=3"):
        grad(graph.GradientEdge(edge.node, 3), x, torch.ones(2))


def test_a_hook_on_several_gradients(leaf):
    x, other = leaf([1.0, 2.0]), leaf([0.0])
    y = x * 3
    out = (y * y).sum()
    seen = []
    with graph.register_multi_grad_hook((x, y, other), seen.append):
        out.backward(retain_graph=True)
        grad(out, y, retain_graph=True)  # which does not come by x
    out.backward(retain_graph=True)
    assert len(seen) == 2
    np.testing.assert_allclose(seen[0][0], [18, 36])
    np.testing.assert_allclose(seen[0][1], [6, 12])
    assert seen[0][2] is None
    assert seen[1][0] is None

    first = []
    handle = graph.register_multi_grad_hook((x, y), first.append, mode="any")
    out.backward(retain_graph=True)
    handle.remove()
    out.backward()
    assert len(first) == 1
    np.testing.assert_allclose(first[0], [6, 12])
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        graph.register_multi_grad_hook((x,), print, mode="some")


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.sin_(),
        lambda y: y[0].zero_(),
        lambda y: torch.mul(torch.ones(2), 5, out=y.detach()),
        lambda y: y.data.fill_(7),
    ],
)
def test_saved_tensors_may_be_written_to(write, leaf):
    x = leaf([1.0, 2.0])
    with graph.allow_mutation_on_saved_tensors() as context:
        y = x.clone()
        out = (y**2).sum()
        write(y)
        out.backward(retain_graph=True)
        np.testing.assert_allclose(x.grad, [2, 4])
        with pytest.raises(RuntimeError, match="cannot be nested"), graph.allow_mutation_on_saved_tensors():
            pass
        context.clear()
        with pytest.raises(AssertionError, match="context in which the graph was originally recorded"):
            out.backward(retain_graph=True)
        out = (x.clone() ** 2).sum()
    with pytest.raises(AssertionError, match="context in which the graph was originally recorded"):
        out.backward()
    y = x.clone()
    out = (y**2).sum()
    y.sin_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_a_hook_that_fails_takes_nothing_along(leaf):
    x = leaf([1.0, 2.0])
    y = x.sin()  # holds the node of x
    accumulate = y.grad_fn.next_functions[0][0]
    before = sys.getrefcount(accumulate)

    def fail(tensor):
        raise LookupError

    for _ in range(10):
        with pytest.raises(LookupError), graph.saved_tensors_hooks(fail, lambda t: t):
            x * x
    assert sys.getrefcount(accumulate) == before
    np.testing.assert_allclose(grad(y, x, torch.ones(2, dtype=x.dtype))[0], np.cos([1, 2]))


def test_what_a_node_saved(leaf):
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    product, power = a * b, a.exp() ** 3
    assert product.grad_fn._saved_self is a
    assert product.grad_fn._saved_other is b
    assert power.grad_fn._saved_exponent == 3
    exp = power.grad_fn.next_functions[0][0]
    assert exp._saved_result.grad_fn is exp
    for name in ("_saved_self", "_saved_", "other"):
        with pytest.raises(AttributeError, match=name):
            getattr(exp, name)
    product.sum().backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors after they have already been freed"):
        product.grad_fn._saved_self


def test_hooks_of_one_saved_tensor(leaf):
    x = leaf([1.0, 2.0])
    y = x**2
    place = y.grad_fn._raw_saved_self
    place.register_hooks(lambda t: ("packed", t * 2), lambda kept: kept[1])
    assert y.grad_fn._saved_self.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        place.register_hooks(lambda t: t, lambda t: t)
    (g,) = grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [4, 8]
    assert grad(g.sum(), x, retain_graph=True)[0].tolist() == [2, 2]
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after it has been freed"):
        place.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(AttributeError):
        y.grad_fn._raw_saved_exponent


def test_hooks_of_a_saved_result(leaf):
    x = leaf([1.0, 2.0])
    y = x.exp()
    place = y.grad_fn._raw_saved_result
    with pytest.raises(TypeError, match="hooks must be callable, got 3"):
        place.register_hooks(3, lambda t: t)
    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        place.register_hooks(lambda t: t.mul_(2), lambda t: t)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t.tolist(), lambda v: torch.tensor(v, dtype=torch.float64))
    y.detach().zero_()
    np.testing.assert_allclose(grad(y.sum(), x)[0], np.exp([1, 2]))
