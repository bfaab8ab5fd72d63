"""truerank simulate, split and intervene: commands that make data."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import click

from truerank.cli.inputs import PAIRS, check_threads, column_names, read_log
from truerank.cli.options import Call, choice, command, common, count, flag, shared
from truerank.cli.output import check_call, progress_of, say, show_paths
from truerank.core.errors import InputError

if TYPE_CHECKING:
    from truerank.exposure.interventions import Strategy

FOLDER = "out!: The folder to write to."
INCLUSION = "inclusion"


@command(
    Options=(
        common("n-users", default=2000),
        common("n-items", default=1000, help="How many items there are."),
        count("--clusters", default=8, help="Clusters of taste."),
        shared("--density", type=float, default=0.05, help="Share of positive pairs."),
        shared("--disliking", type=float, default=0.05, help="Share of users without a relevant item."),
        count("--shown", default=80, help="Items in a user's training log."),
        count("--judged", default=20, help="Randomly exposed items per user."),
        "seed",
    ),
    Output=(FOLDER, "force", "quiet"),
)
def world(call: Call) -> None:
    """A dataset in which every user's rating of every item is known.

    Writes truth.parquet (every pair), train.parquet (what a deployed system exposed: popular and liked items more
    often), random.parquet (uniformly random unseen items) and items.parquet. Ratings are 1 to 5; 4 and 5 are positive.
    """
    from truerank.io.atomic_write import check_place
    from truerank.simulation import dataset

    settings = dataset.DatasetSettings(
        users=call.n_users,
        items=call.n_items,
        **call.given("clusters", "density", "disliking", "shown", "judged"),
    )
    check_place(call.out, kind=dataset.FOLDER, force=call.force)
    say(call, [f"drawing {call.n_users:,} users x {call.n_items:,} items"])
    with progress_of(call) as report:
        simulated = dataset.simulate_dataset(settings, seed=call.seed)
        paths = dataset.write_dataset(simulated, call.out, force=call.force, say=report)
    positive = simulated.rating > 3
    show_paths(paths)
    nothing = f"{int((~positive.any(axis=1)).sum()):,} users like nothing."
    say(call, [f"{positive.mean():.1%} of all pairs are positive (rating {dataset.POSITIVE}); {nothing}"])


@command(
    Options=(
        count("--n-sessions", default=2000, help="Sessions in the log, rounded up to whole users."),
        count("--kinds", default=60, help="Kinds of users."),
        common("n-items", default=300, help="How many items there are."),
        count("--pool", default=20, help="Items that a user can be exposed to."),
        count("--n-candidates", default=12, help="Items retrieved per session."),
        count("--length", default=10, help="Items a user can scroll to."),
        count("--days", default=6, help="Days; item quality changes between them."),
        count("--n-loggers", default=1, help="Policies that made the log."),
        choice(
            "--break", ["state", "cascade", "neighbour", "trust", "truncation"], multiple=True,
            help="An assumption that does not hold: user state across sessions (1), cascade stop after a reward (2), "
            "rewards that depend on the item before (3), trust in high ranks (4), items that are never displayed (5). "
            "Can be repeated.",
        ),
        "seed",
    ),
    Output=(FOLDER, "force", "quiet"),
)  # fmt: skip
def feed(call: Call) -> None:
    """A feed with known rewards: the log of one policy, and the exposures of others.

    Writes log.parquet (viewed items with session, user, position, rewards, propensity, time and surface), one table per
    policy (session, item, exposure) and truth.json (the true reward of each policy per session, over all and by day).
    """
    from truerank.simulation.feed import Broken, FeedSettings
    from truerank.simulation.feed_truth import write_feed

    settings = FeedSettings(
        sessions=call.n_sessions,
        items=call.n_items,
        candidates=call.n_candidates,
        loggers=call.n_loggers,
        broken=frozenset(map(Broken, call.values["break"])),
        **call.given("kinds", "pool", "length", "days"),
    )
    with progress_of(call) as report:
        paths = write_feed(settings, call.out, seed=call.seed, force=call.force, say=report)
    show_paths(paths)
    n = -(-call.n_sessions // settings.visits) * settings.visits
    if n != call.n_sessions:
        say(call, [f"{n:,} sessions instead of {call.n_sessions:,}: users have {settings.visits} sessions each."])
    lost = ", ".join(str(assumption) for assumption in sorted(settings.broken))
    say(call, [f"broken on purpose: {lost}" if lost else "all five assumptions hold in this feed."])


simulate = click.Group("simulate", commands=[world, feed], help="Simulate data with known true values.")


# --------------------------------------------------------------------------------------------------------------- split


@command(
    "log",
    Options=(
        choice(
            "--by", ["time", "last", "random", "user"], default="time",
            help="time: the latest rows; last: the last row of each user; random: a random share of rows; user: a "
            "random share of each user's rows.",
        ),
        shared("--test", type=float, default=0.2, help="The share of rows to hold out; not for last."),
        shared("--folds", type=int, metavar="K",
               help="K pairs of parts in which each row is tested once; random or user."),
        shared("--protocol", metavar="NAME", help="Split a dataset's folder LOG as a paper does (truerank-research)."),
        "drop-missing-times",
        "seed",
    ),
    Reading=("columns",),
    Output=("out!: The folder to write.", "force", "quiet"),
)  # fmt: skip
def split(call: Call) -> None:
    """Split a log into training and test files for a hold-out evaluation.

    LOG is a table of users and items; its rows go to DIR/train and DIR/test with all their columns, under the names
    they have, as Parquet, or as CSV if LOG is text; with --folds to DIR/fold-1 ... For --by time and last, times are
    numbers, dates, datetimes or padded ISO 8601 text (2024-01-31T09:30:00); without times use --by user.

    \b
    truerank split ratings.csv --by time --test 0.2 --out parts
    truerank evaluate parts/test.csv --exposure holdout --exclude parts/train.csv --scores als=als.csv
    """
    from truerank.datasets import split as splits
    from truerank.io.atomic_write import check_place, whole_folder
    from truerank.io.files import SEPARATORS, kind_of, to_frame, write_table
    from truerank.io.paths import files_of
    from truerank.io.read import as_fields
    from truerank.io.times import about_missing_times, row_number, with_times

    folder = {"kind": splits.FOLDER, "force": call.force}
    check_place(call.out, **folder, inputs=files_of(call.log))
    if call.protocol is not None:
        parts = splits.split_by_protocol(call.protocol, call.log, seed=call.seed)
        with whole_folder(call.out, **folder) as inside:
            for name, part in parts.items():
                write_table(to_frame(part), inside / f"{name}.parquet")
        say(call, (f"{name}: {len(part):,} rows" for name, part in parts.items()))
        return
    is_text, way = kind_of(call.log) in SEPARATORS, splits.SplitBy(call.by)
    splits.check_ordered(way, drop_missing_times=call.drop_missing_times)
    table, rows = as_fields(call.log, column_names(call), text=is_text)
    if way in splits.ORDERED:
        rows, kept = with_times(rows, drop_missing=call.drop_missing_times, name_row=row_number)
        say(call, about_missing_times(kept, rows.source))
        table = table.filter(kept)
    whole = call.folds is None
    held = (
        [splits.held_out(rows, way, call.test, seed=call.seed)]
        if whole
        else splits.folds_of(rows, way, call.folds, seed=call.seed)
    )
    ending = ".csv" if is_text else ".parquet"
    with whole_folder(call.out, **folder) as inside:
        for number, tested in enumerate(held, start=1):
            within = inside if whole else inside / f"fold-{number}"
            within.mkdir(exist_ok=True)
            write_table(table.filter(~tested), within / f"train{ending}")
            write_table(table.filter(tested), within / f"test{ending}")
    for number, tested in enumerate(held, start=1):
        name = "" if whole else f"fold {number}: "
        made = splits.SplitParts(rows.select(~tested), rows.select(tested))
        say(call, (f"{name}{line}" for line in splits.about_split(made)))


# ----------------------------------------------------------------------------------------------------------- intervene


@command(
    "log",
    Intervening=(
        shared(
            "--strategy", metavar="NAME", required=True,
            help="full, reg, popularity-stratified, equal-per-item, skew, wtd, wtd_h.",
        ),
        choice(
            "--preset", ["published", "released"], default="published",
            help="published: as in the paper; released: as in its code.",
        ),
        shared("--fraction", type=float, default=0.5, help="How much of LOG is drawn, in (0, 1]."),
        shared("--user-power", type=float, help="Power of the user's weight: 1."),
        shared(
            "--item-power", type=float, help="Power of the item's weight: 2 as published, 1 as released and for skew."
        ),
        shared("--floor", type=float, help="Smallest share, instead of 0: 0.0001."),
        shared("--smoothing", type=float, metavar="A", help="Add A to every count instead of a floor."),
    ),
    Options=(
        flag("--inclusion",
             help="Write all rows with their sampling probability (column inclusion) instead of a sample."),
        "train: The biased log whose users and items are counted, for weights.",
        "random: Randomly exposed rows, for wtd.",
    ),
    Reading=("columns",),
    Inference=("seed", "threads", "engine"),
    Output=("out!: The file to write.", "quiet"),
)  # fmt: skip
def intervene(call: Call) -> None:
    """Draw from a biased log a test set that is closer to random exposure.

    LOG is a held-out (or training) table of users and items, which need not fit into memory; its drawn rows are written
    with all their columns, under the names they have. Labels are not used. Evaluate models on the result with

    \b
    truerank intervene heldout.parquet --strategy skew --train train.parquet --out test.parquet
    truerank evaluate test.parquet --unlisted negative --exclude train.parquet --overlap keep --scores pop=pop.npz

    One drawn test set is noisy. With --inclusion every row keeps its probability instead, and
    `--estimator intervened` (or intervened-pooled) gives the average over all possible test sets.
    """
    import polars as pl

    from truerank.evaluation.intervening import draw_table, margins_of
    from truerank.exposure import interventions
    from truerank.exposure.counts import Margins
    from truerank.io.files import SEPARATORS, write_table
    from truerank.io.read import as_fields
    from truerank.io.spill import scratch

    columns = column_names(call)  # names that are wrong are refused first
    check_threads(call)
    strategy, out, how = _strategy(call), call.out, call.given("fraction", "seed")
    check_call(call, inputs=[call.train] if call.train else ())
    text = out.suffix.lower() in SEPARATORS
    if not text and out.suffix.lower() != ".parquet":
        raise InputError(f"{out}: unknown ending {out.suffix!r}; expected .parquet, .csv or .tsv.")
    if call.inclusion and call.engine != "local":
        raise InputError("--inclusion looks at the weights of all rows at once, on this machine; leave --engine out.")
    if not call.inclusion:
        beside: dict[str, Any] = {
            role: None if path is None else margins_of(path, columns=column_names(call, role), name=role)
            for role, path in call.given("train", "random").items()
        }
        with progress_of(call) as report, scratch() as space:
            drawn = draw_table(call.log, strategy, **beside, **how, columns=columns, progress=report,
                               **call.given("engine", "threads"))  # fmt: skip
            drawn.write(out, text=text, space=space)
        say(call, drawn.notes(strategy, fraction=call.fraction))
        return
    table, pairs = as_fields(call.log, columns, text=text)
    if INCLUSION in table.columns:
        raise InputError(f"{call.log}: has a column {INCLUSION!r} already; rename it, or leave --inclusion out.")
    train, random = (read_log(call, role, **PAIRS) for role in ("train", "random"))
    result = interventions.with_inclusion(pairs, strategy, train=train, random=random, **how)
    inclusion = pl.Series(INCLUSION, result.inclusion)
    write_table(table.with_columns(inclusion), out)
    margins = None if train is None else Margins.of(train)
    mean = f"{len(table):,} rows with their probability to be drawn, {inclusion.sum():,.1f} on average."
    say(call, [*interventions.unseen_notes(Margins.of(pairs), strategy, margins), mean])


def _strategy(call: Call) -> Strategy:
    """The preset of a strategy, with what was said otherwise."""
    from truerank.exposure import interventions
    from truerank.exposure.counts import Floor, Smoothed

    if call.floor is not None and call.smoothing is not None:
        raise InputError("--floor and --smoothing are two rules for counts of 0; give one of them.")
    preset: Any = getattr(interventions.STRATEGIES.named(call.strategy), call.preset)()
    rules = {"--floor": ("zero", Floor, call.floor), "--smoothing": ("zero", Smoothed, call.smoothing),
             "--user-power": ("user_power", float, call.user_power),
             "--item-power": ("item_power", float, call.item_power)}  # fmt: skip
    changed: dict[str, Any] = {}
    for name, (key, kind, value) in rules.items():
        if value is not None:
            changed[key] = kind(value)
            if key not in {field.name for field in fields(preset)}:
                able = [strategy for strategy, cls in interventions.STRATEGIES.catalogue().items()
                        if key in cls.__dataclass_fields__]  # fmt: skip
                raise InputError(f"{name} has no meaning for {call.strategy}; it goes with {', '.join(able)}.")
    strategy: Strategy = replace(preset, **changed)
    return strategy
