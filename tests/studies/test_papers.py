"""Every experiment of the papers: found by its place, complete, run in its quick size; pages are made of results."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from truerank.cli.reproduce import identifiers
from truerank.core.errors import InputError
from truerank.report.papers.pages import FRONT, of_paper, pages, papers, pivot, read_results
from truerank.studies.papers.experiment import EXPERIMENTS, Measurements, catalogued
from truerank.studies.papers.paper import Cell, ClaimVerdict, by_share
from truerank.studies.papers.reproduced import Reproduced, reproduced, told_again
from truerank.studies.papers.run import reproduce
from truerank.studies.work import StudySize, StudySource, in_memory

DOCS = Path(__file__).parents[2] / "docs" / "results"
RESULTS, PAGES = DOCS / "reproduced", DOCS / "papers"
RUNNABLE = [cls for cls in catalogued() if not cls.instead]
SYNTHETIC = StudySource()


def named(cls: Any) -> str:
    return str(cls.name)


def learns(cls: Any) -> bool:
    """Whether an experiment trains models with torch."""
    return "truerank.studies.papers.ure.training" in Path(str(sys.modules[cls.__module__].__file__)).read_text()


# ------------------------------------------------------------------------------------------------------- what there is


def test_the_command_line_lists_all_that_are_there() -> None:
    assert identifiers() == sorted(EXPERIMENTS.catalogue())


@pytest.mark.parametrize("cls", catalogued(), ids=named)
def test_an_experiment_says_what_it_is(cls: Any) -> None:
    assert re.fullmatch(r"E-[A-Z]\d+", cls.name)
    assert cls.about.endswith(".")
    assert cls.claims
    assert len({claim.key for claim in cls.claims}) == len(cls.claims)
    assert cls.instead or 0 < cls.minutes <= 60
    for paper, parts in cls.shows.items():
        assert set(parts) <= set(paper.parts), paper.key
    for claim in cls.claims:
        assert claim.text.endswith(".")
        assert claim.rule.endswith(".")
        assert claim.where


def test_every_table_and_figure_of_a_paper_belongs_to_an_experiment() -> None:
    for paper in papers():
        shown = {part for cls in of_paper(paper) for part in cls.shows[paper]}
        assert shown == set(paper.parts), paper.key


@pytest.mark.parametrize("cls", [cls for cls in catalogued() if cls.instead], ids=named)
def test_what_cannot_be_run_here_says_why_and_what_to_run(cls: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"E-[A-Z]\d"):
        reproduce(cls(), SYNTHETIC, tmp_path / "out", size=StudySize.QUICK, seed=0)
    assert not (tmp_path / "out").exists()


# -------------------------------------------------------------------------------------------------------------- running


@pytest.mark.parametrize("cls", RUNNABLE, ids=named)
def test_the_quick_size_runs_on_a_synthetic_world_and_again_is_the_same(cls: Any, tmp_path: Path) -> None:
    quick: dict[str, Any] = {"size": StudySize.QUICK, "seed": 0, "processes": 1}
    if find_spec("torch") is None and learns(cls):
        with pytest.raises(InputError, match="needs torch"):
            reproduce(cls(), SYNTHETIC, tmp_path / "out", **quick)
        return
    result, notes = reproduce(cls(), SYNTHETIC, tmp_path / "out", **quick)
    assert not notes
    assert result.cells
    assert {finding.claim for finding in result.findings} == {claim.key for claim in cls.claims}
    assert all(finding.why.endswith(".") for finding in result.findings)
    assert told_again(result) == result
    blocks = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.block")}
    again, _ = reproduce(cls(), SYNTHETIC, tmp_path / "out", **quick)
    assert again.encoded() == result.encoded()
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.block")} == blocks
    for name in list(blocks)[:1]:
        path = tmp_path / "out" / name
        path.write_bytes(path.read_bytes()[:-1])
        mended, notes = reproduce(cls(), SYNTHETIC, tmp_path / "out", **quick)
        assert name in notes[0]
        assert mended.encoded() == result.encoded()
    (tmp_path / "file.json").write_bytes(result.encoded())
    assert Reproduced.read(tmp_path / "file.json") == replace(result, data=dict(result.data))


class _Counted:
    """An experiment of one's own, whose pieces are counted."""

    name, about, minutes, instead = "E-X1", "Two pieces.", 1.0, ""
    shows, data, claims = EXPERIMENTS.named("E-D1").shows, (), EXPERIMENTS.named("E-D1").claims

    def __init__(self) -> None:
        self.made: list[str] = []
        self.stops = True

    def run(self, source: Any, *, size: Any, seed: int, keep: Any, progress: Any) -> Measurements:
        tables = keep([_Piece(self, name) for name in ("a b", "a/b")], about="making", apart=False)
        return Measurements(tuple(Cell("t", f"{at}", "x", table["x"][0]) for at, table in enumerate(tables)), ())

    def judge(self, obtained: Any) -> tuple[Any, ...]:
        return (by_share("table", [math.isclose(obtained.cells.value("t", "0", "x"), 3.0)], "as it is."),)


class _Piece:
    def __init__(self, home: _Counted, name: str) -> None:
        self.home, self.name = home, name

    def table(self) -> pl.DataFrame:
        if self.home.made and self.home.stops:
            raise KeyboardInterrupt
        self.home.made.append(self.name)
        return pl.DataFrame({"x": [float(len(self.name))]})


def test_a_stopped_run_goes_on_and_another_question_is_refused(tmp_path: Path) -> None:
    experiment: Any = _Counted()
    quick: dict[str, Any] = {"size": StudySize.QUICK, "seed": 0}
    with pytest.raises(KeyboardInterrupt):
        reproduce(experiment, SYNTHETIC, tmp_path, **quick)
    experiment.stops = False
    result, _ = reproduce(experiment, SYNTHETIC, tmp_path, **quick)
    assert experiment.made == ["a b", "a/b"]
    assert [cell.obtained for cell in result.cells] == [3.0, 3.0]
    assert result.findings[0].verdict is ClaimVerdict.HOLDS
    with pytest.raises(InputError, match="seed: 0, now 1"):
        reproduce(experiment, SYNTHETIC, tmp_path, size=StudySize.QUICK, seed=1)
    with pytest.raises(InputError, match="needs no data"):
        reproduce(experiment, StudySource(tmp_path), tmp_path / "other", **quick)


def test_two_numbers_in_one_place_are_an_error() -> None:
    found = Measurements((Cell("t", "a", "x", 1.0), Cell("t", "a", "x", 2.0)), ())
    with pytest.raises(ValueError, match="more than one number"):
        reproduced(_Counted(), found, size=StudySize.QUICK, seed=0, synthetic=True, data={})  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------- committed results


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_verdicts_and_pictures_are_those_of_the_committed_numbers(path: Path) -> None:
    result = Reproduced.read(path)
    assert told_again(result) == result
    assert result.encoded() == path.read_bytes()
    assert result.size is StudySize.FULL
    assert len(path.read_bytes()) <= 400_000


def test_pages_are_made_of_the_committed_results_to_the_byte() -> None:
    made = pages(read_results(RESULTS))
    there = {path.name: path.read_bytes() for path in PAGES.iterdir() if path.name != "truerank.json"}
    assert made.keys() == there.keys()
    assert [name for name in made if made[name] != there[name]] == []


def test_pages_begin_with_a_picture_and_verdicts() -> None:
    for path in (PAGES / f"{paper.key}.md" for paper in papers()):
        head = path.read_text().split("\n## ")[0]
        assert "| claim | where | verdict | why |" in head
        if "not run yet" not in head:
            assert re.search(r"^!\[.{20,}\]\(.+\.svg\)$", head, flags=re.M), path.name
    front = (PAGES / FRONT).read_text()
    assert all(f"({paper.key}.md) | {part} |" in front for paper in papers() for part in paper.parts)


def test_the_front_page_can_be_taken_in_at_a_glance() -> None:
    """A square for every claim, then what each paper is remembered for, then the rest."""
    front = (PAGES / FRONT).read_text()
    head, main, rest = re.split(r"\n## (?:What the papers are remembered for|Every claim)\n", front)
    claims = [claim for cls in catalogued() for claim in cls.claims if not claim.ours]
    assert head.split("\n\n")[1].endswith("(claims.svg)")
    assert f"A square is a claim: {len(claims)} claims" in head
    assert (PAGES / "claims.svg").read_text().count('aria-roledescription="square"') == len(claims)
    known = {(cls.name, claim.key): claim.text for cls in catalogued() for claim in cls.claims}
    remembered = [known[place] for paper in papers() for place in paper.main]
    assert not [claim for claim in claims if claim.where.startswith("a question")]  # which no paper claims
    assert 12 <= len(remembered) <= 20
    assert all(f"| {text} |" in main for text in remembered)
    assert all(f"| {claim.text} |" in rest for claim in claims)


def test_a_number_beyond_its_tolerance_is_marked() -> None:
    near = Cell("t", "a", "x", 1.0, published=1.05, tolerance=0.1)
    assert "beyond" not in "".join(pivot([near]))
    assert "1 (published 1.2) beyond ±0.1" in "".join(pivot([replace(near, published=1.2)]))


def test_the_exact_table_is_exact() -> None:
    found = EXPERIMENTS.named("E-D1")().run(SYNTHETIC, size=StudySize.FULL, seed=0, keep=in_memory, progress=None)
    values = {(cell.table, cell.row, cell.column): cell.obtained for cell in found.cells}
    ideal = "Table 1, divided by the ideal list as in the text"
    assert values["Table 1", "R", "nDCG(x2)"] == pytest.approx(1 / 3.5, abs=1e-12)
    assert values["Table 1", "R'", "nDCG(X)"] == pytest.approx(2.5 / 7, abs=1e-12)
    assert values[ideal, "R", "nDCG(X)"] == pytest.approx(0.7, abs=1e-12)
    assert values[ideal, "R'", "nDCG(X)"] == pytest.approx(0.5, abs=1e-12)
