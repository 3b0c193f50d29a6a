"""Sizes whose products or sums do not fit 64 bits, or no memory: every way to them raises and changes nothing."""

import pytest

import rushlight as torch

HUGE = 2**32
VAST = 2**62


def one(*sizes):
    return torch.ones(1).expand(*sizes)


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.zeros(HUGE, HUGE),
        lambda: torch.ones((HUGE, HUGE, HUGE)),
        lambda: torch.full((HUGE, HUGE), 1),
        lambda: torch.empty(VAST, 4),
        lambda: torch.empty(VAST, 4, device="meta"),
        lambda: torch.empty_strided((HUGE, HUGE), (HUGE, 1)),
        lambda: torch.eye(HUGE, HUGE),
        lambda: torch.rand(HUGE, HUGE),
        lambda: torch.randint(5, (HUGE, HUGE)),
        lambda: torch.randperm(VAST),
        lambda: torch.arange(VAST),
        lambda: torch.linspace(0, 1, VAST),
        lambda: torch.logspace(0, 1, VAST),
        lambda: torch.ones(1).new_zeros(HUGE, HUGE),
        lambda: torch.ones(1).resize_(HUGE, HUGE),
        lambda: one(HUGE, HUGE),
        lambda: torch.broadcast_to(one(1), (HUGE, HUGE)),
        lambda: one(1).repeat(VAST, 4),
        lambda: torch.tile(one(1), (VAST, 4)),
        lambda: one(1).repeat_interleave(VAST),
        lambda: one(1).view(HUGE, HUGE),
        lambda: one(1).as_strided((HUGE, HUGE), (0, 0)),
        lambda: one(1).as_strided((1,), (1,), VAST),
        lambda: one(1).as_strided((2,), (VAST,)),
        lambda: one(VAST).clone(),
        lambda: one(VAST).to(torch.float64),
        lambda: one(VAST).cumsum(0),
        lambda: one(VAST).sort(),
        lambda: one(VAST).masked_select(torch.tensor(True)),
        lambda: torch.cat([one(VAST)] * 4),
        lambda: torch.stack([one(VAST)] * 4),
        lambda: torch.outer(one(HUGE), one(HUGE)),
        lambda: torch.kron(one(HUGE), one(HUGE)),
        lambda: one(HUGE, 1) + one(1, HUGE),
        lambda: one(HUGE, 1) @ one(1, HUGE),
        lambda: torch.cartesian_prod(one(HUGE), one(HUGE)),
        lambda: torch.meshgrid(one(HUGE), one(HUGE), indexing="ij"),
        lambda: one(1).index_select(0, torch.zeros(1, dtype=torch.int64).expand(VAST)),
        lambda: torch.bincount(torch.tensor([VAST])),
        lambda: torch.bincount(torch.tensor([1]), minlength=VAST),
        lambda: torch.histc(one(1), VAST),
        lambda: torch.diag(one(1), VAST),
        lambda: torch.diag_embed(one(1), VAST),
        lambda: one(1).topk(VAST),
        lambda: torch.vander(one(1), VAST),
    ],
)
def test_raises(call):
    with pytest.raises(RuntimeError):
        call()


def test_none_at_all_may_have_huge_sizes_beside_it():
    assert torch.zeros(0, HUGE, HUGE).numel() == 0
    assert torch.ones(0).reshape(0, VAST, 8).shape == (0, VAST, 8)
    assert torch.triu(torch.ones(2, 2), 2**63 - 1).sum() == 0
    assert torch.ones(1).roll(2**63 - 1).tolist() == [1]
    assert len(torch.ones(1).split(2**63 - 1)) == 1
    assert one(VAST)[torch.tensor([VAST - 1])].tolist() == [1]
