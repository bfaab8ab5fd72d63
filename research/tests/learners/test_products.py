"""Sparse products and LightGCN's propagation against dense matrices, and their gradients against differences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from truerank.core.log import Pairs
from truerank_research.learners.examples import Examples, Pattern, scores
from truerank_research.learners.networks import Convolution, Factorisation, Graph
from truerank_research.learners.train import mean_square, repeatable

USER, ITEM = np.array([0, 0, 0, 2, 2, 3]), np.array([1, 3, 1, 0, 4, 2])  # one pair twice, user 1 without any
SHAPE = (4, 6)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with repeatable(1):
        yield


def matrices(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(3)
    p, q = (torch.from_numpy(rng.normal(size=(n, 3))).to(dtype).requires_grad_() for n in SHAPE)
    return p, q


def test_pairs_may_be_repeated_more_often_than_there_are_cells() -> None:
    p, q = matrices()
    user, item = np.sort(np.tile(USER, 9)), np.tile(ITEM, 9)
    pattern = Pattern.of(user, item, shape=SHAPE)
    assert torch.allclose(scores(p, q, pattern), (p @ q.T)[user, item], rtol=0, atol=1e-12)
    assert torch.autograd.gradcheck(lambda p, q: scores(p, q, pattern), (p, q))
    assert torch.autograd.gradgradcheck(lambda p, q: scores(p, q, pattern), (p, q))


def dense_propagation(layers: int, embedding: torch.Tensor) -> torch.Tensor:
    """The definition: Â = D^(-1/2) A D^(-1/2), mean of Â^l E."""
    adjacency = torch.zeros(10, 10, dtype=torch.float64)
    for u, i in zip(USER, ITEM, strict=True):
        adjacency[u, 4 + i] = adjacency[4 + i, u] = 1.0
    degree = adjacency.sum(1)
    scale = torch.where(degree > 0, degree.clamp(min=1) ** -0.5, torch.zeros_like(degree))
    step = scale[:, None] * adjacency * scale[None, :]
    return sum((torch.linalg.matrix_power(step, each) @ embedding for each in range(layers + 1)), 0 * embedding) / (
        layers + 1
    )


def graph(layers: int, dtype: torch.dtype = torch.float64) -> Graph:
    pairs = Pairs.of(USER, ITEM, n_units=4)
    user = np.repeat(np.arange(4), pairs.count)
    return Graph.of(user, pairs.item, n_users=4, n_items=6, layers=layers, dtype=dtype)


@pytest.mark.parametrize("layers", [0, 1, 2, 3])
def test_propagation_against_dense_matrices(layers: int) -> None:
    embedding = torch.from_numpy(np.random.default_rng(5).normal(size=(10, 4))).requires_grad_()
    own = graph(layers)
    assert torch.allclose(own.propagate(embedding), dense_propagation(layers, embedding), rtol=0, atol=1e-12)
    assert torch.autograd.gradcheck(own.propagate, (embedding,))
    assert torch.autograd.gradgradcheck(own.propagate, (embedding,))


def test_backbones_are_their_formulas() -> None:
    rng = np.random.default_rng(0)
    plain = Factorisation(3, 4, 2)
    p, q, b_user, b_item = plain.start(rng)
    left, right = plain.sides([p, q, b_user, b_item])
    assert torch.allclose(left @ right.T, p @ q.T + b_user + b_item.T)
    rows = Examples(USER, ITEM, np.ones(6), np.ones(6), 4, 6)
    for biases in (False, True):
        convolution = Convolution.of(rows, 5, 3, biases=biases)
        parameters = convolution.start(rng)
        if biases:
            parameters[1:] = [torch.full((4, 1), 2.0), torch.arange(6.0)[:, None]]
        left, right = convolution.sides(parameters)
        layers = graph(3, torch.float32).propagate(parameters[0])
        expected = layers[:4] @ layers[4:].T + (2.0 + torch.arange(6.0) if biases else 0.0)
        assert torch.allclose(left @ right.T, expected, atol=1e-6)


def test_weight_decay_is_of_the_rows_in_the_batch() -> None:
    """½(‖p_u‖² + ‖q_i‖²) with p = 1, 2, 3, 4 and q = 10 for all: the pairs have users 0, 0, 0, 2, 2, 3."""
    network = Factorisation(4, 6, 1)
    parameters = [
        torch.tensor([[1.0], [2.0], [3.0], [4.0]]),
        torch.full((6, 1), 10.0),
        torch.ones(4, 1),
        torch.ones(6, 1),
    ]
    found = mean_square(network, parameters, Pattern.of(USER, ITEM, shape=SHAPE))
    assert float(found) == pytest.approx((3 * 1 + 2 * 9 + 16 + 6 * 100) / 12)
