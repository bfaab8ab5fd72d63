"""A page from its sections: one file with its style, its programs and its data, and nothing from anywhere else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from truerank.core.escaping import chart_spec, embedded_json, printable
from truerank.models.settings import load
from truerank.report.charts import CONFIG, INSTALL, PlotPanel
from truerank.report.page.tables import PageTable
from truerank.version import __version__

WHO = "a report"


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the answer with its verdict."""

    verdict: str
    badge: str
    sentence: str


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """One entry of a legend that filters: its name, colour, and whether its line is dashed."""

    name: str
    colour: str
    dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page under its heading.

    `more` are panels that are folded away; `facts` are names with their values; `code` is a command.
    """

    name: str
    title: str
    texts: tuple[str, ...] = ()
    panels: tuple[PlotPanel, ...] = ()
    more: tuple[PlotPanel, ...] = ()
    tables: tuple[PageTable, ...] = ()
    points: tuple[tuple[str, str], ...] = ()  # (kind, sentence)
    facts: tuple[tuple[str, str], ...] = ()
    code: str | None = None
    choices: tuple[LegendEntry, ...] = ()
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """All that a page shows."""

    title: str
    question: str
    card: tuple[tuple[str, str], ...] = ()
    claims: tuple[Claim, ...] = ()
    sections: tuple[Section, ...] = ()
    facts: tuple[tuple[str, str], ...] = field(default=())


def render(page: Page) -> bytes:
    """The page as the content of a file: the same bytes for the same page and versions."""
    charts: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    for section in page.sections:
        for at, panel in enumerate((*section.panels, *section.more)):
            charts[f"{section.name}-{at}"] = {
                "spec": specification(panel), "title": printable(panel.title),
                "sentence": printable(panel.sentence), "wide": section.wide,
            }  # fmt: skip
        for at, table in enumerate(section.tables):
            tables[f"{section.name}-table-{at}"] = table.data()
    script, style = _file("page.js"), _file("page.css")
    drawing = bundle() if charts else ""
    made: str = _template().render(
        page=page,
        style=style,
        scripts=[each for each in (drawing, script) if each],
        data=embedded_json({"charts": charts, "tables": tables, "config": CONFIG}),
        policy=_policy([drawing, script], style),
        version=__version__,
    )
    return made.encode()


def one_chart(chart: Any, *, title: str) -> bytes:
    """A page with nothing but one chart."""
    panel = PlotPanel(title, title, chart)
    return render(Page(title=title, question=title, sections=(
        Section(name="chart", title="Chart", panels=(panel,), wide=True),)))  # fmt: skip


def specification(panel: PlotPanel) -> dict[str, Any]:
    """A chart without what the page says once for all of them."""
    spec = chart_spec(panel.zooming())
    for name in ("$schema", "config"):
        spec.pop(name, None)
    given = [{"name": name, "value": value} for name, value in panel.parameters.items()]
    return spec | ({"params": [*spec.get("params", ()), *given]} if given else {})


@cache
def bundle() -> str:
    """The programs that draw charts, as they come with vl-convert."""
    made: str = load("vl_convert", install=INSTALL, who=WHO).javascript_bundle()
    return made.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(scripts: Sequence[str], style: str) -> str:
    """Only the programs and the style of the page itself, named by their hashes; no request to anywhere."""
    run = " ".join(f"'sha256-{_hash(each)}'" for each in scripts if each)
    return (
        f"default-src 'none'; script-src {run}; style-src-elem 'sha256-{_hash(style)}'; "
        "style-src-attr 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _file(name: str) -> str:
    return resources.files("truerank.report.page").joinpath(name).read_text(encoding="utf-8")


@cache
def _template() -> Any:
    import jinja2

    made = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_file),
    )  # fmt: skip
    made.filters["printable"] = printable
    return made.get_template("page.html.j2")
