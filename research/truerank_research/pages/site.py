"""Pages of results: a front page, one for each paper and each validation study. No number is typed by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from truerank_research.claims import Verdict
from truerank_research.pages import KINDS, PAPERS, Paper
from truerank_research.pages.pictures import draw, stacked_bars
from truerank_research.results import Result
from truerank_research.runner import Study, studies, verdicts

FRONT, AUTHORS = "README.md", "authors.md"
COLOURS = {
    Verdict.REPLICATES: "#1f6f8b",
    Verdict.IN_PART: "#7fc1d6",
    Verdict.FAILS: "#d1495b",
    Verdict.UNTESTABLE: "#b8b8b8",
}
SIGNS = dict(zip(Verdict, "✓◐✗–", strict=True))


def site(results: Sequence[Result]) -> dict[str, bytes]:
    """Every file of the section: its content by its name."""
    validated = [
        (study, result)
        for study in studies().values()
        for result in results
        if study.page and study.name == result.study
    ]
    front = _render("front.md.jinja", papers=[_paper(paper, results) for paper in PAPERS], studies=validated)
    listed = [entry for entry in (_paper(paper, results) for paper in PAPERS) if entry["paper"].authors_notes]
    files = {FRONT: front, AUTHORS: _render("authors.md.jinja", papers=listed)} | _claims_picture(results)
    for paper in PAPERS:
        files[f"{paper.key}.md"] = _render("paper.md.jinja", **_paper(paper, results))
        drawn = next((result for result in results if result.study == paper.picture_study), None)
        files[f"{paper.key}.svg"] = draw(paper.picture, drawn.rows(paper.picture.table) if drawn else [])
    for study, result in validated:
        files |= _study_page(study, result)
    return files


def _paper(paper: Paper, results: Sequence[Result]) -> dict[str, Any]:
    """What the pages say of a paper."""
    shown = [study for study in studies().values() if paper.key in (study.shows or {})]
    judged = [(study, *verdict) for study in shown for verdict in verdicts(study, results)]
    by_key = {(study.name, claim.key): (claim, verdict, why) for study, claim, verdict, why in judged}
    own = [row for row in judged if row[0].paper == paper.key and not row[1].ours]
    return {
        "paper": paper,
        "experiments": shown,
        "studies": {study.name: study for study in shown},
        "claims": judged,
        "main": [by_key[place] for place in paper.main],
        "by_key": by_key,
        "beside": [_beside(name, table, results) for name, table in paper.beside],
        "counts": Counter(row[2] for row in own),
        "n_claims": len(own),
        "n_run": sum(study.measure is not None for study in shown),
        "data": sorted({dataset for study in shown for dataset in study.data}),
        "differences": [
            text
            for result in results
            for study in shown
            if result.study == study.name and study.paper == paper.key
            for text in result.differences
        ],
    }


def _beside(name: str, table: str, results: Sequence[Result]) -> dict[str, Any]:
    """A table of an experiment as text: each number with its interval, and the printed one in brackets."""
    cells = [row for result in results if result.study == name for row in result.rows("cells") if row["table"] == table]
    columns = list(dict.fromkeys(row["column"] for row in cells))
    rows: dict[str, list[str]] = {}
    for row in cells:
        rows.setdefault(row["row"], [""] * len(columns))[columns.index(row["column"])] = _with_interval(row)
    return {"study": name, "table": table, "columns": columns, "rows": rows}


def _with_interval(row: dict[str, Any]) -> str:
    """
    >>> _with_interval({"obtained": 0.5, "low": 0.4, "high": 0.61, "published": 0.45})
    '0.5 [0.4, 0.61] (0.45)'
    """
    value, low, high, printed = (short(row[name]) for name in ("obtained", "low", "high", "published"))
    return f"{value}{f' [{low}, {high}]' * bool(low)}{f' ({printed})' * (bool(printed) and printed != value)}"


def short(value: float | None) -> str:
    """Three significant digits."""
    return "" if value is None else f"{value:.3g}"


def _claims_picture(results: Sequence[Result]) -> dict[str, bytes]:
    rows = [
        {"row": paper.short, "kind": str(verdict), "n": count}
        for paper in PAPERS
        for verdict, count in _paper(paper, results)["counts"].items()
    ]
    return (
        {"claims.svg": stacked_bars(rows, {str(verdict): colour for verdict, colour in COLOURS.items()})}
        if rows
        else {}
    )


def _study_page(study: Study, result: Result) -> dict[str, bytes]:
    page = study.page
    assert page is not None
    seen = {"settings": result.settings, "tables": {name: table.rows() for name, table in result.tables.items()}}
    rows = [row for row in result.rows(page.table) if all(row[name] in kept for name, kept in page.where.items())]
    columns = page.columns or {name: name for name in rows[0]}
    text, caption = (ENVIRONMENT.from_string(text).render(seen) for text in (page.text, page.picture.caption))
    content = _render(
        "study.md.jinja", page=page, study=study, result=result, text=text, caption=caption,
        header=list(columns.values()), rows=[[row[name] for name in columns] for row in rows],
    )  # fmt: skip
    return {f"{study.name}.md": content, f"{study.name}.svg": draw(page.picture, result.rows(page.picture.table))}


def percent(value: float, digits: int = 1) -> str:
    """
    >>> percent(0.954)
    '95.4%'
    """
    return f"{value:.{digits}%}"


def number(value: Any) -> str:
    """A value in a table: four significant digits, counts in full, nothing where it is missing.

    >>> number(0.123456), number(10612.0), number(None), number("ALS")
    ('0.1235', '10,612', '', 'ALS')
    """
    if value is None or isinstance(value, str | bool):
        return "" if value is None else str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _render(template: str, **values: Any) -> bytes:
    return (ENVIRONMENT.get_template(template).render(values).strip() + "\n").encode()


ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
ENVIRONMENT.filters.update(percent=percent, number=number, cell=cell)
ENVIRONMENT.globals.update(SIGNS=SIGNS, KINDS=KINDS, Verdict=Verdict, min=min, max=max)
