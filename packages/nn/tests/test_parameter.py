"""Parameters and buffers."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight import nn


def test_shares_memory_and_is_a_leaf():
    x = torch.ones(2)
    p = nn.Parameter(x)
    p.data.fill_(3)
    assert x.tolist() == [3, 3]
    assert p.is_leaf
    assert p.requires_grad
    assert not nn.Parameter(x, requires_grad=False).requires_grad
    assert nn.Parameter().shape == (0,)
    with pytest.raises(TypeError, match="data must be a Tensor"):
        nn.Parameter([1.0])


def test_results_are_plain_tensors():
    p = nn.Parameter(torch.ones(2))
    assert type(p + 1) is torch.Tensor
    assert type(p.detach()) is torch.Tensor
    assert type(p.data) is torch.Tensor


def test_printed_form():
    assert repr(nn.Parameter(torch.zeros(2))) == "Parameter containing:\ntensor([0., 0.], requires_grad=True)"


def test_copies():
    p = nn.Parameter(torch.ones(2), requires_grad=False)
    for other in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(other) is nn.Parameter
        assert not other.requires_grad
        assert other.tolist() == [1, 1]
        assert other.data_ptr() != p.data_ptr()


def test_buffers():
    b = nn.Buffer(torch.ones(2), persistent=False)
    assert isinstance(b, torch.Tensor)
    assert not b.persistent
    assert not b.requires_grad
