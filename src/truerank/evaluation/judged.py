"""Which recommender is better, by how much, and how sure is that: layers 1 to 6 put together."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from truerank.core.arrays import Bools
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Estimator
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.messages import caution, note
from truerank.core.metric import Metric
from truerank.core.multiple import holm
from truerank.core.provenance import Input, Provenance, versions
from truerank.core.ranking import Pool, Ranks, Scores, Ties
from truerank.core.results import Comparison, Estimate, Results
from truerank.core.terms import Terms
from truerank.core.units import KeptUnits, UnitTerms
from truerank.data.matrices import is_sparse
from truerank.estimators import terms_of
from truerank.estimators.biased.doubly_robust import DoublyRobust
from truerank.estimators.biased.intervened import about_inclusion
from truerank.evaluation.asked import DEFAULT_METRICS, Asked, Rules, clip_of, interval_for, pairs
from truerank.evaluation.setting import check_call, check_option, check_sizes, logs, make_setting
from truerank.exposure.kinds import BiasedExposure, Exposure, FullExposure
from truerank.exposure.propensities import Fitted
from truerank.metrics.gains import gains_of, relevant, reward_of
from truerank.ranks.candidates import Overlap, Setting, catalogue_of, whole_tables
from truerank.ranks.kernel.rank import rank
from truerank.ranks.scores.scores import dense
from truerank.ranks.scores.sparse import sparse
from truerank.ranks.scores.tables import lists
from truerank.uncertainty.diagnostics import shows_no_spread, warnings_of
from truerank.uncertainty.intervals import Interval, Spread
from truerank.uncertainty.notes import (
    about_catalogue,
    about_exclusions,
    about_propensities,
    about_ranks,
    differing_orders,
    matching,
)

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
    the labels show: FullExposure() (default), RandomExposure() or BiasedExposure(). Every metric is combined with every
    estimator; a pair that has no honest answer is left out with a note, and refused if nothing is left of what was
    asked for.
    `block_users` and `threads` change speed and memory, never a bit of the results.

    >>> import polars as pl
    >>> from truerank.metrics.recall import Recall
    >>> scores = {"a": np.array([[3.0, 2, 1], [3, 2, 1]]), "b": np.array([[1.0, 2, 3], [3, 1, 2]])}
    >>> labels = {"user": [0, 0, 0, 1, 1, 1], "item": [0, 1, 2, 0, 1, 2], "label": [1, 0, 0, 1, 0, 0]}
    >>> results = evaluate(scores, pl.DataFrame(labels), metrics=[Recall(1)])
    >>> [(each.model, each.value) for each in results.estimates], results.comparisons[0].difference
    ([('a', 1.0), ('b', 0.5)], -0.5)
    """
    exposure = FullExposure() if exposure is None else exposure
    overlap, ties = check_option(Overlap, overlap), check_option(Ties, ties)
    check_call(scores, exposure, metrics, estimators, baseline=baseline, level=level)
    check_sizes(threads=threads, block_users=block_users, n_items=n_items)
    threads = threads or os.cpu_count() or 1
    items = items if items is None or isinstance(items, Ids) else Ids.of(items, where="items")
    if overlap is Overlap.KEEP and not isinstance(exposure, FullExposure):
        raise RefusedError(
            "--overlap keep makes the candidates depend on which items were judged, so a sample of them stands "
            "for nothing; use --overlap drop, or leave --exclude out."
        )
    judged, excluded, explicit = logs(labels, exclude, candidates)
    for metric in DEFAULT_METRICS if metrics is None else metrics:
        gains_of(metric, judged)  # labels or grades that it cannot use are refused before any work
    others = {judged.source: judged.items} | ({} if excluded is None else {excluded.source: excluded.items})
    models = {name: as_scores(each, name=name) for name, each in scores.items()}
    models = whole_tables(models, others=others, items=items, n_items=n_items)
    catalogue = catalogue_of(models, others=others, items=items, n_items=n_items)
    setting = make_setting(models, judged, catalogue, exposure, exclude=excluded, overlap=overlap, candidates=explicit)
    fitted = None
    if isinstance(exposure, BiasedExposure):
        fitted = exposure.fit(setting.labels, setting.pools[Pool.CATALOGUE], seed=seed)
    interval = interval_for(interval, fitted, seed=seed)
    rules = Rules(models, exposure, ties, interval, catalogue.n_items, explicit=candidates is not None)
    asked, left_out = pairs(metrics, estimators, rules, fitted=fitted)
    rewards = [reward_of(metric, setting.labels) for metric, _ in asked]
    pools = sorted({estimator.pool for _, estimator in asked})
    terms: dict[str, list[Terms]] = {}
    estimates: dict[tuple[int, str], Estimate] = {}
    notes = [
        *setting.notes,
        *left_out,
        *about_inclusion(setting.labels, [estimator for _, estimator in asked]),
        *about_exclusions(setting, excluded),
        *matching(models, setting.labels, n_items=catalogue.n_items),
        *about_catalogue(models, catalogue.items),
        *about_propensities(fitted, setting.labels, setting.pools[Pool.CATALOGUE]),
    ]
    for name, each in models.items():
        ranks = rank(
            each,
            setting.labels,
            pools=[setting.pools[pool] for pool in pools],
            ties=ties,
            seed=seed,
            threads=threads,
            block_users=block_users,
            name=name,
            progress=None if progress is None else _named_progress(progress, name),
        )
        by_pool = dict(zip(pools, ranks, strict=True))
        notes += about_ranks(name, setting.labels, by_pool)
        bound = _bound(asked, each, setting, ties=ties, seed=seed, threads=threads, name=name)
        terms[name] = _all_terms(bound, setting.labels, by_pool, keep_rows=interval.needs_rows)
        for at, (metric, estimator) in enumerate(asked):
            if progress is not None:
                progress(f"estimating {name}", at + 1, len(asked))
            estimates[at, name] = _estimate(
                name,
                metric,
                estimator,
                terms[name][at],
                by_pool[estimator.pool],
                interval=interval,
                level=level,
                reward=rewards[at],
                fitted=fitted,
            )
    comparisons = _compare(terms, asked, rewards, baseline=baseline, interval=interval, level=level)
    ordered = tuple(estimates[at, name] for at in range(len(asked)) for name in models)
    return Results(
        estimates=ordered,
        comparisons=comparisons,
        messages=tuple(note("general", text) for text in (*notes, *differing_orders(ordered))),
        provenance=_provenance(setting, exposure, models, ties=ties, interval=interval, level=level, seed=seed),
        unit_table=_units(terms, asked, rewards, setting.labels),
    )


def as_scores(source: Any, *, name: str) -> Scores:
    """Scores of a matrix or a frame; what is Scores already stays."""
    if isinstance(source, Scores):
        return source
    if isinstance(source, np.ndarray):
        return dense(source, name=name)
    if is_sparse(source):
        return sparse(source, name=name)
    if callable(source):
        raise InputError(f"{name}: a function needs users and items: truerank.function(call, users=..., items=...).")
    return lists(source, name=name)


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
    reward: str,
    fitted: Fitted | None,
) -> Estimate:
    spread = interval.around(terms, level=level)
    if shows_no_spread(terms):
        spread = replace(spread, stderr=math.nan, low=math.nan, high=math.nan)
    return Estimate(
        model=model,
        metric=str(metric),
        k=metric.cutoff,
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
        clusters=_clusters(terms, terms.defined),
        ess=None if terms.weighting is None else terms.weighting.effective,
        reward=reward,
        clip=clip_of(estimator),
        assumptions=(
            *estimator.assumptions,
            *([] if terms.weighting is None or fitted is None else [fitted.description]),
        ),
        warnings=tuple(
            caution("general", text)
            for text in warnings_of(estimator, metric, terms, ranks, exactly_these=interval.needs_rows)
        ),
    )


def _clusters(terms: Terms, kept: Bools) -> int:
    return len(np.unique(terms.cluster[kept]))


def _units(
    terms: Mapping[str, Sequence[Terms]], asked: Sequence[Asked], rewards: Sequence[str], labels: Log
) -> KeptUnits:
    return KeptUnits(
        [
            UnitTerms(
                model=name,
                metric=str(metric),
                estimator=estimator.name,
                reward=rewards[at],
                clip=clip_of(estimator),
                unit=labels.users.values,
                cluster=labels.users.values,
                numerator=terms[name][at].num,
                denominator=terms[name][at].den,
                defined=terms[name][at].defined,
                total=terms[name][at].total,
            )
            for at, (metric, estimator) in enumerate(asked)
            for name in terms
        ]
    )


def _bound(
    asked: Sequence[Asked], scores: Scores, setting: Setting, *, ties: Ties, seed: int, threads: int, name: str
) -> list[Asked]:
    """The same questions; an estimator that looks at whole lists is given this model's."""
    found = list(asked)
    for estimator in dict.fromkeys(each for _, each in asked):
        if isinstance(estimator, DoublyRobust):
            metrics = [metric for metric, each in asked if each == estimator]
            pool = setting.pools[estimator.pool]
            made = estimator.bound(
                scores, setting.labels, pool, metrics=metrics, ties=ties, seed=seed, threads=threads, name=name
            )
            found = [(metric, made if each == estimator else each) for metric, each in found]
    return found


def _all_terms(asked: Sequence[Asked], labels: Log, ranks: Mapping[Pool, Ranks], *, keep_rows: bool) -> list[Terms]:
    """The terms of every pair, each estimator with all its metrics at once."""
    found: dict[int, Terms] = {}
    for estimator in dict.fromkeys(each for _, each in asked):
        places = [at for at, (_, each) in enumerate(asked) if each == estimator]
        metrics = [asked[at][0] for at in places]
        parts = terms_of(estimator, labels, ranks[estimator.pool], metrics=metrics, keep_rows=keep_rows)
        found |= dict(zip(places, parts, strict=True))
    return [found[at] for at in range(len(asked))]


def _compare(
    terms: Mapping[str, Sequence[Terms]],
    asked: Sequence[Asked],
    rewards: Sequence[str],
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
            level=level,
            p=spread.p,
            units=int(np.count_nonzero(terms[model][at].defined & terms[other][at].defined)),
            clusters=_clusters(terms[model][at], terms[model][at].defined & terms[other][at].defined),
            reward=rewards[at],
            clip=clip_of(estimator),
        )
        for at, (metric, estimator) in enumerate(asked)
        for model, other in pairs
        for spread in [_between(terms[model][at], terms[other][at], interval=interval, level=level)]
    ]
    adjusted = holm(np.array([each.p for each in found]))
    return tuple(each.adjusted(float(p)) for each, p in zip(found, adjusted, strict=True))


def _between(a: Terms, b: Terms, *, interval: Interval, level: float) -> Spread:
    """The difference of two models; without interval and p where weighted rows of one show no spread."""
    spread = interval.between(a, b, level=level)
    if any(each.weighting is not None and shows_no_spread(each) for each in (a, b)):
        return replace(spread, stderr=math.nan, low=math.nan, high=math.nan, p=math.nan)
    return spread


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
) -> Provenance:
    labels, n_items = setting.labels, setting.catalogue.n_items
    positives = int(relevant(labels).sum())
    return Provenance(
        inputs=(
            Input(role="labels", source=labels.source, rows=len(labels), users=len(labels.users), positives=positives),
            *(
                Input(role="scores", name=name, source=name, users=len(each.users), items=len(each.items))
                for name, each in models.items()
            ),
        ),
        settings={
            "exposure": repr(exposure),
            "ties": ties.value,
            "interval": repr(interval),
            "level": level,
            "seed": seed,
        },
        counts={
            "users": len(labels.users),
            "items": None if np.isnan(n_items) else int(n_items),
            "judged": len(labels),
            "relevant": positives,
        },
        versions=versions(),
    )


def _named_progress(progress: Report, name: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(f"ranking {name}", done, total)
