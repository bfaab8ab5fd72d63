"""Pages of papers as a stranger reads them: three sentences, headings of their own paper, numbers in plain digits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from truerank.report.papers.pages import (
    findings_of,
    main_findings,
    of_paper,
    papers,
    pivot,
    read_results,
    sentences,
)
from truerank.studies.papers.experiment import paper_of
from truerank.studies.papers.paper import Cell, Paper

DOCS = Path(__file__).parents[2] / "docs" / "results"
RESULTS = read_results(DOCS / "reproduced")


def key(paper: Paper) -> str:
    return paper.key


def text(paper: Paper) -> str:
    return (DOCS / "papers" / f"{paper.key}.md").read_text()


@pytest.mark.parametrize("paper", papers(), ids=key)
def test_below_its_picture_a_page_says_what_is_claimed_done_and_found(paper: Paper) -> None:
    title, picture, said, head, main, *_ = text(paper).split("\n\n")
    assert title == f"# {paper.title}"
    assert picture.endswith(".svg)")
    claimed, done, found = sentences(paper, RESULTS)
    assert said == f"{claimed} {done} {found}"
    assert claimed == f"{paper.authors} ({paper.year}) say that {paper.says}."
    ran = [cls for cls in of_paper(paper) if any(each.experiment == cls.name for each in RESULTS.values())]
    assert done.startswith(f"Its claims were tested here in {len(ran)} experiment")
    every = [each for cls in of_paper(paper) for claim, each in findings_of(cls, RESULTS) if not claim.ours]
    numbers = [int(number) for number in re.findall(r"\d+", found)]
    assert numbers[0] == len(every) == sum(numbers[1:])
    assert head == "What it is remembered for:"
    remembered = [claim.text for claim, _ in main_findings(paper, RESULTS, borrowed=True)]
    assert 3 <= len(remembered) <= 5
    assert [line.split(": ", 1)[1] for line in main.splitlines()] == remembered


@pytest.mark.parametrize("paper", papers(), ids=key)
def test_headings_name_what_is_shown_of_this_paper_else_what_it_is_about(paper: Paper) -> None:
    headings = re.findall(r"^## (.*)$", text(paper), flags=re.M)
    assert headings == [
        f"{cls.name}: {', '.join(cls.shows[paper]) or cls.about.removesuffix('.')}" for cls in of_paper(paper)
    ]
    assert all(re.fullmatch(r"E-\w+: \S.*", heading) for heading in headings)


@pytest.mark.parametrize("paper", papers(), ids=key)
def test_numbers_are_as_people_write_them(paper: Paper) -> None:
    page = text(paper)
    assert not re.findall(r"\de\+\d+", page)
    settings = re.findall(r"^Settings: .*$", page, flags=re.M)
    assert not [line for line in settings if re.search(r"[\[\]']|\d\.0\b", line)]
    own = {cls.name for cls in of_paper(paper) if paper_of(cls) == paper}
    for result in RESULTS.values():
        counts = {name: value for name, value in result.settings.items() if isinstance(value, int)}
        assert result.experiment not in own or all(f"{name}: {count:,}" in page for name, count in counts.items())


def test_a_table_has_counts_in_full_and_large_ones_in_millions() -> None:
    cells = [Cell("t", "items", "x", 10612.0, 10728.0), Cell("t", "rows", "x", 4477220.0), Cell("t", "r", "x", 0.5)]
    *_, items, rows, value = pivot(cells)
    assert items == "| items | 10,612 (published 10,728) |"
    assert rows == "| rows | 4.47722 million |"  # six digits are kept
    assert value == "| r | 0.5 |"
