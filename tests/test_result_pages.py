"""Pages of results begin with a picture and three sentences, made from their own tables; long tables are folded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from result_heads import HEADS
from result_pages import FOLDER, bare, begun
from result_parts import tables
from truerank.report.folding import LONG, folded

PAGES = sorted(FOLDER.glob("*.md"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_page_begins_with_a_picture_and_hides_long_tables(path: Path) -> None:
    title, picture, sentences, *rest = [part for part in path.read_text().split("\n\n") if part]
    assert title.startswith("# ")
    image = re.fullmatch(r"!\[.{20,}\]\((.+\.svg)\)", picture)
    assert image is not None
    assert "<svg" in (FOLDER / image[1]).read_text()
    assert len(re.findall(r"\.(?=\s|$)", sentences)) >= 3
    open_parts = re.sub(r"<details>.*?</details>", "", "\n\n".join(rest), flags=re.DOTALL)
    assert all(len(table) <= LONG for table in tables(open_parts))


@pytest.mark.parametrize("name", HEADS)
def test_sentences_are_those_of_the_tables(name: str) -> None:
    """The page says what its own tables say: made again from them it is the same."""
    text = (FOLDER / f"{name}.md").read_text()
    plain = bare(text)
    assert begun(plain, HEADS[name](tables(plain)), image=f"{name}.svg") == text
    assert HEADS[name](tables(plain)).chart.to_dict()  # checked against the schema of Vega-Lite


def test_a_page_without_its_beginning_is_what_a_script_wrote() -> None:
    page = "# Title\n\nWritten.\n\n| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * (LONG + 1) + "\nEnd.\n"
    once = folded(page.splitlines())
    assert once.count("<details><summary>Table of 21 rows</summary>") == 1
    assert folded(once) == once
    short = page.replace("| 1 | 2 |\n", "", 1).splitlines()
    assert folded(short) == short
    assert bare(page) == page
