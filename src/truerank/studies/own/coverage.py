"""Intervals from randomly exposed labels, on a block whose every label is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from truerank.core.progress import Progress
from truerank.estimators.judged.hajek import Hajek
from truerank.estimators.judged.horvitz_thompson import HorvitzThompson
from truerank.estimators.judged.pooled import Pooled
from truerank.estimators.judged.post_stratified import PostStratified
from truerank.estimators.judged.published import Published
from truerank.metrics.dcg import DCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.studies.coverage import Asked, Coverage, ObservedWorld, Uniformly, measure_kept
from truerank.studies.own.kuairec import DATASET, observed
from truerank.studies.own.study import StudyTables
from truerank.studies.work import Keep, StudySize, StudySource
from truerank.uncertainty.intervals import Design, Interval, Population

K = 50
POPULATION, DESIGN, PUBLISHED = "population", "design", "published mean"
ESTIMATED: tuple[Asked, ...] = (
    (Recall(K), Pooled()),
    (Recall(K), PostStratified()),
    (Precision(K), HorvitzThompson()),
    (DCG(K), HorvitzThompson()),
    (Precision(K), Hajek()),
    (DCG(K), Hajek()),
)
ASKED: dict[str, tuple[Asked, ...]] = {
    POPULATION: ESTIMATED,
    DESIGN: ESTIMATED,
    PUBLISHED: ((Recall(K), Published()),),
}
CLAIMED = ("pooled", "post-stratified", "horvitz-thompson")  # 93 to 97 %, and no bias


@dataclass(frozen=True, slots=True)
class UniformJudgements:
    """Labels of random items of every user (a `CoverageCase`), by the interval that is asked of them."""

    name: str
    source: StudySource
    size: StudySize
    seed: int

    @property
    def asked(self) -> tuple[Asked, ...]:
        return ASKED[self.name]

    @property
    def interval(self) -> Interval:
        return Design() if self.name == DESIGN else Population()

    @property
    def judged(self) -> int:
        """Items of each user whose labels are seen."""
        return 80 if self.size is StudySize.FULL else 40

    def world(self) -> ObservedWorld:
        return observed(self.source, size=self.size, seed=self.seed)[0]

    def drawing(self) -> Uniformly:
        return Uniformly(self.judged)


@dataclass(frozen=True, slots=True)
class UniformCoverageStudy:
    """How often intervals from randomly exposed labels hold the truth, and those of the published mean."""

    name: ClassVar[str] = "coverage"
    about: ClassVar[str] = "Do intervals from randomly exposed labels hold the truth as often as they say?"
    data: ClassVar[tuple[str, ...]] = (DATASET,)
    minutes: ClassVar[float] = 30.0

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> StudyTables:
        del progress
        runs = 2000 if size is StudySize.FULL else 10
        cases = {name: UniformJudgements(name, source, size, seed) for name in ASKED}
        found = {name: measure_kept(case, runs=runs, keep=keep) for name, case in cases.items()}
        world = cases[POPULATION].world()
        return StudyTables(
            {
                "coverage": [_row(each) for name in (POPULATION, DESIGN) for each in found[name]],
                "published": [_published(each) for each in found[PUBLISHED]],
            },
            {
                "runs": runs, "users": world.n_users, "items": world.n_items,
                "judged": cases[POPULATION].judged, "K": K,
            },
        )  # fmt: skip


def _row(each: Coverage) -> dict[str, Any]:
    relative = each.bias / abs(each.truth) if each.truth else 0.0
    return {
        "interval": each.kind, "metric": each.metric, "estimator": each.estimator, "what": each.what,
        "truth": each.truth, "mean": each.mean, "bias": each.bias, "relative": relative, "noise": each.noise,
        "coverage": each.covered, "width": each.width,
    }  # fmt: skip


def _published(each: Coverage) -> dict[str, Any]:
    """Of the published mean: a relative bias below 0 is a value or a difference that comes out too small."""
    return {
        "what": each.what, "truth": each.truth, "mean": each.mean, "bias": each.bias,
        "relative": each.bias / each.truth if each.truth else 0.0, "noise": each.noise, "coverage": each.covered,
    }  # fmt: skip
