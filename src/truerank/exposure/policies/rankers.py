"""Exposure of rankers (paper 3, eq. 6): how often each item is expected to be viewed in a context.

    ε(x, a) = Σ over candidate sets Σ over rankings Σ over ranks of P(candidates) P(ranking) P(V = 1 | r) 1{a at r}

Everything below gives the probability of each item at each rank, exactly where that can be done; exposure is its
product with a position model. An item that is never retrieved has exposure 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.chance import generator
from truerank.core.errors import InputError, RefusedError
from truerank.exposure.policies.two_stage import (
    checked_retrieval,
    retrieved_order_probabilities,
    retrieved_rank_probabilities,
    subset_order_probabilities,
    subset_rank_probabilities,
)
from truerank.exposure.positions.position_models import PositionModel
from truerank.sampling.clocks import rank_probabilities

DRAWS = 1000
SHARE_ERROR = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class ItemExposures:
    """The exposure of every item of a context; `stderr` is the Monte-Carlo error, None where the value is exact."""

    value: Floats
    stderr: Floats | None = None


class Ranker(Protocol):
    """A policy in one context."""

    exact: ClassVar[bool]

    def exposures(self, position: PositionModel) -> ItemExposures: ...


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A deterministic ranking: the rank of each item from 1, inf or NaN where it is not shown; ε = P(V | rank).

    >>> from truerank.exposure.positions.position_models import Exponential
    >>> Ranked(np.array([2.0, 1.0, np.inf])).exposures(Exponential(0.5)).value.tolist()
    [0.5, 1.0, 0.0]
    """

    rank: Floats
    exact: ClassVar[bool] = True

    def exposures(self, position: PositionModel) -> ItemExposures:
        rank = np.asarray(self.rank, dtype=np.float64)
        shown = np.isfinite(rank)
        taken = rank[shown]
        if (taken < 1).any() or (taken != np.floor(taken)).any() or len(np.unique(taken)) < len(taken):
            raise InputError(
                "ranks that repeat or are no whole numbers from 1; expected a rank of its own for each item."
            )
        value = np.zeros(len(rank))
        value[shown] = position.view(taken)
        return ItemExposures(value)

    @classmethod
    def by_score(cls, score: Floats) -> Ranked:
        """The best score first; equal scores in the order of the items, -inf is never shown."""
        order = np.argsort(-np.asarray(score), kind="stable")
        rank = np.empty(len(order))
        rank[order] = np.arange(1.0, len(order) + 1.0)
        return cls(np.where(np.isneginf(score), np.inf, rank))


@dataclass(frozen=True, slots=True, eq=False)
class PlackettLuce:
    """Items drawn one after the other, each in proportion to its weight among those left; exact by the clock integral.

    >>> from truerank.exposure.positions.position_models import Exponential
    >>> PlackettLuce(np.array([3.0, 1.0])).exposures(Exponential(0.5)).value.round(12).tolist()
    [0.875, 0.625]
    """

    weight: Floats
    exact: ClassVar[bool] = True

    def exposures(self, position: PositionModel) -> ItemExposures:
        view = seen_ranks(position, len(self.weight))
        return ItemExposures(rank_probabilities(self.weight, depth=len(view)) @ view)

    @classmethod
    def by_score(cls, score: Floats, *, temperature: float = 1.0) -> PlackettLuce:
        """Weights exp(score / temperature): the ranking by score plus Gumbel noise of that scale."""
        return cls(softened(score, temperature=temperature))


@dataclass(frozen=True, slots=True)
class UniformCandidates:
    """A candidate generator that draws k items of the pool, all subsets equally likely."""

    k: int


@dataclass(frozen=True, slots=True, eq=False)
class RetrievedCandidates:
    """A candidate generator that retrieves each item by itself with its own probability."""

    probability: Floats


@dataclass(frozen=True, slots=True, eq=False)
class TwoStage:
    """A random candidate generator, then a deterministic or Plackett-Luce ranker over the candidates; exact.

    The ranker is given for the whole pool; among the candidates it keeps its order, or its weights.

    >>> from truerank.exposure.positions.position_models import Exponential
    >>> best_of_two = TwoStage(UniformCandidates(2), Ranked(np.array([1.0, 2.0, 3.0])))
    >>> best_of_two.exposures(Exponential(0.5)).value.round(12).tolist()
    [0.666666666667, 0.5, 0.333333333333]
    """

    candidates: UniformCandidates | RetrievedCandidates
    ranker: Ranked | PlackettLuce
    exact: ClassVar[bool] = True

    def exposures(self, position: PositionModel) -> ItemExposures:
        pool = self.ranker.weight if isinstance(self.ranker, PlackettLuce) else self.ranker.rank
        view = seen_ranks(position, len(pool))
        return ItemExposures(self._ranks(np.asarray(pool, dtype=np.float64), depth=len(view), view=view))

    def _ranks(self, pool: Floats, *, depth: int, view: Floats) -> Floats:
        if isinstance(self.ranker, PlackettLuce):
            if isinstance(self.candidates, UniformCandidates):
                found = subset_rank_probabilities(pool, self.candidates.k, depth=depth)
            else:
                found = retrieved_rank_probabilities(pool, self.candidates.probability, depth=depth)
        else:
            if not np.isfinite(pool).all():
                raise InputError("a ranker that does not rank every item of the pool; expected a rank for each.")
            place = np.argsort(np.argsort(pool, kind="stable"), kind="stable")
            if isinstance(self.candidates, UniformCandidates):
                found = subset_order_probabilities(place, self.candidates.k, depth=depth)
            else:
                checked_retrieval(self.candidates.probability, len(pool))
                found = retrieved_order_probabilities(place, self.candidates.probability, depth=depth)
        return np.asarray(found @ view[: found.shape[1]])


@dataclass(frozen=True, slots=True, eq=False)
class SampledRanker:
    """Any stochastic ranker that can be drawn from; its exposure is a mean over draws, with its standard error.

    `sampler(rng)` gives the items (positions 0 ... n_items - 1) of one ranking, best first. For targets only: as a
    logging exposure it would be divided by, and 1 / ε̂ is biased by about (1 - ε) / (draws x ε) and infinite at 0.
    """

    sampler: Callable[[np.random.Generator], Sequence[int] | Ints]
    n_items: int
    draws: int = DRAWS
    seed: int = 0
    key: str = ""
    exact: ClassVar[bool] = False

    def exposures(self, position: PositionModel) -> ItemExposures:
        if self.draws < 2:
            raise InputError(f"{self.draws} draws; expected at least 2, for the error of the mean.")
        rng = generator(self.seed, f"exposure {self.key}")
        view = seen_ranks(position, self.n_items)
        total, square = np.zeros(self.n_items), np.zeros(self.n_items)
        for _ in range(self.draws):
            ranking = np.asarray(self.sampler(rng), dtype=np.int64)[: len(view)]
            if len(np.unique(ranking)) < len(ranking) or ((ranking < 0) | (ranking >= self.n_items)).any():
                raise InputError(
                    f"a drawn ranking that repeats an item or leaves 0 ... {self.n_items - 1}; got {ranking}."
                )
            total[ranking] += view[: len(ranking)]
            square[ranking] += view[: len(ranking)] ** 2
        mean = total / self.draws
        variance = np.maximum(square / self.draws - mean**2, 0.0) / (self.draws - 1)
        return ItemExposures(mean, np.sqrt(variance))


def logging_exposures(ranker: Ranker, position: PositionModel) -> Floats:
    """ε0 of a logging policy, exact or refused."""
    if not ranker.exact:
        raise RefusedError(
            "the exposure of a logging policy cannot be a Monte-Carlo mean: it is divided by, which biases every "
            "weight by about (1 - ε0) / (draws x ε0) and makes it infinite where no draw shows an item. Log the "
            "exposure, or give the policy as a deterministic, Plackett-Luce or two-stage ranker."
        )
    return ranker.exposures(position).value


def mixed_exposures(exposure: Floats, share: Floats) -> Floats:
    """ε0 = Σ_j α_j ε_j of several loggers (the balance heuristic), [loggers x rows] -> [rows].

    `share` is α_j, or α_j(x) for each row where traffic depends on the context. Every logger's exposure is needed for
    every row, whichever logger made it.

    >>> mixed_exposures(np.array([[0.2, 1.0], [0.6, 0.0]]), np.array([0.5, 0.5])).tolist()
    [0.4, 0.5]
    """
    exposure, share = np.asarray(exposure, dtype=np.float64), np.asarray(share, dtype=np.float64)
    if share.ndim == 1:
        share = share[:, None]
    if exposure.ndim != 2 or share.shape[0] != exposure.shape[0] or share.shape[1] not in (1, exposure.shape[1]):
        raise InputError(
            f"exposures of shape {exposure.shape} with shares of shape {share.shape}; expected [loggers x rows] and a "
            "share of each logger, or of each logger in each row."
        )
    if not np.isfinite(exposure).all():
        raise InputError(
            "a row without the exposure of every logger; mixing needs all of them, not only the row's own."
        )
    if (share < 0).any() or (np.abs(share.sum(axis=0) - 1) > SHARE_ERROR).any():
        raise InputError("shares of loggers that are negative or do not sum to 1; expected shares of the trajectories.")
    return np.asarray((exposure * share).sum(axis=0))


def seen_ranks(position: PositionModel, n: int) -> Floats:
    """P(V = 1 | r) of ranks 1 ... n, without the ranks that are never seen."""
    view = position.view(np.arange(1.0, n + 1.0))
    seen = np.flatnonzero(view > 0)
    return view[: int(seen[-1]) + 1] if len(seen) else view[:1]


def softened(score: Floats, *, temperature: float) -> Floats:
    """exp(score / temperature), scaled so that nothing overflows."""
    if not (math.isfinite(temperature) and temperature > 0):
        raise InputError(f"temperature {temperature}; expected a positive number.")
    score = np.asarray(score, dtype=np.float64) / temperature
    if not np.isfinite(score).all():
        raise InputError("a score that is no finite number; expected one for each item.")
    return np.asarray(np.exp(np.maximum(score - score.max(axis=-1, keepdims=True), -500.0)))
