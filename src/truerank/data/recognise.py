"""Columns known by their usual names, where a file does not use this library's and nobody has said which is which."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from truerank.core.errors import InputError

USUAL = {
    "user": (
        "user", "user_id", "uid", "visitor", "visitor_id", "customer", "customer_id", "member_id", "account_id",
    ),
}  # fmt: skip

NAME_THEM = "name one with {option:columns user=NAME|columns=dict(user=NAME)}"

T = TypeVar("T")


def plain(name: str) -> str:
    """A name without what differs between spellings.

    >>> [plain(name) for name in ("user_id", "userId", "User-ID", "USERID")]
    ['userid', 'userid', 'userid', 'userid']
    """
    return "".join(sign for sign in name.lower() if sign.isalnum())


def recognised(columns: Sequence[str], kind: str, *, taken: Collection[str] = ()) -> list[str]:
    """The columns that are called as this kind usually is; those that are taken for something else are not.

    >>> recognised(["session", "userId", "item"], "user"), recognised(["uid", "visitor"], "user", taken=["uid"])
    (['userId'], ['visitor'])
    """
    names = {plain(name) for name in USUAL[kind]}
    return [name for name in columns if plain(name) in names and name not in taken]


def with_users(
    columns: Sequence[str],
    mapping: Mapping[str, str],
    make: Callable[[Mapping[str, str]], T],
    *,
    taken: Collection[str] = (),
) -> tuple[T, tuple[str, ...]]:
    """What is made of a table whose users stand in the column that is called so, and what to say of that.

    A column that somebody has named, or that is called `user`, is not looked for. What is recognised must be the only
    one, and must be possible: what cannot be made with it is made without.
    """
    found = recognised(columns, "user", taken=[*mapping.values(), *taken])
    if "user" in mapping or "user" in columns or not found:
        return make(mapping), ()
    if len(found) > 1:
        names = " and ".join(map(repr, found))
        return make(mapping), (f"columns {names} could both be users, and neither is used; {NAME_THEM}.",)
    try:
        made = make({**mapping, "user": found[0]})
    except InputError as error:
        made = make(mapping)  # what is wrong for another reason is refused here
        return made, (f"column {found[0]!r} is called as users are but cannot be: {error} It is not used.",)
    return made, (f"column {found[0]!r} is taken for users, over whom intervals are; if it is not that, {NAME_THEM}.",)
