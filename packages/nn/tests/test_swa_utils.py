"""Averaged weights against means in NumPy."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, optim
from rushlight.optim import swa_utils

VALUES = (1.0, 4.0, 10.0)


def averaged(model=None, **options):
    """The averages after weights of 1, 4 and 10."""
    model = model or nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
    average = swa_utils.AveragedModel(model, **options)
    for value in VALUES:
        with torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                tensor.fill_(value)
        average.update_parameters(model)
    return average


@pytest.mark.parametrize(
    "options",
    [{}, {"avg_fn": swa_utils.get_swa_avg_fn()}, {"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()}],
)
@pytest.mark.parametrize("use_buffers", [True, False])
def test_all_weights_count_alike(options, use_buffers):
    average = averaged(use_buffers=use_buffers, **options)
    assert average.n_averaged.item() == 3
    assert average.module[0].bias.item() == pytest.approx(5)
    assert average.module[1].running_mean.item() == pytest.approx(5 if use_buffers else 10)
    assert average.module[1].num_batches_tracked.item() == (4 if use_buffers else 10)  # 2, then 4: integers are cut


@pytest.mark.parametrize(
    "options",
    [{"avg_fn": swa_utils.get_ema_avg_fn(0.75)}, {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.75)}],
)
def test_exponential_average(options):
    expected = VALUES[0]
    for value in VALUES[1:]:
        expected = 0.75 * expected + 0.25 * value
    assert averaged(**options).module[0].bias.item() == pytest.approx(expected)


def test_an_averaged_model_is_a_module():
    model = nn.Linear(2, 1)
    average = averaged(model)
    assert set(average.state_dict()) == {"n_averaged", "module.weight", "module.bias"}
    assert average(torch.ones(1, 2)).item() == pytest.approx(15)
    assert model.weight[0, 0] == 10
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(model, avg_fn=max, multi_avg_fn=max)
    with pytest.raises(ValueError, match="Invalid decay value 2"):
        swa_utils.get_ema_avg_fn(2)


def test_update_bn():
    model = nn.Sequential(nn.BatchNorm1d(3, momentum=0.3), nn.Dropout(0.5)).eval()
    data = torch.randn(4, 5, 3, dtype=torch.float64)
    model.double()
    swa_utils.update_bn([(batch, None) for batch in data], model)
    np.testing.assert_allclose(model[0].running_mean.numpy(), data.numpy().mean(axis=(0, 1)))
    np.testing.assert_allclose(model[0].running_var.numpy(), data.numpy().var(axis=1, ddof=1).mean(axis=0))
    assert not model.training
    assert model[0].momentum == 0.3
    swa_utils.update_bn(iter(()), nn.Linear(2, 2))


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_swalr(strategy):
    opt = optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    scheduler = swa_utils.SWALR(opt, 0.2, anneal_epochs=4, anneal_strategy=strategy)
    seen = []
    for _ in range(7):
        seen.append(scheduler.get_last_lr()[0])
        opt.step()
        scheduler.step()
    done = np.minimum(np.arange(7) / 4, 1)
    share = done if strategy == "linear" else (1 - np.cos(np.pi * done)) / 2
    assert seen == pytest.approx(0.2 * share + 1.0 * (1 - share))
    with pytest.raises(ValueError, match="'cos' or 'linear'"):
        swa_utils.SWALR(opt, 0.2, anneal_strategy="x")
    with pytest.raises(ValueError, match="anneal_epochs"):
        swa_utils.SWALR(opt, 0.2, anneal_epochs=-1)
