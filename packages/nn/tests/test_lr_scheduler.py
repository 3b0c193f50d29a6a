"""Learning rate schedulers against their closed forms, and together."""

import copy
import math
import pickle
from itertools import pairwise

import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.optim import lr_scheduler


def optimizer(*rates, cls=optim.SGD, **options):
    rates = rates or (0.1,)
    return cls([{"params": [nn.Parameter(torch.ones(1))], "lr": lr} for lr in rates], **options)


def rates(scheduler, n):
    """The rate of the first group in each of n epochs."""
    seen = []
    for _ in range(n):
        seen.append(scheduler.optimizer.param_groups[0]["lr"])
        assert scheduler.get_last_lr()[0] == seen[-1]
        scheduler.optimizer.step()
        scheduler.step()
    return seen


def wave(epoch, period, least=0.0):
    return least + (0.1 - least) * (1 + math.cos(math.pi * epoch / period)) / 2


def triangle(epoch, up, down, scale=lambda cycle, epoch: 1.0):
    cycle, at = divmod(epoch, up + down)
    return 0.01 + 0.09 * (at / up if at <= up else (up + down - at) / down) * scale(cycle, epoch)


RANGE = {"base_lr": 0.01, "max_lr": 0.1}
CLOSED = [
    ("LambdaLR", {"lr_lambda": lambda e: 1 / (1 + e)}, lambda e: 0.1 / (1 + e)),
    ("MultiplicativeLR", {"lr_lambda": lambda e: 0.9}, lambda e: 0.1 * 0.9**e),
    ("StepLR", {"step_size": 3, "gamma": 0.5}, lambda e: 0.1 * 0.5 ** (e // 3)),
    ("MultiStepLR", {"milestones": [2, 5, 5]}, lambda e: 0.1 * 0.1 ** ((e >= 2) + 2 * (e >= 5))),
    ("ConstantLR", {"factor": 0.5, "total_iters": 4}, lambda e: 0.1 * (0.5 if e < 4 else 1)),
    ("LinearLR", {"start_factor": 0.2, "end_factor": 0.6, "total_iters": 4}, lambda e: 0.02 + 0.01 * min(e, 4)),
    ("ExponentialLR", {"gamma": 0.8}, lambda e: 0.1 * 0.8**e),
    ("PolynomialLR", {"total_iters": 8, "power": 2.0}, lambda e: 0.1 * (1 - min(e, 8) / 8) ** 2),
    ("CosineAnnealingLR", {"T_max": 4, "eta_min": 0.02}, lambda e: wave(e, 4, 0.02)),
    ("CosineAnnealingWarmRestarts", {"T_0": 4}, lambda e: wave(e % 4, 4)),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2},
     lambda e: wave(e - 6, 8) if e > 5 else wave(e - 2, 4) if e > 1 else wave(e, 2)),
    ("CyclicLR", {**RANGE, "step_size_up": 3, "step_size_down": 2}, lambda e: triangle(e, 3, 2)),
    ("CyclicLR", {**RANGE, "step_size_up": 2, "mode": "triangular2"},
     lambda e: triangle(e, 2, 2, lambda c, e: 0.5**c)),
    ("CyclicLR", {**RANGE, "step_size_up": 2, "mode": "exp_range", "gamma": 0.9},
     lambda e: triangle(e, 2, 2, lambda c, e: 0.9**e)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "formula"), CLOSED)
def test_rates_follow_the_closed_form(name, options, formula):
    scheduler = getattr(lr_scheduler, name)(optimizer(momentum=0.9), **options)
    assert rates(scheduler, 14) == pytest.approx([formula(e) for e in range(14)], rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("name", "options", "formula"), [case for case in CLOSED if case[0] != "MultiplicativeLR"])
def test_a_given_epoch_uses_the_closed_form(name, options, formula):
    scheduler = getattr(lr_scheduler, name)(optimizer(momentum=0.9), **options)
    if name == "CosineAnnealingWarmRestarts":
        scheduler.step(7)
    else:
        scheduler.optimizer.step()
        with pytest.warns(UserWarning, match="The epoch parameter"):
            scheduler.step(7)
    assert scheduler.get_last_lr() == pytest.approx([formula(7)])


@pytest.mark.parametrize(("name", "options", "formula"), CLOSED)
def test_state_dicts_and_copies_resume(name, options, formula):
    make = lambda: getattr(lr_scheduler, name)(optimizer(momentum=0.9), **options)
    first, second = make(), make()
    rates(first, 5)
    state = first.state_dict()
    assert "optimizer" not in state
    second.load_state_dict(pickle.loads(pickle.dumps(state)))
    second.optimizer.load_state_dict(first.optimizer.state_dict())
    third = copy.deepcopy(first)
    expected = rates(first, 4)
    assert rates(second, 4) == pytest.approx(expected)
    assert rates(third, 4) == pytest.approx(expected)


def test_one_cycle():
    opt = optimizer(momentum=0.9)
    scheduler = lr_scheduler.OneCycleLR(opt, 1.0, total_steps=10, pct_start=0.5, anneal_strategy="linear")
    seen, momenta = [], []
    for _ in range(10):
        seen.append(opt.param_groups[0]["lr"])
        momenta.append(opt.param_groups[0]["momentum"])
        opt.step()
        scheduler.step()
    first = 1 / 25
    rise = [first + (1 - first) * i / 4 for i in range(5)]
    last = first / 1e4
    fall = [1 + (last - 1) * i / 5 for i in range(1, 6)]
    assert seen == pytest.approx(rise + fall)
    assert momenta == pytest.approx([0.95 - 0.1 * i / 4 for i in range(5)] + [0.85 + 0.1 * i / 5 for i in range(1, 6)])
    with pytest.raises(ValueError, match="Tried to step 11 times"):
        scheduler.step()


def test_one_cycle_in_three_phases_with_cosines():
    scheduler = lr_scheduler.OneCycleLR(
        optimizer(cls=optim.Adam), 1.0, epochs=5, steps_per_epoch=4, three_phase=True, pct_start=0.25
    )
    seen = rates(scheduler, 20)
    assert max(seen) == seen[4] == pytest.approx(1)
    assert seen[8] == pytest.approx(seen[0]) == pytest.approx(1 / 25)
    assert seen[19] == pytest.approx(1 / 25e4)
    assert all(a < b for a, b in pairwise(seen[:5]))
    assert all(a > b for a, b in pairwise(seen[4:]))


def test_schedulers_chain():
    chained = lambda opt: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(opt, 0.5, 3), lr_scheduler.ExponentialLR(opt, 0.9)]
    )
    opt, two = optimizer(), optimizer()
    scheduler, other = chained(opt), chained(two)
    expected = [0.1 * (0.5 if e < 3 else 1) * 0.9**e for e in range(8)]
    assert rates(scheduler, 8) == pytest.approx(expected)
    other.load_state_dict(scheduler.state_dict())
    two.load_state_dict(opt.state_dict())
    assert rates(other, 3) == pytest.approx(rates(scheduler, 3))


def test_schedulers_follow_each_other():
    opt = optimizer()
    parts = [lr_scheduler.LinearLR(opt, 0.25, total_iters=3), lr_scheduler.CosineAnnealingLR(opt, 5)]
    scheduler = lr_scheduler.SequentialLR(opt, parts, [4])
    expected = [0.1 * (0.25 + 0.25 * min(e, 3)) for e in range(4)] + [wave(e, 5) for e in range(5)]
    assert rates(scheduler, 9) == pytest.approx(expected)
    state = scheduler.state_dict()
    assert len(state["_schedulers"]) == 2
    scheduler.load_state_dict(state)


def test_plateau():
    opt = optimizer(1.0, 2.0)
    scheduler = lr_scheduler.ReduceLROnPlateau(opt, patience=1, factor=0.5, cooldown=1, min_lr=0.2, threshold=0.1)
    seen = []
    for loss in (10.0, 9.5, 9.2, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, torch.tensor(8.0)):
        scheduler.step(loss)
        seen.append(scheduler.get_last_lr()[0])
    # 9.5 and 9.2 are within 10 % of 10: the rate falls at 9.2, is left alone while it cools down, and 8.0 is better.
    assert seen == [1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2]
    best = lr_scheduler.ReduceLROnPlateau(optimizer(), mode="max", threshold_mode="abs", threshold=1.0, patience=0)
    for accuracy in (1.0, 2.5, 3.0):
        best.step(accuracy)
    assert best.best == 2.5
    assert best.get_last_lr() == pytest.approx([0.01])
    opt.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    scheduler._reduce_lr()
    assert scheduler.min_lrs == [0.2] * 3


def test_a_tensor_rate_is_set_in_place():
    rate = torch.tensor(0.5)
    opt = optim.Adam([nn.Parameter(torch.ones(1))], lr=rate)
    scheduler = lr_scheduler.StepLR(opt, 1, 0.5)
    opt.step()
    scheduler.step()
    assert rate.item() == 0.25
    assert opt.param_groups[0]["initial_lr"].item() == 0.5


def test_resuming_needs_the_initial_rate():
    opt = optimizer()
    with pytest.raises(KeyError, match="param 'initial_lr' is not specified in param_groups\\[0\\]"):
        lr_scheduler.StepLR(opt, 2, last_epoch=3)
    lr_scheduler.StepLR(opt, 2)
    assert lr_scheduler.StepLR(opt, 2, last_epoch=3).last_epoch == 4


def test_warnings():
    scheduler = lr_scheduler.StepLR(optimizer(), 2)
    with pytest.warns(UserWarning, match="before `optimizer.step\\(\\)`"):
        scheduler.step()
    with pytest.warns(UserWarning, match="use `get_last_lr\\(\\)`"):
        scheduler.get_lr()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda o: lr_scheduler.StepLR(3, 2), TypeError, "int is not an Optimizer"),
        (lambda o: lr_scheduler.LambdaLR(o, [abs, abs]), ValueError, "Expected 1 lr_lambdas, but got 2"),
        (lambda o: lr_scheduler.ConstantLR(o, 2.0), ValueError, "between 0 and 1"),
        (lambda o: lr_scheduler.LinearLR(o, 0.0), ValueError, "greater than 0"),
        (lambda o: lr_scheduler.LinearLR(o, 0.5, 2.0), ValueError, "Ending multiplicative"),
        (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0), ValueError, "positive integer T_0"),
        (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 0), ValueError, "T_mult >= 1"),
        (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2).step(-1), ValueError, "non-negative epoch"),
        (lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.2, mode="x"), ValueError, "mode is invalid"),
        (lambda o: lr_scheduler.CyclicLR(o, [0.1, 0.2], 0.2), ValueError, "same length as optimizer.param_groups"),
        (lambda o: lr_scheduler.CyclicLR(optimizer(cls=optim.Adagrad), 0.1, 0.2), ValueError, "support momentum"),
        (lambda o: lr_scheduler.OneCycleLR(o, 0.1), ValueError, "either total_steps OR both"),
        (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 0), ValueError, "positive integer total_steps"),
        (lambda o: lr_scheduler.OneCycleLR(o, 0.1, epochs=1, steps_per_epoch=0), ValueError, "steps_per_epoch"),
        (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 9, pct_start=2.0), ValueError, "between 0 and 1 pct_start"),
        (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 9, anneal_strategy="x"), ValueError, "'cos' or 'linear'"),
        (lambda o: lr_scheduler.SequentialLR(o, [], []), ValueError, "got no scheduler"),
        (lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(o, 2)], [1]), ValueError, "number of milestones"),
        (
            lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(optimizer(), 2)], []),
            ValueError,
            "belong to the same optimizer",
        ),
        (lambda o: lr_scheduler.ChainedScheduler([]), ValueError, "got no scheduler"),
        (
            lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.ReduceLROnPlateau(o)]),
            ValueError,
            "does not support `ReduceLROnPlateau`",
        ),
        (lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor should be < 1.0"),
        (lambda o: lr_scheduler.ReduceLROnPlateau(o, mode="x"), ValueError, "mode x is unknown!"),
        (lambda o: lr_scheduler.ReduceLROnPlateau(o, threshold_mode="x"), ValueError, "threshold mode x is unknown!"),
    ],
)  # fmt: skip
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make(optimizer(momentum=0.9))
