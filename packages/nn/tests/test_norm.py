"""Normalisation layers."""

import rushlight as torch
from rushlight import nn


def test_batch_norm_may_run_twice_before_backward():
    """Running statistics change between: the gradient does not need them."""
    norm = nn.BatchNorm1d(3)
    x, y = torch.randn(5, 3, requires_grad=True), torch.randn(5, 3, requires_grad=True)
    (norm(x).square() * torch.arange(3.0)).sum().add(norm(y).pow(3).sum()).backward()
    alone = x.detach().clone().requires_grad_()
    (nn.BatchNorm1d(3)(alone).square() * torch.arange(3.0)).sum().backward()
    torch.testing.assert_close(x.grad, alone.grad)
