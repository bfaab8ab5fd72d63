"""truerank data."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np

from truerank.cli.options import check_out, columns_of, common, deliver, messages
from truerank.core import Scores
from truerank.data.describe import describe as describe_log
from truerank.ranks.files import read_scores
from truerank.ranks.scores import Factors, Lists


@click.group()
def data() -> None:
    """Look at data files."""


@data.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--positive", metavar="RULE", help='Which values are positive, as ">3".')
@click.option("--columns", metavar="KEY=NAME,...", help="Column names of the file, as user=user_id,item=video_id.")
@common
def describe(  # noqa: PLR0917
    path: Path,
    positive: str | None,
    columns: str | None,
    form: str,
    out: Path | None,
    quiet: bool,  # noqa: FBT001
) -> None:
    """Say what a file holds: a table of user-item rows (.parquet .csv .tsv), or scores (.npz .npy)."""
    check_out(out)
    if path.suffix in (".npz", ".npy"):
        found = _scores(read_scores(path))
    else:
        found = describe_log(path, columns=columns_of(columns), positive=positive)
        if "positives" not in found:
            messages(['values are not 0/1: add --positive ">3", say, to count positives.'], quiet=quiet)
    deliver(_content(found, form), out)


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


def _content(found: dict[str, Any], form: str) -> bytes:
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"
    texts = {name: _text(value) for name, value in found.items()}
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
