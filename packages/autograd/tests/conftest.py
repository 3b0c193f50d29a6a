"""Helpers of the autograd tests."""

import numpy as np
import pytest

import rushlight as torch


@pytest.fixture
def leaf():
    """Makes a leaf that requires grad from numbers."""

    def make(values, dtype=np.float64):
        return torch.from_numpy(np.array(values, dtype=dtype)).requires_grad_()

    return make
