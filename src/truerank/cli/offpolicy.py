"""truerank offpolicy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from truerank.cli.groups import Inference, InputFile, Reading, RequestOptions, input_files
from truerank.cli.options import PATH, Sections, choice, count, file, formatted, grouped, many, named, shared
from truerank.cli.output import RESULTS_FORMS, Output
from truerank.core.errors import InputError
from truerank.core.record import record

EXPOSURE = "exposure:"
ESTIMATORS = "ips, snips, doubly-robust, ndcg, post-normalised, dcg-raw, dcg-log-raw, dcg-log-debiased"


@record(kw_only=True)
class Policies:
    """Which rankings are asked about, which made the log, and how likely positions are viewed."""

    targets: tuple[str, ...] = ()
    loggers: tuple[str, ...] = ()
    position: str | None = None
    temperature: float | None = None
    n_candidates: int | None = None
    rows: str = "viewed"
    sessions: Path | None = None

    def chosen(self) -> dict[str, Any]:
        return _policies(self.targets, "--target")

    def logging(self) -> dict[str, Any] | None:
        return _policies(self.loggers, "--logger") or None

    def model(self) -> Any:
        from truerank.exposure.positions import parse_position

        return None if self.position is None else parse_position(self.position)

    def files(self) -> list[InputFile]:
        tables = [("target", self.chosen()), ("logger", self.logging() or {})]
        own = [InputFile(role, value, name) for role, policies in tables for name, value in policies.items()
               if isinstance(value, Path)]  # fmt: skip
        return [*own, *input_files(sessions=self.sessions)]


@click.command(cls=Sections)
@click.argument("log", type=PATH)
@grouped(
    Policies,
    "target!",
    many(
        "--logger", "loggers", metavar="NAME=@COLUMN",
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
        help="Whether the rows are viewed items (or a column viewed says which are), or all displayed ones.",
    ),
    file("--sessions", help="All sessions, also those in which nothing was viewed."),
)  # fmt: skip
@grouped(Reading, "columns: Column names of the files, as session=visit,item=video_id.")
@grouped(
    RequestOptions,
    "reward",
    shared(
        "--reward-range", metavar="LOW,HIGH",
        help="What rewards that are not 0/1 lie between: then bounds of what the log cannot show are known.",
    ),
    f"estimator: {ESTIMATORS}; with options as ips(normaliser=impression). Default: ips snips.",
    choice(
        "--normaliser", ["session", "impression", "mean-of-means"], default="session",
        help="What rewards are counted per, with ips and snips.",
    ),
    "clip: Upper limits of the weights, as 1,8,inf, or auto: the clip is chosen. With ips(of=inverse) of 1/propensity, "
    "as in the paper.  [default: inf]",
    "reward-model: Of doubly-robust: item-means, shrunk means of items (default), or column, columns prediction in log "
    "and targets.",
)  # fmt: skip
@grouped(
    Inference, "baseline: Compare every target with this one instead of all pairs.",
    "bootstrap: Intervals by N bootstrap samples of users (or sessions).", "level", "adjust", "require",
    "seed: For folds and the bootstrap.", "threads", "engine",
)  # fmt: skip
@grouped(
    Output, formatted(RESULTS_FORMS), "out", "within", "units", "save", "report", "verbose",
    "force: Replace the folder of --save, if truerank made all that it holds.", "hash", "quiet",
)  # fmt: skip
def offpolicy(
    *, log: Path, policies: Policies, reading: Reading, request: RequestOptions, inference: Inference, output: Output
) -> None:
    """Say what other ranking policies would have earned, and how sure that is.

    LOG is a table session,item,position,reward of what the deployed policy showed (.parquet .csv .tsv; a folder of
    parts, a glob); where there is a column user, intervals are over users. Without sessions each row is a unit of its
    own. With item-choice propensities instead of positions: a column propensity, and targets as @exposure:COLUMN.

    \b
    truerank offpolicy log.parquet --target new=ranks.parquet --target log=@position --baseline log \\
        --position fit:yule --reward like --reward complete --clip 8,64,inf
    """
    from truerank.evaluation.impressions import off_policy

    mapping = reading.mapping(ranked=True)
    files = [InputFile("log", log), *policies.files(), *output.files()]
    model, interval = policies.model(), inference.chosen_interval()
    estimators = [_estimator(text, request, seed=inference.seed) for text in request.estimators]
    clips = request.chosen_clips(auto=True)
    inference.check()
    required = inference.required(policies.chosen())
    output.check(files, forms=RESULTS_FORMS)
    with output.progress() as report:
        results = off_policy(
            log,
            policies.chosen(),
            position=model,
            clips=(float("inf"),) if clips is None else clips,
            estimators=estimators or None,
            normaliser=request.normaliser,
            rewards=list(request.rewards) or None,
            reward_range=request.chosen_range(),
            columns=mapping,
            sessions=reading.for_file("sessions").ids(policies.sessions, "session"),
            logged=policies.rows,
            loggers=policies.logging(),
            temperature=policies.temperature,
            n_candidates=policies.n_candidates,
            interval=interval,
            progress=report,
            **inference.arguments("baseline", "level", "adjust", "seed", "threads", "engine"),
        )
    output.results(results, files, reading=reading, required=required)


def _policies(values: tuple[str, ...], option: str) -> dict[str, Any]:
    """A table, or a column of the log, for each name."""
    given = named(values, option, expected="NAME=FILE or NAME=@COLUMN")
    for name, value in given.items():
        if not value.strip("@") or value == f"@{EXPOSURE}":
            raise InputError(f"{option} {f'{name}={value}'!r}: expected NAME=FILE or NAME=@COLUMN.")
    return {name: _policy(value) for name, value in given.items()}


def _policy(value: str) -> Any:
    if not value.startswith("@"):
        return Path(value)
    from truerank.exposure.policies.targets import ExposureColumn, RankColumn

    column = value[1:]
    return ExposureColumn(column.removeprefix(EXPOSURE)) if column.startswith(EXPOSURE) else RankColumn(column)


def _estimator(text: str, request: RequestOptions, *, seed: int) -> Any:
    """The estimator of a text form; what it does not say itself, other options say."""
    from truerank.core.language import kind_held
    from truerank.core.values import options_of
    from truerank.estimators import RANKED
    from truerank.estimators.impressions import Normaliser

    result: Any = RANKED.parse(text)
    options = options_of(type(result))
    others: dict[str, Any] = {"normaliser": Normaliser(request.normaliser), "seed": seed}
    models = kind_held(options["model"]) if "model" in options else None
    if request.reward_model is not None and models is not None:
        others["model"] = models.parse(request.reward_model)
    takes = [name for name in options if f"{name}=" not in text]
    return replace(result, **{name: value for name, value in others.items() if name in takes})
