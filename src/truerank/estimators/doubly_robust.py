"""The doubly robust estimator: a reward model for every candidate, corrected by the weighted errors of shown rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import RefusedError
from truerank.core.estimator import About, Asked, Clipping, Estimator, Exposed, Learned, Learner
from truerank.core.metric import Additive, Metric
from truerank.core.ranking import JudgedChunk, Pool, RankView
from truerank.core.terms import Ratio, Smooth
from truerank.core.wording import option
from truerank.estimators.refusals import LABEL_FREE, additive, estimand, only_sums_or_recall
from truerank.estimators.rewards import GainModel, ItemRates, ListSums, at_rows, list_sums
from truerank.estimators.rows import LOGGED, Rows, check_clip, per_unit
from truerank.metrics.worth import gains_of


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What the reward model says for one metric: of each shown row, and summed over each unit's whole list."""

    at_rows: Floats
    sums: ListSums


@dataclass(frozen=True, slots=True)
class DoublyRobust(Estimator):
    """Σ over all candidates of w ŷ + Σ over shown items of ω w (y - ŷ), mean over users.

    Exactly unbiased for additive metrics if the propensities are the design's own, whatever the reward model ŷ says, as
    long as ŷ was not fitted on the evaluated row; and if ŷ is right, whatever the propensities. Otherwise it is
    unbiased only if Σ w (1 - E[O] / π) (y - ŷ) = 0. Recall is the ratio of two such sums, with 1{rank <= K} and with 1
    for w: pooled recall, consistent; undefined where the second sum is not above 0. With few rows it may lie outside
    0 to 1, which is said.

    >>> import polars as pl, truerank as tr
    >>> from truerank.estimators.rewards import GivenRewards
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> guess = GivenRewards(tr.scores.dense([[0.5, 0.5, 0.0, 0.0]], users=[7], items=[1, 2, 3, 4]))
    >>> log = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1], "propensity": [0.5, 0.25]})
    >>> how = {"exposure": "biased", "metrics": ["DCG@1"], "estimators": [DoublyRobust(guess)]}
    >>> tr.evaluate(scores, log, **how).estimates[0].value  # 0.5 + (1 - 0.5) / 0.5
    1.5
    """

    reward: GainModel = field(default_factory=ItemRates)
    clip: float | None = None

    about: ClassVar[About] = About(
        name="doubly-robust",
        exposures=frozenset({Exposed.BIASED}),
        assumptions=(*LOGGED, "the reward model was not fitted on the rows it is corrected by"),
        ties=LABEL_FREE,
        needs_size=True,
        weighs=True,
        needs_scale=True,
        stands=True,
        predicts=True,
        clipping=Clipping.CHOSEN,
        left_out="have no candidate",
    )

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def refusal(self, context: Metric) -> str | None:
        return only_sums_or_recall(context)

    def estimand(self, asked: Asked, unit: str = "user") -> str:
        return estimand(asked.metric)

    def prepare(self, context: Any) -> tuple[Learner, ...]:
        """The propensities, and the reward model of every metric and clip."""
        models = [
            self.reward.learner(question.metric, clip=self._clip(question), propensity=context.propensity)
            for question in context.asked
        ]
        return tuple(dict.fromkeys(learner for learner in (context.propensity, *models) if learner is not None))

    def terms(
        self, chunk: JudgedChunk, view: RankView, *, asked: Sequence[Asked], learned: Learned, keep_rows: bool = False
    ) -> list[Smooth]:
        questions = [(additive(question.metric), self._clip(question)) for question in asked]
        listed = self._listed(chunk, view, questions, learned)
        return [
            self._corrected(
                Rows.of(chunk, view.ranks, metric, learned, exposed=Exposed.BIASED, clip=clip), metric, foreseen
            )
            for (metric, clip), foreseen in zip(questions, listed, strict=True)
        ]

    def _clip(self, question: Asked) -> float:
        return question.clip if self.clip is None else self.clip

    @staticmethod
    def _corrected(rows: Rows, metric: Additive, foreseen: Foreseen) -> Smooth:
        """What the model foresees of all candidates, and the weighted errors of the rows that were shown."""
        error = rows.weight * (gains_of(metric, rows.log) - foreseen.at_rows)
        listed = foreseen.sums.worth + per_unit(rows.log, error * rows.discount)
        whole = foreseen.sums.gain + per_unit(rows.log, error) if rows.is_recall else np.ones(rows.log.n_units)
        return rows.smooth(Ratio(), [listed, whole])

    def _listed(
        self, chunk: JudgedChunk, view: RankView, questions: Sequence[tuple[Additive, float]], learned: Learned
    ) -> list[Foreseen]:
        """What the reward model says for each metric and clip; every list is ranked once for all of them."""
        log, candidates = chunk.labels, chunk.pools[Pool.CATALOGUE]
        if view.scores is None:
            raise RefusedError("doubly-robust needs the scores of whole lists, not only the ranks of judged items.")
        if candidates.only is None and candidates.n_items != len(log.items):
            raise RefusedError(
                "doubly-robust predicts the label of every candidate, but not all items are known by name. "
                f"Give the catalogue with {option('items FILE')}."
            )
        propensity = learned.facts.get("propensity")
        sources = [self.reward.learner(metric, clip=clip, propensity=propensity) for metric, clip in questions]
        keys = [(self.reward, metric, source) for (metric, _), source in zip(questions, sources, strict=True)]
        new = [key for key in dict.fromkeys(keys) if key not in view.listed]
        predicted = {
            source: self.reward.predicted(log, None if source is None else learned[source])
            for source in dict.fromkeys(source for _, _, source in new)
        }
        at = {source: at_rows(model, log) for source, model in predicted.items()}
        asked = [(metric, predicted[source]) for _, metric, source in new]
        sums = list_sums(view.scores, view, log=log, candidates=candidates, questions=asked) if new else []
        for key, total in zip(new, sums, strict=True):
            view.listed[key] = Foreseen(at[key[2]], total)
        return [view.listed[key] for key in keys]
