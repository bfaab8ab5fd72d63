"""truerank plan: a table, JSON, CSV and pictures, from a pilot and from assumed figures."""

from __future__ import annotations

import json

import polars as pl
import pytest
from calling import Run

PRECISION = ["--difference", "0.02", "--metric", "Precision@10", "--n-items", "1000", "--value", "0.1"]
REWARDS = ["--difference", "0.01", "--mean-reward", "0.2", "--effective", "0.4"]


def test_assumed_figures_give_a_curve_in_every_form(run: Run) -> None:
    text = run("plan", "exposure", *PRECISION).fine()
    assert text.out.startswith("A difference of 0.02 in Precision@10 needs about 17,696 users with 20 labelled\n")
    plain = json.loads(run("plan", "exposure", *PRECISION, "--format", "json").out)
    rows = [row for row in plain["plan"] if row["estimator"] == "hajek"]
    assert [row["users"] for row in rows if row["per_user"] == 20] == [17696]
    assert run("plan", "exposure", *PRECISION, "--out", "plan.csv").code == 0
    assert len(pl.read_csv("plan.csv")) == len(plain["plan"])
    sessions = json.loads(run("plan", "sessions", *REWARDS, "--per-user", "5", "--format", "json").out)
    assert {row["estimator"] for row in sessions["plan"]} == {"ips", "snips"}


def test_a_pilot_says_what_it_could_have_shown(run: Run) -> None:
    rows = [(user, item, int((user * item) % 5 == 0)) for user in range(40) for item in range(30)
            if (user * 7 + item * 11) % 3 == 0]  # fmt: skip
    pl.DataFrame(rows, schema=["user", "item", "label"], orient="row").write_csv("pilot.csv")
    for name, factor in (("a", 7), ("b", 13)):
        table = [(user, item, (user * factor + item * item) % 31) for user in range(40) for item in range(30)]
        pl.DataFrame(table, schema=["user", "item", "score"], orient="row").write_csv(f"{name}_scores.csv")
    words = ["--difference", "0.1", "--pilot", "pilot.csv", "--scores", "a=a_scores.csv", "--scores", "b=b_scores.csv"]
    found = run("plan", "exposure", *words, "--metric", "Precision@5", "--quiet")
    assert (found.code, found.err) == (0, "")
    assert "10 (at hand)" in found.out
    assert json.loads(run("plan", "exposure", *words, "--metric", "Precision@5", "--format", "json").out)["messages"]
    several = run("plan", "exposure", *words, "--verbose").out
    assert several.splitlines()[0].startswith("A difference of 0.1 on all ")
    assert "Precision@10, hajek: b - a" in several


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["exposure", "--metric", "Precision@10"], "--difference"),
        (["exposure", *PRECISION, "--power", "2"], "power is 2"),
        (["exposure", *PRECISION, "--scores", "a=a.npz"], "--scores goes with --pilot"),
        (["exposure", *PRECISION, "--out", "x.doc"], "unknown ending"),
        (["exposure", *PRECISION, "--pilot", "labels.csv", "--scores", "a=a.npz"], "value 0.1"),
        (["sessions", "--difference", "0.1"], "reward, effective"),
        (["sessions", *REWARDS, "--target", "log=@position"], "--target goes with --pilot"),
    ],
)
def test_one_sentence_for_what_is_wrong(run: Run, args: list[str], message: str) -> None:
    found = run("plan", *args)
    assert found.code == 2
    assert message in found.message
