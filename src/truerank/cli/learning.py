"""truerank models and train: the recommenders that can be trained, and what they learn from."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truerank.cli.groups import InputFile, Reading, input_files, settings_of
from truerank.cli.options import (
    COLUMNS,
    FORMAT,
    ITEM_FEATURES,
    ITEMS,
    OUT,
    PATH,
    POPULATION,
    POSITIVE,
    QUIET,
    RANDOM,
    SEED,
    USER_FEATURES,
    Sections,
    grouped,
    many,
)
from truerank.cli.output import Output
from truerank.core.errors import InputError, extra

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

        paths = [(reading, log), *([] if self.random is None else [(reading.of("random"), self.random)])]
        logs = [way.log(path) for way, path in paths]
        users_of, items_of = reading.of("population"), reading.of("items")
        declared = users_of.ids(reading.population, "user"), items_of.ids(reading.items, "item")
        users = _all([part.users for part in logs], declared[0], kind="users")
        items = _all([part.items for part in logs], declared[1], kind="items")
        train, *rest = (way.log(path, users=users, items=items) for way, path in paths)
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
    from truerank.io.columns import table_columns

    mapping = reading.of(f"{kind}_features").mapping()
    rows = table_columns(path, mapping)
    ids = rows.get(kind)
    return rows.table.drop(ids.name).insert_column(0, ids.alias(kind))


@click.command(cls=Sections)
@click.argument("name", required=False)
@grouped(Output, FORMAT, OUT, QUIET)
def models(*, name: str | None, output: Output) -> None:
    """List the recommenders that `truerank train` knows: what they do, what they learn from, their settings.

    With a NAME only that one, with what each setting is and can be.
    """
    from truerank import models as recommenders

    output.check()
    chosen = recommenders.catalogue().values() if name is None else [recommenders.named(name)]
    output.deliver(_content([_row(cls) for cls in chosen], output.chosen_form, long=name is not None))


def _row(cls: Any) -> dict[str, Any]:
    from truerank.core.values import options_of
    from truerank.models.settings import settings_of

    known = settings_of(cls)
    return {
        "name": cls.name,
        "about": cls.about,
        "learns from": cls.labels.value,
        "needs": cls.needs,
        "settings": [
            {
                "name": field.name,
                "default": field.default,
                "allowed": str(options_of(cls)[field.name]),
                "about": known[field.name].about,
            }
            for field in dataclasses.fields(cls)
        ],
    }


def _content(rows: list[dict[str, Any]], form: str, *, long: bool) -> bytes:
    from truerank.report.text import as_csv, as_json, as_lines, encoded

    if form == "json":
        return as_json({"models": rows})
    flat = [
        {
            **row,
            "needs": "" if row["needs"] is None else f"pip install {extra(row['needs'])}",
            "settings": " ".join(f"{setting['name']}={setting['default']}" for setting in row["settings"]),
        }
        for row in rows
    ]
    if form == "csv":
        return as_csv(flat)
    width = max(len(key) for key in flat[0])
    blocks = []
    for row, source in zip(flat, rows, strict=True):
        shown = {key: value for key, value in row.items() if value != "" and not (long and key == "settings")}
        blocks.append(as_lines(shown, width=width) + (_explained(source["settings"], width=width) if long else ""))
    return encoded("\n".join(blocks))


def _explained(settings: list[dict[str, Any]], *, width: int) -> str:
    """One line for each setting: --set name=default, what it is, what it can be."""
    pairs = [f"{setting['name']}={setting['default']}" for setting in settings]
    wide = max((len(pair) for pair in pairs), default=0)
    return "".join(
        f"{'--set':{width}}  {pair:{wide}}  {setting['about']}; {setting['allowed']}\n"
        for pair, setting in zip(pairs, settings, strict=True)
    )


@click.command(cls=Sections)
@click.argument("name")
@click.argument("log", type=PATH)
@grouped(Learning, *LEARNING)
@grouped(Reading, *READING)
@SEED.here("The same seed gives the same scores.")
@grouped(Output, OUT.here("The .npz file to write.", required=True), QUIET)
def train(*, name: str, log: Path, learning: Learning, reading: Reading, seed: int, output: Output) -> None:
    """Train the recommender NAME on LOG and write its scores for `truerank evaluate --scores`.

    LOG is a table user,item with a value column (.parquet .csv .tsv, TREC .qrels; a folder of parts, a glob); without
    one every row is a positive. `truerank models` lists the names.

    \b
    truerank train als train.parquet --positive ">3" --set factors=32 --out als.npz
    truerank evaluate random.parquet --positive ">3" --exposure random --exclude train.parquet --scores als=als.npz
    """
    from truerank import models
    from truerank.ranking.scores.files import ids_array, write_scores

    output.check([InputFile("log", log), *learning.files(), *reading.files()], results=False)
    if output.place.suffix != ".npz":
        raise InputError(f"--out {output.place}: expected a name that ends in .npz.")
    model = models.make(name, learning.chosen())
    learnt, side = learning.read(log, reading)
    for kind, ids in (("users", learnt.users), ("items", learnt.items)):
        ids_array(ids, f"{log}, {kind}")  # what could not be written is refused before it is learnt from
    output.say(about(learnt))
    start = time.monotonic()
    with output.progress() as report:
        scores = model.fit(learnt, seed=seed, side=side, progress=report)
        took = time.monotonic() - start
        write_scores(scores, output.place, progress=report)
    size = f"{len(learnt.users):,} users x {len(learnt.items):,} items, {len(learnt):,} rows"
    output.say([f"{name}: {size}, fitted in {took:.1f} s, scores in {output.place}"])
