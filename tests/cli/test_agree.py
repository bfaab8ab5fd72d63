"""truerank agree and truerank reproduce, as a user calls them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from calling import call

OFFLINE = """day,estimator,difference,stderr,note
1,ips,0.1,0.01,
2,ips,0.2,0.1,x
3,ips,0.3,0.02,
1,ndcg,0.3,0.1,
2,ndcg,-0.2,0.1,
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("off.csv").write_text(OFFLINE)
    Path("on.csv").write_text("day,difference\n1,0.1\n2,0.2\n3,0.4\n")
    Path("empty.csv").write_text("day,difference\n")
    Path("other.csv").write_text("day,difference\n7,0.1\n")
    Path("text.csv").write_text("day,difference\n1,many\n")


def rows(*words: str) -> list[dict[str, Any]]:
    found = call("agree", "off.csv", "on.csv", *words, "--format", "csv")
    assert found.code == 0, found.err
    return list(csv.DictReader(io.StringIO(found.out)))


def test_groups_are_compared_by_themselves() -> None:
    first, second = rows("--differences", "--of", "estimator")
    assert (first["estimator"], first["n"], first["left_out"], float(first["kendall"])) == ("ips", "3", "0", 1.0)
    assert (second["estimator"], second["n"], second["left_out"]) == ("ndcg", "2", "1")
    assert float(second["sign_agreement"]) == 0.5
    assert float(first["found"]) == pytest.approx(2 / 3)
    content = json.loads(
        call("agree", "off.csv", "on.csv", "--differences", "--of", "estimator", "--format", "json").out
    )
    assert content["agreement"][1]["kendall_low"] is None


def test_it_is_told_in_words() -> None:
    found = call("agree", "off.csv", "on.csv", "--differences", "--on", "day", "--of", "estimator")
    assert "Kendall's tau" in found.out
    assert "right signs               50.0%" in found.out
    assert "left out" in found.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["off.csv", "on.csv"], "no column value"),
        (["off.csv", "on.csv", "--differences", "--of", "day"], "day 1 has more than one row"),
        (["off.csv", "on.csv", "--differences", "--on", "week"], "no column 'week'"),
        (["off.csv", "empty.csv", "--differences"], "no rows"),
        (["off.csv", "other.csv", "--differences", "--of", "estimator"], "no row has the day"),
        (["off.csv", "text.csv", "--differences", "--of", "estimator"], "column 'difference'"),
        (["off.csv", "nowhere.csv"], "nowhere.csv"),
        (["off.csv", "on.csv", "--differences", "--level", "2"], "level 2"),
        (["off.csv", "on.csv", "--differences", "--out", "off.csv"], "would be replaced"),
    ],
)
def test_what_cannot_be_compared_is_refused(words: list[str], said: str) -> None:
    found = call("agree", *words)
    assert found.code == 2
    assert said in found.err


def test_experiments_are_found_by_table_and_figure() -> None:
    found = json.loads(call("reproduce", "list", "--format", "json").out)["experiments"]
    shown = {each["experiment"]: each["shows"] for each in found}
    assert shown["E-D1"] == "Table 1"
    assert shown["E-D2"] == "Figure 2"
    assert all(each["minutes"] or each["not here"] for each in found)
    assert call("reproduce", "list").out.count("experiment  E-") == len(found)


def test_an_experiment_leaves_its_results_and_pages_are_made_of_them() -> None:
    found = call("reproduce", "e-d1", "--out", "run", seconds=60)
    assert (found.code, "✓ holds: The numbers of Table 1." in found.out) == (0, True), found.err
    names = {path.name for path in Path("run").iterdir()}
    assert {"E-D1.json", "obtained.csv", "report.md", "E-D1-order.svg", "experiment.json"} <= names
    assert Path("run/obtained.csv").read_text().startswith("table,row,column,obtained,published,low,high,tolerance\n")
    assert call("reproduce", "E-D1", "--out", "run", seconds=60).code == 0  # done: the same again
    Path("results").mkdir()
    Path("results/E-D1.json").write_bytes(Path("run/E-D1.json").read_bytes())
    assert call("reproduce", "pages", "results", "--out", "pages", seconds=60).code == 0
    assert "✓ holds" in Path("pages/dcg.md").read_text()
    again = call("reproduce", "pages", "results", "--out", "pages", seconds=60)
    assert (again.code, "--force" in again.err) == (2, True)


def test_an_interrupted_experiment_is_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    from truerank.studies.papers.dcg import movielens

    made = movielens._KUNNPiece.table

    def interrupted(self: movielens._KUNNPiece) -> object:
        raise KeyboardInterrupt

    words = ("reproduce", "E-D2", "--data", "synthetic", "--size", "quick", "--threads", "1", "--out", "run")
    monkeypatch.setattr(movielens._KUNNPiece, "table", interrupted)
    found = call(*words, seconds=120)
    assert (found.code, "what is done is kept" in found.err) == (3, True), found.err
    kept = {path.name: path.stat().st_mtime_ns for path in Path("run").glob("*.block")}
    assert len(kept) >= 2
    monkeypatch.setattr(movielens._KUNNPiece, "table", made)
    assert call(*words, seconds=120).code == 0
    assert kept.items() <= {path.name: path.stat().st_mtime_ns for path in Path("run").glob("*.block")}.items()
    assert Path("run/E-D2-synthetic.json").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["E-D2", "--out", "new"], "E-D2 reads movielens-1m: say --data DIR, or --data synthetic."),
        (["E-D2", "--data", "nowhere", "--out", "new"], "nowhere: no such folder"),
        (["E-D2", "--data", ".", "--out", "new"], "movielens"),
        (["E-D1", "--data", ".", "--out", "new"], "E-D1 needs no data; leave --data out."),
        (["E-D3", "--out", "new"], "E-D5"),
        (["E-D9", "--out", "new"], "No such command 'E-D9'"),
        (["pages", "nowhere", "--out", "new"], "nowhere: no such folder"),
        (["pages", ".", "--out", "new"], "no result of an experiment"),
    ],
)
def test_what_cannot_be_reproduced_is_refused(words: list[str], said: str) -> None:
    found = call("reproduce", *words, seconds=60)
    assert found.code == 2
    assert said in found.err
    assert not Path("new/E-D2.json").exists()
