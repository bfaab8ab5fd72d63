"""What the README, the tutorials and the demo show is what happens."""

from __future__ import annotations

import math
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from docs.making import first
from docs.making.steps import ROOT, TUTORIALS, Step, links, steps
from truerank.report.demo import AXIS, draw
from truerank.simulation.demo import Bar, Picture

README = (ROOT / "README.md").read_text()
PAGES = sorted(path for path in TUTORIALS.glob("*.md") if path.stem != "README")
DEMO = "truerank demo"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the demo has run."""
    place = tmp_path_factory.mktemp("readme")
    (place / "demo.txt").write_text(ran(DEMO, place))
    return place


def ran(command: str, place: Path) -> str:
    """The output of a command that works."""
    words = [sys.executable, "-m", *shlex.split(command)]
    found = subprocess.run([*words, "--quiet"], cwd=place, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def follow(step: Step, place: Path) -> str:
    if step.text == DEMO:  # it has run, and shows the same each time
        return (place / "demo.txt").read_text()
    found = step.run(place)
    assert found.returncode == 0, found.stderr
    assert found.stdout or "--out" in step.text or step.words[0] == "-c"
    if step.shows is not None:
        assert found.stdout == step.shows
    return found.stdout


# ------------------------------------------------------------------------------------------------------------- the demo


def test_the_demo_is_one_question_one_picture_and_one_lesson(folder: Path) -> None:
    shown = (folder / "demo.txt").read_text()
    assert len(shown.splitlines()) <= 25
    words = " ".join(shown.split())
    assert "Per user, 0 of 4 intervals cover the truth" in words
    assert "4 of 4 intervals cover the truth" in words
    assert "loses 68%: truly first, it is estimated to be third." in words
    suggested = re.search(r"^  (truerank evaluate .*)$", shown, flags=re.M)
    assert suggested is not None
    assert "pooled" in ran(suggested[1], folder)


def test_the_demo_goes_on_with_its_files_whatever_stands_beside_them(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (folder / "truerank-demo").rglob("*")}
    (folder / "truerank-demo" / "mine.txt").write_text("kept")
    assert ran(DEMO, folder) == (folder / "demo.txt").read_text()
    after = {path: path.stat().st_mtime_ns for path in before}
    assert {path for path in before if path.is_file() and before[path] != after[path]} == set()
    assert (folder / "truerank-demo" / "mine.txt").read_text() == "kept"


def test_the_picture_of_a_narrow_terminal_fits() -> None:
    bars = (Bar("newcomers", 0.3, 0.1, 0.2), Bar("ease", 0.2, 0.15, math.nextafter(0.2, 1)))
    for columns in (20, AXIS):
        lines = draw(Picture("share", bars), columns=columns)[1:]
        assert {len(line) for line in lines} == {columns + 20}
        assert [line.index("◆") > line.index("┤") for line in lines if "┤" in line] == [True]
    assert Picture("share", bars).n_covered == 1


# ------------------------------------------------------------------------------------------------------------ the pages


def test_commands_and_python_of_the_readme(folder: Path) -> None:
    *rest, python = sorted(steps(README), key=lambda step: step.words[0] == "-c")
    for step in rest:
        follow(step, folder)
    check = f"{python.text}\nassert ease_minus_popularity.difference > 0"
    follow(Step(check, ("-c", check)), folder)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.stem))
def test_a_tutorial_runs_and_shows_what_comes_out(page: Path, folder: Path) -> None:
    told = [step for step in steps(page.read_text()) if follow(step, folder)]
    last = told[-1]
    assert last.words[0] == "-c"
    assert last.shows is not None  # the sentence for the report


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda path: str(path.stem))
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page.read_text()):
        assert (page.parent / link).exists(), link


def test_the_readme_is_short_and_complete() -> None:
    assert len(steps(README)) >= 6
    for needed in (
        "make demo",
        "make test",
        "docs/random-exposure.md",
        "Honest limits",
        "Recall per user",
        "Pooled recall",
    ):
        assert needed in README
    assert README.count("![") == 1
    lines = README.splitlines()
    assert not [line for line in lines if len(line) > 120]
    assert lines.index("## Honest limits") <= 118  # two screens and the output of two commands


def test_the_first_picture_says_what_its_figures_say() -> None:
    rows = first.figures()
    by_log = {row["name"]: row for row in rows["holdout"]}
    truth = {name: row["truth"] for name, row in by_log.items()}
    assert max(truth, key=lambda name: truth[name]) == "ease"
    assert max(by_log, key=lambda name: by_log[name]["value"]) == "item-knn"
    assert all(row["high"] < row["truth"] for row in by_log.values())
    assert all(row["low"] <= row["truth"] <= row["high"] for row in rows["random"])
