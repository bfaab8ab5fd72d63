"""The studies that come with the package: advice at once, by the nearest, and never stronger than what was measured."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from calling import call
from refusals import refused

import truerank as tr
from truerank.core.log import Log
from truerank.io.atomic_write import check_folder
from truerank.reliability import advice_for, advise
from truerank.reliability.advice_words import verdict
from truerank.reliability.studied import (
    KIND,
    LOGS,
    NEEDED,
    NOTE,
    QUESTIONS,
    SHIPPED,
    WORLD,
    FinishedStudy,
    LogProfile,
    shipped_datasets,
    shipped_studies,
)

ROOT = Path(__file__).parents[2]


def shown(users: int, items: int, *, rows: int, liked: float, favour: float = 0.0) -> Log:
    """So many rows per user, by chance or early items more often; every item liked equally often."""
    rng = np.random.default_rng(0)
    weight = np.exp(-favour * np.arange(items) / items)
    item = np.concatenate([rng.choice(items, rows, replace=False, p=weight / weight.sum()) for _ in range(users)])
    table = {"user": np.repeat(np.arange(users), rows), "item": item, "label": rng.random(users * rows) < liked}
    return tr.read(pl.DataFrame(table))


def test_advice_at_once_in_a_folder_with_nothing_but_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = shown(300, 60, rows=15, liked=0.2)
    frame = pl.DataFrame({"user": log.user, "item": log.item, "label": log.label.astype(int)})
    frame.write_csv(tmp_path / "log.csv")
    monkeypatch.chdir(tmp_path)
    call("advise log.csv --quiet --n-users 300").fine()
    said = json.loads(call("advise log.csv --quiet --n-users 300 --format json").out)
    assert said["candidates"]["study"]["shipped"] == ["Jester", "KuaiRec"]
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_a_metric_that_one_of_them_has_decides_which() -> None:
    few = shown(400, 80, rows=20, liked=0.25)
    assert advise(few, metric="nDCG@100").source.startswith("KuaiRec")
    with refused("'Recall@7' is in none of the studies that come with truerank; expected one of"):
        advise(few, metric="Recall@7")


@pytest.mark.parametrize("studied", shipped_studies(), ids=lambda each: str(each.source))
def test_no_headline_is_stronger_than_what_was_measured(studied: FinishedStudy) -> None:
    """Over logs of many kinds: "use" is said only inside of what was measured, where most orders are known."""
    said = set()
    for items, sparsity, (spread, lift), liked in product(
        (40, 80, 1000, 3327, 50_000), (0.1, 0.6, 0.93, 0.9995), ((0.0, 0.0), (0.8, 1.3), (3.0, 0.1)), (0.05, 0.3)
    ):
        rows = int(1000 * items * (1 - sparsity)) + 1
        look = LogProfile(1000, items, items, rows, int(rows * liked) + 1, spread, lift)
        found = advice_for(studied, look, users=500, sparsity=look.sparsity)
        words, unlike = verdict(found), found.outside
        firm = ", use " in words or ", rank all items" in words
        said.add(firm)
        assert not (firm and (unlike or 2 * found.pairs < found.all_pairs)), words
        assert words.startswith("Outside of what was measured: ") == bool(unlike)
        assert f"of {found.all_pairs} pairs" in words or f"all {found.all_pairs} pairs" in words
        assert found.recommended.tau == 1 or "tau 1.00" not in words
    assert said == {False, True}


@pytest.mark.parametrize("folder", shipped_datasets(), ids=str)
def test_what_is_shipped_is_small_whole_and_aggregated(folder: str) -> None:
    place, world = SHIPPED / folder, shipped_datasets()[folder]
    marker = check_folder(place, kind=KIND, expected="a study")
    assert set(marker.files) == {NOTE, WORLD, *NEEDED}
    for name, columns in NEEDED.items():
        table = pl.read_parquet(place / name)
        assert tuple(table.columns) == columns  # scenarios and figures: no user, no item
        if "question" in columns:
            assert set(table["question"]) == set(QUESTIONS)
        if name != LOGS:
            scenarios = table.select("logger", "sparsity", "sampler", "size", "metric").n_unique()
            assert scenarios == 3 * 27 * table["sparsity"].n_unique() * table["metric"].n_unique()
    notice = (ROOT / "NOTICE").read_text()
    assert f"{world.name} (src/truerank/reliability/shipped/{folder})" in notice
    assert "CC BY-SA 4.0" in world.terms or "research use" in world.terms
