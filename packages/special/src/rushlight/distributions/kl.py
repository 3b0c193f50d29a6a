"""Kullback-Leibler divergences, by pairs of classes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import rushlight as rl

from .bernoulli import Bernoulli
from .beta import Beta, log_beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal, low_rank_log_det, low_rank_mahalanobis
from .multivariate_normal import MultivariateNormal, half_log_det, mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant
from .wishart import Wishart

__all__ = ["kl_divergence", "register_kl"]

_RULES: dict[tuple[type, type], Callable[..., Any]] = {}
_FOUND: dict[tuple[type, type], Callable[..., Any] | None] = {}
_LOG_2PI = math.log(2 * math.pi)


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the divergence of a pair of classes; a decorator of a function of (p, q).

    A pair serves subclasses too. Of several that fit, the one of the most derived classes is taken.

    Args:
        type_p: Class of the first distribution.
        type_q: Class of the second.

    Raises:
        TypeError: One is no subclass of `Distribution`.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.distributions import Normal, kl_divergence, register_kl
        >>> class Unit(Normal):
        ...     pass
        >>> @register_kl(Unit, Unit)
        ... def unit_unit(p, q):
        ...     return torch.tensor(0.0)
        >>> kl_divergence(Unit(0.0, 1.0), Unit(0.0, 1.0))
        tensor(0.)
    """
    for name, cls in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(cls, type) and issubclass(cls, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {cls}")

    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        _RULES[type_p, type_q] = rule
        _FOUND.clear()
        return rule

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The divergence KL(p || q), the mean of `log(p(x) / q(x))` over x drawn from p, in nats.

    Args:
        p: First distribution.
        q: Second, whose batch broadcasts with the first's.

    Returns:
        Tensor of the shape of the batch.

    Raises:
        NotImplementedError: No rule is registered for the two classes.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
        tensor(0.5000)
    """
    key = type(p), type(q)
    if key not in _FOUND:
        _FOUND[key] = _find(*key)
    rule = _FOUND[key]
    if rule is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return rule(p, q)


def _find(type_p: type, type_q: type) -> Callable[..., Any] | None:
    orders_p, orders_q = type_p.__mro__, type_q.__mro__
    fitting = [pair for pair in _RULES if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not fitting:
        return None
    by_p = min(fitting, key=lambda pair: (orders_p.index(pair[0]), orders_q.index(pair[1])))
    by_q = min(fitting, key=lambda pair: (orders_q.index(pair[1]), orders_p.index(pair[0])))
    if _RULES[by_p] is not _RULES[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl"
            f"({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _RULES[by_p]


# ---- within a family


@register_kl(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(p: Any, q: Any) -> Any:
    a, b = p.probs, q.probs
    success = (a * (a / b).log()).masked_fill(b == 0, rl.inf).masked_fill(a == 0, 0)
    failure = ((1 - a) * ((1 - a) / (1 - b)).log()).masked_fill(b == 1, rl.inf).masked_fill(a == 1, 0)
    return success + failure


@register_kl(Beta, Beta)
def _beta_beta(p: Any, q: Any) -> Any:
    a, b = p.concentration1, p.concentration0
    c, d = q.concentration1, q.concentration0
    total = a + b
    return (
        log_beta(c, d)
        - log_beta(a, b)
        + (a - c) * rl.digamma(a)
        + (b - d) * rl.digamma(b)
        + (c + d - total) * rl.digamma(total)
    )


@register_kl(Binomial, Binomial)
def _binomial_binomial(p: Any, q: Any) -> Any:
    # With equal counts that of as many Bernoulli numbers; with more trials in p, p has values that q has not.
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * _bernoulli_bernoulli(p, q)
    return kl.masked_fill(p.total_count > q.total_count, rl.inf)


@register_kl(Categorical, Categorical)
def _categorical_categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms = rl.where((q.probs == 0).expand_as(terms), rl.inf, terms)
    return rl.where((p.probs == 0).expand_as(terms), 0, terms).sum(-1)


@register_kl(Cauchy, Cauchy)
def _cauchy_cauchy(p: Any, q: Any) -> Any:
    # From Chyzak and Nielsen (2019).
    return (((p.scale + q.scale).square() + (p.loc - q.loc).square()) / (4 * p.scale * q.scale)).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli_continuous_bernoulli(p: Any, q: Any) -> Any:
    return p.mean * (p.logits - q.logits) + p.log_density_at_zero() - q.log_density_at_zero()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(p: Any, q: Any) -> Any:
    # From http://bariskurt.com/kullback-leibler-divergence-between-two-dirichlet-and-beta-distributions/
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    mean_logs = rl.digamma(a) - rl.digamma(total).unsqueeze(-1)
    return (
        rl.lgamma(total) - rl.lgamma(b.sum(-1)) - (rl.lgamma(a) - rl.lgamma(b)).sum(-1) + ((a - b) * mean_logs).sum(-1)
    )


@register_kl(Exponential, Exponential)
def _exponential_exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Any:
    # The Bregman divergence of the log normaliser (Nielsen and Nock, 2010).
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman "
            "divergences"
        )
    params = [param.detach().requires_grad_() for param in p._natural_params]
    normalizer = p._log_normalizer(*params)
    gradients = rl.autograd.grad(normalizer.sum(), params, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for other, own, gradient in zip(q._natural_params, params, gradients, strict=True):
        result = result - _sum_rightmost((other - own) * gradient, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma_gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + rl.lgamma(b)
        - rl.lgamma(a)
        + (a - b) * rl.digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Gumbel, Gumbel)
def _gumbel_gumbel(p: Any, q: Any) -> Any:
    ratio, shift = p.scale / q.scale, (p.loc - q.loc) / q.scale
    moment = rl.exp(-shift + rl.lgamma(1 + ratio))
    return -ratio.log() + shift + euler_constant * (ratio - 1) + moment - 1


@register_kl(Geometric, Geometric)
def _geometric_geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - rl.special.xlog1py(p.mean, -q.probs) - q.probs.log()


@register_kl(HalfNormal, HalfNormal)
def _half_normal_half_normal(p: Any, q: Any) -> Any:
    return _normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace_laplace(p: Any, q: Any) -> Any:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal_normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_one_hot(p: Any, q: Any) -> Any:
    return _categorical_categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _pareto_pareto(p: Any, q: Any) -> Any:
    # From http://www.mast.queensu.ca/~communications/Papers/gil-msc11.pdf
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return kl.masked_fill(p.scale < q.scale, rl.inf)


@register_kl(Poisson, Poisson)
def _poisson_poisson(p: Any, q: Any) -> Any:
    return rl.xlogy(p.rate, p.rate) - rl.xlogy(p.rate, q.rate) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform_uniform(p: Any, q: Any) -> Any:
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return kl.masked_fill((q.low > p.low) | (q.high < p.high), rl.inf)


@register_kl(Wishart, Wishart)
def _wishart_wishart(p: Any, q: Any) -> Any:
    n = p.event_shape[-1]
    trace = _whitened(q._factor, p._factor).square().sum((-2, -1))
    log_normalizers = q._log_normalizer() - p._log_normalizer()
    return log_normalizers + (p.df - q.df) / 2 * p.mean_log_det() + p.df / 2 * (trace - n)


@register_kl(Independent, Independent)
def _independent_independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed_transformed(p: Any, q: Any) -> Any:
    # The same bijection of both leaves the divergence as it is.
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    extra = len(p.event_shape) - len(p.base_dist.event_shape)
    kl = kl_divergence(p.base_dist, q.base_dist)
    return _sum_rightmost(kl, extra) if extra > 0 else kl


# ---- multivariate normal distributions, with full and with low-rank covariances


def _whitened(factor: Any, other: Any) -> Any:
    """`factor^-1 other`, of matrices whose batches broadcast."""
    batch = rl.broadcast_shapes(factor.shape[:-2], other.shape[:-2])
    factor, other = (matrix.expand((*batch, *matrix.shape[-2:])) for matrix in (factor, other))
    return rl.linalg.solve_triangular(factor, other, upper=False)


def _low_rank_trace(q: Any, columns: Any) -> Any:
    """Trace of `columns' Q^-1 columns`, Q the low-rank covariance."""
    scaled = columns / q._diag.unsqueeze(-1)
    inner = _whitened(q._capacitance_tril, q._factor.mT @ scaled)
    return (columns * scaled).sum((-2, -1)) - inner.square().sum((-2, -1))


def _same_event(p: Any, q: Any, what: str) -> int:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {what} with different event shapes cannot be computed")
    return p.event_shape[0]


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_multivariate(p: Any, q: Any) -> Any:
    n = _same_event(p, q, "Multivariate Normals")
    trace = _whitened(q._factor, p._factor).square().sum((-2, -1))
    distance = mahalanobis(q._factor, q.loc - p.loc)
    return half_log_det(q._factor) - half_log_det(p._factor) + 0.5 * (trace + distance - n)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank_low_rank(p: Any, q: Any) -> Any:
    n = _same_event(p, q, "Low Rank Multivariate Normals")
    log_dets = low_rank_log_det(q._diag, q._capacitance_tril) - low_rank_log_det(p._diag, p._capacitance_tril)
    distance = low_rank_mahalanobis(q._factor, q._diag, q.loc - p.loc, q._capacitance_tril)
    trace = _low_rank_trace(q, p._factor) + _low_rank_trace(q, p._diag.sqrt().diag_embed())
    return 0.5 * (log_dets + distance + trace - n)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate_low_rank(p: Any, q: Any) -> Any:
    n = _same_event(p, q, "(Low Rank) Multivariate Normals")
    log_dets = low_rank_log_det(q._diag, q._capacitance_tril) - 2 * half_log_det(p._factor)
    distance = low_rank_mahalanobis(q._factor, q._diag, q.loc - p.loc, q._capacitance_tril)
    return 0.5 * (log_dets + distance + _low_rank_trace(q, p._factor) - n)


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_multivariate(p: Any, q: Any) -> Any:
    n = _same_event(p, q, "(Low Rank) Multivariate Normals")
    log_dets = 2 * half_log_det(q._factor) - low_rank_log_det(p._diag, p._capacitance_tril)
    trace = sum(_whitened(q._factor, part).square().sum((-2, -1)) for part in (p._factor, p._diag.sqrt().diag_embed()))
    return 0.5 * (log_dets + mahalanobis(q._factor, q.loc - p.loc) + trace - n)


# ---- between families


def _infinite(p: Any, q: Any) -> Any:
    """Where p has values that q has not."""
    shape = rl.broadcast_shapes(p.batch_shape, q.batch_shape)
    like = next(value for value in p.__dict__.values() if isinstance(value, rl.Tensor))
    return rl.full(shape, rl.inf, dtype=like.dtype, device=like.device)


_WIDER: dict[Any, list[Any]] = {
    Beta: [Pareto],
    ContinuousBernoulli: [Pareto],
    Exponential: [Beta, ContinuousBernoulli, Pareto, Uniform],
    Gamma: [Beta, ContinuousBernoulli, Pareto, Uniform],
    Gumbel: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Laplace: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Normal: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Pareto: [Beta, ContinuousBernoulli, Uniform],
    Poisson: [Bernoulli, Binomial],
}
for _p, _qs in _WIDER.items():
    for _q in _qs:
        register_kl(_p, _q)(_infinite)


def _cross_normal(p: Any, q: Any, variance: Any, mean: Any) -> Any:
    """KL(p || q) of a normal q, from the moments of p."""
    spread = (variance + (mean - q.loc).square()) / (2 * q.scale.square())
    return -p.entropy() + 0.5 * _LOG_2PI + q.scale.log() + spread


def _to_normal(p: Any, q: Any) -> Any:
    return _cross_normal(p, q, p.variance, p.mean)


for _p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform):
    register_kl(_p, Normal)(_to_normal)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Any:
    return _to_normal(p, q).masked_fill(p.alpha <= 2, rl.inf)


def _to_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


for _p in (Beta, ContinuousBernoulli, Gamma):
    register_kl(_p, Exponential)(_to_exponential)


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Any:
    return _to_exponential(p, q).masked_fill(p.alpha <= 1, rl.inf)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    return _to_exponential(p, q).masked_fill(p.low < 0, rl.inf)


def _cross_gamma(p: Any, q: Any, mean_log: Any) -> Any:
    """KL(p || q) of a gamma q, from the mean of the logarithm over p."""
    b = q.concentration
    return -p.entropy() - b * q.rate.log() + rl.lgamma(b) - (b - 1) * mean_log + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Any:
    mean_log = rl.digamma(p.concentration1) - rl.digamma(p.concentration1 + p.concentration0)
    return _cross_gamma(p, q, mean_log)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Any:
    return _cross_gamma(p, q, -euler_constant - p.rate.log())


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Any:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    return _cross_gamma(p, q, mean_log).masked_fill(p.alpha <= 1, rl.inf)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    mean_log = (rl.xlogy(p.high, p.high) - rl.xlogy(p.low, p.low)) / (p.high - p.low) - 1
    return _cross_gamma(p, q, mean_log).masked_fill(p.low < 0, rl.inf)


def _cross_gumbel(p: Any, q: Any, moment: Any) -> Any:
    """KL(p || q) of a Gumbel q, from the mean of `exp((loc - x) / scale)` over p."""
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + moment


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Any:
    return _cross_gumbel(p, q, (q.loc / q.scale).exp() * (p.rate / (p.rate + 1 / q.scale)))


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Any:
    moment = (q.loc / q.scale - p.concentration * (1 / (p.rate * q.scale)).log1p()).exp()
    return _cross_gumbel(p, q, moment)


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Any:
    shift, ratio = (p.loc - q.loc) / q.scale, p.scale / q.scale
    return _cross_gumbel(p, q, (-shift + 0.5 * ratio.square()).exp())


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Any:
    low, high = ((q.loc - end) / q.scale for end in (p.low, p.high))
    return _cross_gumbel(p, q, (low.exp() - high.exp()) * q.scale / (p.high - p.low))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    distance = p.loc - q.loc
    z = distance / p.scale
    folded = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z.square()).exp() + distance * rl.erf(z / math.sqrt(2))
    return -p.entropy() + (2 * q.scale).log() + folded / q.scale


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - q.log_density_at_zero()


def _within(p: Any, kl: Any, low: Any, high: Any) -> Any:
    return kl.masked_fill((p.low < low) | (p.high > high), rl.inf)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    a, b, width = q.concentration1, q.concentration0, p.high - p.low
    mean_log = (rl.xlogy(p.high, p.high) - rl.xlogy(p.low, p.low)) / width - 1
    mean_log_rest = (rl.xlogy(1 - p.low, 1 - p.low) - rl.xlogy(1 - p.high, 1 - p.high)) / width - 1
    return _within(p, -p.entropy() - (a - 1) * mean_log - (b - 1) * mean_log_rest + log_beta(a, b), 0, 1)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    return _within(p, -p.entropy() - p.mean * q.logits - q.log_density_at_zero(), 0, 1)


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_uniform(p: Any, q: Any) -> Any:
    kl = -p.entropy() + (q.high - q.low).log()
    return kl.masked_fill((q.low > 0) | (q.high < 1), rl.inf)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    mean_log = (rl.xlogy(p.high, p.high) - rl.xlogy(p.low, p.low)) / (p.high - p.low) - 1
    kl = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * mean_log
    return kl.masked_fill(p.low < q.scale, rl.inf)
