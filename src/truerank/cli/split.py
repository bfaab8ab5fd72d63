"""truerank split."""

from __future__ import annotations

from pathlib import Path

import click

from truerank.cli.groups import Reading
from truerank.cli.options import PATH, Sections, choice, common, grouped, shared
from truerank.cli.output import Output


@click.command(cls=Sections)
@click.argument("log", type=PATH)
@choice(
    "--by", ["time", "last", "random", "user"], default="time",
    help="The latest rows; the last row of each user; a random share of rows; a random share of each user's rows.",
)  # fmt: skip
@shared("--test", type=float, default=0.2, help="The share of rows to hold out; not for last.")
@shared("--folds", type=int, metavar="K", help="K pairs of parts in which each row is tested once; random or user.")
@shared("--protocol", metavar="NAME", help="Split a dataset's folder LOG as a paper does (truerank-research).")
@common("drop-missing-times")
@grouped(Reading, "columns")
@common("seed")
@grouped(Output, "out!: The folder to write.", "force", "quiet")
def split(
    *,
    log: Path,
    by: str,
    test: float,
    folds: int | None,
    protocol: str | None,
    drop_missing_times: bool,
    reading: Reading,
    seed: int,
    output: Output,
) -> None:
    """Hold a part of a log out: train and test files for an ordinary evaluation.

    LOG is a table of users and items; its rows go to DIR/train and DIR/test with all their columns, under the names
    they have, as Parquet, or as CSV if LOG is text. With --folds to DIR/fold-1 ... By time and last, times are numbers,
    dates, datetimes or padded ISO 8601 text (2024-01-31T09:30:00). Evaluate with

    \b
    truerank split ratings.csv --by time --test 0.2 --out parts
    truerank evaluate parts/test.csv --exposure holdout --exclude parts/train.csv --scores als=als.csv
    """
    from truerank.datasets.split import (
        FOLDER,
        ORDERED,
        SplitBy,
        SplitParts,
        about_split,
        check_ordered,
        folds_of,
        held_out,
        split_by_protocol,
    )
    from truerank.io.atomic_write import check_place, whole_folder
    from truerank.io.files import SEPARATORS, kind_of, to_frame, write_table
    from truerank.io.paths import files_of
    from truerank.io.read import as_fields
    from truerank.io.times import about_missing_times, row_number, with_times

    place = output.place
    check_place(place, kind=FOLDER, force=output.force, inputs=files_of(log))
    if protocol is not None:
        parts = split_by_protocol(protocol, log, seed=seed)
        with whole_folder(place, kind=FOLDER, force=output.force) as folder:
            for name, rows_of_part in parts.items():
                write_table(to_frame(rows_of_part), folder / f"{name}.parquet")
        output.say(f"{name}: {len(rows_of_part):,} rows" for name, rows_of_part in parts.items())
        return
    is_text = kind_of(log) in SEPARATORS
    way = SplitBy(by)
    check_ordered(way, drop_missing_times=drop_missing_times)
    table, rows = as_fields(log, reading.mapping(), text=is_text)
    if way in ORDERED:
        rows, kept = with_times(rows, drop_missing=drop_missing_times, name_row=row_number)
        output.say(about_missing_times(kept, rows.source))
        table = table.filter(kept)
    held = [held_out(rows, way, test, seed=seed)] if folds is None else folds_of(rows, way, folds, seed=seed)
    ending = ".csv" if is_text else ".parquet"
    with whole_folder(place, kind=FOLDER, force=output.force) as inside:
        for number, tested in enumerate(held, start=1):
            within = inside if folds is None else inside / f"fold-{number}"
            within.mkdir(exist_ok=True)
            write_table(table.filter(~tested), within / f"train{ending}")
            write_table(table.filter(tested), within / f"test{ending}")
    for number, tested in enumerate(held, start=1):
        name = "" if folds is None else f"fold {number}: "
        output.say(f"{name}{line}" for line in about_split(SplitParts(rows.select(~tested), rows.select(tested))))
