"""DNS(H, U): each positive against the hardest of some random items."""

from __future__ import annotations

import numpy as np
import torch

from truerank.core.arrays import Bools, Ints
from truerank.models.learners.examples import Others
from truerank.models.learners.networks import Sides
from truerank.models.learners.pairs import Pattern, plain_scores, scores, starts
from truerank.models.learners.setup import Batch, Setup
from truerank.models.recipes import HardNegatives

TILE = 1 << 20  # drawn pairs that are scored at a time


class Sampled:
    """ℓ(s_ui, 1) + (1/H) Σ ℓ(s_uj, 0) over the H highest-scoring of U drawn items j, the mean over positives (u, i).

    Shi et al. 2023, DNS(H, U): -ln σ(s_ui) - (1/H) Σ ln(1 - σ(s_uj)). Items are drawn with replacement from those that
    are no positive of the user in the log, held out or not; a user to whom every item is one has no negative part.
    """

    warm_up = 0

    def __init__(self, method: HardNegatives, setup: Setup) -> None:
        self.setup, self.method = setup, method
        self.examples = setup.train
        self.others = Others.of(setup.liked, n_items=setup.train.n_items)

    @property
    def reached(self) -> tuple[Bools, Bools]:
        return self.examples.positives.count > 0, np.ones(self.examples.n_items, dtype=bool)

    def prepare(self, batch: Batch, epoch: int) -> None:
        """Nothing else is learned."""

    def loss(self, batch: Batch) -> torch.Tensor:
        setup = self.setup
        sides = setup.network.sides(setup.parameters)
        positive = setup.fit.loss(batch.scores(sides), torch.ones(len(batch))).mean()
        fixed = (sides[0].detach(), sides[1].detach())
        user, kept = hardest(batch.user.numpy(), self.others, fixed, method=self.method, rng=setup.rng)
        pattern = Pattern.of(np.repeat(user, kept.shape[1]), kept.ravel(), shape=batch.pattern.shape)
        score = scores(*sides, pattern)
        negative = setup.fit.loss(score, torch.zeros(len(score))).sum() / (self.method.kept * len(batch))
        return positive + negative + setup.penalty(setup.parameters, batch.pattern)


def hardest(
    user: Ints, others: Others, sides: Sides, *, method: HardNegatives, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """For each given user (ascending), U items that are no positive, of which the H with the highest scores are kept.

    The users who have such items, and their kept items [rows x H]. Equal scores: any of them.
    """
    user = user[others.count(user) > 0]
    room = others.count(user)
    kept = np.empty((len(user), method.kept), dtype=np.int64)
    rows = max(1, TILE // method.drawn)
    for start in range(0, len(user), rows):
        own = user[start : start + rows]
        uniform = np.sort(rng.random((len(own), method.drawn)), axis=1)  # ascending ones are found faster
        drawn = others.at(own[:, None], (uniform * room[start : start + rows, None]).astype(np.int64))
        begin = torch.from_numpy(starts(own, n=len(sides[0])) * method.drawn)
        score = plain_scores(*sides, begin, torch.from_numpy(drawn.ravel()))
        best = np.argpartition(-score.numpy().reshape(drawn.shape), method.kept - 1, axis=1)[:, : method.kept]
        kept[start : start + rows] = np.take_along_axis(drawn, best, axis=1)
    return user, kept
