"""Estimators of ranked logs: expected values over every ranking, scroll depth and reward of tiny systems."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from ranked import denominator, numerator, plan_of, read, terms_of, views_of
from tiny_feed import NEW, TARGET, THREE, TURNED, Ranking, TinyFeed, mixed_rankings

import truerank as tr
from truerank.core.log import Logged
from truerank.core.ranking import Pool
from truerank.core.terms import Smooth
from truerank.estimators.doubly_robust import ItemMeans, PredictionColumn, RankedDoublyRobust, folds_of
from truerank.estimators.impressions import Exposures, Limited, Normaliser
from truerank.estimators.weighted import IPS, SNIPS
from truerank.exposure.policies.targets import ExposureColumn, RankColumn
from truerank.exposure.positions.position_models import Table

EXACT = 1e-10
INF = math.inf


def looking(frame: pl.DataFrame, target: Any, **options: Any) -> Exposures:
    """The exposures of a log's rows under the target and under logging."""
    logged = options.pop("logged", Logged.VIEWED)
    return views_of(read(frame, logged=logged, rewards=["reward"]), {"new": target}, **options)["new"]


def expected(terms: Smooth, chance: np.ndarray) -> tuple[float, float]:
    """E[num] and E[den] of a session."""
    return float(numerator(terms) @ chance), float(denominator(terms) @ chance)


def whole(feed: TinyFeed, rankings: Mapping[Ranking, float]) -> tuple[Exposures, np.ndarray]:
    frame, chance = feed.log()
    assert chance.sum() == pytest.approx(1, abs=EXACT)
    return looking(frame, feed.table(rankings, range(len(chance)))), chance


# ------------------------------------------------------------------------------------------------------------------ ips


@pytest.mark.parametrize("feed", [TURNED, THREE], ids=["deterministic", "stochastic"])
def test_ips_is_exactly_unbiased(feed: TinyFeed) -> None:
    target = NEW if feed is TURNED else TARGET
    made, chance = whole(feed, target)
    assert expected(terms_of(IPS(), made), chance)[0] == pytest.approx(feed.truth(target), abs=EXACT)


@pytest.mark.parametrize("clip", [1.0, 1.5, 2.0, 3.0, 10.0])
@pytest.mark.parametrize("of", list(Limited))
def test_the_mean_of_a_clipped_estimate_is_this(clip: float, of: Limited) -> None:
    """E = Σ_a q min(ε, m ε0), of the inverse Σ_a ε q min(1, m ε0): too small by exactly what the clip takes away."""
    made, chance = whole(THREE, TARGET)
    logged, target = THREE.exposure(THREE.rankings), THREE.exposure(TARGET)
    kept = np.minimum(target, clip * logged if of is Limited.RATIO else clip * logged * target)
    by_hand = float((np.array(THREE.quality) * kept).sum())
    found = expected(terms_of(IPS(of=of), made, clip=clip), chance)[0]
    assert found == pytest.approx(by_hand, abs=EXACT)
    lowered = bool((kept < target).any())
    assert lowered == (found < THREE.truth(TARGET) - 1e-3)


def test_ranks_and_positions_give_the_same_as_exposures() -> None:
    """A deterministic logger: ε = P(V | rank), ε0 = P(V | position); the truth of the turned list is .8 + .5 · .2."""
    frame, chance = TURNED.log()
    frame = frame.drop("propensity").with_columns(new=3 - pl.col("position"))
    made = looking(frame, RankColumn("new"), position=Table(TURNED.view))
    found, _ = expected(terms_of(IPS(), made), chance)
    assert found == pytest.approx(0.9, abs=EXACT)


# ---------------------------------------------------------------------------------------------------------- normalisers


def test_per_impression_needs_equal_expected_depth() -> None:
    """Σ E[num] / Σ E[den] is the reward per viewed item of the target if it is viewed as deep; else it is not."""
    made, chance = whole(THREE, TARGET)
    num, den = expected(terms_of(IPS(Normaliser.IMPRESSION), made), chance)
    depth = sum(d * p for d, p in enumerate(THREE.depth, 1))
    assert num / den == pytest.approx(THREE.truth(TARGET) / depth, abs=EXACT)
    # a target that shows two items only is viewed less deep: its own reward per view is another number
    short = THREE.exposure({(2, 0): 1.0})
    frame, chance = THREE.log()
    cut = THREE.table({(2, 0): 1.0}, range(len(chance)))
    num, den = expected(terms_of(IPS(Normaliser.IMPRESSION), looking(frame, cut)), chance)
    own = THREE.truth({(2, 0): 1.0}) / short.sum()
    assert num / den == pytest.approx(THREE.truth({(2, 0): 1.0}) / depth, abs=EXACT)
    assert own - num / den > 0.05


def test_the_mean_of_means_is_biased_by_this_and_right_with_its_own_exposures() -> None:
    """Half of the users see one item, half see two: the mean reward per view of the turned list is
    θ_1 · .8 + θ_2 · .2 with θ_r = E[1{D >= r} / D] = .75, .25, hence .65; with P(V | R) it comes out as .475."""
    frame, chance = TURNED.log()
    frame = frame.drop("propensity").with_columns(new=3 - pl.col("position"))
    estimator = IPS(Normaliser.MEAN_OF_MEANS)
    wrong = looking(frame, RankColumn("new"), position=Table((1.0, 0.5)))
    assert expected(terms_of(estimator, wrong), chance)[0] == pytest.approx(0.475, abs=EXACT)
    right = looking(frame, RankColumn("new"), position=Table((1.0, 0.25 / 0.75)))
    assert expected(terms_of(estimator, right), chance)[0] == pytest.approx(0.65, abs=EXACT)


# ---------------------------------------------------------------------------------------------------------------- snips


def test_both_parts_of_snips_are_unbiased() -> None:
    made, chance = whole(THREE, TARGET)
    terms = terms_of(SNIPS(), made)
    num, den = expected(terms, chance)
    assert num == pytest.approx(THREE.truth(TARGET), abs=EXACT)
    assert den == pytest.approx(THREE.exposure(TARGET).sum(), abs=EXACT)
    assert terms.sums[:, terms.form.columns.index("total")] == pytest.approx(THREE.exposure(TARGET).sum(), abs=EXACT)


@pytest.mark.parametrize("interval", [tr.Population(), tr.Bootstrap(50)], ids=["linearised", "bootstrap"])
def test_a_constant_reward_is_found_and_nothing_tells_how_others_would_differ(interval: Any) -> None:
    frame, chance = THREE.log()
    frame = frame.with_columns(reward=pl.lit(1))
    results = tr.off_policy(
        frame, {"new": THREE.table(TARGET, range(len(chance)))}, interval=interval, clips=[2.0, INF],
        estimators=[SNIPS(Normaliser.IMPRESSION), SNIPS()],
    )  # fmt: skip
    for each in results.estimates:
        assert each.value == pytest.approx(
            1 if each.metric.endswith("item") else THREE.exposure(TARGET).sum(), abs=1e-12
        )
        assert math.isnan(each.low)


# -------------------------------------------------------------------------------------------------------- doubly robust


def with_predictions(feed: TinyFeed, target: Any, guess: tuple[float, ...], **options: Any) -> tuple[Exposures, Any]:
    frame, chance = feed.log(**options)
    table = feed.table(target, range(len(chance)))
    quality = pl.DataFrame({"item": np.arange(len(guess)), "prediction": np.array(guess)})
    frame, table = (each.join(quality, on="item", maintain_order="left") for each in (frame, table))
    if options.get("displayed"):
        frame = frame.drop("propensity")
        return looking(frame, table, position=Table(feed.view), logged=Logged.DISPLAYED), chance
    return looking(frame, table), chance


@pytest.mark.parametrize("guess", [(0.3, 0.6, 0.9), (0.0, 0.0, 0.0), (0.9, 0.1, 0.4)], ids=["true", "none", "wrong"])
def test_doubly_robust_is_exactly_unbiased_whatever_the_reward_model(guess: tuple[float, ...]) -> None:
    made, chance = with_predictions(THREE, TARGET, guess)
    estimator = RankedDoublyRobust(PredictionColumn())
    found, _ = expected(terms_of(estimator, made), chance)
    assert found == pytest.approx(THREE.truth(TARGET), abs=EXACT)


def test_doubly_robust_where_all_displayed_items_are_logged_without_views() -> None:
    made, chance = with_predictions(TURNED, NEW, (0.7, 0.1), displayed=True)
    estimator = RankedDoublyRobust(PredictionColumn())
    found, _ = expected(terms_of(estimator, made), chance)
    assert found == pytest.approx(0.9, abs=EXACT)


def test_a_first_sum_over_logged_rows_alone_would_be_wrong() -> None:
    """It misses what was not seen: .60 where the truth is .90, with a prediction of .6 for the second item."""
    made, chance = with_predictions(TURNED, NEW, (0.2, 0.6))
    target, _ = made.parts()
    residual = made.weights() * (made.log.reward("reward") - made.log.columns["prediction"])
    over_rows = made.by_unit(target * made.log.columns["prediction"] + residual)
    assert float(over_rows @ chance) == pytest.approx(0.6, abs=EXACT)
    found, _ = expected(terms_of(RankedDoublyRobust(PredictionColumn()), made), chance)
    assert found == pytest.approx(0.9, abs=EXACT)


def test_cross_fitted_doubly_robust_is_exactly_unbiased() -> None:
    """Every pair of two sessions: each is predicted from the other alone."""
    outcomes = list(TURNED.outcomes())
    sessions = two_folds()
    mean = 0.0
    for first, second in product(outcomes, repeat=2):
        rows = [{"session": s, **row, "propensity": (1.0, 0.5)[int(row["item"])]}
                for s, (_, found) in zip(sessions, (first, second), strict=True) for row in found]  # fmt: skip
        estimator = RankedDoublyRobust(ItemMeans(folds=2, strength=1.0))
        log = read(pl.DataFrame(rows), rewards=["reward"])
        plan, (chunk,) = plan_of(log, {"new": TURNED.table(NEW, sessions)}, estimators=[estimator])
        terms = terms_of(estimator, plan.rows.views(plan, chunk)["new"][Pool.CATALOGUE], learned=plan.learned)
        mean += first[0] * second[0] * terms.value()
    assert mean == pytest.approx(0.9, abs=EXACT)


def two_folds() -> list[int]:
    """Two session ids that the seed puts into different folds."""
    frame = pl.DataFrame({"session": list(range(10)), "item": [0] * 10, "position": [1] * 10, "reward": [0] * 10})
    fold = folds_of(tr.read_impressions(frame).clusters().key, n=2, seed=0)
    return [int(np.argmax(fold == 0)), int(np.argmax(fold == 1))]


# ------------------------------------------------------------------------------------------------------ several loggers


@pytest.mark.parametrize("times", [1, 2], ids=["equal shares", "shares 1:2"])
def test_several_loggers_are_exactly_unbiased(times: int) -> None:
    """The balance heuristic: ε0 = Σ α_j ε_j. The second logger never shows item 2 first, alone it would not do."""
    a = TinyFeed(THREE.quality, THREE.depth, mixed_rankings(3))
    b = TinyFeed(THREE.quality, THREE.depth, {**dict.fromkeys(mixed_rankings(3), 0.0), (0, 1, 2): 0.5, (1, 0, 2): 0.5})
    logs, chance = [], []
    loggers: list[str] = []
    for name, feed in [("a", a)] + [("b", b)] * times:
        # as many sessions of each logger as it has outcomes of the larger one: those of chance 0 are sessions too
        frame, p = all_outcomes(feed, first=len(loggers))
        logs.append(frame.with_columns(logger=pl.lit(name)))
        chance.append(p)
        loggers += [name] * len(p)
    frame = pl.concat(logs).drop("propensity")
    exposures = {"a": a.exposure(a.rankings), "b": b.exposure(b.rankings)}
    for name, exposure in exposures.items():
        frame = frame.with_columns(pl.Series(f"by_{name}", exposure[frame["item"].to_numpy()]))
    made = looking(
        frame,
        THREE.table(TARGET, range(len(loggers))),
        loggers={"a": ExposureColumn("by_a"), "b": ExposureColumn("by_b")},
    )
    terms = terms_of(IPS(), made)
    assert float(numerator(terms) @ np.concatenate(chance)) / (1 + times) == pytest.approx(
        THREE.truth(TARGET), abs=EXACT
    )


def all_outcomes(feed: TinyFeed, *, first: int) -> tuple[pl.DataFrame, np.ndarray]:
    """Outcomes of chance 0 too, so that all loggers have equally many."""
    even = TinyFeed(feed.quality, feed.depth, dict.fromkeys(feed.rankings, 1 / len(feed.rankings)))
    frame, chance = even.log(first=first)
    of_session = frame.group_by("session", maintain_order=True).agg("item", "position")
    size = len(feed.rankings)
    total = np.zeros(len(chance))
    rankings = list(even.rankings)
    per_ranking = len(chance) // size
    for at in range(len(of_session)):
        total[at] = chance[at] * size * feed.rankings[rankings[at // per_ranking]]
    return frame, total
