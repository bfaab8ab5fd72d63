"""truerank data."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np

from truerank.cli.options import check_out, columns_of, common, deliver, messages
from truerank.core import Scores
from truerank.data import datasets
from truerank.data.dataset import Counts, Dataset
from truerank.data.describe import describe as describe_log
from truerank.data.describe import summary
from truerank.data.rules import PositiveRule
from truerank.errors import InputError
from truerank.ranks.files import read_scores
from truerank.ranks.scores import Factors, Lists


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


def _known(counts: Counts) -> dict[str, int]:
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
@click.option("--dataset", metavar="NAME", help="PATH is the folder of this public dataset; see `data list`.")
@click.option("--no-check", is_flag=True, help="Do not compare a dataset's counts with the published ones.")
@common
def describe(  # noqa: PLR0917
    path: Path,
    positive: str | None,
    columns: str | None,
    dataset: str | None,
    no_check: bool,  # noqa: FBT001
    form: str | None,
    out: Path | None,
    quiet: bool,  # noqa: FBT001
) -> None:
    """Say what a file holds: a table of user-item rows, or scores (.npz .npy).

    A table is .parquet, .csv, .tsv, .qrels, .run or .trec, text also gzipped; a folder of part files, or a glob. With
    --dataset it is the folder of a public dataset, whose parts are described one by one.
    """
    check_out(out)
    if dataset is not None:
        if columns is not None:
            raise InputError("--columns does not go with --dataset: the names of its columns are known.")
        deliver(_content(_dataset(dataset, path, positive=positive, check=not no_check), form), out)
        return
    if no_check:
        raise InputError("--no-check goes with --dataset.")
    if path.suffix in (".npz", ".npy"):
        found = _scores(read_scores(path))
    else:
        found = describe_log(path, columns=columns_of(columns), positive=positive)
        if "positives" not in found and any(name.endswith("(min, mean, max)") for name in found):
            messages(['values are not 0/1: add --positive ">3", say, to count positives.'], quiet=quiet)
    deliver(_content(found, form), out)


def _dataset(name: str, folder: Path, *, positive: str | None, check: bool) -> dict[str, Any]:
    """The summary of each part; the rule that made the labels stands with it."""
    kind = datasets.named(name)
    loader: Dataset = kind() if positive is None else kind(positive=positive)
    PositiveRule.parse(loader.positive)
    logs = loader.load(folder, check=check)
    return {part: {"positive": loader.positive, **summary(log)} for part, log in logs.items()}


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
