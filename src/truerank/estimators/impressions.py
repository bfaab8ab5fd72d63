"""Rows made from ranked impressions, and the base of the estimators that take them.

For one target a row's gain is its reward, its discount ε how likely the target's rank of the item is viewed, and its
weight 1/ε0, one over how likely its logged position is. w = ε/ε0 (paper 3, eq. 8) is what it adds of its reward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from truerank.core.arrays import LEAST_CHANCE, Bools, Floats, Ints, sums_by
from truerank.core.clusters import Clusters
from truerank.core.estimator import Learner
from truerank.core.forms import Form, Ratio
from truerank.core.log import Log, Logged
from truerank.core.record import record
from truerank.core.rows import Column
from truerank.core.terms import Smooth, ratio, smooth
from truerank.exposure.policies import Policy, Rows
from truerank.exposure.positions.position_models import Positions

BLOCK = 1 << 17  # rows whose exposures stay in cache


class Limited(StrEnum):
    """What a clip m limits, with ε the exposure of a row under the target and ε0 that under the log.

    RATIO    w = min(m, ε/ε0): the weights of the logging policy itself stay 1 at every m from 1, so that its value is
             what it has earned
    INVERSE  w = ε · min(m, 1/ε0) (paper 3, section 6.2): at m = 1 the raw label times ε; items that the log shows far
             down lose weight even where the target shows them as far down
    """

    RATIO = "ratio"
    INVERSE = "inverse"

    def limited(self, target: Floats, inverse: Floats) -> Floats:
        """What the clip limits, of exposures ε and 1/ε0."""
        return target * inverse if self is Limited.RATIO else inverse

    def scaled(self, values: Floats, target: Floats) -> Floats:
        """Values times the part of a weight that the clip leaves alone."""
        return values if self is Limited.RATIO else values * target

    def weights(self, target: Floats, inverse: Floats, clip: float | Floats) -> Floats:
        """The weights of rows.

        >>> shown, inverse = np.array([0.5, 1.0]), np.array([4.0, 2.0])
        >>> Limited.RATIO.weights(shown, inverse, 1.5).tolist(), Limited.INVERSE.weights(shown, inverse, 3.0).tolist()
        ([1.5, 1.5], [1.5, 2.0])
        """
        return self.scaled(np.minimum(self.limited(target, inverse), clip), target)


def limited_by(estimator: Any) -> Limited:
    """What a clip of an estimator limits; the ratio where it has no weights."""
    return Limited(getattr(estimator, "of", Limited.RATIO))


# -------------------------------------------------------------------------------------------------- what is estimated


class Per(StrEnum):
    """What weighted rewards are summed over and divided by: units, viewed rows, or something else (no such sum)."""

    UNIT = "unit"
    VIEW = "view"
    NOTHING = "nothing"


@record
class Counted:
    """What an estimate of a ranked log counts: its name in results, what it assumes, whom it leaves out."""

    name: str
    assumptions: tuple[str, ...] = ()
    left_out: str = "have no ranking of this target"
    per: Per = Per.NOTHING

    def __str__(self) -> str:
        return self.name

    def of(self, unit: str) -> Counted:
        """The same in the words of a log without sessions."""
        return replace(self, name=self.name.replace("session", unit))


class Normaliser(StrEnum):
    """What the sum of rewards is divided by; eq. 2 of paper 3 can be read as any of the three.

    SESSION        per trajectory: the mean over sessions of the rewards in a session (default)
    IMPRESSION     per viewed item: needs the same expected number of viewed items under both policies
    MEAN_OF_MEANS  the mean over sessions of the mean reward in a session: unbiased only if the position model is
                   E[1{depth >= r} / depth], so for comparison only
    """

    SESSION = "session"
    IMPRESSION = "impression"
    MEAN_OF_MEANS = "mean-of-means"

    @property
    def counted(self) -> Counted:
        """What is counted, with what ips assumes for it beyond the five assumptions."""
        return {
            Normaliser.SESSION: Counted("reward per session", per=Per.UNIT),
            Normaliser.IMPRESSION: Counted(
                "reward per viewed item",
                ("the same expected number of viewed items under both policies",),
                per=Per.VIEW,
            ),
            Normaliser.MEAN_OF_MEANS: Counted(
                "mean of session means",
                ("exposures are E[1{depth >= rank} / depth], not the probability of a view; else for comparison only",),
                "have no ranking of this target or no viewed item, so no mean,",
            ),
        }[self]

    def estimand(self, reward: str, unit: str) -> str:
        """What is estimated, in words."""
        means = f", averaged over {unit}s" if self is Normaliser.MEAN_OF_MEANS else ""
        per = unit if self is Normaliser.SESSION else "viewed item"
        return f"mean {reward} per {per}{means} under the target policy"


@record
class RankedContext:
    """Facts of a log and a target, which decide whether an estimator can be had.

    `whole` says that all items that the target would rank are known, `total` that the sum of their exposures is,
    `ranks` that it gives ranks; `models` that a position model says how likely these are viewed, `several` that models
    differ within the log; `logging_models` that one says how likely logged positions are viewed. `negative` says that
    the `reward` has negative values; without a reward nothing is asked of it. `positions` are the models, or else
    `learner` fits them.
    """

    target: str
    views_known: bool
    whole: bool
    total: bool
    ranks: bool
    models: bool
    several: bool
    logging_models: bool
    reward: str | None = None
    negative: bool = False
    positions: Positions | None = None
    learner: Learner | None = None
    propensity: ClassVar[None] = None  # of labels; that of impressions is in the log

    @classmethod
    def of(cls, log: Log, target: Policy, logging: Policy) -> RankedContext:
        """Without a reward."""
        return cls(
            target=target.name,
            views_known=log.logged is Logged.VIEWED,
            whole=target.whole is not None,
            total=total_known(target),
            ranks=target.rank is not None,
            models=target.positions is not None,
            several=target.positions is not None and target.positions.differ,
            logging_models=logging.positions is not None,
        )


@record(eq=False)
class Refits:
    """The position models without each group of clusters (None where there is none), and the group of each unit.

    `unusable` are reasons why models cannot be used, and which.
    """

    positions: tuple[Positions | None, ...]
    group: Ints
    unusable: Mapping[str, Ints] = field(default_factory=dict)


@record(eq=False)
class ClippedSums:
    """Sums of each unit for each clip: `rows` [rows x units], and the row `at` which those of each clip stand.

    Clips that no weight reaches take nothing away: they share a row.
    """

    rows: Floats
    at: tuple[int, ...]

    def __iter__(self) -> Iterator[Floats]:
        return iter(self.of_clips(self.rows))

    def of_clips(self, of_rows: Sequence[Any] | Floats) -> list[Any]:
        """For each clip what belongs to its row."""
        return [of_rows[row] for row in self.at]


@record(eq=False)
class Exposures:
    """A log, and how much a target and the logging policy expose each of its rows.

    A view (or a reward) where the logging policy exposes nothing cannot be and is refused, whatever the target shows; a
    displayed row that earned nothing there weighs nothing. `clusters` are those of the units; `refits` are other
    position models under which the same is to be seen.
    """

    log: Log
    target: Policy
    logging: Policy
    clusters: Clusters
    refits: Refits | None = None

    @property
    def views_known(self) -> bool:
        return self.log.logged is Logged.VIEWED

    def viewed_rows(self) -> Ints | None:
        """The rows that were viewed, None for all of them."""
        return None if self.log.viewed is None else np.flatnonzero(self.log.viewed)

    def views(self) -> Floats:
        """How much of a view each row is: 1 or 0 where that is known, else its probability."""
        if not self.views_known:
            return self.logging.exposure()
        return np.ones(len(self.log)) if self.log.viewed is None else self.log.viewed.astype(np.float64)

    def rewarded(self, reward: str) -> Ints:
        """The rows with a reward: no others enter a sum of rewards."""
        return np.flatnonzero(self.log.reward(reward) != 0)  # bits are found faster than numbers

    def parts(self, rows: Rows = None) -> tuple[Floats, Floats]:
        """ε and 1/ε0 of rows; 1/ε0 is 0 where ε0 is: nothing was viewed there."""
        return self.target.exposure(rows), self.inverse(rows)

    def inverse(self, rows: Rows = None) -> Floats:
        """1/ε0 of rows, 0 where ε0 is, or next to it."""
        logged = self.logging.exposure(rows)
        never = logged < LEAST_CHANCE
        if never.any():
            return np.divide(1.0, logged, out=np.zeros(len(logged)), where=~never)
        return 1.0 / logged

    def weights(self, clip: float = math.inf, rows: Rows = None, *, of: Limited = Limited.RATIO) -> Floats:
        """The weight of each row."""
        return of.weights(*self.parts(rows), clip)

    # ------------------------------------------------------------------------------------------------------------- sums

    def clipped_sums(
        self,
        gain: Floats | None,
        rows: Ints | None,
        clips: Floats,
        of: Limited,
        *,
        discount: Callable[[Rows], Floats] | None = None,
        more: int = 0,
    ) -> ClippedSums:
        """Σ gain · w over the given rows of each unit, for each clip; without a gain Σ w.

        A `discount` takes the place of the target's exposure; `more` rows of zeros stand at the end.
        """
        from truerank.estimators.fast import add_clipped

        order = np.argsort(clips, kind="stable")
        ascending = clips[order]
        sums = np.zeros((len(clips) + more, self.log.n_units))
        used = 0  # sums that differ so far; the last of them serves all clips that nothing has reached
        for block in blocks(len(self.log), rows):
            unit, inverse = self.log.unit[block], self.inverse(block)
            target = self.target.exposure(block) if discount is None else discount(block)
            gains = np.ones(len(unit)) if gain is None else np.asarray(gain[block], dtype=np.float64)
            limited = of.limited(target, inverse)
            reached = min(int(np.searchsorted(ascending, limited.max(initial=0.0))) + 1, len(clips))
            if 0 < used < reached:
                sums[used:reached] = sums[used - 1]
            used = max(used, reached)
            add_clipped(unit, of.scaled(gains, target), limited, ascending[:used], sums[:used])
        used = max(used, 1)
        return ClippedSums(sums[: used + more], tuple(np.minimum(np.argsort(order), used - 1).tolist()))

    def rewards(self, reward: str, clips: Floats, of: Limited, *, more: int = 0) -> ClippedSums:
        """Σ c w over each unit for each clip; only rows with a reward are looked at."""
        return self.clipped_sums(self.log.reward(reward), self.rewarded(reward), clips, of, more=more)

    def by_unit(self, values: Floats, rows: Ints | None = None) -> Floats:
        """The sum over each unit of values of rows."""
        unit = self.log.unit if rows is None else self.log.unit[rows]
        return sums_by(unit, values, n=self.log.n_units)

    def n_viewed(self) -> Floats:
        rows = self.viewed_rows()
        unit = self.log.unit if rows is None else self.log.unit[rows]
        return np.bincount(unit, minlength=self.log.n_units).astype(np.float64)

    def unit_column(self, column: Column) -> Floats:
        """What is known of units, whatever the weights of rows."""
        if column is Column.TOTAL:
            return total_of(self)
        return self.n_viewed() if column is Column.VIEWS else np.ones(self.log.n_units)

    # ------------------------------------------------------------------------------------------------------------ terms

    def ratio(self, num: Floats, den: Floats | None = None, *, among: Bools | None = None) -> Smooth:
        """Terms of Σ num / Σ den, or of a mean, over the units whose ranking is known."""
        defined = self.target.defined()
        den = np.ones(len(num)) if den is None else den
        return ratio(num, den, defined=defined if among is None else defined & among, clusters=self.clusters)

    def form_terms(
        self, form: Form, columns: Sequence[Column], reward: str, clips: Floats, of: Limited
    ) -> list[Smooth]:
        """Terms of a form of these columns for each clip; the first is the gain."""
        defined, clusters = self.target.defined(), self.clusters
        if columns[1] is not Column.DISCOUNT:  # one denominator for all clips: no copies
            gains = self.rewards(reward, clips, of, more=1)
            gains.rows[-1] = self.unit_column(columns[1])
            rows = gains.rows if defined.all() else np.where(defined, gains.rows, 0.0)
            last = len(rows) - 1
            pairs_of_rows = (rows[number :: last - number].T for number in range(last))
            return gains.of_clips([Smooth(Ratio(), sums, defined, clusters) for sums in pairs_of_rows])
        gains = self.rewards(reward, clips, of)
        weights = self.clipped_sums(None, self.viewed_rows(), clips, of)
        rest = [self.unit_column(column) for column in columns[2:]]
        pairs = list(zip(gains.at, weights.at, strict=True))
        terms = {
            (gain, weight): smooth(form, (gains.rows[gain], weights.rows[weight], *rest), defined, clusters)
            for gain, weight in set(pairs)
        }
        return [terms[pair] for pair in pairs]

    # ----------------------------------------------------------------------------------------------- views and refusals

    def under(self, positions: Positions) -> Exposures:
        """The same under other position models."""
        return replace(self, target=self.target.under(positions), logging=self.logging.under(positions), refits=None)

    def without(self, group: int) -> Exposures | None:
        """The same under the models that were fitted without a group of clusters, None where these cannot be used."""
        positions = None if self.refits is None else self.refits.positions[group]
        return None if positions is None else self.under(positions)

    def impossible(self, without: Bools | None = None) -> str | None:
        """Why the log cannot be, or None: a view or a reward where the logging policy exposes nothing.

        Whatever the target; `without` are units that do not matter.
        """
        for rows in blocks(len(self.log), None):
            never = self.logging.exposure(rows) < LEAST_CHANCE
            if not never.any():
                continue
            row = np.arange(rows.start, rows.stop)[never]
            row = row if without is None else row[~without[self.log.unit[row]]]
            if not self.views_known:
                seen = np.logical_or.reduce([values[row] != 0 for values in self.log.rewards.values()])
            else:
                seen = np.ones(len(row), dtype=bool) if self.log.viewed is None else self.log.viewed[row]
            if seen.any():
                return self._message(int(row[seen][0]))
        return None

    def _message(self, row: int) -> str:
        log = self.log
        place = "" if log.position is None else f" at position {log.position[row]}"
        what = "was viewed" if self.views_known else "has a reward"
        exposure = float(self.logging.exposure(np.array([row]))[0])
        exposed, weight = (f"an exposure of {exposure:.3g}", "beyond 1e40") if exposure else ("no exposure", "infinite")
        return (
            f"{log.source}: an item{place} {what} although the logging policy gives it {exposed}: its weight is "
            f"{weight}, and dropping it would lose rewards in silence. Use a position model without that cut-off, or "
            "leave such rows out of the log to count rewards above the cut-off only."
        )


def blocks(n: int, rows: Ints | None) -> Iterator[Any]:
    """All of n rows, or the given ones, in blocks."""
    if rows is None:
        yield from (slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK))
    else:
        yield from (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))


def total_known(target: Policy) -> bool:
    """Whether Σ_a ε(x, a) is known: a single impression with item-choice propensities has the sum 1."""
    return target.total_known or (target.positions is None and target.log.sessions is None)


def total_of(view: Exposures) -> Floats:
    """Σ_a ε(x, a) of each unit, 0 where its ranking is not known."""
    return view.target.total() if view.target.total_known else np.ones(view.log.n_units)
