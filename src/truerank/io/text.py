"""Text tables: TREC files, and the types of columns, which the whole file decides.

A column is numeric only if every field is the plain decimal form of its number: 007 and +7 are text, because an id is
what was written. Numbers with a point or an exponent may be written in any usual form (0.50, .5, 1e-3).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

import polars as pl

from truerank.core.errors import InputError
from truerank.core.ids import first_true
from truerank.core.record import record

FIELDS = {4: "query iteration docno relevance", 6: "query Q0 docno rank score tag"}
ENDINGS = {".qrels": (4,), ".run": (6,), ".trec": (4, 6)}


def are_qrels(source: str) -> bool:
    """Whether labels of this name are TREC qrels, whose users are queries and whose items are documents.

    >>> are_qrels("dl21.qrels.gz"), are_qrels("qrels.csv")
    (True, False)
    """
    return bool({".qrels", ".trec"} & set(PurePath(source).suffixes))


def read_trec(data: bytes, *, ending: str, where: str) -> pl.DataFrame:
    """The table of a qrels file (user, item, rating) or of a run (user, item, score).

    A relevance below 0 (junk, in TREC's web tracks) is read as 0, not relevant, as trec_eval counts it. So relevance
    0/1 is a label as it is; graded relevance needs a positive rule. Of a run the score orders the items; its rank and
    its tag are left out, as trec_eval ignores them. Ties follow this library's policies, not the order of docnos.
    Ids are the text that stands there. Lines that begin with # are comments, as for trec_eval 10.

    >>> read_trec(b"q1 0 d7 2\\nq1 0 d8 -2\\n", ending=".qrels", where="x")["rating"].to_list()
    [2.0, 0.0]
    >>> read_trec(b"1 Q0 7 1 0.5 bm25\\n", ending=".run", where="x").rows()
    [('1', '7', 0.5)]
    """
    lines = pl.Series(data.decode("utf-8-sig").split("\n"), dtype=pl.String)
    fields = lines.str.extract_all(r"[^ \t\r\x0b\x0c]+")
    width = fields.list.len()
    filled = (width > 0) & ~lines.str.starts_with("#")
    number = filled.arg_true() + 1
    fields, width = fields.filter(filled), width.filter(filled)
    if len(fields) == 0:
        raise InputError(f"{where}: the file is empty; expected lines of {_expected(ENDINGS[ending])}.")
    allowed = (int(width[0]),) if int(width[0]) in ENDINGS[ending] else ENDINGS[ending]
    wrong = ~width.is_in(allowed)
    row = first_true(wrong)
    if row is not None:
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


MOVIELENS = {".dat": "::", ".data": "\t"}  # separators of its files without a header


def read_movielens(data: bytes, *, ending: str, where: str) -> pl.DataFrame:
    """The ratings of MovieLens as it comes: `ratings.dat` (user::item::rating::time) or `u.data`, without a header.

    >>> read_movielens(b"1::1193::5::978300760\\n", ending=".dat", where="x").rows()
    [('1', '1193', 5.0, 978300760)]
    """
    lines = pl.Series([line for line in data.decode("utf-8-sig").splitlines() if line], dtype=pl.String)
    fields = lines.str.split(MOVIELENS[ending])
    row = first_true(fields.list.len() != 4)
    if row is not None or not len(fields):
        problem = "the file is empty" if row is None else f"line {row + 1} is another"
        raise InputError(
            f"{where}: expected the ratings of MovieLens, lines of user, item, rating and time with "
            f"{MOVIELENS[ending]!r} between them; {problem}. Save other tables as .csv or .tsv with a header."
        )
    number = pl.Series(range(1, len(fields) + 1))
    time = fields.list.get(3).cast(pl.Int64, strict=False)
    row = first_true(time.is_null())
    if row is not None:
        raise InputError(f"{where}: line {row + 1}, time is {fields.list.get(3)[row]!r}; expected a whole number.")
    rating = _numbers(fields.list.get(2), number, what="rating", where=where)
    return pl.DataFrame({"user": fields.list.get(0), "item": fields.list.get(1), "rating": rating, "time": time})


def _numbers(column: pl.Series, line: pl.Series, *, what: str, where: str) -> pl.Series:
    numbers = column.cast(pl.Float64, strict=False)
    bad = numbers.is_null() | numbers.is_nan() | (numbers == float("inf"))
    if what == "relevance":
        bad |= numbers.is_infinite()
    row = first_true(bad)
    if row is not None:
        raise InputError(f"{where}: line {line[row]}, {what} is {column[row]!r}; expected a number.")
    large = what == "score" and bool((numbers.abs() > 2**53).any())  # whole numbers that doubles would round
    whole = column.cast(pl.Int128, strict=False) if large else None
    return numbers if whole is None or whole.null_count() else whole


def _expected(widths: tuple[int, ...]) -> str:
    return " or ".join(f"{width} ({FIELDS[width]})" for width in widths)


HEAD = 1000  # rows that tell which types need no look at the rest
INTEGERS = {"whole": pl.Int64, "wide": pl.Int128}
KINDS = frozenset({"boolean", "whole", "wide", "number"})
BOOLEANS = ("true", "false", "True", "False", "TRUE", "FALSE")


@record
class TextTypes:
    """How many rows a text table has, and which types all fields of a column could be read as."""

    n_rows: int
    possible: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, fields: pl.LazyFrame) -> TextTypes:
        """Of a frame whose columns are all text.

        >>> found = TextTypes.of(pl.LazyFrame({"user": ["7", "007"], "item": ["7", "-8"], "value": ["1", ".50"]}))
        >>> found.schema()
        {'user': String, 'item': Int64, 'value': Float64}
        """
        names = fields.collect_schema().names()
        # a type that the first rows rule out needs no look at the others
        head = _possible(fields.head(HEAD), dict.fromkeys(names, KINDS)).possible
        first = _possible(fields, {name: _narrowest(kinds) for name, kinds in head.items()})
        left = {name: head[name] - _narrowest(head[name]) for name, kinds in first.possible.items() if not kinds}
        second = _possible(fields, left).possible if any(left.values()) else left
        return cls(first.n_rows, {name: second.get(name, _wider(kinds)) for name, kinds in first.possible.items()})

    def __add__(self, more: TextTypes) -> TextTypes:
        """Of both tables together: a type must fit all."""
        return TextTypes(
            self.n_rows + more.n_rows, {name: kinds & more.possible[name] for name, kinds in self.possible.items()}
        )

    def ids(self) -> TextTypes:
        """Of columns that hold ids and nothing else: whole numbers or text."""
        return TextTypes(self.n_rows, {name: kinds & INTEGERS.keys() for name, kinds in self.possible.items()})

    def schema(self) -> dict[str, pl.DataType]:
        return {name: _type(kinds) for name, kinds in self.possible.items()}


def parsed(name: str, kind: pl.DataType) -> pl.Expr:
    """A column of text as the type that all its fields have."""
    field = pl.col(name)
    if kind == pl.String:
        return field
    return (field.str.to_lowercase() == "true") if kind == pl.Boolean else field.cast(kind)


def _type(possible: frozenset[str]) -> pl.DataType:
    if possible == KINDS or not possible:
        return pl.String()  # no field at all says nothing about its type
    if "boolean" in possible:
        return pl.Boolean()
    return next((kind() for name, kind in INTEGERS.items() if name in possible), pl.Float64())


def _narrowest(kinds: frozenset[str]) -> frozenset[str]:
    """What to test first: whole numbers are also wide ones and other numbers."""
    return frozenset({"whole"}) if "whole" in kinds and "boolean" not in kinds else kinds


def _wider(kinds: frozenset[str]) -> frozenset[str]:
    return kinds | {"wide", "number"} if "whole" in kinds else kinds


def _possible(fields: pl.LazyFrame, candidates: Mapping[str, frozenset[str]]) -> TextTypes:
    """Those of the candidate types that fit every field."""
    tests = {
        f"{number} {kind}": _fits(pl.col(name), kind).all()
        for number, (name, kinds) in enumerate(candidates.items())
        for kind in sorted(kinds)
    }
    row = fields.select(pl.len().alias("rows"), **tests).collect(engine="streaming").row(0, named=True)
    possible = {
        name: frozenset(kind for kind in kinds if row[f"{number} {kind}"])
        for number, (name, kinds) in enumerate(candidates.items())
    }
    return TextTypes(int(row["rows"]), possible)


def _fits(field: pl.Expr, kind: str) -> pl.Expr:
    """Whether a field can be read as a type; nothing for an empty one."""
    if kind == "boolean":
        return field.is_in(BOOLEANS)
    if kind in INTEGERS:
        return field.cast(INTEGERS[kind], strict=False).is_not_null() & ~_padded(field) | field.is_null()
    # a sign and superfluous zeros are what ids have, not numbers with a point
    plain = ~field.str.contains(r"^[+-]?0[0-9]|^[+][0-9]+$")
    return field.cast(pl.Float64, strict=False).is_not_null() & plain | field.is_null()


def _padded(field: pl.Expr) -> pl.Expr:
    """Whether a whole number is not in its plain form; much faster than a pattern."""
    return (field.str.starts_with("0") & (field != "0")) | field.str.starts_with("+") | field.str.starts_with("-0")
