"""Random tensors: PyTorch's streams (through NumPy's Mersenne Twister), states, memory orders, arguments."""

import pickle

import numpy as np
import pytest

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


def test_numbers_follow_the_order_of_memory():
    plain = torch.empty(3, 4).uniform_(generator=generator())
    turned = torch.empty(3, 4).t().uniform_(generator=generator())
    assert torch.equal(turned.t(), plain)
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
