"""The four figures of a finished reliability study: panels of logging policies and sparsities, a line a sampler."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from truerank.core.errors import InputError
from truerank.core.record import record
from truerank.io.atomic_write import FolderKind, check_folder, check_place, whole_file, whole_folder
from truerank.io.files import read_table
from truerank.reliability.studied import EXPECTED, FORMAT, KIND, NOTE, RESULTS
from truerank.report.charts import (
    COLOURS,
    CONFIG,
    SHAPES,
    PictureFormat,
    PlotPanel,
    Rows,
    alt,
    altair,
    chart_of,
    lines_of,
    picture,
    tooltips,
)

SCENARIO = ("logger", "sparsity", "sampler", "size")
PREFERRED = "nDCG@100"  # the metric of the published figures
WHO = "drawing figures"
MOST_COLUMNS = 8  # as in the published figures
WIDTH, LEAST_PANEL, WIDEST_PANEL, SPACING = 1000, 118, 380, 8
# samplers without sizes are grey lines; dashes say the same where there is no colour
GREYS, DASHES = ("#555555", "#757575", "#8c8c8c"), ((7, 3), (2, 2), (8, 2, 2, 2))


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


@record
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


FOLDER = FolderKind("set of figures", tuple(f"{question.value}.*" for question in StudyQuestion))
TITLES = {
    StudyQuestion.RESOLUTION: "Resolution (Q1): how often do two models tie?",
    StudyQuestion.FIDELITY: "Fidelity (Q2): are models ordered as with all items of the same log?",
    StudyQuestion.ROBUSTNESS: "Robustness (Q3): does the same sampler order models alike when nothing is hidden?",
    StudyQuestion.PREDICTIVE_POWER: "Predictive power (Q4): are models ordered as in truth?",
}
REFERENCES = {
    StudyQuestion.FIDELITY: "that of Full on the same log",
    StudyQuestion.ROBUSTNESS: "that of the same sampler with nothing hidden",
    StudyQuestion.PREDICTIVE_POWER: "that of Full with nothing hidden, the truth",
}


def figures(
    study: Finished, *, metric: str, tau: Tau = Tau.LEFT_OUT, every: Finished | None = None
) -> dict[StudyQuestion, PlotPanel]:
    """The figure of each question; styles are those of the whole study (`every`), whatever part is drawn."""
    sized = (every or study).results.group_by("sampler", maintain_order=True).agg(pl.col("size").is_not_null().any())
    styles = _styles(dict(sized.rows()))
    shown = {name: styles[name] for name in study.names("sampler")}
    return {question: _figure(study, question, shown, metric=metric, tau=tau) for question in StudyQuestion}


def _styles(sized: Mapping[str, bool]) -> dict[str, tuple[str, str, Sequence[int]]]:
    """Colour, shape and dash of each sampler (has it sizes?).

    >>> styles = _styles({"Full": False, "Random": True})
    >>> styles["Random"], styles["Full"][2]
    (('#0072B2', 'circle', (1, 0)), (7, 3))
    """
    styles: dict[str, tuple[str, str, Sequence[int]]] = {}
    for has_sizes in (True, False):
        for n, name in enumerate(name for name, sizes in sized.items() if sizes is has_sizes):
            turn = n + n // 6
            mark = (COLOURS[n % 6], SHAPES[turn % 6], (1, 0))
            styles[name] = mark if has_sizes else (GREYS[n % 3], "circle", DASHES[(n + n // 3) % 3])
    return styles


def _figure(
    study: Finished,
    question: StudyQuestion,
    styles: Mapping[str, tuple[str, str, Sequence[int]]],
    *,
    metric: str,
    tau: Tau,
) -> PlotPanel:
    frame = tidy(study.results, question, metric=metric, tau=tau)
    rows: Rows = [{**row, "panel": f"{row['logger']}, {100 * row['sparsity']:g} % hidden"} for row in frame.to_dicts()]
    scales = {kind: alt.Scale(domain=list(styles), range=list(values)) for kind, values in zip(
        ("color", "shape", "strokeDash"), zip(*styles.values(), strict=True), strict=True)}  # fmt: skip
    colour, shape = alt.Color("sampler:N", scale=scales["color"]), alt.Shape("sampler:N", scale=scales["shape"])
    dash = alt.StrokeDash("sampler:N", scale=scales["strokeDash"])
    chosen = alt.selection_point(name="chosen", fields=["sampler"], bind="legend")
    x, axis = _size_axis(frame["size"].drop_nulls().to_list()), _value_axis(frame, question, tau)
    tips = tooltips("panel:N", "sampler:N", "size:Q", "value:Q", "low:Q", "high:Q")

    def layer(mark: str, *, sized: bool, opacity: float, **style: Any) -> Any:
        base = getattr(alt.Chart(), f"mark_{mark}")(**style).transform_filter(
            f"datum.size {'!=' if sized else '=='} null"
        )
        return base.encode(color=colour, opacity=alt.condition(chosen, alt.value(opacity), alt.value(0)))

    points = layer("point", sized=True, opacity=1, size=20, filled=True)
    layers = [
        layer("rect", sized=False, opacity=0.12).encode(y=axis("low"), y2="high:Q"),
        layer("area", sized=True, opacity=0.16).encode(x=x, y=axis("low"), y2="high:Q"),
        layer("rule", sized=False, opacity=1, strokeWidth=1.4).encode(y=axis("value"), strokeDash=dash, tooltip=tips),
        layer("line", sized=True, opacity=1, strokeWidth=1.3).encode(x=x, y=axis("value")),
        points.encode(x=x, y=axis("value"), shape=shape, tooltip=tips).add_params(chosen),
    ]
    columns = min(MOST_COLUMNS, len(study.names("sparsity")))
    width = min(WIDEST_PANEL, max(LEAST_PANEL, (WIDTH + SPACING) // columns - SPACING))
    titles = list(dict.fromkeys(row["panel"] for row in rows))
    breaks = alt.Header(title=None, labelExpr="split(datum.label, ', ')")
    chart = alt.layer(*layers, width=width, height=min(240, max(130, width * 2 // 3))).facet(
        alt.Facet("panel:N", sort=titles, header=breaks), columns=columns, spacing=SPACING, data=chart_of(rows).data
    )
    return PlotPanel(TITLES[question], _words(study, frame, question, metric=metric, tau=tau), chart)


def _size_axis(sizes: Sequence[int]) -> Any:
    """A log axis of sizes, with powers of ten or, where there are too few, all sizes."""
    tens = [n for n in dict.fromkeys(sizes) if 10 ** round(math.log10(n)) == n]
    ticks = tens if len(tens) > 1 else sorted(set(sizes))
    axis = alt.Axis(values=ticks, format="d", grid=False)
    return alt.X("size:Q", title="sampled negatives", scale=alt.Scale(type="log", nice=False, padding=7), axis=axis)


def _value_axis(frame: pl.DataFrame, question: StudyQuestion, tau: Tau) -> Any:
    """The axis of shares, logarithmic down to the smallest and with 0 below it; or of tau, up to 1."""
    if question is not StudyQuestion.RESOLUTION:
        title = ["Kendall's τ-b", "of models' means"] if tau is Tau.OF_MEANS else ["Kendall's τ-b,", "mean over users"]
        least = min([0.0, *frame["value"].drop_nulls(), *frame["low"].drop_nulls()])
        scale = alt.Scale(domain=[math.floor(least * 5 + 1e-9) / 5, 1.0], nice=False)
        return lambda field: alt.Y(f"{field}:Q", title=title, scale=scale)
    positive = [value for name in ("value", "low") for value in frame[name].drop_nulls() if value > 0]
    least = min(positive, default=0.1)
    ticks = [0.0, *(10.0**power for power in range(math.floor(math.log10(least)), 1))]
    scale = alt.Scale(type="symlog", constant=least, domain=[0.0, 1.0])
    axis = alt.Axis(values=ticks, format="~r")
    return lambda field: alt.Y(f"{field}:Q", title=["share of pairs of", "models that tie"], scale=scale, axis=axis)


def _words(study: Finished, frame: pl.DataFrame, question: StudyQuestion, *, metric: str, tau: Tau) -> str:
    """What is drawn, of how many, how certain it is, and what is undefined."""
    counts, n = frame["users"].to_list(), max(frame["repetitions"])
    users = f"{' to '.join(f'{count:,}' for count in dict.fromkeys((min(counts), max(counts))))} users"
    times, models = f"{n:,} repetitions" if n > 1 else "one repetition", f"{study.n_models} models"
    undefined, means = frame["value"].null_count(), tau is Tau.OF_MEANS
    if question is StudyQuestion.RESOLUTION:
        texts = [f"Share of the pairs of {models} with exactly equal {metric}: mean over {users}, {times} (log axis)."]
    else:
        value = f"mean {metric} ({users})" if means else f"a user's {metric}"
        over = times if means else f"{users}, {times}"
        texts = [f"Agreement of the order of {models} by {value} with {REFERENCES[question]}: mean tau-b over {over}."]
        share = max(frame["undefined"].fill_nan(0.0))
        if not means and share > 0:
            how = "count as 0" if tau is Tau.ZERO else "are excluded"
            texts.append(
                f"Users whose models all tie have no tau-b; they {how} (at most {100 * share:.2g} % of users)."
            )
    if frame["low"].null_count() < len(frame):
        texts.append(f"Bands: {100 * study.level:g} % intervals, {study.resamples:,} resamples.")
    if frame["size"].null_count():
        texts.append("Dashed lines: samplers without size.")
    if undefined:
        texts.append(f"{undefined:,} of {len(frame):,} values are not defined and break the line.")
    return " ".join(texts)


def draw(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    form: PictureFormat = PictureFormat.SVG,
    force: bool = False,
    metric: str | None = None,
    tau: Tau = Tau.LEFT_OUT,
    loggers: Sequence[str] | None = None,
    sparsities: Sequence[float] | None = None,
    samplers: Sequence[str] | None = None,
) -> dict[StudyQuestion, Path]:
    """Write the four figures of a finished study into `out` (`figures` in its folder) and return where they are.

    Nothing is written unless all four could be drawn, into a new folder; `force` replaces that of other figures. The
    same study gives the same bytes (SVG, PNG).
    """
    altair(WHO)
    every = Finished.read(Path(folder))
    part = every.only("logger", loggers).only("sparsity", sparsities).only("sampler", samplers)
    panels = figures(part, metric=every.metric(metric), tau=Tau(tau), every=every)
    place = Path(folder) / "figures" if out is None else Path(out)
    check_place(place, kind=FOLDER, force=force, inputs=[Path(folder)])
    names = {question: f"{question.value}.{PictureFormat(form).value}" for question in panels}
    pictures = {names[question]: picture(_titled(panel), form, who=WHO) for question, panel in panels.items()}
    with whole_folder(place, kind=FOLDER, force=force) as new:
        for name, content in pictures.items():
            with whole_file(new / name) as temporary:
                temporary.write_bytes(content)
    return {question: place / name for question, name in names.items()}


def _titled(panel: PlotPanel) -> Any:
    """A figure that stands alone: its title and what it shows above it."""
    title = alt.Title(panel.title, subtitle=lines_of(panel.sentence, WIDTH))
    return panel.chart.properties(title=title, config=alt.Config(**CONFIG, background="white", padding=12))
