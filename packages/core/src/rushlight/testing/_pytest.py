"""The pytest plugin of rushlight-core: option and fixture for the device under test, and the capability table."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

CAPABILITIES = pytest.StashKey[dict[str, dict[str, str]]]()
"""How each operator ran: operator -> dtype -> "native", "array", "composite", "fallback", "missing" or "failed"."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rushlight")
    group.addoption("--device", default="cpu", help="device on which rushlight's tests run (cpu)")
    group.addoption("--operators", default="", metavar="REGEX", help="only operators whose name this finds (all)")
    group.addoption("--capabilities", metavar="FILE", help="write which operators run on the device, as Markdown")


def pytest_configure(config: pytest.Config) -> None:
    table: dict[str, dict[str, str]] = defaultdict(dict)
    config.stash[CAPABILITIES] = table


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> str:
    """The device under test, from `--device`."""
    return str(request.config.getoption("--device"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    table = config.stash[CAPABILITIES]
    if not table:
        return
    device = config.getoption("--device")
    counts = Counter(how for dtypes in table.values() for how in dtypes.values())
    terminalreporter.section(f"operators on {device}")
    terminalreporter.line(
        f"{len(table)} operators; by dtype: " + ", ".join(f"{n} {how}" for how, n in counts.most_common())
    )
    missing = sorted(op for op, dtypes in table.items() if set(dtypes.values()) == {"missing"})
    if missing:
        terminalreporter.line(f"without any kernel: {', '.join(missing)}")
    path = config.getoption("--capabilities")
    if path:
        Path(path).write_text(markdown(device, table))


def markdown(device: str, table: dict[str, dict[str, str]]) -> str:
    """The table as Markdown, one operator a row."""
    dtypes = sorted({dtype for row in table.values() for dtype in row})
    lines = [f"# Operators on {device}", "", f"| operator | {' | '.join(dtypes)} |", "|---" * (len(dtypes) + 1) + "|"]
    for op, row in sorted(table.items()):
        lines.append(f"| `{op}` | {' | '.join(row.get(dtype, '') for dtype in dtypes)} |")
    return "\n".join(lines) + "\n"
