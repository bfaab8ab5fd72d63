"""What a design of exposure starts from: users, the catalogue, lists of models, and a guess of what is relevant."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.chance import cell_keys
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.progress import Progress
from truerank.core.ranking import Candidates, Pool, Scores, TopLists
from truerank.core.wording import option
from truerank.io.read import LogSchema, read
from truerank.ranking.candidates import Catalogue, catalogue_of, lay_out, whole_tables
from truerank.ranking.kernel.rank import Aligned
from truerank.ranking.kernel.top import top_lists
from truerank.ranking.scores.tables import as_scores

LEAST_RELEVANT, MOST_RELEVANT = 0.005, 0.5  # between which the guess is held
BLOCK_USERS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class DesignWorld:
    """Users, the catalogue in an order of its own (keyed, the same for all users), models, and a guess of relevance."""

    users: Ids
    items: Ids
    order: Ints  # items in the order in which they are laid out
    place: Ints  # of each item in it
    models: dict[str, Scores]
    exclude: Pairs | None
    popular: Floats  # √ of the popularity of items, laid out
    active: Floats  # √ of the activity of users, 1 on average

    def seen(self, user: int) -> Ints:
        """The places of what is excluded for a user."""
        return self.place[self.exclude.of_unit(user)] if self.exclude is not None else np.zeros(0, dtype=np.int64)

    def likely(self, user: int) -> Floats:
        """√ of the guess of how likely each item is relevant."""
        scaled = self.active[user] * self.popular
        return np.asarray(np.clip(scaled, math.sqrt(LEAST_RELEVANT), math.sqrt(MOST_RELEVANT)))


def world_of(scores: Mapping[str, Any], *, exclude: Any, users: Any, items: Any) -> DesignWorld:
    known = {name: as_scores(each, name=name) for name, each in scores.items()}
    train = _pairs(exclude)
    others = {} if train is None else {f"{train.source} (exclude)": train.items}
    catalogue_ids = items if items is None or isinstance(items, Ids) else Ids.of(items, where="items")
    models = whole_tables(known, others=others, items=catalogue_ids, n_items=None)
    catalogue = catalogue_of(models, others=others, items=catalogue_ids)
    if math.isnan(catalogue.n_items):
        raise InputError(
            f"top lists do not tell which items could be shown; give the catalogue with {option('items FILE')}."
        )
    given = users if users is None or isinstance(users, Ids) else Ids.of(users, where="users")
    people = Ids.union({f"{name}, users": each.users for name, each in models.items()}) if given is None else given
    none = np.zeros(0, dtype=np.int64)
    setting = lay_out(Log(people, catalogue.items, none, none, {}), catalogue, exclude=train)
    popular, active = _guess(train, people, catalogue)
    keys = catalogue.items.keys()
    order = np.argsort(cell_keys(0, "order of a design", np.zeros(len(keys), dtype=np.uint64), keys), kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    excluded = setting.pools[Pool.CATALOGUE].exclude
    return DesignWorld(
        people, catalogue.items, order, place, models, excluded, np.sqrt(popular)[order], np.sqrt(active)
    )


def _pairs(exclude: Any) -> Log | None:
    if exclude is None or isinstance(exclude, Log):
        return exclude
    if isinstance(exclude, LogSchema):
        return exclude.read(exclude.table.read(exclude.needed))
    return read(exclude, name=None if isinstance(exclude, str | Path) else "exclude", values=False)


def _guess(train: Log | None, users: Ids, catalogue: Catalogue) -> tuple[Floats, Floats]:
    """How often items were met by the users of a log, and how active users are; 1 on average, and for others."""
    if train is None or len(train) == 0:
        return np.full(len(catalogue.items), LEAST_RELEVANT), np.ones(len(users))
    met = np.bincount(train.item, minlength=len(train.items)) / max(len(train.users), 1)
    at = train.items.locate(catalogue.items)
    popular = np.where(at >= 0, met[at], 0.0)
    n = np.bincount(train.user, minlength=len(train.users))
    here = train.users.locate(users)
    active = np.where(here >= 0, n[here] / max(float(n.mean()), 1e-12), 1.0)
    return popular, active


def lists_of(world: DesignWorld, k: int, *, seed: int, threads: int, progress: Progress | None) -> dict[str, TopLists]:
    """The top of every user's list of each model, items by their place."""
    found: dict[str, TopLists] = {}
    n_users, none = len(world.users), np.zeros(0, dtype=np.int64)
    for name, scores in world.models.items():
        aligned = Aligned.of(scores, users=world.users, items=world.items, name=name)
        parts = []
        for first in range(0, n_users, BLOCK_USERS):
            last = min(first + BLOCK_USERS, n_users)
            log = Log(Ids(world.users.values[first:last]), world.items, none, none, {})
            exclude = None if world.exclude is None else world.exclude.of_units(first, last)
            pool = Candidates(last - first, float(len(world.items)), exclude=exclude)
            own = aligned.of_units(np.arange(first, last))
            parts.append(top_lists(own, log, pool=pool, k=k, seed=seed, name=name, threads=threads))
            if progress is not None:
                progress(f"ranking {name}", last, n_users)
        length = np.concatenate([part.length for part in parts])
        item = world.place[np.concatenate([part.item for part in parts])].astype(np.int32)
        found[name] = TopLists(np.concatenate([[0], np.cumsum(length)]), item, np.zeros(0, dtype=bool))
    return found
