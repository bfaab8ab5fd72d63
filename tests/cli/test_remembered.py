"""Results that remember: groups, single users, a saved folder; and files that are read in chunks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from calling import Run

import truerank
from truerank.cli import output
from truerank.report import document

CALL = "evaluate labels.csv --scores b=b.csv --scores a=a.npz --metric Recall@{1,2} --metric DCG@2"


@pytest.fixture
def groups(folder: Path) -> None:
    (folder / "groups.csv").write_text("user,group\n4,new\n1,old\n2,old\n3,new\n9,other\n")


def parsed(run: Run, call: str) -> dict[str, Any]:
    outcome = run(f"{call} --format json").fine()
    content: dict[str, Any] = json.loads(outcome.out)
    return content


# --------------------------------------------------------------------------------------------------------------- groups


@pytest.mark.usefixtures("groups")
def test_groups_answer_the_same_question(run: Run, folder: Path) -> None:
    content = parsed(run, f"{CALL} --within groups.csv")
    assert sorted(content["groups"]) == ["new", "old"]
    lines = (folder / "labels.csv").read_text().splitlines(keepends=True)
    (folder / "old.csv").write_text("".join(line for line in lines if line.startswith(("user", "1,", "2,"))))
    alone = parsed(run, CALL.replace("labels.csv", "old.csv"))
    for within, whole in zip(content["groups"]["old"]["estimates"], alone["estimates"], strict=True):
        assert (within["model"], within["value"], within["low"]) == (whole["model"], whole["value"], whole["low"])
    assert len(content["groups"]["old"]["comparisons"]) == len(content["comparisons"]) == 3
    assert content["estimates"] == parsed(run, CALL)["estimates"]
    inputs = content["provenance"]["inputs"]
    assert ("groups", "groups.csv") in [(entry["role"], entry["source"]) for entry in inputs]


@pytest.mark.usefixtures("groups")
def test_the_schema_knows_groups(run: Run) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(parsed(run, f"{CALL} --within groups.csv"), document.schema())


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("1", "1 quantiles of activity; expected at least 2"),
        ("none.csv", "none.csv: no such file"),
        ("labels.csv", "no column 'group'"),
        ("text.csv", "text never matches numbers"),
    ],
)
def test_groups_that_are_none(run: Run, folder: Path, by: str, words: str) -> None:
    (folder / "text.csv").write_text("user,group\na,x\nb,y\n")
    outcome = run(f"{CALL} --within {by} --quiet --units result/u.parquet --save result/s")
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.message
    assert not list((folder / "result").iterdir())


def test_groups_of_items_are_asked_for(run: Run, folder: Path) -> None:
    (folder / "kinds.csv").write_text("item,group\n10,head\n20,head\n30,tail\n")
    content = parsed(run, f"{CALL} --item-groups kinds.csv")
    assert {estimate["segment"] for estimate in content["estimates"]} == {None, "head", "tail"}
    assert [estimate for estimate in content["estimates"] if estimate["segment"] is None] == parsed(run, CALL)[
        "estimates"
    ]


# ---------------------------------------------------------------------------------------------------------------- units


def test_a_saved_folder_reads_back(run: Run, folder: Path) -> None:
    content = parsed(run, f"{CALL} --save result/saved")
    results = truerank.Results.read(folder / "result" / "saved")
    assert json.loads(results.json()) == content
    assert results.units().height == 4 * 6
    assert results.provenance.call == f"truerank {CALL} --save result/saved --format json --exposure full".replace(
        "Recall@{1,2}", "'Recall@{1,2}'"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--units units.csv", "ends in .parquet"),
        ("--units nowhere/units.parquet", "its folder is missing"),
        ("--save labels.csv", "--save labels.csv"),
        ("--save nowhere/here", "--save nowhere/here"),
    ],
)
def test_places_are_checked_before_any_work(run: Run, options: str, words: str) -> None:
    outcome = run(f"{CALL.replace('labels.csv', 'nothing.csv')} {options}")
    assert outcome.code == 2
    assert words in outcome.message


# --------------------------------------------------------------------------------------------------------------- inputs


def test_large_inputs_are_hashed_only_where_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "HASHED", 200)  # bytes: labels are smaller, scores larger
    for more, hashes in (("", [True, True, False]), ("--hash", [True, True, True])):
        inputs = parsed(run, f"{CALL} {more}")["provenance"]["inputs"]
        assert [entry["sha256"] is not None for entry in inputs] == hashes
        assert all(entry["bytes"] for entry in inputs)
