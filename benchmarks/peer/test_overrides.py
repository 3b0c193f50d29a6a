"""Functions of PyTorch given tensors of rushlight. Collected only where PyTorch is installed, as in `nox -s peer`."""

import pytest

import rushlight

torch = pytest.importorskip("torch")


def test_functions_of_pytorch_run_ours():
    x = rushlight.tensor([[3.0, -4.0]], requires_grad=True)
    for function in (
        torch.relu,
        torch.nn.functional.relu,
        torch.linalg.norm,
        torch.functional.norm,
        torch.special.expit,
    ):
        result = function(x)
        assert type(result) is rushlight.Tensor
        assert result.requires_grad
    torch.nn.functional.pairwise_distance(x, rushlight.zeros(1, 2)).sum().backward()
    assert x.grad.view(-1).tolist() == pytest.approx([0.6, -0.8], rel=1e-5)


def test_tensors_of_both_do_not_mix():
    for call in (torch.add, rushlight.add):
        with pytest.raises(TypeError, match="no implementation found for 'add"):
            call(rushlight.ones(2), torch.ones(2))
