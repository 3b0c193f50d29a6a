"""The CUDA backend over the CuPy beside this file: `test_cuda` runs it in a process of its own, where that is CuPy."""

import gc
import sys
import types

import cupy
import numpy as np
import nvrtc
import pytest

import rushlight as torch
from rushlight import _registry
from rushlight.plugin import source
from rushlight.testing import assert_close
from rushlight.testing.conformance import Case, all_ops, tensors

DTYPES = [torch.float32, torch.int64, torch.bool, torch.complex64, torch.float16]
torch.cuda.init()
# Not those of linalg, whose factors have free phases.
REPLACED = [op for op in all_ops() if ("cuda", op.name) in _registry.kernels and op.namespace == "nn"]
CASES = [Case(op, dtype) for op in [*filter(lambda op: op.array_kernel, all_ops()), *REPLACED] for dtype in DTYPES]
TOLERANCE = {torch.float16: {"rtol": 4e-3, "atol": 1e-3}}


@pytest.fixture
def log():
    """What the driver is asked in a test."""
    cupy.cuda.log.clear()
    yield cupy.cuda.log
    torch.cuda.set_device(0)


def test_an_operator_is_one_kernel(log):
    x = torch.linspace(-2, 2, 100, device="cuda")
    y, cpu = torch.rand(100, device="cuda"), x.cpu()
    log.clear()
    result = torch.special.xlogy(x, y) if hasattr(torch, "special") else torch.hypot(x, y)
    assert [each[0] for each in log] == ["launch"]
    assert result.device == x.device
    log.clear()
    assert_close(torch.sigmoid(x).cpu(), torch.sigmoid(cpu))
    assert [each[0] for each in log] == ["launch"]
    kernels = torch.plugin.backend("cuda").launcher._kernels
    before = len(kernels)
    for factor in (2.5, 3.5):
        assert_close((x * factor).cpu(), cpu * factor)
    assert len(kernels) <= before + 1, "a number is part of the text of a kernel"


def launches(log, function, *args):
    """How many kernels a call starts when it is known, and its results."""
    function(*args)
    log.clear()
    result = function(*args)
    return [each[0] for each in log].count("launch"), result


@pytest.mark.parametrize(
    ("shape", "dim"), [((3, 5), 1), ((3, 1000), 1), ((700, 4), 0), ((2, 3, 40, 5), 2), ((2, 1), 1)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_reductions_and_what_follows_are_one_kernel(log, shape, dim, dtype):
    x, grad = torch.randn(*shape, dtype=dtype), torch.randn(*shape, dtype=dtype)
    for function in (torch.softmax, torch.log_softmax):
        count, result = launches(log, function, x.cuda(), dim)
        assert_close(result.cpu(), function(x, dim), rtol=1e-5, atol=1e-5)
        assert count == 1
    for name in ("_softmax_backward", "_log_softmax_backward"):
        op = next(op for op in all_ops(f"^{name}$")).operator
        count, result = launches(log, op, grad.cuda(), x.cuda(), dim)
        assert_close(result.cpu(), op(grad, x, dim), rtol=1e-4, atol=1e-4)
        assert count == 1


def test_folds_of_nan_of_other_lines_and_of_writes():
    from rushlight.cuda import _fused

    session = _fused.Session(torch.plugin.backend("cuda").launcher)
    xp = _fused.Namespace(session, cupy)
    host = np.random.default_rng(0).normal(size=(4, 6))
    host[1, 2] = np.nan
    x = session.wrap(cupy.asarray(host))
    assert np.array_equal((xp.max(x, axis=1, keepdims=True) + 0).array().get(), host.max(1, keepdims=True), True)
    both = xp.sum(x * 2, axis=0, keepdims=True) + xp.sum(x * 2, axis=1, keepdims=True)
    assert_close(both.array().get(), host.sum(0, keepdims=True) * 2 + host.sum(1, keepdims=True) * 2, equal_nan=True)
    of_fold = xp.sum(x - xp.sum(x, axis=1, keepdims=True), axis=0, keepdims=True)
    assert_close(of_fold.array().get(), (host - host.sum(1, keepdims=True)).sum(0, keepdims=True), equal_nan=True)
    later = xp.sum(x, axis=1, keepdims=True) * x
    expected = host.sum(1, keepdims=True) * host
    x[...] = 0
    assert_close(later.array().get(), expected, equal_nan=True)
    assert xp.sum(session.wrap(cupy.asarray(np.ones((0, 3)))) * 1, axis=0).array().get().tolist() == [0, 0, 0]


def test_norms_are_one_kernel_each_way(log):
    nn = pytest.importorskip("rushlight.nn", exc_type=ImportError)
    for module, shape, most in (
        (nn.LayerNorm(33), (2, 5, 33), 1),
        (nn.GroupNorm(3, 6), (2, 6, 5, 4), 1),
        (nn.InstanceNorm2d(6, affine=True), (2, 6, 5, 4), 1),
        (nn.BatchNorm2d(6), (4, 6, 5, 3), 6),  # five for the running statistics
        (nn.BatchNorm2d(6).eval(), (4, 6, 5, 3), 2),
    ):
        results = []
        for device in ("cpu", "cuda"):
            torch.manual_seed(0)
            x = torch.randn(shape).to(device).requires_grad_()
            module = module.to(device)
            for parameter in module.parameters():
                parameter.grad = None
            count, y = launches(log, module, x)
            log.clear()
            (y * y.detach().cos()).sum().backward()
            results.append([each.cpu() for each in (y.detach(), x.grad, *(p.grad for p in module.parameters()))])
        assert count <= most
        assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_convolution_and_pooling(dtype, monkeypatch):
    nn = pytest.importorskip("rushlight.nn", exc_type=ImportError)
    from rushlight.nn import _cuda

    monkeypatch.setattr(_cuda, "COLUMNS_LIMIT", 1 << 12)  # batches are taken in parts
    functional = nn.functional
    calls = [
        lambda x, w: functional.conv2d(x, w, None, 2, 1, 1, 2),
        lambda x, w: functional.conv2d(x, w[:, :, :1, :1], None, 1, 0, 1, 2),
        lambda x, w: functional.conv_transpose2d(x, w.transpose(0, 1)[:, :4].repeat(2, 1, 1, 1), None, 2, 1),
        lambda x, w: functional.max_pool2d(x * w.mean(), 3, 2, 1),
        lambda x, w: functional.avg_pool2d(x * w.mean(), 3, 2, 1, count_include_pad=False),
    ]
    for call in calls:
        results = []
        for device in ("cpu", "cuda"):
            torch.manual_seed(0)
            x = torch.randn(5, 4, 9, 8).to(device, dtype).requires_grad_()
            w = torch.randn(6, 2, 3, 3).to(device, dtype).requires_grad_()
            y = call(x, w)
            y.float().square().sum().backward()
            results.append([each.cpu().float() for each in (y.detach(), x.grad, w.grad)])
        rtol = 1e-4 if dtype is torch.float32 else 0.05
        for ours, expected in zip(results[1], results[0], strict=True):
            assert_close(ours, expected, rtol=rtol, atol=rtol * expected.abs().max().item())


def test_what_an_operator_came_to_is_kept(log):
    plans = torch.plugin.backend("cuda").launcher.plans
    x, y, z = (torch.rand(5, 7, device="cuda") for _ in range(3))
    assert_close((x * x).cpu(), x.cpu() * x.cpu())
    assert_close((x * y).cpu(), x.cpu() * y.cpu())
    plans.clear()
    for a, b in ((x, y), (y, z), (x, x), (z, x)):
        assert_close(torch.hypot(a, b).cpu(), torch.hypot(a.cpu(), b.cpu()))
    assert len(plans) == 1
    for a, b in ((x.t(), y.t()), (x[:1], y), (x.double(), y.double())):
        assert_close(torch.hypot(a, b).cpu(), torch.hypot(a.cpu(), b.cpu()))
    assert len(plans) == 4
    for number in (0.0, -0.0, 1.0):
        assert_close(torch.copysign(x, number).cpu(), torch.copysign(x.cpu(), number))
        assert_close(torch.add(x, y, alpha=number).cpu(), torch.add(x.cpu(), y.cpu(), alpha=number))
    assert_close(x.nan_to_num(2).cpu(), x.cpu())
    plans.clear()
    for size in (3, 4):
        mask = torch.ones(size, device="cuda") > 0
        assert x[:size][mask].shape == (size, 7)


def test_writes_do_not_change_what_was_asked_for_before():
    from rushlight.cuda import _fused

    session = _fused.Session(torch.plugin.backend("cuda").launcher)
    x = session.wrap(cupy.asarray(np.arange(4.0)))
    later = x * 2
    x[0] = 100
    assert later.array().get().tolist() == [0, 2, 4, 6]
    flipped = (x[::-1] + 1).array().get()
    assert flipped.tolist() == [4, 3, 2, 101]


def test_devices(log):
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 2
    assert torch.cuda.get_device_name(1) == "Fake GPU"
    assert torch.cuda.get_device_capability() == (9, 0)
    assert torch.cuda.is_bf16_supported()
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert torch.ones(2, device="cuda").device == torch.device("cuda", 1)
    assert torch.cuda.current_device() == 0
    with torch.cuda.device_of(torch.ones(1, device="cuda:1")):
        assert torch.cuda.current_device() == 1
    with torch.cuda.device_of(torch.ones(1)):
        assert torch.cuda.current_device() == 0
    x = torch.arange(6.0, device="cuda:1").reshape(2, 3)
    assert (x.t() * 2 + 1).device == torch.device("cuda", 1), "an operator leaves the GPU of its arguments"
    assert x.t().to("cuda:0").cpu().tolist() == x.t().tolist()
    assert torch.cuda.can_device_access_peer(0, 1)
    with pytest.raises(ValueError, match="no GPU 2"):
        torch.cuda.can_device_access_peer(0, 2)
    with pytest.raises(RuntimeError):
        x + torch.ones(2, 3, device="cuda:0")


def test_streams_and_events(log):
    side = torch.cuda.Stream()
    assert torch.cuda.current_stream() == torch.cuda.default_stream() != side
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        before.record()
        torch.ones(3, device="cuda") * 2
        after.record()
    assert ("launch", side.cuda_stream) in log
    assert ("record", side.cuda_stream) in log
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    after.synchronize()
    assert after.query()
    assert before.elapsed_time(after) >= 0
    torch.cuda.current_stream().wait_stream(side)
    assert log[-1] == ("wait", torch.cuda.default_stream().cuda_stream)
    side.synchronize()
    assert side.query()
    assert torch.cuda.ExternalStream(side.cuda_stream) == side


def test_memory():
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
    start = torch.cuda.memory_allocated()
    x = torch.empty(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - start == 1 << 22
    del x
    gc.collect()
    assert torch.cuda.memory_allocated() == start
    assert torch.cuda.max_memory_allocated() >= start + (1 << 22)
    assert torch.cuda.memory_reserved() >= 1 << 22
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == start
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == start
    assert "allocated_bytes" in torch.cuda.memory_summary()
    assert torch.cuda.mem_get_info()[1] == 2**34
    address = torch.cuda.caching_allocator_alloc(100)
    torch.cuda.caching_allocator_delete(address)
    with pytest.raises(ValueError, match="no memory was lent"):
        torch.cuda.caching_allocator_delete(address)
    torch.cuda.set_per_process_memory_fraction(2**-12)
    with pytest.raises(torch.cuda.OutOfMemoryError, match="CUDA out of memory"):
        torch.empty(1 << 24, device="cuda")
    torch.cuda.set_per_process_memory_fraction(1.0)


def test_snapshot_of_memory():
    before = torch.cuda.memory_snapshot()
    x = torch.empty(1 << 20, device="cuda:1")
    (block,) = [each for each in torch.cuda.memory_snapshot() if each not in before]
    assert block["device"] == 1
    assert block["total_size"] == block["blocks"][0]["size"] == 1 << 22
    assert block["segment_type"] == "large"
    del x
    gc.collect()
    assert block not in torch.cuda.memory_snapshot()


def test_types_of_tensors_and_storages():
    x = torch.cuda.FloatTensor([1, 2])
    assert x.device == torch.device("cuda", 0)
    assert x.type() == "torch.cuda.FloatTensor"
    assert isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(x, (torch.FloatTensor, torch.cuda.DoubleTensor))
    assert not isinstance(x.cpu(), torch.cuda.FloatTensor)
    assert x.cpu().type(torch.cuda.LongTensor).device.type == "cuda"
    assert x.type("torch.DoubleTensor").device.type == "cpu"
    assert x.type(torch.float64).type() == "torch.cuda.DoubleTensor"
    storage = torch.cuda.FloatStorage(3)
    assert storage.device.type == "cuda"
    assert storage.type() == "torch.cuda.FloatStorage"
    assert isinstance(storage, torch.cuda.FloatStorage)
    assert not isinstance(storage, torch.FloatStorage)
    assert storage.type("torch.DoubleStorage").device.type == "cpu"
    with pytest.warns(UserWarning, match="deprecated"):
        torch.set_default_tensor_type(torch.cuda.DoubleTensor)
    try:
        assert torch.ones(1).type() == "torch.cuda.DoubleTensor"
    finally:
        with pytest.warns(UserWarning, match="deprecated"):
            torch.set_default_tensor_type("torch.FloatTensor")
    assert torch.ones(1).type() == "torch.FloatTensor"


def test_what_the_driver_says(monkeypatch, log):
    assert torch.cuda.get_arch_list() == ["sm_75", "sm_80", "sm_90"]
    assert torch.cuda.get_gencode_flags().startswith("-gencode compute=compute_75,code=sm_75 -gencode")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "install nvidia-ml-py" in torch.cuda.list_gpu_processes()
    with pytest.raises(ModuleNotFoundError, match="nvidia-ml-py"):
        torch.cuda.utilization()
    nvml = types.SimpleNamespace(
        NVML_TEMPERATURE_GPU=0,
        NVML_CLOCK_SM=1,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByPciBusId=lambda bus: bus,
        nvmlDeviceGetComputeRunningProcesses=lambda bus: (
            [types.SimpleNamespace(pid=7, usedGpuMemory=2**21)] if ":01:" in bus else []
        ),
        nvmlDeviceGetUtilizationRates=lambda bus: types.SimpleNamespace(gpu=30, memory=20),
        nvmlDeviceGetTemperature=lambda bus, sensor: 40,
        nvmlDeviceGetPowerUsage=lambda bus: 50,
        nvmlDeviceGetClockInfo=lambda bus, clock: 60,
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert torch.cuda.list_gpu_processes() == "GPU:0\nno processes are running"
    assert torch.cuda.list_gpu_processes(1) == "GPU:1\nprocess          7 uses        2.000 MB GPU memory"
    readings = torch.cuda.memory_usage(), torch.cuda.utilization(), torch.cuda.temperature()
    assert (*readings, torch.cuda.power_draw(), torch.cuda.clock_rate()) == (20, 30, 40, 50, 60)
    assert torch.cuda.cudart().getDeviceCount() == 2
    torch.cuda.check_error(torch.cuda.cudaStatus.SUCCESS)
    with pytest.raises(torch.cuda.CudaError, match=r"error 34 \(34\)"):
        torch.cuda.check_error(torch.cuda.cudaStatus.ERROR_NOT_READY)
    log.clear()
    with torch.cuda.profiler.profile():
        assert log == [("profile",)]
    assert log[-1] == ("profiled",)


def test_pinned_memory_and_copies_that_do_not_wait(log):
    x = torch.arange(6.0).reshape(2, 3)
    assert not x.is_pinned()
    pinned = x.pin_memory()
    assert pinned.is_pinned()
    assert pinned.t().is_pinned()
    assert pinned.pin_memory() is pinned
    assert pinned.tolist() == x.tolist()
    assert x.to("cuda").tolist() == x.tolist()
    assert ("set", 0) not in log
    for later in (pinned.to("cuda", non_blocking=True), pinned.cuda(non_blocking=True)):
        assert later.tolist() == x.tolist()
    target = torch.empty(2, 3, device="cuda")
    target.copy_(pinned, non_blocking=True)
    assert log.count(("set", 0)) == 3
    assert target.tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        target.pin_memory()


def test_batches_in_pinned_memory():
    data = pytest.importorskip("rushlight.utils.data", exc_type=ImportError)
    samples = [{"x": torch.ones(2), "name": "a", "y": (torch.zeros(()), 3)}] * 4
    for workers in (0, 1):
        for batch in data.DataLoader(samples, batch_size=2, pin_memory=True, num_workers=workers):
            assert batch["x"].is_pinned()
            assert all(each.is_pinned() for each in batch["y"])
            assert batch["name"] == ["a", "a"]


def test_random_numbers():
    torch.manual_seed(5)
    first = torch.randn(1000, device="cuda"), torch.rand(1000, device="cuda")
    torch.manual_seed(5)
    again = (
        torch.cat([torch.randn(400, device="cuda"), torch.randn(600, device="cuda")]),
        torch.rand(1000, device="cuda"),
    )
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True)), "a stream depends on how it is split"
    assert abs(first[0].mean().item()) < 0.15
    assert abs(first[0].std().item() - 1) < 0.1
    assert 0 <= first[1].min().item() < 0.02
    assert 0.98 < first[1].max().item() < 1
    assert torch.equal(torch.rand(9, device="cuda:1"), torch.rand(9, device="cuda:1")) is False
    state = torch.cuda.get_rng_state()
    assert state.shape == (16,)
    x = torch.rand(3, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(3, device="cuda"), x)
    with torch.random.fork_rng():
        torch.rand(3, device="cuda")
    assert torch.equal(torch.cuda.get_rng_state_all()[1], torch.cuda.default_generators[1].get_state())
    torch.cuda.manual_seed_all(7)
    assert torch.equal(torch.rand(3, device="cuda:1").cpu(), torch.rand(3, device="cuda").cpu())
    assert torch.cuda.initial_seed() == 7
    generator = torch.Generator(algorithm="philox4x32-10").manual_seed(7)
    torch.cuda.manual_seed(7)
    assert torch.equal(torch.rand(3, device="cuda"), torch.empty(3, device="cuda").uniform_(generator=generator))
    assert 0.2 < torch.empty(1000, device="cuda").bernoulli_(0.3).mean().item() < 0.4
    for name, args in (("uniform_", (2, 1)), ("normal", (0, -1)), ("bernoulli_", (1.5,))):
        with pytest.raises(RuntimeError, match=name):
            getattr(torch.empty(3, device="cuda"), f"{name.removesuffix('_')}_")(*args)
    with pytest.raises(NotImplementedError):
        torch.rand(3, dtype=torch.int64, device="cuda")


def test_graphs(log):
    x = torch.ones(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        x * 2
    assert not torch.cuda.is_current_stream_capturing()
    before = sum(each[0] == "launch" for each in log)
    graph.replay()
    assert sum(each[0] == "launch" for each in log) == 2 * before
    graph.reset()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    with pytest.raises(RuntimeError, match="non-default stream"):
        graph.capture_begin()


def test_copies_between_gpus():
    x = torch.arange(6.0, device="cuda").reshape(3, 2)
    parts = torch.cuda.comm.scatter(x, [0, 1])
    assert [part.device.index for part in parts] == [0, 1]
    assert torch.cuda.comm.gather(parts, destination=0).tolist() == x.tolist()
    assert torch.cuda.comm.gather(parts, destination="cpu").device.type == "cpu"
    copies = torch.cuda.comm.broadcast(x, [0, 1])
    assert torch.cuda.comm.reduce_add(copies, 1).tolist() == (x * 2).tolist()
    both = torch.cuda.comm.reduce_add_coalesced(torch.cuda.comm.broadcast_coalesced([x, x + 1], [0, 1]))
    assert [each.tolist() for each in both] == [(x * 2).tolist(), (x * 2 + 2).tolist()]
    with pytest.raises(RuntimeError, match="Exactly one of"):
        torch.cuda.comm.broadcast(x)
    with pytest.raises(ValueError, match="one shape"):
        torch.cuda.comm.reduce_add([x, x[0]])


def test_deterministic_algorithms():
    dense = torch.rand(2, 3, 4, device="cuda")
    sparse = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]], device="cuda").expand(2, 2, 3).contiguous().to_sparse()
    expected = sparse.to_dense().cpu() @ dense.cpu()
    torch.use_deterministic_algorithms(True)
    try:
        assert_close(torch.bmm(sparse, dense).cpu(), expected)
        with pytest.raises(RuntimeError, match="kthvalue does not have a deterministic implementation"):
            torch.rand(5, device="cuda").kthvalue(2)
    finally:
        torch.use_deterministic_algorithms(False)


def test_ranges_of_profilers(log):
    with torch.cuda.nvtx.range("step {}", 3):
        torch.cuda.nvtx.mark("here")
    assert log == [("push", "step 3"), ("mark", "here"), ("pop",)]


def results(case, device):
    """What an operator makes of each of its samples, or the error."""
    found = []
    try:
        samples = case.samples(device)
    except (Exception, pytest.skip.Exception):  # none, or made by operators that the device lacks
        return found
    for sample in samples:
        try:
            found.append(case.op.operator(*sample.args, **sample.kwargs))
        except Exception as error:
            found.append(error)
    return found


@pytest.fixture(scope="module")
def sources():
    """The source of every kernel that the samples of all operators need, compiled for the host."""
    cupy.collecting = {}
    for case in CASES:
        results(case, "cuda")
    found, cupy.collecting = cupy.collecting, None
    cupy.prepare(found)
    return found


def test_values(sources):
    compared, wrong = 0, []
    for case in CASES:
        for ours, expected in zip(results(case, "cuda"), results(case, "cpu"), strict=False):
            if isinstance(expected, Exception) or isinstance(ours, NotImplementedError):
                continue
            compared += 1
            try:
                if isinstance(ours, Exception):
                    raise AssertionError(repr(ours))
                for x, y in zip(tensors(ours), tensors(expected), strict=True):
                    assert_close(x.cpu(), y, equal_nan=True, **TOLERANCE.get(case.dtype, {"rtol": 2e-4, "atol": 1e-5}))
            except (AssertionError, ValueError) as error:
                wrong.append(f"{case}: {error}")
    assert compared > 1000
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("architecture", [70, 75, 80, 90])
def test_kernels_compile_to_ptx(sources, architecture):
    library = nvrtc.library()
    if library is None:
        pytest.skip("NVRTC is not installed (pip install nvidia-cuda-nvrtc-cu12)")
    if architecture not in nvrtc.architectures(library):
        pytest.skip(f"this NVRTC compiles for {nvrtc.architectures(library)} only")
    bodies = [code.removeprefix(source.CUDA) for code in sorted(sources)]
    for first in range(0, len(bodies), 64):
        parts = [source.CUDA]
        for number, body in enumerate(bodies[first : first + 64]):
            parts.append(f"namespace k{number} {{\n{body.replace('KERNEL run(', f'KERNEL run{number}(')}\n}}")
        ptx = nvrtc.compile_to_ptx(library, "\n".join(parts), architecture)
        assert ptx.count(".entry run") == len(parts) - 1
