"""Ranked logs and targets that are wrong or thin: a clear error, or a result that says what is missing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.errors import InputError
from truerank.exposure.positions import parse_position
from truerank.exposure.positions.exponential import Exponential

HALF = Exponential(0.5)
LOG = pl.DataFrame(
    {
        "session": [1, 1, 1, 2, 2, 3], "item": [1, 2, 3, 2, 1, 3], "position": [1, 2, 3, 1, 2, 1],
        "reward": [1, 0, 1, 0, 1, 1], "new": [3, 2, 1, 1, 2, 1],
    }
)  # fmt: skip
TABLE = LOG.select("session", "item", rank="new")
NEW = {"new": tr.RankColumn("new")}
IPS = [tr.RankedIPS()]


def of(frame: Any, targets: Any = NEW, **options: Any) -> tr.Results:
    settings: dict[str, Any] = {"position": HALF, "estimators": IPS} | options
    return tr.off_policy(frame, targets, **settings)


def sessions(n: int, *, gamma: float, seed: int, displayed: int | None = None) -> pl.DataFrame:
    """Sessions that go on with chance gamma; with all `displayed` items and a column viewed where that is given."""
    rng = np.random.default_rng(seed)
    rows = []
    for session in range(n):
        depth = int(rng.geometric(1 - gamma))
        length = depth if displayed is None else displayed
        items = rng.permutation(max(length, 60))[:length]
        for place in range(length):
            seen = place < depth
            reward = int(seen and rng.random() < 0.2)
            rows.append((session, int(items[place]), place + 1, reward, int(seen), length - place))
    frame = pl.DataFrame(rows, schema=["session", "item", "position", "reward", "viewed", "new"], orient="row")
    return frame.drop("viewed") if displayed is None else frame


# ----------------------------------------------------------------------------------------------------------------- fits


@pytest.mark.parametrize("family", ["yule", "exp", "log", "table"])
def test_scroll_depths_need_sessions(family: str) -> None:
    """Without sessions every row would be a scroll depth of its own."""
    with pytest.raises(InputError, match="no column session"):
        of(LOG.drop("session"), position=parse_position(f"fit:{family}"))


def test_the_last_displayed_position_ends_a_list() -> None:
    """γ = Σ(d - 1) / (Σ(d - 1) + stops): a session that viewed all that was displayed has not stopped."""
    frame = sessions(2000, gamma=0.9, seed=1, displayed=5)
    depth = frame.group_by("session").agg(pl.col("viewed").sum())["viewed"].to_numpy()
    by_hand = (depth - 1).sum() / ((depth - 1).sum() + (depth < 5).sum())
    viewed = frame.filter(pl.col("viewed") == 1).drop("viewed").with_columns(candidates=pl.lit(5))
    for each in (frame, viewed):
        (fit,) = of(each, position=parse_position("fit:exp")).provenance["fits"]
        assert fit["value"] == pytest.approx(by_hand, abs=1e-9)
    assert by_hand == pytest.approx(0.9, abs=0.02)


def test_displayed_ends_are_those_of_each_surface() -> None:
    """One session, two surfaces: it stops at 1 of 2 on the first and comes to the end of the second, 2 of 2."""
    frame = pl.DataFrame(
        {"session": [1] * 4, "item": [1, 2, 3, 4], "position": [1, 2, 1, 2], "viewed": [1, 0, 1, 1],
         "reward": [1, 0, 0, 1], "surface": ["a", "a", "b", "b"], "new": [1, 2, 1, 2]}
    )  # fmt: skip
    (fit,) = of(frame, position=parse_position("fit:exp")).provenance["fits"]
    assert fit["value"] == pytest.approx(1 / (1 + 1))


def test_a_log_in_which_nothing_was_viewed_has_no_depths() -> None:
    frame = LOG.with_columns(viewed=pl.lit(0), reward=pl.lit(0))
    with pytest.raises(InputError, match="no row was viewed"):
        of(frame, position=parse_position("fit:exp"))


def test_a_table_is_refitted_without_the_deepest_session() -> None:
    """The table without a part of the log may end before that part's sessions do; they are not weighed with it."""
    frame = sessions(300, gamma=0.7, seed=3)
    (found,) = of(frame, position=parse_position("fit:table")).estimates
    assert found.stderr > 0
    assert found.low < found.value < found.high


def test_a_fit_that_hangs_on_one_session_has_no_interval_and_says_why() -> None:
    one = pl.DataFrame(
        {"session": [1, 2, 3, 4, 5, 6, 6], "item": [1, 1, 1, 1, 1, 1, 2], "position": [1, 1, 1, 1, 1, 1, 2],
         "reward": [1, 0, 1, 0, 1, 1, 1], "new": [1, 1, 1, 1, 1, 2, 1]}
    )  # fmt: skip
    results = of(one, position=parse_position("fit:exp"))
    assert results.estimates[0].value > 0
    assert math.isnan(results.estimates[0].low)
    assert any(note.startswith("no interval") and "beyond rank 1" in note for note in results.notes)


def test_a_surface_of_one_session_has_no_interval_and_says_why() -> None:
    here = sessions(50, gamma=0.6, seed=4).with_columns(surface=pl.lit("x"))
    pair = pl.DataFrame({"session": [90, 90], "item": [1, 2], "position": [1, 2], "reward": [1, 0], "new": [2, 1]})
    frame = pl.concat([here, pair.with_columns(surface=pl.lit("y")).select(here.columns)])
    results = of(frame, position=parse_position("x=fit:exp,y=fit:exp"))
    assert math.isnan(results.estimates[0].stderr)
    assert any("no session is there" in note for note in results.notes if note.startswith("no interval"))


@pytest.mark.parametrize("position", ["exp:0.7", "fit:exp"])
def test_targets_that_agree_where_both_rank_differ_by_nothing(position: str) -> None:
    frame = sessions(200, gamma=0.7, seed=5)
    table = frame.select("session", "item", rank="new")
    targets = {"a": table.filter(pl.col("session") < 120), "b": table.filter(pl.col("session") >= 80)}
    for estimator in (tr.RankedIPS(), tr.RankedSNIPS(), tr.RankedDoublyRobust()):
        (found,) = of(frame, targets, position=parse_position(position), estimators=[estimator]).comparisons
        assert (found.units, found.difference, found.stderr) == (40, 0, 0)


@pytest.mark.parametrize("position", ["exp:0.5", "fit:exp"])
@pytest.mark.parametrize("estimator", [tr.RankedIPS(), tr.RankedSNIPS(), tr.RankedSNIPS(tr.Normaliser.IMPRESSION)])
def test_targets_without_a_common_session_have_no_difference(position: str, estimator: Any) -> None:
    targets = {"a": TABLE.filter(pl.col("session") == 1), "b": TABLE.filter(pl.col("session") == 2)}
    results = of(LOG, targets, position=parse_position(position), estimators=[estimator])
    (found,) = results.comparisons
    assert found.units == 0
    assert math.isnan(found.difference)
    assert math.isnan(found.p)


def test_clicks_say_what_they_were_fitted_to() -> None:
    rng = np.random.default_rng(2)
    rows = [(s, int(item), place + 1, int(rng.random() < 0.6**place * (0.2 + 0.1 * item)))
            for s in range(150) for place, item in enumerate(rng.permutation(5)[:3])]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["session", "item", "position", "like"], orient="row").with_columns(
        seconds=0.5 * pl.col("like"), new=4 - pl.col("position")
    )
    results = of(frame, position=parse_position("fit:clicks"), logged=tr.Logged.DISPLAYED, rewards=["seconds", "like"])
    assert any("from 450 impressions and their like." in note for note in results.notes)
