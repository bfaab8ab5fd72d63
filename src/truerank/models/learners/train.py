"""The loop: epochs of batches, until validation AUC gets no better; the best epoch is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.chance import generator
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.models import NOTHING_BESIDE, Progress, Side
from truerank.models.learners.examples import Examples, Material, material
from truerank.models.learners.losses import FITS
from truerank.models.learners.networks import Network, Tensors
from truerank.models.learners.repeatable import repeatable
from truerank.models.learners.setup import Batch, Setup, TrainingObjective
from truerank.models.pooled_auc import pooled_auc
from truerank.models.recipes import Recipe, Training


@dataclass(frozen=True, slots=True)
class TrainedFactors:
    """Factors and biases of all users and items, and how training went: AUC after each epoch, and which was best."""

    user_factors: Floats
    item_factors: Floats
    user_bias: Floats | None
    item_bias: Floats | None
    validation_auc: tuple[float, ...]
    best_epoch: int

    def scores(self) -> Floats:
        """Every score with all biases [users x items], for small worlds: logits, or values around -1 and 1."""
        found = self.user_factors @ self.item_factors.T
        if self.user_bias is not None and self.item_bias is not None:
            found = found + self.user_bias[:, None] + self.item_bias[None, :]
        return found


def train(
    recipe: Recipe, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Progress | None = None
) -> TrainedFactors:
    """Fit a backbone with a method.

    A user or an item that the loss never sees (no rows, unless the method imputes all pairs) is given the mean of
    those it sees.
    """
    with repeatable(recipe.training.threads):
        parts = material(recipe.name, recipe.method, log, side=side, seed=seed)
        setup = _setup(recipe, parts, seed=seed)
        objective: TrainingObjective = recipe.method.objective(setup)
        best, auc = _descend(recipe, setup, objective, parts.validation, seed=seed, progress=progress)
        with torch.no_grad():
            user, item = (side.numpy().astype(np.float64) for side in setup.network.sides(best))
    user, item = (_filled(values, seen) for values, seen in zip((user, item), objective.reached, strict=True))
    return TrainedFactors(*setup.network.apart(user, item), tuple(auc), int(np.argmax(auc)) + 1)


def _setup(recipe: Recipe, parts: Material, *, seed: int) -> Setup:
    network: Network = recipe.backbone.network(parts.train)
    return Setup(
        network=network,
        parameters=network.start(generator(seed, "start of a learned model")),
        fit=FITS[recipe.training.loss],
        train=parts.train,
        uniform=parts.uniform,
        liked=parts.liked,
        weight_decay=recipe.training.weight_decay,
        batch=recipe.training.batch,
        rng=generator(seed, "training of a learned model"),
    )


def _descend(
    recipe: Recipe, setup: Setup, objective: TrainingObjective, held: Examples, *, seed: int, progress: Progress | None
) -> tuple[Tensors, list[float]]:
    """The parameters of the best epoch, and the validation AUC of each."""
    training: Training = recipe.training
    optimiser = torch.optim.Adam(setup.parameters, lr=training.learning_rate, fused=True)
    validation = Batch.of(held)
    shuffle = generator(seed, "batches of a learned model")
    best, found, auc = 0, setup.parameters, list[float]()
    for epoch in range(training.epochs):
        if progress is not None:
            progress(f"training {recipe.name}, epochs", epoch, training.epochs)
        for rows in batches(len(objective.examples), training.batch, shuffle):
            batch = Batch.of(objective.examples, rows)
            objective.prepare(batch, epoch)
            optimiser.zero_grad()
            objective.loss(batch).backward()
            optimiser.step()
        with torch.no_grad():
            score = validation.scores(setup.network.sides(setup.parameters)).numpy().astype(np.float64)
        if not np.isfinite(score).all():
            raise InputError(
                f"{recipe.name}: training diverged in epoch {epoch + 1}, scores are no longer finite. Use a smaller "
                f"learning_rate than {training.learning_rate:g}."
            )
        auc.append(pooled_auc(score, held.label))
        if epoch == 0 or auc[-1] > auc[best]:
            best, found = epoch, [each.detach().clone() for each in setup.parameters]
        if epoch - max(best, objective.warm_up) >= training.patience:
            break
    return found, auc


def batches(n: int, size: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Rows 0 ... n - 1 in random batches of one size, the last may be smaller; ascending inside each.

    >>> [len(rows) for rows in batches(5, 2, np.random.default_rng(0))]
    [2, 2, 1]
    """
    number = math.ceil(n / size)
    of_row = rng.permutation((np.arange(n) // size).astype(np.min_scalar_type(number)))
    order = np.argsort(of_row, kind="stable")  # a radix sort while the batches' numbers have 16 bits
    yield from np.split(order, np.arange(size, n, size))


def _filled(values: Floats, seen: Bools) -> Floats:
    return np.where(seen[:, None], values, values[seen].mean(axis=0))
