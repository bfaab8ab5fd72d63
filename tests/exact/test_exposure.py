"""Exposure (paper 3, eq. 6) by enumerating every candidate set and every ranking of tiny systems, to 1e-10."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations
from math import prod

import numpy as np
import pytest

from truerank.core.arrays import Floats
from truerank.exposure.policies.rankers import (
    PlackettLuce,
    Ranked,
    RetrievedCandidates,
    TwoStage,
    UniformCandidates,
    mixed_exposures,
)
from truerank.exposure.positions.position_models import Exponential, Logarithmic, YuleSimon

N = 5
WEIGHT = np.array([3.0, 0.01, 1.0, 0.4, 20.0])
ORDER = np.array([3.0, 1.0, 5.0, 2.0, 4.0])
RETRIEVAL = np.array([0.9, 0.2, 1.0, 0.0, 0.5])
POSITIONS = [YuleSimon(1.5), Exponential(0.8, cutoff=2), Logarithmic()]

Weighted = Iterator[tuple[tuple[int, ...], float]]


def candidate_sets(candidates: UniformCandidates | RetrievedCandidates) -> Weighted:
    for size in range(N + 1):
        for members in combinations(range(N), size):
            if isinstance(candidates, UniformCandidates):
                p = 1 / len(list(combinations(range(N), size))) if size == candidates.k else 0.0
            else:
                p = prod(RETRIEVAL[i] if i in members else 1 - RETRIEVAL[i] for i in range(N))
            if p:
                yield members, float(p)


def rankings(members: tuple[int, ...], ranker: PlackettLuce | Ranked) -> Weighted:
    if isinstance(ranker, Ranked):
        yield tuple(sorted(members, key=lambda i: float(ranker.rank[i]))), 1.0
        return
    for order in permutations(members):
        left = [float(sum(ranker.weight[j] for j in order[at:])) for at in range(len(order))]
        yield order, float(prod(ranker.weight[i] / total for i, total in zip(order, left, strict=True)))


def enumerated(
    candidates: UniformCandidates | RetrievedCandidates, ranker: PlackettLuce | Ranked, view: Floats
) -> Floats:
    found = np.zeros(N)
    for members, p in candidate_sets(candidates):
        for order, q in rankings(members, ranker):
            for rank, item in enumerate(order):
                found[item] += p * q * view[rank]
    return found


@pytest.mark.parametrize("position", POSITIONS, ids=str)
@pytest.mark.parametrize("ranker", [PlackettLuce(WEIGHT), Ranked(ORDER)], ids=["plackett-luce", "ranked"])
@pytest.mark.parametrize(
    "candidates",
    [*(UniformCandidates(k) for k in range(1, N + 1)), RetrievedCandidates(RETRIEVAL)],
    ids=lambda each: f"k={each.k}" if isinstance(each, UniformCandidates) else "retrieved",
)
def test_two_stage_exposure(
    candidates: UniformCandidates | RetrievedCandidates,
    ranker: PlackettLuce | Ranked,
    position: YuleSimon | Exponential | Logarithmic,
) -> None:
    view = position.view(np.arange(1.0, N + 1.0))
    found = TwoStage(candidates, ranker).exposures(position).value
    np.testing.assert_allclose(found, enumerated(candidates, ranker, view), atol=1e-10)


@pytest.mark.parametrize("position", POSITIONS, ids=str)
def test_one_stage_exposure(position: YuleSimon | Exponential | Logarithmic) -> None:
    view = position.view(np.arange(1.0, N + 1.0))
    for ranker in (PlackettLuce(WEIGHT), Ranked(ORDER)):
        np.testing.assert_allclose(
            ranker.exposures(position).value, enumerated(UniformCandidates(N), ranker, view), atol=1e-10
        )


def test_the_mixture_of_loggers_is_the_exposure_of_a_random_logger() -> None:
    position = YuleSimon(0.5)
    parts = [PlackettLuce(WEIGHT), PlackettLuce(1 / WEIGHT)]
    view = position.view(np.arange(1.0, N + 1.0))
    expected = sum(
        share * enumerated(UniformCandidates(N), part, view) for share, part in zip((0.3, 0.7), parts, strict=True)
    )
    each = np.stack([part.exposures(position).value for part in parts])
    np.testing.assert_allclose(mixed_exposures(each, np.array([0.3, 0.7])), expected, atol=1e-10)
