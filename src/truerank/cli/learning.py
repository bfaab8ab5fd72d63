"""What `train` and `tune` learn from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from truerank.cli.groups import InputFile, Reading, input_files, settings_of
from truerank.cli.options import (
    COLUMNS,
    ITEM_FEATURES,
    ITEMS,
    POPULATION,
    POSITIVE,
    RANDOM,
    USER_FEATURES,
    many,
)

if TYPE_CHECKING:
    import polars as pl

    from truerank.core.ids import Ids
    from truerank.core.log import Log
    from truerank.models import Side

READING = (COLUMNS, POSITIVE, POPULATION, ITEMS)
LEARNING = (
    many("--set", "settings", metavar="NAME=VALUE",
         help="A setting, as dim=64; several are allowed. truerank models NAME lists them."),
    RANDOM.here("A randomly exposed slice with labels."),
    USER_FEATURES,
    ITEM_FEATURES,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """The settings of a recommender, and what stands beside the log."""

    settings: tuple[str, ...] = ()
    random: Path | None = None
    user_features: Path | None = None
    item_features: Path | None = None

    def chosen(self) -> dict[str, str]:
        return settings_of(self.settings)

    def files(self) -> list[InputFile]:
        return input_files(random=self.random, user_features=self.user_features, item_features=self.item_features)

    def read(self, log: Path, reading: Reading) -> tuple[Log, Side]:
        """The log and what stands beside it, all over the same users and items."""
        from truerank.models import Side

        paths = [path for path in (log, self.random) if path is not None]
        logs = [reading.log(path) for path in paths]
        declared = reading.ids(reading.population, "user"), reading.ids(reading.items, "item")
        users = _all([part.users for part in logs], declared[0], kind="users")
        items = _all([part.items for part in logs], declared[1], kind="items")
        train, *rest = (reading.log(path, users=users, items=items) for path in paths)
        return train, Side(
            random=rest[0] if rest else None,
            user_features=_features(self.user_features, "user", reading),
            item_features=_features(self.item_features, "item", reading),
        )


def about(log: Log) -> list[str]:
    """What to tell about a log that has no value column."""
    if log.rewards:
        return []
    return [
        f"{log.source}: no value column, so each of its {len(log):,} rows counts as positive; "
        "if it has one, name it: --columns label=NAME."
    ]


def _all(of_logs: list[Ids], declared: pl.Series | None, *, kind: str) -> Ids:
    """The ids of all logs, and those that are declared."""
    from truerank.core.ids import Ids

    parts = {f"{kind} of log {at + 1}": ids for at, ids in enumerate(of_logs)}
    if declared is not None:
        parts[f"the given {kind}"] = Ids.of(declared)
    return Ids.union(parts) if any(len(ids) for ids in parts.values()) else of_logs[0]


def _features(path: Path | None, kind: str, reading: Reading) -> pl.DataFrame | None:
    if path is None:
        return None
    from truerank.data.read import as_table, column

    table, where = as_table(path)
    ids = column(table, kind, reading.mapping(), where=where)
    return table.drop(ids.name).insert_column(0, ids.alias(kind))
