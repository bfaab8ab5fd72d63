"""Ids and scores that were once changed in silence: rewritten, rounded, unmasked, or taken for their neighbours."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from calling import Called, call
from scipy import sparse

import truerank as tr
from truerank.core.errors import InputError
from truerank.core.escaping import csv_cell
from truerank.ranking.scores.scores import single_keeps_bits

RECALL = ("--metric", "Recall@1", "--unlisted", "negative", "--format", "json", "--quiet")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(outcome: Called, *words: str) -> None:
    assert outcome.code == 2, outcome
    message = outcome.err.removeprefix("truerank: ").strip()
    assert "\n" not in message, message
    for word in words:
        assert word in message, message


def value(outcome: Called, at: int = 0) -> float:
    assert outcome.code == 0, outcome
    found: float = json.loads(outcome.out)["estimates"][at]["value"]
    return found


# ---------------------------------------------------------------------------------------------- ids as they are written


def test_padded_ids_are_written_as_they_were_read(here: Path) -> None:
    text = "user,item,label,price,note\n001,0101,1,1.50,1e5\n1e3,7.0,0,.5,x\n1000,7,1,2,\n"
    Path("z.csv").write_text(text)
    assert call("intervene", "z.csv", "--strategy", "full", "--out", "z2.csv").code == 0
    assert Path("z2.csv").read_text() == text
    assert call("intervene", "z.csv", "--strategy", "full", "--out", "z2.parquet").code == 0
    rows = pl.read_parquet("z2.parquet")
    assert rows["user"].to_list() == ["001", "1e3", "1000"]
    assert rows["item"].to_list() == ["0101", "7.0", "7"]
    assert rows["price"].to_list() == [1.5, 0.5, 2.0]  # what is no id stays a number


@pytest.mark.parametrize("odd", ["007", "+7", "7.0", "7e0", " 7"])
def test_ids_that_are_equal_as_numbers_only_do_not_match(here: Path, odd: str) -> None:
    Path("labels.csv").write_text(f"user,item,label\n{odd},1,1\n")
    Path("scores.csv").write_text("user,item,score\n7,1,0.5\n")
    outcome = call("evaluate", "labels.csv", "--scores", "m=scores.csv", *RECALL)
    refusal(outcome, f"text (such as {odd!r})", "numbers (such as 7)", "text never matches numbers")


@pytest.mark.parametrize("column", ["1e3\n1000", "true\nTrue", "1.0\n1", "nan\nNaN"])
def test_two_spellings_of_a_number_are_two_items(here: Path, column: str) -> None:
    first, second = column.split("\n")
    Path("labels.csv").write_text(f"user,item,label\nu,{first},1\nu,{second},0\n")
    assert tr.read("labels.csv").items.texts() == sorted([first, second])
    assert tr.scan("labels.csv").items.texts() == sorted([first, second])
    assert tr.read("labels.csv", columns={"user": "item", "item": "user"}).users.texts() == sorted([first, second])
    Path("scores.csv").write_text(f"user,item,score\nu,{first},2\nu,{second},1\n")
    assert value(call("evaluate", "labels.csv", "--scores", "m=scores.csv", *RECALL)) == 1.0


def test_types_are_decided_by_all_chunks(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The odd id stands in the last of many rows, which are read in chunks."""
    monkeypatch.setattr("truerank.evaluation.sources.MEMORY_ROWS", 100)
    monkeypatch.setattr("truerank.io.partition.MEMORY_ROWS", 100)
    monkeypatch.setattr("truerank.io.partition.CHUNK_ROWS", 100)
    rows = [f"{user},{item},{int(item == user % 4)}" for user in range(500) for item in range(4)]
    Path("labels.csv").write_text("\n".join(["user,item,label", *rows, "1e2,3,1"]) + "\n")
    scores = [f"{user},{item},{-item}" for user in [*range(500), "1e2"] for item in range(4)]
    Path("scores.csv").write_text("\n".join(["user,item,score", *scores]) + "\n")
    outcome = call(
        "evaluate", "labels.csv", "--scores", "m=scores.csv", *RECALL, "--units", "units.parquet", "--threads", "1"
    )
    assert value(outcome) == 125 / 501  # every fourth user likes item 0; 1e2 is not 100
    units = pl.read_parquet("units.parquet")
    assert sorted(units["unit"].to_list()) == sorted([*map(str, range(500)), "1e2"])


def test_groups_and_populations_are_named_as_written(here: Path) -> None:
    Path("labels.csv").write_text("user,item,label\n1e3,1,1\n1000,1,1\n1e3,2,0\n1000,2,0\n")
    Path("scores.csv").write_text("user,item,score\n1e3,1,2\n1e3,2,1\n1000,1,1\n1000,2,2\n")
    Path("groups.csv").write_text("user,group\n1e3,1e1\n1000,10\n")
    Path("people.csv").write_text("who\n1e3\n1000\n")
    within = ("--within", "groups.csv", "--population", "people.csv")
    outcome = call("evaluate", "labels.csv", "--scores", "m=scores.csv", *within, *RECALL)
    assert value(outcome) == 0.5
    groups = json.loads(outcome.out)["groups"]
    found = groups.items() if isinstance(groups, dict) else ((each["group"], each) for each in groups)
    assert {name: each["estimates"][0]["value"] for name, each in found} == {"1e1": 1.0, "10": 0.0}


def test_sessions_and_targets_as_written(here: Path) -> None:
    Path("log.csv").write_text("session,item,position,reward\n1e1,1.0,1,1\n10,1,1,0\n7,1,1,1\n")
    Path("new.csv").write_text("session,item,rank\n1e1,1.0,1\n10,1,1\n7,1,1\n")
    log = tr.read_impressions("log.csv")
    assert log.n_units == 3
    assert log.items.texts() == ["1", "1.0"]
    outcome = call(
        "offpolicy", "log.csv", "--target", "new=new.csv", "--position", "log", "--format", "json", "--quiet"
    )
    assert value(outcome) == pytest.approx(2 / 3)


@pytest.mark.parametrize("block", [3, 2**20])
def test_a_carriage_return_is_not_taken_from_the_end_of_an_id(
    here: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truerank.io.files.BLOCK", block)
    path = Path("labels.csv")
    for odd in (b"7\r,1,1\n", b"7,1,1\r\r\n", b'"a""b",7\r,1\n'):
        path.write_bytes(b"user,item,label\r\n8,1,1\r\n" + odd)
        refusal(call("advise", "labels.csv"), "carriage return", "LF or CRLF")
    path.write_bytes(b'user,item,label\r\n"7\r,",1,1\r\n"8\r",1,1\r\n')
    assert tr.read(path).users.texts() == ["7\r,", "8\r"]


def test_two_columns_of_one_name_are_refused(here: Path) -> None:
    Path("labels.csv").write_text("user,item,label,item\n1,2,1,3\n")
    refusal(call("advise", "labels.csv"), "two columns are called 'item'")
    Path("labels.csv").write_text("user,item,label,item_duplicated_0\n1,2,1,3\n")
    assert call("advise", "labels.csv").code == 0


# ------------------------------------------------------------------------------------------------------------ precision


BIG = 2**60


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".tsv"])
@pytest.mark.parametrize("kind", [pl.Int64, pl.UInt64, pl.Int128])
def test_integers_beyond_doubles_do_not_tie(here: Path, ending: str, kind: Any) -> None:
    scores = pl.DataFrame({"user": [1, 1], "item": [1, 2], "score": pl.Series([BIG, BIG + 1], dtype=kind)})
    path = f"scores{ending}"
    if ending == ".parquet":
        scores.write_parquet(path)
    else:
        scores.write_csv(path, separator="," if ending == ".csv" else "\t")
    Path("labels.csv").write_text("user,item,label\n1,2,1\n")
    assert value(call("evaluate", "labels.csv", "--scores", f"m={path}", *RECALL)) == 1.0


def test_whole_scores_of_a_run_beyond_doubles_do_not_tie(here: Path) -> None:
    Path("m.run").write_text(f"1 Q0 1 1 {BIG} x\n1 Q0 2 2 {BIG + 1} x\n")
    Path("labels.csv").write_text("user,item,label\n1,2,1\n")
    assert value(call("evaluate", "labels.csv", "--scores", "m=m.run", *RECALL)) == 1.0


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_matrices_of_integers_beyond_doubles_are_refused(here: Path, kind: type[np.integer]) -> None:
    matrix = np.array([[BIG, BIG + 1]], dtype=kind)
    with pytest.raises(InputError, match=r"beyond 2\^53"):
        tr.scores.dense(matrix)
    one = tr.scores.function(lambda rows: np.repeat(matrix, len(rows), axis=0), users=[1], items=[1, 2])
    with pytest.raises(InputError, match=r"beyond 2\^53"):
        one.block(np.array([0]))
    each = tr.scores.per_user(lambda row: matrix[0], users=[1], items=[1, 2])
    with pytest.raises(InputError, match=r"beyond 2\^53"):
        each.block(np.array([0]))
    np.savez("m.npz", scores=matrix, users=[1], items=[1, 2])
    Path("labels.csv").write_text("user,item,label\n1,2,1\n")
    refusal(call("evaluate", "labels.csv", "--scores", "m=m.npz", *RECALL), "m.npz", "beyond 2^53")
    found = tr.scores.dense(np.array([[2**53, 2**53 - 1]], dtype=kind))
    assert found.block(np.array([0])).tolist() == [[2.0**53, 2.0**53 - 1]]


def test_numbers_finer_than_doubles_are_refused() -> None:
    if np.dtype(np.longdouble).itemsize > 8:
        with pytest.raises(InputError, match="finer than float64"):
            tr.scores.dense(np.ones((1, 2), dtype=np.longdouble))


def test_stored_integers_beyond_doubles_do_not_tie() -> None:
    found = tr.scores.sparse(sparse.csr_array(np.array([[BIG, BIG + 1]])))
    assert found.block(np.array([0])).tolist() == [[-1.0, 0.0]]


@pytest.mark.parametrize("apart", [1e-9, 1e-15])
@pytest.mark.parametrize("fast", [False, True])
def test_factors_keep_their_precision(here: Path, apart: float, *, fast: bool) -> None:
    """The better item differs by what single precision does not hold, in factors and in biases."""
    if fast:
        pytest.importorskip("numba")
    from truerank.core.ranking import Candidates
    from truerank.ranking.kernel.rank import rank

    log = tr.read(pl.DataFrame({"user": [0], "item": [1], "label": [1]}), items=[0, 1])
    by_factor = tr.scores.factors(np.ones((1, 1)), np.array([[1.0], [1.0 + apart]]))
    by_bias = tr.scores.factors(np.ones((1, 1)), np.ones((2, 1)), item_bias=np.array([0.0, apart]))
    for scores in (by_factor, by_bias):
        found = rank(scores, log, pools=[Candidates(1, 2.0)], fast=fast)[0]
        assert (found.above.tolist(), found.tied.tolist()) == ([0.0], [0.0])
    tr.write_scores(by_factor, "m.npz")
    assert tr.read_scores("m.npz").block(np.array([0])).tolist() == [[1.0, 1.0 + apart]]


def test_factors_that_single_precision_holds_stay_single() -> None:
    """Half the memory and twice the speed, where nothing is lost by it."""
    for side in (np.float32(0.1), np.float64(0.5), np.int64(3)):
        found = tr.scores.factors(np.full((1, 1), side), np.full((2, 1), side))
        kind = np.float32 if single_keeps_bits() else np.float64
        assert found.user.dtype == kind
        assert found.block(np.array([0]))[0, 0] == kind(side) * kind(side)


def test_masks_are_respected() -> None:
    hidden = np.ma.array([[1.0, 2.0]], mask=[[False, True]])
    for make in (
        lambda: tr.scores.dense(hidden),
        lambda: tr.scores.factors(np.ones((1, 2)), hidden),
        lambda: tr.scores.factors(hidden, np.ones((1, 2))),
        lambda: tr.scores.factors(np.ones((1, 1)), np.ones((2, 1)), item_bias=hidden[0]),
        lambda: tr.scores.dense(np.ones((1, 2)), items=np.ma.array([1, 2], mask=[False, True])),
        lambda: tr.evaluate({"m": hidden}, pl.DataFrame({"user": [0, 0], "item": [0, 1], "label": [1, 0]})),
    ):
        with pytest.raises(InputError, match="1 values are masked"):
            make()
    bare = np.ma.array([[1.0, 2.0]])
    assert tr.scores.dense(bare).block(np.array([0])).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("kind", ["Int64", "Float64", "boolean"])
def test_nulls_are_no_values(kind: str) -> None:
    frame = pd.DataFrame({"user": [1, 1], "item": [1, 2], "label": pd.array([1, None], dtype=kind)})
    with pytest.raises(InputError, match="row 2"):
        tr.read(frame)
    with pytest.raises(InputError, match="row 2"):
        tr.scores.lists(frame.rename(columns={"label": "score"}) if kind != "boolean" else scored(frame))
    swapped = pd.DataFrame({"user": pd.array([2**60 + 1, None], dtype="Int64"), "item": [1, 2], "label": [1, 0]})
    with pytest.raises(InputError, match="row 2 has no id"):
        tr.read(swapped)
    assert tr.read(swapped[:1]).users.values.to_list() == [2**60 + 1]


def scored(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(score=pd.array([1, None], dtype="Int64")).drop(columns="label")


def test_ids_in_single_precision_are_refused_where_it_rounds() -> None:
    frame = pl.DataFrame({"user": pl.Series([2.0**24 + 2], dtype=pl.Float32), "item": [1], "label": [1]})
    with pytest.raises(InputError, match="Float32"):
        tr.read(frame)


# ------------------------------------------------------------------------------------------------- matrices without ids


MATRIX = np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]])


def labelled(first: int, n: int = 3) -> pl.DataFrame:
    """User u likes the item that row u of the matrix has first; ids begin with `first`."""
    rows = [(user + first, item + first, int(user == item)) for user in range(n) for item in range(3)]
    return pl.DataFrame(rows, schema=["user", "item", "label"], orient="row")


def saved(kind: str) -> dict[str, Any]:
    if kind == "factors":
        return {"user_factors": np.eye(3), "item_factors": MATRIX.T}
    return {"scores": MATRIX}


@pytest.mark.parametrize("kind", ["dense", "factors", "sparse", "npy"])
def test_numbers_from_one_are_not_taken_for_rows(here: Path, kind: str) -> None:
    path = "m.npy" if kind == "npy" else "m.npz"
    if kind == "npy":
        np.save(path, MATRIX)
    elif kind == "sparse":
        sparse.save_npz(path, sparse.csr_array(MATRIX))
    else:
        np.savez(path, **saved(kind))
    call_ = ("evaluate", "labels.csv", "--scores", f"m={path}", *RECALL)
    labelled(0).write_csv("labels.csv")
    outcome = call(*call_[:-1])
    assert value(outcome) == 1.0
    assert "no ids of users; rows are read as users 0 to 2" in outcome.err
    assert "no ids of items; columns are read as items 0 to 2" in outcome.err
    for n in (3, 2):  # also where the last user is missing: no id lies beyond the matrix
        labelled(1, n).write_csv("labels.csv")
        refusal(call(*call_), "3 rows without ids of users", "such as 1, 2", "--users FILE")
    labelled(1).write_csv("labels.csv")
    Path("ids.csv").write_text("id\n1\n2\n3\n")
    refusal(call(*call_, "--users", "ids.csv"), "3 columns without ids of items", "--items FILE")
    outcome = call(*call_[:-1], "--users", "ids.csv", "--items", "ids.csv")
    assert value(outcome) == 1.0
    assert "no ids of" not in outcome.err


def test_arrays_in_python_are_not_numbered_in_silence() -> None:
    metric: dict[str, Any] = {"metrics": ["Recall@1"]}
    with pytest.raises(InputError, match="3 rows without ids of users"):
        tr.evaluate({"m": MATRIX}, labelled(1), **metric)
    with pytest.raises(InputError, match="3 rows without ids of users"):
        tr.evaluate({"m": sparse.csr_array(MATRIX)}, labelled(1), **metric)
    texts = labelled(0).with_columns(pl.col("user").cast(pl.String))
    with pytest.raises(InputError, match="3 rows without ids of users"):
        tr.evaluate({"m": MATRIX}, texts, **metric)
    results = tr.evaluate({"m": MATRIX}, labelled(0), **metric)
    assert [message.code for message in results.messages].count("numbered") == 2
    ids = [1, 2, 3]
    results = tr.evaluate({"m": tr.scores.dense(MATRIX, users=ids, items=ids)}, labelled(1), **metric)
    assert results.estimates[0].value == 1.0


def test_labels_without_ids_are_not_numbered_in_silence() -> None:
    labels = tr.read(sparse.csr_array(np.eye(3)))
    ids = [1, 2, 3]
    named = tr.scores.dense(MATRIX, users=ids, items=ids)
    exposure = tr.exposure.FullExposure("negative")
    with pytest.raises(InputError, match="3 rows without ids of users, and those of m"):
        tr.evaluate({"m": named}, labels, metrics=["Recall@1"], exposure=exposure)
    results = tr.evaluate({"m": MATRIX}, labels, metrics=["Recall@1"], exposure=exposure)
    assert results.estimates[0].value == 1.0
    with pytest.raises(InputError, match="has 2 rows without ids of users"):
        tr.evaluate({"m": MATRIX[:2]}, labels, metrics=["Recall@1"], exposure=exposure)


def test_users_that_differ_from_those_of_the_file_are_refused(here: Path) -> None:
    np.savez("m.npz", scores=MATRIX, users=[1, 2, 3], items=[1, 2, 3])
    labelled(1).write_csv("labels.csv")
    call_ = ("evaluate", "labels.csv", "--scores", "m=m.npz", "--users", "ids.csv", *RECALL)
    Path("ids.csv").write_text("id\n3\n1\n2\n")  # the same users; the file knows their order
    assert value(call(*call_)) == 1.0
    Path("ids.csv").write_text("id\n1\n2\n4\n")
    refusal(call(*call_), "m.npz", "has users of its own (such as 1, 2, 3)", "(such as 1, 2, 4)")


# ------------------------------------------------------------------------------------------------------ names and cells


NAMES = ["=1+1", "+x", "-x", "@x", "\tx", "'=x"]


def test_cells_of_results_are_not_run_by_spreadsheets(here: Path) -> None:
    labelled(0).write_csv("labels.csv")
    np.save("m.npy", MATRIX)
    results = tr.evaluate(dict.fromkeys(NAMES, MATRIX), labelled(0), metrics=["Recall@1"])
    from truerank.report import frames

    rows = list(csv.DictReader(io.StringIO(frames.csv(results).decode(), newline="")))
    for row in rows:
        for cell in row.values():
            assert not cell.startswith(("=", "+", "@", "\t", "\r")), cell
            assert not cell.startswith("-") or is_number(cell), cell
    found = [row["model"] for row in rows if row["kind"] == "estimate"]
    assert found == [csv_cell(name) for name in NAMES]
    assert any(float(row["value"]) == 0 for row in rows)
    given = [each for name in NAMES if "=" not in name for each in ("--scores", f"{name}=m.npy")]
    outcome = call("evaluate", "labels.csv", *given, "--metric", "Recall@1", "--format", "csv", "--quiet")
    assert outcome.code == 0
    assert "\n-x" not in outcome.out
    assert ",'-x," in outcome.out
    outcome = call("evaluate", "labels.csv", *given, "--metric", "Recall@1", "--format", "json", "--quiet")
    assert {each["model"] for each in json.loads(outcome.out)["estimates"]} == {n for n in NAMES if "=" not in n}


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_ids_in_tables_of_data_get_no_apostrophe(here: Path) -> None:
    text = "user,item,label\n=1+1,@x,1\n-x,+y,0\n"
    Path("z.csv").write_text(text)
    assert call("intervene", "z.csv", "--strategy", "full", "--out", "z2.csv").code == 0
    assert Path("z2.csv").read_text() == text


BAD = os.fsdecode(b"caf\xe9")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", f"{BAD}.csv", "--scores", "m=m.npy"),
        ("evaluate", "labels.csv", "--scores", f"{BAD}=m.npy"),
        ("evaluate", "labels.csv", "--scores", f"m={BAD}.npy"),
        ("evaluate", "labels.csv", "--scores", "m=m.npy", "--columns", f"user={BAD}"),
        ("advise", f"{BAD}.csv"),
        ("intervene", "labels.csv", "--strategy", "full", "--out", f"{BAD}.csv"),
    ],
)
def test_names_that_are_not_utf8_give_one_sentence(here: Path, arguments: tuple[str, ...]) -> None:
    labelled(0).write_csv("labels.csv")
    np.save("m.npy", MATRIX)
    Path(f"{BAD}.csv").write_bytes(Path("labels.csv").read_bytes())
    refusal(call(*arguments), "caf\\xe9", "not UTF-8")


def test_parts_whose_names_are_not_utf8(here: Path) -> None:
    Path("parts").mkdir()
    labelled(0).write_csv("parts/a.csv")
    Path(f"parts/{BAD}.csv").write_bytes(Path("parts/a.csv").read_bytes())
    refusal(call("advise", "parts"), "caf\\xe9", "not UTF-8")


@pytest.mark.parametrize(
    "content", [b"us\xe9r,item,label\n1,2,1\n", b"user,item,label\ncaf\xe9,2,1\n", b"user,item,label\n1,2,\xff\n"]
)
def test_fields_and_columns_that_are_not_utf8(here: Path, content: bytes) -> None:
    Path("x.csv").write_bytes(content)
    refusal(call("advise", "x.csv"), "x.csv", "UTF-8" if b"us\xe9r" in content else "utf-8")
    Path("x.qrels").write_bytes(b"1 0 caf\xe9 1\n")
    refusal(call("advise", "x.qrels"), "x.qrels", "not UTF-8")


def test_bytes_and_lone_surrogates_as_ids() -> None:
    with pytest.raises(InputError, match="expected whole numbers or text"):
        tr.scores.dense(np.ones((1, 1)), users=np.array([b"caf\xe9"]), items=[1])
    with pytest.raises(InputError, match="UTF-8"):
        tr.scores.dense(np.ones((1, 1)), users=["caf\udce9"], items=[1])
