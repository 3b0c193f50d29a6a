"""The table of a model's layers."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.utils import summary


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        x = self.norm(self.conv(x))
        return {"logits": self.head(self.head(x.mean((2, 3)))[:, :1].expand(-1, 4)), "features": x}


def test_shapes_and_parameters():
    model = Block().train()
    found = summary(model, torch.zeros(2, 3, 8, 8))
    assert [(row.name, row.kind, row.depth) for row in found.rows] == [
        ("", "Block", 0), ("conv", "Conv2d", 1), ("norm", "BatchNorm2d", 1), ("head", "Linear", 1)
    ]  # fmt: skip
    assert [row.outputs for row in found.rows] == [
        ["(2, 2), (2, 4, 6, 6)"], ["(2, 4, 6, 6)"], ["(2, 4, 6, 6)"], ["(2, 2)", "(2, 2)"]
    ]  # fmt: skip
    assert [row.parameters for row in found.rows] == [0, 112, 8, 10]
    assert (found.parameters, found.trainable) == (130, 130)
    assert found.nbytes == 130 * 4 + 8 * 4 + 8
    assert "(2 calls)" in str(found)
    assert all(module.training for module in model.modules())
    assert not model.conv._forward_hooks


def test_shared_and_frozen_parameters_count_once():
    a, b = nn.Linear(4, 4), nn.Linear(4, 4)
    b.weight = a.weight
    b.bias.requires_grad_(False)
    found = summary(nn.Sequential(a, nn.Sequential(b)), depth=1)
    assert (found.parameters, found.trainable) == (24, 20)
    assert [row.name for row in found.rows] == ["", "0", "1"]
    assert all(not row.outputs for row in found.rows)


def test_modes_and_hooks_are_restored_where_the_call_fails():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
    model[1].eval()
    with pytest.raises(RuntimeError):
        summary(model, torch.zeros(1, 3))
    assert [module.training for module in model.modules()] == [True, True, False]
    assert not any(module._forward_hooks for module in model.modules())


def test_recurrent_layers_and_keywords():
    found = summary(nn.LSTM(3, 5, batch_first=True), input=torch.zeros(2, 7, 3))
    assert found.rows[0].outputs == ["(2, 7, 5), (1, 2, 5), (1, 2, 5)"]
