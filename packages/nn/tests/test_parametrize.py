"""Parametrized tensors, and the parametrizations that come along."""

import copy
import io
import pickle

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import utils
from rushlight.nn.utils import parametrizations, parametrize

pytestmark = pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated:FutureWarning")


@pytest.fixture
def linalg():
    """For tests of what needs the wheel rushlight-linalg, on which this one does not depend."""
    pytest.importorskip("rushlight.linalg")


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, a):
        return a.triu()


class Twice(nn.Module):
    def forward(self, x):
        return 2 * x


class LowRank(nn.Module):
    """Takes two tensors."""

    def forward(self, a, b):
        return a @ b

    def right_inverse(self, x):
        return x[:, :1].clone(), x[:1].clone()


class Cut(nn.Module):
    def forward(self, x):
        return x[:1]


class Widen(nn.Module):
    def forward(self, x):
        return x.double()


def symmetric():
    return parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())


def test_registering():
    layer = nn.Linear(3, 3)
    weight = layer.weight
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    assert layer.parametrizations.weight.original is weight  # optimisers go on
    assert torch.equal(layer.weight, layer.weight.mT)
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert [name for name, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]
    assert type(layer).__name__ == "ParametrizedLinear"
    assert isinstance(layer, nn.Linear)
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert parametrize.is_parametrized(layer)
    assert parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")
    before = layer.weight.detach().clone()
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    assert not torch.equal(layer.weight, before)
    assert "ParametrizationList" in repr(layer)


def test_assignment_goes_through_the_inverse():
    layer = symmetric()
    layer.weight = torch.arange(9.0).reshape(3, 3)
    assert layer.weight.tolist() == [[0, 1, 2], [1, 4, 5], [2, 5, 8]]
    parametrize.register_parametrization(layer, "weight", Twice())
    assert layer.weight.tolist() == [[0, 2, 4], [2, 8, 10], [4, 10, 16]]
    with pytest.raises(RuntimeError, match="parametrization Twice does not implement right_inverse"):
        layer.weight = torch.ones(3, 3)


def test_removing():
    layer, weight = nn.Linear(3, 3), None
    weight = layer.weight
    parametrize.register_parametrization(layer, "weight", Symmetric())
    parametrize.register_parametrization(layer, "bias", Twice())
    value = layer.weight.detach().clone()
    parametrize.remove_parametrizations(layer, "weight")
    assert torch.equal(layer.weight, value)
    assert layer.weight is weight
    assert type(layer) is not nn.Linear
    bias = layer.parametrizations.bias.original.detach().clone()
    parametrize.remove_parametrizations(layer, "bias", leave_parametrized=False)
    assert torch.equal(layer.bias, bias)
    assert type(layer) is nn.Linear
    assert list(layer.state_dict()) == ["weight", "bias"]
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        parametrize.remove_parametrizations(layer, "weight")


def test_several_originals():
    layer = parametrize.register_parametrization(nn.Linear(3, 2), "weight", LowRank())
    assert list(layer.state_dict()) == [
        "bias", "parametrizations.weight.original0", "parametrizations.weight.original1",
    ]  # fmt: skip
    assert all(isinstance(p, nn.Parameter) for p in layer.parameters())
    layer.weight = torch.tensor([[1.0, 2, 3], [2, 4, 6]])
    assert layer.weight.tolist() == [[1, 2, 3], [2, 4, 6]]
    with pytest.raises(ValueError, match="Cannot leave unparametrized"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight.tolist() == [[1, 2, 3], [2, 4, 6]]
    assert isinstance(layer.weight, nn.Parameter)


def test_cache():
    layer = symmetric()
    assert layer.weight is not layer.weight
    with parametrize.cached():
        first = layer.weight
        with parametrize.cached():
            assert layer.weight is first
        assert layer.weight is first
    assert layer.weight is not first


def test_buffers_are_parametrized_too():
    layer = nn.Module()
    layer.register_buffer("scale", torch.ones(2))
    parametrize.register_parametrization(layer, "scale", Twice())
    assert layer.scale.tolist() == [2, 2]
    assert list(layer.state_dict()) == ["parametrizations.scale.original"]
    parametrize.remove_parametrizations(layer, "scale")
    assert dict(layer.named_buffers())["scale"].tolist() == [2, 2]


@pytest.mark.usefixtures("linalg")
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_independent(copied):
    layer = parametrizations.orthogonal(nn.Linear(3, 3))
    other = copied(layer)
    assert torch.equal(other.weight, layer.weight)
    assert type(other).__name__ == "ParametrizedLinear"
    parametrize.remove_parametrizations(other, "weight")
    assert parametrize.is_parametrized(layer)
    layer.weight = torch.eye(3)
    assert not torch.equal(other.weight, layer.weight)


@pytest.mark.usefixtures("linalg")
def test_saving():
    file = io.BytesIO()
    layer = parametrizations.orthogonal(nn.Linear(3, 2))
    torch.save(layer.state_dict(), file)
    other = parametrizations.orthogonal(nn.Linear(3, 2))
    other.load_state_dict(torch.load(io.BytesIO(file.getvalue())))
    assert torch.equal(other.weight, layer.weight)


def test_transfer():
    layer = symmetric()
    other = parametrize.transfer_parametrizations_and_params(layer, nn.Linear(3, 3))
    assert torch.equal(other.weight, layer.weight)
    assert other.parametrizations.weight[0] is layer.parametrizations.weight[0]


def test_what_changes_dtype_or_shape_is_refused():
    for bad, what in ((Cut(), "shape"), (Widen(), "dtype")):
        layer = nn.Linear(3, 3)
        weight = layer.weight.detach().clone()
        with pytest.raises(ValueError, match=f"may not change the {what}"):
            parametrize.register_parametrization(layer, "weight", bad)
        assert type(layer) is nn.Linear
        assert torch.equal(layer.weight, weight)
        with pytest.raises(ValueError, match=f"may not change the {what}"):
            parametrize.register_parametrization(symmetric(), "weight", bad)
        parametrize.register_parametrization(layer, "weight", bad, unsafe=True)
    with pytest.raises(ValueError, match="with name 'w'"):
        parametrize.register_parametrization(layer, "w", Twice())
    with pytest.raises(ValueError, match="one or more modules"):
        parametrize.ParametrizationList([], torch.ones(1))


@pytest.mark.usefixtures("linalg")
@pytest.mark.parametrize("orthogonal_map", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
def test_orthogonal(orthogonal_map, trivial, shape):
    layer = nn.Module()
    layer.weight = nn.Parameter(torch.randn(*shape, dtype=torch.float64))
    parametrizations.orthogonal(layer, "weight", orthogonal_map, use_trivialization=trivial)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    goal = torch.randn(*shape, dtype=torch.float64)
    for _ in range(3):
        w = layer.weight
        assert w.shape == shape
        gram = (w.mT @ w if shape[-2] >= shape[-1] else w @ w.mT).detach().numpy()
        np.testing.assert_allclose(gram, np.broadcast_to(np.eye(gram.shape[-1]), gram.shape), atol=1e-10)
        optimizer.zero_grad()
        ((w - goal) ** 2).sum().backward()
        assert layer.parametrizations.weight.original.grad.abs().sum() > 0
        optimizer.step()
    if trivial:
        q = torch.from_numpy(np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0])[: shape[-2], : shape[-1]]
        q = torch.from_numpy(np.linalg.qr(q.numpy() if shape[-2] >= shape[-1] else q.mT.numpy())[0])
        q = (q if shape[-2] >= shape[-1] else q.mT).expand(shape).contiguous()
        layer.weight = q
        np.testing.assert_allclose(layer.weight.detach().numpy(), q.numpy(), atol=1e-10)


@pytest.mark.usefixtures("linalg")
def test_unitary():
    layer = nn.Linear(3, 3, dtype=torch.complex128)
    for name in ("matrix_exp", "cayley"):
        w = parametrizations.orthogonal(copy.deepcopy(layer), orthogonal_map=name).weight
        np.testing.assert_allclose((w.mH @ w).detach().numpy(), np.eye(3), atol=1e-10)
    with pytest.raises(ValueError, match="does not support complex"):
        parametrizations.orthogonal(layer, orthogonal_map="householder")


@pytest.mark.usefixtures("linalg")
def test_orthogonal_errors():
    with pytest.raises(ValueError, match="orthogonal_map has to be one of"):
        parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="x")
    with pytest.raises(ValueError, match="Got a tensor of 1 dimensions"):
        parametrizations.orthogonal(nn.Linear(2, 2), "bias")
    layer = parametrizations.orthogonal(nn.Linear(2, 2), use_trivialization=False)
    with pytest.raises(NotImplementedError, match="use_trivialization=False"):
        layer.weight = torch.eye(2)


LAYERS = [lambda: nn.Linear(4, 3), lambda: nn.Conv2d(2, 3, 3), lambda: nn.ConvTranspose2d(2, 3, 3)]


@pytest.mark.parametrize("normalise", [utils.spectral_norm, parametrizations.spectral_norm])
@pytest.mark.parametrize("make", LAYERS)
def test_spectral_norm(normalise, make):
    layer = make().double()
    dim = 1 if isinstance(layer, nn.ConvTranspose2d) else 0
    original = layer.weight.detach().numpy().copy()
    matrix = np.moveaxis(original, dim, 0)
    normalise(layer, n_power_iterations=200)
    shape = (1, 4) if isinstance(layer, nn.Linear) else (1, 2, 5, 5)
    layer(torch.ones(*shape, dtype=torch.float64)).sum().backward()
    sigma = np.linalg.svd(matrix.reshape(len(matrix), -1), compute_uv=False)[0]
    np.testing.assert_allclose(layer.weight.detach().numpy(), original / sigma, rtol=1e-8)
    layer.eval()
    first, second = layer.weight.detach().clone(), layer.weight.detach()
    assert torch.equal(first, second)
    with pytest.raises(ValueError, match="n_power_iterations to be positive"):
        normalise(make(), n_power_iterations=0)


@pytest.mark.parametrize("normalise", [utils.weight_norm, parametrizations.weight_norm])
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("make", LAYERS)
def test_weight_norm(normalise, dim, make):
    layer = make()
    weight = layer.weight.detach().clone()
    normalise(layer, dim=dim)
    np.testing.assert_allclose(layer.weight.detach().numpy(), weight.numpy(), rtol=1e-6)
    length = layer.weight_g if normalise is utils.weight_norm else layer.parametrizations.weight.original0
    axes = tuple(d for d in range(weight.dim()) if d != dim)
    expected = (
        np.linalg.norm(weight.numpy()) if dim is None else np.sqrt((weight.numpy() ** 2).sum(axes, keepdims=True))
    )
    np.testing.assert_allclose(length.detach().numpy(), expected, rtol=1e-6)
    with torch.no_grad():
        length.mul_(2)
    layer(torch.ones(1, 4) if isinstance(layer, nn.Linear) else torch.ones(1, 2, 5, 5))
    np.testing.assert_allclose(layer.weight.detach().numpy(), 2 * weight.numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "normalise",
    [utils.spectral_norm, parametrizations.spectral_norm, utils.weight_norm, parametrizations.weight_norm],
)
def test_weights_of_zeros_give_no_nan(normalise):
    layer = nn.Linear(3, 3)
    nn.init.zeros_(layer.weight)
    normalise(layer)
    y = layer(torch.ones(1, 3))
    y.sum().backward()
    assert torch.isfinite(y).all()
    assert torch.isfinite(layer.weight).all()
    for p in layer.parameters():
        assert p.grad is None or torch.isfinite(p.grad).all()


def test_old_norms_are_removed():
    for add, take, name in (
        (utils.weight_norm, utils.remove_weight_norm, "weight_norm"),
        (utils.spectral_norm, utils.remove_spectral_norm, "spectral_norm"),
    ):
        layer = add(nn.Linear(3, 3))
        with pytest.raises(RuntimeError, match=f"Cannot register two {name} hooks"):
            add(layer)
        layer.eval()(torch.ones(1, 3))
        weight = layer.weight.detach().clone()
        take(layer)
        np.testing.assert_allclose(layer.weight.detach().numpy(), weight.numpy(), rtol=1e-6)
        assert set(layer.state_dict()) == {"weight", "bias"}
        assert not layer._forward_pre_hooks
        with pytest.raises(ValueError, match=f"{name} of 'weight' not found"):
            take(layer)


def test_old_state_dicts_load():
    old, new = utils.weight_norm(nn.Linear(3, 2)), parametrizations.weight_norm(nn.Linear(3, 2))
    new.load_state_dict(old.state_dict())
    assert torch.equal(new.weight, old.weight)
