"""Text from data as it may stand in each output: one function for each, used by all that writes.

    printable      a terminal, and text: no control characters, changes of direction or undecodable bytes
    sentence       the same as one message of a length that can be read
    csv_cell       a table of results: also nothing that a spreadsheet would run
    markdown_text  Markdown: also no markup and no HTML
    latex_text     LaTeX: also no commands
    html_text      HTML
    redacted       all of them: no passwords and tokens of addresses
    chart_spec     charts, which become SVG: only characters that XML can hold
    json_bytes     JSON: the same values, with escapes for what a terminal would obey

Tables of data (`intervene`, `tr.write`) hold ids, which stay as they are.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

LONGEST_FIELD = 300  # characters without a space
LONGEST_SENTENCE = 3000
_BIDIRECTIONAL = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_NO_CHARACTERS = (
    *range(0xFDD0, 0xFDF0),
    *(plane + end for plane in range(0, 0x110000, 0x10000) for end in (0xFFFE, 0xFFFF)),
)
_ESCAPED = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))},
    **{code: f"\\u{code:04x}" for code in (*_BIDIRECTIONAL, 0x2028, 0x2029, *range(0xD800, 0xE000))},
    **{code: f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}" for code in _NO_CHARACTERS},
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
    return redacted(text).translate(_ESCAPED_IN_LINES if lines else _ESCAPED)


_PASSWORD = re.compile(r"(?<=:/)(/*[^/\s:@]*):[^/\s]*@")
_SECRET = re.compile(
    r"([?&;](?:sig|signature|x-(?:amz|goog)-[\w-]+|awsaccesskeyid|googleaccessid|\w*(?:token|password|passwd|secret|"
    r"api_?key|access_?key|credentials?)\w*)=)[^&;\s'\"#]+",
    flags=re.IGNORECASE,
)


def redacted(text: str) -> str:
    """Text without the passwords, signatures and tokens of addresses, on every way to a reader or a file.

    >>> redacted("s3://me:secret@logs/a.parquet?X-Amz-Security-Token=abc&part=1")
    's3://me:***@logs/a.parquet?X-Amz-Security-Token=***&part=1'
    >>> redacted("abfss://logs@account.dfs.core.windows.net/a.parquet")
    'abfss://logs@account.dfs.core.windows.net/a.parquet'
    """
    if ":/" not in text and "=" not in text:
        return text
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1:***@", text))


def sentence(text: str) -> str:
    """One printable sentence, in which what is too long to read is cut in its middle.

    >>> sentence("found " + "x" * 1000 + ", expected y")[190:]
    'xxxxxxxxxxxxxxxx...(1,001 characters)...xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, expected y'
    """
    short = _LONG.sub(lambda field: _cut(field[0], ends=(200, 40)), printable(text))
    return short if len(short) <= LONGEST_SENTENCE else _cut(short, ends=(2000, 600))


def _cut(text: str, *, ends: tuple[int, int]) -> str:
    return f"{text[: ends[0]]}...({len(text):,} characters)...{text[-ends[1] :]}"


_FORMULA = re.compile(r"'*[=+\-@\uff1d\uff0b\uff0d\uff20]")  # also full-width, which spreadsheets of East Asia run
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def csv_cell(value: Any) -> Any:
    """A printable value, with an apostrophe before a text that begins like a formula.

    Numbers stay as they are, also those that are text. Texts that begin so after apostrophes get one more, so that
    taking one away gives back every printable text.

    >>> [csv_cell(value) for value in ("=1+1", "als", "-3", "'=x", -3)]
    ["'=1+1", 'als', '-3', "''=x", -3]
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def csv_table(table: pl.DataFrame) -> bytes:
    """A table of results as CSV."""
    import polars as pl

    texts = [column for column in table if column.dtype == pl.String]
    distinct = {column.name: column.drop_nulls().unique() for column in texts}
    cells = [pl.col(name).replace(values, [csv_cell(value) for value in values]) for name, values in distinct.items()]
    return table.with_columns(cells).write_csv().encode()


def markdown_text(text: str) -> str:
    """
    >>> markdown_text("a|b_c<d> $1")
    'a\\\\|b\\\\_c&lt;d&gt; \\\\$1'
    """
    plain = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]|~$])", r"\\\1", plain)


# signs that LaTeX obeys, or shows as others; brackets and stars would be options of the line before
_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}",
    "[": "{[}", "]": "{]}", "*": "{*}", "·": r"$\cdot$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "≤": r"$\leq$",
    "Σ": r"$\Sigma$", "²": r"$^2$",
} | {sign: f"\\{sign}" for sign in "&%$#_{}"}  # fmt: skip


def latex_text(text: str) -> str:
    """
    >>> latex_text("50% of a_b")
    '50\\\\% of a\\\\_b'
    """
    return "".join(_LATEX.get(sign, sign) for sign in printable(text)).replace("--", "-{}-")


def html_text(text: str) -> str:
    """
    >>> html_text("<b>\x1b")
    '&lt;b&gt;\\\\x1b'
    """
    return html.escape(printable(text))


def chart_spec(chart: Any) -> dict[str, Any]:
    """The specification of a chart, whose texts hold only what XML can."""
    spec: dict[str, Any] = _drawable(chart.to_dict(validate=False))  # checking a chart takes longer than drawing it
    return spec


def _drawable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_drawable(name): _drawable(content) for name, content in value.items()}
    if isinstance(value, list | tuple):
        return [_drawable(content) for content in value]
    return printable(value, lines=True) if isinstance(value, str) else value


_OBEYED = re.compile(
    f"[{''.join(map(chr, sorted(code for code in _ESCAPED if code > 0x7E and not 0xD800 <= code < 0xE000)))}]"
)


def json_bytes(content: Any, *, indent: int = 2) -> bytes:
    r"""A JSON document in lines; what a terminal would obey is written as an escape, which reads back as it was.

    >>> print(json_bytes({"a": "\x9b"}).decode(), end="")
    {
      "a": "\u009b"
    }
    """
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(content), indent=indent).decode()
    return _OBEYED.sub(_json_escape, text).encode() + b"\n"


def embedded_json(content: Any) -> str:
    """JSON that can stand in a page: no character of it can end the element that holds it.

    >>> embedded_json({"a": "</script>&"})
    '{"a":"\\\\u003c/script\\\\u003e\\\\u0026"}'
    """
    import msgspec

    return re.sub("[<>&\u2028\u2029]", _json_escape, msgspec.json.encode(content).decode())


def _json_escape(sign: re.Match[str]) -> str:
    units = sign[0].encode("utf-16-be").hex()
    return re.sub("....", r"\\u\g<0>", units)
