"""truerank evaluate."""

from __future__ import annotations

from pathlib import Path

import click

from truerank.cli.groups import Asking, Inference, InputFile, Reading, Scoring
from truerank.cli.names import choices, names
from truerank.cli.options import (
    ADJUST,
    BASELINE,
    BOOTSTRAP,
    CLIP,
    COLUMNS,
    ENGINE,
    ESTIMATOR,
    EXCLUDE,
    ITEMS,
    LEVEL,
    METRIC,
    N_ITEMS,
    OUT,
    PATH,
    POPULATION,
    POSITIVE,
    QUIET,
    REQUIRE,
    RESULTS_FORMAT,
    REWARD_MODEL,
    SCORES,
    SEED,
    THREADS,
    USERS,
    Sections,
    choice,
    file,
    grouped,
)
from truerank.cli.output import Output, remembered
from truerank.cli.showing import SHOWING, Showing

ESTIMATORS = ", ".join(names("estimators", about=True))


@click.command(cls=Sections)
@click.argument("labels", type=PATH)
@grouped(
    Scoring,
    SCORES.here(required=True),
    USERS,
    EXCLUDE,
    choice(
        "--overlap", choices("ranking/candidates", "Overlap"), default="drop",
        help="What happens to an item that is both judged and excluded.",
    ),
    choice(
        "--lists", choices("core/options", "ListsAre"), default=None,
        help="Whether lists are the top of a longer order, or all that a model would ever show (default with "
        "--exposure holdout).",
    ),
    file("--candidates", help="Pairs user,item: explicit candidate sets."),
)  # fmt: skip
@grouped(
    Reading,
    COLUMNS,
    POSITIVE,
    POPULATION,
    ITEMS.here("The catalogue; also names the columns of .npy and .npz scores without ids."),
    N_ITEMS.here("The size of the catalogue, where scores are top lists."),
)
@grouped(Showing, *SHOWING)
@grouped(
    Asking,
    METRIC.here(f"{METRIC.help} Default: Recall@10 Recall@50 Precision@10 DCG@10."),
    ESTIMATOR.here(f"{ESTIMATORS}; with options as ips(clip=8). Default by exposure and metric."),
    CLIP,
    REWARD_MODEL.here(
        "Of doubly-robust: item-rates, the rates of items among other users (default), or a file of predicted labels "
        "of all pairs, as scores."
    ),
    file(
        "--judge",
        help="A table user,item,label or probability: what a judge says of all or many pairs, for assisted; what it "
        "says alone is shown beside.",
    ),
    file("--assist", help="Scores that predict labels, for assisted: those of any recommender."),
    file("--item-groups", help="A table item,group: everything again for each group, whose items alone earn."),
    choice("--ties", choices("core/ranking", "Ties"), default="expected", help="The order of equal scores."),
)
@grouped(
    Inference,
    BASELINE,
    choice(
        "--interval", ["population", "design"], default="population",
        help="For the population these users come from, or for exactly these users.",
    ),
    BOOTSTRAP.here("Population intervals by N bootstrap samples of users."),
    LEVEL,
    ADJUST,
    REQUIRE,
    SEED.here("For random ties and the bootstrap."),
    THREADS,
    ENGINE,
)  # fmt: skip
@grouped(Output, RESULTS_FORMAT, OUT, *remembered("user"), QUIET)
def evaluate(
    *,
    labels: Path,
    scoring: Scoring,
    reading: Reading,
    showing: Showing,
    asking: Asking,
    inference: Inference,
    output: Output,
) -> None:
    """Say which recommender is better, by how much, and how sure that is.

    LABELS is a table user,item,label (.parquet .csv .tsv, TREC .qrels; a folder of parts, a glob), which need not fit
    into memory. With --exposure random its rows are a uniform random sample of each user's candidates; with
    --exposure full every candidate is labelled; with --exposure holdout its rows are what was held out of a log; with
    --exposure designed they were drawn with known chances; with --exposure biased some pairs were likelier to be shown.

    \b
    truerank evaluate random.parquet --positive ">3" --exposure random --exclude train.parquet \\
        --scores als=als.npz --scores pop=pop.parquet --metric "Recall@{10,50}" --metric DCG@50
    """
    from truerank.core.ids import Ids
    from truerank.core.metric import ListNeed
    from truerank.evaluation.compatibility import needed
    from truerank.evaluation.labels import evaluate as run

    metrics = asking.chosen_metrics()
    compared = ListNeed.FEATURES in needed(metrics or ())
    showing.check(compared=compared, clip=asking.clips or None, reward_model=asking.reward_model)
    files = [InputFile("labels", labels), *scoring.files(), *reading.files(), *showing.files(), *asking.files(),
             *output.files()]  # fmt: skip
    model, reading = showing.model(reading)
    showing.check_uses(model, compared=compared)
    clips, interval = asking.chosen_clips(), inference.chosen_interval()
    inference.check()
    required = inference.required(scoring.paths())
    output.check(files)
    scoring.check()
    items = reading.of("items").ids(reading.items, "item")
    users = reading.users()
    estimators = asking.chosen_estimators(scoring, reading, items=items)
    exposure = showing.made(model, reading)
    with output.progress() as report:
        judged = reading.scan(labels, users=users, progress=report)
        showing.check_propensities(judged, model)
        results = run(
            scoring.models(reading, items=items),
            judged,
            exposure=exposure,
            metrics=metrics,
            estimators=estimators,
            clips=clips,
            exclude=reading.of("exclude").scan_pairs(scoring.exclude, progress=report),
            overlap=scoring.overlap,
            candidates=reading.of("candidates").scan_pairs(scoring.candidates, progress=report),
            items=None if items is None else Ids.of(items),
            item_groups=None
            if asking.item_groups is None
            else reading.of("item_groups").groups(asking.item_groups, "item"),
            item_features=showing.features(reading) if compared else None,
            **asking.predictions(scoring, reading, items=items),
            n_items=reading.n_items,
            lists=scoring.lists,
            like=showing.like,
            baseline=inference.baseline,
            ties=asking.ties,
            interval=interval,
            level=inference.level,
            adjust=inference.adjust,
            seed=inference.seed,
            threads=inference.threads,
            engine=inference.engine,
            progress=report,
        )
    output.results(results, files, reading=reading, required=required)
