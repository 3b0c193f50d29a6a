"""Backward passes: what they compute, keep, release and refuse."""

import gc
import resource
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import (
    Variable,
    backward,
    detect_anomaly,
    grad,
    graph,
    set_detect_anomaly,
    set_grad_enabled,
)


def ones(*shape):
    return torch.ones(*shape, dtype=torch.float64)


def test_gradients_add_up_over_uses_and_passes(leaf):
    x = leaf([1.0, 2.0, 3.0])
    (x * x + 3 * x).sum().backward()
    assert x.grad.tolist() == [5, 7, 9]
    first = x.grad
    x.sum().backward()
    assert x.grad is first
    assert x.grad.tolist() == [6, 8, 10]


def test_gradients_are_summed_to_broadcast_inputs_and_cast(leaf):
    a, b, c = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([1.0, 2.0], np.float32), leaf(2.0)
    (a * b * c).sum().backward()
    assert a.grad.tolist() == [[2, 4], [2, 4]]
    assert b.grad.dtype == torch.float32
    assert b.grad.tolist() == [8, 12]
    assert c.grad.shape == ()
    assert c.grad.item() == 16


def test_real_inputs_of_complex_operators_get_real_gradients(leaf):
    x, z = leaf([1.0, 2.0]), leaf([1j, 2.0], np.complex128)
    (x * z).backward(torch.from_numpy(np.array([1j, 1.0 + 0j])))
    assert x.grad.tolist() == [1, 2]
    assert z.grad.tolist() == [1j, 2]


def test_an_input_that_is_used_twice_by_one_operator(leaf):
    x = leaf([3.0])
    (x * x).backward(ones(1))
    assert x.grad.item() == 6


def test_a_second_pass_needs_retain_graph_only_where_something_was_saved(leaf):
    x = leaf([1.0])
    y = (x + 1).sum()
    y.backward()
    y.backward()
    z = (x * x).sum()
    z.backward(retain_graph=True)
    z.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time.*MulBackward0"):
        z.backward()


def test_saved_tensors_are_released_by_the_pass(leaf):
    x = leaf([1.0, 2.0])
    h = x * 2
    kept = weakref.ref(h)
    y = (h * h).sum()
    del h
    assert kept() is not None
    y.backward()
    assert kept() is None


def test_higher_derivatives(leaf):
    x = leaf([2.0])
    y = x**4
    for expected in (32, 48, 48, 24):
        (y,) = grad(y, x, ones(1), create_graph=True)
        assert y.item() == expected
    (zero,) = grad(y.sum() + 0 * x.sum(), x)
    assert zero.item() == 0


def test_create_graph_records_through_saved_results(leaf):
    x = leaf([0.5, -1.0])
    (g,) = grad(x.tanh(), x, ones(2), create_graph=True)
    (h,) = grad(g, x, ones(2))
    t = np.tanh([0.5, -1.0])
    np.testing.assert_allclose(h.numpy(), -2 * t * (1 - t**2), rtol=1e-14)


def test_grad_runs_only_what_leads_to_the_inputs(leaf):
    x, w = leaf([1.0]), leaf([2.0])
    seen = []
    side = w * 3
    side.register_hook(seen.append)
    h = x * side
    (g,) = grad(h, x, ones(1))
    assert g.item() == 6
    assert not seen
    assert x.grad is None
    assert w.grad is None


def test_grad_with_respect_to_intermediate_tensors_and_outputs(leaf):
    x = leaf([2.0])
    h = x * x
    y = h * 3
    gy, gh, gx = grad(y, [y, h, x], ones(1))
    assert (gy.item(), gh.item(), gx.item()) == (1, 3, 12)


def test_unused_inputs(leaf):
    x, w = leaf([1.0]), leaf([1.0, 1.0])
    y = (x * 2).sum()
    with pytest.raises(RuntimeError, match="index 1 appears to not have been used in the graph"):
        grad(y, [x, w], retain_graph=True)
    assert grad(y, [x, w], retain_graph=True, allow_unused=True)[1] is None
    assert grad(y, [x, w], materialize_grads=True)[1].tolist() == [0, 0]


def test_backward_with_inputs_leaves_the_rest_alone(leaf):
    x, w = leaf([3.0]), leaf([2.0])
    h = x * w
    h.retain_grad()
    (h * h).sum().backward(inputs=[w])
    assert w.grad.item() == 36
    assert x.grad is None
    h = x * w
    backward((h * h).sum(), inputs=h)
    with pytest.warns(UserWarning, match="not a leaf"):
        assert (x * 1).grad is None


def hooked(x, hook):
    x.register_hook(hook)
    x.sum().backward()


def after(x, hook):
    x.register_post_accumulate_grad_hook(hook)
    x.sum().backward()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: (x * 2).backward(), RuntimeError, "only for scalar outputs.*MulBackward0. Give"),
        (lambda x: (x * 1j)[:1].backward(), RuntimeError, "only for real scalar outputs.*SliceBackward0. Take"),
        (lambda x: (x * 2).backward(ones(3)), RuntimeError, "Mismatch in shape.*MulBackward0"),
        (lambda x: (x * 2).backward(torch.ones(2, dtype=torch.complex128)), RuntimeError, "Mismatch in dtype.*MulB"),
        (lambda x: (x * 2).backward(1.0), TypeError, "Tensors or None"),
        (lambda x: x.detach().sum().backward(), RuntimeError, "element 0 of tensors does not require grad"),
        (lambda x: grad(x.sum(), ones(2)), RuntimeError, "One of the differentiated Tensors does not require grad"),
        (lambda x: grad(x.sum(), [3]), RuntimeError, "inputs have to be Tensors or GradientEdges, but got int"),
        (lambda x: grad(x.sum(), 3), TypeError, "inputs are Tensors, got int"),
        (lambda x: x.requires_grad_(1), TypeError, "must be bool, not int"),
        (lambda x: set_detect_anomaly("on"), TypeError, "mode and check_nan must be bool"),
        (lambda x: Variable([1.0]), TypeError, "Variable data has to be a tensor, but got list"),
        (lambda x: grad(x.sum(), []), RuntimeError, "`inputs` argument to `grad\\(\\)` cannot be empty"),
        (lambda x: x.sum().backward(inputs=[]), RuntimeError, "cannot be empty"),
        (lambda x: backward([x.sum(), x.sum()], [ones(())]), RuntimeError, "got 2 tensors and 1 gradients. Give"),
        (lambda x: torch.add(x, x, out=ones(2)), RuntimeError, "don't support automatic differentiation"),
        (lambda x: setattr(x * 2, "requires_grad", False), RuntimeError, "only change requires_grad flags of leaf"),
        (lambda x: torch.arange(3).requires_grad_(), RuntimeError, "only Tensors of floating point"),
        (
            lambda x: setattr(x, "grad", ones(3)),
            RuntimeError,
            "gradient of size '\\[3\\]' to a tensor of size '\\[2\\]'",
        ),
        (lambda x: setattr(x, "grad", torch.ones(2)), RuntimeError, "gradient with dtype"),
        (lambda x: setattr(x, "grad", 1), TypeError, "assigned grad expected to be a Tensor or None"),
        (lambda x: x.detach().retain_grad(), RuntimeError, "can't retain_grad"),
        (lambda x: x.detach().register_hook(print), RuntimeError, "cannot register a hook"),
        (lambda x: (x * 2).register_post_accumulate_grad_hook(print), RuntimeError, "non-leaf"),
        (lambda x: x.register_hook(3), TypeError, "callable"),
        (lambda x: (x * 2).backward([1, 2]), TypeError, "Tensors or None, but got int"),
        (lambda x: (x * 2).backward(torch.ones(2, device="meta")), RuntimeError, "expected device .* but got .*meta"),
        (lambda x: hooked(x, lambda g: g[:1]), RuntimeError, "hook '<lambda>' has changed the size of value"),
        (lambda x: hooked(x, lambda g: g.float()), RuntimeError, "hook '<lambda>' has changed the type of value"),
        (lambda x: hooked(x, lambda g: 1), TypeError, "expected Variable, but hook returned 'int'"),
        (lambda x: after(x, lambda t: 1), TypeError, "expected Variable, but hook returned 'int'"),
        (lambda x: set_grad_enabled("yes"), TypeError, "must be bool, not str"),
        (lambda x: graph.increment_version(3), RuntimeError, "increment_version expect"),
    ],
)
def test_misuse(call, error, message, leaf):
    with pytest.raises(error, match=message):
        call(leaf([1.0, 2.0]))


def test_attributes_of_leaves_and_results(leaf):
    x = leaf([1.0])
    y = x * 2
    assert (x.requires_grad, x.is_leaf, x.grad_fn, x.output_nr) == (True, True, None, 0)
    assert (y.requires_grad, y.is_leaf, y.grad_fn.name()) == (True, False, "MulBackward0")
    assert type(y.grad_fn).__name__ == "MulBackward0"
    (edge, index), other = y.grad_fn.next_functions
    assert (edge.name(), index, edge.variable is x, other) == ("AccumulateGrad", 0, True, (None, 0))
    y.grad_fn.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}
    assert y.detach().grad_fn is None
    assert y.detach_() is y
    assert y.is_leaf
    assert not y.requires_grad
    x.requires_grad = False
    assert not (x * 2).requires_grad


def test_gradients_are_not_shared_with_what_the_user_passed(leaf):
    x = leaf([1.0, 2.0])
    g = ones(2)
    (x + 0).backward(g)
    x.grad.mul_(5)
    assert g.tolist() == [1, 1]


# -- hooks


def test_tensor_hooks_see_and_replace_gradients(leaf):
    x = leaf([1.0])
    h = x * 2
    seen = []
    first = h.register_hook(lambda g: g * 10)
    h.register_hook(lambda g: seen.append(g.item()))
    x.register_hook(lambda g: g + 1)
    (h * 3).backward(ones(1))
    assert seen == [30]
    assert x.grad.item() == 61
    first.remove()
    first.remove()
    x.grad = None
    (h * 3).backward(ones(1))
    assert x.grad.item() == 7


def test_retained_gradients(leaf):
    x = leaf([1.0])
    h = x * 2
    h.retain_grad()
    assert h.retains_grad
    (h * 3).backward(ones(1))
    assert h.grad.item() == 3


def test_retained_gradients_add_up_apart_from_others(leaf):
    x, g = leaf([1.0]), ones(1)
    h = x * 2
    h.retain_grad()
    h.backward(g, retain_graph=True)
    first = h.grad
    h.backward(g * 3, retain_graph=True)
    assert (first.item(), h.grad.item(), g.item()) == (1, 4, 1)
    h.grad.mul_(2)
    assert (x.grad.item(), g.item()) == (8, 1)


def test_inputs_of_backward_retain_their_gradient(leaf):
    x = leaf([1.0])
    h = x * 2
    (h * 3).backward(inputs=h, retain_graph=True)
    assert h.retains_grad
    assert h.grad.item() == 3
    assert x.grad is None
    (h * 3).backward()
    assert (h.grad.item(), x.grad.item()) == (6, 6)


def test_leaves_that_require_no_gradient_any_more_get_none(leaf):
    x, w = leaf([1.0]), leaf([2.0])
    y = x * w
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None
    assert w.grad.item() == 1


def test_materialized_gradients_can_be_differentiated_as_others(leaf):
    x, w = leaf([1.0]), leaf([2.0])
    (g,) = torch.autograd.grad(x * x, w, create_graph=True, materialize_grads=True)
    assert g.requires_grad
    assert not torch.autograd.grad(x * x, w, materialize_grads=True)[0].requires_grad


def test_hooks_see_only_what_has_a_gradient(leaf):
    x = leaf([1.0, 3.0, 2.0])
    values, _ = x.sort()
    seen = []
    values.grad_fn.register_hook(lambda inputs, outputs: seen.append(len(outputs)))
    values.sum().backward(retain_graph=True)
    assert seen == [1]
    assert values.grad_fn(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)).tolist() == [1, 3, 2]


def test_retained_gradient_is_that_of_the_tensor_of_now(leaf):
    x = leaf([1.0])
    h = x * 2
    h.retain_grad()
    h.mul_(5)
    (h * 3).backward(ones(1))
    assert h.grad.item() == 3
    assert x.grad.item() == 30


def test_post_accumulate_hook_may_use_up_the_gradient(leaf):
    x = leaf([1.0])
    steps = []

    def step(p):
        steps.append(p.grad.item())
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2 + x * 3).sum().backward()
    assert steps == [5]
    assert x.grad is None


def test_node_hooks(leaf):
    x = leaf([1.0])
    h = x * 2
    order = []
    h.grad_fn.register_prehook(lambda outputs: order.append("pre") or (outputs[0] * 2,))
    h.grad_fn.register_hook(
        lambda inputs, outputs: order.append((inputs[0].item(), outputs[0].item())) or (inputs[0] + 1, None)
    )
    h.backward(ones(1))
    assert order == ["pre", (4, 2)]
    assert x.grad.item() == 5


def test_errors_in_hooks_leave_the_engine_usable(leaf):
    x = leaf([1.0])
    h = x * x

    def fail(g):
        raise KeyError("hook")

    handle = h.register_hook(fail)
    with pytest.raises(KeyError):
        (h * 2).backward(ones(1), retain_graph=True)
    handle.remove()
    h.backward(ones(1))
    assert x.grad.item() == 2


def test_backward_inside_backward(leaf):
    x = leaf([2.0])
    inner = x * x * x

    def hook(g):
        return g * grad(inner, x, ones(1), retain_graph=True)[0]

    h = x * 1
    h.register_hook(hook)
    (h + inner).backward(ones(1))
    assert x.grad.item() == 12 + 12


# -- size, threads, memory


def test_a_million_nodes_with_a_small_stack():
    code = """
        import resource, threading
        resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))
        import rushlight as torch
        x = torch.ones(1, requires_grad=True)
        y = x
        for _ in range(1_000_000):
            y = y + x
        y.backward()
        assert x.grad.item() == 1_000_001
        del y
        z = x
        for _ in range(1_000_000):
            z = z * 1.0
        del z
    """
    program = "\n".join(line[8:] for line in code.splitlines())
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_long_chain_takes_the_memory_that_it_saves():
    code = """
        import resource
        import rushlight as torch
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        x = torch.full((1000,), 0.5, requires_grad=True)
        x.tanh().sum().backward()
        before, y = peak(), x
        for _ in range(100_000):
            y = y.tanh()
        assert peak() - before < 100_000 * (4000 + 1000)
        after = peak()
        y.sum().backward()
        assert peak() - after < 10 << 20
    """
    program = "\n".join(line[8:] for line in code.splitlines())
    subprocess.run([sys.executable, "-c", program], check=True)


def test_passes_in_threads_over_one_graph(leaf):
    x = leaf([1.0, 2.0])
    h = x * x
    for _ in range(20):
        h = h + x
    y = h.sum()
    results, errors = [], []

    def work():
        try:
            for _ in range(50):
                results.append(grad(y, x, retain_graph=True)[0].tolist())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert results == [[22, 24]] * 200


def memory_growth(step, n):
    for _ in range(n // 10):
        step()
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(n):
        step()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def test_training_loop_keeps_memory_flat():
    x = torch.ones(256, requires_grad=True)

    def step():
        x.grad = None
        (x * x).tanh().sum().backward()

    assert memory_growth(step, 10_000) < 2


def test_create_graph_loop_keeps_memory_flat():
    x = torch.ones(256, requires_grad=True)

    def step():
        x.grad = None
        (x * x * x).sum().backward(create_graph=True)

    assert memory_growth(step, 10_000) < 4


def test_create_graph_leaves_no_cycle_that_the_collector_cannot_break():
    x = torch.ones(3, requires_grad=True)
    alive = weakref.ref(x)
    (x * x).sum().backward(create_graph=True)
    assert x.grad.grad_fn is not None
    del x
    gc.collect()
    assert alive() is None


def test_graph_dies_with_its_result(leaf):
    x = leaf([1.0])
    y = x * 2
    h = weakref.ref(y)
    z = y * y
    del y
    assert h() is not None
    del z
    assert h() is None


# -- anomaly mode


def test_anomaly_mode_shows_the_forward_call_and_finds_nan(leaf):
    x = leaf([0.0])
    with detect_anomaly():
        y = x.sqrt() * 0
        with (
            pytest.warns(UserWarning, match="test_anomaly_mode_shows"),
            pytest.raises(RuntimeError, match=r"SqrtBackward0.*nan"),
        ):
            y.backward(ones(1))
