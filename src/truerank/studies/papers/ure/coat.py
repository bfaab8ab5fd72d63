"""Coat in the place of Yahoo!R3: a biased log, and a random part of which a tenth is for debiasing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from truerank.core.arrays import Bools, frozen
from truerank.core.log import Log
from truerank.data.datasets.coat import Coat
from truerank.data.split import restrict, split_random
from truerank.studies.papers.ure.block import UreSplit, laid_out
from truerank.studies.work import StudySize, StudySource
from truerank.studies.world import WorldSettings, make_world

DATA = "coat"
SLICE = 0.1
USERS, ITEMS, SHOWN, JUDGED = 290, 300, 24, 16
QUICK = (60, 80)


@dataclass(frozen=True, slots=True)
class CoatBlock:
    """Where it comes from: a folder with Coat, or a world of that size."""

    folder: Path | None
    users: int
    items: int
    seed: int

    @classmethod
    def of(cls, source: StudySource, *, size: StudySize, seed: int) -> CoatBlock:
        users, items = (USERS, ITEMS) if size is StudySize.FULL else QUICK
        return cls(None if source.is_synthetic else source.place(DATA), users, items, seed)

    def learning(self) -> tuple[Log, Log]:
        """What models learn from: the biased log and the random slice."""
        split, _ = coat_split(self)
        return split.train, split.uniform

    def parts(self) -> tuple[Log, Log]:
        """The biased and the random part, over the same users and items; propensities are left to the methods."""
        if self.folder is None:
            settings = WorldSettings(users=self.users, items=self.items, shown=SHOWN, judged=JUDGED, density=0.15)
            world = make_world(settings, seed=self.seed)
            return world.train, world.random
        found = Coat().load(self.folder)
        train = replace(found["train"], propensity=None)
        return train, restrict(found["random"], users=train.users, items=train.items)


@lru_cache(maxsize=1)
def coat_split(block: CoatBlock) -> tuple[UreSplit, Bools]:
    """Candidates are all items that neither the log nor the slice shows; which of them were judged stands beside them.

    Labels are those of judged positives. Random rows that are also in the log are left out: models have seen them.
    """
    train, shown = block.parts()
    seen = np.zeros((len(train.users), len(train.items)), dtype=bool)
    seen[train.user, train.item] = True
    rest, uniform = split_random(shown.select(~seen[shown.user, shown.item]), SLICE, seed=block.seed)
    seen[uniform.user, uniform.item] = True
    user, item = np.nonzero(~seen)
    judged, liked = np.zeros(seen.shape, dtype=bool), np.zeros(seen.shape, dtype=bool)
    judged[rest.user, rest.item] = True
    liked[rest.user, rest.item] = rest.label == 1
    candidates = Log(train.users, train.items, user, item, {"label": np.zeros(len(user))})
    places, label, count = laid_out(candidates, liked[user, item], seed=block.seed)
    among = np.take_along_axis(judged, places, axis=1) & (np.arange(places.shape[1]) < count[:, None])
    return UreSplit(train, uniform, places, label, count), frozen(among)
