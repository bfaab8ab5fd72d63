"""truerank train: the recommenders that can be trained, and what they learn from."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truerank.cli import terminal
from truerank.cli.groups import InputFile, Reading, input_files
from truerank.cli.options import PATH, Sections, common, grouped, many, named, shared
from truerank.cli.output import Output
from truerank.core.errors import InputError, extra
from truerank.core.record import record

if TYPE_CHECKING:
    import polars as pl

    from truerank.core.ids import Ids
    from truerank.core.log import Log
    from truerank.models import Side


LARGE = 100 * 2**20  # bytes of scores whose size is announced


@record(kw_only=True)
class Learning:
    """The settings of a recommender, and what stands beside the log."""

    settings: tuple[str, ...] = ()
    random: Path | None = None
    user_features: Path | None = None
    item_features: Path | None = None

    def files(self) -> list[InputFile]:
        return input_files(random=self.random, user_features=self.user_features, item_features=self.item_features)

    def read(self, log: Path, reading: Reading) -> tuple[Log, Side]:
        """The log and what stands beside it, all over the same users and items."""
        from truerank.models import Side

        paths = [(reading, log), *([] if self.random is None else [(reading.for_file("random"), self.random)])]
        logs = [way.log(path) for way, path in paths]
        users_of, items_of = reading.for_file("population"), reading.for_file("items")
        declared = users_of.ids(reading.population, "user"), items_of.ids(reading.items, "item")
        users = _all([part.users for part in logs], declared[0], kind="users")
        items = _all([part.items for part in logs], declared[1], kind="items")
        train, *rest = (way.log(path, users=users, items=items) for way, path in paths)
        return train, Side(
            random=rest[0] if rest else None,
            user_features=_features(self.user_features, "user", reading),
            item_features=_features(self.item_features, "item", reading),
        )


def _all(of_logs: list[Ids], declared: pl.Series | None, *, kind: str) -> Ids:
    """The ids of all logs, and those that are declared."""
    from truerank.core.ids import Ids

    parts = {f"{kind} of log {number}": ids for number, ids in enumerate(of_logs, 1)}
    if declared is not None:
        parts[f"the declared {kind}"] = Ids.of(declared)
    return Ids.union(parts) if any(len(ids) for ids in parts.values()) else of_logs[0]


def _features(path: Path | None, kind: str, reading: Reading) -> pl.DataFrame | None:
    if path is None:
        return None
    from truerank.io.columns import table_columns

    mapping = reading.for_file(f"{kind}_features").mapping()
    rows = table_columns(path, mapping)
    ids = rows.get(kind)
    return rows.table.drop(ids.name).insert_column(0, ids.alias(kind))


@click.command(cls=Sections)
@click.argument("name", required=False)
@click.argument("log", type=PATH, required=False)
@shared("--list", "listing", is_flag=True, help="List the recommenders, or the settings of NAME, and stop.")
@grouped(
    Learning,
    many("--set", "settings", metavar="NAME=VALUE",
         help="A setting, as dim=64; several are allowed. --list shows them."),
    "random: A randomly exposed slice with labels.", "user-features", "item-features",
)  # fmt: skip
@grouped(Reading, "columns", "positive", "population", "items: All items, also those without a row.")
@common("seed: The same seed gives the same scores.")
@common("top: Items of each user in top lists.", default=1000)
@grouped(Output, "out: The .npz file to write, or a .parquet of top lists.", "quiet")
def train(
    *,
    name: str | None,
    log: Path | None,
    listing: bool,
    learning: Learning,
    reading: Reading,
    seed: int,
    top: int,
    output: Output,
) -> None:
    """Train the recommender NAME on LOG and write its scores for `truerank evaluate --scores`.

    LOG is a table user,item with a value column (.parquet .csv .tsv, TREC .qrels; a folder of parts, a glob); without
    one every row is a positive. `truerank train --list` shows the names.

    \b
    truerank train als train.parquet --positive ">3" --set factors=32 --out als.npz
    truerank evaluate random.parquet --positive ">3" --exposure random --exclude train.parquet --scores als=als.npz
    """
    from truerank import models
    from truerank.io.files import write_table
    from truerank.ranking.scores.files import ids_array, top_lists, write_scores
    from truerank.ranking.scores.scores import Factors

    if listing:
        for line in _listing(name):
            terminal.show(line)
        return
    if name is None or log is None:
        raise InputError("truerank train needs NAME and LOG; truerank train --list shows the names.")
    output.check([InputFile("log", log), *learning.files(), *reading.files()])
    if output.place.suffix not in (".npz", ".parquet"):
        raise InputError(f"--out {output.place}: expected a name that ends in .npz, or in .parquet for top lists.")
    model = models.make(name, named(learning.settings, "--set", expected="NAME=VALUE, as in dim=64", bare=False))
    learnt, side = learning.read(log, reading)
    for kind, ids in (("users", learnt.users), ("items", learnt.items)):
        ids_array(ids, f"{log}, {kind}")  # what could not be written is refused before it is learnt from
    if not learnt.rewards:
        output.say([f"{learnt.source}: no value column, so each of its {len(learnt):,} rows counts as positive; "
                    "if it has one, name it: --columns label=NAME."])  # fmt: skip
    start = time.monotonic()
    with output.progress() as report:
        scores = model.fit(learnt, seed=seed, side=side, progress=report)
        took = time.monotonic() - start
        if output.place.suffix == ".parquet":
            write_table(top_lists(scores, top), output.place)
        else:
            size = len(scores.users) * len(scores.items) * 8
            if size > LARGE and not isinstance(scores, Factors):
                output.say([f"{output.place}: a score of every pair, about {size / 2**20:,.0f} MB; --out NAME.parquet "
                            f"writes the top {top:,} items of each user instead."])  # fmt: skip
            write_scores(scores, output.place, progress=report)
    fitted = f"{len(learnt.users):,} users x {len(learnt.items):,} items, {len(learnt):,} rows"
    output.say([f"{name}: {fitted}, fitted in {took:.1f} s, scores in {output.place}"])


def _listing(name: str | None) -> list[str]:
    """All recommenders, a line each; or one, with a line for each of its settings."""
    from truerank import models
    from truerank.core.values import options_of
    from truerank.models import settings_of

    if name is None:
        catalogue = models.catalogue()
        width = max(map(len, catalogue))
        return [f"{key:{width}}  {cls.summary}" for key, cls in catalogue.items()]
    cls = models.named(name)
    install = "" if cls.needs is None else f"; needs pip install {extra(cls.needs)}"
    lines = [f"{name}: {cls.summary.removesuffix('.')}; learns from {cls.labels.value}{install}"]
    settings = settings_of(cls)
    for field in dataclasses.fields(cls):
        allowed = options_of(cls)[field.name]
        lines.append(f"--set {field.name}={field.default}  {settings[field.name].summary}; {allowed}")
    return lines
