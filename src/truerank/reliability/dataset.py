"""The labels of a study, block by block of users, and the order in which each model puts the items."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.ranking import Scores
from truerank.core.record import record
from truerank.core.rng import cell_keys
from truerank.core.wording import option
from truerank.exposure.expose import sorted_world
from truerank.ranking.candidates import located_pairs
from truerank.ranking.kernel.rank import Aligned, check_block

LEAST_OBSERVED = 0.9  # below this share of pairs a log is not fully observed
TIES = "ties"  # the purpose that the order of equal scores is keyed by, as in an evaluation with random ties

Flags = npt.NDArray[np.uint8]
Orders = npt.NDArray[np.int32]


class Mark(IntEnum):
    """What an item is to a user: one that is liked, one that is excluded or held out (never exposed, no candidate), or
    any other."""

    OTHER = 0
    LIKED = 1
    EXCLUDED = 2


@record
class LabelledDataset:
    """Who likes what: `positive` pairs, and which pairs are `observed` (None: all of them).

    `excluded` pairs are neither exposed nor candidates, such as those that models were trained on; `n_dropped` of them
    had a label. They are still in the `log`, which decides what logging policies favour.
    """

    log: Log
    positive: Pairs
    observed: Pairs | None
    excluded: Pairs
    n_dropped: int
    n_unknown: int  # excluded pairs whose user or item is not in the labels

    @classmethod
    def from_log(cls, labels: Log, *, items: Ids | None = None, exclude: Log | None = None) -> LabelledDataset:
        """Labels of every pair, or positives where `labels.complete` says that the others are negative.

        `items` adds those of complete labels that nobody likes. A few pairs may be missing from a matrix; they are
        never exposed.

        >>> import polars as pl
        >>> from truerank.io.read import read
        >>> log = replace(read(pl.DataFrame({"user": [1, 2], "item": [5, 7], "label": [1, 1]})), complete=True)
        >>> positive, observed, _ = LabelledDataset.from_log(log, items=Ids.of([6])).block(np.array([0, 1]))
        >>> positive.tolist(), observed.tolist()
        ([[1, 0, 0], [0, 0, 1]], [[1, 1, 1], [1, 1, 1]])
        """
        if items is not None and labels.complete:
            pool = Ids.union({"labels, items": labels.items, "scores, items": items})
            labels = replace(labels, items=pool, item=pool.locate(labels.items)[labels.item])
        log = sorted_world(labels)
        n_users, n_items = len(log.users), len(log.items)
        excluded, n_unknown = _excluded(log, exclude)
        left = ~excluded.hold(log.user, log.item)
        n_left, n_dropped = n_users * n_items - len(excluded.item), int(len(log) - left.sum())
        liked = left & (log.label == 1)
        if not liked.any():
            where = " that is not excluded" if n_dropped else ""
            raise InputError(f"{log.source}: no positive label{where}; expected users who like something.")
        share = 1.0 if log.complete else left.sum() / n_left
        if share < LEAST_OBSERVED:
            raise InputError(
                f"{log.source}: {share:.1%} of {n_users:,} users x {n_items:,} items have a label; a study needs a "
                "fully observed dataset. If pairs that are not listed are negatives, say "
                f"{option('unlisted negative', 'replace(log, complete=True)')}."
            )
        positive, observed = (Pairs.of(log.user[rows], log.item[rows], n_units=n_users) for rows in (liked, left))
        return cls(log, positive, observed if share < 1 else None, excluded, n_dropped, n_unknown)

    @property
    def users(self) -> Ids:
        return self.log.users

    @property
    def items(self) -> Ids:
        return self.log.items

    @property
    def n_missing(self) -> int:
        """Pairs that are neither observed nor excluded."""
        if self.observed is None:
            return 0
        return len(self.users) * len(self.items) - len(self.excluded.item) - len(self.observed.item)

    def block(self, units: Ints) -> tuple[Flags, Flags, Flags]:
        """(liked, observed, excluded) of these users, [users x items]."""
        liked, excluded = (self._flags(pairs, units) for pairs in (self.positive, self.excluded))
        return liked, 1 - excluded if self.observed is None else self._flags(self.observed, units), excluded

    def _flags(self, pairs: Pairs, units: Ints) -> Flags:
        flags = np.zeros((len(units), len(self.items)), dtype=np.uint8)
        for row, unit in enumerate(units):
            flags[row, pairs.of_unit(unit)] = 1
        return flags

    def digest(self) -> str:
        """Different for different labels; logging policies look at excluded pairs too."""
        pairs = [part for each in (self.positive, self.observed, self.excluded) for part in _parts(each)]
        return digest([self.users, self.items, self.log.label, *pairs])


def _excluded(log: Log, exclude: Log | None) -> tuple[Pairs, int]:
    """The pairs to exclude whose user and item the labels have, and how many others there are."""
    pairs = located_pairs(exclude, log.users, log.items)
    if exclude is None:
        return pairs, 0
    if not len(pairs.item):
        raise InputError(f"none of the pairs to exclude has a user and an item of {log.source}. Check the id columns.")
    different = Pairs.of(exclude.user, exclude.item, n_units=len(exclude.users))
    return pairs, len(different.item) - len(pairs.item)


@record
class Models:
    """The scores of several models, aligned with the users and items of the labels."""

    dataset: LabelledDataset
    aligned: Mapping[str, Aligned]
    seed: int

    @classmethod
    def align(cls, scores: Mapping[str, Scores], dataset: LabelledDataset, *, seed: int) -> Models:
        if len(scores) < 2:
            raise InputError(f"{len(scores)} models; a study of how models are ordered needs at least two.")
        users, items, source = dataset.users, dataset.items, dataset.log.source
        aligned = {name: Aligned.of(model, users=users, items=items, name=name) for name, model in scores.items()}
        for name, model in aligned.items():
            if model.scores.depth is not None:
                raise InputError(
                    f"{name}: top lists of at most {model.scores.depth:,} items; a study needs the score of every item,"
                    " because any of them can be a candidate."
                )
            for part in _parts(model.scores):  # -inf is an item that is never recommended
                if isinstance(part, np.ndarray) and part.dtype.kind == "f" and not bool((part < np.inf).all()):
                    raise InputError(f"{name}: scores that are NaN or infinite; expected numbers, or -inf for never.")
            for what, place in (("user", model.row), ("item", model.column)):
                if place is not None and (place < 0).all():
                    raise InputError(f"{name} and {source} have no {what} in common. Check the id columns.")
        return cls(dataset, aligned, seed)

    def __len__(self) -> int:
        return len(self.aligned)

    @property
    def scored(self) -> Bools:
        """Users whom every model has scores for."""
        return np.asarray(np.all([model.row >= 0 for model in self.aligned.values()], axis=0))

    @property
    def unknown_items(self) -> dict[str, int]:
        """How many items of the labels each model has no scores for, where there are some."""
        columns = {name: model.column for name, model in self.aligned.items()}
        return {name: int((column < 0).sum()) for name, column in columns.items() if column is not None}

    def orders(self, units: Ints) -> tuple[Orders, Ints]:
        """Items best first [users x models x items], and how many of them each model recommends at all.

        Equal scores are put in a random order by (seed, user, item), the same for all models and scenarios.
        """
        users, items = self.dataset.users, self.dataset.items
        order = np.empty((len(units), len(self), len(items)), dtype=np.int32)
        finite = np.empty((len(units), len(self)), dtype=np.int64)
        user_key, item_key = users.keys()[units], items.keys()
        for m, (name, aligned) in enumerate(self.aligned.items()):
            matrix = aligned.block(units)
            check_block(matrix, units, users=users, items=items, name=name)
            finite[:, m] = np.count_nonzero(matrix > -np.inf, axis=1)
            order[:, m] = np.argsort(-matrix, axis=1)
            ordered = np.take_along_axis(matrix, order[:, m].astype(np.int64), axis=1)
            for u in np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1)):
                key = cell_keys(self.seed, TIES, user_key[u], item_key)
                order[u, m] = np.lexsort((key, -matrix[u]))
        return order, finite

    def digest(self) -> dict[str, str]:
        """Of each model, different for different scores; of a function, for different scores of three users."""
        digests = {}
        for name, model in self.aligned.items():
            scores, parts = model.scores, _parts(model.scores)
            if not parts or any(callable(part) for part in parts):
                parts += [scores.users, scores.items, scores.block(np.arange(min(3, len(scores.users))))]
            digests[name] = digest(parts)
        return digests


def _parts(value: Any) -> list[Any]:
    """The values that scores or pairs consist of."""
    return [getattr(value, field.name) for field in fields(value)] if is_dataclass(value) else []


def digest(parts: Iterable[Any]) -> str:
    """Different for different ids and arrays."""
    code = hashlib.blake2b(digest_size=16)
    for part in parts:
        array = part.keys() if isinstance(part, Ids) else part
        if isinstance(array, np.ndarray):
            code.update(f"{array.dtype}{array.shape}".encode())
            code.update(np.ascontiguousarray(array).data)
    return code.hexdigest()
