"""Pooled AUC, by which learners stop early."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from truerank_research.learners.train import pooled_auc


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=40))
@settings(max_examples=100, deadline=None)
def test_pooled_auc_is_the_share_of_pairs_in_order(rows: list[tuple[int, bool]]) -> None:
    score, label = np.array([float(each[0]) for each in rows]), np.array([float(each[1]) for each in rows])
    pairs = [(a > b) + 0.5 * (a == b) for a, x in rows if x for b, y in rows if not y]
    if pairs:
        assert pooled_auc(score, label) == pytest.approx(sum(pairs) / len(pairs), abs=1e-15)
        assert pooled_auc(score, label) == pytest.approx(roc_auc_score(label, score), abs=1e-12)
    else:
        assert math.isnan(pooled_auc(score, label))
