"""What the hit rate must lie between: bounds from how many hits there are, and how many pairs of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from truerank.core.arrays import Floats, sums_by
from truerank.core.estimator import About, Asked, Exposed, Learned, Learner
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk, RankView, Ties
from truerank.core.terms import Smooth
from truerank.core.values import text_of
from truerank.estimators.judged.pairs import pair_expansion
from truerank.estimators.sums import LABEL_FREE, UNIFORM, UniformSample, only_labelled
from truerank.metrics.hit_rate import HitRate
from truerank.metrics.worth import Positives


@dataclass(frozen=True, slots=True)
class HitBound:
    """A bound of the share of users with a hit from A = Σ hits / U and B = Σ pairs of hits / U.

    At most A - 2 B / K; at least 2 A / (j + 1) - 2 B / (j (j + 1)) for every whole j, here 1 + ⌊2 B / A⌋, which gives
    the highest (Dawson and Sankoff 1967). For a user with M of K hits each is a line in M and M (M - 1) / 2 that is 0
    at 0, and not below (above) 1 at M = 1 ... K.

    >>> totals = np.array([[3.0, 1.0, 4.0]])  # of 4 users two have 1 hit and 2 hits, two have none
    >>> HitBound(10, upper=True).values(totals).round(3).tolist(), HitBound(10, upper=False).values(totals).tolist()
    ([0.7], [0.5])
    """

    k: int
    upper: bool
    columns: ClassVar[tuple[str, ...]] = ("hits", "pairs", "units")

    def values(self, totals: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = totals[:, :2] / totals[:, 2:]
        return np.array([math.nan if math.isnan(a) else self._at(a, b) @ (a, b) for a, b in mean.tolist()])

    def _at(self, hits: float, pairs: float) -> Floats:
        """What a hit and a pair count; any j gives a bound, so that it is held in the influence."""
        if self.upper:
            return np.array([1.0, -2.0 / self.k])
        j = min(max(1.0 + math.floor(2.0 * pairs / hits + 1e-9) if hits > 0 else 1.0, 1.0), float(self.k))
        return np.array([2.0 / (j + 1.0), -2.0 / (j * (j + 1.0))])

    def influence(self, sums: Floats, totals: Floats) -> Floats:
        mean = totals[:2] / totals[2]
        slope = self._at(*mean.tolist())
        # column by column: the same bits for a row whatever the others
        line = sums[:, 0] * float(slope[0]) + sums[:, 1] * float(slope[1]) - sums[:, 2] * float(slope @ mean)
        return np.asarray(line / totals[2])

    def leverage(self, sums: Floats, totals: Floats) -> Floats:
        return np.asarray(sums[:, 2] / totals[2])


def _terms(
    chunk: JudgedChunk, view: RankView, asked: Sequence[Asked], learned: Learned, *, upper: bool
) -> list[Smooth]:
    log = chunk.labels
    sample = UniformSample.of(chunk, view.ranks, rate=learned.facts.get("rate"))
    pair = pair_expansion(sample)
    sample = replace(sample, defined=sample.defined & ~np.isnan(pair))
    positives = Positives.of(log, view.ranks, gain=log.label)
    found = []
    for asking in asked:
        hits, pairs = hits_and_pairs(positives, asking.metric.k)
        columns = (sample.expansion * hits, np.where(sample.defined, pair, 0.0) * pairs, np.ones(len(hits)))
        sums = np.where(sample.defined[:, None], np.stack(columns).T, 0.0)
        form = HitBound(asking.metric.k, upper)
        found.append(Smooth(form, sums, sample.defined, chunk.clusters, exact=sample.exact))
    return found


def hits_and_pairs(positives: Positives, k: int) -> tuple[Floats, Floats]:
    """How many relevant items of each unit are in the list, and how many pairs of them, expected over tie orders.

    Of t candidates with one score c are in the list: one is with probability c / t, two are with that of c (c - 1) /
    (t (t - 1)), and those of other scores do not matter to them.
    """
    g, n = positives.groups(), len(positives.count)
    inside = np.clip(k - g.above, 0.0, g.size)
    each = g.positives * inside / g.size
    both = np.divide(inside * (inside - 1), g.size * (g.size - 1), out=np.zeros(len(each)), where=g.size > 1)
    within = g.positives * (g.positives - 1) * both
    hits = sums_by(g.unit, each, n=n)
    return hits, (hits * hits - sums_by(g.unit, each * each, n=n) + sums_by(g.unit, within, n=n)) / 2


def _only_hit_rate(metric: Metric) -> str | None:
    return (
        None if isinstance(metric, HitRate) else only_labelled(metric) or "it bounds the hit rate alone; use HitRate."
    )


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A lower bound of the hit rate: no user has a hit unless there are hits, and pairs of them are hits of one user.

    Σ hits and Σ pairs of hits are expanded without bias; a bound is a line in both (`HitBound`). The hit rate itself
    has no unbiased form.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[2.0, 1], [2, 1]], users=[7, 8], items=[1, 2])}
    >>> labels = pl.DataFrame({"user": [7, 7, 8, 8], "item": [1, 2, 1, 2], "label": [1, 0, 0, 1]})
    >>> how = {"exposure": "random", "metrics": ["HitRate@1"], "estimators": ["at-least", "at-most"]}
    >>> [each.value for each in tr.evaluate(scores, labels, **how).estimates]
    [0.5, 0.5]
    """

    about: ClassVar[About] = About(
        name="at-least",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=(UNIFORM,),
        ties=LABEL_FREE - {Ties.STRICT},
        needs_size=True,
        left_out="have fewer than two judged items",
        caution="a bound, not the hit rate: two models whose bounds differ need not differ in hit rate",
    )

    __str__ = text_of

    def refusal(self, context: Metric) -> str | None:
        return _only_hit_rate(context)

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        return f"a lower bound of mean {asked.metric} over users"

    def prepare(self, context: Any) -> tuple[Learner, ...]:
        return ()

    def terms(
        self,
        chunk: JudgedChunk,
        view: RankView,
        *,
        asked: Sequence[Asked],
        learned: Learned,
        keep_rows: bool = False,
    ) -> list[Smooth]:
        return _terms(chunk, view, asked, learned, upper=False)


@dataclass(frozen=True, slots=True)
class AtMost:
    """An upper bound of the hit rate, from the same sums as `at-least`.

    >>> HitBound(1, upper=True).values(np.array([[1.0, 0.0, 2.0]])).tolist()  # with one place a hit is a hit
    [0.5]
    """

    about: ClassVar[About] = About(
        name="at-most",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=(UNIFORM,),
        ties=LABEL_FREE - {Ties.STRICT},
        needs_size=True,
        left_out="have fewer than two judged items",
        caution="a bound, not the hit rate: two models whose bounds differ need not differ in hit rate",
    )

    __str__ = text_of

    def refusal(self, context: Metric) -> str | None:
        return _only_hit_rate(context)

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        return f"an upper bound of mean {asked.metric} over users"

    def prepare(self, context: Any) -> tuple[Learner, ...]:
        return ()

    def terms(
        self,
        chunk: JudgedChunk,
        view: RankView,
        *,
        asked: Sequence[Asked],
        learned: Learned,
        keep_rows: bool = False,
    ) -> list[Smooth]:
        return _terms(chunk, view, asked, learned, upper=True)
