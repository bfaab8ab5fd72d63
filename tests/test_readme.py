"""What the README shows is what happens."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"^\$ (truerank .+)$", README, flags=re.M)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the demo has run."""
    place = tmp_path_factory.mktemp("readme")
    found = run("truerank demo --quiet", place)
    assert found.returncode == 0, found.stderr
    (place / "demo.txt").write_text(found.stdout)
    return place


def run(command: str, place: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", *shlex.split(command)]
    return subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)


def test_the_demo_finds_which_schemes_are_right(folder: Path) -> None:
    shown = (folder / "demo.txt").read_text()
    for line in (
        "Recall@5 traditional misses the truth",
        "Recall@5 published misses the truth",
        "Recall@5 pooled finds the truth",
        "Precision@5 horvitz-thompson finds the truth",
        "Precision@5 hajek finds the truth",
        "DCG@5 horvitz-thompson finds the truth",
    ):
        assert line in shown
    assert "AP@10(denominator=positives)" in shown
    assert re.search(r"Random 10 .* 0\.\d\d \(", shown)
    # the commands it suggests are some that work
    for command, answer in (("evaluate", "pooled"), ("advise", "recommended")):
        suggested = re.search(rf"truerank {command} .*?(?=\n\n)", shown, flags=re.S)
        assert suggested is not None
        found = run(suggested[0].replace("\\\n", " "), folder)
        assert found.returncode == 0, found.stderr
        assert answer in found.stdout


def test_commands_of_the_tour(folder: Path) -> None:
    for command in COMMANDS:  # in one test: later ones read what earlier ones wrote
        found = run(command, folder)
        assert found.returncode == 0, found.stderr
        assert found.stdout or "--out" in command


def test_python_of_the_tour(folder: Path) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", README, flags=re.S))
    check = "assert ease_minus_popularity.difference > 0"
    found = subprocess.run(
        [sys.executable, "-c", f"{code}\n{check}"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


def test_the_readme_is_complete() -> None:
    assert len(COMMANDS) >= 5
    for needed in ("make demo", "make test", "docs/random-exposure.md", "Honest limits"):
        assert needed in README
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / link).exists(), link
