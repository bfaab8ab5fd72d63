"""One sentence for two readers: options as the command line writes them, or arguments as Python does.

`option` and `either` mark what differs between the two; `worded` chooses. The marks are characters that Unicode keeps
for use inside of a program: text of a name, a path or a file never has them by chance, and nothing else is replaced, so
that what data say is shown as it is.
"""

from __future__ import annotations

import re

_OPEN, _BETWEEN, _CLOSE = "\ufdd0", "\ufdd1", "\ufdd2"
_EITHER = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_BETWEEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_NUMERIC = re.compile(r"-?\d+(\.\d+)?")
_PLACEHOLDER = re.compile(r"[A-Z]+")


def worded(text: str, *, for_cli: bool) -> str:
    """A text in which options are spelled for the command line, or for Python.

    >>> text = f"give {option('items FILE')}, or use {option('bootstrap 1000', 'interval=Bootstrap(1000)')}"
    >>> worded(text, for_cli=True)
    'give --items FILE, or use --bootstrap 1000'
    >>> worded(text, for_cli=False)
    'give items=, or use interval=Bootstrap(1000)'
    """
    return _EITHER.sub(lambda words: words[1] if for_cli else words[2], text)


def either(cli: str, python: str) -> str:
    """Other words for either reader."""
    return cli if cli == python else f"{_OPEN}{cli}{_BETWEEN}{python}{_CLOSE}"


def option(text: str, python: str | None = None) -> str:
    """An option, `NAME` or `NAME VALUE`: on the command line `--NAME VALUE`, in Python `NAME=VALUE`, or `python` where
    that is another thing.
    """
    name, _, value = text.partition(" ")
    cli = f"--{name.replace('_', '-')} {value}".rstrip()
    if python is None:
        python = f"{name}={_python_value(value)}"
    return either(cli, python)


def columns_option(key: str, name: str = "NAME", *, by: str = "truerank.read") -> str:
    """How to say which column is what: an option of the command line, an argument of what reads it in Python.

    >>> worded(columns_option("user", "uid"), for_cli=False)
    'truerank.read(..., columns={"user": "uid"})'
    """
    return option(f"columns {key}={name}", f'{by}(..., columns={{"{key}": "{name}"}})')


def positive_option(rule: str) -> str:
    """How to say which values are positive.

    >>> worded(positive_option(">3"), for_cli=True), worded(positive_option("all"), for_cli=True)
    ('--positive ">3"', '--positive all')
    """
    quoted = f'"{rule}"'
    return option(f"positive {rule if rule.isalpha() else quoted}", f"truerank.read(..., positive={quoted})")


def _python_value(value: str) -> str:
    if _PLACEHOLDER.fullmatch(value):
        return ""
    return value if not value or _NUMERIC.fullmatch(value) else f'"{value}"'
