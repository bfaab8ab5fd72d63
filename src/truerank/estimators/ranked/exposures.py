"""How a target and the logging policy expose the rows of a log: what estimators of ranked logs see of a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np

from truerank.core.arrays import LEAST_CHANCE, Bools, Floats, Ints, sums_by
from truerank.core.clusters import Clusters
from truerank.core.errors import RefusedError
from truerank.core.estimator import Asked
from truerank.core.ids import Keys
from truerank.core.terms import Smooth, ratio, ratios
from truerank.estimators.ranked.clips import Limited
from truerank.exposure.policies.policies import Policy, Rows
from truerank.exposure.positions.position_models import Positions
from truerank.io.impressions import Impressions, Logged

BLOCK = 1 << 17  # rows whose exposures stay in cache

Each = Callable[[Rows], Floats]  # rows -> a number of each


@dataclass(frozen=True, slots=True, eq=False)
class Refits:
    """The position models without each group of clusters (None where there is none), and the group of each unit.

    `pattern` tells for which targets each unit is defined.
    """

    positions: tuple[Positions | None, ...]
    group: Ints
    pattern: Keys


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class Exposures:
    """A log, and how much a target and the logging policy expose each of its rows.

    w = ε/ε0 (paper 3, eq. 8), of which a clip m limits a part (`clips.Limited`). A view (or a reward) where the logging
    policy exposes nothing cannot be and is refused, whatever the target shows; a displayed row that earned nothing
    there weighs nothing. `clusters` are those of the units; `refits` are other position models under which the same is
    to be seen.
    """

    log: Impressions
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
        gain: Each | None,
        rows: Ints | None,
        clips: Floats,
        of: Limited,
        *,
        discount: Each | None = None,
        more: int = 0,
    ) -> ClippedSums:
        """Σ gain · w over the given rows of each unit, for each clip; without a gain Σ w.

        A `discount` takes the place of the target's exposure; `more` rows of zeros stand at the end.
        """
        order = np.argsort(clips, kind="stable")
        ascending = clips[order]
        sums = np.zeros((len(clips) + more, self.log.n_units))
        used = 0  # sums that differ so far; the last of them stands for all clips that nothing has reached
        add = _add_clipped()
        for block in blocks(len(self.log), rows):
            unit, inverse = self.log.unit[block], self.inverse(block)
            target = self.target.exposure(block) if discount is None else discount(block)
            each = np.ones(len(unit)) if gain is None else np.asarray(gain(block), dtype=np.float64)
            limited = of.limited(target, inverse)
            reached = min(int(np.searchsorted(ascending, limited.max(initial=0.0))) + 1, len(clips))
            if 0 < used < reached:
                sums[used:reached] = sums[used - 1]
            used = max(used, reached)
            add(unit, of.left(each, target), limited, ascending[:used], sums[:used])
        used = max(used, 1)
        return ClippedSums(sums[: used + more], tuple(np.minimum(np.argsort(order), used - 1).tolist()))

    def rewards(self, reward: str, clips: Floats, of: Limited) -> ClippedSums:
        """Σ c w over each unit for each clip; only rows with a reward are looked at."""
        values = self.log.reward(reward)
        return self.clipped_sums(lambda rows: values[rows], self.rewarded(reward), clips, of)

    def discounts(self, clips: Floats, of: Limited) -> ClippedSums:
        """Σ w over the viewed rows of each unit for each clip."""
        return self.clipped_sums(None, self.viewed_rows(), clips, of)

    def by_unit(self, values: Floats, rows: Ints | None = None) -> Floats:
        """The sum over each unit of values of rows."""
        unit = self.log.unit if rows is None else self.log.unit[rows]
        return sums_by(unit, values, n=self.log.n_units)

    def n_viewed(self) -> Floats:
        rows = self.viewed_rows()
        unit = self.log.unit if rows is None else self.log.unit[rows]
        return np.bincount(unit, minlength=self.log.n_units).astype(np.float64)

    # ------------------------------------------------------------------------------------------------------------ terms

    def reward_ratios(self, reward: str, clips: Floats, of: Limited, den: Floats) -> list[Smooth]:
        """Terms of Σ c w / Σ den for each clip; only rows with a reward are looked at."""
        values = self.log.reward(reward)
        sums = self.clipped_sums(lambda rows: values[rows], self.rewarded(reward), clips, of, more=1)
        sums.rows[-1] = den
        return sums.of_clips(ratios(sums.rows, defined=self._defined(None), clusters=self.clusters))

    def ratio(self, num: Floats, den: Floats, *, kept: Bools | None = None) -> Smooth:
        """Terms of Σ num / Σ den over the units whose ranking is known."""
        return ratio(num, den, defined=self._defined(kept), clusters=self.clusters)

    def _defined(self, kept: Bools | None) -> Bools:
        defined = self.target.defined()
        return defined if kept is None else defined & kept

    # ----------------------------------------------------------------------------------------------- views and refusals

    def under(self, positions: Positions) -> Exposures:
        """The same under other position models."""
        return replace(self, target=self.target.under(positions), logging=self.logging.under(positions), refits=None)

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
            seen = row[self._seen(row)]
            if len(seen):
                return self._message(int(seen[0]))
        return None

    def _seen(self, rows: Ints) -> Bools:
        if not self.views_known:
            return np.asarray(np.logical_or.reduce([values[rows] != 0 for values in self.log.rewards.values()]))
        return np.ones(len(rows), dtype=bool) if self.log.viewed is None else self.log.viewed[rows]

    def check_views(self) -> None:
        """Refuse views and rewards where the logging policy exposes nothing."""
        reason = self.impossible()
        if reason is not None:
            raise RefusedError(reason)

    def _message(self, row: int) -> str:
        log = self.log
        place = "" if log.position is None else f" at position {log.position[row]}"
        what = "was viewed" if self.views_known else "has a reward"
        exposure = float(self.logging.exposure(np.array([row]))[0])
        given, weight = (f"an exposure of {exposure:.3g}", "beyond 1e40") if exposure else ("no exposure", "infinite")
        return (
            f"{log.source}: an item{place} {what} although the logging policy gives it {given}: its weight is "
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


def _add_clipped() -> Callable[[Ints, Floats, Floats, Floats, Floats], None]:
    if find_spec("numba") is None:
        return add_plainly
    from truerank.estimators.ranked.fast import add_clipped

    return add_clipped


def add_plainly(unit: Ints, gain: Floats, limited: Floats, clips: Floats, out: Floats) -> None:
    """What `fast.add_clipped` adds, in numpy; equal up to the order of additions."""
    for k, clip in enumerate(clips.tolist()):
        out[k] += sums_by(unit, gain * np.minimum(limited, clip), n=out.shape[1])


Answer = TypeVar("Answer")


def by_reward(asked: Sequence[Asked], answer: Callable[[str, Floats], Sequence[Answer]]) -> list[Answer]:
    """The answers in the order asked, found for all clips of a reward at once.

    >>> asked = [Asked(reward="a", clip=2.0), Asked(reward="b", clip=1.0), Asked(reward="a", clip=1.0)]
    >>> by_reward(asked, lambda reward, clips: [f"{reward}{clip:g}" for clip in clips])
    ['a2', 'b1', 'a1']
    """
    found: dict[Asked, Answer] = {}
    for reward in dict.fromkeys(each.reward for each in asked):
        own = [each for each in asked if each.reward == reward]
        clips = np.array([each.clip for each in own])
        found |= dict(zip(own, answer(reward, clips), strict=True))
    return [found[each] for each in asked]
