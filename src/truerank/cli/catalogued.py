"""Groups in which every value of a catalogue is a command: experiments of papers, studies of our own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from truerank.cli.names import choices
from truerank.cli.options import choice, shared
from truerank.cli.output import Output
from truerank.core.errors import InputError

if TYPE_CHECKING:
    from truerank.studies.work import StudySource

DATA = shared(
    "--data", metavar="DIR|synthetic", help="The folder with the data, or a synthetic world of the same shape."
)
SIZE = choice("--size", choices("studies/work", "StudySize"), default="full", help="All of it, or little of all.")


class Catalogued(click.Group):
    """A group with commands of its own and one for every name of a catalogue, in any case; all of these call `each`."""

    def __init__(self, *given: Any, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self._names: Callable[[], Sequence[str]] = tuple
        self._each: click.Command | None = None
        self._help = ("", "")

    def add_each(self, each: click.Command, names: Callable[[], Sequence[str]], *, word: str, does: str) -> None:
        """The command of every name, and how the help page lists all of them: a word, and what it does."""
        self._each, self._names, self._help = each, names, (word, does)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *self._names()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = {each.lower(): each for each in self._names()}.get(cmd_name.lower())
        own = super().get_command(ctx, cmd_name)
        if own is not None or name is None or self._each is None:
            return own
        return type(self._each)(name, callback=self._each.callback, params=self._each.params, help=self._each.help)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            own = [(name, command.get_short_help_str(100)) for name, command in self.commands.items()]
            word, does = self._help
            formatter.write_dl([*own, (word, f"{does}: {', '.join(self._names())}.")])


def source_of(name: str, datasets: Sequence[str], data: str | None) -> StudySource:
    """Where the data of an experiment or a study are; where it reads some, that must be said."""
    from truerank.studies.work import StudySource

    if datasets and data is None:
        raise InputError(f"{name} reads {' and '.join(datasets)}: say --data DIR, or --data synthetic.")
    return StudySource() if data is None else StudySource.of(data)


def deliver_list(rows: Sequence[Mapping[str, Any]], output: Output, *, what: str) -> None:
    """A list of what there is: as JSON, as CSV, or in lines without what is empty."""
    from truerank.report.text import as_csv, as_json, as_lines, encoded

    if output.chosen_form == "json":
        output.deliver(as_json({what: rows}))
    elif output.chosen_form == "csv":
        output.deliver(as_csv(rows))
    else:
        told = [{name: value for name, value in row.items() if value not in (None, "")} for row in rows]
        output.deliver(encoded("\n".join(map(as_lines, told))))
