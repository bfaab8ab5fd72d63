"""What holds for all tests: their tier, what a run left out, and that Ctrl-C is heard."""

from __future__ import annotations

import os
import random
import signal
import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent
TIERS = (
    "engines",
    "browser",
    "faults",
    "realdata",
    "lightfm",
    "slow",
)  # each is a marker; whatever has none of them is fast
BY_FOLDER = {ROOT / "tests" / tier: tier for tier in ("engines", "browser", "faults")}

# with --hypothesis-seed (pyproject.toml) the same examples in every run, whatever the text of a test
settings.register_profile("fixed", database=None, deadline=None)
settings.load_profile("fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", help="K/N: only the K-th of N parts of the test files, chosen by their names")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="test files, and the tests of each, in a random order")


def pytest_configure(config: pytest.Config) -> None:
    """Laws draw all their examples where slow tests run too (tests/support/drawn.py).

    In the background SIGINT comes in ignored, and so would it in every process that a test starts and interrupts.
    """
    if "not slow" not in config.getoption("markexpr"):
        os.environ["TRUERANK_EXAMPLES"] = "all"
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A folder whose tier is left out is not even imported: what its tests need may not be installed."""
    return True if f"not {BY_FOLDER.get(collection_path)}" in config.getoption("markexpr") else None


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("part"):
        number, parts = map(int, config.getoption("part").split("/"))
        others = [item for item in items if zlib.crc32(item.path.name.encode()) % parts != number - 1]
        config.hook.pytest_deselected(items=others)
        left = set(others)
        items[:] = [item for item in items if item not in left]
    for item in items:
        for folder, tier in BY_FOLDER.items():
            if folder in item.path.parents:
                item.add_marker(tier)
        if "lightfm" in item.nodeid.lower():  # every case of that model, and its examples
            item.add_marker("lightfm")
    products = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and not item.get_closest_marker("slow"):
            products[item.path, item.originalname].append(item)
    for product in products.values():
        for item in left_out(product):
            item.add_marker("slow")
    if (seed := config.getoption("shuffle")) is not None:
        place = defaultdict[Path, float](random.Random(seed).random)
        random.Random(seed).shuffle(items)
        items.sort(key=lambda item: place[item.path])


def left_out(product: Sequence[pytest.Function]) -> list[pytest.Function]:
    """Of several parameters of one test, every value is drawn with some values of the others; the rest is slow."""
    seen: set[tuple[str, int]] = set()
    rest = []
    for item in random.Random(product[0].originalname).sample(product, len(product)):
        values = {(name, id(value)) for name, value in item.callspec.params.items()}
        if values <= seen:
            rest.append(item)
        seen |= values
    return rest


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A part without a file is no failure."""
    if session.config.getoption("part") and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Green means what was run: after the fast tests, say what was not."""
    if all(f"not {tier}" in config.getoption("markexpr") for tier in TIERS):
        targets = ", ".join(f"{tier} (make test-{tier})" for tier in (*TIERS, "rectools", "research"))
        terminalreporter.write_line(f"not run: {targets}; make test-all runs everything")
