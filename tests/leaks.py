"""Repeats every operator's samples and shows that memory stays flat.

    python tests/leaks.py [--repeat 10000] [--seconds 0.5] [--ops REGEX]

Each operator is called on its samples plainly, with `out=`, in place, with a gradient, and with arguments that it
refuses, in rounds of equal length until it was repeated so often or the time is over. What Python counts is compared
between rounds (objects that the garbage collector tracks, allocated blocks, bytes of tensors), and so is the memory
that the process holds: a leak grows with every round. Exits with 1 and names the operators if any does.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import operator
import re
import resource
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import rushlight as torch
from rushlight import _C
from rushlight._op import operators
from rushlight.testing import Maker, conformance

ROUNDS = 6
FEWEST = 80  # calls a round: what is counted itself adds some ten blocks
PAGES = 8  # KiB that a round may add: the heap grows by pages


class Held(NamedTuple):
    """What the process holds: objects that the collector tracks, blocks of Python's allocator, tensors, KiB in all."""

    objects: int
    blocks: int
    bytes: int
    resident: int


def held() -> Held:
    """Counts after a collection of garbage."""
    gc.collect()
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * resource.getpagesize() // 1024
    return Held(len(gc.get_objects()), sys.getallocatedblocks(), _C.memory_stats()["allocated_bytes"], resident)


def ways(op: Any) -> list[Callable[[], Any]]:
    """The calls of an operator to repeat."""
    try:
        samples = list(op.sampler(Maker(torch.float32), torch.float32)) if op.sampler else []
        results = [op.operator(*args, **kwargs) for args, kwargs in samples[:3]]
    except RuntimeError as error:
        if not conformance.UNSUPPORTED.search(str(error)):
            raise
        results = []
    info = _C.op_info(op.name)
    takes_out = op.out and info["outputs"] and not info["view"] and conformance.WRITES not in op.schema
    calls: list[Callable[[], Any]] = [partial(op.operator, object()), partial(op.operator, no_such_argument=1)]
    for (args, kwargs), result in zip(samples, results, strict=False):
        calls += [partial(op.operator, *args, **kwargs), partial(op.operator, *args, torch.ones(2, 3, 5, 7), **kwargs)]
        if takes_out:
            out = conformance.change(result, torch.empty_like)
            calls.append(partial(op.operator, *args, **kwargs, out=out))
        if op.inplace:
            name = f"{op.namespace}::{op.base}_" if op.namespace else f"{op.base}_"
            calls.append(partial(write, operators[name], args, kwargs))
    if results and op.differentiable:
        calls.append(partial(differentiate, op))
    return calls


def write(inplace: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """The in-place form on a copy."""
    inplace(args[0].clone(), *args[1:], **kwargs)


def differentiate(op: Any) -> None:
    """Forward and backward of the first sample."""
    make = Maker(torch.float32, requires_grad=True)
    for args, kwargs in op.sampler(make, torch.float32):
        for tensor in conformance.tensors(op.operator(*args, **kwargs)):
            if tensor.requires_grad:
                tensor.sum().backward()
                return
        return


def attempt(way: Callable[[], Any]) -> bool:
    """Calls; whether it raised nothing."""
    try:
        way()
    except (RuntimeError, TypeError, ValueError, IndexError):
        return False
    return True


def growth(calls: list[Callable[[], Any]], repeat: int, seconds: float) -> str | None:
    """Repeats calls; what grew with them, or None."""
    start = time.perf_counter()
    for way in calls * 3:
        attempt(way)
    pace = (time.perf_counter() - start) / 3
    times = max(FEWEST, min(repeat // ROUNDS, int(seconds / ROUNDS / max(pace, 1e-9))))
    history = [held()]
    for _ in range(ROUNDS):
        for way in calls:
            for _ in range(times):
                attempt(way)
        history.append(held())
    # The first rounds fill caches; of the rest every one must have grown by something of every other call for a leak.
    steps = [map(operator.sub, after, before) for before, after in itertools.pairwise(history[2:])]
    least = Held(*map(min, zip(*steps, strict=True)))
    least = least._replace(resident=max(least.resident - PAGES, 0) * 1024)
    grown = [f"{value} {name}" for name, value in least._asdict().items() if value > times // 2]
    return f"{', '.join(grown)} in {times} calls each way" if grown else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=10000)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each operator, where repetitions take longer")
    parser.add_argument("--ops", default="", help="only operators whose name this pattern finds")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    leaks = 0
    ops = [op for op in conformance.all_ops() if re.search(options.ops, op.name)]
    gc.freeze()  # what is there now need not be looked through in every collection
    for op in ops:
        found = growth(ways(op), options.repeat, options.seconds)
        if found:
            leaks += 1
            print(f"{op.name}: every round adds {found}", flush=True)
    print(f"{len(ops)} operators, {leaks} leaks")
    return int(leaks > 0)


if __name__ == "__main__":
    sys.exit(main())
