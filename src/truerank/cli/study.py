"""truerank study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truerank.cli import terminal
from truerank.cli.groups import Inference, Reading, Scoring
from truerank.cli.names import choices, constant
from truerank.cli.options import (
    BOOTSTRAP,
    COLUMNS,
    ENGINE,
    EXCLUDE,
    FORCE,
    ITEMS,
    LEVEL,
    METRIC,
    OUT,
    PATH,
    POPULATION,
    POSITIVE,
    QUIET,
    SCORES,
    SEED,
    THREADS,
    TRAIN,
    USERS,
    Sections,
    choice,
    count,
    formatted,
    grouped,
    listed,
    numbers,
    only,
    shared,
)
from truerank.cli.output import Output
from truerank.cli.showing import UNLISTED
from truerank.core.errors import InputError

if TYPE_CHECKING:
    from truerank.core.log import Log
    from truerank.exposure.logging_policies import LoggingPolicy
    from truerank.reliability.grid import Grid

GRID = "reliability/grid"


def _shown(name: str) -> str:
    return ",".join(f"{each:g}" if isinstance(each, float) else str(each) for each in constant(GRID, name))


@click.group()
def study() -> None:
    """Measure how far a way to evaluate can be trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
        return grid.Grid.of(
            preset=kind,
            loggers=grid.default_loggers(preset=kind, train=train) if self.loggers is None else listed(self.loggers),
            sparsities=numbers(self.sparsities, "--sparsities", kind=float),
            samplers=listed(self.samplers),
            sizes=[int(size) for size in numbers(self.sizes, "--sizes", kind=int)],
            metrics=list(as_values(self.metrics, METRICS)) if self.metrics else grid.METRICS,
            repetitions=self.repetitions,
        )


@study.command(cls=Sections)
@click.argument("labels", type=PATH)
@grouped(
    Varying,
    choice(
        "--preset", choices(GRID, "Preset"), default="published",
        help="Loggers and samplers as the sampler paper's text has them, or as its code does.",
    ),
    shared(
        "--loggers", metavar="NAME,...",
        help="Default: uniform,popularity,positivity; without --train those that need none.",
    ),
    shared(
        "--sparsities", metavar="NUMBER,...", default=_shown("SPARSITIES"), show_default=True,
        help="0 is always part.",
    ),
    shared(
        "--samplers", metavar="NAME,...", default=_shown("SAMPLERS"), show_default=True, help="Full is always part."
    ),
    shared(
        "--sizes", metavar="N,...", default=_shown("SIZES"), show_default=True, help="Numbers of sampled negatives."
    ),
    METRIC.here(f"Sums over the top K. Default: Precision, Recall, nDCG and DCG @{{{_shown('CUTOFFS')}}}."),
    count("--repetitions", default=1, help="Everything is drawn anew in each."),
)  # fmt: skip
@grouped(
    Scoring,
    SCORES.here("A model's scores; at least two models.", required=True),
    USERS,
    EXCLUDE.here("Pairs that are neither shown nor candidates: those learnt from."),
)
@grouped(
    Reading,
    COLUMNS,
    POSITIVE,
    POPULATION.here("All users, also those without a row in LABELS."),
    ITEMS.here("Names the columns of scores without ids, in order."),
)
@UNLISTED.here("What a pair that is not listed means; a study needs to know (nearly) every pair.")
@TRAIN.here("Training data, for loggers and samplers that count it.")
@shared("--train-positive", metavar="RULE", help="--positive for --train, where it is not 0/1 and another rule.")
@grouped(
    Inference,
    BOOTSTRAP.here("Bootstrap samples of users.", default=1000, show_default=True),
    LEVEL,
    SEED,
    THREADS,
    ENGINE,
)
@grouped(Output, OUT.here("The folder of the study.", required=True), QUIET)
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

    LABELS is a fully observed world: a label for (nearly) every pair, or positives with --unlisted negative. Loggers
    show part of it, samplers choose candidates from that; the study says how often models tie, and how far their order
    agrees with what more data would say (Kendall's tau-b per user).

    Stopped at any moment, the same command goes on where it was. In the end the folder holds results.parquet (one row
    per scenario, metric and question), means.parquet (one per scenario, metric and model), pairs.parquet (one per
    scenario, metric and pair of models) and logs.parquet (one per logger and sparsity); see `truerank advise`.

    \b
    truerank study reliability truth.parquet --positive ">3" --train train.parquet \\
        --scores als=als.npz --scores pop=pop.npz --out study
    """
    from truerank.reliability.run import study as run
    from truerank.reliability.studied import LOGS, MEANS, PAIRS, RESULTS

    scoring.paths()  # names that are wrong are refused before anything is read
    inference.check()
    grid = varying.grid(train=train is not None)
    items = reading.of("items").ids(reading.items, "item")
    world = reading.log(labels, users=reading.users())
    if unlisted == "negative":
        world = replace(world, complete=True)
    if varying.loggers is None and train is None:
        names = ", ".join(map(str, grid.loggers))
        output.say([f"without --train the loggers are {names}: the others count training data."])
    learnt = None if train is None else _train(train, reading.of("train"), own=train_positive, loggers=grid.loggers)
    with output.resumable(output.place) as report:
        studied = run(
            scoring.models(reading, items=items),
            world,
            output.place,
            grid=grid,
            train=learnt,
            exclude=reading.of("exclude").pairs(scoring.exclude),
            seed=inference.seed,
            resamples=inference.bootstrap or 0,
            level=inference.level,
            threads=inference.threads,
            engine=inference.engine,
            progress=report,
        )
    output.say(studied.notes)
    for name in (RESULTS, MEANS, PAIRS, LOGS):
        terminal.show(f"{Path(name).stem:8} {output.place / name}")


def _train(path: Path, reading: Reading, *, own: str | None, loggers: Sequence[LoggingPolicy]) -> Log:
    """Training data by a rule of their own; else what is 0/1 stays, rows without values are counted, and the rule of
    the labels serves for others.
    """
    from truerank.exposure.logging_policies import PositivityLogger

    if own is not None:
        return reading.log(path, positive=own)
    log = reading.log(path, positive=None)
    if not log.rewards and any(isinstance(logger, PositivityLogger) and logger.needs_train for logger in loggers):
        raise InputError(
            f"{path}: no value column, and the positivity logger counts positives of training data; if each row is "
            "one, say --train-positive all."
        )
    return log if not log.rewards or "label" in log.rewards else reading.log(path)


ALL = "Only these.  [default: all of the study]"


@click.command(cls=Sections)
@click.argument("folder", metavar="DIR", type=PATH)
@METRIC.here("A metric of the study.  [default: nDCG@100, or else the last]")
@choice(
    "--undefined", ["left-out", "zero"],
    help="Users whose tau is undefined, because all models tie.  [default: left-out]",
)  # fmt: skip
@shared("--of-means", is_flag=True, help="Tau of the models' means over users, not the mean of users' own tau.")
@shared("--loggers", metavar="NAME,...", help=ALL)
@shared("--sparsities", metavar="NUMBER,...", help=ALL)
@shared("--samplers", metavar="NAME,...", help=ALL)
@grouped(
    Output,
    formatted(choices("report/reliability_charts", "PictureFormat"), default="svg"),
    OUT.here("The folder to write to.  [default: DIR/figures]"),
    FORCE,
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
    each logger and sparsity.

    \b
    truerank study figures study --format png --loggers popularity --sparsities 0,0.5,0.9
    """
    from truerank.report.reliability_charts import PictureFormat, draw
    from truerank.report.reliability_frames import Tau

    if of_means and undefined is not None:
        raise InputError(f"--undefined {undefined} with --of-means: means have no users to leave out; choose one.")
    paths = draw(
        folder,
        output.out,
        form=PictureFormat(output.chosen_form),
        metric=only(metrics, "--metric"),
        tau=Tau.OF_MEANS if of_means else Tau(undefined or Tau.LEFT_OUT),
        loggers=None if loggers is None else listed(loggers),
        sparsities=None if sparsities is None else numbers(sparsities, "--sparsities", kind=float),
        samplers=None if samplers is None else listed(samplers),
        force=output.force,
    )
    for question, path in paths.items():
        terminal.show(f"{question.value:16} {path}")


study.add_command(figures)
