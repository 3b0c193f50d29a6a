"""Pruning: masks, their combination, and parameters that come back."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.utils import prune

WEIGHT = [[1.0, -6, 2, 3], [-0.5, 4, -5, 0.25], [7, 8, -9, 10]]


def layer():
    made = nn.Linear(4, 3)
    with torch.no_grad():
        made.weight.copy_(torch.tensor(WEIGHT))
    return made


def test_the_form_of_a_pruned_parameter():
    made = layer()
    weight = made.weight
    assert prune.l1_unstructured(made, "weight", 3) is made
    assert set(made.state_dict()) == {"bias", "weight_orig", "weight_mask"}
    assert made.weight_orig is weight
    assert prune.is_pruned(nn.Sequential(made))
    expected = np.abs(np.array(WEIGHT)) > 1
    assert made.weight_mask.bool().tolist() == expected.tolist()
    assert torch.equal(made.weight, made.weight_mask * weight)
    made(torch.ones(1, 4)).sum().backward()
    assert weight.grad.tolist() == expected.astype(float).tolist()
    with torch.no_grad():
        weight.mul_(2)
    made(torch.ones(1, 4))
    assert torch.equal(made.weight, made.weight_mask * weight)
    prune.remove(made, "weight")
    assert made.weight is weight
    assert set(made.state_dict()) == {"weight", "bias"}
    assert (made.weight == 0).sum() == 3
    assert not prune.is_pruned(made)
    with pytest.raises(ValueError, match="has to be pruned before pruning can be removed"):
        prune.remove(made, "weight")


def test_amounts():
    for amount, zeros in ((0, 0), (5, 5), (0.25, 3), (1.0, 12), (0.0, 0)):
        made = layer()
        prune.random_unstructured(made, "weight", amount)
        assert (made.weight_mask == 0).sum() == zeros
    for amount, error in ((-1, ValueError), (1.5, ValueError), (13, ValueError), ("x", TypeError)):
        made = layer()
        with pytest.raises(error, match="amount"):
            prune.l1_unstructured(made, "weight", amount)
        assert set(made.state_dict()) == {"weight", "bias"}


def test_structures():
    rows = prune.ln_structured(layer(), "weight", 1, n=2, dim=0).weight_mask
    norms = np.linalg.norm(np.array(WEIGHT), axis=1)
    assert rows.sum(1).tolist() == [0 if i == norms.argmin() else 4 for i in range(3)]
    columns = prune.ln_structured(layer(), "weight", 0.5, n=float("inf"), dim=-1).weight_mask
    assert columns.sum(0).tolist() == [0, 0, 3, 3]  # the greatest of each: 7, 8, 9, 10
    columns = prune.ln_structured(layer(), "weight", 2, n=1, dim=1).weight_mask
    assert columns.sum(0).tolist() == [0, 3, 3, 0]
    random = prune.random_structured(layer(), "weight", 2, dim=0).weight_mask
    assert sorted(random.sum(1).tolist()) == [0, 0, 4]
    with pytest.raises(ValueError, match="multidimensional"):
        prune.ln_structured(layer(), "bias", 1, n=2, dim=0)
    with pytest.raises(IndexError, match="Invalid index 5"):
        prune.random_structured(layer(), "weight", 1, dim=5)


def test_methods_go_on_where_the_last_ones_stopped():
    made = layer()
    prune.ln_structured(made, "weight", 1, n=2, dim=1)  # columns by norm: the first one goes
    prune.l1_unstructured(made, "weight", 2)  # of those that are left: 0.25 and 2
    expected = np.ones((3, 4))
    expected[:, 0] = expected[1, 3] = expected[0, 2] = 0
    assert made.weight_mask.tolist() == expected.tolist()
    (container,) = made._forward_pre_hooks.values()
    assert isinstance(container, prune.PruningContainer)
    assert [type(method) for method in container] == [prune.LnStructured, prune.L1Unstructured]
    prune.custom_from_mask(made, "weight", torch.eye(4)[:3])
    assert made.weight_mask.tolist() == (expected * np.eye(4)[:3]).tolist()
    assert len(container) == 3
    prune.remove(made, "weight")
    assert not made._forward_pre_hooks


def test_scores_decide():
    made = layer()
    prune.l1_unstructured(made, "weight", 2, importance_scores=torch.arange(12.0).reshape(3, 4))
    assert made.weight_mask.tolist() == [[0, 0, 1, 1], [1] * 4, [1] * 4]
    with pytest.raises(AssertionError, match="same shape"):
        prune.l1_unstructured(layer(), "weight", 2, importance_scores=torch.ones(2))


def test_global_pruning():
    one, other = layer(), layer()
    with torch.no_grad():
        other.weight.mul_(0.01)
    pairs = [(one, "weight"), (other, "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.5)
    assert one.weight_mask.sum() == 12
    assert other.weight_mask.sum() == 0
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=1)
    assert one.weight_mask.sum() == 11
    assert one.weight_mask[1, 3] == 0
    with pytest.raises(TypeError, match='Only "unstructured"'):
        prune.global_unstructured(pairs, prune.LnStructured, amount=1, n=2)
    with pytest.raises(TypeError, match="not an Iterable"):
        prune.global_unstructured(3, prune.L1Unstructured, amount=1)


def test_a_method_of_ones_own():
    class Checkerboard(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    made = layer()
    Checkerboard.apply(made, "weight")
    assert made.weight[0].tolist() == [0, -6, 0, 3]
    assert Checkerboard().prune(torch.arange(1.0, 5)).tolist() == [0, 2, 0, 4]
    assert prune.is_pruned(prune.identity(layer(), "bias"))
