"""truerank train."""

from __future__ import annotations

import time
from pathlib import Path

import click

from truerank import models
from truerank.cli.learning import about, learning, read_learning, settings_of
from truerank.cli.options import check_out, messages, progress
from truerank.core.errors import InputError
from truerank.ranks.scores.files import write_scores


@click.command()
@click.argument("name")
@click.argument("log", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The .npz file to write.")
@learning
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same scores.")
@click.option("--quiet", is_flag=True, help="No messages and no progress on standard error.")
def train(  # noqa: PLR0917
    name: str,
    log: Path,
    out: Path,
    settings: tuple[str, ...],
    positive: str | None,
    columns: str | None,
    random: Path | None,
    user_features: Path | None,
    item_features: Path | None,
    items: Path | None,
    population: Path | None,
    seed: int,
    quiet: bool,  # noqa: FBT001
) -> None:
    """Train the recommender NAME on LOG and write its scores for `truerank evaluate --scores`.

    LOG is a table user,item with a value column (.parquet .csv .tsv, TREC .qrels; a folder of parts, a glob); without
    one every row is a positive. `truerank models` lists the names.

    \b
    truerank train als train.parquet --positive ">3" --set factors=32 --out als.npz
    truerank evaluate random.parquet --positive ">3" --exposure random --exclude train.parquet --scores als=als.npz
    """
    check_out(out, inputs=(log, random, user_features, item_features, items, population))
    if out.suffix != ".npz":
        raise InputError(f"--out {out}: expected a name that ends in .npz.")
    model = models.make(name, settings_of(settings))
    learnt, side = read_learning(
        log, random=random, user_features=user_features, item_features=item_features, positive=positive,
        columns=columns, population=population, items=items,
    )  # fmt: skip
    messages(about(learnt), quiet=quiet)
    start = time.monotonic()
    with progress(quiet=quiet) as report:
        scores = model.fit(learnt, seed=seed, side=side, progress=report)
        took = time.monotonic() - start
        write_scores(scores, out, progress=None if report is None else lambda n, of: report("writing", n, of))
    size = f"{len(learnt.users):,} users x {len(learnt.items):,} items, {len(learnt):,} rows"
    messages([f"{name}: {size}, fitted in {took:.1f} s, scores in {out}"], quiet=quiet)
