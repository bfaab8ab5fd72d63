"""Doubly robust joint learning: a second model predicts the errors of the first."""

from __future__ import annotations

import torch

from truerank.core.arrays import Bools
from truerank.models.learners.setup import Batch, PairBlock, Setup, everyone, mean_square
from truerank.models.recipes import DoublyRobustLearning


class JointLearning:
    """The mean over all pairs of ê + o (e - ê) / propensity (Wang et al. 2019, eq. 5), both models in turn.

    The imputation model g, of the same form, predicts the signed error y - ŷ: a step on the mean of w (g - (y - ŷ))².
    Then a step on mean over a block of ê + mean over the batch of w (e - ê), with w = mean propensity / propensity,
    e = ℓ(s, y) and ê = ℓ(s, y') at the imputed label y' = ŷ + g, where ŷ and g are held fixed. With squared loss
    this is ê = (ŷ - fixed ŷ - g)² of the paper's code.
    """

    warm_up = 0

    def __init__(self, method: DoublyRobustLearning, setup: Setup) -> None:
        self.setup, self.method = setup, method
        self.examples = setup.train
        self.imputation = setup.network.start(setup.rng)
        self.optimiser = torch.optim.Adam(self.imputation, lr=method.imputation_rate, fused=True)

    @property
    def reached(self) -> tuple[Bools, Bools]:
        return everyone(self.examples)

    def prepare(self, batch: Batch, epoch: int) -> None:
        self.optimiser.zero_grad()
        self.imputation_loss(batch).backward()
        self.optimiser.step()

    def imputation_loss(self, batch: Batch) -> torch.Tensor:
        setup = self.setup
        with torch.no_grad():
            score = batch.scores(setup.network.sides(setup.parameters))
            error = batch.label - setup.fit.predicted(score)
        guess = batch.scores(setup.network.sides(self.imputation))
        decay = self.method.imputation_decay * mean_square(setup.network, self.imputation, batch.pattern)
        return (batch.weight * torch.square(guess - error)).mean() + decay

    def loss(self, batch: Batch) -> torch.Tensor:
        examples = self.examples
        block = PairBlock.draw(self.setup.rng, examples.n_users, examples.n_items, pairs=self.setup.batch)
        return self.loss_on(batch, block) + self.setup.penalty(self.setup.parameters, batch.pattern)

    def loss_on(self, batch: Batch, block: PairBlock) -> torch.Tensor:
        """Without weight decay."""
        fit, network = self.setup.fit, self.setup.network
        sides = network.sides(self.setup.parameters)
        with torch.no_grad():
            guess = network.sides(self.imputation)
            on_block, on_rows = block.scores(guess), batch.scores(guess)
        score, row = block.scores(sides), batch.scores(sides)
        imputed = fit.loss(score, fit.imputed(score, on_block)).mean()
        correction = fit.loss(row, batch.label) - fit.loss(row, fit.imputed(row, on_rows))
        return imputed + (batch.weight * correction).mean()
