"""Off-policy estimates against the truth of a simulated feed."""

from __future__ import annotations

from truerank_research.runner import committed

COMMITTED = committed("offpolicy")
WEIGHTED = ("ips", "snips", "doubly-robust")


def test_the_committed_results_keep_what_is_claimed() -> None:
    """93 to 97 % of intervals without a clip hold the truth in 2,000 logs, and no estimate is off but by chance."""
    rows = COMMITTED.rows("coverage")
    assert COMMITTED.settings["logs"] == 2000
    promised = [row for row in rows if row["estimator"] in WEIGHTED and row["clip"] is None]
    assert len(promised) == 10
    for row in promised:
        assert 0.93 <= row["coverage"] <= 0.97
        assert abs(row["relative bias"]) <= max(3 * row["relative noise"], 0.005)
