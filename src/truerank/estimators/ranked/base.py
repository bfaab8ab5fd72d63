"""The base classes of estimators for ranked logs: (RankedChunk, Exposures) -> Terms per session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Floats
from truerank.core.estimator import Asked, Estimator, Learned, Learner
from truerank.core.terms import Form, Smooth, Terms, smooth
from truerank.estimators.ranked.clips import Limited
from truerank.estimators.ranked.exposures import Exposures, Refits, by_reward, total_of
from truerank.estimators.ranked.normalisers import Counted
from truerank.estimators.ranked.refitting import Totals, lists_outside, place_counts, refitted, units_outside
from truerank.estimators.rows import Column
from truerank.io.impressions import RankedChunk


class RankedEstimator(Estimator):
    """How logged sessions represent those of another policy; a new one writes `make`.

    `clip` is where its weights are cut; None where the question says.
    """

    __slots__ = ()

    clip: float | None

    @property
    def metric(self) -> Counted:
        """What it counts."""
        raise NotImplementedError

    def prepare(self, context: Any) -> tuple[Learner, ...]:
        return ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the log that it reads, beside those of every log."""
        return ()

    def terms(
        self, chunk: RankedChunk, view: Exposures, *, asked: Sequence[Asked], learned: Learned, keep_rows: bool = False
    ) -> list[Terms]:
        def make(view: Exposures) -> list[Smooth]:
            return by_reward(asked, lambda reward, clips: self.make(view, reward, clips, learned))

        def count(view: Exposures, refits: Refits, units: Bools) -> list[Totals]:
            return by_reward(asked, lambda reward, clips: self.totals_without(view, refits, units, reward, clips))

        return refitted(view, make, count if self.counted else None)

    def make(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        """The terms of one reward for each clip."""
        raise NotImplementedError

    @property
    def counted(self) -> bool:
        """Whether its totals without a group of clusters follow from counts of places (`totals_without`)."""
        return False

    def totals_without(self, view: Exposures, refits: Refits, units: Bools, reward: str, clips: Floats) -> list[Totals]:
        """For each clip the totals [groups x columns] of these units outside each group, and what rounding left."""
        raise NotImplementedError


class WeightedImpressions(RankedEstimator):
    """An estimator that is a form of weighted sums over the rows of sessions.

    A row's gain is its reward, its discount how likely the target's place of the item is viewed, its weight one over
    how likely its logged place is; their product is what a clip limits.
    """

    __slots__ = ()

    of: Limited

    def columns_of_form(self) -> tuple[Form, tuple[Column, ...]]:
        """The form of the estimate, and the columns that it takes; the first is the gain."""
        raise NotImplementedError

    @property
    def counted(self) -> bool:
        return True

    def make(self, view: Exposures, reward: str, clips: Floats, learned: Learned) -> list[Smooth]:
        form, columns = self.columns_of_form()
        if len(columns) == 2 and columns[1] is not Column.DISCOUNT:
            return view.reward_ratios(reward, clips, self.of, _known(view, columns[1]))
        rewards = view.rewards(reward, clips, self.of)
        weights = view.discounts(clips, self.of)
        known = [_known(view, column) for column in columns[2:]]
        pairs = list(zip(rewards.at, weights.at, strict=True))
        terms = {
            (gain, weight): smooth(
                form,
                (rewards.rows[gain], weights.rows[weight], *known),
                view.target.defined(),
                view.clusters,
                exact=False,
                rows=None,
                weighting=None,
            )
            for gain, weight in set(pairs)
        }
        return [terms[pair] for pair in pairs]

    def totals_without(self, view: Exposures, refits: Refits, units: Bools, reward: str, clips: Floats) -> list[Totals]:
        _, columns = self.columns_of_form()
        by_column = [self._outside(column, view, refits, units, reward=reward, clips=clips) for column in columns]
        return [
            (
                np.stack([total[:, clip] for total, _ in by_column], axis=1),
                np.stack([rest[:, clip] for _, rest in by_column], axis=1),
            )
            for clip in range(len(clips))
        ]

    def _outside(
        self, column: Column, view: Exposures, refits: Refits, units: Bools, *, reward: str, clips: Floats
    ) -> Totals:
        """The totals of one column outside each group, [groups x clips], and what rounding left."""
        if column is Column.GAIN:
            values = view.log.reward(reward)
            return place_counts(view, refits, view.rewarded(reward), values, units).totals(refits, clips, self.of)
        if column is Column.DISCOUNT:
            return place_counts(view, refits, view.viewed_rows(), None, units).totals(refits, clips, self.of)
        if column is Column.TOTAL:
            total, rest = lists_outside(view, refits, units)
        else:
            total = units_outside(refits, units, view.n_viewed() if column is Column.VIEWS else None)
            rest = np.zeros_like(total)
        return np.repeat(total[:, None], len(clips), axis=1), np.repeat(rest[:, None], len(clips), axis=1)


def _known(view: Exposures, column: Column) -> Floats:
    """What is known of units, whatever the weights of rows."""
    if column is Column.TOTAL:
        return total_of(view)
    return view.n_viewed() if column is Column.VIEWS else np.ones(view.log.n_units)
