"""Intervals from randomly exposed labels, on a block whose every label is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from truerank.estimators.post_stratified import PostStratified
from truerank.estimators.weighted import Hajek, HorvitzThompson, Pooled, Published
from truerank.metrics.dcg import DCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.uncertainty.intervals import Design, Interval, Population
from truerank_research.coverage import Asked, Coverage, ObservedWorld, Uniformly, measure_case
from truerank_research.pages import Page, Picture
from truerank_research.results import Measured
from truerank_research.runner import Run, Source, Study
from truerank_research.validation.kuairec import DATASET, observed

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
    source: Source
    full: bool
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
        return 80 if self.full else 40

    def world(self) -> ObservedWorld:
        return observed(self.source, full=self.full, seed=self.seed)[0]

    def drawing(self) -> Uniformly:
        return Uniformly(self.judged)


def measure(run: Run) -> Measured:
    """How often intervals from randomly exposed labels hold the truth, and those of the published mean."""
    source, full, seed = run.source, run.full, run.seed
    runs = 2000 if full else 10
    cases = {name: UniformJudgements(name, source, full, seed) for name in ASKED}
    found = {name: measure_case(case, draws=runs, run=run) for name, case in cases.items()}
    world = cases[POPULATION].world()
    return Measured(
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


PAGE = Page(
    "Coverage of intervals from random labels",
    "Of every user of KuaiRec's block ({{ settings.users | number }} users, {{ settings['items'] | number }} items), "
    "{{ settings.judged }} random items were labelled, {{ settings.runs | number }} times. The 95% intervals cover the "
    "true value in {{ tables.coverage | map(attribute='coverage') | min | percent }} to "
    "{{ tables.coverage | map(attribute='coverage') | max | percent }} of the draws. The intervals of the URE estimator "
    "cover the mean recall of popularity in {{ tables.published[0].coverage | percent }}.",
    Picture(
        "Share of 95% intervals that cover the true value", "ranges", x="what", y="coverage", group="estimator",
        panel="interval", y_title="coverage", table="coverage", level=0.95, band=(0.93, 0.97),
    ),
    "coverage",
    {
        "interval": "interval", "metric": "metric", "estimator": "estimator", "what": "model or difference",
        "truth": "true value", "relative": "relative bias", "coverage": "coverage", "width": "mean width",
    },
)  # fmt: skip
STUDIES = (
    Study(
        "coverage", "Do 95% intervals from randomly labelled items cover the true value in 95% of draws?",
        measure, data=(DATASET,), minutes=30, page=PAGE,
    ),
)  # fmt: skip
