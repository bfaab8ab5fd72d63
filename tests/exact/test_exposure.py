"""Exposure (paper 3, eq. 6) by enumerating every candidate set and every ranking of tiny systems, to 1e-10."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations
from math import prod

import numpy as np
import pytest

from truerank.core.arrays import Floats
from truerank.exposure.policies.rankers import ranker_exposures
from truerank.exposure.positions.position_models import Exponential, Logarithmic, YuleSimon

N = 5
WEIGHT = np.array([3.0, 0.01, 1.0, 0.4, 20.0])
ORDER = np.array([3.0, 1.0, 5.0, 2.0, 4.0])
RETRIEVAL = np.array([0.9, 0.2, 1.0, 0.0, 0.5])
POSITIONS = [YuleSimon(1.5), Exponential(0.8, cutoff=2), Logarithmic()]

CANDIDATES: list[int | str] = [*range(1, N + 1), "all", "retrieved"]  # how many are drawn, or each retrieved by itself

Weighted = Iterator[tuple[tuple[int, ...], float]]


def candidate_sets(k: int | None) -> Weighted:
    for size in range(N + 1):
        for members in combinations(range(N), size):
            p = prod(RETRIEVAL[i] if i in members else 1 - RETRIEVAL[i] for i in range(N))
            if k is not None:
                p = 1 / len(list(combinations(range(N), size))) if size == k else 0.0
            if p:
                yield members, float(p)


def rankings(members: tuple[int, ...], *, drawn: bool) -> Weighted:
    if not drawn:
        yield tuple(sorted(members, key=lambda i: float(ORDER[i]))), 1.0
        return
    for order in permutations(members):
        left = [float(sum(WEIGHT[j] for j in order[at:])) for at in range(len(order))]
        yield order, float(prod(WEIGHT[i] / total for i, total in zip(order, left, strict=True)))


def enumerated(k: int | None, view: Floats, *, drawn: bool) -> Floats:
    exposure = np.zeros(N)
    for members, p in candidate_sets(k):
        for order, q in rankings(members, drawn=drawn):
            for rank, item in enumerate(order):
                exposure[item] += p * q * view[rank]
    return exposure


@pytest.mark.parametrize("position", POSITIONS, ids=str)
@pytest.mark.parametrize("drawn", [True, False], ids=["plackett-luce", "ranked"])
@pytest.mark.parametrize("k", CANDIDATES)
def test_exposures_of_candidates_that_are_ranked(
    k: int | str, drawn: bool, position: YuleSimon | Exponential | Logarithmic
) -> None:
    score = np.log(WEIGHT) if drawn else -ORDER
    how = {"retrieved": {"retrieval": RETRIEVAL}, "all": {}}.get(str(k), {"n_candidates": k})
    exposure = ranker_exposures(score, position, temperature=1.0 if drawn else None, **how)
    view = position.view(np.arange(1.0, N + 1.0))
    size = {"retrieved": None, "all": N}.get(str(k), k)
    np.testing.assert_allclose(exposure, enumerated(size, view, drawn=drawn), atol=1e-10)  # type: ignore[arg-type]
