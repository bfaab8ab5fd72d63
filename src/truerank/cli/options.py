"""Options that several commands have, each defined once: a name means the same thing in all of them.

A command lists its options by section: `"scores"`, `"scores!"` where it is required, `"items: help of this command"`
where its help differs. It gets all that was given as one `Call`. Files and counts never share a name: `--users` is a
file, `--n-users` a count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from truerank.core.errors import InputError
from truerank.core.record import record

PATH = click.Path(path_type=Path)
ALL = "truerank.help_all"
MOST_SHOWN = 16  # options that a help page lists
COMMON = {
    "--scores", "--target", "--exclude", "--exposure", "--like", "--propensity", "--position", "--columns",
    "--positive", "--metric", "--reward", "--estimator", "--baseline", "--require", "--report", "--verbose", "--out",
    "--help", "--help-all", "--difference", "--log", "--allocate", "--budget",
}  # fmt: skip

Setting = partial[click.Option]


def shared(*flags: str, **settings: Any) -> Setting:
    """An option with its type and its way to be written; a command may word its help and choose its default."""
    return partial(click.Option, flags, show_default=True, **settings)


many = partial(shared, multiple=True)
file = partial(shared, type=PATH, metavar="FILE")
count = partial(shared, type=int, metavar="N")
flag = partial(shared, is_flag=True)


def choice(name: str, values: Sequence[str], **settings: Any) -> Setting:
    return shared(name, type=click.Choice(values), **settings)


def formatted(*forms: str, **settings: Any) -> Setting:
    """--format: the one option whose choices differ, as pictures take other forms than tables."""
    text = "Format of the results; by default a table, or the format of the ending of --out."
    return choice("--format", forms, help=text, **settings)


# --------------------------------------------------------------------------------------------------------------- shared

_SHARED = (
    shared(
        "--columns", metavar="KEY=NAME,...",
        help="Column names of the files, as user=user_id,item=video_id; of one file as scores.user=uid.",
    ),
    shared(
        "--positive", metavar="RULE", help='Which values are positive, as ">3", or all; not needed for 0/1.'
    ),
    flag(
        "--drop-missing-times", help="Drop rows without a time and report their number; by default they are refused."
    ),
    file("--population", help="All users of the population, also those without a row."),
    file("--train", help="Training pairs, known before the items of the log were exposed."),
    file("--random", metavar="MAR", help="Randomly exposed pairs, with labels."),
    file("--user-features", help="A table with a column user; the others are features."),
    file("--item-features", help="A table with a column item; the others are features."),
    many(
        "--scores", metavar="NAME=FILE",
        help="A model's scores: a table user,item,score or user,item,rank, a TREC run, .npz or .npy.",
    ),
    file("--users", help="Names the rows of .npy and .npz scores that have no ids, in order."),
    file("--items", help="The catalogue; also names the columns of .npy and .npz scores without ids."),
    count("--n-items", help="The size of the catalogue, where scores are top lists."),
    count("--n-users", help="How many users there are."),
    file(
        "--exclude", metavar="TRAIN",
        help="User-item pairs to remove from the candidates, such as training interactions.",
    ),
    choice(
        "--unlisted", ["unknown", "negative"], default="unknown", help="What a missing pair means."
    ),
    many(
        "--metric", metavar="METRIC",
        help='As Recall@50, "Recall@{5,50}" or "AP@10(denominator=positives)"; several are allowed.',
    ),
    many(
        "--estimator", metavar="NAME", help="With options as ips(clip=8); several are allowed."
    ),
    many("--clip", metavar="C,...", help="Upper limits of the weights 1 / propensity, as 1,8,inf."),
    shared(
        "--reward-model", metavar="MODEL|FILE", help="What doubly-robust predicts rewards with."
    ),
    many(
        "--target", metavar="NAME=FILE|@COLUMN",
        help="A policy: a table session,item,rank (or exposure, or score) of all items it would rank, or a rank column "
        "of the log; @position is the logging policy, @exposure:COLUMN a column of exposures or probabilities.",
    ),
    shared(
        "--position", metavar="MODEL",
        help="How likely each position is viewed, as log, log:100, exp:0.9, yule:1.5 or fit:yule, a file, or "
        "SURFACE=MODEL,...; @N cuts off. Not needed where log and targets give exposures or propensities.",
    ),
    many("--reward", metavar="COLUMN", help="A reward; several are allowed."),
    shared(
        "--baseline", metavar="NAME", help="Compare every model with this one instead of all pairs."
    ),
    choice(
        "--interval", ["population", "design"], default="population",
        help="For the population these users come from, or for exactly these users.",
    ),
    count("--bootstrap", help="Intervals by N bootstrap samples of users."),
    shared("--level", type=float, default=0.95, help="Confidence level of the intervals."),
    choice(
        "--adjust", ["estimand", "all"], default="estimand",
        help="Adjust p and intervals over the comparisons of one metric and estimator, or over all of them.",
    ),
    many(
        "--require", metavar="RULE",
        help='As "als > pop: Recall@50, pooled": exit with 0 if this is significant, 4 if the evidence is '
        "insufficient, 5 otherwise.",
    ),
    shared("--difference", type=float, help="The smallest difference of two models that matters."),
    shared("--power", type=float, default=0.8, help="Probability to detect a difference of that size."),
    shared("--per-user", type=float, help="How many there are for each user."),
    shared("--loggers", metavar="NAME,...", help="Only these.  [default: all of the study]"),
    shared("--sparsities", metavar="NUMBER,...", help="Only these.  [default: all of the study]"),
    shared("--samplers", metavar="NAME,...", help="Only these.  [default: all of the study]"),
    shared("--seed", type=int, default=0, help="The same seed gives the same results."),
    shared("--top", type=click.IntRange(min=1), metavar="N", help="How many of the best."),
    count("--threads", help="Default: all cores."),
    shared(
        "--engine", default="local", metavar="ENGINE",
        help="local, dask or spark (on this machine, listening on 127.0.0.1 only), dask:ADDRESS or spark:URL (a "
        "running cluster). Results do not depend on it.",
    ),
    formatted("table", "json", "csv", "markdown", "latex", "svg", "png", "pdf"),
    file("-o", "--out", metavar="PATH", help="Write the results to a file."),
    flag(
        "--force", help="Replace the folder that is there, if truerank made all that it holds."
    ),
    shared(
        "--within", metavar="FILE|N",
        help="Also the results within groups: a table user,group (or session,group), or N groups by activity.",
    ),
    file("--units", help="Write each user's or session's terms to Parquet."),
    file("--save", metavar="DIR", help="Write a folder that Results.read reads back."),
    file("--report", help="Write a report: one HTML page that opens offline."),
    flag("--verbose", help="All tables, assumptions and messages below the answer."),
    flag(
        "--hash", help="Hash every input file; by default only those up to 256 MB."
    ),
    flag("--quiet", help="No messages and no progress on standard error."),
)  # fmt: skip
SHARED = {setting.args[0][-1].lstrip("-"): setting for setting in _SHARED}


def common(name: str, **settings: Any) -> Setting:
    """A shared option with the words or the default of a command."""
    return partial(SHARED[name], **settings)


def _option(text: str | Setting, section: str) -> click.Option:
    """An option of one command: `"name"`, `"name!"` if required, with other words after a colon."""
    if isinstance(text, str):
        name, _, words = text.partition(": ")
        setting = SHARED[name.removesuffix("!")]
        option = setting(required=name.endswith("!"), help=words or setting.keywords["help"])
    else:
        option = text()
    option.section = section  # type: ignore[attr-defined]
    return option


# ------------------------------------------------------------------------------------------------------------- commands


@record
class Call:
    """What a command was called with: an attribute for each option; of one that the command lacks, its default."""

    values: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        if name in self.values:
            return self.values[name]
        if (setting := SHARED.get(name.replace("_", "-"))) is None:
            raise AttributeError(name)
        return setting.keywords.get("default", () if "multiple" in setting.keywords else None)

    def given(self, *names: str) -> dict[str, Any]:
        """Options that a function of the library takes under the same names."""
        return {name: getattr(self, name) for name in names}

    def changed(self, **values: Any) -> Call:
        return Call({**self.values, **values})


def command(
    *arguments: str | click.Argument, **sections: Sequence[str | Setting]
) -> Callable[[Callable[[Call], None]], click.Command]:
    """The command of a function: its arguments (a text is a path), and its options by the section of the help page."""
    params: list[click.Parameter] = [
        click.Argument([name], type=PATH) if isinstance(name, str) else name for name in arguments
    ]
    params += [_option(text, section) for section, options in sections.items() for text in options]

    def made(function: Callable[[Call], None]) -> click.Command:
        return Sections(function.__name__, params=params, help=function.__doc__,
                        callback=lambda **values: function(Call(values)))  # fmt: skip

    return made


class Sections(click.Command):
    """A command whose help lists its options by section; quiet, it keeps notes of the library to itself too."""

    def invoke(self, ctx: click.Context) -> Any:
        import logging

        from truerank.cli.outcome import check_space

        check_space()
        logger = logging.getLogger("truerank")
        ctx.call_on_close(partial(logger.setLevel, logger.level))
        if ctx.params.get("quiet"):
            logger.setLevel(logging.ERROR)
        return super().invoke(ctx)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        every = click.Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all,
                             help="Show all options.")  # fmt: skip
        return [*params, every] if len(params) > MOST_SHOWN else params

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The common options, or with --help-all every one, by section."""
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        if len(options) > MOST_SHOWN and not ctx.meta.get(ALL):
            options = [option for option in options if option.required or COMMON & {*option.opts}]
        sections: dict[str, list[Any]] = {}
        for option in options:
            sections.setdefault(getattr(option, "section", "Options"), []).append(option.get_help_record(ctx))
        for name in sorted(sections, key="Options".__eq__):
            with formatter.section(name):
                formatter.write_dl(sections[name])


def _show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value and not ctx.resilient_parsing:
        ctx.meta[ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


# ---------------------------------------------------------------------------------------------------- values of options


def listed(text: str | None) -> list[str] | None:
    """Parts between commas that are not in brackets; None where the option is not used."""
    if text is None:
        return None
    from truerank.core.values import pieces

    try:
        return [part for part in pieces(text, ",") if part]
    except ValueError:
        raise InputError(f"{text!r}: brackets do not match; expected a list with commas.") from None


def numbers(text: str | None, flag: str, *, kind: type[int] | type[float] = float) -> list[float] | None:
    """Numbers between commas; None where the option is not used."""
    parts, values = listed(text), []
    for part in parts or []:
        try:
            values.append(kind(part))
        except ValueError:
            raise InputError(f"{flag} {part!r}; expected numbers with commas between them.") from None
    return None if parts is None else values


def named(values: Sequence[str], flag: str, *, expected: str = "NAME=FILE", bare: bool = True) -> dict[str, str]:
    """NAME=VALUE, split at the first `=`, each name once; a bare path is named after the file."""
    by_name: dict[str, str] = {}
    for value in values:
        name, separator, rest = value.partition("=")
        if bare:
            name, rest = (name, rest) if separator else (Path(value).stem, value)
        else:
            name, rest = name.strip(), rest.strip()
        if not name or not rest:
            raise InputError(f"{flag} {value!r}: expected {expected}.")
        if name in by_name:
            raise InputError(f"{flag} {value!r}: the name {name!r} is given twice; names must differ.")
        by_name[name] = rest
    return by_name


def files_of_command() -> list[str]:
    """The files that the running command reads, as its argument and options call them; the argument first."""
    params = click.get_current_context().command.params
    read = [parameter for parameter in params
            if (isinstance(parameter.type, click.Path) and getattr(parameter, "section", "") != "Output")
            or parameter.metavar in ("NAME=FILE", "FILE|N")]  # fmt: skip
    read.sort(key=lambda parameter: isinstance(parameter, click.Option))
    return [parameter.opts[0].lstrip("-").replace("-", "_") for parameter in read]


def only(values: Sequence[str], flag: str) -> str | None:
    """The value of an option of which a command takes no more than one."""
    if len(values) > 1:
        raise InputError(f"{flag} is given {len(values)} times ({', '.join(values)}); expected one of them here.")
    return values[0] if values else None
