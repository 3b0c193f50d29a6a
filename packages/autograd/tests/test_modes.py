"""Grad modes as context managers and decorators, per thread, in generators and coroutines."""

import asyncio
import threading

import pytest

import rushlight as torch
from rushlight.autograd import Function, inference_mode, is_grad_enabled, is_inference_mode_enabled, set_grad_enabled


def test_context_managers_nest_and_restore():
    assert is_grad_enabled()
    mode = torch.no_grad()
    with mode:
        assert not is_grad_enabled()
        with torch.enable_grad():
            assert is_grad_enabled()
            with mode:
                assert not is_grad_enabled()
            assert is_grad_enabled()
        assert not is_grad_enabled()
    assert is_grad_enabled()
    with pytest.raises(KeyError), torch.no_grad():
        raise KeyError
    assert is_grad_enabled()


def test_set_grad_enabled_acts_at_once():
    set_grad_enabled(False)
    assert not is_grad_enabled()
    with set_grad_enabled(True):
        assert is_grad_enabled()
    assert not is_grad_enabled()
    set_grad_enabled(mode=True)
    assert is_grad_enabled()


@pytest.mark.parametrize("decorator", [torch.no_grad, torch.no_grad(), set_grad_enabled], ids=["bare", "called", "set"])
def test_decorators(decorator):
    if decorator is set_grad_enabled:
        decorator = set_grad_enabled(False)

    @decorator
    def mode(a, *, b=2):
        """Docstring."""
        return is_grad_enabled(), a, b

    assert is_grad_enabled()
    assert mode(1, b=3) == (False, 1, 3)
    assert mode.__doc__ == "Docstring."
    assert is_grad_enabled()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
def test_decorated_functions_may_call_themselves(mode):
    on = mode is torch.enable_grad

    @mode()
    def nested(depth):
        assert is_grad_enabled() == on
        if depth:
            nested(depth - 1)
        assert is_grad_enabled() == on

    with set_grad_enabled(not on):
        nested(200)
        assert is_grad_enabled() != on


def test_decorated_functions_in_threads_do_not_meet():
    inside, leave = threading.Barrier(2), [threading.Event(), threading.Event()]
    after = {}

    @torch.enable_grad()
    def wait(who):
        inside.wait()
        leave[who].wait()

    def work(who):
        with set_grad_enabled(who == 0):
            wait(who)
            after[who] = is_grad_enabled()

    threads = [threading.Thread(target=work, args=(who,)) for who in (0, 1)]
    for thread in threads:
        thread.start()
    for event, thread in zip(leave, threads, strict=True):
        event.set()
        thread.join()
    assert after == {0: True, 1: False}


def test_one_object_is_entered_so_often():
    mode = torch.no_grad()
    for _ in range(64):
        mode.__enter__()
    with pytest.raises(RuntimeError, match="may be entered 64 times"):
        mode.__enter__()
    for _ in range(64):
        mode.__exit__(None, None, None)
    assert is_grad_enabled()
    with pytest.raises(RuntimeError, match="left without being entered"):
        mode.__exit__(None, None, None)
    assert type(mode.clone()) is torch.no_grad


def test_generators_leave_the_mode_between_values():
    @torch.no_grad()
    def generate():
        try:
            while True:
                try:
                    received = yield is_grad_enabled()
                    assert received in (None, 5)
                except KeyError:
                    yield "caught", is_grad_enabled()
        finally:
            assert not is_grad_enabled()

    values = generate()
    assert next(values) is False
    assert is_grad_enabled()
    assert values.send(5) is False
    assert values.throw(KeyError()) == ("caught", False)
    values.close()
    assert is_grad_enabled()


def test_coroutines_leave_the_mode_while_they_wait():
    @torch.no_grad()
    async def work():
        before = is_grad_enabled()
        await asyncio.sleep(0)
        return before, is_grad_enabled()

    async def watch():
        task = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        outside = is_grad_enabled()
        return outside, await task

    assert asyncio.run(watch()) == (True, (False, False))


def test_async_generators():
    @torch.no_grad()
    async def generate():
        yield is_grad_enabled()
        await asyncio.sleep(0)
        yield is_grad_enabled()

    async def collect():
        return [(inside, is_grad_enabled()) async for inside in generate()]

    assert asyncio.run(collect()) == [(False, True), (False, True)]


def test_modes_belong_to_threads():
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_inference_mode():
    x = torch.ones(2, requires_grad=True)
    with inference_mode():
        assert is_inference_mode_enabled()
        assert not is_grad_enabled()
        y = x * 2
        assert y.is_inference()
        assert not y.requires_grad
        y.add_(1)
        with inference_mode(False):
            assert is_grad_enabled()
            assert not (x * 2).is_inference()
    assert not is_inference_mode_enabled()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        y.add_(1)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor"):
        y.requires_grad_()
    assert (x + y).requires_grad
    assert (x * y.clone()).requires_grad


def test_views_of_normal_tensors_stay_normal():
    x = torch.ones(2)
    with inference_mode():
        v = x[0:1]
    assert not v.is_inference()


@pytest.mark.parametrize(
    "call", [lambda: torch.no_grad(3), lambda: set_grad_enabled(), lambda: torch.no_grad(mode=True)]
)
def test_wrong_arguments(call):
    with pytest.raises(TypeError):
        call()


OUTSIDE = "Inplace update to inference tensor outside InferenceMode is not allowed"


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda y: y.add_(1), OUTSIDE),
        (lambda y: y[:1].add_(1), OUTSIDE),
        (lambda y: torch.add(torch.ones(2), 1, out=y), OUTSIDE),
        (lambda y: y._version, "Inference tensors do not track version counter"),
        (lambda y: y.requires_grad_(), "Setting requires_grad=True on inference tensor outside InferenceMode"),
        (lambda y: torch.ones(2, requires_grad=True) * y, "Inference tensors cannot be saved for backward"),
        (lambda y: Kept.apply(torch.ones(2, requires_grad=True), y), "Inference tensors cannot be saved for backward"),
    ],
)
def test_what_inference_tensors_refuse(use, message):
    with inference_mode():
        y = torch.ones(2)
    with pytest.raises(RuntimeError, match=message):
        use(y)
    assert y.clone().requires_grad_().is_leaf


class Kept(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        return x * 2


def test_nothing_is_recorded_in_inference_mode():
    x = torch.ones(2, requires_grad=True)
    with inference_mode():
        with torch.enable_grad():
            assert not (x * 2).requires_grad
        with inference_mode(False):
            assert (x * 2).requires_grad
