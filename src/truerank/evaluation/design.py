"""Which items to show at random, and with what chance, so that a few exposures tell most about the models to compare.

`design_world` has what is known beforehand, `design_chances` the chances; here they are drawn, batch by batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints, frozen
from truerank.core.errors import InputError
from truerank.core.language import as_value, as_values
from truerank.core.metric import Metric
from truerank.core.progress import Progress, Watching, watching
from truerank.core.record import record
from truerank.core.rng import generator
from truerank.core.sizes import check_size
from truerank.core.validation import ANYTHING, COUNT, NUMBER, checked_arguments
from truerank.evaluation.design_probabilities import (
    BLOCK_USERS,
    SHARE,
    DesignData,
    DesignProbabilities,
    Saving,
    design_data,
    designed_metrics,
    lists_of,
)
from truerank.evaluation.sources import check_call, check_sizes
from truerank.exposure.design import ExposureDesign
from truerank.metrics import METRICS
from truerank.sampling.unequal import DrawBy

CELL_SECONDS = 4e-9  # that a pair takes at least


@record(eq=False)
class PlannedDesign:
    """A design of exposure, and what it is expected to save."""

    design: ExposureDesign
    savings: tuple[Saving, ...]
    per_user: int
    uniform: float

    def table(self) -> pl.DataFrame:
        """A row for each pair to be shown: user, item, batch, propensity."""
        return self.design.table()

    def saved(self) -> pl.DataFrame:
        """A row for each metric of each model and each difference: variance over that of uniform exposure."""
        names = ("metric", "model", "baseline", "variance_ratio", "uniform_items")
        rows = [{name: getattr(saving, name) for name in names} for saving in self.savings]
        kinds = {name: pl.Float64 if name in names[3:] else pl.String for name in names}
        return pl.DataFrame(rows, schema=kinds)

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """The folder that `evaluate` takes as the design of labels."""
        self.design.write(path, force=force)


@checked_arguments(scores=ANYTHING, exclude=ANYTHING, uniform=NUMBER, likely=NUMBER, per_user=COUNT, batches=COUNT)
def design_exposure(
    scores: Mapping[str, Any],
    *,
    metrics: Sequence[Metric | str],
    per_user: int = 20,
    exclude: Any = None,
    users: Any = None,
    items: Any = None,
    uniform: float = SHARE,
    likely: float = SHARE,
    batches: int = 1,
    draw: DrawBy | str = DrawBy.SYSTEMATIC,
    seed: int = 0,
    threads: int | None = None,
    progress: Watching = None,
) -> PlannedDesign:
    """Choose `per_user` items to show to each user, with known chances that suit the metrics of these models.

    `exclude` is the training log: its pairs are not shown, and it says how popular items and how active users are. The
    users are those with scores, or `users`; the catalogue is that of the scores, or `items`. A share `uniform` of what
    is shown goes to every item alike and a share `likely` to what is likely to be relevant. In `batches`, later ones
    draw from what earlier ones have left. Labels that come back are evaluated with
    `exposure=tr.exposure.DesignedExposure(design)`. `threads` change speed alone.

    >>> scores = {"a": np.arange(20.0).reshape(1, 20), "b": np.arange(20.0)[None, ::-1].copy()}
    >>> planned = design_exposure(scores, metrics=["Precision@2"], per_user=4)
    >>> len(planned.table()), [round(saving.variance_ratio, 2) for saving in planned.savings]
    (4, [0.17, 0.17, 0.17])
    """
    way = as_value(draw, DrawBy)
    if not (0 < uniform <= 1 and likely >= 0 and uniform + likely <= 1):
        raise InputError(
            f"a uniform share of {uniform:g} and {likely:g} to what is likely to be relevant; expected the first above "
            "0, so that every item can be shown, and no more than 1 together."
        )
    wished = designed_metrics(as_values(metrics, METRICS, what="metrics"))
    check_call(scores)
    check_sizes(threads=threads)
    if not 1 <= batches <= per_user:
        raise InputError(f"{batches} batches of {per_user} items per user; expected 1 to {per_user}.")
    with watching(progress) as say:
        world = design_data(scores, exclude=exclude, users=users, items=items)
        check_size(
            f"a design for {len(world.users):,} users and {len(world.items):,} items",
            memory=8.0 * (per_user * 4 + sum(metric.cutoff or 0 for metric in wished)) * len(world.users),
            seconds=CELL_SECONDS * len(world.users) * len(world.items),
            instead="Take fewer users.",
        )
        workers = threads or os.cpu_count() or 1
        lists = lists_of(world, max(metric.cutoff or 0 for metric in wished), seed=seed, threads=workers, progress=say)
        maker = DesignProbabilities.of(world, lists, wished, per_user=per_user, shares=(uniform, likely))
        rows = list(_draws(maker, world, batches=batches, way=way, seed=seed, progress=say))
    columns = [np.concatenate(parts) for parts in zip(*rows, strict=True)]
    order = np.argsort(columns[0] * len(world.items) + columns[1], kind="stable")
    settings = {
        "models": list(world.models), "metrics": [str(metric) for metric in wished], "per_user": per_user,
        "uniform": uniform, "likely": likely, "batches": batches, "draw": str(way), "seed": seed,
        "users": len(world.users), "items": len(world.items),
    }  # fmt: skip
    user, item, batch, chance = (frozen(column[order]) for column in columns)
    design = ExposureDesign(world.users, world.items, user, item, batch, chance, settings)
    return PlannedDesign(design, maker.savings(), per_user, uniform)


# ---------------------------------------------------------------------------------------------------------------- draws


def _draws(
    maker: DesignProbabilities, world: DesignData, *, batches: int, way: DrawBy, seed: int, progress: Progress | None
) -> Iterator[tuple[Ints, Ints, Ints, Floats]]:
    """Users, items, batches and chances of what is to be shown, user after user."""
    keys = world.users.keys()
    sizes = [maker.per_user // batches + (batch < maker.per_user % batches) for batch in range(batches)]
    for user in range(len(world.users)):
        likely, seen = world.likely(user), world.seen(user)
        guess = likely**2
        wish, listed = maker.wishes(user, guess)
        chance, gone = maker.chances(likely, wish, seen, maker.per_user), seen
        maker.expect(user, guess, chance, seen)
        rng = generator(seed, f"design for {keys[user]}")
        for batch, n in enumerate(sizes, start=1):
            if batches > 1:
                chance = maker.chances(likely, wish, gone, n)
            rows = drawn_places(chance, listed, way, rng)
            gone = np.concatenate([gone, rows])
            yield np.full(len(rows), user), world.order[rows], np.full(len(rows), batch), chance[rows]
        if progress is not None and (user + 1) % BLOCK_USERS == 0:
            progress("choosing what to show", user + 1, len(world.users))


def drawn_places(chance: Floats, listed: Ints, way: DrawBy, rng: np.random.Generator) -> Ints:
    """Places that are drawn: what is in lists first, in an order drawn for this user; then the others as laid out."""
    first = rng.permutation(listed)
    rest = chance.copy()
    rest[first] = 0.0
    picked = way.pick(np.concatenate([chance[first], rest]), rng)
    return np.concatenate([first, np.arange(len(rest))])[picked]
