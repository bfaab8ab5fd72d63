"""A page from its sections: one file with its style, its programs and its data, and nothing from anywhere else."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import polars as pl
import polars.selectors as cs

from truerank.core.escaping import chart_spec, embedded_json, printable
from truerank.core.record import record
from truerank.models import load
from truerank.report.charts import CONFIG, INSTALL, PlotPanel
from truerank.report.numbers import cell_text, kind_of_values
from truerank.report.view import Answer, AnswerSummary, DataTable
from truerank.version import __version__

FIRST = 25  # rows that a table shows before it is asked for more
MANY = 500  # numbers of a column from which they are written as eight bytes each, half as long and as exact
MOST = 60_000  # values of one kind that a page takes: beyond, it would be too large to open
OPEN = 6  # panels of a section before the others are folded
Pairs = tuple[tuple[str, str], ...]


def _packed(column: pl.Series) -> dict[str, Any]:
    """All values, for sorting, searching and copying; texts that repeat are written once."""
    packed: dict[str, Any] = {"name": printable(column.name), "kind": kind_of_values(column)}
    values = column.to_list()
    if column.dtype.is_float() and len(column) > MANY and not column.null_count():
        return packed | {"base64": base64.b64encode(column.to_numpy().astype("<f8").tobytes()).decode()}
    if packed["kind"] != "text":  # JSON has no NaN: undefined is the text nan, and infinite the text inf
        return packed | {"values": [value if value is None or math.isfinite(value) else str(value) for value in values]}
    words = {word: place for place, word in enumerate(dict.fromkeys(values))}
    return packed | {"words": [cell_text(word, "text") for word in words], "values": [words[value] for value in values]}


@record(kw_only=True)
class Section:
    """A part of a page under its heading: `points` are (kind, sentence), `facts` (name, value), `code` is a command."""

    name: str
    title: str
    texts: tuple[str, ...] = ()
    panels: tuple[PlotPanel, ...] = ()
    tables: tuple[DataTable, ...] = ()
    points: Pairs = ()
    facts: Pairs = ()
    code: str | None = None
    wide: bool = False

    @property
    def n_open(self) -> int:
        """How many panels are not folded away."""
        return OPEN if len(self.panels) > OPEN + 2 else len(self.panels)


@record(kw_only=True)
class Page:
    """All that a page shows; `claims` are the sentences of the answer: verdict, badge, sentence."""

    title: str
    question: str
    card: Pairs = ()
    claims: tuple[tuple[str, str, str], ...] = ()
    sections: tuple[Section, ...] = ()
    facts: Pairs = ()


def render(page: Page) -> bytes:
    """The page as the content of a file: the same bytes for the same page and versions."""
    charts: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    for section in page.sections:
        for place, panel in enumerate(section.panels):
            charts[f"{section.name}-{place}"] = {
                "spec": _specification(panel), "title": printable(panel.title),
                "sentence": printable(panel.sentence), "wide": section.wide,
            }  # fmt: skip
        for place, table in enumerate(section.tables):
            columns = [_packed(column) for column in table.frame]
            tables[f"{section.name}-table-{place}"] = {"first": FIRST, "columns": columns}
    style, scripts = _file("page.css"), [*([_bundle()] if charts else []), _file("page.js")]
    content: str = _template().render(
        page=page,
        first=FIRST,
        style=style,
        scripts=scripts,
        data=embedded_json({"charts": charts, "tables": tables, "config": CONFIG}),
        policy=_policy(scripts, style),
        version=__version__,
    )
    return content.encode()


def card_of(summary: AnswerSummary) -> Pairs:
    """What to know after one minute."""
    caveat = [*summary.warnings[:1], *["none that changes the conclusion"] * bool(summary.evidence)]
    card = {"Verdict": summary.verdict, "Effect": summary.effect, "Evidence": summary.evidence,
            "Caveat": " ".join(caveat[:1]), "Next step": summary.next_step}  # fmt: skip
    return tuple((name, text) for name, text in card.items() if text)


def answer_page(answer: Answer) -> Page:
    """The page of an answer that has none of its own: its card, then charts, tables, and what else there is to know."""
    summary = answer.summary
    points = (*(("", text) for text in summary.notes), *(("warning", text) for text in summary.warnings),
              *(("", text) for text in (summary.estimands, *summary.remarks) if text))  # fmt: skip
    frame = (
        answer.frame()
        .select(~cs.nested())
        .with_columns(cs.boolean().cast(pl.String))
        .rename(lambda name: name.replace("_", " "))
    )
    frame = frame.select(column for column in frame if column.name != "reward" or column.n_unique() > 1)
    charts = tuple(answer.panels())
    return Page(
        title=f"truerank report: {answer.question}",
        question=answer.question,
        card=card_of(summary),
        sections=(
            *([Section(name="charts", title="Chart", panels=charts)] if charts else []),
            Section(name="numbers", title="Numbers", tables=(DataTable("All numbers", frame),)),
            Section(name="assumed", title="Assumptions and warnings", points=points),
        ),
    )


def one_chart(chart: Any, *, title: str) -> bytes:
    """A page with nothing but one chart."""
    section = Section(name="chart", title="Chart", panels=(PlotPanel(title, title, chart),), wide=True)
    return render(Page(title=title, question=title, sections=(section,)))


def _specification(panel: PlotPanel) -> dict[str, Any]:
    """A chart without what the page says once for all of them."""
    return {name: part for name, part in chart_spec(panel.zooming()).items() if name not in ("$schema", "config")}


@cache
def _bundle() -> str:
    """The programs that draw charts, as they come with vl-convert."""
    bundle: str = load("vl_convert", install=INSTALL, who="a report").javascript_bundle()
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(scripts: Sequence[str], style: str) -> str:
    """Only the programs and the style of the page itself, named by their hashes; no request to anywhere."""
    *programs, looks = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (*scripts, style)
    )
    return (
        f"default-src 'none'; script-src {' '.join(programs)}; style-src-elem {looks}; "
        "style-src-attr 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _file(name: str) -> str:
    return resources.files("truerank.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_file),
    )  # fmt: skip
    environment.filters |= {"printable": printable, "kind_of_values": kind_of_values, "cell_text": cell_text}
    return environment.get_template("page.html.j2")
