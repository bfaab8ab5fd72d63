"""Whether the advice of a study holds on fresh logs: is the logger recognised, is the expected τ what comes out?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.studies.reliability import Studied, advice_for
from truerank.studies.reliability.studied import likenesses
from truerank_research.results import Measured
from truerank_research.runner import Run, Study
from truerank_research.validation.advice.fresh import (
    MODELS,
    SPARSITIES,
    WORLDS,
    AdvisedWorld,
    fresh_logs,
    looks_and_signs,
    studied_of,
    study_half,
    true_order,
)
from truerank_research.validation.kuairec import DATASET

DRAWS = {50: 40, 200: 20, 0: 6}  # of each number of users; 0: as many as there are, of the other half alone
QUICK_DRAWS = {20: 2, 0: 2}
OUTSIDE = 0.95  # sparsities from which the study has none


@dataclass(frozen=True, slots=True)
class FollowedAdvice:
    """Fresh logs of one half, logger, number of users and sparsity, and what came of following the advice."""

    half: int
    logger: str
    users: int
    sparsity: float
    taken: tuple[str, ...]  # the logger recognised in each draw
    expected: Floats  # of each way to choose candidates, by the true logger
    realised: Floats
    stated: float  # expected τ of what was recommended in each draw
    followed: float  # its realised τ
    first: float  # realised τ of the best expected, whatever it costs
    full: float
    exposed: float
    best: float  # in hindsight

    @property
    def beyond(self) -> bool:
        """Whether the log is sparser than any of the study."""
        return self.sparsity >= OUTSIDE


def follow(
    world: AdvisedWorld, half: int, logger: str, fresh: pl.DataFrame, studied: Studied, truth: Floats
) -> Iterator[FollowedAdvice]:
    """What fresh logs say, at each sparsity, in every way that a study knows."""
    labels = world.grid.candidates
    at = {label: place for place, label in enumerate(labels)}
    for sparsity in SPARSITIES:
        looks, signs = looks_and_signs(fresh.filter(pl.col("sparsity") == sparsity), candidates=len(labels))
        size, seen = looks[0].users, float(np.mean([each.sparsity for each in looks]))
        taken = tuple(likenesses(studied, each, sparsity=each.sparsity)[0].logger for each in looks)
        advice = {each: advice_for(studied, None, users=size, sparsity=seen, logger=each) for each in {logger, *taken}}
        own = advice[logger]
        decided = _decided(studied, own.undecided)
        tau = (signs[:, :, decided] * np.sign(truth[decided])).mean(axis=2)  # [draws x candidates]
        expected = {(each.sampler, each.size): each.tau for each in own.choices}
        chosen = {name: (each.recommended, each.best) for name, each in advice.items()}
        followed, first = (
            float(np.mean([tau[d, at[chosen[t][k].sampler, chosen[t][k].size]] for d, t in enumerate(taken)]))
            for k in (0, 1)
        )
        mean = tau.mean(axis=0)
        yield FollowedAdvice(
            half, logger, size, sparsity, taken,
            np.array([expected[each] for each in labels]), mean,
            float(np.mean([chosen[t][0].tau for t in taken])), followed, first,
            float(mean[at["Full", None]]), float(mean[at["Exposed", None]]), float(mean.max()),
        )  # fmt: skip


def _decided(studied: Studied, undecided: Sequence[tuple[str, str]]) -> Ints:
    """The places of the pairs whose order the study knows."""
    pairs = list(studied.pairs.select("model", "other").unique(maintain_order=True).iter_rows())
    return np.array([at for at, each in enumerate(pairs) if each not in undecided], dtype=np.int64)


# -------------------------------------------------------------------------------------------------------------- tables


def recognised(world: str, rows: Sequence[FollowedAdvice], loggers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """How often each logger was taken for which, over all fresh logs of the other half."""
    for logger in loggers:
        taken = [each for row in rows if row.logger == logger and row.half == 1 for each in row.taken]
        for each in loggers:
            yield {"world": world, "logger": logger, "taken for": each, "logs": taken.count(each)}


def regrets(world: str, rows: Sequence[FollowedAdvice]) -> Iterator[dict[str, Any]]:
    """Realised τ of what was advised, beside what could have been done; logs of other users."""
    other = [row for row in rows if row.half == 1]
    for sparsity in SPARSITIES:
        for n in sorted({row.users for row in other}):
            mean = _means(row for row in other if row.sparsity == sparsity and row.users == n)
            yield {"world": world, "sparsity": sparsity, "users": n, **mean, "regret": mean["best"] - mean["advised"]}


def in_short(world: str, rows: Sequence[FollowedAdvice]) -> Iterator[dict[str, Any]]:
    """Users who were not in the study: how far expected τ is off, within the study's sparsities and beyond."""
    for beyond in (False, True):
        these = [row for row in rows if row.half == 1 and row.beyond == beyond]
        apart = np.concatenate([row.expected - row.realised for row in these])
        mean = _means(these)
        shown = {name: mean[name] for name in ("advised", "stated", "full", "best")}
        yield {"world": world, "beyond": beyond, "off": math.sqrt(float(np.mean(apart**2))), **shown}


def _means(rows: Iterator[FollowedAdvice] | Sequence[FollowedAdvice]) -> dict[str, float]:
    these = list(rows)
    named = {"advised": "followed", **{each: each for each in ("stated", "first", "best", "full", "exposed")}}
    return {name: float(np.mean([getattr(row, field) for row in these])) for name, field in named.items()}


# --------------------------------------------------------------------------------------------------------------- study


def measure(run: Run) -> Measured:
    """Advice from a reliability study of one half of the users, followed on fresh logs of both halves."""
    source, full, seed = run.source, run.full, run.seed
    worlds = [AdvisedWorld(name, source, full, seed) for name in WORLDS]
    grid = worlds[0].grid
    files = run.pieces(study_half, [(world,) for world in worlds], about="studying one half of the users")
    judged = {world.of: _judged(world, studied_of(table), run) for world, table in zip(worlds, files, strict=True)}
    loggers = [str(each) for each in grid.loggers]
    return Measured(
        {
            "in short": [row for name, rows in judged.items() for row in in_short(name, rows)],
            "recognised": [row for name, rows in judged.items() for row in recognised(name, rows, loggers)],
            "regrets": [row for name, rows in judged.items() for row in regrets(name, rows)],
        },
        {"models": len(MODELS), "ways": grid.n_candidates, "repetitions": grid.repetitions},
    )


def _judged(world: AdvisedWorld, studied: Studied, run: Run) -> list[FollowedAdvice]:
    draws: Mapping[int, int] = DRAWS if world.full else QUICK_DRAWS
    truth = run.pieces(true_order, [(world, half) for half in (0, 1)], about="ranking")
    arguments = [
        (world, half, str(logger), n, times)
        for half in (0, 1)
        for logger in world.grid.loggers
        for n, times in draws.items()
        if n or half
    ]
    fresh = run.pieces(fresh_logs, arguments, about=f"drawing fresh logs ({world.of})")
    return [
        row
        for (_, half, logger, *_), table in zip(arguments, fresh, strict=True)
        for row in follow(world, half, logger, table, studied, truth[half]["difference"].to_numpy())
    ]


STUDIES = (
    Study(
        "advice", "Does the advice of `truerank advise` hold on logs whose truth is known?",
        measure, data=(DATASET,), minutes=10,
    ),
)  # fmt: skip
