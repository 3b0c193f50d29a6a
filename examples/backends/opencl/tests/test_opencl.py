"""The OpenCL device: memory, views, generated kernels, order of writes, faults, random numbers, convolution."""

import numpy as np
import pytest
import rushlight_opencl

import rushlight as torch
from rushlight.plugin import backend, from_array, to_array
from rushlight.plugin.source import Node, fold_of, store_lines
from rushlight.testing import assert_close

available = rushlight_opencl.OpenCL.probe()
pytestmark = pytest.mark.skipif(not available, reason=getattr(available, "reason", ""))

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]
DTYPES += [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


def pair(*shape, low=-2, high=2):
    """The same values on the host and on the device."""
    values = torch.rand(shape, dtype=torch.float32) * (high - low) + low
    return values, values.to("opencl")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_keep_every_element(dtype):
    host = torch.tensor([[0, 1, 0], [1, 1, 100]]).to(dtype)
    assert_close(host.to("opencl").cpu(), host)
    assert_close(host.t().to("opencl").t().contiguous().cpu(), host)
    assert_close(torch.empty(0, 3, dtype=dtype, device="opencl").cpu(), torch.empty(0, 3, dtype=dtype))


def test_freed_memory_is_used_again():
    pool = rushlight_opencl.devices()[0].pool
    x = torch.empty(1 << 20, device="opencl")
    del x
    held = pool.managed_bytes
    for _ in range(20):
        torch.empty(1 << 20, device="opencl")
    assert pool.managed_bytes == held


def test_absurd_sizes_raise():
    with pytest.raises((RuntimeError, MemoryError)):
        torch.empty(1 << 50, dtype=torch.uint8, device="opencl")


def test_views_share_memory():
    x = torch.zeros(4, 6, device="opencl")
    x[1:, ::2].t()[1].add_(5)
    x.narrow(1, 3, 1).fill_(7)
    expected = torch.zeros(4, 6)
    expected[1:, 2] = 5
    expected[:, 3] = 7
    assert_close(x.cpu(), expected)


def test_an_operator_is_one_kernel(monkeypatch):
    _, x = pair(3, 4)
    started = []
    run = type(rushlight_opencl.devices()[0]).run
    monkeypatch.setattr(
        type(rushlight_opencl.devices()[0]),
        "run",
        lambda self, source, *rest: (started.append(source), run(self, source, *rest)),
    )
    torch.nn.functional.gelu(x, approximate="tanh")
    assert len(started) == 1
    started.clear()
    for factor in (2.0, 3.0):
        x * factor
    assert len(set(started)) == 1, "a number is part of the text of a kernel"


@pytest.mark.parametrize("length", [1, 3, 40, 1000])
def test_lines_are_reduced_and_written_in_one_kernel(length):
    host, tensor = pair(5, length)
    x, dtype = to_array(tensor), np.dtype("float32")
    largest = type(x).put_off((5, 1), dtype, Node("{0}", (x,), (dtype,), dtype, fold=fold_of("maximum", dtype)))
    e = backend("opencl").xp.exp(x - largest)
    total = type(x).put_off((5, 1), dtype, Node("{0}", (e,), (dtype,), dtype, fold=fold_of("add", dtype)))
    targets = [x.empty((5, length), dtype, x.device), x.empty((5, 1), dtype, x.device)]
    store_lines(targets, [e / total, largest], (1,), (5, length))
    assert_close(from_array(targets[0], "opencl").cpu(), host.softmax(1))
    assert_close(from_array(targets[1], "opencl").cpu(), host.amax(1, keepdim=True))


def test_pending_expressions_see_memory_before_writes():
    xp = backend("opencl").xp
    x = to_array(torch.arange(4.0, device="opencl"))
    later = xp.exp(x * 0) + x
    x[0] = 100
    assert later.get().tolist() == [1, 2, 3, 4]
    x[1:] = x[:-1]
    assert x.get().tolist() == [100, 100, 1, 2]


@pytest.mark.parametrize("shape", [(), (1,), (1000, 3), (3, 1000), (2, 3, 5, 7)])
def test_reductions(shape):
    host, x = pair(*shape)
    for dims in [None, *range(-len(shape), 0)]:
        for name in ("sum", "amax", "amin"):
            arguments = () if dims is None else (dims,)
            assert_close(getattr(x, name)(*arguments).cpu(), getattr(host, name)(*arguments), rtol=1e-5, atol=1e-4)


def test_long_sums_stay_close():
    x = torch.full((1 << 20,), 0.1, device="opencl")
    assert_close(x.sum().item(), 0.1 * 2**20, rtol=1e-5, atol=0)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (33, 17, 65), (64, 0, 3), (5, 100, 31)])
def test_products_of_matrices(m, k, n):
    (a, left), (b, right) = pair(2, m, k), pair(k, n)
    assert_close((left @ right).cpu(), a @ b, rtol=1e-4, atol=1e-4)
    assert_close((right.t() @ left[0].t()).cpu(), b.t() @ a[0].t(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("key", [[2, 0], (slice(None), [0, 3]), ([[0], [1]], [3, 1]), (slice(None, None, 2), None, -1)])
def test_indices(key):
    host, x = pair(3, 4)
    assert_close(x[key].cpu(), host[key])
    x[key], host[key] = 9, 9
    assert_close(x.cpu(), host)


def test_masks():
    host, x = pair(5, 6)
    assert_close(x[x > 0].cpu(), host[host > 0])
    x[x < 0], host[host < 0] = 0, 0
    assert_close(x.cpu(), host)
    assert x[x > 10].shape == (0,)


def test_indices_outside_raise_and_the_device_lives():
    x = torch.zeros(3, 4, device="opencl")
    for index in (3, -4):
        with pytest.raises(IndexError):
            x[torch.tensor([index], device="opencl")]
    assert_close(x[torch.tensor([-3], device="opencl")].cpu(), torch.zeros(1, 4))


def test_integers_divided_by_zero_do_not_end_the_process():
    x = torch.tensor([7, -7, -(2**63)], device="opencl")
    for other in (0, -1):
        for operator in (torch.floor_divide, torch.remainder, torch.fmod):
            operator(x, torch.full_like(x, other)).cpu()


def test_sorting_is_stable_and_puts_nan_last():
    host = torch.tensor([[3.0, float("nan"), 1.0, 3.0, 1.0], [2.0, 2.0, 2.0, -1.0, 5.0]])
    values, order = host.to("opencl").sort(dim=1, stable=True)
    assert order.cpu().tolist() == [[2, 4, 0, 3, 1], [3, 0, 1, 2, 4]]
    assert_close(values.cpu(), host.sort(dim=1)[0], equal_nan=True)


def test_equal_places_add_up():
    index = torch.zeros(1000, dtype=torch.int64, device="opencl")
    for dtype in (torch.float32, torch.float64, torch.int64, torch.int8, torch.complex64):
        x = torch.zeros(2, dtype=dtype, device="opencl")
        x.index_add_(0, index[:100], torch.ones(100, dtype=dtype, device="opencl"))
        assert x.cpu().tolist() == [100, 0]


def test_random_numbers_follow_the_seed():
    def draw():
        torch.manual_seed(5)
        return torch.empty(10000, device="opencl").normal_(2, 3), torch.empty(10000, device="opencl").uniform_(-1, 1)

    (normal, uniform), again = draw(), draw()
    assert_close([normal.cpu(), uniform.cpu()], [each.cpu() for each in again], rtol=0, atol=0)
    assert abs(normal.mean().item() - 2) < 0.15
    assert abs(normal.std().item() - 3) < 0.15
    assert -1 <= uniform.min().item() < -0.99
    assert 0.99 < uniform.max().item() < 1
    assert not torch.equal(normal.cpu(), torch.empty(10000, device="opencl").normal_(2, 3).cpu())


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1)])
def test_convolution_and_its_gradients(stride, padding, dilation, groups):
    pytest.importorskip("rushlight.nn", exc_type=ImportError)
    autograd = pytest.importorskip("rushlight.autograd", exc_type=ImportError)
    results = []
    for device in ("cpu", "opencl"):
        torch.manual_seed(1)
        x, w = torch.rand(2, 4, 9, 8).to(device).requires_grad_(), torch.rand(6, 4 // groups, 3, 2).to(device)
        w.requires_grad_()
        y = torch.nn.functional.conv2d(x, w, None, stride, padding, dilation, groups)
        results.append([each.detach().cpu() for each in (y, *autograd.grad((y * y).sum(), (x, w)))])
    assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)


def test_streams_run_in_order_and_events_time_them():
    device = rushlight_opencl.devices()[0]
    x = torch.ones(64, 64, device="opencl")
    with device.stream():
        before = rushlight_opencl.Event(device)
        y = x @ x
        after = rushlight_opencl.Event(device)
    assert_close((y + 0).cpu(), torch.full((64, 64), 64.0))
    after.wait()
    assert after.done()
    assert after.seconds_since(before) >= 0


def test_what_is_missing_says_so():
    with pytest.raises(NotImplementedError, match=r"opencl.*not implemented for"):
        torch.fft.fft(torch.ones(4, device="opencl"))


def test_arrays_hide_from_numpy():
    array = to_array(torch.ones(3, device="opencl"))
    for leak in (np.asarray, np.sin, lambda x: x + np.ones(3)):
        with pytest.raises(TypeError):
            leak(array)
    assert from_array(array + 1, "opencl").cpu().tolist() == [2, 2, 2]
