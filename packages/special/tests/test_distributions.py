"""Distributions: densities against SciPy, moments and divergences by integration, samples by Kolmogorov and Smirnov."""

import copy
import itertools
import math
import pickle

import mpmath
import numpy as np
import pytest
import scipy.stats as st
from scipy import integrate

import rushlight as torch
from rushlight import distributions as dist
from rushlight.distributions import constraints

DOUBLE = {"dtype": torch.float64}


def tensor(values):
    return torch.tensor(values, **DOUBLE)


# Distribution and SciPy's frozen equivalent, of scalar parameters in double.
CONTINUOUS = {
    "Beta": (lambda: dist.Beta(tensor(2.5), tensor(1.5)), st.beta(2.5, 1.5)),
    "Cauchy": (lambda: dist.Cauchy(tensor(0.5), tensor(2.0)), st.cauchy(0.5, 2)),
    "Chi2": (lambda: dist.Chi2(tensor(3.5)), st.chi2(3.5)),
    "Exponential": (lambda: dist.Exponential(tensor(2.5)), st.expon(scale=1 / 2.5)),
    "FisherSnedecor": (lambda: dist.FisherSnedecor(tensor(3.0), tensor(9.0)), st.f(3, 9)),
    "Gamma": (lambda: dist.Gamma(tensor(2.5), tensor(0.5)), st.gamma(2.5, scale=2)),
    "GeneralizedPareto": (
        lambda: dist.GeneralizedPareto(tensor(0.5), tensor(2.0), tensor(0.25)),
        st.genpareto(0.25, 0.5, 2),
    ),
    "GeneralizedPareto-bounded": (
        lambda: dist.GeneralizedPareto(tensor(0.5), tensor(2.0), tensor(-0.4)),
        st.genpareto(-0.4, 0.5, 2),
    ),
    "GeneralizedPareto-exponential": (
        lambda: dist.GeneralizedPareto(tensor(0.5), tensor(2.0), tensor(0.0)),
        st.genpareto(0, 0.5, 2),
    ),
    "Gumbel": (lambda: dist.Gumbel(tensor(0.5), tensor(2.0)), st.gumbel_r(0.5, 2)),
    "HalfCauchy": (lambda: dist.HalfCauchy(tensor(2.0)), st.halfcauchy(scale=2)),
    "HalfNormal": (lambda: dist.HalfNormal(tensor(2.0)), st.halfnorm(scale=2)),
    "InverseGamma": (lambda: dist.InverseGamma(tensor(3.5), tensor(2.0)), st.invgamma(3.5, scale=2)),
    "Laplace": (lambda: dist.Laplace(tensor(0.5), tensor(2.0)), st.laplace(0.5, 2)),
    "LogNormal": (lambda: dist.LogNormal(tensor(0.5), tensor(0.7)), st.lognorm(0.7, scale=math.exp(0.5))),
    "Normal": (lambda: dist.Normal(tensor(0.5), tensor(2.0)), st.norm(0.5, 2)),
    "Pareto": (lambda: dist.Pareto(tensor(1.5), tensor(3.5)), st.pareto(3.5, scale=1.5)),
    "StudentT": (lambda: dist.StudentT(tensor(4.5), tensor(0.5), tensor(2.0)), st.t(4.5, 0.5, 2)),
    "Uniform": (lambda: dist.Uniform(tensor(0.5), tensor(2.0)), st.uniform(0.5, 1.5)),
    "VonMises": (lambda: dist.VonMises(tensor(0.5), tensor(2.0)), st.vonmises(2, 0.5)),
    "Weibull": (lambda: dist.Weibull(tensor(2.0), tensor(1.5)), st.weibull_min(1.5, scale=2)),
}
DISCRETE = {
    "Bernoulli": (lambda: dist.Bernoulli(tensor(0.3)), st.bernoulli(0.3)),
    "Binomial": (lambda: dist.Binomial(tensor(7.0), tensor(0.3)), st.binom(7, 0.3)),
    "Geometric": (lambda: dist.Geometric(tensor(0.3)), st.geom(0.3, -1)),
    "NegativeBinomial": (lambda: dist.NegativeBinomial(tensor(3.5), tensor(0.3)), st.nbinom(3.5, 0.7)),
    "Poisson": (lambda: dist.Poisson(tensor(3.5)), st.poisson(3.5)),
}
UNIVARIATE = CONTINUOUS | DISCRETE


def needs(wheel):
    return pytest.importorskip(f"rushlight.{wheel}", exc_type=ImportError)


@pytest.mark.parametrize("name", UNIVARIATE)
def test_densities(name):
    make, reference = UNIVARIATE[name]
    quantiles = reference.ppf([0.01, 0.2, 0.5, 0.8, 0.99])
    expected = reference.logpmf(quantiles) if name in DISCRETE else reference.logpdf(quantiles)
    np.testing.assert_allclose(make().log_prob(tensor(quantiles)).numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_distribution_functions(name):
    make, reference = CONTINUOUS[name]
    u = np.array([0.01, 0.2, 0.5, 0.8, 0.99])
    x = reference.ppf(u)
    distribution = make()
    for ours, expected in ((lambda: distribution.cdf(tensor(x)), u), (lambda: distribution.icdf(tensor(u)), x)):
        try:
            value = ours()
        except NotImplementedError:
            continue
        np.testing.assert_allclose(value.numpy(), expected, rtol=1e-9)


def test_distribution_functions_beyond_the_support():
    for k, high in ((-0.5, 5.0), (0.0, math.inf), (0.5, math.inf)):
        pareto = dist.GeneralizedPareto(tensor(0.0), tensor(1.0), tensor(k), validate_args=False)
        assert pareto.cdf(tensor([-1.0, high])).tolist() == [0, 1]
    for p in (0.2, 0.5, 0.9):
        bernoulli = dist.ContinuousBernoulli(tensor(p), validate_args=False)
        assert bernoulli.cdf(tensor([-1.0, 7.0])).tolist() == [0, 1]
    uniform = dist.Uniform(tensor(1.0), tensor(2.0), validate_args=False)
    assert uniform.cdf(tensor([0.0, 3.0])).tolist() == [0, 1]


@pytest.mark.parametrize("name", UNIVARIATE)
def test_moments(name):
    make, reference = UNIVARIATE[name]
    distribution = make()
    if name == "VonMises":  # on the circle
        mean = integrate.quad(lambda x: math.cos(x - 0.5) * reference.pdf(x), -math.pi + 0.5, math.pi + 0.5)[0]
        assert distribution.variance.item() == pytest.approx(1 - mean)
        return
    if name == "Cauchy":
        assert distribution.mean.isnan()
        assert distribution.variance.item() == math.inf
        return
    mean, variance = reference.stats("mv")
    for value, expected in ((distribution.mean, mean), (distribution.variance, variance)):
        np.testing.assert_allclose(value.item(), expected, rtol=1e-10)
    np.testing.assert_allclose(distribution.stddev.square().item(), variance, rtol=1e-10)


@pytest.mark.parametrize("name", UNIVARIATE)
def test_entropies(name):
    make, reference = UNIVARIATE[name]
    try:
        entropy = make().entropy()
    except NotImplementedError:
        assert name in {"FisherSnedecor", "NegativeBinomial", "Poisson", "VonMises"}
        return
    np.testing.assert_allclose(entropy.item(), reference.entropy(), rtol=1e-7)
    np.testing.assert_allclose(make().perplexity().log().item(), entropy.item())


@pytest.mark.parametrize("name", sorted(set(UNIVARIATE) - {"Cauchy"}))
def test_modes(name):
    """No value nearby is more likely."""
    distribution = UNIVARIATE[name][0]()
    mode = distribution.mode
    if name == "Uniform":
        assert mode.isnan()
        return
    steps = tensor([-1.0, 1.0]) if name in DISCRETE else tensor([-1e-3, 1e-3])
    around = mode + steps
    around = around[distribution.support.check(around)]
    inside = mode if name not in {"Exponential"} else mode + 1e-12
    assert (distribution.log_prob(inside) >= distribution.log_prob(around) - 1e-12).all()


@pytest.mark.parametrize("name", UNIVARIATE)
def test_samples(name):
    make, reference = UNIVARIATE[name]
    torch.manual_seed(5)
    drawn = make().sample((5000,))
    assert drawn.dtype == torch.float64
    assert make().support.check(drawn).all()
    if name in DISCRETE:
        values, counts = np.unique(drawn.numpy(), return_counts=True)
        expected = reference.pmf(values) * len(drawn)
        many = expected > 5
        z = (counts - expected)[many] / np.sqrt(expected[many])
        assert np.abs(z).max() < 4.5
    else:
        assert st.kstest(drawn.numpy(), reference.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", sorted(name for name, (make, _) in CONTINUOUS.items() if make().has_rsample))
def test_samples_move_with_their_parameters(name):
    """At a fixed seed the mean of a bounded function of samples has the derivative of its expectation."""
    needs("autograd")
    make, _ = CONTINUOUS[name]
    template = make()
    values = {key: getattr(template, key).clone().requires_grad_() for key in template.arg_constraints}
    torch.manual_seed(2)
    bounded = lambda x: torch.tanh(x / 3)
    estimate = bounded(type(template)(**values).rsample((40_000,))).mean()
    gradients = torch.autograd.grad(estimate, list(values.values()))
    for key, gradient in zip(values, gradients, strict=True):
        h = 1e-4

        def expectation(shift, key=key):
            moved = {k: v.detach() + (shift if k == key else 0) for k, v in values.items()}
            distribution = type(template)(**moved)
            u = torch.linspace(1e-6, 1 - 1e-6, 200_001, **DOUBLE)
            x = tensor(_scipy_like(name, moved).ppf(u.numpy()))
            assert distribution.batch_shape == ()
            return torch.trapezoid(bounded(x), u).item()

        expected = (expectation(h) - expectation(-h)) / (2 * h)
        assert gradient.item() == pytest.approx(expected, abs=0.02), key


def _scipy_like(name, parameters):
    p = {key: value.item() for key, value in parameters.items()}
    families = {
        "Beta": lambda concentration1, concentration0: st.beta(concentration1, concentration0),
        "Cauchy": lambda loc, scale: st.cauchy(loc, scale),
        "Chi2": lambda df: st.chi2(df),
        "Exponential": lambda rate: st.expon(scale=1 / rate),
        "FisherSnedecor": lambda df1, df2: st.f(df1, df2),
        "Gamma": lambda concentration, rate: st.gamma(concentration, scale=1 / rate),
        "GeneralizedPareto": lambda loc, scale, concentration: st.genpareto(concentration, loc, scale),
        "Gumbel": lambda loc, scale: st.gumbel_r(loc, scale),
        "HalfCauchy": lambda scale: st.halfcauchy(scale=scale),
        "HalfNormal": lambda scale: st.halfnorm(scale=scale),
        "InverseGamma": lambda concentration, rate: st.invgamma(concentration, scale=rate),
        "Laplace": lambda loc, scale: st.laplace(loc, scale),
        "LogNormal": lambda loc, scale: st.lognorm(scale, scale=math.exp(loc)),
        "Normal": lambda loc, scale: st.norm(loc, scale),
        "Pareto": lambda scale, alpha: st.pareto(alpha, scale=scale),
        "StudentT": lambda df, loc, scale: st.t(df, loc, scale),
        "Uniform": lambda low, high: st.uniform(low, high - low),
        "Weibull": lambda scale, concentration: st.weibull_min(concentration, scale=scale),
    }
    return families[name.partition("-")[0]](**p)


# ---- distributions that SciPy has not, or not of one number


@pytest.mark.parametrize("logits", [-30.0, -3.0, -0.2, -1e-6, 0.0, 1e-4, 0.5, 60.0])
def test_continuous_bernoulli(logits):
    distribution = dist.ContinuousBernoulli(logits=tensor(logits))
    with mpmath.workdps(40):
        l = mpmath.mpf(logits)
        area = mpmath.expm1(l) / l if l else mpmath.mpf(1)
        density = lambda x: mpmath.exp(l * x) / area
        points = [0, 0.05, 0.5, 0.95, 1]
        mean, second = (mpmath.quad(lambda x, n=n: x**n * density(x), points) for n in (1, 2))
        entropy = -mpmath.quad(lambda x: density(x) * mpmath.log(density(x)), points)
        below = mpmath.quad(density, [0, 0.01, 0.05, 0.3])
        assert distribution.log_prob(tensor(0.3)).item() == pytest.approx(float(mpmath.log(density(0.3))), abs=1e-12)
        assert distribution.mean.item() == pytest.approx(float(mean), rel=1e-12)
        assert distribution.variance.item() == pytest.approx(float(second - mean**2), rel=1e-11)
        assert distribution.cdf(tensor(0.3)).item() == pytest.approx(float(below), rel=1e-9)
        assert distribution.entropy().item() == pytest.approx(float(entropy), abs=1e-11)
    u = tensor([0.0, 0.2, 0.7, 1.0])
    np.testing.assert_allclose(distribution.cdf(distribution.icdf(u)).numpy(), u.numpy(), rtol=1e-9, atol=1e-12)


def test_continuous_bernoulli_has_finite_gradients():
    needs("autograd")
    logits = torch.tensor([-200.0, -50.0, -1e-9, 0.0, 1e-3, 50.0, 200.0], requires_grad=True)
    distribution = dist.ContinuousBernoulli(logits=logits)
    x = torch.full((7,), 0.3)
    for value in (
        distribution.log_prob(x), distribution.mean, distribution.variance, distribution.cdf(x), distribution.icdf(x)
    ):  # fmt: skip
        (gradient,) = torch.autograd.grad(value.sum(), logits)
        assert gradient.isfinite().all()


def test_kumaraswamy():
    a, b = 2.5, 1.5
    distribution = dist.Kumaraswamy(tensor(a), tensor(b))
    density = lambda x: a * b * x ** (a - 1) * (1 - x**a) ** (b - 1)
    x = np.linspace(0.1, 0.9, 5)
    np.testing.assert_allclose(distribution.log_prob(tensor(x)).exp().numpy(), density(x))
    np.testing.assert_allclose(distribution.cdf(tensor(x)).numpy(), 1 - (1 - x**a) ** b)
    mean = integrate.quad(lambda x: x * density(x), 0, 1)[0]
    second = integrate.quad(lambda x: x * x * density(x), 0, 1)[0]
    assert distribution.mean.item() == pytest.approx(mean)
    assert distribution.variance.item() == pytest.approx(second - mean**2)
    entropy = integrate.quad(lambda x: -density(x) * math.log(density(x)), 0, 1)[0]
    assert distribution.entropy().item() == pytest.approx(entropy)
    grid = np.linspace(1e-4, 1 - 1e-4, 9999)
    assert distribution.mode.item() == pytest.approx(grid[density(grid).argmax()], abs=2e-4)


def test_modes_at_the_ends():
    nan = math.nan
    a, b = tensor([0.5, 2.0, 1.0, 1.0, 0.5, 0.5, 3.0]), tensor([0.7, 0.5, 0.5, 1.0, 1.0, 0.5, 2.0])
    np.testing.assert_allclose(dist.Beta(a, b).mode.numpy(), [0, 1, 1, nan, 0, 1, 2 / 3])
    concentration = tensor([[0.5, 0.7, 0.1], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0], [1.0, 0.5, 0.2]])
    expected = [[0, 1, 0], [0, 1 / 3, 2 / 3], [nan] * 3, [1, 0, 0]]
    np.testing.assert_allclose(dist.Dirichlet(concentration).mode.numpy(), expected)
    np.testing.assert_allclose(dist.Weibull(tensor(2.0), tensor([0.5, 1.0])).mode.numpy(), [0, 0])


def test_categorical():
    weights = np.array([[1.0, 3.0, 4.0], [0.5, 0.0, 0.5]])
    probs = weights / weights.sum(1, keepdims=True)
    for distribution in (
        dist.Categorical(tensor(weights)),
        dist.Categorical(logits=tensor(weights[:1]).log() + 5).expand((2,)),
    ):
        drawn = distribution.sample((4000,))
        assert drawn.dtype == torch.int64
        assert drawn.shape == (4000, 2)
        frequency = [np.bincount(column, minlength=3) / 4000 for column in drawn.numpy().T]
        np.testing.assert_allclose(frequency, distribution.probs.numpy(), atol=0.04)
    distribution = dist.Categorical(tensor(weights))
    with np.errstate(divide="ignore"):
        expected = np.log(probs)
    log_prob = distribution.log_prob(torch.tensor([[0], [2]])).numpy()
    np.testing.assert_allclose(log_prob, expected[:, [0, 2]].T, rtol=1e-10)
    np.testing.assert_allclose(distribution.entropy().numpy(), [st.entropy(p) for p in probs], atol=1e-12)
    assert distribution.enumerate_support().tolist() == [[0, 0], [1, 1], [2, 2]]
    assert distribution.mode.tolist() == [2, 0]


def test_one_hot_categorical():
    distribution = dist.OneHotCategorical(tensor([0.2, 0.3, 0.5]))
    drawn = distribution.sample((2000,))
    assert distribution.support.check(drawn).all()
    np.testing.assert_allclose(drawn.mean(0).numpy(), [0.2, 0.3, 0.5], atol=0.05)
    np.testing.assert_allclose(distribution.log_prob(torch.eye(3, **DOUBLE)).exp().numpy(), [0.2, 0.3, 0.5])
    assert distribution.enumerate_support().tolist() == torch.eye(3).tolist()


def test_straight_through_samples_have_the_gradient_of_the_probabilities():
    needs("autograd")
    logits = tensor([0.1, 0.2, 0.3]).requires_grad_()
    distribution = dist.OneHotCategoricalStraightThrough(logits=logits)
    drawn = distribution.rsample()
    assert constraints.one_hot.check(drawn.detach().round())
    weights = tensor([1.0, 2.0, 3.0])
    (gradient,) = torch.autograd.grad((drawn * weights).sum(), logits)
    (expected,) = torch.autograd.grad((logits.softmax(-1) * weights).sum(), logits)
    np.testing.assert_allclose(gradient.numpy(), expected.numpy())


def test_multinomial():
    probs = np.array([0.2, 0.3, 0.5])
    distribution = dist.Multinomial(6, tensor(probs))
    reference = st.multinomial(6, probs)
    drawn = distribution.sample((3000,))
    assert (drawn.sum(-1) == 6).all()
    np.testing.assert_allclose(drawn.mean(0).numpy(), 6 * probs, atol=0.15)
    np.testing.assert_allclose(distribution.log_prob(drawn[:5]).numpy(), reference.logpmf(drawn[:5].numpy()))
    assert distribution.entropy().item() == pytest.approx(float(reference.entropy()))
    assert dist.Multinomial(2, tensor([0.0, 1.0])).log_prob(tensor([0.0, 2.0])).item() == pytest.approx(0, abs=1e-12)


def test_dirichlet():
    concentration = np.array([0.5, 2.0, 3.0])
    distribution, reference = dist.Dirichlet(tensor(concentration)), st.dirichlet(concentration)
    drawn = distribution.sample((4,))
    expected = [reference.logpdf(x / x.sum()) for x in drawn.numpy()]
    np.testing.assert_allclose(distribution.log_prob(drawn).numpy(), expected)
    np.testing.assert_allclose(distribution.mean.numpy(), reference.mean())
    np.testing.assert_allclose(distribution.variance.numpy(), reference.var())
    assert distribution.entropy().item() == pytest.approx(float(reference.entropy()))


COVARIANCE = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])
LOC = np.array([1.0, -1.0, 0.5])


def multivariate_normals():
    covariance = tensor(COVARIANCE)
    yield dist.MultivariateNormal(tensor(LOC), covariance)
    yield dist.MultivariateNormal(tensor(LOC), precision_matrix=tensor(np.linalg.inv(COVARIANCE)))
    yield dist.MultivariateNormal(tensor(LOC), scale_tril=tensor(np.linalg.cholesky(COVARIANCE)))
    factor = np.linalg.cholesky(COVARIANCE - 0.3 * np.eye(3))
    yield dist.LowRankMultivariateNormal(tensor(LOC), tensor(factor), tensor([0.3, 0.3, 0.3]))


@pytest.mark.parametrize("which", range(4))
def test_multivariate_normal(which):
    needs("linalg")
    torch.manual_seed(1)
    distribution = next(itertools.islice(multivariate_normals(), which, None))
    reference = st.multivariate_normal(LOC, COVARIANCE)
    x = np.random.default_rng(0).normal(size=(4, 3))
    np.testing.assert_allclose(distribution.log_prob(tensor(x)).numpy(), reference.logpdf(x))
    assert distribution.entropy().item() == pytest.approx(float(reference.entropy()))
    np.testing.assert_allclose(distribution.covariance_matrix.numpy(), COVARIANCE)
    np.testing.assert_allclose(distribution.precision_matrix.numpy(), np.linalg.inv(COVARIANCE), atol=1e-12)
    np.testing.assert_allclose(distribution.scale_tril.numpy(), np.linalg.cholesky(COVARIANCE), atol=1e-12)
    np.testing.assert_allclose(distribution.variance.numpy(), np.diag(COVARIANCE))
    drawn = distribution.sample((20_000,)).numpy()
    np.testing.assert_allclose(drawn.mean(0), LOC, atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T), COVARIANCE, atol=0.1)
    wide = distribution.expand((2, 4))
    assert wide.covariance_matrix.shape == (2, 4, 3, 3)
    assert wide.precision_matrix.shape == (2, 4, 3, 3)
    np.testing.assert_allclose(wide.log_prob(tensor(x)).numpy(), np.tile(reference.logpdf(x), (2, 1)))


def test_multivariate_normal_of_a_batch():
    needs("linalg")
    rng = np.random.default_rng(3)
    factors = np.tril(rng.normal(size=(4, 3, 3))) + 3 * np.eye(3)
    locs = rng.normal(size=(4, 3))
    distribution = dist.MultivariateNormal(tensor(locs), scale_tril=tensor(factors))
    x = rng.normal(size=(5, 2, 4, 3))
    expected = np.stack(
        [
            st.multivariate_normal(m, f @ f.T).logpdf(x[:, :, i])
            for i, (m, f) in enumerate(zip(locs, factors, strict=True))
        ],
        -1,
    )
    np.testing.assert_allclose(distribution.log_prob(tensor(x)).numpy(), expected)
    np.testing.assert_allclose(distribution.log_prob(tensor(x[0, 0])).numpy(), expected[0, 0])


def test_wishart():
    needs("linalg")
    torch.manual_seed(0)
    reference = st.wishart(4.5, COVARIANCE)
    for arguments in (
        {"covariance_matrix": tensor(COVARIANCE)},
        {"precision_matrix": tensor(np.linalg.inv(COVARIANCE))},
        {"scale_tril": tensor(np.linalg.cholesky(COVARIANCE))},
    ):
        distribution = dist.Wishart(tensor(4.5), **arguments)
        x = reference.rvs(3, random_state=1)
        np.testing.assert_allclose(distribution.log_prob(tensor(x)).numpy(), reference.logpdf(np.moveaxis(x, 0, -1)))
        assert distribution.entropy().item() == pytest.approx(float(reference.entropy()))
        np.testing.assert_allclose(distribution.mean.numpy(), reference.mean())
        np.testing.assert_allclose(distribution.variance.numpy(), reference.var())
        np.testing.assert_allclose(distribution.expand((2,)).mode[1].numpy(), 0.5 * COVARIANCE)
    drawn = distribution.sample((20_000,))
    assert distribution.support.check(drawn[:100]).all()
    np.testing.assert_allclose(drawn.mean(0).numpy(), reference.mean(), atol=0.3)
    np.testing.assert_allclose(drawn.var(0).numpy(), reference.var(), rtol=0.1)


@pytest.mark.parametrize("concentration", [0.5, 1.0, 3.0])
def test_lkj_cholesky(concentration):
    """A correlation of 2 x 2 matrices is 2 x - 1 of a beta number, and its density has the factor's Jacobian."""
    torch.manual_seed(0)
    distribution = dist.LKJCholesky(2, tensor(concentration))
    drawn = distribution.sample((4000,))
    assert constraints.corr_cholesky.check(drawn).all()
    correlation = drawn[:, 1, 0].numpy()
    reference = st.beta(concentration, concentration)
    assert st.kstest((correlation + 1) / 2, reference.cdf).pvalue > 1e-3
    expected = reference.logpdf((correlation[:5] + 1) / 2) - math.log(2)
    np.testing.assert_allclose(distribution.log_prob(drawn[:5]).numpy(), expected)
    larger = dist.LKJCholesky(4, tensor([concentration, 2.0]))
    drawn = larger.sample((2000,))
    assert drawn.shape == (2000, 2, 4, 4)
    matrices = (drawn @ drawn.mT).numpy()
    marginal = st.beta(concentration + 1, concentration + 1)  # of each correlation: concentration + (dim - 2) / 2
    for i, j in ((1, 0), (2, 1), (3, 0), (3, 2)):
        assert st.kstest((matrices[:, 0, i, j] + 1) / 2, marginal.cdf).pvalue > 1e-3


def test_logistic_normal():
    torch.manual_seed(0)
    distribution = dist.LogisticNormal(tensor([0.5]), tensor([0.7]))
    density = lambda x: distribution.log_prob(tensor([x, 1 - x])).exp().item()
    assert integrate.quad(density, 1e-9, 1 - 1e-9)[0] == pytest.approx(1, rel=1e-6)
    assert distribution.sample((3,)).shape == (3, 2)


def test_relaxed_bernoulli():
    torch.manual_seed(0)
    distribution = dist.RelaxedBernoulli(tensor(0.7), tensor(0.3))
    density = lambda x: distribution.log_prob(tensor(x)).exp().item()
    assert integrate.quad(density, 1e-12, 1 - 1e-12)[0] == pytest.approx(1, rel=1e-4)
    drawn = distribution.sample((4000,)).numpy()
    below = integrate.quad(density, 1e-12, 0.4)[0]
    assert (drawn < 0.4).mean() == pytest.approx(below, abs=0.03)


def test_relaxed_one_hot_categorical():
    distribution = dist.RelaxedOneHotCategorical(tensor(0.7), tensor([0.3, 0.7]))
    density = lambda x: distribution.log_prob(tensor([x, 1 - x])).exp().item()
    assert integrate.quad(density, 1e-12, 1 - 1e-12)[0] == pytest.approx(1, rel=1e-4)
    assert (distribution.sample((5,)).sum(-1) - 1).abs().max() < 1e-12


def test_mixture():
    torch.manual_seed(0)
    mixture = dist.MixtureSameFamily(
        dist.Categorical(tensor([0.3, 0.7])), dist.Normal(tensor([-1.0, 2.0]), tensor([0.5, 1.0]))
    )
    cdf = lambda x: 0.3 * st.norm(-1, 0.5).cdf(x) + 0.7 * st.norm(2, 1).cdf(x)
    x = np.linspace(-3, 4, 6)
    pdf = 0.3 * st.norm(-1, 0.5).pdf(x) + 0.7 * st.norm(2, 1).pdf(x)
    np.testing.assert_allclose(mixture.log_prob(tensor(x)).exp().numpy(), pdf)
    np.testing.assert_allclose(mixture.cdf(tensor(x)).numpy(), cdf(x))
    assert mixture.mean.item() == pytest.approx(1.1)
    assert mixture.variance.item() == pytest.approx(0.3 * 0.25 + 0.7 + 0.3 * 0.7 * 9)
    assert st.kstest(mixture.sample((4000,)).numpy(), cdf).pvalue > 1e-3
    vectors = dist.MixtureSameFamily(
        dist.Categorical(torch.ones(5, 3)), dist.Independent(dist.Normal(torch.zeros(5, 3, 2), 1.0), 1)
    )
    assert vectors.expand((4, 5)).sample((6,)).shape == (6, 4, 5, 2)
    assert vectors.log_prob(torch.zeros(5, 2)).shape == (5,)
    assert vectors.mean.shape == vectors.variance.shape == (5, 2)


def test_independent():
    distribution = dist.Independent(dist.Normal(torch.zeros(2, 3, 4), 1.0), 2)
    assert (distribution.batch_shape, distribution.event_shape) == ((2,), (3, 4))
    x = distribution.sample((5,))
    np.testing.assert_allclose(
        distribution.log_prob(x).numpy(), distribution.base_dist.log_prob(x).sum((-2, -1)).numpy(), rtol=1e-5
    )
    assert distribution.expand((7, 2)).sample().shape == (7, 2, 3, 4)
    assert distribution.entropy().shape == (2,)
    with pytest.raises(NotImplementedError, match="cartesian"):
        dist.Independent(dist.Bernoulli(torch.ones(2) / 2), 1).enumerate_support()


# ---- divergences

HALF_LINE = [
    lambda: dist.Exponential(tensor(1.5)),
    lambda: dist.Gamma(tensor(2.5), tensor(1.5)),
    lambda: dist.Chi2(tensor(3.0)),
    lambda: dist.HalfNormal(tensor(1.5)),
    lambda: dist.Pareto(tensor(0.5), tensor(3.5)),
    lambda: dist.LogNormal(tensor(0.5), tensor(0.7)),
]
LINE = [
    lambda: dist.Normal(tensor(0.5), tensor(1.5)),
    lambda: dist.Laplace(tensor(0.2), tensor(0.7)),
    lambda: dist.Gumbel(tensor(0.2), tensor(1.2)),
    lambda: dist.Cauchy(tensor(0.2), tensor(1.2)),
]
INTERVAL = [
    lambda: dist.Beta(tensor(2.5), tensor(1.5)),
    lambda: dist.ContinuousBernoulli(tensor(0.3)),
    lambda: dist.Uniform(tensor(0.0), tensor(1.0)),
    lambda: dist.Uniform(tensor(0.6), tensor(0.9)),
]


def pairs(ps, qs):
    """Those with a rule."""
    found = []
    for p, q in itertools.product(ps, qs):
        try:
            dist.kl_divergence(p(), q())
        except NotImplementedError:
            continue
        found.append(pytest.param(p, q, id=f"{type(p()).__name__}-{type(q()).__name__}"))
    return found


def integral(p, q, low, high):
    def term(x):
        log_p = p.log_prob(tensor(x)).item()
        return math.exp(log_p) * (log_p - q.log_prob(tensor(x)).item()) if log_p > -700 else 0.0

    ends = sorted({low, high, *(x for x in (0.0, 0.2, 0.5, 0.6, 0.9, 1.0) if low < x < high)})
    return sum(integrate.quad(term, a, b, limit=200, epsrel=1e-6)[0] for a, b in itertools.pairwise(ends))


@pytest.mark.parametrize(("p", "q"), pairs(LINE, LINE))
def test_divergence_on_the_line(p, q):
    p, q = p(), q()
    expected = integral(p, q, -60.0, 60.0) if type(p) is not dist.Cauchy else integral(p, q, -1e6, 1e6)
    assert dist.kl_divergence(p, q).item() == pytest.approx(expected, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(("p", "q"), pairs(HALF_LINE, HALF_LINE + LINE))
def test_divergence_on_the_half_line(p, q):
    p, q = p(), q()
    kl = dist.kl_divergence(p, q).item()
    if type(q) is dist.Pareto and type(p) is not dist.Pareto:
        assert kl == math.inf
        return
    low = 0.5 if type(p) is dist.Pareto else 1e-9
    high = 40.0 if type(p) not in (dist.Pareto, dist.LogNormal) else 3e3
    assert kl == pytest.approx(integral(p, q, low, high), rel=2e-3, abs=1e-6)


@pytest.mark.parametrize(("p", "q"), pairs(INTERVAL, INTERVAL + HALF_LINE + LINE))
def test_divergence_on_the_interval(p, q):
    p, q = p(), q()
    kl = dist.kl_divergence(p, q).item()
    q_low, q_high = (q.low.item(), q.high.item()) if type(q) is dist.Uniform else (0.0, 1.0)
    if type(q) is dist.Pareto:
        q_low, q_high = q.scale.item(), math.inf
    p_low, p_high = (p.low.item(), p.high.item()) if type(p) is dist.Uniform else (0.0, 1.0)
    if q_low > p_low or q_high < p_high:
        assert kl == math.inf
        return
    assert kl == pytest.approx(integral(p, q, max(p_low, 1e-12), min(p_high, 1 - 1e-12)), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (lambda: dist.Bernoulli(tensor(0.3)), lambda: dist.Bernoulli(tensor(0.6))),
        (lambda: dist.Bernoulli(tensor(0.0)), lambda: dist.Bernoulli(tensor(0.6))),
        (lambda: dist.Bernoulli(tensor(0.3)), lambda: dist.Poisson(tensor(0.6))),
        (lambda: dist.Binomial(5, tensor(0.3)), lambda: dist.Binomial(5, tensor(0.6))),
        (lambda: dist.Geometric(tensor(0.3)), lambda: dist.Geometric(tensor(0.6))),
        (lambda: dist.Poisson(tensor(0.3)), lambda: dist.Poisson(tensor(0.6))),
        (lambda: dist.Categorical(tensor([0.3, 0.7])), lambda: dist.Categorical(tensor([0.6, 0.4]))),
        (lambda: dist.Categorical(tensor([0.0, 1.0])), lambda: dist.Categorical(tensor([0.6, 0.4]))),
    ],
)
def test_divergence_of_discrete_distributions(p, q):
    p, q = p(), q()
    values = p.enumerate_support() if p.has_enumerate_support else torch.arange(150, **DOUBLE)
    log_p, log_q = p.log_prob(values), q.log_prob(values)
    expected = (log_p.exp() * (log_p - log_q)).sum().item()
    assert dist.kl_divergence(p, q).item() == pytest.approx(expected, rel=1e-9)


def test_divergence_is_infinite_where_the_support_does_not_fit():
    assert dist.kl_divergence(dist.Bernoulli(tensor(0.5)), dist.Bernoulli(tensor(0.0))).item() == math.inf
    categorical = dist.Categorical(tensor([0.0, 1.0]))
    assert dist.kl_divergence(dist.Categorical(tensor([0.5, 0.5])), categorical).item() == math.inf
    assert dist.kl_divergence(dist.Poisson(tensor(1.0)), dist.Bernoulli(tensor(0.5))).item() == math.inf


def test_divergence_of_what_is_certain():
    certain, geometric = dist.Geometric(tensor(1.0)), dist.Geometric(tensor(0.25))
    assert dist.kl_divergence(certain, certain).item() == 0
    assert dist.kl_divergence(certain, geometric).item() == pytest.approx(-math.log(0.25))
    assert dist.kl_divergence(geometric, certain).item() == math.inf


def wishart(df, scale):
    return dist.Wishart(tensor(df), scale * torch.eye(2, **DOUBLE))


def test_divergence_of_multivariate_distributions():
    needs("linalg")
    other = tensor([[1.5, -0.2, 0.0], [-0.2, 2.0, 0.4], [0.0, 0.4, 1.0]])
    factor, diag = tensor([[0.5], [-0.2], [0.4]]), tensor([0.7, 1.5, 0.9])
    low_rank = dist.LowRankMultivariateNormal(tensor([0.0, 1.0, 0.0]), factor, diag)
    normals = [
        *multivariate_normals(),
        dist.MultivariateNormal(tensor([0.0, 1.0, 0.0]), other),
        low_rank,
        dist.MultivariateNormal(low_rank.loc, low_rank.covariance_matrix),
    ]
    for p, q in itertools.product(normals, normals):
        shift = (q.loc - p.loc).numpy()
        a, b = p.covariance_matrix.numpy(), q.covariance_matrix.numpy()
        inverse = np.linalg.inv(b)
        log_dets = np.linalg.slogdet(b)[1] - np.linalg.slogdet(a)[1]
        expected = 0.5 * (log_dets + np.trace(inverse @ a) + shift @ inverse @ shift - 3)
        assert dist.kl_divergence(p, q).item() == pytest.approx(expected, abs=1e-9)
        wide = dist.kl_divergence(p.expand((2, 1)), q.expand((4,)))
        np.testing.assert_allclose(wide.numpy(), np.full((2, 4), expected), atol=1e-9)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (lambda: dist.Dirichlet(tensor([0.7, 2.0])), lambda: dist.Dirichlet(tensor([1.5, 1.0]))),
        (lambda: wishart(4.0, 1.0), lambda: wishart(5.5, 2.0)),
    ],
    ids=["Dirichlet", "Wishart"],
)
def test_divergence_by_sampling(p, q):
    needs("linalg")
    torch.manual_seed(0)
    p, q = p(), q()
    x = p.sample((100_000,))
    terms = p.log_prob(x) - q.log_prob(x)
    error = terms.std().item() / len(terms) ** 0.5
    assert dist.kl_divergence(p, q).item() == pytest.approx(terms.mean().item(), abs=5 * error)


def test_divergence_of_wrapped_distributions():
    p, q = dist.Normal(torch.zeros(3), 1.0), dist.Normal(torch.ones(3), 2.0)
    plain = dist.kl_divergence(p, q)
    np.testing.assert_allclose(
        dist.kl_divergence(dist.Independent(p, 1), dist.Independent(q, 1)).item(), plain.sum().item(), rtol=1e-6
    )
    moved = [dist.TransformedDistribution(base, dist.ExpTransform()) for base in (p, q)]
    np.testing.assert_allclose(dist.kl_divergence(*moved).numpy(), plain.numpy())
    with pytest.raises(NotImplementedError):
        dist.kl_divergence(dist.Independent(p, 1), dist.Independent(dist.Normal(torch.zeros(1, 3), 1.0), 2))
    with pytest.raises(NotImplementedError):
        dist.kl_divergence(moved[0], dist.TransformedDistribution(q, dist.SigmoidTransform()))


def test_divergence_rules_follow_inheritance():
    class Left(dist.Normal):
        pass

    class Right(dist.Normal):
        pass

    assert dist.kl_divergence(Left(0.0, 1.0), Right(1.0, 1.0)).item() == pytest.approx(0.5)
    dist.register_kl(Left, dist.Normal)(lambda p, q: "left")
    assert dist.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0)) == "left"
    dist.register_kl(dist.Normal, Right)(lambda p, q: "right")
    with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(Left, Right\)"):
        assert dist.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0)) == "left"
    with pytest.raises(
        NotImplementedError, match=r"No KL\(p \|\| q\) is implemented for p type Normal and q type Cauchy"
    ):
        dist.kl_divergence(dist.Normal(0.0, 1.0), dist.Cauchy(0.0, 1.0))
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass"):
        dist.register_kl(int, dist.Normal)


def test_exponential_family_by_differentiation():
    needs("autograd")

    class Rate(dist.ExponentialFamily):
        """The exponential distribution by its natural parameter."""

        arg_constraints = {}
        _mean_carrier_measure = 0

        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape)

        @property
        def _natural_params(self):
            return (-self.rate,)

        def _log_normalizer(self, x):
            return -torch.log(-x)

    p, q = Rate(tensor([0.5, 2.0])), Rate(tensor([1.5, 1.0]))
    known = [dist.Exponential(each.rate) for each in (p, q)]
    np.testing.assert_allclose(p.entropy().detach().numpy(), known[0].entropy().numpy())
    np.testing.assert_allclose(dist.kl_divergence(p, q).detach().numpy(), dist.kl_divergence(*known).numpy())


# ---- the base class


@pytest.mark.parametrize("name", UNIVARIATE)
def test_expand(name):
    distribution = UNIVARIATE[name][0]()
    wide = distribution.expand((2, 3))
    assert type(wide) is type(distribution)
    assert wide.batch_shape == (2, 3)
    assert wide.sample((4,)).shape == (4, 2, 3)
    assert wide.mean.shape == wide.variance.shape == (2, 3)
    x = distribution.sample()
    np.testing.assert_allclose(wide.log_prob(x).numpy(), np.full((2, 3), distribution.log_prob(x).item()), rtol=1e-12)


@pytest.mark.parametrize("name", UNIVARIATE)
def test_copies_and_pickles(name):
    distribution = UNIVARIATE[name][0]()
    x = distribution.sample((3,))
    for other in (copy.deepcopy(distribution), pickle.loads(pickle.dumps(distribution))):
        assert other.log_prob(x).tolist() == distribution.log_prob(x).tolist()


def test_numbers_and_tensors_as_parameters():
    assert dist.Normal(0, 1).loc.dtype == torch.float32
    mixed = dist.Normal(torch.zeros(2, dtype=torch.float64), 1)
    assert (mixed.scale.dtype, mixed.scale.shape) == (torch.float64, (2,))
    assert dist.Gamma(torch.ones(3, 1), torch.ones(2)).batch_shape == (3, 2)
    with pytest.raises(ValueError, match="Input arguments must all be instances of Number"):
        dist.Normal("0", 1.0)
    with pytest.raises(RuntimeError):
        dist.Normal(torch.zeros(2), torch.ones(3))


def test_validation_names_parameter_and_constraint():
    with pytest.raises(
        ValueError,
        match=r"parameter scale \(Tensor of shape \(2,\)\) of distribution Normal\(.*"
        r"constraint GreaterThan\(lower_bound=0.0\)",
    ):
        dist.Normal(torch.zeros(2), torch.tensor([-1.0, 1.0]))
    normal = dist.Normal(torch.zeros(2), 1.0)
    with pytest.raises(ValueError, match="within the support \\(Real\\(\\)\\)"):
        normal.log_prob(torch.tensor([math.nan, 0.0]))
    with pytest.raises(ValueError, match="not broadcastable with batch_shape\\+event_shape"):
        normal.log_prob(torch.zeros(3))
    with pytest.raises(ValueError, match="must be a Tensor"):
        normal.log_prob(0.0)
    with pytest.raises(ValueError, match="right-most size of value must match event_shape"):
        dist.Dirichlet(torch.ones(3)).log_prob(torch.ones(2))
    assert dist.Normal(torch.zeros(2), -1.0, validate_args=False).log_prob(torch.zeros(3, 1)).shape == (3, 2)


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda check: dist.Gumbel(tensor(0.0), tensor(1.0), validate_args=check), math.nan),
        (lambda check: dist.Kumaraswamy(tensor(2.0), tensor(3.0), validate_args=check), 1.5),
        (lambda check: dist.LogNormal(tensor(0.0), tensor(1.0), validate_args=check), -1.0),
        (lambda check: dist.Uniform(tensor(0.0), tensor(1.0), validate_args=check), 1.5),
        (lambda check: dist.Weibull(tensor(1.0), tensor(1.5), validate_args=check), -1.0),
    ],
)
def test_distribution_functions_check_values(make, value):
    with pytest.raises(ValueError, match="within the support"):
        make(True).cdf(tensor(value))
    make(False).cdf(tensor(value))


def test_gumbel_in_its_tails():
    gumbel = dist.Gumbel(tensor(0.5), tensor(2.0))
    x = np.array([-math.inf, -10.0, 60.0, 1e10, math.inf])
    np.testing.assert_allclose(gumbel.cdf(tensor(x)).numpy(), st.gumbel_r(0.5, 2).cdf(x), rtol=1e-13)


def test_continuous_bernoulli_names_its_parameter():
    with pytest.raises(ValueError, match=r"parameter probs .* of distribution ContinuousBernoulli\(probs: -0.5\)"):
        dist.ContinuousBernoulli(tensor(-0.5))


def test_validation_can_be_switched_off():
    try:
        dist.Distribution.set_default_validate_args(False)
        dist.Normal(0.0, -1.0)
        dist.Normal(0.0, 1.0).log_prob(torch.tensor(math.nan))
    finally:
        dist.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="value"):
        dist.Distribution.set_default_validate_args(3)


def test_probs_or_logits():
    for cls in (dist.Bernoulli, dist.Geometric, dist.ContinuousBernoulli, dist.Categorical):
        for arguments in ({}, {"probs": tensor([0.5]), "logits": tensor([0.0])}):
            with pytest.raises(ValueError, match="Either `probs` or `logits` must be specified, but not both"):
                cls(**arguments)
    bernoulli = dist.Bernoulli(logits=tensor([0.0, math.log(3)]))
    np.testing.assert_allclose(bernoulli.probs.numpy(), [0.5, 0.75])
    np.testing.assert_allclose(dist.Bernoulli(bernoulli.probs).logits.numpy(), bernoulli.logits.numpy())
    assert dist.Bernoulli(tensor([0.0, 1.0])).logits.isfinite().all()


def test_logits_that_are_cached_under_no_grad_keep_their_gradient():
    needs("autograd")
    probs = tensor([0.3]).requires_grad_()
    bernoulli = dist.Bernoulli(probs)
    with torch.no_grad():
        bernoulli.log_prob(tensor([1.0]))
    (gradient,) = torch.autograd.grad(bernoulli.log_prob(tensor([1.0])).sum(), probs)
    assert gradient.item() == pytest.approx(1 / 0.3)


def test_samples_have_no_gradient():
    needs("autograd")
    loc = torch.zeros(2, requires_grad=True)
    assert not dist.Normal(loc, 1.0).sample().requires_grad
    assert dist.Normal(loc, 1.0).rsample().requires_grad
    assert not dist.LogNormal(loc, 1.0).sample().requires_grad


def test_subclasses_define_expand():
    class Plain(dist.Distribution):
        arg_constraints = {}

    class Unit(dist.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError):
        Plain().expand((2,))
    with pytest.raises(NotImplementedError, match="that defines a custom __init__ method must also define a custom"):
        Unit().expand((2,))

    class Scaled(dist.Normal):
        def __init__(self, scale):
            super().__init__(0.0, scale)

        def expand(self, batch_shape, _instance=None):
            return super().expand(batch_shape, _instance=self._get_checked_instance(Scaled, _instance))

    assert Scaled(2.0).expand((3,)).sample().shape == (3,)
    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        dist.Distribution()


@pytest.mark.parametrize(
    "attribute", ["mean", "mode", "variance", "support", "rsample", "log_prob", "cdf", "icdf", "entropy"]
)
def test_what_is_not_there_raises(attribute):
    class Plain(dist.Distribution):
        arg_constraints = {}

    def use():
        value = getattr(Plain(), attribute)
        value(torch.zeros(())) if attribute not in ("entropy", "rsample") else value()

    with pytest.raises(NotImplementedError):
        use()


def test_repr():
    assert repr(dist.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(dist.Normal(torch.zeros(2), 1.0)) == "Normal(loc: torch.Size([2]), scale: torch.Size([2]))"
    assert repr(dist.Bernoulli(logits=0.5)) == "Bernoulli(logits: 0.5)"
    inner = "Normal(loc: torch.Size([3]), scale: torch.Size([3]))"
    assert repr(dist.Independent(dist.Normal(torch.zeros(3), 1.0), 1)) == f"Independent({inner}, 1)"


def test_von_mises_of_extreme_concentrations():
    torch.manual_seed(0)
    concentration = tensor([0.0, -1.0, 1e-8, 1e9, 1e200, math.inf, math.nan])
    drawn = dist.VonMises(tensor(0.5), concentration, validate_args=False).sample((3000,)).numpy()
    for uniform in drawn[:, :3].T:
        assert st.kstest(uniform, st.uniform(-math.pi, 2 * math.pi).cdf).pvalue > 1e-3
    np.testing.assert_allclose(drawn[:, 3:6], 0.5, atol=1e-3)
    assert np.isnan(drawn[:, 6]).all()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0, 0.0])
@pytest.mark.parametrize("name", [name for name in UNIVARIATE if name != "Binomial"])
def test_parameters_out_of_bounds_do_not_hang(name, value):
    template = UNIVARIATE[name][0]()
    parameters = {key: tensor(value) for key in template.arg_constraints if key not in {"logits"}}
    distribution = type(template)(**parameters, validate_args=False)
    try:
        drawn = distribution.sample((10,))
    except RuntimeError:  # as a negative rate of Poisson numbers
        return
    assert drawn.shape == (10,)


def test_empty_batches():
    for distribution in (
        dist.Normal(torch.zeros(0), 1.0),
        dist.Gamma(torch.ones(0), 1.0),
        dist.Categorical(torch.ones(0, 3)),
        dist.Dirichlet(torch.ones(0, 3)),
        dist.Beta(torch.ones(0), 1.0),
        dist.VonMises(torch.zeros(0), 1.0),
    ):
        drawn = distribution.sample((2,))
        assert drawn.shape == (2, *distribution.batch_shape, *distribution.event_shape)
        assert distribution.log_prob(drawn).shape == (2, 0)
