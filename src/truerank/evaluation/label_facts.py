"""What labels are evaluated with beside scores: predictions of a judge, the training log, features of items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints, frozen
from truerank.core.errors import InputError, RefusedError, some
from truerank.core.estimator import Exposed, Request
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs, has_user_units
from truerank.core.messages import Message, message
from truerank.core.metric import ListNeed, Metric
from truerank.core.provenance import Input
from truerank.core.ranking import JudgedChunk, Pool, Scores
from truerank.core.record import record
from truerank.core.wording import option, positive_option
from truerank.estimators.assisted import Assisted
from truerank.estimators.predictions import Assistance, JudgeTable, Prediction, ScoredPairs
from truerank.evaluation.compatibility import LabelQuestion, needed
from truerank.evaluation.label_source import Rows
from truerank.io.batches import LazyTable
from truerank.io.columns import VALUE_NAMES, PositiveRule
from truerank.io.features import Features, read_features
from truerank.io.log_schema import LogSchema
from truerank.io.read import read
from truerank.metrics.listed import ListFacts, TrainCounts
from truerank.ranking.candidates import Catalogue, catalogue_of, whole_tables, whole_within
from truerank.ranking.scores.files import as_scores

PROBABILITY = "probability"


def predictions_of(question: LabelQuestion) -> tuple[dict[Assistance, Prediction], list[Input]]:
    """What assists, by what it is, and the record of it; a judge comes as a Log or anything that one is read from."""
    predictions: dict[Assistance, Prediction] = {}
    inputs = []
    judge, assist = question.judge, question.assist
    if (assist is not None or judge is not None) and question.exposed not in Assisted.info.exposures:
        raise RefusedError(
            f"with {option(f'exposure {question.exposed}')} every label is there, or taken to be, so that nothing is "
            f"left to predict. If people labelled a random part of the pairs, say {option('exposure random')}; if a "
            f"design chose them, {option('exposure designed')}; else drop {option('judge')} and {option('assist')}."
        )
    if judge is not None:
        rows = read_judge(judge)
        predictions[Assistance.JUDGE] = JudgeTable(rows)
        inputs.append(
            Input(role="judge", source=rows.source, rows=len(rows), users=len(rows.users), items=len(rows.items))
        )
    if assist is not None:
        scores = as_scores(assist, name="assist")
        predictions[Assistance.SCORES] = ScoredPairs(scores)
        inputs.append(
            Input(role="assist", source="assist", name="assist", users=len(scores.users), items=len(scores.items))
        )
    return predictions, inputs


def read_judge(
    source: Any, *, columns: Mapping[str, str] | None = None, positive: str | PositiveRule | None = None
) -> Log:
    """Labels or probabilities of a judge; grades become labels by the rule of the labels, probabilities stay.

    >>> grades = pl.DataFrame({"query": ["q", "q"], "doc": ["a", "b"], "grade": [1, 3]})
    >>> read_judge(grades, positive=">=2").label.tolist()
    [0.0, 1.0]
    """
    if has_user_units(source):
        return source
    mapping = dict(columns or {})
    names = () if isinstance(source, Mapping) else LazyTable.of(source).columns
    if PROBABILITY in names and not any(name in mapping or name in names for name in VALUE_NAMES):
        mapping["value"] = PROBABILITY
    name = None if isinstance(source, str | Path) else "judge"
    rows = read(source, columns=mapping, name=name)
    if positive is None or all(map(_are_probabilities, rows.rewards.values())):
        return rows
    return read(source, columns=mapping, name=name, positive=positive)


def check_judge(predictions: Mapping[Assistance, Prediction], sample: Log) -> None:
    """Refuse grades of a judge beside labels that are 0 or 1."""
    judge = predictions.get(Assistance.JUDGE)
    if isinstance(judge, JudgeTable) and "label" in sample.rewards:
        values = judge.values
        if not _are_probabilities(values):
            raise InputError(
                f"{judge.rows.source}: values from {values.min():g} to {values.max():g}, where labels are 0 or 1; "
                f"expected labels or probabilities. Say which values are positive: {positive_option('>0')}."
            )


def _are_probabilities(values: Floats) -> bool:
    return bool(((values >= 0) & (values <= 1)).all())


def with_judge_users(
    question: LabelQuestion, labels: Rows, predictions: Mapping[Assistance, Prediction], models: Mapping[str, Scores]
) -> Rows:
    """The labels with the users who have labels of a judge and scores of a model alone, as users without a row.

    Not where a user without a row counts as one of whom nothing was drawn (a declared rate, a biased log), or of whom
    nothing came back (a design); not where the users that count were declared, nor for an interval of exactly these.
    """
    by_column = question.exposed is Exposed.DESIGNED and getattr(question.exposure, "design", None) is None
    counted = by_column or (question.exposed is Exposed.RANDOM and question.exposure.rate is None)
    judge = predictions.get(Assistance.JUDGE)
    if not counted or question.interval.needs_rows or not isinstance(judge, JudgeTable) or _users_declared(labels):
        return labels
    users, where = judge.rows.users, f"{judge.rows.source}, column 'user'"
    scored = np.zeros(len(users), dtype=bool)
    for scores in models.values():
        scored |= scores.users.locate(users, where=where) >= 0
    new = scored & (labels.users.locate(users, where=where) < 0)
    if not new.any():
        return labels
    users = Ids.union({"labels": labels.users, where: Ids(users.values.filter(pl.Series(new)))})
    if isinstance(labels, Log):
        return replace(labels, users=users, unit=frozen(users.locate(labels.users)[labels.user]))
    return replace(labels, users=users)


def _users_declared(labels: Rows) -> bool:
    """Whether the users that count were declared; in rows that were read, where some of these have no row."""
    if isinstance(labels, Log):
        return bool((np.bincount(labels.user, minlength=len(labels.users)) == 0).any())
    return labels.users_declared


def catalogued(
    question: LabelQuestion, scores: Mapping[str, Scores], others: Mapping[str, Ids], candidates: Log | LogSchema | None
) -> tuple[dict[str, Scores], Catalogue]:
    """The models, and the catalogue: what is declared, else the items of candidate sets, else what models have."""
    items = question.items
    declared = items is not None or question.n_items is not None
    if not declared and candidates is not None and all(model.depth is not None for model in scores.values()):
        parts = {f"{name}, items": model.items for name, model in scores.items()}
        items = Ids.union({**parts, **others, "candidates": candidates.items})
    options: dict[str, Any] = {"others": others, "items": items, "n_items": question.n_items}
    models = whole_tables(scores, **options)
    if isinstance(candidates, Log):
        models = whole_within(models, candidates)
    return models, catalogue_of(models, **options, union=question.exposed is Exposed.HOLDOUT)


def list_facts(
    question: LabelQuestion,
    metrics: Sequence[Metric],
    catalogue: Catalogue,
    train: Iterable[Log],
) -> ListFacts:
    """What metrics of lists need to know; the training log is counted only where one of them does."""
    needs, items, features = needed(metrics), catalogue.items, question.item_features
    counts = None
    if ListNeed.POPULARITY in needs:
        users, n_users = np.zeros(len(items), dtype=np.int64), 0
        for part in train:
            of_items, n = users_of_items(part, items)
            users, n_users = users + of_items, n_users + n
        counts = TrainCounts(users, n_users)
    if features is not None and ListNeed.FEATURES not in needs:
        raise InputError("item features are given, but nothing that is asked for uses them; ask for Diversity@K, too.")
    rows = None
    if features is not None:
        table = features if isinstance(features, Features) else read_features(features, kind="item", every=True)
        rows = table.value[table.rows_of(items, used=np.arange(len(items)))]
    return ListFacts(catalogue.n_items, counts, rows)


def users_of_items(log: Log, items: Ids) -> tuple[Ints, int]:
    """How many users of a log have each of these items, and how many users have any row.

    >>> import polars as pl
    >>> from truerank.io.read import read
    >>> log = read(pl.DataFrame({"user": [1, 1, 2, 2], "item": [5, 5, 5, 9]}), values=False)
    >>> [part.tolist() if hasattr(part, "tolist") else part for part in users_of_items(log, Ids.of([5, 6]))]
    [[2, 0], 2]
    """
    place = items.locate(log.items, where=f"{log.source}, column 'item'")[log.item]
    listed = place >= 0
    pairs = Pairs.of(log.user[listed], place[listed], n_units=len(log.users))
    return np.bincount(pairs.item, minlength=len(items)), len(np.unique(log.user))


@record
class LearningContext:
    """What an estimator may want to learn with: the propensities of rows, what is requested of it, and predictions."""

    propensity: Any
    requests: tuple[Request, ...]
    predictions: Mapping[Assistance, Prediction]


def sizes_of(chunk: JudgedChunk) -> tuple[int, float]:
    """How many labelled rows and candidates a chunk has."""
    return len(chunk.labels), float(chunk.pools[Pool.CATALOGUE].count.sum())


SIDES = (("user", "row"), ("item", "column"))  # of a matrix: what its rows and columns are


def check_numbers(models: Mapping[str, Scores], rows: Mapping[str, Any], *, items: Ids | None = None) -> list[Message]:
    """Refuse scores without ids unless the ids of the labels evidently are their numbers from 0; say what is taken.

    That is so if no id of the labels lies beyond the matrix and some id is 0, of the labels or of other rows of the
    same data (the first of `rows` are the labels; `items` is the declared catalogue). Ids from 1, by which every user
    would get the scores of the next one, never pass, also where the last of them are missing.
    """
    messages, labels = [], next(iter(rows))
    for name, scores in models.items():
        for kind, line in SIDES:
            ids, *others = (getattr(source, f"{kind}s") for source in (scores, *rows.values()))
            others += [items] if items is not None and kind == "item" else []
            if ids.numbered and others[0].numbered:
                if len(ids) != len(others[0]):
                    raise InputError(
                        f"{name} has {len(ids):,} {line}s without ids of {kind}s, {labels} has {len(others[0]):,}; "
                        f"expected as many. {_name_them(kind, line)}"
                    )
            elif ids.numbered:
                messages.append(_taken(name, ids, labels, others, (kind, line), model=name))
            elif others[0].numbered:
                messages.append(_taken(labels, others[0], name, [ids], (kind, line), model=name))
    return messages


def _taken(matrix: str, places: Ids, table: str, others: list[Ids], side: tuple[str, str], *, model: str) -> Message:
    """That the lines of a matrix are the ids of a table, which is refused where they need not be."""
    kind, line = side
    if not (_within(others[0], len(places)) and any(not ids.is_text and 0 in ids.values for ids in others)):
        raise InputError(
            f"{matrix}: {len(places):,} {line}s without ids of {kind}s, and those of {table} (such as "
            f"{some(others[0].texts()[:3])}) are not evidently their numbers from 0 to {len(places) - 1:,}: each "
            f"{line} could be taken for the one beside it. {_name_them(kind, line)}"
        )
    return message(
        "numbered",
        matrix=matrix,
        kind=kind,
        line=line,
        last=len(places) - 1,
        table=table,
        numbers={f"{line}s": len(places)},
        subjects=(model,),
    )


def _name_them(kind: str, line: str) -> str:
    return f"Name them in the order of {line}s: {option(f'{kind}s FILE')}."


def _within(ids: Ids, size: int) -> bool:
    return not ids.is_text and (len(ids) == 0 or (ids.values[0] >= 0 and ids.values[-1] < size))
