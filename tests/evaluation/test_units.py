"""Results that remember: what units contributed adds up to the estimate, and groups are what they would be alone."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused
from ways import EXCLUDE, ITEMS, MODELS, N_USERS, SEED, USERS, WAYS, Way, parametrized, read, rows_of

import truerank as tr
from truerank.core.ids import Ids
from truerank.core.results import Estimate, Results
from truerank.core.units import COLUMNS
from truerank.estimators.assisted import Assisted
from truerank.estimators.predictions import Assistance
from truerank.metrics.additive import Precision

NO_QUOTIENT = {"assisted", "judge-alone", "post-stratified", "post-normalised"}
KEY = ["model", "metric", "estimator", "reward", "clip"]
LINEAR = [number for number, way in enumerate(WAYS) if way.interval is None]
every_way = parametrized(LINEAR)
HALVES = {user: "left" if at < N_USERS // 2 else "right" for at, user in enumerate(sorted(USERS))}


def evaluated(way: Way, rows: pl.DataFrame, *, users: list[str] | None = None) -> Results:
    question, judge = way.question, way.question.judge
    if users is not None and judge is not None:  # others, of whom the judge says something, would count as well
        judge = judge.filter(pl.col("user").is_in(users))
    log = read(rows) if users is None else tr.read(rows, positive=">1", users=Ids.of(users), name="labels")
    return tr.evaluate(
        MODELS,
        log,
        exposure=question.exposure,
        metrics=question.metrics,
        estimators=question.estimators,
        clips=question.clips,
        exclude=EXCLUDE,
        items=Ids.of(ITEMS),
        item_features=question.item_features,
        judge=judge,
        assist=question.assist,
        interval=question.interval,
        seed=SEED,
    )


@cache
def whole(number: int) -> Results:
    return evaluated(WAYS[number], rows_of(WAYS[number]))


def rows_for(results: Results, estimate: Estimate) -> pl.DataFrame:
    """The units of one estimate."""
    same = [
        pl.col(name).is_null() if (value := getattr(estimate, name)) is None else pl.col(name) == value for name in KEY
    ]
    return results.units().filter(pl.all_horizontal(same))


# --------------------------------------------------------------------------------------------------------------- units


@every_way
def test_what_units_contribute_adds_up_to_the_estimate(number: int) -> None:
    results = whole(number)
    table = results.units()
    assert tuple(table.columns) == COLUMNS
    assert len(table) == N_USERS * len(results.estimates)
    for estimate in results.estimates:
        own = rows_for(results, estimate)
        assert sorted(own["unit"].to_list()) == sorted(USERS)
        assert (own["unit"] == own["cluster"]).all()
        numerator, denominator = math.fsum(own["numerator"]), math.fsum(own["denominator"])
        assert own["defined"].sum() == estimate.units
        assert len(own) - own["defined"].sum() == estimate.undefined
        left_out = own.filter(~pl.col("defined"))
        assert (left_out["numerator"] == 0).all()
        assert (left_out["denominator"] == 0).all()
        assert left_out["value"].null_count() == len(left_out)
        if denominator <= 0:
            assert math.isnan(estimate.value)
            continue
        known = own.filter("defined")["total"]
        factor = 1.0 if known.null_count() else math.fsum(known) / len(known)
        close = 1e-10 if estimate.estimator in NO_QUOTIENT else 1e-14
        assert numerator / denominator * factor == pytest.approx(estimate.value, rel=close)


# -------------------------------------------------------------------------------------------------------------- groups


def alike(found: Results, wanted: Results) -> None:
    """Values, errors and counts; what is said of all users beside them may differ."""
    assert [(each.model, each.metric, each.clip) for each in found.estimates] == [
        (each.model, each.metric, each.clip) for each in wanted.estimates
    ]
    for one, other in zip(found.estimates, wanted.estimates, strict=True):
        np.testing.assert_equal(one.value, other.value, err_msg=str(one))
        for name in ("stderr", "low", "high"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-12, nan_ok=True), (one, name)
        assert (one.units, one.undefined, one.clusters) == (other.units, other.undefined, other.clusters)
    for pair, same in zip(found.comparisons, wanted.comparisons, strict=True):
        np.testing.assert_equal(pair.difference, same.difference)
        assert pair.stderr == pytest.approx(same.stderr, rel=1e-12, nan_ok=True)
        assert (pair.units, pair.clusters) == (same.units, same.clusters)


def learns_nothing(way: Way) -> bool:
    """Item rates, fitted propensities and the rank curve look at all users."""
    rates = type(getattr(way.estimator, "reward", None)).__name__ == "ItemRates"
    rates |= isinstance(way.estimator, Assisted) and way.estimator.by is Assistance.LOG
    return not (way.fitted or rates or way.estimator.info.fits)


ALONE = [number for number, way in enumerate(WAYS) if learns_nothing(way)]


@parametrized(ALONE)
def test_a_group_is_what_it_would_be_alone(number: int) -> None:
    way = WAYS[number]
    groups = whole(number).by(HALVES)
    assert list(groups) == ["left", "right"]
    for name, results in groups.items():
        users = [user for user, group in HALVES.items() if group == name]
        rows = rows_of(way).filter(pl.col("user").is_in(users))
        alike(results, evaluated(way, rows, users=users))
        units = results.units()
        assert set(units["unit"]) == set(users)
        assert str(results.messages[0]) == (
            f"group {name}: {len(users)} of {N_USERS} users; the messages below are about all of them."
        )
        assert results.provenance.details["group"] == name


FITTED = [number for number in LINEAR if WAYS[number].fitted and WAYS[number].estimator.info.weighs]


@parametrized(FITTED)
def test_a_group_of_what_was_fitted_to_all_has_a_value_and_no_interval(number: int) -> None:
    results = whole(number)
    for name, part in results.by(HALVES).items():
        assert [message.code for message in part.messages][:2] == ["group", "group-interval"]
        for estimate in part.estimates:
            own = rows_for(results, estimate).filter(pl.col("unit").is_in([u for u, g in HALVES.items() if g == name]))
            denominator = math.fsum(own["denominator"])
            assert math.isnan(estimate.stderr) or estimate.estimator == "judge-alone"  # which weighs nothing
            assert estimate.ess is None
            quotient = own["total"].null_count() == len(own) and estimate.estimator not in NO_QUOTIENT
            if quotient and denominator > 0:
                assert estimate.value == pytest.approx(math.fsum(own["numerator"]) / denominator, rel=1e-14)


BAD: dict[str, tuple[Any, str]] = {
    "other ids": ({"nobody": "a", "none": "b"}, r"none of nobody, none is a user of this evaluation, which has user"),
    "ids of another kind": ({1: "a"}, "text never matches numbers"),
    "nothing": ({}, "none of"),
    "only nulls": (dict.fromkeys(USERS), "none of"),
    "two groups": (pl.DataFrame({"u": [USERS[0]] * 2, "g": ["a", "b"]}), r"is in a, b; expected one group for each id"),
    "three columns": (pl.DataFrame({"u": USERS, "g": USERS, "h": USERS}), "groups with 3 columns"),
    "an id that is null": (pl.DataFrame({"u": [None, *USERS], "g": ["a"] * (N_USERS + 1)}), "row 1 has no id"),
    "one quantile": (1, "expected at least 2"),
    "no quantile": (0, "expected at least 2"),
    "a truth": (True, "expected a mapping"),
    "half a quantile": (2.5, "expected a mapping"),
    "words": ("country", "expected a mapping"),
}


@pytest.mark.parametrize("case", BAD)
def test_groups_that_make_no_sense_are_explained(case: str) -> None:
    segment, words = BAD[case]
    with refused(words):
        whole(ALONE[0]).by(segment)


def test_quantiles_of_activity() -> None:
    """Activity is what was seen in training: users with equally many rows share a group."""
    seen = [0, 1, 1, 2, 3, 5]
    user = np.repeat(np.arange(6), 8)
    labels = pl.DataFrame({"user": user, "item": np.tile(np.arange(8), 6), "label": (np.arange(48) % 3 == 0) * 1})
    train = pl.DataFrame({"user": np.repeat(np.arange(6), seen), "item": np.concatenate([np.arange(n) for n in seen])})
    scores = {"m": np.random.default_rng(0).normal(size=(6, 8))}
    results = tr.evaluate(scores, labels, exclude=train, metrics=[Precision(2)])
    found = results.by(3)
    assert {name: sorted(set(part.units()["unit"])) for name, part in found.items()} == {
        "activity 0 to 1": [0, 1, 2],
        "activity 2 to 2": [3],
        "activity 3 to 5": [4, 5],
    }
    assert sum(part.estimates[0].units for part in found.values()) == 6
    # without exclusions it is the number of judged rows, and here all have the same
    (only,) = tr.evaluate(scores, labels, metrics=[Precision(2)]).by(4)
    assert only == "activity 8 to 8"
