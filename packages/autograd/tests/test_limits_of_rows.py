"""Functions of rows of numbers where squares and products leave the range, their derivatives, against mpmath.

The exact functions are formulas, evaluated with digits enough for the range of doubles, and derived by differences.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import rushlight as torch
from rushlight.autograd import forward_ad, grad
from rushlight.plugin import plugins, require

require("autograd", "rushlight.autograd")
needs_nn = pytest.mark.skipif(all(p.name != "nn" for p in plugins()), reason="needs rushlight-nn")
sqrt, fsum = mpmath.sqrt, mpmath.fsum
BASE = [1.0, 3.0, -1.0, 5.5]
SCALES = [1e-300, 1e-200, 1e-160, 1e-20, 1.0, 1e20, 1e154, 1e200, 1e300]
DIGITS = 800
STEP = mpf(10) ** -25


def scaled(values, scales=SCALES):
    return [[v * s for v in values] for s in scales]


@dataclass
class Row:
    """A function of rows.

    Attributes:
        call: The function, of a 1-d tensor.
        exact: The results, of a list of mpf's.
        points: Where to test.
        rtol: Largest error, relative to the largest of the results, or of the derivatives of one order.
        half: Whether float16 computes in float32.
    """

    call: Callable
    exact: Callable
    points: list = field(default_factory=lambda: scaled(BASE))
    rtol: float = 1e-12
    half: bool = True


def weighted(results):
    return fsum((k + 1) * (-1) ** k * r for k, r in enumerate(results))


def weights(y):
    return torch.tensor([(k + 1.0) * (-1) ** k for k in range(y.numel())], dtype=y.dtype).reshape(y.shape)


def exact_derivatives(exact, point):
    """The first and second derivatives of the weighted sum of the results, by central differences."""
    with mpmath.workdps(DIGITS):
        x = [mpf(v) for v in point]
        steps = [STEP * max(abs(v) for v in x)] * len(x)

        def at(*moves):
            moved = list(x)
            for i, k in moves:
                moved[i] += k * steps[i]
            return weighted(exact(moved))

        first = [(at((i, 1)) - at((i, -1))) / (2 * steps[i]) for i in range(len(x))]
        second = [
            [
                (at((i, 1), (j, 1)) - at((i, 1), (j, -1)) - at((i, -1), (j, 1)) + at((i, -1), (j, -1)))
                / (4 * steps[i] * steps[j])
                for j in range(len(x))
            ]
            for i in range(len(x))
        ]
        return [float(v) for v in first], [[float(v) for v in row] for row in second]


def close(found, expected, rtol, what):
    largest = np.abs(expected).max()
    if np.isinf(largest):
        return  # not to be held by doubles
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * largest + 1e-307, err_msg=what)


def check(case, point):
    with mpmath.workdps(DIGITS):
        values = [float(v) for v in case.exact([mpf(v) for v in point])]
    first, second = exact_derivatives(case.exact, point)
    x = torch.tensor(point, dtype=torch.float64, requires_grad=True)
    y = case.call(x)
    close(y.detach().flatten().numpy(), values, case.rtol, f"the value at {point}")
    (plain,) = grad((y * weights(y)).sum(), x, retain_graph=True)
    close(plain.numpy(), first, case.rtol, f"the gradient at {point}")
    (slopes,) = grad((y * weights(y)).sum(), x, create_graph=True)
    close(slopes.detach().numpy(), first, case.rtol, f"the gradient at {point} that is to be differentiated")
    rows = [grad(s, x, retain_graph=True)[0].tolist() for s in slopes]
    close(np.array(rows), second, case.rtol, f"the second derivatives at {point}")
    with forward_ad.dual_level():
        tangents = [
            forward_ad.unpack_dual(case.call(forward_ad.make_dual(x.detach(), direction))).tangent
            for direction in torch.eye(len(point), dtype=x.dtype)
        ]
    forward = [(t * weights(t)).sum().item() for t in tangents]
    close(forward, first, case.rtol, f"the derivatives at {point} in forward mode")


def mean(x):
    return fsum(x) / len(x)


def variance(x, correction=1):
    centre = mean(x)
    return fsum((v - centre) ** 2 for v in x) / (len(x) - correction)


def normalized(eps, centre=mean):
    def exact(x):
        c = centre(x)
        root = sqrt(fsum((v - c) ** 2 for v in x) / len(x) + mpf(eps))
        return [(v - c) / root for v in x]

    return exact


SPREADS = {
    "var": Row(torch.var, lambda x: [variance(x)]),
    "std": Row(torch.std, lambda x: [sqrt(variance(x))]),
    "std of the population": Row(lambda x: torch.std(x, 0, correction=0), lambda x: [sqrt(variance(x, 0))]),
    "var_mean": Row(lambda x: torch.stack(torch.var_mean(x)), lambda x: [variance(x), mean(x)]),
    "std_mean": Row(lambda x: torch.stack(torch.std_mean(x, 0)), lambda x: [sqrt(variance(x)), mean(x)]),
    "std of columns": Row(lambda x: torch.std(x.reshape(-1, 1).expand(-1, 3), 0)[0], lambda x: [sqrt(variance(x))]),
}


@pytest.mark.parametrize("name", SPREADS)
def test_spreads(name):
    for point in SPREADS[name].points:
        check(SPREADS[name], point)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3,), (1000,), (2000, 7), (700, 130)])
def test_spreads_of_large_tensors(dtype, shape):
    random = np.random.default_rng(0)
    limits = np.finfo(dtype)
    for size in np.geomspace(limits.tiny * 2.0**30, limits.max / 2**30, 9):
        x = random.standard_normal(shape).astype(dtype) * dtype(size)
        if len(shape) == 2:
            x[:, 1] = x[0, 1]  # constant
            x[: len(x) // 2, 2], x[len(x) // 2 :, 2] = size, -size  # by blocks
            x[:500, 3] *= dtype(2.0**-20)
        expected = x.astype(np.longdouble).std(0, ddof=1)
        found = torch.std(torch.from_numpy(x), 0).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype is np.float32 else 1e-13)
        spread = torch.var(torch.from_numpy(x), 0).numpy()
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(spread, (expected**2).astype(dtype), rtol=1e-5, atol=limits.tiny)


def of_two_windows(p):
    """The p-norms of two windows of two elements each."""
    return lambda x: [(x[k] ** p + x[k + 1] ** p) ** (1 / mpf(p)) for k in (0, 2)]


def across_channels(size, alpha, beta, k):
    def exact(x):
        result = []
        for i, v in enumerate(x):
            window = x[max(i - size // 2, 0) : i + (size - 1) // 2 + 1]
            result.append(v / (k + mpf(alpha) * fsum(w * w for w in window) / size) ** mpf(beta))
        return result

    return exact


def functional(name, *args, **options):
    return lambda x: getattr(torch.nn.functional, name)(x, *args, **options)


def over(shape, name, *args, **options):
    return lambda x: functional(name, *args, **options)(x.reshape(shape))


NORMALIZATIONS = {
    "layer_norm": Row(functional("layer_norm", (4,)), normalized(1e-5)),
    "layer_norm without eps": Row(functional("layer_norm", (4,), eps=0.0), normalized(0)),
    "group_norm": Row(over((1, 2, 2), "group_norm", 1), normalized(1e-5)),
    "instance_norm": Row(over((1, 1, 4), "instance_norm"), normalized(1e-5)),
    "batch_norm": Row(over((4, 1), "batch_norm", None, None, training=True), normalized(1e-5)),
    "batch_norm of images": Row(over((2, 1, 2), "batch_norm", None, None, training=True), normalized(1e-5)),
    "batch_norm of channels": Row(
        lambda x: functional("batch_norm", None, None, training=True)(x.reshape(4, 1).expand(4, 3))[:, 1],
        normalized(1e-5),
    ),
    "rms_norm": Row(functional("rms_norm", (4,), eps=1e-5), normalized(1e-5, lambda x: 0)),
    "rms_norm without eps": Row(functional("rms_norm", (4,), eps=0.0), normalized(0, lambda x: 0)),
    "normalize": Row(
        functional("normalize", dim=0),
        lambda x: [v / sqrt(fsum(w * w for w in x)) for v in x],
        scaled(BASE, [s for s in SCALES if s > 1e-12]),  # which counts as the least norm
    ),
    "lp_pool1d": Row(over((1, 4), "lp_pool1d", 2, 2), of_two_windows(2)),
    "lp_pool2d of cubes": Row(over((1, 2, 2), "lp_pool2d", 3, (1, 2)), of_two_windows(3)),
    "local_response_norm": Row(over((1, 4, 1), "local_response_norm", 3), across_channels(3, 1e-4, 0.75, 1)),
}


@needs_nn
@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_normalizations(name):
    for point in NORMALIZATIONS[name].points:
        check(NORMALIZATIONS[name], point)


@needs_nn
@pytest.mark.parametrize(
    ("dtype", "sizes"), [(torch.float32, [1e-3, 1e20, 1e36]), (torch.bfloat16, [1e20]), (torch.float16, [1e4])]
)
def test_spreads_and_normalizations_of_narrow_dtypes(dtype, sizes):
    tolerance = {torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 2e-3}[dtype]
    for (name, case), size in itertools.product({**SPREADS, **NORMALIZATIONS}.items(), sizes):
        x = torch.tensor([v * size for v in BASE], dtype=dtype, requires_grad=True)
        exact = x.detach().double().tolist()
        with mpmath.workdps(DIGITS):
            values = np.array([float(v) for v in case.exact([mpf(v) for v in exact])])
        first, _ = exact_derivatives(case.exact, exact)
        y = case.call(x)
        if np.abs(values).max() < torch.finfo(dtype).max:
            np.testing.assert_allclose(
                y.detach().double().flatten().numpy(), values, tolerance, tolerance * np.abs(values).max(), err_msg=name
            )
        (slopes,) = grad((y * weights(y)).sum(), x)
        largest = np.abs(first).max()
        if torch.finfo(dtype).tiny * 100 < largest < torch.finfo(dtype).max:
            np.testing.assert_allclose(
                slopes.double().numpy(), first, tolerance, 4 * tolerance * largest, err_msg=f"{name} at {size}"
            )
