"""The law of ids: what a command writes are the ids that it read, in every format, or it refuses them.

Files are written and read back by Python's csv module, numpy and polars themselves, not by the code under test.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from calling import Called, call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import truerank as tr
from truerank.core.errors import InputError

ODD = [
    "007", "7", "1e3", "1000", "+1", "1", " 1", "1 ", "-0", "0", "00", "-1", "1.0", "1.", ".5", "NaN", "nan", "inf",
    "null", "None", "true", "True", "false", "", str(2**53 + 1), str(2**63), str(2**64), str(-(2**63) - 1),
    str(10**30), str(10**40),
    "\U0001f600", "\u05e9\u05dc\u05d5\u05dd", "\u202eabc", 'a"b', '"', "'", "a,b", "a\tb", "a\nb", "a\r\nb",
    "a\rb", "\r", "\ufeff", "\ufeff7", "a\0",
    "=1+1", "@x", "#", "\\", "a b", "\u0663", "e\u0301", "\u00e9", "x" * 300,
]  # fmt: skip
IDS = st.one_of(st.sampled_from(ODD), st.sampled_from(ODD), st.integers(-3, 2000).map(str), st.text(max_size=6))
Rows = list[tuple[str, str, int]]


def is_text(value: str) -> bool:
    return not any(0xD800 <= ord(sign) < 0xE000 for sign in value)


def unique(size: int) -> Any:
    return st.lists(IDS.filter(is_text), min_size=2, max_size=size, unique=True)


# ------------------------------------------------------------------------------------------------- writers and readers


def as_text(separator: str, *, quoted: bool) -> Callable[[Rows], bytes]:
    def write(rows: Rows) -> bytes:
        stream = io.StringIO(newline="")
        options: dict[str, Any] = {"quoting": csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL}
        writer = csv.writer(stream, delimiter=separator, lineterminator="\n", **options)
        writer.writerows([("user", "item", "label"), *rows])
        return stream.getvalue().encode()

    return write


def as_parquet(rows: Rows) -> bytes:
    stream = io.BytesIO()
    pl.DataFrame(rows, schema=["user", "item", "label"], orient="row").write_parquet(stream)
    return stream.getvalue()


def as_qrels(rows: Rows) -> bytes:
    return "".join(f"{user} 0 {item} {label}\n" for user, item, label in rows).encode()


@dataclass(frozen=True, slots=True)
class Format:
    file: str
    write: Callable[[Rows], bytes]
    holds: Callable[[str], bool] = lambda value: True

    def __str__(self) -> str:
        return self.file


FORMATS = [
    Format("log.csv", as_text(",", quoted=False)),
    Format("quoted.csv", as_text(",", quoted=True)),
    Format("log.tsv", as_text("\t", quoted=False)),
    Format("log.csv.gz", lambda rows: gzip.compress(as_text(",", quoted=True)(rows))),
    Format("log.parquet", as_parquet),
    # fields of TREC files end at white space, and a mark of the byte order at the very beginning is none of them
    Format("log.qrels", as_qrels, lambda value: bool(value) and not set(value) & set(" \t\r\n\v\f\ufeff")),
]


def pairs_in(path: Path) -> list[tuple[str, str]]:
    """Users and items of a written table, by another reader."""
    if path.suffix == ".parquet":
        return [(str(user), str(item)) for user, item in pl.read_parquet(path).select("user", "item").rows()]
    text = path.read_bytes().decode()
    rows = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if path.suffix == ".tsv" else ",")
    names = next(rows)
    return [(row[names.index("user")], row[names.index("item")]) for row in rows if row]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


def refused(outcome: Called) -> bool:
    assert outcome.code in (0, 2), outcome
    assert outcome.code == 0 or outcome.err.count("truerank: ") == 1, outcome
    return outcome.code == 2


# ------------------------------------------------------------------------------------------------------------ commands


def intervened(path: Path, ending: str) -> list[tuple[str, str]] | None:
    out = path.with_name(f"out{ending}")
    return None if refused(call(f"intervene {path} --strategy full --out {out}")) else pairs_in(out)


def trained(path: Path) -> list[tuple[str, str]] | None:
    out = path.with_name("model.npz")
    if refused(call(f"train popularity {path} --out {out} --quiet")):
        return None
    with np.load(out) as arrays:
        return list(product(map(str, arrays["users"].tolist()), map(str, arrays["items"].tolist())))


def evaluated(path: Path) -> list[str] | None:
    """The units of an evaluation against a model that was trained on the same file, also those of each group."""
    model, units, saved = path.with_name("model.npz"), path.with_name("units.parquet"), path.with_name("saved")
    if refused(call(f"train popularity {path} --out {model} --quiet")):
        return None
    options = (
        "--metric",
        "Recall@1",
        "--exposure",
        "random",
        "--units",
        str(units),
        "--save",
        str(saved),
        "--force",
        "--quiet",
    )
    outcome = call("evaluate", str(path), "--scores", f"m={model}", *options)
    if refused(outcome):
        return None
    kept = pl.read_parquet(units)["unit"].cast(pl.String).to_list()
    assert tr.Results.read(saved).units()["unit"].cast(pl.String).to_list() == kept
    return kept


def laid(users: Sequence[str], items: Sequence[str]) -> Rows:
    """Every pair, in an order that is not that of ids; the first item is liked."""
    return [(user, item, int(item == items[0])) for user in users for item in items]


def law(form: Format, users: list[str], items: list[str], folder: Path, *, seen: Counter[str]) -> None:
    users, items = ([each for each in ids if form.holds(each)] for ids in (users, items))
    if len(users) < 2 or len(items) < 2:
        return
    rows, path = laid(users, items), folder / form.file
    path.write_bytes(form.write(rows))
    expected = [(user, item) for user, item, _ in rows]
    for ending in (".csv", ".tsv", ".parquet"):
        found = intervened(path, ending)
        seen["refused" if found is None else "kept"] += 1
        assert found in (None, expected), ending
    known = trained(path)
    assert known is None or sorted(known) == sorted(expected)
    units = evaluated(path)
    assert units is None or sorted(units) == sorted(users)
    seen["evaluated"] += units is not None


def tried(form: Format, folder: Path, *, examples: int) -> Counter[str]:
    seen: Counter[str] = Counter()

    @settings(
        max_examples=examples, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(unique(4), unique(3))
    def each(users: list[str], items: list[str]) -> None:
        law(form, users, items, folder, seen=seen)

    each()
    return seen


@pytest.mark.parametrize("form", FORMATS, ids=str)
@pytest.mark.parametrize("examples", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_ids_out_are_ids_in(form: Format, examples: int, folder: Path) -> None:
    seen = tried(form, folder, examples=examples)
    assert seen["kept"] > seen["refused"], seen
    assert seen["evaluated"] > 0, seen


# -------------------------------------------------------------------------------------------------------------- Python


@pytest.mark.parametrize("ids", [[2**63, 1], [2**64 - 1, 2**63], [-1, 2**63], [10**30, 7], [2**53 + 1, 2**53]])
def test_large_numbers_as_arrays(ids: list[int], folder: Path) -> None:
    """Ids of matrices written and read; what the format cannot hold is refused."""
    scores = tr.scores.dense(np.eye(2), users=ids, items=["a", "b"])
    path = folder / "wide.npz"
    if min(ids) < 0 or max(ids) >= 2**64:
        with pytest.raises(InputError, match="do not fit"):
            tr.write_scores(scores, path)
        return
    tr.write_scores(scores, path)
    assert tr.read_scores(path).users.values.to_list() == sorted(ids)
