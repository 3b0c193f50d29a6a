"""Calls every operator with random arguments: whatever they are, a call returns or raises an error of its own.

    python tests/fuzz_ops.py [--seed N] [--rounds N] [--ops REGEX] [--seconds N]

The calls run in a process of their own, whose memory and time per call are limited. Reported are crashes, hangs, errors
of a type that tells of a fault here (SystemError, KeyError, ...), arguments that changed though the operator does not
write them, and results that cannot be read. A call depends on nothing but seed, operator and round, which are printed,
so that the same options with `--ops '^NAME$' --round N` repeat it. Exits with 1 if anything was found.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import re
import resource
import selectors
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import rushlight as torch
from rushlight import plugin

GIB = 2**30
MEMORY = 6 * GIB
SHAPES = [
    (),
    (1,),
    (3,),
    (0,),
    (2, 3),
    (3, 2),
    (3, 3),
    (1, 3),
    (2, 0, 3),
    (2, 3, 4),
    (4, 1, 3, 3),
    (2, 3, 4, 5),
    (0, 0),
]
DTYPES = [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64, torch.complex64, torch.complex128, torch.bool,
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 2.5, -0.5, 1j, True, float("nan"), float("inf"), 2**62, -(2**63), 1e300]
FLOATS = [0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, float("nan"), float("inf")]
INTEGERS = [0, 1, 2, 3, -1, -2, -3, 5, 17]
ABSURD = [2**31, -(2**31), 2**62, -(2**63), 2**63 - 1, 10**6]
STRINGS = [
    "",
    "sum",
    "mean",
    "none",
    "floor",
    "trunc",
    "left",
    "ij,jk->ik",
    "ii",
    "constant",
    "reflect",
    "max",
    "x" * 99,
]
WRONG: list[Any] = [None, "x", object(), [], {}, 1.5, 2**70, b"\0", lambda: None]
ERRORS = (RuntimeError, TypeError, ValueError, IndexError, OverflowError, BufferError, MemoryError)
"""What a call may raise."""

UNMARKED = frozenset({"nn::channel_norm"})
"""Operators that write running statistics, which their schema does not mark, as PyTorch's does not."""


class Parameter(NamedTuple):
    """One parameter of a schema, its type without marks of aliasing, optionality and length."""

    type: str
    name: str
    keyword: bool
    default: bool


def parameters(schema: str) -> list[Parameter]:
    """The parameters of an operator."""
    inside = re.sub(r"\(a!?\)", "", schema[: schema.rindex(" ->")]).partition("(")[2].rpartition(")")[0]
    found: list[Parameter] = []
    keyword = False
    for text in re.split(r", (?![^\[\]]*\])", inside) if inside else ():
        if text == "*":
            keyword = True
            continue
        kind, _, name = text.partition("=")[0].rpartition(" ")
        found.append(Parameter(re.sub(r"\[\d*\]", "[]", kind).rstrip("?"), name, keyword, "=" in text or "?" in kind))
    return found


class Arguments:
    """Draws arguments."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(self.random.getrandbits(60))

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def tensor(self) -> Any:
        """A tensor of any dtype and layout; some have absurd values, are sparse, lack memory, or require gradients."""
        choose = self.random.choice
        shape = choose(SHAPES)
        dtype = choose([*DTYPES, *[torch.float32] * 8, *[torch.int64] * 4])
        value = choose([None] * 6 + [0, float("nan"), float("inf"), -1, 100, 1e30, 2.0**62])
        if value is None:
            tensor = (torch.randn(shape, generator=self.generator) * 3).to(dtype)
        else:
            tensor = torch.full(shape, value, dtype=torch.float64).to(dtype)
        if tensor.ndim >= 2 and self.chance(0.2):
            tensor = tensor.transpose(0, -1)
        if self.chance(0.1):
            tensor = tensor.expand(2, *tensor.shape)
        if tensor.ndim and self.chance(0.3):
            tensor = tensor[choose([slice(1, None), slice(None, None, 2), slice(None, None, -1)])]
        if dtype.is_floating_point and self.chance(0.15):
            tensor = tensor.clone().requires_grad_()
        if tensor.ndim and self.chance(0.03):
            tensor = tensor.to_sparse(self.random.randint(1, tensor.ndim))
        return tensor if self.chance(0.95) else torch.empty(tensor.shape, dtype=dtype, device="meta")

    def integer(self) -> int:
        return self.random.choice(INTEGERS if self.chance(0.9) else ABSURD)

    def of(self, kind: str) -> Any:
        """A value for a parameter of a schema type, now and then one of another type."""
        choose = self.random.choice
        if self.chance(0.03):
            return choose([*WRONG, self.tensor()])
        if kind.endswith("[]"):
            element = kind.removesuffix("[]").rstrip("?")
            values = [self.of(element) for _ in range(self.random.randrange(5))]
            return [values[0]] * len(values) if values and self.chance(0.3) else values
        if kind == "Tensor":
            return self.tensor()
        if kind in ("int", "SymInt"):
            return self.integer()
        if kind == "bool":
            return self.chance(0.5)
        choices: dict[str, Any] = {
            "Scalar": NUMBERS, "float": FLOATS, "str": STRINGS, "ScalarType": [*DTYPES, None],
            "Device": ["cpu", "meta", None], "Generator": [self.generator, None],
            "MemoryFormat": [torch.contiguous_format, torch.channels_last, torch.preserve_format],
        }  # fmt: skip
        return choose(choices.get(kind, [None, 1, "x"]))

    def call(self, op: Any) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments for an operator."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for parameter in parameters(op.schema):
            by_name = parameter.keyword or bool(kwargs)
            if parameter.default and self.chance(0.5):
                by_name = True
                if self.chance(0.6):
                    kwargs.setdefault("", None)  # what follows goes by name
                    continue
            if by_name:
                kwargs[parameter.name] = self.of(parameter.type)
            else:
                args.append(self.of(parameter.type))
        kwargs.pop("", None)
        return args, kwargs


def tensors(value: Any) -> Iterator[Any]:
    """All tensors in nested sequences."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)


def content(tensor: Any) -> bytes:
    """The elements, by value and bit."""
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    return b"" if tensor.is_meta else tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def operators() -> dict[str, Any]:
    """The records of all installed wheels, by name."""
    for each in plugin.plugins():
        plugin.load(each.name)
    return dict(sorted(plugin.operators().items()))


def attempt(op: Any, key: str) -> str | None:
    """One call; what is wrong with what came of it, or None."""
    draw = Arguments(key)
    args, kwargs = draw.call(op)
    function, writes = op.operator, "(a!)" in op.schema or op.name in UNMARKED
    if op.inplace and draw.chance(0.2):
        function, writes = getattr(torch.Tensor, f"{op.base}_", function), True
    elif draw.chance(0.1):
        kwargs["out"], writes = draw.tensor(), True
    read = [] if writes else list(tensors([args, list(kwargs.values())]))
    before = [content(tensor) for tensor in read]
    try:
        result = function(*args, **kwargs)
        for tensor in tensors(result):
            content(tensor)
        outputs = [tensor for tensor in tensors(result) if tensor.requires_grad and tensor.numel()]
        if outputs and draw.chance(0.7):
            outputs[0].sum().backward()
    except ERRORS as error:
        if "unknown C++" in str(error) or not (str(error) or isinstance(error, MemoryError)):
            return f"nameless {type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if any(content(tensor) != old for tensor, old in zip(read, before, strict=True)):
        return "an argument changed"
    return None


def work(options: argparse.Namespace) -> None:
    """Runs the calls from a place on, telling of each before it starts and of what is wrong with it."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number, (name, op, turn) in enumerate(calls(options)):
        if number < options.start:
            continue
        print(f"> {number} {name} {turn}", flush=True)
        fault = attempt(op, f"{options.seed} {name} {turn}")
        if fault:
            print(f"! {fault}"[:500].replace("\n", " "), flush=True)


def calls(options: argparse.Namespace) -> Iterator[tuple[str, Any, int]]:
    """Operator and round of every call, in order."""
    chosen = [(name, op) for name, op in operators().items() if re.search(options.ops, name)]
    for turn in [options.round] if options.round is not None else range(options.rounds):
        for name, op in chosen:
            yield name, op, turn


def run(options: argparse.Namespace) -> int:
    """Runs the calls in processes, a new one after each crash or hang; returns how many faults it printed."""
    faults, start, end = 0, 0, time.monotonic() + options.seconds
    while time.monotonic() < end:
        command = [sys.executable, str(Path(__file__)), *options.forward, "--work", "--start", str(start)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
            where, how = "start", watch(process, options.limit, end)
            for kind, text in how.lines:
                if kind == ">":
                    number, _, where = text.partition(" ")
                    start = int(number) + 1
                else:
                    faults += 1
                    print(f"{where}: {text}", flush=True)
            if how.end == "done":
                break
            if how.end != "time":
                faults += 1
                print(f"{where}: {how.end}", flush=True)
            if where == "start":
                break
    return faults


class Watched(NamedTuple):
    """What a process printed, and how it ended: "done", "time" (the run's is over), or in what fault."""

    lines: list[tuple[str, str]]
    end: str


def watch(process: subprocess.Popen[bytes], limit: float, end: float) -> Watched:
    """Reads a process until it ends, or prints nothing for `limit` seconds and is killed."""
    assert process.stdout is not None
    assert process.stderr is not None
    lines: list[tuple[str, str]] = []
    rest = b""
    selector = selectors.DefaultSelector()
    selector.register(process.stdout, selectors.EVENT_READ)
    patience = 60.0  # the imports
    while True:
        if not selector.select(patience):
            process.kill()
            return Watched(lines, f"hangs for {limit} s")
        chunk = process.stdout.read(65536)
        if not chunk:
            break
        patience = limit
        *whole, rest = (rest + chunk).split(b"\n")
        lines += [(line[:1].decode(), line[2:].decode(errors="replace")) for line in whole]
        if time.monotonic() > end:
            process.kill()
            return Watched(lines, "time")
    report = process.stderr.read().decode(errors="replace")
    if process.wait() == 0:
        return Watched(lines, "done")
    return Watched(lines, f"exit status {process.returncode}: {' '.join(report.split())[:600]}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=50, help="calls of each operator")
    parser.add_argument("--round", type=int, help="only this one")
    parser.add_argument("--ops", default="", help="only operators whose name this pattern finds")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds that a call may take")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.forward = sys.argv[1:] if arguments is None else arguments
    if options.work:
        work(options)
        return 0
    faults = run(options)
    print(f"{faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
