"""The inferred AP and nDCG of TREC, for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import Estimator, EstimatorInfo, Exposed, ObservedUnits, Request
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.options import Denominator, Ideal
from truerank.core.ranking import Ranks, Ties
from truerank.core.terms import Smooth, ratio
from truerank.core.values import check
from truerank.estimators.refusals import only_labelled
from truerank.estimators.rows import UNIFORM, Sample, per_unit, total_discount
from truerank.metrics.average_precision import AveragePrecision
from truerank.metrics.dcg import DCG
from truerank.metrics.discounts import expected_discount
from truerank.metrics.ndcg import NDCG
from truerank.metrics.recall import Recall
from truerank_research.estimators import EXPERIMENTAL


class Program(StrEnum):
    """Whose inferred AP it is; the inferred nDCG is of sample_eval alone.

    TREC_EVAL     infAP
    SAMPLE_EVAL   xinfAP
    """

    TREC_EVAL = "trec_eval"
    SAMPLE_EVAL = "sample_eval"


SMOOTHING = 1e-5  # ε of both programs
OUTCOMES = {Program.TREC_EVAL: 2, Program.SAMPLE_EVAL: 3}  # times ε below the line: 1/2 or 1/3 where nothing was judged


@dataclass(frozen=True, slots=True)
class Inferred(Estimator):
    """infAP, xinfAP, infNDCG of each user as TREC's programs have them; means over users with a judged relevant item.

    The programs count a topic without a judged relevant document as 0.

    infAP (Yilmaz and Aslam 2006; the formula of trec_eval, every candidate being in the pool): the mean over judged
    relevant items, at rank r, of 1/r + (r - 1)/r · (a + ε) / (a + b + 2ε), with a relevant and b other judged items
    above; items below K add 0. xinfAP (Yilmaz, Kanoulas and Aslam 2008; `program=sample_eval`) is the same in the one
    stratum that uniform draws have, but for 3ε below the line. infNDCG (the same paper and program): the places of the
    list times the mean of y / log2(r + 1) over its judged items, over the DCG of an ideal list of as many relevant
    items as the judged ones stand for, rounded; 0 where no item of the list was judged.
    TREC judges hundreds of documents per topic. With few judged items per user most users are left out, and those with
    few relevant items first: as means over users all are biased, as `published` is (measured in docs/mean-recall.md).

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["AP@4(denominator=positives)"], "estimators": [Inferred()]}
    >>> round(tr.evaluate(scores, labels, **how).estimates[0].value, 4)  # (1 + 1/3 + 2/3) / 2
    1.0
    """

    program: Program = Program.TREC_EVAL

    info: ClassVar[EstimatorInfo] = EstimatorInfo(
        name="inferred",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=(UNIFORM,),
        ties=frozenset({Ties.EXPECTED, Ties.RANDOM}),
        needs_size=True,
        left_out="have no judged relevant item",
        caution=f"{EXPERIMENTAL}: for comparison with TREC: a mean over users with a judged relevant item, who have "
        "more relevant items than others; on KuaiRec (popularity, 20 and 80 judged items) infAP was 15 to 16% too low, "
        "xinfAP 24 to 29%, infNDCG@50 17 to 52%; use pairs or post-normalised",
    )

    def __post_init__(self) -> None:
        check(self)

    def refusal(self, context: Metric) -> str | None:
        if isinstance(context, AveragePrecision):
            if context.denominator is Denominator.POSITIVES:
                return None
            return "infAP divides by all relevant items; use AP with denominator=positives."
        if isinstance(context, NDCG):
            if context.graded or context.ideal is not Ideal.POSITIVES:
                return "infNDCG is here for binary labels and their ideal order; use nDCG without gains."
            return None
        return only_labelled(context) or "it infers AP and nDCG alone; use AP or nDCG."

    def estimand(self, request: Request, unit: str = "user") -> str:
        precision = {Program.TREC_EVAL: "infAP", Program.SAMPLE_EVAL: "xinfAP"}[self.program]
        name = precision if isinstance(request.metric, AveragePrecision) else "infNDCG"
        return f"mean {name} over users with a judged relevant item, each as TREC has it; not mean {request.metric}"

    def term(self, units: ObservedUnits, request: Request) -> Smooth:
        log, ranks, metric = units.log, units.ranks, request.metric
        sample = Sample.uniform(units.chunk, ranks, rate=units.learned.facts.get("rate"))
        defined = sample.defined & (per_unit(log, log.label) > 0)
        values = (
            inferred_precision(log, ranks, metric.k, outcomes=OUTCOMES[self.program])
            if isinstance(metric, AveragePrecision)
            else _inferred_gain(log, ranks, metric, sample)
        )
        return ratio(
            np.where(defined, values, 0.0), defined.astype(np.float64), defined=defined, clusters=units.chunk.clusters
        )


def inferred_precision(log: Log, ranks: Ranks, k: int, *, outcomes: int) -> Floats:
    """infAP of every unit; 0 where no judged item is relevant. Equal scores take the middle of their places."""
    rank = np.where(np.isfinite(ranks.above), ranks.above + 1 + ranks.tied / 2, np.inf)
    order = np.lexsort((rank, log.unit))
    unit, label, place = log.unit[order], log.label[order], rank[order]
    first = np.append(True, np.diff(unit) != 0)[: len(unit)]
    group = np.append(True, (np.diff(unit) != 0) | (np.diff(np.where(np.isfinite(place), place, 0.0)) != 0))[
        : len(unit)
    ]
    start = np.maximum.accumulate(np.where(first, np.arange(len(unit)), 0))
    same = np.maximum.accumulate(np.where(group, np.arange(len(unit)), 0))
    running = np.concatenate([[0.0], np.cumsum(label)])
    listed = np.isfinite(place) & (place <= k)
    at = np.where(listed, place, 1.0)
    relevant = running[same] - running[start]
    judged = at - 1 if log.complete else (same - start).astype(np.float64)  # where all is known, also what has no row
    share = (relevant + SMOOTHING) / (judged + outcomes * SMOOTHING)
    worth = np.where(listed & (label > 0), np.where(at == 1, 1.0, 1 / at + (at - 1) / at * share), 0.0)
    total, n = (np.bincount(unit, weights=each, minlength=log.n_units) for each in (worth, label))
    return np.asarray(np.divide(total, n, out=np.zeros(log.n_units), where=n > 0))


def _inferred_gain(log: Log, ranks: Ranks, metric: NDCG, sample: Sample) -> Floats:
    dcg, inside = DCG(metric.k, discount=metric.discount), Recall(metric.k)
    places = total_discount(inside, ranks)
    gain = per_unit(log, log.label * expected_discount(dcg, ranks))
    judged = places if log.complete else per_unit(log, expected_discount(inside, ranks))
    mean = np.divide(gain, judged, out=np.zeros(len(gain)), where=judged > 0)
    ideal = np.concatenate([[0.0], np.cumsum(dcg.rank_discount(np.arange(1.0, metric.k + 1)))])
    stands_for = np.divide(sample.n_candidates, sample.n_labelled, out=np.zeros(len(gain)), where=sample.n_labelled > 0)
    number = np.floor(stands_for * per_unit(log, log.label) + 0.5)
    best = ideal[np.minimum(number, metric.k).astype(np.int64)]
    return np.asarray(np.divide(places * mean, best, out=np.zeros(len(mean)), where=best > 0))
