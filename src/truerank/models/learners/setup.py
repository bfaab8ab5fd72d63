"""What an objective works with, and the pieces that all of them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from truerank.core.arrays import Bools, Ints
from truerank.core.log import Pairs
from truerank.models.learners.examples import Examples
from truerank.models.learners.losses import Fit
from truerank.models.learners.networks import Network, Sides, Tensors
from truerank.models.learners.pairs import Pattern, scores


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


class TrainingObjective(Protocol):
    """What is minimised. `prepare` comes before each step on the parameters and updates whatever else is learned.

    `examples` are what batches are made of; `reached` says which users and items the loss ever sees; `warm_up` is the
    number of epochs before patience is counted.
    """

    examples: Examples
    warm_up: int

    @property
    def reached(self) -> tuple[Bools, Bools]: ...
    def prepare(self, batch: Batch, epoch: int) -> None: ...
    def loss(self, batch: Batch) -> torch.Tensor: ...


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


def everyone(examples: Examples) -> tuple[Bools, Bools]:
    return np.ones(examples.n_users, dtype=bool), np.ones(examples.n_items, dtype=bool)
