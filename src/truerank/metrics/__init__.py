"""Layer 4: Ranks -> Worth. Metrics are values: Recall(50) == Recall(50), and `Recall@50` parses back.

A new metric is one new module here; `catalogue`, the command line and the law tests find it by themselves.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from functools import cache
from typing import Any

from truerank.core.errors import InputError
from truerank.core.language import members
from truerank.core.metric import Metric
from truerank.metrics.parameters import form, number_of, options_of


@cache
def catalogue() -> dict[str, type[Any]]:
    """Every metric class by name."""
    return members(__name__, Metric)


def parse(text: str) -> Metric:
    """The metric of a text form: a name, a number where the metric has one, options where they are not the default.

    >>> from truerank.metrics.recall import Recall
    >>> parse("Recall@50") == Recall(50)
    True
    >>> str(parse("ndcg@10(gain=exponential)"))
    'nDCG@10(gain=exponential)'
    """
    found = _TEXT.fullmatch(text)
    name = "" if found is None else found["name"].lower()
    known = {key.lower(): cls for key, cls in catalogue().items()}
    if found is None or name not in known:
        close = difflib.get_close_matches(name or text.lower(), known, n=1)
        hint = f" Did you mean {known[close[0]].name}?" if close else ""
        raise InputError(f"unknown metric {text!r}; expected one of {', '.join(forms())}.{hint}")
    cls, number = known[name], found["number"]
    fields = dataclasses.fields(cls)
    if bool(number) != bool(fields) and not (fields and fields[0].default is None):
        raise InputError(f"metric {text!r} is not understood; expected {form(cls)}.")
    try:
        numbers = [number_of(cls, number)] if number else []
    except ValueError:
        raise InputError(f"metric {text!r}: {number!r} is not a number; expected {form(cls)}.") from None
    options = found["options"]
    given = {} if options is None else options_of(cls, options.lower(), where=text)
    return cls(*numbers, **given)  # type: ignore[no-any-return]


_TEXT = re.compile(r"\s*(?P<name>[^@()]*?)\s*(?:@(?P<number>[^()]*?))?\s*(?:\((?P<options>[^()]*)\))?\s*")


def forms() -> list[str]:
    """The text form of every metric, for messages and help."""
    return [form(cls) for cls in catalogue().values()]
