"""One sentence for two readers: options as the command line writes them, or arguments as Python does."""

from __future__ import annotations

import re

_PYTHON = r"(?:\|(?P<python>(?:[^{}]|\{[^{}]*\})*))?"  # may hold one dict
_OPTION = re.compile(r"\{option:(?P<name>[a-z_]+)(?: (?P<value>[^{}|]+))?" + _PYTHON + r"\}")
_WORDS = re.compile(r"\{cli:(?P<cli>[^{}|]*)" + _PYTHON + r"\}")
_NUMERIC = re.compile(r"-?\d+(\.\d+)?")
_PLACEHOLDER = re.compile(r"[A-Z]+")


def worded(text: str, *, for_cli: bool) -> str:
    """A text in which options are spelled for the command line, or for Python.

    `{option:NAME}`, `{option:NAME VALUE}` and `{option:NAME VALUE|PYTHON}` name an option: on the command line
    `--NAME VALUE`, in Python `NAME=VALUE`, or `PYTHON` where that is another thing. `{cli:WORDS|PYTHON}` has other
    words for either.

    >>> text = "give {option:items FILE}, or use {option:bootstrap 1000|interval=Bootstrap(1000)}"
    >>> worded(text, for_cli=True)
    'give --items FILE, or use --bootstrap 1000'
    >>> worded(text, for_cli=False)
    'give items=, or use interval=Bootstrap(1000)'
    """
    either = _WORDS.sub(lambda words: (words["cli"] if for_cli else words["python"]) or "", text)
    return _OPTION.sub(_for_cli if for_cli else _for_python, either)


def columns_option(key: str, name: str = "NAME", *, by: str = "truerank.read") -> str:
    """How to say which column is what: an option of the command line, an argument of what reads it in Python.

    >>> worded(columns_option("user", "uid"), for_cli=False)
    'truerank.read(..., columns={"user": "uid"})'
    """
    shown = "NAME" if any(sign in name for sign in "{}|") else name
    return f'{{option:columns {key}={shown}|{by}(..., columns={{"{key}": "{shown}"}})}}'


def _for_cli(option: re.Match[str]) -> str:
    name, value = option["name"].replace("_", "-"), option["value"]
    return f"--{name}" if value is None else f"--{name} {value}"


def _for_python(option: re.Match[str]) -> str:
    name, value = option["name"], option["value"]
    if option["python"] is not None:
        return str(option["python"])
    if value is None or _PLACEHOLDER.fullmatch(value):
        return f"{name}="
    return f"{name}={value}" if _NUMERIC.fullmatch(value) else f'{name}="{value}"'
