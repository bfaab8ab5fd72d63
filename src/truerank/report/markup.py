"""Summaries as Markdown, LaTeX and HTML: the same table, with the best in bold and marks raised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from truerank.core.escaping import html_text, latex_text, markdown_text
from truerank.core.results import Results
from truerank.report.plots import notebook_picture
from truerank.report.summary import summarize
from truerank.report.view import AnswerSummary, Cell, ResultTable


def markdown(summary: AnswerSummary, *, parts: Mapping[str, AnswerSummary] | None = None) -> str:
    """A Markdown table with its caption below, and one for each group of units."""
    return _together(_markdown, markdown_text, summary, parts)


def latex(summary: AnswerSummary, *, parts: Mapping[str, AnswerSummary] | None = None) -> str:
    """LaTeX tables (booktabs) with their captions, marked as `markdown` does it."""
    return _together(_latex, latex_text, summary, parts)


def _together(
    write: Callable[[AnswerSummary], str],
    escape: Callable[[str], str],
    summary: AnswerSummary,
    parts: Mapping[str, AnswerSummary] | None,
) -> str:
    texts = (f"{escape(name)}\n\n{write(part)}" for name, part in (parts or {}).items())
    return "\n".join([write(summary), *texts])


def _markdown(summary: AnswerSummary) -> str:
    lines = []
    if (table := summary.table) is not None:
        head, *rows = _written(table, markdown_text, "**{}**", "<sup>{}</sup>")
        line = ["---"] * table.names + ["---:"] * (len(head) - table.names)
        lines = [f"| {' | '.join(cells)} |" for cells in (head, line, *rows)]
    return "\n".join([*lines, "", markdown_text(_caption(summary)), ""])


def _latex(summary: AnswerSummary) -> str:
    table = summary.table or ResultTable((), ())
    cells = _written(table, latex_text, r"\textbf{{{}}}", "$^{{{}}}$")
    head, *rows = (rf"    {' & '.join(row)} \\" for row in cells)
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
    parts = [f"<p><strong>{html_text(summary.verdict)}</strong>{html_text(evidence)}</p>"]
    parts += [] if summary.table is None else [_html_table(summary.table)]
    parts += [_paragraph(note) for note in summary.notes]
    for head, table in summary.groups:
        parts += [_paragraph(head), _html_table(table)]
    parts += [_listed(f"! {warning}" for warning in summary.warnings), _paragraph(summary.estimands)]
    parts += [notebook_picture(results), "<details><summary>Details</summary>"]
    for detail in summary.details():
        parts.append(f"<p><strong>{html_text(detail.title)}</strong>: {html_text(detail.estimand)}</p>")
        for data in detail.tables:
            parts += [_html_table(data.texts()), _paragraph(data.cut) if data.cut else ""]
    return "".join([*parts, _listed(summary.remarks), "</details>"])


def _html_table(table: ResultTable) -> str:
    head, *rows = _written(table, html_text, "<strong>{}</strong>", "<sup>{}</sup>")
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    titles = "".join(f"<th>{title}</th>" for title in head)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _paragraph(text: str) -> str:
    return f"<p>{html_text(text)}</p>"


def _listed(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{html_text(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def _caption(summary: AnswerSummary) -> str:
    evidence = f"Evidence: {summary.evidence}." if summary.evidence else ""
    cells = [] if summary.table is None else [cell for row in summary.table.rows for cell in row]
    star = "* significant." if any(cell.mark == "*" for cell in cells) else ""
    return " ".join(filter(None, [summary.verdict, evidence, star, *summary.notes, summary.estimands]))


def _written(table: ResultTable, escape: Callable[[str], str], bold: str, raised: str) -> list[list[str]]:
    """Head and rows as a language writes them."""

    def write(cell: Cell) -> str:
        text = escape(cell.text)
        mark = raised.format(escape(cell.mark)) if cell.mark else ""
        return (bold.format(text) if cell.bold else text) + mark

    return [[escape(title) for title in table.head], *([write(cell) for cell in row] for row in table.rows)]
