"""TREC text: qrels `query iteration docno relevance` and runs `query Q0 docno rank score tag`, white space between.

The query is the user and the docno is the item.
"""

from __future__ import annotations

import polars as pl

from truerank.core.errors import InputError

FIELDS = {4: "query iteration docno relevance", 6: "query Q0 docno rank score tag"}
ENDINGS = {".qrels": (4,), ".run": (6,), ".trec": (4, 6)}


def read_trec(data: bytes, *, ending: str, where: str) -> pl.DataFrame:
    """The table of a qrels file (user, item, rating) or of a run (user, item, score).

    A relevance below 0 (junk, in TREC's web tracks) is read as 0, not relevant, as trec_eval counts it. So relevance
    0/1 is a label as it is; graded relevance needs a positive rule. Of a run the score orders the items; its rank and
    its tag are left out, as trec_eval ignores them. Ties follow this library's policies, not the order of docnos.
    Ids are the text that stands there.

    >>> read_trec(b"q1 0 d7 2\\nq1 0 d8 -2\\n", ending=".qrels", where="x")["rating"].to_list()
    [2.0, 0.0]
    >>> read_trec(b"1 Q0 7 1 0.5 bm25\\n", ending=".run", where="x").rows()
    [('1', '7', 0.5)]
    """
    lines = pl.Series(data.decode("utf-8-sig").split("\n"), dtype=pl.String)
    fields = lines.str.extract_all(r"[^ \t\r\x0b\x0c]+")
    width = fields.list.len()
    number = (width > 0).arg_true() + 1
    fields, width = fields.filter(width > 0), width.filter(width > 0)
    if len(fields) == 0:
        raise InputError(f"{where}: the file is empty; expected lines of {_expected(ENDINGS[ending])}.")
    allowed = (int(width[0]),) if int(width[0]) in ENDINGS[ending] else ENDINGS[ending]
    wrong = ~width.is_in(allowed)
    if bool(wrong.any()):
        row = int(wrong.arg_true()[0])
        raise InputError(f"{where}: line {number[row]} has {width[row]} fields; expected {_expected(allowed)}.")
    run = allowed == (6,)
    value = _numbers(fields.list.get(4 if run else 3), number, what="score" if run else "relevance", where=where)
    ids = {"user": fields.list.get(0), "item": fields.list.get(2)}
    return pl.DataFrame(
        {
            **ids,
            **({"score": value} if run else {"rating": value.clip(lower_bound=0)}),
        }
    )


def _numbers(column: pl.Series, line: pl.Series, *, what: str, where: str) -> pl.Series:
    numbers = column.cast(pl.Float64, strict=False)
    bad = numbers.is_null() | numbers.is_nan() | (numbers == float("inf"))
    if what == "relevance":
        bad |= numbers.is_infinite()
    if bool(bad.any()):
        row = int(bad.arg_true()[0])
        raise InputError(f"{where}: line {line[row]}, {what} is {column[row]!r}; expected a number.")
    return numbers


def _expected(widths: tuple[int, ...]) -> str:
    return " or ".join(f"{width} ({FIELDS[width]})" for width in widths)
