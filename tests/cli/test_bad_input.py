"""One thing is wrong per case: exit code 2, one message that helps, nothing on standard output, nothing left behind."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from calling import Run, with_exposure

Spoil = Callable[[Path], object]

SCORED = "--scores a=a.npz --metric Recall@2"
FULL = f"evaluate labels.csv {SCORED}"
RANDOM = "evaluate sample.csv --scores a=a.npz --exposure random"
TOP = "evaluate sample.csv --scores t=top.csv --exposure random"
BOTH = f"{FULL} --scores b=b.csv"
NPY = "evaluate labels.csv --scores m=m.npy --items items.csv --users users.csv"


def nothing(folder: Path) -> None:
    """The files are fine; the call is not."""


@dataclass(frozen=True, slots=True)
class Case:
    """A call, what to break before it, and what the message must say."""

    name: str
    call: str
    words: tuple[str, ...]
    spoil: Spoil = nothing


# ------------------------------------------------------------------------------------------------- ways to break a file


def swap(name: str, old: str, new: str) -> Spoil:
    """Other text in a text file."""

    def spoil(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return spoil


def content(name: str, data: str | bytes) -> Spoil:
    """A file that holds just this."""
    return lambda folder: (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def arrays(name: str = "a.npz", *, without: tuple[str, ...] = (), **changed: Any) -> Spoil:
    """The scores with other, more or fewer arrays."""

    def spoil(folder: Path) -> None:
        with np.load(folder / "a.npz") as archive:
            kept = {key: archive[key] for key in archive.files if key not in without}
        np.savez(folder / name, **(kept | changed))

    return spoil


def one_score(value: float) -> Spoil:
    """User 2's score of item 20."""

    def spoil(folder: Path) -> None:
        with np.load(folder / "a.npz") as archive:
            scores = archive["scores"]
        scores[1, 1] = value
        arrays(scores=scores)(folder)

    return spoil


def as_parquet(damage: Callable[[bytes], bytes]) -> Spoil:
    """labels.parquet, damaged."""

    def spoil(folder: Path) -> None:
        path = folder / "labels.parquet"
        pl.read_csv(folder / "labels.csv").write_parquet(path)
        path.write_bytes(damage(path.read_bytes()))

    return spoil


def parquet_as_csv(folder: Path) -> None:
    pl.read_csv(folder / "labels.csv").write_parquet(folder / "named.csv")


def renamed(old: str, new: str) -> Spoil:
    """The same bytes under another name."""
    return lambda folder: (folder / new).write_bytes((folder / old).read_bytes())


def truncated(name: str) -> Spoil:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:200])


def flipped(folder: Path) -> None:
    """Compressed arrays with some bytes overwritten: neither the zip index nor the CRC is what breaks first."""
    with np.load(folder / "a.npz") as archive:
        kept = {key: archive[key] for key in archive.files}
    np.savez_compressed(folder / "a.npz", **kept)
    data = bytearray((folder / "a.npz").read_bytes())
    data[60:110] = b"\x55" * 50
    (folder / "a.npz").write_bytes(bytes(data))


def matrix(items: str, *, rows: int = 4) -> Spoil:
    """A bare matrix whose ids stand in two files."""

    def spoil(folder: Path) -> None:
        np.save(folder / "m.npy", np.ones((rows, 5)))
        (folder / "items.csv").write_text(items)
        (folder / "users.csv").write_text("user\n1\n2\n3\n4\n")

    return spoil


def bare_matrix(folder: Path) -> None:
    np.save(folder / "m.npy", np.ones((4, 5)))
    renamed("m.npy", "a.npz")(folder)


def without_column(index: int) -> Spoil:
    def spoil(folder: Path) -> None:
        lines = [line.split(",") for line in (folder / "labels.csv").read_text().splitlines()]
        kept = [",".join(cell for at, cell in enumerate(line) if at != index) for line in lines]
        (folder / "labels.csv").write_text("\n".join(kept) + "\n")

    return spoil


def extra_column(name: str, value: str) -> Spoil:
    """A column with the value in every row but the first, which has 1."""

    def spoil(folder: Path) -> None:
        head, first, *rest = (folder / "labels.csv").read_text().splitlines()
        lines = [f"{head},{name}", f"{first},1", *(f"{line},{value}" for line in rest)]
        (folder / "labels.csv").write_text("\n".join(lines) + "\n")

    return spoil


def yes_and_no(folder: Path) -> None:
    text = (folder / "labels.csv").read_text()
    (folder / "labels.csv").write_text(text.replace(",1\n", ",yes\n").replace(",0\n", ",no\n"))


def stars(folder: Path) -> None:
    text = (folder / "labels.csv").read_text().replace("label", "rating")
    (folder / "labels.csv").write_text(text.replace(",1\n", ",5\n").replace(",0\n", ",2\n"))


def text_users(name: str) -> Spoil:
    def spoil(folder: Path) -> None:
        head, *rows = (folder / name).read_text().splitlines()
        (folder / name).write_text("\n".join([head, *(f"u{row}" for row in rows)]) + "\n")

    return spoil


def utf16(folder: Path) -> None:
    (folder / "labels.csv").write_bytes((folder / "labels.csv").read_text().encode("utf-16"))


def closed(folder: Path) -> None:
    (folder / "labels.csv").chmod(0)


def candidates(*, leave_out: str = "", add: str = "") -> Spoil:
    """Every pair is a candidate, but for one, or one too many."""
    return lambda folder: (folder / "cand.csv").write_text(
        (folder / "labels.csv").read_text().replace(leave_out, "") + add
    )


# --------------------------------------------------------------------------------------------------------------- cases

TABLES = [
    Case("no user column", FULL, ("labels.csv", "no column 'user'", "item, label", "--columns"), without_column(0)),
    Case("no item column", FULL, ("labels.csv", "no column 'item'", "user, label", "--columns"), without_column(1)),
    Case(
        "user column with another name",
        FULL,
        ("labels.csv", "no column 'user'", "users_id, item, label", "--columns user=users_id"),
        swap("labels.csv", "user,", "users_id,"),
    ),
    # the remedy is to name the column, not to say which values are positive
    Case("no value column", FULL, ("labels.csv", "--columns label="), without_column(2)),
    Case(
        "several value columns",
        f"{FULL} --positive >3",
        ("labels.csv", "several value columns", "label, rating", "--columns label="),
        extra_column("rating", "3"),
    ),
    Case("ratings without a rule", FULL, ("labels.csv", "rating", "0 and 1", '--positive ">3"'), stars),
    Case("nonsense rule", f"{FULL} --positive 'more than three'", ("positive", "'more than three'", '">3"')),
    Case("rule with half a number", f"{FULL} --positive >1.2.3", ("positive", "'>1.2.3'", '">3"')),
    Case("text labels", FULL, ("labels.csv", "'label'", "'yes'", "expected numbers"), yes_and_no),
    # a single bad cell among thousands: the message must show that cell, not the first one
    Case("one text label", FULL, ("labels.csv", "'label'", "'maybe'"), swap("labels.csv", "2,20,1", "2,20,maybe")),
    Case(
        "NaN label", FULL, ("labels.csv", "'label'", "row 7", "nan", "finite"), swap("labels.csv", "2,20,1", "2,20,NaN")
    ),
    Case("missing label", FULL, ("labels.csv", "'label'", "row 7", "finite"), swap("labels.csv", "2,20,1", "2,20,")),
    Case("infinite label", FULL, ("labels.csv", "'label'", "row 7", "inf"), swap("labels.csv", "2,20,1", "2,20,inf")),
    Case("empty user id", FULL, ("labels.csv", "'user'", "row 7", "no id"), swap("labels.csv", "2,20,1", ",20,1")),
    Case("empty item id", FULL, ("labels.csv", "'item'", "row 7", "no id"), swap("labels.csv", "2,20,1", "2,,1")),
    Case("NaN id", FULL, ("labels.csv", "'user'"), swap("labels.csv", "2,20,1", "NaN,20,1")),
    Case(
        "duplicate labels",
        FULL,
        ("labels.csv", "more than once", "user 2, item 20", "one row per pair"),
        swap("labels.csv", "2,20,1", "2,20,1\n2,20,0"),
    ),
    Case(
        "user ids that are not whole",
        FULL,
        ("labels.csv", "'user'", "2.5", "text never matches numbers"),
        swap("labels.csv", "2,20,1", "2.5,20,1"),
    ),
    Case(
        "judged item outside the catalogue",
        FULL,
        ("labels.csv", "not in the catalogue", "user 2, item 60", "--items"),
        swap("labels.csv", "2,20,1", "2,20,1\n2,60,1"),
    ),
    Case(
        "propensity above 1",
        FULL,
        ("labels.csv", "row 2", "propensity", "1.5", "(0, 1]"),
        extra_column("propensity", "1.5"),
    ),
    Case(
        "propensity of 0", FULL, ("labels.csv", "row 2", "propensity is 0", "(0, 1]"), extra_column("propensity", "0")
    ),
    Case("position 0", FULL, ("labels.csv", "row 2", "position is 0", "from 1"), extra_column("position", "0")),
    Case("position 1.5", FULL, ("labels.csv", "row 2", "position is 1.5", "whole"), extra_column("position", "1.5")),
    Case("unlisted pairs", f"evaluate sample.csv {SCORED}", ("sample.csv", "user 1", "--unlisted negative")),
    Case("no rows", FULL, ("labels.csv", "no rows"), content("labels.csv", "user,item,label\n")),
    Case("empty file", FULL, ("labels.csv", "empty", "header"), content("labels.csv", "")),
    Case("blank lines only", FULL, ("labels.csv", "empty"), content("labels.csv", "\n\n\n")),
    Case("a row too long", FULL, ("labels.csv", "fields"), swap("labels.csv", "2,20,1", "2,20,1,7,8")),
    Case("a row too short", FULL, ("labels.csv", "row 7"), swap("labels.csv", "2,20,1", "2,20")),
    Case("open quotation mark", FULL, ("labels.csv", "cannot be read"), swap("labels.csv", "2,20,1", '2,20,"1')),
    Case("semicolons", FULL, ("labels.csv", "no column 'user'", "user;item;label"), swap("labels.csv", ",", ";")),
    Case(
        "not UTF-8",
        FULL,
        ("labels.csv", "utf-8"),
        content("labels.csv", b"user,item,label\n1,10,1\nJos\xe9,20,0\n"),
    ),
    # what spreadsheets call Unicode text
    Case("UTF-16", FULL, ("labels.csv", "UTF-8"), utf16),
]

FILES = [
    Case("missing labels", f"evaluate gone.csv {SCORED}", ("gone.csv", "no such file")),
    Case("missing scores", "evaluate labels.csv --scores a=gone.npz", ("gone.npz", "no such file")),
    Case("missing table of scores", "evaluate labels.csv --scores a=gone.csv", ("gone.csv", "no such")),
    Case("missing exclusions", f"{FULL} --exclude gone.csv", ("gone.csv", "no such file")),
    Case("missing candidates", f"{FULL} --candidates gone.csv", ("gone.csv", "no such file")),
    Case("missing items", f"{FULL} --items gone.csv", ("gone.csv", "no such file")),
    Case("a folder as labels", f"evaluate result {SCORED}", ("result", "folder", "expected a file")),
    Case("a folder as scores", "evaluate labels.csv --scores a=result", ("result", "folder")),
    Case("a path below a file", f"evaluate train.csv/labels.csv {SCORED}", ("train.csv/labels.csv", "no such")),
    Case("a name too long", f"evaluate {'l' * 300}.csv {SCORED}", ("lll.csv", "name too long")),
    Case(
        "unknown ending",
        f"evaluate labels.xlsx {SCORED}",
        ("labels.xlsx", "'.xlsx'", ".parquet, .csv or .tsv"),
        renamed("labels.csv", "labels.xlsx"),
    ),
    Case(
        "no ending",
        f"evaluate labels {SCORED}",
        ("labels", "ending", ".parquet, .csv or .tsv"),
        renamed("labels.csv", "labels"),
    ),
    Case(
        "truncated Parquet",
        f"evaluate labels.parquet {SCORED}",
        ("labels.parquet", "cannot be read", "anew"),
        as_parquet(lambda data: data[: len(data) // 2]),
    ),
    Case(
        "Parquet with a byte missing",
        f"evaluate labels.parquet {SCORED}",
        ("labels.parquet", "cannot be read"),
        as_parquet(lambda data: data[:-1]),
    ),
    Case(
        "damaged Parquet",
        f"evaluate labels.parquet {SCORED}",
        ("labels.parquet", "cannot be read"),
        as_parquet(lambda data: data[:30] + b"\xff" * 30 + data[60:]),
    ),
    Case(
        "empty Parquet",
        f"evaluate labels.parquet {SCORED}",
        ("labels.parquet", "cannot be read"),
        as_parquet(lambda data: b""),
    ),
    Case("Parquet named csv", f"evaluate named.csv {SCORED}", ("named.csv",), parquet_as_csv),
    Case(
        "text named Parquet",
        f"evaluate labels.parquet {SCORED}",
        ("labels.parquet", "cannot be read"),
        renamed("labels.csv", "labels.parquet"),
    ),
]

SCORES = [
    Case("NaN score", FULL, ("a:", "user 2, item 20", "nan", "finite", "-inf"), one_score(np.nan)),
    Case("+inf score", FULL, ("a:", "user 2, item 20", "inf", "finite", "-inf"), one_score(np.inf)),
    Case(
        "NaN score in a table",
        BOTH,
        ("b.csv", "'score'", "row 7", "nan"),
        swap("b.csv", "\n2,20,", "\n2,20,NaN\n9,20,"),
    ),
    Case(
        "+inf score in a table",
        BOTH,
        ("b.csv", "'score'", "row 7", "inf"),
        swap("b.csv", "\n2,20,", "\n2,20,inf\n9,20,"),
    ),
    Case("text score", BOTH, ("b.csv", "'score'", "'high'"), swap("b.csv", "\n2,20,", "\n2,20,high\n9,20,")),
    Case(
        "no score column",
        BOTH,
        ("b.csv", "'score' or 'rank'", "user, item, points", "--columns score="),
        swap("b.csv", "score", "points"),
    ),
    Case(
        "duplicate scores",
        BOTH,
        ("b.csv", "user 2, item 20", "each pair once"),
        swap("b.csv", "\n2,20,", "\n2,20,9\n2,20,"),
    ),
    Case("scores without rows", BOTH, ("b.csv", "no rows"), content("b.csv", "user,item,score\n")),
    Case("empty table of scores", BOTH, ("b.csv", "empty"), content("b.csv", "")),
    Case("rank 0", TOP, ("top.csv", "'rank'", "row 1", "is 0", "from 1"), swap("top.csv", "1,30,1", "1,30,0")),
    Case("rank 1.5", TOP, ("top.csv", "'rank'", "row 1", "1.5", "from 1"), swap("top.csv", "1,30,1", "1,30,1.5")),
    Case(
        "wrong arrays",
        FULL,
        ("a.npz", "points", "expected scores", "user_factors"),
        arrays(without=("scores",), points=np.ones((4, 5))),
    ),
    Case(
        "half of the factors",
        FULL,
        ("a.npz", "user_factors", "item_factors"),
        arrays(without=("scores",), user_factors=np.ones((4, 2))),
    ),
    Case(
        "object ids", FULL, ("a.npz", "object array", "dtype=str"), arrays(users=np.array([1, 2, 3, 4], dtype=object))
    ),
    Case("object scores", FULL, ("a.npz", "object array"), arrays(scores=np.ones((4, 5), dtype=object))),
    Case("truncated npz", FULL, ("a.npz", "cannot be read as .npz", "anew"), truncated("a.npz")),
    Case("empty npz", FULL, ("a.npz", "cannot be read as .npz"), content("a.npz", "")),
    Case("damaged npz", FULL, ("a.npz", "cannot be read as .npz", "anew"), flipped),
    # no array in it at all, so no advice about object arrays
    Case("text named npz", FULL, ("a.npz", "cannot be read as .npz"), renamed("labels.csv", "a.npz")),
    Case("npy named npz", FULL, ("a.npz", ".npz"), bare_matrix),
    Case(
        "npz named npy",
        "evaluate labels.csv --scores a=a.npy",
        ("a.npy", "cannot be read as .npy"),
        renamed("a.npz", "a.npy"),
    ),
    Case(
        "factors that do not match",
        FULL,
        ("a.npz", "(4, 2)", "(5, 3)", "[users x d]"),
        arrays(without=("scores",), user_factors=np.ones((4, 2)), item_factors=np.ones((5, 3))),
    ),
    Case(
        "a bias too short",
        FULL,
        ("a.npz", "item_bias", "(4,)", "(5,)"),
        arrays(without=("scores",), user_factors=np.ones((4, 2)), item_factors=np.ones((5, 2)), item_bias=np.ones(4)),
    ),
    Case(
        "NaN factors",
        FULL,
        ("a.npz", "finite"),
        arrays(without=("scores",), user_factors=np.full((4, 2), np.nan), item_factors=np.ones((5, 2))),
    ),
    Case(
        "scores of three dimensions", FULL, ("a.npz", "(4, 5, 1)", "[users x items]"), arrays(scores=np.ones((4, 5, 1)))
    ),
    Case("text in dense scores", FULL, ("a.npz", "(4, 5)", "numbers"), arrays(scores=np.full((4, 5), "x"))),
    Case("too few users", FULL, ("a.npz", "users", "3 ids", "4"), arrays(users=np.arange(1, 4))),
    Case("too many items", FULL, ("a.npz", "items", "6 ids", "5"), arrays(items=np.arange(6))),
    Case("repeated users", FULL, ("a.npz", "users", "repeated"), arrays(users=np.array([1, 2, 3, 3]))),
    Case("ids of two dimensions", FULL, ("a.npz", "users", "2 dimensions"), arrays(users=np.arange(1, 5)[:, None])),
    Case(
        "ids with half numbers",
        FULL,
        ("a.npz", "users", "2.5", "whole numbers or text"),
        arrays(users=np.array([1.5, 2.5, 3.5, 4.5])),
    ),
    Case("NaN among ids", FULL, ("a.npz", "users"), arrays(users=np.array([1.0, 2.0, 3.0, np.nan]))),
    Case(
        "a matrix of another size", NPY, ("m.npy", "users", "4 ids", "3"), matrix("item\n10\n20\n30\n40\n50\n", rows=3)
    ),
    # which of the two columns is meant is anybody's guess
    Case("repeated names of columns", NPY, ("items", "repeated"), matrix("item\n10\n20\n30\n30\n40\n")),
]

MATCHING = [
    # the file named first must be the one whose ids are said to be text
    Case(
        "text against numbers, labels",
        FULL,
        ("truerank: labels.csv", "ids are text", "'u1'", "numbers"),
        text_users("labels.csv"),
    ),
    Case("numbers against text, scores", BOTH, ("b", "labels.csv", "text", "'u1'", "numbers"), text_users("b.csv")),
    Case(
        "numbers against text, npz",
        FULL,
        ("a", "labels.csv", "text", "numbers"),
        arrays(users=np.array(["1", "2", "3", "4"])),
    ),
    Case(
        "items as text",
        FULL,
        ("labels.csv", "'item'", "text", "numbers"),
        arrays(items=np.array(["10", "20", "30", "40", "50"])),
    ),
    Case(
        "items as text in a top list",
        f"{TOP} --n-items 9 --metric Recall@2",
        ("text", "numbers", "'i30'"),
        swap("top.csv", ",30,", ",i30,"),
    ),
    Case(
        "users as text in exclusions",
        f"{FULL} --exclude train.csv",
        ("train.csv", "'user'", "text", "numbers"),
        text_users("train.csv"),
    ),
    Case(
        "items as text in exclusions of top lists",
        f"{TOP} --n-items 9 --metric Recall@2 --exclude train.csv",
        ("train.csv", "text", "numbers"),
        swap("train.csv", "1,20", "1,i20"),
    ),
    Case(
        "different catalogues",
        f"{FULL} --scores c=c.npz",
        ("a and c", "catalogues", "50", "--items"),
        arrays("c.npz", scores=np.ones((4, 4)), items=np.array([10, 20, 30, 40])),
    ),
    Case(
        "a list beyond the catalogue",
        f"{FULL} --scores t=top.csv",
        ("t,", "not in the catalogue", "60"),
        swap("top.csv", "1,30,1", "1,60,1"),
    ),
    Case(
        "no user in common",
        FULL,
        ("a and labels.csv", "no user in common", "91", "1, 2, 3"),
        arrays(users=np.array([91, 92, 93, 94])),
    ),
    Case(
        "a judged user who does not count",
        f"{FULL} --population some.csv",
        ("labels.csv", "'user'", "id 3", "users"),
        content("some.csv", "user\n1\n2\n"),
    ),
    Case(
        "judged and excluded",
        f"{FULL} --exclude train.csv --overlap error",
        ("labels.csv", "user 1, item 20", "--overlap drop", "--overlap keep"),
    ),
    Case(
        "a judged item that is no candidate",
        f"{FULL} --candidates cand.csv",
        ("cand.csv", "user 2, item 20", "candidates"),
        candidates(leave_out="2,20,1\n"),
    ),
    Case(
        "a candidate outside the catalogue",
        f"{FULL} --candidates cand.csv",
        ("cand.csv", "'item'", "60", "catalogue"),
        candidates(add="2,60,0\n"),
    ),
    Case("--n-items below what the files name", f"{TOP} --n-items 3 --metric Recall@2", ("--n-items 3", "5 items")),
    Case("--n-items against the catalogue", f"{FULL} --n-items 7", ("--n-items 7", "5 items")),
    Case("pooled from top lists without N", f"{TOP} --metric Recall@2", ("top lists", "--items", "--n-items")),
    Case(
        "a cut-off beyond the list",
        f"{TOP} --metric Recall@3 --n-items 5",
        ("Recall@3", "t lists at most 2", "up to 2"),
    ),
    Case(
        "no cut-off for a list",
        "evaluate labels.csv --scores t=top.csv --n-items 5 --metric RR",
        ("RR", "t lists at most 2", "cut-off"),
    ),
    Case(
        "judged items within a top list",
        f"{TOP} --metric Recall@2 --n-items 5 --estimator traditional",
        ("traditional", "top lists", "score of each of them"),
    ),
]

OPTIONS = [
    Case("K = 0", f"{FULL} --metric Recall@0", ("'Recall@0'", "k=", "from 1")),
    Case("negative K", f"{FULL} --metric Precision@-3", ("'Precision@-3'", "k=", "from 1")),
    Case("half a K", f"{FULL} --metric Recall@1.5", ("metric", "'Recall@1.5'", "expected a whole number")),
    Case("no K", f"{FULL} --metric Recall", ("metric 'Recall'", "Recall@K")),
    Case(
        "unknown metric", f"{FULL} --metric Recal@5", ("unknown metric 'Recal@5'", "Recall@K", "Did you mean Recall@5?")
    ),
    Case(
        "unknown estimator", f"{FULL} --estimator poled", ("unknown estimator 'poled'", "hajek", "Did you mean pooled?")
    ),
    *(
        Case(
            f"{metric} from partial labels",
            f"{RANDOM} --metric {metric} --estimator horvitz-thompson",
            (f"{metric} with horvitz-thompson", "partial labels cannot give", f"use {instead}"),
        )
        for metric, instead in (("nDCG@2", "DCG"), ("HitRate@2", "Recall or Precision"), ("RR", "DCG"), ("AP@2", "DCG"))
    ),
    Case(
        "recall by horvitz-thompson",
        f"{RANDOM} --metric Recall@2 --estimator horvitz-thompson",
        ("Recall@2 with horvitz-thompson", "unknown number", "use pooled"),
    ),
    Case(
        "precision by pooled",
        f"{RANDOM} --metric Precision@2 --estimator pooled",
        ("Precision@2 with pooled", "use horvitz-thompson or hajek"),
    ),
    Case("full from a sample", f"{RANDOM} --metric Recall@2 --estimator full", ("Recall@2 with full", "pooled")),
    *(
        Case(f"level {level}", f"{FULL} --level {level}", ("level is", "between 0 and 1"))
        for level in ("0", "1", "1.5", "nan")
    ),
    Case("level as text", f"{FULL} --level high", ("'--level'", "'high'")),
    Case("unknown baseline", f"{FULL} --baseline b", ("baseline 'b'", "expected one of a")),
    Case("a name twice", f"{FULL} --scores a=b.csv", ("--scores 'a=b.csv'", "'a'", "twice")),
    Case("scores without a name", f"{FULL} --scores =b.csv", ("--scores '=b.csv'", "NAME=FILE")),
    Case("scores without a file", f"{FULL} --scores b=", ("--scores 'b='", "NAME=FILE")),
    Case("columns without a name", f"{FULL} --columns user", ("--columns 'user'", "user=user_id")),
    Case("columns without a key", f"{FULL} --columns =user_id", ("--columns '=user_id'", "user=user_id")),
    # a key that no reader looks at is a typing error, and would be ignored in silence
    Case("columns with an unknown key", f"{FULL} --columns usr=user_id", ("--columns", "'usr'", "user")),
    Case(
        "columns of no file", f"{FULL} --columns score.user=u", ("--columns", "'score' is no file", "exclude", "scores")
    ),
    Case(
        "design interval of published",
        f"{RANDOM} --metric Recall@2 --estimator published --interval design",
        ("Recall@2 with published", "--interval population"),
    ),
    Case(
        "design interval by bootstrap",
        f"{FULL} --interval design --bootstrap 100",
        ("--bootstrap", "--interval population"),
    ),
    Case(
        "optimistic ties on partial labels",
        f"{RANDOM} --metric Recall@2 --estimator pooled --ties optimistic",
        ("ties optimistic", "unknown", "expected, random, strict"),
    ),
    Case(
        "strict ties with hajek",
        f"{RANDOM} --metric Precision@2 --estimator hajek --ties strict",
        ("Precision@2 with hajek", "ties strict", "expected, random"),
    ),
    Case("a rate with full exposure", f"{FULL} --exposure full --rate 0.5", ("--rate", "--exposure random")),
    Case("a rate of 0", f"{RANDOM} --rate 0", ("rate=0;", "above 0 up to 1")),
    Case("a rate above 1", f"{RANDOM} --rate 2", ("rate=2;", "above 0 up to 1")),
    Case("unlisted negatives in a sample", f"{RANDOM} --unlisted negative", ("--unlisted negative", "--exposure full")),
    Case("one bootstrap sample", f"{FULL} --bootstrap 1", ("--bootstrap 1", "at least 2")),
    Case("no thread", f"{FULL} --threads 0", ("--threads 0", "from 1")),
    Case("unknown exposure", f"{FULL} --exposure some", ("'--exposure'", "'some'", "'full', 'holdout', 'random'")),
    Case("unknown ties", f"{FULL} --ties lucky", ("'--ties'", "'lucky'", "'expected'")),
    Case("unknown format", f"{FULL} --format xml", ("'--format'", "'xml'", "'json'")),
    Case("unknown option", f"{FULL} --metrics Recall@2", ("'--metrics'", "--metric")),
    Case("no labels", "evaluate --scores a=a.npz", ("LABELS",)),
    Case("no scores", "evaluate labels.csv", ("'--scores'",)),
    Case("unknown command", "evalute labels.csv", ("'evalute'",)),
    Case("nothing to describe", "advise gone.csv", ("gone.csv", "no such file")),
]

FORMATS = [
    Case("graded relevance", f"evaluate l.qrels {SCORED}", ("l.qrels", "--positive"), content("l.qrels", "1 0 10 2\n")),
    Case(
        "qrels as scores",
        "evaluate labels.csv --scores q=q.trec",
        ("q.trec", "'score' or 'rank'", "user, item, rating"),
        content("q.trec", "1 0 10 1\n"),
    ),
    Case("no gzip", f"evaluate l.csv.gz {SCORED}", ("l.csv.gz", "gzip", "anew"), renamed("labels.csv", "l.csv.gz")),
]  # fmt: skip

CASES = [*TABLES, *FILES, *SCORES, *MATCHING, *OPTIONS, *FORMATS]


# --------------------------------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("call", [FULL, RANDOM, BOTH, f"{TOP} --n-items 5 --metric Recall@2"])
def test_the_files_are_fine_before_they_are_broken(run: Run, call: str) -> None:
    outcome = run(call).fine()
    assert "Recall" in outcome.out


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_helpful_message_and_nothing_else(case: Case, run: Run, folder: Path) -> None:
    case.spoil(folder)
    before = everything(folder)
    for output in ((), ("--out", "result/out.json")):
        outcome = run(*shlex.split(case.call), *output)
        assert outcome.code == 2, outcome.err
        assert outcome.out == ""
        assert "Traceback" not in outcome.err
        missing = [word for word in case.words if word not in outcome.message]
        assert not missing, outcome.message
        assert everything(folder) == before


def test_names_of_cases_differ() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("gone/out.json", ("gone/out.json", "cannot be written", "folder is missing")),
        ("result", ("result", "is a folder")),
        ("train.csv/out.json", ("train.csv/out.json", "cannot be written")),
        (f"result/{'o' * 300}", ("ooo", "cannot be written")),
    ],
    ids=["folder missing", "a folder", "below a file", "name too long"],
)
def test_an_output_that_cannot_be_written(run: Run, folder: Path, out: str, words: tuple[str, ...]) -> None:
    before = everything(folder)
    outcome = run(f"{FULL} --out {out}")
    assert (outcome.code, outcome.out) == (2, "")
    assert all(word in outcome.message for word in words), outcome.message
    assert everything(folder) == before


def test_quiet_silences_no_error(run: Run, folder: Path) -> None:
    one_score(np.nan)(folder)
    outcome = run(f"{FULL} --quiet")
    assert (outcome.code, outcome.out) == (2, "")
    assert "user 2, item 20" in outcome.message


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission(run: Run, folder: Path) -> None:
    closed(folder)
    outcome = run(FULL)
    assert (outcome.code, outcome.out) == (2, "")
    assert "labels.csv" in outcome.message
    assert "permission" in outcome.message


@pytest.mark.parametrize(
    "name", ["missing labels", "truncated Parquet", "truncated npz", "NaN score", "unknown option"]
)
def test_the_same_in_a_process_of_its_own(folder: Path, name: str) -> None:
    """Warnings, leaked files and what libraries print on their own would show here."""
    case = next(case for case in CASES if case.name == name)
    case.spoil(folder)
    before = everything(folder)
    command = [
        sys.executable,
        "-X",
        "dev",
        "-m",
        "truerank",
        *with_exposure(tuple(shlex.split(case.call))),
        "--out",
        "result/out.json",
    ]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert found.stdout == ""
    said = [line for line in found.stderr.splitlines() if line.strip() and not line.startswith(("Usage:", "Try '"))]
    assert len(said) == 1, found.stderr
    assert all(word in said[0] for word in case.words), said[0]
    assert everything(folder) == before


def everything(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, temporary ones too, with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
