"""Deprecated names and torch.cuda without a GPU: what PyTorch's CPU build does."""

import pytest

import rushlight as torch


def test_default_tensor_type():
    with pytest.warns(UserWarning, match="deprecated"):
        torch.set_default_tensor_type(torch.DoubleTensor)
    assert torch.tensor(1.0).dtype is torch.float64
    with pytest.warns(UserWarning, match="deprecated"):
        torch.set_default_tensor_type("torch.FloatTensor")
    assert torch.tensor(1.0).dtype is torch.float32


@pytest.mark.parametrize("wrong", ["torch.IntTensor", "nope", torch.float32, "torch.cuda.FloatTensor", None])
def test_default_tensor_type_refuses(wrong):
    with pytest.raises(TypeError, match=r"default type|not available"):
        torch.set_default_tensor_type(wrong)


def test_methods():
    x = torch.arange(6.0)
    assert x.get_device() == torch.get_device(x) == -1
    with pytest.warns(UserWarning, match="resize is deprecated"):
        assert x.resize(2, 3).shape == (2, 3)
    with pytest.warns(UserWarning, match="resize_as is deprecated"):
        assert x.resize_as(torch.ones(3, 2)).shape == (3, 2)
    with pytest.warns(UserWarning, match="deprecated"), pytest.raises(RuntimeError, match="requested resize to 2 "):
        x.resize(2)
    with pytest.raises(RuntimeError, match="was removed"):
        x.reinforce(1)
    with pytest.warns(UserWarning, match="always False"):
        assert x.volatile is False
    with pytest.raises(RuntimeError, match="record_stream"):
        x.record_stream(None)


def test_overrides():
    x = torch.ones(2)
    assert not torch.overrides.has_torch_function_unary(x)
    assert not torch.overrides.has_torch_function_variadic(x, 1)
    found = torch.overrides.get_overridable_functions()
    assert torch.add in found[torch]
    assert torch.Tensor.add in found[torch.Tensor]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
class TestNoGpu:
    @pytest.mark.parametrize("name", ["Event", "Stream"])
    def test_classes(self, name):
        with pytest.raises(RuntimeError, match="requires CUDA support"):
            getattr(torch.cuda, name)()

    @pytest.mark.parametrize(
        "name",
        [
            "current_blas_handle",
            "current_stream",
            "default_stream",
            "get_rng_state",
            "initial_seed",
            "reset_peak_memory_stats",
            "reset_accumulated_memory_stats",
        ],
    )
    def test_needs_a_gpu(self, name):
        with pytest.raises(AssertionError, match="not compiled with CUDA"):
            getattr(torch.cuda, name)()

    def test_answers(self):
        assert torch.cuda.default_generators == ()
        assert torch.cuda.get_rng_state_all() == []
        assert torch.cuda.memory_stats() == torch.cuda.memory_stats_as_nested_dict() == {}
        assert torch.cuda.max_memory_allocated() == torch.cuda.max_memory_reserved() == 0
        assert "allocated_bytes" in torch.cuda.memory_summary()
        torch.cuda.seed()
        torch.cuda.seed_all()
        torch.cuda.set_rng_state(torch.get_rng_state())
        torch.cuda.set_rng_state_all([])
        torch.cuda.set_stream(None)
        with torch.cuda.stream(None):
            pass


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_types_of_gpus_without_one():
    with pytest.raises(TypeError, match=r"type torch.cuda.FloatTensor not available. Torch not compiled with CUDA"):
        torch.cuda.FloatTensor(3)
    with pytest.raises((AssertionError, RuntimeError), match="CUDA"):
        torch.cuda.FloatStorage(3)
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)
    assert torch.ones(1, dtype=torch.float64).type("torch.FloatTensor").dtype is torch.float32
    assert torch.cuda.memory_snapshot() == torch.cuda.get_arch_list() == []
    assert torch.cuda.get_gencode_flags() == ""
    with pytest.raises(AttributeError, match="NoTensor"):
        _ = torch.cuda.NoTensor
