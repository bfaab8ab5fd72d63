"""The ratio to the worth that was judged, times the worth of the whole list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truerank.core.estimator import About, Asked, Estimator, Exposed, Learned
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk, RankView, Ties
from truerank.core.terms import Smooth
from truerank.estimators.sums import LABEL_FREE, UNIFORM, Parts, additive, only_sums, sample_of


@dataclass(frozen=True, slots=True)
class Hajek(Estimator):
    """The ratio Σ (N / N-bar) Σ y w / Σ (N / N-bar) Σ w, over judged items, times the known mean of Σ_{r <= K} w(r).

    y is the label, or the gain of a graded metric: the first factor is then the mean gain per unit of worth, and the
    denominator stays Σ w, which is known for the whole list. Consistent, and much steadier than Horvitz-Thompson at
    small K, where few judged items rank in the top K: chance in how many do cancels.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1]})
    >>> how = {"exposure": "random", "metrics": ["Precision@2"], "estimators": [Hajek()]}
    >>> found = tr.evaluate(scores, labels, **how)
    >>> found.estimates[0].value
    1.0
    """

    about: ClassVar[About] = About(
        name="hajek",
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM, Exposed.DESIGNED}),
        assumptions=(UNIFORM,),
        ties=LABEL_FREE - {Ties.STRICT},  # the worth of a list is known if each rank is taken once
        design=True,
        needs_size=True,
        stands=True,
        left_out="have no judged item",
    )

    def refusal(self, context: Metric) -> str | None:
        return only_sums(context)

    def term(self, chunk: JudgedChunk, view: RankView, question: Asked, learned: Learned, *, keep_rows: bool) -> Smooth:
        metric = additive(question.metric)
        log = chunk.labels
        parts = Parts.of(log, view.ranks, metric)
        sample = sample_of(chunk, view.ranks, learned, usable=parts.defined)
        rows = sample.rows(log, parts.value, parts.worth) if keep_rows else None
        num, den = (sample.sums(log, values) for values in (parts.value, parts.worth))
        # pairs that are not listed are known negatives: the worth of the whole list was judged
        return sample.known_total(num, parts.total if log.complete else den, parts.total, rows=rows)
