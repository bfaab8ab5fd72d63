"""The loop: epochs of batches, until validation AUC gets no better; the best epoch is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.errors import InputError
from truerank.core.log import Log, Pairs
from truerank.core.progress import Progress
from truerank.core.rng import generator
from truerank.models import NOTHING_BESIDE, Side
from truerank_research.learners.examples import Examples, Material, Pattern, material, scores
from truerank_research.learners.networks import FITS, Fit, Network, Sides, Tensors, network_of
from truerank_research.learners.recipes import Descent, Recipe, Training


def pooled_auc(score: Floats, label: Floats) -> float:
    """The chance that a positive row scores above a negative one, ties counting half; NaN if a class is missing.

    (Σ mid-ranks of positives - n⁺(n⁺ + 1)/2) / (n⁺ n⁻), the Mann-Whitney statistic with mid-ranks. Rows of all users
    are pooled, so it also rewards telling active users from others; for early stopping, not to compare recommenders.

    >>> pooled_auc(np.array([0.1, 0.4, 0.4, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]))
    0.875
    """
    positive = label == 1
    n_positive = int(np.count_nonzero(positive))
    n_negative = len(label) - n_positive
    if n_positive == 0 or n_negative == 0:
        return math.nan
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    # twice the mid-rank of a group of equal scores is a whole number, so the sum is exact
    twice = 2 * last - count + 1
    total = int(twice[place][positive].sum())
    return (total - n_positive * (n_positive + 1)) / (2 * n_positive * n_negative)


@contextmanager
def repeatable(threads: int) -> Iterator[None]:
    """Leaves no trace: threads and algorithms of the caller are as before, and no global seed is touched."""
    before = (
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,
    )
    try:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # slow, and nothing reads such memory
        with torch.device("cpu"), torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1], warn_only=before[2])
        torch.utils.deterministic.fill_uninitialized_memory = before[3]


@dataclass(frozen=True, slots=True)
class Setup:
    """The model in training: its network and parameters, what it is trained on, and chance."""

    network: Network
    parameters: Tensors
    fit: Fit
    train: Examples
    uniform: Examples | None
    liked: Pairs  # all positives of the log, those that are held out too
    weight_decay: float
    batch: int
    rng: np.random.Generator

    def penalty(self, parameters: Tensors, pattern: Pattern) -> torch.Tensor:
        """weight_decay · ½(‖p_u‖² + ‖q_i‖²), the mean over the pairs."""
        return self.weight_decay * mean_square(self.network, parameters, pattern)


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of the examples, sorted by user."""

    pattern: Pattern
    user: torch.Tensor
    item: torch.Tensor
    label: torch.Tensor
    weight: torch.Tensor

    @classmethod
    def of(cls, examples: Examples, rows: Ints | slice = slice(None), *, dtype: torch.dtype = torch.float32) -> Batch:
        user, item = examples.user[rows], examples.item[rows]
        pattern = Pattern.of(user, item, shape=(examples.n_users, examples.n_items))
        label, weight = (torch.from_numpy(part[rows]).to(dtype) for part in (examples.label, examples.weight))
        return cls(pattern, torch.from_numpy(user), pattern.column, label, weight)

    def __len__(self) -> int:
        return len(self.label)

    def scores(self, sides: Sides) -> torch.Tensor:
        return scores(*sides, self.pattern)


class Objective:
    """What is minimised. `prepare` comes before each step on the parameters and updates whatever else is learned.

    `examples` are what batches are made of; `reached` says which users and items the loss ever sees; `patient_from`
    is the number of epochs before patience is counted.
    """

    patient_from = 0

    def __init__(self, method: Any, setup: Setup) -> None:
        self.method, self.setup, self.examples = method, setup, setup.train

    @property
    def reached(self) -> tuple[Bools, Bools]:
        return np.ones(self.examples.n_users, dtype=bool), np.ones(self.examples.n_items, dtype=bool)

    def prepare(self, batch: Batch, epoch: int) -> None:
        """Nothing else is learned."""

    def loss(self, batch: Batch) -> torch.Tensor:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class PairBlock:
    """Some users x some items, drawn uniformly: their pairs stand for all pairs, at the price of a dense product.

    The mean over a block is an unbiased estimate of the mean over all pairs.
    """

    user: Ints
    item: Ints

    @classmethod
    def draw(cls, rng: np.random.Generator, n_users: int, n_items: int, *, pairs: int) -> PairBlock:
        """About as many pairs as asked for, as square as the sides allow."""
        n = min(n_users, max(1, int(np.sqrt(pairs))))
        m = min(n_items, max(1, pairs // n))
        n = min(n_users, max(1, pairs // m))
        return cls(*(np.sort(rng.choice(size, k, replace=False)) for size, k in ((n_users, n), (n_items, m))))

    def scores(self, sides: Sides) -> torch.Tensor:
        p, q = sides
        return p.index_select(0, torch.from_numpy(self.user)) @ q.index_select(0, torch.from_numpy(self.item)).T


def mean_square(network: Network, parameters: Tensors, pattern: Pattern) -> torch.Tensor:
    """½(‖p_u‖² + ‖q_i‖²), the mean over the pairs: each side's squares counted as often as it has pairs."""
    user, item = network.squares(parameters)
    total = (user * pattern.start.diff()).sum() + (item * pattern.across[0].diff()).sum()
    return total / (2 * len(pattern.column))


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
    from truerank_research.learners.debiasing import OBJECTIVES

    with repeatable(recipe.training.threads):
        parts = material(
            recipe.name, recipe.method, log, side=side, seed=seed, biased_validation=recipe.training.biased_validation
        )
        setup = _setup(recipe, parts, seed=seed)
        objective = OBJECTIVES[type(recipe.method)](recipe.method, setup)
        best, epoch, auc = _descend(recipe, setup, objective, parts.validation, seed=seed, progress=progress)
        with torch.no_grad():
            user, item = (side.numpy().astype(np.float64) for side in setup.network.sides(best))
    user, item = (_filled(values, seen) for values, seen in zip((user, item), objective.reached, strict=True))
    return TrainedFactors(*setup.network.apart(user, item), tuple(auc), epoch + 1)


def _setup(recipe: Recipe, parts: Material, *, seed: int) -> Setup:
    network = network_of(recipe.backbone, parts.train)
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
    recipe: Recipe, setup: Setup, objective: Objective, held: Examples, *, seed: int, progress: Progress | None
) -> tuple[Tensors, int, list[float]]:
    """The parameters of the best epoch, its number from 0, and the validation AUC of each."""
    training: Training = recipe.training
    optimiser = _optimiser(setup.parameters, training)
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
        if epoch == 0 or auc[-1] > auc[best] + training.least_gain:
            best, found = epoch, [each.detach().clone() for each in setup.parameters]
        if epoch - max(best, objective.patient_from) >= training.patience:
            break
    return found, best, auc


def _optimiser(parameters: Tensors, training: Training) -> torch.optim.Optimizer:
    kind = torch.optim.Adam if training.optimiser is Descent.ADAM else torch.optim.SGD
    return kind(parameters, lr=training.learning_rate, fused=True)


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
