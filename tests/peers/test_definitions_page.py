"""The definitions page holds no number that is not recomputed here, and misses no metric and no known difference."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import ir_measures
import numpy as np
import polars as pl
import pytest
import pytrec_eval
from cases import labelled, of_lists
from golden_values import MEAN, ours, read_case, stored
from sklearn.metrics import average_precision_score

import truerank as tr
from truerank import estimators, metrics
from truerank.core.estimator import Exposed
from truerank.core.metric import Metric
from truerank.core.ranking import Ties
from truerank.core.values import choices
from truerank.metrics.pairwise import AveragePrecision

PAGE = (Path(__file__).parents[2] / "docs" / "definitions.md").read_text()
EXAMPLE = read_case("example")
USERS = ("1", "2", "3")


def table(header: str) -> list[list[str]]:
    """The cells of the table that starts with this cell."""
    lines = PAGE.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(f"| {header} |")) + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" |")])
    return rows


def shown(value: float | None) -> str:
    if value is None:
        return "none"
    return "undefined" if math.isnan(value) else f"{value:.4f}"


def section(name: str) -> str:
    found = re.search(rf"^## {re.escape(name)}$(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def test_every_metric_has_a_section_a_row_and_a_value() -> None:
    names, lists = set(labelled()), set(of_lists())
    assert {row[0].split("`")[1].split("@")[0] for row in table("name")} == names
    assert {metrics.parse(row[0]).name for row in table("metric")} == names
    assert {row[0].split("`")[1].split("@")[0] for row in table("list metric")} == lists
    assert {metrics.parse(row[0]).name for row in table("of lists")} == lists
    for name in names | lists:
        assert len(section(name)) > 50, name


@pytest.mark.parametrize("row", table("name"), ids=lambda row: row[0])
def test_estimators_of_each_metric_are_those_that_do_not_refuse(row: list[str]) -> None:
    name = row[0].split("`")[1]
    metric = metrics.parse(name.replace("@K", "@3").replace("@P", "@0.5"))
    able = [cls.info for cls in estimators.catalogue().values() if cls().refusal(metric) is None]
    corrected = {info.name for info in able if Exposed.BIASED in info.exposures}
    usable = {info.name for info in able if Exposed.RANDOM in info.exposures and info.name != "traditional"}
    both = {"ips", "snips", "doubly-robust", "naive", "assisted", "judge-alone"}  # of sums, and of recall
    assert corrected in (both, both | {"post-stratified"}, set())
    assert bool(corrected) <= bool(usable)
    said = {word.strip(",;") for word in row[2].split()} & set(estimators.catalogue())
    assert said == usable | ({"traditional"} if name == "AUC" else set())


@pytest.mark.parametrize("row", table("metric"), ids=lambda row: row[0])
def test_values_of_the_example(row: list[str]) -> None:
    values = ours(metrics.parse(row[0]), EXAMPLE)
    known = [value for value in values.values() if not math.isnan(value)]
    assert row[1:] == [*(shown(values[user]) for user in USERS), shown(math.fsum(known) / len(known))]


def test_every_option_is_in_the_example() -> None:
    rows = [row[0] for header in ("metric", "of lists") for row in table(header)]
    for name, cls in metrics.catalogue().items():
        for field in dataclasses.fields(cls)[1:]:
            values = [str(each) for each in choices(cls, field.name) if each != field.default] or [r"\d+"]
            for value in values:
                wanted = rf"{name}@\d+\({field.name}={value}\)"
                assert any(re.fullmatch(wanted, row) for row in rows), wanted


# --------------------------------------------------------------------------------------------------- other tools' rows

DIFFERENCES = {
    ("lenskit", "Recall@3"), ("rectools", "Precision(r_precision=True)@3"), ("lenskit", "Precision@10"),
    ("implicit", "precision@3"), ("rectools", "MAP@3"), ("ranx", "map@3"), ("trec_eval", "map_cut_3"),
    ("ir-measures", "AP@3"), ("rectools", "MAP(divide_by_k=True)@3"), ("torchmetrics", "average_precision@3"),
    ("replay", "MAP@3"), ("rectools", "NDCG@3"), ("lenskit", "NDCG@3"), ("trec_eval", "ndcg_cut_3"),
    ("ranx", "ndcg_burges@3"), ("replay", "Recall@3"), ("trec_eval", "recall_3"), ("rectools", "Precision@3"),
    ("replay", "RocAuc@3"),
}  # fmt: skip


@cache
def live() -> dict[tuple[str, str], dict[str, float]]:
    """What the tools of the test environment say about the example."""
    qrel = {str(u): {str(i): EXAMPLE.grades[u].get(i, 0) for i in EXAMPLE.items} for u in EXAMPLE.lists}
    run = {str(u): {str(i): -float(at) for at, i in enumerate(listed)} for u, listed in EXAMPLE.lists.items()}
    found = pytrec_eval.RelevanceEvaluator(qrel, {"map_cut.3", "ndcg_cut.3", "recall.3"}).evaluate(run)
    values = {
        ("trec_eval", name): {user: found[user][name] for user in USERS}
        for name in ("map_cut_3", "ndcg_cut_3", "recall_3")
    }
    each = ir_measures.iter_calc([ir_measures.AP @ 3], qrel, run)
    values["ir-measures", "AP@3"] = {one.query_id: one.value for one in each}
    for of_user in values.values():
        of_user[MEAN] = float(np.mean([of_user[user] for user in USERS]))
    return values


def differences() -> Iterator[tuple[str, str, list[str]]]:
    for row in table("difference"):
        tool, _, name = row[1].partition(" ")
        yield tool, name, row[2:]


def test_every_known_difference_has_its_row() -> None:
    assert {(tool, name) for tool, name, _ in differences()} == DIFFERENCES


@pytest.mark.parametrize(("tool", "name", "cells"), list(differences()), ids=lambda each: str(each)[:40])
def test_numbers_of_other_tools(tool: str, name: str, cells: list[str]) -> None:
    said = live()[tool, name] if (tool, name) in live() else stored(tool)["example"][name]
    *by_user, mean = ["-" if tool == "implicit" and user != MEAN else shown(said.get(user)) for user in (*USERS, MEAN)]
    assert cells[:3] == by_user
    assert cells[3] == ("-" if mean == "none" else mean)
    # the same number is available here under the name in the last column, for users with a relevant item
    if cells[4]:
        values = ours(metrics.parse(cells[4]), EXAMPLE)
        assert cells[:2] == [shown(values[user]) for user in USERS[:2]]


def test_values_with_ties() -> None:
    labels, scores = np.array([1, 0, 1, 0]), np.array([2.0, 2.0, 1.0, 1.0])
    user = np.zeros(4, dtype=np.int64)
    log = tr.read(pl.DataFrame({"user": user, "item": np.arange(4), "label": labels}))

    def here(metric: Metric, ties: Ties) -> float:
        return tr.evaluate({"m": scores[None]}, log, metrics=[metric], ties=ties).estimates[0].value

    theirs = float(average_precision_score(labels, scores))
    (first, second) = table("tool, its name")
    assert first[1:] == [shown(theirs), "AP@4, strict"]
    assert here(AveragePrecision(4), Ties.STRICT) == pytest.approx(theirs, abs=1e-12)
    assert second[1:] == [shown(here(AveragePrecision(4), Ties.EXPECTED)), "AP@4, expected"]


def test_forms_on_the_page_parse() -> None:
    for text in re.findall(r"`([A-Za-z]+@[0-9.]+(?:\([a-z=,]+\))?)`", PAGE):
        assert str(metrics.parse(text)) == text
