"""Types of the columns of a text table: the whole file decides, in one pass whose memory is bounded.

A column is numeric only if every field is the plain decimal form of its number: 007 and +7 are text, because an id is
what was written. Numbers with a point or an exponent may be written in any usual form (0.50, .5, 1e-3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

HEAD = 1000  # rows that tell which types need no look at the rest
INTEGERS = {"whole": pl.Int64, "wide": pl.Int128}
KINDS = frozenset({"boolean", "whole", "wide", "number"})
BOOLEANS = ("true", "false", "True", "False", "TRUE", "FALSE")


@dataclass(frozen=True, slots=True)
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

    def __add__(self, other: TextTypes) -> TextTypes:
        """Of both tables together: a type must fit all."""
        return TextTypes(
            self.n_rows + other.n_rows, {name: kinds & other.possible[name] for name, kinds in self.possible.items()}
        )

    def ids(self) -> TextTypes:
        """Of columns that hold ids and nothing else: whole numbers or text."""
        return TextTypes(self.n_rows, {name: kinds & {"whole"} for name, kinds in self.possible.items()})

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
        f"{at} {kind}": _fits(pl.col(name), kind).all()
        for at, (name, kinds) in enumerate(candidates.items())
        for kind in sorted(kinds)
    }
    row = fields.select(pl.len().alias("rows"), **tests).collect(engine="streaming").row(0, named=True)
    possible = {
        name: frozenset(kind for kind in kinds if row[f"{at} {kind}"])
        for at, (name, kinds) in enumerate(candidates.items())
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
