"""Yahoo! R3, which few may use, on generated files in its format: both papers take it where it is given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from truerank.datasets.dataset import PublishedSize
from truerank.datasets.ratings import YahooR3
from truerank_research.claims import Cell, Cells, Verdict
from truerank_research.papers.ure import entrapment, reevaluation_claims
from truerank_research.papers.ure.data import CoatBlock, coat_split
from truerank_research.papers.ure.training import TABLE_4, factor_table, on_random_part
from truerank_research.papers.wtd import SETS, table_2
from truerank_research.runner import Run, Source

USERS, RATED, ITEMS = 60, 40, 50


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Sixty users chose 12 songs each; 40 of them rated 10 random others."""
    rng = np.random.default_rng(3)
    folder = tmp_path / "yahoo_r3"
    folder.mkdir()
    order = [rng.permutation(ITEMS) for _ in range(USERS)]
    sizes = {}
    for part, name, users, first, last in zip(
        ("train", "random"), YahooR3.files, (USERS, RATED), (0, 12), (12, 22), strict=True
    ):
        rows = [(user, item + 1, rng.integers(1, 6)) for user in range(users) for item in order[user][first:last]]
        (folder / name).write_text("".join(f"{user + 1}\t{item}\t{rating}\n" for user, item, rating in rows))
        sizes[part] = PublishedSize(users, ITEMS, len(rows), sum(int(rating > 3) for *_, rating in rows))
    monkeypatch.setattr(YahooR3, "published", sizes)
    return Run(Source(tmp_path))


def test_the_intervention_paper_takes_it(run: Run) -> None:
    means = table_2.yahoo_means(run)
    assert 0 < means.mean("PosPop", "truth")[0] < 1
    assert np.isfinite(means.percent("MF", "WTD_H")[0])
    random, chosen = table_2.yahoo_facts(run.setting)
    assert (random["ratings"], random["users"], chosen["ratings"], chosen["users"]) == (400, 40, 480, 40)
    claim = table_2.CLAIMS[-1]
    assert claim.rule(Cells(())).verdict is Verdict.UNTESTABLE
    off = dict(zip(SETS, (280, 272, -14, -68, -79), strict=True))
    printed = [Cell(table_2.YAHOO, "PosPop", f"{test}, %", value) for test, value in off.items()]
    assert claim.rule(Cells(tuple(printed))).verdict is Verdict.REPLICATES


def test_the_unbiased_recall_paper_takes_it(run: Run) -> None:
    block = CoatBlock(run.setting, YahooR3.name)
    split, labelled = coat_split(block)
    assert len(split.uniform) + labelled.sum() == 400
    popular = np.bincount(split.train.item, weights=split.train.label, minlength=ITEMS).astype(float)
    values = on_random_part(block, factor_table(np.ones((USERS, 1)), popular[:, None]), (5, 50))
    assert values["Recall@5̄"] > values["URE@5"]
    assert values["URE@50"] == pytest.approx(1)  # all items are in the list
    best = next(claim for claim in entrapment.CLAIMS if claim.key == "yahoo")
    columns = next(claim for claim in reevaluation_claims.CLAIMS if claim.key == "yahoo")
    cells = [
        Cell(entrapment._table(entrapment.YAHOO, "recall"), name.split()[1], f"{name.split()[0]}, Recall@5̄", numbers[5])
        for name, numbers in TABLE_4.items()
    ]
    cells.append(Cell(reevaluation_claims.YAHOO_TABLE, "MF Bias", "URE@5", 0.013, 0.0131, tolerance=0.00131))
    assert [claim.rule(Cells(tuple(cells))).verdict for claim in (best, columns)] == [Verdict.REPLICATES] * 2
    assert isinstance(columns.rule(Cells(())).why, str)
