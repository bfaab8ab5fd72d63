"""truerank simulate."""

from __future__ import annotations

from pathlib import Path

import click

from truerank.cli.options import messages, progress
from truerank.studies.feed import Broken, FeedSettings
from truerank.studies.feed_truth import write_feed
from truerank.studies.world import POSITIVE, WorldSettings, make_world, write_world

DEFAULT = WorldSettings()
FEED = FeedSettings()


@click.group()
def simulate() -> None:
    """Make data whose truth is known."""


@simulate.command()
@click.option("--out", "-o", type=click.Path(path_type=Path), required=True, help="The folder to write to.")
@click.option("--users", type=int, default=DEFAULT.users, show_default=True)
@click.option("--items", type=int, default=DEFAULT.items, show_default=True)
@click.option("--clusters", type=int, default=DEFAULT.clusters, show_default=True, help="Clusters of taste.")
@click.option("--density", type=float, default=DEFAULT.density, show_default=True, help="Share of positive pairs.")
@click.option("--disliking", type=float, default=DEFAULT.disliking, show_default=True, help="Users who like nothing.")
@click.option("--shown", type=int, default=DEFAULT.shown, show_default=True, help="Items in a user's training log.")
@click.option("--judged", type=int, default=DEFAULT.judged, show_default=True, help="Randomly exposed items per user.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--quiet", is_flag=True, help="No messages on standard error.")
def world(  # noqa: PLR0917
    out: Path,
    users: int,
    items: int,
    clusters: int,
    density: float,
    disliking: float,
    shown: int,
    judged: int,
    seed: int,
    quiet: bool,  # noqa: FBT001
) -> None:
    """A world in which every user's rating of every item is known.

    Writes truth.parquet (every pair), train.parquet (what a deployed system showed: popular and liked items more
    often), random.parquet (uniformly random unseen items) and items.parquet. Ratings are 1 to 5; 4 and 5 are positive.
    """
    settings = WorldSettings(
        users=users, items=items, clusters=clusters, density=density, disliking=disliking, shown=shown, judged=judged
    )
    messages([f"drawing {users:,} users x {items:,} items"], quiet=quiet)
    with progress(quiet=quiet) as report:
        made = make_world(settings, seed=seed)
        paths = write_world(made, out, say=report)
    positive = made.rating > 3
    for name, path in paths.items():
        click.echo(f"{name:8} {path}")
    messages(
        [
            f"{positive.mean():.1%} of all pairs are positive (rating {POSITIVE}); "
            f"{int((~positive.any(axis=1)).sum()):,} users like nothing."
        ],
        quiet=quiet,
    )


@simulate.command()
@click.option("--out", "-o", type=click.Path(path_type=Path), required=True, help="The folder to write to.")
@click.option(
    "--sessions",
    type=int,
    default=FEED.sessions,
    show_default=True,
    help="Sessions in the log, rounded up to whole users.",
)
@click.option("--kinds", type=int, default=FEED.kinds, show_default=True, help="Kinds of users.")
@click.option("--items", type=int, default=FEED.items, show_default=True)
@click.option("--pool", type=int, default=FEED.pool, show_default=True, help="Items that a user can be shown.")
@click.option("--candidates", type=int, default=FEED.candidates, show_default=True, help="Retrieved per session.")
@click.option("--length", type=int, default=FEED.length, show_default=True, help="Items a user can scroll to.")
@click.option("--days", type=int, default=FEED.days, show_default=True)
@click.option("--loggers", type=int, default=FEED.loggers, show_default=True, help="Policies that made the log.")
@click.option(
    "--break",
    "broken",
    type=click.Choice([str(each) for each in Broken]),
    multiple=True,
    help="An assumption that does not hold: user state across sessions (1), cascade stop after a reward (2), rewards "
    "that depend on the item before (3), trust in high ranks (4), items the logger never shows (5). Can be repeated.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--quiet", is_flag=True, help="No messages on standard error.")
def feed(  # noqa: PLR0917
    out: Path,
    sessions: int,
    kinds: int,
    items: int,
    pool: int,
    candidates: int,
    length: int,
    days: int,
    loggers: int,
    broken: tuple[str, ...],
    seed: int,
    quiet: bool,  # noqa: FBT001
) -> None:
    """A feed whose policies earn what is known: the log of one policy, and the exposures of others.

    Writes log.parquet (viewed items with session, user, position, rewards, propensity, time and surface), one table per
    policy (session, item, exposure) and truth.json (what each policy truly earns per session, over all and by day).
    """
    settings = FeedSettings(
        sessions=sessions, kinds=kinds, items=items, pool=pool, candidates=candidates, length=length, days=days,
        loggers=loggers, broken=frozenset(Broken(each) for each in broken),
    )  # fmt: skip
    with progress(quiet=quiet) as report:
        paths = write_feed(settings, out, seed=seed, say=report)
    for name, path in paths.items():
        click.echo(f"{name:8} {path}")
    lost = ", ".join(str(each) for each in sorted(settings.broken))
    made = -(-sessions // settings.visits) * settings.visits
    if made != sessions:
        messages(
            [f"{made:,} sessions instead of {sessions:,}: users have {settings.visits} sessions each."], quiet=quiet
        )
    messages([f"broken on purpose: {lost}" if lost else "all five assumptions hold in this feed."], quiet=quiet)
