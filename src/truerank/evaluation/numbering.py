"""Matrices without ids: their rows and columns are users and items of other data only where that can be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from truerank.core.errors import InputError, some
from truerank.core.ids import Ids
from truerank.core.messages import Message, message
from truerank.core.ranking import Scores
from truerank.core.wording import option

SIDES = (("user", "row"), ("item", "column"))  # of a matrix: what its rows and columns are


def check_numbers(models: Mapping[str, Scores], rows: Mapping[str, Any], *, items: Ids | None = None) -> list[Message]:
    """Refuse scores without ids unless the ids of the labels evidently are their numbers from 0; say what is taken.

    That is so if no id of the labels lies beyond the matrix and some id is 0, of the labels or of other rows of the
    same data (the first of `rows` are the labels; `items` is the declared catalogue). Ids from 1, by which every user
    would get the scores of the next one, never pass, also where the last of them are missing.
    """
    messages, labels = [], next(iter(rows))
    for name, scores in models.items():
        for kind, line in SIDES:
            ids, *others = (getattr(source, f"{kind}s") for source in (scores, *rows.values()))
            others += [items] if items is not None and kind == "item" else []
            if ids.numbered and others[0].numbered:
                if len(ids) != len(others[0]):
                    raise InputError(
                        f"{name} has {len(ids):,} {line}s without ids of {kind}s, {labels} has {len(others[0]):,}; "
                        f"expected as many. {_name_them(kind, line)}"
                    )
            elif ids.numbered:
                messages.append(_taken(name, ids, labels, others, (kind, line), model=name))
            elif others[0].numbered:
                messages.append(_taken(labels, others[0], name, [ids], (kind, line), model=name))
    return messages


def _taken(matrix: str, places: Ids, table: str, others: list[Ids], side: tuple[str, str], *, model: str) -> Message:
    """That the lines of a matrix are the ids of a table, which is refused where they need not be."""
    kind, line = side
    if not (_within(others[0], len(places)) and any(not ids.is_text and 0 in ids.values for ids in others)):
        raise InputError(
            f"{matrix}: {len(places):,} {line}s without ids of {kind}s, and those of {table} (such as "
            f"{some(others[0].texts()[:3])}) are not evidently their numbers from 0 to {len(places) - 1:,}: each "
            f"{line} could be taken for the one beside it. {_name_them(kind, line)}"
        )
    return message(
        "numbered",
        matrix=matrix,
        kind=kind,
        line=line,
        last=len(places) - 1,
        table=table,
        numbers={f"{line}s": len(places)},
        subjects=(model,),
    )


def _name_them(kind: str, line: str) -> str:
    return f"Name them in the order of {line}s: {option(f'{kind}s FILE')}."


def _within(ids: Ids, size: int) -> bool:
    return not ids.is_text and (len(ids) == 0 or (ids.values[0] >= 0 and ids.values[-1] < size))
