"""From the results of a reliability study to what its four figures show: one row per mark, with its place. No drawing.

    results.parquet --tidy--> one question, one metric --axis--> --placed--> where every value is drawn

Every row of the results is one mark. A tie rate of 0 has no place on a log axis: it stands on a line of its own at the
bottom, labelled 0. What is undefined for every user stands at the bottom as a cross, and the line is broken there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from truerank.core.errors import InputError
from truerank.io.atomic_write import check_folder
from truerank.io.files import read_table
from truerank.reliability.studied import EXPECTED, FORMAT, KIND, NOTE, RESULTS

SCENARIO = ("logger", "sparsity", "sampler", "size")
PREFERRED = "nDCG@100"  # the metric of the published figures
LEAST_ROOM = 0.12  # of a log axis, between the line of 0 and the smallest value


class StudyQuestion(StrEnum):
    """What is asked of a way to evaluate (Q1 to Q4), named as in the results."""

    RESOLUTION = "resolution"
    FIDELITY = "fidelity"
    ROBUSTNESS = "robustness"
    PREDICTIVE_POWER = "predictive_power"


class Tau(StrEnum):
    """Which τ-b: its mean over users, those without one left out or as 0, or that of the models' means."""

    LEFT_OUT = "left-out"
    ZERO = "zero"
    OF_MEANS = "of-means"


COLUMNS = {
    Tau.LEFT_OUT: ("value", "low", "high"),
    Tau.ZERO: ("value_undefined_as_0", "low_undefined_as_0", "high_undefined_as_0"),
    Tau.OF_MEANS: ("tau_of_means", "tau_of_means_low", "tau_of_means_high"),
}


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished study: its results, how many models it compares, and what its intervals mean."""

    results: pl.DataFrame
    n_models: int
    resamples: int
    level: float
    source: str = "the study"

    @classmethod
    def read(cls, folder: Path) -> Finished:
        """The study in a folder; refused where there is none, or where it is not finished."""
        note, table = folder / NOTE, folder / RESULTS
        expected = "expected the folder of `truerank study reliability`"
        if not note.is_file():
            raise InputError(f"{folder}: is no folder of a study (it has no {NOTE}); {expected}.")
        try:
            known = msgspec.json.decode(note.read_bytes(), type=dict[str, Any])
            n_models, resamples, level = len(known["scores"]), int(known["resamples"]), float(known["level"])
        except (msgspec.DecodeError, OSError, KeyError, TypeError, ValueError, RecursionError):
            raise InputError(f"{note}: is no note of a study; {expected}.") from None
        if known.get("format") != FORMAT:
            raise InputError(f"{folder}: a study of another version, whose figures mean something else. Run it again.")
        check_folder(folder, kind=KIND, expected=EXPECTED)
        results = read_table(table)
        needed = {*SCENARIO, "metric", "question", "undefined", "users", "repetitions", *COLUMNS[Tau.LEFT_OUT]}
        lacking = sorted(needed - set(results.columns))
        if lacking:
            raise InputError(f"{table}: lacks the column {lacking[0]!r}; {expected}.")
        return cls(results, n_models, resamples, level, str(folder))

    def names(self, column: str) -> list[Any]:
        """The values of a column, in the order of the study."""
        return self.results[column].unique(maintain_order=True).to_list()

    def metric(self, asked: str | None = None) -> str:
        """The metric that is asked for; without one nDCG@100, or else the last of the study."""
        known: list[str] = self.names("metric")
        if asked is None:
            return PREFERRED if PREFERRED in known else known[-1]
        if asked not in known:
            raise InputError(f"{self.source}: the metric {asked!r} is not in the study; it has {', '.join(known)}.")
        return asked

    def only(self, column: str, asked: Sequence[Any] | None) -> Finished:
        """The part with these loggers, sparsities or samplers; one that the study does not have is refused."""
        if asked is None:
            return self
        known = self.names(column)
        if not asked:
            raise InputError(f"no {column} is asked for; the study has {_listed(known)}.")
        for each in asked:
            if each not in known:
                raise InputError(f"{self.source}: the {column} {_shown(each)} is not in the study; it has "
                                 f"{_listed(known)}.")  # fmt: skip
        part = self.results.filter(pl.col(column).is_in(list(asked)))
        return Finished(part, self.n_models, self.resamples, self.level, self.source)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(_shown, values))


def tidy(results: pl.DataFrame, question: StudyQuestion, *, metric: str, tau: Tau = Tau.LEFT_OUT) -> pl.DataFrame:
    """The rows of one question and metric: scenario, value, low, high (null where not defined), undefined, users.

    Ties need no τ: for resolution the columns are always those of the share of ties.
    """
    value, low, high = COLUMNS[Tau.LEFT_OUT if question is StudyQuestion.RESOLUTION else tau]
    rows = results.filter((pl.col("question") == question.value) & (pl.col("metric") == metric))
    nothing = pl.lit(None, dtype=pl.Float64)
    return rows.select(
        *SCENARIO,
        pl.col(value).fill_nan(None).alias("value"),
        *((pl.col(name) if name in rows.columns else nothing).fill_nan(None).alias(bound)
          for bound, name in (("low", low), ("high", high))),
        "undefined",
        "users",
        "repetitions",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Axis:
    """The vertical axis of all panels of a figure; `zero` is where a log axis shows 0, if it has to."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False
    zero: float | None = None

    def at(self, share: Any) -> Any:
        """The value at a share of the axis from the bottom; of a number or of an expression.

        >>> round(Axis(0.01, 1.0, (), log=True).at(0.5), 6), Axis(0.0, 1.0, ()).at(0.5)
        (0.1, 0.5)
        """
        if self.log:
            return self.low * (self.high / self.low) ** share
        return self.low + (self.high - self.low) * share


def tie_axis(frame: pl.DataFrame) -> Axis:
    """A log axis of shares, between numbers such as 0.01, 0.02 and 0.05; with a line for 0 below if there are zeros.

    >>> tie_axis(pl.DataFrame({"value": [0.03, 0.4], "low": [0.02, 0.3], "high": [0.04, 0.45]}))
    Axis(low=0.02, high=0.5, ticks=(0.02, 0.05, 0.1, 0.2, 0.5), log=True, zero=None)
    >>> tie_axis(pl.DataFrame({"value": [0.0, 1.0], "low": [0.0, 1.0], "high": [0.01, 1.0]})).ticks[1:]
    (0.01, 0.1, 1.0)
    """
    known = [each for name in ("value", "low", "high") for each in frame[name].drop_nulls().to_list()]
    some = [each for each in known if each > 0] or [0.1, 1.0]
    low, high = _step(min(some), up=False), _step(max(some), up=True)
    low = low if low < high else _step(low * 0.9, up=False)
    steps = [m * 10.0**k for k in range(math.floor(math.log10(low)), 1) for m in (1, 2, 5)]
    ticks = [float(f"{each:.0e}") for each in steps if low * 0.99 <= each <= high * 1.01]
    tens = [each for each in ticks if f"{each:.0e}".startswith("1")]
    ticks = tens if len(tens) > 2 else ticks
    ticks = ticks[:: math.ceil(len(ticks) / 6)]
    if min(known, default=0.0) > 0:
        return Axis(low, high, tuple(ticks), log=True)
    zero = low / max(2.0, (high / low) ** LEAST_ROOM)
    return Axis(zero, high, (zero, *ticks), log=True, zero=zero)


def _step(value: float, *, up: bool) -> float:
    """The nearest of 1, 2 and 5 times a power of ten, not above (or not below) a value."""
    power = math.floor(math.log10(value))
    steps = [float(f"{m}e{p}") for p in (power - 1, power, power + 1) for m in (1, 2, 5)]
    slack = 1e-9 * value
    return min(s for s in steps if s >= value - slack) if up else max(s for s in steps if s <= value + slack)


def tau_axis(frame: pl.DataFrame) -> Axis:
    """From 0, or from below where τ is negative, to 1.

    >>> tau_axis(pl.DataFrame({"value": [0.5, 0.9], "low": [-0.15, 0.8]})).ticks
    (-0.2, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    """
    least = min((each for name in ("value", "low") for each in frame[name].drop_nulls().to_list()), default=0.0)
    fifths = min(0, math.floor(least * 5 + 1e-9))
    if fifths < -2:
        ticks = (-1.0, -0.5, 0.0, 0.5, 1.0) if least < -0.5 else (-0.5, 0.0, 0.5, 1.0)
        return Axis(ticks[0], 1.0, ticks)
    return Axis(fifths / 5, 1.0, tuple(each / 5 for each in range(fifths, 6)))


def placed(frame: pl.DataFrame, axis: Axis) -> pl.DataFrame:
    """Where each row is drawn: every row has a place `at`, and says in `state` what it is.

    `state` is value, zero (on the line of 0 of a log axis) or undefined (a cross at the bottom, those at the same size
    above each other). `bottom` and `top` are the interval. `line` and `band` number the unbroken stretches of a
    sampler's values and intervals; an interval that is a stretch by itself is no band but a `bar`.
    """
    panel, sampler = ["logger", "sparsity"], ["logger", "sparsity", "sampler"]
    missing = pl.col("value").is_null()
    zero = pl.lit(axis.zero, dtype=pl.Float64)

    def on_axis(name: str) -> pl.Expr:
        return pl.when(pl.col(name) <= 0).then(zero).otherwise(pl.col(name)) if axis.log else pl.col(name)

    stack = missing.cast(pl.Int64).cum_sum().over([*panel, "size"]) - 1
    cross = axis.at(0.03 + 0.05 * (stack % 18))  # more than fit start again at the bottom
    state = pl.when(missing).then(pl.lit("undefined")).when(pl.lit(axis.log) & (pl.col("value") <= 0))
    found = frame.with_columns(
        state=state.then(pl.lit("zero")).otherwise(pl.lit("value")),
        at=pl.when(missing).then(cross).otherwise(on_axis("value")),
        bottom=pl.when(missing | pl.col("high").is_null()).then(None).otherwise(on_axis("low")),
        top=pl.when(missing | pl.col("low").is_null()).then(None).otherwise(on_axis("high")),
    )
    without = pl.col("bottom").is_null()
    found = found.with_columns(
        line=missing.cast(pl.Int64).cum_sum().over(sampler), band=without.cast(pl.Int64).cum_sum().over(sampler)
    )
    return found.with_columns(
        bar=~without & pl.col("size").is_not_null() & ((~without).sum().over([*sampler, "band"]) == 1)
    )
