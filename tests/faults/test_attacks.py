"""The table of attacks (`support/attacks.py`) on the command line, and what only Python can be given."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from attacks import ATTACKS, ESCAPES, ITEMS, NOT_XML, USERS, Attack, make_input, named
from calling import call
from refusals import refused

import truerank as tr


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
    for name, content in attack.inputs.items():
        make_input(content, here / name)
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    outcome = call(*attack.words)
    assert {path: path.read_bytes() for path in before if path.is_file()} == before
    printed = "".join([outcome.out, outcome.err, *((here / name).read_text() for name in attack.files)])
    assert outcome.code in (attack.code if isinstance(attack.code, tuple) else (attack.code,)), outcome
    assert "internal error" not in printed
    assert "Traceback" not in printed
    if attack.value is not None:
        assert json.loads(outcome.out)["estimates"][0]["value"] == pytest.approx(attack.value)
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


def test_errors_are_public(here: Path) -> None:
    assert issubclass(tr.RefusedError, tr.InputError)
    assert issubclass(tr.InputError, tr.TruerankError)
    with pytest.raises(tr.TruerankError):
        tr.read("none.parquet")


def test_scores_are_those_of_the_call(here: Path) -> None:
    matrix = np.random.default_rng(2).normal(size=(USERS, ITEMS))
    scores, labels = tr.scores.dense(matrix), tr.read("labels.parquet")
    before = tr.evaluate({"a": scores}, labels, metrics=["Recall@2"]).estimates[0].value
    matrix[:] = -matrix
    assert tr.evaluate({"a": scores}, labels, metrics=["Recall@2"]).estimates[0].value == before


def test_frames_of_pandas_that_are_no_table(here: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[1, 1, 1, 0]], columns=["user", "item", "label", "label"])
    with refused("two columns"):
        tr.read(frame)
    with refused("several types"):
        tr.read(pandas.DataFrame({"user": [1, "a"], "item": [1, 2], "label": [1, 0]}))


def test_damaged_results_are_refused(here: Path) -> None:
    """Whatever byte of saved results is changed: they are read, or refused in a sentence."""
    tr.evaluate({"a": tr.read_scores("a.npz")}, tr.read("labels.parquet"), metrics=["Recall@2"]).save("saved")
    content = (here / "saved" / "results.json").read_bytes()
    rng = np.random.default_rng(3)
    for _ in range(300):
        damaged = bytearray(content)
        for place in rng.integers(len(damaged), size=rng.integers(1, 4)):
            damaged[place] = rng.integers(32, 127)
        (here / "damaged.json").write_bytes(bytes(damaged))
        try:
            tr.Results.read("damaged.json")
        except tr.InputError:
            continue


def test_secrets_are_not_saved() -> None:
    secret = "s3://me:hunter2@logs/a?sig=hunter2"
    from truerank.core.provenance import Input, Provenance

    saved = Provenance(call=f"truerank {secret}", settings={"engine": secret}, inputs=(Input(role="x", source=secret),))
    assert "hunter2" not in repr(saved)
