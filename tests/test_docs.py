"""Documentation names what exists: links resolve, and a link written as code names something in its target."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATTERNS = ("*.md", "benchmarks/*.md", "docs/**/*.md", "examples/**/*.md", "packages/*/*.md")
PAGES = sorted(path for pattern in PATTERNS for path in ROOT.glob(pattern))
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page):
    for text, target in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:|#", target):
            continue
        path = (page.parent / target.partition("#")[0]).resolve()
        assert path.exists(), f"{page.name} links to {target}"
        if text.startswith("`") and path.is_file() and path.suffix != ".md":
            symbol = text.strip("`").removesuffix("()")
            assert symbol == path.name or symbol in path.read_text(encoding="utf-8"), f"{target} has no {symbol}"


def test_guide_is_complete():
    guide = {path.name for path in (ROOT / "docs/guide").glob("*.md")}
    assert guide == {
        "adding-a-layout.md",
        "adding-an-op.md",
        "files.md",
        "hooks-reference.md",
        "hooks.md",
        "life-of-an-op.md",
        "ship-an-op.md",
        "write-a-backend.md",
    }
