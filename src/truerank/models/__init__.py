"""Layer 7: Log -> Scores. Each model is a frozen configuration whose `fit(log, seed=...)` gives Scores.

A new recommender is one new module here; `catalogue`, the command line and the law tests find it by themselves. What
a model needs beyond the core (implicit, lightfm, torch) is imported only when it is fitted. The type of a setting says
what it can be and, in a few words, what it is; the command line and `train --list` read it from there.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol

import polars as pl

from truerank.core.errors import InputError
from truerank.core.language import Kind, changed
from truerank.core.lazy_imports import export_classes
from truerank.core.log import Log
from truerank.core.progress import Watching
from truerank.core.ranking import Scores
from truerank.core.record import record
from truerank.core.values import check, text_of


class Labels(StrEnum):
    """What of a log a model learns from.

    NOTHING    only which users and items there are
    POSITIVES  the positive rows; a log without a value column lists positives
    BOTH       positive and negative rows: a log of one class is refused
    VALUES     the values as they are, such as ratings
    """

    NOTHING = "nothing"
    POSITIVES = "positives"
    BOTH = "both classes"
    VALUES = "values"


@record
class Side:
    """What some models use beside the log; the others ignore it.

    `random` is a randomly exposed slice with labels. Feature tables have a column `user` or `item`; every other column
    is a feature (docs/models.md says how each type is read). Propensities are a column of the log.
    """

    random: Log | None = None
    user_features: pl.DataFrame | None = None
    item_features: pl.DataFrame | None = None


NOTHING_BESIDE = Side()


class Model(Protocol):
    """A recommender before it has seen data: a frozen dataclass whose fields are its settings.

    A new one inherits from this class and writes `name`, `summary`, its settings, such as
    `factors: Annotated[Count, "numbers that describe an item"] = 32`, and `fit`. Settings are checked when a model is
    made, and its text form parses back.

    The same log, settings and seed give the same scores to the last bit. `needs` names the extra to install, as in
    pip install '.[models]'; None if the core is enough.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    needs: ClassVar[str | None] = None
    labels: ClassVar[Labels] = Labels.POSITIVES

    __slots__ = ()

    def __post_init__(self) -> None:
        check(self)

    def __str__(self) -> str:
        return text_of(self)

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Scores: ...


RECOMMENDERS: Kind[Model] = Kind(
    "model",
    __name__,
    Model,
    group="truerank.models",
    experimental=tuple(
        f"{backbone}{method}"
        for backbone in ("mf", "lightgcn")
        for method in ("", "-ips", "-dr", "-autodebias", "-dns")
    ),
)
catalogue = RECOMMENDERS.catalogue
named = RECOMMENDERS.named
parse = RECOMMENDERS.parse


def _contents() -> list[Any]:
    from truerank.models import adapters

    return [RECOMMENDERS, *(value for name, value in vars(adapters).items() if name.startswith("from_"))]


__getattr__, __dir__ = export_classes(__name__, _contents)


def make(text: str, settings: Mapping[str, str]) -> Model:
    """The model of a text form, with settings as text.

    >>> make("item-knn", {"neighbours": "20"}) == parse("item-knn(neighbours=20)")
    True
    """
    return changed(parse(text), settings, word="setting")


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
