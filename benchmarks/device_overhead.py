"""What a call on a third party's device costs above the same call on the CPU, with kernels that do nothing.

    python benchmarks/device_overhead.py [--check]

The same Python function is the kernel of one operator on both devices. --check exits with 1 above the limit.
"""

import argparse
import timeit

import numpy as np

import rushlight as torch
from rushlight import _registry
from rushlight.plugin import Backend, Op

LIMIT_US = 0.3
ROUNDS, CALLS = 15, 20000


class Null(Backend):
    """A device whose arrays are NumPy's."""

    name = "null"
    xp = np


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()

    op = Op("bench::nothing(Tensor self, Tensor other) -> Tensor")
    for device_type in ("cpu", "null"):
        op.kernel(device_type, lambda x, y: x)
    _registry.commit("benchmarks", _registry.Contributions(ops=[op], backends=[Null]))

    best = {}
    for _ in range(ROUNDS):  # in turn, so that a slow moment hits both; the quickest of each
        for device_type in ("cpu", "null"):
            x = torch.ones(3, device=device_type)
            seconds = timeit.timeit(lambda x=x: op.operator(x, x), number=CALLS) / CALLS
            best[device_type] = min(seconds * 1e6, best.get(device_type, float("inf")))
    more = best["null"] - best["cpu"]
    print(f"cpu {best['cpu']:.3f} us, third party {best['null']:.3f} us: {more:+.3f} us (limit {LIMIT_US})")
    return int(arguments.check and more > LIMIT_US)


if __name__ == "__main__":
    raise SystemExit(main())
