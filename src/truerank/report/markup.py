"""Summaries as Markdown, LaTeX and HTML: the same table, with the best in bold and marks raised."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence

from truerank.core.escaping import latex_text, markdown_text, printable
from truerank.core.results import Results
from truerank.report.details import Cell, Detail, ResultTable
from truerank.report.plots import notebook_picture
from truerank.report.summary import ResultSummary, summarize


def markdown(results: Results) -> str:
    """A Markdown table with its caption below: the verdict, what marks mean, what the values estimate."""
    summary = summarize(results)
    lines = []
    if summary.table is not None:
        head, *rows = _written(summary.table, markdown_text, "**{}**".format, "<sup>{}</sup>".format)
        names, numbers = summary.table.names, len(head) - summary.table.names
        lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * names + ["---:"] * numbers, *rows)]
    return "\n".join([*lines, "", markdown_text(_caption(summary)), ""])


def latex(results: Results) -> str:
    """A LaTeX table (booktabs) with its caption, marked as `markdown` does it."""
    summary = summarize(results)
    table = summary.table or ResultTable((), ())
    head, *rows = (
        rf"    {' & '.join(cells)} \\"
        for cells in _written(table, latex_text, r"\textbf{{{}}}".format, "$^{{{}}}$".format)
    )
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{latex_text(_caption(summary))}}}",
        rf"  \begin{{tabular}}{{{'l' * table.names}{'r' * (len(table.head) - table.names)}}}",
        r"    \toprule", head, r"    \midrule", *rows, r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def notebook(results: Results) -> str:
    """HTML without scripts or files of others; names from data are text. The details are folded."""
    summary = summarize(results)
    evidence = f" Evidence: {summary.evidence}." if summary.evidence else ""
    parts = [f"<p><strong>{_for_html(summary.verdict)}</strong>{_for_html(evidence)}</p>"]
    parts += [html_table(summary.table)] if summary.table is not None else []
    parts += _paragraphs(summary.notes)
    for head, table in summary.groups:
        parts += [*_paragraphs([head]), html_table(table)]
    parts += _listed(f"! {warning}" for warning in summary.warnings)
    parts += [*_paragraphs([summary.estimands]), notebook_picture(results), "<details><summary>Details</summary>"]
    parts += [part for detail in summary.details for part in _detail(detail)]
    return "".join([*parts, *_listed(summary.remarks), "</details>"])


def html_table(table: ResultTable) -> str:
    """A table whose first columns are names."""
    head, *rows = _written(table, _for_html, "<strong>{}</strong>".format, "<sup>{}</sup>".format)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    titles = "".join(f"<th>{title}</th>" for title in head)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _detail(detail: Detail) -> list[str]:
    title = f"<p><strong>{_for_html(detail.title)}</strong>: {_for_html(detail.estimand)}</p>"
    return [title, *map(html_table, detail.tables), *_paragraphs(detail.notes)]


def _paragraphs(texts: Iterable[str]) -> list[str]:
    return [f"<p>{_for_html(text)}</p>" for text in texts]


def _listed(texts: Iterable[str]) -> list[str]:
    items = "".join(f"<li>{_for_html(text)}</li>" for text in texts)
    return [f"<ul>{items}</ul>"] if items else []


def _caption(summary: ResultSummary) -> str:
    evidence = f"Evidence: {summary.evidence}." if summary.evidence else ""
    star = "* significant." if any(cell.mark == "*" for row in _rows(summary.table) for cell in row) else ""
    return " ".join(filter(None, [summary.verdict, evidence, star, *summary.notes, summary.estimands]))


def _rows(table: ResultTable | None) -> Sequence[Sequence[Cell]]:
    return () if table is None else table.rows


def _written(
    table: ResultTable, escape: Callable[[str], str], bold: Callable[[str], str], raised: Callable[[str], str]
) -> list[list[str]]:
    """Head and rows as a language writes them."""

    def cell_text(cell: Cell) -> str:
        text = escape(cell.text)
        return (bold(text) if cell.bold else text) + (raised(escape(cell.mark)) if cell.mark else "")

    return [[escape(title) for title in table.head], *([cell_text(cell) for cell in row] for row in table.rows)]


def _for_html(text: str) -> str:
    return html.escape(printable(text))
