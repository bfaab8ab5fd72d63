"""truerank tune."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truerank.cli.groups import Reading
from truerank.cli.learning import LEARNING, READING, Learning, about
from truerank.cli.options import ESTIMATOR, METRIC, OUT, PATH, QUIET, SEED, Sections, count, grouped, only, shared
from truerank.cli.output import Output
from truerank.core.errors import InputError

if TYPE_CHECKING:
    from truerank.studies.objectives import TuningObjective
    from truerank.studies.tuning import Tuned

DEFAULT = "Recall@50"


@click.command(cls=Sections)
@click.argument("name")
@click.argument("log", type=PATH)
@count("--trials", default=50, help="How many settings to try, in all.")
@METRIC.here(f"What to make as large as possible: one metric.  [default: {DEFAULT}]")
@ESTIMATOR.here("How to estimate it from --random; default by metric.")
@shared("--fraction", type=float, help="Share of each user's rows held out, without --random; default 0.2.")
@grouped(Learning, *LEARNING)
@grouped(Reading, *READING)
@SEED.here("The same seed gives the same search.")
@grouped(Output, OUT.here("The folder of the search.", required=True), QUIET)
def tune(
    *,
    name: str,
    log: Path,
    trials: int,
    metrics: tuple[str, ...],
    estimators: tuple[str, ...],
    fraction: float | None,
    learning: Learning,
    reading: Reading,
    seed: int,
    output: Output,
) -> None:
    """Search for good settings of the recommender NAME on LOG.

    Settings are judged on a share of each user's rows that is kept from learning or, with --random, by an estimator on
    the randomly exposed slice. What is given with --set stays. Interrupted or with more --trials, the same call goes on
    where it stopped. The folder gets best.json and trials.csv.

    \b
    truerank tune als train.parquet --positive ">3" --trials 50 --out tuning/als
    """
    from truerank import models
    from truerank.studies.tuning import tune as search

    chosen = learning.chosen()
    model = models.make(name, chosen)
    metric, estimator = only(metrics, "--metric") or DEFAULT, only(estimators, "--estimator")
    objective = _objective(metric, estimator, fraction, random=learning.random)
    learnt, side = learning.read(log, reading)
    output.say(about(learnt))
    try:
        with output.progress() as report:
            tuned = search(
                model, learnt, objective=objective, trials=trials, folder=output.place, seed=seed, side=side,
                fixed=chosen, progress=report,
            )  # fmt: skip
    except KeyboardInterrupt:
        output.say([f"what was tried is kept in {output.place}; the same call goes on from there."])
        raise
    output.say(tuned.notes)
    _keep(tuned, output.place, objective=str(objective))
    resumed = f", {tuned.resumed} of them from before" if tuned.resumed else ""
    output.say([f"{len(tuned.trials)} trials{resumed}; best {tuned.value:.4f}: {objective}"])
    given = {
        "--positive": reading.positive, "--columns": reading.columns, "--random": learning.random,
        "--user-features": learning.user_features, "--item-features": learning.item_features, "--items": reading.items,
        "--population": reading.population, "--seed": seed,
    }  # fmt: skip
    click.echo(_command(name, log, tuned.model, given=given))


def _command(name: str, log: Path, model: Any, *, given: Mapping[str, object]) -> str:
    """The call that trains the best model on the whole log, with all that was given to learn from."""
    words = ["truerank", "train", name, str(log)]
    for option, value in given.items():
        words += [] if value is None else [option, str(value)]
    for key, value in _settings(model).items():
        words += ["--set", f"{key}={value}"]
    return shlex.join([*words, "--out", f"{name}.npz"])


def _objective(metric: str, estimator: str | None, fraction: float | None, *, random: Path | None) -> TuningObjective:
    from truerank import estimators, metrics
    from truerank.studies.objectives import HoldOut, RandomSlice

    if random is None:
        if estimator is not None:
            raise InputError(
                "--estimator goes with --random MAR: rows held out from the log itself are counted plainly."
            )
        return HoldOut(metrics.parse(metric)) if fraction is None else HoldOut(metrics.parse(metric), fraction)
    if fraction is not None:
        raise InputError("--fraction does not go with --random MAR: settings are judged on the slice. Leave one out.")
    return RandomSlice(metrics.parse(metric), None if estimator is None else estimators.parse(estimator))


def _settings(model: Any) -> dict[str, Any]:
    return {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}


def _keep(tuned: Tuned, folder: Path, *, objective: str) -> None:
    import polars as pl

    from truerank.data.files import whole_file, write_table
    from truerank.report.listing import as_json

    best = {"model": tuned.model.name, "settings": _settings(tuned.model), "value": tuned.value, "objective": objective}
    with whole_file(folder / "best.json") as temporary:
        temporary.write_bytes(as_json(best))
    rows = [
        {"trial": at, **trial.settings, "value": trial.value, "seconds": trial.seconds, "reason": trial.reason}
        for at, trial in enumerate(tuned.trials)
    ]
    write_table(pl.DataFrame(rows, infer_schema_length=None), folder / "trials.csv")
