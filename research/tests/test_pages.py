"""The committed pages and pictures are those that the committed results give."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from truerank_research.pages.site import site
from truerank_research.results import read_results
from truerank_research.runner import RESULTS

DOCS = Path(__file__).parents[2] / "docs" / "validation"


@cache
def files() -> dict[str, bytes]:
    return site(read_results(RESULTS))


def test_no_page_is_missing_or_left_over() -> None:
    assert {path.name for path in DOCS.iterdir()} == set(files())


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_pages_are_made_from_results(path: Path) -> None:
    assert path.read_bytes() == files()[path.name]
