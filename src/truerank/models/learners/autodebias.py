"""AutoDebias: weights and imputed labels are learned so that a step on them helps on the random slice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array

from truerank.core.arrays import Bools, Ints
from truerank.models.learners.examples import Examples
from truerank.models.learners.networks import Tensors, normal
from truerank.models.learners.setup import Batch, PairBlock, Setup, everyone
from truerank.models.recipes import AutoDebias

MISSING, NEGATIVE, POSITIVE = 0, 1, 2  # what is known of a pair


@dataclass(frozen=True, slots=True)
class Meta:
    """φ: w1 = exp((a_u + b_i + c_y) / 5), w2 = exp((a'_u + b'_i + c'_seen) / 5), imputed label tanh(h) on -1 ... 1.

    `row` and `pair` are (a, b, c); `state` is h of missing, negative and positive pairs.
    """

    row: Tensors
    pair: Tensors
    state: torch.Tensor

    @classmethod
    def start(cls, rng: np.random.Generator, n_users: int, n_items: int) -> Meta:
        """Normal numbers of variance 2 / rows (Kaiming, fan_out), a thousandth of that for c and h."""
        sizes = [(n_users, 1.0), (n_items, 1.0), (2, 1e-3)]
        row, pair = ([normal(rng, (n, 1), scale=small * np.sqrt(2 / n)) for n, small in sizes] for _ in range(2))
        return cls(row, pair, normal(rng, (3, 1), scale=1e-3 * np.sqrt(2 / 3)))

    @property
    def all(self) -> Tensors:
        return [*self.row, *self.pair, self.state]

    def row_weight(self, batch: Batch) -> torch.Tensor:
        a, b, c = (part.ravel() for part in self.row)
        seen = a.index_select(0, batch.user) + b.index_select(0, batch.item)
        return torch.exp((seen + c.index_select(0, batch.label.long())) / 5)

    def pair_weight(self, block: PairBlock, state: torch.Tensor) -> torch.Tensor:
        a, b, c = (part.ravel() for part in self.pair)
        user, item = (torch.from_numpy(part) for part in (block.user, block.item))
        seen = (state != MISSING).to(c.dtype)
        sides = a.index_select(0, user)[:, None] + b.index_select(0, item)[None, :]
        return torch.exp((sides + c[0] + (c[1] - c[0]) * seen) / 5)

    def imputed_label(self, state: torch.Tensor) -> torch.Tensor:
        """(tanh(h) + 1) / 2: the same on the scale 0 ... 1."""
        label = (torch.tanh(self.state.ravel()) + 1) / 2
        return label.index_select(0, state.ravel()).reshape(state.shape)


class MetaLearning:
    """L(θ, φ) = Σ_rows w1 ℓ(s, y) + λ Σ_pairs w2 ℓ(s, m) + weight decay (Chen et al. 2021, eq. 10 and 14).

    Before each step on θ, φ takes one: θ' = θ - η ∇L(θ, φ) is assumed, and φ goes down the gradient of the loss on the
    random slice at θ', through that step. The sum over all pairs is estimated from a block of them. Losses are divided
    by the number of rows except inside the assumed step, where sums give η the meaning of the paper's code.
    """

    def __init__(self, method: AutoDebias, setup: Setup) -> None:
        assert setup.uniform is not None  # refused before
        self.setup, self.method, self.uniform = setup, method, setup.uniform
        self.examples, self.warm_up = setup.train, method.warm_up
        self.known = known_states(setup.train)
        self.meta = Meta.start(setup.rng, setup.train.n_users, setup.train.n_items)
        groups = [
            (self.meta.row, method.row_rate, method.row_decay),
            (self.meta.pair, method.pair_rate, method.pair_decay),
            ([self.meta.state], method.label_rate, method.label_decay),
        ]
        self.optimisers = [
            torch.optim.Adam(part, lr=rate, weight_decay=decay, fused=True) for part, rate, decay in groups
        ]
        self.block, self.state = self._block()

    @property
    def reached(self) -> tuple[Bools, Bools]:
        return everyone(self.examples)

    def prepare(self, batch: Batch, epoch: int) -> None:
        self.block, self.state = self._block()
        rows: Ints | slice = slice(None)
        if len(self.uniform) > self.setup.batch:
            rows = np.sort(self.setup.rng.choice(len(self.uniform), self.setup.batch, replace=False))
        gradients = self.meta_gradient(batch, Batch.of(self.uniform, rows))
        for part, gradient in zip(self.meta.all, gradients, strict=True):
            part.grad = gradient
        for optimiser in self.optimisers if epoch >= self.warm_up else self.optimisers[-1:]:
            optimiser.step()

    def meta_gradient(self, batch: Batch, uniform: Batch) -> tuple[torch.Tensor, ...]:
        """The gradient of the slice's loss after the assumed step, with respect to φ."""
        network, fit, parameters = self.setup.network, self.setup.fit, self.setup.parameters
        total = len(batch) * self.loss(batch)
        gradients = torch.autograd.grad(total, parameters, create_graph=True)
        moved = [each - self.method.step * g for each, g in zip(parameters, gradients, strict=True)]
        slice_loss = fit.loss(uniform.scores(network.sides(moved)), uniform.label).sum()
        return tuple(torch.autograd.grad(slice_loss, self.meta.all))

    def loss(self, batch: Batch) -> torch.Tensor:
        network, fit, parameters = self.setup.network, self.setup.fit, self.setup.parameters
        sides = network.sides(parameters)
        seen = (self.meta.row_weight(batch) * fit.loss(batch.scores(sides), batch.label)).mean()
        label = self.meta.imputed_label(self.state)
        weight = self.meta.pair_weight(self.block, self.state)
        imputed = (weight * fit.loss(self.block.scores(sides), label)).mean()
        share = self.method.imputed * self.examples.n_pairs / len(self.examples)
        return seen + share * imputed + self.setup.penalty(parameters, batch.pattern)

    def _block(self) -> tuple[PairBlock, torch.Tensor]:
        examples = self.examples
        block = PairBlock.draw(self.setup.rng, examples.n_users, examples.n_items, pairs=self.setup.batch)
        return block, torch.from_numpy(self.known[block.user][:, block.item].toarray().astype(np.int64))


def known_states(examples: Examples) -> csr_array:
    """Users x items: what is known of each pair; positive if any of its rows is."""
    state = np.where(examples.label == 1, POSITIVE, NEGATIVE)
    start = np.concatenate([[0], np.cumsum(np.bincount(examples.user, minlength=examples.n_users))])
    # rows are sorted by user, item and label, so the last of a pair is positive if any is
    last = np.ones(len(examples), dtype=bool)
    last[:-1] = (np.diff(examples.user) != 0) | (np.diff(examples.item) != 0)
    start = np.concatenate([[0], np.cumsum(last)])[start]
    return csr_array((state[last], examples.item[last], start), shape=(examples.n_users, examples.n_items))
