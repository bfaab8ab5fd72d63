"""What a learner makes of bias: inverse propensities, doubly robust, AutoDebias, hard negatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array

from truerank.core.arrays import Bools, Ints
from truerank_research.learners.examples import Examples, Others, Pattern, plain_scores, scores, starts
from truerank_research.learners.networks import Sides, Tensors, normal
from truerank_research.learners.recipes import (
    AutoDebias,
    Bias,
    DoublyRobustLearning,
    HardNegatives,
    IPSLearning,
    Method,
)
from truerank_research.learners.train import Batch, Objective, PairBlock, Setup, mean_square


class Weighted(Objective):
    """Σ w ℓ(s, y) over a batch / its size; w = 1, or mean propensity / propensity (Schnabel et al. 2016, eq. 8).

    With weights (n / pairs) / propensity the expectation over what was seen is the mean loss of all pairs.
    """

    @property
    def reached(self) -> tuple[Bools, Bools]:
        rows = self.examples
        return np.bincount(rows.user, minlength=rows.n_users) > 0, np.bincount(rows.item, minlength=rows.n_items) > 0

    def loss(self, batch: Batch) -> torch.Tensor:
        setup = self.setup
        score = batch.scores(setup.network.sides(setup.parameters))
        mean = (batch.weight * setup.fit.loss(score, batch.label)).mean()
        return mean + setup.penalty(setup.parameters, batch.pattern)


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


class MetaLearning(Objective):
    """L(θ, φ) = Σ_rows w1 ℓ(s, y) + λ Σ_pairs w2 ℓ(s, m) + weight decay (Chen et al. 2021, eq. 10 and 14).

    Before each step on θ, φ takes one: θ' = θ - η ∇L(θ, φ) is assumed, and φ goes down the gradient of the loss on the
    random slice at θ', through that step. The sum over all pairs is estimated from a block of them. Losses are divided
    by the number of rows except inside the assumed step, where sums give η the meaning of the paper's code.
    """

    def __init__(self, method: AutoDebias, setup: Setup) -> None:
        assert setup.uniform is not None  # refused before
        super().__init__(method, setup)
        self.uniform, self.patient_from = setup.uniform, method.patient_from
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

    def prepare(self, batch: Batch, epoch: int) -> None:
        self.block, self.state = self._block()
        rows: Ints | slice = slice(None)
        if len(self.uniform) > self.setup.batch:
            rows = np.sort(self.setup.rng.choice(len(self.uniform), self.setup.batch, replace=False))
        gradients = self.meta_gradient(batch, Batch.of(self.uniform, rows))
        for part, gradient in zip(self.meta.all, gradients, strict=True):
            part.grad = gradient
        for optimiser in self.optimisers if epoch >= self.method.warm_up else self.optimisers[-1:]:
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


class JointLearning(Objective):
    """The mean over all pairs of ê + o (e - ê) / propensity (Wang et al. 2019, eq. 5), both models in turn.

    The imputation model g, of the same form, predicts the signed error y - ŷ: a step on the mean of w (g - (y - ŷ))².
    Then a step on mean over a block of ê + mean over the batch of w (e - ê), with w = mean propensity / propensity,
    e = ℓ(s, y) and ê = ℓ(s, y') at the imputed label y' = ŷ + g, where ŷ and g are held fixed. With squared loss
    this is ê = (ŷ - fixed ŷ - g)² of the paper's code.
    """

    def __init__(self, method: DoublyRobustLearning, setup: Setup) -> None:
        super().__init__(method, setup)
        self.network = setup.network.sized(method.imputation_dimensions)
        self.imputation = self.network.start(setup.rng)
        self.optimiser = torch.optim.Adam(self.imputation, lr=method.imputation_rate, fused=True)

    def prepare(self, batch: Batch, epoch: int) -> None:
        self.optimiser.zero_grad()
        self.imputation_loss(batch).backward()
        self.optimiser.step()

    def imputation_loss(self, batch: Batch) -> torch.Tensor:
        setup = self.setup
        with torch.no_grad():
            score = batch.scores(setup.network.sides(setup.parameters))
            error = batch.label - setup.fit.predicted(score)
        guess = batch.scores(self.network.sides(self.imputation))
        decay = self.method.imputation_decay * mean_square(self.network, self.imputation, batch.pattern)
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
            guess = self.network.sides(self.imputation)
            on_block, on_rows = block.scores(guess), batch.scores(guess)
        score, row = block.scores(sides), batch.scores(sides)
        imputed = fit.loss(score, fit.imputed(score, on_block)).mean()
        correction = fit.loss(row, batch.label) - fit.loss(row, fit.imputed(row, on_rows))
        return imputed + (batch.weight * correction).mean()


TILE = 1 << 20  # drawn pairs that are scored at a time


class Sampled(Objective):
    """ℓ(s_ui, 1) + (1/H) Σ ℓ(s_uj, 0) over the H highest-scoring of U drawn items j, the mean over positives (u, i).

    Shi et al. 2023, DNS(H, U): -ln σ(s_ui) - (1/H) Σ ln(1 - σ(s_uj)). Items are drawn with replacement from those that
    are no positive of the user in the log, held out or not; a user to whom every item is one has no negative part.
    """

    def __init__(self, method: HardNegatives, setup: Setup) -> None:
        super().__init__(method, setup)
        self.others = Others.of(setup.liked, n_items=setup.train.n_items)

    @property
    def reached(self) -> tuple[Bools, Bools]:
        return self.examples.positives.count > 0, np.ones(self.examples.n_items, dtype=bool)

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


OBJECTIVES: dict[type[Method], type[Objective]] = {
    Bias: Weighted,
    IPSLearning: Weighted,
    DoublyRobustLearning: JointLearning,
    AutoDebias: MetaLearning,
    HardNegatives: Sampled,
}
