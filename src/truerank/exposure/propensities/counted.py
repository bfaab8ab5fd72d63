"""Propensities from counts: a power of popularity, and naive Bayes with a random slice."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, frozen, sums_by
from truerank.core.errors import InputError, some
from truerank.core.estimator import Counts, Groups, Learned
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.options import Drawn
from truerank.core.ranking import JudgedChunk, Pool
from truerank.core.record import record
from truerank.core.values import NotNegative, Probability
from truerank.core.wording import option
from truerank.exposure.counts import pair_order
from truerank.exposure.propensities import PropensityLearner, PropensityModel, n_cells
from truerank.exposure.propensities.calibration import candidate_rows, no_candidate, size_of_slice


@record
class PopularityPower(PropensityModel):
    """p_i = (c_i / max c)^power, at least `clip`; c_i counts the positives of item i in the log.

    The rule of the sampler study's code (0.5, clip 0.01) and of much of the literature on implicit feedback. It is
    known only up to a factor: the most popular item gets 1. So it serves self-normalised estimators; sums that are
    not normalised come out too small by that factor. It assumes that popularity alone decides what is shown, and that
    positives would be spread evenly if all were shown: where items are popular because they are good, it
    over-corrects. Without labels, rows are counted. An item without a positive has c = 0 and gets `clip`.

    >>> str(PopularityPower(0.5)), str(PopularityPower(0.3))
    ('power', 'power:0.3')
    """

    power: NotNegative = 0.5
    clip: Probability = 0.01

    name: ClassVar[str] = "power"
    positional: ClassVar[tuple[str, ...]] = ("power",)
    scaled: ClassVar[bool] = False

    def tally(
        self, chunk: JudgedChunk, *, learner: PropensityLearner, groups: Groups, learned: Learned
    ) -> PopularityCounts:
        log = chunk.labels
        labelled = "label" in log.rewards
        counted = log.label > 0 if labelled else np.ones(len(log), dtype=bool)
        group, n_items = groups.at(log.users.keys())[log.unit[counted]], len(log.items)
        cell = np.bincount(group * n_items + log.item[counted], minlength=len(groups) * n_items)
        count = cell.reshape(len(groups), n_items).astype(np.float64)
        return PopularityCounts({"n": count}, "positives" if labelled else "rows", log.items, log.source)

    def fit(self, tally: PopularityCounts, *, learner: PropensityLearner) -> PowerFit:
        count = tally.arrays["n"].sum(axis=0)
        most = count.max(initial=0.0)
        if most == 0:
            raise InputError(f"{tally.source}: no {tally.counted}, so no popularity to take propensities from.")
        of_item = np.asarray(np.maximum((count / most) ** self.power, self.clip), dtype=np.float64)
        return PowerFit(self, frozen(of_item), tally.counted, tally.items)


@record(eq=False)
class PopularityCounts(Counts):
    """How often each item of the catalogue was `counted`, [groups x items]: its positives, or its rows."""

    counted: str
    items: Ids
    source: str


@record(eq=False)
class PowerFit:
    """The propensity of every item of the catalogue."""

    model: PopularityPower
    of_item: Floats
    counted: str
    items: Ids

    @property
    def description(self) -> str:
        return (
            f"propensities are (c / max c)^{self.model.power:g}, at least {self.model.clip:g}, with c the "
            f"{self.counted} of the item in the log: popularity alone decides exposure, and its scale is not known"
        )

    def at(self, cells: Log) -> Floats:
        """Items that the log does not have have no positives there."""
        place = self.items.locate(cells.items, where=f"{cells.source}, items")[cells.item]
        return np.where(place >= 0, self.of_item[place], self.model.clip)


MOST_VALUES = 100  # more distinct rewards than this are measurements, not classes


@record
class NaiveBayes(PropensityModel):
    """p_y = P(O=1 | y) = P(y | O=1) P(O=1) / P(y): the log gives the first two, a random slice gives P(y).

    Schnabel et al. (2016), eq. 16; P(O=1) is the share of candidates that are in the log, P(y) the share of y among the
    rows of the slice. Assumed: given the reward y, exposure depends on nothing else. Where the slice was `drawn` among
    pairs that are not in the log (Yahoo! R3), its share is that of the others, and P(y) = P(y | O=1) P(O=1) +
    share (1 - P(O=1)). `reward` names the column of y, the label or grades. Rows of the slice that are no candidates
    leave it. Its users may be others than the log's.

    >>> from truerank.io.read import read
    >>> from truerank.exposure.propensities import fit_propensities
    >>> import polars as pl
    >>> pairs = {"user": [1, 1, 2, 2], "item": [1, 2, 3, 4]}
    >>> log = read(pl.DataFrame({**pairs, "label": [1, 1, 1, 0]}))
    >>> random = read(pl.DataFrame({**pairs, "label": [1, 1, 0, 0]}))
    >>> fit_propensities(NaiveBayes(), log, random=random).at(log).tolist()  # P(O=1) = 4 / 8
    [0.75, 0.75, 0.75, 0.25]
    """

    reward: str = "label"
    drawn: Drawn | str = Drawn.ALL

    name: ClassVar[str] = "naive-bayes"
    positional: ClassVar[tuple[str, ...]] = ("reward", "drawn")
    uses: ClassVar[frozenset[str]] = frozenset({"random"})

    def tally(
        self, chunk: JudgedChunk, *, learner: PropensityLearner, groups: Groups, learned: Learned
    ) -> RewardCounts:
        log, candidates, random = chunk.labels, chunk.pools[Pool.CATALOGUE], _slice_of(learner)
        pair_order(log)
        reward_of(random, self.reward)
        group = groups.at(log.users.keys())
        value, kind = np.unique(reward_of(log, self.reward), return_inverse=True)
        _check_values(value, self.reward, log.source)
        cell = np.bincount(group[log.unit] * len(value) + kind, minlength=len(groups) * len(value))
        unit, item, able = candidate_rows(random, log, candidates)
        return RewardCounts(
            value=value,
            count=cell.reshape(len(groups), len(value)).astype(np.float64),
            cells=sums_by(group, n_cells(log, candidates), n=len(groups)),
            slice_group=groups.at(random.users.keys())[random.user],
            here=unit >= 0,
            able=able & (unit >= 0),
            able_elsewhere=(item >= 0) | (candidates.n_items > len(log.items)),
            reward=self.reward,
            source=log.source,
        )

    def fit(self, tally: RewardCounts, *, learner: PropensityLearner) -> NaiveBayesFit:
        random, value = _slice_of(learner), tally.value
        rows = tally.slice_rows()
        pair_order(random)
        if not len(rows):
            raise no_candidate(random, tally.source)
        n_users = len(np.unique(random.user[rows]))
        if n_users == 1:
            raise InputError(
                f"{random.source}: the random slice is of one user; expected several, whose differences show how far "
                "its shares may be off. Take a slice of more users."
            )
        reward, n = reward_of(random, self.reward)[rows], tally.count.sum(axis=0)
        in_slice = np.array([np.count_nonzero(reward == level) for level in value], dtype=np.int64)
        for missing in np.flatnonzero((in_slice == 0) & (n > 0)):
            raise InputError(
                f"{random.source}: no row with {self.reward} {value[missing]:g} among {len(rows):,}, but "
                f"{tally.source} has {int(n[missing]):,}: P(y) would be 0 and the propensity infinite. Take a "
                "larger random slice, or merge values into labels."
            )
        cells, total = float(tally.cells.sum()), float(n.sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            share = in_slice / len(rows)
            others = n + (cells - total) * share if self.drawn is Drawn.UNSEEN else cells * share
            # 0 / 0: a reward that is neither here nor there once a group is left out is not needed
            by_value = np.where(n > 0, n / others, 1.0)
        if tally.gone is not None:
            by_value = np.minimum(by_value, 1.0)  # just below 1 with all users, it may be above it without some
        for wrong in np.flatnonzero(~(by_value <= 1)):
            raise InputError(
                f"{tally.source}: the naive Bayes propensity of {self.reward} {value[wrong]:g} ({int(n[wrong]):,} rows)"
                f" is {by_value[wrong]:.6g}; expected a probability in (0, 1]. The log has more such rows than the "
                "random slice says exist: check the candidates, and that the slice was drawn from the same pairs (or "
                "among unseen ones: naive-bayes:label,unseen)."
            )
        size = size_of_slice(len(rows), n_users, left_out=len(random) - len(rows))
        return NaiveBayesFit(self, value, by_value, size, tally.source)


@record(eq=False)
class RewardCounts:
    """How many rows of the log have each reward, among how many candidates; and which rows of the slice count.

    `count` is [groups x values]. Rows of the slice are of users in the groups `slice_group`; `here` are those whose
    user some chunk of the log has. `able` are the rows that are candidates of these, `able_elsewhere` those that are
    candidates of a user whom the log does not have. `gone` is a group that was left out.
    """

    value: Floats
    count: Floats
    cells: Floats
    slice_group: Ints
    here: Bools
    able: Bools
    able_elsewhere: Bools
    reward: str
    source: str
    gone: int | None = None

    def __add__(self, more: RewardCounts) -> RewardCounts:
        value = np.union1d(self.value, more.value)
        _check_values(value, self.reward, self.source)
        count = np.zeros((len(self.count), len(value)))
        for part in (self, more):
            count[:, np.searchsorted(value, part.value)] += part.count
        return replace(
            self,
            value=value,
            count=count,
            cells=self.cells + more.cells,
            here=self.here | more.here,
            able=self.able | more.able,
        )

    def without(self, group: int | None) -> RewardCounts:
        count, cells = self.count.sum(axis=0, keepdims=True), self.cells.sum(keepdims=True)
        if group is None:
            return replace(self, count=count, cells=cells)
        return replace(self, count=count - self.count[group][None], cells=cells - self.cells[group], gone=group)

    def slice_rows(self) -> Ints:
        """The rows of the slice that count."""
        used = np.where(self.here, self.able, self.able_elsewhere)
        return np.flatnonzero(used & (self.slice_group != (-1 if self.gone is None else self.gone)))


@record(eq=False)
class NaiveBayesFit:
    """The propensity of each value that rewards take in the log."""

    model: NaiveBayes
    rewards: Floats
    by_value: Floats
    slice_size: str
    source: str

    @property
    def description(self) -> str:
        shown = [f"{p:.4g} for {self.model.reward} {y:g}" for y, p in zip(self.rewards, self.by_value, strict=True)]
        return (
            f"propensities are naive Bayes with a random slice of {self.slice_size} ({some(shown)}): "
            f"given the {self.model.reward}, exposure depends on nothing else"
        )

    def at(self, cells: Log) -> Floats:
        """By the rewards of the cells, which must be among those of the log."""
        reward = reward_of(cells, self.model.reward)
        kind = np.searchsorted(self.rewards, reward)
        strange = np.flatnonzero(np.append(self.rewards, np.nan)[kind] != reward)
        if len(strange):
            raise InputError(
                f"{cells.source}: row {int(strange[0]) + 1:,} has {self.model.reward} {reward[strange[0]]:g}, which "
                f"does not occur in {self.source}: its propensity is 0 there."
            )
        return self.by_value[kind]


def _slice_of(learner: PropensityLearner) -> Log:
    if learner.random is None:
        raise InputError(
            "propensity naive-bayes: no random slice is given; it needs rows that were shown at random, with "
            f"labels. Give them: {option('random FILE')}."
        )
    return learner.random


def _check_values(value: Floats, reward: str, source: str) -> None:
    if len(value) > MOST_VALUES:
        raise InputError(
            f"{source}: {reward} has {len(value):,} different values; naive Bayes expects at most {MOST_VALUES}. "
            "Make labels of them, or use another propensity."
        )


def reward_of(log: Log, name: str) -> Floats:
    if name == "label":
        return log.label
    if name not in log.rewards:
        raise InputError(f"{log.source}: no rewards called {name!r}; found {', '.join(log.rewards) or 'none'}.")
    return log.rewards[name]
