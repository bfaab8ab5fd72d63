"""Metrics of lists through the front door: what they need, who is left out, verdicts without a better side, groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import truerank as tr
from truerank.core.errors import RefusedError
from truerank.core.requirements import Outcome, Requirement

LISTS = pl.DataFrame({"user": [1, 1, 2, 2], "item": ["a", "b", "a", "c"], "rank": [1, 2, 1, 2]})
TEST = pl.DataFrame({"user": [1, 2, 3], "item": ["d", "a", "a"]})
TRAIN = pl.DataFrame({"user": [1, 2, 2, 4], "item": ["c", "b", "d", "a"]})
EVERY = ["Coverage@10", "Gini@10", "Novelty@10", "PopularityLift@10", "Serendipity@10"]


def holdout(lists: Any = LISTS, test: Any = TEST, **how: Any) -> tr.Results:
    models = lists if isinstance(lists, dict) else {"m": lists}
    usual: dict[str, Any] = {"exposure": "holdout", "exclude": TRAIN}
    return tr.evaluate(models, test, **(usual | how))


# -------------------------------------------------------------------------------------------------------------- borders


@pytest.mark.parametrize(
    ("metric", "how", "said"),
    [
        ("Novelty@2", {"exclude": None}, "Novelty@2: it needs to know how popular items are; give the"),
        ("PopularityLift@2", {"exclude": None}, "exclude="),
        ("Coverage@2(among=train)", {"exclude": None}, "give the training log"),
        ("Diversity@2", {}, "it needs features of the items; give them"),
        ("Serendipity@2", {"exposure": "random", "items": list("abcd")}, "these labels are partial; use it with"),
        ("Gini@2", {"exposure": "random", "exclude": None}, "do not tell how many items there are"),
        ("Coverage@9", {"exposure": "random", "items": list("abcd")}, "lists at most 2 items per user"),
    ],
)  # fmt: skip
def test_what_is_lacking_is_said_with_what_to_give(metric: str, how: dict[str, Any], said: str) -> None:
    judged = TEST.with_columns(label=1)
    with pytest.raises(RefusedError) as caught:
        holdout(test=judged, metrics=[metric], **how)
    assert said in str(caught.value)


def test_features_that_nothing_uses_are_refused() -> None:
    features = pl.DataFrame({"item": list("abcd"), "new": [1, 0, 0, 1]})
    with refused(r"nothing that is asked for uses them; ask for Diversity@K"):
        holdout(metrics=["Coverage@2"], item_features=features)
    with refused("no features for 1 of 4 ids"):
        holdout(metrics=["Diversity@2"], item_features=features.head(3))


def test_an_estimator_of_labels_goes_beside_and_not_alone() -> None:
    both = holdout(metrics=["Recall@2", "Coverage@2"], estimators=["holdout"])
    assert [each.estimator for each in both.estimates] == ["holdout", "lists"]
    alone = holdout(metrics=["Coverage@2"], estimators=["holdout"])
    assert [each.estimator for each in alone.estimates] == ["lists"]
    assert "excluded: holdout: nothing that is asked for looks at labels; leave estimators= out." in alone.notes
    with refused("it looks at lists, not at labels", RefusedError):
        holdout(metrics=["Recall@2"], estimators=["lists"])


# ----------------------------------------------------------------------------------------------------- units and groups


def test_units_without_a_list_or_a_history_are_left_out_and_counted() -> None:
    found = {each.metric: each for each in holdout(metrics=EVERY, lists=LISTS).estimates}
    assert found["Coverage@10"].units == 2
    assert found["Coverage@10"].undefined == 1
    assert found["Coverage@10"].value == 0.75
    alone = holdout(metrics=["PopularityLift@2"], exclude=TRAIN.filter(pl.col("user") != 1)).estimates[0]
    assert (alone.units, alone.undefined) == (1, 2)


def test_a_tie_at_the_end_of_a_list_is_said() -> None:
    scores = tr.scores.dense([[1.0, 1.0, 0.0, -1.0], [3.0, 2.0, 1.0, 0.0]], users=[1, 2], items=list("abcd"))
    found = holdout(scores, exclude=None, metrics=["Coverage@1", "Coverage@2"])
    texts = [" ".join(each.warning_texts) for each in found.estimates]
    assert "1 of 3 users have equal scores at the end of their list" in texts[0]
    assert "equal scores" not in texts[1]


# ------------------------------------------------------------------------------------------------------------- verdicts

RNG = np.random.default_rng(2)
WIDE = {"user": np.repeat(np.arange(60), 2)}
NARROW = tr.scores.dense(np.tile(np.arange(40.0), (60, 1)))
BROAD = tr.scores.dense(RNG.permuted(np.tile(np.arange(40.0), (60, 1)), axis=1))
LATER = pl.DataFrame(WIDE | {"item": RNG.permuted(np.tile(np.arange(40), (60, 1)), axis=1)[:, :2].ravel()})
BEFORE = pl.DataFrame({"user": np.arange(60), "item": RNG.integers(0, 40, 60)})


@pytest.fixture(scope="module")
def results() -> tr.Results:
    models = {"narrow": NARROW, "broad": BROAD}
    metrics = ["Recall@5", "Coverage@5", "Gini@5", "Serendipity@5"]
    return tr.evaluate(models, LATER, exposure="holdout", exclude=BEFORE, metrics=metrics)


def test_a_metric_without_a_better_side_is_higher_or_lower(results: tr.Results) -> None:
    verdicts = {each.metric: each.verdict for each in results.compare("broad", "narrow")}
    assert verdicts["Coverage@5"] == "higher"
    assert verdicts["Gini@5"] == "lower"
    assert {verdicts["Recall@5"], verdicts["Serendipity@5"]} <= {"better", "worse", "not shown"}
    turned = {each.metric: each.verdict for each in results.compare("narrow", "broad")}
    assert (turned["Coverage@5"], turned["Gini@5"]) == ("lower", "higher")
    assert {each.metric: each.directed for each in results.estimates} == {
        "Recall@5": True, "Coverage@5": False, "Gini@5": False, "Serendipity@5": True,
    }  # fmt: skip


def test_what_is_required_of_it_is_more(results: tr.Results) -> None:
    outcomes = {
        text: Requirement.parse(text).outcome(results)[0]
        for text in ("broad > narrow: Coverage@5", "narrow > broad: Gini@5", "narrow > broad: Coverage@5")
    }
    assert list(outcomes.values()) == [Outcome.SHOWN, Outcome.SHOWN, Outcome.NOT_SHOWN]
