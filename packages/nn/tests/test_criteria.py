"""Losses, distances, bags of embeddings and normalisations against NumPy, SciPy's definitions and mathematics."""

import itertools
import math

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.autograd import gradcheck, gradgradcheck


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape)


# -- CTC


def by_enumeration(probabilities, target, blank=0):
    """The probability of a label sequence: the sum over all paths that collapse to it."""
    total = 0.0
    steps, classes = probabilities.shape
    for path in itertools.product(range(classes), repeat=steps):
        labels = [label for label, _ in itertools.groupby(path) if label != blank]
        if labels == list(target):
            total += math.prod(probabilities[step, label] for step, label in enumerate(path))
    return total


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("target", [[], [1], [1, 2], [2, 2], [1, 2, 1], [1, 1, 1]])
def test_ctc_is_the_sum_over_all_paths(dtype, target):
    log_probs = torch.tensor(random(5, 3)).log_softmax(1).to(dtype)
    loss = F.ctc_loss(log_probs, torch.tensor(target, dtype=torch.int64), [5], [len(target)], reduction="sum")
    assert np.allclose(loss.item(), -np.log(by_enumeration(log_probs.exp().double().numpy(), target)), rtol=1e-5)


def test_ctc_of_different_lengths_and_an_impossible_target():
    log_probs = torch.tensor(random(6, 3, 4)).log_softmax(2)
    targets, inputs, lengths = torch.tensor([[1, 2, 3], [3, 3, 0], [1, 0, 0]]), [6, 2, 4], [3, 2, 1]
    losses = F.ctc_loss(log_probs, targets, inputs, lengths, reduction="none")
    for n in (0, 2):
        expected = by_enumeration(log_probs.exp().numpy()[: inputs[n], n], targets[n, : lengths[n]].tolist())
        assert np.allclose(losses[n].item(), -np.log(expected))
    assert losses[1] == torch.inf
    assert F.ctc_loss(log_probs, targets, inputs, lengths, reduction="none", zero_infinity=True)[1] == 0


def test_gradients_of_ctc():
    targets = torch.tensor([[1, 2], [3, 3]])

    def loss(scores):
        return F.ctc_loss(scores.log_softmax(2), targets, [5, 4], [2, 2], reduction="none")

    scores = torch.tensor(random(5, 2, 4), requires_grad=True)
    assert gradcheck(loss, (scores,))


# -- bags


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_bags(mode, dtype):
    table = torch.tensor(random(7, 5)).to(dtype)
    indices, offsets = [0, 3, 3, 6, 1, 2], [0, 2, 2, 5]
    bags = [indices[low:high] for low, high in zip(offsets, [*offsets[1:], 6], strict=True)]
    rows = table.double().numpy()
    expected = np.stack([getattr(rows[bag], mode)(0) if bag else np.zeros(5) for bag in bags])
    found = F.embedding_bag(torch.tensor(indices), table, torch.tensor(offsets), mode=mode)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.double(), expected, rtol=1e-2 if dtype.itemsize == 2 else 1e-6, atol=1e-2)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_gradients_of_bags(mode):
    table = torch.tensor(random(5, 3), requires_grad=True)
    indices, offsets = torch.tensor([0, 4, 4, 1, 2, 0]), torch.tensor([0, 2, 2])
    factors = torch.tensor(random(6), requires_grad=True)

    def combined(table, *factors):
        options = {"per_sample_weights": factors[0]} if factors else {}
        return F.embedding_bag(indices, table, offsets, mode=mode, padding_idx=1, **options)

    assert gradcheck(combined, (table,), check_forward_ad=True)
    if mode == "sum":
        assert gradcheck(combined, (table, factors), check_forward_ad=True)
        assert gradgradcheck(combined, (table, factors))


def test_sparse_and_scaled_gradients_of_bags():
    indices, offsets = torch.tensor([0, 4, 4, 1]), torch.tensor([0, 2])
    dense, sparse, scaled = (torch.ones(5, 3, requires_grad=True) for _ in range(3))
    F.embedding_bag(indices, dense, offsets, mode="sum").sum().backward()
    F.embedding_bag(indices, sparse, offsets, mode="sum", sparse=True).sum().backward()
    F.embedding_bag(indices, scaled, offsets, mode="sum", scale_grad_by_freq=True).sum().backward()
    assert sparse.grad.is_sparse
    assert torch.equal(sparse.grad.to_dense(), dense.grad)
    assert scaled.grad[:, 0].tolist() == [1, 1, 0, 0, 1]


# -- distances and margins


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, float("inf")])
def test_distances_of_all_pairs(p):
    rows = random(6, 4)
    pairs = [np.linalg.norm(a - b, p) for a, b in itertools.combinations(rows, 2)]
    np.testing.assert_allclose(F.pdist(torch.tensor(rows), p), pairs)
    assert F.pdist(torch.tensor(rows[:1]), p).shape == (0,)


def test_gradients_of_distances():
    rows = torch.tensor(random(4, 3), requires_grad=True)
    assert gradgradcheck(lambda x: F.pdist(x), (rows,))
    same = torch.ones(2, 3, requires_grad=True)
    F.pdist(same).sum().backward()
    assert same.grad.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_margins_between_classes():
    scores, classes = random(4, 5), np.array([0, 4, 2, 2])
    violations = np.maximum(0.7 - scores[np.arange(4), classes][:, None] + scores, 0)
    violations[np.arange(4), classes] = 0
    found = F.multi_margin_loss(torch.tensor(scores), torch.tensor(classes), 2, 0.7, reduction="none")
    np.testing.assert_allclose(found, (violations**2).sum(1) / 5)


def test_margins_of_several_labels_end_at_the_first_minus_one():
    scores = torch.tensor([0.1, 0.2, 0.4, 0.8])
    expected = sum(max(0, 1 - (y - x)) for y in (0.8, 0.1) for x in (0.2, 0.4)) / 4
    assert math.isclose(F.multilabel_margin_loss(scores, torch.tensor([3, 0, -1, 1])).item(), expected, rel_tol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_elementwise_losses(dtype):
    x, target = torch.tensor(random(300)).to(dtype), torch.tensor(random(300)[::-1].copy()).to(dtype)
    a, b = x.double().numpy(), target.double().numpy()
    d = abs(a - b)
    share = 1 / (1 + np.exp(-b))
    expected = {
        F.mse_loss: d**2,
        F.smooth_l1_loss: np.where(d < 1, d**2 / 2, d - 0.5),
        F.huber_loss: np.where(d < 1, d**2 / 2, d - 0.5),
        F.soft_margin_loss: np.log1p(np.exp(-a * b)),
    }
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype.itemsize == 2 else {"rtol": 1e-5, "atol": 1e-6}
    for loss, values in expected.items():
        np.testing.assert_allclose(loss(x, target, reduction="none").double(), values, **tolerance)
    logits = F.binary_cross_entropy_with_logits(x, torch.tensor(share).to(dtype), reduction="none")
    np.testing.assert_allclose(logits.double(), np.log1p(np.exp(a)) - share * a, **tolerance)


def test_binary_cross_entropy_is_bounded():
    ends, target = torch.tensor([0.0, 1.0, 0.0, 1.0]), torch.tensor([0.0, 1.0, 1.0, 0.0])
    assert F.binary_cross_entropy(ends, target, reduction="none").tolist() == [0, 0, 100, 100]
    scores = torch.tensor([1e4, -1e4])
    assert F.binary_cross_entropy_with_logits(scores, target[:2], reduction="none").tolist() == [1e4, 1e4]


# -- normalisation


def test_instances_are_normalised_one_by_one():
    x = random(2, 3, 4, 5)
    mean, variance = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    np.testing.assert_allclose(F.instance_norm(torch.tensor(x)), (x - mean) / np.sqrt(variance + 1e-5))
    module = torch.nn.InstanceNorm2d(3, track_running_stats=True, dtype=torch.float64)
    module(torch.tensor(x))
    np.testing.assert_allclose(module.running_mean, 0.1 * mean.mean(0).ravel())
    np.testing.assert_allclose(module.running_var, 0.9 + 0.1 * x.var((2, 3), ddof=1).mean(0))


def test_root_mean_square_norm():
    x = random(3, 4)
    np.testing.assert_allclose(
        F.rms_norm(torch.tensor(x), (4,), eps=0.5), x / np.sqrt((x**2).mean(1, keepdims=True) + 0.5)
    )


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_local_response_norm(size):
    x = random(2, 6, 3)
    padded = np.pad(x**2, ((0, 0), (size // 2, (size - 1) // 2), (0, 0)))
    means = np.stack([padded[:, c : c + size].sum(1) / size for c in range(6)], 1)
    found = F.local_response_norm(torch.tensor(x), size, 0.5, 0.75, 2.0)
    np.testing.assert_allclose(found, x / (2 + 0.5 * means) ** 0.75)
    if size % 2:
        images = torch.tensor(x).unsqueeze(-1)
        np.testing.assert_allclose(torch.nn.CrossMapLRN2d(size, 0.5, 0.75, 2.0)(images).squeeze(-1), found)


def test_random_slopes_lie_between_the_bounds():
    torch.manual_seed(0)
    x = torch.linspace(-2, 1, 301, dtype=torch.float64)
    slopes = (F.rrelu(x, 0.1, 0.3, training=True) / x)[x < 0]
    assert 0.1 <= slopes.min() < 0.12 < 0.28 < slopes.max() <= 0.3
    assert torch.equal(F.rrelu(x, 0.1, 0.3), F.leaky_relu(x, 0.2))
    y = x.clone()
    assert F.rrelu(y, 0.1, 0.3, True, inplace=True) is y


def test_adaptive_softmax_is_a_distribution():
    module = torch.nn.AdaptiveLogSoftmaxWithLoss(6, 10, [2, 5], div_value=2.0)
    x = torch.tensor(random(4, 6), dtype=torch.float32)
    log_prob = module.log_prob(x)
    np.testing.assert_allclose(log_prob.exp().sum(1).detach(), 1, rtol=1e-5)
    target = torch.tensor([0, 3, 9, 4])
    output, loss = module(x, target)
    np.testing.assert_allclose(output.detach(), log_prob[torch.arange(4), target].detach(), rtol=1e-5)
    assert math.isclose(loss.item(), -output.mean().item(), rel_tol=1e-6)
    assert torch.equal(module.predict(x), log_prob.argmax(1))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.binary_cross_entropy(torch.ones(2), torch.ones(2).long()), RuntimeError, "target of torch.int64"),
        (lambda: F.nll_loss(torch.ones(2, 3), torch.tensor([0, 1]), torch.ones(3).double()), RuntimeError, "mixed"),
        (lambda: F.nll_loss(torch.ones(2, 3).long(), torch.tensor([0, 1])), NotImplementedError, "nll_loss"),
        (lambda: F.nll_loss(torch.ones(3), torch.tensor([0, 1])), ValueError, "1D target must have size 1"),
        (lambda: F.glu(torch.ones(4).long()), NotImplementedError, "glu"),
        (lambda: F.adaptive_avg_pool1d(torch.ones(1, 4).long(), 2), NotImplementedError, "adaptive_avg_pool1d"),
    ],
)
def test_dtypes_and_sizes_that_do_not_fit(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("loss", [F.nll_loss, F.cross_entropy])
def test_one_sample_may_have_its_class_in_a_vector(loss):
    scores = torch.tensor([1.0, -2.0, 0.5])
    for reduction in ("mean", "sum", "none"):
        value = loss(scores, torch.tensor([1]), reduction=reduction)
        torch.testing.assert_close(value, loss(scores, torch.tensor(1), reduction=reduction), rtol=0, atol=0)


@pytest.mark.parametrize("score", [0.0, 1e5, -1e8, 1e20])
@pytest.mark.parametrize("positions", [1, 3])
def test_cross_entropy_of_equal_scores_of_any_size_is_that_of_zeros(score, positions):
    scores = torch.full((1, 2, positions), score, requires_grad=True)
    target = torch.zeros(1, positions, dtype=torch.int64)
    for smoothing in (0.0, 0.2):
        loss = F.cross_entropy(scores, target, label_smoothing=smoothing)
        assert loss.item() == pytest.approx(math.log(2), rel=1e-6)
        for create_graph in (False, True):
            (slope,) = torch.autograd.grad(loss, scores, retain_graph=True, create_graph=create_graph)
            expected = torch.tensor([-0.5, 0.5]) * (1 - smoothing) / positions
            torch.testing.assert_close(slope[0], expected[:, None].expand(2, positions))


def test_cross_entropy_of_ignored_targets_alone_has_the_gradient_zero():
    scores = torch.zeros(2, 2, requires_grad=True)
    loss = F.cross_entropy(scores, torch.tensor([-100, -100]))
    for create_graph in (False, True):
        (slope,) = torch.autograd.grad(loss, scores, retain_graph=True, create_graph=create_graph)
        assert (slope == 0).all()
