"""The recall of each user pulled towards that of all, so that nobody with a judged item need be left out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import EstimatorInfo
from truerank.core.forms import Form
from truerank.core.terms import Smooth
from truerank.estimators.rows import Sample
from truerank_research.estimators.mean_recall import MeanRecall, describe

STRENGTHS = tuple(2.0**power for power in range(-4, 13))  # of the pull that can be chosen


@dataclass(frozen=True, slots=True)
class ShrunkMean(Form):
    """(1 / U) Σ (m + a R) / (n + a) with R = Σ (N / N-bar) m / Σ (N / N-bar) n and a by moments, from a fixed list.

    With P = Σ m (m - 1) / Σ n (n - 1), which estimates the mean square of recall, a = (R - P) / (P - R²) is that
    under which the mean squared error of a user's recall is least (beta-binomial). The influence holds a.
    """

    columns: ClassVar[tuple[str, ...]] = (
        "hits",
        "relevant",
        "hit pairs",
        "relevant pairs",
        "units",
        *(f"hits {a:g}" for a in STRENGTHS),
        *(f"pull {a:g}" for a in STRENGTHS),
    )

    def values(self, totals: Floats) -> Floats:
        return np.array([self._value(row) for row in totals])

    def _value(self, totals: Floats) -> float:
        if not totals[1] > 0:
            return math.nan
        hits, pull = self._chosen(totals)
        return float((totals[hits] + totals[0] / totals[1] * totals[pull]) / totals[4])

    def _chosen(self, totals: Floats) -> tuple[int, int]:
        at = int(np.argmin(np.abs(np.log(np.array(STRENGTHS)) - math.log(strength(totals)))))
        return 5 + at, 5 + len(STRENGTHS) + at

    def influence(self, sums: Floats, totals: Floats) -> Floats:
        hits, pull = self._chosen(totals)
        recall = totals[0] / totals[1]
        users, value = totals[4], self._value(totals)
        through = (sums[:, 0] - recall * sums[:, 1]) / totals[1] * (totals[pull] / users)
        return np.asarray((sums[:, hits] + recall * sums[:, pull] - value * sums[:, 4]) / users + through)

    def leverage(self, sums: Floats, totals: Floats) -> Floats:
        return np.asarray(np.maximum(sums[:, 1] / totals[1], sums[:, 4] / totals[4]))


def strength(totals: Floats) -> float:
    """How strongly users are pulled together: the more, the less their recall differs beyond chance.

    >>> round(strength(np.array([10.0, 20.0, 30.0, 100.0])), 6)  # recall .5, mean square .3
    4.0
    """
    recall = float(totals[0] / totals[1])
    square = float(totals[2] / totals[3]) if totals[3] > 0 else recall**2
    spread = square - recall**2
    if not spread > 0:
        return STRENGTHS[-1]
    return min(max((recall - square) / spread, STRENGTHS[0]), STRENGTHS[-1])


@dataclass(frozen=True, slots=True)
class Shrunk(MeanRecall):
    """(m + a R) / (n + a), mean over all users with a judged item; R is the pooled estimate, a fits users' differences.

    Users with few judged relevant items count as nearly R, which itself leans towards users with many relevant items,
    so a part of the bias of `published` stays, or more than that. For comparison (docs/mean-recall.md).

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["Recall@1"], "estimators": [Shrunk()]}
    >>> tr.evaluate(scores, labels, **how).estimates[0].value
    0.5
    """

    info: ClassVar[EstimatorInfo] = describe(
        "shrunk",
        "recall does not go with how many relevant items a user has",
        "users are pulled towards pooled recall, in which those with many relevant items count most",
    )
    purpose: ClassVar[str] = "it pulls the recall of users together"
    users: ClassVar[str] = "users with a judged item, each pulled towards that of all pairs"

    def combine(self, hits: Floats, n: Floats, sample: Sample) -> Smooth:
        shares = [1 / (n + strength) for strength in STRENGTHS]
        columns = [
            sample.expansion * hits,
            sample.expansion * n,
            hits * (hits - 1),
            n * (n - 1),
            np.ones(len(n)),
            *(hits * share for share in shares),
            *(strength * share for strength, share in zip(STRENGTHS, shares, strict=True)),
        ]
        sums = np.where(sample.defined[:, None], np.stack(columns).T, 0.0)
        return Smooth(ShrunkMean(), sums, sample.defined, sample.clusters)
