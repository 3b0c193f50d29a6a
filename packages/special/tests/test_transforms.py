"""Transforms and constraints: inverses, Jacobian determinants by differentiation, shapes, and the registries."""

import copy
import math
import pickle

import numpy as np
import pytest

import rushlight as torch
from rushlight import distributions as dist
from rushlight.distributions import constraints, transforms

DOUBLE = {"dtype": torch.float64}


def tensor(values):
    return torch.tensor(values, **DOUBLE)


def needs(wheel):
    return pytest.importorskip(f"rushlight.{wheel}", exc_type=ImportError)


# Transform, and a shape of inputs.
BIJECTIONS = {
    "affine": (
        lambda c: transforms.AffineTransform(tensor([1.0, -1.0, 0.5]), tensor([2.0, -3.0, 0.1]), cache_size=c),
        (3,),
    ),
    "affine-event": (lambda c: transforms.AffineTransform(1.0, -2.0, event_dim=1, cache_size=c), (2, 3)),
    "cat": (
        lambda c: transforms.CatTransform(
            [transforms.ExpTransform(), transforms.TanhTransform()], 0, [1, 2], cache_size=c
        ),
        (3,),
    ),
    "compose": (
        lambda c: transforms.ComposeTransform(
            [transforms.AffineTransform(tensor(0.5), tensor(2.0)), transforms.SigmoidTransform()], cache_size=c
        ),
        (3,),
    ),
    "compose-mixed": (
        lambda c: transforms.ComposeTransform(
            [transforms.AffineTransform(0.0, 2.0), transforms.StickBreakingTransform()], cache_size=c
        ),
        (2, 3),
    ),
    "corr-cholesky": (lambda c: transforms.CorrCholeskyTransform(cache_size=c), (6,)),
    "cdf": (
        lambda c: transforms.CumulativeDistributionTransform(dist.Normal(tensor(0.3), tensor(2.0)), cache_size=c),
        (3,),
    ),
    "exp": (lambda c: transforms.ExpTransform(cache_size=c), (3,)),
    "exp-inverse": (lambda c: transforms.ExpTransform(cache_size=c).inv, (3,)),
    "independent": (lambda c: transforms.IndependentTransform(transforms.ExpTransform(), 1, cache_size=c), (2, 3)),
    "power": (lambda c: transforms.PowerTransform(tensor(2.5), cache_size=c), (3,)),
    "power-down": (lambda c: transforms.PowerTransform(tensor(-1.5), cache_size=c), (3,)),
    "reshape": (lambda c: transforms.ReshapeTransform((4,), (2, 2), cache_size=c), (3, 4)),
    "sigmoid": (lambda c: transforms.SigmoidTransform(cache_size=c), (3,)),
    "softplus": (lambda c: transforms.SoftplusTransform(cache_size=c), (3,)),
    "stack": (
        lambda c: transforms.StackTransform([transforms.ExpTransform(), transforms.TanhTransform()], cache_size=c),
        (2, 3),
    ),
    "stick-breaking": (lambda c: transforms.StickBreakingTransform(cache_size=c), (3,)),
    "tanh": (lambda c: transforms.TanhTransform(cache_size=c), (3,)),
}


def inputs(name):
    _, shape = BIJECTIONS[name]
    x = tensor(np.random.default_rng(0).normal(size=shape))
    return x.abs() + 0.1 if name.startswith("power") or name == "exp-inverse" else x


@pytest.mark.parametrize("cache", [0, 1])
@pytest.mark.parametrize("name", BIJECTIONS)
def test_inverse(name, cache):
    transform, x = BIJECTIONS[name][0](cache), inputs(name)
    assert transform.bijective
    y = transform(x)
    assert tuple(y.shape) == tuple(transform.forward_shape(x.shape))
    assert tuple(x.shape) == tuple(transform.inverse_shape(y.shape))
    back = transform.inv(y)
    np.testing.assert_allclose(back.numpy(), x.numpy(), rtol=1e-8)
    if cache and name != "compose" and name != "compose-mixed":
        assert back is x
        assert transform(back) is y
    assert transform.inv.inv is transform
    np.testing.assert_allclose(
        transform.inv.log_abs_det_jacobian(y, x).numpy(), -transform.log_abs_det_jacobian(x, y).numpy()
    )


@pytest.mark.parametrize("name", BIJECTIONS)
def test_jacobian(name):
    needs("autograd")
    linalg = needs("linalg")
    transform, x = BIJECTIONS[name][0](0), inputs(name)
    y = transform(x)
    found = transform.log_abs_det_jacobian(x, y)
    event = transform.domain.event_dim
    batch = x.shape[: x.dim() - event]
    assert found.shape == batch
    n = math.prod(x.shape[x.dim() - event :])
    jacobian = torch.autograd.functional.jacobian(transform, x)
    if name == "corr-cholesky":  # the free elements of the factor are below the diagonal
        rows, columns = np.tril_indices(4, -1)
        jacobian = jacobian[rows, columns]
    elif name in ("stick-breaking", "compose-mixed"):  # and the simplex has a coordinate less than it shows
        jacobian = jacobian[..., :-1, :, :] if name == "compose-mixed" else jacobian[:-1]
    if not event:
        elements = jacobian.reshape(x.numel(), x.numel())
        np.testing.assert_allclose(found.flatten().numpy(), elements.diagonal().abs().log().numpy(), rtol=1e-8)
        return
    count = math.prod(batch)
    blocks = jacobian.reshape(count, n, count, n)
    for i in range(count):
        expected = linalg.slogdet(blocks[i, :, i])[1].item()
        assert found.flatten()[i].item() == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("name", BIJECTIONS)
def test_copies(name):
    transform, x = BIJECTIONS[name][0](0), inputs(name)
    y = transform(x)
    assert transform.inv is not None  # a weak reference that copies must not keep
    for other in (copy.deepcopy(transform), pickle.loads(pickle.dumps(transform))):
        assert other(x).tolist() == y.tolist()
    assert transform.with_cache(1)._cache_size == 1


@pytest.mark.parametrize(
    "transform",
    [
        transforms.AbsTransform(),
        transforms.SoftmaxTransform(),
        transforms.LowerCholeskyTransform(),
        transforms.PositiveDefiniteTransform(),
    ],
    ids=repr,
)
def test_right_inverse(transform):
    if isinstance(transform, transforms.PositiveDefiniteTransform):
        needs("linalg")
    x = tensor(np.random.default_rng(0).normal(size=(3, 3)))
    y = transform(x)
    np.testing.assert_allclose(transform(transform.inv(y)).numpy(), y.numpy(), rtol=1e-10)
    assert not transform.bijective
    with pytest.raises(NotImplementedError):
        transform.log_abs_det_jacobian(x, y)


@pytest.mark.parametrize(
    "transform", [transforms.CorrCholeskyTransform(), transforms.StickBreakingTransform()], ids=repr
)
def test_inverse_of_many_elements_in_single_precision(transform):
    """What is left of a row or a stick is not 1 less a sum, which would be rounding errors at the end."""
    x = torch.from_numpy(np.random.default_rng(0).normal(size=100 * 99 // 2).astype(np.float32)) * 0.3
    back = transform.inv(transform(x))
    np.testing.assert_allclose(back.numpy(), x.numpy(), atol=2e-4)


def test_signs():
    affine = transforms.AffineTransform(0.0, -2.0)
    assert affine.sign == -1
    assert transforms.ComposeTransform([affine, affine, transforms.ExpTransform()]).sign == 1
    assert transforms.AffineTransform(0.0, tensor([2.0, -1.0])).sign.tolist() == [1, -1]
    falling = dist.TransformedDistribution(dist.Uniform(tensor(0.0), tensor(1.0)), [affine])
    assert falling.cdf(tensor(-0.5)).item() == pytest.approx(0.75)
    assert falling.icdf(tensor(0.75)).item() == pytest.approx(-0.5)


def test_equality():
    assert transforms.ExpTransform() == transforms.ExpTransform()
    assert transforms.ExpTransform() != transforms.TanhTransform()
    assert transforms.AffineTransform(0.0, tensor([1.0])) == transforms.AffineTransform(0.0, tensor([1.0]))
    assert transforms.AffineTransform(0.0, 2.0) != transforms.AffineTransform(0.0, 1.0)
    assert transforms.ComposeTransform([transforms.ExpTransform()]) == transforms.ComposeTransform(
        [transforms.ExpTransform()]
    )
    assert transforms.ExpTransform().inv == transforms.ExpTransform().inv


def test_bad_shapes_and_arguments():
    for wrong in (
        lambda: transforms.ReshapeTransform((4,), (2, 3)),
        lambda: transforms.ExpTransform(cache_size=2),
        lambda: transforms.CorrCholeskyTransform().forward_shape((4,)),
        lambda: transforms.CorrCholeskyTransform().inverse_shape((2, 3)),
        lambda: transforms.StickBreakingTransform().forward_shape(()),
        lambda: transforms.ReshapeTransform((4,), (2, 2)).forward_shape((3, 3)),
        lambda: transforms.IndependentTransform(transforms.ExpTransform(), 2)(tensor([1.0])),
        lambda: transforms.CorrCholeskyTransform()(torch.zeros(4)),
        lambda: dist.TransformedDistribution(dist.Normal(0.0, 1.0), transforms.StickBreakingTransform()),
        lambda: dist.TransformedDistribution(dist.Normal(0.0, 1.0), "exp"),
        lambda: dist.TransformedDistribution(dist.Normal(0.0, 1.0), ["exp"]),
    ):
        with pytest.raises(ValueError, match="."):
            wrong()
    with pytest.raises(AssertionError, match="must equal"):
        transforms.CatTransform([transforms.ExpTransform()], 0, [2])(torch.zeros(3))
    with pytest.raises(AssertionError, match="takes transforms"):
        transforms.StackTransform([3])


def test_transformed_distribution_takes_the_shape_that_its_transforms_need():
    normal = dist.Normal(torch.zeros(3), 1.0)
    broken = dist.TransformedDistribution(normal, transforms.StickBreakingTransform())
    assert (broken.batch_shape, broken.event_shape) == ((), (4,))
    assert broken.log_prob(broken.sample((5,))).shape == (5,)
    shifted = dist.TransformedDistribution(normal, transforms.AffineTransform(torch.zeros(2, 1), 1.0))
    assert (shifted.batch_shape, shifted.event_shape) == ((2, 3), ())
    matrices = dist.TransformedDistribution(normal, transforms.ReshapeTransform((3,), (3, 1)))
    assert (matrices.batch_shape, matrices.event_shape) == ((), (3, 1))
    assert matrices.expand((7,)).sample().shape == (7, 3, 1)
    assert broken.support.check(broken.sample()).all()


# Constraint, values in it and values outside.
VALUES = {
    "boolean": (constraints.boolean, [0.0, 1.0], [0.5, math.nan]),
    "real": (constraints.real, [0.0, -1e30, math.inf], [math.nan]),
    "positive": (constraints.positive, [1e-30], [0.0, -1.0, math.nan]),
    "nonnegative": (constraints.nonnegative, [0.0], [-1e-30, math.nan]),
    "unit_interval": (constraints.unit_interval, [0.0, 1.0], [1.1, -0.1, math.nan]),
    "half_open_interval": (constraints.half_open_interval(0.0, 1.0), [0.0], [1.0, -0.1]),
    "less_than": (constraints.less_than(2.0), [1.9], [2.0]),
    "greater_than_eq": (constraints.greater_than_eq(2.0), [2.0], [1.9]),
    "nonnegative_integer": (constraints.nonnegative_integer, [0.0, 3.0], [-1.0, 0.5, math.nan]),
    "positive_integer": (constraints.positive_integer, [1.0], [0.0, 1.5]),
    "integer_interval": (constraints.integer_interval(1, 3), [1.0, 3.0], [0.0, 4.0, 1.5]),
    "simplex": (constraints.simplex, [[0.2, 0.8]], [[0.5, 0.6], [-0.1, 1.1], [math.nan, 1.0]]),
    "one_hot": (constraints.one_hot, [[0.0, 1.0]], [[1.0, 1.0], [0.0, 0.0], [0.5, 0.5]]),
    "multinomial": (constraints.multinomial(3), [[1.0, 2.0]], [[2.0, 2.0], [-1.0, 2.0]]),
    "lower_triangular": (constraints.lower_triangular, [[[1.0, 0.0], [2.0, -1.0]]], [[[1.0, 1.0], [0.0, 1.0]]]),
    "lower_cholesky": (constraints.lower_cholesky, [[[1.0, 0.0], [2.0, 1.0]]], [[[1.0, 0.0], [2.0, -1.0]]]),
    "corr_cholesky": (constraints.corr_cholesky, [[[1.0, 0.0], [0.6, 0.8]]], [[[1.0, 0.0], [0.6, 0.9]]]),
    "square": (constraints.square, [[[1.0, 0.0], [2.0, 1.0]]], [[[1.0, 2.0]]]),
    "symmetric": (constraints.symmetric, [[[1.0, 2.0], [2.0, 1.0]]], [[[1.0, 2.0], [2.1, 1.0]]]),
    "positive_definite": (
        constraints.positive_definite, [[[2.0, 1.0], [1.0, 2.0]]], [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [0.5, 1.0]]]
    ),
    "positive_semidefinite": (
        constraints.positive_semidefinite, [[[4.0, 0.0], [0.0, 0.0]]], [[[1.0, 2.0], [2.0, 1.0]]]
    ),
    "independent": (constraints.independent(constraints.positive, 1), [[1.0, 2.0]], [[1.0, -1.0]]),
    "cat": (constraints.cat([constraints.positive, constraints.real], -1), [], []),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(VALUES))
def test_constraints(name):
    if name.startswith("positive_") and name.endswith("definite"):
        needs("linalg")
    constraint, inside, outside = VALUES[name]
    assert all(constraint.check(tensor(value)).all() for value in inside)
    assert not any(constraint.check(tensor(value)).any() for value in outside)
    assert repr(constraint)


def test_constraints_of_parts():
    cat = constraints.cat([constraints.positive, constraints.real], lengths=[1, 2])
    assert cat.check(tensor([1.0, -1.0, -1.0])).tolist() == [True, True, True]
    assert cat.check(tensor([-1.0, -1.0, -1.0])).tolist() == [False, True, True]
    stack = constraints.stack([constraints.positive, constraints.real])
    assert stack.check(tensor([[1.0, -1.0], [-1.0, -1.0]])).tolist() == [[True, False], [True, True]]
    assert stack.check(tensor([1.0])).tolist() == [True]
    with pytest.raises(ValueError, match="dependent"):
        constraints.dependent.check(tensor(0.0))
    assert constraints.is_dependent(dist.Uniform.support)
    with pytest.raises(NotImplementedError, match="event_dim"):
        _ = constraints.dependent.event_dim


SPACES = [
    constraints.real,
    constraints.real_vector,
    constraints.positive,
    constraints.greater_than(2.0),
    constraints.greater_than_eq(-2.0),
    constraints.less_than(2.0),
    constraints.unit_interval,
    constraints.interval(-2.0, 3.0),
    constraints.half_open_interval(-2.0, 3.0),
    constraints.simplex,
    constraints.corr_cholesky,
    constraints.independent(constraints.positive, 1),
    constraints.cat([constraints.positive, constraints.less_than(0.0)], lengths=[1, 5]),
    constraints.stack([constraints.positive, constraints.less_than(0.0)]),
    constraints.lower_cholesky,
    constraints.positive_definite,
]


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("constraint", SPACES, ids=repr)
def test_registry(constraint, registry):
    needs("linalg")
    try:
        transform = getattr(dist, registry)(constraint)
    except NotImplementedError:
        assert registry == "biject_to"
        assert constraint in (constraints.lower_cholesky, constraints.positive_definite)
        return
    shape = {0: (6,), 1: (6,), 2: (4, 4)}[transform.domain.event_dim]
    if isinstance(constraint, type(SPACES[13])):
        shape = (2, 6)
    x = tensor(np.random.default_rng(1).normal(size=shape))
    y = transform(x)
    assert constraint.check(y).all()
    assert transform.codomain.check(y).all()
    np.testing.assert_allclose(transform(transform.inv(y)).numpy(), y.numpy(), rtol=1e-8, atol=1e-12)
    if registry == "biject_to":
        np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-7)


def test_registry_errors():
    with pytest.raises(NotImplementedError, match="Cannot transform _Boolean constraints"):
        dist.biject_to(constraints.boolean)
    with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass or instance"):
        dist.biject_to.register(3, lambda constraint: None)


@pytest.mark.parametrize("diag", [0, -1, -2])
def test_triangles_as_vectors(diag):
    from rushlight.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix

    matrix = tensor(np.random.default_rng(0).normal(size=(2, 4, 4))).tril(diag)
    vector = tril_matrix_to_vec(matrix, diag)
    rows, columns = np.tril_indices(4, diag)
    np.testing.assert_array_equal(vector.numpy(), matrix.numpy()[:, rows, columns])
    np.testing.assert_array_equal(vec_to_tril_matrix(vector, diag).numpy(), matrix.numpy())
    with pytest.raises(ValueError, match="lower triangular part"):
        vec_to_tril_matrix(tensor([1.0, 2.0]), 0)
