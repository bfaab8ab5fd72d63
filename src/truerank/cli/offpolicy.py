"""truerank offpolicy."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from truerank.cli.options import check_out, columns_of, common, deliver, id_column, messages, progress, rendered
from truerank.core.errors import InputError
from truerank.core.values import options_of
from truerank.data.impressions import Logged
from truerank.data.read import RANKED_KEYS
from truerank.estimators import ranked
from truerank.estimators.ranked.doubly_robust import RankedDoublyRobust
from truerank.estimators.ranked.normalisers import Normaliser
from truerank.estimators.ranked.reward_models import ItemMeans, PredictionColumn
from truerank.evaluation.ranked import off_policy
from truerank.exposure.policies.targets import ExposureColumn, RankColumn
from truerank.exposure.positions import POSITIONS, parse_position
from truerank.uncertainty.clipping import AutoClip
from truerank.uncertainty.intervals import Bootstrap, Interval

EXPOSURE = "exposure:"


@click.command()
@click.argument("log", type=click.Path(path_type=Path))
@click.option(
    "--target",
    "targets",
    multiple=True,
    required=True,
    metavar="NAME=FILE|@COLUMN",
    help="A policy: a table session,item,rank (or exposure) of all items it would rank, or a rank column of the log; "
    "@position is the logging policy, @exposure:COLUMN a column of exposures or probabilities.",
)
@click.option(
    "--position",
    metavar="MODEL",
    help=f"How likely each position is viewed: {', '.join(POSITIONS.forms())}, a file, or SURFACE=MODEL,...; @N cuts "
    "off. Not needed where log and targets give exposures or propensities.",
)
@click.option(
    "--clip", "clips", default="inf", show_default=True, metavar="M,...|auto", help="Upper limits of 1/propensity."
)
@click.option("--reward", "rewards", multiple=True, metavar="COLUMN", help="A reward; several are allowed.")
@click.option(
    "--estimator",
    "estimator_names",
    multiple=True,
    metavar="NAME",
    help=f"{', '.join(ranked.catalogue())}; with options as ips(normaliser=impression). Default: ips snips.",
)
@click.option(
    "--normaliser",
    type=click.Choice([each.value for each in Normaliser]),
    default="session",
    show_default=True,
    help="What rewards are counted per, with ips and snips.",
)
@click.option("--baseline", metavar="NAME", help="Compare every target with this one instead of all pairs.")
@click.option("--columns", metavar="KEY=NAME,...", help="Column names of the files, as session=visit,item=video_id.")
@click.option(
    "--sessions", type=click.Path(path_type=Path), help="All sessions, also those in which nothing was viewed."
)
@click.option(
    "--rows",
    type=click.Choice([each.value for each in Logged]),
    default="viewed",
    show_default=True,
    help="Whether the rows are viewed items (or a column viewed says which are), or all displayed ones.",
)
@click.option(
    "--logger",
    "loggers",
    multiple=True,
    metavar="NAME=@COLUMN",
    help="Several logging policies: for each value of the column logger its rank (or @exposure:) column.",
)
@click.option(
    "--reward-model",
    type=click.Choice([ItemMeans.name, PredictionColumn.name]),
    default=ItemMeans.name,
    show_default=True,
    help="Of doubly-robust: shrunk means of items, or columns prediction in log and targets.",
)
@click.option("--bootstrap", type=int, metavar="N", help="Intervals by N bootstrap samples of users (or sessions).")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="For folds and the bootstrap.")
@click.option("--threads", type=int, help="Default: all cores.")
@common
def offpolicy(  # noqa: PLR0917
    log: Path,
    targets: tuple[str, ...],
    position: str | None,
    clips: str,
    rewards: tuple[str, ...],
    estimator_names: tuple[str, ...],
    normaliser: str,
    baseline: str | None,
    columns: str | None,
    sessions: Path | None,
    rows: str,
    loggers: tuple[str, ...],
    reward_model: str,
    bootstrap: int | None,
    level: float,
    seed: int,
    threads: int | None,
    form: str | None,
    out: Path | None,
    quiet: bool,  # noqa: FBT001
) -> None:
    """Say what other ranking policies would have earned, and how sure that is.

    LOG is a table session,item,position,reward of what the deployed policy showed (.parquet .csv .tsv; a folder of
    parts, a glob); where there is a column user, intervals are over users. Without sessions each row is a unit of its
    own. With item-choice propensities instead of positions: a column propensity, and targets as @exposure:COLUMN.

    \b
    truerank offpolicy log.parquet --target new=ranks.parquet --target log=@position --baseline log \\
        --position fit:yule --reward like --reward complete --clip 8,64,inf
    """
    mapping = columns_of(columns, more=RANKED_KEYS)
    policies = {name: _policy(value) for name, value in _named(targets, "--target").items()}
    several = {name: _policy(value) for name, value in _named(loggers, "--logger").items()}
    model = None if position is None else parse_position(position)
    chosen = [_estimator(name, normaliser, reward_model, seed=seed) for name in estimator_names]
    limits = _clips(clips)
    interval = _interval(bootstrap, seed=seed)
    if threads is not None and threads < 1:
        raise InputError(f"--threads {threads}; expected a whole number from 1.")
    files = (each for each in (*policies.values(), *several.values()) if isinstance(each, Path))
    check_out(out, inputs=(log, sessions, *files))
    with progress(quiet=quiet) as report:
        results = off_policy(
            log,
            policies,
            position=model,
            clips=limits,
            estimators=chosen or None,
            normaliser=Normaliser(normaliser),
            rewards=list(rewards) or None,
            columns=mapping,
            sessions=id_column(sessions, "session", mapping),
            logged=Logged(rows),
            loggers=several or None,
            baseline=baseline,
            interval=interval,
            level=level,
            seed=seed,
            threads=threads,
            progress=report,
        )
    messages([message.said(for_cli=True) for message in results.messages], quiet=quiet)
    deliver(rendered(results, form, out), out)


def _named(values: tuple[str, ...], option: str) -> dict[str, str]:
    """NAME=VALUE, split at the first `=`; a bare path is named after the file."""
    found: dict[str, str] = {}
    for value in values:
        name, separator, rest = value.partition("=")
        name, rest = (name, rest) if separator else (Path(value).stem, value)
        if not name or not rest.strip("@") or rest == f"@{EXPOSURE}":
            raise InputError(f"{option} {value!r}: expected NAME=FILE or NAME=@COLUMN.")
        if name in found:
            raise InputError(f"{option} {value!r}: the name {name!r} is given twice; names must differ.")
        found[name] = rest
    return found


def _policy(value: str) -> Any:
    if not value.startswith("@"):
        return Path(value)
    column = value[1:]
    return ExposureColumn(column.removeprefix(EXPOSURE)) if column.startswith(EXPOSURE) else RankColumn(column)


def _estimator(text: str, normaliser: str, reward_model: str, *, seed: int) -> Any:
    """The estimator of a text form; what it does not say itself, other options say."""
    made: Any = ranked.parse(text)
    others = {"normaliser": Normaliser(normaliser), "seed": seed}
    if isinstance(made, RankedDoublyRobust):
        others["model"] = PredictionColumn() if reward_model == PredictionColumn.name else ItemMeans()
    takes = [name for name in options_of(type(made)) if f"{name}=" not in text]
    return replace(made, **{name: value for name, value in others.items() if name in takes})


def _clips(text: str) -> tuple[float, ...] | AutoClip:
    if text.strip().lower() == "auto":
        return AutoClip()
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = (math.nan,)
    if not all(clip > 0 for clip in found):
        raise InputError(f"--clip {text!r}; expected positive numbers, as 1,2,8,inf, or auto.")
    return found


def _interval(bootstrap: int | None, *, seed: int) -> Interval | None:
    if bootstrap is not None and bootstrap < 2:
        raise InputError(f"--bootstrap {bootstrap}; expected at least 2 samples, better 1000.")
    return None if bootstrap is None else Bootstrap(bootstrap, seed)
