"""Writes tables.h and tables.cpp: polynomials on short segments, from mpmath in 40 digits.

    python make_tables.py      # needs mpmath; some minutes

A function is interpolated on each segment at Chebyshev's points and written in powers of the distance from the middle,
so that the constant term carries almost the whole value and its rounding almost the whole error. That is why the middle
moves a little, to where the value is almost a number of the type (S. Gal's accurate tables). The degree is the least
that serves every segment of a table.
"""

from __future__ import annotations

import itertools
import pathlib
import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple

from mpmath import mp, mpf

mp.dps = 40
DOUBLE, SINGLE = mpf(2) ** -56, mpf(2) ** -31

Function = Callable[[mpf], mpf]
Segment = tuple[Function, mpf, mpf]


class OctaveKind(NamedTuple):
    """Tables of which two vector registers hold a column."""

    type: str
    rows: int
    bias: int
    """The bias of the exponent."""
    tolerance: mpf


OCTAVE_KINDS = (OctaveKind("double", 16, 1023, mpf(2) ** -53), OctaveKind("float", 32, 127, mpf(2) ** -28))


def spaced(f: Function, low: float, high: float, count: int) -> list[Segment]:
    """Segments of equal width."""
    ends = [mpf(low) + (mpf(high) - mpf(low)) * i / count for i in range(count + 1)]
    return [(f, ends[i], ends[i + 1]) for i in range(count)]


def interpolate(segment: Segment, degree: int) -> tuple[mpf, list[mpf], mpf]:
    """The middle, the coefficients and the greatest error relative to the greatest value."""
    f, low, high = segment
    middle, half, n = mpf(float((low + high) / 2)), (high - low) / 2, degree + 1
    nodes = [mp.cos(mp.pi * (k + mpf(1) / 2) / n) for k in range(n)]
    values = [f(middle + half * t) for t in nodes]
    chebyshev = [
        2 * sum(v * mp.cos(mp.pi * j * (k + mpf(1) / 2) / n) for k, v in enumerate(values)) / n for j in range(n)
    ]
    chebyshev[0] /= 2
    powers = [mpf(0)] * n
    before, now = [mpf(1)], [mpf(0), mpf(1)]
    for j, c in enumerate(chebyshev):
        current = before if j == 0 else now
        for k, p in enumerate(current):
            powers[k] += c * p
        if j:
            following = [mpf(0)] + [2 * p for p in now]
            for k, p in enumerate(before):
                following[k] -= p
            before, now = now, following
    powers = [p / half**k for k, p in enumerate(powers)]
    error = max(
        abs(mp.polyval(powers[::-1], half * t) - f(middle + half * t))
        for t in (mp.cos(mp.pi * k / n) for k in range(n + 1))
    )
    return middle, powers, error / max(abs(v) for v in values)


def to_single(x: mpf) -> float:
    return float(struct.unpack("f", struct.pack("f", x))[0])


def recentre(middle: mpf, powers: list[mpf], width: mpf, rounded: Callable[[mpf], float]) -> list[mpf]:
    """The row of a middle close by, whose constant term loses least by rounding."""

    def lost(point: mpf) -> mpf:
        value = mp.polyval(powers[::-1], point - middle)
        return abs(value - rounded(value))

    best = min((mpf(rounded(middle + width * k / 2**17)) for k in range(512)), key=lost)
    shifted = powers[:]
    for start in range(len(powers)):  # Horner's scheme gives the powers of the distance to the new middle
        for k in range(len(powers) - 2, start - 1, -1):
            shifted[k] += shifted[k + 1] * (best - middle)
    return [best, *shifted]


def fit(segments: list[Segment], tolerance: mpf, rounded: Callable[[mpf], float] | None) -> list[list[float]]:
    """Rows of the middle and the coefficients, the constant one close to what `rounded` makes of it."""
    for degree in range(3, 24):
        rows = [interpolate(segment, degree) for segment in (segments[0], segments[-1])]
        if max(row[2] for row in rows) > tolerance:
            continue
        rows = [interpolate(segment, degree) for segment in segments]
        if max(row[2] for row in rows) > tolerance:
            continue
        fitted = [[middle, *powers] for middle, powers, _ in rows]
        if rounded:
            widths = [high - low for _, low, high in segments]
            fitted = [recentre(m, row, w, rounded) for (m, *row), w in zip(fitted, widths, strict=True)]
        return [[*map(float, row)] for row in fitted]
    raise ValueError("no degree below 24 serves")


def limit(f: Function, g: Function) -> Function:
    """F of 1/y, and g where y is too small for f."""
    return lambda y: f(1 / y) if y > mpf(10) ** -30 else g(y)


def inverse_erfc_log(r: mpf) -> mpf:
    """X >= 0 with erfc(x) = exp(-r^2)."""
    x = mp.sqrt(mp.findroot(lambda s: s + mp.log(mp.sqrt(s) * mp.sqrt(mp.pi) + 1) - r * r, r * r / 2 + mpf("0.01")))
    for _ in range(60):
        step = (mp.log(mp.erfc(x)) + r * r) * mp.erfc(x) * mp.exp(x * x) * mp.sqrt(mp.pi) / 2
        x += step
        if abs(step) < abs(x) * mpf(10) ** -36:
            break
    return x


def phase(order: int, x: mpf) -> mpf:
    return x - (2 * order + 1) * mp.pi / 4


def modulus_and_phase(value: Callable[[mpf], tuple[mpf, mpf]], scale: Function, start: Function) -> list[Function]:
    """Of value(x) = modulus (cos, sin) of a phase: modulus times `scale`, and x times the phase less `start`."""

    def turned(x: mpf) -> mpf:
        with mp.extradps(20):
            return mp.arg(mp.mpc(*value(x)) * mp.expj(-start(x))) * x

    return [lambda x: mp.hypot(*value(x)) * scale(x), turned]


def tables() -> Iterable[tuple[str, list[Segment]]]:
    sqrt, pi, log = mp.sqrt, mp.pi, mp.log
    far = mpf(1) / 8  # the variable is 1/x from x = 8 on

    # exp(x^2) erfc(x); for 1/x divided by 1/x
    yield (
        "kErfcx",
        spaced(lambda x: mp.exp(x * x) * mp.erfc(x), 0, 8, 12)
        + spaced(limit(lambda x: x * mp.exp(x * x) * mp.erfc(x), lambda y: 1 / sqrt(pi)), 0, far, 4),
    )
    # inverse of erfc: x / (1 - y) around 1 in z = (1 - y)^2, and x of sqrt(-log y)
    yield (
        "kErfinv",
        spaced(lambda z: mp.erfinv(sqrt(z)) / sqrt(z) if z > 1e-25 else sqrt(pi) / 2, 0, 0.5, 8)
        + spaced(inverse_erfc_log, 1, 5, 12)
        + spaced(inverse_erfc_log, 5, 29, 12),
    )
    # modified Bessel functions, scaled
    for order in (0, 1):
        yield (
            f"kI{order}e",
            spaced(lambda x, n=order: mp.exp(-x) * mp.besseli(n, x) / x**n if x > 1e-25 else mpf(1) / 2**n, 0, 8, 8)
            + spaced(
                limit(lambda x, n=order: mp.exp(-x) * mp.besseli(n, x) * sqrt(x), lambda y: 1 / sqrt(2 * pi)), 0, far, 8
            ),
        )
    # K: in y = 1/x up to 1, times sqrt(x) exp(x)
    for order in (0, 1):
        yield (
            f"kK{order}e",
            spaced(limit(lambda x, n=order: mp.exp(x) * mp.besselk(n, x) * sqrt(x), lambda y: sqrt(pi / 2)), 0, 1, 16),
        )
    # below 1, in z = x^2: K0 = k - log(x) i, K1 = 1 / x + x (k + log(x) i)
    yield "kI0Small", spaced(lambda z: mp.besseli(0, sqrt(z)), 0, 1, 1)
    yield "kI1Small", spaced(lambda z: mp.besseli(1, sqrt(z)) / sqrt(z) if z > 1e-25 else mpf(1) / 2, 0, 1, 1)
    yield (
        "kK0Small",
        spaced(
            lambda z: (
                mp.besselk(0, sqrt(z)) + log(sqrt(z)) * mp.besseli(0, sqrt(z)) if z > 1e-25 else log(2) - mp.euler
            ),
            0,
            1,
            1,
        ),
    )

    def k1_small(z: mpf) -> mpf:
        if z < 1e-25:
            return -log(2) / 2 - (1 - 2 * mp.euler) / 4
        with mp.extradps(30):
            x = sqrt(z)
            return (mp.besselk(1, x) - 1 / x - log(x) * mp.besseli(1, x)) / x

    yield "kK1Small", spaced(k1_small, 0, 1, 1)
    # Bessel functions: J, and Y less its logarithm; from 8 on modulus and phase
    for order in (0, 1):
        yield (
            f"kJ{order}",
            spaced(lambda x, n=order: mp.besselj(n, x) / x**n if x > 1e-25 else mpf(1) / 2**n, 0, 8, 16),
        )
        modulus, turned = modulus_and_phase(  # DLMF 10.18
            lambda x, n=order: (mp.besselj(n, x), mp.bessely(n, x)), sqrt, lambda x, n=order: phase(n, x)
        )
        yield f"kModulus{order}", spaced(limit(modulus, lambda y: sqrt(2 / pi)), 0, far, 1)
        yield f"kPhase{order}", spaced(limit(turned, lambda y, n=order: (mpf(4 * n * n) - 1) / 8), 0, far, 1)

    def y0_regular(x: mpf) -> mpf:
        x = max(x, mpf(10) ** -15)
        return mp.bessely(0, x) - 2 / pi * log(x) * mp.besselj(0, x)

    def y1_regular(x: mpf) -> mpf:
        with mp.extradps(30):
            x = max(x, mpf(10) ** -15)
            return (mp.bessely(1, x) - 2 / pi * (log(x) * mp.besselj(1, x) - 1 / x)) / x

    # from 2 on themselves, since there what the logarithm multiplies cancels
    yield "kY0", spaced(y0_regular, 0, 2, 4) + spaced(lambda x: mp.bessely(0, x), 2, 8, 12)
    yield "kY1", spaced(y1_regular, 0, 2, 4) + spaced(lambda x: mp.bessely(1, x), 2, 8, 12)

    # gamma: log(gamma) / ((x - 1) (x - 2)) below 8, then the rest of Stirling's formula, times x
    def gamma_near(x: mpf) -> mpf:
        with mp.extradps(40):
            if abs(x - 1) < 1e-30:
                return mp.euler
            if abs(x - 2) < 1e-30:
                return 1 - mp.euler
            return mp.loggamma(x) / ((x - 1) * (x - 2))

    def stirling(x: mpf) -> mpf:
        with mp.extradps(40):
            return x * (mp.loggamma(x) - (x - mpf(1) / 2) * log(x) + x - log(2 * pi) / 2)

    yield (
        "kGammaln",
        spaced(gamma_near, 0.5, 2, 12)
        + spaced(gamma_near, 2, 8, 18)
        + spaced(limit(lambda x: stirling(x), lambda y: mpf(1) / 12), 0, far, 2),
    )
    root = mp.findroot(mp.digamma, 1.4616)

    def digamma_near(x: mpf) -> mpf:
        with mp.extradps(40):
            return mp.digamma(x) / (x - root) if abs(x - root) > 1e-15 else mp.psi(1, root)

    def digamma_far(x: mpf) -> mpf:
        with mp.extradps(40):
            return x * x * (mp.digamma(x) - log(x) + 1 / (2 * x))

    yield (
        "kDigamma",
        spaced(digamma_near, 1, 2, 8)
        + spaced(digamma_near, 2, 8, 20)
        + spaced(limit(digamma_far, lambda y: -mpf(1) / 12), 0, far, 2),
    )

    # (1 / f - pi cot(pi f)) / f in f^2
    def cotangent_rest(z: mpf) -> mpf:
        f = sqrt(z)
        with mp.extradps(40):
            return (1 / f - pi * mp.cot(pi * f)) / f if z > 1e-20 else pi * pi / 3

    yield "kCotangentRest", spaced(cotangent_rest, 0, 0.25, 1)

    def trigamma_far(x: mpf) -> mpf:
        with mp.extradps(40):
            return x * mp.psi(1, x)

    yield (
        "kTrigamma",
        spaced(lambda x: mp.psi(1, x), 1, 2, 8)
        + spaced(lambda x: mp.psi(1, x), 2, 8, 20)
        + spaced(limit(trigamma_far, lambda y: mpf(1)), 0, far, 2),
    )

    # (t - log(1 + t)) / t^2
    def log1p_rest(t: mpf) -> mpf:
        with mp.extradps(40):
            return (t - mp.log1p(t)) / (t * t) if t else mpf(1) / 2

    yield "kLog1pRest", spaced(log1p_rest, -0.375, 0.375, 12)

    # Airy: near 0 directly; beyond, of the phase z = 2/3 |x|^1.5 in 1/z, without the exponential or the oscillation
    for derivative in (0, 1):
        yield f"kAiry{derivative}", spaced(lambda x, d=derivative: mp.airyai(x, derivative=d), -8, 4, 48)

        def decay(z: mpf, d: int = derivative) -> mpf:
            x = (3 * z / 2) ** (mpf(2) / 3)
            return mp.airyai(x, derivative=d) * mp.exp(z) * x ** (mpf(1) / 4 - mpf(d) / 2)

        yield (
            f"kAiryDecay{derivative}",
            spaced(limit(decay, lambda y, d=derivative: (-1) ** d / (2 * sqrt(pi))), 0, 0.1875, 6),
        )

        def oscillating(z: mpf, d: int = derivative) -> tuple[mpf, mpf]:
            x = (3 * z / 2) ** (mpf(2) / 3)
            a, b = mp.airyai(-x, derivative=d), mp.airybi(-x, derivative=d)
            return (b, a) if d else (a, -b)

        modulus, turned = modulus_and_phase(
            oscillating,
            lambda z, d=derivative: (3 * z / 2) ** ((mpf(1) / 4 - mpf(d) / 2) * 2 / 3),
            lambda z: z - pi / 4,
        )
        yield f"kAiryModulus{derivative}", spaced(limit(modulus, lambda y: 1 / sqrt(pi)), 0, 0.0664, 2)
        yield (
            f"kAiryPhase{derivative}",
            spaced(limit(turned, lambda y, d=derivative: (mpf(7) if d else -mpf(5)) / 72), 0, 0.0664, 2),
        )


def half_octaves(f: Function, top: int, kind: OctaveKind) -> list[Segment]:
    """Halves of the octaves below 2^top, in the order of the exponent's last bits and the mantissa's first."""
    octaves = kind.rows // 2
    segments: list[Segment] = []
    for row in range(kind.rows):
        exponent = top - 1 - (top - 1 + kind.bias - row // 2) % octaves
        start = (1 + mpf(row % 2) / 2) * mpf(2) ** exponent
        segments.append((f, start, start + mpf(2) ** exponent / 2))
    return segments


def from_two(f: Function, kind: OctaveKind) -> list[Segment]:
    """Of x + 2, four octaves from 2 on in equal parts."""
    parts = kind.rows // 4
    starts = [mpf(2) ** (1 + row // parts) * (1 + mpf(row % parts) / parts) - 2 for row in range(kind.rows + 1)]
    return [(f, low, high) for low, high in itertools.pairwise(starts)]


def octave_tables() -> Iterable[tuple[str, Callable[[OctaveKind], list[Segment]], tuple[OctaveKind, ...]]]:
    sqrt, half = mp.sqrt, mpf(1) / 2

    def erfinv(rest: mpf) -> mpf:
        if 1 - rest < 1e-18:
            return sqrt(mp.pi) / 2
        return (mp.erfinv(1 - rest) if rest > 0.01 else inverse_erfc_log(sqrt(-mp.log(rest)))) / (1 - rest)

    def logit(rest: mpf) -> mpf:
        return (mp.log(1 - rest) - mp.log(rest)) / (half - rest) if half - rest > 1e-18 else mpf(4)

    def erfcx(x: mpf) -> mpf:
        return mp.exp(x * x) * mp.erfc(x)

    yield "kErfinvOctaves", lambda kind: half_octaves(erfinv, 0, kind), OCTAVE_KINDS
    yield "kLogitOctaves", lambda kind: half_octaves(logit, -1, kind), OCTAVE_KINDS
    yield "kErfcxOctaves", lambda kind: from_two(erfcx, kind), OCTAVE_KINDS[1:]
    yield "kNdtrOctaves", lambda kind: from_two(lambda x: erfcx(x / sqrt(2)) / 2, kind), OCTAVE_KINDS


def powers_of_two(kind: OctaveKind) -> list[list[str]]:
    """2^(k / rows), and what its rounding left, relative to it."""
    round_to = float if kind.type == "double" else to_single
    powers = [mpf(2) ** (mpf(k) / kind.rows) for k in range(kind.rows)]
    rounded = [round_to(p) for p in powers]
    return [[repr(r) for r in rounded], [repr(float(p / r - 1)) for p, r in zip(powers, rounded, strict=True)]]


GRID, GRID_ROWS = 128, 4096


def erfc_grid() -> list[list[mpf]]:
    """Erfc and minus its slope at r = k / GRID, 0 where erfc is."""
    points = [mpf(k) / GRID for k in range(GRID_ROWS)]
    slopes = [2 / mp.sqrt(mp.pi) * mp.exp(-r * r) if r < mpf("27.35") else mpf(0) for r in points]
    return [[mp.erfc(r) if s else s for r, s in zip(points, slopes, strict=True)], slopes]


def erfc_steps() -> list[list[mpf]]:
    """Coefficients of exp(-2 w u), exp(-2 w u) u^2 and exp(-2 w u) u^4 / 2, integrated over u from 0 to 1."""
    reach = mpf("27.35") / (2 * GRID)
    rows = []
    for power, degree in ((0, 9), (2, 6), (4, 3)):
        scale = 2 if power == 4 else 1
        f = lambda w, p=power, s=scale: mp.quad(lambda u: mp.exp(-2 * w * u) * u**p / s, [0, 1])
        _, powers, error = interpolate((f, -reach, reach), degree)
        if error * f(-reach) * mpf(2 * GRID) ** -power > mpf(2) ** -51:
            raise ValueError("a step of erfc wants more terms")
        rows.append(powers + [mpf(0)] * (9 - degree))
    return rows


def temme() -> list[list[mpf]]:
    """Coefficients of a^-k eta^n in Temme's expansion of the incomplete gamma functions, DLMF 8.12.12."""
    rows, columns = 13, 16
    size = columns + 2 * rows + 2
    alpha = [mpf(0), mpf(1)]
    for n in range(2, size + 2):
        inner = sum(j * alpha[j] * alpha[n - j + 1] for j in range(2, n))
        alpha.append((alpha[n - 1] - inner) / (n + 1))
    stirling = [mpf(1)]
    for k in range(1, rows):  # exp of the sum of B_2j / (2j (2j - 1)) y^(2j - 1)
        stirling.append(
            sum(mp.bernoulli(2 * j) / (2 * j) * stirling[k - 2 * j + 1] for j in range(1, (k + 1) // 2 + 1)) / k
        )
    d = [[-mpf(1) / 3] + [(n + 2) * alpha[n + 2] for n in range(1, size - 1)]]
    for k in range(1, rows):
        before = d[-1]
        d.append([(-1) ** k * stirling[k] * d[0][n] + (n + 2) * before[n + 2] for n in range(len(before) - 2)])
    return [row[:columns] for row in d]


def write(folder: pathlib.Path) -> None:
    header = [
        "// Written by make_tables.py: the middles of segments and coefficients in powers of the distance to them.",
        "#pragma once",
        "",
        "namespace rl {",
        "",
        "// Column 0 holds the middles. Rows are padded so that a column fills whole vectors.",
        "template <int kRows, int kCoefficients, int kPadded>",
        "struct Table {",
        "  static constexpr int rows = kRows, coefficients = kCoefficients, padded = kPadded;",
        "  alignas(64) double column[kCoefficients + 1][kPadded];",
        "};",
        "",
        "// One of which two registers of 64 bytes hold a column.",
        "template <class T, int kCoefficients>",
        "struct OctaveTable {",
        "  static constexpr int coefficients = kCoefficients;",
        "  alignas(64) T column[kCoefficients + 1][128 / sizeof(T)];",
        "};",
        "",
        "// The table for results of type T.",
        "template <class T, class Full, class Single>",
        "constexpr const auto& for_type(const Full& full, const Single& single) {",
        "  if constexpr (sizeof(T) == 8) {",
        "    return full;",
        "  } else {",
        "    return single;",
        "  }",
        "}",
        "",
    ]
    source = ["// Written by make_tables.py.", '#include "tables.h"', "", "namespace rl {", "", "// clang-format off"]

    def define(kind: str, columns: Iterable[Iterable[str]]) -> None:
        header.append(f"extern {kind};")
        source.append(f"{kind} = {{{{")
        source.extend("    {" + ", ".join(column) + "}," for column in columns)
        source.append("}};")

    def choose(name: str) -> None:
        header.append("template <class T>")
        header.append(f"inline constexpr const auto& {name} = for_type<T>({name}Double, {name}Single);")

    for name, segments in tables():
        for suffix, tolerance in (("Double", DOUBLE), ("Single", SINGLE)):
            rows = fit(segments, tolerance, float if suffix == "Double" else None)
            print(f"{name}{suffix}: {len(rows)} segments, degree {len(rows[0]) - 2}", flush=True)
            padded = len(rows) + (-len(rows) % 16 if len(rows) > 2 else 0)
            define(
                f"const Table<{len(rows)}, {len(rows[0]) - 1}, {padded}> {name}{suffix}",
                ([number(value, suffix) for value in column] for column in zip(*rows, strict=True)),
            )
        choose(name)
    for name, segments_of, kinds in octave_tables():
        for kind in kinds:
            suffix = "Double" if kind.type == "double" else "Single"
            rows = fit(segments_of(kind), kind.tolerance, float if kind.type == "double" else to_single)
            print(f"{name}{suffix}: degree {len(rows[0]) - 2}", flush=True)
            define(
                f"const OctaveTable<{kind.type}, {len(rows[0]) - 1}> {name}{suffix}",
                ([f"{value!r}" for value in column] for column in zip(*rows, strict=True)),
            )
        if kinds is OCTAVE_KINDS:
            choose(name)
    for kind, suffix in zip(OCTAVE_KINDS, ("Double", "Single"), strict=True):
        define(f"const OctaveTable<{kind.type}, 1> kPowers{suffix}", powers_of_two(kind))
    choose("kPowers")
    for name, coefficients, about in (
        ("kTemme", temme(), "of a^-k eta^n, DLMF 8.12.12"),
        ("kErfcGrid", erfc_grid(), f"erfc and minus its slope at k / {GRID}"),
        ("kErfcSteps", erfc_steps(), "of (r d)^n, what a step d from the grid takes for each power of d^2"),
    ):
        kind = f"const double {name}[{len(coefficients)}][{len(coefficients[0])}]"
        header.append(f"extern {kind};  // {about}")
        source.append(f"{kind} = {{")
        source += ["    {" + ", ".join(number(float(value), "") for value in row) + "}," for row in coefficients]
        source.append("};")
    header += ["", "}  // namespace rl", ""]
    source += ["// clang-format on", "", "}  // namespace rl", ""]
    (folder / "tables.h").write_text("\n".join(header))
    (folder / "tables.cpp").write_text("\n".join(source))


def number(value: float, suffix: str) -> str:
    text = f"{value:.12g}" if suffix == "Single" else f"{value!r}"
    return text if any(c in text for c in ".en") else text + ".0"


if __name__ == "__main__":
    write(pathlib.Path(__file__).parent)
