"""Columns known by their usual names, where a file does not use this library's and nobody has said which is which."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from truerank.core.errors import InputError
from truerank.core.wording import option

USUAL = {
    "user": (
        "user", "user_id", "uid", "visitor", "visitor_id", "customer", "customer_id", "member_id", "account_id",
        "reviewer_id",
    ),
    "item": (
        "item", "item_id", "iid", "movie", "movie_id", "video", "video_id", "product", "product_id", "article_id",
        "track_id", "song_id", "artist_id", "book_id", "isbn", "asin", "parent_asin", "sku", "joke_id", "recipe_id",
        "business_id", "content_id", "news_id", "game_id", "anime_id",
    ),
    "label": (
        "label", "click", "clicked", "is_click", "like", "liked", "is_like", "purchased", "is_purchase", "interacted",
    ),
    "rating": (
        "rating", "ratings", "stars", "star_rating", "overall", "grade", "relevance", "preference", "r_ui", "value",
        "reward",
    ),
    "score": ("score", "prediction", "predicted", "predicted_rating", "pred", "est"),
    "time": ("time", "timestamp", "ts", "datetime", "event_time", "unix_review_time"),
    "session": ("session", "session_id", "visit", "visit_id", "impression_id", "request_id", "query_id", "slate_id"),
    "position": ("position", "rank_shown", "slot", "place", "display_position"),
    "propensity": ("propensity", "propensity_score", "pscore"),
}  # fmt: skip
JUDGED = ("user", "item", "label", "rating", "time")
SCORED = ("user", "item", "score")
PAIR = ("user", "item")
VALUES = ("label", "reward", "rating", "value")  # of which a table has one

NAME_THEM = f"""name one with {option("columns user=NAME", 'columns={"user": "NAME"}')}"""

T = TypeVar("T")


def plain(name: str) -> str:
    """A name without what differs between spellings, and without the type that RecBole writes behind it.

    >>> [plain(name) for name in ("user_id", "userId", "User-ID", "user_id:token")]
    ['userid', 'userid', 'userid', 'userid']
    """
    return "".join(sign for sign in name.partition(":")[0].lower() if sign.isalnum())


def recognised(columns: Sequence[str], kind: str, *, taken: Collection[str] = ()) -> list[str]:
    """The columns that are called as this kind usually is; those that are taken for something else are not.

    >>> recognised(["session", "userId", "item"], "user"), recognised(["uid", "visitor"], "user", taken=["uid"])
    (['userId'], ['visitor'])
    """
    names = {plain(name) for name in USUAL[kind]}
    return [name for name in columns if plain(name) in names and name not in taken]


def with_usual(columns: Sequence[str], mapping: Mapping[str, str], kinds: Collection[str]) -> dict[str, str]:
    """The mapping, and the columns that are called as these kinds usually are, where exactly one is.

    What somebody has named, or what has this library's own name, is not looked for; nor is a value where there is one.

    >>> with_usual(["userId", "movieId", "rating", "timestamp"], {}, JUDGED)
    {'user': 'userId', 'item': 'movieId', 'time': 'timestamp'}
    >>> with_usual(["uid", "visitor", "item"], {}, PAIR)
    {}
    """
    found = dict(mapping)
    valued = any(key in columns or key in mapping for key in VALUES)
    typed = [name for kind in ("label", "rating") for name in recognised(columns, kind) if ":" in name]
    numbers = [name for name in typed if name.endswith(":float")]
    no_numbers = [name for name in typed if numbers and name not in numbers]  # of RecBole: other types than float
    for kind in kinds:
        if kind not in USUAL or kind in mapping or kind in columns or (kind in VALUES and valued):
            continue
        names = recognised(columns, kind, taken=[*found.values(), *no_numbers])
        if len(names) == 1:
            found[kind] = names[0]
            valued = valued or kind in VALUES
    return found


def taken(where: str, given: Mapping[str, str], mapping: Mapping[str, str]) -> tuple[str, ...]:
    """What to say of columns that were recognised; nothing where there was none.

    >>> taken("ratings.csv", {}, {"user": "userId", "item": "movieId"})
    ("ratings.csv: 'userId' is taken for the user, 'movieId' for the item.",)
    """
    new = [f"{name!r} {{}}for the {kind}" for kind, name in mapping.items() if kind not in given]
    if not new:
        return ()
    first, *rest = new
    return (f"{where}: {', '.join([first.format('is taken '), *(each.format('') for each in rest)])}.",)


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
        return made, (f"column {found[0]!r} is called as users are but cannot be: {error.marked} It is not used.",)
    return made, (f"column {found[0]!r} is taken for users, over whom intervals are; if it is not that, {NAME_THEM}.",)
