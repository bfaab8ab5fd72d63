"""The documentation as a site in a real browser: built without a broken link, opened from files, without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

Open = Any  # see conftest
ROOT = Path(__file__).parents[2]


def build(*arguments: str) -> subprocess.CompletedProcess[str]:
    if find_spec("mkdocs") is None or find_spec("material") is None:
        reason = "no mkdocs: pip install --group docs"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", *arguments],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build("--site-dir", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# One\n\n[two](two.md), [three](#three)\n")
    (tmp_path / "docs" / "unlisted.md").write_text("# Unlisted\n")
    (tmp_path / "mkdocs.yml").write_text(
        f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: docs\nhooks: []\nplugins: []\nnav: [index.md]\n"
    )
    done = build("--config-file", str(tmp_path / "mkdocs.yml"), "--site-dir", str(tmp_path / "site"))
    assert done.returncode == 1
    for complaint in ("two.md", "#three", "unlisted.md"):
        assert complaint in done.stderr


def test_every_room_and_every_command_has_its_reference(site: Path) -> None:
    import truerank as tr

    assert 'id="truerank.metrics.additive.Recall"' in (site / "reference" / "metrics.html").read_text()
    assert 'id="truerank.evaluation.labels.evaluate"' in (site / "reference" / "tr.html").read_text()
    page = (site / "reference" / "estimators.html").read_text()
    for estimator in tr.estimators.catalogue().values():
        other_package = not estimator.__module__.startswith("truerank.")
        assert other_package or f'id="{estimator.__module__}.{estimator.__qualname__}"' in page
    assert 'id="truerank-study-reliability"' in (site / "reference" / "commands.html").read_text()
    examples = (site / "reference" / "metrics.html").read_text()
    assert "<blockquote>" not in examples
    assert 'class="gp">&gt;&gt;&gt; ' in examples


@pytest.mark.parametrize(
    ("page", "width", "scheme"),
    [
        ("index.html", 1400, "light"),
        ("index.html", 360, "dark"),
        ("reference/metrics.html", 1400, "dark"),
        ("validation/calibration.html", 360, "light"),
        ("validation/reliability-coverage.html", 1400, "light"),
    ],
)
def test_pages_open_from_files(page: str, width: int, scheme: str, site: Path, opened: Open, axe: str) -> None:
    found = opened(site / page, width=width, scheme=scheme, wait=False, within=site)
    found.page.wait_for_load_state("load")
    assert found.texts("h1")
    assert found.run("document.documentElement.scrollWidth") <= width
    assert found.run("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert found.violations(axe) == []
    assert found.calm, (found.said, found.asked)


def searched(words: str, site: Path, opened: Open) -> tuple[Any, list[str]]:
    """The site after a search, and the pages that it lists, the first one first."""
    found = opened(site / "index.html", wait=False, within=site)
    found.page.fill("input.md-search__input", words)
    found.page.wait_for_selector(".md-search-result__item a")
    links = found.run("[...document.querySelectorAll('.md-search-result__item a')].map(a => a.href)")
    pages = [re.sub(r"[?#].*", "", link).removeprefix(f"{site.as_uri()}/") for link in links]
    return found, list(dict.fromkeys(pages))


@pytest.mark.parametrize("words", ["horvitz", "Recall, precision and DCG from randomly exposed data"])
def test_search_finds_without_a_network(words: str, site: Path, opened: Open) -> None:
    found, pages = searched(words, site, opened)
    assert "random-exposure.html" in pages
    others = [page for page in pages if not page.startswith("reference/")]
    beside = [page.startswith(("validation/", "project/")) for page in others]
    assert beside == sorted(beside), pages  # guides come first
    found.page.locator(".md-search-result__item a").first.click()
    found.until("!location.pathname.endsWith('/index.html') || location.hash !== ''")
    assert found.calm, (found.said, found.asked)
