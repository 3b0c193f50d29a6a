"""Functions of rushlight.nn.functional at their edges: dtypes, shapes and errors, against NumPy and mathematics."""

import math

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.plugin import require

HALVES = (torch.float16, torch.bfloat16)


def array(tensor):
    return tensor.detach().double().numpy()


def grads(function, *inputs):
    """The result, and the gradients of a weighted sum of it."""
    require("autograd", "rushlight.autograd")
    leaves = [t.detach().clone().requires_grad_() for t in inputs]
    result = function(*leaves)
    weights = torch.from_numpy(np.asarray(np.cos(np.arange(result.numel())))).reshape(result.shape)
    return result, torch.autograd.grad((result.double() * weights).sum(), leaves)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_average_of_integers_rounds_towards_zero(n):
    values = np.random.default_rng(0).integers(-20, 20, (2, 3) + (6,) * n)
    pool = getattr(F, f"avg_pool{n}d")
    windows = values.reshape(2, 3, *(3, 2) * n).astype(float).mean(tuple(range(3, 3 + 2 * n, 2)))
    assert np.array_equal(pool(torch.from_numpy(values), 2).numpy(), np.trunc(windows))
    with pytest.raises(NotImplementedError, match="not implemented for"):
        pool(torch.ones((2, 3) + (6,) * n, dtype=torch.int32), 2)


@pytest.mark.parametrize("name", ["max_pool", "avg_pool"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_only_the_batch_of_pooling_may_be_empty(name, n):
    pool = getattr(F, f"{name}{n}d")
    assert pool(torch.ones(0, 2, *(4,) * n), 2).shape == (0, 2, *(2,) * n)
    for shape in ((0, *(4,) * n), (2, 0, *(4,) * n), (2, 2, *(4,) * (n - 1), 0)):
        with pytest.raises(RuntimeError, match="non-batch dimensions to have positive length"):
            pool(torch.ones(shape), 2)


def test_sizes_of_adaptive_pooling():
    with pytest.raises(ValueError, match="Input dimension should be at least 3"):
        F.adaptive_avg_pool2d(torch.ones(2, 2), (2, 2))
    for size in ((), (2,), (2, 2, 2)):
        with pytest.raises((RuntimeError, ValueError), match="output_size must be 2"):
            F.adaptive_avg_pool2d(torch.ones(1, 2, 3, 4), size)
    assert F.adaptive_avg_pool2d(torch.ones(1, 2, 3, 4), (None, 2)).shape == (1, 2, 3, 2)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_output_padding_beyond_the_stride(dtype):
    rng = np.random.default_rng(0)

    def draw(*shape):
        return torch.from_numpy(rng.standard_normal(shape)).to(dtype)

    input, weight, bias = draw(2, 3, 4), draw(3, 2, 3), draw(2)
    stride, dilation, extra = 2, 4, 3
    function = lambda *leaves: F.conv_transpose1d(*leaves, stride, 1, extra, dilation=dilation)
    full = torch.zeros(2, 2, (4 - 1) * stride + dilation * 2 + 1 + extra, dtype=dtype)
    for i in range(4):
        for k in range(3):
            full[:, :, i * stride + k * dilation] += torch.einsum("bi,io->bo", input[:, :, i], weight[:, :, k])
    expected = full[:, :, 1:-1] + bias[:, None]
    assert np.allclose(function(input, weight, bias).numpy(), expected.numpy())
    require("autograd", "rushlight.autograd")
    assert torch.autograd.gradcheck(function, [t.requires_grad_() for t in (input, weight, bias)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [float("inf"), float("nan"), 2e36])
def test_convolutions_of_what_overflows_or_is_not_finite(dtype, value):
    generator = np.random.default_rng(1)
    image, weight = generator.standard_normal((2, 16, 12, 13)), generator.standard_normal((17, 16, 3, 3))
    bias = generator.standard_normal(17)
    if math.isfinite(value):
        image *= value  # results fit float32, products of transformed numbers do not
    else:
        image[1, 3, 5, 6] = value
    with np.errstate(invalid="ignore"):
        padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        expected = np.einsum("nchwij,mcij->nmhw", windows, weight) + bias[:, None, None]
    result = F.conv2d(*(torch.tensor(a, dtype=dtype) for a in (image, weight, bias)), padding=1)
    scale = value if math.isfinite(value) else 1
    np.testing.assert_allclose(array(result) / scale, expected / scale, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_convolutions_of_any_batch(kernel):
    torch.use_deterministic_algorithms(True, batch_invariant=True)
    try:
        image, weight = torch.randn(9, 18, 9, 7), torch.randn(17, 18, kernel, kernel)
        whole = F.conv2d(image, weight, padding=kernel // 2).numpy()
        for batch in (1, 2, 5):
            assert np.array_equal(F.conv2d(image[:batch], weight, padding=kernel // 2).numpy(), whole[:batch])
    finally:
        torch.use_deterministic_algorithms(False)


def test_arguments_of_convolutions():
    image, weight = torch.ones(1, 1, 4), torch.ones(1, 1, 2)
    with pytest.raises(RuntimeError, match="bias type .* should be the same"):
        F.conv1d(image, weight, torch.ones(1).double())
    with pytest.raises(RuntimeError, match="non-positive groups is not supported"):
        F.conv1d(image, weight, groups=0)
    with pytest.raises(RuntimeError, match="negative output_padding is not supported"):
        F.conv_transpose1d(image, weight, stride=2, output_padding=-1)
    for name, dtype in ((n, d) for n in ("conv1d", "conv_transpose1d") for d in (torch.float32, torch.complex64)):
        for step in ("stride", "dilation"):
            with pytest.raises(RuntimeError, match=r"non-positive stride|dilation should be greater than zero"):
                getattr(F, name)(image.to(dtype), weight.to(dtype), **{step: 0})


def test_cosine_of_broadcast_tiny_and_huge_vectors():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((1, 2, 3)), rng.standard_normal((2, 1, 3))
    x, y = np.broadcast_arrays(a, b)
    expected = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    assert np.allclose(F.cosine_similarity(torch.from_numpy(a), torch.from_numpy(b), -2).numpy(), expected)
    for scale in (1e-200, 1e200):
        assert math.isclose(F.cosine_similarity(*[torch.ones(3).double() * scale] * 2, dim=0, eps=0), 1, rel_tol=1e-12)
    zero, one = torch.zeros(2).double(), torch.tensor([3.0, 4.0]).double()
    require("autograd", "rushlight.autograd")
    zero.requires_grad_()
    F.cosine_similarity(zero, one, 0, 0.5).backward()
    assert np.allclose(zero.grad.numpy(), [1.2, 1.6])
    with pytest.raises(RuntimeError, match="common dtype to be floating point"):
        F.cosine_similarity(torch.ones(3, dtype=torch.int64), torch.ones(3, dtype=torch.int64), 0)


@pytest.mark.parametrize("dtype", HALVES)
def test_half_types_compute_in_float32_and_are_rounded_once(dtype):
    rng = np.random.default_rng(0)
    rounded = torch.finfo(dtype).eps

    def draw(*shape):
        return torch.from_numpy(300 * rng.standard_normal(shape)).to(dtype)

    x, w, b = draw(4, 6, 5), draw(6) / 100, draw(6) / 100
    classes = torch.tensor([1, 0, 3, 5])
    for function, inputs in (
        (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (x, w, b)),
        (lambda x, w, b: F.layer_norm(x.transpose(1, 2), (6,), w, b), (x, w, b)),
        (lambda x, w, b: F.group_norm(x, 3, w, b), (x, w, b)),
        (lambda x: F.cross_entropy(x[..., 0], classes, w.abs().to(x.dtype), label_smoothing=0.1), (x,)),
        (lambda x: F.avg_pool1d(x, 3, 2, 1), (x,)),
        (lambda x: F.adaptive_avg_pool1d(x, 2), (x,)),
    ):
        narrow, narrow_grads = grads(function, *inputs)
        wide, wide_grads = grads(function, *(t.double() for t in inputs))
        assert narrow.dtype == dtype
        assert np.abs(array(narrow) - array(wide)).max() <= rounded * np.abs(array(wide)).max()
        for got, expected in zip(narrow_grads, wide_grads, strict=True):
            assert got.dtype == dtype
            assert np.abs(array(got) - array(expected)).max() <= 4 * rounded * np.abs(array(expected)).max()


def test_batch_norm_of_nothing():
    assert F.batch_norm(torch.ones(0), torch.ones(0), torch.ones(0), training=True).shape == (0,)
    with pytest.raises(RuntimeError):
        F.batch_norm(torch.ones(3), torch.ones(3), torch.ones(3))
    mean, var = torch.ones(3), torch.ones(3)
    _, (weight_grad,) = grads(lambda w: F.batch_norm(torch.ones(0, 3), mean, var, w, training=True), torch.ones(3))
    assert weight_grad.tolist() == [0, 0, 0]
    assert mean.tolist() == var.tolist() == [1, 1, 1]


@pytest.mark.parametrize("training", [True, False])
def test_second_derivatives_of_normalisation(training):
    require("autograd", "rushlight.autograd")
    rng = np.random.default_rng(0)
    x, w, b = (torch.from_numpy(rng.standard_normal(s)).requires_grad_() for s in ((3, 2, 4), 2, 2))
    mean, var = torch.zeros(2).double(), torch.ones(2).double()
    statistics = (None, None) if training else (mean, var)
    assert torch.autograd.gradgradcheck(lambda x, w, b: F.batch_norm(x, *statistics, w, b, training), (x, w, b))
    assert torch.autograd.gradgradcheck(lambda x: F.layer_norm(x, (4,)), x)


def test_arguments_of_prelu():
    x = torch.tensor([[-2.0, 3.0, -4.0]])
    assert F.prelu(x, torch.tensor(0.5)).tolist() == [[-1, 3, -2]]
    assert F.prelu(x, torch.tensor([0.5, 1.0, 0.25])).tolist() == [[-1, 3, -1]]
    with pytest.raises(RuntimeError, match="ndim = 2"):
        F.prelu(x, torch.ones(1, 3))
    with pytest.raises(RuntimeError, match="Type promoting not supported"):
        F.prelu(x, torch.ones(3).double())


def test_softshrink_writes_out():
    out = torch.empty(3)
    assert F.softshrink(torch.tensor([-2.0, 0.25, 2.0]), 0.5, out=out) is out
    assert out.tolist() == [-1.5, 0, 1.5]


@pytest.mark.parametrize(
    "call",
    [F.gelu, F.softplus, F.softshrink, F.hardshrink, F.logsigmoid, lambda x, out: F.avg_pool2d(x[None], 1, out=out)],
)
def test_out_of_another_dtype_is_refused(call):
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float32, but got float64 instead"):
        call(torch.ones(2, 2), out=torch.empty(2, 2, dtype=torch.float64))


def test_variance_of_gaussian_nll():
    x, y = torch.zeros(10, 2, 3), torch.ones(10, 2, 3)
    for shape in ((10, 2, 3), (10, 2), (10, 1, 3), (1, 2, 3), (10, 2, 1)):
        assert F.gaussian_nll_loss(x, y, torch.full(shape, 4.0)).item() == pytest.approx(0.5 * (math.log(4) + 0.25))
    assert F.gaussian_nll_loss(x, y, 4.0).item() == pytest.approx(0.5 * (math.log(4) + 0.25))
    for shape in ((10, 2, 2), (10,), (), (10, 1, 1), (2, 3)):
        with pytest.raises(ValueError, match="var is of incorrect size"):
            F.gaussian_nll_loss(x, y, torch.ones(shape))
    with pytest.raises(ValueError, match="negative"):
        F.gaussian_nll_loss(x, y, -1.0)


def test_feature_dropout_looks_at_shapes_in_training_only():
    x = torch.ones(3)
    assert F.feature_alpha_dropout(x, 0.5).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        F.feature_alpha_dropout(x, 0.5, training=True)


def test_classes_as_bytes():
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 4)))
    target = torch.tensor([1, 0, 3])
    loss, (grad,) = grads(lambda x: F.cross_entropy(x, target), x)
    same, (same_grad,) = grads(lambda x: F.cross_entropy(x, target.to(torch.uint8)), x)
    assert np.allclose(array(loss), array(same))
    assert np.allclose(array(grad), array(same_grad))


@pytest.mark.parametrize(
    "name", ["batch_norm", "layer_norm", "group_norm", "instance_norm", "cross_entropy", "embedding_bag"]
)
def test_results_may_be_written_to_before_backward(name):
    x = torch.randn(3, 4, 5, requires_grad=True)
    y = {
        "batch_norm": lambda: F.batch_norm(x, None, None, training=True),
        "layer_norm": lambda: F.layer_norm(x, (5,)),
        "group_norm": lambda: F.group_norm(x, 2),
        "instance_norm": lambda: F.instance_norm(x),
        "cross_entropy": lambda: F.cross_entropy(x[..., 0], torch.tensor([0, 1, 2]), reduction="none"),
        "embedding_bag": lambda: F.embedding_bag(torch.tensor([[0, 1]]), x[0]),
    }[name]()
    weight = torch.randn(y.shape)
    (expected,) = torch.autograd.grad((y * weight).sum(), x, retain_graph=True)
    with torch.no_grad():
        y.zero_()
    (found,) = torch.autograd.grad(y, x, weight)
    assert torch.equal(found, expected)


def test_complex_softsign_and_tanhshrink():
    x = np.random.default_rng(0).normal(size=(3, 2)).view(np.complex128)
    np.testing.assert_allclose(F.softsign(torch.from_numpy(x)).numpy(), x / (1 + np.abs(x)))
    np.testing.assert_allclose(F.tanhshrink(torch.from_numpy(x)).numpy(), x - np.tanh(x))


def test_errors_name_functions_as_they_are_called():
    for call, name in ((lambda: F.gelu(3), "gelu"), (lambda: torch.fft.fft(3), "fft_fft")):
        with pytest.raises(TypeError, match=rf"^{name}\(\): argument 'input' .position 1. must be Tensor, not int"):
            call()
    with pytest.raises(TypeError, match=r"requires_grad_\(\): argument 'requires_grad' .* must be bool, not int"):
        torch.ones(1).requires_grad_(1)


NUMPY_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", NUMPY_MODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8, torch.complex128])
def test_pad_is_what_numpy_pads(mode, dtype):
    image = torch.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).to(dtype)
    for view in (image, image.transpose(1, 3)):
        for padding in ([2, 1], [0, 2, 2, 1], [1, 0, 1, 2, 2, 1]):
            if mode != "constant" and view.dim() not in (len(padding) // 2 + 1, len(padding) // 2 + 2):
                continue
            sides = [(0, 0)] * (4 - len(padding) // 2) + list(zip(padding[-2::-2], padding[::-2], strict=True))
            expected = np.pad(view.numpy(), sides, NUMPY_MODES[mode])
            assert np.array_equal(F.pad(view, padding, mode).numpy(), expected)


@pytest.mark.parametrize(
    ("mode", "padding", "expected"),
    [
        ("constant", [-1, 2], [1, 2, 3, 0, 0]),
        ("replicate", [-1, 2], [1, 2, 3, 3, 3]),
        ("reflect", [-1, 2], [1, 2, 3, 2, 1]),
        ("circular", [-1, 2], [1, 2, 3, 1, 2]),
        ("circular", [2, -1], [1, 2, 0, 1, 2]),
        ("replicate", [3, -6], [0]),  # everything that is left stands before the input
        ("reflect", [3, -6], [3]),
        ("replicate", [-6, 3], [3]),
        ("circular", [-2, -2], []),
    ],
)
def test_negative_padding_takes_elements_away(mode, padding, expected):
    require("autograd", "rushlight.autograd")
    line = torch.arange(4.0, dtype=torch.float64).reshape(1, 1, 4).requires_grad_()
    padded = F.pad(line, padding, mode)
    assert padded.flatten().tolist() == expected
    weight = torch.arange(1.0, 1 + len(expected), dtype=torch.float64)
    (padded.flatten() * weight).sum().backward()
    adjoint = np.zeros(4)
    kept = len(expected) if mode != "constant" else 3
    np.add.at(adjoint, np.array(expected[:kept], dtype=int), weight.numpy()[:kept])
    assert line.grad.flatten().tolist() == adjoint.tolist()


def test_pad_refuses_what_has_no_source():
    line = torch.ones(1, 2, 3)
    with pytest.raises(RuntimeError, match="nothing is left to pad with"):
        F.pad(line, [-3, 3], "circular")
    with pytest.raises(RuntimeError, match="wrapping around more than once"):
        F.pad(line, [4, 0], "circular")
    with pytest.raises(NotImplementedError, match="not implemented for"):
        F.pad(line.bool(), [1, 1], "reflect")
    with pytest.raises(RuntimeError, match="two times the input dimension"):
        F.pad(line, [1] * 8, "replicate")
    for mode in ("constant", "replicate"):
        with pytest.raises(RuntimeError):
            F.pad(line, [1 << 62, 0], mode)
    huge = 2**60 + 1
    assert torch.constant_pad_nd(torch.tensor([1]), [1, 0], huge).tolist() == [huge, 1]


def test_pools_with_indices_return_both():
    image = torch.arange(2 * 6 * 6.0).reshape(1, 2, 6, 6)
    for name, size in (("max_pool2d", 2), ("adaptive_max_pool2d", 3)):
        expected = getattr(F, name)(image, size, return_indices=True)
        pool = getattr(F, f"{name}_with_indices")
        for both in (pool(image, size), pool(image, size, return_indices=False)):
            assert all(torch.equal(a, b) for a, b in zip(both, expected, strict=True))
    values, places = F.fractional_max_pool2d_with_indices(image, 2, output_size=3)
    assert torch.equal(image.flatten(2).gather(2, places.flatten(2)), values.flatten(2))
