"""Sequential, lists and dicts of modules and parameters."""

from collections import OrderedDict

import pytest

import rushlight as torch
from rushlight import nn


def three():
    return nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())


def names(modules):
    return [type(module).__name__ for module in modules]


def test_sequential_chains_and_names():
    m = nn.Sequential(OrderedDict(first=nn.ReLU(), second=nn.Flatten()))
    assert m(torch.full((2, 1, 1), -1.0)).tolist() == [[0.0], [0.0]]
    assert m.first is m[0] is m[-2]
    assert list(m[1:]._modules) == ["second"]


def test_sequential_edits():
    m = three()
    assert names([m.pop(0)]) == ["ReLU"]
    assert list(m._modules) == ["0", "1"]
    m.append(nn.ReLU()).insert(0, nn.GELU())
    assert names(m) == ["GELU", "Tanh", "Sigmoid", "ReLU"]
    del m[1:3]
    assert names(m) == ["GELU", "ReLU"]
    m[1] = nn.ELU()
    m.extend([nn.SELU()])
    assert names(m + three()) == ["GELU", "ELU", "SELU", "ReLU", "Tanh", "Sigmoid"]
    assert names(nn.Sequential(nn.ReLU()) * 2) == ["ReLU", "ReLU"]
    m *= 2
    assert len(m) == 6
    with pytest.raises(IndexError, match="index 6 is out of range"):
        m[6]
    with pytest.raises(TypeError, match="is not a Module subclass"):
        m.append(3)
    with pytest.raises(ValueError, match="only objects of Sequential class"):
        m.__add__([3])
    with pytest.raises(ValueError, match="Non-positive multiplication factor"):
        m * 0


def test_module_list():
    m = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    m += [nn.Sigmoid()]
    m.insert(1, nn.ELU())
    assert names(m) == ["ReLU", "ELU", "Tanh", "Sigmoid"]
    assert names(m[1:3]) == ["ELU", "Tanh"]
    assert names(m[-1:] + m[:1]) == ["Sigmoid", "ReLU"]
    assert list(m._modules) == ["0", "1", "2", "3"]
    with pytest.raises(TypeError, match="should be called with an iterable"):
        m.extend(3)
    assert repr(nn.ModuleList()) == "ModuleList()"


def test_module_dict():
    m = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
    assert list(m) == ["b", "a"]
    m.update([("c", nn.ELU())])
    assert "c" in m
    assert names([m.pop("b"), m["a"]]) == ["ReLU", "Tanh"]
    assert list(m.keys()) == ["a", "c"]
    with pytest.raises(ValueError, match="has length 1; 2 is required"):
        m.update([("c",)])
    m.clear()
    assert len(m) == 0


def test_parameter_list():
    m = nn.ParameterList([torch.ones(2, 3), nn.Parameter(torch.ones(1)), 3])
    assert isinstance(m[0], nn.Parameter)
    assert len(list(m.parameters())) == 2
    m.append(torch.zeros(4))
    assert m[-1].shape == (4,)
    assert len(m[1:]) == 3
    assert "(0): Parameter containing: [torch.float32 of size 2x3]" in repr(m)
    assert "(2): Object of type: int" in repr(m)
    with pytest.raises(RuntimeError, match="should not be called"):
        m(1)
    with pytest.raises(TypeError, match="iterable"):
        m.extend(torch.ones(2))


def test_parameter_dict():
    m = nn.ParameterDict({"b": torch.ones(1), "a": torch.ones(2)})
    assert list(m) == ["a", "b"]
    m["c"] = torch.zeros(3)
    assert [p.numel() for p in m.parameters()] == [2, 1, 3]
    assert m.setdefault("d", 4) == 4
    assert m.pop("c").shape == (3,)
    assert (m | nn.ParameterDict({"z": torch.ones(1)})).keys() == {"a": 0, "b": 0, "d": 0, "z": 0}.keys()
    assert m.get("nothing", 5) == 5
    with pytest.raises(TypeError, match="not a string"):
        m[3] = torch.ones(1)


def test_parameters_of_containers_are_saved():
    m = nn.ModuleDict({"x": nn.ParameterList([torch.ones(1)]), "y": nn.ParameterDict({"k": torch.ones(1)})})
    assert list(m.state_dict()) == ["x.0", "y.k"]


@pytest.mark.parametrize("index", [2, -2])
def test_a_sequence_has_no_place_beyond_its_ends(index):
    with pytest.raises(IndexError, match=f"Index out of range: {index}"):
        nn.Sequential(nn.ReLU()).insert(index, nn.Tanh())
