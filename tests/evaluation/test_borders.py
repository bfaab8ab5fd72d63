"""Traps at the borders of an evaluation: what would give a number that means nothing is refused or said."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
from refusals import refused

import truerank as tr
from truerank.core.errors import RefusedError
from truerank.core.ids import Ids
from truerank.exposure.kinds import RandomExposure
from truerank.metrics.additive import DCG, Precision, Recall
from truerank.ranking.candidates import Overlap

RNG = np.random.default_rng(8)
N_USERS, N_ITEMS = 300, 50
SCORES = {"m": RNG.random((N_USERS, N_ITEMS))}
LIKED = RNG.random((N_USERS, N_ITEMS)) < 0.3


def labels(shown: Any) -> pl.DataFrame:
    user, item = np.nonzero(shown)
    return pl.DataFrame({"user": user, "item": item, "label": LIKED[user, item].astype(int)})


def test_a_rate_needs_the_users_whose_sample_came_out_empty() -> None:
    """Without them the mean is over users who were lucky, and 1 / rate makes it too large."""
    shown = RNG.random((N_USERS, N_ITEMS)) < 0.02
    call: dict[str, Any] = {"exposure": RandomExposure(0.02), "metrics": [Precision(5)]}
    with refused(r"declare all users with truerank.read\(\.\.\., users="):
        tr.evaluate(SCORES, tr.read(labels(shown)), **call)
    everyone = tr.read(labels(shown), users=Ids.of(np.arange(N_USERS)))
    assert tr.evaluate(SCORES, everyone, **call).estimates[0].units == N_USERS


def test_a_rate_that_the_data_contradict_is_refused() -> None:
    with refused(r"where a rate of .* gives about 7,4"):
        tr.evaluate(SCORES, tr.read(labels(RNG.random(LIKED.shape) < 0.1)), exposure=RandomExposure(0.5))


def test_ranks_with_gaps_are_not_places_in_a_list() -> None:
    """Ranks in the catalogue of the judged items alone would be read as 1, 2, 3."""
    table = pl.DataFrame({"user": [0, 0, 0], "item": [1, 2, 3], "rank": [1, 3, 7]})
    with refused("rank 3 after 1 better items"):
        tr.scores.lists(table)
    for fine in ([1, 2, 3], [1, 1, 3], [1, 1, 2], [1, 2, 2]):
        tr.scores.lists(table.with_columns(rank=pl.Series(fine)))


def test_keeping_excluded_items_that_were_judged_is_no_random_sample() -> None:
    with refused('use overlap="drop"', RefusedError):
        tr.evaluate(SCORES, tr.read(labels(RNG.random(LIKED.shape) < 0.2)), exposure=RandomExposure(),
                    overlap=Overlap.KEEP)  # fmt: skip


def test_two_users_prove_nothing() -> None:
    """Both users differ by exactly 1: no spread, no test, no verdict."""
    truth = tr.read(pl.DataFrame({"user": [0, 0, 1, 1], "item": [0, 1, 0, 1], "label": [1, 0, 1, 0]}))
    models = {"right": np.array([[2.0, 1], [2, 1]]), "wrong": np.array([[1.0, 2], [1, 2]])}
    for interval in (tr.Population(), tr.Bootstrap(200)):
        found = tr.evaluate(models, truth, metrics=[Recall(1)], interval=interval).comparisons[0]
        assert found.difference == -1
        assert math.isnan(found.p)
        assert found.verdict == "insufficient"


def test_a_difference_says_over_how_many_users_it_is() -> None:
    judged = tr.read(labels(np.ones_like(LIKED)))
    half = tr.scores.dense(SCORES["m"][:100], users=np.arange(100))
    found = tr.evaluate({"all": SCORES["m"], "half": half}, judged, metrics=[DCG(5)])
    assert found.comparisons[0].units == 100
    assert found.comparisons[0].difference == 0
    assert "over the 100 users" in str(found)
