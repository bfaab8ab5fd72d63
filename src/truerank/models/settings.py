"""The settings of models: said once, in the fields of a frozen dataclass, checked when a model is made (core.values).

A field says what it is, what it can be and where to search for good values; the command line, `train --list` and
tuning read it from there.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from truerank.core.errors import InputError
from truerank.core.record import record
from truerank.core.values import Range


@record
class WholeNumbers:
    """Whole numbers from `low` to `high`, all equally likely."""

    low: int
    high: int


@record
class LogUniform:
    """Numbers from `low` to `high` whose logarithms are uniform."""

    low: float
    high: float


@record
class OneOf:
    """One of these values: a grid."""

    values: tuple[Any, ...]


Search = WholeNumbers | LogUniform | OneOf


@record
class ModelSetting:
    """What a field is, its bounds, and where tuning searches (None: it stays as it is)."""

    summary: str
    range: Range
    search: Search | None = None


def setting(
    default: Any,
    summary: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    search: Search | None = None,
) -> Any:
    """A field of a model: its default, one phrase on what it is, its bounds, and where to search."""
    return dataclasses.field(
        default=default, metadata={"setting": ModelSetting(summary, Range(least, above, most), search)}
    )


def settings_of(cls: type[Any]) -> dict[str, ModelSetting]:
    """The settings of a model class by name."""
    return {field.name: field.metadata["setting"] for field in dataclasses.fields(cls)}


def space(cls: type[Any]) -> dict[str, Search]:
    """Where tuning searches: settings that have a search space, by name."""
    return {name: entry.search for name, entry in settings_of(cls).items() if entry.search is not None}


def load(module: str, *, install: str, who: str) -> Any:
    """A module of a library that is not always there; a missing one is named with what pip has to install."""
    try:
        with _some_home():
            return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        why = "is not installed" if getattr(error, "name", None) == library else f"cannot be loaded ({error})"
        raise InputError(f"{who} needs {library}, which {why}: pip install {install}.") from None


@contextmanager
def _some_home() -> Iterator[None]:
    """Libraries ask for the home of the user when they load; one who has none has the root, as in most containers."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = os.sep
        try:
            yield
        finally:
            del os.environ["HOME"]
    else:
        yield
