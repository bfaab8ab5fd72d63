"""Pages of results: all made from committed results, first a picture and three sentences, long tables folded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from truerank.report.folding import LONG, folded

FOLDER = Path(__file__).parents[1] / "docs" / "results"
PAGES = sorted(FOLDER.glob("*.md"))


def test_every_page_has_its_results() -> None:
    """None is written by hand: each is made from its file in `studied`, which tests/studies/test_own.py does again."""
    assert {path.stem for path in PAGES} == {path.stem for path in (FOLDER / "studied").glob("*.json")}
    assert not (FOLDER.parents[1] / "scripts").exists()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_page_begins_with_a_picture_and_hides_long_tables(path: Path) -> None:
    title, picture, sentences, *rest = [part for part in path.read_text().split("\n\n") if part]
    assert title.startswith("# ")
    image = re.fullmatch(r"!\[.{20,}\]\((.+\.svg)\)", picture)
    assert image is not None
    assert "<svg" in (FOLDER / image[1]).read_text()
    assert len(re.findall(r"\.(?=\s|$)", sentences)) >= 3
    open_parts = re.sub(r"<details>.*?</details>", "", "\n\n".join(rest), flags=re.DOTALL)
    tables = re.findall(r"(?:^\|.*\n?)+", open_parts, flags=re.MULTILINE)
    assert all(table.count("\n|") <= LONG + 1 for table in tables)  # beside its head and the line below


def test_a_table_of_more_rows_than_are_read_at_once_is_folded() -> None:
    page = "# Title\n\nWritten.\n\n| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * (LONG + 1) + "\nEnd.\n"
    once = folded(page.splitlines())
    assert once.count("<details><summary>Table of 21 rows</summary>") == 1
    assert folded(once) == once
    short = page.replace("| 1 | 2 |\n", "", 1).splitlines()
    assert folded(short) == short
