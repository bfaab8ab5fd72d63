"""truerank evaluate."""

from __future__ import annotations

from pathlib import Path

import click

from truerank.cli.collection import COLLECTION, LIKE, Collection
from truerank.cli.groups import Inference, InputFile, Reading, RequestOptions, Scoring
from truerank.cli.options import PATH, Sections, choice, file, formatted, grouped
from truerank.cli.output import RESULTS_FORMS, Output

ESTIMATORS = (
    "assisted, doubly-robust, full, hajek, holdout, horvitz-thompson, intervened, intervened-pooled, ips, judge-alone, "
    "lists, naive, pairs, pooled, post-normalised, post-stratified, published, snips, traditional"
)


@click.command(cls=Sections)
@click.argument("labels", type=PATH)
@grouped(
    Scoring, "scores!", "users", "exclude",
    choice(
        "--overlap", ["drop", "keep", "error"], default="drop",
        help="What happens to an item that is both labelled and excluded.",
    ),
    choice(
        "--lists", ["top", "complete"],
        help="Whether lists are the top of a longer order, or all that a model would ever show (default with "
        "--exposure holdout).",
    ),
    file("--candidates", help="Pairs user,item: explicit candidate sets."),
)  # fmt: skip
@grouped(Reading, "columns", "positive", "population", "items", "n-items")
@grouped(Collection, LIKE, *COLLECTION)
@grouped(
    RequestOptions,
    'metric: As Recall@50, "Recall@{5,50}" or "AP@10(denominator=positives)"; several are allowed. Default: Recall@10 '
    "Recall@50 Precision@10 DCG@10.",
    f"estimator: {ESTIMATORS}; with options as ips(clip=8). Default by exposure and metric.",
    "clip",
    "reward-model: Of doubly-robust: item-rates, the rates of items among other users (default), or a file of "
    "predicted labels of all pairs, as scores.",
    file(
        "--judge",
        help="A table user,item,label or probability: what a judge says of all or many pairs, for assisted; what it "
        "says alone is shown beside.",
    ),
    file("--assist", help="Scores that predict labels, for assisted: those of any recommender."),
    file("--item-groups", help="A table item,group: everything again for each group, only whose items have a gain."),
    choice(
        "--ties", ["expected", "random", "optimistic", "pessimistic", "strict"], default="expected",
        help="The order of equal scores.",
    ),
)  # fmt: skip
@grouped(
    Inference, "baseline", "interval", "bootstrap: Population intervals by N bootstrap samples of users.", "level",
    "adjust", "require", "seed: For random ties and the bootstrap.", "threads", "engine",
)  # fmt: skip
@grouped(
    Output, formatted(RESULTS_FORMS), "out", "within", "units", "save", "report", "verbose",
    "force: Replace the folder of --save, if truerank made all that it holds.", "hash", "quiet",
)  # fmt: skip
def evaluate(
    *,
    labels: Path,
    scoring: Scoring,
    reading: Reading,
    collection: Collection,
    request: RequestOptions,
    inference: Inference,
    output: Output,
) -> None:
    """Say which recommender is better, by how much, and how sure that is.

    LABELS is a table user,item,label (.parquet .csv .tsv, TREC .qrels; a folder of parts, a glob), which need not fit
    into memory. With --exposure random its rows are a uniform random sample of each user's candidates; with
    --exposure full every candidate is labelled; with --exposure holdout its rows are what was held out of a log; with
    --exposure designed they were drawn with known probabilities; with --exposure biased some pairs were more likely to
    be exposed.

    \b
    truerank evaluate random.parquet --positive ">3" --exposure random --exclude train.parquet \\
        --scores als=als.npz --scores pop=pop.parquet --metric "Recall@{10,50}" --metric DCG@50
    """
    from truerank.core.ids import Ids
    from truerank.core.metric import ListNeed
    from truerank.evaluation.compatibility import needed
    from truerank.evaluation.labels import evaluate as run

    metrics = request.chosen_metrics()
    compared = ListNeed.FEATURES in needed(metrics or ())
    collection = collection.decided(labels, reading)
    collection.check(compared=compared, clip=request.clips or None, reward_model=request.reward_model)
    files = [InputFile("labels", labels), *scoring.files(), *reading.files(), *collection.files(), *request.files(),
             *output.files()]  # fmt: skip
    model, reading = collection.model(reading)
    collection.check_uses(model, compared=compared)
    clips, interval = request.chosen_clips(), inference.chosen_interval()
    inference.check()
    required = inference.required(scoring.paths())
    output.check(files, forms=RESULTS_FORMS)
    scoring.check()
    items = reading.catalogue()
    users = reading.users()
    estimators = request.chosen_estimators(scoring, reading, items=items)
    exposure = collection.read(model, reading)
    with output.progress() as report:
        judged = reading.scan(labels, users=users, progress=report)
        collection.check_propensities(judged, model)
        results = run(
            scoring.models(reading, items=items),
            judged,
            exposure=exposure,
            metrics=metrics,
            estimators=estimators,
            clips=clips,
            exclude=reading.for_file("exclude").scan_pairs(scoring.exclude, progress=report),
            overlap=scoring.overlap,
            candidates=reading.for_file("candidates").scan_pairs(scoring.candidates, progress=report),
            items=None if items is None else Ids.of(items),
            item_groups=None
            if request.item_groups is None
            else reading.for_file("item_groups").groups(request.item_groups, "item"),
            item_features=collection.features(reading) if compared else None,
            **request.predictions(scoring, reading, items=items),
            n_items=reading.n_items,
            lists=scoring.lists,
            like=collection.like,
            ties=request.ties,
            interval=interval,
            progress=report,
            **inference.arguments("baseline", "level", "adjust", "seed", "threads", "engine"),
        )
    output.results(results, files, reading=reading, required=required)
