"""The errors of truerank, all of them.

    TruerankError           anything this library raises on purpose
    └── InputError          a file, a frame, an option or a combination of them is wrong (exit code 2)
        └── RefusedError    the question has no honest answer: the message says why and what to ask instead

A message is one or two sentences: where, what was found, what was expected, what to do. It may quote data of any kind
and length, and ends on a terminal: an error makes it printable when it is made.
"""

from __future__ import annotations

from truerank.core.printable import sentence


class TruerankError(Exception):
    """Anything this library raises on purpose."""

    def __init__(self, message: object = "") -> None:
        super().__init__(sentence(str(message)))


class InputError(TruerankError):
    """A file, a frame, an option or a combination of them is wrong."""


class RefusedError(InputError):
    """The question has no honest answer from this data."""


def some(values: list[str], *, most: int = 5) -> str:
    """Name a few of many values for a message.

    >>> some(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown = ", ".join(values[:most])
    return shown if len(values) <= most else f"{shown} and {len(values) - most:,} more"


def extra(name: str) -> str:
    """What pip has to install for an extra of truerank, which is on no index: it is installed from its source.

    >>> extra("report")
    "'.[report]' in a checkout of truerank"
    """
    return f"'.[{name}]' in a checkout of truerank"
