"""`--exposure random` on rows that plainly are not random: said in one line, and never a verdict."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from shown import Shown, uniform

import truerank as tr
from realdata import folder_of
from truerank.core.arrays import Bools
from truerank.core.log import Pairs
from truerank.core.messages import Message, Severity
from truerank.core.ranking import Candidates, JudgedChunk, Pool
from truerank.core.results import BETTER, INSUFFICIENT, WORSE, Results
from truerank.exposure.randomness.draws import Draws, item_dispersion
from truerank.exposure.randomness.labelled import LabelledItems

USERS, ITEMS = 200, 120


def said(results: Results) -> Message:
    (message,) = (each for each in results.messages if each.code in {"randomness", "not-random"})
    return message


@pytest.fixture(scope="module")
def world() -> Shown:
    return Shown.of(np.random.default_rng(1), USERS, ITEMS)


@pytest.mark.parametrize("estimator", ["pooled", "published", "traditional"])
def test_a_popularity_biased_log_given_as_random_ends_in_no_verdict(world: Shown, estimator: str) -> None:
    rng = np.random.default_rng(2)
    popular = np.exp(2 * np.linspace(0, 1, ITEMS))
    shown = rng.random(world.label.shape) < 30 * popular / popular.sum()
    how: dict[str, Any] = {"exposure": "random", "metrics": ["Recall@10"], "estimators": [estimator]}
    results = tr.evaluate(world.models, world.judged(shown), **how)
    assert [each.p for each in results.comparisons if each.p < 1e-4]  # without the test there would be a verdict
    assert {each.verdict for each in results.comparisons} == {INSUFFICIENT}
    for each in results.comparisons:
        assert "not-random" in {reason.code for reason in each.reasons}
    for estimate in results.estimates:
        assert "not-random" in {message.code for message in estimate.warnings}
    assert said(results).code == "not-random"
    assert said(results).severity is Severity.WARNING


def test_random_rows_are_said_to_look_so(world: Shown) -> None:
    shown = uniform(np.random.default_rng(4), world.label.shape, 30)
    results = tr.evaluate(world.models, world.judged(shown), exposure="random", metrics=["Recall@10"])
    assert said(results).severity is Severity.NOTE
    assert "look like a uniform sample" in str(said(results))
    assert {each.verdict for each in results.comparisons} <= {BETTER, WORSE, "not shown"}


def test_small_differences_are_told_without_taking_verdicts_away() -> None:
    rng = np.random.default_rng(5)
    world = Shown.of(rng, 3000, 40)
    rate = np.linspace(0.475, 0.525, 40)  # exposure differs by 3 % of its mean
    shown = rng.random(world.label.shape) < rate
    results = tr.evaluate(world.models, world.judged(shown), exposure="random", metrics=["Recall@5"])
    assert said(results).code == "randomness"
    assert said(results).severity is Severity.CAUTION
    assert "not-random" not in {reason.code for each in results.comparisons for reason in each.reasons}
    (tastes,) = results.compare("taste", "guess")
    assert tastes.verdict == BETTER


def test_nothing_is_said_of_other_exposures(world: Shown) -> None:
    shown = np.ones_like(world.label)
    results = tr.evaluate(world.models, world.judged(shown), exposure="full", metrics=["Recall@10"])
    assert not {"randomness", "not-random"} & {each.code for each in results.messages}


def chunk_of(shown: Bools, excluded: Bools | None, *, n_items: float | None = None) -> JudgedChunk:
    user, item = np.nonzero(shown)
    n_users, named = shown.shape
    log = tr.read(
        pl.DataFrame({"user": user, "item": item, "label": np.zeros(len(user), dtype=np.int64)}),
        users=range(n_users),
        items=range(named),
    )
    pairs = None if excluded is None else Pairs.of(*np.nonzero(excluded), n_units=n_users)
    pool = Candidates(n_users, float(named if n_items is None else n_items), exclude=pairs)
    return JudgedChunk(log, {Pool.CATALOGUE: pool})


def test_without_exclusions_it_is_the_test_of_data_describe() -> None:
    """X² and its degrees of freedom are the same; p is a little larger, because the variance is an upper bound."""
    shown = uniform(np.random.default_rng(6), (80, 50), np.random.default_rng(7).integers(1, 30, 80))
    chunk = chunk_of(shown, None)
    exact, cheap = item_dispersion(Draws.of(chunk.labels)), LabelledItems.from_chunk(chunk).finding
    assert exact is not None
    assert cheap is not None
    assert cheap.statistic == pytest.approx(exact.statistic)
    assert cheap.df == pytest.approx(exact.df)
    assert cheap.p == pytest.approx(exact.p, abs=0.04)


def test_with_exclusions_it_is_close_to_it() -> None:
    rng = np.random.default_rng(8)
    excluded = rng.random((300, 60)) < np.linspace(0.05, 0.6, 60)
    shown = uniform(rng, excluded.shape, 12) & ~excluded
    chunk = chunk_of(shown, excluded)
    exact = item_dispersion(Draws.of(chunk.labels, excluded=Pairs.of(*np.nonzero(excluded), n_units=300)))
    cheap = LabelledItems.from_chunk(chunk).finding
    assert exact is not None
    assert cheap is not None
    assert cheap.statistic == pytest.approx(exact.statistic, rel=1e-3)
    assert cheap.p == pytest.approx(exact.p, abs=0.04)


def test_chunks_add_and_items_without_a_name_count() -> None:
    rng = np.random.default_rng(9)
    excluded = rng.random((90, 30)) < 0.2
    shown = uniform(rng, excluded.shape, 8) & ~excluded
    whole = LabelledItems.from_chunk(chunk_of(shown, excluded)).finding
    parts = [
        LabelledItems.from_chunk(chunk_of(shown[at], excluded[at]))
        for at in (slice(0, 20), slice(20, 21), slice(21, 90))
    ]
    found = ((parts[0] + parts[1]) + parts[2]).finding
    assert whole is not None
    assert found is not None
    assert found.statistic == pytest.approx(whole.statistic)
    # 30 more items that nobody judged: as if they were named, with counts of 0
    wide = np.concatenate([shown, np.zeros_like(shown)], axis=1)
    none = np.concatenate([excluded, np.zeros_like(excluded)], axis=1)
    named, unnamed = (
        LabelledItems.from_chunk(chunk_of(wide, none)).finding,
        LabelledItems.from_chunk(chunk_of(shown, excluded, n_items=60)),
    )
    assert named is not None
    assert unnamed.finding is not None
    assert unnamed.finding.statistic == pytest.approx(named.statistic)
    assert named.not_random


def test_explicit_candidates_are_those_that_are_not_excluded() -> None:
    rng = np.random.default_rng(12)
    excluded = rng.random((90, 30)) < 0.3
    chunk = chunk_of(uniform(rng, excluded.shape, 8) & ~excluded, excluded)
    named = Candidates(90, 30.0, only=Pairs.of(*np.nonzero(~excluded), n_units=90))
    same, found = (
        LabelledItems.from_chunk(each).finding for each in (chunk, JudgedChunk(chunk.labels, {Pool.CATALOGUE: named}))
    )
    assert same is not None
    assert found is not None
    assert (found.statistic, found.df, found.p) == pytest.approx((same.statistic, same.df, same.p))


def test_nothing_to_choose_is_nothing_to_test() -> None:
    assert LabelledItems.from_chunk(chunk_of(np.ones((5, 4), dtype=bool), None)).finding is None
    assert LabelledItems.from_chunk(chunk_of(np.eye(4, dtype=bool), None, n_items=math.nan)).finding is None


def test_a_single_coincidence_among_few_rows_is_no_proof() -> None:
    """14 users with one row each of 10,000 items: two with the same item is a chance of 1 in 100, not of 1 in 10^20."""
    shown = np.zeros((14, 10_000), dtype=bool)
    shown[np.arange(14), np.arange(14)] = True
    shown[1, :2] = True, False
    found = LabelledItems.from_chunk(chunk_of(shown, None)).finding
    assert found is not None
    assert 0.005 < found.p < 0.02
    assert not found.not_random


def test_false_alarms_are_rare() -> None:
    """1 in 1,000 draws; here sparse ones with exclusions, which are the hardest."""
    rng = np.random.default_rng(10)
    alarms = 0
    for _ in range(300):
        excluded = rng.random((100, 80)) < np.linspace(0, 0.3, 80)
        shown = uniform(rng, excluded.shape, 2) & ~excluded
        found = LabelledItems.from_chunk(chunk_of(shown, excluded)).finding
        assert found is not None
        alarms += found.rejected
    assert alarms <= 3


# ---------------------------------------------------------------------------------------------------------- real data


def coat(part: str) -> pl.DataFrame:
    rows = pl.read_parquet(folder_of("coat") / f"{part}.parquet")
    return rows.select(user="user_id", item="item_id", label=(pl.col("rating") >= 4).cast(pl.Int64))


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("part", "other", "random"), [("train_mnar", "test_mar", False), ("test_mar", "train_mnar", True)]
)
def test_coats_two_parts_given_as_random(part: str, other: str, random: bool) -> None:
    """Models by the counts of the other part: popular first, rare first, and chance."""
    users, items = 290, 300
    count = np.bincount(coat(other)["item"].to_numpy(), minlength=items).astype(np.float64)
    noise = np.random.default_rng(0).standard_normal((users, items))
    scores = {"popular": count + 1e-3 * noise, "rare": -count + 1e-3 * noise, "guess": noise}
    models = {name: tr.scores.dense(each, users=range(users), items=range(items)) for name, each in scores.items()}
    results = tr.evaluate(models, coat(part), exposure="random", metrics=["Recall@50", "Precision@50"])
    verdicts = {each.verdict for each in results.comparisons}
    if random:
        assert said(results).severity is Severity.NOTE
        assert INSUFFICIENT not in verdicts
        assert BETTER in verdicts or WORSE in verdicts
    else:
        assert said(results).code == "not-random"
        assert said(results).numbers["effect"] == pytest.approx(0.58, abs=0.02)
        assert verdicts == {INSUFFICIENT}
