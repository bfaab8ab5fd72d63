"""Draws of the same worlds for the mean recall over users: `corrected` and others beside the published mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from truerank.core.estimator import Asked, Estimator, Learned
from truerank.core.ranking import Ranks, RankView
from truerank.core.terms import Terms
from truerank.estimators.weighted import Published
from truerank.metrics.recall import Recall
from truerank.uncertainty.intervals import Population
from truerank_research.estimators.corrected import Corrected
from truerank_research.estimators.curve_messages import check_fit
from truerank_research.estimators.curved_recall import CurvedRecall
from truerank_research.estimators.shrunk import Shrunk
from truerank_research.estimators.weighted import WeightedUsers
from truerank_research.validation.truth.contenders import Contender, ShownRows, published
from truerank_research.validation.truth.drawing import Reported
from truerank_research.validation.truth.known import KnownWorld
from truerank_research.validation.truth.worlds import TruthWorld, named, pairs_of

ESTIMATORS: tuple[Estimator, ...] = (Published(), Corrected(), WeightedUsers(), Shrunk())
MEAN_OF_USERS = Contender("published", "Recall", published, of_users=True)


@dataclass(frozen=True, slots=True)
class MeanRecallWorld:
    """The draws of a dataset of the study, asked for the mean recall over users; each with its intervals."""

    drawn: TruthWorld

    def reported(self, seed: int, run: int) -> Iterator[Reported]:
        """Every value and every difference from the first model; warned where verdicts are taken from it."""
        draw = self.drawn.draw(seed, run)
        chunk, views = draw.chunk(), {model: RankView(ranks_of(draw, model)) for model in draw.world.rank}
        asked = [Asked(Recall(k)) for k in self._cutoffs(draw.world)]
        for estimator in ESTIMATORS:
            found = {
                model: estimator.terms(chunk, view, asked=asked, learned=Learned()) for model, view in views.items()
            }
            for at, question in enumerate(asked):
                terms: dict[str, Terms] = {model: parts[at] for model, parts in found.items()}
                doubted = {
                    model for model, part in terms.items() if isinstance(part, CurvedRecall) and any(check_fit(part))
                }
                alone, apart = Population().spreads(terms, pairs_of(terms), level=0.95)
                for what, spread in named(alone, apart):
                    is_warned = not doubted.isdisjoint(what.split(" - "))
                    yield what, str(question.metric), estimator.about.name, spread, is_warned

    def true_values(self, seed: int) -> dict[tuple[str, str, str], float]:
        """The mean recall over all users with a relevant item, which all of them are to come close to."""
        world = self.drawn.known(seed)
        return {
            (what, str(Recall(k)), estimator.about.name): value
            for k in self._cutoffs(world)
            for what, value in MEAN_OF_USERS.truths(world, k).items()
            for estimator in ESTIMATORS
        }

    def _cutoffs(self, world: KnownWorld) -> list[int]:
        return [k for k in self.drawn.cutoffs if k < world.n_items]


def ranks_of(draw: ShownRows, model: str) -> Ranks:
    """The rank of every shown row; no two items of a user share one."""
    above = draw.world.rank[model][draw.user[:, None], draw.item].ravel().astype(np.float64)
    size = np.full(len(draw.user), float(draw.world.n_items))
    return Ranks(above, np.zeros(len(above)), size, size, np.ones(len(draw.user), dtype=bool))
