"""Models fitted for studies: seconds and memory are those of a process of their own."""

from __future__ import annotations

import numpy as np
import pytest

from truerank.models.baselines import Popularity
from truerank_research.runner import Source
from truerank_research.validation.kuairec import block
from truerank_research.validation.models import CUTOFFS, recalls


def test_recall_is_that_of_the_block_with_its_interval() -> None:
    labels, train = block(Source(), full=False, seed=0)
    found = recalls("popularity", Popularity().fit(train, seed=0), labels)
    order = np.argsort(-np.bincount(train.item, minlength=len(train.items)), kind="stable")
    label = labels.label.reshape(len(labels.users), -1)
    for k in CUTOFFS:
        assert found[f"low@{k}"] <= found[f"recall@{k}"] <= found[f"high@{k}"]
    wanted = label[label.sum(axis=1) > 0]
    assert found["recall@50"] == pytest.approx(
        (wanted[:, order[:50]].sum(axis=1) / wanted.sum(axis=1)).mean(), abs=0.02
    )
    assert found["recall@500"] == 1  # there are 200 items
