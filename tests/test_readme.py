"""What the README, the tutorials and the demo show is what happens."""

from __future__ import annotations

import math
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.making import first
from docs.making.files import DOCS
from docs.making.outputs import pages, with_outputs
from docs.making.steps import ROOT, TUTORIALS, links
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


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda path: str(path.stem))
def test_a_page_shows_what_its_commands_print(page: Path, folder: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(folder, tmp_path / "page"))
    assert with_outputs(page.read_text(), place) == page.read_text(), "run python -m docs.making outputs"


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in pages() if page.parent == DOCS], ids=lambda path: str(path.stem))
def test_a_guide_shows_what_its_commands_print(page: Path, folder: Path, tmp_path: Path) -> None:
    test_a_page_shows_what_its_commands_print(page, folder, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.stem))
def test_a_tutorial_ends_with_a_picture_of_its_figures(page: Path) -> None:
    *_, end = page.read_text().split("\n## ")
    (picture,) = re.findall(r"!\[[^]]+\]\(([^)]+\.svg)\)", end)
    (sentence,) = re.findall(r"^> .*$", end, flags=re.M)
    drawing = (page.parent / picture).read_text()
    for value in re.findall(r"has (\d\.\d{4}) | and \w+ (\d\.\d{4}) ", sentence):
        assert "".join(value) in drawing, "run python -m docs.making tutorials"


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.stem))
def test_no_output_has_more_than_five_warnings(page: Path) -> None:
    outputs = re.findall(r"^```text\n(.*?)^```", page.read_text(), flags=re.M | re.S)
    assert all(len(re.findall(r"^! ", output, flags=re.M)) <= 5 for output in outputs)
    advice = [output for output in outputs if "\nWhy: " in output and "Your log: " not in output]
    assert all(output.count("\n") <= 25 for output in advice)


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda path: str(path.stem))
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page.read_text()):
        assert (page.parent / link).exists(), link


def test_the_readme_answers_first() -> None:
    lines = README.splitlines()
    assert not [line for line in lines if len(line) > 120]
    assert next(number for number, line in enumerate(lines, 1) if line.startswith("ease beats")) <= 30
    assert {"    make demo", "    make test"} <= {line.split("#")[0].rstrip() for line in lines}


def test_the_first_picture_says_what_its_figures_say() -> None:
    rows = first.figures()
    by_log = {row["name"]: row for row in rows["holdout"]}
    truth = {name: row["truth"] for name, row in by_log.items()}
    assert max(truth, key=lambda name: truth[name]) == "ease"
    assert max(by_log, key=lambda name: by_log[name]["value"]) == "item-knn"
    assert all(row["high"] < row["truth"] for row in by_log.values())
    assert all(row["low"] <= row["truth"] <= row["high"] for row in rows["random"])
