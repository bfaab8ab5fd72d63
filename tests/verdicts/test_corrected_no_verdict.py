"""`corrected` rests on users whom the data cannot show: it gives values and intervals, and no verdicts (finding A8)."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import truerank as tr

CODE = "experimental-estimator"
N_USERS, N_ITEMS = 200, 60


def compared(n_labelled: int, estimators: list[str]) -> tr.Results:
    """A good and a random order of items of unequal popularity, for users who like much or little."""
    rng = np.random.default_rng(1)
    popularity = rng.gumbel(size=N_ITEMS)
    labels = rng.random((N_USERS, N_ITEMS)) < 1 / (1 + np.exp(2.5 - rng.normal(size=(N_USERS, 1)) - popularity))
    scores = {"good": np.tile(popularity, (N_USERS, 1)), "random": rng.random(labels.shape)}
    user = np.repeat(np.arange(N_USERS), n_labelled)
    item = np.argsort(rng.random(labels.shape), axis=1)[:, :n_labelled].ravel()
    rows = pl.DataFrame({"user": user, "item": item, "label": labels[user, item].astype(int)})
    return tr.evaluate(scores, rows, exposure="random", metrics=["Recall@10"], estimators=estimators, threads=1)


@pytest.mark.parametrize("n_labelled", [5, 15, 30])
def test_a_difference_by_a_model_has_no_verdict(n_labelled: int) -> None:
    results = compared(n_labelled, ["corrected", "post-stratified"])
    by_estimator = {comparison.estimator: comparison for comparison in results.comparisons}
    corrected = by_estimator["corrected"]
    assert corrected.verdict == "insufficient"
    assert CODE in {reason.code for reason in corrected.reasons}
    assert not any(math.isnan(end) for end in (corrected.low, corrected.high))
    assert by_estimator["post-stratified"].verdict in ("better", "worse")
    assert not by_estimator["post-stratified"].reasons


def test_a_requirement_is_not_met_by_it() -> None:
    results = compared(30, ["corrected"])
    code, _ = results.require("good > random")
    assert code == 4


def test_all_labels_leave_nothing_to_a_model() -> None:
    (comparison,) = compared(N_ITEMS, ["corrected"]).comparisons
    assert comparison.verdict in ("better", "worse")
