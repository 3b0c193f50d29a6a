"""The counting generator: known answers, streams that do not depend on how they are drawn, distributions."""

import copy
import pickle

import numpy as np
import pytest

import rushlight as torch

SEED = 0x123456789ABCDEF0


def philox(seed):
    return torch.Generator(algorithm="philox4x32-10").manual_seed(seed)


def philox_words(seed, n):
    """Philox 4x32-10 as the paper has it, a block at a time."""
    words = []
    for block in range(-(-n // 4)):
        c = [block & 0xFFFFFFFF, block >> 32, 0, 0]
        k = [seed & 0xFFFFFFFF, seed >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        words += c
    return np.array(words[:n], dtype=np.uint64)


def drawn_words(g, n):
    """The words of the stream, in pairs that make an int64 each."""
    pairs = torch.empty(n // 2, dtype=torch.int64).random_(-(2**63), None, generator=g).numpy().view(np.uint64)
    return np.stack([pairs >> np.uint64(32), pairs & np.uint64(0xFFFFFFFF)], 1).ravel()


def test_known_answer():  # of the authors' library Random123: counter 0, key 0
    assert [hex(word) for word in drawn_words(philox(0), 4)] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]


def test_words_are_those_of_the_paper():
    np.testing.assert_array_equal(drawn_words(philox(SEED), 3000), philox_words(SEED, 3000))


def test_uniforms_take_the_low_bits():
    w = philox_words(SEED, 40)
    x = torch.rand(40, generator=philox(SEED))
    np.testing.assert_array_equal(x.numpy(), (w & np.uint64(2**24 - 1)).astype(np.float32) * np.float32(2**-24))


DRAWS = {
    "uniform_": lambda x, g: x.uniform_(generator=g),
    "normal_": lambda x, g: x.normal_(1, 2, generator=g),
    "log_normal_": lambda x, g: x.log_normal_(generator=g),
    "exponential_": lambda x, g: x.exponential_(generator=g),
    "cauchy_": lambda x, g: x.cauchy_(generator=g),
    "geometric_": lambda x, g: x.geometric_(0.3, generator=g),
    "bernoulli_": lambda x, g: x.bernoulli_(0.3, generator=g),
    "random_": lambda x, g: x.random_(generator=g),
    "random_ below": lambda x, g: x.random_(100, generator=g),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", DRAWS)
def test_a_stream_does_not_depend_on_how_it_is_split(name, dtype):
    g, total = philox(1), 70_001
    whole = DRAWS[name](torch.empty(total, dtype=dtype), g)
    parts = philox(1)
    pieces = [DRAWS[name](torch.empty(n, dtype=dtype), parts) for n in (1, 15, 16, 1000, 30_000)]
    pieces.append(DRAWS[name](torch.empty(total - sum(map(len, pieces)), dtype=dtype), parts))
    assert torch.equal(torch.cat(pieces), whole)
    assert parts.get_offset() == g.get_offset()


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", DRAWS)
def test_threads_draw_the_same(name, threads):
    drawn = []
    for count in (1, 2, 3, 8):
        threads(count)
        drawn.append(DRAWS[name](torch.empty(200_003), philox(2)))
    assert all(torch.equal(x, drawn[0]) for x in drawn)


def test_normals_are_quantiles():
    special = pytest.importorskip("scipy.special")
    w = philox_words(SEED, 2000)
    sign, magnitude = w >> np.uint64(31), (w & np.uint64(2**31 - 1)).astype(np.float64)
    expected = special.ndtri((magnitude + 0.5) * 2**-32) * np.where(sign, -1, 1)
    x = torch.randn(2000, generator=philox(SEED))
    np.testing.assert_allclose(x.numpy(), expected, rtol=2e-6, atol=1e-8)
    w = w[::2] << np.uint64(32) | w[1::2]
    sign, magnitude = w >> np.uint64(63), (w & np.uint64(2**63 - 1)).astype(np.float64)
    expected = special.ndtri((magnitude + 0.5) * 2**-64) * np.where(sign, -1, 1)
    x = torch.randn(1000, dtype=torch.float64, generator=philox(SEED))
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-14, atol=1e-15)


def test_moments():
    for dtype in (torch.float32, torch.float64):
        x = torch.randn(400_000, dtype=dtype, generator=philox(3)).double()
        for power, moment in ((1, 0), (2, 1), (3, 0), (4, 3), (6, 15)):
            assert abs((x**power).mean().item() - moment) < 0.02 * 3**power


def test_states():
    g = philox(7)
    torch.rand(1001, generator=g)
    assert g.get_offset() == 1001
    assert g.algorithm == "philox4x32-10"
    assert g.get_state().numpy().tobytes() == (7).to_bytes(8, "little") + (1001).to_bytes(8, "little")
    other = torch.Generator(algorithm="philox4x32-10").set_state(g.get_state())
    copies = [other, g.clone_state(), pickle.loads(pickle.dumps(g)), copy.deepcopy(g), philox(7).set_offset(1001)]
    expected = torch.randn(50, generator=g)
    assert all(torch.equal(torch.randn(50, generator=each), expected) for each in copies)
    assert all(each.initial_seed() == 7 for each in copies)
    assert torch.equal(torch.rand(9, generator=g.set_offset(0)), torch.rand(9, generator=philox(7)))
    far = g.set_offset(2**64 - 2)
    assert torch.rand(8, generator=far).shape == (8,)


def test_states_of_another_algorithm_are_refused():
    with pytest.raises(RuntimeError, match="wrong size: expected 16 bytes of philox4x32-10, got 5056"):
        philox(0).set_state(torch.Generator().get_state())
    with pytest.raises(OverflowError):
        philox(0).set_offset(-1)
