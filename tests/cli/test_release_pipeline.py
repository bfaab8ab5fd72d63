"""`--require` as a pipeline meets it: its exit codes, and the page that explains them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from calling import Run


@pytest.fixture
def world(folder: Path) -> Path:
    """40 users who like the first of ten items, which `new` ranks first for most and `live` last; and 4 of them."""
    user, item = np.divmod(np.arange(400), 10)
    labels = pl.DataFrame({"user": user, "item": item, "label": (item == 0).astype(np.int64)})
    labels.write_csv(folder / "all.csv")
    labels.filter(pl.col("user") < 4).write_csv(folder / "few.csv")
    scores = np.tile(-np.arange(10.0), (40, 1))
    scores[::5] = scores[::5, ::-1]  # for every fifth user the relevant item is last
    for name, values in (("new", scores), ("live", scores[:, ::-1])):
        np.savez(folder / f"{name}.npz", scores=values, users=np.arange(40), items=np.arange(10))
    return folder


def asked(run: Run, labels: str, *rules: str) -> tuple[int | str, str]:
    require = [part for rule in rules for part in ("--require", rule)]
    call = ("--scores", "new=new.npz", "--scores", "live=live.npz", "--metric", "Recall@5", "--metric", "Precision@5",
            "--baseline", "live")  # fmt: skip
    found = run("evaluate", labels, *call, *require, "--quiet", "--out", "verdicts.json")
    return found.code, found.err


@pytest.mark.parametrize(
    ("labels", "rules", "code", "sentence"),
    [
        ("all.csv", ["new > live: Recall@5, full"], 0, "new > live: Recall@5, full: shown"),
        ("all.csv", ["new > live"], 0, "shown (Recall@5 full (better), Precision@5 full (better))"),
        ("all.csv", ["live > new: Recall@5"], 5, "live > new: Recall@5: not shown (Recall@5 full (worse))"),
        ("few.csv", ["new > live: Recall@5"], 4, "users, and a verdict needs at least 6"),
        ("all.csv", ["new > live", "live > new"], 5, "live > new: not shown"),
        ("all.csv", ["new > old"], 2, "no model 'old'"),
        ("all.csv", ["new > live: Recall@50"], 2, "no such comparison"),
        ("all.csv", ["new"], 2, "expected MODEL > OTHER"),
        ("all.csv", [], 0, ""),
    ],
)
def test_exit_codes(run: Run, world: Path, labels: str, rules: list[str], code: int, sentence: str) -> None:
    found = asked(run, labels, *rules)
    assert found[0] == code
    assert sentence in found[1]
    if code != 2:
        assert Path("verdicts.json").exists()  # results are written before the command leaves
