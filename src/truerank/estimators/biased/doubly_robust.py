"""The doubly robust estimator: a reward model for every candidate, corrected by the weighted errors of shown rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import RefusedError
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Candidates, Pool, Ranks, Scores, Ties
from truerank.core.terms import Terms
from truerank.estimators.biased.propensity import (
    ASSUMED,
    Rows,
    check_clip,
    estimand,
    inverse,
    only_sums_or_recall,
    propensity_of,
    weigh,
)
from truerank.estimators.biased.rewards import ItemRates, ListSums, RewardModel, at_rows, list_sums
from truerank.estimators.sums import LABEL_FREE, additive
from truerank.exposure.propensities import Fitted
from truerank.metrics.gains import gains_of


@dataclass(frozen=True, slots=True)
class Listed:
    """What the reward model says for one metric: of each shown row, and summed over each unit's whole list."""

    at_rows: Floats
    sums: ListSums


@dataclass(frozen=True, slots=True)
class DoublyRobust:
    """Σ over all candidates of w ŷ + Σ over shown items of ω w (y - ŷ), mean over users.

    Exactly unbiased for additive metrics if the propensities are the design's own, whatever the reward model ŷ says, as
    long as ŷ was not fitted on the evaluated row; and if ŷ is right, whatever the propensities. Otherwise it is
    unbiased only if Σ w (1 - E[O] / π) (y - ŷ) = 0. Recall is the ratio of two such sums, with 1{rank <= K} and with 1
    for w: pooled recall, consistent; undefined where the second sum is not above 0. With few rows it may lie outside
    0 to 1, which is said.

    >>> import polars as pl, truerank as tr
    >>> from truerank.estimators.biased.rewards import GivenRewards
    >>> scores = {"m": tr.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> guess = GivenRewards(tr.dense([[0.5, 0.5, 0.0, 0.0]], users=[7], items=[1, 2, 3, 4]))
    >>> log = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 1], "propensity": [0.5, 0.25]})
    >>> how = {"exposure": tr.BiasedExposure(), "metrics": [tr.DCG(1)], "estimators": [DoublyRobust(guess)]}
    >>> tr.evaluate(scores, log, **how).estimates[0].value  # 0.5 + (1 - 0.5) / 0.5
    1.5
    """

    reward: RewardModel = field(default_factory=ItemRates)
    clip: float = math.inf
    fitted: Fitted | None = field(default=None, compare=False, repr=False)
    listed: Mapping[Metric, Listed] | None = field(default=None, compare=False, repr=False)
    name: ClassVar[str] = "doubly-robust"
    pool: ClassVar[Pool] = Pool.CATALOGUE
    complete: ClassVar[bool] = False
    ties: ClassVar[frozenset[Ties]] = LABEL_FREE
    design: ClassVar[bool] = False
    needs_size: ClassVar[bool] = True
    biased: ClassVar[bool] = True
    left_out: ClassVar[str] = "have no candidate"
    assumptions: ClassVar[tuple[str, ...]] = (
        *ASSUMED,
        "the reward model was not fitted on the rows it is corrected by",
    )

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def refusal(self, metric: Metric) -> str | None:
        return only_sums_or_recall(metric)

    def estimand(self, metric: Metric) -> str:
        return estimand(metric)

    def bound(
        self,
        scores: Scores,
        log: Log,
        candidates: Candidates,
        *,
        metrics: Sequence[Metric],
        ties: Ties,
        seed: int,
        threads: int,
        name: str,
    ) -> DoublyRobust:
        """The same for one model: with the reward model's sums over that model's lists."""
        if candidates.only is None and candidates.n_items != len(log.items):
            raise RefusedError(
                "doubly-robust predicts the label of every candidate, but not all items are known by name. "
                "Give the catalogue with --items FILE."
            )
        weight = inverse(propensity_of(log, self.fitted), self.clip)
        predicted = [
            self.reward.predict(log, gain=gains_of(metric, log), weight=weight, seed=seed) for metric in metrics
        ]
        questions = [(additive(metric), each) for metric, each in zip(metrics, predicted, strict=True)]
        sums = list_sums(scores, log, candidates, questions, ties=ties, seed=seed, threads=threads, name=name)
        listed = {
            metric: Listed(at_rows(each, log), total)
            for metric, each, total in zip(metrics, predicted, sums, strict=True)
        }
        return replace(self, listed=listed)

    def terms(self, log: Log, ranks: Ranks, *, metric: Metric, keep_rows: bool = False) -> Terms:
        if self.listed is None or metric not in self.listed:
            raise RefusedError("doubly-robust needs a model's whole lists; call it through evaluate, or bind it first.")
        known = self.listed[metric]
        rows = Rows.of(log, ranks, additive(metric))
        error = gains_of(metric, log) - known.at_rows
        # the row adds gain x worth to the numerator; what the model foresaw of it is taken back
        num = error * rows.hit
        return weigh(
            log,
            rows,
            self.clip,
            self.fitted,
            num=num,
            den=error if rows.ratio else np.zeros(len(log)),
            fixed_num=known.sums.worth,
            fixed_den=known.sums.gain if rows.ratio else np.ones(log.n_units),
        )
