"""Pairs that are excluded are never drawn as negatives; the log's own rows stay."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from truerank.io.read import read
from truerank.ranking.samplers.draw import Sampler, sample_candidates
from truerank.ranking.samplers.weighted import ExposedSampler, FullSampler, RandomSampler

LOG = read(pl.DataFrame({"user": [1, 1, 2, 2], "item": [10, 11, 12, 13], "label": [1, 0, 1, 0]}), positive=None)
# 11 is a row of user 1 itself; 14 is no item of the log; user 3 is no user of it
SEEN = read(pl.DataFrame({"user": [1, 1, 2, 2, 3], "item": [12, 11, 10, 14, 13]}), values=False)


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (FullSampler(), {1: [10, 11, 13], 2: [11, 12, 13]}),
        (RandomSampler(100), {1: [10, 11, 13], 2: [11, 12, 13]}),
        (ExposedSampler(), {1: [10, 11], 2: [12, 13]}),
    ],
)
def test_candidates_without_what_was_seen(sampler: Sampler, expected: dict[int, list[int]]) -> None:
    labels = sample_candidates(LOG, sampler, seed=0, exclude=SEEN).labels()
    items = np.array(labels.items.values)
    for at, user in enumerate(expected):
        assert items[labels.item[labels.user == at]].tolist() == expected[user]


def test_the_chance_of_each_is_among_what_is_left() -> None:
    """Two negatives are left for each user, of which one is drawn."""
    sampled = sample_candidates(LOG, RandomSampler(1), seed=0, exclude=SEEN)
    assert sampled.inclusion().value.tolist() == [0.5, 0.5]
    assert sample_candidates(LOG, RandomSampler(1), seed=0).inclusion().value == pytest.approx([1 / 3, 1 / 3])
