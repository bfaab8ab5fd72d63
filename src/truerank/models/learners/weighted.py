"""Bias and IPS: a weighted mean of the rows' losses."""

from __future__ import annotations

import numpy as np
import torch

from truerank.core.arrays import Bools
from truerank.models.learners.setup import Batch, Setup


class Weighted:
    """Σ w ℓ(s, y) over a batch / its size; w = 1, or mean propensity / propensity (Schnabel et al. 2016, eq. 8).

    With weights (n / pairs) / propensity the expectation over what was seen is the mean loss of all pairs.
    """

    warm_up = 0

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.examples = setup.train

    @property
    def reached(self) -> tuple[Bools, Bools]:
        rows = self.examples
        return np.bincount(rows.user, minlength=rows.n_users) > 0, np.bincount(rows.item, minlength=rows.n_items) > 0

    def prepare(self, batch: Batch, epoch: int) -> None:
        """Nothing else is learned."""

    def loss(self, batch: Batch) -> torch.Tensor:
        setup = self.setup
        score = batch.scores(setup.network.sides(setup.parameters))
        mean = (batch.weight * setup.fit.loss(score, batch.label)).mean()
        return mean + setup.penalty(setup.parameters, batch.pattern)
