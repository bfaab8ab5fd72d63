"""Models fitted for studies: seconds and memory are those of a process of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from truerank.models.baselines import Popularity
from truerank_research.runner import Source
from truerank_research.validation.kuairec import block
from truerank_research.validation.models import CUTOFFS, peak_megabytes, recalls, run_alone


def held(megabytes: int) -> Mapping[str, Any]:
    """The process that holds so much, and its peak."""
    return {"process": os.getpid(), "bytes": np.ones(megabytes * 2**20, dtype=np.uint8).sum(), "peak": peak_megabytes()}


def test_memory_of_one_is_not_that_of_another() -> None:
    large, small = (run_alone(held, megabytes, fresh=True).row(0, named=True) for megabytes in (600, 1))
    assert len({large["process"], small["process"], os.getpid()}) == 3
    assert large["peak"] > small["peak"] + 500
    assert run_alone(held, 1, fresh=False)["process"][0] == os.getpid()


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
