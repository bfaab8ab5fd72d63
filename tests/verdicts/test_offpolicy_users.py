"""Sessions without users are assumed to be independent, which is said; a user column is known by its usual names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.evaluation import sources
from truerank.exposure.policies.targets import RankColumn
from truerank.io.columns import recognised


def log_of(*, strong: bool = True) -> pl.DataFrame:
    """30 users of 20 sessions each, who like all or nothing."""
    rng = np.random.default_rng(4)
    owner = np.repeat(np.arange(30), 20)
    liking = rng.random(30) < 0.5 if strong else np.full(30, 0.5)
    reward = (rng.random(600) < liking[owner]).astype(int)
    return pl.DataFrame(
        {"session": np.arange(600), "owner": owner, "item": owner % 7, "position": [1] * 600, "reward": reward}
    )


def evaluated(log: Any, **options: Any) -> tr.Results:
    return tr.off_policy(log, {"log": RankColumn("position")}, position="exp:0.5", estimators=["ips"], **options)


def codes(results: tr.Results) -> list[str]:
    return [each.code for each in results.messages]


def test_sessions_without_users_are_said_to_be_taken_as_independent() -> None:
    log = log_of()
    found = evaluated(log.drop("owner"))
    assert codes(found).count("independent-units") == 1
    (message,) = (each for each in found.messages if each.code == "independent-units")
    assert message.severity == "caution"
    assert "sessions are assumed to be independent" in str(message)
    named = evaluated(log, columns={"user": "owner"})
    assert "independent-units" not in codes(named)
    # what it is about: the interval is four times too short
    assert named.estimates[0].stderr > 3 * found.estimates[0].stderr


def test_rows_without_sessions_are_said_to_be_taken_as_independent() -> None:
    rows = pl.DataFrame({"item": [1, 2] * 20, "reward": [1, 0] * 20, "propensity": [0.5] * 40, "new": [0.5] * 40})
    found = tr.off_policy(rows, {"new": tr.exposure.ExposureColumn("new")}, estimators=["ips"])
    assert any("impressions are assumed to be independent" in note for note in found.notes)


@pytest.mark.parametrize(
    "name", ["user_id", "userId", "UserID", "uid", "visitor-id", "customer", "member_id", "AccountId"]
)
def test_a_user_column_is_known_by_its_usual_names(name: str) -> None:
    log = log_of()
    found = evaluated(log.rename({"owner": name}))
    assert found.estimates == evaluated(log, columns={"user": "owner"}).estimates
    assert found.estimates[0].clusters == 30
    assert any(f"column {name!r} is taken for users" in note for note in found.notes)
    assert "independent-units" not in codes(found)


def test_nothing_is_guessed_where_somebody_has_said_or_two_would_do() -> None:
    log = log_of().rename({"owner": "user_id"})
    said = evaluated(log, columns={"user": "session"})
    assert said.estimates[0].clusters == 600
    assert not any("taken for users" in note for note in said.notes)
    # a column that is something else already
    visits = log.with_columns(item=pl.col("session"), position=pl.col("session") % 20 + 1).drop("session")
    assert evaluated(visits, columns={"session": "user_id"}).estimates[0].units == 30
    assert "independent-units" in codes(evaluated(visits, columns={"session": "user_id"}))
    both = evaluated(log.with_columns(customer_id=pl.col("user_id") % 3))
    assert both.estimates[0].clusters == 600
    assert any("'user_id' and 'customer_id' could both be users" in note for note in both.notes)
    own = evaluated(log.with_columns(user=pl.col("user_id") % 10))
    assert own.estimates[0].clusters == 10


def test_a_column_that_cannot_be_users_is_left_alone() -> None:
    """A session of two users, or of none: it worked before, and works on."""
    log = log_of().rename({"owner": "uid"})
    twice = pl.concat([log, log.head(1).with_columns(uid=pl.lit(29, dtype=pl.Int64), item=pl.lit(99, dtype=pl.Int64),
                                                     position=pl.lit(2, dtype=pl.Int64))])  # fmt: skip
    for odd in (twice, log.with_columns(uid=pl.when(pl.col("session") > 3).then("uid"))):
        found = evaluated(odd)
        assert found.estimates[0].clusters == 600
        assert any("'uid' is called as users are but cannot be" in note for note in found.notes)
        assert "independent-units" in codes(found)


def test_the_same_is_recognised_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of().rename({"owner": "visitor_id"})
    log.write_parquet(tmp_path / "log.parquet")
    held = evaluated(tmp_path / "log.parquet")
    monkeypatch.setattr(sources, "MEMORY_ROWS", 50)
    streamed = evaluated(tmp_path / "log.parquet")
    assert streamed.estimates == held.estimates
    assert any("column 'visitor_id' is taken for users" in note for note in streamed.notes)
    log.with_columns(visitor_id=pl.when(pl.col("session") > 3).then("visitor_id")).write_parquet(
        tmp_path / "odd.parquet"
    )
    odd = evaluated(tmp_path / "odd.parquet")
    assert odd.estimates[0].clusters == 600
    assert any("is called as users are but cannot be" in note for note in odd.notes)


def test_names_that_only_resemble_are_not_taken() -> None:
    assert recognised(["user_agent", "users", "userscore", "id", "member", "account"], "user") == []
