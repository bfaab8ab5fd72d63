"""Designed exposure: what is shown, with which chances, and how what comes back is evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import truerank as tr
from truerank.core.errors import RefusedError
from truerank.core.results import Results
from truerank.evaluation.design import (
    DesignData,
    DesignGoal,
    design_data,
    design_goal,
    effects_of,
    exposure_probabilities,
    wishes,
)
from truerank.exposure.kinds import ExposureDesign
from truerank.metrics.additive import Precision, Recall

N_USERS, N_ITEMS = 40, 30


def scores() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    taste = rng.normal(size=(N_USERS, N_ITEMS))
    return {name: taste + rng.normal(size=taste.shape) for name in ("a", "b")}


def truth() -> pl.DataFrame:
    rng = np.random.default_rng(2)
    user, item = (each.ravel() for each in np.indices((N_USERS, N_ITEMS)))
    return pl.DataFrame({"user": user, "item": item, "label": (rng.random(len(user)) < 0.3).astype(int)})


def train() -> pl.DataFrame:
    return pl.DataFrame({"user": np.repeat(np.arange(N_USERS), 2), "item": np.arange(2 * N_USERS) % 7})


def back(design: ExposureDesign) -> pl.DataFrame:
    return design.table().join(truth(), on=["user", "item"]).select("user", "item", "label")


def evaluated(labels: Any, design: ExposureDesign | None, **more: Any) -> Results:
    how = {"exposure": tr.exposure.DesignedExposure(design), "metrics": ["Precision@5"], "exclude": train()} | more
    return tr.evaluate(scores(), labels, **how)


@pytest.fixture(scope="module")
def planned() -> ExposureDesign:
    return tr.design_exposure(scores(), metrics=["Precision@5"], exclude=train(), per_user=12, seed=3).design


def test_what_is_shown(planned: ExposureDesign) -> None:
    shown = planned.table()
    assert shown.group_by("user").len()["len"].unique().to_list() == [12]
    assert shown.join(train(), on=["user", "item"]).height == 0
    assert (
        planned.pairs["propensity"].to_numpy().min() > 0.25 * 12 / N_ITEMS - 1e-12
    )  # the uniform share, of all candidates
    assert planned.settings["per_user"] == 12
    listed = tr.design_exposure(scores(), metrics=["Precision@5"], exclude=train(), per_user=12, seed=4)
    assert not listed.table().equals(shown)
    again = tr.design_exposure(scores(), metrics=["Precision@5"], exclude=train(), per_user=12, seed=3)
    assert again.table().equals(shown)


def wished(data: DesignData, goal: DesignGoal, user: int) -> tuple[np.ndarray, np.ndarray]:
    """How much each place is wished for, and the places in lists."""
    listed, places, effects = effects_of(goal, user, len(data.items))
    return wishes(effects, places, data.likely(user) ** 2), listed


def test_probabilities_are_those_of_the_formula() -> None:
    """N = 10, n = 2, a uniform share of .25, none for what is likely, two equal targets: .05 and .80."""
    data = design_data({"a": np.array([[9.0, 8.0] + [0.0] * 8])})
    wish, _ = wished(data, design_goal(data, [Precision(2)]), 0)
    probability = exposure_probabilities(data.likely(0), wish, data.excluded(0), 2, (0.25, 0.0))
    assert np.sort(probability).round(9).tolist() == [0.05] * 8 + [0.8] * 2


def test_a_wish_for_recall_is_for_everything() -> None:
    data = design_data(scores())
    wish, listed = wished(data, design_goal(data, [Recall(3)]), 0)
    assert (wish > 0).all()
    assert wish[listed].min() > np.delete(wish, listed).max()


# --------------------------------------------------------------------------------------------------- what came back


def codes(results: Results) -> dict[str, str]:
    return {message.code: message.severity for message in results.messages}


def test_rows_that_nobody_asked_for_are_left_out(planned: ExposureDesign) -> None:
    labels = back(planned)
    unasked = (
        truth().join(labels, on=["user", "item"], how="anti").join(train(), on=["user", "item"], how="anti").head(9)
    )
    found = evaluated(pl.concat([labels, unasked]), planned)
    assert codes(found)["unasked"] == "caution"
    plain = evaluated(labels, planned)
    assert [each.value for each in found.estimates] == [each.value for each in plain.estimates]
    assert found.provenance.counts["judged"] == plain.provenance.counts["judged"]
    assert "unasked" not in codes(plain)


def test_rows_that_are_missing_are_stood_for(planned: ExposureDesign) -> None:
    labels = back(planned).sort("user", "item")
    some = labels.filter((pl.col("user") != 0) | (pl.int_range(pl.len()) % 2 == 0))  # half of the first user
    rows, returned = planned.joined(tr.read(some))
    assert (returned.partial, returned.silent, returned.unasked) == (1, 0, 0)
    whole, _ = planned.joined(tr.read(labels))
    assert rows.propensity is not None
    assert whole.propensity is not None
    assert rows.propensity[rows.user == 0] == pytest.approx(whole.propensity[whole.user == 0][::2] / 2)
    assert codes(evaluated(some, planned))["not-returned"] == "caution"
    few = labels.gather_every(3)
    assert codes(evaluated(few, planned))["not-returned"] == "warning"


def test_users_of_whom_nothing_came_back_are_left_out(planned: ExposureDesign) -> None:
    labels = back(planned).filter(pl.col("user") >= 10)
    found = evaluated(labels, planned)
    assert codes(found)["users-not-returned"] == "caution"
    assert found.estimates[0].units == 30
    declared = evaluated(tr.read(labels, users=np.arange(N_USERS)), planned)
    assert (declared.estimates[0].units, declared.estimates[0].undefined) == (30, 10)
    assert declared.estimates[0].value == found.estimates[0].value


def test_batches_are_weighed_as_fixed_beforehand() -> None:
    """A row of the first of two batches stands for 1 / (2 π) + 1 / 2, one of the second for 1 / (2 π)."""
    design = tr.design_exposure(scores(), metrics=["Precision@5"], exclude=train(), per_user=7, batches=2).design
    assert np.bincount(design.pairs["batch"]).tolist() == [0, 4 * N_USERS, 3 * N_USERS]
    rows, _ = design.joined(tr.read(back(design)))
    assert rows.propensity is not None
    pairs = design.pairs.sort("user", "item")
    expected = 0.5 / pairs["propensity"].to_numpy() + np.where(pairs["batch"] == 1, 0.5, 0.0)
    assert 1 / rows.propensity == pytest.approx(expected)
    evaluated(back(design), design)
    one = design.table().filter(pl.col("batch") == 1).join(truth(), on=["user", "item"]).select("user", "item", "label")
    first, _ = design.joined(tr.read(one))
    assert first.propensity == pytest.approx(pairs.filter(batch=1)["propensity"].to_numpy())
    with refused("2 batches", RefusedError):
        evaluated(back(design), design, interval=tr.Design())


def test_an_interval_for_exactly_these_users(planned: ExposureDesign) -> None:
    """Σ c (z / π - A)², c = (1 - π) n / (n - 1), over the rows of each user, by hand."""
    labels = back(planned)
    found = evaluated(labels, planned, estimators=["horvitz-thompson"], interval=tr.Design()).estimates[0]
    rows = planned.table().join(labels, on=["user", "item"]).sort("user", "item")
    seen = np.zeros((N_USERS, N_ITEMS), dtype=bool)
    seen[train()["user"], train()["item"]] = True
    order = np.where(seen, -np.inf, scores()["a"]).argsort(axis=1)[:, ::-1]
    top = np.zeros((N_USERS, N_ITEMS), dtype=bool)
    np.put_along_axis(top, order[:, :5], True, axis=1)
    user, item, chance = (rows[name].to_numpy() for name in ("user", "item", "propensity"))
    z = rows["label"].to_numpy() * top[user, item] / 5 / N_USERS
    variance = 0.0
    for one in range(N_USERS):
        own = user == one
        c = (1 - chance[own]) * 12 / 11
        spread = z[own] / chance[own]
        variance += float((c * (spread - (c @ spread) / c.sum()) ** 2).sum())
    assert found.stderr == pytest.approx(np.sqrt(variance))


# ----------------------------------------------------------------------------------------------------------- borders


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"metrics": ["nDCG@5"]}, "sums over the top K"),
        ({"metrics": []}, "no metrics"),
        ({"uniform": 0.0}, "above 0"),
        ({"uniform": 0.7, "likely": 0.7}, "no more than 1 together"),
        ({"batches": 30}, "expected 1 to 20"),
        ({"draw": "lots"}, "lots"),
    ],
)
def test_what_cannot_be_designed_is_refused(more: dict[str, Any], words: str) -> None:
    with refused(words):
        tr.design_exposure(scores(), **({"metrics": ["Precision@5"]} | more))


def test_labels_without_chances_are_refused(planned: ExposureDesign) -> None:
    with refused("propensity"):
        evaluated(back(planned), None)
    with refused("no such folder"):
        tr.exposure.DesignedExposure("nowhere")
    with refused("no column 'batch'"):
        tr.exposure.DesignedExposure(pl.DataFrame({"user": [1], "item": [1], "propensity": [0.5]}))
