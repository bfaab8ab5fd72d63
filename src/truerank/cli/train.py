"""truerank train: the recommenders that can be trained, and what they learn from."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from truerank.cli import terminal
from truerank.cli.inputs import column_names, declared, read_log
from truerank.cli.options import PATH, Call, command, common, flag, many, named
from truerank.cli.output import check_call, place, progress_of, say
from truerank.core.errors import InputError, extra

if TYPE_CHECKING:
    import polars as pl

    from truerank.core.ids import Ids
    from truerank.core.log import Log
    from truerank.models import Side


LARGE = 100 * 2**20  # bytes of scores whose size is announced


@command(
    click.Argument(["name"], required=False),
    click.Argument(["log"], type=PATH, required=False),
    Options=(
        flag("--list", help="List the recommenders, or the settings of NAME, and stop."),
        "seed: The same seed gives the same scores.",
        common("top", default=1000, help="Items of each user in top lists."),
    ),
    Learning=(
        many("--set", metavar="NAME=VALUE", help="A setting, as dim=64; several are allowed. --list shows them."),
        "random: A randomly exposed slice with labels.", "user-features", "item-features",
    ),
    Reading=("columns", "positive", "population", "items: All items, also those without a row."),
    Output=("out: The .npz file to write, or a .parquet of top lists.", "quiet"),
)  # fmt: skip
def train(call: Call) -> None:
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

    name = call.name
    if call.list:
        for line in _listing(name):
            terminal.show(line)
        return
    if name is None or call.log is None:
        raise InputError("truerank train needs NAME and LOG; truerank train --list shows the names.")
    check_call(call)
    out = place(call)
    if out.suffix not in (".npz", ".parquet"):
        raise InputError(f"--out {out}: expected a name that ends in .npz, or in .parquet for top lists.")
    model = models.make(name, named(call.set, "--set", expected="NAME=VALUE, as in dim=64", bare=False))
    log, side = _read(call)
    for kind, ids in (("users", log.users), ("items", log.items)):
        ids_array(ids, f"{call.log}, {kind}")  # what could not be written is refused before it is learnt from
    if not log.rewards:
        say(call, [f"{log.source}: no value column, so each of its {len(log):,} rows counts as positive; if it has "
                   "one, name it: --columns label=NAME."])  # fmt: skip
    start = time.monotonic()
    with progress_of(call) as report:
        scores = model.fit(log, seed=call.seed, side=side, progress=report)
        took = time.monotonic() - start
        if out.suffix == ".parquet":
            write_table(top_lists(scores, call.top), out)
        else:
            size = len(scores.users) * len(scores.items) * 8
            if size > LARGE and not isinstance(scores, Factors):
                say(call, [f"{out}: a score of every pair, about {size / 2**20:,.0f} MB; --out NAME.parquet writes "
                           f"the top {call.top:,} items of each user instead."])  # fmt: skip
            write_scores(scores, out, progress=report)
    fitted = f"{len(log.users):,} users x {len(log.items):,} items, {len(log):,} rows"
    say(call, [f"{name}: {fitted}, fitted in {took:.1f} s, scores in {out}"])


def _read(call: Call) -> tuple[Log, Side]:
    """The log and what stands beside it, all over the same users and items."""
    from truerank.models import Side

    roles = ("log", "random")
    logs = [log for role in roles if (log := read_log(call, role)) is not None]
    users = _all([log.users for log in logs], declared(call, "population", "user"), kind="users")
    items = _all([log.items for log in logs], declared(call, "items", "item"), kind="items")
    train, random = (read_log(call, role, users=users, items=items) for role in roles)
    features = {f"{kind}_features": _features(call, kind) for kind in ("user", "item")}
    return train, Side(random=random, **features)


def _all(of_logs: list[Ids], declared: Ids | None, *, kind: str) -> Ids:
    """The ids of all logs, and those that are declared."""
    from truerank.core.ids import Ids

    parts = {f"{kind} of log {number}": ids for number, ids in enumerate(of_logs, 1)}
    parts |= {} if declared is None else {f"the declared {kind}": declared}
    return Ids.union(parts) if any(len(ids) for ids in parts.values()) else of_logs[0]


def _features(call: Call, kind: str) -> pl.DataFrame | None:
    from truerank.io.columns import table_columns

    role = f"{kind}_features"
    if (path := getattr(call, role)) is None:
        return None
    rows = table_columns(path, column_names(call, role))
    ids = rows.get(kind)
    return rows.table.drop(ids.name).insert_column(0, ids.alias(kind))


def _listing(name: str | None) -> list[str]:
    """All recommenders, a line each; or one, with a line for each of its settings."""
    from truerank import models
    from truerank.core.values import options_of

    if name is None:
        catalogue = models.catalogue()
        width = max(map(len, catalogue))
        return [f"{key:{width}}  {cls.summary}" for key, cls in catalogue.items()]
    cls = models.named(name)
    install = "" if cls.needs is None else f"; needs pip install {extra(cls.needs)}"
    return [
        f"{name}: {cls.summary.removesuffix('.')}; learns from {cls.labels.value}{install}",
        *(f"--set {each.name}={each.default}  {each.summary}; {each}" for each in options_of(cls).values()),
    ]
