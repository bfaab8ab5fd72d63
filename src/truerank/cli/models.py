"""truerank models."""

from __future__ import annotations

import csv
import dataclasses
import io
from pathlib import Path
from typing import Any

import click
import msgspec

from truerank import models as recommenders
from truerank.cli.options import check_out, common, deliver
from truerank.core.values import options_of
from truerank.models.settings import settings_of


@click.command()
@click.argument("name", required=False)
@common
def models(name: str | None, form: str | None, out: Path | None, quiet: bool) -> None:  # noqa: FBT001
    """List the recommenders that `truerank train` knows: what they do, what they learn from, their settings.

    With a NAME only that one, with what each setting is and can be.
    """
    check_out(out)
    chosen = recommenders.catalogue().values() if name is None else [recommenders.named(name)]
    rows = [_row(each) for each in chosen]
    deliver(_content(rows, form, long=name is not None), out)


def _row(cls: Any) -> dict[str, Any]:
    known = settings_of(cls)
    return {
        "name": cls.name,
        "about": cls.about,
        "learns from": cls.labels.value,
        "needs": cls.needs,
        "settings": [
            {
                "name": field.name,
                "default": field.default,
                "allowed": str(options_of(cls)[field.name]),
                "about": known[field.name].about,
            }
            for field in dataclasses.fields(cls)
        ],
    }


def _content(rows: list[dict[str, Any]], form: str | None, *, long: bool) -> bytes:
    if form == "json":
        return msgspec.json.format(msgspec.json.encode({"models": rows}), indent=2) + b"\n"
    flat = [
        {
            **row,
            "needs": "" if row["needs"] is None else f'pip install "truerank[{row["needs"]}]"',
            "settings": " ".join(f"{each['name']}={each['default']}" for each in row["settings"]),
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
    blocks = []
    for row, source in zip(flat, rows, strict=True):
        lines = [
            f"{key:{width}}  {value}" for key, value in row.items() if value != "" and not (long and key == "settings")
        ]
        if long:
            lines += _explained(source["settings"], width=width)
        blocks.append("".join(f"{line}\n" for line in lines))
    return "\n".join(blocks).encode()


def _explained(settings: list[dict[str, Any]], *, width: int) -> list[str]:
    """One line for each setting: --set name=default, what it is, what it can be."""
    pairs = [f"{each['name']}={each['default']}" for each in settings]
    wide = max((len(pair) for pair in pairs), default=0)
    return [
        f"{'--set':{width}}  {pair:{wide}}  {each['about']}; {each['allowed']}"
        for pair, each in zip(pairs, settings, strict=True)
    ]
