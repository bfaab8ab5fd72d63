"""truerank plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truerank.cli.groups import Inference, InputFile, Reading, RequestOptions, Scoring
from truerank.cli.offpolicy import Policies
from truerank.cli.options import Sections, choice, common, count, file, grouped, shared
from truerank.cli.output import ANSWER_FORMS, PICTURES, Output
from truerank.core.errors import InputError
from truerank.core.record import record

if TYPE_CHECKING:
    from truerank.evaluation.planning import SamplePlan


@record(kw_only=True)
class Target:
    """The difference to be seen, and how surely."""

    difference: float | None = None
    power: float = 0.8

    @property
    def smallest(self) -> float:
        if self.difference is None:
            raise InputError(
                "--difference is missing: the smallest difference of two models that matters; or say --allocate, to "
                "choose what to show."
            )
        return self.difference


@record(kw_only=True)
class Allocating:
    """Which items to show, and with what chance."""

    allocate: bool = False
    per_user: float | None = None
    uniform: float | None = None
    likely: float | None = None
    batches: int | None = None
    draw: str | None = None

    def check(self, **others: object) -> None:
        """Options of the one kind of plan are refused with the other."""
        options = {"per-user": self.per_user, "uniform": self.uniform, "likely": self.likely, "batches": self.batches,
               "draw": self.draw}  # fmt: skip
        odd = [f"--{name}" for name, value in (others if self.allocate else options).items() if value is not None]
        if odd and self.allocate:
            raise InputError(
                f"{odd[0]} says how much data a difference needs, which --allocate does not; leave it out."
            )
        if odd:
            raise InputError(f"{odd[0]} goes with --allocate.")

    @property
    def n(self) -> int:
        wanted = 20.0 if self.per_user is None else self.per_user
        if wanted != int(wanted) or wanted < 1:
            raise InputError(f"--per-user {wanted:g}; expected a whole number of items, from 1.")
        return int(wanted)


ALLOCATING = (
    shared("--allocate", is_flag=True, help="Choose what to expose, with known probabilities: writes a folder, --out."),
    "per-user: Items to show to each user.  [default: 20]",
    shared("--uniform", type=float, metavar="SHARE",
           help="Share of what is shown that goes to every item alike, for models not known yet.  [default: 0.25]"),
    shared("--likely", type=float, metavar="SHARE",
           help="Share that goes to what is likely to be relevant, by --exclude.  [default: 0.25]"),
    count("--batches", help="Show in so many parts; later ones draw from what earlier ones left."),
    choice("--draw", ["systematic", "pivotal", "conditional-poisson"], help="How items are drawn."),
)  # fmt: skip
DRAWN = "out: Write the plan to a file: .txt .json .csv, or the chart as .svg .png .pdf."


@click.group()
def plan() -> None:
    """How many users, labelled items or sessions a difference of two models needs; what a run would take."""


@plan.command(cls=Sections)
@grouped(Target, "difference", "power")
@grouped(Allocating, *ALLOCATING)
@file("--pilot", metavar="LOG", help="Randomly exposed, labelled rows of a pilot; without it figures are assumed.")
@grouped(Scoring, "scores: Scores of at least two models, as for evaluate; with --pilot.", "users", "exclude")
@grouped(
    Reading, "columns", "positive",
    "population: With --allocate: the users to show items to; by default those with scores.", "items",
    "n-items: How many items compete for each user; needed without a pilot.",
)  # fmt: skip
@shared("--value", type=float, help="Without a pilot: the value of the metric that both models have, about.")
@shared("--relevant", type=float, help="Without a pilot, for Recall: the share of all items that a user likes.")
@shared("--shared", type=float, default=0.0, help="Without a pilot: share of listed items in both.")
@grouped(
    RequestOptions,
    "metric: As Precision@10; several are allowed. Default with a pilot: those of evaluate.",
    "estimator: As hajek, horvitz-thompson, post-stratified, pooled. Default by metric, as in evaluate.",
)
@grouped(Inference, "baseline", "interval", "level", "seed: For random ties.", "threads")
@grouped(Output, "format", f"{DRAWN} With --allocate: the folder.", "report", "verbose", "force", "quiet")
def exposure(
    *,
    target: Target,
    allocating: Allocating,
    pilot: Path | None,
    scoring: Scoring,
    reading: Reading,
    value: float | None,
    relevant: float | None,
    shared: float,
    request: RequestOptions,
    inference: Inference,
    output: Output,
) -> None:
    """How many randomly exposed items per user, and how many users, show a difference.

    From a pilot with the scores of models, or from assumed figures: --metric, --n-items and --value (for Recall also
    --relevant). With --allocate instead which items to show to whom, so that few of them tell most about the models
    given: DIR/shown.parquet has users, items and probabilities; evaluate what comes back with --exposure designed
    --design DIR.

    \b
    truerank plan exposure --allocate --scores als=als.npz --scores pop=pop.npz --exclude train.parquet \\
        --per-user 20 --metric Precision@50 --out design
    truerank plan exposure --difference 0.02 --pilot random.parquet --scores als=als.npz --scores pop=pop.npz
    truerank plan exposure --difference 0.02 --metric Precision@10 --n-items 3000 --value 0.1 --shared 0.5
    """
    from truerank.core.ids import Ids
    from truerank.evaluation.planning import plan_exposure

    files = [*([] if pilot is None else [InputFile("pilot", pilot)]), *scoring.files(), *reading.files()]
    allocating.check(
        pilot=pilot, difference=target.difference, value=value, relevant=relevant, estimator=request.estimators or None,
        baseline=inference.baseline, **{"n-items": reading.n_items},
    )  # fmt: skip
    if allocating.allocate:
        _allocate(allocating, scoring=scoring, reading=reading, request=request, inference=inference, output=output)
        return
    if output.force:
        raise InputError("--force replaces the folder of --allocate.")
    output.check(files, forms=(*ANSWER_FORMS, *PICTURES))
    inference.check()
    if pilot is None and scoring.scores:
        raise InputError("--scores goes with --pilot, the labelled rows that they are evaluated on; add it.")
    items = reading.catalogue()
    with output.progress() as report:
        result = plan_exposure(
            None if pilot is None else reading.scan(pilot, progress=report),
            None if pilot is None else scoring.models(reading, items=items),
            difference=target.smallest,
            power=target.power,
            metrics=request.chosen_metrics(),
            estimators=request.chosen_estimators(scoring, reading, items=items),
            exclude=reading.scan_pairs(scoring.exclude, progress=report),
            items=None if items is None else Ids.of(items),
            n_items=reading.n_items,
            interval=inference.chosen_interval(),
            value=value,
            relevant=relevant,
            shared=shared,
            progress=report,
            **inference.arguments("baseline", "level", "seed", "threads"),
        )
    _deliver(result, output)


@plan.command(cls=Sections)
@grouped(Target, "difference!", "power")
@file("--pilot", metavar="LOG", help="A log of impressions; without it figures are assumed.")
@grouped(Policies, "target", "position")
@grouped(Reading, "columns: Column names of the files, as session=visit,item=video_id.")
@shared("--mean-reward", type=float, help="Without a pilot: the mean reward of a session, between 0 and 1.")
@shared("--effective", type=float, help="Without a pilot: effective sample size / sessions, as offpolicy prints it.")
@common("per-user: Without a pilot: sessions per user.", default=1.0)
@shared("--alike", type=float, default=0.0, help="Without a pilot: correlation of a user's sessions.")
@grouped(RequestOptions, "reward", "estimator: As ips, snips. Default: both.")
@grouped(
    Inference, "baseline: Compare every target with this one instead of all pairs.", "level", "seed: For folds.",
    "threads",
)  # fmt: skip
@grouped(Output, "format", DRAWN, "report", "verbose", "quiet")
def sessions(
    *,
    target: Target,
    pilot: Path | None,
    policies: Policies,
    reading: Reading,
    mean_reward: float | None,
    effective: float | None,
    per_user: float,
    alike: float,
    request: RequestOptions,
    inference: Inference,
    output: Output,
) -> None:
    """How many sessions of how many users show a difference of two ranking policies.

    From a log with at least two targets, of which one may be the policy that logged (log=@position), or from assumed
    figures: --mean-reward and --effective.

    \b
    truerank plan sessions --difference 0.01 --pilot log.parquet --target new=@new --target log=@position --position log
    truerank plan sessions --difference 0.01 --mean-reward 0.2 --effective 0.4 --per-user 5 --alike 0.1
    """
    from truerank.estimators import RANKED
    from truerank.evaluation.planning import plan_sessions

    files = [*([] if pilot is None else [InputFile("pilot", pilot)]), *policies.files()]
    output.check(files, forms=(*ANSWER_FORMS, *PICTURES))
    inference.check()
    if pilot is None and policies.targets:
        raise InputError("--target goes with --pilot, the log that targets are compared on; add it.")
    estimators = [RANKED.parse(text) for text in request.estimators]
    with output.progress() as report:
        result = plan_sessions(
            pilot,
            None if pilot is None else policies.chosen(),
            difference=target.smallest,
            power=target.power,
            position=policies.model(),
            estimators=estimators or None,
            rewards=list(request.rewards) or None,
            columns=reading.mapping(ranked=True),
            reward=mean_reward,
            effective=effective,
            per_user=per_user,
            alike=alike,
            progress=report,
            **inference.arguments("baseline", "level", "seed", "threads"),
        )
    _deliver(result, output)


def _allocate(
    allocating: Allocating,
    *,
    scoring: Scoring,
    reading: Reading,
    request: RequestOptions,
    inference: Inference,
    output: Output,
) -> None:
    """Choose what to show, write it to a folder, and say what it saves."""
    from truerank.evaluation.design import SHARE, design_exposure
    from truerank.exposure.kinds import FOLDER
    from truerank.io.atomic_write import check_place
    from truerank.io.paths import files_of
    from truerank.report.plans import design_answer

    place = output.place
    files = [*scoring.files(), *reading.files()]
    check_place(place, kind=FOLDER, force=output.force, inputs=[part for file in files for part in files_of(file.path)])
    inference.check()
    scoring.check()
    if not request.metrics:
        raise InputError("--metric is missing: what will be reported, such as --metric Precision@50.")
    items = reading.catalogue()
    with output.progress() as report:
        result = design_exposure(
            scoring.models(reading, items=items),
            metrics=request.chosen_metrics() or (),
            per_user=allocating.n,
            exclude=reading.for_file("exclude").pairs(scoring.exclude),
            users=reading.users(),
            items=items,
            uniform=SHARE if allocating.uniform is None else allocating.uniform,
            likely=SHARE if allocating.likely is None else allocating.likely,
            batches=1 if allocating.batches is None else allocating.batches,
            draw=allocating.draw or "systematic",
            progress=report,
            **inference.arguments("seed", "threads"),
        )
    result.write(place, force=output.force)
    replace(output, out=None).show(design_answer(result, place))  # the table, not the folder


def _deliver(result: SamplePlan, output: Output) -> None:
    from truerank.report.plans import plan_answer

    output.show(plan_answer(result))
