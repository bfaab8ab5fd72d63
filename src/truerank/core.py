"""The types everything is made of; read this first.

Almost everything reported is a ratio of two sums over units (a unit is a user). A metric says what one relevant
item at a rank is worth. An estimator says how the rows that were observed stand for those that were not. So
metric x estimator is a product, and intervals, comparisons and merging are written once, for all of them:

    Log, Scores --rank--> Ranks --Metric, Estimator--> Terms --Interval--> Estimate --> Results (results.py)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from truerank.arrays import Bools, Floats, Ints, exact_sum, frozen
from truerank.errors import InputError
from truerank.ids import Ids
from truerank.options import Denominator
from truerank.row_terms import Reweighted, SampledRows, Weighting

# ---------------------------------------------------------------------------------------------------------------- Log


@dataclass(frozen=True, slots=True)
class Log:
    """Rows of (user, item) with what was observed: training data, judged test data and impressions alike.

    `user` and `item` are positions in the populations `users` and `items`; a user without a row still counts. `rewards`
    are named columns; the one called `label` is 0 or 1. `inclusion` is a row's chance to be drawn into an intervened
    test set. `complete` says that a pair which is not listed is a known negative; otherwise it is unknown.
    """

    users: Ids
    items: Ids
    user: Ints
    item: Ints
    rewards: Mapping[str, Floats]
    propensity: Floats | None = None
    position: Ints | None = None
    session: npt.NDArray[Any] | None = None
    time: npt.NDArray[Any] | None = None
    inclusion: Floats | None = None
    complete: bool = False
    source: str = "labels"

    def __len__(self) -> int:
        return len(self.user)

    @property
    def label(self) -> Floats:
        """The binary label of each row."""
        self.check_labels()
        return self.rewards["label"]

    def check_labels(self) -> None:
        """Refuse a log without binary labels."""
        if not self.rewards:
            raise InputError(
                f"{self.source}: no value column; labels are needed, in a column label, reward, rating or value. "
                'Name it: --columns label=NAME (Python: columns={"label": "NAME"}); if each row is a positive, say '
                "--positive all."
            )
        if "label" not in self.rewards:
            raise InputError(
                f"{self.source}: labels are needed, but {', '.join(self.rewards)} has other values than 0 and 1. "
                'Say which values are positive: --positive ">3" (Python: positive=">3").'
            )

    @property
    def unit(self) -> Ints:
        """The unit of each row: its user."""
        return self.user

    @property
    def n_units(self) -> int:
        return len(self.users)

    def select(self, rows: Ints | Bools) -> Self:
        """The given rows, in that order; the populations stay."""
        optional: dict[str, Any] = {
            name: None if (column := getattr(self, name)) is None else frozen(column[rows])
            for name in ("propensity", "position", "session", "time", "inclusion")
        }
        return replace(
            self,
            user=frozen(self.user[rows]),
            item=frozen(self.item[rows]),
            rewards={name: frozen(column[rows]) for name, column in self.rewards.items()},
            **optional,
        )


# ------------------------------------------------------------------------------------------------- Scores, Candidates


@runtime_checkable
class Scores(Protocol):
    """What a recommender says: a row of scores over `items` for any of its `users`, higher is better.

    `block(rows)` must give the same bits for a user whatever else is in the block. -inf means never recommended.
    `depth` is the length of the longest list where only top lists are known, else None.
    """

    @property
    def users(self) -> Ids: ...
    @property
    def items(self) -> Ids: ...
    @property
    def depth(self) -> int | None: ...
    def block(self, rows: Ints) -> npt.NDArray[np.floating]: ...


@dataclass(frozen=True, slots=True)
class Pairs:
    """Items of each unit, as compressed rows: unit u has `item[start[u]:start[u + 1]]`, sorted."""

    start: Ints
    item: Ints

    @classmethod
    def of(cls, unit: Ints, item: Ints, *, n_units: int) -> Pairs:
        """From rows in any order; repeated pairs count once.

        >>> Pairs.of(np.array([1, 0, 1, 1]), np.array([7, 3, 2, 7]), n_units=2)
        Pairs(start=array([0, 1, 3]), item=array([3, 2, 7]))
        """
        width = int(item.max()) + 1 if len(item) else 1
        cell = unit.astype(np.int64) * width + item
        if not (cell[1:] > cell[:-1]).all():
            cell = np.sort(cell)
            cell = cell[np.concatenate([[True], cell[1:] != cell[:-1]])]
        count = np.bincount(cell // width, minlength=n_units)
        return cls(frozen(np.concatenate([[0], np.cumsum(count)]).astype(np.int64)), frozen(cell % width))

    def of_unit(self, unit: int) -> Ints:
        return self.item[self.start[unit] : self.start[unit + 1]]

    @property
    def count(self) -> Ints:
        return np.diff(self.start)


class Pool(StrEnum):
    """Which items an estimator wants to compete: the whole pool, or only those that were judged."""

    CATALOGUE = "catalogue"
    JUDGED = "judged"


@dataclass(frozen=True, slots=True)
class Candidates:
    """Which items compete for each unit: `only` these (or the catalogue) minus `exclude`.

    `n_items` is the size of the catalogue where its items are not all known by name, NaN where not even that is.
    """

    n_units: int
    n_items: float
    only: Pairs | None = None
    exclude: Pairs | None = None

    @property
    def count(self) -> Floats:
        """The number of candidates of each unit, N."""
        if self.only is not None:
            return self.only.count.astype(np.float64)
        excluded = 0 if self.exclude is None else self.exclude.count
        return np.full(self.n_units, self.n_items) - excluded


class Ties(StrEnum):
    """The order of candidates with equal scores.

    EXPECTED     every order is equally likely; metrics give their expected value (default)
    RANDOM       one order, drawn by seed, user and item
    OPTIMISTIC   relevant items first, higher grades before lower: the largest value any order gives; needs every label
    PESSIMISTIC  relevant items last, higher grades after lower: the smallest value any order gives; needs every label
    STRICT       the rule of the URE paper: an item counts only if it scores strictly higher than the (K+1)-th
                 candidate, so its rank is the number of candidates that score at least as high
    """

    EXPECTED = "expected"
    RANDOM = "random"
    OPTIMISTIC = "optimistic"
    PESSIMISTIC = "pessimistic"
    STRICT = "strict"

    @property
    def needs_every_label(self) -> bool:
        """With labels missing, where a relevant item lands would depend on labels nobody knows."""
        return self in (Ties.OPTIMISTIC, Ties.PESSIMISTIC)


@dataclass(frozen=True, slots=True)
class Ranks:
    """For every row of a log, how many candidates of its unit score `above` it and how many others are `tied`.

    The ranks a row can have are above + 1 ... above + 1 + tied, all equally likely. An item that is never
    recommended (-inf) has above = inf. Per unit: the number of candidates, how many of them are ever recommended, and
    whether there are scores at all.
    """

    above: Floats
    tied: Floats
    n_candidates: Floats
    n_recommended: Floats
    scored: Bools


# ------------------------------------------------------------------------------------------------ Metric, Estimator


@runtime_checkable
class Metric(Protocol):
    """A frozen value such as Recall(50); its text form `Recall@50` parses back.

    `cutoff` is the deepest rank that counts, None where every rank does. `on_full_labels` says in words what one
    unit's value is averaged over.
    """

    name: ClassVar[str]

    @property
    def on_full_labels(self) -> str: ...
    @property
    def cutoff(self) -> int | None: ...


@runtime_checkable
class Additive(Metric, Protocol):
    """A metric that is a sum over relevant items of gain x `worth(rank)`, divided by `denominator`.

    Only these can be estimated without bias from partial labels. The gain is the label, unless a metric has its own.
    """

    @property
    def denominator(self) -> Denominator: ...
    def worth(self, rank: Floats) -> Floats: ...


@runtime_checkable
class Listwise(Metric, Protocol):
    """A metric of all relevant items of a unit at once; `values` has NaN where a unit's value is undefined.

    `partial` says why partial labels cannot give it, and what to use instead.
    """

    partial: ClassVar[str]

    def values(self, positives: Any) -> Floats: ...


@runtime_checkable
class Estimator(Protocol):
    """How observed rows stand for unobserved ones: gives Terms, and says what they estimate."""

    name: ClassVar[str]
    pool: ClassVar[Pool]
    assumptions: ClassVar[tuple[str, ...]]
    complete: ClassVar[bool]  # every candidate must carry a label
    ties: ClassVar[frozenset[Ties]]  # the tie policies it works with
    design: ClassVar[bool]  # whether an interval for exactly these units is known
    needs_size: ClassVar[bool]  # the number of candidates must be known
    biased: ClassVar[bool]  # made for logs in which some pairs were likelier to be shown than others
    left_out: ClassVar[str]  # whom it leaves out although they have scores, and whether that matters

    def refusal(self, metric: Metric) -> str | None:
        """Why this metric cannot be estimated this way and what to use, or None."""
        ...

    def estimand(self, metric: Metric) -> str: ...

    def terms(self, log: Log, ranks: Ranks, *, metric: Metric, keep_rows: bool = False) -> Terms: ...


# ------------------------------------------------------------------------------------------------------------- Terms


@dataclass(frozen=True, slots=True)
class Terms:
    """What each unit contributes: the value is Σ num / Σ den, times the mean of `total` where that is known.

    Units that are not `defined` contribute nothing. Units of one `cluster` are dependent. Intervals and merging know
    only `value`, `values`, `influence` and `concatenate`; an estimator that is no ratio offers the same four.
    """

    num: Floats
    den: Floats
    defined: Bools
    cluster: Ints
    total: Floats | None = None
    rows: SampledRows | None = None
    exact: bool = False  # every label of these units is known
    reweighted: Reweighted | None = None  # rows whose weights were fitted to these units
    weighting: Weighting | None = None  # how unequal the weights of rows are

    def value(self) -> float:
        """The estimate; the same bits whatever the order of the units. Undefined where Σ den is not above 0.

        >>> Terms.ratio(np.array([1.0, 2.0]), np.array([2.0, 4.0])).value()
        0.5
        """
        den = exact_sum(self.den)
        return math.nan if den <= 0 else exact_sum(self.num) / den * self.mean_total()

    def values(self, weights: Floats) -> Floats:
        """The estimate under each row of unit weights, [replicates x units] -> [replicates]."""
        if self.reweighted is None:
            num, den = weights @ self.num, weights @ self.den
        else:
            num, den = self.reweighted.sums(weights)
        with np.errstate(invalid="ignore", divide="ignore"):
            result = num / den
            if self.total is not None:
                result *= (weights @ self.total) / (weights @ self.defined.astype(np.float64))
        return np.asarray(np.where(den <= 0, math.nan, result), dtype=np.float64)

    def influence(self) -> Floats:
        """What each unit adds to the error of the value, to first order; sums to zero.

        For a ratio R = Σ num / Σ den it is (num - R den) / Σ den; a known mean total adds its own part.
        """
        den = exact_sum(self.den)
        if den <= 0:
            return np.full(len(self.num), math.nan)
        ratio, mean = exact_sum(self.num) / den, self.mean_total()
        effect = (self.num - ratio * self.den) * (mean / den)
        if self.total is not None:
            effect = effect + ratio * np.where(self.defined, self.total - mean, 0.0) / self.n_defined
        return np.asarray(effect, dtype=np.float64)

    def mean_total(self) -> float:
        return 1.0 if self.total is None else exact_sum(self.total) / self.n_defined

    @property
    def n_defined(self) -> int:
        return int(np.count_nonzero(self.defined))

    def restrict(self, kept: Bools) -> Terms:
        """The same with the other units undefined."""
        return replace(
            self,
            num=np.where(kept, self.num, 0.0),
            den=np.where(kept, self.den, 0.0),
            total=None if self.total is None else np.where(kept, self.total, 0.0),
            defined=self.defined & kept,
            reweighted=None if self.reweighted is None else self.reweighted.restrict(kept),
        )

    @classmethod
    def ratio(cls, num: Floats, den: Floats, *, defined: Bools | None = None) -> Terms:
        """Terms of units that are each their own cluster."""
        known = np.ones(len(num), dtype=bool) if defined is None else defined
        return cls(num, den, known, np.arange(len(num)))

    @staticmethod
    def concatenate(parts: Sequence[Terms]) -> Terms:
        """The terms of all parts' units; parts share no cluster and come from one estimator."""
        shift = np.cumsum([0, *(int(part.cluster.max(initial=-1)) + 1 for part in parts)])
        totals = [part.total for part in parts if part.total is not None]
        if totals and len(totals) < len(parts):
            raise InputError("terms with and without known totals cannot be merged: they are of different estimators.")
        if any(part.reweighted is not None for part in parts):
            raise InputError("terms with fitted weights cannot be merged: the fit is over all units at once.")
        return Terms(
            num=np.concatenate([part.num for part in parts]),
            den=np.concatenate([part.den for part in parts]),
            defined=np.concatenate([part.defined for part in parts]),
            cluster=np.concatenate([part.cluster + s for part, s in zip(parts, shift, strict=False)]),
            total=np.concatenate(totals) if totals else None,
            rows=SampledRows.concatenate([part.rows for part in parts], [len(part.num) for part in parts]),
            exact=all(part.exact for part in parts),
            weighting=Weighting.merge([part.weighting for part in parts]),
        )
