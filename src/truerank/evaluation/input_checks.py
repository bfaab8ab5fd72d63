"""Checks of scores, ids and exclusions before anything is measured: what is often forgotten or mixed up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from truerank.core.estimator import Exposed
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.messages import Message, message
from truerank.core.ranking import JudgedChunk, Pool, Scores
from truerank.evaluation.question import Tallies
from truerank.ranks.kernel.rank import Aligned
from truerank.ranks.scores.scores import Lists

LOOKED_AT = 1000  # users whose lists show whether training pairs were left out of them
FEW = 0.5  # of the users, below which ids may be those of other data


def check_holdout(source: str, rows: Log) -> Iterator[Message]:
    """What a hold-out takes as relevant, and that the rest is taken as irrelevant."""
    if not rows.rewards:
        yield message("relevant-rows", source=source)
    yield message("holdout")


def check_without_exclusions(models: Mapping[str, Scores], exposed: Exposed) -> Iterator[Message]:
    """That training pairs are candidates, where none are excluded."""
    if exposed is not Exposed.FULL:
        lists = all(isinstance(scores, Lists) and scores.depth is not None for scores in models.values())
        yield message("no-exclusions.lists" if lists else "no-exclusions")


def check_scores(models: Mapping[str, Scores], users: Ids, items: Ids) -> Iterator[Message]:
    """How many users and items of the evaluation each model has scores for."""
    for name, scores in models.items():
        scored = int(np.count_nonzero(scores.users.locate(users) >= 0))
        without = int(np.count_nonzero(scores.items.locate(items) < 0)) if scores.depth is None else 0
        without_labels = len(scores.users) - scored
        yield message(
            "scored.partly" if without_labels or without else "scored",
            model=name,
            users=scored,
            of=len(users),
            without_labels=without_labels,
            items_without_score=without,
            about=(name,),
        )


def check_ids(models: Mapping[str, Scores], users: Ids, judged_items: Ids, *, source: str) -> Iterator[Message]:
    """Ids that hardly match: those of other data, or places in a matrix taken for ids."""
    for name, scores in models.items():
        missing = np.flatnonzero(scores.users.locate(users) < 0)
        if len(missing) > FEW * len(users):
            yield message(
                "few-users-in-common",
                model=name,
                source=source,
                users=len(users),
                missing=len(missing),
                examples=", ".join(users.texts(missing[:3])),
                model_examples=_first(scores.users),
                about=(name,),
            )
        if (scores.items.locate(judged_items) < 0).all():
            yield message(
                "no-item-in-common",
                model=name,
                source=source,
                examples=_first(judged_items),
                model_examples=_first(scores.items),
                about=(name,),
            )


def check_catalogue(models: Mapping[str, Scores], items: Ids) -> Iterator[Message]:
    """Items that are scored but no candidates, and tables that are taken as the whole catalogue."""
    for name, scores in models.items():
        outside = len(scores.items) - int(np.count_nonzero(scores.items.locate(items) >= 0))
        if outside and scores.depth is None:
            yield message("scored-outside", model=name, items=outside, about=(name,))
        if isinstance(scores, Lists) and scores.depth is None:
            yield message("taken-as-catalogue", model=name, n_items=len(scores.items), about=(name,))


def _first(ids: Ids) -> str:
    return ", ".join(ids.texts(np.arange(min(3, len(ids)))))


def seen_items(models: Mapping[str, Aligned], chunk: JudgedChunk) -> Tallies:
    """How many items the first users' lists hold, and how many of these are excluded; those of other chunks add."""
    exclude = chunk.pools[Pool.CATALOGUE].exclude
    counted: dict[tuple[str, str], int] = {}
    if exclude is None:
        return counted
    for name, model in models.items():
        lists = model.scores
        if not isinstance(lists, Lists) or lists.depth is None or model.column is not None:
            continue
        row = model.of_units(chunk.unit).row
        for user in np.flatnonzero((chunk.unit < LOOKED_AT) & (row >= 0)):
            listed = lists.item[lists.start[row[user]] : lists.start[row[user] + 1]]
            excluded = exclude.item[exclude.start[user] : exclude.start[user + 1]]
            counted[name, "listed"] = counted.get((name, "listed"), 0) + len(listed)
            counted[name, "seen"] = counted.get((name, "seen"), 0) + int(np.isin(listed, excluded).sum())
    return counted
