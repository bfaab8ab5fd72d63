"""How models look at a chunk of judged rows: where each ranks them, and what is counted of its lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Floats
from truerank.core.estimator import Estimator, Learned
from truerank.core.metric import Additive
from truerank.core.ranking import JudgedChunk, Pool, Ranks, RankView, TopLists
from truerank.estimators.listed_predictions import PredictionBalance
from truerank.evaluation.measure import ByPlace
from truerank.evaluation.question import Tallies
from truerank.inference.balance import Balance
from truerank.metrics.worth import relevant

BalanceOf = Callable[[JudgedChunk, Ranks, Additive], tuple[Balance, Floats]]


@dataclass(frozen=True, slots=True, eq=False)
class JudgedSight:
    """The ranks of a chunk's labels for one model, within every pool that an estimator asks for."""

    model: str
    chunk: JudgedChunk
    views: Mapping[Pool, RankView]
    cutoffs: frozenset[tuple[Pool, int]]
    checked: tuple[tuple[Pool, Additive], ...] = ()  # whose balance is to be known
    balance: BalanceOf | None = None

    def view(self, estimator: Estimator, learned: Learned) -> RankView:
        return self.views[estimator.about.pool]

    def tallies(self) -> Tallies:
        first, labels = next(iter(self.views.values())).ranks, self.chunk.labels
        positive = relevant(labels) & first.scored[labels.user]
        counted: dict[tuple[Any, ...], Any] = {
            (self.model, "positive"): int(np.count_nonzero(positive)),
            (self.model, "never"): int(np.count_nonzero(positive & np.isinf(first.above))),
            (self.model, "tied"): int(np.count_nonzero(first.tied[positive] > 0)),
            (self.model, "unscored"): self._users(~first.scored),
        }
        for pool, cutoff in self.cutoffs:
            ranks = self.views[pool].ranks
            # the number of candidates may be unknown
            short = ranks.scored & (ranks.n_recommended < cutoff) & ~(ranks.n_recommended >= ranks.n_candidates)
            counted[self.model, "short", pool, cutoff] = self._users(short)
            for lists in (each for each in self.views[pool].listed.values() if isinstance(each, TopLists)):
                counted[self.model, "cut", pool, cutoff] = self._users(lists.top(cutoff).split)
        for view in self.views.values():
            for predicted in (each for each in view.listed.values() if isinstance(each, PredictionBalance)):
                counted[self.model, "predictions", predicted.kind, predicted.metric] = predicted
        return counted if self.balance is None else counted | self._balances(self.balance)

    def _balances(self, balance: BalanceOf) -> dict[tuple[Any, ...], Any]:
        counted: dict[tuple[Any, ...], Any] = {}
        for pool, metric in self.checked:
            found, stand_for = balance(self.chunk, self.views[pool].ranks, metric)
            some = stand_for > 0
            counted[self.model, "balance", pool, metric] = found
            counted[self.model, "stand-for", pool, metric] = ByPlace(self.chunk.unit[some], stand_for[some])
        return counted

    def _users(self, flag: Bools) -> ByPlace:
        """One for each of these users."""
        return ByPlace(self.chunk.unit[flag], np.ones(np.count_nonzero(flag)))
