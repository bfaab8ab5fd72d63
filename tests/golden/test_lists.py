"""Metrics of lists equal those of RecTools and RePlay to 1e-9, per user and over all users."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import truerank as tr
from truerank.core.ids import Ids
from truerank.core.results import Results

HERE = Path(__file__).parent / "lists"
CUTOFFS = (1, 3, 10)
# another tool, its metric, and ours; RecTools gives the mean popularity: the lift times that of all items
SAME = [
    ("rectools", "CatalogCoverage", "Coverage@{k}"),
    ("rectools", "MeanInvUserFreq", "Novelty@{k}"),
    ("rectools", "AvgRecPopularity", "PopularityLift@{k}(base=catalogue)"),
    ("rectools", "IntraListDiversity", "Diversity@{k}"),
    ("rectools", "Serendipity", "Serendipity@{k}"),
    ("replay", "Coverage", "Coverage@{k}(among=train)"),
    ("replay", "Surprisal", "Novelty@{k}(unit=share,denominator=cutoff)"),
]


def table(name: str) -> pl.DataFrame:
    return pl.read_csv(HERE / f"{name}.csv")


@cache
def stored(tool: str) -> dict[str, dict[str, float]]:
    values: dict[str, dict[str, float]] = json.loads((HERE / f"{tool}.json").read_text())["values"]
    return values


@cache
def ours() -> Results:
    metrics = [metric.format(k=k) for _, _, metric in SAME for k in CUTOFFS]
    return evaluated(metrics=metrics)


def evaluated(**how: Any) -> Results:
    return tr.evaluate(
        {"m": table("lists")},
        table("test"),
        exposure="holdout",
        exclude=table("train"),
        items=Ids.of(table("features")["item"]),
        **({"item_features": table("features")} | how),
    )


@pytest.mark.parametrize(("tool", "theirs", "metric"), SAME, ids=str)
@pytest.mark.parametrize("k", CUTOFFS)
def test_every_value_equals_the_other_tools(tool: str, theirs: str, metric: str, k: int) -> None:
    name = metric.format(k=k)
    (estimate,) = [each for each in ours().estimates if each.metric == name]
    wanted = dict(stored(tool)[f"{theirs}@{k}"])
    factor = len(table("train")) / len(table("features")) if theirs == "AvgRecPopularity" else 1.0
    units = ours().units().filter(pl.col("metric") == name)
    values = dict(zip(units["unit"].to_list(), units["value"].to_list(), strict=True))
    overall = wanted.pop("all")
    # a list of one item has no two that differ: undefined here, 0 there
    lengths = dict(table("lists").group_by("user").len().iter_rows())
    left_out = {user for user, n in lengths.items() if theirs == "IntraListDiversity" and min(n, k) < 2}
    for user, value in wanted.items():
        if int(user) in left_out:
            assert values[int(user)] is None
            assert value == 0
        else:
            assert values[int(user)] * factor == pytest.approx(value, abs=1e-9)
    if not wanted:
        assert set(values.values()) == {None}  # no user has one alone
    share = 1 - len(left_out) / len(lengths)
    if share:
        assert estimate.value * factor * share == pytest.approx(overall, abs=1e-9)
    assert estimate.units == len(lengths) - len(left_out)


def test_the_page_of_definitions_has_these_numbers() -> None:
    page = (Path(__file__).parents[2] / "docs" / "definitions.md").read_text()
    table_at = page.index("| of lists | here |")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page[table_at:].split("\n\n")[0].splitlines()
    ]
    for metric, here, tool, there in rows[2:]:
        features = {} if metric.startswith("Diversity") else {"item_features": None}
        assert f"{evaluated(metrics=[metric], **features).estimates[0].value:.4f}" == here, metric
        if tool:
            name, _, theirs = tool.partition(" ")
            assert f"{stored(name)[theirs]['all']:.4f}" == there, tool
    assert {row[2].split(" ")[-1].split("@")[0] for row in rows[2:]} == {theirs for _, theirs, _ in SAME} | {""}
