"""A ranked log in any chunks, added in any order: the same bits of every value, the same standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from ranked import read

from truerank.core.log import OF_ROWS, OF_UNITS, Log, Logged
from truerank.core.results import Results
from truerank.estimators import RANKED
from truerank.evaluation.conclude import conclude
from truerank.evaluation.impression_source import held_source
from truerank.evaluation.impressions import ImpressionQuestion, prepare_impressions
from truerank.evaluation.measure import join, measure
from truerank.exposure.policies.targets import ExposureColumn, RankColumn
from truerank.exposure.positions import parse_position
from truerank.io.sessions import RankedChunk

CLIPS = (1.5, 4.0, math.inf)
RANKS = {"new": RankColumn("new"), "other": RankColumn("other"), "log": RankColumn("position")}


def feed(seed: int, *, users: bool, displayed: bool = False, n: int = 48) -> pl.DataFrame:
    """Sessions that scroll to a random depth of a list of 6; rewards are binary and continuous."""
    rng = np.random.default_rng(seed)
    rows = []
    for session in range(n):
        depth = 6 if displayed else min(6, int(rng.geometric(0.3)))
        items = rng.permutation(9)
        new, other = rng.permutation(6) + 1, rng.permutation(6) + 1
        for place in range(depth):
            like = int(rng.random() < 0.5 * (0.8**place if displayed else 1.0) * (0.3 + items[place] / 12))
            rows.append(
                {
                    "session": f"s{session:03}", "user": int(session // 3), "item": int(items[place]),
                    "position": place + 1, "like": like, "dwell": like * float(rng.exponential()),
                    "new": int(new[place]),
                    "other": None if rng.random() < 0.05 else int(other[place]), "candidates": 6,
                    "surface": "main" if session % 3 else "side", "group": "young" if session % 2 else "old",
                    "logger": "a" if (session // 3) % 2 else "b", "by_a": 0.5 + 0.05 * place, "by_b": 0.9 - 0.1 * place,
                }
            )  # fmt: skip
    frame = pl.DataFrame(rows)
    return frame if users else frame.drop("user")


def lists(frame: pl.DataFrame, *, seed: int, without: int | None = None) -> pl.DataFrame:
    """A target's ranking of nine items in every session, or in all but some."""
    rng = np.random.default_rng(seed)
    sessions = frame["session"].unique().sort().to_list()
    kept = [name for at, name in enumerate(sessions) if without is None or at % 5 != without]
    parts = [
        pl.DataFrame({"session": [name] * 9, "item": np.arange(9), "rank": rng.permutation(9) + 1}) for name in kept
    ]
    return pl.concat(parts).sample(fraction=1.0, shuffle=True, seed=seed)


@dataclass(frozen=True)
class Case:
    """A question, and how its log is made."""

    name: str
    position: str | None = "exp:0.8"
    drop: tuple[str, ...] = ("surface", "group", "logger", "by_a", "by_b")
    tables: bool = False
    users: bool = True
    displayed: bool = False
    loggers: Mapping[str, Any] | None = None
    keeps: bool = True  # each unit, or the sums of its cluster
    estimators: tuple[str, ...] = field(default_factory=lambda: tuple(RANKED.catalogue()))


LOGGERS = {"a": ExposureColumn("by_a"), "b": ExposureColumn("by_b")}
CASES = [
    Case("columns"),
    Case("tables", tables=True, keeps=False),
    Case("sessions alone", tables=True, users=False),
    Case("displayed", tables=True, displayed=True),
    Case("by surface", "main=exp:0.8,side=yule:1.5", tables=True, drop=("group", "logger", "by_a", "by_b")),
    Case("loggers", loggers=LOGGERS, drop=("surface", "group"), tables=True),
    Case("loggers by group", loggers=LOGGERS, drop=("surface",), tables=True, users=False),
    Case("fitted exp", "fit:exp", tables=True),
    Case("fitted yule, columns", "fit:yule", keeps=False),
    Case("fitted table", "fit:table", users=False, tables=True, keeps=False, estimators=("ips", "snips", "ndcg")),
    Case("fitted by surface", "main=fit:exp,side=fit:yule", tables=True, drop=("group", "logger", "by_a", "by_b")),
    Case("fitted by group", "*/old=fit:exp,*/young=exp:0.8", drop=("surface", "logger", "by_a", "by_b")),
    Case("fitted per group", "fit:exp(per_group=true)", tables=True, drop=("surface", "logger", "by_a", "by_b")),
    Case(
        "fitted per group of a surface", "main=fit:yule(per_group=true),side=exp:0.8", drop=("logger", "by_a", "by_b")
    ),
    Case("fitted clicks", "fit:clicks", displayed=True, tables=True),
    Case("fitted harvest", "fit:harvest", displayed=True),
]


def targets_of(case: Case, frame: pl.DataFrame) -> dict[str, Any]:
    if not case.tables:
        return RANKS
    return {"new": lists(frame, seed=1), "other": lists(frame, seed=2, without=3), "log": RankColumn("position")}


def units_of(log: Log, kept: np.ndarray) -> Log:
    """The log of these units alone; users, sessions and items keep their ids."""
    rows, number, parts = kept[log.unit], np.cumsum(kept) - 1, dict[str, Any]()
    for names, chosen in ((OF_ROWS, rows), (OF_UNITS, kept)):
        parts |= {name: None if (values := getattr(log, name)) is None else values[chosen] for name in names}
    rewards = {name: values[rows] for name, values in log.rewards.items()}
    columns = {name: values[rows] for name, values in log.columns.items()}
    assert log.candidates is None
    parts |= {"unit": number[log.unit[rows]], "rewards": rewards, "columns": columns}
    return replace(log, **parts)


def chunks(log: Log, targets: Mapping[str, Any], n: int, *, seed: int) -> Iterator[RankedChunk]:
    """Clusters dealt into n chunks at random; tables in rows of another order in every chunk."""
    clusters = log.clusters()
    part = np.random.default_rng(seed).permutation(len(clusters)) % n
    tables = {name: table for name, table in targets.items() if isinstance(table, pl.DataFrame)}
    for number in range(n):
        kept = part[clusters.of_row] == number
        own = units_of(log, kept)
        assert log.sessions is not None
        assert own.session_of_unit is not None
        names = log.sessions.values.gather(own.session_of_unit)
        rows = {
            name: table.filter(pl.col("session").is_in(names.implode())).sample(fraction=1.0, shuffle=True, seed=n)
            for name, table in tables.items()
        }
        yield RankedChunk(own, rows, np.flatnonzero(kept))


def results_of(case: Case, n: int, *, seed: int) -> Results:
    frame = feed(5, users=case.users, displayed=case.displayed).drop(case.drop)
    targets = targets_of(case, frame)
    logged = Logged.DISPLAYED if case.displayed else Logged.VIEWED
    log = read(frame.sample(fraction=1.0, shuffle=True, seed=seed), rewards=["like", "dwell"], logged=logged)
    parts = list(chunks(log, targets, len(log.clusters()) if n == 0 else n, seed=seed))
    question = ImpressionQuestion(
        position=None if case.position is None else parse_position(case.position),
        loggers=case.loggers or {},
        estimators=[RANKED.named(name)() for name in case.estimators],
        clips=CLIPS,
    )
    plan = prepare_impressions(question, held_source(log, parts), targets)
    plan = plan if case.keeps else replace(plan, ids=None, keeps_units=False)
    measured = [measure(plan, part) for part in parts]
    np.random.default_rng(seed).shuffle(measured)
    return conclude(plan, join(measured), complete=True)


QUICK = {"fitted exp", "fitted table", "fitted by surface"}  # of those that are fitted without each group of clusters


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[pytest.mark.slow] * ("fitted" in case.name and case.name not in QUICK))
        for case in CASES
    ],
)
def test_chunks_change_no_bit_of_a_value(case: Case) -> None:
    whole = results_of(case, 1, seed=1)
    assert whole.estimates
    assert any(each.stderr > 0 for each in whole.estimates)
    for n, seed in ((7, 2), (0, 3)):
        parts = results_of(case, n, seed=seed)
        pairs: list[tuple[Any, Any]] = [
            *zip(whole.estimates, parts.estimates, strict=True),
            *zip(whole.comparisons, parts.comparisons, strict=True),
        ]
        for old, new in pairs:
            value = "value" if hasattr(old, "value") else "difference"
            assert getattr(new, value) == getattr(old, value) or math.isnan(getattr(old, value))
            for name in ("stderr", "low", "high", "ess"):
                before, after = (
                    math.nan if (number := getattr(each, name, None)) is None else number for each in (old, new)
                )
                scale = abs(getattr(old, value)) if name in ("low", "high") else 0.0
                assert after == pytest.approx(before, rel=1e-12, abs=1e-12 * scale + 1e-16, nan_ok=True)
            assert (new.units, new.clusters) == (old.units, old.clusters)
        assert [str(each) for each in parts.messages] == [str(each) for each in whole.messages]


def test_the_sums_of_clusters_give_what_units_give() -> None:
    """Units of one cluster as one row: the same values and standard errors, fitted or not."""
    for case in (CASES[1], CASES[7]):
        units, clusters = (results_of(replace(case, keeps=keeps), 3, seed=4) for keeps in (True, False))
        for first, second in zip(units.estimates, clusters.estimates, strict=True):
            assert second.value == pytest.approx(first.value, rel=1e-13, nan_ok=True)
            assert second.stderr == pytest.approx(first.stderr, rel=1e-10, nan_ok=True)
            assert (second.units, second.undefined) == (first.units, first.undefined)
