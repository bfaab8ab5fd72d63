"""truerank advise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from truerank.cli.groups import InputFile, Reading, Scoring
from truerank.cli.next_steps import next_commands
from truerank.cli.options import PATH, Sections, common, file, grouped, only, shared
from truerank.cli.output import Output
from truerank.core.errors import InputError

if TYPE_CHECKING:
    from truerank.reliability.advice import Advice


@click.command(cls=Sections)
@click.argument("log", type=PATH)
@grouped(Scoring, "scores: Scores of models that shall be evaluated on LOG; several are allowed.", "users", "exclude")
@grouped(
    Reading, "columns", "positive", "items: All items that could have been shown.",
    "n-items: How many items could have been shown; by default those in LOG.",
)  # fmt: skip
@file(
    "--study", metavar="DIR",
    help="The folder of a finished `truerank study reliability`; by default one that comes with truerank.",
)  # fmt: skip
@shared("--study-logger", metavar="NAME", help="The study's logger to take, instead of the nearest.")
@common("metric: One that was studied; by default nDCG@100, or else the study's last.")
@shared("--sparsity", type=float, help="Share of pairs not shown to give figures for, instead of LOG's.")
@common("n-users: How many users with a positive the evaluation has, instead of those of LOG.")
@shared("--top", type=click.IntRange(min=1), default=10, help="How many choices to show.")
@grouped(Output, "format", "out", "quiet")
def advise(
    *,
    log: Path,
    scoring: Scoring,
    reading: Reading,
    study: Path | None,
    study_logger: str | None,
    metrics: tuple[str, ...],
    sparsity: float | None,
    n_users: int | None,
    top: int,
    output: Output,
) -> None:
    """Say what LOG can tell: its columns, whether exposure looks random, which estimators are valid, what to run next.

    LOG is any table of users and items, with labels or ratings, or of impressions at positions. With --study,
    --study-logger, --metric, --sparsity or --n-users it also says which sampled candidates keep the true order of
    models best: LOG's sparsity and the bias of its exposure are compared with those of the study's logs. Without
    --study it is the nearest of two
    that come with truerank, on KuaiRec (short videos) and Jester (jokes). Positives alone need --study-logger and
    --sparsity for that.

    \b
    truerank advise log.parquet --scores als=als.npz --scores pop=pop.parquet
    truerank advise log.parquet --n-items 10728 --study study
    """
    from truerank.evaluation.diagnostics import diagnose
    from truerank.io.atomic_write import MARKER
    from truerank.reliability.studied import FILES
    from truerank.report.advice import (
        advice_plain,
        advice_rows,
        advice_text,
        diagnosis_plain,
        diagnosis_rows,
        diagnosis_text,
    )

    read = () if study is None else (study / name for name in (*FILES, MARKER))
    output.check([InputFile("log", log), *scoring.files(), *reading.files(), *read], shows="table")
    if reading.items is not None and reading.n_items is not None:
        raise InputError("--items and --n-items both say what could have been shown; give one of them.")
    items = reading.catalogue()
    diagnosis = diagnose(
        log,
        columns=reading.mapping(ranked=True),
        positive=reading.positive,
        exclude=reading.pairs(scoring.exclude),
        items=items,
        n_items=reading.n_items,
        scores=scoring.models(reading, items=items),
    )
    advice = None
    if any((study, study_logger, metrics, sparsity is not None, n_users)):
        advice = _advice(
            log, study, reading, metrics, logger=study_logger, sparsity=sparsity, users=n_users, output=output
        )
    commands = next_commands(diagnosis, log, reading, scoring)
    candidates = "" if advice is None else f"\nSampled candidates. {advice_text(advice, top=top)}"
    output.show(
        lambda: diagnosis_text(diagnosis, commands) + candidates,
        rows=lambda: diagnosis_rows(diagnosis) if advice is None else advice_rows(advice, top=top),
        document=lambda: {
            **diagnosis_plain(diagnosis, commands),
            "candidates": None if advice is None else advice_plain(advice, top=top),
        },
    )


def _advice(
    log: Path,
    study: Path | None,
    reading: Reading,
    metrics: tuple[str, ...],
    *,
    logger: str | None,
    sparsity: float | None,
    users: int | None,
    output: Output,
) -> Advice:
    """What a study says about candidates on such a log."""
    from truerank.metrics import parse
    from truerank.reliability.advice import advise as ask
    from truerank.reliability.studied import FinishedStudy

    metric = only(metrics, "--metric")
    studied = None if study is None else FinishedStudy.read(study)
    shown = reading.log(log, items=reading.catalogue())
    advice = ask(
        shown, studied, metric=None if metric is None else str(parse(metric)), n_items=reading.n_items, logger=logger,
        sparsity=sparsity, users=users,
    )  # fmt: skip
    if reading.items is None and reading.n_items is None and advice.log is not None:
        taken = f"the catalogue is taken to be the {advice.log.items:,} items in {log}"
        output.say([f"{taken}; --n-items or --items say otherwise."])
    return advice
