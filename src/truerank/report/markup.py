"""Results as a table for a paper or a README: models in rows, what is asked in columns, the best in bold."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from truerank.core.printable import printable
from truerank.core.results import SHOWN_ABOVE, SHOWN_BELOW, Estimate, Results
from truerank.report.text import clip_text, number

HIGHER, LOWER, BEST = "↑", "↓", "*"


@dataclass(frozen=True, slots=True)
class _Column:
    """One question: its title, what its values estimate, and the estimate of each model."""

    title: str
    estimand: str
    of: Mapping[str, Estimate]

    @property
    def directed(self) -> bool:
        return all(each.directed for each in self.of.values())

    @property
    def best(self) -> float:
        """The largest value, NaN where a larger one is not better."""
        if not self.directed:
            return math.nan
        return max((each.value for each in self.of.values() if not math.isnan(each.value)), default=math.nan)


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
    form = _Form(_for_markdown, lambda text: f"**{text}**", lambda text: f" {text}")
    head, *rows = _cells(results, form)
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{table}\n\n{_for_markdown(_caption(results))}\n"


def latex(results: Results) -> str:
    """A LaTeX table (booktabs) with its caption, marked as `markdown` does it."""
    form = _Form(_for_latex, lambda text: rf"\textbf{{{text}}}", lambda text: f"$^{{{LATEX_MARKS[text]}}}$")
    head, *rows = (" & ".join(cells) + r" \\" for cells in _cells(results, form))
    columns = len(_columns(results))
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{_for_latex(_caption(results))}}}",
        rf"  \begin{{tabular}}{{l{'r' * columns}}}",
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
    def question(each: Estimate) -> tuple[str, str, str, str, str, str]:
        clip = "" if each.clip is None else clip_text(each.clip)
        return each.metric, each.estimator, each.estimand, each.reward, clip, each.segment or ""

    several = len({each.estimator for each in results.estimates}) > 1
    columns: dict[tuple[str, ...], dict[str, Estimate]] = {}
    for asked, run in groupby(results.estimates, key=question):
        columns.setdefault(asked, {}).update({each.model: each for each in run})
    found = []
    for (metric, estimator, estimand, _, clip, segment), of in columns.items():
        parts = [
            metric,
            *([estimator] if several else []),
            *([f"clip {clip}"] if clip else []),
            *([segment] if segment else []),
        ]
        found.append(_Column(", ".join(parts), estimand, of))
    return found


def _cells(results: Results, form: _Form) -> list[list[str]]:
    columns = _columns(results)
    models = list(dict.fromkeys(each.model for each in results.estimates))
    marks = _marks(results, columns)
    rows = [["model", *(form.escape(column.title) for column in columns)]]
    for model in models:
        cells = [form.escape(model)]
        for at, column in enumerate(columns):
            estimate = column.of.get(model)
            if estimate is None:
                cells.append("")
                continue
            text = number(estimate.value)
            shown = form.bold(text) if estimate.value == column.best and len(column.of) > 1 else text
            cells.append(shown + "".join(form.raised(mark) for mark in marks.get((at, model), "")))
        rows.append(cells)
    return rows


def _marks(results: Results, columns: Sequence[_Column]) -> dict[tuple[int, str], str]:
    """What is shown of each value: against the baseline, or of the best one against all others."""
    baseline = results.provenance.settings.get("baseline")
    found: dict[tuple[int, str], str] = {}
    for at, column in enumerate(columns):
        any_estimate = next(iter(column.of.values()))
        mine = [each for each in results.comparisons if _asks_the_same(each, any_estimate)]
        if baseline is not None:
            signs = {**dict.fromkeys(SHOWN_ABOVE, HIGHER), **dict.fromkeys(SHOWN_BELOW, LOWER)}
            found |= {(at, each.model): signs[each.verdict] for each in mine if each.verdict in signs}
            continue
        for model, estimate in column.of.items():
            beaten = {each.baseline for each in mine if each.model == model and each.verdict in SHOWN_ABOVE}
            beaten |= {each.model for each in mine if each.baseline == model and each.verdict in SHOWN_BELOW}
            if estimate.value == column.best and len(column.of) > 1 and beaten == {*column.of} - {model}:
                found[at, model] = BEST
    return found


def _asks_the_same(comparison: object, estimate: Estimate) -> bool:
    keys = ("metric", "estimator", "reward", "clip", "segment")
    return all(getattr(comparison, key) == getattr(estimate, key) for key in keys)


def _caption(results: Results) -> str:
    """What the values estimate, over whom, and what the marks mean."""
    columns = _columns(results)
    estimands = "; ".join(f"{column.title}: {column.estimand}" for column in columns)
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


def _for_markdown(text: str) -> str:
    """
    >>> _for_markdown("a|b_c<d>")
    'a\\\\|b\\\\_c&lt;d&gt;'
    """
    plain = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]|~])", r"\\\1", plain)


_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "↑": r"$\uparrow$",
    "↓": r"$\downarrow$", "≤": r"$\leq$", "Σ": r"$\Sigma$",
} | {sign: f"\\{sign}" for sign in "&%$#_{}"}  # fmt: skip


def _for_latex(text: str) -> str:
    """
    >>> _for_latex("50% of a_b")
    '50\\\\% of a\\\\_b'
    """
    return "".join(_LATEX.get(sign, sign) for sign in printable(text))
