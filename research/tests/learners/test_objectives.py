"""Each method's loss against values computed by hand, its definition, or finite differences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from truerank_research.learners.debiasing import (
    POSITIVE,
    JointLearning,
    MetaLearning,
    Weighted,
    hardest,
)
from truerank_research.learners.examples import Examples, Others
from truerank_research.learners.networks import Convolution, Factorisation, LogLoss, SquaredLoss
from truerank_research.learners.recipes import AutoDebias, Bias, DoublyRobustLearning, HardNegatives
from truerank_research.learners.train import Batch, PairBlock, Setup, repeatable


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with repeatable(1):
        yield


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def biases(user: list[float], item: list[float], *, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Parameters of a factorisation whose factors are zero, so that a score is b_u + b_i."""
    zeros = [torch.zeros(len(user), 1, dtype=dtype), torch.zeros(len(item), 1, dtype=dtype)]
    return [
        each.requires_grad_()
        for each in (*zeros, torch.tensor(user, dtype=dtype)[:, None], torch.tensor(item, dtype=dtype)[:, None])
    ]


def setup(
    parameters: list[torch.Tensor], train: Examples, *, fit: Any = None, decay: float = 0.0, **other: Any
) -> Setup:
    return Setup(
        network=other.get("network", Factorisation(train.n_users, train.n_items, 1)),
        parameters=parameters,
        fit=LogLoss() if fit is None else fit,
        train=train,
        uniform=other.get("uniform"),
        liked=other.get("liked", train.positives),
        weight_decay=decay,
        batch=other.get("batch", 1000),
        rng=np.random.default_rng(other.get("seed", 0)),
    )


def examples(
    user: list[int], item: list[int], label: list[int], weight: list[float], *, shape: tuple[int, int]
) -> Examples:
    return Examples(np.array(user, int), np.array(item, int), np.array(label, float), np.array(weight, float), *shape)


# ---------------------------------------------------------------------------------------------------------- Bias, IPS


@pytest.mark.parametrize("weight", [[1.0, 1.0, 1.0], [0.5, 3.0, 0.5]])
def test_each_row_has_its_weight(weight: list[float]) -> None:
    """ln(1 + eˢ) - y s of one user's three items; with squared loss (s - (2y - 1))²."""
    rows = examples([0, 0, 0], [0, 1, 2], [1, 0, 1], weight, shape=(1, 3))
    losses = {LogLoss: [softplus(0.5) - 0.5, softplus(-1), softplus(2) - 2], SquaredLoss: [0.25, 0.0, 1.0]}
    for fit, of_rows in losses.items():
        loss = Weighted(Bias(), setup(biases([0.0], [0.5, -1.0, 2.0]), rows, fit=fit())).loss(Batch.of(rows))
        assert float(loss.detach()) == pytest.approx(np.dot(weight, of_rows) / 3, rel=1e-6)


# ----------------------------------------------------------------------------------------------------------------- DR


def doubly_robust(fit: Any, *, guess: list[float]) -> tuple[JointLearning, Examples]:
    """One user, two items with scores 1 and -2; the first was seen, positive, with weight 2."""
    rows = examples([0], [0], [1], [2.0], shape=(1, 2))
    objective = JointLearning(
        DoublyRobustLearning(imputation_decay=0.0), setup(biases([0.0], [1.0, -2.0]), rows, fit=fit)
    )
    objective.imputation = biases([0.0], guess)
    return objective, rows


def test_doubly_robust_loss_by_hand() -> None:
    """Squared: errors g = 0.5 and 0.25 on the scale 0 ... 1 are 1 and 0.5 in scores, so ê = 1 and 0.25; e = 0."""
    objective, rows = doubly_robust(SquaredLoss(), guess=[0.5, 0.25])
    found = objective.loss_on(Batch.of(rows), PairBlock(np.array([0]), np.array([0, 1])))
    assert float(found.detach()) == pytest.approx((1 + 0.25) / 2 + 2 * (0 - 1), rel=1e-6)


def test_true_propensities_make_dr_unbiased_whatever_is_imputed() -> None:
    """Expectation over all 2^4 outcomes of what is seen = the mean loss of all pairs, gradients included."""
    label, chance = np.array([1, 0, 0, 1.0]), np.array([0.9, 0.2, 0.5, 0.4])
    everything = examples([0, 0, 1, 1], [0, 1, 0, 1], label.astype(int).tolist(), [1] * 4, shape=(2, 2))
    block = PairBlock(np.array([0, 1]), np.array([0, 1]))
    total, gradient = 0.0, torch.zeros(2)
    start = ([0.3, -0.2], [0.8, -1.0])
    for outcome in range(16):
        seen = np.array([(outcome >> k) & 1 for k in range(4)], dtype=bool)
        prob = float(np.prod(np.where(seen, chance, 1 - chance)))
        n = int(seen.sum())
        rows = examples(
            everything.user[seen].tolist(), everything.item[seen].tolist(), label[seen].astype(int).tolist(),
            (n / 4 / chance[seen]).tolist(), shape=(2, 2),
        )  # fmt: skip
        objective = JointLearning(DoublyRobustLearning(), setup(biases(*start), rows))
        objective.imputation = biases([0.1, -0.3], [0.4, 0.05])
        if n:
            loss = objective.loss_on(Batch.of(rows), block)
        else:  # nothing was seen: only the imputed part is left
            fit, sides = LogLoss(), objective.setup.network.sides(objective.setup.parameters)
            score = block.scores(sides)
            guess = block.scores(objective.setup.network.sides(objective.imputation)).detach()
            loss = fit.loss(score, fit.imputed(score, guess)).mean()
        loss.backward()
        total += prob * float(loss.detach())
        gradient += prob * objective.setup.parameters[3].grad.ravel()
    full = setup(biases(*start), everything)
    loss = Weighted(Bias(), full).loss(Batch.of(everything))
    loss.backward()
    assert total == pytest.approx(float(loss.detach()), abs=1e-6)
    assert gradient.tolist() == pytest.approx(full.parameters[3].grad.ravel().tolist(), abs=1e-6)


# ---------------------------------------------------------------------------------------------------------------- DNS


def liked(rng: np.random.Generator, *, n_users: int = 12, n_items: int = 25) -> Examples:
    user, item = np.nonzero(rng.random((n_users, n_items)) < 0.25)
    return Examples(user, item, np.ones(len(user)), np.ones(len(user)), n_users, n_items)


@pytest.mark.parametrize(("drawn", "hardness", "kept"), [(10, 0.1, 1), (10, 0.25, 3), (7, 1.0, 7), (1, 0.5, 1)])
def test_the_hardest_of_the_drawn_items_are_kept(drawn: int, hardness: float, kept: int) -> None:
    """The definition, from the same draws: no positives, and the H highest scores of the U drawn."""
    rng = np.random.default_rng(drawn)
    rows, method = liked(rng), HardNegatives(drawn=drawn, hardness=hardness)
    p, q = (torch.from_numpy(rng.normal(size=(n, 3)).astype(np.float32)) for n in (12, 25))
    assert method.kept == kept
    user, found = hardest(
        rows.user, Others.of(rows.positives, n_items=25), (p, q), method=method, rng=np.random.default_rng(9)
    )
    place = np.random.default_rng(9).random((len(user), drawn))
    for at, u in enumerate(user):
        own = np.setdiff1d(np.arange(25), rows.positives.of_unit(u))
        items = own[(place[at] * len(own)).astype(int)]
        score = (p[u] @ q[items].T).numpy()
        assert np.sort(score)[::-1][:kept] == pytest.approx(np.sort((p[u] @ q[found[at]].T).numpy())[::-1], rel=1e-5)
        assert set(found[at].tolist()) <= set(items.tolist())


# --------------------------------------------------------------------------------------------------------- AutoDebias


def meta_learning(network: str, fit: Any) -> tuple[MetaLearning, Batch, Batch]:
    """A small problem in float64, all pairs in the block."""
    rng = np.random.default_rng(17)
    user, item = np.nonzero(rng.random((5, 6)) < 0.6)
    rows = Examples(user, item, (rng.random(len(user)) < 0.5).astype(float), np.ones(len(user)), 5, 6)
    uniform = Examples(np.array([0, 1, 3, 4]), np.array([2, 0, 5, 1]), np.array([1.0, 0, 1, 0]), np.ones(4), 5, 6)
    own: Any = Factorisation(5, 6, 3)
    if network == "lightgcn":
        single = Convolution.of(rows, 3, 3, biases=False)
        object.__setattr__(single.graph, "matrix", single.graph.matrix.to(torch.float64))
        own = single
    parameters = [
        (each.detach() * (10 if network == "lightgcn" else 2)).to(torch.float64).requires_grad_()
        for each in own.start(rng)
    ]
    state = setup(parameters, rows, fit=fit, decay=0.1, network=own, uniform=uniform)
    objective = MetaLearning(AutoDebias(imputed=0.3, step=0.05), state)
    for part in objective.meta.all:
        part.data = torch.from_numpy(rng.normal(0, 1, part.shape))
    return objective, Batch.of(rows, dtype=torch.float64), Batch.of(uniform, dtype=torch.float64)


@pytest.mark.parametrize("network", ["mf", "lightgcn"])
@pytest.mark.parametrize("fit", [LogLoss(), SquaredLoss()], ids=["bce", "mse"])
def test_meta_gradient_against_finite_differences(network: str, fit: Any) -> None:
    """Central differences of the slice's loss after the assumed step, for every number of φ."""
    objective, batch, uniform = meta_learning(network, fit)

    def after_the_step() -> float:
        state = objective.setup
        gradients = torch.autograd.grad(len(batch) * objective.loss(batch), state.parameters)
        moved = [each - objective.method.step * g for each, g in zip(state.parameters, gradients, strict=True)]
        return float(fit.loss(uniform.scores(state.network.sides(moved)), uniform.label).sum().detach())

    found = objective.meta_gradient(batch, uniform)
    largest = 0.0
    for part, gradient in zip(objective.meta.all, found, strict=True):
        for at in range(part.numel()):
            start = float(part.data.ravel()[at])
            values = []
            for shift in (1e-5, -1e-5):
                part.data.view(-1)[at] = start + shift
                values.append(after_the_step())
            part.data.view(-1)[at] = start
            difference = (values[0] - values[1]) / 2e-5
            assert float(gradient.ravel()[at]) == pytest.approx(difference, abs=1e-8, rel=1e-5)
            largest = max(largest, abs(difference))
    assert largest > 1e-3  # a gradient of zeros would prove nothing


def test_autodebias_loss_by_hand() -> None:
    """One user, items with scores 1 (seen, positive) and -2 (missing); w1 = e^(5/5), w2 = e^(1/5) if seen, else 1."""
    rows = examples([0], [0], [1], [1.0], shape=(1, 2))
    uniform = examples([0], [1], [0], [1.0], shape=(1, 2))
    objective = MetaLearning(AutoDebias(imputed=0.5), setup(biases([0.0], [1.0, -2.0]), rows, uniform=uniform))
    for part in objective.meta.all:
        part.data.zero_()
    objective.meta.row[2].data[1] = 5.0
    objective.meta.pair[2].data[1] = 1.0
    objective.meta.state.data[POSITIVE] = 50.0  # tanh = 1: imputed label 1; missing stays at 1/2
    seen = math.e * (softplus(1) - 1)
    imputed = (math.exp(0.2) * (softplus(1) - 1) + (softplus(-2) + 1)) / 2
    assert float(objective.loss(Batch.of(rows)).detach()) == pytest.approx(seen + 0.5 * 2 * imputed, rel=1e-6)
