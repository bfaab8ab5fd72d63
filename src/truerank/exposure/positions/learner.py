"""Position models learned from a log in pieces: counts of scroll depths, or of clicks, by group of clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Groups, Learned, Learner
from truerank.core.ids import Ids
from truerank.core.wording import columns_option
from truerank.exposure.positions.fits import Depths
from truerank.exposure.positions.fits_clicks import ClickCells
from truerank.exposure.positions.position_models import Positions
from truerank.exposure.positions.requests import FROM_CLICKS, FittedPositions, fit_requests
from truerank.io.impressions import Impressions, Logged, RankedChunk

MOST_CELLS = 2**22  # counts that are looked up, not sorted


@dataclass(frozen=True, slots=True, eq=False)
class DepthCounts:
    """How many lists came to each depth, by rule of the position models and whether they ended there.

    `count` is [groups x cells]; cells ascend by code.
    """

    rule: Ints
    depth: Ints
    ended: Bools
    count: Floats

    @classmethod
    def of(cls, rule: Ints, depth: Ints, ended: Bools, group: Ints, *, n_groups: int) -> DepthCounts:
        """From one row per list.

        >>> one = DepthCounts.of(*np.array([[0, 0], [3, 3]]), np.array([True, True]), np.array([0, 1]), n_groups=2)
        >>> (one + one).without(1).count.tolist()
        [[2.0]]
        """
        n_rules = int(rule.max(initial=0)) + 1
        code = (depth * n_rules + rule) * 2 + ended
        width = int(code.max(initial=0)) + 1
        if width * n_groups <= MOST_CELLS:
            count = np.bincount(group * width + code, minlength=width * n_groups).reshape(n_groups, width)
            cells = np.flatnonzero(count.any(axis=0))
            return cls._decoded(cells, n_rules, count[:, cells].astype(np.float64))
        cells, row = np.unique(code, return_inverse=True)
        count = np.bincount(group * len(cells) + row.reshape(-1), minlength=len(cells) * n_groups)
        return cls._decoded(cells, n_rules, count.reshape(n_groups, -1).astype(np.float64))

    @classmethod
    def _decoded(cls, code: Ints, n_rules: int, count: Floats) -> DepthCounts:
        place, ended = np.divmod(code, 2)
        return cls(place % n_rules, place // n_rules, ended == 1, count)

    def __add__(self, other: DepthCounts) -> DepthCounts:
        rule, depth = np.concatenate([self.rule, other.rule]), np.concatenate([self.depth, other.depth])
        ended = np.concatenate([self.ended, other.ended]).astype(np.int64)
        n_rules = int(rule.max(initial=0)) + 1
        code, row = np.unique((depth * n_rules + rule) * 2 + ended, return_inverse=True)
        both = np.concatenate([self.count, other.count], axis=1)
        return self._decoded(code, n_rules, np.stack([sums_by(row.reshape(-1), part, n=len(code)) for part in both]))

    def without(self, group: int | None) -> DepthCounts:
        kept = np.arange(len(self.count)) != (-1 if group is None else group)
        return DepthCounts(self.rule, self.depth, self.ended, self.count[kept].sum(axis=0, keepdims=True))

    def at(self, rule: int, *, cutoff: int | None) -> Depths | None:
        """The depths of one rule over all groups, None where there is no list."""
        total = self.count.sum(axis=0)
        kept = (self.rule == rule) & (total > 0)
        if not kept.any():
            return None
        return Depths.of(self.depth[kept], censored=self.ended[kept], count=total[kept], cutoff=cutoff)


@dataclass(frozen=True, slots=True, eq=False)
class ClickCounts:
    """Impressions and clicks of items at ranks, by group of clusters: one row for each that occurs."""

    items: Ids
    group: Ints
    item: Ints
    rank: Ints  # from 0
    clicks: Floats
    others: Floats

    def __add__(self, other: ClickCounts) -> ClickCounts:
        items, mine, theirs = self.items, self.item, other.item
        if not (self.items is other.items or self.items == other.items):
            items = Ids.union({"items": self.items, "more items": other.items})
            mine, theirs = items.locate(self.items)[mine], items.locate(other.items)[theirs]
        group, rank = np.concatenate([self.group, other.group]), np.concatenate([self.rank, other.rank])
        return gathered_clicks(
            items,
            (group, np.concatenate([mine, theirs]), rank),
            clicks=np.concatenate([self.clicks, other.clicks]),
            others=np.concatenate([self.others, other.others]),
        )

    def without(self, group: int | None) -> ClickCounts:
        kept = self.group != (-1 if group is None else group)
        everyone = np.zeros(int(np.count_nonzero(kept)), dtype=np.int64)
        return gathered_clicks(
            self.items,
            (everyone, self.item[kept], self.rank[kept]),
            clicks=self.clicks[kept],
            others=self.others[kept],
        )

    def cells(self) -> ClickCells:
        """Of all groups, with items numbered in the order of their ids."""
        whole = self.without(None)
        item = np.unique(whole.item, return_inverse=True)[1].reshape(-1)
        return ClickCells(item, whole.rank, whole.clicks, whole.others)


def gathered_clicks(items: Ids, cells: tuple[Ints, Ints, Ints], *, clicks: Floats, others: Floats) -> ClickCounts:
    """One row for each group, item and rank: `cells`."""
    group, item, rank = cells
    n_ranks = int(rank.max(initial=0)) + 1
    code, row = np.unique((group * max(len(items), 1) + item) * n_ranks + rank, return_inverse=True)
    sums = [sums_by(row.reshape(-1), values, n=len(code)) for values in (clicks, others)]
    cell, rank_of = np.divmod(code, n_ranks)
    return ClickCounts(items, cell // max(len(items), 1), cell % max(len(items), 1), rank_of, *sums)


# ------------------------------------------------------------------------------------------------------------- learner


@dataclass(frozen=True, slots=True)
class PositionLearner:
    """Fits the position models that are asked for to the scroll depths, or to the clicks, of a log.

    `clicks` is the reward that stands for a click. A fit is made again without each group of clusters, so that its
    error is part of the error of what is estimated with it.
    """

    positions: Positions
    level: float = 0.95
    clicks: str | None = None
    source: str = "log"
    needs: tuple[Learner, ...] = ()
    refitted: bool = True

    def tally(self, chunk: RankedChunk, *, groups: Groups, learned: Learned) -> DepthCounts | ClickCounts:
        log = chunk.log
        if log.position is None:
            raise InputError(f"{log.source}: fitting a position model needs the column position.")
        clusters = chunk.clusters()
        group = groups.at(clusters.key)[clusters.of_row]  # of each unit
        if from_clicks(self.positions):
            return self._clicks(log, group[log.unit])
        check_depths(log)
        at, ended = _lists(log)
        rule = self.positions.at(
            len(at),
            surface=log.surface[at] if log.surface is not None and self.positions.by_surface else None,
            group=log.group[at] if log.group is not None and self.positions.by_group else None,
        )
        return DepthCounts.of(rule, log.position[at].astype(np.int64), ended, group[log.unit[at]], n_groups=len(groups))

    def _clicks(self, log: Impressions, group: Ints) -> ClickCounts:
        if log.logged is Logged.VIEWED:
            raise RefusedError(
                "only viewed items are logged, and given a view a click says nothing of the rank (assumption 4). Fit "
                "the scroll depths instead (fit:yule, fit:exp), or log every displayed item."
            )
        if self.clicks is None:
            raise InputError(f"{log.source}: fitting clicks needs a reward of 0 and 1.")
        if log.position is None:
            raise InputError(f"{log.source}: fitting a position model needs the column position.")
        clicked = log.reward(self.clicks).astype(np.float64)
        cells = group, log.item, log.position.astype(np.int64) - 1
        return gathered_clicks(log.items, cells, clicks=clicked, others=1.0 - clicked)

    def fit(self, tally: DepthCounts | ClickCounts) -> FittedPositions:
        def depths_at(rule: int, cutoff: int | None) -> Depths | None:
            return tally.at(rule, cutoff=cutoff) if isinstance(tally, DepthCounts) else None

        if isinstance(tally, DepthCounts) and not tally.count.any():
            raise InputError(
                f"{self.source}: no row was viewed, so there are no scroll depths. Check the column viewed, or give "
                "the position model itself (exp:0.9, yule:1.5, FILE)."
            )
        clicks = tally.cells() if isinstance(tally, ClickCounts) else None
        return fit_requests(self.positions, depths_at, clicks=clicks, level=self.level)


def from_clicks(positions: Positions) -> bool:
    """Whether some model is to be fitted to clicks."""
    return any(request.family in FROM_CLICKS for _, request in positions.requests)


def check_depths(log: Impressions) -> None:
    """Scroll depths are those of sessions, of items that are known to be viewed."""
    if log.logged is not Logged.VIEWED:
        raise InputError(
            f"{log.source}: every displayed item is logged and nothing says which were viewed, so there are no scroll "
            "depths. Fit clicks (fit:clicks, fit:harvest), or add a column viewed."
        )
    if log.sessions is None:
        raise InputError(
            f"{log.source}: scroll depths are those of sessions, and the log has no column session. Name it: "
            f"{columns_option('session', by='truerank.read_impressions')}, or give the position model "
            "itself (exp:0.9, yule:1.5, FILE)."
        )


def _lists(log: Impressions) -> tuple[Ints, Bools]:
    """The row of the deepest view of each session and surface, and whether its list ended there.

    A list ends with the deepest displayed position where a column says which of the displayed items were viewed, and
    after the number of candidates where that is known.
    """
    if log.position is None:
        raise InputError(f"{log.source}: fitting a position model needs the column position.")
    key, n_keys = log.unit, log.n_units
    if log.surface is not None:
        names, surface = np.unique(log.surface, return_inverse=True)
        key, n_keys = log.unit * len(names) + surface.reshape(-1), log.n_units * len(names)
    rows = np.arange(len(log)) if log.viewed is None else np.flatnonzero(log.viewed)
    deepest = _deepest(key[rows], log.position[rows], n=n_keys)
    at = rows[log.position[rows] == deepest[key[rows]]]
    depth = log.position[at]
    ended = np.zeros(len(at), dtype=bool)
    if log.viewed is not None:
        ended |= depth >= _deepest(key, log.position, n=n_keys)[key[at]]
    if log.length is not None:
        ended |= depth >= log.length[log.unit[at]]
    return at, ended


def _deepest(key: Ints, position: Ints, *, n: int) -> Ints:
    """The largest position of each key."""
    found = np.zeros(n, dtype=np.int64)
    np.maximum.at(found, key, position.astype(np.int64))
    return found
