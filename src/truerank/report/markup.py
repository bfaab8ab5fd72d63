"""Results as a table for a paper or a README: models in rows, what is asked in columns, the best in bold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truerank.core.escaping import latex_text, markdown_text
from truerank.core.results import SHOWN_ABOVE, SHOWN_BELOW, Comparison, Estimate, Results
from truerank.report.numbers import clip_text, number

HIGHER, LOWER, BEST = "↑", "↓", "*"


Row = tuple[str, float | None]  # a model and its clip


@dataclass(frozen=True, slots=True)
class _Column:
    """One question: its title, what its values estimate, and the estimate of each model at each clip."""

    title: str
    estimand: str
    of: Mapping[Row, Estimate]

    @property
    def directed(self) -> bool:
        return all(each.directed for each in self.of.values())

    def peers(self, clip: float | None) -> dict[str, Estimate]:
        """The estimates that compete, by model."""
        return {model: each for (model, at), each in self.of.items() if at == clip}

    def is_best(self, estimate: Estimate) -> bool:
        """Whether no other model has a higher value, and some a lower one; no one where a higher one is not better."""
        values = [each.value for each in self.peers(estimate.clip).values() if not math.isnan(each.value)]
        return self.directed and bool(values) and estimate.value == max(values) > min(values)


@dataclass(frozen=True, slots=True)
class _Form:
    """How a language writes a table."""

    escape: Callable[[str], str]
    bold: Callable[[str], str]
    raised: Callable[[str], str]


def markdown(results: Results) -> str:
    """A Markdown table with its caption below.

    The best value of each column is bold. With a baseline ↑ and ↓ mark models that are shown to be better or worse
    than it; without one * marks a best model that is shown to be better than every other.
    """
    form = _Form(markdown_text, lambda text: f"**{text}**", lambda text: f" {text}")
    head, *rows = _cells(results, form)
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{table}\n\n{markdown_text(_caption(results))}\n"


def latex(results: Results) -> str:
    """A LaTeX table (booktabs) with its caption, marked as `markdown` does it."""
    form = _Form(latex_text, lambda text: rf"\textbf{{{text}}}", lambda text: f"$^{{{LATEX_MARKS[text]}}}$")
    cells = _cells(results, form)
    head, *rows = (" & ".join(line) + r" \\" for line in cells)
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{latex_text(_caption(results))}}}",
        rf"  \begin{{tabular}}{{l{'r' * (len(cells[0]) - 1)}}}",
        r"    \toprule",
        f"    {head}",
        r"    \midrule",
        *(f"    {row}" for row in rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


LATEX_MARKS = {HIGHER: r"\uparrow", LOWER: r"\downarrow", BEST: "*"}


def _columns(results: Results) -> list[_Column]:
    """A column for each metric, estimator, reward and segment, named by what differs among them."""

    columns: dict[tuple[str, ...], dict[Row, Estimate]] = {}
    for each in results.estimates:
        asked = (each.metric, each.estimator, each.reward, each.segment or "", each.estimand)
        columns.setdefault(asked, {})[each.model, each.clip] = each
    several = [len({asked[at] for asked in columns}) > 1 for at in (1, 2)]
    found = []
    for (metric, estimator, reward, segment, estimand), of in columns.items():
        named = [name for name, differs in zip((estimator, reward), several, strict=True) if differs]
        found.append(_Column(", ".join([metric, *named, *([segment] if segment else [])]), estimand, of))
    return found


def _cells(results: Results, form: _Form) -> list[list[str]]:
    columns = _columns(results)
    rows = dict.fromkeys((each.model, each.clip) for each in results.estimates)
    clips = any(clip is not None for _, clip in rows)
    marks = _marks(results, columns)
    lines = [["model", *(["clip"] if clips else []), *(form.escape(column.title) for column in columns)]]
    for model, clip in rows:
        cells = [form.escape(model), *([clip_text(clip)] if clips else [])]
        for at, column in enumerate(columns):
            estimate = column.of.get((model, clip))
            if estimate is None:
                cells.append("")
                continue
            text = number(estimate.value)
            shown = form.bold(text) if column.is_best(estimate) else text
            cells.append(shown + "".join(form.raised(mark) for mark in marks.get((at, (model, clip)), "")))
        lines.append(cells)
    return lines


def _marks(results: Results, columns: Sequence[_Column]) -> dict[tuple[int, Row], str]:
    """What is shown of each value: against the baseline, or of the best one against all others."""
    baseline = results.provenance.settings.get("baseline")
    beaten: dict[tuple[Any, str], set[str]] = {}
    for each in results.comparisons:
        if each.verdict in (*SHOWN_ABOVE, *SHOWN_BELOW):
            above = each.verdict in SHOWN_ABOVE
            winner, other = (each.model, each.baseline) if above else (each.baseline, each.model)
            beaten.setdefault((_question(each), winner), set()).add(other)
    found: dict[tuple[int, Row], str] = {}
    for at, column in enumerate(columns):
        for row, estimate in column.of.items():
            asked, others = _question(estimate), {*column.peers(row[1])} - {row[0]}
            wins = beaten.get((asked, row[0]), set())
            if baseline is not None:
                loses = row[0] in beaten.get((asked, baseline), ())
                found |= {(at, row): HIGHER} if baseline in wins else {(at, row): LOWER} if loses else {}
            elif wins == others and column.is_best(estimate):
                found[at, row] = BEST
    return found


def _question(each: Estimate | Comparison) -> tuple[Any, ...]:
    return each.metric, each.estimator, each.reward, each.clip, each.segment


def _caption(results: Results) -> str:
    """What the values estimate, over whom, and what the marks mean."""
    titles: dict[str, list[str]] = {}
    columns = _columns(results)
    for column in columns:
        titles.setdefault(column.estimand, []).append(column.title)
    estimands = "; ".join(f"{' and '.join(dict.fromkeys(of))}: {estimand}" for estimand, of in titles.items())
    baseline = results.provenance.settings.get("baseline")
    units = max((each.units for each in results.estimates), default=0)
    level = results.provenance.settings.get("level", 0.95)
    bare = [column.title for column in columns if not column.directed]
    sides = f" ({HIGHER} higher and {LOWER} lower in {', '.join(bare)})" if baseline is not None else ""
    none = f"; of {', '.join(bare)} no side is better" if bare else ""
    marks = (
        f"{HIGHER} better and {LOWER} worse than {baseline}{sides if bare else ''}"
        if baseline is not None
        else f"{BEST} better than every other model"
    )
    adjusted = f"shown at the {1 - float(level):.0%} level with paired tests, adjusted for the number of comparisons"
    return f"{estimands}. Up to {units:,} {results.provenance.unit}s. Best in bold{none}; {marks}, {adjusted}."
