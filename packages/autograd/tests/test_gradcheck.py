"""gradcheck finds wrong gradients and says where."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import Function, gradcheck, gradgradcheck


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] * 2.1


@pytest.mark.parametrize("fast_mode", [False, True])
def test_wrong_gradients_are_found(leaf, fast_mode):
    x = leaf([1.0, 2.0])
    assert gradcheck(lambda x: x * x, x, fast_mode=fast_mode)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, x, fast_mode=fast_mode)
    assert not gradcheck(Wrong.apply, x, fast_mode=fast_mode, raise_exception=False)


def test_wrong_second_derivatives_are_found(leaf):
    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            x = ctx.saved_tensors[0]
            return grad * 3 * (x * x.detach())

    x = leaf([1.0, 2.0])
    assert gradcheck(Half.apply, x)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradgradcheck(Half.apply, x)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_complex_functions(leaf, fast_mode):
    z = leaf([1 + 2j, -0.5j], np.complex128)
    assert gradcheck(lambda z: z * z.conj() + z * (1 + 1j), z, fast_mode=fast_mode)
    assert gradcheck(lambda z: z.abs(), z, fast_mode=fast_mode)
    assert gradgradcheck(lambda z: z.exp() / z, z)


def test_inputs_must_require_grad():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, torch.ones(2))


@pytest.mark.parametrize("fast_mode", [False, True])
def test_results_without_gradients_must_be_constant(leaf, fast_mode):
    x = leaf([0.5, 1.5])
    assert gradcheck(lambda x: x > 1, x, fast_mode=fast_mode)
    assert gradcheck(lambda x: torch.ones(2), x, fast_mode=fast_mode)
    with pytest.raises(RuntimeError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, x, fast_mode=fast_mode)
    with pytest.raises(TypeError, match="func returns Tensors, got None"):
        gradcheck(lambda x: None, x, fast_mode=fast_mode)


def test_single_precision_is_warned_of():
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="double precision"):
        gradcheck(lambda x: x * 2, x, eps=1e-2, atol=1e-2)


def test_strided_inputs(leaf):
    x = torch.from_numpy(np.arange(6.0).reshape(2, 3).T).requires_grad_()
    assert gradcheck(lambda x: (x * x).sum(0), x)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_forward_mode_is_checked(fast_mode, leaf):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

        @staticmethod
        def jvp(ctx, tangent):
            return 3 * ctx.saved_tensors[0] * tangent

    x, z = leaf([1.0, 2.0]), leaf([1.0 + 2j, 3.0], np.complex128)
    options = {"check_forward_ad": True, "fast_mode": fast_mode}
    for function in (lambda x: x.exp() * x, lambda x: (x.abs(), x.sum())):
        assert gradcheck(function, x, **options)
        assert gradcheck(function, z, **options)
    assert gradcheck(Wrong.apply, x, fast_mode=fast_mode)
    with pytest.raises(RuntimeError, match="mismatch in forward mode"):
        gradcheck(Wrong.apply, x, **options)
    assert not gradcheck(Wrong.apply, x, check_backward_ad=False, raise_exception=False, **options)
    assert gradgradcheck(lambda x: x.exp() * x, x, check_fwd_over_rev=True, check_rev_over_rev=False)
    with pytest.raises(AssertionError, match="at least one of"):
        gradcheck(Wrong.apply, x, check_backward_ad=False)
