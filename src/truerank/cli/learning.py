"""Options and reading that `train` and `tune` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import polars as pl

from truerank.cli.options import columns_of, id_column
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.data.read import as_table, column, read
from truerank.models import Side

Command = TypeVar("Command", bound=Callable[..., Any])


def learning(command: Command) -> Command:
    """What to learn from: the log, its columns and populations, and what stands beside it."""
    path = click.Path(path_type=Path)
    for option in (
        click.option("--population", type=path, help="All users, also those without a row."),
        click.option("--items", type=path, help="All items, also those without a row."),
        click.option("--item-features", type=path, help="A table with a column item; the others are features."),
        click.option("--user-features", type=path, help="A table with a column user; the others are features."),
        click.option("--random", "random", type=path, metavar="MAR", help="A randomly exposed slice with labels."),
        click.option(
            "--columns", metavar="KEY=NAME,...", help="Column names of the files, as user=user_id,item=video_id."
        ),
        click.option("--positive", metavar="RULE", help='Positive values, as ">3", or all; not needed for 0/1.'),
        click.option(
            "--set", "settings", multiple=True, metavar="NAME=VALUE",
            help="A setting, as dim=64; several are allowed. truerank models NAME lists them.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def settings_of(values: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE, split at the first `=`; each name once."""
    found: dict[str, str] = {}
    for value in values:
        name, separator, text = (part.strip() for part in value.partition("="))
        if not (separator and name and text):
            raise InputError(f"--set {value!r}: expected NAME=VALUE, as in --set dim=64.")
        if name in found:
            raise InputError(f"--set {value!r}: {name} is given twice; expected each setting once.")
        found[name] = text
    return found


def read_learning(
    log: Path,
    *,
    random: Path | None,
    user_features: Path | None,
    item_features: Path | None,
    positive: str | None,
    columns: str | None,
    population: Path | None,
    items: Path | None,
) -> tuple[Log, Side]:
    """The log and what stands beside it, all over the same users and items."""
    mapping = columns_of(columns)
    users, catalogue = id_column(population, "user", mapping), id_column(items, "item", mapping)
    logs = [read(path, columns=mapping, positive=positive) for path in (log, random) if path is not None]
    everyone, everything = (
        _all([getattr(each, kind) for each in logs], given, kind=kind)
        for kind, given in (("users", users), ("items", catalogue))
    )
    train, *rest = (
        read(path, columns=mapping, positive=positive, users=everyone, items=everything)
        for path in (log, random)
        if path is not None
    )
    return train, Side(
        random=rest[0] if rest else None,
        user_features=_features(user_features, "user", mapping),
        item_features=_features(item_features, "item", mapping),
    )


def about(log: Log) -> list[str]:
    """What to tell about a log that has no value column."""
    if log.rewards:
        return []
    return [
        f"{log.source}: no value column, so each of its {len(log):,} rows counts as positive; "
        "if it has one, name it: --columns label=NAME."
    ]


def _all(found: list[Ids], given: pl.Series | None, *, kind: str) -> Ids:
    """The ids of all logs, and those that are declared."""
    parts = {f"{kind} of log {at + 1}": ids for at, ids in enumerate(found)}
    if given is not None:
        parts[f"the given {kind}"] = Ids.of(given)
    return Ids.union(parts) if any(len(ids) for ids in parts.values()) else found[0]


def _features(path: Path | None, kind: str, mapping: dict[str, str]) -> pl.DataFrame | None:
    if path is None:
        return None
    table, where = as_table(path)
    ids = column(table, kind, mapping, where=where)
    return table.drop(ids.name).insert_column(0, ids.alias(kind))
