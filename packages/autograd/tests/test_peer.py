"""The same programs in PyTorch and here; runs where PyTorch is installed."""

import warnings

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

PROGRAMS = {
    "leaf in place": "x.mul_(2)",
    "view of leaf in place": "x[1:].mul_(2)",
    "saved result": "y = x.tanh(); y.mul_(2); y.sum().backward()",
    "saved input": "h = x * 1; y = h * h; h.add_(1); y.sum().backward()",
    "harmless write": "h = x * 1; y = h + 1; h.add_(1); y.sum().backward(); out = x.grad",
    "twice": "y = (x * x).sum(); y.backward(); y.backward()",
    "twice without saves": "y = (x + x).sum(); y.backward(); y.backward(); out = x.grad",
    "out": "lib.add(x, x, out=lib.zeros(3, dtype=x.dtype))",
    "non-scalar": "(x * 2).backward()",
    "complex scalar": "(x * 1j).sum().backward()",
    "unused": "lib.autograd.grad(x.sum(), w)",
    "no grad": "lib.autograd.grad(x.sum(), lib.ones(2))",
    "materialize": "out = lib.autograd.grad(x.sum(), w, materialize_grads=True)[0]",
    "write to view": "b = x * 1; b[1:].mul_(w[1:]); (b * b).sum().backward(); out = grads()",
    "write to base": "b = x * 1; v = b[1:]; b.mul_(w); (v * v).sum().backward(); out = grads()",
    "view made first": "b = lib.zeros(3, dtype=x.dtype); v = b[1:]; b.add_(x); v.sum().backward(); out = x.grad",
    "views of views": "b = x * 1; v = b.view(3, 1).t()[:, 1:]; v.mul_(3); (b * w).sum().backward(); out = x.grad",
    "expanded write": "b = lib.zeros(2, 3, dtype=x.dtype); b.copy_(x); (b * b).sum().backward(); out = x.grad",
    "assignment": "b = lib.zeros(2, 3, dtype=x.dtype); b[0] = x; b[1, 1:] = w[1:]; b.sum().backward(); out = grads()",
    "masked assignment": "b = x * 1; b[b > 1.5] = w[0]; (b * b).sum().backward(); out = grads()",
    "no_grad view in place": "h = x * 1\nwith lib.no_grad(): v = h[1:]\nv.mul_(2)",
    "unbind in place": "(x * 1).unbind(0)[0].mul_(2)",
    "detach shares versions": "y = x.exp(); y.detach().mul_(2); y.sum().backward()",
    "data does not": "y = x.exp(); y.data.mul_(2); y.sum().backward(); out = x.grad",
    "hooks": "h = x * 2; h.register_hook(lambda g: g * 3); (h * w).sum().backward(); out = grads()",
    "double backward": (
        "y = (x**3 * w).sum(); lib.autograd.grad(y, x, create_graph=True)[0].sum().backward(); out = grads()"
    ),
    "inference tensor in place": "with lib.inference_mode(): i = lib.ones(3)\ni.mul_(2)",
    "inference tensor saved": "with lib.inference_mode(): i = lib.ones(3)\nx * i",
    "inference requires_grad": "with lib.inference_mode(): i = lib.ones(3)\ni.requires_grad_()",
    "requires_grad of int": "lib.arange(3).requires_grad_()",
    "requires_grad of result": "(x * 2).requires_grad = False",
    "grad of wrong shape": "x.grad = lib.ones(2, dtype=x.dtype)",
    "detach_ of view": "(x * 2)[1:].detach_()",
    "retain_grad": "h = x * 2; h.retain_grad(); h.mul_(w); (h * h).sum().backward(); out = h.grad",
    "names": "n = (x * w).grad_fn; out = [type(f).__name__ for f in (n, x.exp().grad_fn, n.next_functions[0][0])]",
    "function": """
class F(lib.autograd.Function):
    @staticmethod
    def forward(ctx, a, n):
        ctx.save_for_backward(a)
        ctx.n = n
        return a ** n
    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * ctx.n * a ** (ctx.n - 1), None
y = F.apply(x, 3)
g, = lib.autograd.grad(y.sum(), x, create_graph=True)
g.sum().backward()
out = x.grad
""",
}


def outcome(lib, program):
    make = lambda values: lib.from_numpy(np.array(values)).requires_grad_()
    x, w = make([1.0, 2.0, 3.0]), make([4.0, 5.0, 6.0])
    scope = {"lib": lib, "x": x, "w": w, "grads": lambda: lib.stack([x.grad, w.grad]), "out": None}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(program, scope)
    except Exception as error:
        return type(error), str(error).replace("rushlight.", "torch.").replace("Backward0", "")[:50]
    out = scope["out"]
    return out.tolist() if isinstance(out, lib.Tensor) else out


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_end_alike(name):
    expected, got = outcome(torch, PROGRAMS[name]), outcome(rushlight, PROGRAMS[name])
    if isinstance(expected, list) and not isinstance(expected[0], str):
        np.testing.assert_allclose(got, expected)
    else:
        assert got == expected
