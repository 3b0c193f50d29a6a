"""The special cases that the array API standard 2024.12 lists for each function, as tables of its text."""

import itertools
import math

import numpy as np
import pytest

from rushlight import array_api as xp

INF, NAN, PI = math.inf, math.nan, math.pi

POSITIVE = (0.5, 1.0, 2.0, 7.5)
NEGATIVE = (-0.5, -1.0, -2.0, -7.5)
FINITE = (*POSITIVE, *NEGATIVE, 0.0, -0.0)
NONZERO = POSITIVE + NEGATIVE
ZEROS = (0.0, -0.0)
INFINITE = (INF, -INF)
ANY = (*FINITE, *INFINITE, NAN)
ODD, EVEN = (1.0, 3.0), (0.5, 2.0, 2.5)


def same(x):
    return x


WHOLE = [(NAN, NAN), (ZEROS, same), (INFINITE, same), ((1.0, -3.0, 1e30), same)]
LOG = [(NAN, NAN), (NEGATIVE, NAN), (-INF, NAN), (ZEROS, -INF), (1.0, 0.0), (INF, INF)]
ONE = {
    "abs": [(NAN, NAN), (-0.0, 0.0), (-INF, INF)],
    "acos": [(NAN, NAN), ((1.5, INF), NAN), ((-1.5, -INF), NAN), (1.0, 0.0)],
    "acosh": [(NAN, NAN), ((0.5, -1.0, -INF), NAN), (1.0, 0.0), (INF, INF)],
    "asin": [(NAN, NAN), ((1.5, INF), NAN), ((-1.5, -INF), NAN), (ZEROS, same)],
    "asinh": [(NAN, NAN), (ZEROS, same), (INFINITE, same)],
    "atan": [(NAN, NAN), (ZEROS, same), (INF, PI / 2), (-INF, -PI / 2)],
    "atanh": [(NAN, NAN), ((1.5, -1.5, INF, -INF), NAN), (-1.0, -INF), (1.0, INF), (ZEROS, same)],
    "ceil": [*WHOLE, (-0.5, -0.0), (0.5, 1.0)],
    "cos": [(NAN, NAN), (ZEROS, 1.0), (INFINITE, NAN)],
    "cosh": [(NAN, NAN), (ZEROS, 1.0), (INFINITE, INF)],
    "exp": [(NAN, NAN), (ZEROS, 1.0), (INF, INF), (-INF, 0.0)],
    "expm1": [(NAN, NAN), (ZEROS, same), (INF, INF), (-INF, -1.0)],
    "floor": [*WHOLE, (0.5, 0.0), (-0.5, -1.0)],
    "isfinite": [(INFINITE, False), (NAN, False), (FINITE, True)],
    "isinf": [(INFINITE, True), (NAN, False), (FINITE, False)],
    "isnan": [(INFINITE, False), (NAN, True), (FINITE, False)],
    "log": LOG,
    "log10": LOG,
    "log2": LOG,
    "log1p": [(NAN, NAN), ((-1.5, -INF), NAN), (-1.0, -INF), (ZEROS, same), (INF, INF)],
    "round": [*WHOLE, (0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0), (-1.5, -2.0)],
    "sign": [(NEGATIVE, -1.0), (-INF, -1.0), (ZEROS, abs), (POSITIVE, 1.0), (INF, 1.0), (NAN, NAN)],
    "signbit": [(0.0, False), (-0.0, True), (INF, False), (-INF, True), (NEGATIVE, True), (-NAN, True), (NAN, False)],
    "sin": [(NAN, NAN), (ZEROS, same), (INFINITE, NAN)],
    "sinh": [(NAN, NAN), (ZEROS, same), (INFINITE, same)],
    "sqrt": [(NAN, NAN), (NEGATIVE, NAN), (-INF, NAN), (ZEROS, same), (INF, INF)],
    "tan": [(NAN, NAN), (ZEROS, same), (INFINITE, NAN)],
    "tanh": [(NAN, NAN), (ZEROS, same), (INF, 1.0), (-INF, -1.0)],
    "trunc": [*WHOLE, (0.5, 0.0), (-0.5, -0.0)],
}


def signed(value):
    """`value` with the sign that products and quotients have."""
    return lambda x, y: math.copysign(value, math.copysign(1, x) * math.copysign(1, y))


def first(x, y):
    return x


def second(x, y):
    return y


NANS = [(NAN, ANY, NAN), (ANY, NAN, NAN)]
TWO = {
    "add": [
        *NANS,
        (INF, -INF, NAN), (-INF, INF, NAN), (INF, INF, INF), (-INF, -INF, -INF),
        (INFINITE, FINITE, first), (FINITE, INFINITE, second),
        (-0.0, -0.0, -0.0), (-0.0, 0.0, 0.0), (0.0, -0.0, 0.0), (0.0, 0.0, 0.0),
        (ZEROS, NONZERO, second), (NONZERO, ZEROS, first), (1.5, -1.5, 0.0),
    ],
    "atan2": [
        *NANS,
        (POSITIVE, ZEROS, PI / 2), (0.0, (*POSITIVE, 0.0), 0.0), (0.0, (*NEGATIVE, -0.0), PI),
        (-0.0, (*POSITIVE, 0.0), -0.0), (-0.0, (*NEGATIVE, -0.0), -PI), (NEGATIVE, ZEROS, -PI / 2),
        (POSITIVE, INF, 0.0), (POSITIVE, -INF, PI), (NEGATIVE, INF, -0.0), (NEGATIVE, -INF, -PI),
        (INF, FINITE, PI / 2), (-INF, FINITE, -PI / 2), (INF, INF, PI / 4), (INF, -INF, 3 * PI / 4),
        (-INF, INF, -PI / 4), (-INF, -INF, -3 * PI / 4),
    ],
    "copysign": [((*FINITE, *INFINITE), (*FINITE, *INFINITE), math.copysign)],
    "divide": [
        *NANS,
        (INFINITE, INFINITE, NAN), (ZEROS, ZEROS, NAN), (ZEROS, NONZERO, signed(0.0)), (NONZERO, ZEROS, signed(INF)),
        (INFINITE, FINITE, signed(INF)), (FINITE, INFINITE, signed(0.0)),
    ],
    "equal": [(NAN, ANY, False), (ANY, NAN, False), (INF, INF, True), (-INF, -INF, True), (ZEROS, ZEROS, True)],
    "floor_divide": [
        *NANS,
        (INFINITE, INFINITE, NAN), (ZEROS, ZEROS, NAN), (ZEROS, NONZERO, signed(0.0)), (NONZERO, ZEROS, signed(INF)),
        (POSITIVE, INF, 0.0), (NEGATIVE, -INF, 0.0),
    ],
    "greater": [(NAN, ANY, False), (ANY, NAN, False), (INF, FINITE, True), (ZEROS, ZEROS, False)],
    "greater_equal": [(NAN, ANY, False), (ANY, NAN, False), (INF, INF, True), (ZEROS, ZEROS, True)],
    "hypot": [
        (INFINITE, ANY, INF), (ANY, INFINITE, INF), (NAN, (*FINITE, NAN), NAN), ((*FINITE, NAN), NAN, NAN),
        (ZEROS, FINITE, lambda x, y: abs(y)), (FINITE, ZEROS, lambda x, y: abs(x)),
    ],
    "less": [(NAN, ANY, False), (ANY, NAN, False), (-INF, FINITE, True), (ZEROS, ZEROS, False)],
    "less_equal": [(NAN, ANY, False), (ANY, NAN, False), (INF, INF, True), (ZEROS, ZEROS, True)],
    "logaddexp": [*NANS, (INF, (*FINITE, *INFINITE), INF), ((*FINITE, *INFINITE), INF, INF), (-INF, NONZERO, second)],
    "maximum": [*NANS, (INF, FINITE, INF), (-INF, FINITE, second)],
    "minimum": [*NANS, (INF, FINITE, second), (-INF, FINITE, -INF)],
    "multiply": [
        *NANS,
        (INFINITE, ZEROS, NAN), (ZEROS, INFINITE, NAN), (INFINITE, INFINITE, signed(INF)),
        (INFINITE, NONZERO, signed(INF)), (NONZERO, INFINITE, signed(INF)), (ZEROS, FINITE, signed(0.0)),
    ],
    "nextafter": [*NANS, (FINITE, FINITE, np.nextafter), (ZEROS, ZEROS, second)],
    "not_equal": [(NAN, ANY, True), (ANY, NAN, True), (INF, INF, False), (ZEROS, ZEROS, False)],
    "pow": [
        ((*NEGATIVE, 0.5, 2.0, *ZEROS, NAN), NAN, NAN), (ANY, ZEROS, 1.0), (NAN, (*NONZERO, *INFINITE), NAN),
        ((2.0, -2.0, INF, -INF), INF, INF), ((2.0, -2.0, INF, -INF), -INF, 0.0), ((1.0, -1.0), INFINITE, 1.0),
        (1.0, (*FINITE, *INFINITE), 1.0), ((0.5, -0.5, *ZEROS), INF, 0.0), ((0.5, -0.5, *ZEROS), -INF, INF),
        (INF, POSITIVE, INF), (INF, NEGATIVE, 0.0), (-INF, ODD, -INF), (-INF, EVEN, INF),
        (-INF, (-1.0, -3.0), -0.0), (-INF, (-0.5, -2.0), 0.0), (0.0, POSITIVE, 0.0), (0.0, NEGATIVE, INF),
        (-0.0, ODD, -0.0), (-0.0, EVEN, 0.0), (-0.0, (-1.0, -3.0), -INF), (-0.0, (-0.5, -2.0), INF),
        (NEGATIVE, (0.5, -0.5, 7.5), NAN),
    ],
    "remainder": [
        *NANS,
        (INFINITE, ANY, NAN), (FINITE, ZEROS, NAN), (ZEROS, POSITIVE, 0.0), (ZEROS, NEGATIVE, -0.0),
        (POSITIVE, INF, first), (POSITIVE, -INF, -INF), (NEGATIVE, INF, INF), (NEGATIVE, -INF, first),
    ],
    "subtract": [*NANS, (INF, INF, NAN), (-INF, -INF, NAN), (-0.0, 0.0, -0.0), (0.0, 0.0, 0.0), (FINITE, INF, -INF)],
}  # fmt: skip


def rows(table):
    """The rows with each group of inputs written out."""
    for *inputs, result in table:
        groups = [group if isinstance(group, tuple) else (group,) for group in inputs]
        for case in itertools.product(*groups):
            yield case, result(*case) if callable(result) else result


def check(name, case, dtype, expected):
    """Asserts the value of one element and, of zeros, the sign."""
    found = getattr(xp, name)(*(xp.asarray([number] * 9, dtype=dtype) for number in case))
    what = f"{name}{case} in {dtype}"
    if isinstance(expected, bool):
        assert set(found.tolist()) == {expected}, what
        return
    np.testing.assert_allclose(found.numpy(), np.full(9, expected), 1e-6, err_msg=what)
    if expected == 0:
        assert set(np.signbit(found.numpy()).tolist()) == {bool(np.signbit(expected))}, what


@pytest.mark.parametrize("name", [*ONE, *TWO])
@pytest.mark.parametrize("dtype", [xp.float32, xp.float64], ids=str)
def test_special_cases(name, dtype):
    for case, expected in rows((ONE | TWO)[name]):
        if name == "nextafter" and dtype == xp.float32:
            expected = float(np.nextafter(*map(np.float32, case)))
        check(name, case, dtype, expected)


class AnySign(float):
    """A part of which the standard leaves the sign open."""


U = AnySign


def turned(size):
    """`size` in the direction of the imaginary part, an angle."""
    return lambda a, b: (size * math.cos(b), size * math.sin(b))


NONE = (NAN, NAN)
# Inputs are real and imaginary parts, the latter not negative: the rest follows from the symmetry of the function.
COMPLEX = {
    "acos": [
        (ZEROS, 0.0, (PI / 2, -0.0)), (ZEROS, NAN, (PI / 2, NAN)), (FINITE, INF, (PI / 2, -INF)), (NONZERO, NAN, NONE),
        (-INF, POSITIVE, (PI, -INF)), (INF, POSITIVE, (0.0, -INF)), (-INF, INF, (3 * PI / 4, -INF)),
        (INF, INF, (PI / 4, -INF)), (INFINITE, NAN, (NAN, U(INF))), (NAN, FINITE, NONE), (NAN, INF, (NAN, -INF)),
        (NAN, NAN, NONE),
    ],
    "acosh": [
        (ZEROS, 0.0, (0.0, PI / 2)), (FINITE, INF, (INF, PI / 2)), (NONZERO, NAN, NONE), (ZEROS, NAN, (NAN, U(PI / 2))),
        (-INF, POSITIVE, (INF, PI)), (INF, POSITIVE, (INF, 0.0)), (-INF, INF, (INF, 3 * PI / 4)),
        (INF, INF, (INF, PI / 4)), (INFINITE, NAN, (INF, NAN)), (NAN, FINITE, NONE), (NAN, INF, (INF, NAN)),
        (NAN, NAN, NONE),
    ],
    "asinh": [
        (0.0, 0.0, (0.0, 0.0)), (POSITIVE, INF, (INF, PI / 2)), (FINITE, NAN, NONE), (INF, POSITIVE, (INF, 0.0)),
        (INF, INF, (INF, PI / 4)), (INF, NAN, (INF, NAN)), (NAN, 0.0, (NAN, 0.0)), (NAN, NONZERO, NONE),
        (NAN, INF, (U(INF), NAN)), (NAN, NAN, NONE),
    ],
    "atanh": [
        (0.0, 0.0, (0.0, 0.0)), (0.0, NAN, (0.0, NAN)), (1.0, 0.0, (INF, 0.0)), (POSITIVE, INF, (0.0, PI / 2)),
        (NONZERO, NAN, NONE), (INF, POSITIVE, (0.0, PI / 2)), (INF, INF, (0.0, PI / 2)), (INF, NAN, (0.0, NAN)),
        (NAN, FINITE, NONE), (NAN, INF, (U(0.0), PI / 2)), (NAN, NAN, NONE),
    ],
    "cosh": [
        (0.0, 0.0, (1.0, 0.0)), (0.0, INF, (NAN, U(0.0))), (0.0, NAN, (NAN, U(0.0))), (NONZERO, INF, NONE),
        (NONZERO, NAN, NONE), (INF, 0.0, (INF, 0.0)), (INF, NONZERO, turned(INF)), (INF, INF, (INF, NAN)),
        (INF, NAN, (INF, NAN)), (NAN, 0.0, (NAN, U(0.0))), (NAN, (*NONZERO, INF), NONE), (NAN, NAN, NONE),
    ],
    "exp": [
        (ZEROS, 0.0, (1.0, 0.0)), (FINITE, INF, NONE), (FINITE, NAN, NONE), (INF, 0.0, (INF, 0.0)),
        (-INF, FINITE, turned(0.0)), (INF, NONZERO, turned(INF)), (-INF, INF, (U(0.0), U(0.0))),
        (INF, INF, (U(INF), NAN)),
        (-INF, NAN, (U(0.0), U(0.0))), (INF, NAN, (U(INF), NAN)), (NAN, 0.0, (NAN, 0.0)), (NAN, (*NONZERO, INF), NONE),
        (NAN, NAN, NONE),
    ],
    "expm1": [
        (ZEROS, 0.0, (U(0.0), 0.0)), (FINITE, INF, NONE), (FINITE, NAN, NONE), (INF, 0.0, (INF, 0.0)),
        (-INF, FINITE, lambda a, b: (-1.0, math.copysign(0.0, math.sin(b)))), (INF, NONZERO, turned(INF)),
        (-INF, INF, (-1.0, U(0.0))), (INF, INF, (U(INF), NAN)), (-INF, NAN, (-1.0, U(0.0))), (INF, NAN, (U(INF), NAN)),
        (NAN, 0.0, (NAN, 0.0)), (NAN, (*NONZERO, INF), NONE), (NAN, NAN, NONE),
    ],
    "log": [
        (-0.0, 0.0, (-INF, PI)), (0.0, 0.0, (-INF, 0.0)), (FINITE, INF, (INF, PI / 2)), (FINITE, NAN, NONE),
        (-INF, POSITIVE, (INF, PI)), (INF, POSITIVE, (INF, 0.0)), (-INF, INF, (INF, 3 * PI / 4)),
        (INF, INF, (INF, PI / 4)), (INFINITE, NAN, (INF, NAN)), (NAN, FINITE, NONE), (NAN, INF, (INF, NAN)),
        (NAN, NAN, NONE),
    ],
    "log1p": [
        (-1.0, 0.0, (-INF, 0.0)), (FINITE, INF, (INF, PI / 2)), (FINITE, NAN, NONE), (-INF, POSITIVE, (INF, PI)),
        (INF, POSITIVE, (INF, 0.0)), (-INF, INF, (INF, 3 * PI / 4)), (INF, INF, (INF, PI / 4)),
        (INFINITE, NAN, (INF, NAN)), (NAN, FINITE, NONE), (NAN, INF, (INF, NAN)), (NAN, NAN, NONE),
    ],
    "sinh": [
        (0.0, 0.0, (0.0, 0.0)), (0.0, INF, (U(0.0), NAN)), (0.0, NAN, (U(0.0), NAN)), (POSITIVE, INF, NONE),
        (POSITIVE, NAN, NONE), (INF, 0.0, (INF, 0.0)), (INF, POSITIVE, turned(INF)), (INF, INF, (U(INF), NAN)),
        (INF, NAN, (U(INF), NAN)), (NAN, 0.0, (NAN, 0.0)), (NAN, (*NONZERO, INF), NONE), (NAN, NAN, NONE),
    ],
    "sqrt": [
        (ZEROS, 0.0, (0.0, 0.0)), (ANY, INF, (INF, INF)), (FINITE, NAN, NONE), (-INF, POSITIVE, (0.0, INF)),
        (INF, POSITIVE, (INF, 0.0)), (-INF, NAN, (NAN, U(INF))), (INF, NAN, (INF, NAN)), (NAN, FINITE, NONE),
        (NAN, NAN, NONE),
    ],
    "tanh": [
        (0.0, 0.0, (0.0, 0.0)), (NONZERO, INF, NONE), (0.0, INF, (0.0, NAN)), (NONZERO, NAN, NONE),
        (0.0, NAN, (0.0, NAN)),
        (INF, POSITIVE, (1.0, U(0.0))), (INF, INF, (1.0, U(0.0))), (INF, NAN, (1.0, U(0.0))), (NAN, 0.0, (NAN, 0.0)),
        (NAN, (*NONZERO, INF), NONE), (NAN, NAN, NONE),
    ],
}  # fmt: skip
# f(z) of other functions by those above, for z = a + bj: what is given to the function, and what becomes of the result.
ROTATED = {"asin": "asinh", "atan": "atanh", "cos": "cosh", "sin": "sinh", "tan": "tanh"}


def check_parts(found, expected, what):
    for part, right in zip((found.real, found.imag), expected, strict=True):
        if isinstance(right, AnySign):
            np.testing.assert_allclose(abs(part), abs(float(right)), 1e-6, err_msg=what)
            continue
        np.testing.assert_allclose(part, right, 1e-6, err_msg=what)
        if right == 0:
            assert np.signbit(part) == np.signbit(right), what


@pytest.mark.parametrize("name", [*COMPLEX, *ROTATED])
@pytest.mark.parametrize("dtype", [xp.complex64, xp.complex128], ids=str)
def test_special_cases_of_complex_numbers(name, dtype):
    turn = name in ROTATED
    for case, expected in rows(COMPLEX[ROTATED.get(name, name)]):
        (a, b), (re, im) = case, expected
        if math.copysign(1, b) < 0:
            continue
        # sin(z) = -j sinh(jz), and z = -j (a + bj) where the table is that of sinh; cos(z) = cosh(jz).
        number = complex(b, -a) if turn else complex(a, b)
        if turn and name != "cos":
            re, im = im, AnySign(-re) if isinstance(re, AnySign) else -re
        found = getattr(xp, name)(xp.asarray([number] * 5, dtype=dtype)).numpy()
        for each in found:
            check_parts(each, (re, im), f"{name}({number}) in {dtype}")
        mirrored = getattr(xp, name)(xp.asarray([number.conjugate()] * 5, dtype=dtype)).numpy()
        if not any(isinstance(part, AnySign) for part in (re, im)):
            check_parts(mirrored[0], (re, -im), f"{name}(conj({number})) in {dtype}")


@pytest.mark.parametrize("dtype", [xp.complex64, xp.complex128], ids=str)
def test_parts_of_complex_numbers(dtype):
    for a, b in itertools.product(ANY, ANY):
        x = xp.asarray([complex(a, b)], dtype=dtype)
        parts = (a, b)
        assert bool(xp.isfinite(x)[0]) == all(map(math.isfinite, parts))
        assert bool(xp.isinf(x)[0]) == any(map(math.isinf, parts))
        assert bool(xp.isnan(x)[0]) == any(map(math.isnan, parts))
        size = float(xp.abs(x)[0])
        assert (size == INF) == any(map(math.isinf, parts))
        if any(map(math.isnan, parts)) and not any(map(math.isinf, parts)):
            assert math.isnan(size)
    assert xp.sign(xp.asarray([0j], dtype=dtype)).tolist() == [0j]


def test_reductions():
    none, pair, poisoned = xp.ones((0,)), xp.asarray([1.0, 2.0]), xp.asarray([1.0, NAN])
    assert float(xp.sum(none)) == 0
    assert float(xp.prod(none)) == 1
    assert bool(xp.all(none)) is True
    assert bool(xp.any(none)) is False
    for name in ("max", "mean", "min", "prod", "std", "sum", "var"):
        assert math.isnan(float(getattr(xp, name)(poisoned))), name
    assert bool(xp.any(xp.asarray([NAN])))
    assert bool(xp.all(xp.asarray([NAN, INF, -INF])))
    assert math.isnan(float(xp.mean(none)))
    for name in ("std", "var"):
        for correction in (2, 3):
            assert math.isnan(float(getattr(xp, name)(pair, correction=correction))), name
    for call in (
        lambda: xp.clip(pair, NAN, 3.0),
        lambda: xp.clip(pair, 0.0, xp.asarray(NAN)),
        lambda: xp.clip(poisoned, 0, 1),
    ):
        assert math.isnan(call().tolist()[-1])


@pytest.mark.parametrize("dtype", [xp.complex64, xp.complex128], ids=str)
def test_complex_division_by_zero_divides_the_parts(dtype):
    numbers = [complex(a, b) for a, b in itertools.product(ANY, ANY)]
    for zero in (0.0, -0.0):
        x = xp.asarray(numbers, dtype=dtype)
        found = (x / xp.asarray(complex(zero, zero), dtype=dtype)).numpy()
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found, np.asarray(numbers, found.dtype) / complex(zero, zero))


@pytest.mark.parametrize("dtype", [xp.complex64, xp.complex128], ids=str)
def test_log1p_left_of_its_branch_point_keeps_the_sign(dtype):
    x = xp.asarray([complex(-3.0, 0.0), complex(-3.0, -0.0)], dtype=dtype)
    np.testing.assert_allclose(xp.log1p(x).imag.numpy(), [PI, -PI], 1e-6)
