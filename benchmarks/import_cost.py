"""What `import rushlight` costs above `import numpy`: time, resident memory, and which modules it must not load.

    python benchmarks/import_cost.py [--check] [--rounds 9]

Every measurement is a fresh process, NumPy and rushlight in turn. --check exits with 1 where a limit is exceeded.
"""

import argparse
import json
import statistics
import subprocess
import sys

LIMIT_MS = 50.0
LIMIT_SHARE = 0.5  # of NumPy's own import, where that is the more: both are slow on a busy machine
LIMIT_MB = 12.0
FORBIDDEN = ("cupy", "numpy.fft", "rushlight.autograd", "rushlight.nn", "scipy")

CHILD = """
import json, sys, time
start = time.perf_counter()
import {module}
milliseconds = (time.perf_counter() - start) * 1e3
try:
    import resource
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
except ImportError:
    megabytes = 0.0
print(json.dumps([milliseconds, megabytes, sorted(sys.modules)]))
"""


def measure(module: str) -> tuple[float, float, list[str]]:
    """Imports a module in a fresh process and returns milliseconds, megabytes resident, and the modules loaded."""
    command = [sys.executable, "-c", CHILD.format(module=module)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    milliseconds, megabytes, modules = json.loads(output)
    return milliseconds, megabytes, modules


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()

    measure("rushlight")  # writes the bytecode caches
    pairs = [(measure("numpy"), measure("rushlight")) for _ in range(arguments.rounds)]
    # The quickest of each: what other processes do only ever adds time.
    numpy_ms = min(numpy[0] for numpy, _ in pairs)
    milliseconds = min(ours[0] for _, ours in pairs) - numpy_ms
    megabytes = statistics.median(ours[1] - numpy[1] for numpy, ours in pairs)
    modules = pairs[0][1][2]
    loaded = [name for name in modules if name.startswith(FORBIDDEN)]

    print(f"import numpy       {numpy_ms:7.1f} ms")
    limit_ms = max(LIMIT_MS, LIMIT_SHARE * numpy_ms)
    print(f"import rushlight  +{milliseconds:7.1f} ms (limit {limit_ms:.0f})")
    print(f"resident memory   +{megabytes:7.1f} MB (limit {LIMIT_MB:.0f})")
    extra = len(modules) - len(pairs[0][0][2])
    print(f"modules           +{extra:5d}    (must not be loaded: {', '.join(loaded) or 'none of them is'})")
    if not arguments.check:
        return 0
    return 1 if milliseconds > limit_ms or megabytes > LIMIT_MB or loaded else 0


if __name__ == "__main__":
    sys.exit(main())
