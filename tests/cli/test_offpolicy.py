"""truerank offpolicy: what it prints, and one thing wrong per case."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from calling import Run

import truerank

LOG = """session,user,item,position,like,done,old,new
1,7,10,1,1,0,1,2
1,7,20,2,0,1,2,1
2,7,10,1,0,0,1,
2,7,30,2,1,1,2,1
3,8,20,1,1,1,1,1
4,9,30,1,0,0,1,2
4,9,10,2,1,0,2,1
4,9,20,3,0,1,3,3
"""
RANKS = """session,item,rank
1,20,1
1,10,2
2,30,1
2,10,2
3,20,1
3,10,2
4,10,1
4,30,2
4,20,3
"""
CALL = "offpolicy log.csv --reward like --target new=ranks.csv --target log=@position --position exp:0.5"
COLUMN = "offpolicy log.csv --reward like --target new=@new"
Spoil = Callable[[Path], object]


@pytest.fixture(autouse=True)
def _files(folder: Path) -> None:
    (folder / "log.csv").write_text(LOG)
    (folder / "ranks.csv").write_text(RANKS)


def called(run: Run, call: str) -> dict[str, list[dict[str, object]]]:
    outcome = run(f"{call} --format json --quiet").fine()
    content: dict[str, list[dict[str, object]]] = json.loads(outcome.out)
    return content


def test_values_that_can_be_checked_by_hand(run: Run) -> None:
    """Σ like · w per session: 0.5; 2; 1; 2 for new, and 1, 1, 1, 1 for the log itself; exposures are 1, .5, .25."""
    content = called(run, f"{CALL} --estimator 'ips(of=inverse)' --baseline log --clip 1,inf")
    assert [(each["model"], each["clip"], each["value"]) for each in content["estimates"]] == [
        ("new", 1.0, (0.5 + 1 + 1 + 1) / 4),
        ("new", None, (0.5 + 2 + 1 + 2) / 4),
        ("log", 1.0, (1 + 0.5 + 1 + 0.5) / 4),
        ("log", None, 1.0),
    ]
    assert [(each["model"], each["baseline"], each["difference"]) for each in content["comparisons"]] == [
        ("new", "log", 0.125), ("new", "log", 0.375),
    ]  # fmt: skip
    assert {each["reward"] for each in content["comparisons"]} == {"like"}
    # the default limits ε/ε0: the log keeps what it has earned
    content = called(run, f"{CALL} --estimator ips --clip 1")
    assert [each["value"] for each in content["estimates"]] == [(0.5 + 1 + 1 + 1) / 4, 1.0]


def test_defaults_several_rewards_and_a_column_as_target(run: Run) -> None:
    call = "offpolicy log.csv --reward like --reward done --target new=@new --position exp:0.5"
    content = called(run, call)
    # without the whole list snips per session is left out with a message
    assert {each["estimator"] for each in content["estimates"]} == {"ips"}
    assert [each["reward"] for each in content["estimates"]] == ["like", "done"]
    # in session 2 the target never shows item 10
    assert content["estimates"][0]["value"] == (0.5 + 2 + 1 + 2) / 4
    content = called(run, f"{call} --normaliser impression")
    assert {each["estimator"] for each in content["estimates"]} == {"ips", "snips"}


def test_sessions_without_a_row_count(run: Run, folder: Path) -> None:
    (folder / "all.csv").write_text("session\n1\n2\n3\n4\n5\n")
    content = called(run, f"{CALL} --estimator ips --sessions all.csv")
    values = {each["model"]: (each["value"], each["undefined"]) for each in content["estimates"]}
    assert values["log"] == (4 / 5, 0)
    assert values["new"] == (5.5 / 4, 1)  # session 5 has no ranking of the target


def test_propensities_instead_of_positions(run: Run, folder: Path) -> None:
    (folder / "rows.csv").write_text("item,reward,propensity,target\n1,1,0.5,0.25\n2,0,0.25,0.5\n1,1,0.5,0.5\n")
    content = called(run, "offpolicy rows.csv --target new=@exposure:target")
    assert [(each["metric"], each["estimator"], each["value"]) for each in content["estimates"]] == [
        ("reward per impression", "ips", 0.5), ("reward per impression", "snips", 1.5 / 3.5),
    ]  # fmt: skip


def test_several_loggers(run: Run, folder: Path) -> None:
    frame = pl.read_csv(folder / "log.csv").with_columns(
        logger=pl.when(pl.col("user") == 7).then(pl.lit("a")).otherwise(pl.lit("b"))
    )
    frame.with_columns(pl.col("new").fill_null(2)).write_csv(folder / "two.csv")
    call = "offpolicy two.csv --reward like --target new=ranks.csv --position exp:0.5 --estimator ips"
    content = called(run, f"{call} --logger a=@old --logger b=@new")
    assert content["provenance"]["settings"]["strata"] == "logger"  # type: ignore[call-overload]


def test_results_remember_sessions(run: Run, folder: Path) -> None:
    (folder / "groups.csv").write_text("session,group\n1,early\n2,early\n3,late\n4,late\n")
    call = f"{CALL} --estimator ips --within groups.csv --units result/u.parquet --save result/saved"
    content: dict[str, Any] = called(run, call)
    values = [content["groups"][name]["estimates"][1]["value"] for name in ("early", "late")]
    assert sum(values) / 2 == content["estimates"][1]["value"]
    assert pl.read_parquet(folder / "result" / "u.parquet")["unit"].unique().sort().to_list() == [1, 2, 3, 4]
    assert truerank.Results.read("result/saved").provenance.call == content["provenance"]["call"]
    assert [(each["role"], each["name"], each["source"]) for each in content["provenance"]["inputs"]] == [
        ("log", None, "log.csv"), ("target", "new", "ranks.csv"), ("groups", None, "groups.csv"),
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ bad input


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    call: str
    words: tuple[str, ...]
    spoil: Spoil = lambda folder: None


def swap(name: str, old: str, new: str) -> Spoil:
    def spoil(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return spoil


def extra(name: str, values: str) -> Spoil:
    def spoil(folder: Path) -> None:
        lines = (folder / "log.csv").read_text().splitlines()
        added = [f"{line},{value}" for line, value in zip(lines, [name, *values.split()], strict=True)]
        (folder / "log.csv").write_text("\n".join(added) + "\n")

    return spoil


CASES = [
    Case("position 0", CALL, ("log.csv", "row 2", "position is 0", "from 1"),
         swap("log.csv", "1,7,20,2,", "1,7,20,0,")),
    Case("position 1.5", CALL, ("log.csv", "position is 1.5"), swap("log.csv", "1,7,20,2,", "1,7,20,1.5,")),
    Case("two items at a position", CALL, ("session 1", "two items at one position", "surface"),
         swap("log.csv", "1,7,20,2,", "1,7,20,1,")),
    Case("an item twice", CALL, ("session 1", "item 10 twice"), swap("log.csv", "1,7,20,2,", "1,7,10,2,")),
    Case("a session of two users", CALL, ("session 1", "two users"), swap("log.csv", "1,7,20,2,", "1,8,20,2,")),
    Case("a missing reward", CALL, ("log.csv", "'like'", "row 1", "finite number"),
         swap("log.csv", "1,7,10,1,1,", "1,7,10,1,,")),
    Case("a reward in words", CALL, ("log.csv", "'like'", "yes"), swap("log.csv", "1,7,10,1,1,", "1,7,10,1,yes,")),
    Case("no such reward", CALL.replace("like", "likes"), ("log.csv", "no column 'likes'", "like")),
    Case("no reward named", CALL.replace("--reward like", ""), ("log.csv", "no value column", "--reward")),
    Case("a propensity of 0", CALL, ("log.csv", "propensity is 0", "(0, 1]"), extra("propensity", "0 1 1 1 1 1 1 1")),
    Case("viewed is 2", CALL, ("log.csv", "viewed is 2", "0 or 1"), extra("viewed", "2 1 1 1 1 1 1 1")),
    Case("a reward without a view", CALL, ("session 1", "like", "not viewed"), extra("viewed", "0 1 1 1 1 1 1 1")),
    Case("candidates differ", CALL, ("log.csv", "candidates differ"), extra("candidates", "5 6 5 5 5 5 5 5")),
    Case("an empty log", CALL, ("log.csv", "no rows"),
         lambda folder: (folder / "log.csv").write_text(LOG.splitlines()[0] + "\n")),
    Case("no item column", CALL, ("log.csv", "no column 'item'", "--columns item="), swap("log.csv", "item", "thing")),
    Case("no position column", CALL, ("log.csv", "needs the column position"), swap("log.csv", "position", "height")),
    Case("no position model", CALL.replace("--position exp:0.5", ""), ("position model", "--position")),
    Case("an unknown position model", f"{CALL} --position cubic", ("cubic", "expected")),
    Case("a position beyond the cut-off", f"{CALL} --position exp:0.5@1 --estimator ips",
         ("position 2", "infinite", "cut-off")),
    Case("no target", "offpolicy log.csv --position log", ("--target",)),
    Case("a target without a name", f"{CALL} --target =x.csv", ("--target", "NAME=FILE")),
    Case("a target twice", f"{CALL} --target new=@new", ("'new' is given twice",)),
    Case("a target that is not there", CALL.replace("ranks.csv", "nowhere.csv"), ("nowhere.csv", "no such file")),
    Case("no such column", f"{CALL} --target other=@others", ("no column 'others'", "log.csv")),
    Case("a rank of 0 in a column", f"{CALL} --target other=@new", ("other", "rank of 0"),
         swap("log.csv", ",1,1,1,1\n4", ",1,1,1,0\n4")),
    Case("a rank of 0", CALL, ("ranks.csv", "rank of 0 in row 1"), swap("ranks.csv", "1,20,1", "1,20,0")),
    Case("a rank twice", CALL, ("ranks.csv", "two items at rank 1"), swap("ranks.csv", "1,10,2", "1,10,1")),
    Case("an item ranked twice", CALL, ("ranks.csv", "item 20 is twice"), swap("ranks.csv", "1,10,2", "1,20,2")),
    Case("neither rank nor exposure", CALL, ("ranks.csv", "neither rank nor exposure"),
         swap("ranks.csv", "rank", "place")),
    Case("scores and no word on how they rank", CALL, ("ranks.csv", "--temperature 0 ranks them in order"),
         swap("ranks.csv", "rank", "score")),
    Case("exposure above 1", CALL, ("ranks.csv", "exposure of 2 in row"), swap("ranks.csv", "rank", "exposure")),
    Case("no session in common", CALL, ("ranks.csv", "no session in common"),
         lambda folder: (folder / "ranks.csv").write_text("session,item,rank\n77,10,1\n")),
    Case("sessions as text", CALL, ("ranks.csv", "text never matches numbers"),
         lambda folder: (folder / "ranks.csv").write_text("session,item,rank\nx,10,1\n")),
    Case("a baseline that is no target", f"{CALL} --baseline old", ("baseline 'old'", "new, log")),
    Case("a clip of 0", f"{CALL} --clip 0", ("--clip '0'", "positive")),
    Case("a clip in words", f"{CALL} --clip lots", ("--clip 'lots'", "auto")),
    Case("a range of one number", f"{CALL} --reward-range 5", ("--reward-range '5'", "two numbers")),
    Case("a range in words", f"{CALL} --reward-range a,b", ("--reward-range 'a'", "numbers")),
    Case("a range the wrong way round", f"{CALL} --reward-range 5,0", ("--reward-range 5,0", "smaller one first")),
    Case("rewards outside of their range", f"{CALL} --reward-range 0,2", ("log.csv", "like has values from 0 to 3"),
         swap("log.csv", "1,7,10,1,1,", "1,7,10,1,3,")),
    Case("an unknown thing to limit", f"{CALL} --estimator 'ips(of=weight)'", ("of", "ratio", "inverse")),
    Case("an unknown estimator", f"{CALL} --estimator ipz", ("unknown estimator 'ipz'", "Did you mean ips")),
    Case("doubly robust without lists", f"{COLUMN} --position log --estimator doubly-robust",
         ("doubly-robust", "all items", "ips")),
    Case("snips without views", f"{CALL} --rows displayed --estimator snips", ("snips", "what was viewed", "ips")),
    Case("fitting depths of displayed items", f"{CALL} --rows displayed --position fit:yule",
         ("scroll depths", "fit:clicks")),
    Case("a bootstrap with a fitted position model", f"{CALL} --position fit:exp --bootstrap 50",
         ("fitted position models", "--bootstrap")),
    Case("no such target column", f"{COLUMN.replace('@new', '@niew')} --position log",
         ("log.csv", "no column 'niew'", "Did you mean 'new'?")),
    Case("ndcg of negative rewards", f"{CALL} --estimator ndcg", ("ndcg", "like has negative values", "ips"),
         swap("log.csv", "1,7,10,1,1,", "1,7,10,1,-1,")),
    Case("snips as a mean of means", f"{CALL} --normaliser mean-of-means --estimator snips", ("snips", "use ips")),
    Case("level 95", f"{CALL} --level 95", ("level is 95",)),
    Case("a logger without a column", f"{CALL} --logger a=@new", ("no column logger",)),
    Case("a logger without exposures", f"{CALL} --logger a=@new", ("logger b", "--logger"),
         extra("logger", "a a a a b b b b")),
    Case("a declared session is missing", f"{CALL} --sessions all.csv", ("log.csv", "session 2", "not among"),
         lambda folder: (folder / "all.csv").write_text("session\n1\n3\n4\n")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input(case: Case, run: Run, folder: Path) -> None:
    case.spoil(folder)
    before = sorted(path.name for path in folder.iterdir())
    outcome = run(f"{case.call} --quiet")
    assert outcome.code == 2, outcome.out + outcome.err
    assert outcome.out == ""
    for words in case.words:
        assert words in outcome.message
    assert sorted(path.name for path in folder.iterdir()) == before
