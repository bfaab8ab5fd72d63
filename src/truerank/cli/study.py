"""truerank study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from truerank import metrics as metric_catalogue
from truerank.cli.options import columns_of, id_column, listed, messages, named_paths, numbers, progress
from truerank.cli.study_figures import figures
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.language import as_values
from truerank.core.log import Log
from truerank.data.read import read
from truerank.exposure.kinds import Unlisted
from truerank.exposure.loggers.expose import Logger
from truerank.exposure.loggers.positivity import PositivityLogger
from truerank.ranks.scores.files import read_scores
from truerank.studies.reliability.folder import LOGS, MEANS, PAIRS, RESULTS
from truerank.studies.reliability.grid import METRICS, SAMPLERS, SIZES, SPARSITIES, Grid, Preset, default_loggers
from truerank.studies.reliability.run import study as run


def _shown(values: Sequence[object]) -> str:
    return ",".join(f"{each:g}" if isinstance(each, float) else str(each) for each in values)


@click.group()
def study() -> None:
    """Measure how far a way to evaluate can be trusted."""


study.add_command(figures)


@study.command()
@click.argument("labels", type=click.Path(path_type=Path))
@click.option(
    "--scores", multiple=True, required=True, metavar="NAME=FILE", help="A model's scores; at least two models."
)
@click.option("--out", "-o", type=click.Path(path_type=Path), required=True, help="The folder of the study.")
@click.option(
    "--preset",
    type=click.Choice([each.value for each in Preset]),
    default=Preset.PUBLISHED.value,
    show_default=True,
    help="Loggers and samplers as the sampler paper's text has them, or as its code does.",
)
@click.option(
    "--loggers",
    metavar="NAME,...",
    help="Default: uniform,popularity,positivity; without --train those that need none.",
)
@click.option("--sparsities", default=_shown(SPARSITIES), show_default=True, help="0 is always part.")
@click.option("--samplers", default=_shown(SAMPLERS), show_default=True, help="Full is always part.")
@click.option("--sizes", default=_shown(SIZES), show_default=True, help="Numbers of sampled negatives.")
@click.option("--metrics", default=_shown(METRICS), show_default=True, help="Sums over the top K.")
@click.option("--repetitions", type=int, default=1, show_default=True, help="Everything is drawn anew in each.")
@click.option("--train", type=click.Path(path_type=Path), help="Training data, for loggers and samplers that count it.")
@click.option("--train-positive", metavar="RULE", help="The same for --train, where it is not 0/1 and another rule.")
@click.option(
    "--exclude", type=click.Path(path_type=Path), help="Pairs that are neither shown nor candidates: those learnt from."
)
@click.option("--positive", metavar="RULE", help='Which values are positive, as ">3", or all; not needed for 0/1.')
@click.option("--columns", metavar="KEY=NAME,...", help="Column names of the files, as user=user_id,item=video_id.")
@click.option(
    "--unlisted",
    type=click.Choice([each.value for each in Unlisted]),
    default=Unlisted.UNKNOWN.value,
    show_default=True,
    help="What a pair that is not listed means; a study needs to know (nearly) every pair.",
)
@click.option("--users", type=click.Path(path_type=Path), help="Names the rows of scores that have no ids, in order.")
@click.option("--items", type=click.Path(path_type=Path), help="Names the columns of scores without ids, in order.")
@click.option("--population", type=click.Path(path_type=Path), help="All users, also those without a row in LABELS.")
@click.option("--resamples", type=int, default=1000, show_default=True, help="Bootstrap samples of users.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--threads", type=int, help="Default: all cores.")
@click.option("--quiet", is_flag=True, help="No messages and no progress on standard error.")
def reliability(  # noqa: PLR0917
    labels: Path,
    scores: tuple[str, ...],
    out: Path,
    preset: str,
    loggers: str | None,
    sparsities: str,
    samplers: str,
    sizes: str,
    metrics: str,
    repetitions: int,
    train: Path | None,
    train_positive: str | None,
    exclude: Path | None,
    positive: str | None,
    columns: str | None,
    unlisted: str,
    users: Path | None,
    items: Path | None,
    population: Path | None,
    resamples: int,
    level: float,
    seed: int,
    threads: int | None,
    quiet: bool,  # noqa: FBT001
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
    mapping = columns_of(columns)
    paths = named_paths(scores)
    kind = Preset(preset)
    asked = default_loggers(preset=kind, train=train is not None) if loggers is None else listed(loggers)
    grid = Grid.of(
        preset=kind,
        loggers=asked,
        sparsities=numbers(sparsities, "--sparsities", kind=float),
        samplers=listed(samplers),
        sizes=[int(each) for each in numbers(sizes, "--sizes", kind=int)],
        metrics=list(as_values(listed(metrics), metric_catalogue.METRICS)),
        repetitions=repetitions,
    )
    row_ids, column_ids = id_column(users, "user", mapping), id_column(items, "item", mapping)
    everyone = id_column(population, "user", mapping)
    known = read(labels, columns=mapping, positive=positive, users=None if everyone is None else Ids.of(everyone))
    if unlisted == Unlisted.NEGATIVE.value:
        known = replace(known, complete=True)
    if loggers is None and train is None:
        messages([f"without --train the loggers are {', '.join(asked)}: the others count training data."], quiet=quiet)
    learnt = None if train is None else _train(train, mapping, positive, own=train_positive, loggers=grid.loggers)
    try:
        with progress(quiet=quiet) as report:
            found = run(
                {name: read_scores(path, columns=mapping, users=row_ids, items=column_ids)
                 for name, path in paths.items()},
                known,
                out,
                grid=grid,
                train=learnt,
                exclude=None if exclude is None else read(exclude, columns=mapping, values=False),
                seed=seed,
                resamples=resamples,
                level=level,
                threads=threads,
                progress=report,
            )  # fmt: skip
    except KeyboardInterrupt:
        messages([f"{out}: what is done is kept; the same command goes on from there."], quiet=quiet)
        raise
    messages(found.notes, quiet=quiet)
    for name in (RESULTS, MEANS, PAIRS, LOGS):
        click.echo(f"{Path(name).stem:8} {out / name}")


def _train(path: Path, mapping: dict[str, str], rule: str | None, *, own: str | None, loggers: Sequence[Logger]) -> Log:
    """Training data by a rule of their own; else what is 0/1 stays, rows without values are counted, and the rule of
    the labels serves for others.
    """
    if own is not None:
        return read(path, columns=mapping, positive=own)
    found = read(path, columns=mapping)
    if not found.rewards and any(isinstance(each, PositivityLogger) and each.needs_train for each in loggers):
        raise InputError(
            f"{path}: no value column, and the positivity logger counts positives of training data; if each row is "
            "one, say --train-positive all."
        )
    return found if not found.rewards or "label" in found.rewards else read(path, columns=mapping, positive=rule)
