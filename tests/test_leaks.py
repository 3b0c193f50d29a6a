"""What tests/leaks.py finds, and what it does not."""

import leaks
import pytest

import rushlight as torch


def test_nothing_grows():
    x = torch.ones(3, requires_grad=True)
    calls = [lambda: torch.ones(3) + 1, lambda: (x * 2).sum().backward(), lambda: torch.ones(2) + torch.ones(3)]
    assert leaks.growth(calls, 2000, 5) is None


@pytest.mark.parametrize(
    ("keep", "what"),
    [(lambda kept: kept.append([]), "objects"), (lambda kept: kept.append(torch.ones(100)), "bytes")],
)
def test_what_grows_is_named(keep, what):
    kept = []
    found = leaks.growth([lambda: keep(kept)], 2000, 5)
    assert found is not None
    assert what in found
