"""A finished study, read back: which of its logs is like another, and what it found there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.core.errors import InputError, some
from truerank.io.atomic_write import check_folder
from truerank.reliability.folder import EXPECTED, FORMAT, KIND, LOGS, NOTE, PAIRS, RESULTS
from truerank.reliability.logs import FIGURES, Look, Seen

Candidates = tuple[str, int | None]  # sampler, size
FULL = "Full"
QUESTIONS = ("resolution", "predictive_power")  # of those that results answer, what advice looks at
_SCENARIO = ("logger", "sparsity", "sampler", "size", "metric")
NEEDED = {
    RESULTS: (
        *_SCENARIO,
        "question",
        "value",
        "undefined",
        *(f"{each}_undefined_as_0" for each in ("value", "low", "high")),
    ),
    PAIRS: (*_SCENARIO, "model", "other", "difference", "sd", "users"),
    LOGS: ("logger", "sparsity", *FIGURES, "repetitions"),
}


@dataclass(frozen=True, slots=True)
class Studied:
    """The tables of a finished study."""

    results: pl.DataFrame
    pairs: pl.DataFrame
    logs: pl.DataFrame
    source: str = "study"

    @classmethod
    def read(cls, folder: str | Path, *, source: str | None = None) -> Studied:
        """The study in a folder, called `source` in messages (by default the folder's own name).

        Refused where the folder holds no finished study of this format, or one that was altered."""
        path = Path(folder)
        if not (path / NOTE).is_file():
            raise InputError(
                f"{path}: no study here (no {NOTE}); expected the folder of a finished `truerank study reliability`."
            )
        _check_format(path / NOTE)
        check_folder(path, kind=KIND, expected=EXPECTED)
        results, pairs, logs = (_table(path / name, needed) for name, needed in NEEDED.items())
        return cls(results, pairs, logs, str(path) if source is None else source)

    @property
    def metrics(self) -> list[str]:
        return list(self.pairs["metric"].unique(maintain_order=True))

    @property
    def loggers(self) -> list[str]:
        return list(self.logs["logger"].unique(maintain_order=True))

    def metric(self, asked: str | None, *, usual: str = "nDCG@100") -> str:
        """The metric asked for; without one the usual one, or the study's last."""
        known = self.metrics
        if asked is None:
            return usual if usual in known else known[-1]
        if asked not in known:
            raise InputError(f"metric {asked!r} is not in {self.source}; expected one of {some(known, most=20)}.")
        return asked

    def without_exposed(self) -> Studied:
        """Without the samplers that need each user's exposed negatives: Exposed, and as many as were exposed."""
        kept = pl.col("size").is_not_null() | (pl.col("sampler") == FULL)
        return replace(self, pairs=self.pairs.filter(kept), results=self.results.filter(kept))

    def levels(self, logger: str) -> pl.DataFrame:
        """The rows of `logs` of one logger, by rising sparsity as seen in the log."""
        return self.logs.filter(pl.col("logger") == logger).sort("observed_sparsity", "sparsity")

    def between(self, logger: str, sparsity: float) -> Between:
        """Where a sparsity lies among the levels of one logger."""
        levels = self.levels(logger)
        return Between.of(sparsity, observed=levels["observed_sparsity"].to_list(), levels=levels["sparsity"].to_list())


def _check_format(note: Path) -> None:
    """A study of another format was made in another way: its figures mean something else."""
    try:
        known = msgspec.json.decode(note.read_bytes(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, OSError, RecursionError) as error:
        raise InputError(f"{note}: cannot be read ({error}). Run the study in a new folder.") from None
    if known.get("format") != FORMAT:
        found = f"format {known['format']}" if "format" in known else "no format"
        raise InputError(
            f"{note}: {found}, expected {FORMAT}: the study is of another version of truerank. Run it again in a new "
            "folder."
        )


def _table(path: Path, needed: Sequence[str]) -> pl.DataFrame:
    try:
        found = pl.read_parquet(path, glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"{path}: cannot be read ({reason}). Run the study in a new folder.") from None
    missing = [name for name in needed if name not in found.columns]
    if missing or not found.height:
        what = f"no column {missing[0]!r}" if missing else "no rows"
        raise InputError(f"{path}: {what}; expected what a study of this version writes. Run it in a new folder.")
    return found


# ------------------------------------------------------------------------------------------------------------- matching


@dataclass(frozen=True, slots=True)
class Between:
    """A sparsity between two levels of a study: (1 - share) of `low` and share of `high`."""

    low: float
    high: float
    share: float

    def mix(self, low: Floats, high: Floats) -> Floats:
        return low if self.share == 0 else np.asarray((1 - self.share) * low + self.share * high)

    def number(self, low: float, high: float) -> float:
        return float(self.mix(np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)))

    @classmethod
    def of(cls, sparsity: float, *, observed: Sequence[float], levels: Sequence[float]) -> Between:
        """Linear in the sparsity that logs show; the nearest level outside their range.

        >>> Between.of(0.6, observed=[0.1, 0.5, 0.9], levels=[0.0, 0.4, 0.8]).share.__round__(4)
        0.25
        """
        at = int(np.searchsorted(observed, sparsity, side="right")) - 1
        if at < 0 or at + 1 >= len(levels) or observed[at] == sparsity:
            nearest = float(levels[max(at, 0)])
            return cls(nearest, nearest, 0.0)
        share = (sparsity - observed[at]) / (observed[at + 1] - observed[at])
        return cls(float(levels[at]), float(levels[at + 1]), float(share))


@dataclass(frozen=True, slots=True)
class Likeness:
    """A study's logger at the sparsity of a log: what its log looks like, and how far from it (NaN: not compared)."""

    logger: str
    between: Between
    items: float
    items_shown: float
    rows_per_user: float
    positives_per_user: float
    spread: float
    lift: float
    distance: float


def likenesses(studied: Studied, look: Seen | None, *, sparsity: float) -> tuple[Likeness, ...]:
    """Every logger of a study beside a log, nearest first; in the study's order where the log exposes nothing.

    distance = √((spread - spread')² + (lift - lift')²); both are relative to a mean of 1.
    """
    found = []
    for logger in studied.loggers:
        between = studied.between(logger, sparsity)
        rows = {row["sparsity"]: row for row in studied.levels(logger).iter_rows(named=True)}
        low, high = rows[between.low], rows[between.high]
        mixed = {
            name: between.number(low[name], high[name])
            for name in ("users", "items", "items_shown", "rows", "positives", "spread", "lift")
        }
        far = (
            math.hypot(mixed["spread"] - look.spread, mixed["lift"] - look.lift) if isinstance(look, Look) else math.nan
        )
        users = mixed["users"]
        found.append(
            Likeness(
                logger,
                between,
                mixed["items"],
                mixed["items_shown"],
                mixed["rows"] / users,
                mixed["positives"] / users,
                mixed["spread"],
                mixed["lift"],
                far,
            )
        )
    return tuple(sorted(found, key=lambda each: each.distance) if isinstance(look, Look) else found)


# ---------------------------------------------------------------------------------------------------------------- pairs


@dataclass(frozen=True, slots=True)
class PairTable:
    """Differences of models in every way to choose candidates: mean and spread between users, [candidates x pairs]."""

    candidates: tuple[Candidates, ...]
    pairs: tuple[tuple[str, str], ...]
    difference: Floats
    sd: Floats
    users: Floats

    @classmethod
    def of(cls, rows: pl.DataFrame) -> PairTable:
        """From the rows of one logger, sparsity and metric."""
        labels, models = (
            list(rows.select(names).unique(maintain_order=True).iter_rows())
            for names in (["sampler", "size"], ["model", "other"])
        )
        candidate, pair = ({each: at for at, each in enumerate(names)} for names in (labels, models))
        values = np.full((3, len(labels), len(models)), np.nan)
        columns = rows.select("sampler", "size", "model", "other", "difference", "sd", "users")
        for sampler, size, model, other, *figures in columns.iter_rows():
            values[:, candidate[sampler, size], pair[model, other]] = figures
        return cls(tuple(labels), tuple(models), *values)

    def mixed(self, other: PairTable, between: Between) -> PairTable:
        """Linearly between two levels, which have the same scenarios."""
        return PairTable(
            self.candidates,
            self.pairs,
            between.mix(self.difference, other.difference),
            between.mix(self.sd, other.sd),
            np.minimum(self.users, other.users),
        )

    def at(self, candidates: Candidates) -> int:
        return self.candidates.index(candidates)
