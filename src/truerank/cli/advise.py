"""truerank advise."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from truerank.cli.inputs import PAIRS, column_names, read_ids, read_log, read_models, score_files
from truerank.cli.options import Call, command, common, file, flag, only, shared
from truerank.cli.output import check_call, say, show
from truerank.core.errors import InputError

if TYPE_CHECKING:
    from truerank.evaluation.diagnostics import Diagnosis
    from truerank.reliability.advice import Advice


@command(
    "log",
    Scoring=("scores: Scores of the models to evaluate on LOG; several are allowed.", "users", "exclude"),
    Reading=(
        "columns", "positive", "items: All items that could have been exposed.",
        "n-items: How many items could have been exposed; by default those in LOG.",
    ),
    Options=(
        flag("--sampled-candidates", help="Also recommend which sampled candidates preserve the true order of models."),
        file(
            "--study", metavar="DIR",
            help="A folder of `truerank study reliability` for them; by default one that comes with truerank.",
        ),
        shared("--study-logger", metavar="NAME", help="Logging policy of the study, instead of the nearest."),
        "metric: A metric of the study; by default nDCG@100, or else the study's last.",
        shared("--sparsity", type=float, help="Share of unobserved pairs, instead of that of LOG."),
        "n-users: How many users with a positive the evaluation has, instead of those of LOG.",
        common("top", default=10, help="How many choices to list."),
    ),
    Output=("format", "out", "quiet"),
)  # fmt: skip
def advise(call: Call) -> None:
    """Report what kind of data LOG is, which estimators are valid, and which command to run next.

    LOG is any table of users and items, with labels or ratings, or of impressions at positions. With
    --sampled-candidates (or an option of it: --study, --study-logger, --metric, --sparsity, --n-users) the answer
    includes which sampled candidates preserve the true order of models, from a study of similar logs: your own, or the
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

    check_call(call, inputs=[call.study / name for name in (*FILES, MARKER)] if call.study else ())
    if call.items is not None and call.n_items is not None:
        raise InputError("--items and --n-items both give the catalogue; give one of them.")
    diagnosis = diagnose(
        call.log,
        columns=column_names(call, ranked=True),
        exclude=read_log(call, "exclude", **PAIRS),
        items=read_ids(call, "items", "item"),
        scores=read_models(call),
        **call.given("positive", "n_items"),
    )
    advice = None
    about_candidates = (call.sampled_candidates, call.study, call.study_logger, call.metric, call.n_users)
    if any(about_candidates) or call.sparsity is not None:
        advice = _advice(call)
    commands = next_commands(diagnosis, call)
    hints = [text for name, text in REPLACE.items() if any(name in command for command in commands)]
    answer = diagnosis_answer(diagnosis, commands, hints=hints)
    if advice is None:
        show(call, answer)
        return
    sampled = advice_answer(advice, top=call.top)
    show(call, answer, replace(sampled, document=answer.document | {"candidates": sampled.document}))


def _advice(call: Call) -> Advice:
    """What a study says about candidates on such a log."""
    from truerank.metrics import parse
    from truerank.reliability.advice import advise as ask
    from truerank.reliability.studied import FinishedStudy

    metric = only(call.metric, "--metric")
    advice = ask(
        read_log(call, "log", items=read_ids(call, "items", "item")),
        None if call.study is None else FinishedStudy.read(call.study),
        metric=None if metric is None else str(parse(metric)),
        logger=call.study_logger,
        users=call.n_users,
        **call.given("n_items", "sparsity"),
    )
    if call.items is None and call.n_items is None and advice.log is not None:
        taken = f"the catalogue is taken to be the {advice.log.items:,} items in {call.log}"
        say(call, [f"{taken}; --n-items or --items say otherwise."])
    return advice


# ---------------------------------------------------------------------------------------------------------- what to run

STAND_IN = "model=scores.csv"  # in place of the user's own
REPLACE = {  # what commands name in place of the user's own files
    STAND_IN: "Replace scores.csv by the scores of your model, a table user,item,score.",
    "--exclude train.parquet": "Replace train.parquet by the pairs that users had seen before, a table user,item.",
    "log=@exposure:": "Add your policy as --target new=@exposure:COLUMN: its probability of the item of each row.",
    "log=@position": "Add your ranker as --target new=FILE, a table session,item,rank of all items it would display.",
}


def next_commands(diagnosis: Diagnosis, call: Call) -> list[str]:
    """What to run, in order: what checks the likely cause of doubt, then an evaluation of the models."""
    codes = {message.code for message in diagnosis.findings}
    if "repeated-pairs" in codes:
        return []  # evaluations refuse such a log
    names = diagnosis.columns
    if diagnosis.exposed == "ranked":
        chosen = diagnosis.extra["chosen"]
        target = f"@exposure:{names['propensity']}" if chosen else f"@{names['position']}"
        return [_command("offpolicy", call, columns=call.columns, reward=diagnosis.rewards, target=f"log={target}",
                         position=None if chosen or diagnosis.propensities else "log")]  # fmt: skip
    read = {"columns": call.columns, "positive": call.positive or diagnosis.needs_positive}
    models = [f"{name}={path}" for name, path in score_files(call).items()]
    evaluation = _command("evaluate", call, **read, items=call.items, exposure=diagnosis.exposed,
                          **_exposure(diagnosis), exclude=call.exclude, scores=models or STAND_IN)  # fmt: skip
    check = _command("advise", call, **read, exclude="train.parquet")
    return [check, evaluation] if "drawn-among-unseen" in codes else [evaluation]


def _exposure(diagnosis: Diagnosis) -> dict[str, str]:
    if diagnosis.extra.get("unlisted"):
        return {"unlisted": "negative"}
    if diagnosis.exposed != "biased":
        return {}
    from truerank.evaluation.diagnostics import propensity_models

    known = diagnosis.propensities
    return {"propensity": diagnosis.columns["propensity"] if known else f"{propensity_models()[0]}:0.5"}


def _command(name: str, call: Call, **options: Any) -> str:
    words = ["truerank", name, str(call.log)]
    for option, values in options.items():
        for value in values if isinstance(values, list | tuple) else [values]:
            words += [] if value is None else [f"--{option}", str(value)]
    return shlex.join(words)
