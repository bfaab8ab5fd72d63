"""Tiny worlds whose every possible sample can be listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from outcomes import alone, outcomes
from terms import terms_of

from truerank.core.estimator import Estimator
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Ranks
from truerank.core.terms import Smooth
from truerank.sampling.designs import SamplingDesign


@dataclass(frozen=True)
class Tiny:
    """Users with their candidates best first; `tied[u][i]` and `above[u][i]` default to a ranking without ties."""

    labels: Sequence[Sequence[int]]
    above: Sequence[Sequence[float]] | None = None
    tied: Sequence[Sequence[float]] | None = None
    column: str = "label"  # or the name of a column of grades

    def terms(
        self,
        estimator: Estimator,
        metric: Metric,
        judged: Sequence[Sequence[int]],
        *,
        rate: float | None = None,
        keep_rows: bool = False,
    ) -> Smooth:
        """The terms when these candidates of each user are judged, at a declared rate or by a fixed number."""
        user = [u for u, members in enumerate(judged) for _ in members]
        place = [i for members in judged for i in members]
        n_users = len(self.labels)
        size = np.array([float(len(row)) for row in self.labels])
        log = Log(
            users=Ids.of(np.arange(n_users)),
            items=Ids.of(np.arange(int(size.max()))),
            unit=np.array(user, dtype=np.int64),
            item=np.array(place, dtype=np.int64),
            rewards={self.column: np.array([float(self.labels[u][i]) for u, i in zip(user, place, strict=True)])},
        )
        above = [float(i) if self.above is None else self.above[u][i] for u, i in zip(user, place, strict=True)]
        tied = [0.0 if self.tied is None else self.tied[u][i] for u, i in zip(user, place, strict=True)]
        ranks = Ranks(np.array(above), np.array(tied), size, size, np.ones(n_users, dtype=bool))
        return terms_of(estimator, log, ranks, metric, rate=rate, keep_rows=keep_rows)

    def everything(self) -> list[range]:
        return [range(len(row)) for row in self.labels]

    def samples(self, designs: Sequence[SamplingDesign]) -> Iterator[tuple[list[tuple[int, ...]], float]]:
        """Every joint sample of all users with its probability."""
        pools = [list(outcomes(design, alone(len(row)))) for design, row in zip(designs, self.labels, strict=True)]
        for outcome in product(*pools):
            yield [members for members, _ in outcome], float(np.prod([chance for _, chance in outcome]))


def expectation(
    world: Tiny,
    estimator: Estimator,
    metric: Metric,
    designs: Sequence[SamplingDesign],
    function: Callable[[Smooth], float],
    *,
    rate: float | None = None,
) -> float:
    """The exact expectation of a function of the terms over every sample."""
    return sum(
        chance * function(world.terms(estimator, metric, members, rate=rate))
        for members, chance in world.samples(designs)
    )
