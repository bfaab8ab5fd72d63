"""What is reported: estimates and comparisons, with all that is needed to read them rightly and to make them again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import polars as pl

from truerank.core.errors import InputError, some
from truerank.core.log import as_pandas
from truerank.core.messages import Message
from truerank.core.provenance import Provenance, comparable, plain
from truerank.core.record import record
from truerank.core.units import UnitTable
from truerank.core.validation import checked_arguments

if TYPE_CHECKING:
    from truerank.report.plots import Plots

BETTER, WORSE, NOT_SHOWN, INSUFFICIENT = "better", "worse", "not shown", "insufficient"
HIGHER, LOWER = "higher", "lower"  # of a metric that says nothing about better
SHOWN_ABOVE, SHOWN_BELOW = (BETTER, HIGHER), (WORSE, LOWER)
OPPOSITE = dict(zip((*SHOWN_ABOVE, *SHOWN_BELOW), (*SHOWN_BELOW, *SHOWN_ABOVE), strict=True))


@record(kw_only=True)
class Evidence:
    """What tells how far a number can be trusted.

    `informative` clusters tell something about it; `df` are the degrees of freedom of its error; `largest` is the part
    of the variance that one cluster has. `balance` is how much of the list the rows stand for, 1 if all of it, with its
    z (None: cannot be checked). `lost` is the share of weight that a clip takes away, `unsupported` the share of a
    target's exposure that the log cannot show. None where it does not apply.
    """

    informative: int = 0
    df: float | None = None
    largest: float | None = None
    balance: float | None = None
    balance_z: float | None = None
    lost: float | None = None
    unsupported: float | None = None

    def __post_init__(self) -> None:
        for name in ("df", "largest", "balance", "balance_z", "lost", "unsupported"):
            number = getattr(self, name)
            if number is not None and (type(number) is not float or not math.isfinite(number)):
                object.__setattr__(self, name, float(number) if math.isfinite(number) else None)


class _Entry:
    """Equal where all fields are; an undefined number equals itself."""

    __slots__ = ()

    def __eq__(self, entry: object) -> bool:
        return isinstance(entry, type(self)) and comparable(self) == comparable(entry)

    def __hash__(self) -> int:
        names = ("model", "baseline", "metric", "estimator", "reward", "clip", "segment")
        return hash(tuple(getattr(self, name, None) for name in names))


@record(kw_only=True, eq=False)
class Estimate(_Entry):
    """One number, what it estimates, and how sure it is.

    `estimator` is its text form without the clip and `settings` its options; `k` is the cut-off of the metric. No clip,
    no cut-off and no effective size are None; an undefined number is NaN, and equals itself here. `units` and
    `clusters` are those that define the value, `undefined` the units that do not. Of a `segment` only its items earn.
    `directed` says whether a larger value is better, or only larger.
    """

    model: str
    metric: str
    k: int | None
    estimator: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    estimand: str
    value: float
    stderr: float
    low: float
    high: float
    level: float
    interval: str
    units: int
    undefined: int
    clusters: int
    evidence: Evidence = field(default_factory=Evidence)
    ess: float | None
    reward: str
    clip: float | None
    segment: str | None = None
    directed: bool = True
    assumptions: tuple[str, ...]
    warnings: tuple[Message, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", plain(self.settings))
        object.__setattr__(self, "clip", _limit(self.clip))
        object.__setattr__(self, "ess", None if self.ess is None or math.isnan(self.ess) else self.ess)

    def __repr__(self) -> str:
        values = f"{self.value:.4g} ({self.low:.4g}, {self.high:.4g})"
        return f"Estimate({self.model}, {self.metric}, {self.estimator}: {values})"

    @property
    def name(self) -> str:
        return self.model

    @property
    def warning_texts(self) -> tuple[str, ...]:
        """The sentences of the warnings."""
        return tuple(str(message) for message in self.warnings)


@record(kw_only=True, eq=False)
class Comparison(_Entry):
    """The difference model - baseline, over the `units` and `clusters` that both define.

    `reward` and `clip` say which estimates are compared. `p_adjusted` holds over the `family` comparisons that it was
    adjusted for. The `verdict` is `better` or `worse` where that is shown (`higher` or `lower` of a metric that has no
    better side), `not shown` where it is not, `insufficient` where the evidence carries no verdict, with its `reasons`.
    The intervals of a family cover together with probability `level`; `interval_level` is that of this one alone.
    """

    model: str
    baseline: str
    metric: str
    estimator: str
    difference: float
    stderr: float
    low: float
    high: float
    level: float
    interval_level: float = 0.95
    p: float
    p_adjusted: float = math.nan
    family: int = 1
    units: int
    clusters: int
    evidence: Evidence = field(default_factory=Evidence)
    reward: str
    clip: float | None
    segment: str | None = None
    verdict: str = NOT_SHOWN
    reasons: tuple[Message, ...] = ()

    def __post_init__(self) -> None:
        if self.clip is not None:
            object.__setattr__(self, "clip", _limit(self.clip))

    def __repr__(self) -> str:
        values = f"{self.difference:+.4g} ({self.low:.4g}, {self.high:.4g}), {self.verdict}"
        return f"Comparison({self.model} - {self.baseline}, {self.metric}, {self.estimator}: {values})"

    @property
    def name(self) -> str:
        return f"{self.model} - {self.baseline}"

    @property
    def reason_texts(self) -> tuple[str, ...]:
        """The sentences of the reasons."""
        return tuple(str(message) for message in self.reasons)

    def reverse(self) -> Comparison:
        """The difference baseline - model."""
        return replace(
            self,
            model=self.baseline,
            baseline=self.model,
            difference=-self.difference,
            low=-self.high,
            high=-self.low,
            verdict=OPPOSITE.get(self.verdict, self.verdict),
        )


class PandasTables(NamedTuple):
    """Estimates and comparisons as pandas frames."""

    estimates: Any
    comparisons: Any


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Results:
    """Estimates and comparisons with what was said and what they were made of; shows itself in a terminal and a
    notebook.

    Two results are equal if all they hold is, units included. `segments` asks the same question within groups of units.
    """

    estimates: tuple[Estimate, ...]
    comparisons: tuple[Comparison, ...]
    messages: tuple[Message, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    unit_table: UnitTable | None = None
    segments: Callable[[Any], Mapping[str, Results]] | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences of the messages."""
        return tuple(str(message) for message in self.messages)

    def table(self) -> pl.DataFrame:
        """Models x metrics: a row for each model, a column of values for each metric and estimator."""
        from truerank.report import frames

        return frames.models(self)

    def estimates_table(self) -> pl.DataFrame:
        """All estimates with all their fields, as a polars frame."""
        from truerank.report import frames

        return frames.estimates(self)

    @checked_arguments()
    def summary(self, model: str | None = None, baseline: str | None = None, *, metric: str | None = None) -> str:
        """The verdict in a sentence; of two models by one metric (by default the first) with estimand and values."""
        if model is None or baseline is None:
            from truerank.report.questions import questions_of, ranked_models, verdict

            questions = questions_of(self)
            return verdict(questions, ranked_models(questions))
        from truerank.report.details import sentence

        return sentence(self, model, baseline, metric=metric)

    def details(self) -> str:
        """All estimates, differences, assumptions and messages as text, the answer first."""
        from truerank.report import summary, text

        return text.render(summary.summarize(self), verbose=True)

    def markdown(self) -> str:
        """A table of all models for a README or an issue: the best in bold, what is shown marked, estimands below."""
        from truerank.report import markup, summary

        return markup.markdown(summary.summarize(self))

    def latex(self) -> str:
        """The same for a paper, with booktabs."""
        from truerank.report import markup, summary

        return markup.latex(summary.summarize(self))

    def comparisons_table(self) -> pl.DataFrame:
        """The comparisons as a polars frame."""
        from truerank.report import frames

        return frames.comparisons(self)

    def clips(self) -> pl.DataFrame:
        """The bias-variance curve over clips as a polars frame: how far each value is from that of the largest clip."""
        from truerank.report import frames

        return frames.clips(self)

    def to_pandas(self) -> PandasTables:
        """Estimates and comparisons as two pandas frames."""
        return PandasTables(as_pandas(self.estimates_table()), as_pandas(self.comparisons_table()))

    @property
    def plot(self) -> Plots:
        """Pictures: `results.plot.intervals()` and others, which show and save themselves."""
        from truerank.report.plots import Plots

        return Plots(self)

    @checked_arguments()
    def html(self, path: str | Path, *, within: Any = None) -> None:
        """Write a report: one file that opens offline, the answer at its top.

        `within` are groups of units as `by` takes them; without, units are divided by their activity where that is
        possible.
        """
        from truerank.report.results_page import write

        write(self, Path(path), groups=None if within is None else self.by(within))

    @overload
    def units(self, *, engine: None = None) -> pl.DataFrame: ...
    @overload
    def units(self, *, engine: Any) -> Any: ...
    @checked_arguments()
    def units(self, *, engine: Any = None) -> Any:
        """What every unit contributed, one row per unit, model, metric, estimator, reward and clip.

        A polars frame; with a `SparkSession` as `engine` a Spark DataFrame, with a Dask `Client` a Dask one.
        """
        if self.unit_table is None:
            raise InputError(
                "these results do not hold single units: too many to keep, or read from a JSON file alone. Ask with "
                "units=True, or read the folder that Results.save has written."
            )
        frame = self.unit_table.frame()
        if engine is None:
            return frame
        from truerank.engines.named import frame_of

        return frame_of(engine, frame)

    def by(self, segment: Any) -> Mapping[str, Results]:
        """The same question within groups of units, by the name of the group."""
        if self.segments is None:
            raise InputError(
                "these results cannot be divided into groups: they do not hold the terms of single units. Ask again "
                "with units=True, and divide the results before they are saved."
            )
        return self.segments(segment)

    @checked_arguments()
    def compare(self, model: str, baseline: str) -> tuple[Comparison, ...]:
        """All comparisons of two models, as model - baseline."""
        pair = {model, baseline}
        of_pair = [comparison for comparison in self.comparisons if {comparison.model, comparison.baseline} == pair]
        if not of_pair:
            models = dict.fromkeys(estimate.model for estimate in self.estimates)
            raise InputError(
                f"no comparison of {model!r} with {baseline!r} in these results, which are of {some(list(models))}."
            )
        return tuple(comparison if comparison.model == model else comparison.reverse() for comparison in of_pair)

    @checked_arguments()
    def require(self, rule: str) -> tuple[int, str]:
        """Whether "als > pop: Recall@50, pooled" is met: 0 shown, 4 insufficient, 5 not shown; with a sentence."""
        from truerank.core.requirements import Requirement

        outcome, sentence = Requirement.parse(rule).outcome(self)
        return int(outcome), sentence

    def json(self) -> bytes:
        """The results as one JSON object; undefined numbers are null."""
        from truerank.report import document

        return document.encode(self)

    @checked_arguments()
    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a folder with `results.json` and, where units are held, `units.parquet`: whole or not at all.

        The folder is new or empty; `force` replaces one that holds earlier results and nothing else.
        """
        from truerank.report import document

        document.save(self, Path(path), force=force)

    @staticmethod
    @checked_arguments()
    def read(path: str | Path) -> Results:
        """The results of a saved folder, or of a JSON file, which has no units."""
        from truerank.report import document

        return document.read(Path(path))

    def __eq__(self, results: object) -> bool:
        if not isinstance(results, Results):
            return NotImplemented
        names = ("estimates", "comparisons", "messages", "provenance")
        first, second = self.unit_table, results.unit_table
        same_units = first is second or (not (first is None or second is None) and first.frame().equals(second.frame()))
        return same_units and all(getattr(self, name) == getattr(results, name) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        from truerank.report import summary, text

        return text.render(summary.summarize(self)).rstrip("\n")

    def _repr_html_(self) -> str:
        from truerank.report import markup

        return markup.notebook(self)


def _limit(clip: float | None) -> float | None:
    """No clip is None, however it was written."""
    return None if clip is None or math.isinf(clip) else float(clip)
