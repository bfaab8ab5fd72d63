"""What a log looks like, in figures that do not depend on how many users it has: of a user's log, of those of a study.

Two figures say how a log was exposed: `spread`, how much more the exposure of items differs than chance makes it, and
`lift`, how much oftener items that were shown more are liked. A correlation of exposure with liking would tell loggers
apart as well, but the noise of small counts pulls it towards 0: it would say how many users there are. Spread and lift
are ratios of moments of counts whose noise is taken out, c (c - 1) in place of c².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.core.log import Log, Pairs
from truerank.reliability.draws import CandidateCounts
from truerank.reliability.folder import Folder, WorkBlock
from truerank.reliability.grid import Grid

FIGURES = ("users", "items", "items_shown", "rows", "positives", "observed_sparsity", "spread", "lift")


@dataclass(frozen=True, slots=True)
class Look:
    """A log in figures: users, items of the catalogue, how many of them were shown, pairs shown, pairs liked."""

    users: int
    items: int
    items_shown: int
    rows: int
    positives: int
    spread: float
    lift: float

    @property
    def sparsity(self) -> float:
        """The share of all pairs of users and items that was not shown."""
        return 1 - self.rows / (self.users * self.items)

    @property
    def positives_per_user(self) -> float:
        return self.positives / self.users

    @classmethod
    def of_counts(cls, rows: Ints, positives: Ints, *, n_users: int) -> Look:
        """From the rows c_i and positives k_i of each of the I items of the catalogue, of n users.

        spread = √max(0, var(c) - c̄ (1 - c̄ / n)) / c̄: the coefficient of variation of exposure over the catalogue, less
        what uniform draws without replacement give.
        lift = (Σ k (c - 1) / Σ c (c - 1)) / (Σ k / Σ c) - 1: how much oftener a row is liked if its item is drawn by
        another row too, instead of all rows alike. With exposure e_i and liking π_i it is an estimate of
        (Σ e² π / Σ e²) / (Σ e π / Σ e) - 1 for any number of users, and items never shown do not matter.
        Both are about 0 for a log shown at random; the lift is 0 where no item has two rows or nothing is liked, and
        both are where nothing is shown.

        >>> look = Look.of_counts(np.array([100, 0]), np.array([50, 0]), n_users=100)
        >>> look.sparsity, round(look.spread, 4), look.lift  # √(50² - 50/2) / 50
        (0.5, 0.995, 0.0)
        >>> look = Look.of_counts(np.array([30, 10]), np.array([15, 1]), n_users=100)
        >>> round(look.lift, 5)  # (15 · 29 + 1 · 9) / (30 · 29 + 10 · 9) = 0.4625 over 16/40
        0.15625
        """
        count = rows.astype(np.float64)
        mean = float(count.mean())
        beyond = float(count.var()) - mean * (1 - mean / n_users)
        shown, twice = rows > 0, float(count @ (count - 1))
        liked = float(positives.sum()) / max(float(count.sum()), 1.0)
        lift = float(positives @ (count - 1)) / twice / liked - 1 if twice > 0 and liked > 0 else 0.0
        return cls(
            n_users,
            len(rows),
            int(shown.sum()),
            int(rows.sum()),
            int(positives.sum()),
            float(np.sqrt(max(0.0, beyond))) / mean if mean > 0 else 0.0,
            lift,
        )

    @classmethod
    def of_log(cls, log: Log, *, n_items: int | None = None) -> Look:
        """A log that has rows; a pair that occurs more than once counts once, as liked where any of its rows is.

        `n_items` is the size of the catalogue, where it has more items than the log names.
        """
        n_users, size = len(log.users), catalogue_size(log, n_items)
        label = log.label
        liked = Pairs.of(log.user[label == 1], log.item[label == 1], n_units=n_users)
        shown = Pairs.of(log.user, log.item, n_units=n_users)
        positives = np.bincount(liked.item, minlength=size)
        rows = np.full(size, n_users) if log.complete else np.bincount(shown.item, minlength=size)
        return cls.of_counts(rows, positives, n_users=n_users)


@dataclass(frozen=True, slots=True)
class Liked:
    """A log of positives alone in figures: what else was shown is not known."""

    users: int
    items: int
    items_liked: int
    positives: int

    @property
    def positives_per_user(self) -> float:
        return self.positives / self.users

    @classmethod
    def of_log(cls, log: Log, *, n_items: int | None = None) -> Liked:
        """A log whose rows are all positives; a pair that occurs more than once counts once.

        >>> from truerank.core.ids import Ids
        >>> log = Log(Ids.of([1, 2]), Ids.of([1, 2, 3]), np.array([0, 0, 1]), np.array([0, 1, 1]), {})
        >>> Liked.of_log(log, n_items=9), Liked.of_log(log).positives_per_user
        (Liked(users=2, items=9, items_liked=2, positives=3), 1.5)
        """
        liked = Pairs.of(log.user, log.item, n_units=len(log.users))
        size = catalogue_size(log, n_items)
        return cls(len(np.unique(log.user)), size, len(np.unique(liked.item)), len(liked.item))


Seen = Look | Liked


def catalogue_size(log: Log, n_items: int | None) -> int:
    """How many items could have been shown: what is said, or the items of the log; refused where that is fewer."""
    known = len(log.items)
    if n_items is not None and n_items < known:
        raise InputError(f"{log.source}: {known:,} items, but the catalogue is said to have {n_items:,}.")
    return known if n_items is None else n_items


def users_who_like(log: Log) -> int:
    """How many users have a positive: those whom an evaluation of candidate sets can use."""
    return len(np.unique(log.user[log.label == 1]))


def exposes_nothing(log: Log) -> bool:
    """Whether a log holds positives alone, and so does not say what else was shown."""
    return not log.complete and (not log.rewards or ("label" in log.rewards and bool((log.label == 1).all())))


def table_of_logs(folder: Folder, grid: Grid, *, n_users: int) -> pl.DataFrame:
    """One row for each logger and sparsity of a study: its log's figures, as means over repetitions.

    The catalogue is the items that have a row where everything is shown: a hold-out of whole items takes them away
    from all logs alike. `observed_sparsity` counts held-out pairs as not shown, as whoever looks at the log does.
    """
    found = []
    for at, logger in enumerate(grid.loggers):
        looks = [_looks(folder, grid, repetition, at, n_users) for repetition in range(grid.repetitions)]
        for s, sparsity in enumerate(grid.sparsities):
            means = {name: np.mean([_figure(each[s], name) for each in looks]) for name in FIGURES}
            found.append({"logger": str(logger), "sparsity": sparsity, **means, "repetitions": grid.repetitions})
    return pl.DataFrame(found)


def _figure(look: Look, name: str) -> float:
    return float(look.sparsity if name == "observed_sparsity" else getattr(look, name))


def _looks(folder: Folder, grid: Grid, repetition: int, logger: int, n_users: int) -> list[Look]:
    counted = folder.read_counts(WorkBlock(repetition, logger, 0), len(grid.sparsities))
    if counted is None:
        raise InputError(f"{folder.path}: what logs show is not counted; start the study again to go on.")
    return looks_of(counted, n_users=n_users)


def looks_of(counted: CandidateCounts, *, n_users: int) -> list[Look]:
    """The log of each sparsity, over the items that have a row at sparsity 0."""
    able = counted.rows[0] > 0
    both = zip(counted.rows[:, able], counted.positives[:, able], strict=True)
    return [Look.of_counts(rows, positives, n_users=n_users) for rows, positives in both]
