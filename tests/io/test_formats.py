"""TREC files, gzip, part files and sparse matrices say the same as a plain table does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused
from scipy import sparse

import truerank as tr
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.metric import Metric
from truerank.io.columns import table_columns
from truerank.io.files import to_frame
from truerank.metrics.additive import Recall
from truerank.metrics.pairwise import AveragePrecision

LABELS = pl.DataFrame({"user": [1, 1, 1, 2, 2, 2], "item": [10, 20, 30] * 2, "label": [1, 0, 0, 0, 1, 1]})
SCORES = pl.DataFrame({"user": [1, 1, 1, 2, 2], "item": [30, 10, 20, 10, 20], "score": [0.5, 2.0, -1.0, 3.0, 3.0]})
METRICS: list[Metric] = [Recall(2), AveragePrecision(2)]


def qrels(frame: pl.DataFrame) -> str:
    return "".join(f"{user} 0 {item}\t {int(label)}\n" for user, item, label in frame.rows())


def run(frame: pl.DataFrame) -> str:
    return "".join(f"{user} Q0 {item} 99 {score!r} bm25\n" for user, item, score in frame.rows())


def same_frame(log: tr.Log) -> None:
    assert to_frame(log).rows() == to_frame(tr.read(LABELS)).rows()


def values(scores: object, labels: object) -> list[float]:
    return [
        each.value for each in tr.evaluate({"m": scores}, labels, metrics=METRICS, items=Ids.of([10, 20, 30])).estimates
    ]


# --------------------------------------------------------------------------------------------------------------- TREC


@pytest.mark.parametrize("name", ["x.qrels", "x.trec"])
def test_qrels_are_labels(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(qrels(LABELS))
    same_frame(tr.read(tmp_path / name))


@pytest.mark.parametrize("name", ["x.run", "x.trec"])
def test_runs_are_scores_whose_rank_column_is_ignored(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(run(SCORES))
    (tmp_path / "x.qrels").write_text(qrels(LABELS))
    assert values(tr.read_scores(tmp_path / name), tr.read(tmp_path / "x.qrels")) == values(SCORES, LABELS)


def test_graded_qrels_need_a_rule_and_negative_relevance_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.qrels"
    path.write_text("q1 0 a 2\nq1 0 b -2\nq1 0 c 1\n\n")
    graded = tr.read(path)
    assert graded.rewards["rating"].tolist() == [2, 0, 1]
    with refused("positive"):
        graded.check_labels()
    assert tr.read(path, positive=">=1").label.tolist() == [1, 0, 1]
    path.write_text("q1 0 a 1\r\nq1 0 b -1\r\n")
    assert tr.read(path).label.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x.qrels", "", ("empty", "query iteration docno relevance")),
        ("x.qrels", "q 0 d 1\nq 0 d\n", ("line 2", "3 fields", "expected 4")),
        ("x.qrels", "q Q0 d 1 0.5 t\n", ("line 1", "6 fields", "expected 4")),
        ("x.run", "q 0 d 1\n", ("line 1", "4 fields", "expected 6")),
        ("x.trec", "q 0 d 1\n\nq Q0 d 1 0.5 t\n", ("line 3", "6 fields", "expected 4")),
        ("x.trec", "q 0 d 1 4\n", ("line 1", "5 fields", "expected 4", "or 6")),
        ("x.qrels", "q 0 d yes\n", ("line 1", "relevance", "'yes'", "number")),
        ("x.qrels", "q 0 d inf\n", ("line 1", "relevance", "'inf'")),
        ("x.run", "q Q0 d 1 high t\n", ("line 1", "score", "'high'")),
        ("x.run", "q Q0 d 1 nan t\n", ("line 1", "score", "'nan'")),
    ],
)
def test_wrong_trec_lines_are_named(tmp_path: Path, name: str, text: str, words: tuple[str, ...]) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        table_columns(tmp_path / name)
    assert all(word in str(caught.value) for word in (name, *words)), caught.value


# ---------------------------------------------------------------------------------------------------------- part files

Write = Callable[[pl.DataFrame, Path], object]
WRITERS: dict[str, Write] = {
    "parquet": lambda frame, path: frame.write_parquet(path),
    "csv": lambda frame, path: frame.write_csv(path),
    "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "qrels": lambda frame, path: path.write_text(qrels(frame)),
}


@pytest.fixture(params=list(WRITERS))
def parts(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """Three parts, with what clusters leave beside them."""
    folder = tmp_path / "parts"
    folder.mkdir()
    for at in range(3):
        WRITERS[request.param](LABELS[2 * at : 2 * at + 2], folder / f"part-{at}.{request.param}")
    (folder / "_SUCCESS").write_text("")
    (folder / f".part-0.{request.param}.crc").write_bytes(b"crc")
    return folder, request.param


def test_folders_and_globs_read_as_one_table(parts: tuple[Path, str]) -> None:
    folder, ending = parts
    same_frame(tr.read(folder))
    same_frame(tr.read(f"{folder}/part-*.{ending}"))
    same_frame(tr.read(folder.parent / "**" / f"*.{ending}"))
    assert len(tr.read(f"{folder}/part-[01].{ending}")) == 4
    assert any("2 hidden files" in note for note in tr.read(folder).notes)
    assert table_columns(folder).table["item"].to_list() == [10, 20, 30, 10, 20, 30]


def test_wrong_parts_are_named(tmp_path: Path) -> None:
    def names(*words: str) -> None:
        with pytest.raises(InputError) as caught:
            tr.read(tmp_path)
        assert all(word in str(caught.value) for word in (str(tmp_path), *words)), caught.value

    names("without data files", "expected a file")
    with refused("no such file"):
        tr.read(tmp_path / "*.csv")
    (tmp_path / "0.csv").write_text("user,item,label\n1,7,1\n")
    (tmp_path / "1.csv").write_text("user,item,rating\n1,8,1\n")
    names("1.csv", "user, item, rating", "0.csv", "same columns")
    (tmp_path / "1.csv").unlink()
    LABELS.write_parquet(tmp_path / "1.parquet")
    names("0.csv and 1.parquet", "one kind")
    (tmp_path / "1.parquet").rename(tmp_path / "README.md")
    names("README.md", "glob")
    (tmp_path / "README.md").unlink()
    (tmp_path / "user=1").mkdir()
    names("user=1", "glob")
    (tmp_path / "user=1").rmdir()
    (tmp_path / "0.csv").unlink()
    LABELS.write_parquet(tmp_path / "0.parquet")
    LABELS.cast({"item": pl.String}).write_parquet(tmp_path / "1.parquet")
    names("0.parquet", "'item'", "Int64", "text")


# -------------------------------------------------------------------------------------------------------------- sparse


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
def test_sparse_matrices_are_labels(kind: Callable[..., object]) -> None:
    cells = ([1.0, 0.0, 5.0], ([0, 0, 2], [1, 3, 0]))
    matrix = kind(cells, shape=(3, 4))
    log = tr.read(matrix, positive=">3")
    assert (len(log.users), len(log.items)) == (3, 4)
    assert (log.user.tolist(), log.item.tolist()) == ([0, 0, 2], [1, 3, 0])
    assert (log.rewards["value"].tolist(), log.label.tolist()) == ([1, 0, 5], [0, 0, 1])
    named = tr.read(matrix, positive=">3", users=["c", "b", "a"], items=[40, 30, 20, 10])
    pairs = to_frame(named).select("user", "item").rows()
    assert sorted(pairs) == [("a", 40), ("c", 10), ("c", 30)]


def test_sparse_scores_are_top_lists(tmp_path: Path) -> None:
    dense = np.array([[2.0, -1.0, 0.5], [3.0, 3.0, 0.0]])
    matrix = sparse.csr_array(dense)
    users, items = [1, 2], [10, 20, 30]
    made = tr.scores.sparse(matrix, users=users, items=items)
    assert made.depth == 3
    assert values(made, LABELS) == values(SCORES, LABELS)
    sparse.save_npz(tmp_path / "x.npz", matrix)
    assert values(tr.read_scores(tmp_path / "x.npz", users=users, items=items), LABELS) == values(SCORES, LABELS)
    numbered = LABELS.with_columns(user=pl.col("user") - 1, item=pl.col("item") // 10 - 1)
    direct = tr.evaluate({"m": matrix}, numbered, metrics=METRICS, items=Ids.of([0, 1, 2]))
    assert [each.value for each in direct.estimates] == values(SCORES, LABELS)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"format": np.array(b"dia")}, ("cannot be read",)),
        ({"indices": np.array([0, 1, 9])}, ("cannot be read",)),
        ({"indices": np.array([0, -1, 2])}, ("cannot be read",)),
        ({"indptr": np.array([0, 5, 3])}, ("cannot be read",)),
        ({"indptr": np.array([0, 3])}, ("cannot be read",)),
        ({"data": np.ones(2)}, ("cannot be read",)),
        ({"data": np.array(["a", "b", "c"])}, ("expected numbers",)),
        ({"shape": np.array([2])}, ("cannot be read",)),
        ({"shape": np.array([2, 10**15])}, ("items", "1,000,000,000,000,000", "without ids")),
        ({"data": np.array([1.0, np.nan, 2.0])}, ("score", "nan")),
    ],
)
def test_damaged_sparse_files_are_refused(tmp_path: Path, changed: dict[str, Any], words: tuple[str, ...]) -> None:
    path = tmp_path / "x.npz"
    sparse.save_npz(path, sparse.csr_array(np.array([[1.0, 2.0, 0], [0, 0, 3.0]])))
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    np.savez(path, **(arrays | changed))
    with pytest.raises(InputError) as caught:
        tr.read_scores(path)
    assert all(word in str(caught.value) for word in ("x.npz", *words)), caught.value
