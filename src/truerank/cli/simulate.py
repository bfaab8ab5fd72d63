"""truerank simulate."""

from __future__ import annotations

from pathlib import Path

import click

from truerank.cli.options import messages, progress
from truerank.studies.world import POSITIVE, WorldSettings, make_world, write_world

DEFAULT = WorldSettings()


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
