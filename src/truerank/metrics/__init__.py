"""Layer 4: Ranks -> Worth. Metrics are values: Recall(50) == Recall(50), and `Recall@50` parses back.

A new metric is one new module here; `catalogue`, the command line and the law tests find it by themselves.
"""

from __future__ import annotations

import dataclasses
import difflib
from functools import cache
from typing import Any

from truerank.catalogue import members
from truerank.core import Metric
from truerank.errors import InputError


@cache
def catalogue() -> dict[str, type[Any]]:
    """Every metric class by name."""
    return members(__name__, Metric)


def parse(text: str) -> Metric:
    """The metric of a text form.

    >>> from truerank.metrics.recall import Recall
    >>> parse("Recall@50") == Recall(50)
    True
    """
    name, _, parameter = text.strip().partition("@")
    known = {key.lower(): cls for key, cls in catalogue().items()}
    if name.lower() not in known:
        close = difflib.get_close_matches(name.lower(), known, n=1)
        hint = f" Did you mean {known[close[0]].name}?" if close else ""
        raise InputError(f"unknown metric {text!r}; expected one of {', '.join(forms())}.{hint}")
    cls = known[name.lower()]
    fields = dataclasses.fields(cls)
    if parameter and fields:
        try:
            number = float(parameter) if "float" in str(fields[0].type) else int(parameter)
        except ValueError:
            raise InputError(f"metric {text!r}: {parameter!r} is not a number; expected {_form(cls)}.") from None
        return cls(number)  # type: ignore[no-any-return]
    if bool(parameter) != bool(fields) and not (fields and fields[0].default is None):
        raise InputError(f"metric {text!r} is not understood; expected {_form(cls)}.")
    return cls()  # type: ignore[no-any-return]


def forms() -> list[str]:
    """The text form of every metric, for messages and help."""
    return [_form(cls) for cls in catalogue().values()]


def _form(cls: type[Any]) -> str:
    fields = dataclasses.fields(cls)
    if not fields:
        return str(cls.name)
    return f"{cls.name}@{fields[0].name.upper()}" + (f" or {cls.name}" if fields[0].default is None else "")
