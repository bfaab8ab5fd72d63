"""What the study of advice says: halves of users, what is committed."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest

from truerank_research.runner import committed
from truerank_research.validation.advice import (
    SPARSITIES,
    AdvisedWorld,
    fresh_logs,
    halved,
    looks_and_signs,
)

COMMITTED = committed("advice")
WORLD = AdvisedWorld(seed=3)


def test_every_user_is_in_one_half_with_all_labels() -> None:
    users = halved(WORLD)
    halves = [users.half(which) for which in (0, 1)]
    named = [set(each.users.values) for each in halves]
    assert not named[0] & named[1]
    assert named[0] | named[1] == set(users.labels.users.values)
    assert min(map(len, named)) > len(users.labels.users) / 3
    assert sum(len(each) for each in halves) == len(users.labels)
    assert sum(each.label.sum() for each in halves) == users.labels.label.sum()


def test_fresh_logs_are_as_sparse_as_they_should_be() -> None:
    """A tenth of each user's pairs is held out, so that of what is left a share of 1 - sparsity is shown."""
    table = fresh_logs(WORLD, "uniform", 20, 2)
    assert table.height == 2 * len(SPARSITIES)
    for sparsity in SPARSITIES:
        looks, signs = looks_and_signs(table.filter(table["sparsity"] == sparsity), candidates=WORLD.grid.n_candidates)
        assert [look.users for look in looks] == [20, 20]
        assert np.mean([1 - look.sparsity for look in looks]) == pytest.approx(0.9 * (1 - sparsity), abs=0.03)
        assert set(np.unique(signs)) <= {-1.0, 0.0, 1.0}
    first, second = (table.filter(table["draw"] == draw)["rows"].to_list() for draw in (0, 1))
    assert first != second


def test_the_committed_results_keep_what_is_claimed() -> None:
    """The logger is recognised, following the advice loses little and gains over ranking all items."""
    rows = COMMITTED.rows("regrets")
    assert {row["world"] for row in rows} == {"synthetic", "KuaiRec"}
    assert fmean(row["regret"] for row in rows) <= 0.01
    assert max(row["regret"] for row in rows) <= 0.05
    assert fmean(row["advised"] - row["full"] for row in rows) > 0
    known = COMMITTED.rows("recognised")
    right = sum(row["logs"] for row in known if row["logger"] == row["taken for"])
    assert right >= 0.99 * sum(row["logs"] for row in known)
    assert all(row["off"] <= 0.03 for row in COMMITTED.rows("in short") if not row["beyond"])
