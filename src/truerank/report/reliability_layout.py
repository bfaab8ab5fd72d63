"""A figure of a reliability study before it is drawn: its marks, panels, styles of samplers and words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import polars as pl

from truerank.report.charts import COLOURS, SHAPES, wrapped
from truerank.report.reliability_frames import Axis, Finished, StudyQuestion, Tau, placed, tau_axis, tidy, tie_axis

# samplers without size are black and grey; dashes say the same where there is no colour
GREYS = ("#000000", "#555555", "#8c8c8c")
DASHES = ((7, 3), (2, 2), (8, 2, 2, 2))
SIZED = ("Random", "Popularity", "Positivity", "WTD", "WTDH", "Skew")
SIZELESS = ("Full", "Exposed", "Random@e")

MOST_COLUMNS = 8  # as in the published figures; more sparsities go on in the next line
WIDTH, LEAST_PANEL, WIDEST_PANEL = 1000, 118, 380
SPACING = 8
TITLE_FONT = 16


@dataclass(frozen=True, slots=True)
class Style:
    """How a sampler is drawn in every figure; a dash where it has no size."""

    colour: str
    shape: str = "circle"
    dash: tuple[int, ...] = ()


def styles(sized: Mapping[str, bool]) -> dict[str, Style]:
    """A style for each sampler (has it sizes?): the paper's samplers always have the same, others what is left.

    >>> found = styles({"Full": False, "Skew": True, "Skew(favours=popular)": True})
    >>> found["Skew"].colour, found["Skew(favours=popular)"].colour, found["Full"].dash
    ('#CC79A7', '#0072B2', (7, 3))
    """
    marks = [Style(COLOURS[at], SHAPES[(at + turn) % 6]) for turn in range(6) for at in range(6)]
    rules = [Style(GREYS[(at + turn) % 3], dash=DASHES[at]) for turn in range(3) for at in range(3)]
    found: dict[str, Style] = {}
    for names, ways, size in ((SIZED, marks, True), (SIZELESS, rules, False)):
        known = {name: way for name, way in zip(names, ways, strict=False) if sized.get(name) is size}
        free = [way for way in ways if way not in known.values()]
        others = [name for name in sized if sized[name] is size and name not in known]
        found |= known | {name: free[at % len(free)] for at, name in enumerate(others)}
    return {name: found[name] for name in sized}


@dataclass(frozen=True, slots=True)
class Panel:
    """What one logger shows at one sparsity."""

    logger: str
    sparsity: float

    @property
    def title(self) -> str:
        """
        >>> Panel("popularity", 0.9).title
        'popularity, 90 % hidden'
        """
        return f"{self.logger}, {self.hidden}"

    @property
    def hidden(self) -> str:
        return f"{100 * self.sparsity:g} % hidden"


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """Panels in lines, and how large each is; a logger begins a new line."""

    lines: tuple[tuple[Panel, ...], ...]
    panel_width: int
    panel_height: int

    @classmethod
    def of(cls, loggers: Sequence[str], sparsities: Sequence[float]) -> PanelLayout:
        """
        >>> [len(line) for line in PanelLayout.of(["uniform"], [at / 12 for at in range(12)]).lines]
        [6, 6]
        >>> PanelLayout.of(["uniform"], [0.0]).width
        380
        """
        n = len(sparsities)
        columns = math.ceil(n / math.ceil(n / MOST_COLUMNS))
        lines = tuple(
            tuple(Panel(logger, each) for each in sparsities[at : at + columns])
            for logger, at in product(loggers, range(0, n, columns))
        )
        width = min(WIDEST_PANEL, max(LEAST_PANEL, (WIDTH + SPACING) // columns - SPACING))
        return cls(lines, width, min(240, max(130, width * 2 // 3)))

    @property
    def width(self) -> int:
        columns = max(map(len, self.lines))
        return columns * (self.panel_width + SPACING) - SPACING

    def heading(self, panel: Panel) -> list[str]:
        """The lines of a panel's title; all are broken where one is too long.

        >>> layout = PanelLayout.of(["popularity"], [0.1 * at for at in range(8)])
        >>> layout.heading(layout.lines[0][0])
        ['popularity,', '0 % hidden']
        """
        if all(len(wrapped(each.title, self.panel_width)) == 1 for line in self.lines for each in line):
            return [panel.title]
        return [*wrapped(f"{panel.logger},", self.panel_width), panel.hidden]

    def is_open_below(self, line: int) -> bool:
        """Whether a panel of the line has none right below it: then its horizontal axis has numbers."""
        return line + 1 >= len(self.lines) or len(self.lines[line]) > len(self.lines[line + 1])


@dataclass(frozen=True, slots=True)
class Figure:
    """One question in all panels: all that is drawn, and nothing about how."""

    question: StudyQuestion
    metric: str
    marks: pl.DataFrame
    axis: Axis
    sizes: tuple[int, ...]
    layout: PanelLayout
    styles: Mapping[str, Style]  # of the samplers that are shown
    title: tuple[str, ...]
    subtitle: tuple[str, ...]
    vertical: tuple[str, ...]  # title of the axis

    @property
    def size_ticks(self) -> tuple[int, ...]:
        """Powers of ten, or, where there are too few, the sizes themselves or the first and the last."""
        tens = tuple(n for n in self.sizes if 10 ** round(math.log10(n)) == n)
        if len(tens) > 1 or not self.sizes:
            return tens
        return self.sizes if len(self.sizes) <= 4 else (self.sizes[0], self.sizes[-1])


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
VERTICAL = {
    Tau.LEFT_OUT: ("Kendall's τ-b,", "mean over users"),
    Tau.ZERO: ("Kendall's τ-b,", "mean over users"),
    Tau.OF_MEANS: ("Kendall's τ-b", "of models' means"),
}


def figure(
    study: Finished, question: StudyQuestion, *, metric: str, tau: Tau = Tau.LEFT_OUT, every: Finished | None = None
) -> Figure:
    """The figure of one question; `every` is the whole study, so that styles do not depend on the part shown."""
    frame = tidy(study.results, question, metric=metric, tau=tau)
    axis = tie_axis(frame) if question is StudyQuestion.RESOLUTION else tau_axis(frame)
    marks = placed(frame, axis)
    layout = PanelLayout.of(study.names("logger"), study.names("sparsity"))
    rows = (every or study).results.group_by("sampler", maintain_order=True)
    style = styles(dict(rows.agg(pl.col("size").is_not_null().any()).rows()))
    words = _words(study, question, marks, axis, metric=metric, tau=tau)
    return Figure(
        question,
        metric,
        marks,
        axis,
        tuple(sorted(marks["size"].drop_nulls().unique().to_list())),
        layout,
        {name: style[name] for name in study.names("sampler")},
        tuple(wrapped(TITLES[question], layout.width, font=TITLE_FONT)),
        tuple(line for text in words for line in wrapped(text, layout.width)),
        ("share of pairs of", "models that tie") if question is StudyQuestion.RESOLUTION else VERTICAL[tau],
    )


def _words(
    study: Finished, question: StudyQuestion, marks: pl.DataFrame, axis: Axis, *, metric: str, tau: Tau
) -> list[str]:
    """What is shown, of whom, how sure it is, and what the marks at the bottom mean."""
    users = sorted(set(marks["users"].to_list()))
    of = f"{' to '.join(f'{n:,}' for n in dict.fromkeys((users[0], users[-1])))} users"
    repetitions: int = max(marks["repetitions"].to_list())
    times = f"{repetitions:,} repetitions" if repetitions > 1 else "one repetition"
    models = f"{study.n_models} models"
    if question is StudyQuestion.RESOLUTION:
        shown = f"Share of the pairs of {models} with exactly equal {metric}: mean over {of}, {times} (log axis)."
    elif tau is Tau.OF_MEANS:
        shown = (
            f"Agreement of the order of {models} by mean {metric} ({of}) with {REFERENCES[question]}: Kendall's τ-b, "
        )
        shown += f"mean over {times}."
    else:
        shown = f"Agreement of the order of {models} by a user's {metric} with {REFERENCES[question]}: Kendall's τ-b, "
        shown += f"mean over {of}, {times}."
    return [
        shown,
        *_undefined(question, marks, tau),
        _certainty(study, marks, repetitions),
        *_bottom(question, marks, axis),
    ]


def _undefined(question: StudyQuestion, marks: pl.DataFrame, tau: Tau) -> list[str]:
    """How users without τ are counted, and how many there are."""
    most = max(marks["undefined"].fill_nan(0.0).to_list())
    if question is StudyQuestion.RESOLUTION or tau is Tau.OF_MEANS or not most > 0:
        return []
    how = "count as 0" if tau is Tau.ZERO else "are left out"
    return [f"Users whose models all tie have no τ-b; they {how} (at most {100 * most:.2g} % of users in a scenario)."]


def _certainty(study: Finished, marks: pl.DataFrame, repetitions: int) -> str:
    drawn = "users and repetitions" if repetitions > 1 else "users"
    bands = f"Bands: {100 * study.level:g} % intervals, {study.resamples:,} resamples of {drawn}."
    none = marks["bottom"].is_null().all()
    dashed = " Dashed lines: samplers without size." if marks["size"].is_null().any() else ""
    return ("No intervals." if none else bands) + dashed


def _bottom(question: StudyQuestion, marks: pl.DataFrame, axis: Axis) -> list[str]:
    """The rules for what has no place on the axis, where they are needed."""
    zeros, undefined = (int((marks["state"] == state).sum()) for state in ("zero", "undefined"))
    found = []
    if axis.zero is not None:
        found.append(f"The lowest line of the axis is 0: {zeros:,} of {len(marks):,} tie rates are 0.")
    if undefined:
        why = "" if question is StudyQuestion.RESOLUTION else ": all models tie"
        found.append(f"× at the bottom: {undefined:,} of {len(marks):,} values are not defined{why}.")
    return [" ".join(found)] if found else []
