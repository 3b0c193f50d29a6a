"""Random tensors: PyTorch's streams (through NumPy's Mersenne Twister), states, memory orders, arguments."""

import pickle

import mpmath
import numpy as np
import pytest
from scipy import stats

import rushlight as torch

SEED = 123


def generator():
    return torch.Generator().manual_seed(SEED)


def words(n):
    return np.random.RandomState(SEED).randint(0, 2**32, size=n, dtype=np.uint32).astype(np.uint64)


def uniforms(n):
    """What PyTorch makes of two words a number."""
    w = words(2 * n)
    return ((w[::2] << np.uint64(32) | w[1::2]) & np.uint64(2**53 - 1)) * 2.0**-53


def test_uniform_float_takes_the_low_24_bits():
    expected = (words(50) & np.uint64(0xFFFFFF)) * 2.0**-24
    np.testing.assert_array_equal(torch.rand(50, generator=generator()).numpy(), expected.astype(np.float32))


def test_uniform_double_takes_53_bits_of_two_words():
    x = torch.rand(50, dtype=torch.float64, generator=generator())
    np.testing.assert_array_equal(x.numpy(), uniforms(50))


def test_few_normals_are_pairs_of_box_and_muller():
    u = uniforms(8)
    radius, angle = np.sqrt(-2 * np.log1p(-u[1::2])), 2 * np.pi * u[::2]
    expected = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()
    x = torch.randn(8, dtype=torch.float64, generator=generator())
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-14)


@pytest.mark.parametrize("n", [16, 32, 40])
def test_many_normals_come_in_groups_of_16(n):
    u = uniforms(n + (16 if n % 16 else 0))
    whole = u[: n // 16 * 16].reshape(-1, 2, 8)
    tail = u[n : n + 16].reshape(-1, 2, 8)

    def box_muller(u):
        radius, angle = np.sqrt(-2 * np.log(1 - u[:, 0])), 2 * np.pi * u[:, 1]
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()

    expected = np.zeros(n)
    expected[: whole.size] = box_muller(whole)
    if n % 16:
        expected[n - 16 :] = box_muller(tail)
    x = torch.randn(n, dtype=torch.float64, generator=generator())
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-13)
    expected = box_muller((words(16) & np.uint64(0xFFFFFF)).reshape(1, 2, 8) * 2.0**-24)
    np.testing.assert_allclose(torch.randn(16, generator=generator()).numpy(), expected, atol=1e-6)


def test_integers_take_one_word_below_2_28_and_two_from_there():
    w = words(40)
    np.testing.assert_array_equal(torch.randint(10, (20,), generator=generator()).numpy(), w[:20] % 10)
    both = w[::2] << np.uint64(32) | w[1::2]
    np.testing.assert_array_equal(torch.randint(2**40, (20,), generator=generator()).numpy(), both % np.uint64(2**40))
    x = torch.randint(-5, 5, (20,), dtype=torch.int8, generator=generator())
    np.testing.assert_array_equal(x.numpy(), (w[:20] % 10).astype(np.int64) - 5)


def test_permutation_is_that_of_fisher_and_yates():
    w, expected = words(9), np.arange(10)
    for i in range(9):
        j = i + int(w[i] % (10 - i))
        expected[[i, j]] = expected[[j, i]]
    np.testing.assert_array_equal(torch.randperm(10, generator=generator()).numpy(), expected)


def test_documented_values():
    torch.manual_seed(0)
    np.testing.assert_allclose(torch.rand(5).numpy(), [0.4963, 0.7682, 0.0885, 0.1320, 0.3074], atol=5e-5)
    torch.manual_seed(0)
    np.testing.assert_allclose(torch.randn(4).numpy(), [1.5410, -0.2934, -2.1788, 0.5684], atol=5e-5)


def fill(n, dtype=torch.float32):
    return torch.empty(n, dtype=dtype)


# What PyTorch 2.13 draws on the CPU with the seed 2024; `nox -s peer` compares thousands of draws bit by bit.
PINNED = {
    "rand": (lambda g: torch.rand(3, generator=g), [0.5317158699035645, 0.8312679529190063, 0.9718379974365234]),
    "randn": (lambda g: torch.randn(3, generator=g), [-0.040429167449474335, 1.7259920835494995, -0.8140387535095215]),
    "randn of 20": (
        lambda g: torch.randn(20, generator=g)[-3:],
        [-1.1175426244735718, -0.6481050848960876, 0.6530144214630127],
    ),
    "rand of complex": (
        lambda g: torch.view_as_real(torch.rand(1, dtype=torch.complex64, generator=g)),
        [[0.5317158699035645, 0.8312679529190063]],
    ),
    "randint": (lambda g: torch.randint(-50, 50, (5,), generator=g), [-38, 0, 34, 10, -27]),
    "randperm": (lambda g: torch.randperm(6, generator=g), [2, 1, 0, 5, 3, 4]),
    "normal": (
        lambda g: torch.normal(torch.tensor([1.0, 2, 3]), torch.tensor([0.5, 1, 2]), generator=g),
        [0.9797854423522949, 3.725992202758789, 1.371922492980957],
    ),
    "bernoulli": (lambda g: torch.bernoulli(torch.tensor([0.1, 0.5, 0.9, 0.5, 0.5]), generator=g), [0, 0, 0, 1, 1]),
    "bernoulli_": (lambda g: fill(6).bernoulli_(0.4, generator=g), [1, 0, 1, 0, 0, 1]),
    "multinomial": (lambda g: torch.multinomial(torch.tensor([1.0, 2, 3, 4]), 3, generator=g), [2, 0, 3]),
    "multinomial again": (
        lambda g: torch.multinomial(torch.tensor([1.0, 2, 3, 4]), 6, True, generator=g),
        [1, 3, 2, 3, 3, 1],
    ),
    "exponential_": (
        lambda g: fill(3).exponential_(2, generator=g),
        [0.14633211493492126, 0.7451708316802979, 0.20414823293685913],
    ),
    "cauchy_": (
        lambda g: fill(3).cauchy_(1, 2, generator=g),
        [-0.9537011384963989, 3.337299346923828, -0.1389632225036621],
    ),
    "log_normal_": (
        lambda g: fill(3).log_normal_(0, 1, generator=g),
        [0.9603772163391113, 5.618092060089111, 0.44306501746177673],
    ),
    "geometric_": (lambda g: fill(5).geometric_(0.2, generator=g), [7, 2, 5, 2, 1]),
    "uniform_": (
        lambda g: fill(3).uniform_(-1, 1, generator=g),
        [0.0634317398071289, 0.6625359058380127, 0.9436759948730469],
    ),
    "random_": (lambda g: fill(3, torch.int32).random_(generator=g), [378019464, 1104465402, 855165536]),
    "random_ of half": (lambda g: fill(3, torch.float16).random_(generator=g), [2015, 1640, 1555]),
    "poisson": (lambda g: torch.poisson(torch.tensor([1.0, 5, 20, 50]), generator=g), [0, 6, 19, 41]),
    "binomial": (
        lambda g: torch.binomial(torch.tensor([10.0, 50, 100]), torch.tensor([0.3, 0.5, 0.9]), generator=g),
        [4, 22, 91],
    ),
}


@pytest.mark.parametrize("name", PINNED)
def test_the_numbers_of_pytorch(name):
    draw, expected = PINNED[name]
    drawn = draw(torch.Generator().manual_seed(2024))
    # Transcendental functions of another C library may differ in the last bit.
    np.testing.assert_allclose(drawn.numpy(), expected, rtol=1e-6 if drawn.is_floating_point() else 0)


def test_integers_that_a_float_rounds_are_warned_of_and_stay_inside():
    with pytest.warns(UserWarning, match="to - 1 is out of bounds"):
        x = torch.empty(1000).random_(0, 2**30 + 3, generator=generator())
    assert (x < 2**30 + 3).all()
    with pytest.warns(UserWarning, match="from is out of bounds"):
        x = torch.empty(1000, dtype=torch.bfloat16).random_(-519, 5, generator=generator())
    assert (x >= -519).all()


def test_numbers_follow_the_order_of_memory():
    plain = torch.empty(3, 4).uniform_(generator=generator())
    turned = torch.empty(3, 4).t().uniform_(generator=generator())
    assert torch.equal(turned.t(), plain)
    chances = torch.rand(3, 4, generator=generator()).t()
    turned = torch.empty(3, 4).t().bernoulli_(chances, generator=generator())
    assert torch.equal(turned.t(), torch.empty(3, 4).bernoulli_(chances.t(), generator=generator()))
    spread = torch.empty(3, 8)[:, ::2].uniform_(generator=generator())
    assert torch.equal(spread, plain)


@pytest.mark.parametrize("drawn", [0, 1, 623, 624, 1000])
def test_state_goes_on_where_it_was(drawn):
    g = generator()
    torch.rand(drawn, generator=g)
    torch.randn(1, generator=g)
    other = torch.Generator()
    other.set_state(g.get_state())
    copies = [other, g.clone_state(), pickle.loads(pickle.dumps(g))]
    expected = torch.randn(50, generator=g)
    assert all(torch.equal(torch.randn(50, generator=each), expected) for each in copies)
    assert other.initial_seed() == SEED


def test_binomial_at_the_ends():
    count, chance = torch.tensor([-1.0, 5, 5, 5, 5, np.nan]), torch.tensor([0.5, 0, 1, 2, np.nan, 0.5])
    np.testing.assert_array_equal(torch.binomial(count, chance).numpy(), [0, 0, 5, 5, np.nan, np.nan])
    assert torch.binomial(torch.full((3, 1), 5.0), torch.full((4,), 0.5)).shape == (3, 4)


def test_fork_rng_restores():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    with torch.random.fork_rng():
        torch.rand(100)
    assert torch.equal(torch.rand(3), expected)


def test_seeds():
    assert torch.manual_seed(-1) is torch.default_generator
    assert torch.initial_seed() == 2**64 - 1
    assert torch.seed() == torch.initial_seed()
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        torch.manual_seed(2**64)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: torch.rand(3, dtype=torch.int64), NotImplementedError, "not implemented for 'Long'"),
        (lambda: torch.randint(5, 5, (3,)), RuntimeError, "from=5 >= to=5"),
        (lambda: torch.randint(300, (3,), dtype=torch.uint8), RuntimeError, "out of bounds for unsigned char"),
        (lambda: torch.empty(3).normal_(0, -1), RuntimeError, "std >= 0.0, but found std -1"),
        (lambda: torch.empty(3).uniform_(1, 0), RuntimeError, r"found from=1 > to=0"),
        (lambda: torch.empty(3).bernoulli_(2), RuntimeError, r"p to be in \[0, 1\], but got p=2"),
        (lambda: torch.bernoulli(torch.tensor([2.0])), RuntimeError, "p_in >= 0 && p_in <= 1"),
        (lambda: torch.multinomial(torch.ones(3), 4), RuntimeError, "without replacement"),
        (lambda: torch.multinomial(-torch.ones(3), 2), RuntimeError, "element < 0"),
        (lambda: torch.empty(3, dtype=torch.int64).exponential_(), RuntimeError, "must be a floating point"),
        (lambda: torch.binomial(torch.ones(3, dtype=torch.int64), torch.ones(3)), ValueError, "got: Long"),
        (lambda: torch.binomial(torch.ones(3), torch.ones(3).double()), RuntimeError, "Found dtype Double"),
        (lambda: torch.Generator().get_offset(), RuntimeError, "CPU Generator does not use offset"),
        (lambda: torch.Generator(algorithm="dice"), ValueError, "algorithm='dice'"),
        (lambda: torch.rand(3, generator=5), TypeError, "must be Generator, not int"),
        (lambda: torch.Generator().set_state(torch.zeros(5)), TypeError, "must be a torch.ByteTensor"),
        (lambda: torch.Generator().set_state(torch.zeros(5, dtype=torch.uint8)), RuntimeError, "wrong size"),
        (lambda: torch.Generator().set_state(torch.zeros(5056, dtype=torch.uint8)), RuntimeError, "mt19937 state"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_moments():
    g = generator()
    x = torch.empty(100_000, dtype=torch.float64)
    for fill, mean, std in (
        (lambda: x.exponential_(2, generator=g), 0.5, 0.5),
        (lambda: x.geometric_(0.25, generator=g), 4, 12**0.5),
        (lambda: x.bernoulli_(0.3, generator=g), 0.3, 0.21**0.5),
        (lambda: x.log_normal_(0, 0.5, generator=g), np.exp(0.125), ((np.exp(0.25) - 1) * np.exp(0.25)) ** 0.5),
        (lambda: torch.poisson(torch.full_like(x, 4), generator=g), 4, 2),
        (lambda: torch.poisson(torch.full_like(x, 40), generator=g), 40, 40**0.5),
        (lambda: torch.binomial(torch.full_like(x, 20), torch.full_like(x, 0.3), generator=g), 6, 4.2**0.5),
        (lambda: torch.binomial(torch.full_like(x, 50), torch.full_like(x, 0.8), generator=g), 40, 8**0.5),
    ):
        values = fill()
        assert abs(values.mean().item() - mean) < 5 * std / 300
        assert abs(values.std().item() / std - 1) < 0.03


@pytest.mark.parametrize(
    ("name", "args"),
    [("uniform", (2, 3)), ("exponential", ()), ("cauchy", ()), ("log_normal", ()), ("geometric", (0.3,))],
)
def test_drawn_like_is_the_fill_of_a_new_tensor(name, args):
    x = torch.zeros(3, 4)
    torch.manual_seed(3)
    drawn = getattr(torch, name)(x, *args)
    torch.manual_seed(3)
    assert drawn.tolist() == getattr(torch.empty(3, 4), f"{name}_")(*args).tolist()
    assert not x.any()


def test_complex_uniform_draws_the_parts_in_turn():
    torch.manual_seed(3)
    z = torch.empty(3, dtype=torch.complex64).uniform_(2, 3)
    torch.manual_seed(3)
    assert torch.view_as_real(z).flatten().tolist() == torch.empty(6).uniform_(2, 3).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [0.3, 1.0, 4.5, 1000.0])
def test_gamma_numbers_follow_their_distribution(shape, dtype):
    x = torch._standard_gamma(torch.full((20_000,), shape, dtype=dtype), generator=generator())
    assert x.dtype == dtype
    assert stats.kstest(x.numpy(), stats.gamma(shape).cdf).pvalue > 1e-3


def test_gamma_numbers_at_the_edges_of_the_shape():
    x = torch._standard_gamma(torch.tensor([0.0, 1e-3, np.inf, np.nan, -1.0]), generator=generator())
    tiny = torch.finfo(torch.float32).tiny
    np.testing.assert_array_equal(x.numpy(), np.array([tiny, tiny, np.inf, np.nan, np.nan], np.float32))


def test_dirichlet_points_follow_their_distribution():
    x = torch._sample_dirichlet(torch.tensor([0.5, 2.0, 3.0]).expand(20_000, 3), generator=generator()).numpy()
    np.testing.assert_allclose(x.sum(1), 1, rtol=1e-6)
    for i, a in enumerate((0.5, 2.0, 3.0)):
        assert stats.kstest(x[:, i], stats.beta(a, 5.5 - a).cdf).pvalue > 1e-3


def test_dirichlet_points_of_tiny_concentrations_are_corners():
    x = torch._sample_dirichlet(torch.full((1000, 4), 1e-4), generator=generator()).numpy()
    assert np.mean(x.max(1) > 0.999) > 0.99
    np.testing.assert_allclose(x.argmax(1).mean(), 1.5, atol=0.2)


@pytest.mark.parametrize("shape", [1e-3, 0.3, 1.0, 2.0, 7.5, 60.0, 250.0, 1e4])
def test_derivative_of_gamma_numbers(shape):
    """At a fixed quantile, dx/da = -(dF/da) / f."""
    for x in stats.gamma(shape).ppf([0.01, 0.3, 0.6, 0.999]):
        if x < 1e-290:
            continue
        with mpmath.workdps(40):
            density = mpmath.exp((shape - 1) * mpmath.log(x) - x - mpmath.loggamma(shape))
            expected = -mpmath.diff(lambda a, x=x: mpmath.gammainc(a, 0, x, regularized=True), shape) / density
        moved = torch._standard_gamma_grad(
            torch.tensor(shape, dtype=torch.float64), torch.tensor(x, dtype=torch.float64)
        )
        assert moved.item() == pytest.approx(float(expected), rel=1e-8)


@pytest.mark.parametrize(("a", "b"), [(0.1, 0.1), (0.5, 3), (3, 0.5), (1, 99), (99, 1), (40, 30), (1e4, 20)])
def test_derivative_of_dirichlet_points(a, b):
    for x in stats.beta(a, b).ppf([0.02, 0.4, 0.7, 0.99]):
        if not 1e-290 < x < 1:
            continue
        with mpmath.workdps(40):
            density = mpmath.exp((a - 1) * mpmath.log(x) + (b - 1) * mpmath.log1p(-x)) / mpmath.beta(a, b)
            expected = -mpmath.diff(lambda a, x=x: mpmath.betainc(a, b, 0, x, regularized=True), a) / density / (1 - x)
        moved = torch._dirichlet_grad(*(torch.tensor(v, dtype=torch.float64) for v in (x, a, a + b)))
        assert moved.item() == pytest.approx(float(expected), rel=1e-8)


def test_derivative_of_large_dirichlet_points():
    """Near the normal limit: two expansions meet where one takes over from the other."""
    x = torch.linspace(0.497, 0.503, 7, dtype=torch.float64)
    below, above = (
        torch._dirichlet_grad(x, torch.full_like(x, a), torch.full_like(x, 2 * a)) * a for a in (0.999e6, 1.001e6)
    )
    np.testing.assert_allclose(below.numpy(), above.numpy(), rtol=1e-4)


def test_derivatives_outside_their_domain():
    nan, inf = float("nan"), float("inf")
    moved = torch._standard_gamma_grad(torch.tensor([2.0, 0.0, nan, 1.0]), torch.tensor([0.0, 1.0, 1.0, inf]))
    np.testing.assert_array_equal(moved.numpy(), np.array([0, 0, nan, 0], np.float32))
    moved = torch._dirichlet_grad(torch.tensor([0.0, 1.0, nan, 0.5]), torch.ones(4), torch.tensor([2.0, 2.0, 2.0, 1.0]))
    np.testing.assert_array_equal(moved.numpy(), np.array([0, 0, nan, 0], np.float32))


def test_derivatives_of_extreme_parameters_take_no_time():
    """Neither sum converges soon where one parameter is far larger and x far from the mean."""
    x, a, b = np.array([
        (0.9999999999683892, 1516200848134.3809, 0.8379061782720906),
        (0.9999999247717162, 60266804561965.63, 98801.02534573333),
        (0.9999999999999801, 1.9500639692591373e-06, 0.0005555544654196616),
        (1e-9, 1e-20, 1.0),
        (3e-11, 0.8, 1.5e12),
    ]).T  # fmt: skip
    moved = torch._dirichlet_grad(*(torch.from_numpy(v) for v in (x, a, a + b)))
    assert moved.isfinite().all()
    assert (moved >= 0).all()
    np.testing.assert_allclose(moved[:2].numpy(), -x[:2] * np.log(x[:2]) / (1 - x[:2]) / a[:2], rtol=1e-6)
    shape, x = torch.tensor([2e15, 1e-10, 1e16]), torch.tensor([1e30, 1e30, 1.5e16])
    assert torch._standard_gamma_grad(shape, x).isfinite().all()
