"""Compiles the gradient rules of operator records to what the engine runs (csrc/rule.h).

A rule is an expression over operators, as `"grad * conj(other)"`. Names are parameters of the operator, `grad` (or
`grads[i]` where it has several results), `result` (`results[i]`), and True, False, None, inf, nan, pi; a parameter
called `grad` or `result` is out of reach. It may call every operator by its name, with keywords, `x.conj()` for
`conj(x)`, and the functions of csrc/builtins.cpp, as `shape(self)`; what is only asked for its shape or type is not
kept alive until backward. `a if c else b`, `and`, `or`, `not` and `is None` work on numbers and absent arguments.
What a rule
gives is summed, cast and made real by the engine so that it fits the argument.

A Python function is a rule too: it takes what its parameters name, those above and `<parameter>_shape`,
`<parameter>_dtype`, `result0`, `result1`, ... and `needs` (which of several gradients are wanted); `grads` and
`results` are tuples there, with None for results that have no gradient.

What a rule names is kept, and whoever writes to it before backward gets an error: a rule that can do with the inputs
leaves the results to be written to, as by `relu_` after a norm.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rushlight.plugin import Op, load, operators, plugins

from . import _C

CONSTANT, SAVED, GRAD, TEMPORARY = range(4)
ALL = 255  # as index of GRAD: the tuple of all gradients
Operand = tuple[int, int]

_CONSTANTS = {"inf": math.inf, "nan": math.nan, "pi": math.pi, "e": math.e}
_ARITHMETIC = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow"}
_BITWISE = {ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor"}
_COMPARISONS = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}


class RuleError(ValueError):
    """A gradient rule that cannot be compiled; the message names the operator and the rule."""


def _overloads(name: str, namespace: str | None, records: Mapping[str, Op]) -> tuple[str, ...]:
    """Full names of the operators that a rule may mean by `name`, in the order of registration."""
    wanted = name.replace(".", "::", 1)
    exact: list[str] = []
    near: list[str] = []
    for full, record in records.items():
        if name in (record.base, *record.aliases):
            (exact if record.namespace in (None, namespace) else near).append(full)
        elif record.namespace and wanted == f"{record.namespace}::{record.base}":
            exact.append(full)
    return tuple(exact or near)


class _Values:
    """What the rules of one operator share: saved values and constants."""

    def __init__(self, record: Op, parameters: Sequence[str], results: int, records: Mapping[str, Op]) -> None:
        self.op = record.name
        self.results = results
        self.namespace = record.namespace
        self.records = records
        self.parameters = list(parameters)
        self.saves: list[tuple[bool, bool, int]] = []  # (a result?, shape only?, index)
        self.constants: list[Any] = []

    def save(self, result: bool, shape_only: bool, index: int) -> Operand:
        key = (result, shape_only, index)
        if key not in self.saves:
            self.saves.append(key)
        return SAVED, self.saves.index(key)

    def constant(self, value: Any) -> Operand:
        for i, other in enumerate(self.constants):
            if type(other) is type(value) and repr(other) == repr(value):
                return CONSTANT, i
        self.constants.append(value)
        return CONSTANT, len(self.constants) - 1


class _Compiler:
    """One expression to a list of instructions (code, target, name, operands, keywords, destination)."""

    def __init__(self, values: _Values, text: str) -> None:
        self.values = values
        self.text = text
        self.code: list[Any] = []
        self.temporaries = 0

    def fail(self, why: str) -> RuleError:
        return RuleError(f"gradient rule of {self.values.op}: {why}, got {self.text!r}.")

    def emit(
        self, code: str, operands: Sequence[Operand], name: Any = None, keywords: Sequence[str] = (), target: int = -1
    ) -> Operand:
        if target < 0:
            target = self.temporaries
            self.temporaries += 1
        self.code.append((code, target, name, tuple(operands), tuple(keywords), 0))
        return TEMPORARY, target

    def jump(self, code: str, operands: Sequence[Operand] = ()) -> int:
        """A jump whose destination `land` fills in."""
        self.code.append((code, 0, None, tuple(operands), (), 0))
        return len(self.code) - 1

    def land(self, at: int) -> None:
        self.code[at] = (*self.code[at][:5], len(self.code))

    def visit(self, node: ast.expr, shape_only: bool = False) -> Operand:
        match node:
            case ast.Constant(value=value):
                return self.values.constant(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return self.values.constant(-value)
            case ast.Tuple() | ast.List():
                return self.values.constant(self.ints(node))
            case ast.Name(id=name):
                return self.name(name, shape_only)
            case ast.Subscript(value=ast.Name(id="grads"), slice=ast.Constant(value=int() as i)):
                return GRAD, self.result_index("grads", i)
            case ast.Subscript(value=ast.Name(id="results"), slice=ast.Constant(value=int() as i)):
                return self.values.save(True, shape_only, self.result_index("results", i))
            case ast.Subscript(value=value, slice=index):
                return self.emit("builtin", [self.visit(value), self.visit(index)], "item")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.emit("neg", [self.visit(operand)])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.choose(operand, ast.Constant(False), ast.Constant(True))
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self.call("bitwise_not", [operand], [])
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BITWISE:
                return self.call(_BITWISE[type(operator)], [left, right], [])
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
                return self.emit(_ARITHMETIC[type(operator)], [self.visit(left), self.visit(right)])
            case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
                return self.emit("builtin", [self.visit(left)], "is_none")
            case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return self.visit(ast.UnaryOp(ast.Not(), ast.Compare(left, [ast.Is()], [ast.Constant(None)])))
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARISONS:
                return self.emit(_COMPARISONS[type(operator)], [self.visit(left), self.visit(right)])
            case ast.BoolOp(op=ast.And(), values=[first, *rest]):
                return self.choose(
                    first, ast.BoolOp(ast.And(), rest) if len(rest) > 1 else rest[0], ast.Constant(False)
                )
            case ast.BoolOp(op=ast.Or(), values=[first, *rest]):
                return self.choose(first, ast.Constant(True), ast.BoolOp(ast.Or(), rest) if len(rest) > 1 else rest[0])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.choose(test, body, orelse)
            case ast.Call(func=ast.Attribute(value=value, attr=method)) if not self.is_module(value):
                return self.call(method, [value, *node.args], node.keywords)
            case ast.Call(func=function):
                return self.call(ast.unparse(function), node.args, node.keywords)
        raise self.fail(f"cannot understand {ast.unparse(node)!r}")

    def result_index(self, name: str, i: int) -> int:
        if not 0 <= i < (self.values.results if self.values.results > 0 else ALL):
            raise self.fail(f"{name}[{i}] does not exist, the operator has {self.values.results} results")
        return i

    def is_module(self, node: ast.expr) -> bool:
        known = {*self.values.parameters, "grad", "result", "grads", "results", *_CONSTANTS}
        return isinstance(node, ast.Name) and node.id not in known

    def ints(self, node: ast.Tuple | ast.List) -> tuple[int, ...]:
        value = ast.literal_eval(node)
        if not all(isinstance(i, int) for i in value):
            raise self.fail("a tuple in a rule holds integers")
        return tuple(value)

    def name(self, name: str, shape_only: bool) -> Operand:
        if name == "grad":
            return GRAD, 0
        if name == "result":
            return self.values.save(True, shape_only, 0)
        if name in self.values.parameters:
            return self.values.save(False, shape_only, self.values.parameters.index(name))
        if name in _CONSTANTS:
            return self.values.constant(_CONSTANTS[name])
        raise self.fail(f"unknown name {name!r}; the parameters are {', '.join(self.values.parameters)}")

    def choose(self, test: ast.expr, yes: ast.expr, no: ast.expr) -> Operand:
        target = self.temporaries
        self.temporaries += 1
        to_no = self.jump("unless", [self.visit(test)])
        self.emit("move", [self.visit(yes)], target=target)
        to_end = self.jump("jump")
        self.land(to_no)
        self.emit("move", [self.visit(no)], target=target)
        self.land(to_end)
        return TEMPORARY, target

    def call(self, name: str, args: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> Operand:
        builtin = _C.builtin(name)
        if builtin is None:
            operands = [self.visit(a) for a in [*args, *(k.value for k in keywords)]]
            overloads = _overloads(name, self.values.namespace, self.values.records)
            if not overloads:
                raise self.fail(f"there is no operator or function {name!r}")
            return self.emit("call", operands, overloads, [str(k.arg) for k in keywords])
        nargs, shape_only = builtin
        if keywords or len(args) != nargs:
            raise self.fail(f"{name} takes {nargs} positional arguments")
        return self.emit("builtin", [self.visit(a, shape_only=i == shape_only) for i, a in enumerate(args)], name)


def _expression(values: _Values, index: int, text: str) -> tuple[Any, ...]:
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise RuleError(f"gradient rule of {values.op}: not an expression, got {text!r}: {error}.") from None
    compiler = _Compiler(values, text)
    result = compiler.visit(tree.body)
    return (index,), tuple(compiler.code), result, None, (), False


def _function(values: _Values, indices: tuple[int, ...], function: Callable[..., Any]) -> tuple[Any, ...]:
    operands, names, needs = [], [], False
    for name in inspect.signature(function).parameters:
        if name == "needs":
            needs = True
            continue
        base, _, what = name.rpartition("_")
        if name == "grads":
            operands.append((GRAD, ALL))
        elif name == "results":  # one operand each; the engine makes them a tuple
            operands.extend(values.save(True, False, i) for i in range(values.results))
            names.extend([name] * (values.results - 1))
        elif name not in values.parameters and re.fullmatch(r"result\d+", name):
            index = _Compiler(values, f"{function.__qualname__}({name})").result_index("result", int(name[6:]))
            operands.append(values.save(True, False, index))
        elif name not in values.parameters and base in values.parameters and what in ("shape", "dtype"):
            operands.append(values.save(False, True, values.parameters.index(base)))
        else:
            operands.append(_Compiler(values, f"{function.__qualname__}({name})").name(name, False))
        names.append(name)
    return indices, tuple(operands), None, function, tuple(names), needs


def _node_name(op: str) -> str:
    base = op.rpartition("::")[2].partition(".")[0]
    return "".join(word[:1].upper() + word[1:] for word in base.split("_")) + "Backward0"


def _programs(values: _Values, record: Op) -> tuple[list[tuple[Any, ...]], list[int]]:
    """What computes the gradients, and the places of the parameters that have none."""
    programs: list[tuple[Any, ...]] = []
    undifferentiable: list[int] = []
    for names, rule in record.grads.items():
        unknown = [n for n in names if n not in values.parameters]
        if unknown:
            raise RuleError(f"gradient rule of {record.name}: it has no parameter {unknown[0]!r}.")
        indices = tuple(values.parameters.index(n) for n in names)
        if rule is NotImplemented:
            continue  # the engine raises where it is asked for
        if rule is None:
            undifferentiable.extend(indices)
        elif callable(rule):
            programs.append(_function(values, indices, rule))
        else:
            programs.append(_expression(values, indices[0], rule))
    return programs, undifferentiable


def check_rules(record: Op, siblings: Sequence[Op]) -> None:
    """Compiles the rules of a record that is not registered yet, for its errors.

    Args:
        record: The `Op`.
        siblings: What will be registered with it.

    Raises:
        RuleError: A rule names something unknown or is not an expression.
    """
    parameters = record.parameters

    def compile_among(known: Mapping[str, Op]) -> None:
        _programs(_Values(record, parameters, -1, {**known, **{op.name: op for op in siblings}}), record)

    try:
        compile_among(operators())
    except RuleError:
        for plugin in plugins():  # one that is not loaded yet may bring what the rule names
            load(plugin.name)
        compile_among(operators())


def compile_rule(record: Any) -> _C.Rule:
    """The rule of an operator record, for the engine; called once, when the operator is first recorded.

    Args:
        record: The `Op`: its name and what `Op.grad` was given.

    Raises:
        RuleError: A rule names something unknown or is not an expression.
    """
    parameters, results = _C.signature(record.name)
    values = _Values(record, parameters, results, operators())
    programs, undifferentiable = _programs(values, record)
    return _C.Rule(
        record.name,
        _node_name(record.name),
        tuple(values.saves),
        tuple(values.constants),
        tuple(programs),
        tuple(undifferentiable),
        record.auxiliary,
    )
