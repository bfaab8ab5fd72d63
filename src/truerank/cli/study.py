"""truerank study: a study of reliability, and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truerank.cli.inputs import PAIRS, check_threads, declared, read_log, read_models, score_files
from truerank.cli.options import (
    PATH,
    Call,
    choice,
    command,
    common,
    count,
    flag,
    formatted,
    listed,
    numbers,
    only,
    shared,
)
from truerank.cli.output import resumable, say, show_paths
from truerank.core.errors import InputError

if TYPE_CHECKING:
    from truerank.core.log import Log
    from truerank.exposure.logging_policies import LoggingPolicy
    from truerank.reliability.grid import Grid


@command(
    "labels",
    Varying=(
        choice(
            "--preset", ["published", "released"], default="published",
            help="Logging policies and samplers as in the text of the sampler paper, or as in its code.",
        ),
        "loggers: Default: uniform,popularity,positivity; without --train those that need none.",
        common("sparsities", default="0,0.1,0.3,0.5,0.7,0.85,0.9,0.95", help="0 is always included."),
        common(
            "samplers", default="Full,Exposed,Random@e,Random,Popularity,Positivity,WTD,WTDH,Skew",
            help="Full is always included.",
        ),
        shared(
            "--sizes", metavar="N,...", default="1,2,5,10,20,50,100,200,500,1000",
            help="Numbers of sampled negatives.",
        ),
        "metric: Sums over the top K. Default: Precision, Recall, nDCG and DCG @{5,10,50,100}.",
        count("--repetitions", default=1, help="Number of independent repetitions."),
    ),
    Scoring=(
        "scores!: A model's scores; at least two models.", "users",
        "exclude: Training pairs: neither exposed nor candidates.",
    ),
    Reading=(
        "columns", "positive", "population: All users, also those without a row in LABELS.",
        "items: Names the columns of scores without ids, in order.",
    ),
    Options=(
        "unlisted: What a missing pair means; a study needs to know (nearly) every pair.",
        "train: Training data, for logging policies and samplers that count it.",
        shared("--train-positive", metavar="RULE",
               help="--positive for --train, where it is not 0/1 and another rule."),
    ),
    Inference=(common("bootstrap", default=1000, help="Bootstrap samples of users."), "level", "seed", "threads",
               "engine"),
    Output=("out!: The folder of the study.", "quiet"),
)  # fmt: skip
def reliability(call: Call) -> None:
    """Measure how reliable sampled and biased evaluation is, on data with complete labels.

    LABELS is a fully observed dataset: a label for (nearly) every pair, or positives with --unlisted negative. Logging
    policies expose part of it, and samplers choose candidates from that. The study reports how often models tie, and
    how well their order agrees with the order from more data (Kendall's tau-b per user).

    The same command continues a stopped study. The finished folder has results.parquet (one row
    per scenario, metric and question), means.parquet (one per scenario, metric and model), pairs.parquet (one per
    scenario, metric and pair of models) and logs.parquet (one per policy and sparsity); see `truerank advise`.

    \b
    truerank study reliability truth.parquet --positive ">3" --train train.parquet \\
        --scores als=als.npz --scores pop=pop.npz --out study
    """
    from truerank.reliability.run import study as run
    from truerank.reliability.studied import LOGS, MEANS, RESULTS
    from truerank.reliability.studied import PAIRS as PAIRS_FILE

    score_files(call)  # names that are wrong are refused before anything is read
    check_threads(call)
    grid = _grid(call)
    labels = read_log(call, "labels", users=declared(call, "population", "user"))
    if call.unlisted == "negative":
        labels = replace(labels, complete=True)
    if call.loggers is None and call.train is None:
        names = ", ".join(map(str, grid.loggers))
        say(call, [f"without --train the logging policies are {names}: the others count training data."])
    train = _train(call, grid.loggers)
    with resumable(call) as report:
        studied = run(
            read_models(call),
            labels,
            call.out,
            grid=grid,
            train=train,
            exclude=read_log(call, "exclude", **PAIRS),
            resamples=call.bootstrap or 0,
            progress=report,
            **call.given("seed", "level", "threads", "engine"),
        )
    say(call, studied.notes)
    show_paths({Path(name).stem: call.out / name for name in (RESULTS, MEANS, PAIRS_FILE, LOGS)})


def _grid(call: Call) -> Grid:
    """What the study varies."""
    from truerank.core.language import as_values
    from truerank.metrics import METRICS
    from truerank.reliability import grid

    preset, loggers = grid.Preset(call.preset), listed(call.loggers)
    if loggers is None:
        loggers = list(grid.default_loggers(preset=preset, train=call.train is not None))
    return grid.Grid.from_names(
        preset=preset,
        loggers=loggers,
        sparsities=numbers(call.sparsities, "--sparsities") or [],
        samplers=listed(call.samplers) or [],
        sizes=[int(size) for size in numbers(call.sizes, "--sizes", kind=int) or []],
        metrics=list(as_values(call.metric, METRICS)) if call.metric else grid.METRICS,
        repetitions=call.repetitions,
    )


def _train(call: Call, loggers: Sequence[LoggingPolicy]) -> Log | None:
    """Training data by a rule of their own; else what is 0/1 stays, rows without values are counted, and the rule of
    the labels serves for others.
    """
    from truerank.exposure.logging_policies import PositivityLogger

    log: Log | None = read_log(call, "train", positive=call.train_positive)
    if log is None or call.train_positive is not None or "label" in log.rewards:
        return log
    if log.rewards:
        return read_log(call, "train")  # type: ignore[no-any-return]
    if any(isinstance(logger, PositivityLogger) and logger.needs_train for logger in loggers):
        raise InputError(
            f"{call.train}: no value column, and the positivity policy counts positives of training data; if each row "
            "is one, say --train-positive all."
        )
    return log


@command(
    click.Argument(["folder"], metavar="DIR", type=PATH),
    Options=(
        "metric: A metric of the study.  [default: nDCG@100, or else the last]",
        choice(
            "--undefined", ["left-out", "zero"],
            help="Users with undefined tau (all models tie).  [default: left-out]",
        ),
        flag("--of-means", help="Tau of the means over users, instead of the mean over users of tau."),
        "loggers", "sparsities", "samplers",
    ),
    Output=(formatted("svg", "png", "pdf", default="svg"), "out: The folder to write to.  [default: DIR/figures]",
            "force"),
)  # fmt: skip
def figures(call: Call) -> None:
    """Draw the results of a finished reliability study.

    DIR is the folder of `truerank study reliability`. Four pictures are written: resolution, fidelity, robustness and
    predictive power against the number of sampled negatives, a line with its interval for each sampler, a panel for
    each logging policy and sparsity.

    \b
    truerank study figures study --format png --loggers popularity --sparsities 0,0.5,0.9
    """
    from truerank.report.charts import PictureFormat
    from truerank.report.study import LEFT_OUT, OF_MEANS, draw

    if call.of_means and call.undefined is not None:
        raise InputError(f"--undefined {call.undefined} with --of-means: means have no users to leave out; choose one.")
    paths = draw(
        call.folder,
        call.out,
        form=PictureFormat(call.format),
        metric=only(call.metric, "--metric"),
        tau=OF_MEANS if call.of_means else call.undefined or LEFT_OUT,
        loggers=listed(call.loggers),
        sparsities=numbers(call.sparsities, "--sparsities"),
        samplers=listed(call.samplers),
        force=call.force,
    )
    show_paths(paths, 16)


study = click.Group("study", commands=[reliability, figures],
                    help="Measure how reliable sampled and biased evaluation is.")  # fmt: skip
