"""A finished study, read back: the profiles of its logs, and which of them is most like another log.

Two figures describe how a log was exposed: `spread`, how much more the exposure of items varies than random draws make
it, and `lift`, how much more often items with more exposure are liked. A correlation of exposure with liking would
separate logging policies as well, but the noise of small counts pulls it towards 0, so it would depend on the number of
users. Spread and lift are ratios of moments of counts whose noise is removed, c (c - 1) in place of c².
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.errors import InputError, some
from truerank.core.log import Log, Pairs
from truerank.core.record import record
from truerank.io.atomic_write import check_folder

FORMAT = 4  # of the files in the folder; another one is another study
KIND = "reliability study"
NOTE = "study.json"
RESULTS, MEANS, PAIRS = "results.parquet", "means.parquet", "pairs.parquet"
LOGS = "logs.parquet"  # the profiles of the logs of each logging policy
FILES = (NOTE, LOGS, PAIRS, MEANS, RESULTS)  # of a finished study
EXPECTED = "the folder of a finished `truerank study reliability`; the command that began it goes on with it"
SHIPPED = Path(__file__).parent / "shipped"
WORLD = "world.json"

Candidates = tuple[str, int | None]  # sampler, size
FULL = "Full"
QUESTIONS = ("resolution", "predictive_power")  # of those in the results, what advice looks at
FIGURES = ("users", "items", "items_shown", "rows", "positives", "observed_sparsity", "spread", "lift")
_SCENARIO = ("logger", "sparsity", "sampler", "size", "metric")
_ZERO = ("value_undefined_as_0", "low_undefined_as_0", "high_undefined_as_0")
NEEDED = {
    RESULTS: (*_SCENARIO, "question", "value", "undefined", *_ZERO),
    PAIRS: (*_SCENARIO, "model", "other", "difference", "sd", "users"),
    LOGS: ("logger", "sparsity", *FIGURES, "repetitions"),
}


# ------------------------------------------------------------------------------------------------------------- profiles


@record
class LogProfile:
    """A log in figures that do not depend on its number of users: items of the catalogue, how many of them were
    exposed, exposed pairs, liked pairs, and how exposure varies.
    """

    users: int
    items: int
    items_shown: int
    rows: int
    positives: int
    spread: float
    lift: float

    @property
    def sparsity(self) -> float:
        """The share of all pairs of users and items that was not exposed."""
        return 1 - self.rows / (self.users * self.items)

    @property
    def positives_per_user(self) -> float:
        return self.positives / self.users

    @classmethod
    def from_counts(cls, rows: Ints, positives: Ints, *, n_users: int) -> LogProfile:
        """From the rows c_i and positives k_i of each of the I items of the catalogue, of n users.

        spread = √max(0, var(c) - c̄ (1 - c̄ / n)) / c̄: the coefficient of variation of exposure over the catalogue, less
        what uniform draws without replacement give.
        lift = (Σ k (c - 1) / Σ c (c - 1)) / (Σ k / Σ c) - 1: how much more often a row is liked if its item is drawn by
        another row too, instead of all rows alike. With exposure e_i and liking π_i it estimates
        (Σ e² π / Σ e²) / (Σ e π / Σ e) - 1 for any number of users, and items that are never exposed do not matter.
        Both are about 0 for a log exposed at random; the lift is 0 where no item has two rows or nothing is liked, and
        both are where nothing is exposed.

        >>> profile = LogProfile.from_counts(np.array([100, 0]), np.array([50, 0]), n_users=100)
        >>> profile.sparsity, round(profile.spread, 4), profile.lift  # √(50² - 50/2) / 50
        (0.5, 0.995, 0.0)
        >>> profile = LogProfile.from_counts(np.array([30, 10]), np.array([15, 1]), n_users=100)
        >>> round(profile.lift, 5)  # (15 · 29 + 1 · 9) / (30 · 29 + 10 · 9) = 0.4625 over 16/40
        0.15625
        """
        count = rows.astype(np.float64)
        mean = float(count.mean())
        beyond = float(count.var()) - mean * (1 - mean / n_users)
        twice, liked = float(count @ (count - 1)), float(positives.sum()) / max(float(count.sum()), 1.0)
        lift = float(positives @ (count - 1)) / twice / liked - 1 if twice > 0 and liked > 0 else 0.0
        spread = float(np.sqrt(max(0.0, beyond))) / mean if mean > 0 else 0.0
        shown = int((rows > 0).sum())
        return cls(n_users, len(rows), shown, int(rows.sum()), int(positives.sum()), spread, lift)

    @classmethod
    def from_log(cls, log: Log, *, n_items: int | None = None) -> LogProfile:
        """A log that has rows; a pair that occurs more than once counts once, as liked where any of its rows is.

        `n_items` is the size of the catalogue, where it has more items than the log names.
        """
        n_users, size, is_liked = len(log.users), catalogue_size(log, n_items), log.label == 1
        liked = Pairs.of(log.user[is_liked], log.item[is_liked], n_units=n_users)
        shown = Pairs.of(log.user, log.item, n_units=n_users)
        rows = np.full(size, n_users) if log.complete else np.bincount(shown.item, minlength=size)
        return cls.from_counts(rows, np.bincount(liked.item, minlength=size), n_users=n_users)


@record
class PositivesProfile:
    """A log of positives alone in figures: which other items were exposed is unknown."""

    users: int
    items: int
    items_liked: int
    positives: int

    @property
    def positives_per_user(self) -> float:
        return self.positives / self.users

    @classmethod
    def from_log(cls, log: Log, *, n_items: int | None = None) -> PositivesProfile:
        """A log whose rows are all positives; a pair that occurs more than once counts once.

        >>> from truerank.core.ids import Ids
        >>> log = Log(Ids.of([1, 2]), Ids.of([1, 2, 3]), np.array([0, 0, 1]), np.array([0, 1, 1]), {})
        >>> PositivesProfile.from_log(log, n_items=9), PositivesProfile.from_log(log).positives_per_user
        (PositivesProfile(users=2, items=9, items_liked=2, positives=3), 1.5)
        """
        liked = Pairs.of(log.user, log.item, n_units=len(log.users)).item
        return cls(len(np.unique(log.user)), catalogue_size(log, n_items), len(np.unique(liked)), len(liked))


Profile = LogProfile | PositivesProfile


def catalogue_size(log: Log, n_items: int | None) -> int:
    """How many items could have been exposed: `n_items`, or the items of the log; refused where that is fewer."""
    if n_items is not None and n_items < len(log.items):
        raise InputError(f"{log.source}: {len(log.items):,} items, but the catalogue is said to have {n_items:,}.")
    return len(log.items) if n_items is None else n_items


def has_positives_alone(log: Log) -> bool:
    """Whether a log holds positives alone, and so does not say what else was exposed."""
    return not log.complete and (not log.rewards or ("label" in log.rewards and bool((log.label == 1).all())))


def profiles_of(counts: Ints, *, n_users: int) -> list[LogProfile]:
    """The log of each sparsity, from the counts of a `LoggerRun`, over the items that have a row at sparsity 0."""
    n_sparsities = len(counts) // 2
    rows, positives = (part[:, counts[0] > 0] for part in (counts[:n_sparsities], counts[n_sparsities:-1]))
    return [LogProfile.from_counts(*both, n_users=n_users) for both in zip(rows, positives, strict=True)]


# -------------------------------------------------------------------------------------------------------------- studies


@record
class Interpolation:
    """A sparsity between two levels of a study: (1 - share) of `low` and share of `high`."""

    low: float
    high: float
    share: float

    @classmethod
    def of(cls, sparsity: float, *, observed: Sequence[float], levels: Sequence[float]) -> Interpolation:
        """Linear in the sparsity that logs have; the nearest level outside their range.

        >>> Interpolation.of(0.6, observed=[0.1, 0.5, 0.9], levels=[0.0, 0.4, 0.8]).share.__round__(4)
        0.25
        """
        below = int(np.searchsorted(observed, sparsity, side="right")) - 1
        if below < 0 or below + 1 >= len(levels) or observed[below] == sparsity:
            return cls(levels[max(below, 0)], levels[max(below, 0)], 0.0)
        share = (sparsity - observed[below]) / (observed[below + 1] - observed[below])
        return cls(levels[below], levels[below + 1], float(share))

    def rows(self, table: pl.DataFrame) -> pl.DataFrame:
        """The rows of the lower level, their numbers linear between both, which have the same scenarios."""
        low, high = (table.filter(pl.col("sparsity") == level) for level in (self.low, self.high))
        numbers = [] if self.share == 0 else low.select(pl.selectors.float()).columns
        return low.with_columns((1 - self.share) * low[name] + self.share * high[name] for name in numbers)


@record
class FinishedStudy:
    """The tables of a finished study."""

    results: pl.DataFrame
    pairs: pl.DataFrame
    logs: pl.DataFrame
    source: str = "study"
    settings: Mapping[str, Any] = field(default_factory=dict)  # what its note says

    @classmethod
    def read(cls, folder: str | Path, *, source: str | None = None) -> FinishedStudy:
        """The study in a folder, called `source` in messages (by default the folder's name).

        Refused where the folder holds no finished study of this format, or one that was altered.
        """
        path = Path(folder)
        check_folder(path, kind=KIND, expected=EXPECTED)
        settings = msgspec.json.decode((path / NOTE).read_bytes(), type=dict[str, Any])
        version = settings.get("format")
        if version != FORMAT:  # made in another way: its figures mean something else
            raise InputError(
                f"{path / NOTE}: format {version}, expected {FORMAT}: the study is of another version of truerank. Run "
                "it again in a new folder."
            )
        results, pairs, logs = (pl.read_parquet(path / name, glob=False) for name in NEEDED)
        return cls(results, pairs, logs, str(path) if source is None else source, settings)

    @property
    def metrics(self) -> list[str]:
        return list(self.pairs["metric"].unique(maintain_order=True))

    @property
    def loggers(self) -> list[str]:
        return list(self.logs["logger"].unique(maintain_order=True))

    def metric(self, name: str | None) -> str:
        """The metric of that name; without one nDCG@100, or the study's last."""
        if name is None:
            return "nDCG@100" if "nDCG@100" in self.metrics else self.metrics[-1]
        if name not in self.metrics:
            raise InputError(f"metric {name!r} is not in {self.source}; expected one of {some(self.metrics, most=20)}.")
        return name

    def without_exposed(self) -> FinishedStudy:
        """Without the samplers that need each user's exposed negatives: Exposed, and as many as were exposed."""
        usable = pl.col("size").is_not_null() | (pl.col("sampler") == FULL)
        return replace(self, pairs=self.pairs.filter(usable), results=self.results.filter(usable))

    def levels(self, logger: str) -> pl.DataFrame:
        """The rows of `logs` of one logging policy, by rising sparsity as observed in the log."""
        return self.logs.filter(pl.col("logger") == logger).sort("observed_sparsity", "sparsity")

    def between(self, logger: str, sparsity: float) -> Interpolation:
        """Where a sparsity lies among the levels of one logging policy."""
        observed, levels = (self.levels(logger)[name].to_list() for name in ("observed_sparsity", "sparsity"))
        return Interpolation.of(sparsity, observed=observed, levels=levels)


@record
class LoggerMatch:
    """A study's logging policy at the sparsity of a log: the profile of its log, and the distance (NaN: unknown)."""

    logger: str
    between: Interpolation
    items: float
    items_shown: float
    rows_per_user: float
    positives_per_user: float
    spread: float
    lift: float
    distance: float


def match_loggers(study: FinishedStudy, profile: Profile | None, *, sparsity: float) -> tuple[LoggerMatch, ...]:
    """Every logging policy of a study beside a log, nearest first; in the study's order for positives alone.

    distance = √((spread - spread')² + (lift - lift')²); both are relative to a mean of 1.
    """
    matches = []
    for logger in study.loggers:
        between, distance = study.between(logger, sparsity), math.nan
        row = between.rows(study.levels(logger)).row(0, named=True)
        if isinstance(profile, LogProfile):
            distance = math.hypot(row["spread"] - profile.spread, row["lift"] - profile.lift)
        row |= {f"{name}_per_user": row[name] / row["users"] for name in ("rows", "positives")}
        figures = {field.name: row[field.name] for field in fields(LoggerMatch) if field.name in row}
        matches.append(LoggerMatch(**figures | {"between": between, "distance": distance}))
    return tuple(sorted(matches, key=lambda match: match.distance) if isinstance(profile, LogProfile) else matches)


@record
class StudiedDataset:
    """Where a shipped study comes from, and under which terms."""

    name: str
    what: str
    home: str
    terms: str
    made_by: str


@cache
def shipped_datasets() -> dict[str, StudiedDataset]:
    """The datasets whose studies come with the package, by folder in `shipped/`: aggregates of scenarios alone, made
    by `truerank_research.papers.reliability.pack` (see NOTICE).

    >>> [dataset.name for dataset in shipped_datasets().values()]
    ['Jester', 'KuaiRec']
    """
    paths = sorted(SHIPPED.glob(f"*/{WORLD}"))
    return {path.parent.name: msgspec.json.decode(path.read_bytes(), type=StudiedDataset) for path in paths}


@cache
def shipped_studies() -> tuple[FinishedStudy, ...]:
    """These studies, each named by its dataset."""
    return tuple(
        FinishedStudy.read(SHIPPED / folder, source=f"{dataset.name} ({dataset.what})")
        for folder, dataset in shipped_datasets().items()
    )
