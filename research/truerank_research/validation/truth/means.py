"""Draws of the same worlds for the mean recall over users: `corrected` and others beside the published mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from truerank.core.estimator import Asked, Estimator, Learned
from truerank.core.ranking import Ranks, RankView
from truerank.core.terms import Terms
from truerank.estimators.weighted import Published
from truerank.metrics.recall import Recall
from truerank.uncertainty.intervals import Population
from truerank_research.estimators.corrected import Corrected
from truerank_research.estimators.curve_messages import doubts
from truerank_research.estimators.curved_recall import CurvedRecall
from truerank_research.estimators.shrunk import Shrunk
from truerank_research.estimators.weighted import WeightedUsers
from truerank_research.validation.calibration.said import Said
from truerank_research.validation.truth.contenders import Contender, ShownRows, published
from truerank_research.validation.truth.known import FIRST
from truerank_research.validation.truth.worlds import CUTOFFS, TruthWorld

MOST_DRAWS = 500  # a model is fitted for every recommender and cut-off
ESTIMATORS: tuple[Estimator, ...] = (Published(), Corrected(), WeightedUsers(), Shrunk())
MEAN_OF_USERS = Contender("published", "Recall", published, of_users=True)


@dataclass(frozen=True, slots=True)
class MeanRecallWorld:
    """The draws of a world of the study, asked for the mean recall over users; each with its intervals."""

    source: str
    judged: int
    cutoffs: tuple[int, ...] = CUTOFFS
    folder: Path | None = field(default=None, repr=False)  # of real data: its place does not matter

    @classmethod
    def of(cls, world: TruthWorld) -> MeanRecallWorld:
        return cls(world.source, world.judged, world.cutoffs, world.folder)

    @property
    def drawn(self) -> TruthWorld:
        return TruthWorld(self.source, self.judged, self.cutoffs, self.folder)

    @property
    def name(self) -> str:
        return f"{self.drawn.name}, mean recall"

    def n_draws(self, asked: int) -> int:
        return min(asked, MOST_DRAWS)

    def said(self, seed: int, run: int) -> Iterator[Said]:
        """Every value and every difference from the first model; warned where verdicts are taken from it."""
        draw = self.drawn.draw(seed, run)
        chunk, views = draw.chunk(), {model: RankView(ranks_of(draw, model)) for model in draw.world.rank}
        asked = [Asked(Recall(k)) for k in self.cutoffs if k < draw.world.n_items]
        for estimator in ESTIMATORS:
            found = {
                model: estimator.terms(chunk, view, asked=asked, learned=Learned()) for model, view in views.items()
            }
            for at, question in enumerate(asked):
                terms: dict[str, Terms] = {model: parts[at] for model, parts in found.items()}
                curved = {model: part for model, part in terms.items() if isinstance(part, CurvedRecall)}
                doubted = {model: model in curved and bool(doubts(curved[model])) for model in terms}
                pairs = [(model, FIRST) for model in terms if model != FIRST]
                alone, apart = Population().spreads(terms, pairs, level=0.95)
                metric, name = str(question.metric), estimator.about.name
                for model, one in alone.items():
                    yield run, model, metric, name, one.value, one.low, one.high, 0, doubted[model]
                for (model, first), both in apart.items():
                    what, doubt = f"{model} - {first}", doubted[model] or doubted[first]
                    yield run, what, metric, name, both.value, both.low, both.high, 0, doubt

    def true_values(self, seed: int) -> dict[tuple[str, str, str], float]:
        """The mean recall over all users with a relevant item, which all of them are to come close to."""
        world = self.drawn.known(seed)
        found: dict[tuple[str, str, str], float] = {}
        for k in (k for k in self.cutoffs if k < world.n_items):
            values = {model: MEAN_OF_USERS.truth(world, model, k) for model in world.rank}
            values |= {f"{model} - {FIRST}": value - values[FIRST] for model, value in values.items() if model != FIRST}
            found |= {
                (what, str(Recall(k)), estimator.about.name): value
                for what, value in values.items()
                for estimator in ESTIMATORS
            }
        return found


def ranks_of(draw: ShownRows, model: str) -> Ranks:
    """The rank of every shown row; no two items of a user share one."""
    above = draw.world.rank[model][draw.user[:, None], draw.item].ravel().astype(np.float64)
    size = np.full(len(draw.user), float(draw.world.n_items))
    return Ranks(above, np.zeros(len(above)), size, size, np.ones(len(draw.user), dtype=bool))
