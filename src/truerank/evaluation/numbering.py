"""Matrices without ids: their rows and columns are users and items of other data only where that can be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from truerank.core.errors import InputError, some
from truerank.core.ids import Ids
from truerank.core.messages import Message, message
from truerank.core.ranking import Scores
from truerank.core.wording import option


class Populated(Protocol):
    """Rows of which users and items are known."""

    @property
    def users(self) -> Ids: ...
    @property
    def items(self) -> Ids: ...


class _Side(NamedTuple):
    """What to call users or items, and what stands for one of them in a matrix."""

    kind: str
    line: str


_USERS, _ITEMS = _Side("user", "row"), _Side("item", "column")


def check_numbers(
    models: Mapping[str, Scores], rows: Mapping[str, Populated], *, items: Ids | None = None
) -> list[Message]:
    """Refuse scores without ids unless the ids of the labels evidently are their numbers from 0; say what is taken.

    That is so if no id of the labels lies beyond the matrix and some id is 0, of the labels or of other rows of the
    same data (the first of `rows` are the labels; `items` is the declared catalogue). Ids from 1, by which every user
    would get the scores of the next one, never pass, also where the last of them are missing.
    """
    said = []
    for name, scores in models.items():
        for side in (_USERS, _ITEMS):
            own, *others = (each.users if side is _USERS else each.items for each in (scores, *rows.values()))
            others += [items] if items is not None and side is _ITEMS else []
            labels = next(iter(rows))
            if own.numbered and others[0].numbered:
                _check_size(name, own, labels, others[0], side)
            elif own.numbered:
                said.append(_taken(name, own, labels, others, side, about=name))
            elif others[0].numbered:
                said.append(_taken(labels, others[0], name, [own], side, about=name))
    return said


def _check_size(name: str, own: Ids, source: str, others: Ids, side: _Side) -> None:
    if len(own) != len(others):
        raise InputError(
            f"{name} has {len(own):,} {side.line}s without ids of {side.kind}s, {source} has {len(others):,}; expected "
            f"as many. {_name_them(side)}"
        )


def _taken(matrix: str, places: Ids, table: str, others: list[Ids], side: _Side, *, about: str) -> Message:
    """That the lines of a matrix are the ids of a table, which is refused where they need not be."""
    kind, line = side
    if not (_within(others[0], len(places)) and any(_has_zero(ids) for ids in others)):
        raise InputError(
            f"{matrix}: {len(places):,} {line}s without ids of {kind}s, and those of {table} (such as "
            f"{some(others[0].texts()[:3])}) are not evidently their numbers from 0 to {len(places) - 1:,}: each "
            f"{line} could be taken for the one beside it. {_name_them(side)}"
        )
    return message(
        "numbered",
        matrix=matrix,
        kind=kind,
        line=line,
        last=len(places) - 1,
        table=table,
        numbers={f"{line}s": len(places)},
        about=(about,),
    )


def _name_them(side: _Side) -> str:
    return f"Name them in the order of {side.line}s: {option(f'{side.kind}s FILE')}."


def _within(ids: Ids, size: int) -> bool:
    return not ids.is_text and (len(ids) == 0 or (ids.values[0] >= 0 and ids.values[-1] < size))


def _has_zero(ids: Ids) -> bool:
    return not ids.is_text and 0 in ids.values
