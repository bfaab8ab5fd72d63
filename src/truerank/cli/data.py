"""truerank data."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truerank.cli.groups import Reading
from truerank.cli.names import choices
from truerank.cli.options import (
    COLUMNS,
    FORMAT,
    ITEMS,
    OUT,
    PATH,
    POPULATION,
    POSITIVE,
    QUIET,
    TRAIN,
    Sections,
    choice,
    grouped,
    shared,
)
from truerank.cli.output import Output
from truerank.core.errors import InputError

if TYPE_CHECKING:
    from truerank.exposure.randomness.description import Description
    from truerank.io.dataset import Dataset, PublishedSize


@click.group()
def data() -> None:
    """Look at data files, and at public datasets."""


@data.command(name="list", cls=Sections)
@grouped(Output, FORMAT, OUT, QUIET)
def list_datasets(*, output: Output) -> None:
    """List the public datasets that have loaders: what they are, where to get them, on what terms."""
    from truerank import datasets

    output.check()
    rows = [
        {
            "name": cls.name,
            "about": cls.about,
            "where": cls.home,
            "terms": cls.terms,
            "positive": cls().positive,
            "files": list(cls.files),
            "parts": {part: _known(counts) for part, counts in cls.published.items()},
        }
        for cls in datasets.catalogue().values()
    ]
    output.deliver(_listed(rows, output.chosen_form))


def _known(counts: PublishedSize) -> dict[str, int]:
    return {name: value for name, value in asdict(counts).items() if value is not None}


def _listed(rows: list[dict[str, Any]], form: str) -> bytes:
    from truerank.report.text import as_csv, as_json, as_lines, encoded

    if form == "json":
        return as_json({"datasets": rows})
    flat = [
        {
            **row,
            "files": "; ".join(row["files"]),
            "parts": "; ".join(f"{part}: {_counted(counts)}" for part, counts in row["parts"].items()),
        }
        for row in rows
    ]
    return as_csv(flat) if form == "csv" else encoded("\n".join(map(as_lines, flat)))


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{value:,} {name}" for name, value in counts.items())


@data.command(cls=Sections)
@click.argument("path", type=PATH)
@TRAIN
@choice(
    "--drawn", choices("core/options", "Drawn"),
    help="Whether items were drawn from all, or among those without a training row; by default seen from the data.",
)  # fmt: skip
@shared("--dataset", metavar="NAME", help="PATH is the folder of this public dataset; see `data list`.")
@shared("--no-check", is_flag=True, help="Do not compare a dataset's counts with the published ones.")
@grouped(Reading, COLUMNS, POSITIVE, POPULATION, ITEMS.here("All items that could have been shown."))
@grouped(Output, FORMAT, OUT, QUIET)
def describe(
    *,
    path: Path,
    train: Path | None,
    drawn: str | None,
    dataset: str | None,
    no_check: bool,
    reading: Reading,
    output: Output,
) -> None:
    """Say what a file holds: a table of user-item rows, and whether they were shown at random; or scores (.npz .npy).

    A table is .parquet, .csv, .tsv, .qrels, .run or .trec, text also gzipped; a folder of part files, or a glob. With
    --dataset it is the folder of a public dataset, whose parts are described one by one.
    """
    from truerank.exposure.randomness.description import describe as describe_log
    from truerank.exposure.randomness.description import read_train
    from truerank.ranking.scores.files import read_scores
    from truerank.report.description import about_scores, described, listed

    output.check([None if dataset is not None else path, train, *reading.files()])
    others = {"--train": train, "--items": reading.items, "--population": reading.population, "--drawn": drawn}
    given = [name for name, value in others.items() if value is not None]
    if given and (dataset is not None or path.suffix in (".npz", ".npy")):
        raise InputError(f"{given[0]} goes with a table of user-item rows.")
    if dataset is not None:
        if reading.columns is not None:
            raise InputError("--columns does not go with --dataset: the names of its columns are known.")
        parts = _dataset(dataset, path, positive=reading.positive, check=not no_check)
        output.deliver(described(parts, output.chosen_form))
        return
    if no_check:
        raise InputError("--no-check goes with --dataset.")
    if path.suffix in (".npz", ".npy"):
        output.deliver(listed(about_scores(read_scores(path)), output.chosen_form))
        return
    users, items = reading.users(), reading.of("items").ids(reading.items, "item")
    description = describe_log(
        path,
        train=read_train(train, reading.of("train").mapping(), reading.positive),
        columns=reading.mapping(),
        positive=reading.positive,
        users=users,
        items=items,
        drawn=drawn,
    )
    summary = description.summary
    if "positives" not in summary and any(name.endswith("(min, mean, max)") for name in summary):
        output.say(['values are not 0/1: add --positive ">3", say, to count positives.'])
    output.deliver(described({"": description}, output.chosen_form))


def _dataset(name: str, folder: Path, *, positive: str | None, check: bool) -> dict[str, Description]:
    """Each part described, the random one beside the training part; the rule that made the labels stands with it."""
    from truerank import datasets
    from truerank.exposure.randomness.description import describe as describe_log
    from truerank.io.columns import PositiveRule

    kind = datasets.named(name)
    loader: Dataset = kind() if positive is None else kind(positive=positive)
    PositiveRule.parse(loader.positive)
    logs = loader.load(folder, check=check)
    parts = {}
    for part, log in logs.items():
        description = describe_log(log, train=logs.get("train") if part == "random" else None)
        parts[part] = replace(description, summary={"positive": loader.positive, **description.summary})
    return parts
