"""Random streams: the same seed gives the bits that PyTorch's CPU generator gives, and leaves the generator alike."""

import itertools

import numpy as np
import pytest
import torch

import rushlight

pytestmark = pytest.mark.filterwarnings("ignore:(from|to - 1) is out of bounds")

SEEDS = (0, 1, 12345, 2**40 + 7)
SHAPES = ((), (1,), (7,), (15,), (16,), (17,), (40,), (3, 5), (4, 0), (25, 41), (70_001,))
FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")


def bits(x):
    """The elements as bytes in the order of indices, NaNs and all."""
    if isinstance(x, rushlight.Tensor):
        x = x.contiguous()
        return (x.view(rushlight.int16) if x.dtype == rushlight.bfloat16 else x).numpy().tobytes()
    x = x.contiguous()
    return (x.view(torch.int16) if x.dtype == torch.bfloat16 else x).numpy().tobytes()


def layouts(lib, shape, dtype):
    """Uninitialised tensors of a shape: contiguous, and where it has dimensions with other strides."""
    yield lib.zeros(shape, dtype=dtype)
    if len(shape) > 0:
        yield lib.zeros((*shape, 2), dtype=dtype)[..., 0]
        yield lib.zeros(shape[::-1], dtype=dtype).permute(*range(len(shape))[::-1])
    if len(shape) == 2:
        yield lib.zeros((2 * shape[0], shape[1]), dtype=dtype)[::2]
        yield lib.zeros((shape[0], 1), dtype=dtype).expand(shape[0], 1)


def ramp(lib, shape, dtype, low=0.0, high=1.0):
    """The same numbers from `low` to `high` in both libraries, the extremes included."""
    count = int(np.prod(shape))
    return (lib.arange(count, dtype=lib.float64) * ((high - low) / max(count - 1, 1)) + low).reshape(shape).to(dtype)


def factories(lib):
    """(name, dtypes, function of shape, dtype and generator)."""
    yield "rand", FLOATS + COMPLEX, lambda s, d, g: lib.rand(s, dtype=d, generator=g)
    yield "randn", FLOATS + COMPLEX, lambda s, d, g: lib.randn(s, dtype=d, generator=g)
    everything = FLOATS + INTEGERS
    yield "randint", (*everything, "bool"), lambda s, d, g: lib.randint(2, s, dtype=d, generator=g)
    yield "randint.low", FLOATS + INTEGERS[1:], lambda s, d, g: lib.randint(-100, 100, s, dtype=d, generator=g)
    wide = ("int64", "float32", "float64")
    yield "randint.wide", wide, lambda s, d, g: lib.randint(-(2**40), 2**62, s, dtype=d, generator=g)
    yield "randperm", everything, lambda s, d, g: lib.randperm(min(int(np.prod(s)), 100), dtype=d, generator=g)
    yield "randperm.long", ("int64",), lambda s, d, g: lib.randperm(int(np.prod(s)), dtype=d, generator=g)
    yield "normal.floats", FLOATS, lambda s, d, g: lib.normal(2.0, 3.0, s, dtype=d, generator=g)
    yield "normal.mean", FLOATS, lambda s, d, g: lib.normal(ramp(lib, s, d), 3.0, generator=g)
    yield "normal.std", FLOATS, lambda s, d, g: lib.normal(1.5, ramp(lib, s, d), generator=g)
    yield "normal.tensors", FLOATS, lambda s, d, g: lib.normal(ramp(lib, s, d), ramp(lib, s, d), generator=g)
    yield "normal.broadcast", FLOATS, lambda s, d, g: lib.normal(ramp(lib, (3, 1), d), ramp(lib, (5,), d), generator=g)
    yield "bernoulli", FLOATS, lambda s, d, g: lib.bernoulli(ramp(lib, s, d), generator=g)
    yield "bernoulli.p", everything, lambda s, d, g: lib.bernoulli(lib.zeros(s, dtype=d), 0.3, generator=g)
    yield "poisson", FLOATS, lambda s, d, g: lib.poisson(ramp(lib, s, d, 0, 60), generator=g)
    weights = lambda s, d: ramp(lib, (3, max(int(np.prod(s)) // 3, 4)), d, 0.01, 1.0)
    yield "multinomial.1", FLOATS, lambda s, d, g: lib.multinomial(weights(s, d), 1, generator=g)
    # Without replacement the indices of the largest numbers: equal ones, as 16 bits have them, are in no certain order.
    yield "multinomial", FLOATS[:2], lambda s, d, g: lib.multinomial(weights(s, d)[1], 3, generator=g)
    yield "multinomial.rows", FLOATS[:2], lambda s, d, g: lib.multinomial(weights(s, d), 4, generator=g)
    yield "multinomial.again", FLOATS, lambda s, d, g: lib.multinomial(weights(s, d), 50, True, generator=g)
    yield (
        "binomial",
        FLOATS[:2],
        lambda s, d, g: lib.binomial(ramp(lib, s, d, 0, 60).round(), ramp(lib, s, d), generator=g),
    )
    like = lambda s, d: lib.zeros(s, dtype=d)
    yield "rand_like", FLOATS + COMPLEX, lambda s, d, g: lib.rand_like(like(s, d), generator=g)
    yield "randn_like", FLOATS + COMPLEX, lambda s, d, g: lib.randn_like(like(s, d), generator=g)
    yield "randint_like", everything, lambda s, d, g: lib.randint_like(like(s, d), 100, generator=g)
    yield "randint_like.low", everything, lambda s, d, g: lib.randint_like(like(s, d), 3, 100, generator=g)


def fills(lib):
    """(name, dtypes, function of a tensor and a generator that fills it)."""
    everything = FLOATS + INTEGERS
    yield "uniform_", FLOATS, lambda x, g: x.uniform_(generator=g)
    yield "uniform_.range", FLOATS, lambda x, g: x.uniform_(-3, 5.5, generator=g)
    yield "normal_", FLOATS + COMPLEX, lambda x, g: x.normal_(generator=g)
    yield "normal_.scaled", FLOATS + COMPLEX, lambda x, g: x.normal_(1.5, 0.1, generator=g)
    yield "random_", (*everything, "bool"), lambda x, g: x.random_(generator=g)
    yield "random_.to", everything, lambda x, g: x.random_(100, generator=g)
    yield "random_.from", FLOATS + INTEGERS[1:], lambda x, g: x.random_(-100, 27, generator=g)
    yield "random_.open", everything, lambda x, g: x.random_(3, None, generator=g)
    yield "bernoulli_", (*everything, "bool"), lambda x, g: x.bernoulli_(generator=g)
    yield "bernoulli_.p", (*everything, "bool"), lambda x, g: x.bernoulli_(0.3, generator=g)
    for dtype in ("float32", "float64", "bfloat16"):
        chances = lambda x, d=dtype: ramp(lib, tuple(x.shape), getattr(lib, d))
        yield f"bernoulli_.{dtype}", (*everything, "bool"), lambda x, g, p=chances: x.bernoulli_(p(x), generator=g)
    yield "exponential_", FLOATS, lambda x, g: x.exponential_(generator=g)
    yield "exponential_.rate", FLOATS, lambda x, g: x.exponential_(2.5, generator=g)
    yield "cauchy_", FLOATS, lambda x, g: x.cauchy_(generator=g)
    yield "cauchy_.scaled", FLOATS, lambda x, g: x.cauchy_(1.5, 0.3, generator=g)
    yield "log_normal_", FLOATS, lambda x, g: x.log_normal_(generator=g)
    yield "log_normal_.scaled", FLOATS, lambda x, g: x.log_normal_(0.1, 0.5, generator=g)
    yield "geometric_", everything, lambda x, g: x.geometric_(0.3, generator=g)


def by_default(lib):
    """As `factories`, from the default generator."""
    ones = lambda s, d: lib.ones(s, dtype=d)
    functional = lib.nn.functional
    yield "dropout", ("float32", "float64", "bfloat16"), lambda s, d, g: functional.dropout(ones(s, d), 0.3)
    yield "alpha_dropout", FLOATS, lambda s, d, g: functional.alpha_dropout(ones(s, d), 0.3, training=True)


FACTORIES = {name: (dtypes, call) for name, dtypes, call in factories(rushlight)}
FILLS = {name: (dtypes, call) for name, dtypes, call in fills(rushlight)}
DEFAULT = {name: (dtypes, call) for name, dtypes, call in by_default(rushlight)}
THEIRS = {name: call for name, _, call in itertools.chain(factories(torch), fills(torch), by_default(torch))}


def generators(seed):
    return rushlight.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)


def same_state(ours, theirs):
    np.testing.assert_array_equal(ours.get_state().numpy(), theirs.get_state().numpy(), "states differ")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name in FACTORIES for dtype in FACTORIES[name][0]])
def test_factories(name, dtype, shape):
    for seed in SEEDS:
        ours, theirs = generators(seed)
        actual = FACTORIES[name][1](shape, getattr(rushlight, dtype), ours)
        expected = THEIRS[name](shape, getattr(torch, dtype), theirs)
        assert actual.dtype == getattr(rushlight, str(expected.dtype).partition(".")[2])
        assert tuple(actual.shape) == tuple(expected.shape)
        assert bits(actual) == bits(expected), f"seed {seed}"
        same_state(ours, theirs)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name in FILLS for dtype in FILLS[name][0]])
def test_fills(name, dtype, shape):
    for seed in SEEDS[:2]:
        pairs = zip(
            layouts(rushlight, shape, getattr(rushlight, dtype)),
            layouts(torch, shape, getattr(torch, dtype)),
            strict=True,
        )
        for at, (x, y) in enumerate(pairs):
            ours, theirs = generators(seed)
            FILLS[name][1](x, ours)
            THEIRS[name](y, theirs)
            assert bits(x) == bits(y), f"seed {seed}, layout {at}"
            same_state(ours, theirs)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name in DEFAULT for dtype in DEFAULT[name][0]])
def test_default_generator(name, dtype, shape):
    for seed in SEEDS:
        rushlight.manual_seed(seed)
        torch.manual_seed(seed)
        actual = DEFAULT[name][1](shape, getattr(rushlight, dtype), None)
        expected = THEIRS[name](shape, getattr(torch, dtype), None)
        assert bits(actual) == bits(expected), f"seed {seed}"
        same_state(rushlight.default_generator, torch.default_generator)


def test_a_mixed_session_stays_in_step():
    ours, theirs = generators(99)
    for i in range(500):
        size = i * 7 % 90
        for lib, g in ((rushlight, ours), (torch, theirs)):
            x = lib.empty(size)
            (x.normal_, x.uniform_, x.double().normal_, x.exponential_)[i % 4](generator=g)
            lib.randperm(size, generator=g)
        assert bits(rushlight.randn(3, generator=ours)) == bits(torch.randn(3, generator=theirs))
    same_state(ours, theirs)


def test_states_are_exchanged():
    ours, theirs = generators(5)
    torch.randn(1001, generator=theirs)
    ours.set_state(rushlight.from_numpy(theirs.get_state().numpy()))
    assert bits(rushlight.randn(40, generator=ours)) == bits(torch.randn(40, generator=theirs))
    theirs.set_state(torch.from_numpy(ours.get_state().numpy()))
    assert bits(rushlight.rand(40, generator=ours)) == bits(torch.rand(40, generator=theirs))


@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize("dimension", [1, 2, 100, 21201])
def test_sobol_sequences(dimension, scramble):
    ours = rushlight.quasirandom.SobolEngine(dimension, scramble, seed=5)
    theirs = torch.quasirandom.SobolEngine(dimension, scramble, seed=5)
    for n in (1, 30, 3):
        assert bits(ours.draw(n)) == bits(theirs.draw(n))
        assert bits(ours.fast_forward(100).quasi) == bits(theirs.fast_forward(100).quasi)
    assert bits(ours.draw(2, dtype=rushlight.float64)) == bits(theirs.draw(2, dtype=torch.float64))
