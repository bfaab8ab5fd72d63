"""What is said beside numbers: a code for programs, a sentence for people, the figures in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from truerank.core.errors import InputError
from truerank.core.provenance import plain

Number = float | int | str | None

_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_OPTION = re.compile(r"\{option:(?P<name>[a-z_]+)(?: (?P<value>[^{}|]+))?(?:\|(?P<python>[^{}]+))?\}")
_NUMERIC = re.compile(r"-?\d+(\.\d+)?")


class Severity(StrEnum):
    """How much a message matters.

    NOTE     what was done: read it when a number surprises
    CAUTION  the number is right, but may mean less than it seems
    WARNING  do not decide by this number as it stands
    """

    NOTE = "note"
    CAUTION = "caution"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence with its code (kebab case), its figures, and what it is about (such as a model; nothing: the whole).

    In `text`, `{option:NAME}`, `{option:NAME VALUE}` and `{option:NAME VALUE|PYTHON}` name an option, in the words of
    whoever reads: on the command line `--NAME VALUE`, in Python `NAME=VALUE`, or `PYTHON` where that is another thing.

    >>> message = note("dropped", "2 rows were dropped ({option:overlap keep} keeps them)", numbers={"rows": 2})
    >>> print(message)
    2 rows were dropped (overlap="keep" keeps them)
    >>> message.said(for_cli=True)
    '2 rows were dropped (--overlap keep keeps them)'
    """

    code: str
    severity: Severity
    text: str
    numbers: Mapping[str, Number] = field(default_factory=dict, kw_only=True, hash=False)
    about: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if _CODE.fullmatch(self.code) is None:
            raise InputError(f"message code {self.code!r}; expected small letters with hyphens, such as few-users.")
        object.__setattr__(self, "severity", Severity(self.severity))
        object.__setattr__(self, "numbers", plain(self.numbers))
        object.__setattr__(self, "about", tuple(self.about))

    def said(self, *, for_cli: bool) -> str:
        """The sentence with options as the command line or Python spells them."""
        return worded(self.text, for_cli=for_cli)

    def __str__(self) -> str:
        return self.said(for_cli=False)


def note(code: str, text: str, *, numbers: Mapping[str, Number] | None = None, about: tuple[str, ...] = ()) -> Message:
    return Message(code, Severity.NOTE, text, numbers=numbers or {}, about=about)


def caution(
    code: str, text: str, *, numbers: Mapping[str, Number] | None = None, about: tuple[str, ...] = ()
) -> Message:
    return Message(code, Severity.CAUTION, text, numbers=numbers or {}, about=about)


def warning(
    code: str, text: str, *, numbers: Mapping[str, Number] | None = None, about: tuple[str, ...] = ()
) -> Message:
    return Message(code, Severity.WARNING, text, numbers=numbers or {}, about=about)


def worded(text: str, *, for_cli: bool) -> str:
    """A text in which options are spelled for the command line, or for Python.

    >>> worded("give {option:n_items} or use {option:bootstrap 1000|interval=Bootstrap(1000)}", for_cli=True)
    'give --n-items or use --bootstrap 1000'
    >>> worded("give {option:n_items} or use {option:bootstrap 1000|interval=Bootstrap(1000)}", for_cli=False)
    'give n_items= or use interval=Bootstrap(1000)'
    """
    return _OPTION.sub(_for_cli if for_cli else _for_python, text)


def _for_cli(option: re.Match[str]) -> str:
    name, value = option["name"].replace("_", "-"), option["value"]
    return f"--{name}" if value is None else f"--{name} {value}"


def _for_python(option: re.Match[str]) -> str:
    name, value = option["name"], option["value"]
    if option["python"] is not None:
        return str(option["python"])
    if value is None:
        return f"{name}="
    return f"{name}={value}" if _NUMERIC.fullmatch(value) else f'{name}="{value}"'
