"""Long tables of Markdown pages, folded."""

from __future__ import annotations

from collections.abc import Sequence

LONG = 20  # rows of a table that is shown at once


def folded(lines: Sequence[str]) -> list[str]:
    """Lines in which tables of many rows are folded; what is folded already stays so.

    >>> folded(["| a |", "|---|", *["| 1 |"] * 21])[:4]
    ['<details><summary>Table of 21 rows</summary>', '', '| a |', '|---|']
    """
    out: list[str] = []
    table: list[str] = []
    inside = False
    for line in (*lines, ""):
        if line.startswith("|"):
            table.append(line)
            continue
        if len(table) - 2 > LONG and not inside:
            table = [f"<details><summary>Table of {len(table) - 2} rows</summary>", "", *table, "", "</details>"]
        out += [*table, line]
        table = []
        inside = (inside or line.startswith("<details")) and not line.startswith("</details")
    return out[:-1]
