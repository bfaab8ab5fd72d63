"""Cells of result tables that spreadsheets would run: text that begins like a formula gets an apostrophe in front.

Only tables of results are written so. Tables of data (`intervene`, `write`) hold ids, which stay as they are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

RUN = r"^'*[=+\-@\t\r]"  # what spreadsheets run, and what would read back as such
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def safe_cell(value: Any) -> Any:
    """A value with an apostrophe before a text that begins with = + - @, a tab or a carriage return.

    Numbers stay as they are, also those that are text. Texts that begin so after apostrophes get one more, so that
    taking one away gives back every text.

    >>> [safe_cell(value) for value in ("=1+1", "als", "-3", "'=x", -3)]
    ["'=1+1", 'als', '-3', "''=x", -3]
    """
    run = isinstance(value, str) and re.search(RUN, value) and not re.search(NUMBER, value)
    return f"'{value}" if run else value


def plain_cell(value: Any) -> Any:
    """What a value was before `safe_cell`.

    >>> [plain_cell(safe_cell(value)) for value in ("=1+1", "'=x", "'a", "-3")]
    ['=1+1', "'=x", "'a", '-3']
    """
    return value[1:] if isinstance(value, str) and re.search(f"^'{RUN[1:]}", value) else value


def safe_cells(table: pl.DataFrame) -> pl.DataFrame:
    """The table with each of its texts as `safe_cell` has it."""
    import polars as pl

    text = pl.col(pl.String)
    run = text.str.contains(RUN) & ~text.str.contains(NUMBER)
    return table.with_columns(pl.when(run).then("'" + text).otherwise(text).name.keep())
