"""The report in a real browser: it opens offline, draws, sorts, searches and copies, on every screen."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from reported import HOSTILE, judged, ranked, studied

from truerank.core.results import Results
from truerank.report.numbers import number, p_value
from truerank.report.results_page import report_of

Open = Any  # see conftest
Opened = Any

EMPTY = (
    "[...document.querySelectorAll('figure')].filter("
    "e => !e.querySelector('svg .role-mark path, svg .role-mark line, svg .role-mark rect')).map(e => e.id)"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    judged().html(path)
    return path


def unfold(report: Opened) -> None:
    """Click every closed section open, from the top."""
    while (closed := report.page.locator("details:not([open]) > summary")).count():
        closed.first.click()


@pytest.fixture(scope="module")
def shown(page: Path, opened: Open) -> Opened:
    """The same page for all tests that leave it as it was, or do not mind: drawing it takes longest."""
    report = opened(page)
    unfold(report)
    return report


@pytest.fixture(scope="module")
def study_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    path = folder / "report.html"
    path.write_bytes(report_of(studied(folder)))
    return path


def colours(found: Any, selector: str) -> int:
    """How many colours a part of the page has: one means that nothing was drawn."""
    import struct
    import zlib

    content = found.page.locator(selector).first.screenshot()
    width, height = struct.unpack(">II", content[16:24])
    packed, at = b"", 8
    while at < len(content):
        (size,) = struct.unpack(">I", content[at : at + 4])
        packed += content[at + 8 : at + 8 + size] if content[at + 4 : at + 8] == b"IDAT" else b""
        at += size + 12
    raw = zlib.decompress(packed)
    return len(set(raw)) if width and height else 0


def test_it_opens_without_network_and_every_chart_is_drawn(page: Path, shown: Opened) -> None:
    found = shown
    assert found.calm, (found.said, found.asked)
    assert found.run("document.querySelectorAll('figure').length") >= 15
    found.until(f"{EMPTY}.length === 0")
    assert colours(found, "#values-0 .drawing") > 10
    assert found.calm
    assert page.stat().st_size < 1.2e6
    sections = found.run("[...document.querySelectorAll('main > section')].map(e => e.id)")
    assert sections == [
        "answer", "values", "differences", "cutoffs", "units", "groups", "evidence", "assumed", "provenance"
    ]  # fmt: skip


def test_tables_sort_search_and_copy_with_the_keyboard_alone(shown: Opened) -> None:
    found, table = shown, "#values-table-0"
    for _ in range(2):  # once ascending, then descending
        found.page.focus(f"{table} th:nth-child(4) button")
        found.page.keyboard.press("Enter")
    assert found.run(f"document.querySelector('{table} th:nth-child(4)').getAttribute('aria-sort')") == "descending"
    values = [float(text) for text in found.texts(f"{table} tbody td:nth-child(4)")]
    assert values == sorted((float(number(each.value)) for each in judged().estimates), reverse=True)
    found.page.focus(f"{table} input")
    found.page.keyboard.type("EASE")
    assert set(found.texts(f"{table} tbody td:nth-child(3)")) == {"ease"}
    found.page.keyboard.press("Tab")
    found.page.keyboard.press("Enter")
    found.until(f"document.querySelector('{table} .said').textContent === 'Copied.'")
    rows = list(csv.DictReader(io.StringIO(found.run("navigator.clipboard.readText()"))))
    values = sorted((each.value for each in judged().estimates if each.model == "ease"), reverse=True)
    assert [float(row["value"]) for row in rows] == values  # every digit
    found.page.fill(f"{table} input", "")
    assert found.calm


def test_charts_enlarge_save_and_tell_with_the_keyboard_alone(shown: Opened) -> None:
    found = shown
    found.run("document.activeElement.blur()")
    found.page.focus(".skip")
    found.page.keyboard.press("Enter")
    found.page.keyboard.press("Tab")
    assert found.run("document.activeElement.closest('main') !== null")
    found.page.focus("#values-0 [data-do=enlarge]")
    found.page.keyboard.press("Enter")
    found.page.wait_for_selector("dialog[open] svg .role-mark path")
    found.page.keyboard.press("Escape")
    found.page.wait_for_selector("dialog:not([open])", state="attached")
    for form, start in (("svg", b"<svg"), ("png", b"\x89PNG")):
        found.page.focus(f"#values-0 [data-do={form}]")
        with found.page.expect_download() as download:
            found.page.keyboard.press("Enter")
        assert download.value.suggested_filename == f"values-0.{form}"
        assert Path(download.value.path()).read_bytes().startswith(start)
    found.page.hover("#values-0 svg .mark-symbol path")
    assert "als" in found.page.locator("#told").text_content()
    assert found.calm


def test_every_number_in_a_table_is_one_of_the_results(shown: Opened) -> None:
    found = shown
    for button in found.page.locator("[data-do=more]:visible").all():
        button.click()
    entries = json.loads(judged().json())
    known: dict[str, set[str]] = {"#values-table-0": set(), "#differences-table-0": set()}
    for table, part in zip(known, ("estimates", "comparisons"), strict=True):
        for entry in entries[part]:
            for value in entry.values():
                if isinstance(value, int | float) or value is None:
                    plain = math.nan if value is None else float(value)
                    # differences are winner minus loser, whichever way round they were estimated
                    signed = {number(plain), number(-plain) if part == "comparisons" else ""}
                    known[table] |= {*signed, p_value(plain), f"{value:,}" if value is not None else ""}
        cells = found.texts(f"{table} tbody td.n")
        assert len(cells) >= 5 * len(entries[part])
        assert set(cells) <= known[table]


def test_axe_finds_nothing(shown: Opened, axe: str) -> None:
    assert shown.violations(axe) == []


def test_it_fits_a_phone_in_the_dark(page: Path, opened: Open, axe: str) -> None:
    found = opened(page, width=360, scheme="dark", wait=False)
    found.page.wait_for_selector("#values-0 svg .role-mark path")
    assert found.run("document.documentElement.scrollWidth") <= 360
    assert found.run("document.querySelector('#values-0 svg').getBoundingClientRect().width") <= 340
    assert found.run("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    assert found.run("getComputedStyle(document.querySelector('#values-0 svg .role-axis-label text')).fill") == (
        "rgb(232, 234, 237)"
    )
    assert found.violations(axe) == []
    assert found.calm


def test_names_that_mean_harm_are_text(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "hostile.html"
    judged(HOSTILE).html(path)
    found = opened(path, wait=False)
    found.page.wait_for_selector("#values-0 svg .role-mark path")
    assert set(found.texts("#values-table-0 tbody td:nth-child(3)")) == set(HOSTILE)
    assert found.calm, (found.said, found.dialogs, found.asked)
    assert found.run("window.harmed") is None
    assert found.run("document.querySelectorAll('img, iframe, object, embed, script').length") == 3
    labels = set(found.texts("#values-0 svg .role-axis-label text"))
    assert HOSTILE[3] in labels
    found.page.hover("#values-0 svg .mark-symbol path")
    assert found.run("document.querySelector('#told').querySelectorAll('script, img').length") == 0
    found.page.locator("#values-table-0 [data-do=copy]").click()
    found.until("document.querySelector('#values-table-0 .said').textContent === 'Copied.'")
    rows = list(csv.DictReader(io.StringIO(found.run("navigator.clipboard.readText()"))))
    assert {row["model"] for row in rows} == set(HOSTILE)


def test_the_legend_of_a_study_filters_its_figure(study_file: Path, opened: Open) -> None:
    found = opened(study_file)
    count = "document.querySelectorAll('figure svg .mark-symbol path').length"
    hidden = "document.querySelectorAll('figure svg .mark-symbol path[opacity=\"0\"]').length"
    before = found.run(count)
    assert found.run("document.querySelectorAll('figure').length") == 4
    assert before > 100
    assert found.run(f"{EMPTY}.length") == 0
    assert found.run(hidden) == 0
    found.page.locator("figure svg .role-legend-label text", has_text="Random").first.click()
    found.until(f"{hidden} > 0")
    assert found.calm, found.said


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ranked", "study", "hostile"])
def test_every_kind_of_report_is_drawn_and_accessible(
    kind: str, tmp_path: Path, study_file: Path, opened: Open, axe: str
) -> None:
    path = study_file if kind == "study" else tmp_path / "report.html"
    results: dict[str, Results] = {"ranked": ranked(), "hostile": judged(HOSTILE)}
    if kind in results:
        results[kind].html(path)
    for width, scheme in ((360, "light"), (360, "dark"), (1400, "light"), (1400, "dark")):
        found = opened(path, width=width, scheme=scheme)
        assert found.run("document.documentElement.scrollWidth") <= width
        unfold(found)
        found.until(f"{EMPTY}.length === 0")
        assert found.violations(axe) == []
        assert found.calm, found.said
