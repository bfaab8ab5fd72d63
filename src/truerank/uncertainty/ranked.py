"""Estimates over a grid of clips and their paired differences, from passes over the rows or from terms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.terms import Terms
from truerank.estimators.ranked.weights import Weighing
from truerank.uncertainty.intervals import Interval, Population, Spread, common
from truerank.uncertainty.streams import Signed, spreads, streams

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Curve:
    """One estimator and reward: a spread for each target and clip, and for each compared pair and clip."""

    clips: Floats
    values: Mapping[str, Sequence[Spread]]
    differences: Mapping[Pair, Sequence[Spread]]
    units: Mapping[str, int]
    paired_units: Mapping[Pair, int]
    paying: Mapping[str, int]  # units with something in the numerator


def curve_of(
    estimator: Any,
    weighings: Mapping[str, Weighing],
    *,
    reward: str,
    clips: Floats,
    pairs: Sequence[Pair],
    interval: Interval,
    level: float,
    threads: int,
) -> Curve:
    """Every target at every clip, and the differences of pairs from differences per unit."""
    if isinstance(interval, Population) and streams(estimator):
        return _streamed(estimator, weighings, reward=reward, clips=clips, pairs=pairs, level=level, threads=threads)
    values: dict[str, list[Spread]] = {name: [] for name in weighings}
    differences: dict[Pair, list[Spread]] = {pair: [] for pair in pairs}
    units: dict[str, int] = {}
    both: dict[Pair, int] = {}
    paying: dict[str, int] = {}
    for clip in clips.tolist():
        terms = {name: estimator.terms(each, reward=reward, clip=clip) for name, each in weighings.items()}
        for name, each in terms.items():
            values[name].append(_honest(interval.around(each, level=level), each))
            units[name], paying[name] = each.n_defined, int(np.count_nonzero(each.num))
        for model, baseline in pairs:
            first, second = common(terms[model], terms[baseline])
            spread = interval.between(first, second, level=level)
            earned = np.any(first.num) or np.any(second.num)
            differences[model, baseline].append(spread if earned else _unknown(spread))
            both[model, baseline] = int(np.count_nonzero(terms[model].defined & terms[baseline].defined))
    return Curve(clips, values, differences, units, both, paying)


def _streamed(
    estimator: Any,
    weighings: Mapping[str, Weighing],
    *,
    reward: str,
    clips: Floats,
    pairs: Sequence[Pair],
    level: float,
    threads: int,
) -> Curve:
    def of(signed: Signed) -> list[Spread]:
        return spreads(estimator, signed, reward=reward, clips=clips, level=level, threads=threads)

    values, paying = {}, {}
    for name, each in weighings.items():
        rows = each.rewarded(reward)
        exposed = rows[each.target.exposure(rows) > 0]
        paying[name] = int(np.count_nonzero(np.diff(each.log.unit[exposed], prepend=-1)))
        found = of(Signed(each))
        values[name] = found if paying[name] else [_unknown(spread) for spread in found]

    def difference(pair: Signed) -> list[Spread]:
        found = of(pair)
        return found if _earned(pair, reward) else [_unknown(spread) for spread in found]

    signed = {pair: Signed(weighings[pair[0]], weighings[pair[1]]) for pair in pairs}
    return Curve(
        clips,
        values,
        {pair: difference(each) for pair, each in signed.items()},
        {name: _n_units(Signed(each)) for name, each in weighings.items()},
        {pair: _n_units(each) for pair, each in signed.items()},
        paying,
    )


def _earned(signed: Signed, reward: str) -> bool:
    """Whether anything that one of the targets would show has a reward."""
    rows, kept = signed.first.rewarded(reward), signed.kept()
    rows = rows if kept is None else rows[kept[signed.first.log.unit[rows]]]
    return any(bool((each.target.exposure(rows) > 0).any()) for each in signed.both)


def _n_units(signed: Signed) -> int:
    kept = signed.kept()
    return signed.first.log.n_units if kept is None else int(np.count_nonzero(kept))


def _honest(spread: Spread, terms: Terms) -> Spread:
    return spread if np.any(terms.num) else _unknown(spread)


def _unknown(spread: Spread) -> Spread:
    """Nothing was earned, so nothing shows how far from 0 the value may be: an interval of no width would be a lie."""
    return replace(spread, stderr=math.nan, low=math.nan, high=math.nan, p=math.nan)
