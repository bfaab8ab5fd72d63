"""Which recommender is better, by how much, and how sure is that: layers 1 to 6 put together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from truerank.core import Estimator, Log, Metric, Pool, Ranks, Scores, Terms, Ties
from truerank.data.matrices import is_sparse
from truerank.data.read import read
from truerank.errors import InputError, RefusedError
from truerank.estimators.full import Full
from truerank.estimators.random_exposure import HorvitzThompson, Pooled
from truerank.exposure.kinds import Exposure, FullExposure, RandomExposure, Unlisted
from truerank.ids import Ids
from truerank.metrics.dcg import DCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.ranks.candidates import Catalogue, Overlap, Setting, catalogue_of, lay_out, whole_tables
from truerank.ranks.rank import rank
from truerank.ranks.scores import dense
from truerank.ranks.sparse import sparse
from truerank.ranks.tables import lists
from truerank.results import Comparison, Estimate, Results
from truerank.uncertainty.diagnostics import warnings_of
from truerank.uncertainty.intervals import Interval, Population
from truerank.uncertainty.multiple import holm
from truerank.uncertainty.notes import about_ranks, differing_orders, matching
from truerank.version import __version__

DEFAULT_METRICS: tuple[Metric, ...] = (Recall(10), Recall(50), Precision(10), DCG(10))

Report = Callable[[str, int, int], None]


def evaluate(
    scores: Mapping[str, Any],
    labels: Any,
    *,
    exposure: Exposure | None = None,
    metrics: Sequence[Metric] | None = None,
    estimators: Sequence[Estimator] | None = None,
    exclude: Any = None,
    overlap: Overlap = Overlap.DROP,
    candidates: Any = None,
    items: Ids | None = None,
    n_items: int | None = None,
    baseline: str | None = None,
    ties: Ties = Ties.EXPECTED,
    interval: Interval | None = None,
    level: float = 0.95,
    seed: int = 0,
    threads: int | None = None,
    block_users: int | None = None,
    progress: Report | None = None,
) -> Results:
    """Evaluate recommenders on labels, with intervals and paired comparisons.

    `scores` gives each model's name and its Scores (or a matrix, dense or sparse, or a frame). `exposure` says what
    the labels show: FullExposure() (default) or RandomExposure(). Every metric is combined with every estimator; a pair
    that has no honest answer is left out with a note, and refused if nothing is left of what was asked for.
    `block_users` and `threads` change speed and memory, never a bit of the results.

    >>> import polars as pl
    >>> scores = {"a": np.array([[3.0, 2, 1], [3, 2, 1]]), "b": np.array([[1.0, 2, 3], [3, 1, 2]])}
    >>> labels = {"user": [0, 0, 0, 1, 1, 1], "item": [0, 1, 2, 0, 1, 2], "label": [1, 0, 0, 1, 0, 0]}
    >>> results = evaluate(scores, read(pl.DataFrame(labels)), metrics=[Recall(1)])
    >>> [(each.model, each.value) for each in results.estimates], results.comparisons[0].difference
    ([('a', 1.0), ('b', 0.5)], -0.5)
    """
    exposure = FullExposure() if exposure is None else exposure
    interval = Population() if interval is None else interval
    if not 0 < level < 1:
        raise InputError(f"level {level:g}; expected a number between 0 and 1, such as 0.95.")
    if not scores:
        raise InputError("no scores given; expected at least one model, as NAME=FILE.")
    if baseline is not None and baseline not in scores:
        raise InputError(f"baseline {baseline!r} is not among the models; expected one of {', '.join(scores)}.")
    judged, excluded, explicit = _logs(labels, exclude, candidates)
    others = {judged.source: judged.items} | ({} if excluded is None else {excluded.source: excluded.items})
    models = {name: as_scores(each, name=name) for name, each in scores.items()}
    models = whole_tables(models, others=others, items=items, n_items=n_items)
    catalogue = catalogue_of(models, others=others, items=items, n_items=n_items)
    setting = _setting(models, judged, catalogue, exposure, exclude=excluded, overlap=overlap, candidates=explicit)
    rules = _Rules(models, exposure, ties, interval, explicit=candidates is not None)
    asked, left_out = _pairs(metrics, _with_rate(estimators, exposure), rules)
    pools = sorted({estimator.pool for _, estimator in asked})
    terms: dict[str, list[Terms]] = {}
    estimates: dict[tuple[int, str], Estimate] = {}
    notes = [*setting.notes, *left_out, *matching(models, setting.labels)]
    for name, each in models.items():
        ranks = rank(
            each,
            setting.labels,
            pools=[setting.pools[pool] for pool in pools],
            ties=ties,
            seed=seed,
            threads=threads or os.cpu_count() or 1,
            block_users=block_users,
            name=name,
            progress=None if progress is None else _named_progress(progress, name),
        )
        by_pool = dict(zip(pools, ranks, strict=True))
        notes += about_ranks(name, setting.labels, by_pool)
        terms[name] = []
        for at, (metric, estimator) in enumerate(asked):
            found = by_pool[estimator.pool]
            part = estimator.terms(setting.labels, found, metric=metric, keep_rows=interval.needs_rows)
            terms[name].append(part)
            estimates[at, name] = _estimate(name, metric, estimator, part, found, interval=interval, level=level)
    comparisons = _compare(terms, asked, baseline=baseline, interval=interval, level=level)
    ordered = tuple(estimates[at, name] for at in range(len(asked)) for name in models)
    return Results(
        estimates=ordered,
        comparisons=comparisons,
        provenance=_provenance(setting, exposure, models, ties=ties, interval=interval, level=level, seed=seed),
        notes=(*notes, *differing_orders(ordered)),
    )


def as_scores(source: Any, *, name: str) -> Scores:
    """Scores of a matrix or a frame; what is Scores already stays."""
    if isinstance(source, Scores):
        return source
    if isinstance(source, np.ndarray):
        return dense(source, name=name)
    if is_sparse(source):
        return sparse(source, name=name)
    return lists(source, name=name)


# ---------------------------------------------------------------------------------------------------------- the setting


def _logs(labels: Any, exclude: Any, candidates: Any) -> tuple[Log, Log | None, Log | None]:
    judged, excluded, explicit = (
        source if source is None or isinstance(source, Log) else read(source, name=name, values=name == "labels")
        for source, name in ((labels, "labels"), (exclude, "exclude"), (candidates, "candidates"))
    )
    if judged is None or len(judged) == 0:
        where = "labels" if judged is None else judged.source
        raise InputError(f"{where}: no rows; expected judged pairs of users and items.")
    judged.check_labels()
    return judged, excluded, explicit


def _setting(
    models: Mapping[str, Scores],
    labels: Log,
    catalogue: Catalogue,
    exposure: Exposure,
    *,
    exclude: Log | None,
    overlap: Overlap,
    candidates: Log | None,
) -> Setting:
    for name, each in models.items():
        where = f"{labels.source}, column 'user', against the users of {name}"
        if (each.users.locate(labels.users, where=where) < 0).all():
            raise InputError(
                f"{name} and {labels.source} have no user in common: {name} has users such as "
                f"{', '.join(each.users.texts(np.arange(min(3, len(each.users)))))}, the labels "
                f"{', '.join(labels.users.texts(np.arange(min(3, len(labels.users)))))}. Check the id columns."
            )
    complete = isinstance(exposure, FullExposure) and exposure.unlisted is Unlisted.NEGATIVE
    setting = lay_out(
        replace(labels, complete=complete), catalogue, exclude=exclude, overlap=overlap, candidates=candidates
    )
    if isinstance(exposure, FullExposure) and not complete:
        _check_complete(setting)
    return setting


def _check_complete(setting: Setting) -> None:
    """With full exposure every candidate carries a label."""
    n = setting.pools[Pool.CATALOGUE].count
    judged = setting.pools[Pool.JUDGED].count
    missing = np.flatnonzero(~(judged == n))
    if len(missing) == 0:
        return
    unit = int(missing[0])
    user = setting.labels.users.texts(missing[:1])[0]
    if np.isnan(n[unit]):
        raise InputError(
            f"{setting.labels.source}: full exposure needs a label for every candidate, and top lists do not tell how "
            "many there are. If pairs that are not listed are negatives, say --unlisted negative; else give the "
            "catalogue with --items FILE or --n-items N."
        )
    raise InputError(
        f"{setting.labels.source}: full exposure needs a label for every candidate, but user {user} has "
        f"{int(judged[unit]):,} labels for {int(n[unit]):,} candidates ({len(missing):,} users so). If pairs that are "
        "not listed are negatives, say --unlisted negative; if the judged items are a random sample, say "
        "--exposure random."
    )


# ------------------------------------------------------------------------------------------------- metric x estimator

Asked = tuple[Metric, Estimator]


@dataclass(frozen=True, slots=True)
class _Rules:
    """What decides whether a metric can be had from an estimator in this evaluation."""

    models: Mapping[str, Scores]
    exposure: Exposure
    ties: Ties
    interval: Interval
    explicit: bool

    def refusal(self, metric: Metric, estimator: Estimator) -> str | None:
        """Why not, and what to use instead; None if it can."""
        if estimator.complete and isinstance(self.exposure, RandomExposure):
            return "it needs a label for every candidate, and randomly exposed labels are partial; use pooled."
        if self.interval.needs_rows and not estimator.design:
            return (
                "an interval for exactly these users is known for pooled, horvitz-thompson, hajek and full; "
                "use --interval population."
            )
        if self.ties not in estimator.ties:
            usable = ", ".join(sorted(estimator.ties))
            return f"ties {self.ties.value} would make ranks depend on what is unknown; use {usable}."
        return estimator.refusal(metric) or self._too_shallow(metric, estimator)

    def _too_shallow(self, metric: Metric, estimator: Estimator) -> str | None:
        for name, each in self.models.items():
            if each.depth is None:
                continue
            if estimator.pool is Pool.JUDGED or self.explicit:
                return f"{name} gives top lists, but ranking within a set needs the score of every member."
            if metric.cutoff is None or metric.cutoff > each.depth:
                return (
                    f"{name} lists at most {each.depth} items per user, which is not deep enough; "
                    f"use a cut-off up to {each.depth}, or longer lists."
                )
        return None


def _pairs(
    metrics: Sequence[Metric] | None, estimators: Sequence[Estimator] | None, rules: _Rules
) -> tuple[list[Asked], list[str]]:
    """Every metric with every estimator that can give it; notes on the pairs left out."""
    asked: list[Asked] = []
    reasons: dict[tuple[int, int], str] = {}
    chosen = DEFAULT_METRICS if metrics is None else tuple(metrics)
    for i, metric in enumerate(chosen):
        options = _defaults(metric, rules.exposure) if estimators is None else tuple(estimators)
        for j, estimator in enumerate(options):
            reason = rules.refusal(metric, estimator)
            if reason is None:
                asked.append((metric, estimator))
            else:
                reasons[i, j] = f"{metric} with {estimator.name}: {reason}"
    used_metrics = {str(metric) for metric, _ in asked}
    used_estimators = {estimator.name for _, estimator in asked}
    for i, metric in enumerate(chosen):
        if metrics is not None and str(metric) not in used_metrics:
            raise RefusedError(" ".join(reason for (at, _), reason in reasons.items() if at == i))
    for j, estimator in enumerate(estimators or ()):
        if estimator.name not in used_estimators:
            raise RefusedError(" ".join(reason for (_, at), reason in reasons.items() if at == j))
    if not asked:
        raise RefusedError(" ".join(reasons.values()))
    return asked, [f"left out: {reason}" for reason in reasons.values()]


def _with_rate(estimators: Sequence[Estimator] | None, exposure: Exposure) -> list[Estimator] | None:
    """Estimators that take a rate get the declared one."""
    if estimators is None or isinstance(exposure, FullExposure) or exposure.rate is None:
        return None if estimators is None else list(estimators)
    found: list[Estimator] = []
    for each in estimators:
        own = getattr(each, "rate", exposure.rate)
        if own not in (None, exposure.rate):
            raise InputError(f"{each.name} has rate {own:g}, the exposure {exposure.rate:g}; expected one rate.")
        made: Any = type(each)
        found.append(made(exposure.rate) if hasattr(each, "rate") else each)
    return found


def _defaults(metric: Metric, exposure: Exposure) -> tuple[Estimator, ...]:
    if isinstance(exposure, FullExposure):
        return (Full(),)
    pooled, expanded = Pooled(exposure.rate), HorvitzThompson(exposure.rate)
    return (pooled,) if pooled.refusal(metric) is None else (expanded,)


# ----------------------------------------------------------------------------------------------- estimates, comparisons


def _estimate(
    model: str,
    metric: Metric,
    estimator: Estimator,
    terms: Terms,
    ranks: Ranks,
    *,
    interval: Interval,
    level: float,
) -> Estimate:
    spread = interval.around(terms, level=level)
    return Estimate(
        model=model,
        metric=str(metric),
        estimator=estimator.name,
        estimand=estimator.estimand(metric),
        value=spread.value,
        stderr=spread.stderr,
        low=spread.low,
        high=spread.high,
        level=level,
        interval=interval.name,
        units=terms.n_defined,
        undefined=len(terms.num) - terms.n_defined,
        ess=None,
        reward="label",
        clip=None,
        assumptions=estimator.assumptions,
        warnings=warnings_of(estimator, metric, terms, ranks, exactly_these=interval.needs_rows),
    )


def _compare(
    terms: Mapping[str, Sequence[Terms]],
    asked: Sequence[Asked],
    *,
    baseline: str | None,
    interval: Interval,
    level: float,
) -> tuple[Comparison, ...]:
    """Differences of every pair of models, or of each model and the baseline; Holm over all of them."""
    if baseline is None:
        pairs = [(second, first) for first, second in combinations(terms, 2)]
    else:
        pairs = [(name, baseline) for name in terms if name != baseline]
    found = [
        Comparison(
            model=model,
            baseline=other,
            metric=str(metric),
            estimator=estimator.name,
            difference=spread.value,
            stderr=spread.stderr,
            low=spread.low,
            high=spread.high,
            p=spread.p,
            p_adjusted=spread.p,
        )
        for at, (metric, estimator) in enumerate(asked)
        for model, other in pairs
        for spread in [interval.between(terms[model][at], terms[other][at], level=level)]
    ]
    adjusted = holm(np.array([each.p for each in found]))
    return tuple(replace(each, p_adjusted=float(p)) for each, p in zip(found, adjusted, strict=True))


# ------------------------------------------------------------------------------------------------------- provenance


def _provenance(
    setting: Setting,
    exposure: Exposure,
    models: Mapping[str, Scores],
    *,
    ties: Ties,
    interval: Interval,
    level: float,
    seed: int,
) -> dict[str, Any]:
    labels = setting.labels
    return {
        "truerank": __version__,
        "labels": labels.source,
        "models": list(models),
        "exposure": repr(exposure),
        "ties": ties.value,
        "interval": repr(interval),
        "level": level,
        "seed": seed,
        "users": len(labels.users),
        "items": None if np.isnan(setting.catalogue.n_items) else int(setting.catalogue.n_items),
        "judged": len(labels),
        "relevant": int(labels.label.sum()),
    }


def _named_progress(progress: Report, name: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(f"ranking {name}", done, total)
