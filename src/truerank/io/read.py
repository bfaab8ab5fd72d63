"""Read a Log from a file or a frame, checked once, here."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import LARGEST_NUMBER, LEAST_CHANCE, Floats, Ints, frozen
from truerank.core.calls import checked_arguments
from truerank.core.errors import InputError, some
from truerank.core.ids import IdColumn, Ids
from truerank.core.log import Log
from truerank.core.wording import columns_option, option
from truerank.io.batches import MATRIX, LazyTable, by_user
from truerank.io.matrices import is_sparse, population, rows_of, stored
from truerank.io.recognise import JUDGED, PAIR, taken, with_usual
from truerank.io.rules import ALL, RULE, PositiveRule
from truerank.io.times import time_array

VALUE_NAMES = ("label", "reward", "rating", "value")
KEYS = ("user", "item", *VALUE_NAMES, "score", "rank", "propensity", "position", "session", "time", "inclusion")
SHOWN = 12  # columns of a table that messages name
RANKED_KEYS = ("viewed", "candidates", "surface", "group", "logger", "exposure", "prediction")


@checked_arguments(positive=RULE)
def read(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    positive: str | PositiveRule | None = None,
    users: Ids | IdColumn | None = None,
    items: Ids | IdColumn | None = None,
    values: bool = True,
    name: str | None = None,
) -> Log:
    """A Log from a Parquet, CSV, TSV or TREC qrels file, or from a polars, pandas or arrow frame.
    A dict gives the items of each user, {user: [items]}, or their values, {user: {item: rating}}.

    A folder of part files and a glob are read as one file. Text files may be gzipped. Of a scipy.sparse matrix every
    stored entry is a row, explicit zeros too; `users` and `items` then name its rows and columns in their order, which
    are numbered from 0 without them.

    `columns` maps this library's names to the file's (`{"user": "user_id"}`). The value column is one of label,
    reward, rating, value; 0/1 or boolean values are labels as they are, others become labels by `positive`, such as
    ">3". A relevance below 0 in qrels is read as 0. `users` and `items` declare populations larger than what the rows
    show. Without `values` only pairs are read.

    >>> log = read(pl.DataFrame({"user": ["b", "a"], "item": [7, 7], "rating": [5, 2]}), positive=">3")
    >>> log.users.texts(), log.label.tolist()
    (['a', 'b'], [0.0, 1.0])
    """
    said: tuple[str, ...] = ()
    if is_sparse(source):
        where, mapping = name or MATRIX, dict[str, str]()
        entries = stored(source, name=where)
        table = rows_of(entries, users=users, items=items, name=where)
        users = population(users, entries.shape[0], where=f"{where}, users")
        items = population(items, entries.shape[1], where=f"{where}, items")
    else:
        rows = by_user(source, value="rating") if isinstance(source, Mapping) else source
        table, mapping, where, said = known_table(rows, columns, JUDGED if values else PAIR, name=name)
    rule = PositiveRule.parse(positive) if isinstance(positive, str) else positive
    log = log_of(table, mapping, rule=rule, users=users, items=items, values=values, where=where)
    return replace(log, notes=said)


def log_of(
    table: pl.DataFrame,
    mapping: Mapping[str, str],
    *,
    rule: PositiveRule | None,
    users: Ids | IdColumn | None,
    items: Ids | IdColumn | None,
    values: bool,
    where: str,
    binary: bool | None = None,
) -> Log:
    """A Log of these rows; `binary` says whether the values of all rows are 0 or 1 where these are only some."""
    (known_users, user_at), (known_items, item_at) = (
        _positions(
            column(table, key, mapping, where=where, strict=values), ids, kind=key, where=f"{where}, column {key!r}"
        )
        for key, ids in zip(_PAIR, (users, items), strict=True)
    )
    rewards = _rewards(table, mapping, rule, binary=binary, where=where) if values else {}
    # one order for all files with the same rows: results cannot depend on how a file was sorted
    order = _order(user_at, item_at, len(known_items))
    return Log(
        users=known_users,
        items=known_items,
        user=frozen(user_at[order]),
        item=frozen(item_at[order]),
        rewards={key: frozen(each[order]) for key, each in rewards.items()},
        propensity=_sorted(checked(table, "propensity", mapping, where=where), order),
        position=_sorted(checked(table, "position", mapping, where=where), order),
        session=_plain(table, "session", mapping, order),
        time=_time(table, mapping, order),
        inclusion=_sorted(checked(table, "inclusion", mapping, where=where), order),
        source=where,
    )


_PAIR = ("user", "item")


def _order(user: Ints, item: Ints, n_items: int) -> Ints:
    """Rows by user, then item; rows of one pair in the order they came."""
    cell = user * max(n_items, 1) + item
    return np.arange(len(cell)) if (cell[1:] >= cell[:-1]).all() else np.argsort(cell, kind="stable")


def check_columns(columns: Mapping[str, str] | None, *, also: Iterable[str] = ()) -> dict[str, str]:
    """The mapping, whose keys must be names that mean something here; `also` are names that the caller chose."""
    known = (*KEYS, *RANKED_KEYS, *also)
    for key in columns or {}:
        if key not in known:
            raise InputError(f"columns: nothing is called {key!r} here; expected keys among {', '.join(known)}.")
    return dict(columns or {})


def known_table(
    source: Any, columns: Mapping[str, str] | None, kinds: Collection[str], *, name: str | None = None
) -> tuple[pl.DataFrame, dict[str, str], str, tuple[str, ...]]:
    """A frame of the source, which of its columns are what, its name in messages, and what was recognised."""
    rows, given = LazyTable.of(source, columns=columns), check_columns(columns)
    mapping, where = with_usual(rows.columns, given, kinds), name or rows.where
    return rows.as_written(mapping).read(), mapping, where, taken(where, given, mapping)


def as_table(source: Any, columns: Mapping[str, str] | None = None) -> tuple[pl.DataFrame, str]:
    """A polars frame of the source with ids as they are written, and its name in messages.

    `columns` maps this library's names to the source's.
    """
    table = LazyTable.of(source, columns=columns)
    return table.read(), table.where


def column(
    table: pl.DataFrame,
    key: str,
    mapping: Mapping[str, str],
    *,
    where: str,
    strict: bool = False,
    by: str = "truerank.read",
) -> pl.Series:
    """The column that stands for `key`: the mapped one or, unless `strict`, the one of that name.

    `by` is what reads it in Python, where a name can be given.
    """
    found = find_column(table, key, mapping, strict=strict)
    if found is not None:
        return found
    wanted = mapping.get(key, key)
    close = difflib.get_close_matches(wanted, table.columns, n=1, cutoff=0.4) or table.columns[:1] or ["NAME"]
    missing = f"{where}: no column {wanted!r}; found {some(table.columns, most=SHOWN) or 'no columns'}."
    if key not in (*KEYS, *RANKED_KEYS):  # a name that the caller chose: there is nothing to map
        raise InputError(f"{missing} Did you mean {close[0]!r}?")
    raise InputError(f"{missing} Name the one that holds the {key}: {columns_option(key, close[0], by=by)}.")


def find_column(table: pl.DataFrame, key: str, mapping: Mapping[str, str], *, strict: bool = False) -> pl.Series | None:
    named = mapping.get(key, key)
    for candidate in (named,) if strict else (named, key):
        if candidate in table.columns:
            return table[candidate]
    return None


def _positions(column: pl.Series, given: Ids | IdColumn | None, *, kind: str, where: str) -> tuple[Ids, Ints]:
    """The ids of a column (or the given population) and the position of each row's."""
    if given is None:
        return Ids.factorise(column, where=where)
    known = given if isinstance(given, Ids) else Ids.of(given, where=f"{kind}s")
    return known, located(known, column, kind=kind, where=where)


def located(known: Ids, column: pl.Series, *, kind: str, where: str, before: int = 0) -> Ints:
    """The position of each row's id in a population that has all of them."""
    at = known.locate(column, where=where)
    if (at < 0).any():
        row = int(np.argmax(at < 0))
        raise InputError(f"{where}: row {before + row + 1}, id {column[row]!r} is not among the given {kind}s.")
    return at


def value_key(columns: Collection[str], mapping: Mapping[str, str], rule: PositiveRule | None, *, where: str) -> str:
    """Which of label, reward, rating and value the rows have; empty where they have none, and need none."""
    keys = [key for key in VALUE_NAMES if key in mapping] or [key for key in VALUE_NAMES if key in columns]
    if len(keys) > 1 and not (rule is None and beside_label(columns, mapping)):
        raise InputError(
            f"{where}: several value columns ({', '.join(keys)}); expected one. "
            f"Say which holds the label: {columns_option('label', keys[0])}."
        )
    if not keys and rule is not None and rule.comparison != ALL:
        raise InputError(
            f"{where}: no value column for the rule {rule}; found {some(list(columns), most=SHOWN)}. "
            f"Name the one that holds the values: {columns_option('label')}."
        )
    return keys[0] if keys else ""


def beside_label(columns: Collection[str], mapping: Mapping[str, str]) -> str:
    """The values that labels were made of, as `write` keeps them in a column beside the label; empty where none are.

    >>> beside_label(["user", "item", "label", "rating"], {}), beside_label(["label", "rating"], {"label": "rating"})
    ('rating', '')
    """
    found = [key for key in VALUE_NAMES if key in columns]
    named = any(key in mapping for key in VALUE_NAMES)
    return found[1] if len(found) == 2 and found[0] == "label" and not named else ""


def values_of(table: pl.DataFrame, key: str, mapping: Mapping[str, str], *, where: str, before: int = 0) -> pl.Series:
    """The values as numbers; `before` counts the rows before these, for messages."""
    # what was named must be there: another column in its place would be another question
    values = column(table, key, {key: mapping.get(key, key)}, where=where, strict=True)
    return finite_numbers(values, where=f"{where}, column {values.name!r}", before=before)


def _rewards(
    table: pl.DataFrame, mapping: Mapping[str, str], rule: PositiveRule | None, *, binary: bool | None, where: str
) -> dict[str, Floats]:
    """The value column as numbers, and the label where the values are binary or a rule is given."""
    key = value_key(table.columns, mapping, rule, where=where)
    if not key:
        return {} if rule is None else {"label": np.ones(table.height)}
    numbers = values_of(table, key, mapping, where=where)
    binary = is_binary(numbers) if binary is None else binary
    raw = "value" if key == "label" else key  # the name label is kept for what is 0 or 1
    if rule is not None and rule.comparison == ALL and binary and not bool((numbers == 1.0).all()):
        raise InputError(
            f"{where}: each row is said to be positive, but column {numbers.name!r} has 0. Leave "
            f"{option('positive')} out, or remove those rows."
        )
    if rule is not None:
        labels = rule.apply(numbers).cast(pl.Float64).to_numpy()
        return {"label": labels} if binary and key == "label" else {"label": labels, raw: numbers.to_numpy()}
    grades = beside_label(table.columns, mapping)
    if not grades:
        return {"label" if binary else raw: numbers.to_numpy()}
    if not binary:
        raise InputError(
            f"{where}: values in label and in {grades}, and those of label are not 0 and 1; expected one of the two. "
            f"Say which holds the label: {columns_option('label', grades)}."
        )
    return {"label": numbers.to_numpy(), grades: values_of(table, grades, mapping, where=where).to_numpy()}


def is_binary(numbers: pl.Series) -> bool:
    return bool(((numbers == 0.0) | (numbers == 1.0)).all())


def finite_numbers(values: pl.Series, *, where: str, before: int = 0) -> pl.Series:
    """A column as numbers, one in every row; `before` counts the rows before these, for messages."""
    if not (values.dtype.is_numeric() or values.dtype == pl.Boolean):
        if len(values) == 0:
            return pl.Series(values.name, [], dtype=pl.Float64)
        raise InputError(
            f"{where}: {values.dtype} values such as {odd_value(values)!r}; expected numbers or true/false."
        )
    numbers = values.cast(pl.Float64)
    if len(numbers) and not numbers.null_count():
        array = numbers.to_numpy()
        if array.max() <= LARGEST_NUMBER and array.min() >= -LARGEST_NUMBER:  # neither holds of NaN
            return numbers
    bad = numbers.is_null() | numbers.is_nan() | numbers.is_infinite()
    if bool(bad.any()):
        row = int(bad.arg_true()[0])
        raise InputError(f"{where}: row {before + row + 1} is {values[row]!r}; expected a finite number in every row.")
    large = numbers.abs() > LARGEST_NUMBER
    if bool(large.any()):
        row = int(large.arg_true()[0])
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


CHANCE = f"a probability in (0, 1], and no less than {LEAST_CHANCE:g}: no row stands for more than 1e40 rows"


def checked(
    table: pl.DataFrame, key: str, mapping: Mapping[str, str], *, where: str, before: int = 0
) -> Floats | Ints | None:
    """A propensity in (0, 1] (not next to 0), an inclusion in [0, 1] or a position from 1, where there is a column."""
    found = find_column(table, key, mapping, strict=key in mapping)
    if found is None:
        return None
    numbers = finite_numbers(found, where=f"{where}, column {found.name!r}", before=before)
    if key == "propensity":
        bad, expected = (numbers < LEAST_CHANCE) | (numbers > 1), CHANCE
    elif key == "inclusion":
        bad, expected = (numbers < 0) | (numbers > 1), "a probability in [0, 1]"
    else:
        bad, expected = (numbers < 1) | (numbers != numbers.round(0)), "a whole number from 1"
    if bool(bad.any()):
        row = int(bad.arg_true()[0])
        raise InputError(f"{where}: row {before + row + 1}, {key} is {numbers[row]:g}; expected {expected}.")
    return numbers.to_numpy().astype(np.int64) if key == "position" else numbers.to_numpy()


def _sorted(values: Any, order: Ints) -> Any:
    return None if values is None else frozen(values[order])


def _time(table: pl.DataFrame, mapping: Mapping[str, str], order: Ints) -> Any:
    found = find_column(table, "time", mapping)
    return None if found is None else _sorted(time_array(found), order)


def _plain(table: pl.DataFrame, key: str, mapping: Mapping[str, str], order: Any) -> Any:
    found = find_column(table, key, mapping)
    return None if found is None else _sorted(found.to_numpy(), order)
