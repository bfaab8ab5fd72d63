"""truerank study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truerank.cli import terminal
from truerank.cli.groups import Inference, Reading, Scoring
from truerank.cli.options import (
    PATH,
    Sections,
    choice,
    common,
    count,
    formatted,
    grouped,
    listed,
    numbers,
    only,
    shared,
)
from truerank.cli.output import Output
from truerank.core.errors import InputError
from truerank.core.record import record

if TYPE_CHECKING:
    from truerank.core.log import Log
    from truerank.exposure.logging_policies import LoggingPolicy
    from truerank.reliability.grid import Grid


@click.group()
def study() -> None:
    """Measure how far a way to evaluate can be trusted."""


@record(kw_only=True)
class Varying:
    """What a study varies."""

    preset: str
    loggers: str | None
    sparsities: str
    samplers: str
    sizes: str
    metrics: tuple[str, ...]
    repetitions: int

    def grid(self, *, train: bool) -> Grid:
        from truerank.core.language import as_values
        from truerank.metrics import METRICS
        from truerank.reliability import grid

        kind = grid.Preset(self.preset)
        loggers = listed(self.loggers)
        if loggers is None:
            loggers = list(grid.default_loggers(preset=kind, train=train))
        return grid.Grid.from_names(
            preset=kind,
            loggers=loggers,
            sparsities=numbers(self.sparsities, "--sparsities") or [],
            samplers=listed(self.samplers) or [],
            sizes=[int(size) for size in numbers(self.sizes, "--sizes", kind=int) or []],
            metrics=list(as_values(self.metrics, METRICS)) if self.metrics else grid.METRICS,
            repetitions=self.repetitions,
        )


@study.command(cls=Sections)
@click.argument("labels", type=PATH)
@grouped(
    Varying,
    choice(
        "--preset", ["published", "released"], default="published",
        help="Logging policies and samplers as the sampler paper's text has them, or as its code does.",
    ),
    "loggers: Default: uniform,popularity,positivity; without --train those that need none.",
    common("sparsities: 0 is always part.", default="0,0.1,0.3,0.5,0.7,0.85,0.9,0.95"),
    common(
        "samplers: Full is always part.",
        default="Full,Exposed,Random@e,Random,Popularity,Positivity,WTD,WTDH,Skew",
    ),
    shared(
        "--sizes", metavar="N,...", default="1,2,5,10,20,50,100,200,500,1000", help="Numbers of sampled negatives."
    ),
    "metric: Sums over the top K. Default: Precision, Recall, nDCG and DCG @{5,10,50,100}.",
    count("--repetitions", default=1, help="Everything is drawn anew in each."),
)  # fmt: skip
@grouped(
    Scoring, "scores!: A model's scores; at least two models.", "users",
    "exclude: Pairs that are neither shown nor candidates: those learnt from.",
)  # fmt: skip
@grouped(
    Reading, "columns", "positive", "population: All users, also those without a row in LABELS.",
    "items: Names the columns of scores without ids, in order.",
)  # fmt: skip
@common("unlisted: What a pair that is not listed means; a study needs to know (nearly) every pair.")
@common("train: Training data, for logging policies and samplers that count it.")
@shared("--train-positive", metavar="RULE", help="--positive for --train, where it is not 0/1 and another rule.")
@grouped(
    Inference, common("bootstrap: Bootstrap samples of users.", default=1000), "level", "seed", "threads", "engine"
)
@grouped(Output, "out!: The folder of the study.", "quiet")
def reliability(
    *,
    labels: Path,
    varying: Varying,
    scoring: Scoring,
    reading: Reading,
    unlisted: str,
    train: Path | None,
    train_positive: str | None,
    inference: Inference,
    output: Output,
) -> None:
    """Measure how far sampled and biased evaluation can be trusted, where the truth is known.

    LABELS is a fully observed dataset: a label for (nearly) every pair, or positives with --unlisted negative. Policies
    show part of it, samplers choose candidates from that; the study says how often models tie, and how far their order
    agrees with what more data would say (Kendall's tau-b per user).

    Stopped at any moment, the same command goes on where it was. In the end the folder holds results.parquet (one row
    per scenario, metric and question), means.parquet (one per scenario, metric and model), pairs.parquet (one per
    scenario, metric and pair of models) and logs.parquet (one per policy and sparsity); see `truerank advise`.

    \b
    truerank study reliability truth.parquet --positive ">3" --train train.parquet \\
        --scores als=als.npz --scores pop=pop.npz --out study
    """
    from truerank.reliability.run import study as run
    from truerank.reliability.studied import LOGS, MEANS, PAIRS, RESULTS

    scoring.paths()  # names that are wrong are refused before anything is read
    inference.check()
    grid = varying.grid(train=train is not None)
    items = reading.catalogue()
    world = reading.log(labels, users=reading.users())
    if unlisted == "negative":
        world = replace(world, complete=True)
    if varying.loggers is None and train is None:
        names = ", ".join(map(str, grid.loggers))
        output.say([f"without --train the logging policies are {names}: the others count training data."])
    learnt = (
        None if train is None else _train(train, reading.for_file("train"), rule=train_positive, loggers=grid.loggers)
    )
    with output.resumable(output.place) as report:
        studied = run(
            scoring.models(reading, items=items),
            world,
            output.place,
            grid=grid,
            train=learnt,
            exclude=reading.for_file("exclude").pairs(scoring.exclude),
            resamples=inference.bootstrap or 0,
            progress=report,
            **inference.arguments("seed", "level", "threads", "engine"),
        )
    output.say(studied.notes)
    for name in (RESULTS, MEANS, PAIRS, LOGS):
        terminal.show(f"{Path(name).stem:8} {output.place / name}")


def _train(path: Path, reading: Reading, *, rule: str | None, loggers: Sequence[LoggingPolicy]) -> Log:
    """Training data by a rule of their own; else what is 0/1 stays, rows without values are counted, and the rule of
    the labels serves for others.
    """
    from truerank.exposure.logging_policies import PositivityLogger

    if rule is not None:
        return reading.log(path, positive=rule)
    log = reading.log(path, positive=None)
    if not log.rewards and any(isinstance(logger, PositivityLogger) and logger.needs_train for logger in loggers):
        raise InputError(
            f"{path}: no value column, and the positivity policy counts positives of training data; if each row is "
            "one, say --train-positive all."
        )
    return log if not log.rewards or "label" in log.rewards else reading.log(path)


@study.command(cls=Sections)
@click.argument("folder", metavar="DIR", type=PATH)
@common("metric: A metric of the study.  [default: nDCG@100, or else the last]")
@choice(
    "--undefined", ["left-out", "zero"],
    help="Users whose tau is undefined, because all models tie.  [default: left-out]",
)  # fmt: skip
@shared("--of-means", is_flag=True, help="Tau of the models' means over users, not the mean of users' own tau.")
@common("loggers")
@common("sparsities")
@common("samplers")
@grouped(
    Output,
    formatted(["svg", "png", "pdf"], default="svg"),
    "out: The folder to write to.  [default: DIR/figures]",
    "force",
)
def figures(
    *,
    folder: Path,
    metrics: tuple[str, ...],
    undefined: str | None,
    of_means: bool,
    loggers: str | None,
    sparsities: str | None,
    samplers: str | None,
    output: Output,
) -> None:
    """Draw the results of a finished reliability study.

    DIR is the folder of `truerank study reliability`. Four pictures are written: resolution, fidelity, robustness and
    predictive power against the number of sampled negatives, a line with its interval for each sampler, a panel for
    each logging policy and sparsity.

    \b
    truerank study figures study --format png --loggers popularity --sparsities 0,0.5,0.9
    """
    from truerank.report.charts import PictureFormat
    from truerank.report.study_figures import Tau, draw

    if of_means and undefined is not None:
        raise InputError(f"--undefined {undefined} with --of-means: means have no users to leave out; choose one.")
    paths = draw(
        folder,
        output.out,
        form=PictureFormat(output.form(())),
        metric=only(metrics, "--metric"),
        tau=Tau.OF_MEANS if of_means else Tau(undefined or Tau.LEFT_OUT),
        loggers=listed(loggers),
        sparsities=numbers(sparsities, "--sparsities"),
        samplers=listed(samplers),
        force=output.force,
    )
    for question, path in paths.items():
        terminal.show(f"{question.value:16} {path}")
