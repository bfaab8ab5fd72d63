"""truerank data."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np

from truerank.cli.options import check_out, columns_of, common, deliver, id_column, messages
from truerank.core.errors import InputError
from truerank.core.options import Drawn
from truerank.core.ranking import Scores
from truerank.data import datasets
from truerank.data.dataset import Dataset, PublishedSize
from truerank.data.rules import PositiveRule
from truerank.exposure.randomness.description import Description
from truerank.exposure.randomness.description import describe as describe_log
from truerank.ranks.scores.files import read_scores
from truerank.ranks.scores.scores import Factors, Lists
from truerank.report.randomness import randomness_flat, randomness_plain, randomness_text


@click.group()
def data() -> None:
    """Look at data files, and at public datasets."""


@data.command(name="list")
@common
def list_datasets(form: str | None, out: Path | None, quiet: bool) -> None:  # noqa: FBT001
    """List the public datasets that have loaders: what they are, where to get them, on what terms."""
    check_out(out)
    rows = [
        {
            "name": each.name,
            "about": each.about,
            "where": each.home,
            "terms": each.terms,
            "positive": each().positive,
            "files": list(each.files),
            "parts": {part: _known(counts) for part, counts in each.published.items()},
        }
        for each in datasets.catalogue().values()
    ]
    deliver(_listed(rows, form), out)


def _known(counts: PublishedSize) -> dict[str, int]:
    return {name: value for name, value in asdict(counts).items() if value is not None}


def _listed(rows: list[dict[str, Any]], form: str | None) -> bytes:
    if form == "json":
        return msgspec.json.format(msgspec.json.encode({"datasets": rows}), indent=2) + b"\n"
    flat = [
        {
            **row,
            "files": "; ".join(row["files"]),
            "parts": "; ".join(f"{part}: {_counted(counts)}" for part, counts in row["parts"].items()),
        }
        for row in rows
    ]
    if form == "csv":
        stream = io.StringIO()
        writer = csv.DictWriter(stream, list(flat[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
        return stream.getvalue().encode()
    width = max(len(key) for key in flat[0])
    blocks = ["".join(f"{key:{width}}  {value}\n" for key, value in row.items()) for row in flat]
    return "\n".join(blocks).encode()


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{value:,} {name}" for name, value in counts.items())


@data.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--positive", metavar="RULE", help='Which values are positive, as ">3".')
@click.option("--columns", metavar="KEY=NAME,...", help="Column names of the file, as user=user_id,item=video_id.")
@click.option(
    "--train", type=click.Path(path_type=Path), help="Training pairs: what was known before the log was shown."
)
@click.option("--items", type=click.Path(path_type=Path), help="All items that could have been shown.")
@click.option("--population", type=click.Path(path_type=Path), help="All users that count, also those without a row.")
@click.option(
    "--drawn",
    type=click.Choice([each.value for each in Drawn]),
    help="Whether items were drawn from all, or among those without a training row; by default seen from the data.",
)
@click.option("--dataset", metavar="NAME", help="PATH is the folder of this public dataset; see `data list`.")
@click.option("--no-check", is_flag=True, help="Do not compare a dataset's counts with the published ones.")
@common
def describe(  # noqa: PLR0917
    path: Path,
    positive: str | None,
    columns: str | None,
    train: Path | None,
    items: Path | None,
    population: Path | None,
    drawn: str | None,
    dataset: str | None,
    no_check: bool,  # noqa: FBT001
    form: str | None,
    out: Path | None,
    quiet: bool,  # noqa: FBT001
) -> None:
    """Say what a file holds: a table of user-item rows, and whether they were shown at random; or scores (.npz .npy).

    A table is .parquet, .csv, .tsv, .qrels, .run or .trec, text also gzipped; a folder of part files, or a glob. With
    --dataset it is the folder of a public dataset, whose parts are described one by one.
    """
    check_out(out, inputs=(None if dataset is not None else path, train, items, population))
    others = {"--train": train, "--items": items, "--population": population, "--drawn": drawn}
    given = [name for name, value in others.items() if value is not None]
    if given and (dataset is not None or path.suffix in (".npz", ".npy")):
        raise InputError(f"{given[0]} goes with a table of user-item rows.")
    if dataset is not None:
        if columns is not None:
            raise InputError("--columns does not go with --dataset: the names of its columns are known.")
        deliver(_described(_dataset(dataset, path, positive=positive, check=not no_check), form), out)
        return
    if no_check:
        raise InputError("--no-check goes with --dataset.")
    if path.suffix in (".npz", ".npy"):
        deliver(_content(_scores(read_scores(path)), form), out)
        return
    mapping = columns_of(columns)
    users, catalogue = id_column(population, "user", mapping), id_column(items, "item", mapping)
    described = describe_log(
        path, train=train, columns=mapping, positive=positive, users=users, items=catalogue, drawn=drawn
    )
    found = described.summary
    if "positives" not in found and any(name.endswith("(min, mean, max)") for name in found):
        messages(['values are not 0/1: add --positive ">3", say, to count positives.'], quiet=quiet)
    deliver(_described({"": described}, form), out)


def _dataset(name: str, folder: Path, *, positive: str | None, check: bool) -> dict[str, Description]:
    """Each part described, the random one beside the training part; the rule that made the labels stands with it."""
    kind = datasets.named(name)
    loader: Dataset = kind() if positive is None else kind(positive=positive)
    PositiveRule.parse(loader.positive)
    logs = loader.load(folder, check=check)
    found = {}
    for part, log in logs.items():
        described = describe_log(log, train=logs.get("train") if part == "random" else None)
        found[part] = replace(described, summary={"positive": loader.positive, **described.summary})
    return found


def _described(parts: dict[str, Description], form: str | None) -> bytes:
    """The summary of each part, and whether it is random."""
    if form == "json":
        whole = {
            part: {**each.summary, "randomness": None if each.randomness is None else randomness_plain(each.randomness)}
            for part, each in parts.items()
        }
        return _content(whole.get("", whole), form)
    if form == "csv":
        flat = {
            part: {**each.summary, **({} if each.randomness is None else _prefixed(randomness_flat(each.randomness)))}
            for part, each in parts.items()
        }
        return _content(flat.get("", flat), form)
    blocks = []
    for part, each in parts.items():
        table = _content(each.summary if part == "" else {part: each.summary}, form)
        text = "" if each.randomness is None else "\n" + randomness_text(each.randomness)
        blocks.append(table + text.encode())
    return b"\n".join(blocks)


def _prefixed(values: dict[str, Any]) -> dict[str, Any]:
    return {f"random: {name}": value for name, value in values.items()}


def _scores(scores: Scores) -> dict[str, Any]:
    kind = "factors" if isinstance(scores, Factors) else "top lists" if isinstance(scores, Lists) else "dense"
    found: dict[str, Any] = {"scores": kind, "users": len(scores.users), "items": len(scores.items)}
    if isinstance(scores, Factors):
        found["dimensions (with biases)"] = scores.user.shape[1]
    if isinstance(scores, Lists):
        found |= {"stored scores": len(scores.item), "longest list": scores.depth}
    for name, ids in (("users", scores.users), ("items", scores.items)):
        found[f"first {name}"] = ids.texts(np.arange(min(3, len(ids))))
    return found


def _content(found: dict[str, Any], form: str | None) -> bytes:
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"
    flat = {
        name if inner is None else f"{name}: {inner}": value
        for name, outer in found.items()
        for inner, value in (outer.items() if isinstance(outer, dict) else [(None, outer)])
    }
    texts = {name: _text(value) for name, value in flat.items()}
    if form == "csv":
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows([("what", "value"), *texts.items()])
        return stream.getvalue().encode()
    width = max(len(name) for name in texts)
    return "".join(f"{name:{width}}  {value}\n" for name, value in texts.items()).encode()


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_text(each) for each in value)
    if isinstance(value, float):
        return f"{value:,.0f}" if value == round(value) else f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
