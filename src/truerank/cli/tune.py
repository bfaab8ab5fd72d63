"""truerank tune."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
import polars as pl

from truerank import estimators, metrics, models
from truerank.cli.learning import about, learning, read_learning, settings_of
from truerank.cli.options import messages, progress
from truerank.core.errors import InputError
from truerank.data.files import whole_file, write_table
from truerank.studies.objectives import HoldOut, RandomSlice, TuningObjective
from truerank.studies.tuning import Tuned
from truerank.studies.tuning import tune as search


@click.command()
@click.argument("name")
@click.argument("log", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The folder of the search.")
@click.option("--trials", type=int, default=50, show_default=True, help="How many settings to try, in all.")
@click.option("--metric", default="Recall@50", show_default=True, help="What to make as large as possible.")
@click.option("--estimator", help="How to estimate it from --random; default by metric.")
@click.option("--fraction", type=float, help="Share of each user's rows held out, without --random; default 0.2.")
@learning
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same search.")
@click.option("--quiet", is_flag=True, help="No messages and no progress on standard error.")
def tune(  # noqa: PLR0917
    name: str,
    log: Path,
    out: Path,
    trials: int,
    metric: str,
    estimator: str | None,
    fraction: float | None,
    settings: tuple[str, ...],
    positive: str | None,
    columns: str | None,
    random: Path | None,
    user_features: Path | None,
    item_features: Path | None,
    items: Path | None,
    population: Path | None,
    seed: int,
    quiet: bool,  # noqa: FBT001
) -> None:
    """Search for good settings of the recommender NAME on LOG.

    Settings are judged on a share of each user's rows that is kept from learning or, with --random, by an estimator on
    the randomly exposed slice. What is given with --set stays. Interrupted or with more --trials, the same call goes on
    where it stopped. The folder gets best.json and trials.csv.

    \b
    truerank tune als train.parquet --positive ">3" --trials 50 --out tuning/als
    """
    chosen = settings_of(settings)
    model = models.make(name, chosen)
    objective = _objective(metric, estimator, fraction, random=random)
    learnt, side = read_learning(
        log, random=random, user_features=user_features, item_features=item_features, positive=positive,
        columns=columns, population=population, items=items,
    )  # fmt: skip
    messages(about(learnt), quiet=quiet)
    try:
        with progress(quiet=quiet) as report:
            found = search(
                model, learnt, objective=objective, trials=trials, folder=out, seed=seed, side=side, fixed=chosen,
                progress=report,
            )  # fmt: skip
    except KeyboardInterrupt:
        messages([f"what was tried is kept in {out}; the same call goes on from there."], quiet=quiet)
        raise
    messages(found.notes, quiet=quiet)
    _keep(found, out, objective=str(objective))
    resumed = f", {found.resumed} of them from before" if found.resumed else ""
    messages([f"{len(found.trials)} trials{resumed}; best {found.value:.4f}: {objective}"], quiet=quiet)
    given = {
        "--positive": positive, "--columns": columns, "--random": random, "--user-features": user_features,
        "--item-features": item_features, "--items": items, "--population": population, "--seed": seed,
    }  # fmt: skip
    click.echo(_command(name, log, found.model, given=given))


def _command(name: str, log: Path, model: Any, *, given: Mapping[str, object]) -> str:
    """The call that trains the best model on the whole log, with all that was given to learn from."""
    words = ["truerank", "train", name, str(log)]
    for option, value in given.items():
        words += [] if value is None else [option, str(value)]
    for key, value in _settings(model).items():
        words += ["--set", f"{key}={value}"]
    return shlex.join([*words, "--out", f"{name}.npz"])


def _objective(metric: str, estimator: str | None, fraction: float | None, *, random: Path | None) -> TuningObjective:
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


def _keep(found: Tuned, folder: Path, *, objective: str) -> None:
    best = {"model": found.model.name, "settings": _settings(found.model), "value": found.value, "objective": objective}
    with whole_file(folder / "best.json") as temporary:
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(best), indent=2) + b"\n")
    rows = [
        {"trial": at, **each.settings, "value": each.value, "seconds": each.seconds, "reason": each.reason}
        for at, each in enumerate(found.trials)
    ]
    write_table(pl.DataFrame(rows, infer_schema_length=None), folder / "trials.csv")
