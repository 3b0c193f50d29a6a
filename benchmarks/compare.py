"""Times rushlight and PyTorch side by side on the cases of cases.py.

    python benchmarks/compare.py [--only REGEX] [--rounds 3] [--threads 2]

Both libraries must be installed in the running environment (`nox -s bench` makes one).
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

CASES = Path(__file__).with_name("cases.py")


def measure(library: str, arguments: argparse.Namespace) -> dict[str, float]:
    """Runs the cases with one library in a fresh process and returns microseconds by case."""
    command = [sys.executable, str(CASES), library, "--only", arguments.only, "--threads", str(arguments.threads)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {record["case"]: record["us"] for record in map(json.loads, output.splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()

    rounds = [(measure("torch", arguments), measure("rushlight", arguments)) for _ in range(arguments.rounds)]
    areas: dict[str, list[float]] = defaultdict(list)
    print(f"{'case':32} {'torch us':>12} {'rushlight us':>12} {'ratio':>7}")
    for case in rounds[0][0]:
        ratio = statistics.median(ours[case] / theirs[case] for theirs, ours in rounds)
        areas[case.partition("/")[0]].append(ratio)
        theirs_us = statistics.median(theirs[case] for theirs, _ in rounds)
        ours_us = statistics.median(ours[case] for _, ours in rounds)
        print(f"{case:32} {theirs_us:12.2f} {ours_us:12.2f} {ratio:7.3f}")
    print("\ngeometric means of the ratios")
    for area, ratios in areas.items():
        print(f"{area:32} {math.exp(statistics.fmean(map(math.log, ratios))):33.3f}")


if __name__ == "__main__":
    main()
