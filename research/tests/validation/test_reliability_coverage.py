"""Intervals of a reliability study of some users, held against the study of everybody."""

from __future__ import annotations

from truerank_research.runner import committed

COMMITTED = committed("reliability-coverage")


def test_the_committed_results_are_what_the_guide_says() -> None:
    """One repetition: most intervals do what they say. Four: they are wider than they need to be."""
    rows = COMMITTED.rows("figures")
    by_users = [row for row in rows if row["kind"] != "of means"]
    assert len(by_users) == 20
    assert all(0.93 <= row["median"] <= 0.97 for row in by_users if row["repetitions"] == 1)
    assert all(row["median"] > 0.955 for row in by_users if row["repetitions"] == 4)
    assert all(row["median"] > 0.99 for row in rows if row["kind"] == "of means")
