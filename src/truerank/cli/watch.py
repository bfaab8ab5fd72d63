"""truerank watch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from truerank.cli.groups import Asking, Inference, InputFile, Reading, Scoring
from truerank.cli.options import (
    COLUMNS,
    DROP_MISSING_TIMES,
    ESTIMATOR,
    EXCLUDE,
    FORMAT,
    ITEMS,
    LEVEL,
    METRIC,
    N_ITEMS,
    OUT,
    PATH,
    POPULATION,
    POSITIVE,
    QUIET,
    REQUIRE,
    SCORES,
    SEED,
    THREADS,
    USERS,
    Sections,
    count,
    grouped,
)
from truerank.cli.output import Output
from truerank.cli.plan import DIFFERENCE, is_picture
from truerank.cli.showing import SHOWING, Showing


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """When to stop."""

    difference: float | None = None
    planned: int = 10_000
    drop_missing_times: bool = False


@click.command(cls=Sections)
@click.argument("labels", type=PATH)
@grouped(Scoring, SCORES.here(required=True), USERS, EXCLUDE)
@grouped(
    Reading,
    COLUMNS,
    POSITIVE,
    POPULATION,
    ITEMS.here("The catalogue; also names the columns of .npy and .npz scores without ids."),
    N_ITEMS.here("The size of the catalogue, where scores are top lists."),
)
@grouped(Showing, *SHOWING)
@grouped(Asking, METRIC, ESTIMATOR.here("Default by exposure and metric."))
@grouped(
    Stopping,
    DIFFERENCE.here("Stop also when the difference is known to less than this; the smallest that matters."),
    count("--planned", default=10_000, help="About how many users are expected; chosen before the first look."),
    DROP_MISSING_TIMES,
)
@grouped(
    Inference,
    REQUIRE.here('What is to be shown, as "a > b" or "a > b: Precision@10": 0 if it is, 4 not yet, 5 the opposite.',
                 required=True),
    LEVEL,
    SEED.here("For random ties, and users who came at one time."),
    THREADS,
)  # fmt: skip
@grouped(Output, FORMAT, OUT.here("Write to a file: .txt .json .csv, or the picture as .svg .png .pdf .html."), QUIET)
def watch(
    *,
    labels: Path,
    scoring: Scoring,
    reading: Reading,
    showing: Showing,
    asking: Asking,
    stopping: Stopping,
    inference: Inference,
    output: Output,
) -> None:
    """Look while data arrive, as often as you like: a comparison of all users so far, and when to stop.

    LABELS is a table user,item,label,time; users must come in random order. Exits with 0 when what is required is
    shown, 4 while nothing is decided, 5 when the opposite is shown or the difference is known closely enough without a
    winner.

    \b
    truerank watch labels.parquet --exposure random --scores als=als.npz --scores pop=pop.npz \\
        --require "als > pop" --metric Precision@10 --estimator horvitz-thompson --planned 5000 --out looks.svg
    """
    from truerank.core.ids import Ids
    from truerank.evaluation.watch import watch as run
    from truerank.report.text import as_csv, as_json, encoded
    from truerank.report.watched import sentence, watch_picture, watch_plain, watch_text

    showing.check(compared=False)
    model, reading = showing.model(reading)
    showing.check_uses(model, compared=False)
    files = [InputFile("labels", labels), *scoring.files(), *reading.files(), *showing.files()]
    inference.check()
    inference.required(scoring.paths())
    output.check(files, results=False)
    if not is_picture(output):
        output.chosen_form  # noqa: B018
    scoring.check()
    items = reading.of("items").ids(reading.items, "item")
    with output.progress() as report:
        found = run(
            scoring.models(reading, items=items),
            reading.log(labels, users=reading.users()),
            require=list(inference.requirements),
            exposure=showing.made(model, reading),
            metrics=asking.chosen_metrics(),
            estimators=asking.chosen_estimators(scoring, reading, items=items),
            exclude=reading.of("exclude").pairs(scoring.exclude),
            items=None if items is None else Ids.of(items),
            n_items=reading.n_items,
            difference=stopping.difference,
            planned=stopping.planned,
            drop_missing_times=stopping.drop_missing_times,
            level=inference.level,
            seed=inference.seed,
            threads=inference.threads,
            progress=report,
        )
    output.say(message.said(for_cli=True) for message in found.messages)
    if output.out is not None and is_picture(output):
        output.deliver(watch_picture(found, output.out.suffix.lower().removeprefix(".")))
        output.say(f"{pair}: {sentence(pair, found)}" for pair in found.pairs)
    elif output.chosen_form == "json":
        output.deliver(as_json(watch_plain(found)))
    elif output.chosen_form == "csv":
        output.deliver(as_csv(found.table().to_dicts()))
    else:
        output.deliver(encoded(watch_text(found)))
    code = int(found.outcome)
    if code:
        raise click.exceptions.Exit(code)
