"""truerank models."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from truerank.cli.options import FORMAT, OUT, QUIET, Sections, grouped
from truerank.cli.output import Output


@click.command(cls=Sections)
@click.argument("name", required=False)
@grouped(Output, FORMAT, OUT, QUIET)
def models(*, name: str | None, output: Output) -> None:
    """List the recommenders that `truerank train` knows: what they do, what they learn from, their settings.

    With a NAME only that one, with what each setting is and can be.
    """
    from truerank import models as recommenders

    output.check()
    chosen = recommenders.catalogue().values() if name is None else [recommenders.named(name)]
    output.deliver(_content([_row(cls) for cls in chosen], output.chosen_form, long=name is not None))


def _row(cls: Any) -> dict[str, Any]:
    from truerank.core.values import options_of
    from truerank.models.settings import settings_of

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


def _content(rows: list[dict[str, Any]], form: str, *, long: bool) -> bytes:
    from truerank.report.listing import as_csv, as_json, as_lines

    if form == "json":
        return as_json({"models": rows})
    flat = [
        {
            **row,
            "needs": "" if row["needs"] is None else f'pip install "truerank[{row["needs"]}]"',
            "settings": " ".join(f"{setting['name']}={setting['default']}" for setting in row["settings"]),
        }
        for row in rows
    ]
    if form == "csv":
        return as_csv(flat)
    width = max(len(key) for key in flat[0])
    blocks = []
    for row, source in zip(flat, rows, strict=True):
        shown = {key: value for key, value in row.items() if value != "" and not (long and key == "settings")}
        blocks.append(as_lines(shown, width=width) + (_explained(source["settings"], width=width) if long else ""))
    return "\n".join(blocks).encode()


def _explained(settings: list[dict[str, Any]], *, width: int) -> str:
    """One line for each setting: --set name=default, what it is, what it can be."""
    pairs = [f"{setting['name']}={setting['default']}" for setting in settings]
    wide = max((len(pair) for pair in pairs), default=0)
    return "".join(
        f"{'--set':{width}}  {pair:{wide}}  {setting['about']}; {setting['allowed']}\n"
        for pair, setting in zip(pairs, settings, strict=True)
    )
