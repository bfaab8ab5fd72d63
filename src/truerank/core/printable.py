"""Text from data as people can be shown it: nothing that a terminal would obey, nothing that fills the screen."""

from __future__ import annotations

import re

LONGEST_FIELD = 300  # characters without a space
LONGEST_SENTENCE = 3000
_BIDIRECTIONAL = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_ESCAPED = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))},
    **{code: f"\\u{code:04x}" for code in (*_BIDIRECTIONAL, 0x2028, 0x2029, *range(0xD800, 0xE000))},
    **{0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)},  # bytes of a file name that are no UTF-8
    ord("\n"): "\\n",
    ord("\t"): "\\t",
    ord("\r"): "\\r",
}
_ESCAPED_IN_LINES = {code: text for code, text in _ESCAPED.items() if chr(code) not in "\n\t"}
_LONG = re.compile(rf"\S{{{LONGEST_FIELD + 1},}}")


def printable(text: str, *, lines: bool = False) -> str:
    r"""Text in which control characters, changes of direction and undecodable bytes are written out.

    With `lines`, it is laid out in lines and tabs already.

    >>> printable("a\x1b[31mb\n")
    'a\\x1b[31mb\\n'
    """
    return text.translate(_ESCAPED_IN_LINES if lines else _ESCAPED)


def sentence(text: str) -> str:
    """One printable sentence, in which what is too long to read is cut in its middle.

    >>> sentence("found " + "x" * 1000 + ", expected y")[190:]
    'xxxxxxxxxxxxxxxx...(1,001 characters)...xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, expected y'
    """
    short = _LONG.sub(lambda found: _cut(found[0], ends=(200, 40)), printable(text))
    return short if len(short) <= LONGEST_SENTENCE else _cut(short, ends=(2000, 600))


def _cut(text: str, *, ends: tuple[int, int]) -> str:
    return f"{text[: ends[0]]}...({len(text):,} characters)...{text[-ends[1] :]}"
