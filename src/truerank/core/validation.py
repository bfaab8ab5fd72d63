"""Arguments of public functions: what one of a name can be is said once, and checked where a call comes in.

Names mean the same in every function (`seed`, `level`, `threads`, `columns`), so one table says what they can be. None
is allowed where it is the default. What is data (frames, scores, ids) is checked by what reads it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence, Set
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import has_user_units
from truerank.core.options import Drawn
from truerank.core.ranking import Candidates
from truerank.core.record import record

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

LONGEST = 80  # characters of a wrong value in a message
LARGEST_SEED = 2**63


@record
class Wanted:
    """What an argument can be: in words, and as a test; other forms are converted first."""

    words: str
    fits: Callable[[Any], bool]
    convert: Callable[[Any], Any] = lambda value: value


def is_whole(value: Any) -> bool:
    """
    >>> is_whole(3), is_whole(np.int64(3)), is_whole(True), is_whole(3.0), is_whole("3")
    (True, True, False, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether its type is that of numbers; whether its size is right is for the function to say.

    >>> is_number(0.5), is_number(2), is_number("0.5"), is_number(True)
    (True, True, False, False)
    """
    return is_whole(value) or isinstance(value, float | np.floating)


def is_several(value: Any) -> bool:
    """Whether it is a row of values, in an order: no text, which would be taken letter by letter, no set, no stream."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def as_list(value: Any) -> Any:
    """One text is a list of one.

    >>> as_list("Recall@5"), as_list(["a", "b"])
    (['Recall@5'], ['a', 'b'])
    """
    return [value] if isinstance(value, str) else value


def is_texts(value: Any) -> bool:
    """Whether it is several texts; their order does not matter, so that a set will do."""
    return (isinstance(value, Set) or is_several(value)) and all(isinstance(entry, str) for entry in value)


def is_named(value: Any) -> bool:
    """Whether it maps names, which are text, to something."""
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


WHOLE = Wanted("a whole number", lambda value: is_whole(value) and abs(int(value)) < LARGEST_SEED)
COUNT = Wanted("a whole number from 1", lambda value: is_whole(value) and 1 <= int(value) < LARGEST_SEED)
NUMBER = Wanted("a number", is_number)
SHARE = Wanted("a number between 0 and 1, such as 0.95", lambda value: is_number(value) and 0 < value < 1)
POSITIVE = Wanted("a number above 0", lambda value: is_number(value) and 0 < value < np.inf)
FLAG = Wanted("True or False", lambda value: isinstance(value, bool | np.bool_))
TEXT = Wanted("text", lambda value: isinstance(value, str))
PATH = Wanted("the path of a file", lambda value: isinstance(value, str | os.PathLike) and str(value) != "")
NAMES = Wanted(
    'a mapping of names, such as {"user": "user_id"}', lambda value: is_named(value) and is_texts(list(value.values()))
)
NUMBERS = Wanted("a list of numbers", lambda value: is_several(value) and all(map(is_number, value)))
TEXTS = Wanted("a list of names", is_texts, as_list)
SEVERAL = Wanted("a list of values", is_several, as_list)
NAMED = Wanted("a name for each: {name: ...}", is_named)
IDS = Wanted("ids, as truerank gives them (log.items)", lambda value: isinstance(value, Ids))
LOG = Wanted("a log, as truerank.read gives it", has_user_units)
DRAWN = Wanted(f"how items were drawn: {' or '.join(Drawn)}", lambda value: isinstance(value, str))
CANDIDATES = Wanted("candidates, as truerank gives them", lambda value: isinstance(value, Candidates))
INTERVAL = Wanted(
    "truerank.Population(), truerank.Bootstrap(1000) or truerank.Design()",
    lambda value: not isinstance(value, type) and hasattr(value, "spreads") and hasattr(value, "needs_rows"),
)
ENGINE = Wanted(
    "local, dask, dask:ADDRESS, spark or spark:URL, a Dask Client or a SparkSession",
    lambda value: isinstance(value, str) or hasattr(value, "open") or hasattr(value, "submit") or hasattr(value, "sql"),
)
ANYTHING = Wanted("anything", lambda value: True)

BY_NAME = {
    name: wanted
    for wanted, names in (
        (WHOLE, ("seed",)),
        (COUNT, ("threads", "block_users", "n_items", "n_bins", "size", "folds")),
        (NUMBER, ("fraction", "sparsity", "test")),
        (SHARE, ("level",)),
        (FLAG, ("values", "keep_positive", "propensities", "force", "drop_missing_times")),
        (TEXT, ("name", "baseline", "kind", "model", "rule")),
        (PATH, ("path",)),
        (NAMES, ("columns",)),
        (SEVERAL, ("metrics", "estimators")),
        (NUMBERS, ("clips",)),
        (TEXTS, ("rewards", "extra")),
        (NAMED, ("targets", "loggers")),
        (IDS, ("pool",)),
        (DRAWN, ("drawn",)),
        (INTERVAL, ("interval",)),
        (LOG, ("log", "dataset", "train", "random", "exclude")),
        (
            Wanted("True, or a function to call", lambda value: isinstance(value, bool) or callable(value)),
            ("progress",),
        ),
        (ENGINE, ("engine",)),
        (Wanted("a function to call", callable), ("call",)),
    )
    for name in names
}


def checked_arguments(
    **others: Wanted,
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """A function that refuses arguments in one sentence where they cannot be; `others` are special to it.

    >>> @checked_arguments()
    ... def draw(*, seed: int) -> int:
    ...     return seed
    >>> draw(seed="7")
    Traceback (most recent call last):
    truerank.core.errors.InputError: draw: seed is '7' (str); expected a whole number.
    """

    def decorated(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        parameters = inspect.signature(function).parameters
        wanted = {name: others.get(name, BY_NAME.get(name)) for name in parameters}
        places = list(parameters)

        def checked(name: str, value: Any) -> Any:
            expected = wanted.get(name)
            if expected is None or (value is None and parameters[name].default is None):
                return value
            result = expected.convert(value)
            if not expected.fits(result):
                raise InputError(f"{function.__name__}: {name} is {shown(value)}; expected {expected.words}.")
            return result

        @wraps(function)
        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            first = [checked(name, value) for name, value in zip(places, args, strict=False)]
            by_name = {name: checked(name, value) for name, value in kwargs.items()}
            return function(*first, *args[len(places) :], **by_name)  # type: ignore[arg-type]

        return call

    return decorated


def shown(value: Any) -> str:
    """A wrong value for a message, cut where it is long, with its type.

    >>> shown(0.5), shown("x" * 200)[-16:]
    ('0.5 (float)', 'xxxxxxxxx… (str)')
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an object that cannot even be shown
        text = "an object"
    return f"{text if len(text) <= LONGEST else f'{text[: LONGEST - 1]}…'} ({type(value).__name__})"
