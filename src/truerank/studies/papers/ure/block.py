"""The block that URE's experiments are about: every label known, split into a biased log, a random slice and the rest.

D_full is the rest, D_rand a uniform sample of it for each user, N-bar items each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, frozen
from truerank.core.chance import cell_uniforms, generator
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import Ranks
from truerank.data.datasets.kuairec import KuaiRec
from truerank.data.split import popular_first, restrict, short_first, ure_kuairec
from truerank.studies.work import StudySize, StudySource
from truerank.studies.world import WorldSettings, make_world

DATA = "kuairec"
SCALE = 1000.0  # λ of the weights exp(-k / λ) that make the log biased; the paper names none
SLICE_PER_USER = 80  # a tenth of this many cells for each user, drawn uniformly, is for debiasing
SLICE = 0.1
QUICK_USERS, QUICK_ITEMS = 60, 120
USERS, ITEMS = 1411, 3327  # of KuaiRec's block, and of the synthetic world of its shape
DIFFERS = (
    "The files here have no durations, so the biased log shows items with many positives more often, with weights "
    f"exp(-k / {SCALE:g}) for the k-th in that order; the paper draws short videos more often, and does not say how "
    "strongly. "
    "Where the original files are given, with durations, short videos are shown more often.",
    "17,827 cells of KuaiRec's block (0.4 %) were not observed; in the compact files they count as negatives.",
)
WORLD = (
    "A synthetic world stands for KuaiRec: its numbers are not those of the paper, the relations between them can be.",
)


@dataclass(frozen=True, slots=True)
class UreBlock:
    """Where a block comes from: a folder with KuaiRec, of which the first `users` are taken, or a world that large.

    The smaller `scale` is, the more are a few items shown; infinity shows all alike.
    """

    folder: Path | None
    users: int
    items: int
    seed: int
    scale: float = SCALE

    @classmethod
    def of(cls, source: StudySource, *, size: StudySize, seed: int) -> UreBlock:
        folder = None if source.is_synthetic else source.place(DATA)
        full = size is StudySize.FULL
        return cls(folder, USERS if full else QUICK_USERS, ITEMS if full else QUICK_ITEMS, seed)

    @property
    def differs(self) -> tuple[str, ...]:
        return WORLD if self.folder is None else DIFFERS

    def learning(self) -> tuple[Log, Log]:
        """What models learn from: the biased log and the random slice."""
        split = split_of(self)
        return split.train, split.uniform

    def labels(self) -> Log:
        """Every cell with its label."""
        if self.folder is None:
            settings = WorldSettings(
                users=self.users, items=self.items, shown=self.items // 10, judged=self.items // 10
            )
            return make_world(settings, seed=self.seed).truth
        full = KuaiRec().load(self.folder, parts=["full"])["full"]
        if self.users >= len(full.users):
            return full
        return restrict(full, users=Ids.of(full.users.values[: self.users]), items=full.items)


@dataclass(frozen=True, slots=True)
class UreSplit:
    """A biased log, a random slice for debiasing, and D_full as rows of candidates for each user, padded.

    Candidates stand in an order drawn by chance, so that a stable sort settles ties by chance. `label` is False where
    a row is padded, and the first `count` places of a user are candidates.
    """

    train: Log
    uniform: Log
    item: Ints
    label: Bools
    count: Ints

    @property
    def n_positives(self) -> Ints:
        return np.asarray(self.label.sum(axis=1))

    @property
    def n_candidates(self) -> float:
        """N, the mean over users."""
        return float(self.count.mean())

    def positions(self, user: Floats, item: Floats) -> Ints:
        """The rank of every candidate from 1 by p_u · q_i, higher is better; padded places come last."""
        score = np.take_along_axis(user @ item.T, self.item, axis=1)
        score[np.arange(score.shape[1]) >= self.count[:, None]] = -np.inf
        order = np.argsort(-score, axis=1, kind="stable")
        found = np.empty(score.shape, dtype=np.int64)
        np.put_along_axis(found, order, np.arange(1, score.shape[1] + 1)[None, :], axis=1)
        return found

    def drawn(self, most: int, *, seed: int, number: int) -> Ints:
        """Places of a uniform sample without replacement for each user [users x most]; the first n are one of size n.

        A user with fewer candidates is no use here: `most` is at most the smallest number of them.
        """
        rng = generator(seed, f"D_rand {number}")
        key = rng.random(self.item.shape, dtype=np.float32)
        key[np.arange(key.shape[1]) >= self.count[:, None]] = 2.0
        first = np.argpartition(key, most - 1, axis=1)[:, :most] if most < key.shape[1] else np.argsort(key, axis=1)
        order = np.argsort(np.take_along_axis(key, first, axis=1), axis=1)
        return np.asarray(np.take_along_axis(first, order, axis=1))

    def judged(self, place: Ints) -> Log:
        """The sample as a log of judged rows."""
        n_users, n = place.shape
        return Log(
            users=self.train.users,
            items=self.train.items,
            user=np.repeat(np.arange(n_users), n),
            item=np.take_along_axis(self.item, place, axis=1).ravel(),
            rewards={"label": np.take_along_axis(self.label, place, axis=1).ravel().astype(np.float64)},
        )

    def ranks(self, position: Ints, place: Ints) -> Ranks:
        """The ranks of the sample's rows among all candidates."""
        count = self.count.astype(np.float64)
        above = np.take_along_axis(position, place, axis=1).ravel().astype(np.float64) - 1
        return Ranks(above, np.zeros(len(above)), count, count, np.ones(len(count), dtype=bool))


@lru_cache(maxsize=1)
def split_of(block: UreBlock) -> UreSplit:
    """The split of a block; a process keeps the last one, as all its pieces learn from the same."""
    labels = block.labels()
    weigh = short_first if "video_duration" in labels.rewards else popular_first
    weight = weigh(labels, scale=block.scale)
    parts = ure_kuairec(labels, weight, seed=block.seed, shown=_shown(labels), uniform=SLICE)
    rest = parts["full"]
    item, label, count = laid_out(rest, rest.label == 1, seed=block.seed)
    return UreSplit(parts["train"], parts["uniform"], item, label, count)


def laid_out(rest: Log, label: Bools, *, seed: int) -> tuple[Ints, Bools, Ints]:
    """Rows of candidates for each user, padded, in an order drawn by chance: items, labels, and their numbers."""
    chance = cell_uniforms(seed, "order of candidates", rest.users.keys()[rest.user], rest.items.keys()[rest.item])
    order = np.lexsort((chance, rest.user))
    count = np.bincount(rest.user, minlength=len(rest.users))
    column = np.arange(len(rest)) - np.repeat(np.cumsum(count) - count, count)
    item = np.zeros((len(count), int(count.max())), dtype=np.int64)
    found = np.zeros(item.shape, dtype=bool)
    item[rest.user[order], column] = rest.item[order]
    found[rest.user[order], column] = label[order]
    return frozen(item), frozen(found), frozen(count)


def _shown(labels: Log) -> int:
    """80 for each user, of which a tenth is the slice; where users are few more, so that the slice has positives.

    In a small world it is half of the items.
    """
    if len(labels.items) <= 2 * SLICE_PER_USER:
        return len(labels.items) // 2
    return max(SLICE_PER_USER, 4_800 // len(labels.users))
