"""truerank intervene."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click
import polars as pl

from truerank.cli.options import check_out, columns_of, messages
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.data.files import SEPARATORS, write_table
from truerank.data.read import as_table, column, read
from truerank.exposure import interventions
from truerank.exposure.counts import Floor, Smoothed
from truerank.exposure.interventions.design import Strategy
from truerank.exposure.interventions.popularity import EqualPerItemIntervention, PopularityStratifiedIntervention
from truerank.sampling.pools import Share

INCLUSION = "inclusion"


@click.command()
@click.argument("log", type=click.Path(path_type=Path))
@click.option(
    "--strategy",
    required=True,
    metavar="NAME",
    help="full, reg, skew, wtd, wtd_h, popularity-stratified or equal-per-item.",
)
@click.option(
    "--train", type=click.Path(path_type=Path), help="The biased log whose users and items are counted, for weights."
)
@click.option("--random", type=click.Path(path_type=Path), metavar="MAR", help="Rows shown at random, for wtd.")
@click.option("--fraction", type=float, default=0.5, show_default=True, help="How much of LOG is drawn, in (0, 1].")
@click.option(
    "--preset",
    type=click.Choice(["published", "released"]),
    default="published",
    show_default=True,
    help="What the paper says, or what its code does.",
)
@click.option("--user-power", type=float, help="Power of the user's weight: 1.")
@click.option(
    "--item-power", type=float, help="Power of the item's weight: 2 as published, 1 as released and for skew."
)
@click.option("--floor", type=float, help="What a share of 0 becomes: 0.0001.")
@click.option("--smoothing", type=float, metavar="A", help="Add A to every count instead of a floor.")
@click.option(
    "--inclusion",
    is_flag=True,
    help="Draw nothing: write all rows with their probability to be drawn, in a column of that name.",
)
@click.option("--columns", metavar="KEY=NAME,...", help="Column names of the files, as user=user_id,item=video_id.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The file to write.")
@click.option("--quiet", is_flag=True, help="No messages on standard error.")
def intervene(  # noqa: PLR0917
    log: Path,
    strategy: str,
    train: Path | None,
    random: Path | None,
    fraction: float,
    preset: str,
    user_power: float | None,
    item_power: float | None,
    floor: float | None,
    smoothing: float | None,
    inclusion: bool,  # noqa: FBT001
    columns: str | None,
    seed: int,
    out: Path,
    quiet: bool,  # noqa: FBT001
) -> None:
    """Draw from a biased log a test set that looks more as if it had been shown at random.

    LOG is a held-out (or training) table of users and items; its drawn rows are written with all their columns, under
    the names they have. Labels are not looked at. Evaluate models on the result with

    \b
    truerank intervene heldout.parquet --strategy skew --train train.parquet --out test.parquet
    truerank evaluate test.parquet --unlisted negative --exclude train.parquet --overlap keep --scores pop=pop.npz

    One drawn test set is noisy. With --inclusion every row keeps its probability instead, and
    `--estimator intervened` (or intervened-pooled) gives what all test sets that could be drawn give on average.
    """
    mapping = columns_of(columns)
    chosen = _strategy(strategy, preset, user_power=user_power, item_power=item_power, floor=floor, smoothing=smoothing)
    check_out(out, inputs=(log, train, random))
    if out.suffix.lower() not in (".parquet", *SEPARATORS):
        raise InputError(f"{out}: unknown ending {out.suffix!r}; expected .parquet, .csv or .tsv.")
    table, pairs = _pairs(log, mapping)
    if inclusion and INCLUSION in table.columns:
        raise InputError(f"{log}: has a column {INCLUSION!r} already; rename it, or leave --inclusion out.")
    fit, shown = (None if path is None else read(path, columns=mapping, values=False) for path in (train, random))
    if inclusion:
        made = interventions.with_inclusion(pairs, chosen, train=fit, random=shown, fraction=fraction, seed=seed)
        table = table.with_columns(pl.Series(INCLUSION, made.inclusion))
        said = [f"{len(table):,} rows with their probability to be drawn, {table[INCLUSION].sum():,.1f} on average."]
    else:
        rows = interventions.drawn_rows(pairs, chosen, train=fit, random=shown, fraction=fraction, seed=seed)
        table = table[rows]
        said = _about(pairs, pairs.select(rows), chosen, fraction=fraction)
    write_table(table, out)
    messages([*interventions.unseen_notes(pairs, chosen, fit), *said], quiet=quiet)


def _strategy(
    name: str,
    preset: str,
    *,
    user_power: float | None,
    item_power: float | None,
    floor: float | None,
    smoothing: float | None,
) -> Strategy:
    """The preset of a strategy, with what was said otherwise."""
    if floor is not None and smoothing is not None:
        raise InputError("--floor and --smoothing are two rules for counts of 0; give one of them.")
    zero = Floor(floor) if floor is not None else None if smoothing is None else Smoothed(smoothing)
    preset_value: Any = getattr(interventions.named(name), preset)()
    given = {
        "user_power": ("--user-power", user_power),
        "item_power": ("--item-power", item_power),
        "zero": ("--floor" if smoothing is None else "--smoothing", zero),
    }
    changed = {key: value for key, (_, value) in given.items() if value is not None}
    for key in changed.keys() - {field.name for field in fields(preset_value)}:
        able = [each for each, cls in interventions.catalogue().items() if key in {field.name for field in fields(cls)}]
        raise InputError(f"{given[key][0]} has no meaning for {name}; it goes with {', '.join(able)}.")
    found: Strategy = replace(preset_value, **changed)
    return found


def _pairs(path: Path, mapping: dict[str, str]) -> tuple[pl.DataFrame, Log]:
    """The table as it is, and its users and items in the order of its rows."""
    table, where = as_table(path)
    (users, user), (items, item) = (
        Ids.factorise(column(table, key, mapping, where=where, strict=True), where=f"{where}, column {key!r}")
        for key in ("user", "item")
    )
    return table, Log(users, items, user, item, {}, source=where)


def _about(log: Log, drawn: Log, strategy: Strategy, *, fraction: float) -> list[str]:
    """How many rows were drawn, and how level the items are."""
    if not len(drawn):
        return [f"none of {len(log):,} rows drawn: {fraction:g} of them is less than one."]
    before, after = interventions.dispersion(log), interventions.dispersion(drawn)
    found = [
        f"{len(drawn):,} of {len(log):,} rows drawn; variance / mean of rows per item {after:.2f}, "
        f"{before:.2f} in {log.source} (about 1 at random)."
    ]
    asked = Share(fraction).of(len(log))
    if len(drawn) < asked:
        found.append(f"{asked:,} rows were asked for; {_why_fewer(strategy)}.")
    return found


def _why_fewer(strategy: Strategy) -> str:
    if isinstance(strategy, PopularityStratifiedIntervention):
        return "each stratum gives the same number, rounded down, or all the rows it has"
    if isinstance(strategy, EqualPerItemIntervention):
        return "each item gives the same number, rounded down, and items with fewer rows give none"
    return "all other rows have weight 0 and are never drawn"
