"""truerank plan."""

from __future__ import annotations

import click

from truerank.cli.inputs import (
    PAIRS,
    check_threads,
    check_users,
    chosen_estimators,
    chosen_interval,
    chosen_metrics,
    column_names,
    declared,
    input_files,
    policies,
    position_model,
    read_ids,
    read_log,
    read_models,
    scan_log,
)
from truerank.cli.options import Call, choice, command, common, count, file, flag, shared
from truerank.cli.output import check_call, place, progress_of, show
from truerank.core.errors import InputError

DRAWN = "out: Write the plan to a file: .txt .json .csv, or the chart as .svg .png .pdf."
ALLOCATING = ("per_user", "uniform", "likely", "batches", "draw")
PLANNING = ("pilot", "difference", "value", "relevant", "estimator", "baseline", "n_items")


@command(
    Target=("difference", "power"),
    Allocating=(
        flag("--allocate", help="Choose which items to expose, with known probabilities, and write a folder (--out)."),
        "per-user: Items to expose to each user.  [default: 20]",
        shared("--uniform", type=float, metavar="SHARE",
               help="Share of exposures spread evenly over all items, for future models.  [default: 0.25]"),
        shared("--likely", type=float, metavar="SHARE",
               help="Share of exposures for items likely to be relevant, estimated from --exclude.  [default: 0.25]"),
        count("--batches", help="Number of batches; later ones sample from the remaining items."),
        choice("--draw", ["systematic", "pivotal", "conditional-poisson"], help="Sampling algorithm."),
    ),
    Options=(
        file("--pilot", metavar="LOG",
             help="Labelled, randomly exposed rows of a pilot; without it, figures are assumed."),
        shared("--value", type=float, help="Without a pilot: approximate value of the metric for both models."),
        shared("--relevant", type=float,
               help="Without a pilot, for Recall: the share of items that are relevant to a user."),
        shared("--shared", type=float, default=0.0, help="Without a pilot: share of list items in common."),
    ),
    Scoring=("scores: Scores of at least two models, as for evaluate; with --pilot.", "users", "exclude"),
    Reading=(
        "columns", "positive",
        "population: With --allocate: the users to expose items to; by default those with scores.", "items",
        "n-items: Number of candidates of each user; needed without a pilot.",
    ),
    Request=(
        "metric: As Precision@10; several are allowed. Default with a pilot: those of evaluate.",
        "estimator: As hajek, horvitz-thompson, post-stratified, pooled. Default by metric, as in evaluate.",
    ),
    Inference=("baseline", "interval", "level", "seed: For random ties.", "threads"),
    Output=("format", f"{DRAWN} With --allocate: the folder.", "report", "verbose", "force", "quiet"),
)  # fmt: skip
def exposure(call: Call) -> None:
    """How many randomly exposed items per user, and how many users, a difference needs.

    From a pilot with the scores of models, or from assumed figures: --metric, --n-items and --value (for Recall also
    --relevant). With --allocate, choose instead which items to expose to whom, so that few labels compare the
    models precisely: DIR/shown.parquet has users, items and probabilities. Evaluate the labels with --exposure
    designed --design DIR.

    \b
    truerank plan exposure --allocate --scores als=als.npz --scores pop=pop.npz --exclude train.parquet \\
        --per-user 20 --metric Precision@50 --out design
    truerank plan exposure --difference 0.02 --pilot random.parquet --scores als=als.npz --scores pop=pop.npz
    truerank plan exposure --difference 0.02 --metric Precision@10 --n-items 3000 --value 0.1 --shared 0.5
    """
    from truerank.evaluation.planning import plan_exposure
    from truerank.report.plans import plan_answer

    for name in PLANNING if call.allocate else ALLOCATING:
        if getattr(call, name) not in (None, ()):
            says = "says how much data a difference needs, which --allocate does not; leave it out."
            raise InputError(f"--{name.replace('_', '-')} {says if call.allocate else 'goes with --allocate.'}")
    if call.allocate:
        _allocate(call)
        return
    if call.force:
        raise InputError("--force replaces the folder of --allocate.")
    check_call(call)
    if call.pilot is None and call.scores:
        raise InputError("--scores goes with --pilot, the labelled rows that they are evaluated on; add it.")
    if call.difference is None:
        raise InputError(
            "--difference is missing: the smallest difference of two models that matters; or say --allocate, to choose "
            "which items to expose."
        )
    with progress_of(call) as report:
        plan = plan_exposure(
            scan_log(call, "pilot", progress=report),
            None if call.pilot is None else read_models(call),
            metrics=chosen_metrics(call),
            estimators=chosen_estimators(call),
            exclude=scan_log(call, "exclude", progress=report, **PAIRS),
            items=declared(call, "items", "item"),
            interval=chosen_interval(call),
            progress=report,
            **call.given("difference", "power", "n_items", "value", "relevant", "shared", "baseline", "level", "seed",
                         "threads"),
        )  # fmt: skip
    show(call, plan_answer(plan))


@command(
    Target=("difference!", "power"),
    Options=(
        file("--pilot", metavar="LOG", help="A log of impressions; without it figures are assumed."),
        shared("--mean-reward", type=float, help="Without a pilot: the mean reward of a session, between 0 and 1."),
        shared("--effective", type=float,
               help="Without a pilot: effective sample size / sessions, as offpolicy prints it."),
        common("per-user", default=1.0, help="Without a pilot: sessions per user."),
        shared("--alike", type=float, default=0.0, help="Without a pilot: correlation between sessions of a user."),
    ),
    Policies=("target", "position"),
    Reading=("columns: Column names of the files, as session=visit,item=video_id.",),
    Request=("reward", "estimator: As ips, snips. Default: both."),
    Inference=(
        "baseline: Compare every target with this one instead of all pairs.", "level", "seed: For folds.", "threads"
    ),
    Output=("format", DRAWN, "report", "verbose", "quiet"),
)  # fmt: skip
def sessions(call: Call) -> None:
    """How many sessions of how many users a difference of two ranking policies needs.

    From a log with at least two targets, of which one may be the policy that logged (log=@position), or from assumed
    figures: --mean-reward and --effective.

    \b
    truerank plan sessions --difference 0.01 --pilot log.parquet --target new=@new --target log=@position --position log
    truerank plan sessions --difference 0.01 --mean-reward 0.2 --effective 0.4 --per-user 5 --alike 0.1
    """
    from truerank.estimators import RANKED
    from truerank.evaluation.planning import plan_sessions
    from truerank.report.plans import plan_answer

    check_call(call)
    if call.pilot is None and call.target:
        raise InputError("--target goes with --pilot, the log that targets are compared on; add it.")
    with progress_of(call) as report:
        plan = plan_sessions(
            call.pilot,
            None if call.pilot is None else policies(call, "target"),
            position=position_model(call),
            estimators=[RANKED.parse(text) for text in call.estimator] or None,
            rewards=list(call.reward) or None,
            columns=column_names(call, ranked=True),
            reward=call.mean_reward,
            progress=report,
            **call.given("difference", "power", "effective", "per_user", "alike", "baseline", "level", "seed",
                         "threads"),
        )  # fmt: skip
    show(call, plan_answer(plan))


def _allocate(call: Call) -> None:
    """Choose what to show, write it to a folder, and say what it saves."""
    from truerank.evaluation.design import design_exposure
    from truerank.exposure.kinds import FOLDER
    from truerank.io.atomic_write import check_place
    from truerank.io.paths import files_of
    from truerank.report.plans import design_answer

    check_place(place(call), kind=FOLDER, force=call.force,
                inputs=[part for file in input_files(call) for part in files_of(file.path)])  # fmt: skip
    check_threads(call)
    check_users(call)
    if not call.metric:
        raise InputError("--metric is missing: what will be reported, such as --metric Precision@50.")
    per_user = 20.0 if call.per_user is None else call.per_user
    if per_user != int(per_user) or per_user < 1:
        raise InputError(f"--per-user {per_user:g}; expected a whole number of items, from 1.")
    chosen = {name: value for name, value in call.given(*ALLOCATING).items() if value is not None}
    with progress_of(call) as report:
        planned = design_exposure(
            read_models(call),
            metrics=chosen_metrics(call) or (),
            exclude=read_log(call, "exclude", **PAIRS),
            users=declared(call, "population", "user"),
            items=read_ids(call, "items", "item"),
            progress=report,
            **{**chosen, "per_user": int(per_user)},
            **call.given("seed", "threads"),
        )
    planned.write(call.out, force=call.force)
    show(call.changed(out=None), design_answer(planned, call.out))  # the table, not the folder


plan = click.Group(
    "plan", commands=[exposure, sessions],
    help="How many users, labelled items or sessions a difference of two models needs.",
)  # fmt: skip
