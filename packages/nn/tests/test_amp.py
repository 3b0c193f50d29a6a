"""Mixed precision: the dtype that each kind of op runs in, kept casts, custom functions and scaled gradients."""

import pickle
import threading

import numpy as np
import pytest

import rushlight as rl
from rushlight import amp, nn
from rushlight.nn import functional as F

HALVES = [rl.bfloat16, rl.float16]


def wide(*shape):
    return rl.randn(*shape)


def narrow(*shape):
    return rl.randn(*shape).to(rl.bfloat16)


IN_HALF = {
    "matmul": lambda x: x(2, 3) @ wide(3, 2),
    "bmm": lambda x: rl.bmm(x(2, 2, 3), wide(2, 3, 2)),
    "addmm": lambda x: rl.addmm(wide(2), x(2, 3), wide(3, 2)),
    "einsum": lambda x: rl.einsum("ij,jk->ik", x(2, 3), wide(3, 2)),
    "linear": lambda x: F.linear(x(2, 2, 3), wide(4, 3), wide(4)),
    "conv": lambda x: F.conv2d(x(1, 2, 5, 5), wide(3, 2, 3, 3), wide(3)),
    "conv_transpose": lambda x: F.conv_transpose1d(x(1, 2, 5), wide(2, 3, 3)),
    "prelu": lambda x: F.prelu(x(2, 3), wide(3)),
    "attention": lambda x: F.scaled_dot_product_attention(x(1, 2, 3, 4), wide(1, 2, 3, 4), wide(1, 2, 3, 4)),
}
IN_FULL = {
    "mse_loss": lambda x: F.mse_loss(x(3), x(3)),
    "l1_loss": lambda x: F.l1_loss(x(3), x(3)),
    "cross_entropy": lambda x: F.cross_entropy(x(3, 4), rl.tensor([0, 1, 2])),
    "nll_loss": lambda x: F.nll_loss(x(3, 4), rl.tensor([0, 1, 2])),
    "bce_with_logits": lambda x: F.binary_cross_entropy_with_logits(x(3), x(3)),
    "prod": lambda x: x(3).prod(),
    "grid_sample": lambda x: F.grid_sample(x(1, 2, 4, 4), wide(1, 3, 3, 2), align_corners=True),
    "cat": lambda x: rl.cat([x(3), wide(3)]),
}
AS_IT_IS = {
    "softmax": lambda x: rl.softmax(x(3, 3), 1),
    "layer_norm": lambda x: F.layer_norm(x(3, 4), (4,)),
    "sum": lambda x: x(3).sum(),
    "cat": lambda x: rl.cat([x(3), x(3)]),
    "exp": lambda x: x(3).exp(),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", IN_HALF)
def test_products_run_in_the_dtype_of_the_context(name, dtype):
    with rl.autocast("cpu", dtype=dtype):
        assert IN_HALF[name](wide).dtype == dtype
        assert IN_HALF[name](narrow).dtype == dtype
    assert IN_HALF[name](wide).dtype == rl.float32


@pytest.mark.parametrize("name", IN_FULL)
def test_what_needs_digits_runs_in_float32(name):
    with rl.autocast("cpu"):
        assert IN_FULL[name](wide).dtype == rl.float32
        assert IN_FULL[name](narrow).dtype == rl.float32


@pytest.mark.parametrize("name", AS_IT_IS)
def test_other_ops_run_in_the_dtype_of_their_arguments(name):
    with rl.autocast("cpu"):
        assert AS_IT_IS[name](wide).dtype == rl.float32
        assert AS_IT_IS[name](narrow).dtype == rl.bfloat16


def test_other_dtypes_and_written_tensors_stay():
    double, whole, x = rl.ones(2, 2, dtype=rl.float64), rl.ones(2, 2, dtype=rl.int64), rl.ones(2, 2)
    with rl.autocast("cpu"):
        assert (double @ double).dtype == rl.float64
        assert (whole @ whole).dtype == rl.int64
        assert rl.mm(x, x, out=rl.empty(2, 2)).dtype == rl.float32
        assert rl.ones(2, 2).addmm_(x, x).dtype == rl.float32
        assert rl.inner(x, x).dtype == rl.float32


def test_other_devices_have_lists_of_their_own():
    x = rl.ones(2, 2)
    y = rl.ones(2, 2, device="meta")
    rl.set_autocast_enabled("meta", True)
    try:
        assert (y @ y).dtype == rl.float16
        assert rl.softmax(y.half(), 0).dtype == rl.float32
        assert (x @ x).dtype == rl.float32
    finally:
        rl.set_autocast_enabled("meta", False)


def test_contexts_nest_and_threads_have_their_own():
    x = rl.ones(2, 2)
    seen = []
    context = rl.autocast("cpu", dtype=rl.float16)
    with rl.autocast("cpu"):
        with context, context:
            assert (x @ x).dtype == rl.float16
        assert rl.get_autocast_dtype("cpu") == rl.bfloat16
        with rl.autocast("cpu", enabled=False):
            assert not rl.is_autocast_enabled("cpu")
            assert (x @ x).dtype == rl.float32
        thread = threading.Thread(target=lambda: seen.append((x @ x).dtype))
        thread.start()
        thread.join()
        assert (x @ x).dtype == rl.bfloat16
    assert seen == [rl.float32]
    with pytest.raises(KeyError), rl.autocast("cpu"):
        raise KeyError
    assert not rl.is_autocast_enabled("cpu")


def test_decorator():
    @rl.autocast("cpu")
    def product(x):
        return x @ x

    assert product(rl.ones(2, 2)).dtype == rl.bfloat16
    assert product.__name__ == "product"


def test_gradients_have_the_dtype_of_their_parameters():
    layer, x = nn.Linear(8, 4), rl.randn(16, 8)
    y = rl.randn(16, 4)
    with rl.autocast("cpu"):
        loss = F.mse_loss(layer(x), y)
    loss.backward()
    assert layer.weight.grad.dtype == rl.float32
    error = x.numpy() @ layer.weight.detach().numpy().T + layer.bias.detach().numpy() - y.numpy()
    np.testing.assert_allclose(layer.weight.grad.numpy(), error.T @ x.numpy() * 2 / error.size, atol=0.02)


def test_the_cast_of_a_parameter_is_kept_until_it_changes():
    weight, x = nn.Parameter(rl.ones(2, 2)), rl.ones(2, 2)

    def cast():
        """The node of the cast in the graph of a product."""
        return (weight @ x).grad_fn.next_functions[0][0]

    with rl.autocast("cpu"):
        with rl.no_grad():
            weight @ x
        first = cast()  # the one before has no history
        assert first is cast()
        with rl.no_grad():
            weight @ x
        assert first is cast()
        with rl.autocast("cpu", cache_enabled=False):
            assert first is not cast()
        rl.clear_autocast_cache()
        assert first is not cast()
        with rl.no_grad():
            weight.mul_(2)
        assert (weight @ x)[0, 0] == 4
        weight.data = rl.full((2, 2), 3.0)
        assert (weight @ x)[0, 0] == 6
        last = cast()
    with rl.autocast("cpu"):
        assert last is not cast()


def test_custom_functions():
    class Product(rl.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cpu", cast_inputs=rl.float32)
        def forward(ctx, x, pair):
            assert not rl.is_autocast_enabled("cpu")
            assert pair[0].dtype == rl.float32
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            assert not rl.is_autocast_enabled("cpu")
            return grad @ ctx.saved_tensors[0].T + ctx.saved_tensors[0].T @ grad, None

    class Open(rl.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cpu")
        def forward(ctx, x):
            return (x @ x).float()

        @staticmethod
        @amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            assert rl.is_autocast_enabled("cpu")
            return grad

    x = rl.ones(2, 2, requires_grad=True)
    with rl.autocast("cpu"):
        y = Product.apply(x, [narrow(1)])
        z = Open.apply(x)
    assert y.dtype == rl.float32
    (y + z).sum().backward()


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoints_compute_again_in_the_same_dtypes(use_reentrant):
    layer, x = nn.Linear(3, 3), rl.randn(2, 3, requires_grad=True)
    dtypes = []

    def block(x):
        y = layer(x)
        dtypes.append(y.dtype)
        return y.exp()

    with rl.autocast("cpu"):
        loss = rl.utils.checkpoint.checkpoint(block, x, use_reentrant=use_reentrant).sum()
    loss.backward()
    assert dtypes == [rl.bfloat16, rl.bfloat16]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: rl.autocast(3), "ValueError: Expected `device_type` of type `str`"),
        (lambda: rl.autocast("meta"), "RuntimeError: User specified an unsupported autocast device_type"),
        (lambda: rl.autocast("cpu", dtype=3), "TypeError: autocast.* must be torch.dtype, not int"),
        (lambda: rl.set_autocast_dtype("cpu", rl.float64), "RuntimeError: set_autocast_dtype"),
        (lambda: rl.is_autocast_enabled("nowhere"), "RuntimeError: .*nowhere"),
    ],
)
def test_errors(call, error):
    kind, text = error.split(": ", 1)
    with pytest.raises(Exception, match=text) as raised:
        call()
    assert type(raised.value).__name__ == kind


def test_a_wide_dtype_disables_the_context():
    with pytest.warns(UserWarning, match="Disabling autocast"):
        context = rl.autocast("cpu", dtype=rl.float64)
    with context:
        assert not rl.is_autocast_enabled("cpu")


@pytest.mark.skipif(rl.cuda.is_available(), reason="with CUDA it is on")
def test_without_cuda_its_context_is_off():
    with pytest.warns(UserWarning, match="CUDA is not available"):
        context = rl.cuda.amp.autocast()
    with context:
        assert not rl.is_autocast_enabled("cuda")
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not rl.cuda.amp.GradScaler().is_enabled()


def setting(**options):
    param = nn.Parameter(rl.ones(2))
    return param, rl.optim.SGD([param], lr=0.5), amp.GradScaler("cpu", **options)


def test_scaled_gradients_step_as_unscaled_ones():
    param, optimizer, scaler = setting(init_scale=1024.0)
    loss = (param * param).sum()
    scaled = scaler.scale(loss)
    assert scaled.item() == 2048
    scaled.backward()
    scaler.step(optimizer)
    scaler.update()
    assert param.tolist() == [0, 0]
    assert param.grad.tolist() == [2, 2]


def test_the_factor_grows_after_an_interval_and_shrinks_at_infinity():
    param, optimizer, scaler = setting(init_scale=8.0, growth_interval=2, growth_factor=4.0, backoff_factor=0.25)
    factors = []
    for grad in (1, 1, float("inf"), float("nan"), 1, 1):
        scaler.scale(param.sum()).backward()
        param.grad.fill_(grad)
        before = param.tolist()
        scaler.step(optimizer)
        assert (param.tolist() == before) == (not np.isfinite(grad))
        scaler.update()
        factors.append(scaler.get_scale())
    assert factors == [8, 32, 8, 2, 2, 8]
    scaler.update(3.0)
    assert scaler.get_scale() == 3


def test_the_order_of_calls_is_checked():
    param, optimizer, scaler = setting()
    for call in (scaler.update, lambda: scaler.step(optimizer), lambda: scaler.unscale_(optimizer)):
        with pytest.raises(AssertionError, match="but _scale is None"):
            call()
    losses = scaler.scale([param.sum(), (param.sum(),)])
    assert isinstance(losses[1], tuple)
    with pytest.raises(ValueError, match="outputs must be a Tensor"):
        scaler.scale(3)
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler.step(optimizer)
    param, optimizer, scaler = setting()
    scaler.scale(param.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="unscale_.. has already been called"):
        scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="may only be pickled"):
        pickle.dumps(scaler)
    with pytest.raises(RuntimeError, match="Closure use"):
        scaler.step(optimizer, closure=lambda: 0)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="step.. has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="unscale_.. is being called after step"):
        scaler.unscale_(optimizer)
    scaler.update()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    with pytest.raises(ValueError, match="one number"):
        scaler.update(rl.ones(2))
    half = nn.Parameter(rl.ones(2, dtype=rl.float16))
    half.grad = half.detach().clone()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(rl.optim.SGD([half], lr=0.1))


def test_state_of_a_scaler():
    _, _, scaler = setting(init_scale=4.0)
    _, _, other = setting()
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict() == pickle.loads(pickle.dumps(scaler)).state_dict()
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict({})
    with pytest.raises(AssertionError, match="growth factor must be"):
        setting(growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor must be"):
        setting(backoff_factor=1.0)


def test_a_disabled_scaler_does_nothing():
    param, optimizer, scaler = setting(enabled=False)
    loss = param.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert param.tolist() == [0.5, 0.5]
    assert scaler.get_scale() == 1
    assert scaler.state_dict() == {}


def test_gradients_of_embeddings_are_unscaled_too():
    table = nn.Embedding(4, 2, sparse=True)
    optimizer, scaler = rl.optim.SGD(table.parameters(), lr=1.0), amp.GradScaler("cpu")
    before = table.weight.detach().clone()
    scaler.scale(table(rl.tensor([1])).sum()).backward()
    scaler.step(optimizer)
    steps = (before - table.weight).detach().numpy()
    np.testing.assert_allclose(steps, [[0, 0], [1, 1], [0, 0], [0, 0]], atol=1e-6)


def test_training_in_half_learns():
    rl.manual_seed(0)
    x = rl.randn(64, 4)
    y = x @ rl.randn(4, 1)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer, scaler = rl.optim.Adam(model.parameters(), lr=0.02), amp.GradScaler("cpu")
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        with rl.autocast("cpu", dtype=rl.float16):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 5
