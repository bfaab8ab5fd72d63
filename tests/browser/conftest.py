"""One browser for all tests of a process, pages without any network, and what checks their accessibility."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

AXE = "4.14.0"
AXE_RUN = "axe.run(document, {preload: false})"  # what it would fetch again, pages from files may not
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
WAIT = 180_000  # milliseconds, on a busy machine


def missing(what: str) -> None:
    """A skip with its reason, except in CI, where it is a failure."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


@dataclass(slots=True)
class Opened:
    """A page, with all that it said, asked for and showed on its own."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    @property
    def calm(self) -> bool:
        """Nothing was logged, nothing was asked of a network, no dialog opened."""
        return not (self.said or self.asked or self.dialogs)

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.page.locator(selector).all_text_contents()
        return found

    def run(self, program: str) -> Any:
        return self.page.evaluate(program)

    def violations(self, axe: str) -> list[str]:
        """What axe-core finds, in words; its program runs beside the page, whose policy allows no other."""
        session = self.page.context.new_cdp_session(self.page)
        session.send("Runtime.evaluate", {"expression": axe, "allowUnsafeEvalBlockedByCSP": True})
        answer = session.send(
            "Runtime.evaluate",
            {"expression": f"{AXE_RUN}.then(found => JSON.stringify(found.violations))", "awaitPromise": True,
             "returnByValue": True},
        )  # fmt: skip
        found = json.loads(answer["result"]["value"])
        return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]

    def until(self, condition: str) -> None:
        """Wait for a condition. Asked again from here: a page that forbids `eval` cannot ask itself."""
        end = time.monotonic() + WAIT / 1000
        while not self.run(condition):
            assert time.monotonic() < end, f"never: {condition}"
            self.page.wait_for_timeout(20)


Open = Callable[..., Opened]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        missing("no chromium: install Debian's package")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("no playwright: pip install playwright")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(headless=True, executable_path=program, args=list(FLAGS))
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def opened(browser: Any) -> Iterator[Open]:
    """Open a file: every request that is not for the file itself, or `within` its folder, is blocked and noted."""
    contexts = []

    def visit(
        path: Path, *, width: int = 1400, scheme: str = "light", wait: bool = True, within: Path | None = None
    ) -> Opened:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        context.set_default_timeout(WAIT)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        found = Opened(page)

        def handle(route: Any) -> None:
            asked = route.request.url
            if asked == path.as_uri() or (within is not None and asked.startswith(f"{within.as_uri()}/")):
                route.continue_()
            else:
                found.asked.append(asked)
                route.abort()

        page.route("**/*", handle)
        page.on("console", lambda message: found.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: found.said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: [found.dialogs.__iadd__([dialog.message]), dialog.dismiss()])
        page.goto(path.as_uri(), timeout=WAIT)
        if wait:
            page.wait_for_selector("html[data-ready=yes]", timeout=WAIT)
        return found

    yield visit
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program of axe-core, fetched once from npm and kept outside the project."""
    place = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "truerank-tests" / f"axe-core-{AXE}.js"
    if not place.is_file():
        folder = tmp_path_factory.mktemp("axe")
        npm = shutil.which("npm")
        if npm is None:
            missing("no npm: install Debian's package, to fetch axe-core")
        done = subprocess.run(
            [str(npm), "pack", "--silent", f"axe-core@{AXE}"], cwd=folder, capture_output=True, check=False
        )
        archive = folder / f"axe-core-{AXE}.tgz"
        if done.returncode or not archive.is_file():
            missing(f"axe-core {AXE} cannot be fetched from npm")
        with tarfile.open(archive) as packed:
            content = packed.extractfile("package/axe.min.js")
            assert content is not None
            place.parent.mkdir(parents=True, exist_ok=True)
            part = place.with_suffix(f".{os.getpid()}")
            part.write_bytes(content.read())
            part.replace(place)
    return place.read_text()
