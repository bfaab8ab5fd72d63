"""Plans: by hand where that can be done, and beside how often differences are shown."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from refusals import refused
from scipy import stats

import truerank as tr
from truerank.core.errors import RefusedError
from truerank.core.rows import SampledRows
from truerank.core.terms import ratio
from truerank.inference.power import (
    Components,
    Sure,
    assumed_lists,
    assumed_sessions,
    power_of,
    rows_for,
    smallest_difference,
    users_for,
)
from truerank.inference.variance_components import _cumulants, components_of

SURE = Sure()


def test_many_users_need_what_the_formula_of_normal_means_says() -> None:
    """U = (z₀.₉₇₅ + z₀.₈)² (σ_B² + σ_W²) / Δ², 7.849 σ² / Δ²."""
    of = Components(between=1.0, within=60.0, finite=0.5)
    for rows in (10, 40, 120):
        needed = users_for(of, 0.02, rows=rows, sure=SURE)
        assert needed is not None
        assert needed == pytest.approx(7.849 * (1 + 60 / rows - 0.5) / 0.02**2, rel=0.002)


def test_users_and_exposures_trade_and_searches_agree() -> None:
    of = Components(between=0.2, within=60.0, finite=0.1, most_rows=600.0)
    users = users_for(of, 0.1, rows=20, sure=SURE)
    assert users is not None
    assert power_of(of, 0.1, users=users, rows=20, sure=SURE) >= 0.8
    assert power_of(of, 0.1, users=users - 1, rows=20, sure=SURE) < 0.8
    assert rows_for(of, 0.1, users=users, sure=SURE) == 20
    assert smallest_difference(of, users=users, rows=20, sure=SURE) == pytest.approx(0.1, rel=0.01)
    assert rows_for(of, 0.1, users=20, sure=SURE) is None  # not even all items: users differ too much
    assert users_for(of, 0.1, rows=20, sure=Sure(family=10)) > 1.3 * users  # type: ignore[operator]


def test_assumed_figures_agree_with_a_pilot_of_such_lists() -> None:
    rng = np.random.default_rng(5)
    n, n_items, k, judged, p = 40_000, 80, 5, 16, 0.3
    labels = rng.random((n, n_items)) < np.where(np.arange(n_items) < 2 * k, p, 0.05)
    seen = rng.random((n, n_items)).argsort(axis=1).argsort(axis=1) < judged
    parts = []
    for own in (slice(0, k), slice(k, 2 * k)):
        worth = np.zeros(n_items)
        worth[own] = 1 / k
        unit, item = np.nonzero(seen)
        value = labels[unit, item] * worth[item]
        sums = np.stack([value, np.zeros(len(unit))], axis=1)
        rows = SampledRows(unit, sums, np.full(n, float(judged)), np.full(n, float(n_items)))
        num = np.asarray(n_items / judged * np.bincount(unit, weights=value, minlength=n), dtype=np.float64)
        parts.append(ratio(num, np.ones(n), rows=rows))
    pilot = components_of(*parts, users=n)
    assumed = assumed_lists(np.full(k, 1 / k), n_items=n_items, value=p, relevant=None, shared=0.0, normalised=False)
    assert pilot is not None
    # at 16 rows the variance of 0.56 is known up to 0.0056 (kurtosis 5); what is between users is 0.08 of it
    for rows_per_user in (8, 16, 40):
        assert pilot.variance(rows_per_user) == pytest.approx(assumed.variance(rows_per_user), abs=4 * 0.0056)
    assert pilot.shape(8)[1] == pytest.approx(assumed.shape(8)[1], rel=0.15)


# ------------------------------------------------------------------------------------------------------------ in Python


def test_a_plan_from_a_pilot_and_the_line_at_the_end_of_an_evaluation() -> None:
    rng = np.random.default_rng(2)
    n, n_items, judged = 60, 40, 10
    scores = {name: rng.random((n, n_items)) for name in ("a", "b")}
    seen = rng.random((n, n_items)).argsort(axis=1).argsort(axis=1) < judged
    user, item = np.nonzero(seen)
    labels = pl.DataFrame({"user": user, "item": item, "label": (rng.random(len(user)) < 0.3).astype(int)})
    results = tr.evaluate(scores, labels, exposure="random", metrics=["Precision@5"])
    assert results.comparisons[0].verdict == "not shown"
    (message,) = [each for each in results.messages if each.code == "detectable"]
    assert results.messages[-1] is message
    plan = tr.plan_exposure(labels, scores, difference=0.05, metrics=["Precision@5"])
    assert message.numbers["detectable"] == pytest.approx(plan.pairs[0].detectable(plan.sure, 10.0))
    assert "60 users x 10 labelled items" in str(message)
    assert str(message) in " ".join(str(results).split())
    table = plan.table()
    assert table.filter("at_hand")["per_user"].to_list() == [10.0]
    assert (np.diff(table["users"].to_numpy()) < 0).all()
    assert str(plan.at_hand[0]) == str(message)
    exactly = tr.plan_exposure(labels, scores, difference=0.05, metrics=["Precision@5"], interval=tr.Design())
    assert exactly.pairs[0].components.by_rows
    least, least_of_population = (one.table().filter("at_hand")["detectable"][0] for one in (exactly, plan))
    assert least <= least_of_population * 1.05


def test_sessions_of_one_user_count_less_where_they_are_alike() -> None:
    rng = np.random.default_rng(4)
    session = np.arange(400)
    user = session // 4
    liked = rng.random(100)[user]  # users differ, and their sessions hardly
    log = pl.DataFrame(
        {
            "session": np.repeat(session, 2), "user": np.repeat(user, 2), "item": np.tile([1, 2], 400),
            "position": np.tile([1, 2], 400), "reward": (rng.random(800) < np.repeat(liked, 2)).astype(int),
            "new": np.tile([2, 1], 400),
        }
    )  # fmt: skip
    from truerank.exposure.policies.targets import RankColumn

    targets = {"new": RankColumn("new"), "log": RankColumn("position")}
    plan = tr.plan_sessions(log, targets, difference=0.02, position="log")
    pair = plan.pairs[0]
    assert (pair.row, pair.cluster, pair.users) == ("session", "user", 100)
    assert pair.components.rows == 4
    assert pair.components.within > 0
    few, many = (tr.plan_sessions(difference=0.02, reward=0.2, effective=0.5, alike=alike) for alike in (0.0, 0.5))
    at = pl.col("per_user") == 10
    assert few.table().filter(at)["users"][0] < many.table().filter(at)["users"][0]


def test_what_cannot_be_planned_is_refused_in_one_sentence() -> None:
    known = {"metrics": ["Precision@10"], "n_items": 100, "value": 0.2}
    for wrong, message in (
        ({**known, "difference": 0}, "difference is 0"),
        ({**known, "difference": 0.1, "power": 1.5}, "power is 1.5"),
        ({"difference": 0.1}, "without a pilot these are needed: metric, n-items, value"),
        ({**known, "difference": 0.1, "value": 2.0}, "a value of 2"),
        ({**known, "difference": 0.1, "relevant": 0.1}, "not used"),
        ({**known, "difference": 0.1, "metrics": ["Recall@10"]}, "relevant is missing"),
        ({**known, "difference": 0.1, "shared": 1.0}, "shared 1"),
    ):
        with refused(message):
            tr.plan_exposure(**wrong)
    with refused("nDCG@10", RefusedError):
        tr.plan_exposure(difference=0.1, metrics=["nDCG@10"], n_items=100, value=0.2)
    with refused("expected at least two"):
        tr.plan_exposure(pl.DataFrame({"user": [1], "item": [1], "label": [1]}), {"a": np.ones((1, 1))}, difference=0.1)
    with refused("without a pilot these are needed: reward, effective"):
        tr.plan_sessions(difference=0.1)


# ------------------------------------------------------------------------------------------------------------- formulas


@pytest.mark.parametrize("normalised", [False, True])
def test_assumed_lists_of_recall_are_those_of_the_formulas(normalised: bool) -> None:
    """Recall@10 of .3 among 100 items, 5 of them relevant: 1.5 hits, a discount of 1/5 at each of 10 ranks."""
    found = assumed_lists(np.ones(10), n_items=100, value=0.3, relevant=0.05, shared=0.2, normalised=normalised)
    p, square, fourth, differ = 0.15, 10 * 0.2**2, 10 * 0.2**4, 2 * 0.8
    y = 0.7 * p + 0.3 * (0.7 * 5 / 90) if normalised else 0.0
    s2 = differ * (p * (1 - y) ** 2 + (1 - p) * y**2) * square / 100
    row_fourth = 100**4 * (differ * (p * (1 - y) ** 4 + (1 - p) * y**4) * fourth / 100 - 3 * s2**2)
    told_apart = differ * 10 * (1 if normalised else p) / 100
    values = (found.between, found.within, found.finite, found.row_fourth, found.rows, found.telling)
    wanted = (differ * p * (1 - p) * square, 100**2 * s2, 100 * s2, row_fourth, 20, 1 - (1 - told_apart) ** 20)
    assert values == pytest.approx(wanted, rel=1e-12)
    assert found.kurtosis == pytest.approx(3 + row_fourth / 20**3 / found.variance(20) ** 2)


def test_cumulants_of_rows_are_k_statistics() -> None:
    rng = np.random.default_rng(7)
    count = np.array([2, 3, 4, 9])
    unit, value = np.repeat(np.arange(4), count), rng.exponential(size=18)
    rows = SampledRows(unit, np.stack([value, np.zeros(18)], axis=1), count.astype(float), np.full(4, 30.0))
    *found, several = _cumulants(rows, value, np.ones(4, dtype=bool))
    assert several.all()
    for power, cumulants in zip((2, 3, 4), found, strict=True):
        wanted = [stats.kstat(value[unit == at], power) if n >= power else 0.0 for at, n in enumerate(count)]
        assert cumulants == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(("normalised", "within"), [(False, 0.2), (True, 0.2 * 0.8)])
def test_assumed_sessions_vary_by_their_weights(normalised: bool, within: float) -> None:
    """(1 / effective - 1) r, and normalised that times 1 - r; a part of it between users who are alike."""
    alone, alike = (
        assumed_sessions(reward=0.2, effective=0.5, sessions=4.0, alike=share, normalised=normalised)
        for share in (0.0, 0.25)
    )
    assert (alone.between, alone.within) == pytest.approx((0, within))
    assert (alike.between, alike.within) == pytest.approx((within / 4, 3 * within / 4))
