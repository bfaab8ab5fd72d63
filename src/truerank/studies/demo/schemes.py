"""Ways to evaluate, held against the truth over several draws of what is observed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import Asked, Estimator
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Scores
from truerank.core.results import Results
from truerank.estimators.judged.full import Full
from truerank.estimators.judged.pooled import Pooled
from truerank.evaluation.judged import evaluate
from truerank.exposure.kinds import BiasedExposure, RandomExposure
from truerank.studies.demo.chapter import Say, Sheet
from truerank.studies.demo.made import NEWCOMERS
from truerank.studies.world import World

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Scheme:
    """One way to evaluate, what it is held against, and why it works or fails."""

    metric: Metric
    estimator: Estimator
    truth: Estimator
    why: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What a scheme said over repeated draws, beside the truth; one column per model."""

    scheme: Scheme
    models: tuple[str, ...]
    truth: Floats
    values: Floats

    @property
    def name(self) -> str:
        return self.scheme.estimator.about.name

    @property
    def error(self) -> dict[str, float]:
        """How far the average over draws is from the truth, relative to it, by model."""
        error = (self.values.mean(axis=0) - self.truth) / self.truth
        return dict(zip(self.models, error.tolist(), strict=True))

    @property
    def on_target(self) -> bool:
        """Every model's average is within 3 Monte-Carlo standard errors, or 1 %, of the truth."""
        noise = 3 * self.values.std(axis=0, ddof=1) / np.sqrt(len(self.values))
        return bool((np.abs(self.values.mean(axis=0) - self.truth) <= np.maximum(noise, 0.01 * self.truth)).all())

    def orders_right(self, *, without: str | None = None) -> int:
        """In how many draws the models came in their true order, all of them or without one."""
        kept = [at for at, name in enumerate(self.models) if name != without]
        right = np.argsort(self.truth[kept])
        return sum(bool((np.argsort(row[kept]) == right).all()) for row in self.values)


def find(
    schemes: Sequence[Scheme],
    world: World,
    models: Mapping[str, Scores],
    draws: Sequence[Log],
    *,
    exposure: RandomExposure | BiasedExposure,
    say: Say | None = None,
) -> list[Finding]:
    """Evaluate with every scheme on every draw, and with full labels for the truth."""
    metrics, estimators = (_distinct([getattr(each, name) for each in schemes]) for name in ("metric", "estimator"))
    known = evaluate(models, world.truth, exclude=world.train, metrics=metrics, estimators=[Full(), Pooled()])
    results = []
    for at, judged in enumerate(draws):
        if say is not None:
            say("evaluating", at + 1, len(draws))
        results.append(
            evaluate(models, judged, exclude=world.train, exposure=exposure, metrics=metrics, estimators=estimators)
        )
    return [
        Finding(
            each,
            tuple(models),
            _values(known, each.metric, each.truth, list(models)),
            np.array([_values(found, each.metric, each.estimator, list(models)) for found in results]),
        )
        for each in schemes
    ]


def sheets(findings: Sequence[Finding]) -> Iterator[Sheet]:
    """Findings that are held against the same truth under that truth's estimand, averages over draws."""

    def question(each: Finding) -> str:
        return f"{each.scheme.metric}: {each.scheme.truth.estimand(Asked(each.scheme.metric))}"

    for title, run in groupby(findings, key=question):
        group = list(run)
        models, draws = group[0].models, len(group[0].values)
        made_up = NEWCOMERS in models
        header = ("", *models, "error", "order found", *(("and without newcomers",) if made_up else ()))
        rows = [
            (
                "truth",
                *(f"{value:.4f}" for value in group[0].truth),
                *("" for _ in range(len(header) - len(models) - 1)),
            )
        ]
        for each in group:
            # random scores are too small a number to be relative to
            errors = [value for name, value in each.error.items() if name != "random"]
            orders = [each.orders_right(), *([each.orders_right(without=NEWCOMERS)] if made_up else [])]
            rows.append(
                (
                    each.name,
                    *(f"{value:.4f}" for value in each.values.mean(axis=0)),
                    f"{min(errors):+.0%} to {max(errors):+.0%}",
                    *(f"{n} of {draws} draws" for n in orders),
                )
            )
        yield Sheet.of(title, header, rows)


def why(findings: Sequence[Finding]) -> str:
    """Which schemes find the truth, and the reason."""
    lines = [
        f"  {each.scheme.metric} {each.name} {'finds' if each.on_target else 'misses'} the truth: {each.scheme.why}."
        for each in findings
    ]
    return "\n".join(["Why", *lines])


def _values(results: Results, metric: Metric, estimator: Estimator, models: list[str]) -> Floats:
    found = {
        each.model: each.value
        for each in results.estimates
        if (each.metric, each.estimator) == (str(metric), estimator.about.name)
    }
    return np.array([found[name] for name in models])


def _distinct(things: Sequence[Thing]) -> list[Thing]:
    return list(dict.fromkeys(things))
