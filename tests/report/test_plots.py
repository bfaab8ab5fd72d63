"""Pictures of results: every number in them is one of the results, and they save themselves in every form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from reported import judged, ranked

from truerank.core.results import BETTER, HIGHER, INSUFFICIENT, LOWER, NOT_SHOWN, WORSE, Results
from truerank.report.charts import PlotPanel
from truerank.report.evidence_panels import units
from truerank.report.panels import differences, intervals
from truerank.report.questions import questions_of, verdict

PICTURES = ("intervals", "differences", "over_k", "units", "balance", "evidence")
OFF_POLICY = ("intervals", "differences", "units", "evidence", "clips", "weights", "positions")


def rows_of(panel: PlotPanel) -> list[dict[str, Any]]:
    spec = panel.chart.to_dict(validate=False)
    found: list[dict[str, Any]] = []

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            found.extend(part["values"] if isinstance(part.get("values"), list) and "name" not in part else [])
            for each in part.values():
                walk(each)
        if isinstance(part, list):
            for each in part:
                walk(each)

    walk(spec.get("datasets", {}))
    walk(spec)
    for rows in spec.get("datasets", {}).values():
        found.extend(rows)
    return [row for row in found if isinstance(row, dict)]


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_of_judged_results_is_valid(name: str) -> None:
    plot = getattr(judged().plot, name)()
    spec = plot.chart.to_dict()  # checked against the schema of Vega-Lite
    assert spec["config"]["background"] == "white"
    assert len(spec["concat"]) >= 1
    assert all(part["title"]["text"] for part in spec["concat"])


@pytest.mark.parametrize("name", OFF_POLICY)
def test_every_picture_of_an_off_policy_evaluation_is_valid(name: str) -> None:
    assert getattr(ranked().plot, name)().chart.to_dict()["concat"]


def test_intervals_and_differences_hold_the_numbers_of_the_results() -> None:
    results = judged()
    for panel, question in zip(intervals(results), questions_of(results), strict=True):
        assert [(row["model"], row["value"], row["low"], row["high"]) for row in rows_of(panel)] == [
            (each.model, each.value, each.low, each.high) for each in question.estimates
        ]
        assert [each.value for each in question.estimates] == sorted(
            (each.value for each in results.estimates if each.metric == question.metric), reverse=True
        )
    drawn = {
        (row["pair"], row["difference"]) for panel in differences(results) for row in rows_of(panel) if "pair" in row
    }
    expected = set()
    for each in results.comparisons:
        towards = each if each.difference >= 0 else each.reverse()
        expected.add((f"{towards.model} - {towards.baseline}", towards.difference))
    assert drawn == expected


def test_who_gains_and_loses_is_counted_from_single_units() -> None:
    results = judged()
    panel = units(results, most=1)[0]
    table = results.units().filter(pl.col("metric") == "Recall@1").filter(pl.col("defined"))
    wide = table.pivot(on="model", index="unit", values="value").drop_nulls()
    rows = {(row["pair"], row["part"]): row["n"] for row in rows_of(panel)}
    names = next(pair for pair, _ in rows).split(" - ")
    gap = wide[names[0]] - wide[names[1]]
    pair = " - ".join(names)
    assert rows[pair, "gains"] == (gap > 1e-12).sum()
    assert rows[pair, "loses"] == (gap < -1e-12).sum()
    assert rows[pair, "gains"] + rows[pair, "loses"] + rows[pair, "same"] == len(wide)


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!doctype html>")])
def test_a_picture_saves_itself_by_the_ending(ending: str, start: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"picture.{ending}"
    judged().plot.over_k().save(path)
    content = path.read_bytes()
    assert content.lstrip().startswith(start)
    judged().plot.over_k().save(path)
    assert path.read_bytes() == content


# ----------------------------------------------------------------------------------------------------------- headlines


def two(verdict: str, difference: float) -> Results:
    """Two models at one metric, with a difference whose verdict is given."""
    results = judged(("als", "pop"))
    of = [each for each in results.estimates if each.metric == "Recall@5"]
    (found,) = [each for each in results.comparisons if each.metric == "Recall@5"]
    directed = verdict not in (HIGHER, LOWER)
    reasons = judged().messages[:1] if verdict == INSUFFICIENT else ()
    changed = replace(found, model="als", baseline="pop", verdict=verdict, reasons=reasons, difference=difference,
                      low=difference - 0.01, high=difference + 0.01)  # fmt: skip
    return replace(results, estimates=tuple(replace(each, directed=directed) for each in of), comparisons=(changed,))


@pytest.mark.parametrize(
    ("kind", "difference", "sentence"),
    [
        (BETTER, 0.25, "als beats pop on Recall@5."),
        (WORSE, -0.25, "pop beats als on Recall@5."),
        (LOWER, -0.25, "pop is higher than als on Recall@5."),
        (NOT_SHOWN, 0.25, "No significant difference between als and pop on Recall@5."),
        (INSUFFICIENT, 0.25, "Insufficient evidence to compare als and pop on Recall@5."),
    ],
)
def test_the_answer_of_two_models_is_one_sentence(kind: str, difference: float, sentence: str) -> None:
    assert verdict(questions_of(two(kind, difference)), ["als", "pop"]) == sentence
