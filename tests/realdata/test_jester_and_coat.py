"""Graded real files through the command line's own door."""

from __future__ import annotations

import numpy as np
import pytest

import truerank as tr
from realdata import folder_of
from truerank.exposure.kinds import RandomExposure
from truerank.metrics.additive import Precision
from truerank.metrics.listwise import NDCG, HitRate

pytestmark = pytest.mark.realdata
COLUMNS = {"user": "user_id", "item": "item_id"}


def test_jester_is_fully_observed() -> None:
    labels = tr.read(folder_of("jester") / "ratings_fully_observed.parquet", columns=COLUMNS, positive=">3")
    assert (len(labels.users), len(labels.items), len(labels)) == (7200, 100, 720_000)
    mean = np.bincount(labels.item, weights=labels.rewards["rating"]) / len(labels.users)
    best = tr.scores.factors(np.ones((7200, 1)), mean[:, None], users=labels.users, items=labels.items)
    found = tr.evaluate({"mean": best}, labels, metrics=[NDCG(10), HitRate(1), Precision(1)])
    ndcg, hit, precision = (each.value for each in found.estimates)
    assert 0.5 < ndcg < 1
    assert hit == precision


def test_coat_exclusions_are_dropped_and_counted() -> None:
    """366 pairs are both in the training and in the random part."""
    folder = folder_of("coat")
    labels = tr.read(folder / "test_mar.parquet", columns=COLUMNS, positive=">3")
    train = tr.read(folder / "train_mnar.parquet", columns=COLUMNS, positive=">3")
    assert (len(labels), len(train)) == (4640, 6960)
    count = np.bincount(train.item, weights=train.label)
    scores = tr.scores.factors(np.ones((290, 1)), count[:, None], users=train.users, items=train.items)
    found = tr.evaluate({"popularity": scores}, labels, exposure=RandomExposure(), exclude=train)
    assert any("366 labelled rows are excluded items" in note for note in found.notes)
    assert all(0 < each.value < 2 for each in found.estimates)
