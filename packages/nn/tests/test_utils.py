"""nn.utils: clipping, vectors of parameters, fusion, memory formats, uninitialised modules."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import utils


def with_grads(*grads):
    params = [torch.zeros(np.shape(grad), requires_grad=True) for grad in grads]
    for param, grad in zip(params, grads, strict=True):
        param.grad = torch.tensor(grad)
    return params


@pytest.mark.parametrize("order", [0.5, 1, 2, 3.0, "inf", float("inf")])
def test_total_norm_is_that_of_the_joined_vector(order):
    values = [np.random.default_rng(0).normal(size=s) for s in [(3, 4), (5,), ()]]
    total = utils.get_total_norm([torch.from_numpy(np.asarray(v)) for v in values], order)
    joined = np.concatenate([v.ravel() for v in values])
    np.testing.assert_allclose(total.item(), np.linalg.norm(joined, float(order)), rtol=1e-12)


def test_clip_grad_norm():
    params = with_grads([3.0, 0.0], [[4.0]])
    params.append(torch.zeros(2, requires_grad=True))
    assert utils.clip_grad_norm_(iter(params), 1.0).item() == 5.0
    np.testing.assert_allclose(params[0].grad.numpy(), [0.6, 0.0], rtol=1e-6)
    np.testing.assert_allclose(params[1].grad.numpy(), [[0.8]], rtol=1e-6)
    assert utils.clip_grad_norm_(params[0], 10.0).item() == pytest.approx(0.6)  # below the bound: unchanged
    np.testing.assert_allclose(params[0].grad.numpy(), [0.6, 0.0], rtol=1e-6)
    assert utils.clip_grad_norm_([params[2]], 1.0).item() == 0.0


def test_clip_grad_norm_refuses_what_is_not_finite():
    for bad in (float("nan"), float("inf")):
        params = with_grads([bad, 1.0])
        with pytest.raises(RuntimeError, match="non-finite, so it cannot be clipped"):
            utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
        assert params[0].grad[1] == 1.0
    with pytest.warns(UserWarning, match="empty generator"):
        utils.clip_grad_norm_((p for p in ()), 1.0)
    with pytest.warns(FutureWarning, match="deprecated"):
        utils.clip_grad_norm([], 1.0)


def test_clip_grad_value():
    params = with_grads([-3.0, 0.25, 3.0])
    utils.clip_grad_value_(params, 0.5)
    assert params[0].grad.tolist() == [-0.5, 0.25, 0.5]


def test_parameters_to_vector_and_back():
    model = nn.Linear(2, 3)
    vector = utils.parameters_to_vector(model.parameters())
    assert vector.tolist() == [*model.weight.flatten().tolist(), *model.bias.tolist()]
    vector.sum().backward()
    assert model.bias.grad.tolist() == [1.0] * 3
    utils.vector_to_parameters(torch.arange(9.0), model.parameters())
    assert model.weight.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert model.bias.tolist() == [6, 7, 8]
    assert model.bias.requires_grad
    with pytest.raises(RuntimeError):
        utils.vector_to_parameters(torch.arange(8.0), model.parameters())
    with pytest.raises(TypeError, match=r"expected torch.Tensor, but got: list"):
        utils.vector_to_parameters([1.0], model.parameters())
    with pytest.raises(TypeError, match="different devices"):
        utils.parameters_to_vector([torch.zeros(1), torch.zeros(1, device="meta")])


def normalisation(cls, n, **options):
    layer = cls(n, **options).eval()
    with torch.no_grad():
        for t in (layer.running_mean, layer.running_var, layer.weight, layer.bias):
            if t is not None:
                t.uniform_(0.5, 2)
    return layer


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_fused_convolutions_compute_both(bias, affine, transpose):
    conv = (nn.ConvTranspose2d if transpose else nn.Conv2d)(2, 4, 3, bias=bias).eval()
    bn = normalisation(nn.BatchNorm2d, 4, affine=affine)
    fused = utils.fuse_conv_bn_eval(conv, bn, transpose)
    x = torch.randn(2, 2, 5, 5)
    np.testing.assert_allclose(fused(x).detach().numpy(), bn(conv(x)).detach().numpy(), rtol=1e-4, atol=1e-5)
    assert fused is not conv
    assert fused.weight.is_leaf


@pytest.mark.parametrize("features", [5, 1])
def test_fused_linear_layers_compute_both(features):
    linear, bn = nn.Linear(3, 5).eval(), normalisation(nn.BatchNorm1d, features)
    x = torch.randn(2, 3)
    fused = utils.fuse_linear_bn_eval(linear, bn)(x).detach()
    y = linear(x).detach().numpy()
    mean, var, gain, shift = (t.detach().numpy() for t in (bn.running_mean, bn.running_var, bn.weight, bn.bias))
    np.testing.assert_allclose(fused.numpy(), (y - mean) / np.sqrt(var + bn.eps) * gain + shift, rtol=1e-4, atol=1e-5)


def test_fusion_errors():
    conv, bn = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        utils.fuse_conv_bn_eval(conv, bn)
    with pytest.raises(AssertionError, match="running statistics"):
        utils.fuse_conv_bn_eval(conv.eval(), nn.BatchNorm2d(4, track_running_stats=False).eval())
    with pytest.raises(AssertionError, match=r"linear.out_features == bn.num_features"):
        utils.fuse_linear_bn_eval(nn.Linear(3, 5).eval(), bn.eval())


def test_memory_formats_of_weights():
    model = nn.Sequential(nn.Conv2d(4, 8, 3), nn.ConvTranspose2d(8, 4, 3), nn.Linear(4, 4))
    weight = model[0].weight
    before = weight.detach().clone()
    assert utils.convert_conv2d_weight_memory_format(model, torch.channels_last) is model
    assert model[0].weight is weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert model[1].weight.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(weight.detach(), before)
    conv = utils.convert_conv3d_weight_memory_format(nn.Conv3d(4, 8, 3), torch.channels_last_3d)
    assert conv.weight.is_contiguous(memory_format=torch.channels_last_3d)


def test_skip_init():
    torch.manual_seed(0)
    layer = utils.skip_init(nn.Linear, 2, 3, bias=False)
    assert isinstance(layer, nn.Linear)
    assert layer.weight.shape == (3, 2)
    assert layer.weight.device.type == "cpu"
    drawn = torch.rand(1)
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.rand(1))  # no random number was used
    with pytest.raises(RuntimeError, match="'device' arg"):
        utils.skip_init(nn.ReLU)
    with pytest.raises(RuntimeError, match="Expected a Module"):
        utils.skip_init(int)
