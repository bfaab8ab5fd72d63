"""Which items are candidates: the catalogue, the exclusions, and labels laid over them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum

import numpy as np

from truerank.core.arrays import frozen
from truerank.core.errors import InputError, some
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.ranking import Candidates, JudgedChunk, Pool, Returned, Scores
from truerank.core.record import record
from truerank.core.wording import option
from truerank.ranking.scores.scores import Lists

CHUNK_USERS = 2**15
CHUNK_ROWS = 2**20


class Overlap(StrEnum):
    """What happens to an item that is both labelled and excluded.

    DROP    it leaves the candidates and the labelled items, and is counted (default)
    KEEP    it stays a candidate and stays labelled
    ERROR   it is an error
    """

    DROP = "drop"
    KEEP = "keep"
    ERROR = "error"


@record
class Catalogue:
    """The items that can be recommended; `n_items` is NaN where top lists leave their number open."""

    items: Ids
    n_items: float


@record
class Setting:
    """Labels over units and catalogue, with the candidates of every pool; `dropped` rows were also excluded."""

    labels: Log
    catalogue: Catalogue
    pools: Mapping[Pool, Candidates]
    dropped: int
    returned: Returned | None = None


def chunks_of(setting: Setting, *, users: int = CHUNK_USERS, rows: int = CHUNK_ROWS) -> Iterator[JudgedChunk]:
    """The setting in chunks of whole users, at most so many users and about so many rows each."""
    labels = setting.labels
    start = np.concatenate([[0], np.cumsum(np.bincount(labels.user, minlength=labels.n_units))]).astype(np.int64)
    if labels.n_units <= users and len(labels) <= rows:
        yield JudgedChunk(labels, setting.pools)
        return
    first = 0
    while first < labels.n_units:
        last = int(np.searchsorted(start, start[first] + rows, side="right")) - 1
        last = min(max(last, first + 1), first + users, labels.n_units)
        yield _chunk(setting, first, last)
        first = last


def _chunk(setting: Setting, first: int, last: int) -> JudgedChunk:
    """The users first ... last - 1, numbered from 0."""
    pools = {
        pool: replace(
            candidates,
            n_units=last - first,
            only=None if candidates.only is None else candidates.only.of_units(first, last),
            exclude=None if candidates.exclude is None else candidates.exclude.of_units(first, last),
        )
        for pool, candidates in setting.pools.items()
    }
    return JudgedChunk(setting.labels.between(first, last), pools, np.arange(first, last))


def catalogue_of(
    scores: Mapping[str, Scores],
    *,
    others: Mapping[str, Ids],
    items: Ids | None = None,
    n_items: int | None = None,
    union: bool = False,
) -> Catalogue:
    """The given items, or those of the whole score matrices (which must agree), or what top lists and labels name.

    A `union` is all that anything names: what a model does not know it never recommends.
    """
    # a sparse matrix is its own catalogue, unless a larger one is declared
    whole = {
        name: model.items
        for name, model in scores.items()
        if model.depth is None or (n_items is None and isinstance(model, Lists) and model.closed)
    }
    if items is None and whole and not union:
        first, items = next(iter(whole.items()))
        for name, others_items in whole.items():
            _same_items(first, items, name, others_items)
    if items is not None:
        if n_items is not None and n_items != len(items):
            raise InputError(
                f"{option('n_items')} {n_items:,} but the catalogue has {len(items):,} items. Leave it out."
            )
        for name, model in scores.items():
            if model.depth is not None:
                _inside(items, model.items, where=f"{name}, items of the lists")
        return Catalogue(items, float(len(items)))
    named = Ids.union({**{f"{name}, items": model.items for name, model in scores.items()}, **others})
    if n_items is not None and n_items < len(named):
        raise InputError(
            f"{option('n_items')} {n_items:,} but the sources name {len(named):,} items. Give the true number."
        )
    return Catalogue(named, float(n_items if n_items is not None else len(named) if union else math.nan))


def whole_tables(
    scores: Mapping[str, Scores], *, others: Mapping[str, Ids], items: Ids | None, n_items: int | None
) -> dict[str, Scores]:
    """Tables in which every user lists every item of the catalogue are whole, not top lists of some depth.

    Lists that are the same for everyone look alike; they are whole only if nothing else names another item.
    """
    named = [*others.values(), *(model.items for model in scores.values()), *([] if items is None else [items])]

    def settled(model: Scores) -> Scores:
        if not isinstance(model, Lists) or not model.every_pair or n_items not in (None, len(model.items)):
            return model
        whole = all(ids.is_text == model.items.is_text and (model.items.locate(ids) >= 0).all() for ids in named)
        return replace(model, depth=None) if whole else model

    return {name: settled(model) for name, model in scores.items()}


def whole_within(scores: Mapping[str, Scores], candidates: Log) -> dict[str, Scores]:
    """Lists within candidate sets: whole where they name every member, else as deep as the members that they name.

    Members that a list does not name come after all that it names. The depth is that of the user of whose set the
    fewest members are named, and some are not.
    """

    def settled(model: Scores) -> Scores:
        if not isinstance(model, Lists) or model.depth is None:
            return model
        user, item = model.users.locate(candidates.users)[candidates.user], model.items.locate(candidates.items)
        named = Pairs(model.start, model.item.astype(np.int64)).hold(user, item[candidates.item])
        if named.all():
            return replace(model, depth=None)
        n_named, size = (
            np.bincount(candidates.user[rows], minlength=len(candidates.users)) for rows in (named, user >= 0)
        )
        return replace(model, depth=int(np.min(n_named[n_named < size], initial=model.depth)))

    return {name: settled(model) for name, model in scores.items()}


def lay_out(
    labels: Log,
    catalogue: Catalogue,
    *,
    exclude: Log | None = None,
    overlap: Overlap = Overlap.DROP,
    candidates: Log | None = None,
) -> Setting:
    """Labels and exclusions in positions of units and catalogue; labelled items outside it are refused."""
    n_units = len(labels.users)
    item = catalogue.items.locate(labels.items, where=f"{labels.source}, column 'item'")[labels.item]
    excluded = None if exclude is None else located_pairs(exclude, labels.users, catalogue.items)
    # also those whose item is not in the catalogue
    also_labelled = located_pairs(exclude, labels.users, labels.items).hold(labels.user, labels.item)
    if also_labelled.any() and overlap is Overlap.ERROR:
        raise InputError(
            f"{labels.source}: {int(also_labelled.sum()):,} labelled pairs are also excluded, such as "
            f"{_pair(labels, int(np.argmax(also_labelled)))}. Say what to do: "
            f"{option('overlap drop')} or {option('overlap keep')}."
        )
    if overlap is Overlap.KEEP and excluded is not None:
        labelled = Pairs.of(labels.user[item >= 0], item[item >= 0], n_units=n_units)
        left = ~labelled.hold(excluded.unit, excluded.item)
        excluded = Pairs.of(excluded.unit[left], excluded.item[left], n_units=n_units)
    dropped = also_labelled & (overlap is Overlap.DROP)
    outside = (item < 0) & ~dropped
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"{labels.source}: {int(outside.sum()):,} labelled items are not in the catalogue, such as "
            f"{_pair(labels, row)}. Score every labelled item, give the catalogue with "
            f"{option('items FILE')}, or remove the rows."
        )
    inside = np.flatnonzero((item >= 0) & ~dropped)
    laid = replace(labels.select(inside), items=catalogue.items, item=frozen(item[inside]))
    cell = laid.user * len(catalogue.items) + laid.item
    if (cell[1:] < cell[:-1]).any():
        laid = laid.select(np.argsort(cell, kind="stable"))
    same = np.flatnonzero((np.diff(laid.user) == 0) & (np.diff(laid.item) == 0))
    if len(same):
        raise InputError(
            f"{laid.source}: {len(same):,} pairs occur more than once, such as {_pair(laid, int(same[0]))}; "
            "expected one label per pair. Keep one row per pair."
        )
    only = None if candidates is None else _explicit(candidates, laid, catalogue, excluded)
    labelled_pairs = Pairs.of(laid.user, laid.item, n_units=n_units)
    pools = {
        Pool.CATALOGUE: Candidates(n_units, catalogue.n_items, only=only, exclude=excluded),
        Pool.JUDGED: Candidates(n_units, catalogue.n_items, only=labelled_pairs),
    }
    return Setting(laid, catalogue, pools, int(dropped.sum()))


def located_pairs(log: Log | None, users: Ids, items: Ids) -> Pairs:
    """The pairs of a log whose user and item are among these; none without a log."""
    if log is None:
        nothing = np.zeros(0, dtype=np.int64)
        return Pairs.of(nothing, nothing, n_units=len(users))
    unit, item = log.places_in(users, items)
    inside = (unit >= 0) & (item >= 0)
    return Pairs.of(unit[inside], item[inside], n_units=len(users))


def _explicit(candidates: Log, labels: Log, catalogue: Catalogue, excluded: Pairs | None) -> Pairs:
    """The candidate sets minus exclusions; every labelled item must be among them."""
    _inside(catalogue.items, candidates.items, where=f"{candidates.source}, column 'item'")
    unit = labels.users.locate(candidates.users, where=f"{candidates.source}, column 'user'")[candidates.user]
    item = catalogue.items.locate(candidates.items)[candidates.item]
    allowed = (unit >= 0) & (True if excluded is None else ~excluded.hold(unit, item))
    pairs = Pairs.of(unit[allowed], item[allowed], n_units=len(labels.users))
    missing = ~pairs.hold(labels.user, labels.item)
    if missing.any():
        raise InputError(
            f"{candidates.source}: {int(missing.sum()):,} labelled items are not among their user's candidates, "
            f"such as {_pair(labels, int(np.argmax(missing)))}. Add them to the candidates or remove the labelled rows."
        )
    return pairs


def _same_items(first: str, reference: Ids, name: str, items: Ids) -> None:
    if reference == items:
        return
    extra = items.values.filter(reference.locate(items, where=f"{name}, items against those of {first}") < 0)
    missing = reference.values.filter(items.locate(reference) < 0)
    differences = [
        f"{len(part):,} items only in {owner} ({some([str(x) for x in part.head(3).to_list()], total=len(part))})"
        for owner, part in ((first, missing), (name, extra))
        if len(part)
    ]
    raise InputError(
        f"{first} and {name} have different catalogues: {'; '.join(differences)}. "
        f"Score the same items with every model, or give the catalogue with {option('items FILE')}."
    )


def _inside(catalogue: Ids, items: Ids, *, where: str) -> None:
    outside = items.values.filter(catalogue.locate(items, where=where) < 0)
    if len(outside):
        shown = some([str(x) for x in outside.head(3).to_list()], total=len(outside))
        raise InputError(
            f"{where}: {len(outside):,} items are not in the catalogue ({shown}). Remove them or add them."
        )


def _pair(log: Log, row: int) -> str:
    user, item = log.users.values[int(log.user[row])], log.items.values[int(log.item[row])]
    return f"user {user}, item {item}"
