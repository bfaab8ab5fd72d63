"""Attacks on the public border, as one table: what is tried, and how it must end.

Every case is a command in this process, or a call of the library: what it prints and writes, what must be in there and
what must not. An internal error is never right.
"""

from __future__ import annotations

import io
import json
import stat
import zipfile
from collections.abc import Callable, Sequence
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
    code: int | tuple[int, ...] = 0
    holds: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    inputs: dict[str, Callable[[Path], Any]] = field(default_factory=dict)


def named(name: str, *more: str) -> tuple[str, ...]:
    return (*EVALUATE, "--scores", f"{name}=b.npz", *more)


def groups(name: str) -> Callable[[Path], Any]:
    rows = {"user": range(USERS), "group": [f"{name}{user % 2}" for user in range(USERS)]}
    return lambda path: pl.DataFrame(rows).write_parquet(path)


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


def content(written: bytes) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(written)


def bomb(path: Path) -> None:
    """An archive whose array declares more bytes than it packs can hold."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
        stream = io.BytesIO()
        np.lib.format.write_array_header_1_0(stream, header)
        archive.writestr("scores.npy", stream.getvalue())


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
           inputs={"deep.json": lambda path: path.write_text("[" * 100_000)}),
    Attack("one name for two columns", (*EVALUATE, "--columns", "label=label,label=item"), code=2,
           holds=("named twice",)),
    *(
        Attack(f"a header with a name twice, {header}",
               ("evaluate", "twice.csv", "--scores", "a=a.npz", "--metric", "Recall@2"), code=2, holds=("two columns",),
               inputs={"twice.csv": content(f"{header}\n0,0,1,0\n".encode())})
        for header in ("user,item,label,label", 'user,item,label,"label"', "user,label,label,label_duplicated_0")
    ),
    *(
        Attack(f"results at the marker's name, then {what}", words)
        for what, words in (("a file beside them", (*EVALUATE, "--out", "truerank.json")),)
    ),
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
               inputs={"t.inter": content(
                   f"user_id:token\titem_id:token\t{header}\n0\t1\t1\t1\n0\t2\t0\t0\n".encode())})
        for header in (
            "label:float\tx:float", "value:float\tx:token", "reward:float\tx:token", "click:token\trating:float",
        )
    ),
    Attack("an archive that unpacks to more than memory", (*EVALUATE, "--scores", "b=bomb.npz"), code=2,
           inputs={"bomb.npz": bomb}),
]  # fmt: skip


ODD_NAMES = (
    "", " ", "a b", "'; rm -rf .", "$(id)", "`id`", "../../x", "a/b", "%s%n", "{0.__class__}", "\\", "\"", "a\tb",
    "\u200b", "\U0001f600", "x" * 5000, "\ufdd0a\ufdd1b\ufdd2", "</text>", "&amp;", "-", "--help", "NaN", "null",
    "\r", "@SUM(1)", "=cmd|' /C calc'!A0",
)  # fmt: skip
ODD_NUMBERS = ("0", "-1", "1e999", "nan", "inf", "\u0661", "1_000", "0x10", "10**9", "99999999999999999999", "", " ")
ODD_TABLES = {
    "no bytes": b'', "a header alone": b'user,item,label\n', "no header": b'0,0,1\n',
    "NUL bytes": b'user,item,label\n0,\x000,1\n',
    "UTF-16": "user,item,label\n0,0,1\n".encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbfuser,item,label\n0,0,1\n0,1,0\n',
    "an open quote": b'user,item,label\n"0,0,1\n', "more fields": b'user,item,label\n0,0,1,2\n',
    "fewer fields": b'user,item,label\n0\n', "the pair twice": b'user,item,label\n0,0,1\n0,0,0\n',
    "a label of 2": b'user,item,label\n0,0,2\n', "a text label": b'user,item,label\n0,0,yes\n',
    "NaN": b'user,item,label\n0,0,nan\n', "no user": b'user,item,label\n,0,1\n',
    "an infinite label": b'user,item,label\n0,0,inf\n', "returns alone": b'user,item,label\r0,0,1\r',
    "a Parquet inside": b'PAR1\x00\x00PAR1', "a pickle": b'\x80\x04\x95',
    "an empty name": b'user,item,,label\n0,0,1,1\n', "semicolons": b'user;item;label\n0;0;1\n',
}  # fmt: skip
PLACES = (
    ".", "/", "labels.parquet", "a.npz", "none/none/out", "/dev/null/x", "\u202e", "x" * 300, "{option:force}",
    "[1]",
)  # fmt: skip
ANY = (0, 2, 4, 5)
ATTACKS += [
    *(Attack(f"further: a model called {name[:20]!r}", named(name, "--report", "r.html"), code=ANY,
             lacks=("Traceback", "\x1b")) for name in ODD_NAMES),
    *(Attack(f"further: {option} {number!r}", (*EVALUATE, option, number), code=ANY,
             lacks=("Traceback",))
      for option in ("--within", "--level", "--bootstrap") for number in ODD_NUMBERS),
    *(Attack(f"further: a table with {what}",
             ("evaluate", "odd.csv", "--scores", "a=a.npz", "--metric", "Recall@2", "--exposure", "random"), code=ANY,
             lacks=("Traceback",), inputs={"odd.csv": content(table)})
      for what, table in ODD_TABLES.items()),
    *(Attack(f"further: results into {place[:20]!r}", (*EVALUATE, option, place), code=ANY,
             lacks=("Traceback",)) for option in ("--save", "--out") for place in PLACES),
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
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    outcome = call(*attack.words)
    assert {path: path.read_bytes() for path in before if path.is_file()} == before
    printed = "".join([outcome.out, outcome.err, *((here / name).read_text() for name in attack.files)])
    assert outcome.code in (attack.code if isinstance(attack.code, tuple) else (attack.code,)), outcome
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


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_file_that_is_replaced_keeps_its_permissions(here: Path, mode: int) -> None:
    out = here / "out.json"
    out.write_text("{}")
    out.chmod(mode)
    assert call(*EVALUATE, "--out", "out.json", "--force").code in (0, 2)
    assert stat.S_IMODE(out.stat().st_mode) == mode


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
    with pytest.raises(tr.InputError, match="two columns"):
        tr.read(frame)
    with pytest.raises(tr.InputError, match="several types"):
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
