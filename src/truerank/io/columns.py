"""Columns of tables: which holds what, by the names that callers give or that are usual, and what they may hold.

Every column is checked where it is read; a message names the table, the column and the row.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import polars as pl

from truerank.core.arrays import LARGEST_NUMBER, LEAST_CHANCE
from truerank.core.errors import InputError, some
from truerank.core.ids import first_true
from truerank.core.record import record
from truerank.core.validation import Wanted
from truerank.core.wording import columns_option, option
from truerank.io.batches import UNNAMED, LazyTable

VALUE_NAMES = ("label", "reward", "rating", "value")  # of which a table has one
KEYS = (
    "user", "item", "label", "reward", "rating", "value", "score", "rank", "propensity", "position", "session", "time",
    "inclusion",
)  # fmt: skip
RANKED_KEYS = ("viewed", "candidates", "surface", "group", "logger", "exposure", "prediction")
SHOWN = 12  # columns of a table that messages name
USUAL = {
    "user": (
        "user", "user_id", "uid", "visitor", "visitor_id", "customer", "customer_id", "member_id", "account_id",
        "reviewer_id", "query", "query_id", "qid", "topic", "topic_id",
    ),
    "item": (
        "item", "item_id", "iid", "movie", "movie_id", "video", "video_id", "product", "product_id", "article_id",
        "track_id", "song_id", "artist_id", "book_id", "isbn", "asin", "parent_asin", "sku", "joke_id", "recipe_id",
        "business_id", "content_id", "news_id", "game_id", "anime_id", "document", "document_id", "doc", "doc_id",
        "docid", "docno", "passage_id",
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
PAIR = ("user", "item")
LABELLED = (*PAIR, "label", "rating", "time", "propensity")
SCORED = (*PAIR, "score")
DISPLAYED = ("session", "item", "position", "propensity")  # in a log of impressions, beside its users
OF_TARGETS = ("session", "item")  # in what another ranker would display
PROBABILITY = f"a probability in (0, 1], and no less than {LEAST_CHANCE:g}: no row stands for more than 1e40 rows"
# what the numbers of a column may not be, what is expected instead, and their type
NUMBERS: dict[str, tuple[Callable[[pl.Series], pl.Series], str, type[pl.DataType]]] = {
    "propensity": (lambda x: (x < LEAST_CHANCE) | (x > 1), PROBABILITY, pl.Float64),
    "inclusion": (lambda x: (x < 0) | (x > 1), "a probability in [0, 1]", pl.Float64),
    "position": (lambda x: (x < 1) | (x != x.round(0)) | (x > 2**31 - 1), "a whole number from 1", pl.Int32),
    "viewed": (lambda x: ~x.is_in([0.0, 1.0]), "0 or 1", pl.Boolean),
    "candidates": (lambda x: (x < 1) | (x != x.round(0)), "a whole number from 1, or a list", pl.Int64),
}
NAME_THEM = f"""name one with {option("columns user=NAME", 'columns={"user": "NAME"}')}"""

T = TypeVar("T")


@record
class TableColumns:
    """Rows of a table, which of its columns holds what, and its name in messages.

    `before` counts the rows of the source before these; `notes` report which columns were recognised.
    """

    table: pl.DataFrame
    mapping: Mapping[str, str]
    where: str
    before: int = 0
    notes: tuple[str, ...] = ()

    def find(self, key: str, *, strict: bool = False) -> pl.Series | None:
        """The column that holds `key`: the mapped one or, unless `strict`, the one of that name."""
        mapped = self.mapping.get(key, key)
        names = [name for name in ((mapped,) if strict else (mapped, key)) if name in self.table.columns]
        return self.table[names[0]] if names else None

    def get(self, key: str, *, strict: bool = False, by: str = "truerank.read") -> pl.Series:
        """The same, refused where there is none; `by` is what reads it in Python, where a name can be given."""
        values = self.find(key, strict=strict)
        if values is not None:
            return values
        wanted, names = self.mapping.get(key, key), self.table.columns
        close = difflib.get_close_matches(wanted, names, n=1, cutoff=0.4) or names[:1] or ["NAME"]
        missing = f"{self.where}: no column {wanted!r}; found {some(names, most=SHOWN) or 'no columns'}."
        if key not in (*KEYS, *RANKED_KEYS):  # a name that the caller chose: there is nothing to map
            raise InputError(f"{missing} Did you mean {close[0]!r}?")
        raise InputError(f"{missing} Name the one that holds the {key}: {columns_option(key, close[0], by=by)}.")

    def finite(self, values: pl.Series) -> pl.Series:
        return finite_numbers(values, where=f"{self.where}, column {values.name!r}", before=self.before)

    def values(self, key: str) -> pl.Series:
        """A column of finite numbers, which must be there: another in its place would be another question."""
        return self.finite(self.get(key, strict=True))

    def numbers(self, key: str) -> pl.Series | None:
        """A column of numbers, checked as `NUMBERS` says, where there is one."""
        column = self.find(key, strict=key in self.mapping)
        if column is None:
            return None
        values, (is_bad, expected, kind) = self.finite(column), NUMBERS[key]
        row = first_true(is_bad(values))
        if row is not None:
            raise InputError(
                f"{self.where}: row {self.before + row + 1}, {key} is {values[row]:g}; expected {expected}."
            )
        return values.cast(kind)

    def texts(self, key: str) -> pl.Series | None:
        """A column of names, one in every row, where there is one."""
        column = self.find(key)
        row = None if column is None else first_true(column.is_null())
        if row is not None:
            raise InputError(f"{self.where}: row {self.before + row + 1} has no {key}; expected one in every row.")
        return column

    def any_numbers(self, key: str) -> pl.Series:
        """Numbers that are not infinite; NaN where there is none."""
        column = self.get(key, strict=True)
        if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
            raise InputError(f"{self.where}: column {column.name!r} is {column.dtype}; expected numbers.")
        values = column.cast(pl.Float64)
        row = first_true(values.is_infinite())
        if row is not None:
            raise InputError(f"{self.where}: row {self.before + row + 1}, {key} is infinite; expected a number.")
        return values.fill_null(float("nan"))


def table_columns(
    source: Any,
    columns: Mapping[str, str] | None = None,
    kinds: Collection[str] = (),
    *,
    name: str | None = None,
    unnamed: str | None = None,
) -> TableColumns:
    """All rows of a source, with ids as they are written, and which of its columns holds what.

    `columns` maps this library's names to the source's; columns of these `kinds` are recognised by their usual names.
    `name` is that of the source in messages, `unnamed` that of a frame or a matrix.
    """
    rows = LazyTable.of(source, columns=columns)
    mapping = with_usual(rows.columns, check_columns(columns) if kinds else columns or {}, kinds)
    where = name or (unnamed if unnamed and rows.where in UNNAMED else rows.where)
    notes = (*rows.notes, *recognition(where, columns, mapping))
    return TableColumns(rows.as_written(mapping).read(), mapping, where, notes=notes)


def target_columns(
    source: Any, columns: Mapping[str, str] | None = None, *, unnamed: str | None = None
) -> TableColumns:
    """All rows of what another ranker would display, by session and item under their own or their usual names.

    >>> target_columns(pl.DataFrame({"session_id": [7], "item_id": ["a"], "rank": [1]})).get("item").to_list()
    ['a']
    """
    rows = LazyTable.of(source, columns=columns)
    return table_columns(rows, with_usual(rows.columns, columns or {}, OF_TARGETS), unnamed=unnamed)


def header(table: LazyTable, mapping: Mapping[str, str]) -> TableColumns:
    """The columns of a table, before any row is read."""
    return TableColumns(pl.DataFrame(schema=dict(table.schema)), mapping, table.where)


def check_columns(columns: Mapping[str, str] | None, *, also: Iterable[str] = ()) -> dict[str, str]:
    """The mapping, whose keys must be names that mean something here; `also` are names that the caller chose."""
    names = (*KEYS, *RANKED_KEYS, *also)
    for key in columns or {}:
        if key not in names:
            raise InputError(f"columns: nothing is called {key!r} here; expected keys among {', '.join(names)}.")
    return dict(columns or {})


def finite_numbers(values: pl.Series, *, where: str, before: int = 0) -> pl.Series:
    """A column as numbers, one in every row; `before` counts the rows before these, for messages."""
    if not (values.dtype.is_numeric() or values.dtype == pl.Boolean):
        if len(values) == 0:
            return pl.Series(values.name, [], dtype=pl.Float64)
        raise InputError(
            f"{where}: {values.dtype} values such as {odd_value(values)!r}; expected numbers or true/false."
        )
    numbers = values.cast(pl.Float64)
    row = first_true(~numbers.is_finite().fill_null(value=False))
    if row is not None:
        raise InputError(f"{where}: row {before + row + 1} is {values[row]!r}; expected a finite number in every row.")
    row = first_true(numbers.abs() > LARGEST_NUMBER)
    if row is not None:
        raise InputError(
            f"{where}: row {before + row + 1} is {numbers[row]:g}; expected numbers up to {LARGEST_NUMBER:g}, whose "
            "sums and squares are numbers too. Use another unit."
        )
    return numbers


def odd_value(values: pl.Series) -> Any:
    """A value that is no number, to show in a message."""
    if values.dtype != pl.String:
        return values[0]
    odd = values.filter(values.cast(pl.Float64, strict=False).is_null() & values.is_not_null())
    return odd[0] if len(odd) else values[0]


def is_binary(numbers: pl.Series) -> bool:
    return bool(((numbers == 0.0) | (numbers == 1.0)).all())


# --------------------------------------------------------------------------------------------------------- recognition


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

    >>> with_usual(["userId", "movieId", "rating", "timestamp"], {}, LABELLED)
    {'user': 'userId', 'item': 'movieId', 'time': 'timestamp'}
    >>> with_usual(["uid", "visitor", "item"], {}, PAIR)
    {}
    """
    full = dict(mapping)
    valued = any(key in columns or key in mapping for key in VALUE_NAMES)
    typed = [name for kind in ("label", "rating") for name in recognised(columns, kind) if ":" in name]
    numbers = [name for name in typed if name.endswith(":float")]
    no_numbers = [name for name in typed if numbers and name not in numbers]  # of RecBole: other types than float
    for kind in kinds:
        if kind not in USUAL or kind in mapping or kind in columns or (kind in VALUE_NAMES and valued):
            continue
        names = recognised(columns, kind, taken=[*full.values(), *no_numbers])
        if len(names) == 1:
            full[kind] = names[0]
            valued = valued or kind in VALUE_NAMES
    return full


def recognition(where: str, columns: Mapping[str, str] | None, mapping: Mapping[str, str]) -> tuple[str, ...]:
    """What to report of columns that were recognised; nothing where there was none.

    >>> recognition("ratings.csv", {}, {"user": "userId", "item": "movieId"})
    ("ratings.csv: 'userId' is taken for the user, 'movieId' for the item.",)
    """
    new = [f"{name!r} for the {kind}" for kind, name in mapping.items() if kind not in (columns or {})]
    return (f"{where}: {', '.join(new).replace(' for the', ' is taken for the', 1)}.",) if new else ()


def with_users(
    columns: Sequence[str],
    mapping: Mapping[str, str],
    make: Callable[[Mapping[str, str]], T],
    *,
    taken: Collection[str] = (),
) -> tuple[T, tuple[str, ...]]:
    """What is made of a table whose users stand in the column that is called so, and what to report of that.

    A column that somebody has named, or that is called `user`, is not looked for. What is recognised must be the only
    one, and must be possible: what cannot be made with it is made without.
    """
    names = recognised(columns, "user", taken=[*mapping.values(), *taken])
    if "user" in mapping or "user" in columns or not names:
        return make(mapping), ()
    if len(names) > 1:
        both = " and ".join(map(repr, names))
        return make(mapping), (f"columns {both} could both be users, and neither is used; {NAME_THEM}.",)
    try:
        result = make({**mapping, "user": names[0]})
    except InputError as error:  # what is wrong for another reason is refused without it, too
        note = f"column {names[0]!r} is called as users are but cannot be: {error.marked} It is not used."
        return make(mapping), (note,)
    return result, (
        f"column {names[0]!r} is taken for users, over whom intervals are; if it is not that, {NAME_THEM}.",
    )


# -------------------------------------------------------------------------------------------------------------- labels

_COMPARE: dict[str, Callable[[pl.Series, float], pl.Series]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
ALL = "all"  # every row is a positive, also where there is no value column


@record
class PositiveRule:
    """A value is positive if `value comparison threshold`, for example > 3; with the comparison "all" each value is.

    >>> PositiveRule.parse(">3").apply(pl.Series([3.0, 4.0])).to_list()
    [False, True]
    """

    comparison: str
    threshold: float = 0.0

    @classmethod
    def parse(cls, text: str) -> PositiveRule:
        if text.strip() == ALL:
            return cls(ALL)
        number = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
        words = re.fullmatch(rf"\s*(>=|<=|==|!=|>|<)\s*({number})\s*", text)
        if words is None:
            raise InputError(
                f'positive rule {text!r} is not understood; expected a comparison such as ">3" or ">=4", or all.'
            )
        return cls(words[1], float(words[2]))

    def apply(self, values: pl.Series) -> pl.Series:
        if self.comparison == ALL:
            return pl.repeat(value=True, n=len(values), eager=True)
        return _COMPARE[self.comparison](values, self.threshold)

    def __str__(self) -> str:
        return ALL if self.comparison == ALL else f"{self.comparison}{self.threshold:g}"


RULE = Wanted('a rule such as ">3", or all', lambda value: isinstance(value, str | PositiveRule))
