"""Position models as values: YuleSimon(1.5) == YuleSimon(1.5), and `yule:1.5` parses back.

A new family is one new module here; `catalogue` and the command line find it by themselves. Fits are in `fits.py`.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from truerank.core.errors import InputError
from truerank.core.language import members
from truerank.data.files import kind_of, read_table
from truerank.exposure.positions.model import PositionModel as PositionModel
from truerank.exposure.positions.places import ANY, FitRequest, Place, Positions
from truerank.exposure.positions.table import Table

FITTED = ("exp", "yule", "log", "generalised-log", "table", "clicks", "harvest")
EXPECTED = (
    "log, log:ALPHA, exp:GAMMA, yule:RHO or table:1:P2:P3, each with @N for a cut-off; a file with columns position "
    "and probability; fit:FAMILY; or SURFACE=MODEL,SURFACE=MODEL"
)
_TEXT = re.compile(r"\s*(?P<head>.*?)\s*(?:@\s*(?P<cutoff>[^@]*?))?\s*", re.DOTALL)


@cache
def catalogue() -> dict[str, type[Any]]:
    """Every position model class by name."""
    return members(__name__, PositionModel)


def parse_position(text: str) -> PositionModel | FitRequest | Positions:
    """The position model of a text form, a file, or several of them by surface and group.

    `log:100` is the generalised logarithm. A place is `SURFACE`, `SURFACE/GROUP` or `*/GROUP`.

    >>> str(parse_position("exp:0.9@20")), str(parse_position("fit:yule"))
    ('exp:0.9@20', 'fit:yule')
    >>> str(parse_position("feed=yule:1.5, more=exp:0.9"))
    'feed=yule:1.5,more=exp:0.9'
    """
    if "=" not in text:
        return _single(text)
    rules: list[tuple[Place, PositionModel | FitRequest]] = []
    for part in text.split(","):
        name, equals, form = part.partition("=")
        model = _single(form) if equals else None
        if model is None or isinstance(model, Positions):
            raise InputError(
                f"position {part.strip()!r} is not understood; expected SURFACE=MODEL, such as feed=yule:1.5."
            )
        rules.append((_place(name.strip()), model))
    return Positions(tuple(rules))


def read_positions(path: Path) -> PositionModel | Positions:
    """The table in a file with columns position, probability and, where it differs by them, surface and group."""
    table = read_table(path)
    for name in ("position", "probability"):
        if name not in table.columns or not table[name].dtype.is_numeric():
            raise InputError(f"{path}: no column of numbers called {name}; found {', '.join(table.columns)}.")
    keys = [name for name in ("surface", "group") if name in table.columns]
    if not len(table):
        raise InputError(f"{path}: no rows; expected the probability of every position from 1.")
    if not keys:
        return _table(table, path)
    parts = table.with_columns(pl.col(keys).cast(pl.String)).partition_by(keys, as_dict=True, maintain_order=True)
    rules = [(Place(**dict(zip(keys, values, strict=True))), _table(part, path)) for values, part in parts.items()]
    return Positions(tuple(rules))


def _table(table: pl.DataFrame, path: Path) -> Table:
    table = table.sort("position")
    expected = list(range(1, len(table) + 1))
    if table["position"].cast(pl.Float64).to_list() != expected:
        raise InputError(f"{path}: positions {table['position'].to_list()[:5]} ...; expected each of 1, 2, 3 ... once.")
    if table["probability"].null_count():
        raise InputError(f"{path}: a position without probability; expected one in every row.")
    try:
        return Table(tuple(table["probability"].cast(pl.Float64).to_list()))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _place(text: str) -> Place:
    surface, slash, group = text.partition("/")
    if not surface or (slash and not group):
        raise InputError(f"place {text!r} is not understood; expected SURFACE, SURFACE/GROUP or {ANY}/GROUP.")
    return Place(None if surface == ANY else surface, group or None)


def _single(text: str) -> PositionModel | FitRequest | Positions:
    found = _TEXT.fullmatch(text)
    assert found is not None
    head, cutoff = found["head"], _cutoff(found["cutoff"], text)
    if kind_of(Path(head)):
        return _cut(read_positions(Path(head)), cutoff)
    name, _, rest = head.partition(":")
    name, parts = name.strip().lower(), [part.strip() for part in rest.split(":")] if rest else []
    if name == "fit":
        family = parts[0].lower() if len(parts) == 1 else rest
        if family not in FITTED:
            raise InputError(
                f"position {text!r}: {family!r} cannot be fitted; expected fit: and one of {', '.join(FITTED)}."
            )
        return FitRequest(family, cutoff)
    if name == "log" and parts:
        name = "generalised-log"
    if name not in catalogue():
        close = difflib.get_close_matches(name, catalogue(), n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise InputError(f"unknown position model {text!r}; expected {EXPECTED}.{hint}")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        raise InputError(f"position {text!r}: {rest!r} is not a number; expected {EXPECTED}.") from None
    cls = catalogue()[name]
    if cls is Table:
        return Table(tuple(numbers), cutoff=cutoff)
    if len(numbers) != len(dataclasses.fields(cls)) - 1:
        raise InputError(f"position {text!r}: {len(numbers)} numbers after {name}; expected {EXPECTED}.")
    return cls(*numbers, cutoff=cutoff)  # type: ignore[no-any-return]


def _cutoff(text: str | None, where: str) -> int | None:
    if text is None:
        return None
    if not text.isdigit() or int(text) < 1:
        raise InputError(f"position {where!r}: cut-off {text!r}; expected a whole number from 1 after @.")
    return int(text)


def _cut(model: PositionModel | Positions, cutoff: int | None) -> PositionModel | Positions:
    if cutoff is None:
        return model
    if isinstance(model, Positions):
        return Positions(tuple((place, dataclasses.replace(each, cutoff=cutoff)) for place, each in model.rules))  # type: ignore[type-var]
    return dataclasses.replace(model, cutoff=cutoff)  # type: ignore[type-var]
