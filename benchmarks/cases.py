"""The timed statements, written once: `torch` is whichever library is being measured.

    python benchmarks/cases.py torch|rushlight [--only REGEX] [--threads 2]

Prints one JSON object per case: its name and the median microseconds of one run of the statement.
"""

import argparse
import copy
import importlib
import io
import itertools
import json
import pickle
import re
import statistics
import time
from collections.abc import Callable
from typing import Any

SECONDS_PER_CASE = 0.25


def cases(torch: Any) -> dict[str, Callable[[], object]]:
    """Name -> statement. A name is `area/what_size`."""
    torch.manual_seed(0)
    a, b = torch.randn(4), torch.randn(4)
    table: dict[str, Callable[[], object]] = {
        "overhead/add_4": lambda: a + b,
        "overhead/mul_scalar_4": lambda: a * 2.0,
        "overhead/tanh_4": lambda: torch.tanh(a),
        "overhead/sum_4": lambda: a.sum(),
        "overhead/view_4": lambda: a.view(2, 2),
        "overhead/index_4": lambda: a[1:3],
    }
    for size in (1_000_000, 10_000_000):
        x, y = torch.randn(size), torch.randn(size)
        table |= {
            f"elementwise/add_{size:.0e}": lambda x=x, y=y: x + y,
            f"elementwise/mul_{size:.0e}": lambda x=x, y=y: x * y,
            f"elementwise/exp_{size:.0e}": lambda x=x: torch.exp(x),
            f"elementwise/sum_{size:.0e}": lambda x=x: x.sum(),
        }
    m = torch.randn(512, 512)
    table["matmul/512"] = lambda: m @ m

    w = torch.randn(4, requires_grad=True)

    def small_graph() -> object:
        loss = ((w * 2 + 1).tanh() * w).sum()
        loss.backward()
        return loss

    table["grad/add_4"] = lambda: w + a
    table["grad/small_graph"] = small_graph
    square, vector = torch.randn(256, 256), torch.randn(256)
    jacobian = torch.autograd.functional.jacobian
    table["grad/jacobian_256"] = lambda: jacobian(lambda x: (x @ square).tanh(), vector, vectorize=True)
    table["train/mlp_784-256-10_b64"] = training_step(torch)
    table["train/conv_8x8_b64"] = convolution_step(torch)
    return table | tiny_matrices(torch) | files(torch) | distributions(torch)


def tiny_matrices(torch: Any) -> dict[str, Callable[[], object]]:
    """Batches of 10,000 3x3 matrices."""
    table: dict[str, Callable[[], object]] = {}
    for dtype in (torch.float32, torch.float64, torch.complex128):
        a = torch.randn(10_000, 3, 3, dtype=dtype)
        hermitian = a + a.mH
        for name, of in (("inv", a), ("det", a), ("eigh", hermitian), ("svd", a)):
            function = getattr(torch.linalg, name)
            table[f"linalg/{name}_{str(dtype)[6:]}_10000x3x3"] = lambda function=function, of=of: function(of)
    return table


def files(torch: Any) -> dict[str, Callable[[], object]]:
    """Saving, loading and copying a few big tensors and many small ones, in memory."""
    big = {str(i): torch.randn(1000, 1000) for i in range(8)}
    small = {str(i): torch.randn(16) for i in range(1000)}
    table: dict[str, Callable[[], object]] = {
        "files/pickle_small": lambda: pickle.dumps(small["0"]),
        "files/deepcopy_1000_small": lambda: copy.deepcopy(small),
    }
    for name, state in (("32MB", big), ("1000_small", small)):
        file = io.BytesIO()
        torch.save(state, file)
        data = file.getvalue()
        table[f"files/save_{name}"] = lambda state=state: torch.save(state, io.BytesIO())
        table[f"files/load_{name}"] = lambda data=data: torch.load(io.BytesIO(data))
    return table


def distributions(torch: Any) -> dict[str, Callable[[], object]]:
    """Making a distribution, drawing from it and the density of what was drawn."""
    table: dict[str, Callable[[], object]] = {}
    matrix = torch.eye(5) + 0.1
    for size in (4, 100_000):
        zeros, ones, weights, means = (
            torch.zeros(size), torch.ones(size), torch.rand(size, 5) + 0.1, torch.zeros(size, 5)
        )  # fmt: skip
        made = {
            "normal": lambda zeros=zeros, ones=ones: torch.distributions.Normal(zeros, ones),
            "categorical": lambda weights=weights: torch.distributions.Categorical(weights),
            "gamma": lambda ones=ones: torch.distributions.Gamma(ones, ones),
            "beta": lambda ones=ones: torch.distributions.Beta(ones, ones),
            "multivariate_normal": lambda means=means: torch.distributions.MultivariateNormal(means, matrix),
        }
        for name, make in made.items():

            def statement(make: Callable[[], Any] = make) -> object:
                distribution = make()
                return distribution.log_prob(distribution.sample())

            table[f"distributions/{name}_{size}"] = statement
    return table


def training_step(torch: Any) -> Callable[[], object]:
    """One SGD step of a two-layer network on a batch of 64."""
    model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    return step(torch, model, torch.randn(64, 784), torch.randint(0, 10, (64,)))


def convolution_step(torch: Any) -> Callable[[], object]:
    """One SGD step of a small convolutional network on 64 images of 8x8."""
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(256, 10),
    )  # fmt: skip
    return step(torch, model, torch.randn(64, 1, 8, 8), torch.randint(0, 10, (64,)))


def step(torch: Any, model: Any, inputs: Any, labels: Any) -> Callable[[], object]:
    """One step of stochastic gradient descent on a fixed batch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = torch.nn.CrossEntropyLoss()

    def run() -> object:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss

    return run


def microseconds(statement: Callable[[], object]) -> float:
    """Median microseconds of one run, from samples of at least a millisecond each."""

    def sample(count: int) -> float:
        start = time.perf_counter()
        for _ in itertools.repeat(None, count):
            statement()
        return time.perf_counter() - start

    count = 1
    while sample(count) < 1e-3:
        count *= 2
    samples = []
    deadline = time.perf_counter() + SECONDS_PER_CASE
    while len(samples) < 5 or time.perf_counter() < deadline:
        samples.append(sample(count) / count)
    return statistics.median(samples) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=["rushlight", "torch"])
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch = importlib.import_module(arguments.library)
    torch.set_num_threads(arguments.threads)
    for name, statement in cases(torch).items():
        if re.search(arguments.only, name):
            print(json.dumps({"case": name, "us": microseconds(statement)}), flush=True)


if __name__ == "__main__":
    main()
