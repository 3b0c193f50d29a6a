"""Times operators on a GPU, and those of PyTorch beside them where it is installed with CUDA.

    python benchmarks/gpu.py

Prints microseconds of the GPU (between two events) and of the host (to start the work), medians of many calls.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

REPEATS = 50
CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda torch, x, y: x + y,
    "sigmoid": lambda torch, x, y: torch.sigmoid(x),
    "gelu": lambda torch, x, y: torch.nn.functional.gelu(x),
    "hypot": lambda torch, x, y: torch.hypot(x, y),
    "softmax": lambda torch, x, y: torch.softmax(x, -1),
    "layer_norm": lambda torch, x, y: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    "conv2d": lambda torch, x, y: torch.nn.functional.conv2d(x[None, None], y[:9, :1].reshape(1, 1, 3, 3)),
    "max_pool2d": lambda torch, x, y: torch.nn.functional.max_pool2d(x[None, None], 2),
    "sum": lambda torch, x, y: x.sum(-1),
    "matmul": lambda torch, x, y: x @ y,
    "randn": lambda torch, x, y: torch.randn_like(x),
}


def times(torch: Any, case: Callable[[Any, Any, Any], Any], n: int) -> tuple[float, float]:
    """Median microseconds of the GPU and of the host for matrices of n rows and columns."""
    x, y = (torch.rand(n, n, device="cuda") for _ in range(2))
    gpu, host = [], []
    for _ in range(REPEATS + 5):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        before.record()
        start = time.perf_counter()
        case(torch, x, y)
        host.append((time.perf_counter() - start) * 1e6)
        after.record()
        after.synchronize()
        gpu.append(before.elapsed_time(after) * 1e3)
    return statistics.median(gpu[5:]), statistics.median(host[5:])


def main() -> None:
    """Prints a row for each case and library."""
    libraries = []
    for name in ("rushlight", "torch"):
        try:
            library = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        if library.cuda.is_available():
            libraries.append(library)
    if not libraries:
        raise SystemExit("no library here finds a GPU")
    print(f"{libraries[0].cuda.get_device_name()}\n{'case':<16}{'library':<12}{'GPU us':>10}{'host us':>10}")
    for name, case in CASES.items():
        for n in (16, 2048):
            for library in libraries:
                gpu, host = times(library, case, n)
                print(f"{f'{name} {n}':<16}{library.__name__:<12}{gpu:10.1f}{host:10.1f}")


if __name__ == "__main__":
    main()
