"""C for one element: the types of dtypes, conversions between them, and an expression for every NumPy ufunc."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
BOOL, INT64, FLOAT32, FLOAT64 = map(np.dtype, ("bool", "int64", "float32", "float64"))


class Type(NamedTuple):
    """How a dtype is kept and computed.

    Attributes:
        stored: C type of an element in memory.
        value: C type that expressions compute in.
        load: Expression for the element at `{1}` of the pointer `{0}`.
        store: Statement that writes `{2}` there.
    """

    stored: str
    value: str
    load: str = "{0}[{1}]"
    store: str = "{0}[{1}] = {2};"


_SHORT = {"bool": "u8", "complex64": "c64", "complex128": "c128"}
_SHORT |= {f"{long}{bits}": f"{long[0]}{bits}" for long in ("int", "uint") for bits in (8, 16, 32, 64)}
_SHORT |= {"float32": "f32", "float64": "f64"}

TYPES = {np.dtype(name): Type(short, short) for name, short in _SHORT.items()} | {
    np.dtype("float16"): Type("f16", "f32", "load_half({0}, {1})", "store_half({0}, {1}, {2});"),
    BFLOAT16: Type("u16", "f32", "as_f32((u32){0}[{1}] << 16)", "{0}[{1}] = $bfloat16({2});"),
}
"""How each dtype is kept; the preludes define the names."""


def c_type(dtype: np.dtype) -> Type:
    """How elements of a dtype are kept and computed.

    Raises:
        NotImplementedError: There is no such type.
    """
    if dtype not in TYPES:
        raise NotImplementedError(f"generated kernels have no type for the dtype {dtype}. Convert it to another one.")
    return TYPES[dtype]


def convert(code: str, source: np.dtype, to: np.dtype) -> str:
    """An expression for `code`, a value of one dtype, in another; complex to real keeps the real part."""
    if source == to:
        return code
    target = TYPES[to].value
    if source.kind == "c":
        if to == BOOL:
            return f"({code}.x != 0 || {code}.y != 0)"
        return f"make_{target}({code}.x, {code}.y)" if to.kind == "c" else convert(f"{code}.x", real_of(source), to)
    if to.kind == "c":
        return f"make_{target}(({TYPES[real_of(to)].value}){code}, 0)"
    if to == BOOL:
        return f"({code} != 0)"
    if to.kind in "iu" and source.kind in "fV":
        return f"sat_{target}({code})"  # the nearest that there is, 0 for NaN
    return code if TYPES[source].value == target else f"({target}){code}"


def real_of(dtype: np.dtype) -> np.dtype:
    """The dtype of a part of a complex number."""
    return np.dtype(f"float{dtype.itemsize * 4}")


_COMPARED = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_REAL = "sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh floor ceil trunc rint"
_RENAMED = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh"}
_RENAMED |= {"arctanh": "atanh", "arctan2": "atan2", "float_power": "pow"}

# By ufunc: expressions by kinds of the dtype that it computes in, tried in turn. `$name` is a helper from below.
EXPRESSIONS: dict[str, dict[str, str]] = {
    **{name: {"f": f"{name}({{0}})"} for name in _REAL.split()},
    **{name: {"f": f"{name}({{0}}, {{1}})"} for name in ("hypot", "copysign", "fmod", "nextafter")},
    **{name: {"f": f"{c}({{0}})"} for name, c in _RENAMED.items()},
    **{name: {"f": f"{_RENAMED[name]}({{0}}, {{1}})"} for name in ("arctan2", "float_power")},
    **{name: {"biuf": f"({{0}} {sign} {{1}})"} for name, sign in _COMPARED.items()},
    "add": {"b": "({0} | {1})", "iufc": "({0} + {1})"},
    "subtract": {"iufc": "({0} - {1})"},
    "multiply": {"b": "({0} & {1})", "iuf": "({0} * {1})", "c": "$multiply({0}, {1})"},
    "divide": {"f": "({0} / {1})", "c": "$divide({0}, {1})"},
    "floor_divide": {"iu": "$floor_quotient({0}, {1})", "f": "$floor_divide({0}, {1})"},
    "remainder": {"iu": "$floor_remainder({0}, {1})", "f": "$remainder({0}, {1})"},
    "fmod": {"iu": "$truncated_remainder({0}, {1})", "f": "fmod({0}, {1})"},
    "power": {"iu": "$integer_power({0}, {1})", "f": "pow({0}, {1})", "c": "$complex_power({0}, {1})"},
    "negative": {"iufc": "(-{0})"},
    "positive": {"iufc": "{0}"},
    "square": {"iuf": "({0} * {0})", "c": "$multiply({0}, {0})"},
    "reciprocal": {"f": "(1 / {0})", "c": "$divide(make_{T}(1, 0), {0})"},
    "absolute": {"bu": "{0}", "i": "({0} < 0 ? -{0} : {0})", "f": "fabs({0})", "c": "hypot({0}.x, {0}.y)"},
    "sign": {"bu": "({0} != 0)", "i": "({T})(({0} > 0) - ({0} < 0))", "f": "$sign({0})"},
    "maximum": {"b": "({0} | {1})", "iu": "({0} > {1} ? {0} : {1})", "f": "$maximum({0}, {1})"},
    "minimum": {"b": "({0} & {1})", "iu": "({0} < {1} ? {0} : {1})", "f": "$minimum({0}, {1})"},
    "fmax": {"b": "({0} | {1})", "iu": "({0} > {1} ? {0} : {1})", "f": "fmax({0}, {1})"},
    "fmin": {"b": "({0} & {1})", "iu": "({0} < {1} ? {0} : {1})", "f": "fmin({0}, {1})"},
    "heaviside": {"f": "({0} == 0 ? {1} : $heaviside({0}))"},
    "logaddexp": {"f": "$logaddexp({0}, {1})"},
    "logaddexp2": {"f": "$logaddexp2({0}, {1})"},
    "equal": {"biuf": "({0} == {1})", "c": "({0}.x == {1}.x && {0}.y == {1}.y)"},
    "not_equal": {"biuf": "({0} != {1})", "c": "({0}.x != {1}.x || {0}.y != {1}.y)"},
    "logical_and": {"b": "({0} & {1})"},
    "logical_or": {"b": "({0} | {1})"},
    "logical_xor": {"b": "({0} ^ {1})"},
    "logical_not": {"b": "!{0}"},
    "bitwise_and": {"biu": "({0} & {1})"},
    "bitwise_or": {"biu": "({0} | {1})"},
    "bitwise_xor": {"biu": "({0} ^ {1})"},
    "invert": {"b": "!{0}", "iu": "({T})~{0}"},
    "left_shift": {"iu": "($outside({1}) ? ({T})0 : ({T})({0} << {1}))"},
    "right_shift": {"iu": "({0} >> ($outside({1}) ? ({T})(sizeof({T}) * 8 - 1) : {1}))"},
    "isnan": {"biu": "0", "f": "({0} != {0})", "c": "({0}.x != {0}.x || {0}.y != {0}.y)"},
    "isinf": {"biu": "0", "f": "isinf({0})", "c": "(isinf({0}.x) || isinf({0}.y))"},
    "isfinite": {"biu": "1", "f": "isfinite({0})", "c": "(isfinite({0}.x) && isfinite({0}.y))"},
    "signbit": {"f": "(signbit({0}) != 0)"},
    "gcd": {"iu": "$gcd({0}, {1})"},
    "lcm": {"iu": "$lcm({0}, {1})"},
    "conjugate": {"biuf": "{0}", "c": "make_{T}({0}.x, -{0}.y)"},
}  # fmt: skip
SPECIAL = {"erf": "erf", "erfc": "erfc", "gammaln": "lgamma", "gamma": "tgamma"}
"""SciPy's functions that the languages have, under their names there."""

EXPRESSIONS |= {name: {"f": f"{c}({{0}})"} for name, c in SPECIAL.items()}
for _name in ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"):
    EXPRESSIONS[_name]["c"] = f"$complex_{_name}({{0}})"
EXPRESSIONS |= {name: {"iu": "{0}", **EXPRESSIONS[name]} for name in ("floor", "ceil", "trunc", "rint")}


def _helpers() -> dict[str, str]:
    found = {}
    for function in resources.files(__package__).joinpath("helpers.c").read_text().split("\n\n")[1:]:
        head = re.search(r"^\w+ (\w+)\(", function, re.MULTILINE)
        assert head
        found[head[1]] = f"{function[: head.start()]}DEVICE {function[head.start() :]}"
    return found


HELPERS = _helpers()
"""The functions of helpers.c by name."""


def expression(name: str, dtype: np.dtype) -> str:
    """The expression of a ufunc where it computes in a dtype.

    Raises:
        NotImplementedError: There is none.
    """
    kind = "f" if dtype == BFLOAT16 else dtype.kind
    for kinds, found in EXPRESSIONS.get(name, {}).items():
        if kind in kinds:
            return found.replace("{T}", c_type(dtype).value)
    raise NotImplementedError(f'"{name}" not implemented for {dtype} in generated kernels. Compute it on the CPU.')


class Helpers:
    """Collects the helpers that a source calls.

    Attributes:
        text: Their definitions, each once.
    """

    def __init__(self) -> None:
        self.text = ""
        self._seen: set[str] = set()

    def resolve(self, code: str, dtype: np.dtype) -> str:
        """`code` with the calls of helpers for a dtype."""
        return re.sub(r"\$(\w+)", lambda match: self._named(match[1], dtype), code) if "$" in code else code

    def _named(self, helper: str, dtype: np.dtype) -> str:
        value = c_type(dtype).value
        name = f"{helper}_{value}"
        if name not in self._seen:
            self._seen.add(name)
            part = c_type(real_of(dtype)).value if dtype.kind == "c" else value
            meaning = {"T": value, "R": part, "MAKE": f"make_{value}", helper: name}
            self.text += re.sub(rf"\b(T|R|MAKE|{helper})\b", lambda match: meaning[match[1]], HELPERS[helper]) + "\n"
        return name


def scalar(value: Any, dtype: np.dtype) -> Any:
    """A number as the argument of a kernel for a value of a dtype."""
    with np.errstate(all="ignore"):
        return np.array(value).astype(FLOAT32 if TYPES[dtype].value == "f32" else dtype)[()]
