"""Doubly robust estimates of impressions: a model of rewards for all that a target would show, corrected by rows."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from truerank.core.arrays import Floats, Ints, sums_by
from truerank.core.errors import InputError
from truerank.core.estimator import (
    Beyond,
    Clipping,
    EstimatorInfo,
    Learned,
    Learner,
    Request,
)
from truerank.core.ids import Keys
from truerank.core.log import Logged
from truerank.core.record import record
from truerank.core.rng import cell_uniforms
from truerank.core.terms import Smooth
from truerank.core.values import CountFrom2, NotNegative, check
from truerank.core.wording import option
from truerank.estimators.cross_fitting import CrossFitted, FoldSums, mean_over_cells, shrunk_means
from truerank.estimators.impressions import Counted, Exposures, Limited, Normaliser, RankedContext
from truerank.estimators.refitting import RankedEstimator
from truerank.estimators.refusals import IMPRESSIONS
from truerank.exposure.policies import logging_policy
from truerank.io.sessions import RankedChunk


class RewardModel(Protocol):
    """Predictions for the rows of a log and for all items that a target would rank."""

    name: ClassVar[str]

    def learners(self, context: RankedContext, reward: str, *, seed: int) -> tuple[Learner, ...]:
        """What must be learned from all sessions."""
        ...

    def columns(self) -> tuple[str, ...]:
        """The columns of the log that it reads."""
        ...

    def predict(self, view: Exposures, reward: str, learned: Learned, *, seed: int) -> tuple[Floats, Floats]:
        """q of each row, and of each item that the target would rank."""
        ...


@record
class ItemMeans:
    """Shrunk means of items, cross-fitted: q = (Σ c + s·mean) / (Σ v + s) over the other folds' rows of an item.

    v is 1 for a viewed row, and P(V | position) for a displayed one of which nobody knows whether it was viewed. Items
    of few views lean towards the mean of all, with the strength of `strength` views. Folds hold whole users, or
    sessions where there are no users.
    """

    folds: CountFrom2 = 5
    strength: NotNegative = 20.0

    name: ClassVar[str] = "item-means"

    def __post_init__(self) -> None:
        check(self)

    def learners(self, context: RankedContext, reward: str, *, seed: int) -> tuple[Learner, ...]:
        needs = () if context.views_known or context.learner is None else (context.learner,)
        return (CrossFitted(self, (reward, seed), needs, context.positions),)

    def tally(self, learner: CrossFitted, chunk: RankedChunk, seed: int, learned: Learned) -> FoldSums:
        (reward, seed), log, clusters = learner.predicts, chunk.log, chunk.clusters()
        if log.logged is Logged.VIEWED:
            views = np.ones(len(log)) if log.viewed is None else log.viewed.astype(np.float64)
        else:
            positions = learned[learner.needs[0]].positions if learner.needs else learner.positions
            views = logging_policy(log, positions).exposure()
        n = len(log.items)
        values = {"reward": (log.item, log.reward(reward).astype(np.float64), n), "views": (log.item, views, n)}
        fold = folds_of(clusters.key, n=self.folds, seed=seed)[clusters.of_row][log.unit]
        return FoldSums.of(values, fold, self.folds, items=log.items)

    def fit(self, tally: FoldSums) -> tuple[Any, Floats]:
        """Items, and q of each in each fold, [folds x items]; the last column serves items that the log never shows."""
        reward, views = tally.of_others("reward"), tally.of_others("views")
        mean = mean_over_cells(reward, views)
        return tally.items, np.hstack([shrunk_means(reward, views, mean, self.strength), mean])

    def columns(self) -> tuple[str, ...]:
        return ()

    def predict(self, view: Exposures, reward: str, learned: Learned, *, seed: int) -> tuple[Floats, Floats]:
        whole = view.target.whole
        if whole is None:
            raise InputError(f"{view.target.name}: the whole list of items is needed.")
        items, quality = learned[CrossFitted(self, (reward, seed))]
        fold = folds_of(view.clusters.key, n=self.folds, seed=seed)[view.clusters.of_row]
        item = items.locate(view.log.items)
        item = np.where(item < 0, len(items), item)
        listed = np.where(whole.item < 0, len(items), item[whole.item] if len(item) else whole.item)
        return quality[fold[view.log.unit], item[view.log.item]], quality[fold[whole.unit], listed]


@record
class PredictionColumn:
    """Predictions of a model of your own, in a column `prediction` of the log and of the target's table.

    They must come from a model that was not fitted on these sessions.
    """

    column: str = "prediction"

    name: ClassVar[str] = "column"

    def learners(self, context: RankedContext, reward: str, *, seed: int) -> tuple[Learner, ...]:
        return ()

    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def predict(self, view: Exposures, reward: str, learned: Learned, *, seed: int) -> tuple[Floats, Floats]:
        log, whole = view.log, view.target.whole
        if self.column not in log.columns or np.isnan(log.columns[self.column]).any():
            raise InputError(f"{log.source}: a column {self.column} with a number in every row is needed.")
        if whole is None or whole.prediction is None:
            raise InputError(f"{view.target.name}: a column {self.column} is needed in the target's table.")
        return log.columns[self.column], whole.prediction


def folds_of(key: Keys, *, n: int, seed: int) -> Ints:
    """A fold for each cluster, by its id alone."""
    chance = cell_uniforms(seed, "folds", key, np.zeros(len(key), dtype=np.uint64))
    return np.minimum((chance * n).astype(np.int64), n - 1)


@record
class RankedDoublyRobust(RankedEstimator):
    """Σ_{a in the target's list} ε q + Σ_{viewed} w (c - q) of each session (Dudík et al. 2011; Oosterhuis 2023).

    Exactly unbiased without a clip where ε0 is right, whatever q, if q was not fitted on the session; little variance
    where q is good. Where every displayed item is logged and views are unknown the second sum is over displayed items,
    of w (c - P(V | r) q). The first sum must run over all that the target would show: over the logged rows alone it
    would miss what was not seen.
    """

    model: RewardModel = field(default_factory=ItemMeans)
    seed: int = 0
    clip: float | None = None
    of: Limited = Limited.RATIO

    info = EstimatorInfo(
        name="doubly-robust",
        exposures=IMPRESSIONS,
        weighs=True,
        clipping=Clipping.CHOSEN,
        beyond=Beyond.PREDICTED,
    )

    @property
    def metric(self) -> Counted:
        assumed = "the reward model was not fitted on the sessions that it predicts"
        return replace(Normaliser.SESSION.counted, assumptions=(assumed,))

    @property
    def columns(self) -> tuple[str, ...]:
        return self.model.columns()

    def refusal(self, context: RankedContext) -> str | None:
        if not context.whole:
            return (
                f"it needs all items that {context.target} would rank; give a table session,item,rank "
                "(or exposure), or use ips."
            )
        if not context.views_known and not context.logging_models:
            return (
                f"views are unknown and no position model says how likely they were; give "
                f"{option('position MODEL')}, or use ips."
            )
        return None

    def estimand(self, request: Request, unit: str = "session") -> str:
        return Normaliser.SESSION.estimand(request.reward, unit)

    def prepare(self, context: RankedContext) -> tuple[Learner, ...]:
        return () if context.reward is None else self.model.learners(context, context.reward, seed=self.seed)

    def make(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        log, target = view.log, view.target
        at_rows, of_list = self.model.predict(view, reward, learned, seed=self.seed)
        expected = np.zeros(log.n_units)
        if target.whole is not None:
            expected = sums_by(target.whole.unit, target.listed() * of_list, n=log.n_units)
        residuals = view.clipped_sums(log.reward(reward) - view.views() * at_rows, None, clips, self.of)
        return residuals.of_clips([view.ratio(expected + residual) for residual in residuals.rows])
