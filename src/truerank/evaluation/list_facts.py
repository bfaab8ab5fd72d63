"""What metrics of lists need beside scores: the training log and features of items; and what is said where it lacks."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.core.estimator import Exposed
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.metric import ListNeed, Metric, OfLists
from truerank.core.wording import option
from truerank.evaluation.label_source import EVERY_LABEL, JudgedSource, Rows
from truerank.io.features import Features, read_features
from truerank.metrics.listed import ListFacts, TrainCounts
from truerank.ranking.candidates import Catalogue


def needed(metrics: Collection[Metric]) -> frozenset[ListNeed]:
    """What these metrics need of lists."""
    return frozenset(need for metric in metrics if isinstance(metric, OfLists) for need in metric.needs)


def known_facts(train: Any, features: Any, *, n_items: float, exposed: Exposed) -> frozenset[ListNeed]:
    """What is at hand."""
    there = {
        ListNeed.CATALOGUE: not math.isnan(n_items),
        ListNeed.POPULARITY: train is not None,
        ListNeed.FEATURES: features is not None,
        ListNeed.LABELS: exposed in EVERY_LABEL,
    }
    return frozenset(need for need, has in there.items() if has)


def lacking(metric: OfLists, known: frozenset[ListNeed]) -> str | None:
    """Why a metric cannot be had from what is known, and what to give; None if it can."""
    return next((LACKING[need] for need in ListNeed if need in metric.needs - known), None)


LACKING = {
    ListNeed.CATALOGUE: (
        "top lists do not tell how many items there are, which it needs. Give the catalogue: "
        f"{option('items FILE')} or {option('n_items N')}."
    ),
    ListNeed.POPULARITY: f"it needs to know how popular items are; give the training log: {option('exclude TRAIN')}.",
    ListNeed.FEATURES: f"it needs features of the items; give them: {option('item_features FILE')}.",
    ListNeed.LABELS: (
        "it needs to know which listed items are relevant, and these labels are partial; use it with "
        f"{option('exposure full')} or {option('exposure holdout')}, or Novelty, which needs no labels."
    ),
}


def list_facts(
    metrics: Sequence[Metric], source: JudgedSource, catalogue: Catalogue, *, train: Rows | None, features: Any
) -> ListFacts:
    """What these metrics need to know; the training log is counted only where one of them does."""
    needs = needed(metrics)
    items = catalogue.items
    counts = _counted(source, train, items) if ListNeed.POPULARITY in needs else None
    if features is not None and ListNeed.FEATURES not in needs:
        raise InputError("item features are given, but nothing that is asked for uses them; ask for Diversity@K, too.")
    rows = None
    if features is not None:
        table = features if isinstance(features, Features) else read_features(features, kind="item", every=True)
        rows = table.value[table.rows_of(items, used=np.arange(len(items)))]
    return ListFacts(catalogue.n_items, counts, rows)


def _counted(source: JudgedSource, train: Rows | None, items: Ids) -> TrainCounts:
    """The training log in memory, or in chunks of whole users."""
    users, n_users = np.zeros(len(items), dtype=np.int64), 0
    for part in [train] if isinstance(train, Log) else source.train():
        own, here = users_of_items(part, items)
        users, n_users = users + own, n_users + here
    return TrainCounts(users, n_users)


def users_of_items(log: Log, items: Ids) -> tuple[Ints, int]:
    """How many users of a log have each of these items, and how many users have any row.

    >>> import polars as pl
    >>> from truerank.io.read import read
    >>> log = read(pl.DataFrame({"user": [1, 1, 2, 2], "item": [5, 5, 5, 9]}), values=False)
    >>> [part.tolist() if hasattr(part, "tolist") else part for part in users_of_items(log, Ids.of([5, 6]))]
    [[2, 0], 2]
    """
    place = items.locate(log.items, where=f"{log.source}, column 'item'")[log.item]
    known = place >= 0
    pairs = Pairs.of(log.user[known], place[known], n_units=len(log.users))
    return np.bincount(pairs.item, minlength=len(items)), len(np.unique(log.user))
