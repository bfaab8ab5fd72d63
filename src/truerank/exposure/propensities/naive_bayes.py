"""Naive Bayes with a random slice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.core import Candidates, Log, Pairs
from truerank.data.features import Features
from truerank.errors import InputError, some
from truerank.exposure.propensities import Fitted, check_propensity, n_cells
from truerank.options import Drawn

MOST_VALUES = 100  # more distinct rewards than this are measurements, not classes


@dataclass(frozen=True, slots=True)
class NaiveBayes:
    """p_y = P(O=1 | y) = P(y | O=1) P(O=1) / P(y): the log gives the first two, a random slice gives P(y).

    Schnabel et al. (2016), eq. 16; P(O=1) is the share of candidates that are in the log, P(y) the share of y among the
    rows of the slice. Assumed: given the reward y, exposure depends on nothing else. Where the slice was `drawn` among
    pairs that are not in the log (Yahoo! R3), its share is that of the others, and P(y) = P(y | O=1) P(O=1) +
    share (1 - P(O=1)). `reward` names the column of y, the label or grades.

    >>> from truerank.data.read import read
    >>> import polars as pl
    >>> pairs = {"user": [1, 1, 2, 2], "item": [1, 2, 3, 4]}
    >>> log = read(pl.DataFrame({**pairs, "label": [1, 1, 1, 0]}))
    >>> random = read(pl.DataFrame({**pairs, "label": [1, 1, 0, 0]}))
    >>> NaiveBayes().fit(log, random=random).value.tolist()  # P(O=1) = 4 / 8
    [0.75, 0.75, 0.75, 0.25]
    """

    reward: str = "label"
    drawn: Drawn = Drawn.ALL

    name: ClassVar[str] = "naive-bayes"

    def __post_init__(self) -> None:
        object.__setattr__(self, "drawn", Drawn(self.drawn))

    @classmethod
    def parse(cls, option: str | None) -> NaiveBayes:
        """`naive-bayes`, `naive-bayes:rating`, `naive-bayes:label,unseen`."""
        reward, comma, drawn = (part.strip() for part in (option or "label").partition(","))
        if comma and drawn not in list(Drawn):
            raise InputError(f"propensity naive-bayes:{option}: {drawn!r}; expected {' or '.join(Drawn)}.")
        return cls(reward or "label", Drawn(drawn) if comma else Drawn.ALL)

    def __str__(self) -> str:
        if self.drawn is not Drawn.ALL:
            return f"{self.name}:{self.reward},{self.drawn}"
        return self.name if self.reward == "label" else f"{self.name}:{self.reward}"

    def fit(
        self,
        log: Log,
        *,
        random: Log | None = None,
        user_features: Features | None = None,
        item_features: Features | None = None,
        candidates: Candidates | None = None,
        seed: int = 0,
    ) -> Fitted:
        if random is None or len(random) == 0:
            where = "no random slice is given" if random is None else f"{random.source}: the random slice has no rows"
            raise InputError(
                f"propensity naive-bayes: {where}; it needs rows that were shown at random, with labels. "
                "Give them: --random FILE (Python: random=...)."
            )
        _check_same_world(log, random)
        value, kind = np.unique(reward_of(log, self.reward), return_inverse=True)
        if len(value) > MOST_VALUES:
            raise InputError(
                f"{log.source}: {self.reward} has {len(value):,} different values; naive Bayes expects at most "
                f"{MOST_VALUES}. Make labels of them, or use another propensity."
            )
        at = np.searchsorted(value, reward_of(random, self.reward))
        at = np.where(value[np.minimum(at, len(value) - 1)] == reward_of(random, self.reward), at, len(value))
        in_slice = np.bincount(at, minlength=len(value) + 1)
        for each in np.flatnonzero(in_slice[:-1] == 0):
            raise InputError(
                f"{random.source}: no row with {self.reward} {value[each]:g} among {len(random):,}, but {log.source} "
                f"has {int((kind == each).sum()):,}: P(y) would be 0 and the propensity infinite. Take a larger random "
                "slice, or merge values into labels."
            )
        found = NaiveBayesFit(
            self,
            log,
            value,
            kind.astype(np.int64),
            at.astype(np.int64),
            _units_of(random, log),
            n_cells(log, candidates),
        )
        check_propensity(
            found.value, log, what="the naive Bayes propensity",
            advice="The log has more such rows than the random slice says exist: check the candidates, and that the "
            "slice was drawn from the same pairs (or among unseen ones: naive-bayes:label,unseen).",
        )  # fmt: skip
        return found


@dataclass(frozen=True, slots=True)
class NaiveBayesFit:
    """What the propensities are counted from: the kinds of reward of both logs, and whose rows they are."""

    model: NaiveBayes
    log: Log
    rewards: Floats  # the values that rewards take
    kind: Ints  # of each row of the log
    slice_kind: Ints  # of each row of the random slice; one more than there are for a value the log does not have
    slice_unit: Ints  # -1 for users that the log does not know
    n_candidates: Floats
    fitted: bool = True

    @property
    def description(self) -> str:
        by_kind = self._of_kinds(np.ones(self.log.n_units))
        shown = some([f"{p:.4g} for {self.model.reward} {y:g}" for y, p in zip(self.rewards, by_kind, strict=True)])
        return (
            f"propensities are naive Bayes with a random slice of {len(self.slice_kind):,} rows ({shown}): "
            f"given the {self.model.reward}, exposure depends on nothing else"
        )

    @property
    def value(self) -> Floats:
        return self._of_kinds(np.ones(self.log.n_units))[self.kind]

    def under(self, weight: Floats) -> Floats:
        """In a replicate whose slice is short of a kind of reward, the propensity is at most 1."""
        return np.minimum(self._of_kinds(weight)[self.kind], 1.0)

    def at(self, cells: Log) -> Floats:
        """By the rewards of the cells, which must be among those of the log."""
        reward = reward_of(cells, self.model.reward)
        kind = np.minimum(np.searchsorted(self.rewards, reward), len(self.rewards) - 1)
        strange = np.flatnonzero(self.rewards[kind] != reward)
        if len(strange):
            raise InputError(
                f"{cells.source}: row {int(strange[0]) + 1:,} has {self.model.reward} {reward[strange[0]]:g}, which "
                f"does not occur in {self.log.source}: its propensity is 0 there."
            )
        return self._of_kinds(np.ones(self.log.n_units))[kind]

    def _of_kinds(self, weight: Floats) -> Floats:
        n = np.bincount(self.kind, weights=weight[self.log.unit], minlength=len(self.rewards))
        total, cells = float(n.sum()), float(weight @ self.n_candidates)
        of_row = np.where(self.slice_unit >= 0, weight[self.slice_unit], 1.0)
        in_slice = np.bincount(self.slice_kind, weights=of_row, minlength=len(self.rewards) + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = in_slice[:-1] / in_slice.sum()
            others = n + (cells - total) * share if self.model.drawn is Drawn.UNSEEN else cells * share
            # 0 / 0: a kind that this replicate has neither here nor there is not asked for
            return np.where(n > 0, n / others, 1.0)


def reward_of(log: Log, name: str) -> Floats:
    if name == "label":
        return log.label
    if name not in log.rewards:
        raise InputError(f"{log.source}: no rewards called {name!r}; found {', '.join(log.rewards) or 'none'}.")
    return log.rewards[name]


def _units_of(random: Log, log: Log) -> Ints:
    return log.users.locate(random.users, where=f"{random.source}, column 'user'")[random.user]


def _check_same_world(log: Log, random: Log) -> None:
    twice = len(log) - int(Pairs.of(log.user, log.item, n_units=log.n_units).count.sum())
    if twice:
        raise InputError(f"{log.source}: {twice:,} pairs occur more than once; expected one row per pair.")
    if (log.items.locate(random.items, where=f"{random.source}, column 'item'") < 0).all():
        raise InputError(
            f"{random.source} and {log.source} have no item in common: items such as {some(random.items.texts()[:3])} "
            f"and {some(log.items.texts()[:3])}. Check the id columns."
        )
