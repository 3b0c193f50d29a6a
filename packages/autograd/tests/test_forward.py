"""Forward mode through views, writes, backward passes and user functions; test_rules.py has every operator."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import rushlight as torch
import rushlight.autograd.forward_ad as fwAD
from rushlight.autograd import Function, grad


def draw(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(tuple(shape)) + 1j * rng.standard_normal(tuple(shape))
    return torch.from_numpy(np.asarray(values if dtype.is_complex else values.real)).to(dtype)


def tangent_of(value):
    return fwAD.unpack_dual(value).tangent


def curve(x):
    return (x.exp() * x).sum() + x.tanh().prod()


def test_second_derivatives_either_way_round():
    x, v = draw((3,), torch.float64), draw((3,), torch.float64, 1)
    recorded = x.clone().requires_grad_()
    (first,) = grad(curve(recorded), recorded, create_graph=True)
    (expected,) = grad(first, recorded, v)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x.clone().requires_grad_(), v)
        (slope,) = grad(curve(dual), dual)
        assert torch.allclose(tangent_of(slope), expected)
        along = tangent_of(curve(fwAD.make_dual(recorded, v)))
        assert torch.allclose(grad(along, recorded)[0], expected)
        direction = v.clone().requires_grad_()
        along = tangent_of(curve(fwAD.make_dual(x, direction)))
        assert torch.allclose(grad(along, direction)[0], first)


def test_views_share_tangents():
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.ones(3), torch.tensor([1.0, 2.0, 3.0]))
        y = x.clone()
        part = y[1:]
        part.mul_(2)
        assert tangent_of(y).tolist() == [1, 4, 6]
        assert tangent_of(part).tolist() == [4, 6]
        y.mul_(10)
        assert tangent_of(part).tolist() == [40, 60]
        z = torch.zeros(3)
        z[0] = x[2] * 5
        assert tangent_of(z).tolist() == [15, 0, 0]
        first, *_ = torch.unbind(x)
        assert tangent_of(first).item() == 1
        assert tangent_of(x.reshape(3, 1).t()).tolist() == [[1, 2, 3]]


def test_writes_overwrite_tangents():
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.ones(2), torch.tensor([1.0, 2.0]))
        y = x.clone()
        y.zero_()
        assert tangent_of(y).tolist() == [0, 0]
        y.copy_(x)
        assert tangent_of(y).tolist() == [1, 2]
        y.add_(x, alpha=3)
        assert tangent_of(y).tolist() == [4, 8]
        y.unsqueeze_(0)
        assert tangent_of(y).tolist() == [[4, 8]]
        with pytest.raises(NotImplementedError, match="add_out that does not support it"):
            torch.add(x, 1, out=torch.empty(2))


def test_what_carries_no_tangent():
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.ones(2), torch.ones(2))
        for value in (x.detach(), x > 1, x.argmax(), torch.ones(2), fwAD.unpack_dual(x).primal * 2):
            assert tangent_of(value) is None
        with torch.no_grad():
            assert tangent_of(x * 2).tolist() == [2, 2]
        with torch.inference_mode():
            assert tangent_of(x * 2) is None
    assert tangent_of(x) is None
    assert x.tolist() == [1, 1]
    with fwAD.dual_level():
        assert tangent_of(x * 2) is None


def test_levels():
    level = fwAD.enter_dual_level()
    with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
        fwAD.enter_dual_level()
    with pytest.raises(RuntimeError, match="not the last one"):
        fwAD.exit_dual_level(level=level + 1)
    fwAD.exit_dual_level(level=level)
    with pytest.raises(RuntimeError, match="no level is open"):
        fwAD.exit_dual_level()


def test_wrong_use():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="no level exists"):
        fwAD.make_dual(x, x)
    with fwAD.dual_level():
        for primal, tangent, error, message in (
            (x, torch.ones(3), RuntimeError, "a different size than that of the original"),
            (torch.arange(2), x, ValueError, "Expected primal to be floating point or complex"),
            (x, torch.arange(2), ValueError, "Expected tangent to be floating point or complex"),
            (fwAD.make_dual(x, x), x, RuntimeError, "already has a forward gradient"),
        ):
            with pytest.raises(error, match=message):
                fwAD.make_dual(primal, tangent)
        with pytest.raises(RuntimeError, match="only level 0"):
            fwAD.make_dual(x, x, level=2)


class Scaled(Function):
    @staticmethod
    def forward(x, factor=3.0):
        return x * x * factor, x > 0

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.factor = inputs
        ctx.save_for_forward(x)
        ctx.save_for_backward(x)

    @staticmethod
    def vjp(ctx, g, _):
        (x,) = ctx.saved_tensors
        return 2 * x * ctx.factor * g, None

    @staticmethod
    def jvp(ctx, tangent, _):
        (x,) = ctx.saved_tensors
        return 2 * x * ctx.factor * tangent, None


def test_user_functions():
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.ones(2), torch.tensor([1.0, 2.0]))
        assert tangent_of(Scaled.apply(x)[0]).tolist() == [6, 12]
        assert tangent_of(Scaled.apply(x, factor=1.0)[0]).tolist() == [2, 4]
    recorded = torch.ones(2, requires_grad=True)
    assert grad(Scaled.apply(recorded)[0].sum(), recorded)[0].tolist() == [6, 6]


def test_user_functions_that_are_wrong():
    class Plain(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    class Flat(Plain):
        @staticmethod
        def jvp(ctx, tangent):
            return tangent.sum()

    class Two(Plain):
        @staticmethod
        def jvp(ctx, tangent):
            return tangent, tangent

    with fwAD.dual_level():
        x = fwAD.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
            Plain.apply(x)
        with pytest.raises(RuntimeError, match="must have its shape and dtype"):
            Flat.apply(x)
        with pytest.raises(RuntimeError, match="a tangent for each of 1 results, got 2"):
            Two.apply(x)
    with pytest.raises(TypeError, match="no keyword arguments"):
        Plain.apply(x=1)
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):

        class Both(Scaled):
            @staticmethod
            def backward(ctx, g):
                return g


def test_levels_belong_to_threads():
    with fwAD.dual_level():
        dual = fwAD.make_dual(torch.ones(2), torch.full((2,), 3.0))

        def elsewhere():
            with pytest.raises(RuntimeError, match="no level exists"):
                fwAD.make_dual(torch.ones(2), torch.ones(2))
            with fwAD.dual_level():
                mine = fwAD.make_dual(torch.ones(2), torch.ones(2))
                return fwAD.unpack_dual(dual * 2).tangent, fwAD.unpack_dual(mine * 2).tangent

        with ThreadPoolExecutor(1) as pool:
            foreign, own = pool.submit(elsewhere).result()
        assert foreign is None
        np.testing.assert_array_equal(own, [2, 2])
        np.testing.assert_array_equal(fwAD.unpack_dual(dual * 2).tangent, [6, 6])


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    "draw_from",
    [
        lambda x: (x * 1).bernoulli_(0.5) * x,
        lambda x: torch.normal(x, x),
        lambda x: torch._standard_gamma(x),
        lambda x: torch._sample_dirichlet(x),
        lambda x: torch.bernoulli(x / 2, generator=torch.Generator().manual_seed(3)) * x,
    ],
)
def test_random_operators_draw_once(draw_from, recorded):
    def drawn(wrap):
        torch.manual_seed(0)
        value = draw_from(wrap(torch.ones(8, requires_grad=recorded)))
        return value.detach().tolist(), torch.rand(1).item()

    with fwAD.dual_level():
        assert drawn(lambda x: fwAD.make_dual(x, torch.ones(8))) == drawn(lambda x: x)
