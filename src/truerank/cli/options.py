"""Options that several commands have, each defined once: a name means the same thing in all of them.

What belongs together is a group, which a command gets as one frozen value (see `groups` and `output`). Files and counts
never share a name: `--users` is a file, `--n-users` a count.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from truerank.cli.limits import check_space
from truerank.core.errors import InputError

Command = TypeVar("Command", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True)
class SharedOption:
    """An option with its type and its way to be written; a command may word its help and choose its default."""

    flags: tuple[str, ...]
    help: str
    settings: dict[str, Any] = field(default_factory=dict)

    def __call__(self, command: Command) -> Command:
        return click.option(*self.flags, help=self.help, **self.settings)(command)

    def here(self, help: str | None = None, **settings: Any) -> SharedOption:  # noqa: A002
        """The same option as one command has it: other words, a default, or required."""
        if not settings.keys() <= {"default", "show_default", "required"}:
            raise TypeError(f"{self.flags[0]} is the same option everywhere; only its words and default may differ")
        return SharedOption(self.flags, help or self.help, self.settings | settings)


def shared(*flags: str, help: str, **settings: Any) -> SharedOption:  # noqa: A002
    return SharedOption(flags, help, settings)


def many(flag: str, name: str, *, help: str, metavar: str) -> SharedOption:  # noqa: A002
    """An option that can be repeated."""
    return shared(flag, name, help=help, metavar=metavar, multiple=True)


def file(flag: str, *, help: str, metavar: str = "FILE") -> SharedOption:  # noqa: A002
    return shared(flag, help=help, metavar=metavar, type=PATH)


def count(flag: str, *, help: str, default: int | None = None) -> SharedOption:  # noqa: A002
    return shared(flag, help=help, type=int, metavar="N", default=default, show_default=default is not None)


def choice(flag: str, values: Sequence[str], *, help: str, default: str | None = None) -> SharedOption:  # noqa: A002
    shown = default is not None
    return shared(flag, help=help, type=click.Choice(list(values)), default=default, show_default=shown)


# --------------------------------------------------------------------------------------------------------------- groups

ALL = "truerank.help_all"
MOST_SHOWN = 16  # options that a help page lists
COMMON = {
    "--scores", "--target", "--exclude", "--exposure", "--like", "--propensity", "--position", "--columns",
    "--positive", "--metric", "--reward", "--estimator", "--baseline", "--require", "--report", "--verbose", "--out",
    "--help", "--help-all", "--difference", "--power", "--log", "--allocate", "--per-user", "--budget",
}  # fmt: skip
HEADINGS = {"Showing": "Exposure", "Asking": "Metrics", "Reading": "Input", "Scoring": "Models", "Policies": "Policies",
            "Inference": "Comparison"}  # fmt: skip


class Sections(click.Command):
    """A command whose help lists its options by group; quiet, it keeps notes of the library to itself too."""

    def invoke(self, ctx: click.Context) -> Any:
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
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        if len(options) > MOST_SHOWN and not ctx.meta.get(ALL):
            options = [each for each in options if each.required or COMMON & {*each.opts}]
        sections: dict[str, list[tuple[str, str]]] = {}
        for option in options:
            record = option.get_help_record(ctx)
            if record is not None:
                sections.setdefault(getattr(option, "section", "Options"), []).append(record)
        rest = sections.pop("Options", [])
        for name, records in [*sections.items(), ("Options", rest)]:
            with formatter.section(HEADINGS.get(name, name)):
                formatter.write_dl(records)


def _help_all() -> click.Option:
    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001
        if value and not ctx.resilient_parsing:
            ctx.meta[ALL] = True
            click.echo(ctx.get_help())
            ctx.exit()

    return click.Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show,
                        help="Show all options.")  # fmt: skip


def grouped(kind: type[Any], *options: SharedOption) -> Callable[[Command], Command]:
    """Give a command the options of a group; it gets one value of `kind` under the name of the group."""
    name = kind.__name__.lower()
    own: list[str] = []

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def call(**given: Any) -> Any:
            value = kind(**{key: given.pop(key) for key in own})
            return command(**given, **{name: value})

        for option in reversed(options):
            option(call)
            parameter = call.__click_params__[-1]  # type: ignore[attr-defined]
            parameter.section = kind.__name__
            own.append(parameter.name)
        return call  # type: ignore[return-value]

    return decorate


# -------------------------------------------------------------------------------------------------------------- reading

COLUMNS = shared(
    "--columns", metavar="KEY=NAME,...",
    help="Column names of the files, as user=user_id,item=video_id; of one file as scores.user=uid.",
)  # fmt: skip
POSITIVE = shared(
    "--positive", metavar="RULE", help='Which values are positive, as ">3", or all; not needed for 0/1.'
)  # fmt: skip
DROP_MISSING_TIMES = shared(
    "--drop-missing-times", is_flag=True, help="Drop rows without a time, and say how many; else they are refused."
)  # fmt: skip
POPULATION = file("--population", help="All users that count, also those without a row.")
TRAIN = file("--train", help="Training pairs: what was known before the log was shown.")
RANDOM = file("--random", metavar="MAR", help="Pairs shown at random, with labels.")
USER_FEATURES = file("--user-features", help="A table with a column user; the others are features.")
ITEM_FEATURES = file("--item-features", help="A table with a column item; the others are features.")

# -------------------------------------------------------------------------------------------------------------- scoring

SCORES = many(
    "--scores", "scores", metavar="NAME=FILE",
    help="A model's scores: a table user,item,score or user,item,rank, a TREC run, .npz or .npy.",
)  # fmt: skip
USERS = file("--users", help="Names the rows of .npy and .npz scores that have no ids, in order.")
ITEMS = file("--items", help="All items, also those without a row.")
N_ITEMS = count("--n-items", help="How many items there are.")
N_USERS = count("--n-users", help="How many users there are.")
EXCLUDE = file("--exclude", metavar="TRAIN", help="Pairs that do not compete (seen in training).")

# --------------------------------------------------------------------------------------------------------------- asking

METRIC = many(
    "--metric", "metrics", metavar="METRIC",
    help='As Recall@50, "Recall@{5,50}" or "AP@10(denominator=positives)"; several are allowed.',
)  # fmt: skip
ESTIMATOR = many("--estimator", "estimators", metavar="NAME", help="With options as ips(clip=8); several are allowed.")
CLIP = many("--clip", "clips", metavar="C,...", help="Upper limits of the weights 1 / propensity, as 1,8,inf.")
REWARD_MODEL = shared("--reward-model", metavar="MODEL|FILE", help="What doubly-robust predicts rewards with.")
BASELINE = shared("--baseline", metavar="NAME", help="Compare every model with this one instead of all pairs.")

# ------------------------------------------------------------------------------------------------------------ inference

BOOTSTRAP = count("--bootstrap", help="Intervals by N bootstrap samples of users.")
LEVEL = shared(
    "--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals."
)  # fmt: skip
ADJUST = choice(
    "--adjust", ["estimand", "all"], default="estimand",
    help="Adjust p and intervals over the comparisons of one metric and estimator, or over all of them.",
)  # fmt: skip
REQUIRE = many(
    "--require", "requirements", metavar="RULE",
    help='As "als > pop: Recall@50, pooled": exit with 0 if it is shown, 4 if the evidence is insufficient, 5 if not.',
)  # fmt: skip
SEED = shared(
    "--seed", type=int, default=0, show_default=True, help="For all that is drawn: the same seed, the same results."
)  # fmt: skip
THREADS = count("--threads", help="Default: all cores.")
ENGINE = shared(
    "--engine", default="local", show_default=True, metavar="ENGINE",
    help="Where it is computed: local, dask or spark (on this machine, listening on 127.0.0.1 only), dask:ADDRESS or "
    "spark:URL (a cluster that is there). Results are the same.",
)  # fmt: skip

# --------------------------------------------------------------------------------------------------------------- output


def formatted(forms: Sequence[str], *, default: str | None = None) -> SharedOption:
    """--format: the one option whose choices differ, as pictures take other forms than tables."""
    return choice("--format", forms, default=default, help="What the results look like.")


LOOK = "What the results look like; by default a table, or what the ending of --out says."
FORMAT = formatted(["table", "json", "csv"]).here(LOOK)
RESULTS_FORMAT = formatted(["table", "json", "csv", "markdown", "latex"]).here(LOOK)
OUT = shared("-o", "--out", type=PATH, metavar="PATH", help="Write the results to a file.")
FORCE = shared("--force", is_flag=True, help="Replace the folder that is there, if truerank made all that it holds.")
QUIET = shared("--quiet", is_flag=True, help="No messages and no progress on standard error.")

# ---------------------------------------------------------------------------------------------------- parts of commands


def listed(text: str) -> list[str]:
    """Parts between commas that are not in brackets."""
    from truerank.core.language import pieces

    try:
        return [part for part in pieces(text, ",") if part]
    except ValueError:
        raise InputError(f"{text!r}: brackets do not match; expected a list with commas.") from None


def numbers(text: str, option: str, *, kind: type[int] | type[float]) -> list[float]:
    """Numbers between commas."""
    values = []
    for part in listed(text):
        try:
            values.append(kind(part))
        except ValueError:
            raise InputError(f"{option} {part!r}; expected numbers with commas between them.") from None
    return values


def named(values: Sequence[str], option: str, *, expected: str = "NAME=FILE") -> dict[str, str]:
    """NAME=VALUE, split at the first `=`; a bare path is named after the file."""
    given: dict[str, str] = {}
    for value in values:
        name, separator, rest = value.partition("=")
        name, rest = (name, rest) if separator else (Path(value).stem, value)
        if not name or not rest:
            raise InputError(f"{option} {value!r}: expected {expected}.")
        if name in given:
            raise InputError(f"{option} {value!r}: the name {name!r} is given twice; names must differ.")
        given[name] = rest
    return given


def files_of_command() -> list[str]:
    """The files that the command takes which is running, as its argument and options call them; the argument first."""
    params = click.get_current_context().command.params
    read = [each for each in params if isinstance(each.type, click.Path) and getattr(each, "section", "") != "Output"]
    read += [each for each in params if each.metavar in ("NAME=FILE", "FILE|N")]
    return [each.opts[0].lstrip("-").replace("-", "_") for each in sorted(read, key=_is_option)]


def _is_option(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option)


def only(values: Sequence[str], option: str) -> str | None:
    """The value of an option of which a command takes no more than one."""
    if len(values) > 1:
        raise InputError(f"{option} is given {len(values)} times ({', '.join(values)}); expected one of them here.")
    return values[0] if values else None
