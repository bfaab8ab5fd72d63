"""truerank watch."""

from __future__ import annotations

from pathlib import Path

import click

from truerank.cli.collection import COLLECTION, Collection
from truerank.cli.groups import Inference, InputFile, Reading, RequestOptions, Scoring
from truerank.cli.options import PATH, Sections, count, grouped
from truerank.cli.output import ANSWER_FORMS, PICTURES, Output
from truerank.core.record import record


@record(kw_only=True)
class Stopping:
    """When to stop."""

    difference: float | None = None
    planned: int = 10_000
    drop_missing_times: bool = False


@click.command(cls=Sections)
@click.argument("labels", type=PATH)
@grouped(Scoring, "scores!", "users", "exclude")
@grouped(Reading, "columns", "positive", "population", "items", "n-items")
@grouped(Collection, *COLLECTION)
@grouped(RequestOptions, "metric", "estimator: Default by exposure and metric.")
@grouped(
    Stopping,
    "difference: Stop also when the difference is known to less than this; the smallest that matters.",
    count("--planned", default=10_000, help="About how many users are expected; chosen before the first look."),
    "drop-missing-times",
)
@grouped(
    Inference,
    'require!: What is to be shown, as "a > b" or "a > b: Precision@10": 0 if it is, 4 not yet, 5 the opposite.',
    "level", "seed: For random ties, and users who came at one time.", "threads",
)  # fmt: skip
@grouped(
    Output, "format", "out: Write to a file: .txt .json .csv, or the picture as .svg .png .pdf.", "report", "verbose",
    "quiet",
)  # fmt: skip
def watch(
    *,
    labels: Path,
    scoring: Scoring,
    reading: Reading,
    collection: Collection,
    request: RequestOptions,
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
    from truerank.report.plans import watch_answer

    collection = collection.decided(labels, reading)
    collection.check(compared=False)
    model, reading = collection.model(reading)
    collection.check_uses(model, compared=False)
    files = [InputFile("labels", labels), *scoring.files(), *reading.files(), *collection.files()]
    inference.check()
    inference.required(scoring.paths())
    output.check(files, forms=(*ANSWER_FORMS, *PICTURES))
    scoring.check()
    items = reading.catalogue()
    with output.progress() as report:
        watched = run(
            scoring.models(reading, items=items),
            reading.log(labels, users=reading.users()),
            require=list(inference.requirements),
            exposure=collection.read(model, reading),
            metrics=request.chosen_metrics(),
            estimators=request.chosen_estimators(scoring, reading, items=items),
            exclude=reading.for_file("exclude").pairs(scoring.exclude),
            items=None if items is None else Ids.of(items),
            n_items=reading.n_items,
            difference=stopping.difference,
            planned=stopping.planned,
            drop_missing_times=stopping.drop_missing_times,
            progress=report,
            **inference.arguments("level", "seed", "threads"),
        )
    output.say_notes(watched.messages)
    output.show(watch_answer(watched))
    code = int(watched.outcome)
    if code:
        raise click.exceptions.Exit(code)
