"""Attacks on the public border, as one table: what is tried, and how it must end.

Every case is a command in this process, or a call of the library: what it prints and writes, what must be in there and
what must not. An internal error is never right.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from calling import call

import truerank as tr

USERS, ITEMS = 12, 8
ESCAPES = "\x1b]0;owned\x07\x9b31m\u202e"
OBEYED = ("\x1b", "\x07", "\x9b", "\u202e", "\x00")
NOT_XML = "\x1b\x01\ufffe\uffff"
SCRIPT, COMMAND = "<script>alert(1)</script>", "\\input{/etc/passwd}"
EVALUATE = ("evaluate", "labels.parquet", "--scores", "a=a.npz", "--metric", "Precision@2", "--quiet")


@dataclass(frozen=True, slots=True)
class Attack:
    """A command and how it must end; of `files`, which it writes, the content counts as printed."""

    what: str
    words: tuple[str, ...]
    code: int = 0
    holds: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    inputs: dict[str, Callable[[Path], Any]] = field(default_factory=dict)


def named(name: str, *more: str) -> tuple[str, ...]:
    return (*EVALUATE, "--scores", f"{name}=b.npz", *more)


def groups(name: str) -> Callable[[Path], Any]:
    rows = {"user": range(USERS), "group": [f"{name}{user % 2}" for user in range(USERS)]}
    return lambda path: pl.DataFrame(rows).write_parquet(path)


WITHIN = (*EVALUATE, "--within", "groups.parquet", "--format")
WATCH = ("watch", "timed.parquet", "--scores", "b=b.npz", "--scores", f"m{NOT_XML}=a.npz", "--require",
         f"b > m{NOT_XML}", "--metric", "Precision@2", "--quiet")  # fmt: skip

ATTACKS = [
    *(
        Attack(f"terminal escapes in a model's name, {form}", named(f"m{ESCAPES}", "--format", form), lacks=OBEYED)
        for form in ("table", "csv", "json", "markdown", "latex")
    ),
    *(
        Attack(f"terminal escapes in a group's name, {form}", (*WITHIN, form), lacks=OBEYED,
               inputs={"groups.parquet": groups(f"g{ESCAPES}")})
        for form in ("table", "csv", "json", "markdown", "latex")
    ),
    Attack("HTML in a group's name, Markdown", (*WITHIN, "markdown"), holds=("&lt;script&gt;",), lacks=("<script>",),
           inputs={"groups.parquet": groups(SCRIPT)}),
    Attack("a command in a group's name, LaTeX", (*WITHIN, "latex"), lacks=("\\input",),
           inputs={"groups.parquet": groups(COMMAND)}),
    *(
        Attack(f"a formula in a group's name, {sign!r}", (*WITHIN, "csv"), holds=(f",'{sign}1+1",),
               inputs={"groups.parquet": groups(f"{sign}1+1")})
        for sign in "=@\uff1d\uff0b\uff0d\uff20"
    ),
    Attack("a line break before a formula", (*WITHIN, "csv"), lacks=("\n=1+1",),
           inputs={"groups.parquet": groups("g\n=1+1")}),
    Attack("no XML in the report", named(f"m{NOT_XML}", "--report", "report.html"), files=("report.html",),
           lacks=("\ufffe", "\uffff", "\x1b")),
    *(
        Attack(f"no XML in the picture of watch, {form}", (*WATCH, "--out", f"watch.{form}"), code=4)
        for form in ("svg", "html")
    ),
]  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with labels of all pairs, with their times, and the scores of two models."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    labels = (rng.random((USERS, ITEMS)) < 0.3).astype(np.int8)
    rows = {
        "user": np.repeat(np.arange(USERS), ITEMS),
        "item": np.tile(np.arange(ITEMS), USERS),
        "label": labels.ravel(),
    }
    pl.DataFrame(rows).write_parquet("labels.parquet")
    pl.DataFrame(rows | {"time": rows["user"]}).write_parquet("timed.parquet")
    for name, weight in (("a", 1.0), ("b", 0.3)):
        scores = labels * weight + rng.normal(size=labels.shape)
        np.savez(f"{name}.npz", scores=scores, users=np.arange(USERS), items=np.arange(ITEMS))
    return tmp_path


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.what)
def test_attack(attack: Attack, here: Path) -> None:
    for name, write in attack.inputs.items():
        write(here / name)
    outcome = call(*attack.words)
    printed = "".join([outcome.out, outcome.err, *((here / name).read_text() for name in attack.files)])
    assert outcome.code == attack.code, outcome
    assert "internal error" not in printed
    assert not [text for text in attack.lacks if text in printed], printed
    assert not [text for text in attack.holds if text not in printed], printed


def test_json_holds_the_names_that_were_given(here: Path) -> None:
    outcome = call(*named(f"m{ESCAPES}", "--format", "json"))
    assert {entry["model"] for entry in json.loads(outcome.out)["estimates"]} == {"a", f"m{ESCAPES}"}


def test_results_are_drawn_whatever_their_names_hold(here: Path) -> None:
    """In a notebook, also after they were saved and read: what XML cannot hold would end the process."""
    labels, scores = tr.read("labels.parquet"), tr.read_scores("a.npz")
    results = tr.evaluate({f"a{NOT_XML}": scores, "b": tr.read_scores("b.npz")}, labels, metrics=["Recall@2"])
    results.save("saved")
    for drawn in (results, tr.Results.read("saved")):
        assert "\\uffff" in drawn._repr_html_()
        drawn.plot.intervals().save("intervals.svg")
        ElementTree.parse("intervals.svg")
