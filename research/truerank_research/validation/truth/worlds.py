"""The worlds of the study, and one draw of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from truerank.core.arrays import Ints
from truerank.core.chance import generator
from truerank.core.terms import Smooth
from truerank.uncertainty.intervals import Population
from truerank.uncertainty.spreads import Spread
from truerank_research.runner import Run
from truerank_research.validation.calibration.said import Said
from truerank_research.validation.truth.contenders import CONTENDERS, Contender, ShownRows
from truerank_research.validation.truth.known import FIRST, KnownWorld, SyntheticSettings, jester, kuairec, synthetic

MOST_USERS = 1411  # in a draw
WITH_INTERVALS = 4  # of so many draws one: they cost most of the time
CUTOFFS = (5, 10, 50, 500)

SYNTHETIC = {
    "tastes": SyntheticSettings(),
    "30% like nothing": SyntheticSettings(disliking=0.3),
    "rising recall": SyntheticSettings(rising=True),
}
REAL = {"kuairec": kuairec, "jester": jester}


@dataclass(frozen=True, slots=True)
class TruthWorld:
    """A world in which `judged` items of each of so many users are shown at random."""

    source: str
    judged: int
    cutoffs: tuple[int, ...] = CUTOFFS
    folder: Path | None = field(default=None, repr=False)  # of real data: its place does not matter

    @property
    def name(self) -> str:
        return f"{self.source}, {self.judged} judged"

    def n_draws(self, asked: int) -> int:
        return asked

    def known(self, seed: int) -> KnownWorld:
        return _known(self.source, self.folder, seed)

    def draw(self, seed: int, run: int) -> ShownRows:
        """Users with repeats, and for each of them items at random."""
        world = self.known(seed)
        rng = generator(seed, f"truth {self.name} {run}")
        n = min(world.n_users, MOST_USERS)
        user = rng.integers(0, world.n_users, n)
        return ShownRows(world, user, _subsets(rng, n, world.n_items, self.judged), seed)

    def said(self, seed: int, run: int) -> Iterator[Said]:
        """Every value and every difference from the first model; in every fourth draw with its interval."""
        draw = self.draw(seed, run)
        spreads = _with_intervals if run % WITH_INTERVALS == 0 else _values_alone
        for contender, k in self.asked(draw.world):
            terms: dict[str, Smooth] = {model: contender.terms(draw, model, k) for model in draw.world.rank}
            pairs = [(model, FIRST) for model in terms if model != FIRST]
            alone, apart = spreads(terms, pairs)
            metric = f"{contender.metric}@{k}"
            for model, spread in alone.items():
                yield run, model, metric, contender.name, spread.value, spread.low, spread.high, 0, False
            for (model, first), spread in apart.items():
                what = f"{model} - {first}"
                yield run, what, metric, contender.name, spread.value, spread.low, spread.high, 0, False

    def asked(self, world: KnownWorld) -> list[tuple[Contender, int]]:
        return [(each, k) for each in CONTENDERS for k in self.cutoffs if k < world.n_items]

    def true_values(self, seed: int) -> dict[tuple[str, str, str], float]:
        world = self.known(seed)
        found: dict[tuple[str, str, str], float] = {}
        for contender, k in self.asked(world):
            metric = f"{contender.metric}@{k}"
            values = {model: contender.truth(world, model, k) for model in world.rank}
            found |= {(model, metric, contender.name): value for model, value in values.items()}
            found |= {
                (f"{model} - {FIRST}", metric, contender.name): value - values[FIRST]
                for model, value in values.items()
                if model != FIRST
            }
        return found


def _subsets(rng: np.random.Generator, n: int, size: int, number: int) -> Ints:
    """So many different numbers below a size, n times, in order; no number is treated unlike another.

    >>> found = _subsets(generator(1, "example"), 3, 10, 4)
    >>> bool((np.diff(found, axis=1) > 0).all()), found.shape
    (True, (3, 4))
    """
    found = np.sort(rng.integers(0, size, (n, number)), axis=1)
    while (again := found[:, 1:] == found[:, :-1]).any():
        found[:, 1:][again] = rng.integers(0, size, int(again.sum()))
        found.sort(axis=1)
    return found


Pair = tuple[str, str]


def _with_intervals(terms: dict[str, Smooth], pairs: list[Pair]) -> tuple[dict[str, Spread], dict[Pair, Spread]]:
    return Population().spreads(terms, pairs, level=0.95)


def _values_alone(terms: dict[str, Smooth], pairs: list[Pair]) -> tuple[dict[str, Spread], dict[Pair, Spread]]:
    """To the last digits: totals are plain sums."""
    values = {name: float(each.form.values(each.sums.sum(axis=0)[None])[0]) for name, each in terms.items()}
    return (
        {name: Spread.unknown(value) for name, value in values.items()},
        {(one, other): Spread.unknown(values[one] - values[other]) for one, other in pairs},
    )


@lru_cache(maxsize=8)  # worlds take turns, and each takes longer to make than its draws
def _known(source: str, folder: Path | None, seed: int) -> KnownWorld:
    if source in SYNTHETIC:
        return synthetic(SYNTHETIC[source], seed=seed)
    assert folder is not None
    return REAL[source](folder, seed=seed)


def worlds(run: Run) -> tuple[TruthWorld, ...]:
    """The simulated datasets, and the real ones where there are data."""
    chosen = [TruthWorld(source, judged) for source in SYNTHETIC for judged in (10, 20, 80)]
    if not run.source.is_synthetic:
        folder = run.source.path("kuairec")
        chosen += [TruthWorld("kuairec", judged, folder=folder) for judged in (10, 20, 80)]
        chosen += [TruthWorld("jester", judged, (5, 20), run.source.path("jester")) for judged in (10, 20, 40)]
    return tuple(chosen)
