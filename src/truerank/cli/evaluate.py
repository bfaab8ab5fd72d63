"""truerank evaluate and truerank watch."""

from __future__ import annotations

from truerank.cli.collection import (
    COLLECTION,
    LIKE,
    check_propensities,
    read_exposure,
    read_features,
    with_exposure,
    with_propensities,
)
from truerank.cli.inputs import (
    PAIRS,
    chosen_clips,
    chosen_estimators,
    chosen_interval,
    chosen_metrics,
    column_names,
    declared,
    read_groups,
    read_log,
    read_models,
    required,
    scan_log,
    score_files,
    score_reader,
)
from truerank.cli.options import Call, choice, command, count, file
from truerank.cli.output import (
    RESULTS,
    check_call,
    deliver_results,
    end,
    progress_of,
    say_notes,
    show,
)

ESTIMATORS = (
    "assisted, doubly-robust, full, hajek, holdout, horvitz-thompson, intervened, intervened-pooled, ips, judge-alone, "
    "lists, naive, pairs, pooled, post-normalised, post-stratified, published, snips, traditional"
)
READING = ("columns", "positive", "population", "items", "n-items")


@command(
    "labels",
    Scoring=(
        "scores!", "users", "exclude",
        choice(
            "--overlap", ["drop", "keep", "error"], default="drop",
            help="What happens to an item that is both labelled and excluded.",
        ),
        choice(
            "--lists", ["top", "complete"],
            help="top: lists are the top of a longer ranking; complete: they are all that a model would display "
            "(default with --exposure holdout).",
        ),
        file("--candidates", help="A table user,item (query, document): the candidate set of each user."),
    ),
    Reading=READING,
    Collection=(LIKE, *COLLECTION),
    Request=(
        'metric: As Recall@50, "Recall@{5,50}" or "AP@10(denominator=positives)"; several are allowed. Default: '
        "Recall@10 Precision@10 nDCG@10 HitRate@10 RR@10 for hold-outs, else Recall@10 Recall@50 Precision@10 DCG@10.",
        f"estimator: {ESTIMATORS}; with options as ips(clip=8). Default by exposure and metric.",
        "clip",
        "reward-model: Of doubly-robust: item-rates, the rates of items among other users (default), or a file of "
        "predicted labels of all pairs, as scores.",
        file(
            "--judge",
            help="A table user,item,label or probability, or qrels: labels of a judge (an LLM, a click model) for all "
            "or many pairs; assisted corrects them by the labels, judge-alone is given for comparison.",
        ),
        file("--assist", help="Scores that predict labels, for assisted: those of any recommender."),
        file(
            "--item-groups", help="A table item,group: also the metrics of each group of items alone."
        ),
        choice(
            "--ties", ["expected", "random", "optimistic", "pessimistic", "strict"], default="expected",
            help="The order of equal scores.",
        ),
    ),
    Inference=(
        "baseline", "interval", "bootstrap: Population intervals by N bootstrap samples of users.", "level", "adjust",
        "require", "seed: For random ties and the bootstrap.", "threads", "engine",
    ),
    Output=RESULTS,
)  # fmt: skip
def evaluate(call: Call) -> None:
    """Compare recommenders from labels: which is better, by how much, with confidence intervals.

    LABELS is a table user,item,label (.parquet .csv .tsv, TREC .qrels; a folder of parts, a glob), which need not fit
    into memory. With --exposure random its rows are a uniform random sample of each user's candidates; with
    --exposure full every candidate is labelled; with --exposure holdout its rows are what was held out of a log; with
    --exposure designed they were drawn with known probabilities; with --exposure biased some pairs were more likely to
    be exposed.

    \b
    truerank evaluate random.parquet --positive ">3" --exposure random --exclude train.parquet \\
        --scores als=als.npz --scores pop=pop.parquet --metric "Recall@{10,50}" --metric DCG@50
    """
    from truerank.core.metric import ListNeed
    from truerank.evaluation.compatibility import needed
    from truerank.evaluation.label_facts import read_judge
    from truerank.evaluation.labels import evaluate as run

    metrics = chosen_metrics(call)
    compared = ListNeed.FEATURES in needed(metrics or ())
    call = with_exposure(call, compared=compared)
    model, call = with_propensities(call, compared=compared)
    files = check_call(call)
    clips, interval, rules = chosen_clips(call), chosen_interval(call), required(call, score_files(call))
    items, users, estimators = (
        declared(call, "items", "item"),
        declared(call, "population", "user"),
        chosen_estimators(call),
    )
    exposure = read_exposure(call, model)
    with progress_of(call) as report:
        labels = scan_log(call, "labels", users=users, progress=report)
        check_propensities(call, labels, model)
        results = run(
            read_models(call),
            labels,
            exposure=exposure,
            metrics=metrics,
            estimators=estimators,
            clips=clips,
            exclude=scan_log(call, "exclude", progress=report, **PAIRS),
            candidates=scan_log(call, "candidates", progress=report, **PAIRS),
            items=items,
            item_groups=read_groups(call, "item_groups", "item"),
            item_features=read_features(call, "item", every=True) if compared else None,
            judge=None if call.judge is None else read_judge(
                call.judge, columns=column_names(call, "judge"), positive=call.positive
            ),
            assist=None if call.assist is None else score_reader(call)(call.assist),
            interval=interval,
            progress=report,
            **call.given("overlap", "n_items", "lists", "like", "ties", "baseline", "level", "adjust", "seed",
                         "threads", "engine"),
        )  # fmt: skip
    deliver_results(call, results, files, rules)


@command(
    "labels",
    Scoring=("scores!", "users", "exclude"),
    Reading=READING,
    Collection=COLLECTION,
    Request=("metric", "estimator: Default by exposure and metric."),
    Stopping=(
        "difference: Stop also when the models are equivalent within this margin.",
        count("--planned", default=10_000, help="Expected number of users, chosen before the first interim analysis."),
        "drop-missing-times",
    ),
    Inference=(
        'require!: The difference to test, as "a > b" or "a > b: Precision@10".',
        "level", "seed: For random ties, and users who arrived at the same time.", "threads",
    ),
    Output=("format", "out: Write to a file: .txt .json .csv, or the picture as .svg .png .pdf.", "report", "verbose",
            "quiet"),
)  # fmt: skip
def watch(call: Call) -> None:
    """Monitor a comparison while data arrive, as often as you like, and stop when it is decided.

    LABELS is a table user,item,label,time; users must come in random order. Exits with 0 when the
    required difference is significant, 4 while it is undecided, 5 when the opposite is significant or the models are
    equivalent within --difference.

    \b
    truerank watch labels.parquet --exposure random --scores als=als.npz --scores pop=pop.npz \\
        --require "als > pop" --metric Precision@10 --estimator horvitz-thompson --planned 5000 --out looks.svg
    """
    from truerank.evaluation.watch import watch as run
    from truerank.report.plans import watch_answer

    call = with_exposure(call, compared=False)
    model, call = with_propensities(call, compared=False)
    required(call, score_files(call))
    check_call(call)
    with progress_of(call) as report:
        watched = run(
            read_models(call),
            read_log(call, "labels", users=declared(call, "population", "user")),
            exposure=read_exposure(call, model),
            metrics=chosen_metrics(call),
            estimators=chosen_estimators(call),
            exclude=read_log(call, "exclude", **PAIRS),
            items=declared(call, "items", "item"),
            progress=report,
            **call.given("require", "n_items", "difference", "planned", "drop_missing_times", "level", "seed",
                         "threads"),
        )  # fmt: skip
    say_notes(call, watched.messages)
    show(call, watch_answer(watched))
    end(int(watched.outcome))
