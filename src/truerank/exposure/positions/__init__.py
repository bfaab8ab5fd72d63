"""Position models as values: YuleSimon(1.5) == YuleSimon(1.5), and `yule:1.5` parses back.

A new model is one new class in a module here; `catalogue` and the command line find it. Fits are in `fits.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from truerank.core.errors import InputError
from truerank.core.language import Kind, as_value, changed
from truerank.core.lazy_imports import export_classes
from truerank.core.values import pieces
from truerank.exposure.positions.position_models import ANY, FitRequest, Place, Positions, Table
from truerank.exposure.positions.position_models import PositionModel as PositionModel
from truerank.io.files import kind_of, read_table

POSITIONS: Kind[PositionModel | FitRequest] = Kind(
    "position model",
    __name__,
    PositionModel,
    also=(FitRequest,),
    otherwise="Or a file with columns position and probability, or SURFACE=MODEL,SURFACE=MODEL.",
)
catalogue = POSITIONS.catalogue


def _contents() -> tuple[Any, ...]:
    from truerank.exposure.positions.contextual import fit_contextual

    return POSITIONS, fit_contextual


__getattr__, __dir__ = export_classes(__name__, _contents)


def parse_position(text: str) -> PositionModel | FitRequest | Positions:
    """The position model of a text form, a file, or several of them by surface and group.

    `log:100` is the generalised logarithm. A place is `SURFACE`, `SURFACE/GROUP` or `*/GROUP`.

    >>> str(parse_position("exp:0.9@20")), str(parse_position("fit:yule"))
    ('exp:0.9@20', 'fit:yule')
    >>> str(parse_position("feed=yule:1.5, more=exp:0.9"))
    'feed=yule:1.5,more=exp:0.9'
    """
    if not isinstance(text, str) or "=" not in text.partition("(")[0]:
        return _single(text)
    rules: list[tuple[Place, PositionModel | FitRequest]] = []
    for part in _parts(text):
        name, equals, form = part.partition("=")
        model = _single(form) if equals else None
        if model is None or isinstance(model, Positions):
            raise InputError(f"position {part!r} is not understood; expected SURFACE=MODEL, such as feed=yule:1.5.")
        rules.append((_place(name.strip()), model))
    return Positions(tuple(rules))


def as_positions(position: PositionModel | FitRequest | Positions | str) -> PositionModel | FitRequest | Positions:
    """A position model, or several, itself or from text."""
    if isinstance(position, Positions):
        return position
    return parse_position(position) if isinstance(position, str) else as_value(position, POSITIONS, what="position")


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
        raise InputError(f"{path}: {error.marked}") from None


def _place(text: str) -> Place:
    surface, slash, group = text.partition("/")
    if not surface or (slash and not group):
        raise InputError(f"place {text!r} is not understood; expected SURFACE, SURFACE/GROUP or {ANY}/GROUP.")
    return Place(None if surface == ANY else surface, group or None)


def _parts(text: str) -> list[str]:
    try:
        return pieces(text, ",")
    except ValueError:
        raise InputError(f"position {text!r}: brackets do not match; expected SURFACE=MODEL,SURFACE=MODEL.") from None


def _single(text: str) -> PositionModel | FitRequest | Positions:
    """The model of a text form, or of the file that it names."""
    path, _, cutoff = text.strip().rpartition("@") if "@" in text else (text.strip(), "", "")
    if not kind_of(Path(path.strip())):
        return POSITIONS.parse(text)
    model = read_positions(Path(path.strip()))
    if not cutoff:
        return model
    if not isinstance(model, Positions):
        return changed(model, {"cutoff": cutoff})
    return Positions(tuple((place, changed(table, {"cutoff": cutoff})) for place, table in model.rules))
