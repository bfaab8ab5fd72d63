"""Tiny ranked systems: every ranking, scroll depth and reward, each with its probability."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
import polars as pl

Ranking = tuple[int, ...]


@dataclass(frozen=True)
class TinyFeed:
    """One context: the quality of each item, the chance of each scroll depth, the rankings of a stochastic logger."""

    quality: tuple[float, ...]
    depth: tuple[float, ...]
    rankings: Mapping[Ranking, float]

    @property
    def view(self) -> tuple[float, ...]:
        """P(V | r) = P(D >= r)."""
        return tuple(float(sum(self.depth[r:])) for r in range(len(self.depth)))

    def exposure(self, rankings: Mapping[Ranking, float]) -> np.ndarray:
        found = np.zeros(len(self.quality))
        for ranking, chance in rankings.items():
            for rank, item in enumerate(ranking):
                found[item] += chance * self.view[rank]
        return found

    def truth(self, rankings: Mapping[Ranking, float]) -> float:
        return float(self.exposure(rankings) @ np.array(self.quality))

    def outcomes(self, *, displayed: bool = False) -> Iterator[tuple[float, list[dict[str, int]]]]:
        """Every session: its probability and its rows; of viewed items, or of all displayed ones."""
        for (ranking, chance), (last, stop) in product(self.rankings.items(), enumerate(self.depth, 1)):
            viewed = ranking[:last]
            for rewards in product((0, 1), repeat=len(viewed)):
                p = chance * stop
                for item, reward in zip(viewed, rewards, strict=True):
                    p *= self.quality[item] if reward else 1 - self.quality[item]
                given = dict(zip(viewed, rewards, strict=True))
                shown = ranking if displayed else viewed
                rows = [
                    {"item": item, "position": rank, "reward": given.get(item, 0), "seen": item in given}
                    for rank, item in enumerate(shown, 1)
                ]
                if p > 0:
                    yield p, rows

    def log(self, *, first: int = 0, displayed: bool = False) -> tuple[pl.DataFrame, np.ndarray]:
        """A log in which every outcome is one session, with the true logging exposures, and the probabilities."""
        exposure = self.exposure(self.rankings)
        chance, rows = [], []
        for session, (p, found) in enumerate(self.outcomes(displayed=displayed), first):
            chance.append(p)
            rows += [{"session": session, **row, "propensity": exposure[int(row["item"])]} for row in found]
        return pl.DataFrame(rows), np.array(chance)

    def table(self, rankings: Mapping[Ranking, float], sessions: Sequence[int]) -> pl.DataFrame:
        """A target's exposure of every item in every session."""
        exposure = self.exposure(rankings)
        n = len(self.quality)
        return pl.DataFrame(
            {
                "session": np.repeat(np.array(sessions), n),
                "item": np.tile(np.arange(n), len(sessions)),
                "exposure": np.tile(exposure, len(sessions)),
            }
        )


def mixed_rankings(n: int) -> dict[Ranking, float]:
    """All rankings of n items with unequal chances."""
    every = list(permutations(range(n)))
    weight = np.arange(1, len(every) + 1, dtype=np.float64)
    return dict(zip(every, (weight / weight.sum()).tolist(), strict=True))


# two items, half of all users see the second; the target turns the list round
TURNED = TinyFeed((0.2, 0.8), (0.5, 0.5), {(0, 1): 1.0})
NEW: dict[Ranking, float] = {(1, 0): 1.0}
# three items in every order
THREE = TinyFeed((0.3, 0.6, 0.9), (0.2, 0.5, 0.3), mixed_rankings(3))
TARGET: dict[Ranking, float] = {(2, 0, 1): 0.75, (1, 2, 0): 0.25}
