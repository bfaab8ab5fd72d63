"""truerank train."""

from __future__ import annotations

import time
from pathlib import Path

import click

from truerank.cli.groups import InputFile, Reading
from truerank.cli.learning import LEARNING, READING, Learning, about
from truerank.cli.options import OUT, PATH, QUIET, SEED, Sections, grouped
from truerank.cli.output import Output
from truerank.core.errors import InputError


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
    from truerank.ranks.scores.files import write_scores

    output.check([InputFile("log", log), *learning.files(), *reading.files()])
    if output.place.suffix != ".npz":
        raise InputError(f"--out {output.place}: expected a name that ends in .npz.")
    model = models.make(name, learning.chosen())
    learnt, side = learning.read(log, reading)
    output.say(about(learnt))
    start = time.monotonic()
    with output.progress() as report:
        scores = model.fit(learnt, seed=seed, side=side, progress=report)
        took = time.monotonic() - start
        write_scores(scores, output.place, progress=None if report is None else lambda n, of: report("writing", n, of))
    size = f"{len(learnt.users):,} users x {len(learnt.items):,} items, {len(learnt):,} rows"
    output.say([f"{name}: {size}, fitted in {took:.1f} s, scores in {output.place}"])
