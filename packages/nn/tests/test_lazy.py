"""Layers and parameters without a shape yet, calls with other parameters, and classes mixed in before Module."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.parameter import is_lazy
from rushlight.nn.utils.stateless import functional_call


@pytest.mark.parametrize(
    ("lazy", "shape", "text"),
    [
        (lambda: nn.LazyLinear(4), (2, 3), "Linear(in_features=3, out_features=4, bias=True)"),
        (lambda: nn.LazyConv1d(4, 3), (2, 5, 9), "Conv1d(5, 4, kernel_size=(3,), stride=(1,))"),
        (lambda: nn.LazyConv2d(4, 3), (5, 9, 9), "Conv2d(5, 4, kernel_size=(3, 3), stride=(1, 1))"),
        (lambda: nn.LazyConv3d(4, 3, bias=False), (2, 5, 4, 4, 4), None),
        (lambda: nn.LazyConvTranspose1d(4, 3, groups=2), (2, 6, 9), None),
        (lambda: nn.LazyConvTranspose2d(4, 3), (2, 6, 9, 9), None),
        (lambda: nn.LazyConvTranspose3d(4, 3), (2, 6, 3, 3, 3), None),
        (lambda: nn.LazyBatchNorm1d(), (2, 6), None),
        (lambda: nn.LazyBatchNorm2d(affine=False), (2, 6, 3, 3), None),
        (lambda: nn.LazyBatchNorm3d(track_running_stats=False), (2, 6, 3, 3, 3), None),
        (lambda: nn.LazyInstanceNorm1d(), (2, 6, 3), None),
        (lambda: nn.LazyInstanceNorm2d(), (2, 6, 3, 3), None),
        (lambda: nn.LazyInstanceNorm3d(), (2, 6, 3, 3, 3), None),
    ],
)
def test_the_first_input_decides(lazy, shape, text):
    layer = lazy()
    x = torch.randn(*shape)
    kind = type(layer).__name__.removeprefix("Lazy")
    copies = copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))
    first = layer(x)
    assert type(layer).__name__ == kind
    assert text is None or repr(layer) == text
    assert not any(is_lazy(tensor) for tensor in layer.state_dict().values())
    if any(parameter is not None for parameter in layer.parameters()):
        first.sum().backward()
        assert all(parameter.grad.shape == parameter.shape for parameter in layer.parameters())
    for other in copies:
        other(x)
        other.load_state_dict(layer.state_dict())
        assert torch.equal(other.eval()(x), layer.eval()(x))


def test_states_go_into_lazy_layers_and_from_them():
    layer, lazy = nn.Linear(4, 3), nn.LazyLinear(3)
    lazy.load_state_dict(layer.state_dict())
    assert torch.equal(lazy.weight, layer.weight)
    assert torch.equal(lazy(torch.ones(2, 4)), layer(torch.ones(2, 4)))
    assert type(lazy) is nn.Linear
    assert lazy.in_features == 4
    nn.LazyLinear(3).load_state_dict(nn.LazyLinear(3).state_dict())
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        layer.load_state_dict(nn.LazyLinear(3).state_dict())


def test_uninitialized_parameters_refuse_to_compute():
    parameter = nn.UninitializedParameter(dtype=torch.float64)
    assert repr(parameter) == "<UninitializedParameter>"
    for operation in (lambda p: p + 1, lambda p: torch.exp(p), lambda p: p.sum()):
        with pytest.raises(ValueError, match="uninitialized parameter"):
            operation(parameter)
    parameter.materialize((2, 3))
    assert type(parameter) is nn.Parameter
    assert parameter.dtype == torch.float64
    assert (torch.ones_like(parameter) * parameter).shape == (2, 3)


def test_lazy_layers_move_before_they_know_their_shape():
    layer = nn.LazyLinear(3).double()
    assert layer.weight.dtype == torch.float64
    assert layer(torch.ones(2, 4, dtype=torch.float64)).dtype == torch.float64
    with pytest.raises(RuntimeError, match="Can't share memory"):
        nn.LazyLinear(3).share_memory()


def test_a_class_mixed_in_before_module():
    class Named:
        def describe(self):
            return type(self).__name__

    class Net(Named, nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 3)
            self.scale = nn.Parameter(torch.ones(3))

        def forward(self, x):
            return self.layer(x) * self.scale

    net = Net()
    net.note = "x"
    again = pickle.loads(pickle.dumps(net.state_dict()))
    twin = copy.deepcopy(net)
    twin.load_state_dict(again)
    assert list(again) == ["scale", "layer.weight", "layer.bias"]
    assert twin.note == "x"
    assert net.describe() == "Net"
    assert torch.equal(twin(torch.ones(1, 2)), net(torch.ones(1, 2)))


def test_a_class_that_is_assigned_brings_its_overrides():
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "loud"

    x = torch.ones(2).as_subclass(nn.Buffer)
    assert isinstance(x + 1, torch.Tensor)
    x.__class__ = Loud
    assert x + 1 == "loud"
    x.__class__ = nn.Buffer
    assert isinstance(x + 1, torch.Tensor)


# -- calls with other parameters


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2, bias=False)
        self.tied = nn.Linear(2, 2, bias=False)
        self.tied.weight = self.layer.weight
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls = self.calls + 1
        return self.tied(self.layer(x))


def test_a_call_has_other_parameters_only_while_it_lasts():
    net = Counter()
    before = net.layer.weight
    given = {"layer.weight": 2 * torch.eye(2), "calls": torch.tensor([5.0])}
    assert functional_call(net, given, torch.ones(1, 2)).tolist() == [[4, 4]]  # the tied weight too
    assert given["calls"].item() == 6
    assert net.layer.weight is before
    assert net.calls.item() == 0
    single = functional_call(net, {"layer.weight": torch.zeros(2, 2)}, torch.ones(1, 2), tie_weights=False)
    assert single.tolist() == [[0, 0]]


def test_gradients_reach_the_given_parameters():
    weight = torch.eye(2, requires_grad=True)
    functional_call(nn.Linear(2, 2), {"weight": weight}, kwargs={"input": torch.ones(1, 2)}).sum().backward()
    assert weight.grad.tolist() == [[1, 1], [1, 1]]


def test_wrong_paths():
    net, x, eye = Counter(), torch.ones(1, 2), torch.eye(2)
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'other'.\n\tMissing key\(s\): 'calls'"):
        functional_call(net, {"layer.weight": eye, "other": eye}, x, strict=True)
    with pytest.raises(ValueError, match="tied"):
        functional_call(net, {"layer.weight": eye, "tied.weight": 2 * eye}, x)
    with pytest.raises(AttributeError, match="has no attribute `a`"):
        functional_call(net, {"a.weight": eye}, x)
    with pytest.raises(TypeError, match="not an instance of torch.Tensor"):
        functional_call(net, {"layer.weight": 3}, x)
    assert functional_call(net, {"layer.weight": eye}, x).tolist() == [[1, 1]]


def test_data_parallel_has_the_paths_of_pytorch():
    net = nn.DataParallel(nn.Linear(2, 3))
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    assert net(torch.ones(4, 2)).shape == (4, 3)


def test_batch_norms_become_synchronised():
    net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(3), nn.ReLU()))
    assert isinstance(net[0], nn.SyncBatchNorm)
    x = torch.randn(2, 3, 4, 4)
    assert torch.allclose(net(x), torch.relu(nn.BatchNorm2d(3)(x)))
