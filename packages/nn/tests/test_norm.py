"""Normalisation layers."""

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn


def test_batch_norm_may_run_twice_before_backward():
    """Running statistics change between: the gradient does not need them."""
    norm = nn.BatchNorm1d(3)
    x, y = torch.randn(5, 3, requires_grad=True), torch.randn(5, 3, requires_grad=True)
    (norm(x).square() * torch.arange(3.0)).sum().add(norm(y).pow(3).sum()).backward()
    alone = x.detach().clone().requires_grad_()
    (nn.BatchNorm1d(3)(alone).square() * torch.arange(3.0)).sum().backward()
    torch.testing.assert_close(x.grad, alone.grad)


NORMS = {
    "batch_norm": lambda x, w: F.batch_norm(x, None, None, w, w, training=True),
    "instance_norm": lambda x, w: F.instance_norm(x, None, None, w, w),
    "group_norm": lambda x, w: F.group_norm(x, 3, w, w),
    "layer_norm": lambda x, w: F.layer_norm(x, (3,), w, w),
}


@pytest.mark.parametrize("name", NORMS)
def test_dtypes_are_not_mixed(name):
    norm = NORMS[name]
    x = torch.arange(18.0).reshape(2, 3, 3)
    for dtype, other in (
        (torch.float64, torch.float32),
        (torch.float32, torch.float64),
        (torch.float32, torch.float16),
    ):
        with pytest.raises(RuntimeError, match=f"mixed dtype.*{name}: got input of {dtype} and weight of {other}"):
            norm(x.to(dtype), torch.ones(3, dtype=other))
    with pytest.raises(NotImplementedError, match=f'"{name}" not implemented for torch.int64'):
        norm(x.to(torch.int64), torch.ones(3))
    with pytest.raises(NotImplementedError, match="not implemented for torch.complex64"):
        norm(x.to(torch.complex64), torch.ones(3, dtype=torch.complex64))
    rounded = norm(x.to(torch.bfloat16), torch.ones(3))
    assert rounded.dtype == torch.bfloat16
    torch.testing.assert_close(rounded.float(), norm(x, torch.ones(3)), rtol=1e-2, atol=1e-2)
