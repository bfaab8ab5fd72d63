"""Advice by a study of one's own, or by the nearest of those that come with the package.

The shipped ones hold aggregates of scenarios alone, made by `truerank_research.papers.reliability.pack`. Each is a
folder in `shipped/` with a `world.json`, which names its world, where it comes from and the terms of its data (see
NOTICE).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import msgspec

from truerank.core.errors import InputError, some
from truerank.core.log import Log
from truerank.core.wording import either
from truerank.studies.reliability.advice import Advice, advise_by
from truerank.studies.reliability.advice_words import outside
from truerank.studies.reliability.studied import Studied

SHIPPED = Path(__file__).parent / "shipped"
WORLD = "world.json"


@dataclass(frozen=True, slots=True)
class StudiedWorld:
    """Where a shipped study comes from, and under which terms."""

    name: str
    what: str
    home: str
    terms: str
    made_by: str


@cache
def shipped_worlds() -> dict[str, StudiedWorld]:
    """The worlds whose studies come with the package, by folder.

    >>> [each.name for each in shipped_worlds().values()]
    ['Jester', 'KuaiRec']
    """
    paths = sorted(SHIPPED.glob(f"*/{WORLD}"))
    return {path.parent.name: msgspec.json.decode(path.read_bytes(), type=StudiedWorld) for path in paths}


@cache
def shipped_studies() -> tuple[Studied, ...]:
    """These studies, each named by its world."""
    return tuple(
        Studied.read(SHIPPED / folder, source=f"{world.name} ({world.what})")
        for folder, world in shipped_worlds().items()
    )


def advise(
    log: Log,
    study: str | Path | Studied | None = None,
    *,
    metric: str | None = None,
    n_items: int | None = None,
    logger: str | None = None,
    sparsity: float | None = None,
    users: int | None = None,
) -> Advice:
    """Which sampler and size keep the true order of models best on logs like this one: `advise_by` a study.

    Without one it goes by the nearest of those that come with the package: the one that the log lies outside of in the
    fewest ways, and of these the one whose logger is nearest.
    """

    def ask(by: str | Path | Studied) -> Advice:
        return advise_by(by, log, metric=metric, n_items=n_items, logger=logger, sparsity=sparsity, users=users)

    if study is not None:
        return ask(study)
    found = [ask(each) for each in _with_metric(shipped_studies(), metric)]
    # where positives alone are known no logger is compared, and its distance is not a number
    nearest = min(found, key=lambda each: (len(outside(each)), each.logger.distance if each.logger.distance > 0 else 0))
    return replace(nearest, shipped=tuple(world.name for world in shipped_worlds().values()))


def _with_metric(studies: Sequence[Studied], metric: str | None) -> list[Studied]:
    able = [each for each in studies if metric is None or metric in each.metrics]
    if not able:
        known = list(dict.fromkeys(name for each in studies for name in each.metrics))
        raise InputError(
            f"metric {metric!r} is in none of the studies that come with truerank; expected one of "
            f"{some(known, most=20)}, or a study of your own with it: {either('--study DIR', 'study=DIR')}."
        )
    return able
