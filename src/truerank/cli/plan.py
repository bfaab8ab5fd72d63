"""truerank plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truerank.cli.groups import Asking, Inference, InputFile, Reading, Scoring
from truerank.cli.offpolicy import POSITION, REWARD, TARGET, Policies
from truerank.cli.options import (
    BASELINE,
    COLUMNS,
    ESTIMATOR,
    EXCLUDE,
    FORMAT,
    ITEMS,
    LEVEL,
    METRIC,
    N_ITEMS,
    OUT,
    POSITIVE,
    QUIET,
    SCORES,
    SEED,
    THREADS,
    USERS,
    Sections,
    choice,
    file,
    grouped,
    shared,
)
from truerank.cli.output import Output
from truerank.core.errors import InputError

if TYPE_CHECKING:
    from truerank.evaluation.planning import SamplePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Wished:
    """The difference to be seen, and how surely."""

    difference: float
    power: float = 0.8


WISHED = (
    shared("--difference", type=float, help="The smallest difference of two models that matters.").here(required=True),
    shared("--power", type=float, default=0.8, show_default=True, help="How likely it is to be shown if it is there."),
)
DRAWN = OUT.here("Write the plan to a file: .txt .json .csv, or the chart as .svg .png .pdf .html.")
PICTURES = (".svg", ".png", ".pdf", ".html")


@click.group()
def plan() -> None:
    """How many users, judged items or sessions a difference of two models needs."""


@plan.command(cls=Sections)
@grouped(Wished, *WISHED)
@file("--pilot", metavar="LOG", help="Randomly exposed, judged rows of a pilot; without it figures are assumed.")
@grouped(Scoring, SCORES.here("Scores of at least two models, as for evaluate; with --pilot."), USERS, EXCLUDE)
@grouped(
    Reading,
    COLUMNS,
    POSITIVE,
    ITEMS.here("The catalogue; also names the columns of .npy and .npz scores without ids."),
    N_ITEMS.here("How many items compete for each user; needed without a pilot."),
)
@shared("--value", type=float, help="Without a pilot: the value of the metric that both models have, about.")
@shared("--relevant", type=float, help="Without a pilot, for Recall: the share of all items that a user likes.")
@shared("--shared", type=float, default=0.0, show_default=True, help="Without a pilot: share of listed items in both.")
@grouped(
    Asking,
    METRIC.here("As Precision@10; several are allowed. Default with a pilot: those of evaluate."),
    ESTIMATOR.here("As horvitz-thompson, hajek, pooled. Default by metric."),
)
@grouped(
    Inference,
    BASELINE,
    choice(
        "--interval", ["population", "design"], default="population",
        help="For the population these users come from, or for exactly these users.",
    ),
    LEVEL,
    SEED.here("For random ties."),
    THREADS,
)  # fmt: skip
@grouped(Output, FORMAT, DRAWN, QUIET)
def exposure(
    *,
    wished: Wished,
    pilot: Path | None,
    scoring: Scoring,
    reading: Reading,
    value: float | None,
    relevant: float | None,
    shared: float,
    asking: Asking,
    inference: Inference,
    output: Output,
) -> None:
    """How many randomly exposed items per user, and how many users, show a difference.

    From a pilot with the scores of models, or from assumed figures: --metric, --n-items and --value (for Recall also
    --relevant).

    \b
    truerank plan exposure --difference 0.02 --pilot random.parquet --scores als=als.npz --scores pop=pop.npz
    truerank plan exposure --difference 0.02 --metric Precision@10 --n-items 3000 --value 0.1 --shared 0.5
    """
    from truerank.core.ids import Ids
    from truerank.evaluation.planning import plan_exposure

    files = [*([] if pilot is None else [InputFile("pilot", pilot)]), *scoring.files(), *reading.files()]
    _check(output, files)
    inference.check()
    if pilot is None and scoring.scores:
        raise InputError("--scores goes with --pilot, the judged rows that they are evaluated on; add it.")
    items = reading.ids(reading.items, "item")
    with output.progress() as report:
        made = plan_exposure(
            None if pilot is None else reading.scan(pilot, progress=report),
            None if pilot is None else scoring.models(reading, items=items),
            difference=wished.difference,
            power=wished.power,
            metrics=asking.chosen_metrics(),
            estimators=asking.chosen_estimators(scoring, reading, items=items),
            exclude=reading.scan_pairs(scoring.exclude, progress=report),
            items=None if items is None else Ids.of(items),
            n_items=reading.n_items,
            baseline=inference.baseline,
            interval=inference.chosen_interval(),
            level=inference.level,
            value=value,
            relevant=relevant,
            shared=shared,
            seed=inference.seed,
            threads=inference.threads,
            progress=report,
        )
    _deliver(made, output)


@plan.command(cls=Sections)
@grouped(Wished, *WISHED)
@file("--pilot", metavar="LOG", help="A log of impressions; without it figures are assumed.")
@grouped(Policies, TARGET, POSITION)
@grouped(Reading, COLUMNS.here("Column names of the files, as session=visit,item=video_id."))
@shared("--mean-reward", type=float, help="Without a pilot: the mean reward of a session, between 0 and 1.")
@shared("--effective", type=float, help="Without a pilot: effective sample size / sessions, as offpolicy prints it.")
@shared("--per-user", type=float, default=1.0, show_default=True, help="Without a pilot: sessions per user.")
@shared(
    "--alike", type=float, default=0.0, show_default=True, help="Without a pilot: correlation of a user's sessions."
)
@grouped(Asking, REWARD, ESTIMATOR.here("As ips, snips. Default: both."))
@grouped(
    Inference,
    BASELINE.here("Compare every target with this one instead of all pairs."),
    LEVEL,
    SEED.here("For folds."),
    THREADS,
)
@grouped(Output, FORMAT, DRAWN, QUIET)
def sessions(
    *,
    wished: Wished,
    pilot: Path | None,
    policies: Policies,
    reading: Reading,
    mean_reward: float | None,
    effective: float | None,
    per_user: float,
    alike: float,
    asking: Asking,
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
    from truerank.estimators import ranked
    from truerank.evaluation.planning import plan_sessions

    files = [*([] if pilot is None else [InputFile("pilot", pilot)]), *policies.files()]
    _check(output, files)
    inference.check()
    if pilot is None and policies.targets:
        raise InputError("--target goes with --pilot, the log that targets are compared on; add it.")
    estimators = [ranked.parse(text) for text in asking.estimators]
    with output.progress() as report:
        made = plan_sessions(
            pilot,
            None if pilot is None else policies.chosen(),
            difference=wished.difference,
            power=wished.power,
            position=policies.model(),
            estimators=estimators or None,
            rewards=list(asking.rewards) or None,
            columns=reading.mapping(ranked=True),
            baseline=inference.baseline,
            level=inference.level,
            reward=mean_reward,
            effective=effective,
            per_user=per_user,
            alike=alike,
            seed=inference.seed,
            threads=inference.threads,
            progress=report,
        )
    _deliver(made, output)


def _is_picture(output: Output) -> bool:
    return output.format is None and output.out is not None and output.out.suffix.lower() in PICTURES


def _check(output: Output, files: list[InputFile]) -> None:
    output.check(files, results=False)
    if not _is_picture(output):
        output.chosen_form  # noqa: B018


def _deliver(made: SamplePlan, output: Output) -> None:
    from truerank.report.planned import plan_picture, plan_plain, plan_text
    from truerank.report.text import as_csv, as_json, encoded

    if output.out is not None and _is_picture(output):
        output.deliver(plan_picture(made, output.out.suffix.lower().removeprefix(".")))
    elif output.chosen_form == "json":
        output.deliver(as_json(plan_plain(made)))
    elif output.chosen_form == "csv":
        output.deliver(as_csv(made.table().to_dicts()))
    else:
        output.deliver(encoded(plan_text(made)))
