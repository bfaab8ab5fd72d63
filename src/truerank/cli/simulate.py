"""truerank simulate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from truerank.cli import terminal
from truerank.cli.options import Sections, common, count, grouped, shared
from truerank.cli.output import Output

FOLDER = "out!: The folder to write to."


@click.group()
def simulate() -> None:
    """Make data whose truth is known."""


@simulate.command(cls=Sections)
@common("n-users", default=2000)
@common("n-items: How many items there are.", default=1000)
@count("--clusters", default=8, help="Clusters of taste.")
@shared("--density", type=float, default=0.05, help="Share of positive pairs.")
@shared("--disliking", type=float, default=0.05, help="Users who like nothing.")
@count("--shown", default=80, help="Items in a user's training log.")
@count("--judged", default=20, help="Randomly exposed items per user.")
@common("seed")
@grouped(Output, FOLDER, "force", "quiet")
def world(
    *,
    n_users: int,
    n_items: int,
    clusters: int,
    density: float,
    disliking: float,
    shown: int,
    judged: int,
    seed: int,
    output: Output,
) -> None:
    """A world in which every user's rating of every item is known.

    Writes truth.parquet (every pair), train.parquet (what a deployed system showed: popular and liked items more
    often), random.parquet (uniformly random unseen items) and items.parquet. Ratings are 1 to 5; 4 and 5 are positive.
    """
    from truerank.io.atomic_write import check_place
    from truerank.simulation.dataset import FOLDER, POSITIVE, DatasetSettings, simulate_dataset, write_dataset

    settings = DatasetSettings(
        users=n_users, items=n_items, clusters=clusters, density=density, disliking=disliking, shown=shown,
        judged=judged,
    )  # fmt: skip
    check_place(output.place, kind=FOLDER, force=output.force)
    output.say([f"drawing {n_users:,} users x {n_items:,} items"])
    with output.progress() as report:
        result = simulate_dataset(settings, seed=seed)
        paths = write_dataset(result, output.place, force=output.force, say=report)
    positive = result.rating > 3
    _list(paths)
    output.say(
        [
            f"{positive.mean():.1%} of all pairs are positive (rating {POSITIVE}); "
            f"{int((~positive.any(axis=1)).sum()):,} users like nothing."
        ]
    )


@simulate.command(cls=Sections)
@count("--n-sessions", default=2000, help="Sessions in the log, rounded up to whole users.")
@count("--kinds", default=60, help="Kinds of users.")
@common("n-items: How many items there are.", default=300)
@count("--pool", default=20, help="Items that a user can be shown.")
@count("--n-candidates", default=12, help="Items retrieved per session.")
@count("--length", default=10, help="Items a user can scroll to.")
@count("--days", default=6, help="Days, which differ in how good items are.")
@count("--n-loggers", default=1, help="Policies that made the log.")
@click.option(
    "--break",
    "broken",
    type=click.Choice(["state", "cascade", "neighbour", "trust", "truncation"]),
    multiple=True,
    help="An assumption that does not hold: user state across sessions (1), cascade stop after a reward (2), rewards "
    "that depend on the item before (3), trust in high ranks (4), items that are never displayed (5). Can be repeated.",
)
@common("seed")
@grouped(Output, FOLDER, "force", "quiet")
def feed(
    *,
    n_sessions: int,
    kinds: int,
    n_items: int,
    pool: int,
    n_candidates: int,
    length: int,
    days: int,
    n_loggers: int,
    broken: tuple[str, ...],
    seed: int,
    output: Output,
) -> None:
    """A feed whose policies receive a known reward: the log of one policy, and the exposures of others.

    Writes log.parquet (viewed items with session, user, position, rewards, propensity, time and surface), one table per
    policy (session, item, exposure) and truth.json (the true reward of each policy per session, over all and by day).
    """
    from truerank.simulation.feed import Broken, FeedSettings
    from truerank.simulation.feed_truth import write_feed

    settings = FeedSettings(
        sessions=n_sessions, kinds=kinds, items=n_items, pool=pool, candidates=n_candidates, length=length, days=days,
        loggers=n_loggers, broken=frozenset(map(Broken, broken)),
    )  # fmt: skip
    with output.progress() as report:
        paths = write_feed(settings, output.place, seed=seed, force=output.force, say=report)
    _list(paths)
    lost = ", ".join(str(assumption) for assumption in sorted(settings.broken))
    result = -(-n_sessions // settings.visits) * settings.visits
    if result != n_sessions:
        output.say([f"{result:,} sessions instead of {n_sessions:,}: users have {settings.visits} sessions each."])
    output.say([f"broken on purpose: {lost}" if lost else "all five assumptions hold in this feed."])


def _list(paths: Mapping[str, Path]) -> None:
    for name, path in paths.items():
        terminal.show(f"{name:8} {path}")
