"""Estimators for biased logs, on a world whose propensities are known: with the right ones, and with wrong ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from truerank.core.arrays import Floats, sums_by
from truerank.core.ranking import Candidates, Scores
from truerank.estimators.weighted import IPS, SNIPS, Naive
from truerank.metrics.dcg import DCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.models.baselines import Popularity
from truerank.models.ease import EASE
from truerank.ranks.kernel.rank import rank
from truerank.studies.world import WorldSettings, make_world
from truerank.uncertainty.intervals import Interval, Population
from truerank_research.coverage import Asked, ByPropensity, ObservedWorld, measure_case
from truerank_research.pages import Page, Picture
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

K = 20
SETTINGS = WorldSettings(users=1000, items=300, density=0.08, shown=40, judged=20)
SMALL = WorldSettings(users=150, items=60, density=0.1, shown=15, judged=8)
RIGHT = "right"
BLIND, ROOT, EQUAL = "of items, blind to the label", "square root of the right ones", "all equal (naive)"
WRONG: tuple[Asked, ...] = ((Recall(K), SNIPS()), (DCG(K), SNIPS()), (DCG(K), IPS()))
ASKED: dict[str, tuple[Asked, ...]] = {
    RIGHT: (
        (Recall(K), SNIPS()),
        (Precision(K), SNIPS()),
        (DCG(K), SNIPS()),
        (Precision(K), IPS()),
        (DCG(K), IPS()),
        (Precision(K), IPS(10.0)),
        (DCG(K), SNIPS(10.0)),
    ),
    BLIND: WRONG,
    ROOT: WRONG,
    EQUAL: ((Recall(K), Naive()), (DCG(K), Naive())),
}


@dataclass(frozen=True, slots=True)
class ClaimedPropensities:
    """Logs of one world (a `CoverageCase`): what they say of how likely each cell was shown."""

    name: str
    settings: WorldSettings
    seed: int

    @property
    def asked(self) -> tuple[Asked, ...]:
        return ASKED[self.name]

    @property
    def interval(self) -> Interval:
        return Population()

    def world(self) -> ObservedWorld:
        return shown_world(self.settings, self.seed)[0]

    def drawing(self) -> ByPropensity:
        right = shown_world(self.settings, self.seed)[1]
        claimed = {BLIND: np.broadcast_to(right.mean(axis=0), right.shape), ROOT: np.sqrt(right)}
        return ByPropensity(right, claimed.get(self.name))


@cache
def shown_world(settings: WorldSettings, seed: int) -> tuple[ObservedWorld, Floats]:
    """A fully observed world with the ranks of two recommenders, and how likely each cell is shown."""
    made = make_world(settings, seed=seed)
    labels = made.truth
    pool = Candidates(len(made.users), float(len(made.items)))
    scores: dict[str, Scores] = {
        "popularity": Popularity().fit(made.train, seed=1),
        "ease": EASE().fit(made.train, seed=1),
    }
    ranks = {name: rank(each, labels, pools=[pool])[0] for name, each in scores.items()}
    return ObservedWorld(labels, ranks), propensities(labels.label.reshape(len(made.users), -1))


def propensities(label: Floats) -> Floats:
    """Popular items are shown up to ten times as often, and what is liked half as often again."""
    popularity = label.sum(axis=0) / label.sum(axis=0).max()
    return np.asarray((0.03 + 0.3 * popularity) * np.where(label == 1, 1.5, 1.0))


def measure(run: Run) -> Measured:
    """How often intervals of estimators for biased logs hold the truth, with right and with wrong propensities."""
    full, seed = run.full, run.seed
    settings, runs = (SETTINGS, 2000) if full else (SMALL, 20)
    cases = [ClaimedPropensities(name, settings, seed) for name in ASKED]
    rows = [row for case in cases for row in _rows(case, runs=runs, run=run)]
    truth, right = shown_world(settings, seed)
    liked = sums_by(truth.labels.user, truth.labels.label, n=truth.n_users).mean()
    return Measured(
        {"coverage": rows},
        {
            "runs": runs, "users": truth.n_users, "items": truth.n_items, "liked": float(liked),
            "least propensity": float(right.min()), "largest propensity": float(right.max()),
            "rows of a log": int(right.sum()),
        },
    )  # fmt: skip


def _rows(case: ClaimedPropensities, *, runs: int, run: Run) -> Iterator[dict[str, Any]]:
    found = measure_case(case, draws=runs, run=run)
    per_pair = len(found) // len(case.asked)
    clips = [getattr(estimator, "clip", None) for _, estimator in case.asked for _ in range(per_pair)]
    for clip, each in zip(clips, found, strict=True):
        yield {
            "propensities": case.name,
            "metric": each.metric,
            "estimator": each.estimator,
            "clip": clip,
            "what": each.what,
            "truth": each.truth,
            "mean": each.mean,
            "bias": each.bias,
            "relative": each.bias / abs(each.truth) if each.truth else 0.0,
            "noise": each.noise,
            "coverage": each.covered,
            "width": each.width,
        }


PAGE = Page(
    "Estimators for biased logs",
    "Logs with known propensities ({{ settings['least propensity'] | number }} to "
    "{{ settings['largest propensity'] | number }}) were drawn {{ settings.runs | number }} times from a simulated "
    "dataset of {{ settings.users | number }} users and {{ settings['items'] | number }} items. With the correct "
    "propensities and without clipping, intervals cover the true value in "
    "{{ tables.coverage | selectattr('propensities', 'equalto', 'right') | selectattr('clip', 'none') "
    "| map(attribute='coverage') | min | percent }} or more of the logs. With wrong propensities coverage falls to "
    "{{ tables.coverage | rejectattr('propensities', 'equalto', 'right') | map(attribute='coverage') | min | percent }}.",
    Picture(
        "Share of 95% intervals that cover the true value, by the propensities that the log states", "ranges",
        x="what", y="coverage", group="propensities", panel="metric", y_title="coverage", table="coverage", level=0.95,
    ),
    "coverage",
    {
        "propensities": "stated propensities", "metric": "metric", "estimator": "estimator", "clip": "clip",
        "what": "model or difference", "relative": "relative bias", "coverage": "coverage", "width": "mean width",
    },
)  # fmt: skip
STUDIES = (
    Study(
        "biased-exposure", "Do estimators for biased logs cover the true value, with correct and with wrong propensities?",
        measure, minutes=4, page=PAGE,
    ),
)  # fmt: skip
