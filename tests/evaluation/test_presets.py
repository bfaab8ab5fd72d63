"""`like=TOOL`: the numbers of other tools, from what they were given, to 1e-9, means over their users included."""

from __future__ import annotations

import math
import re
from typing import Any

import polars as pl
import pytest
from golden_values import CUTOFFS, MEAN, Case, cases, stored
from refusals import refused

import truerank as tr
from truerank.evaluation.presets import PRESETS, preset_named

CASES = cases()
# what a tool calls the metric, by its name here
NAMED = {
    "rectools": {
        "Precision": "Precision", "Recall": "Recall", "HitRate": "HitRate", "AP": "MAP", "nDCG": "NDCG", "RR": "MRR",
    },
    "replay": {
        "HitRate": "HitRate", "AP": "MAP", "RR": "MRR", "nDCG": "NDCG", "Precision": "Precision", "Recall": "Recall",
    },
    "ranx": {
        "HitRate": "hit_rate", "Precision": "precision", "Recall": "recall", "AP": "map", "RR": "mrr", "DCG": "dcg",
        "nDCG": "ndcg",
    },
    "implicit": {"AP": "map", "nDCG": "ndcg"},
    "recbole": {
        "HitRate": "Hit", "RR": "MRR", "AP": "MAP", "Recall": "Recall", "nDCG": "NDCG", "Precision": "Precision",
    },
    "lenskit": {
        "Precision": "Precision", "Recall": "Recall", "HitRate": "Hit", "RR": "RecipRank", "DCG": "DCG", "nDCG": "NDCG",
    },
}  # fmt: skip


def frames(case: Case) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Recommended lists, and held-out grades; a user whom nothing suits has one row of grade 0."""
    lists = [(user, item, rank) for user, items in case.lists.items() for rank, item in enumerate(items, start=1)]
    rows = [(user, item, grade) for user, grades in case.grades.items() for item, grade in grades.items()]
    rows += [(user, case.items[0], 0) for user, grades in case.grades.items() if not grades]
    return (
        pl.DataFrame(lists, schema=["user", "item", "rank"], orient="row"),
        pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row"),
    )


def values(case: Case, tool: str, metrics: list[str]) -> tr.Results:
    lists, test = frames(case)
    return tr.evaluate({"m": lists}, test, like=tool, metrics=metrics)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("tool", "ours", "theirs"),
    [(tool, ours, theirs) for tool, names in NAMED.items() for ours, theirs in names.items()],
)
def test_means_and_values_of_users_equal_the_tool(tool: str, ours: str, theirs: str, name: str) -> None:
    case = CASES[name]
    results = values(case, tool, [f"{ours}@{k}" for k in CUTOFFS])
    units = results.units()
    for estimate, k in zip(results.estimates, CUTOFFS, strict=True):
        expected = stored(tool)[name][f"{theirs}@{k}"]
        mine = units.filter(pl.col("metric") == estimate.metric)
        for user, value, defined in mine.select("unit", "value", "defined").iter_rows():
            other = expected.get(str(user), math.nan)
            if defined and not math.isnan(other):
                assert value == pytest.approx(other, rel=0, abs=1e-9), (k, user)
        if MEAN in expected and not (tool == "ranx" and any(not items for items in case.lists.values())):
            assert estimate.value == pytest.approx(expected[MEAN], rel=0, abs=1e-9), k


def test_every_tool_is_named_once() -> None:
    assert preset_named("IR_measures") is PRESETS["ir-measures"]
    with refused("expected one of trec_eval"):
        preset_named("trec")


def trec_case() -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Graded judgements with ties, a query without relevant documents, one without a list, unjudged documents."""
    qrels = {
        "q1": {"d1": 2, "d2": 0, "d5": 1, "d9": 3},
        "q2": {"d1": 0, "d2": 0},
        "q3": {"d1": 1},
        "q4": {"d10": 1, "d2": 1},
    }
    run = {
        "q1": {"d1": 1.0, "d2": 1.0, "d3": 1.0, "d5": 0.5, "d10": 2.0},
        "q2": {"d1": 3.0, "d4": 1.0},
        "q4": {"d2": 1.0, "d10": 1.0, "d7": 1.0},
    }
    return qrels, run


def trec_frames() -> tuple[pl.DataFrame, pl.DataFrame]:
    qrels, run = trec_case()
    rows = [(query, item, score) for query, items in run.items() for item, score in items.items()]
    judged = [(query, item, grade) for query, items in qrels.items() for item, grade in items.items()]
    return (
        pl.DataFrame(rows, schema=["user", "item", "score"], orient="row"),
        pl.DataFrame(judged, schema=["user", "item", "rating"], orient="row"),
    )


TREC = {
    "Recall@5": "recall_5", "Precision@5": "P_5", "AP@100": "map", "AP@5": "map_cut_5", "nDCG@5": "ndcg_cut_5",
    "RR": "recip_rank", "RPrecision": "Rprec", "HitRate@5": "success_5",
}  # fmt: skip
IR = {"Recall@5": "R@5", "Precision@5": "P@5", "AP@5": "AP@5", "nDCG@5": "nDCG@5", "RR": "RR", "RPrecision": "Rprec"}


def said_by_trec_eval(names: list[str]) -> dict[str, float]:
    """Means over the queries that have both judgements and a list."""
    pytrec_eval: Any = pytest.importorskip("pytrec_eval")
    wanted = {re.sub(r"_(\d+)$", r".\1", name) for name in names}
    found = list(pytrec_eval.RelevanceEvaluator(trec_case()[0], wanted).evaluate(trec_case()[1]).values())
    return {name: sum(each[name] for each in found) / len(found) for name in names}


def said_by_ir_measures(names: list[str]) -> dict[str, float]:
    """Means over all judged queries: one without a list counts as zero."""
    ir_measures: Any = pytest.importorskip("ir_measures")
    found = ir_measures.calc_aggregate([ir_measures.parse_measure(name) for name in names], *trec_case())
    return {str(measure): value for measure, value in found.items()}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a parser, on Python 3.12 and newer
@pytest.mark.parametrize(
    ("tool", "named", "says"),
    [
        ("trec_eval", TREC, said_by_trec_eval),
        ("pytrec_eval", TREC, said_by_trec_eval),
        ("ir-measures", IR, said_by_ir_measures),
    ],
)
def test_ties_and_missing_queries_as_other_tools_take_them(tool: str, named: dict[str, str], says: Any) -> None:
    theirs = says(list(named.values()))
    lists, test = trec_frames()
    results = tr.evaluate({"m": lists}, test, like=tool, metrics=list(named))
    for estimate, name in zip(results.estimates, named.values(), strict=True):
        assert estimate.value == pytest.approx(theirs[name], rel=0, abs=1e-9), name


def test_what_cannot_be_matched_is_said() -> None:
    results = values(CASES["example"], "implicit", ["Precision@3", "nDCG@3"])
    (said,) = [message for message in results.messages if message.code == "unlike"]
    assert "min(K, relevant)" in said.text
