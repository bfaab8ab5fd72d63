"""truerank offpolicy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from truerank.cli.inputs import (
    chosen_clips,
    chosen_interval,
    chosen_range,
    column_names,
    policies,
    position_model,
    read_ids,
    required,
)
from truerank.cli.options import Call, choice, command, count, file, many, shared
from truerank.cli.output import RESULTS, check_call, deliver_results, progress_of

ESTIMATORS = "ips, snips, doubly-robust, ndcg, post-normalised, dcg-raw, dcg-log-raw, dcg-log-debiased"


@command(
    "log",
    Policies=(
        "target!",
        many(
            "--logger", metavar="NAME=@COLUMN",
            help="Several logging policies: for each value of the column logger its rank (or @exposure:) column.",
        ),
        "position",
        shared(
            "--temperature", type=float, metavar="NUMBER",
            help="Targets with scores rank at random, in proportion to exp(score / NUMBER); 0 ranks them in order.",
        ),
        count("--n-candidates", help="Targets with scores rank so many items, drawn at random.  [default: all]"),
        choice(
            "--rows", ["viewed", "displayed"], default="viewed",
            help="Whether rows are viewed items (or a column viewed marks them) or all displayed items.",
        ),
        file("--sessions", help="All sessions, including those without a view."),
    ),
    Reading=("columns: Column names of the files, as session=visit,item=video_id.",),
    Request=(
        "reward",
        shared(
            "--reward-range", metavar="LOW,HIGH",
            help="Smallest and largest possible reward, where it is not 0/1, for bounds where the log has no support.",
        ),
        f"estimator: {ESTIMATORS}; with options as ips(normaliser=impression). Default: ips snips.",
        choice(
            "--normaliser", ["session", "impression", "mean-of-means"], default="session",
            help="Unit of the mean reward, with ips and snips.",
        ),
        "clip: Upper limits of the weights, as 1,8,inf, or auto: the clip is chosen. With ips(of=inverse) of "
        "1/propensity, as in the paper.  [default: inf]",
        "reward-model: Of doubly-robust: item-means, shrunk means of items (default), or column, columns prediction in "
        "log and targets.",
    ),
    Inference=(
        "baseline: Compare every target with this one instead of all pairs.",
        "bootstrap: Intervals by N bootstrap samples of users (or sessions).", "level", "adjust", "require",
        "seed: For folds and the bootstrap.", "threads", "engine",
    ),
    Output=RESULTS,
)  # fmt: skip
def offpolicy(call: Call) -> None:
    """Estimate the reward of other ranking policies from a log of impressions, with confidence intervals.

    LOG is a table session,item,position,reward of what the deployed policy displayed (.parquet .csv .tsv; a folder of
    parts, a glob); where there is a column user, intervals are over users. Without sessions each row is a unit of its
    own. With item-choice propensities instead of positions: a column propensity, and targets as @exposure:COLUMN.

    \b
    truerank offpolicy log.parquet --target new=ranks.parquet --target log=@position --baseline log \\
        --position fit:yule --reward like --reward complete --clip 8,64,inf
    """
    from truerank.evaluation.impressions import off_policy

    columns, targets = column_names(call, ranked=True), policies(call, "target")
    files = check_call(call)
    position, interval, rules = position_model(call), chosen_interval(call), required(call, targets)
    clips, estimators = chosen_clips(call, auto=True), [_estimator(text, call) for text in call.estimator]
    with progress_of(call) as report:
        results = off_policy(
            call.log,
            targets,
            position=position,
            clips=(math.inf,) if clips is None else clips,
            estimators=estimators or None,
            rewards=list(call.reward) or None,
            reward_range=chosen_range(call),
            columns=columns,
            sessions=read_ids(call, "sessions", "session"),
            logged=call.rows,
            loggers=policies(call, "logger") or None,
            interval=interval,
            progress=report,
            **call.given("normaliser", "temperature", "n_candidates", "baseline", "level", "adjust", "seed",
                         "threads", "engine"),
        )  # fmt: skip
    deliver_results(call, results, files, rules)


def _estimator(text: str, call: Call) -> Any:
    """The estimator of a text form; what it does not say itself, other options say."""
    from truerank.core.language import kind_held
    from truerank.core.values import options_of
    from truerank.estimators import RANKED
    from truerank.estimators.impressions import Normaliser

    result: Any = RANKED.parse(text)
    options = options_of(type(result))
    others: dict[str, Any] = {"normaliser": Normaliser(call.normaliser), "seed": call.seed}
    models = kind_held(options["model"]) if "model" in options else None
    if call.reward_model is not None and models is not None:
        others["model"] = models.parse(call.reward_model)
    takes = [name for name in options if f"{name}=" not in text]
    return replace(result, **{name: value for name, value in others.items() if name in takes})
