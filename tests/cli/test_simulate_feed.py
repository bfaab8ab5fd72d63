"""truerank simulate feed."""

from __future__ import annotations

import json
from pathlib import Path

from calling import Run

SMALL = "simulate feed --out feed --n-sessions 50 --kinds 2 --n-items 20 --pool 6 --n-candidates 4 --length 3 --days 2"
BROKEN = "--break trust --break truncation --n-loggers 2"


def test_a_feed_is_written(run: Run) -> None:
    outcome = run(f"{SMALL} {BROKEN}").fine()
    assert "broken on purpose: truncation, trust" in outcome.err
    assert json.loads(Path("feed/truth.json").read_text())["settings"]["broken"] == ["truncation", "trust"]


def test_sessions_are_rounded_up_to_whole_users(run: Run) -> None:
    outcome = run(SMALL.replace("--n-sessions 50", "--n-sessions 3"))
    assert "4 sessions instead of 3" in outcome.err
    assert "instead of" not in run(SMALL.replace("--out feed", "--out other")).err
