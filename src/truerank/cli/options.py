"""Options that several commands have, each defined once: a name means the same thing in all of them.

A command lists options by name: `"scores"`, `"scores!"` where it is required, `"items: help of this command"` where its
help differs. What belongs together is a group, which a command gets as one frozen value (see `groups` and `output`).
Files and counts never share a name: `--users` is a file, `--n-users` a count.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

import click

from truerank.core.errors import InputError
from truerank.core.record import record

Command = TypeVar("Command", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
ALL = "truerank.help_all"
MOST_SHOWN = 16  # options that a help page lists
COMMON = {
    "--scores", "--target", "--exclude", "--exposure", "--like", "--propensity", "--position", "--columns",
    "--positive", "--metric", "--reward", "--estimator", "--baseline", "--require", "--report", "--verbose", "--out",
    "--help", "--help-all", "--difference", "--log", "--allocate", "--budget",
}  # fmt: skip


@record
class SharedOption:
    """An option with its type and its way to be written; a command may word its help and choose its default."""

    flags: tuple[str, ...]
    help: str
    settings: dict[str, Any] = field(default_factory=dict)

    def __call__(self, command: Command) -> Command:
        return click.option(*self.flags, help=self.help, **self.settings)(command)


def shared(*flags: str, help: str, **settings: Any) -> SharedOption:  # noqa: A002
    shown = settings.get("default") is not None and not settings.get("is_flag")
    return SharedOption(flags, help, {"show_default": shown, **settings})


def many(flag: str, name: str, *, help: str, metavar: str) -> SharedOption:  # noqa: A002
    """An option that can be repeated."""
    return shared(flag, name, help=help, metavar=metavar, multiple=True)


def file(flag: str, *, help: str, metavar: str = "FILE") -> SharedOption:  # noqa: A002
    return shared(flag, help=help, metavar=metavar, type=PATH)


def count(flag: str, *, help: str, default: int | None = None) -> SharedOption:  # noqa: A002
    return shared(flag, help=help, type=int, metavar="N", default=default)


def choice(flag: str, values: Sequence[str], *, help: str, default: str | None = None) -> SharedOption:  # noqa: A002
    return shared(flag, help=help, type=click.Choice(list(values)), default=default)


def formatted(forms: Sequence[str], *, default: str | None = None) -> SharedOption:
    """--format: the one option whose choices differ, as pictures take other forms than tables."""
    text = "What the results look like; by default a table, or what the ending of --out says."
    return choice("--format", forms, default=default, help=text)


# --------------------------------------------------------------------------------------------------------------- shared

SHARED = {
    "columns": shared(
        "--columns", metavar="KEY=NAME,...",
        help="Column names of the files, as user=user_id,item=video_id; of one file as scores.user=uid.",
    ),
    "positive": shared(
        "--positive", metavar="RULE", help='Which values are positive, as ">3", or all; not needed for 0/1.'
    ),
    "drop-missing-times": shared(
        "--drop-missing-times", is_flag=True, help="Drop rows without a time, and say how many; else they are refused."
    ),
    "population": file("--population", help="All users that count, also those without a row."),
    "train": file("--train", help="Training pairs: what was known before the log was shown."),
    "random": file("--random", metavar="MAR", help="Pairs shown at random, with labels."),
    "user-features": file("--user-features", help="A table with a column user; the others are features."),
    "item-features": file("--item-features", help="A table with a column item; the others are features."),
    "scores": many(
        "--scores", "scores", metavar="NAME=FILE",
        help="A model's scores: a table user,item,score or user,item,rank, a TREC run, .npz or .npy.",
    ),
    "users": file("--users", help="Names the rows of .npy and .npz scores that have no ids, in order."),
    "items": file("--items", help="The catalogue; also names the columns of .npy and .npz scores without ids."),
    "n-items": count("--n-items", help="The size of the catalogue, where scores are top lists."),
    "n-users": count("--n-users", help="How many users there are."),
    "exclude": file("--exclude", metavar="TRAIN", help="Pairs that do not compete (seen in training)."),
    "unlisted": choice(
        "--unlisted", ["unknown", "negative"], default="unknown", help="What a pair that is not listed means."
    ),
    "metric": many(
        "--metric", "metrics", metavar="METRIC",
        help='As Recall@50, "Recall@{5,50}" or "AP@10(denominator=positives)"; several are allowed.',
    ),
    "estimator": many(
        "--estimator", "estimators", metavar="NAME", help="With options as ips(clip=8); several are allowed."
    ),
    "clip": many("--clip", "clips", metavar="C,...", help="Upper limits of the weights 1 / propensity, as 1,8,inf."),
    "reward-model": shared(
        "--reward-model", metavar="MODEL|FILE", help="What doubly-robust predicts rewards with."
    ),
    "target": many(
        "--target", "targets", metavar="NAME=FILE|@COLUMN",
        help="A policy: a table session,item,rank (or exposure, or score) of all items it would rank, or a rank column "
        "of the log; @position is the logging policy, @exposure:COLUMN a column of exposures or probabilities.",
    ),
    "position": shared(
        "--position", metavar="MODEL",
        help="How likely each position is viewed, as log, log:100, exp:0.9, yule:1.5 or fit:yule, a file, or "
        "SURFACE=MODEL,...; @N cuts off. Not needed where log and targets give exposures or propensities.",
    ),
    "reward": many("--reward", "rewards", metavar="COLUMN", help="A reward; several are allowed."),
    "baseline": shared(
        "--baseline", metavar="NAME", help="Compare every model with this one instead of all pairs."
    ),
    "interval": choice(
        "--interval", ["population", "design"], default="population",
        help="For the population these users come from, or for exactly these users.",
    ),
    "bootstrap": count("--bootstrap", help="Intervals by N bootstrap samples of users."),
    "level": shared("--level", type=float, default=0.95, help="Confidence level of the intervals."),
    "adjust": choice(
        "--adjust", ["estimand", "all"], default="estimand",
        help="Adjust p and intervals over the comparisons of one metric and estimator, or over all of them.",
    ),
    "require": many(
        "--require", "requirements", metavar="RULE",
        help='As "als > pop: Recall@50, pooled": exit with 0 if it is shown, 4 if the evidence is insufficient, 5 if '
        "not.",
    ),
    "difference": shared("--difference", type=float, help="The smallest difference of two models that matters."),
    "power": shared("--power", type=float, default=0.8, help="How likely it is to be shown if it is there."),
    "per-user": shared("--per-user", type=float, help="How many there are for each user."),
    "loggers": shared("--loggers", metavar="NAME,...", help="Only these.  [default: all of the study]"),
    "sparsities": shared("--sparsities", metavar="NUMBER,...", help="Only these.  [default: all of the study]"),
    "samplers": shared("--samplers", metavar="NAME,...", help="Only these.  [default: all of the study]"),
    "seed": shared("--seed", type=int, default=0, help="For all that is drawn: the same seed, the same results."),
    "top": shared("--top", type=click.IntRange(min=1), metavar="N", help="How many of the best."),
    "threads": count("--threads", help="Default: all cores."),
    "engine": shared(
        "--engine", default="local", metavar="ENGINE",
        help="Where it is computed: local, dask or spark (on this machine, listening on 127.0.0.1 only), dask:ADDRESS "
        "or spark:URL (a cluster that is there). Results are the same.",
    ),
    "format": formatted(["table", "json", "csv"]),
    "out": shared("-o", "--out", type=PATH, metavar="PATH", help="Write the results to a file."),
    "force": shared(
        "--force", is_flag=True, help="Replace the folder that is there, if truerank made all that it holds."
    ),
    "within": shared(
        "--within", metavar="FILE|N",
        help="Also the same within groups: a table user,group (or session,group), or N groups by activity.",
    ),
    "units": shared("--units", type=PATH, metavar="FILE", help="Write each user's or session's terms to Parquet."),
    "save": shared("--save", type=PATH, metavar="DIR", help="Write a folder that Results.read reads back."),
    "report": shared("--report", type=PATH, metavar="FILE", help="Write a report: one HTML page that opens offline."),
    "verbose": shared("--verbose", is_flag=True, help="All tables, assumptions and messages below the answer."),
    "hash": shared(
        "--hash", is_flag=True, help="Hash every input; else those up to 256 MB are, to name them for good."
    ),
    "quiet": shared("--quiet", is_flag=True, help="No messages and no progress on standard error."),
}  # fmt: skip


def common(text: str, **settings: Any) -> SharedOption:
    """A shared option as one command has it: `"name"`, `"name!"` if required, with other words after a colon."""
    if not settings.keys() <= {"default"}:
        raise TypeError(f"{text!r} is the same option everywhere; only its words and default may differ")
    name, _, words = text.partition(": ")
    general = SHARED[name.removesuffix("!")]
    settings |= {"required": True} if name.endswith("!") else {}
    settings |= {"show_default": True} if "default" in settings else {}
    return SharedOption(general.flags, words or general.help, general.settings | settings)


# --------------------------------------------------------------------------------------------------------------- groups


class Sections(click.Command):
    """A command whose help lists its options by group; quiet, it keeps notes of the library to itself too."""

    def invoke(self, ctx: click.Context) -> Any:
        from truerank.cli.outcome import check_space

        check_space()
        if not ctx.params.get("quiet"):
            return super().invoke(ctx)
        import logging

        logger = logging.getLogger("truerank")
        before = logger.level
        logger.setLevel(logging.ERROR)
        try:
            return super().invoke(ctx)
        finally:
            logger.setLevel(before)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        return [*params, _help_all()] if len(params) > MOST_SHOWN else params

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The common options, or with --help-all every one, by group."""
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        if len(options) > MOST_SHOWN and not ctx.meta.get(ALL):
            options = [parameter for parameter in options if parameter.required or COMMON & {*parameter.opts}]
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in options:
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        rest = sections.pop("Options", [])
        for name, records in [*sections.items(), ("Options", rest)]:
            with formatter.section(name):
                formatter.write_dl(records)


def _help_all() -> click.Option:
    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001
        if value and not ctx.resilient_parsing:
            ctx.meta[ALL] = True
            click.echo(ctx.get_help())
            ctx.exit()

    return click.Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show,
                        help="Show all options.")  # fmt: skip


def grouped(kind: type[Any], *options: str | SharedOption) -> Callable[[Command], Command]:
    """Give a command the options of a group; it gets one value of `kind` under the name of the group."""
    group = kind.__name__.removesuffix("Options")
    names: list[str] = []

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def call(**values: Any) -> Any:
            value = kind(**{name: values.pop(name) for name in names})
            return command(**values, **{group.lower(): value})

        for listed_option in reversed(options):
            (common(listed_option) if isinstance(listed_option, str) else listed_option)(call)
            parameter = call.__click_params__[-1]  # type: ignore[attr-defined]
            parameter.section = group
            names.append(parameter.name)
        return call  # type: ignore[return-value]

    return decorate


# ---------------------------------------------------------------------------------------------------- values of options


def listed(text: str | None) -> list[str] | None:
    """Parts between commas that are not in brackets; None where the option is not used."""
    if text is None:
        return None
    from truerank.core.language import pieces

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
