"""Ranked logs and targets that are wrong or thin: a clear error, or a result that says what is missing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import truerank as tr
from truerank.estimators.doubly_robust import RankedDoublyRobust
from truerank.estimators.impressions import Normaliser
from truerank.estimators.weighted import IPS, SNIPS
from truerank.exposure.policies.targets import ExposureColumn, RankColumn
from truerank.exposure.positions import parse_position
from truerank.exposure.positions.position_models import Exponential

HALF = Exponential(0.5)
LOG = pl.DataFrame(
    {
        "session": [1, 1, 1, 2, 2, 3], "item": [1, 2, 3, 2, 1, 3], "position": [1, 2, 3, 1, 2, 1],
        "reward": [1, 0, 1, 0, 1, 1], "new": [3, 2, 1, 1, 2, 1],
    }
)  # fmt: skip
TABLE = LOG.select("session", "item", rank="new")
NEW = {"new": RankColumn("new")}
PLAIN = [IPS()]


def of(frame: Any, targets: Any = NEW, **options: Any) -> tr.Results:
    settings: dict[str, Any] = {"position": HALF, "estimators": PLAIN} | options
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
    with refused("no column session"):
        of(LOG.drop("session"), position=parse_position(f"fit:{family}"))


def test_the_last_displayed_position_ends_a_list() -> None:
    """γ = Σ(d - 1) / (Σ(d - 1) + stops): a session that viewed all that was displayed has not stopped."""
    frame = sessions(2000, gamma=0.9, seed=1, displayed=5)
    depth = frame.group_by("session").agg(pl.col("viewed").sum())["viewed"].to_numpy()
    by_hand = (depth - 1).sum() / ((depth - 1).sum() + (depth < 5).sum())
    viewed = frame.filter(pl.col("viewed") == 1).drop("viewed").with_columns(candidates=pl.lit(5))
    for each in (frame, viewed):
        (fit,) = of(each, position=parse_position("fit:exp")).provenance.details["fits"]
        assert fit["value"] == pytest.approx(by_hand, abs=1e-9)
    assert by_hand == pytest.approx(0.9, abs=0.02)


def test_a_log_in_which_nothing_was_viewed_has_no_depths() -> None:
    frame = LOG.with_columns(viewed=pl.lit(0), reward=pl.lit(0))
    with refused("no row was viewed"):
        of(frame, position=parse_position("fit:exp"))


def test_a_fit_that_hangs_on_one_session_has_no_interval_and_says_why() -> None:
    one = pl.DataFrame(
        {"session": [1, 2, 3, 4, 5, 6, 6], "item": [1, 1, 1, 1, 1, 1, 2], "position": [1, 1, 1, 1, 1, 1, 2],
         "reward": [1, 0, 1, 0, 1, 1, 1], "new": [1, 1, 1, 1, 1, 2, 1]}
    )  # fmt: skip
    results = of(one, position=parse_position("fit:exp"))
    assert results.estimates[0].value > 0
    assert math.isnan(results.estimates[0].low)
    assert any(note.startswith("no interval") and "beyond rank 1" in note for note in results.notes)


@pytest.mark.parametrize("position", ["exp:0.7", "fit:exp"])
def test_targets_that_agree_where_both_rank_differ_by_nothing(position: str) -> None:
    frame = sessions(200, gamma=0.7, seed=5)
    table = frame.select("session", "item", rank="new")
    targets = {"a": table.filter(pl.col("session") < 120), "b": table.filter(pl.col("session") >= 80)}
    for estimator in (IPS(), SNIPS(), RankedDoublyRobust()):
        (found,) = of(frame, targets, position=parse_position(position), estimators=[estimator]).comparisons
        assert (found.units, found.difference) == (40, 0)
        assert math.isnan(found.stderr)  # nothing tells how others would differ
        assert found.verdict == "insufficient"


@pytest.mark.parametrize("position", ["exp:0.5", "fit:exp"])
@pytest.mark.parametrize("estimator", [IPS(), SNIPS(), SNIPS(Normaliser.IMPRESSION)])
def test_targets_without_a_common_session_have_no_difference(position: str, estimator: Any) -> None:
    targets = {"a": TABLE.filter(pl.col("session") == 1), "b": TABLE.filter(pl.col("session") == 2)}
    results = of(LOG, targets, position=parse_position(position), estimators=[estimator])
    (found,) = results.comparisons
    assert found.units == 0
    assert math.isnan(found.difference)
    assert math.isnan(found.p)


# -------------------------------------------------------------------------------------------------------------- targets


def test_a_rank_column_has_each_rank_once_in_a_session() -> None:
    with refused("two items at rank 1 of one session"):
        of(LOG.with_columns(new=pl.lit(1)))
    gaps = LOG.with_columns(new=pl.Series([5, None, None, 1, 2, 1]))
    assert of(gaps).estimates[0].value == pytest.approx((0.5**4 + 1 + 1) / 3)
    surfaces = LOG.with_columns(surface=pl.Series(["a", "a", "b", "a", "b", "a"]), new=pl.Series([1, 2, 1, 1, 1, 1]))
    assert of(surfaces).estimates[0].value == pytest.approx((1 + 4 + 2 + 1) / 3)


def test_exposures_are_needed_in_every_row() -> None:
    frame = LOG.with_columns(propensity=pl.lit(0.5), t=pl.Series([0.5, None, 0.5, 0.5, 0.5, 0.5]))
    with refused("1 rows have nothing in column 't'"):
        of(frame, {"new": ExposureColumn("t")}, position=None)
    two = frame.with_columns(logger=pl.lit("a"), b=pl.lit(0.5))
    loggers = {"a": ExposureColumn("b"), "c": ExposureColumn("t")}
    with refused("logger c: 1 rows have nothing"):
        of(two, {"new": ExposureColumn("b")}, position=None, loggers=loggers)


def test_sessions_that_the_log_lacks_are_counted() -> None:
    more = pl.concat([TABLE, pl.DataFrame({"session": [8, 8, 9], "item": [1, 2, 1], "rank": [1, 2, 1]})])
    results = of(LOG, {"new": more})
    assert any("2 sessions that it ranks are not in the log" in note and "sessions=" in note for note in results.notes)
    assert not any("are not in the log" in note for note in of(LOG, {"new": TABLE}).notes)


@pytest.mark.parametrize("item", [1, 9], ids=["logged", "never logged"])
def test_an_item_stands_once_in_a_list(item: int) -> None:
    table = pl.DataFrame({"session": [1, 1, 1, 2], "item": [2, item, item, item], "rank": [1, 2, 3, 1]})
    with refused(f"item {item} is twice in one session"):
        of(LOG, {"new": table})


def test_a_list_for_a_session_without_rows_needs_its_surface() -> None:
    """Nothing tells on which surface an empty session was; the table may, or there is only one."""
    frame = LOG.with_columns(surface=pl.Series(["a", "a", "a", "b", "b", "a"]))
    table = pl.concat([TABLE, pl.DataFrame({"session": [7], "item": [1], "rank": [1]})])
    options: dict[str, Any] = {"position": parse_position("a=exp:0.5,b=exp:0.8"), "sessions": pl.Series([1, 2, 3, 7])}
    with refused(r"1 sessions without a row .* column surface"):
        of(frame, {"new": table}, **options)
    told = table.with_columns(surface=pl.Series(["a", "a", "a", "b", "b", "a", "b"]))
    assert of(frame, {"new": told}, **options).estimates[0].value == pytest.approx((0.25 + 4 + 1 + 1) / 4)
    with refused("row 3 has no surface"):
        of(frame, {"new": told.with_columns(surface=pl.Series(["a", "a", None, "b", "b", "a", None]))}, **options)
    alone = frame.with_columns(surface=pl.lit("a"))
    assert of(alone, {"new": table}, **options).estimates[0].value == pytest.approx((0.25 + 4 + 1 + 1) / 4)


# ----------------------------------------------------------------------------------------------------------- candidates


@pytest.mark.parametrize(
    ("candidates", "reason"),
    [
        ([5, 5, 4, 2, 2, 1], "candidates differ"),
        ([2, 2, 2, 2, 2, 1], "more rows than candidates"),
        ([[1, 2, 3], [1, 2, 3], [1, 2, 3, 4], [1, 2], [1, 2], [3]], "candidates differ"),
        ([[1, 2, 3], [1, 2, 3], None, [1, 2], [1, 2], [3]], "candidates differ"),
        ([[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 2], [1, 2, 2], [3]], "a candidate is listed twice"),
        ([[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2], [1, 2], [4]], "row 6, the item is not among its candidates"),
    ],
    ids=["number differs", "number too small", "list differs", "list missing", "listed twice", "shown but not listed"],
)
def test_candidates_hold_what_was_shown(candidates: list[Any], reason: str) -> None:
    with refused(reason):
        of(LOG.with_columns(candidates=pl.Series(candidates)))
