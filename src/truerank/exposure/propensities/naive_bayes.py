"""Naive Bayes with a random slice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.chance import generator_of
from truerank.core.errors import InputError, some
from truerank.core.log import Log
from truerank.core.options import Drawn
from truerank.core.ranking import Candidates
from truerank.core.values import check, text_of
from truerank.data.features import Features
from truerank.exposure.propensities import Fitted, check_propensity, n_cells
from truerank.exposure.propensities.slices import Slice, candidate_rows, check_no_repeats

MOST_VALUES = 100  # more distinct rewards than this are measurements, not classes


@dataclass(frozen=True, slots=True)
class NaiveBayes:
    """p_y = P(O=1 | y) = P(y | O=1) P(O=1) / P(y): the log gives the first two, a random slice gives P(y).

    Schnabel et al. (2016), eq. 16; P(O=1) is the share of candidates that are in the log, P(y) the share of y among the
    rows of the slice. Assumed: given the reward y, exposure depends on nothing else. Where the slice was `drawn` among
    pairs that are not in the log (Yahoo! R3), its share is that of the others, and P(y) = P(y | O=1) P(O=1) +
    share (1 - P(O=1)). `reward` names the column of y, the label or grades. Rows of the slice that are no candidates
    leave it. Its users may be others than the log's.

    >>> from truerank.data.read import read
    >>> import polars as pl
    >>> pairs = {"user": [1, 1, 2, 2], "item": [1, 2, 3, 4]}
    >>> log = read(pl.DataFrame({**pairs, "label": [1, 1, 1, 0]}))
    >>> random = read(pl.DataFrame({**pairs, "label": [1, 1, 0, 0]}))
    >>> NaiveBayes().fit(log, random=random).value.tolist()  # P(O=1) = 4 / 8
    [0.75, 0.75, 0.75, 0.25]
    """

    reward: str = "label"
    drawn: Drawn | str = Drawn.ALL

    name: ClassVar[str] = "naive-bayes"
    positional: ClassVar[tuple[str, ...]] = ("reward", "drawn")
    uses: ClassVar[frozenset[str]] = frozenset({"random"})

    def __post_init__(self) -> None:
        check(self, where="propensity naive-bayes")

    __str__ = text_of

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
        if random is None:
            raise InputError(
                "propensity naive-bayes: no random slice is given; it needs rows that were shown at random, with "
                "labels. Give them: --random FILE (Python: random=...)."
            )
        check_no_repeats(log)
        part = candidate_rows(random, log, candidates)
        if len(np.unique(part.unit)) == 1:
            raise InputError(
                f"{random.source}: the random slice is of one user; expected several, whose differences show how far "
                "its shares may be off. Take a slice of more users."
            )
        value, kind = np.unique(reward_of(log, self.reward), return_inverse=True)
        if len(value) > MOST_VALUES:
            raise InputError(
                f"{log.source}: {self.reward} has {len(value):,} different values; naive Bayes expects at most "
                f"{MOST_VALUES}. Make labels of them, or use another propensity."
            )
        reward = reward_of(part.rows, self.reward)
        at = np.searchsorted(value, reward)
        at = np.where(value[np.minimum(at, len(value) - 1)] == reward, at, len(value))
        in_slice = np.bincount(at, minlength=len(value) + 1)
        for each in np.flatnonzero(in_slice[:-1] == 0):
            raise InputError(
                f"{random.source}: no row with {self.reward} {value[each]:g} among {len(reward):,}, but {log.source} "
                f"has {int((kind == each).sum()):,}: P(y) would be 0 and the propensity infinite. Take a larger random "
                "slice, or merge values into labels."
            )
        found = NaiveBayesFit(
            self,
            log,
            value,
            kind.astype(np.int64),
            part,
            at.astype(np.int64),
            n_cells(log, candidates),
        )
        check_propensity(
            found.value, log, what="the naive Bayes propensity",
            advice="The log has more such rows than the random slice says exist: check the candidates, and that the "
            "slice was drawn from the same pairs (or among unseen ones: naive-bayes:label:unseen).",
        )  # fmt: skip
        return found


@dataclass(frozen=True, slots=True)
class NaiveBayesFit:
    """What the propensities are counted from: the kinds of reward of both logs, and whose rows they are."""

    model: NaiveBayes
    log: Log
    rewards: Floats  # the values that rewards take
    kind: Ints  # of each row of the log
    part: Slice
    slice_kind: Ints  # of each row of the random slice; one more than there are for a value the log does not have
    n_candidates: Floats
    fitted: bool = True

    @property
    def description(self) -> str:
        shown = [f"{p:.4g} for {self.model.reward} {y:g}" for y, p in zip(self.rewards, self._by_kind, strict=True)]
        return (
            f"propensities are naive Bayes with a random slice of {self.part.said} ({some(shown)}): "
            f"given the {self.model.reward}, exposure depends on nothing else"
        )

    @property
    def value(self) -> Floats:
        return self._by_kind[self.kind]

    def under(self, weight: Floats) -> Floats:
        """In a replicate whose slice is short of a kind of reward, the propensity is at most 1.

        Users whom only the slice has are redrawn on their own, each a Poisson(1) number of times: their error is
        independent of the log's. The draw is a function of the weights, so that a replicate is the same for all models.
        """
        strangers = np.ones(self.part.n_strangers)
        if len(strangers) and not (weight == 1).all():
            drawn = generator_of(weight, "users of the random slice").poisson(1.0, len(strangers))
            strangers = drawn.astype(np.float64)
        return np.minimum(self._of_kinds(weight, strangers)[self.kind], 1.0)

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
        return self._by_kind[kind]

    @property
    def _by_kind(self) -> Floats:
        return self._of_kinds(np.ones(self.log.n_units), np.ones(self.part.n_strangers))

    def _of_kinds(self, weight: Floats, strangers: Floats) -> Floats:
        n = np.bincount(self.kind, weights=weight[self.log.unit], minlength=len(self.rewards))
        total, cells = float(n.sum()), float(weight @ self.n_candidates)
        of_row = np.concatenate([weight, strangers])[self.part.unit]
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
