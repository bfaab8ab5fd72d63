"""One default estimator for a metric, whatever the number of rows and whichever command is used (finding A10)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from calling import call

import truerank as tr

N_ITEMS = 200
METRICS = ("Recall@10", "Precision@10")
DEFAULTS = {"Recall@10": "post-stratified", "Precision@10": "hajek"}


def dense(scores: np.ndarray) -> Any:
    return tr.scores.dense(scores, users=range(len(scores)), items=range(scores.shape[1]))


def simulated(n_users: int, n_labelled: int, seed: int = 0) -> tuple[dict[str, Any], pl.DataFrame]:
    """Two models, of which one knows what users like, and a uniform draw of labelled items of every user."""
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(n_users, N_ITEMS))
    relevant = rng.random((n_users, N_ITEMS)) < 1 / (1 + np.exp(2 - 1.5 * taste))
    scores = {
        "good": dense(taste + rng.normal(size=taste.shape)),
        "random": dense(rng.normal(size=taste.shape)),
    }  # fmt: skip
    items = np.argsort(rng.random((n_users, N_ITEMS)), axis=1)[:, :n_labelled]
    user, item = np.repeat(np.arange(n_users), n_labelled), items.ravel()
    labels = pl.DataFrame({"user": user, "item": item, "label": relevant[user, item].astype(int), "time": user})
    return scores, labels


def defaults(scores: dict[str, Any], labels: pl.DataFrame, **options: Any) -> dict[str, str]:
    results = tr.evaluate(scores, labels, **{"exposure": "random", "metrics": list(METRICS), "threads": 1, **options})
    return {estimate.metric: estimate.estimator for estimate in results.estimates}


def test_one_more_row_never_changes_the_estimator() -> None:
    """600 rows x 10 / 200 = 30 expected rows in the lists, where the default once switched."""
    scores, labels = simulated(30, 20)
    assert defaults(scores, labels) == defaults(scores, labels.head(-1)) == DEFAULTS
    assert defaults(scores, labels.head(40)) == DEFAULTS


def test_one_more_row_moves_no_verdict() -> None:
    """Thirty draws at the former switch: a row more or less changes neither the value by much nor the verdict."""
    changes, moved = [], 0
    for seed in range(30):
        scores, labels = simulated(30, 20, seed)
        with_row, without = (
            tr.evaluate(scores, rows, exposure="random", metrics=["Precision@10"], threads=1)
            for rows in (labels, labels.head(-1))
        )
        changes.append(abs(with_row.estimates[0].value - without.estimates[0].value))
        moved += with_row.comparisons[0].verdict != without.comparisons[0].verdict
    assert np.quantile(changes, 0.9) < 0.02
    assert moved <= 1


@pytest.mark.parametrize(
    ("exposure", "additive"), [("random", "hajek"), ("designed", "hajek"), ("biased", "snips")]
)  # fmt: skip
def test_evaluate_and_watch_agree(exposure: str, additive: str) -> None:
    scores, labels = simulated(60, 20)
    if exposure != "random":
        labels = labels.with_columns(propensity=pl.lit(0.1))
    found = defaults(scores, labels.drop("time"), exposure=exposure)
    assert found == {"Recall@10": "post-stratified", "Precision@10": additive}
    watched = tr.watch(scores, labels, require="good > random", exposure=exposure, metrics=list(METRICS))
    assert {pair.metric: pair.estimator for pair in watched.pairs} == found


def test_plan_agrees() -> None:
    scores, labels = simulated(30, 19)
    pilot = tr.plan_exposure(labels.drop("time"), scores, difference=0.05, metrics=list(METRICS), threads=1)
    assumed = [
        tr.plan_exposure(difference=0.05, metrics=[metric], n_items=N_ITEMS, value=0.2, relevant=relevant).table()
        for metric, relevant in (("Recall@10", 0.1), ("Precision@10", None))
    ]
    for table in (pilot.table(), pl.concat(assumed)):
        rows = table.select("metric", "estimator").unique().rows()
        assert sorted(rows) == sorted(DEFAULTS.items())


def test_advise_agrees(tmp_path: Path) -> None:
    """The first valid estimator of a metric in its list is the default of that metric, also of a small log."""
    for n_labelled in (5, 20):
        _, labels = simulated(20, n_labelled)
        path = tmp_path / f"log{n_labelled}.csv"
        labels.drop("time").write_csv(path)
        called = call("advise", str(path), "--n-items", str(N_ITEMS), "--format", "json", seconds=60).fine()
        advice = json.loads(called.out)
        assert advice["exposure"] == "random"
        valid = [estimator for estimator in advice["estimators"] if estimator["valid"]]
        first = {metric: next(each["estimator"] for each in valid if metric in each["metrics"]) for metric in METRICS}
        assert first == DEFAULTS


def test_a_clip_takes_what_clips() -> None:
    scores, labels = simulated(60, 20)
    labels = labels.drop("time").with_columns(propensity=pl.lit(0.1))
    found = defaults(scores, labels, exposure="biased", clips=[5.0])
    assert found == {"Recall@10": "snips", "Precision@10": "snips"}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("estimator", [None, "pooled", "horvitz-thompson"])
def test_a_verdict_needs_ten_expected_rows_in_lists(metric: str, estimator: str | None) -> None:
    """The number that is expected under uniform draws decides, wherever rows fell: 200 x 10 / 200 = 10."""
    if (metric, estimator) in (("Recall@10", "horvitz-thompson"), ("Precision@10", "pooled")):
        return
    chosen = None if estimator is None else [estimator]
    reasons: dict[int, set[bool]] = {}
    for n_users in (9, 10):
        for seed in range(4):
            scores, labels = simulated(n_users, 20, seed)
            (comparison,) = tr.evaluate(
                scores, labels.drop("time"), exposure="random", metrics=[metric], estimators=chosen, threads=1
            ).comparisons
            few = "few-list-rows" in {reason.code for reason in comparison.reasons}
            reasons.setdefault(n_users, set()).add(few)
            assert comparison.verdict == "insufficient" or not few
    assert reasons == {9: {True}, 10: {False}}


def test_rows_of_a_design_are_counted_as_they_fell() -> None:
    """Where exposure aims at the lists, their labelled rows are many although uniform draws would have given few."""
    rng = np.random.default_rng(3)
    n_users = 40
    matrices = {name: rng.normal(size=(n_users, N_ITEMS)) for name in ("a", "b")}
    scores = {name: dense(matrix) for name, matrix in matrices.items()}
    probability = np.full((n_users, N_ITEMS), 0.002)
    for matrix in matrices.values():
        np.put_along_axis(probability, np.argsort(-matrix, axis=1)[:, :10], 0.1, axis=1)
    user, item = np.nonzero(rng.random(probability.shape) < probability)
    labels = pl.DataFrame({
        "user": user, "item": item, "label": (rng.random(len(user)) < 0.3).astype(int),
        "propensity": probability[user, item],
    })  # fmt: skip
    assert len(labels) * 10 / N_ITEMS < 10
    (comparison,) = tr.evaluate(scores, labels, exposure="designed", metrics=["Precision@10"], threads=1).comparisons
    assert "few-list-rows" not in {reason.code for reason in comparison.reasons}
    (comparison,) = tr.evaluate(
        scores, labels.head(12), exposure="designed", metrics=["Precision@10"], threads=1
    ).comparisons  # fmt: skip
    assert "few-list-rows" in {reason.code for reason in comparison.reasons}


def test_all_labels_need_no_number_of_rows() -> None:
    """Six users with one place each, every item labelled: nothing is estimated."""
    user, item = np.divmod(np.arange(6 * 4), 4)
    labels = pl.DataFrame({"user": user, "item": item, "label": (item == 0).astype(int)})
    scores = {"right": np.tile([3.0, 2, 1, 0], (6, 1)), "wrong": np.tile([0.0, 1, 2, 3], (6, 1))}
    (comparison,) = tr.evaluate(
        scores, labels, exposure="random", metrics=["Precision@1"], interval=tr.Design(), threads=1
    ).comparisons
    assert comparison.verdict in ("better", "worse")
