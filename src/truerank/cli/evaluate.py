"""truerank evaluate."""

from __future__ import annotations

from pathlib import Path

import click

from truerank import estimators, metrics
from truerank.cli.exposures import (
    check_exposure,
    check_propensities,
    check_uses,
    chosen_estimators,
    made_exposure,
    propensity_option,
)
from truerank.cli.options import (
    check_out,
    columns_of,
    common,
    deliver,
    id_column,
    messages,
    named_paths,
    progress,
    rendered,
)
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.language import as_values
from truerank.core.ranking import Ties
from truerank.data.read import read
from truerank.evaluation.judged import evaluate as run
from truerank.exposure.kinds import Unlisted
from truerank.ranks.candidates import Overlap
from truerank.ranks.scores.files import read_scores
from truerank.uncertainty.intervals import Bootstrap, Design, Interval


@click.command()
@click.argument("labels", type=click.Path(path_type=Path))
@click.option(
    "--scores",
    "scores",
    multiple=True,
    required=True,
    metavar="NAME=FILE",
    help="A model's scores: a table user,item,score or user,item,rank, a TREC run, .npz or .npy.",
)
@click.option(
    "--exposure",
    type=click.Choice(["full", "random", "biased"]),
    default="full",
    show_default=True,
    help="What the labels show: every candidate, a uniform random sample, or what a biased log happened to show.",
)
@click.option("--rate", type=float, help="Random exposure by independent draws with this probability.")
@click.option(
    "--propensity",
    metavar="COLUMN|MODEL",
    help="How likely each row was shown, with --exposure biased: a column of LABELS (default: propensity), or "
    "power:0.5, naive-bayes (needs --random), logistic (needs features).",
)
@click.option("--random", type=click.Path(path_type=Path), metavar="MAR", help="Pairs shown at random, with labels.")
@click.option("--user-features", type=click.Path(path_type=Path), help="A table user,... for --propensity logistic.")
@click.option("--item-features", type=click.Path(path_type=Path), help="A table item,... for --propensity logistic.")
@click.option("--clip", type=float, metavar="C", help="The largest weight 1 / propensity of a row, from 1.")
@click.option(
    "--rewards",
    type=click.Path(path_type=Path),
    help="Predicted labels of all pairs, as scores, for doubly-robust; default: rates of items among other users.",
)
@click.option(
    "--unlisted",
    type=click.Choice([each.value for each in Unlisted]),
    default="unknown",
    show_default=True,
    help="What a pair that is not listed means, with --exposure full.",
)
@click.option("--positive", metavar="RULE", help='Which values are positive, as ">3", or all; not needed for 0/1.')
@click.option("--columns", metavar="KEY=NAME,...", help="Column names of the files, as user=user_id,item=video_id.")
@click.option(
    "--exclude", type=click.Path(path_type=Path), metavar="TRAIN", help="Pairs that do not compete (seen in training)."
)
@click.option(
    "--overlap",
    type=click.Choice([each.value for each in Overlap]),
    default="drop",
    show_default=True,
    help="What happens to an item that is both judged and excluded.",
)
@click.option("--candidates", type=click.Path(path_type=Path), help="Pairs user,item: explicit candidate sets.")
@click.option(
    "--items",
    type=click.Path(path_type=Path),
    help="The catalogue; also names the columns of .npy and .npz scores without ids.",
)
@click.option(
    "--users",
    type=click.Path(path_type=Path),
    help="Names the rows of .npy and .npz scores that have no ids, in order.",
)
@click.option("--population", type=click.Path(path_type=Path), help="All users that count, also those without a row.")
@click.option("--n-items", type=int, help="The size of the catalogue, where scores are top lists.")
@click.option(
    "--metric",
    "metric_names",
    multiple=True,
    metavar="METRIC",
    help='As Recall@50, Recall@{5,50} or "AP@10(denominator=positives)"; several are allowed. '
    "Default: Recall@10 Recall@50 Precision@10 DCG@10.",
)
@click.option(
    "--estimator",
    "estimator_names",
    multiple=True,
    metavar="NAME",
    help=f"{', '.join(estimators.catalogue())}; with options as ips(clip=8). Default by exposure and metric.",
)
@click.option("--baseline", metavar="NAME", help="Compare every model with this one instead of all pairs.")
@click.option(
    "--ties",
    type=click.Choice([each.value for each in Ties]),
    default="expected",
    show_default=True,
    help="The order of equal scores.",
)
@click.option(
    "--interval",
    type=click.Choice(["population", "design"]),
    default="population",
    show_default=True,
    help="For the population these users come from, or for exactly these users.",
)
@click.option("--bootstrap", type=int, metavar="N", help="Population intervals by N bootstrap samples of users.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="For random ties and the bootstrap.")
@click.option("--threads", type=int, help="Default: all cores.")
@common
def evaluate(  # noqa: PLR0917
    labels: Path,
    scores: tuple[str, ...],
    exposure: str,
    rate: float | None,
    propensity: str | None,
    random: Path | None,
    user_features: Path | None,
    item_features: Path | None,
    clip: float | None,
    rewards: Path | None,
    unlisted: str,
    positive: str | None,
    columns: str | None,
    exclude: Path | None,
    overlap: str,
    candidates: Path | None,
    items: Path | None,
    users: Path | None,
    population: Path | None,
    n_items: int | None,
    metric_names: tuple[str, ...],
    estimator_names: tuple[str, ...],
    baseline: str | None,
    ties: str,
    interval: str,
    bootstrap: int | None,
    level: float,
    seed: int,
    threads: int | None,
    form: str | None,
    out: Path | None,
    quiet: bool,  # noqa: FBT001
) -> None:
    """Say which recommender is better, by how much, and how sure that is.

    LABELS is a table user,item,label (.parquet .csv .tsv, TREC .qrels; a folder of parts, a glob). With
    --exposure random its rows are a uniform random sample of each user's candidates; with --exposure full every
    candidate is labelled; with --exposure biased some pairs were likelier to be shown than others.

    \b
    truerank evaluate random.parquet --positive ">3" --exposure random --exclude train.parquet \\
        --scores als=als.npz --scores pop=pop.parquet --metric Recall@50 --metric DCG@50
    """
    mapping = columns_of(columns)
    paths = named_paths(scores)
    check_exposure(
        exposure, rate=rate, unlisted=unlisted,
        biased={"--propensity": propensity, "--random": random, "--user-features": user_features,
                "--item-features": item_features, "--clip": clip, "--rewards": rewards},
    )  # fmt: skip
    model, mapping = propensity_option(propensity, mapping)
    check_uses(model, {"random": random, "user_features": user_features, "item_features": item_features})
    chosen_metrics = as_values(metric_names, metrics.METRICS) or None
    chosen_interval = _interval(interval, bootstrap, seed=seed)
    if threads is not None and threads < 1:
        raise InputError(f"--threads {threads}; expected a whole number from 1.")
    check_out(
        out,
        inputs=(labels, *paths.values(), random, user_features, item_features, rewards, exclude, candidates, items,
                users, population),
    )  # fmt: skip
    if users is not None and not any(path.suffix in (".npy", ".npz") for path in paths.values()):
        raise InputError(
            "--users names the rows of .npy and .npz scores without ids; "
            "to declare the users that count, say --population."
        )
    row_ids, column_ids = id_column(users, "user", mapping), id_column(items, "item", mapping)
    everyone = id_column(population, "user", mapping)
    user_ids, item_ids = (None if ids is None else Ids.of(ids) for ids in (everyone, column_ids))
    predicted = None if rewards is None else read_scores(rewards, columns=mapping, users=row_ids, items=column_ids)
    chosen = chosen_estimators(estimator_names, rewards=predicted)
    shown = made_exposure(
        exposure, rate=rate, unlisted=unlisted, propensity=model, random=random, user_features=user_features,
        item_features=item_features, columns=mapping, positive=positive,
    )  # fmt: skip
    with progress(quiet=quiet) as report:
        judged = read(labels, columns=mapping, positive=positive, users=user_ids)
        if exposure == "biased":
            check_propensities(judged, model, mapping)
        results = run(
            {name: read_scores(path, columns=mapping, users=row_ids, items=column_ids) for name, path in paths.items()},
            judged,
            exposure=shown,
            metrics=chosen_metrics,
            estimators=chosen,
            clips=None if clip is None else [clip],
            exclude=None if exclude is None else read(exclude, columns=mapping, values=False),
            overlap=Overlap(overlap),
            candidates=None if candidates is None else read(candidates, columns=mapping, values=False),
            items=item_ids,
            n_items=n_items,
            baseline=baseline,
            ties=Ties(ties),
            interval=chosen_interval,
            level=level,
            seed=seed,
            threads=threads,
            progress=report,
        )
    messages([message.said(for_cli=True) for message in results.messages], quiet=quiet)
    deliver(rendered(results, form, out), out)


def _interval(name: str, bootstrap: int | None, *, seed: int) -> Interval | None:
    if bootstrap is None:
        return Design() if name == "design" else None
    if name == "design":
        raise InputError("--bootstrap redraws users; it goes with --interval population.")
    if bootstrap < 2:
        raise InputError(f"--bootstrap {bootstrap}; expected at least 2 samples, better 1000.")
    return Bootstrap(bootstrap, seed)
