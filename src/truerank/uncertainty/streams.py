"""Linearised intervals for logs too long to keep terms of: two passes over the rows, all clips at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.estimators.ranked.ips import RankedIPS
from truerank.estimators.ranked.normalisers import Normaliser
from truerank.estimators.ranked.snips import RankedSNIPS, total_of
from truerank.estimators.ranked.weights import Weighing
from truerank.uncertainty.intervals import Spread, cautious, normal

PARTS = 16  # of a log, whatever the number of threads, so that these do not change a bit


def streams(estimator: Any) -> bool:
    """Whether an estimator's sums can be taken in passes over the rows."""
    known = isinstance(estimator, RankedSNIPS) or (
        isinstance(estimator, RankedIPS) and estimator.normaliser is not Normaliser.MEAN_OF_MEANS
    )
    return known and find_spec("numba") is not None


@dataclass(frozen=True, slots=True)
class Signed:
    """A target, or with a second one the difference of the two; both are seen on the units that both define."""

    first: Weighing
    second: Weighing | None = None

    @property
    def both(self) -> tuple[Weighing, ...]:
        return (self.first,) if self.second is None else (self.first, self.second)

    def kept(self) -> Bools | None:
        known = [each.target.known for each in self.both if each.target.known is not None]
        return None if not known else np.logical_and.reduce(known)


def spreads(estimator: Any, signed: Signed, *, reward: str, clips: Floats, level: float, threads: int) -> list[Spread]:
    """Value, standard error and interval for every clip, as `Population` gives them from terms."""
    call = _of_rewards if isinstance(estimator, RankedIPS) else _of_ratios
    value, square = call(estimator, signed, reward=reward, clips=clips, threads=threads)
    n = _n_clusters(signed)
    found = []
    for centre, total in zip(value.tolist(), square.tolist(), strict=True):
        if n < 2 or math.isnan(centre):
            found.append(Spread(centre, math.nan, math.nan, math.nan, math.nan))
            continue
        spread = normal(centre, math.sqrt(total * n / (n - 1)), df=n - 1, level=level)
        found.append(cautious(spread, n))
    return found


def _of_rewards(
    estimator: RankedIPS, signed: Signed, *, reward: str, clips: Floats, threads: int
) -> tuple[Floats, Floats]:
    """Rows with a reward alone enter; clusters without one add R² D² to the squares."""
    from truerank.estimators.ranked.fast import rewards_pass

    log, kept = signed.first.log, signed.kept()
    size = np.ones(log.n_units) if estimator.normaliser is Normaliser.SESSION else signed.first.n_viewed()
    den = np.bincount(log.cluster, size if kept is None else size * kept).astype(np.float64)
    rows = signed.first.rewarded(reward)
    if kept is not None:
        rows = rows[kept[log.unit[rows]]]
    cluster = log.cluster[log.unit[rows]]
    target, inverse = signed.first.parts(rows)
    if signed.second is not None:
        target = target - signed.second.parts(rows)[0]
    gain = target * log.reward(reward)[rows]
    total = float(den.sum())
    if total == 0:
        return np.full(len(clips), math.nan), np.full(len(clips), math.nan)
    squares = float((den**2).sum())

    def once(ratio: Floats) -> tuple[Floats, float]:
        def part(low: int, high: int) -> tuple[Floats, float]:
            out = np.zeros((2, len(clips)))
            met = rewards_pass(cluster[low:high], gain[low:high], inverse[low:high], clips, den, ratio, out)
            return out, met

        parts = _in_parts(part, _cuts(cluster), threads=threads)
        return np.sum([out for out, _ in parts], axis=0), sum(met for _, met in parts)

    value: Floats = once(np.zeros(len(clips)))[0][0] / total
    out, met = once(value)
    return value, (out[1] + value**2 * max(squares - met, 0.0)) / total**2


def _of_ratios(
    estimator: RankedSNIPS, signed: Signed, *, reward: str, clips: Floats, threads: int
) -> tuple[Floats, Floats]:
    """Every viewed row enters: Σ c w / Σ w, times the mean known total of the units."""
    from truerank.estimators.ranked.fast import ratio_pass

    log, kept = signed.first.log, signed.kept()
    n_clips, n_targets = len(clips), len(signed.both)
    rows = signed.first.viewed_rows()
    if kept is not None and not kept.all():
        every = np.arange(len(log)) if rows is None else rows
        rows = every[kept[log.unit[every]]]
    units = np.ones(log.n_units) if kept is None else kept.astype(np.float64)
    n_units = float(units.sum())
    if n_units == 0:  # two targets without a unit in common
        return np.full(n_clips, math.nan), np.full(n_clips, math.nan)
    totals = [total_of(each) if estimator.normaliser is Normaliser.SESSION else None for each in signed.both]
    totals = [None if each is None else each * units for each in totals]
    mean = np.array([1.0 if each is None else float(each.sum()) / n_units for each in totals])
    known = np.stack(
        [
            np.zeros(int(log.cluster.max()) + 1)
            if each is None
            else np.bincount(log.cluster, each - mean[t] * units).astype(np.float64)
            for t, each in enumerate(totals)
        ]
    )
    cluster = log.cluster[log.unit] if rows is None else log.cluster[log.unit[rows]]
    cuts = _cuts(cluster)
    gain = log.reward(reward) if rows is None else log.reward(reward)[rows]

    def once(slope: Floats, level: Floats) -> Floats:
        def part(low: int, high: int) -> Floats:
            piece = slice(low, high) if rows is None else rows[low:high]
            pairs = [each.parts(piece) for each in signed.both]
            out = np.zeros((2 * n_targets + 1, n_clips))
            target = np.stack([target for target, _ in pairs])
            ratio_pass(
                cluster[low:high],
                gain[low:high].astype(np.float64),
                target,
                pairs[0][1],
                clips,
                known,
                slope,
                level,
                out,
            )
            return out

        return np.asarray(np.sum(_in_parts(part, cuts, threads=threads), axis=0), dtype=np.float64)

    zero = np.zeros((n_targets, 2, n_clips)), np.zeros((n_targets, n_clips))
    sums = once(*zero)
    num, den = sums[0 : 2 * n_targets : 2], sums[1 : 2 * n_targets : 2]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(den > 0, num / den, math.nan)
        sign = np.array([1.0, -1.0])[:n_targets, None]
        factor = sign * mean[:, None] / den
    slope = np.stack([factor, -factor * ratio], axis=1)
    level = sign * ratio / n_units
    squares = once(slope, level)[-1]
    met = np.zeros(known.shape[1], dtype=bool)
    met[cluster] = True
    for k in range(n_clips):  # clusters without a row differ from the mean by their known total alone
        squares[k] += float(((level[:, k] @ known[:, ~met]) ** 2).sum())
    return np.asarray((sign * ratio * mean[:, None]).sum(axis=0)), squares


def _cuts(cluster: Ints) -> Ints:
    """Where a log is cut into parts: never within a cluster."""
    wanted = np.linspace(0, len(cluster), PARTS + 1).astype(np.int64)
    inner = [int(np.searchsorted(cluster, cluster[at])) for at in wanted[1:-1]] if len(cluster) else []
    return np.unique(np.array([0, *inner, len(cluster)]))


def _in_parts(part: Callable[[int, int], Any], cuts: Ints, *, threads: int) -> Sequence[Any]:
    pairs = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    if not pairs:
        return [part(0, 0)]
    if threads == 1:
        return [part(low, high) for low, high in pairs]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda pair: part(*pair), pairs))


def _n_clusters(signed: Signed) -> int:
    kept = signed.kept()
    cluster = signed.first.log.cluster if kept is None else signed.first.log.cluster[kept]
    return int(np.count_nonzero(np.diff(cluster))) + 1 if len(cluster) else 0
