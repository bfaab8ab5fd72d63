"""What is said beside numbers: a code for programs, a sentence for people, the figures in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from numbers import Real
from typing import Any

from truerank.core.errors import InputError
from truerank.core.escaping import redacted
from truerank.core.provenance import plain
from truerank.core.record import record
from truerank.core.sentences import CAUTIONS, NOTES
from truerank.core.warning_sentences import WARNINGS
from truerank.core.wording import either, option, worded

Number = float | int | str | None

# what data could have shown: said below the results, where a comparison was not shown
DETECTABLE = ("detectable", "detectable-more")
RULE = "usual-estimator"

_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Severity(StrEnum):
    """How much a message matters.

    NOTE     what was done: read it when a number surprises
    CAUTION  the number is right, but may mean less than it seems
    WARNING  do not decide by this number as it stands
    """

    NOTE = "note"
    CAUTION = "caution"
    WARNING = "warning"


@record
class Message:
    """A sentence with its code (kebab case), its figures, and what it is about (such as a model; nothing: the whole).

    `text` may name options by `wording.option`: it is kept in the words of Python, and where those differ, also as the
    command line writes it (`command_text`).

    >>> from truerank.core.wording import option
    >>> text = f"2 rows were dropped ({option('overlap keep')} keeps them)"
    >>> message = Message("dropped", Severity.NOTE, text, numbers={"rows": 2})
    >>> print(message)
    2 rows were dropped (overlap="keep" keeps them)
    >>> message.said(for_cli=True)
    '2 rows were dropped (--overlap keep keeps them)'
    """

    code: str
    severity: Severity
    text: str
    numbers: Mapping[str, Number] = field(default_factory=dict, kw_only=True, hash=False)
    subjects: tuple[str, ...] = field(default=(), kw_only=True)
    command_text: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if _CODE.fullmatch(self.code) is None:
            raise InputError(f"message code {self.code!r}; expected small letters with hyphens, such as few-users.")
        python, cli = (redacted(worded(self.text, for_cli=for_cli)) for for_cli in (False, True))
        if cli != python:
            object.__setattr__(self, "command_text", cli)
        object.__setattr__(self, "text", python)
        object.__setattr__(self, "severity", Severity(self.severity))
        object.__setattr__(self, "numbers", plain(self.numbers))
        object.__setattr__(self, "subjects", tuple(self.subjects))

    def said(self, *, for_cli: bool) -> str:
        """The sentence with options as the command line or Python spells them."""
        return self.text if self.command_text is None or not for_cli else self.command_text

    @property
    def marked(self) -> str:
        """The sentence as part of another one."""
        return either(self.said(for_cli=True), self.text)

    def __str__(self) -> str:
        return self.text


class MessageTable:
    """Makes messages from sentences by code, those of each severity; a package that adds estimators has its own.

    >>> table = MessageTable({Severity.NOTE: {"dropped": "{rows:,} rows of {name} dropped ({option:overlap keep})"}})
    >>> message = table("dropped", rows=2000, name="{rows}")
    >>> print(message, dict(message.numbers))
    2,000 rows of {rows} dropped (overlap="keep") {'rows': 2000}
    """

    def __init__(self, sentences: Mapping[Severity, Mapping[str, str]]) -> None:
        self.sentences = {
            key: (severity, sentence) for severity, rows in sentences.items() for key, sentence in rows.items()
        }

    def __call__(
        self, key: str, *, subjects: tuple[str, ...] = (), numbers: Mapping[str, Number] | None = None, **fields: object
    ) -> Message:
        """The message of a code or, where it has several sentences, `code.word`.

        `fields` fill the sentence; those that are numbers, and `numbers`, are the message's figures.
        """
        severity, sentence = self.sentences[key]
        figures: dict[str, Any] = {name: value for name, value in fields.items() if isinstance(value, Real)}
        text = sentence.format(option=_OPTION, **fields)
        return Message(key.partition(".")[0], severity, text, numbers=figures | dict(numbers or {}), subjects=subjects)


class _Option:
    """`{option:NAME VALUE|PYTHON}` in a sentence."""

    def __format__(self, spec: str) -> str:
        return option(*spec.split("|"))


_OPTION = _Option()

message = MessageTable({Severity.NOTE: NOTES, Severity.CAUTION: CAUTIONS, Severity.WARNING: WARNINGS})
