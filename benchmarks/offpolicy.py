"""Workload C: off-policy values, variances and intervals for 13 clips against hand-written polars. Smaller is better.

Both start from the same columns in memory and keep the rows with a reward first. Ours starts from a log that was checked
when it was read; what reading and checking cost is measured apart. With dense rewards there is nothing to filter.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import truerank as tr
from benchmarks.measure import ratios
from benchmarks.ranks import timed
from benchmarks.workloads import OFFPOLICY_CLIPS, Array, offpolicy_work
from truerank.core.estimator import Learned, Request
from truerank.core.log import Log
from truerank.estimators.impressions import Exposures
from truerank.estimators.weighted import IPS
from truerank.exposure.policies import logging_policy
from truerank.exposure.policies.targets import RankColumn, target_policy
from truerank.exposure.positions.position_models import Logarithmic, Positions
from truerank.inference.intervals import Population
from truerank.inference.linearization import Spread
from truerank.inference.tails import tail_length
from truerank.inference.weights import WeightTally
from truerank.io.sessions import RankedChunk

CLIPS = np.array(OFFPOLICY_CLIPS)


def run(*, n_rows: int = 10_000_000, rounds: int = 5) -> dict[str, Any]:
    """Ratios of our time to polars', with sparse and with dense rewards, without and with diagnostics."""
    columns = offpolicy_work(n_rows)
    frame = pl.DataFrame(columns)
    read = timed(lambda: read_log(frame), n_rows)
    log = read_log(frame)
    positions = Positions.everywhere(Logarithmic())
    logging = logging_policy(log, positions)
    target = target_policy(RankColumn("new"), logging, name="new", positions=positions)
    view = Exposures(log, target, logging, log.clusters())

    def ours(reward: str) -> Callable[[], list[Spread]]:
        return lambda: spreads(view, reward)

    def with_diagnostics() -> Any:
        tally = WeightTally.count(view, CLIPS, most=tail_length(len(log)))
        return spreads(view, "click"), tally.diagnostics(math.inf)

    agree(ours("click")(), by_hand(frame, "click"))
    agree(ours("dwell")(), by_hand(frame, "dwell"))
    with_diagnostics()
    found: dict[str, Any] = {"workload": "offpolicy", "rows": n_rows, "clips": len(CLIPS), "sessions": log.n_units}
    polars = timed(lambda: by_hand(frame, "click"), n_rows)
    found["sparse"] = ratios(polars, timed(ours("click"), n_rows), rounds)
    found["diagnostics"] = ratios(polars, timed(with_diagnostics, n_rows), rounds)
    found["dense"] = ratios(
        timed(lambda: by_hand(frame, "dwell"), n_rows), timed(ours("dwell"), n_rows), max(3, rounds // 2)
    )
    found["reading_ns_per_row"] = round(1e9 * statistics.median(read()["cpu"] for _ in range(rounds)), 1)
    found["goals"] = {
        "off-policy, 13 clips: no slower than polars, by the clock": found["sparse"]["ratio_wall"] <= 1,
        "off-policy with dense rewards: no slower than polars, by the clock": found["dense"]["ratio_wall"] <= 1,
        "off-policy with diagnostics <= 1.5x polars, by the clock": found["diagnostics"]["ratio_wall"] <= 1.5,
        "reading impressions <= 80 ns of processor time per row": found["reading_ns_per_row"] <= 80,
    }
    return found


def spreads(view: Exposures, reward: str) -> list[Spread]:
    """Value, standard error and interval for every clip."""
    asked = [Request(None, reward, clip) for clip in OFFPOLICY_CLIPS]
    terms = IPS().terms(RankedChunk(view.log), view, requests=asked, learned=Learned())
    return [
        Population().spreads({clip: part}, [], level=0.95)[0][clip] for clip, part in zip(CLIPS, terms, strict=True)
    ]


def read_log(frame: pl.DataFrame) -> Log:
    return tr.read_impressions(frame, rewards=["click", "dwell"], extra=["new"])


def by_hand(frame: pl.DataFrame, reward: str) -> Array:
    """Value, variance and interval for each clip, as one would write it: filter, weigh, group, sum."""
    n = int(frame["session"][-1]) + 1
    sums = (
        frame.lazy()
        .filter(pl.col(reward) != 0)
        .with_columns(
            ratio=1.0 / ((1.0 + pl.col("new").cast(pl.Float64)).log(2) * pl.col("propensity")), gain=pl.col(reward)
        )
        .group_by("session")
        .agg(
            (pl.col("gain") * pl.min_horizontal("ratio", pl.lit(clip))).sum().alias(f"clip {clip}")
            for clip in OFFPOLICY_CLIPS
        )
        .drop("session")
        .collect()
        .to_numpy()
    )
    total, square = sums.sum(axis=0), (sums * sums).sum(axis=0)
    mean = total / n
    error = np.sqrt((square - n * mean * mean) / (n - 1) / n)
    return np.stack([mean, error, mean - 1.96 * error, mean + 1.96 * error])


def agree(ours: Any, other: Array) -> None:
    """Both must compute the same before their times mean anything."""
    found = np.array([[each.value, each.stderr] for each in ours]).T
    if not np.allclose(found, other[:2], rtol=1e-8):
        raise SystemExit("truerank and polars disagree")


def end_to_end(n_rows: int) -> Callable[[], Any]:
    """Two rewards, thirteen clips, from a frame to results."""
    frame = pl.DataFrame(offpolicy_work(n_rows))
    return lambda: tr.off_policy(
        frame,
        {"new": RankColumn("new")},
        position="log",
        clips=OFFPOLICY_CLIPS,
        rewards=["click", "dwell"],
        estimators=["ips", "snips(normaliser=impression)"],
        threads=2,
    )
