"""What a release may hold, and what is promised of it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import release_check

import truerank

ROOT = Path(__file__).resolve().parents[1]


def _wheel(folder: Path, **files: bytes) -> Path:
    path = folder / "truerank-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {"truerank/__init__.py": b"", "truerank-0.dist-info/METADATA": b"", **files}.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["tests/test_x.py", "truerank/io/kuairec.parquet", "truerank/models/coat.csv"])
def test_a_wheel_holds_no_data_and_nothing_else(tmp_path: Path, name: str) -> None:
    (problem,) = release_check.problems_of(_wheel(tmp_path, **{name: b"x"}))
    assert name in problem


def test_the_shipped_study_is_there_with_its_terms(tmp_path: Path) -> None:
    shipped = ROOT / "src" / release_check.SHIPPED
    files = {path.relative_to(ROOT / "src").as_posix(): path.read_bytes() for path in shipped.rglob("*.parquet")}
    assert files
    assert release_check.problems_of(_wheel(tmp_path, **files)) == []
    assert all(name in (ROOT / "NOTICE").read_text() for name in ("KuaiRec", "Jester"))


def test_one_version_everywhere() -> None:
    assert f"version: {truerank.__version__}" in (ROOT / "CITATION.cff").read_text().splitlines()


def test_an_sdist_holds_what_the_tests_need() -> None:
    listed = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    )
    assert {"src", "tests", "benchmarks", "docs", "SECURITY.md", "CONTRIBUTING.md"} <= listed
    assert all((ROOT / name).exists() for name in listed)


def test_all_has_every_extra_that_installs_from_wheels() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    listed = set(re.findall(r"truerank\[(.*)\]", " ".join(extras["all"]))[0].split(","))
    assert listed == set(extras) - {"all", "lightfm"}
    assert any(line.startswith("lightfm-next") and "python_version" in line for line in extras["all"])


def test_workflows_and_ci_call_targets_that_make_has() -> None:
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), flags=re.M))
    workflows = {path.name: path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")}
    called = set(re.findall(r"run: make ([a-z-]+) ", " ".join(workflows.values())))
    for tier in re.findall(r"tier: \[(.*)\]", workflows["checks.yml"])[0].split(", "):
        called.add(f"test-{tier}")
    called |= set(re.findall(r"target: \[(.*)\]", workflows["weekly.yml"])[0].split(", "))
    called |= set(re.findall(r"^ *step ([a-z-]+)", (ROOT / ".ci" / "run").read_text(), flags=re.M))
    assert {"check", "test", "test-engines", "test-browser", "test-research", "release-check"} <= called
    assert called - {"test-"} <= targets


def test_tests_that_pages_and_targets_name_are_there() -> None:
    pages = [ROOT / "Makefile", ROOT / "CONTRIBUTING.md", ROOT / "tests" / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"\b(?:research/)?tests/[\w/]+\.py\b", page.read_text())}
    assert len(named) > 10
    assert not [name for name in named if not (ROOT / name).is_file()]


@pytest.mark.slow
def test_a_release_is_built_checked_installed_and_tried(tmp_path: Path) -> None:
    """All of `make release-check`; needs an index of packages."""
    subprocess.run([sys.executable, release_check.__file__, "--out", str(tmp_path)], check=True)
    assert {path.suffix for path in tmp_path.iterdir()} == {".whl", ".gz"}


def test_nothing_in_the_package_opens_a_connection() -> None:
    """No telemetry, as docs/stability.md and SECURITY.md say: no module that could is imported."""
    words = (
        "import socket",
        "import urllib",
        "from urllib import",
        "from urllib.request",
        "import http",
        "from http",
        "import requests",
        "import httpx",
    )
    for path in (ROOT / "src").rglob("*.py"):
        lines = [line.strip() for line in path.read_text().splitlines()]
        assert not [line for line in lines if line.startswith(words)], path
    for page in ("docs/stability.md", "SECURITY.md"):
        assert "telemetry" in (ROOT / page).read_text()
