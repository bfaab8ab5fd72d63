"""truerank advise."""

from __future__ import annotations

from pathlib import Path

import click

from truerank.cli.groups import InputFile, Reading
from truerank.cli.options import (
    COLUMNS,
    FORMAT,
    ITEMS,
    METRIC,
    N_ITEMS,
    N_USERS,
    OUT,
    PATH,
    POSITIVE,
    QUIET,
    Sections,
    file,
    grouped,
    only,
    shared,
)
from truerank.cli.output import Output
from truerank.core.errors import InputError


@click.command(cls=Sections)
@click.argument("log", type=PATH)
@file(
    "--study",
    metavar="DIR",
    help="The folder of a finished `truerank study reliability`; by default one that comes with truerank.",
)
@shared("--study-logger", metavar="NAME", help="The study's logger to take, instead of the nearest.")
@METRIC.here("One that was studied; by default nDCG@100, or else the study's last.")
@shared("--sparsity", type=float, help="Share of pairs not shown to give figures for, instead of LOG's.")
@N_USERS.here("How many users with a positive the evaluation has, instead of those of LOG.")
@shared("--top", type=click.IntRange(min=1), default=10, show_default=True, help="How many choices to show.")
@grouped(
    Reading,
    COLUMNS,
    POSITIVE,
    ITEMS.here("All items that could have been shown."),
    N_ITEMS.here("How many items could have been shown; by default those in LOG."),
)
@grouped(Output, FORMAT, OUT, QUIET)
def advise(
    *,
    log: Path,
    study: Path | None,
    study_logger: str | None,
    metrics: tuple[str, ...],
    sparsity: float | None,
    n_users: int | None,
    top: int,
    reading: Reading,
    output: Output,
) -> None:
    """Say which sampled candidates keep the true order of models best, on a log like yours.

    LOG is what was shown, with labels: positives and negatives. Its sparsity and the bias of its exposure are compared
    with those of the study's logs; the study then says how well each sampler and size keeps the order of models there,
    for as many users as LOG has. Without --study it is the nearest of two that come with truerank, on KuaiRec (short
    videos) and Jester (jokes). Positives alone need --study-logger and --sparsity.

    \b
    truerank advise log.parquet --n-items 10728
    truerank advise log.parquet --n-items 10728 --study study
    """
    from truerank.data.marker import MARKER
    from truerank.metrics import parse
    from truerank.report.advice import advice_csv, advice_plain, advice_text
    from truerank.report.text import as_json, encoded
    from truerank.studies.reliability.advising import advise as ask
    from truerank.studies.reliability.folder import FILES
    from truerank.studies.reliability.studied import Studied

    kept = () if study is None else (study / name for name in (*FILES, MARKER))
    output.check([InputFile("log", log), *reading.files(), *kept])
    if reading.items is not None and reading.n_items is not None:
        raise InputError("--items and --n-items both say what could have been shown; give one of them.")
    metric = only(metrics, "--metric")
    studied = None if study is None else Studied.read(study)
    shown = reading.log(log, items=reading.of("items").ids(reading.items, "item"))
    advice = ask(
        shown, studied, metric=None if metric is None else str(parse(metric)), n_items=reading.n_items,
        logger=study_logger, sparsity=sparsity, users=n_users,
    )  # fmt: skip
    if reading.items is None and reading.n_items is None and advice.log is not None:
        taken = f"the catalogue is taken to be the {advice.log.items:,} items in {log}"
        output.say([f"{taken}; --n-items or --items say otherwise."])
    if output.chosen_form == "json":
        output.deliver(as_json(advice_plain(advice, top=top)))
        return
    if output.chosen_form == "csv":
        output.deliver(advice_csv(advice, top=top).encode())
        return
    output.deliver(encoded(advice_text(advice, top=top)))
