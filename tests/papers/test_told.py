"""What is told of kept numbers: verdicts on what rises or loses nothing, sentences of pictures, axes of places."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from truerank.report.papers.graphs import chart, drawn
from truerank.studies.papers.dcg.simulated import settings_of
from truerank.studies.papers.experiment import EXPERIMENTS
from truerank.studies.papers.paper import Cell, ClaimVerdict, GraphKind, GraphPoint, PaperGraph
from truerank.studies.papers.reproduced import Reproduced, told_again
from truerank.studies.papers.ure.correlations import PEAKS
from truerank.studies.work import StudySize

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "reproduced"


def kept(name: str) -> Reproduced:
    return Reproduced.read(RESULTS / f"{name}.json")


def with_numbers(result: Reproduced, number: Callable[[Cell], float | None]) -> Reproduced:
    """The result told again from other numbers, where `number` gives one."""
    given = ((cell, number(cell)) for cell in result.cells)
    cells = tuple(cell if value is None else replace(cell, obtained=value) for cell, value in given)
    return told_again(replace(result, cells=cells))


def verdict(result: Reproduced, claim: str) -> ClaimVerdict:
    return next(each.verdict for each in result.findings if each.claim == claim)


def graph(result: Reproduced, name: str) -> PaperGraph:
    return next(each for each in result.graphs if each.name == name)


# ------------------------------------------------------------------------------------------------------------- verdicts


@pytest.mark.parametrize(
    ("claim", "column", "values", "expected"),
    [
        ("kendall", "highest, Kendall", (0.90, 0.92, 0.90, 0.88, 0.86), ClaimVerdict.DOES_NOT),
        ("kendall", "highest, Kendall", (0.90, 0.92, 0.90, 0.91, 0.86), ClaimVerdict.DOES_NOT),  # two of four
        ("kendall", "highest, Kendall", (0.90, 0.92, 0.91, 0.93, 0.94), ClaimVerdict.IN_PART),
        ("kendall", "highest, Kendall", (0.90, 0.90, 0.91, 0.93, 0.94), ClaimVerdict.HOLDS),
        ("falls", "K_max, Pearson", (1, 2, 3, 4, 5), ClaimVerdict.DOES_NOT),  # Kendall's falls: half of all steps
        ("falls", "K_max, Pearson", (1, 2, 3, 4, 3), ClaimVerdict.IN_PART),
    ],
)
def test_what_rises_at_some_steps_does_not_rise(
    claim: str, column: str, values: tuple[float, ...], expected: ClaimVerdict
) -> None:
    rows = [f"N̄ = {n}, K̄ = 5" for n in (20, 40, 80, 160, 320)]
    by_row = dict(zip(rows, values, strict=True))
    told = with_numbers(
        kept("E-U1"), lambda cell: by_row.get(cell.row) if (cell.table, cell.column) == (PEAKS, column) else None
    )
    assert verdict(told, claim) is expected
    rule = next(each.rule for each in EXPERIMENTS.named("E-U1").claims if each.key == claim)
    assert rule.endswith("in part if at more than half of them.")


def test_what_finds_nothing_has_not_kept_what_it_found() -> None:
    result = kept("E-D5")
    told = told_again(result)
    assert verdict(told, "variance") is ClaimVerdict.DOES_NOT
    assert "nDCG, small improvement: nothing, as nothing is found" in " ".join(each.why for each in told.findings)
    finding = with_numbers(result, lambda cell: 0.5 if cell.column == "nDCG: found" else None)
    assert verdict(finding, "variance") is ClaimVerdict.IN_PART


def test_settings_of_the_simulated_platform_are_numbers_by_name() -> None:
    assert kept("E-D5").settings == settings_of(StudySize.FULL)
    assert settings_of(StudySize.FULL)["days of Figure 1"] == 5


# ------------------------------------------------------------------------------------------------------------- pictures


def test_the_best_of_places_is_at_the_top_and_all_are_whole() -> None:
    places = graph(kept("E-U1"), "figure-1")
    assert places.kind is GraphKind.PLACES
    (plane,) = chart(places).to_dict(validate=False)["concat"]
    axes: list[Any] = [layer["encoding"]["y"] for layer in plane["layer"]]
    assert all(axis["scale"]["reverse"] and axis["axis"]["values"] == [1, 2, 3, 4] for axis in axes)
    labels = re.findall(r"<text[^>]*>(\d+(?:\.\d+)?)</text>", drawn(places).decode())
    assert set(labels) == {"1", "2", "3", "4"}


def test_one_winner_is_named_once() -> None:
    assert graph(told_again(kept("E-U2")), "table-3").sentence == (
        "With MF, NegS is best among judged items and among all candidates."
    )
    other = with_numbers(kept("E-U2"), lambda cell: 0.9 if cell.row == "DR" and cell.column == "MF, Recall@5" else None)
    assert graph(other, "table-3").sentence == "With MF, NegS is best among judged items, DR among all candidates."


def test_the_measure_is_named_and_what_makes_it_worse_is_said_to() -> None:
    sentence = graph(told_again(kept("E-W4")), "level").sentence
    assert sentence.startswith("Variance / mean of rows per item is 2.5")
    assert "SKEW brings it to 1.3, WTD makes it worse (2.8), WTD_H brings it to 1.4." in sentence


@pytest.mark.parametrize("rate", [None, 0.0, 0.001])
def test_an_axis_of_rates_begins_at_none_also_where_nothing_was_measured(rate: float | None) -> None:
    points = (GraphPoint("a", rate),) if rate is None else (GraphPoint("a", rate), GraphPoint("b", 0.5))
    picture = drawn(PaperGraph("rates", "title", "sentence", GraphKind.RANGES, x="what", y="rate", points=points))
    assert "−" not in picture.decode()
