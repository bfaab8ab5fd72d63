"""truerank advise."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truerank.cli.groups import InputFile, Reading, Scoring
from truerank.cli.options import PATH, Sections, common, file, grouped, only, shared
from truerank.cli.output import ANSWER_FORMS, Output
from truerank.core.errors import InputError

if TYPE_CHECKING:
    from truerank.evaluation.diagnostics import Diagnosis
    from truerank.reliability.advice import Advice


@click.command(cls=Sections)
@click.argument("log", type=PATH)
@grouped(Scoring, "scores: Scores of models that shall be evaluated on LOG; several are allowed.", "users", "exclude")
@grouped(
    Reading, "columns", "positive", "items: All items that could have been shown.",
    "n-items: How many items could have been shown; by default those in LOG.",
)  # fmt: skip
@shared("--sampled-candidates", is_flag=True, help="Also which sampled candidates keep the true order of models.")
@file(
    "--study", metavar="DIR",
    help="A folder of `truerank study reliability` for them; by default one that comes with truerank.",
)  # fmt: skip
@shared("--study-logger", metavar="NAME", help="The study's logging policy to take, instead of the nearest.")
@common("metric: One that was studied; by default nDCG@100, or else the study's last.")
@shared("--sparsity", type=float, help="Share of pairs not shown to give figures for, instead of LOG's.")
@common("n-users: How many users with a positive the evaluation has, instead of those of LOG.")
@common("top: How many choices to show.", default=10)
@grouped(Output, "format", "out", "quiet")
def advise(
    *,
    log: Path,
    scoring: Scoring,
    reading: Reading,
    sampled_candidates: bool,
    study: Path | None,
    study_logger: str | None,
    metrics: tuple[str, ...],
    sparsity: float | None,
    n_users: int | None,
    top: int,
    output: Output,
) -> None:
    """Report what kind of data LOG is, which estimators are valid for it, and which command to run next.

    LOG is any table of users and items, with labels or ratings, or of impressions at positions. With
    --sampled-candidates (or an option of it: --study, --study-logger, --metric, --sparsity, --n-users) the answer
    includes which sampled candidates keep the true order of models, by a study whose logs are like LOG: yours, or the
    nearer of two that come with truerank, on KuaiRec and Jester. Positives alone need --study-logger and --sparsity
    for that.

    \b
    truerank advise log.parquet --scores als=als.npz --scores pop=pop.parquet
    truerank advise log.parquet --sampled-candidates --n-items 10728 --study study
    """
    from truerank.evaluation.diagnostics import diagnose
    from truerank.io.atomic_write import MARKER
    from truerank.reliability.studied import FILES
    from truerank.report.advice import advice_answer, diagnosis_answer

    read = () if study is None else (study / name for name in (*FILES, MARKER))
    output.check([InputFile("log", log), *scoring.files(), *reading.files(), *read], forms=ANSWER_FORMS)
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
    if any((sampled_candidates, study, study_logger, metrics, sparsity is not None, n_users)):
        advice = _advice(
            log, study, reading, metrics, logger=study_logger, sparsity=sparsity, users=n_users, output=output
        )
    log_answer = diagnosis_answer(diagnosis, next_commands(diagnosis, log, reading, scoring))
    if advice is None:
        output.show(log_answer)
        return
    sampled = advice_answer(advice, top=top)
    document = {**log_answer.document, "candidates": sampled.document}
    output.show(log_answer, replace(sampled, document=document))


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


# ---------------------------------------------------------------------------------------------------------- what to run

STAND_IN = "model=scores.csv"  # in place of the user's own


def next_commands(diagnosis: Diagnosis, log: Path, reading: Reading, scoring: Scoring) -> list[str]:
    """What to run, in order: what checks the likely cause of doubt, then an evaluation of the models."""
    if any(message.code == "repeated-pairs" for message in diagnosis.findings):
        return []  # evaluations refuse such a log
    if diagnosis.exposed == "ranked":
        return [_offpolicy(diagnosis, log)]
    renamed = {kind: name for kind, name in diagnosis.columns.items() if kind not in (name, "propensity")}
    named = ",".join(f"{kind}={name}" for kind, name in renamed.items()) or reading.columns
    read = [*_option("--columns", named), *_option("--positive", reading.positive or diagnosis.needs_positive)]
    models = [word for name, path in scoring.paths().items() for word in ("--scores", f"{name}={path}")]
    words = [
        "evaluate",
        str(log),
        *read,
        *_catalogue(reading),
        "--exposure",
        str(diagnosis.exposed),
        *_exposure(diagnosis),
    ]
    words += _option("--exclude", None if scoring.exclude is None else str(scoring.exclude))
    command = _command([*words, *(models or ["--scores", STAND_IN])])
    seen = any(message.code == "drawn-among-unseen" for message in diagnosis.findings)
    return [_command(["advise", str(log), *read, "--exclude", "train.parquet"]), command] if seen else [command]


def _exposure(diagnosis: Diagnosis) -> list[str]:
    if diagnosis.extra.get("unlisted"):
        return ["--unlisted", "negative"]
    if diagnosis.exposed != "biased":
        return []
    if diagnosis.propensities:
        return ["--propensity", diagnosis.columns["propensity"]]
    from truerank.evaluation.diagnostics import propensity_models

    return ["--propensity", f"{propensity_models()[0]}:0.5"]


def _offpolicy(diagnosis: Diagnosis, log: Path) -> str:
    renamed = {kind: name for kind, name in diagnosis.columns.items() if kind != name and name not in diagnosis.rewards}
    words = ["offpolicy", str(log), *_option("--columns", ",".join(f"{k}={v}" for k, v in renamed.items()) or None)]
    words += [word for name in diagnosis.rewards for word in ("--reward", name)]
    if diagnosis.extra["chosen"]:
        return _command([*words, "--target", f"log=@exposure:{diagnosis.columns['propensity']}"])
    position = [] if diagnosis.propensities else ["--position", "log"]
    return _command([*words, "--target", f"log=@{diagnosis.columns['position']}", *position])


def _catalogue(reading: Reading) -> list[str]:
    return _option("--items", None if reading.items is None else str(reading.items))


def _option(name: str, value: str | None) -> list[str]:
    return [] if value is None else [name, value]


def _command(words: list[str]) -> str:
    return shlex.join(["truerank", *words])
