"""Attacks on the public border, as one table: what is tried, and how it must end.

Every case is a command: what it prints and writes, what must be in there and what must not. It runs in a folder with
labels of all pairs (`labels.parquet`, with times `timed.parquet`) and the scores of two models (`a.npz`, `b.npz`).
"""

from __future__ import annotations

import gzip
import os
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from truerank.core.arrays import LARGEST_NUMBER, LEAST_CHANCE

USERS, ITEMS = 12, 8
ESCAPES = "\x1b]0;owned\x07\x9b31m\u202e"
OBEYED = ("\x1b", "\x07", "\x9b", "\u202e", "\x00")
NOT_XML = "\x1b\x01\ufffe\uffff"
SCRIPT, COMMAND = "<script>alert(1)</script>", "\\input{/etc/passwd}"
EVALUATE = ("evaluate", "labels.parquet", "--scores", "a=a.npz", "--metric", "Precision@2", "--quiet")


Input = str | bytes | pl.DataFrame | Callable[[Path], Any]


@dataclass(frozen=True, slots=True)
class Attack:
    """A command and how it must end; of `files`, which it writes, the content counts as printed.

    `value` is that of the first estimate in the JSON that it prints.
    """

    what: str
    words: tuple[str, ...]
    code: int | tuple[int, ...] = 0
    holds: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    inputs: dict[str, Input] = field(default_factory=dict)
    value: float | None = None


def make_input(content: Input, path: Path) -> None:
    if isinstance(content, pl.DataFrame):
        content.write_parquet(path)
    elif isinstance(content, str | bytes):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    else:
        content(path)


def named(name: str, *more: str) -> tuple[str, ...]:
    return (*EVALUATE, "--scores", f"{name}=b.npz", *more)


def groups(name: str) -> pl.DataFrame:
    return pl.DataFrame({"user": range(USERS), "group": [f"{name}{user % 2}" for user in range(USERS)]})


def write_part(path: Path, dropped: int | None) -> None:
    """The rows of user 1, with or without that column; or a link to the part a.parquet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if dropped is None:
        path.symlink_to("a.parquet")
        return
    rows = pl.DataFrame({"user": [1] * ITEMS, "item": range(ITEMS), "label": [0, 1] * (ITEMS // 2)})
    rows = rows.drop("user") if dropped else rows
    rows.write_csv(path) if path.suffix == ".csv" else rows.write_parquet(path)


def parts(files: Sequence[tuple[str, int | None]]) -> Callable[[Path], Any]:
    def write(folder: Path) -> None:
        for name, dropped in files:
            write_part(folder / name, dropped)

    return write


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
    Attack("no XML in the picture of watch", (*WATCH, "--out", "watch.svg"), code=4),
    Attack("no XML in the report of watch", (*WATCH, "--report", "watch.html"), code=4, files=("watch.html",),
           lacks=("\ufffe", "\uffff", "\x1b")),
    *(
        Attack(f"a secret in an address, {address}", ("evaluate", address, "--scores", "a=a.npz"), code=2,
               lacks=("hunter2",))
        for address in (
            "s3://logs/a.parquet?X-Amz-Security-Token=hunter2", "az://logs/a.parquet?sv=1&sig=hunter2",
            "s3://me:hunter2@logs/a.parquet", "https://me:hunter2@host/a.parquet", "gs://logs/a.parquet?token=hunter2",
        )
    ),
    *(
        Attack(f"a secret in the address of an engine, {engine}", (*EVALUATE, "--engine", engine), code=2,
               lacks=("hunter2",))
        for engine in ("dask:tls://me:hunter2@127.0.0.1:1", "none:tls://me:hunter2@host:1")
    ),
    Attack("a template in a name", (*EVALUATE, "--scores", "{option:force}=none.npz"), code=2, lacks=("--force",)),
    Attack("a template in a path", (*EVALUATE, "--scores", "b={option:force}.npz"), code=2,
           holds=("{option:force}.npz",)),
    Attack("a digit that is no decimal", (*EVALUATE, "--within", "\u00b2"), code=2, holds=("no such file",)),
    Attack("JSON of 100,000 levels", ("report", "deep.json", "--out", "deep.html"), code=2,
           inputs={"deep.json": "[" * 100_000}),
    Attack("one name for two columns", (*EVALUATE, "--columns", "label=label,label=item"), code=2,
           holds=("named twice",)),
    *(
        Attack(f"a header with a name twice, {header}",
               ("evaluate", "twice.csv", "--scores", "a=a.npz", "--metric", "Recall@2"), code=2, holds=("two columns",),
               inputs={"twice.csv": f"{header}\n0,0,1,0\n"})
        for header in ("user,item,label,label", 'user,item,label,"label"', "user,label,label,label_duplicated_0")
    ),
    Attack("results at the marker's name", (*EVALUATE, "--out", "truerank.json")),
    *(
        Attack(what, ("advise", "parts", "--format", "json"), code=code, holds=holds,
               inputs={"parts": parts(files)})
        for what, code, holds, files in (
            ("user=7 beside user=007", 0, ('"users": 2',), [("user=7/a.parquet", 1), ("user=007/a.parquet", 1)]),
            ("a column of the file that its folder denies", 2, ("user=9",), [("user=9/a.parquet", 0)]),
            ("a CSV among Parquet parts", 2, ("one kind",), [("day=1/a.parquet", 0), ("day=1/b.csv", 0)]),
            ("parts that a failed job left", 0, (f'"rows": {ITEMS}',),
             [("day=1/a.parquet", 0), ("day=1/_temporary/0/a.parquet", 0), ("day=1/.b.parquet", 0)]),
            ("a link to a part", 0, (f'"rows": {ITEMS}',), [("day=1/a.parquet", 0), ("day=1/latest.parquet", None)]),
            ("a link to a part of a plain folder", 0, (f'"rows": {ITEMS}',), [("a.parquet", 0), ("z.parquet", None)]),
        )
    ),
    *(
        Attack(f"brackets in the name of a folder, {path}", ("advise", path, "--format", "json"),
               holds=(f'"rows": {ITEMS}',),
               inputs={"x[1]": lambda path: write_part(path / "day=1/a.parquet", 0)})
        for path in ("x[1]", "x[1]/*/*.parquet")
    ),
    *(
        Attack(f"values of RecBole, {header}", ("advise", "t.inter", "--format", "json"),
               holds=('"positives": 1',),
               inputs={"t.inter": (
                   f"user_id:token\titem_id:token\t{header}\n0\t1\t1\t1\n0\t2\t0\t0\n")})
        for header in (
            "label:float\tx:float", "value:float\tx:token", "reward:float\tx:token", "click:token\trating:float",
        )
    ),
]  # fmt: skip


# --------------------------------------------------------------------------------------- ids as they are written, names

BIG = 2**60  # beyond what doubles hold
TABLE = "user,item,label,price\n001,0101,1,1.50\n1e3,7.0,0,.5\n=1+1,@x,1,2\n"
BAD = os.fsdecode(b"caf\xe9")
RECALL = ("--metric", "Recall@1", "--unlisted", "negative", "--format", "json", "--quiet")
IDS = ("evaluate", "labels.csv", "--scores", "m=scores.csv", *RECALL)
MATRIX = np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]])


def first_items(first: int) -> str:
    """User u likes the item that row u of the matrix has first; ids begin with `first`."""
    rows = [f"{user + first},{item + first},{int(user == item)}" for user in range(3) for item in range(3)]
    return "\n".join(["user,item,label", *rows])


def arrays(**named_arrays: Any) -> Callable[[Path], Any]:
    return lambda path: np.savez(path, **named_arrays)


def large_scores(kind: Any, path: Path) -> None:
    scores = pl.DataFrame({"user": [1, 1], "item": [1, 2], "score": pl.Series([BIG, BIG + 1], dtype=kind)})
    scores.write_parquet(path) if path.suffix == ".parquet" else scores.write_csv(path)


def make_parts(folder: Path, names: Iterable[str]) -> None:
    folder.mkdir()
    for name in names:
        (folder / f"{name}.csv").write_text(first_items(0))


MATRICES: dict[str, tuple[str, Input]] = {
    "dense": ("m.npz", arrays(scores=MATRIX)),
    "factors": ("m.npz", arrays(user_factors=np.eye(3), item_factors=MATRIX.T)),
    "sparse": ("m.npz", lambda path: sparse.save_npz(path, sparse.csr_array(MATRIX))),
    "npy": ("m.npy", lambda path: np.save(path, MATRIX)),
}
ATTACKS += [
    *(Attack(f"an id equal as a number alone, {odd!r}", IDS, code=2, holds=("text never matches numbers",),
             inputs={"labels.csv": f"user,item,label\n{odd},1,1\n", "scores.csv": "user,item,score\n7,1,0.5\n"})
      for odd in ("007", "+7", "7.0", "7e0", " 7")),
    *(Attack(f"two spellings of a number are two items, {one} and {two}", IDS, value=1.0,
             inputs={"labels.csv": f"user,item,label\nu,{one},1\nu,{two},0\n",
                     "scores.csv": f"user,item,score\nu,{one},2\nu,{two},1\n"})
      for one, two in (("1e3", "1000"), ("true", "True"), ("1.0", "1"), ("nan", "NaN"))),
    Attack("groups and populations as written", (*IDS, "--within", "groups.csv", "--population", "people.csv"),
           value=0.5, holds=('"1e1"', '"10"'),
           inputs={"labels.csv": "user,item,label\n1e3,1,1\n1000,1,1\n1e3,2,0\n1000,2,0\n",
                   "scores.csv": "user,item,score\n1e3,1,2\n1e3,2,1\n1000,1,1\n1000,2,2\n",
                   "groups.csv": "user,group\n1e3,1e1\n1000,10\n", "people.csv": "who\n1e3\n1000\n"}),
    Attack("sessions and targets as written",
           ("offpolicy", "log.csv", "--target", "new=new.csv", "--position", "log", "--format", "json"), value=2 / 3,
           inputs={"log.csv": "session,item,position,reward\n1e1,1.0,1,1\n10,1,1,0\n7,1,1,1\n",
                   "new.csv": "session,item,rank\n1e1,1.0,1\n10,1,1\n7,1,1\n"}),
    Attack("padded ids, odd numbers and formulas in a table of data",
           ("intervene", "z.csv", "--strategy", "full", "--out", "z2.csv"), files=("z2.csv",),
           holds=(TABLE,), inputs={"z.csv": TABLE}),
    *(Attack(f"a carriage return at the end of an id, {odd!r}", ("advise", "x.csv"), code=2, holds=("LF or CRLF",),
             inputs={"x.csv": b"user,item,label\r\n8,1,1\r\n" + odd})
      for odd in (b"7\r,1,1\n", b"7,1,1\r\r\n", b'"a""b",7\r,1\n')),
    *(Attack(f"whole scores beyond doubles, {kind}, {name}",
             ("evaluate", "labels.csv", "--scores", f"m={name}", *RECALL), value=1.0,
             inputs={"labels.csv": "user,item,label\n1,2,1\n", name: partial(large_scores, kind)})
      for name in ("s.csv", "s.parquet") for kind in (pl.Int64, pl.UInt64, pl.Int128)),
    Attack("whole scores of a run beyond doubles", ("evaluate", "labels.csv", "--scores", "m=m.run", *RECALL),
           value=1.0, inputs={"labels.csv": "user,item,label\n1,2,1\n",
                              "m.run": f"1 Q0 1 1 {BIG} x\n1 Q0 2 2 {BIG + 1} x\n"}),
    Attack("a matrix of integers beyond doubles", ("evaluate", "labels.csv", "--scores", "m=m.npz", *RECALL), code=2,
           holds=("beyond 2^53",), inputs={"labels.csv": "user,item,label\n1,2,1\n",
                                           "m.npz": arrays(scores=[[BIG, BIG + 1]], users=[1], items=[1, 2])}),
    *(Attack(f"numbers from {first} are rows of a matrix, {kind}",
             ("evaluate", "labels.csv", "--scores", f"m={name}", *RECALL[:-1]), code=2 if first else 0,
             value=None if first else 1.0,
             holds=("3 rows without ids of users",) if first else ("rows are read as users 0 to 2",),
             inputs={"labels.csv": first_items(first), name: make})
      for kind, (name, make) in MATRICES.items() for first in (0, 1)),
    *(Attack(f"other users than those of the file, {ids}", (*IDS[:3], "m=m.npz", "--users", "ids.csv", *RECALL),
             code=code, value=None if code else 1.0,
             inputs={"labels.csv": first_items(1), "ids.csv": "id\n" + "\n".join(ids),
                     "m.npz": arrays(scores=MATRIX, users=[1, 2, 3], items=[1, 2, 3])})
      for ids, code in (("312", 0), ("124", 2))),
    *(Attack(f"a name that is not UTF-8, {words[0]} {at}", words, code=2, holds=("caf\\xe9", "not UTF-8"),
             inputs={f"{BAD}.csv": first_items(0), "parts": partial(make_parts, names=("a", BAD))})
      for at, words in enumerate((
          ("evaluate", f"{BAD}.csv", "--scores", "m=a.npz"), (*EVALUATE, "--scores", f"{BAD}=a.npz"),
          (*EVALUATE, "--scores", f"m={BAD}.npy"), (*EVALUATE, "--columns", f"user={BAD}"), ("advise", f"{BAD}.csv"),
          ("advise", "parts"), ("intervene", "labels.parquet", "--strategy", "full", "--out", f"{BAD}.csv")))),
    *(Attack(f"bytes that are not UTF-8 in {name}", ("advise", name), code=2, holds=(name,), inputs={name: written})
      for name, written in (("header.csv", b"us\xe9r,item,label\n1,2,1\n"), ("x.qrels", b"1 0 caf\xe9 1\n"),
                            ("id.csv", b"user,item,label\ncaf\xe9,2,1\n"),
                            ("label.csv", b"user,item,label\n1,2,\xff\n"))),
    *(Attack(f"what a terminal obeys, {at}", words, code=(0, 2), lacks=OBEYED, inputs={"evil.csv": evil})
      for evil in [f"user,item,label,x{ESCAPES}\nu{ESCAPES},i{ESCAPES},1,1\nu,i{ESCAPES},0,2\n"]
      for at, words in enumerate((
          ("advise", "evil.csv"), ("advise", f"{ESCAPES}.csv"), ("advise", f"--{ESCAPES}"), (ESCAPES,),
          ("evaluate", "evil.csv", "--scores", f"m=no{ESCAPES}.csv"), (*EVALUATE, "--metric", f"Recall@2{ESCAPES}")))),
    *(Attack(f"an ending that is not known, {name}", ("advise", "labels.parquet", "--out", name), code=2,
             holds=(".txt, .json, .csv",)) for name in ("r.html", "r.mdx", "r.xlsx", "r.parquet")),
    *(Attack(f"one output would replace another, {outputs}", (*EVALUATE, *outputs.split()), code=2,
             holds=("Choose another name for one of them",),
             inputs={"x": lambda path: path.mkdir(), "there": lambda path: path.mkdir()})
      for outputs in ("--units u.parquet --out u.parquet", "--units u.parquet --out ./x/../u.parquet",
                      "--save made --out made", "--save there --units there/u.parquet",
                      "--save there --out there/r.json")),
]  # fmt: skip


# ----------------------------------------------------------------------------------------- sizes, numbers, packed files

N = 60


def ranked_log(**columns: Any) -> pl.DataFrame:
    places = {
        "item": np.tile([1, 2, 3], N // 3),
        "position": np.tile([1, 2, 3], N // 3),
        "rank": np.tile([3, 1, 2], N // 3),
    }
    return pl.DataFrame(
        {"session": np.repeat(np.arange(N // 3), 3), "reward": np.random.default_rng(0).random(N)} | places | columns
    )


def chosen_log(**columns: Any) -> pl.DataFrame:
    known = {"propensity": np.full(N, 0.5), "target_propensity": np.full(N, 0.25)}
    return pl.DataFrame({"item": np.arange(N) % 4, "reward": np.random.default_rng(0).random(N)} | known | columns)


def but_first(first: float, rest: float = 0.5) -> list[float]:
    return [first] + [rest] * (N - 1)


def damaged_npz(path: Path, header: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("scores.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


RANKS, CHOICES = "--target new=@rank --position", "--target new=@exposure:target_propensity"
OFFPOLICY: dict[str, tuple[int, pl.DataFrame, str]] = {
    "tiniest propensity": (2, chosen_log(propensity=but_first(1e-320)), CHOICES),
    "tiny propensity": (2, chosen_log(propensity=but_first(1e-41)), CHOICES),
    "least propensity of a large reward": (
        0, chosen_log(propensity=but_first(LEAST_CHANCE), reward=but_first(LARGEST_NUMBER)), CHOICES),
    "largest reward": (2, ranked_log(reward=but_first(1e308)), f"{RANKS} log"),
    "large negative reward": (2, ranked_log(reward=but_first(-1e150)), f"{RANKS} log"),
    "large rewards": (0, ranked_log(reward=but_first(LARGEST_NUMBER, -0.3 * LARGEST_NUMBER)), f"{RANKS} log"),
    "tiny rewards": (0, ranked_log(reward=but_first(1e-300, 3e-310)), f"{RANKS} log"),
    "a position without exposure": (2, ranked_log(position=np.tile([1, 2, 5000], N // 3)), f"{RANKS} exp:0.5"),
    "a position next to none": (2, ranked_log(position=np.tile([1, 2, 1050], N // 3)), f"{RANKS} exp:0.5"),
}  # fmt: skip
TOO_LARGE = {
    "simulate world --n-users 10000000 --n-items 10000000 --out new": ("a dataset of 10,000,000 users", "8 PB"),
    "simulate feed --n-sessions 100000000000 --out new": ("a feed of 100,000,000,000 sessions",),
    "train ials labels.parquet --set factors=100000000 --out new.npz": ("100,000,000 factors", "Take fewer factors."),
    "evaluate labels.parquet --scores a=wide.npz": ("16 EB",),
    "evaluate labels.parquet --scores a=a.npz --bootstrap 1000000000": ("expected 2 to 1,000,000",),
    "study reliability labels.parquet --scores a=a.npz --scores b=b.npz --repetitions 1000000000 --out new": (
        "a study of 1,000,000,000 repetitions",),
    "study reliability labels.parquet --scores a=a.npz --scores b=b.npz --bootstrap 1000000000 --out new": (
        "expected 2 to 1,000,000",),
}  # fmt: skip
HEADERS = {
    "no header": b"", "a header that is no dict": b"[1]\n", "another key": b"{'descr': '<f8', 'x': 1}\n",
    "a negative shape": b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 8), }\n",
    "an object": b"{'descr': '|O', 'fortran_order': False, 'shape': (1, 8), }\n",
    "nested": b"(" * 200 + b"\n",
}  # fmt: skip
ATTACKS += [
    *(Attack(f"off-policy numbers: {name}", ("offpolicy", "log.parquet", *options.split(), "--format", "json"),
             code=code, lacks=('"inf"', "NaN", "Infinity", "Warning"), inputs={"log.parquet": log})
      for name, (code, log, options) in OFFPOLICY.items()),
    *(Attack(f"too large: {words}", tuple(words.split()), code=2, holds=holds,
             inputs={"wide.npz": arrays(scores=np.zeros((0, 10**18), dtype=np.float32))})
      for words, holds in TOO_LARGE.items()),
    *(Attack(f"an archive whose array has {what}", (*EVALUATE, "--scores", "b=x.npz"), code=2, holds=("x.npz",),
             inputs={"x.npz": partial(damaged_npz, header=header)})
      for what, header in HEADERS.items()),
    Attack("a packed table with blocks of zeros behind it", ("advise", "x.csv.gz", "--format", "json"),
           holds=('"rows": 9',), inputs={"x.csv.gz": gzip.compress(first_items(0).encode()) + bytes(512)}),
]  # fmt: skip
