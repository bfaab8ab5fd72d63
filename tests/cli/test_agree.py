"""truerank agree, as a user calls it."""

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
