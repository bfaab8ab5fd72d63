"""Doubly robust estimates: a reward model for what the target shows, corrected by what was seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from truerank.core.arrays import Floats, Ints, sums_by
from truerank.core.chance import cell_uniforms
from truerank.core.errors import InputError
from truerank.core.estimator import About, Asked, Beyond, Clipping, Exposed, Groups, Learned, Learner
from truerank.core.ids import Ids, Keys
from truerank.core.terms import Smooth
from truerank.core.wording import option
from truerank.estimators.cross_fitting import FoldSums, shrunk_means
from truerank.estimators.ranked.base import RankedEstimator
from truerank.estimators.ranked.clips import Limited
from truerank.estimators.ranked.exposures import Exposures
from truerank.estimators.ranked.normalisers import Counted, Normaliser, RankedContext
from truerank.exposure.policies.policies import logging_policy
from truerank.exposure.positions.position_models import Positions
from truerank.io.impressions import Impressions, Logged, RankedChunk


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


@dataclass(frozen=True, slots=True)
class ItemMeans:
    """Shrunk means of items, cross-fitted: q = (Σ c + s·mean) / (Σ v + s) over the other folds' rows of an item.

    v is 1 for a viewed row, and P(V | position) for a displayed one of which nobody knows whether it was viewed. Items
    of few views lean towards the mean of all, with the strength of `strength` views. Folds hold whole users, or
    sessions where there are no users.
    """

    folds: int = 5
    strength: float = 20.0

    name: ClassVar[str] = "item-means"

    def __post_init__(self) -> None:
        if self.folds < 2 or self.strength < 0:
            raise InputError(
                f"{self.folds} folds, strength {self.strength:g}; expected at least 2 folds and a strength from 0."
            )

    def learners(self, context: RankedContext, reward: str, *, seed: int) -> tuple[Learner, ...]:
        needs = () if context.views_known or context.learner is None else (context.learner,)
        return (ItemMeansLearner(self, reward, seed, positions=context.positions, needs=needs),)

    def columns(self) -> tuple[str, ...]:
        return ()

    def predict(self, view: Exposures, reward: str, learned: Learned, *, seed: int) -> tuple[Floats, Floats]:
        whole = view.target.whole
        if whole is None:
            raise InputError(f"{view.target.name}: the whole list of items is needed.")
        found: FoldedMeans = learned[ItemMeansLearner(self, reward, seed)]
        fold = folds_of(view.clusters.key, n=self.folds, seed=seed)[view.clusters.of_row]
        item = found.places(view.log.items)
        listed = np.where(whole.item < 0, len(found.items), item[whole.item] if len(item) else whole.item)
        return found.quality[fold[view.log.unit], item[view.log.item]], found.quality[fold[whole.unit], listed]


@dataclass(frozen=True, slots=True)
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


# ------------------------------------------------------------------------------------------------------------- learning


@dataclass(frozen=True, slots=True, eq=False)
class FoldedMeans:
    """q of each item in each fold, [folds x items]; the last column serves items that the log never shows."""

    items: Ids
    quality: Floats

    def places(self, items: Ids) -> Ints:
        """Where each of these items stands."""
        at = self.items.locate(items)
        return np.where(at < 0, len(self.items), at)


@dataclass(frozen=True, slots=True)
class ItemMeansLearner:
    """Learns the means of items of one reward in each fold; known by model, reward and seed alone."""

    model: ItemMeans
    reward: str
    seed: int
    positions: Positions | None = field(default=None, compare=False)
    needs: tuple[Learner, ...] = field(default=(), compare=False)
    refitted: bool = field(default=False, compare=False)

    def tally(self, chunk: RankedChunk, *, groups: Groups, learned: Learned) -> FoldSums:
        log, n, clusters = chunk.log, self.model.folds, chunk.clusters()
        fold = folds_of(clusters.key, n=n, seed=self.seed)[clusters.of_row][log.unit]
        values = {
            "reward": (log.item, log.reward(self.reward).astype(np.float64)),
            "views": (log.item, self._seen(log, learned)),
        }
        return FoldSums.of(values, fold, n, dict.fromkeys(values, len(log.items)), items=log.items)

    def _seen(self, log: Impressions, learned: Learned) -> Floats:
        if log.logged is Logged.VIEWED:
            return np.ones(len(log)) if log.viewed is None else log.viewed.astype(np.float64)
        fitted: Any = self.needs[0] if self.needs else None
        return logging_policy(log, self.positions if fitted is None else learned[fitted].positions).exposure()

    def fit(self, tally: FoldSums) -> FoldedMeans:
        reward, views = tally.of_others("reward"), tally.of_others("views")
        total = views.sum(axis=1, keepdims=True)
        mean = np.divide(reward.sum(axis=1, keepdims=True), total, out=np.zeros_like(total), where=total > 0)
        means = shrunk_means(reward, views, mean, self.model.strength)
        items = tally.items
        if items is None:
            raise TypeError("the tally of a ranked log has its items")
        return FoldedMeans(items, np.hstack([means, mean]))


@dataclass(frozen=True, slots=True)
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

    about: ClassVar[About] = About(
        name="doubly-robust",
        exposures=frozenset({Exposed.RANKED}),
        assumptions=("the reward model was not fitted on the sessions that it predicts",),
        weighs=True,
        clipping=Clipping.CHOSEN,
        beyond=Beyond.PREDICTED,
    )

    @property
    def metric(self) -> Counted:
        return Normaliser.SESSION.counted

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

    def estimand(self, asked: Asked, unit: str = "session") -> str:
        return f"mean {asked.reward} {Normaliser.SESSION.words(unit)} had the target been shown"

    def prepare(self, context: RankedContext) -> tuple[Learner, ...]:
        return () if context.reward is None else self.model.learners(context, context.reward, seed=self.seed)

    def make(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        log, target = view.log, view.target
        of_row, of_list = self.model.predict(view, reward, learned, seed=self.seed)
        left = log.reward(reward) - seen_share(view) * of_row

        expected = np.zeros(log.n_units)
        if target.whole is not None:
            expected = sums_by(target.whole.unit, target.listed() * of_list, n=log.n_units)
        one = np.ones(log.n_units)
        residuals = view.clipped_sums(lambda rows: left[rows], None, clips, self.of)
        return residuals.of_clips([view.ratio(expected + residual, one) for residual in residuals.rows])


def seen_share(view: Exposures) -> Floats:
    """How much of a view each row is: 1 or 0 where that is known, else its probability."""
    if not view.views_known:
        return view.logging.exposure()
    viewed = view.log.viewed
    return np.ones(len(view.log)) if viewed is None else viewed.astype(np.float64)
