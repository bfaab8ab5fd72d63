"""From the results of a reliability study to what its four figures show: one row per mark, with its place. No drawing.

    results.parquet --tidy--> one question, one metric --axis--> --placed--> where every value is drawn

Every row of the results is one mark. A tie rate of 0 has no place on a log axis: it stands on a line of its own at the
bottom, labelled 0. What is undefined for every user stands at the bottom as a cross, and the line is broken there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from truerank.core.errors import InputError
from truerank.io.atomic_write import check_folder
from truerank.io.files import read_table
from truerank.reliability.studied import EXPECTED, FORMAT, KIND, NOTE, RESULTS
from truerank.report.charts import COLOURS, SHAPES, wrapped

SCENARIO = ("logger", "sparsity", "sampler", "size")
PREFERRED = "nDCG@100"  # the metric of the published figures
LEAST_ROOM = 0.12  # of a log axis, between the line of 0 and the smallest value


# samplers without size are black and grey; dashes say the same where there is no colour
GREYS = ("#000000", "#555555", "#8c8c8c")
DASHES = ((7, 3), (2, 2), (8, 2, 2, 2))
SIZED = ("Random", "Popularity", "Positivity", "WTD", "WTDH", "Skew")
SIZELESS = ("Full", "Exposed", "Random@e")
MOST_COLUMNS = 8  # as in the published figures; more sparsities go on in the next line
WIDTH, LEAST_PANEL, WIDEST_PANEL, SPACING = 1000, 118, 380, 8


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
            study = msgspec.json.decode(note.read_bytes(), type=dict[str, Any])
            n_models, resamples, level = len(study["scores"]), int(study["resamples"]), float(study["level"])
        except (msgspec.DecodeError, OSError, KeyError, TypeError, ValueError, RecursionError):
            raise InputError(f"{note}: is no note of a study; {expected}.") from None
        if study.get("format") != FORMAT:
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

    def metric(self, name: str | None = None) -> str:
        """The metric of this name; without one nDCG@100, or else the last of the study."""
        names: list[str] = self.names("metric")
        if name is None:
            return PREFERRED if PREFERRED in names else names[-1]
        if name not in names:
            raise InputError(f"{self.source}: the metric {name!r} is not in the study; it has {', '.join(names)}.")
        return name

    def only(self, column: str, chosen: Sequence[Any] | None) -> Finished:
        """The part with these loggers, sparsities or samplers; one that the study does not have is refused."""
        if chosen is None:
            return self
        present = self.names(column)
        texts = ", ".join(map(_text, present))
        if not chosen:
            raise InputError(f"no {column} is asked for; the study has {texts}.")
        for value in chosen:
            if value not in present:
                raise InputError(f"{self.source}: the {column} {_text(value)} is not in the study; it has {texts}.")
        return replace(self, results=self.results.filter(pl.col(column).is_in(list(chosen))))


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


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


def tie_axis(frame: pl.DataFrame) -> Axis:
    """A log axis of shares, between numbers such as 0.01, 0.02 and 0.05; with a line for 0 below if there are zeros.

    >>> tie_axis(pl.DataFrame({"value": [0.03, 0.4], "low": [0.02, 0.3], "high": [0.04, 0.45]}))
    Axis(low=0.02, high=0.5, ticks=(0.02, 0.05, 0.1, 0.2, 0.5), log=True, zero=None)
    >>> tie_axis(pl.DataFrame({"value": [0.0, 1.0], "low": [0.0, 1.0], "high": [0.01, 1.0]})).ticks[1:]
    (0.01, 0.1, 1.0)
    """
    values = [value for name in ("value", "low", "high") for value in frame[name].drop_nulls()]
    positive = [value for value in values if value > 0] or [0.1, 1.0]
    low, high = _step(min(positive), up=False), _step(max(positive), up=True)
    low = low if low < high else _step(low * 0.9, up=False)
    steps = [m * 10.0**k for k in range(math.floor(math.log10(low)), 1) for m in (1, 2, 5)]
    ticks = [float(f"{step:.0e}") for step in steps if low * 0.99 <= step <= high * 1.01]
    tens = [tick for tick in ticks if f"{tick:.0e}".startswith("1")]
    ticks = tens if len(tens) > 2 else ticks
    ticks = ticks[:: math.ceil(len(ticks) / 6)]
    if min(values, default=0.0) > 0:
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
    least = min((value for name in ("value", "low") for value in frame[name].drop_nulls()), default=0.0)
    fifths = min(0, math.floor(least * 5 + 1e-9))
    if fifths < -2:
        ticks = (-1.0, -0.5, 0.0, 0.5, 1.0) if least < -0.5 else (-0.5, 0.0, 0.5, 1.0)
        return Axis(ticks[0], 1.0, ticks)
    return Axis(fifths / 5, 1.0, tuple(fifth / 5 for fifth in range(fifths, 6)))


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
    share = 0.03 + 0.05 * (stack % 18)  # of the axis; more than fit start again at the bottom
    cross = axis.low * (axis.high / axis.low) ** share if axis.log else axis.low + (axis.high - axis.low) * share
    state = pl.when(missing).then(pl.lit("undefined")).when(pl.lit(axis.log) & (pl.col("value") <= 0))
    marks = frame.with_columns(
        state=state.then(pl.lit("zero")).otherwise(pl.lit("value")),
        at=pl.when(missing).then(cross).otherwise(on_axis("value")),
        bottom=pl.when(missing | pl.col("high").is_null()).then(None).otherwise(on_axis("low")),
        top=pl.when(missing | pl.col("low").is_null()).then(None).otherwise(on_axis("high")),
    )
    without = pl.col("bottom").is_null()
    marks = marks.with_columns(
        line=missing.cast(pl.Int64).cum_sum().over(sampler), band=without.cast(pl.Int64).cum_sum().over(sampler)
    )
    return marks.with_columns(
        bar=~without & pl.col("size").is_not_null() & ((~without).sum().over([*sampler, "band"]) == 1)
    )


# -------------------------------------------------------------------------------------------------------------- layout


class Style(NamedTuple):
    """How a sampler is drawn in every figure; a dash where it has no size."""

    colour: str
    shape: str = "circle"
    dash: tuple[int, ...] = ()


def styles(sized: Mapping[str, bool]) -> dict[str, Style]:
    """A style for each sampler (has it sizes?): the paper's samplers always have the same, others what is left.

    >>> chosen = styles({"Full": False, "Skew": True, "Skew(favours=popular)": True})
    >>> chosen["Skew"].colour, chosen["Skew(favours=popular)"].colour, chosen["Full"].dash
    ('#CC79A7', '#0072B2', (7, 3))
    """
    marks = [Style(COLOURS[n], SHAPES[(n + turn) % 6]) for turn in range(6) for n in range(6)]
    rules = [Style(GREYS[(n + turn) % 3], dash=DASHES[n]) for turn in range(3) for n in range(3)]
    chosen: dict[str, Style] = {}
    for names, ways, size in ((SIZED, marks, True), (SIZELESS, rules, False)):
        published = {name: way for name, way in zip(names, ways, strict=False) if sized.get(name) is size}
        free = [way for way in ways if way not in published.values()]
        others = [name for name in sized if sized[name] is size and name not in published]
        chosen |= published | {name: free[n % len(free)] for n, name in enumerate(others)}
    return {name: chosen[name] for name in sized}


class Panel(NamedTuple):
    """What one logger shows at one sparsity."""

    logger: str
    sparsity: float

    @property
    def title(self) -> str:
        """
        >>> Panel("popularity", 0.9).title
        'popularity, 90 % hidden'
        """
        return f"{self.logger}, {100 * self.sparsity:g} % hidden"


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """Panels in lines, and how large each is; a logger begins a new line."""

    lines: tuple[tuple[Panel, ...], ...]
    panel_width: int

    @classmethod
    def arranged(cls, loggers: Sequence[str], sparsities: Sequence[float]) -> PanelLayout:
        """
        >>> [len(line) for line in PanelLayout.arranged(["uniform"], [n / 12 for n in range(12)]).lines]
        [6, 6]
        >>> PanelLayout.arranged(["uniform"], [0.0]).width
        380
        """
        n = len(sparsities)
        columns = math.ceil(n / math.ceil(n / MOST_COLUMNS))
        lines = tuple(
            tuple(Panel(logger, sparsity) for sparsity in sparsities[first : first + columns])
            for logger, first in product(loggers, range(0, n, columns))
        )
        return cls(lines, min(WIDEST_PANEL, max(LEAST_PANEL, (WIDTH + SPACING) // columns - SPACING)))

    @property
    def panel_height(self) -> int:
        return min(240, max(130, self.panel_width * 2 // 3))

    @property
    def width(self) -> int:
        return max(map(len, self.lines)) * (self.panel_width + SPACING) - SPACING

    def heading(self, panel: Panel) -> list[str]:
        """The lines of a panel's title; all are broken where one is too long.

        >>> layout = PanelLayout.arranged(["popularity"], [0.1 * n for n in range(8)])
        >>> layout.heading(layout.lines[0][0])
        ['popularity,', '0 % hidden']
        """
        if all(len(wrapped(shown.title, self.panel_width)) == 1 for line in self.lines for shown in line):
            return [panel.title]
        return [*wrapped(f"{panel.logger},", self.panel_width), panel.title.removeprefix(f"{panel.logger}, ")]

    def is_open_below(self, line: int) -> bool:
        """Whether a panel of the line has none right below it: then its horizontal axis has numbers."""
        return line + 1 >= len(self.lines) or len(self.lines[line]) > len(self.lines[line + 1])
