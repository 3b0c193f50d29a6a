"""Derivatives of the gamma function's family, written in ops: of any order, on any device.

Where values of two functions cancel in the textbook's formula, these sum series or integrals of one sign instead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import rushlight

# The numbers of Bernoulli, B_2 and so on.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def trigamma(z: Any) -> Any:
    """The derivative of digamma, by reflection, fifteen steps up and the asymptotic series: of any order, of any z."""
    reflected = (z.real if z.is_complex() else z) < 0.5
    w = rushlight.where(reflected, 1 - z, z)
    total = rushlight.zeros_like(w)
    for _ in range(15):
        total = total + 1 / (w * w)
        w = w + 1
    square, series = 1 / (w * w), 7 / 6
    for bernoulli in (-691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):
        series = bernoulli + square * series
    total = total + 1 / w + square / 2 + square / w * series
    sine = rushlight.where(reflected, (math.pi * z).sin(), 1)
    return rushlight.where(reflected, (math.pi / sine) ** 2 - total, total)


def digamma_rise(a: Any, b: Any) -> Any:
    """digamma(a + b) - digamma(a), whose digits do not cancel for small b or large a, both above 0."""
    regular = (a > 0) & (a + b > 0)
    low, rise = a.where(regular, 1), b.where(regular, 0)
    total: Any = 0
    for k in range(10):
        total = total + rise / (low + k + rise) / (low + k)
    low = low + 10
    high = low + rise
    total = total + (rise / low).log1p() + rise / high / (2 * low)
    # p^k - q^k = (p - q) (p^(k - 1) + ... + q^(k - 1)) for p = 1 / high^2 and q = 1 / low^2
    p, q = 1 / (high * high), 1 / (low * low)
    quotient, power, series = 1.0, 1.0, 0.0
    for k, bernoulli in enumerate(_BERNOULLI[:7], 1):
        series = series + bernoulli / (2 * k) * quotient
        power = power * q
        quotient = p * quotient + power
    total = total + (rise * p) * ((low + high) * q) * series
    a, b = a.where(~regular, 1), b.where(~regular, 0)
    return total.where(regular, rushlight.special.digamma(a + b) - rushlight.special.digamma(a))


def rgamma_slope(x: Any) -> Any:
    """The derivative of 1 / gamma: below 1/2 by reflection, in which its poles are regular points."""
    left = x < 0.5
    reflected, right = 1 - x.where(left, 0), x.where(~left, 1).clamp(max=300)
    angle = math.pi * x
    slope = angle.cos() - angle.sin() / math.pi * rushlight.special.digamma(reflected)
    below = slope * rushlight.special.gammaln(reflected).exp()
    return below.where(left, -rushlight.special.digamma(right) * (-rushlight.special.gammaln(right)).exp())


# -- the incomplete gamma function


def gamma_density(a: Any, x: Any) -> Any:
    """x^(a - 1) exp(-x) / gamma(a); from 20 on by Stirling's formula (DLMF 5.11.1), in which nothing cancels."""
    large = a > 20
    big = a.where(large, 20)
    excess = (x - big) / big
    square, series = 1 / (big * big), 0.0
    for coefficient in (-1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        series = coefficient + square * series
    exponent = big * (excess.log1p() - excess) - series / big
    beyond = exponent.exp() * (big / (2 * math.pi)).sqrt() / x
    small = a.where(~large, 20)
    density = (rushlight.special.xlogy(small - 1, x) - x - rushlight.special.gammaln(small)).exp()
    density = beyond.where(large, density).where((a >= 0) & (x >= 0), math.nan)
    return density.where((x < math.inf) & (a < math.inf), 0)


def gammaincc_slope(a: Any, x: Any) -> Any:
    """The derivative of `gammaincc` in a, to full relative accuracy, at a = 0 too.

    For x up to 1 by the derivative of the series DLMF 8.7.1. Beyond it is an integral from x, or to x, of the density
    times log(t) - digamma(a), which has one sign on either side of its zero: by Gauss's rule in log(t).
    """
    end = (x == 0) | (x == math.inf) | (a == math.inf)
    inner = x.where(~end, 1)
    low = inner <= 1
    slope = _near(a, inner.where(low, 1)).where(low, _far(a, inner.where(~low, 2)))
    return slope.where(~end, 0)


def _near(a: Any, x: Any) -> Any:
    value, slope, term = 1.0, 0.0, 1.0
    for k in range(1, 20):
        term = term * (-x / k)
        part = term / (a + k)
        value = value + a * part
        slope = slope + k * part / (a + k)
    scale = (rushlight.special.xlogy(a, x) - rushlight.special.gammaln(a + 1)).exp()
    return -scale * (value * (x.log() - rushlight.special.digamma(a + 1)) + slope)


def _far(a: Any, x: Any) -> Any:
    gap = 1 + a * _log_less_digamma(a, x)  # a (log(x) - digamma(a))
    sign = gap.detach().sign()
    sign = sign.where(sign != 0, 1)
    # At `width` the density has fallen to exp(-40), by bounds of its exponent in two powers of the distance.
    u, v = a.detach(), x.detach()
    above = 80 / ((1 - u / v) + ((1 - u / v).square() + 80 * u / v.square()).sqrt())
    below = 80 / ((u - v) + ((u - v).square() + 160 / 3 * v).sqrt())
    below = below.where(below < 1, (40 + v) / u.clamp(min=1))
    width = ((1.1 * above + 30) / v).log1p().where(sign > 0, below)
    total: Any = 0.0
    for node, weight in zip(*_NODES, strict=True):
        step = sign * width * node
        total = total + weight * (gap + a * step) * (a * step - x * step.expm1()).exp()
    return gamma_density(a + 1, x) * sign * width * total


def _log_less_digamma(a: Any, x: Any) -> Any:
    """log(x) - digamma(a + 1)."""
    large = a > 20
    big = a.where(large, 20)
    square, series = 1 / (big * big), 0.0
    for k in (4, 3, 2, 1):
        series = square * (_BERNOULLI[k - 1] / (2 * k) + series)
    beyond = ((x - big) / big).log1p() - 1 / (2 * big) + series
    return beyond.where(large, x.log() - rushlight.special.digamma(a.where(~large, 20) + 1))


_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_NODES = (((_POINTS + 1) / 2).tolist(), (_WEIGHTS / 2).tolist())

# -- the zeta function


def zeta_slope(s: Any, q: Any) -> Any:
    """The derivative of the Hurwitz zeta function in s, of Euler and Maclaurin's formula (DLMF 25.11.28)."""
    total: Any = 0.0
    s, q = s.clamp(max=1e300), q.clamp(max=1e300)
    for k in range(10):
        log = (q + k).log()
        total = total - log * (-s * log).exp()
    z = q + 10
    log, pole = z.log(), s - 1
    total = total - (-s * log).exp() * (z / pole * (log + 1 / pole) + log / 2)
    s = s.clamp(max=300)  # beyond, what follows is nothing beside the terms
    term = (-(s + 1) * log).exp()
    slope, term = term * (1 - s * log), term * s
    for k, bernoulli in enumerate(_BERNOULLI, 1):
        total = total + bernoulli / math.factorial(2 * k) * slope
        factor = (s + (2 * k - 1)) * (s + 2 * k)
        slope, term = (slope * factor + term * (2 * s + (4 * k - 1))) / (z * z), term * factor / (z * z)
    return total


def zetac_slope(x: Any) -> Any:
    """The derivative of `zetac`, below 0 by reflection (DLMF 25.4.1)."""
    left = x < 0
    t = 1 - x.where(left, -1)
    zeta = rushlight.special.zeta(t, 1)
    sine, cosine = (t * (math.pi / 2)).sin(), (t * (math.pi / 2)).cos()
    log = rushlight.special.digamma(t) - math.log(2 * math.pi)
    slope = cosine * (log * zeta + zeta_slope(t, rushlight.ones_like(t))) - math.pi / 2 * sine * zeta
    below = -2 * (rushlight.special.gammaln(t) - t * math.log(2 * math.pi)).exp() * slope
    return below.where(left, zeta_slope(x.where(~left, 2), rushlight.full_like(t, 2)))
