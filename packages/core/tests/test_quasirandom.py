"""Sobol sequences: SciPy's plain ones, PyTorch's scrambled ones, the same however they are drawn."""

import numpy as np
import pytest

import rushlight as torch

qmc = pytest.importorskip("scipy.stats.qmc")
SobolEngine = torch.quasirandom.SobolEngine


@pytest.mark.parametrize("dimension", [1, 2, 3, 50, 21201])
def test_plain_points_are_those_of_scipy(dimension):
    n = 64 if dimension < 1000 else 8
    expected = qmc.Sobol(dimension, scramble=False, bits=30).random(n)
    np.testing.assert_array_equal(SobolEngine(dimension).draw(n, dtype=torch.float64).numpy(), expected)


def test_scrambled_points_are_those_of_pytorch():  # 2.13
    expected = [
        [0.19947312772274017, 0.17093220353126526, 0.7493569254875183],
        [0.6922082901000977, 0.7114949226379395, 0.48982980847358704],
        [0.8505491018295288, 0.2962706387042999, 0.7879806160926819],
    ]
    np.testing.assert_array_equal(SobolEngine(3, True, 7).draw(3).numpy(), np.float32(expected))


@pytest.mark.parametrize("scramble", [False, True])
def test_a_sequence_does_not_depend_on_how_it_is_drawn(scramble):
    make = lambda: SobolEngine(5, scramble, seed=3)
    whole = make().draw(300)
    engine = make()
    parts = torch.cat([engine.draw(n) for n in (1, 0, 2, 61, 64, 100, 72)])
    assert torch.equal(parts, whole)
    assert engine.num_generated == 300
    assert torch.equal(engine.reset().draw(300), whole)
    assert torch.equal(make().fast_forward(37).draw(20), whole[37:57])
    assert torch.equal(engine.fast_forward(10**6).quasi, make().fast_forward(10**6 + 300).quasi)


@pytest.mark.parametrize("scramble", [False, True])
def test_powers_of_two_are_balanced(scramble):
    x = SobolEngine(10, scramble).draw_base2(8).numpy()
    for column in x.T:
        np.testing.assert_array_equal(np.sort(np.floor(column * 256)), np.arange(256))


def test_out_and_dtype():
    out = torch.empty(0, dtype=torch.float64)
    assert SobolEngine(2).draw(4, out=out) is out
    assert out.shape == (4, 2)
    assert SobolEngine(2).draw(4).dtype == torch.float32
    assert repr(SobolEngine(3, scramble=True, seed=9)) == "SobolEngine(dimension=3, scramble=True, seed=9)"


def test_errors():
    engine = SobolEngine(2)
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match="Supported range of dimensionality"):
            SobolEngine(dimension)
    with pytest.raises(RuntimeError, match="n=-1"):
        engine.draw(-1)
    with pytest.raises(NotImplementedError, match="float16"):
        engine.draw(dtype=torch.float16)
    with pytest.raises(ValueError, match=r"2\*\*30 points, 0 were drawn"):
        engine.draw(2**31)
    assert engine.draw(3).shape == (3, 2)
    with pytest.raises(ValueError, match="balance properties"):
        engine.draw_base2(2)
    assert engine.fast_forward(2**30 - 4).draw().shape == (1, 2)
    with pytest.raises(ValueError, match="Call reset"):
        engine.draw()
