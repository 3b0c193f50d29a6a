"""The gradient rules of every operator: against finite differences, twice, real and complex, and
forward; what rules may say."""

import zlib

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import forward_ad, grad, gradcheck, gradgradcheck, strict_zero
from rushlight.autograd._batching import map_batch
from rushlight.autograd._rules import RuleError, compile_rule
from rushlight.autograd.functional import jvp
from rushlight.plugin import Op, load, operators, plugins
from rushlight.testing import Maker

for wheel in ("autograd", "linalg", "special", "nn"):  # of those that are here
    if any(plugin.name == wheel for plugin in plugins()):
        load(wheel)
RECORDS = [
    op
    for _, op in sorted(operators().items())
    if op.differentiable and op.sampler and NotImplemented not in op.grads.values()
]


DOUBLE = (torch.float64, torch.complex128)  # what finite differences need


def results(value):
    items = value if isinstance(value, (tuple, list)) else (value,)
    return tuple(t for t in items if isinstance(t, torch.Tensor) and t.dtype in (torch.float64, torch.complex128))


def kind(matrix):
    """What makes others of the kind of a matrix, for operators that read one triangle and take the other as implied."""
    if matrix.ndim > 1 and matrix.shape[-1] == matrix.shape[-2]:
        for project in (lambda x: (x + x.mH) / 2, torch.tril, torch.triu):
            if torch.allclose(matrix, project(matrix)):
                return project
    return lambda x: x


def leaves(sample):
    """The sample's call as a function of the tensors in it that require grad."""
    found = []

    def strip(value):
        if isinstance(value, torch.Tensor) and value.requires_grad:
            found.append(value)
            return len(found) - 1, "leaf"
        return type(value)(strip(v) for v in value) if type(value) in (tuple, list) else value

    args = [strip(a) for a in sample.args]
    kwargs = {name: strip(value) for name, value in sample.kwargs.items()}

    kinds = [kind(t) for t in found]

    def fill(value, tensors):
        if type(value) is tuple and len(value) == 2 and value[1] == "leaf":
            return kinds[value[0]](tensors[value[0]])
        return type(value)(fill(v, tensors) for v in value) if type(value) in (tuple, list) else value

    def bind(op, *tensors):
        torch.manual_seed(0)  # random operators are functions of their arguments too
        values = [fill(a, tensors) for a in args]
        if op.__name__.endswith("_") and isinstance(values[0], torch.Tensor):
            values[0] = values[0].clone()
        return results(op(*values, **{k: fill(v, tensors) for k, v in kwargs.items()}))

    return found, bind


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=["real", "complex"])
@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.name)
def test_gradients_of_samples(record, dtype):
    if record.base.startswith("_") and dtype.is_complex:
        pytest.skip("an internal operator")
    if record.arbitrary:
        pytest.skip("the values are arbitrary")
    if record.base.endswith("eigvals"):
        pytest.skip("their order is not a function of the matrix")
    make = Maker(dtype, requires_grad=True, seed=zlib.crc32(record.name.encode()))
    checked = 0
    try:
        samples = list(record.sampler(make, dtype))
    except (RuntimeError, NotImplementedError, TypeError) as error:
        pytest.skip(str(error))
    for sample in samples:
        inputs, bind = leaves(sample)
        if not inputs or any(t.numel() == 0 for t in inputs):
            continue
        try:
            outputs = bind(record.operator, *inputs)
        except (RuntimeError, NotImplementedError, TypeError) as error:
            if "not implemented" in str(error) or dtype.is_complex:
                continue
            raise
        if not any(t.requires_grad for t in outputs) or any(t.dtype not in DOUBLE for t in outputs):
            continue
        recorded = [out for out in outputs if out.requires_grad]
        slopes = grad(
            recorded, inputs, [torch.ones_like(out) for out in recorded], create_graph=True, allow_unused=True
        )
        constant = [slope is None for slope in slopes]  # by a stated rule
        if all(constant):
            continue
        varied = [x for x, fixed in zip(inputs, constant, strict=True) if not fixed]

        def function(*tensors, inputs=inputs, constant=constant, bind=bind):
            rest = iter(tensors)
            return bind(
                record.operator,
                *(x.detach() if fixed else next(rest) for x, fixed in zip(inputs, constant, strict=True)),
            )

        assert gradcheck(function, varied), sample
        bends = [s for s in slopes if s is not None and s.requires_grad]
        found = grad(bends, varied, [torch.ones_like(b) for b in bends], allow_unused=True) if bends else ()
        largest = max([1.0, *(b.abs().max().item() for b in found if b is not None)])
        assert gradgradcheck(function, varied, atol=1e-4 + 1e-6 * largest), sample
        checked += 1
    if not checked:
        pytest.skip("nothing differentiable")


def draw(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(tuple(shape)) + 1j * rng.standard_normal(tuple(shape))
    return torch.from_numpy(np.asarray(values if dtype.is_complex else values.real)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=["real", "complex"])
@pytest.mark.parametrize("record", [r for r in RECORDS if not r.arbitrary], ids=lambda r: r.name)
def test_tangents_of_samples(record, dtype):
    if record.base.startswith("_") and dtype.is_complex:
        pytest.skip("an internal operator")
    make = Maker(dtype, requires_grad=True, seed=zlib.crc32(record.name.encode()))
    checked = 0
    try:
        samples = list(record.sampler(make, dtype))
    except (RuntimeError, NotImplementedError, TypeError) as error:
        pytest.skip(str(error))
    for sample in samples:
        inputs, bind = leaves(sample)
        try:
            outputs = bind(record.operator, *inputs)
        except (RuntimeError, NotImplementedError, TypeError):
            continue  # the dtype; what it refuses is another test's
        if not inputs or not any(out.requires_grad for out in outputs):
            continue
        vector = tuple(draw(x.shape, x.dtype) for x in inputs)
        _, expected = jvp(lambda *args, bind=bind: bind(record.operator, *args), tuple(inputs), vector)
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(x.detach(), v) for x, v in zip(inputs, vector, strict=True)]
            results = [forward_ad.unpack_dual(out) for out in bind(record.operator, *duals)]
        for (primal, tangent), slope in zip(results, expected, strict=True):
            if tangent is None:
                assert not slope.any()
                continue
            assert (tangent.shape, tangent.dtype) == (primal.shape, primal.dtype)
            assert torch.allclose(tangent, slope, rtol=1e-8, atol=1e-10, equal_nan=True), sample
        checked += 1
    if not checked:
        pytest.skip("nothing differentiable")


N = 3  # of the batches


def samples(record, dtype):
    make = Maker(dtype, requires_grad=True, seed=zlib.crc32(record.name.encode()))
    try:
        found = list(record.sampler(make, dtype))
    except (RuntimeError, NotImplementedError, TypeError) as error:
        pytest.skip(str(error))
    for sample in found:
        inputs, bind = leaves(sample)
        try:
            outputs = [out for out in bind(record.operator, *inputs) if out.requires_grad]
        except (RuntimeError, NotImplementedError, TypeError):
            continue  # the dtype; what it refuses is another test's
        if inputs and outputs:
            yield sample, inputs, bind, outputs


def assert_entries(together, single, sample):
    for k, batch in enumerate(together):
        for i in range(N):
            if single[i][k] is None:
                assert batch is None or not batch[i].any()
            else:
                np.testing.assert_allclose(
                    batch[i].detach(), single[i][k].detach(), rtol=1e-8, atol=1e-10, err_msg=str(sample)
                )


@pytest.mark.parametrize("dtype", DOUBLE, ids=["real", "complex"])
@pytest.mark.parametrize("record", [r for r in RECORDS if not r.arbitrary], ids=lambda r: r.name)
def test_batches_of_samples(record, dtype):
    if record.base.startswith("_") and dtype.is_complex:
        pytest.skip("an internal operator")
    for sample, inputs, bind, outputs in samples(record, dtype):
        options = {"retain_graph": True, "allow_unused": True}
        vectors = [draw((N, *out.shape), out.dtype) for out in outputs]
        single = [grad(outputs, inputs, [v[i] for v in vectors], **options) for i in range(N)]
        assert_entries(grad(outputs, inputs, vectors, is_grads_batched=True, **options), single, sample)

        def tangents(*directions, inputs=inputs, bind=bind):
            with forward_ad.dual_level():
                duals = [forward_ad.make_dual(x.detach(), v) for x, v in zip(inputs, directions, strict=True)]
                return [forward_ad.unpack_dual(out).tangent for out in bind(record.operator, *duals)]

        directions = [draw((N, *x.shape), x.dtype) for x in inputs]
        single = [tangents(*(d[i] for d in directions)) for i in range(N)]
        assert_entries(map_batch(tangents, *directions), single, sample)


@pytest.mark.parametrize("record", [r for r in RECORDS if not r.arbitrary], ids=lambda r: r.name)
def test_strict_zero_changes_nothing_that_is_finite(record):
    for sample, inputs, _, outputs in samples(record, torch.float64):
        vectors = [draw(out.shape, out.dtype) for out in outputs]
        expected = grad(outputs, inputs, vectors, retain_graph=True, allow_unused=True)
        with strict_zero():
            found = grad(outputs, inputs, vectors, retain_graph=True, allow_unused=True, create_graph=True)
        for g, e in zip(found, expected, strict=True):
            assert (g is None) == (e is None)
            if e is not None:
                finite = e.isfinite()
                np.testing.assert_allclose(
                    g.detach()[finite], e.detach()[finite], rtol=1e-9, atol=1e-12, err_msg=str(sample)
                )


def compile_text(text, schema="mul.Tensor(Tensor self, Tensor other) -> Tensor"):
    record = Op(schema).grad(self=text)
    return compile_rule(record)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grad * ", "not an expression"),
        ("grad * others", "unknown name 'others'; the parameters are self, other"),
        ("frobnicate(grad)", "there is no operator or function 'frobnicate'"),
        ("shape(grad, 1)", "shape takes 1 positional arguments"),
        ("[x for x in grad]", "cannot understand"),
        ("grads[1]", "grads\\[1\\] does not exist, the operator has 1 results"),
        ("expand(grad, (1, 2.5))", "a tuple in a rule holds integers"),
    ],
)
def test_wrong_rules_are_refused_with_the_operator_and_the_rule(text, message):
    with pytest.raises(RuleError, match=f"gradient rule of mul.Tensor: {message}"):
        compile_text(text)


def test_keywords_that_no_overload_has():
    with pytest.raises(TypeError, match="no overload of"):
        compile_text("sum(grad, dimension=1)")


def test_unknown_parameters():
    record = Op("mul.Tensor(Tensor self, Tensor other) -> Tensor").grad(input="grad")
    with pytest.raises(RuleError, match="it has no parameter 'input'"):
        compile_rule(record)


def test_a_missing_rule_is_an_error_of_backward_that_names_operator_and_argument(leaf):
    Op("_half_ruled(Tensor self, Tensor other) -> Tensor", function=False, method=False).array(
        lambda xp, x, y: x * y
    ).grad(self="grad * other").define()
    operator = torch._op.operators["_half_ruled"]
    x, y = leaf([2.0]), leaf([3.0])
    operator(x, y.detach()).sum().backward()
    assert x.grad.item() == 3
    with pytest.raises(
        NotImplementedError, match="_half_ruled: the gradient with respect to 'other' is not implemented"
    ):
        operator(x, y).sum().backward()


def test_an_op_without_rules_runs_in_a_graph_and_says_so_at_backward(leaf):
    Op("_forward_only(Tensor self) -> Tensor", function=False, method=False).kernel("cpu", lambda x: x * 2).define()
    x = leaf([2.0])
    y = torch._op.operators["_forward_only"](x) + x
    assert y.requires_grad
    with pytest.raises(NotImplementedError, match="_forward_only: the gradient .* Give a rule with op.grad"):
        y.sum().backward()


def test_rules_with_control_flow_and_functions(leaf):
    Op("_powers(Tensor self, int n, bool twice=False) -> Tensor", function=False, method=False).array(
        lambda xp, x, n, twice: (1 + twice) * x**n
    ).grad(
        self="(2 if twice and not n == 1 else 1) * n * grad * self ** (n - 1) if n != 0 else zeros_of(self)"
    ).define()
    powers = torch._op.operators["_powers"]
    x = leaf([3.0])
    for n, twice, expected in ((2, False, 6), (2, True, 12), (0, True, 0), (1, False, 1)):
        assert torch.autograd.grad(powers(x, n, twice).sum(), x)[0].item() == expected

    Op("_rows(Tensor self) -> Tensor", function=False, method=False).array(lambda xp, x: x * len(x)).grad(
        self="grad * shape(self)[0] * (1 if dtype(self) == dtype(result) and ndim(self) == 2 else numel(self))"
    ).define()
    z = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert torch.autograd.grad(torch._op.operators["_rows"](z).sum(), z)[0].tolist() == [[3, 3]] * 3

    seen = {}

    def rule(grad, self_shape, other, needs):
        seen.update(shape=self_shape, needs=needs)
        return grad * other, None

    record = Op("_scaled(Tensor self, Tensor other) -> Tensor", function=False, method=False).array(
        lambda xp, x, y: x * y
    )
    record.grad(("self", "other"), rule).define()
    y = leaf([[1.0, 2.0]])
    torch._op.operators["_scaled"](y, leaf([5.0]).detach()).sum().backward()
    assert y.grad.tolist() == [[5, 5]]
    assert seen == {"shape": (1, 2), "needs": (True, False)}


def test_only_what_a_rule_reads_is_kept(leaf):
    import weakref

    x = leaf([1.0, 2.0])
    h = x * 2
    alive = weakref.ref(h)
    total = h.sum()
    del h
    assert alive() is None
    total.backward()
    assert x.grad.tolist() == [2, 2]
