"""The errors of truerank, all of them.

    TruerankError           anything this library raises on purpose
    └── InputError          a file, a frame, an option or a combination of them is wrong (exit code 2)
        └── RefusedError    the question has no honest answer: the message says why and what to ask instead

A message is one or two sentences: where, what was found, what was expected, what to do. Options in it are named as
`wording.worded` says, so that Python callers read arguments and the command line its own flags. It may quote data of
any kind and length, and ends on a terminal: an error makes it printable when it is made.
"""

from __future__ import annotations

import errno
import re

from truerank.core.escaping import sentence
from truerank.core.wording import worded

ROOM, MEMORY = "Make room, or choose another place.", "Take less data at once, or a machine with more memory."
FILES = "Raise the limit of open files (ulimit -n)."
REMEDIES = {  # of what the system refuses, whatever the file is
    errno.ENOSPC: ROOM, errno.EDQUOT: ROOM, errno.EMFILE: FILES, errno.ENFILE: FILES, errno.ENOMEM: MEMORY,
    errno.EFBIG: "Raise the limit of file sizes (ulimit -f), or choose another place.",
    errno.EAGAIN: "Start fewer threads, or raise the limit of processes (ulimit -u).",
}  # fmt: skip


def error_number(error: BaseException) -> int:
    """The number of a system error, 0 for any other; polars has it in its text.

    >>> error_number(ValueError("underlying IO error: No space left on device (os error 28)"))
    28
    """
    if isinstance(error, OSError) and error.errno:
        return error.errno
    number = re.search(r"\(os error (\d+)\)", str(error))
    return 0 if number is None else int(number[1])


class TruerankError(Exception):
    """Anything this library raises on purpose; `marked` names options in a way that either reader can be told.

    >>> from truerank.core.wording import option
    >>> error = InputError(f"no catalogue; give {option('items FILE')}.")
    >>> str(error), error.said(for_cli=True)
    ('no catalogue; give items=.', 'no catalogue; give --items FILE.')
    """

    def __init__(self, message: object = "") -> None:
        self.marked: str = message.marked if isinstance(message, TruerankError) else str(message)
        super().__init__(self.said(for_cli=False))

    def said(self, *, for_cli: bool) -> str:
        """The sentence with options as the command line or Python spells them."""
        return sentence(worded(self.marked, for_cli=for_cli))


class InputError(TruerankError):
    """A file, a frame, an option or a combination of them is wrong."""


class RefusedError(InputError):
    """The question has no honest answer from this data."""


def some(values: list[str], *, most: int = 5, total: int | None = None) -> str:
    """Name a few of many values for a message; `total` counts them where these are only the first.

    >>> some(["a", "b", "c"], most=2), some(["a", "b"], total=71)
    ('a, b and 1 more', 'a, b and 69 more')
    """
    named = values[:most]
    more = (len(values) if total is None else total) - len(named)
    return f"{', '.join(named)} and {more:,} more" if more else ", ".join(named)


def extra(name: str) -> str:
    """What pip has to install for an extra of truerank, which is on no index: it is installed from its source.

    >>> extra("report")
    "'.[report]' in a checkout of truerank"
    """
    return f"'.[{name}]' in a checkout of truerank"
