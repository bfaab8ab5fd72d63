"""`--require`: what must be shown decides the exit code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from tests.cli.conftest import Run


def test_exit_codes(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    n, items = 60, 30
    liked = rng.random((n, items)) < 0.3
    user, item = np.divmod(np.arange(n * items), items)
    pl.DataFrame({"user": user, "item": item, "label": liked[user, item].astype(int)}).write_csv(tmp_path / "l.csv")
    for name, signal in (("good", 3.0), ("poor", 0.0)):
        score = signal * liked + rng.normal(size=liked.shape)
        pl.DataFrame({"user": user, "item": item, "score": score[user, item]}).write_csv(tmp_path / f"{name}.csv")
    call = [
        "evaluate", str(tmp_path / "l.csv"), "--metric", "Recall@5", "--quiet",
        "--scores", f"good={tmp_path / 'good.csv'}", "--scores", f"poor={tmp_path / 'poor.csv'}",
    ]  # fmt: skip
    assert run(*call, "--require", "good > poor: Recall@5").code == 0
    failed = run(*call, "--require", "poor > good: Recall@5")
    assert failed.code == 5
    assert "Recall@5" in failed.out
    assert "not shown" in failed.err
    assert run(*call, "--require", "good > nobody").code == 2
    assert run(*call, "--require", "good > poor: Recall@6").code == 2
