"""Recall, and the data of the experiments: a block with every label as biased log, random slice and rest; and Coat.

D_full is the rest, D_rand a uniform sample of it for each user, N-bar items each.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, frozen
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import Ranks
from truerank.core.rng import cell_uniforms, generator
from truerank.datasets.feeds import KuaiRec
from truerank.datasets.ratings import Coat, YahooR3
from truerank.datasets.split import restrict, short_first
from truerank.inference.agreement import correlation, rank_correlation
from truerank.simulation.dataset import DatasetSettings, simulate_dataset
from truerank_research.claims import Cell
from truerank_research.estimators.weighted import kept_chance
from truerank_research.papers.splits import popular_first, split_random, ure_kuairec
from truerank_research.runner import Setting


def recall_at(position: Ints, label: Bools, cutoffs: Sequence[int]) -> Floats:
    """Mean over rows with a positive of the share of its positives at positions up to K, for ascending cutoffs.

    >>> position, label = np.array([[1, 2, 3], [3, 1, 2]]), np.array([[True, False, True], [True, False, False]])
    >>> recall_at(position, label, [1, 2, 3]).tolist()
    [0.25, 0.25, 1.0]
    """
    row, column = np.nonzero(label)
    number = label.sum(axis=1)
    n_users = np.count_nonzero(number)
    if n_users == 0:
        return np.full(len(cutoffs), np.nan)
    first = np.searchsorted(np.asarray(cutoffs), position[row, column])
    return np.cumsum(np.bincount(first, weights=1 / number[row], minlength=len(cutoffs) + 1)[:-1]) / n_users


def among(position: Ints, label: Bools) -> Ints:
    """The position of each positive among the columns of its own row alone, from 1; of others 0.

    >>> among(np.array([[40, 7, 900]]), np.array([[True, False, True]])).tolist()
    [[2, 0, 3]]
    """
    row, column = np.nonzero(label)
    rank = np.zeros(position.shape, dtype=np.int64)
    rank[row, column] = 1 + (position[row] < position[row, column][:, None]).sum(axis=1)
    return rank


def traditional(position: Ints, label: Bools, cutoffs: Sequence[int]) -> Floats:
    """Recall@K-bar: recall where only labelled items are candidates, at each of these cutoffs."""
    return recall_at(among(position, label), label, cutoffs)


@dataclass(frozen=True, slots=True)
class SampledRecall:
    """Recall of models: `truth` [models x K], `ure` [models x draws x N-bar x K], `traditional` [... x K-bar]."""

    truth: Floats
    ure: Floats
    traditional: Floats


@dataclass(frozen=True, slots=True)
class RecallGrid:
    """Cutoffs, sizes of samples, cutoffs within the sample, and number of draws."""

    cutoffs: tuple[int, ...]
    judged: tuple[int, ...]
    within: tuple[int, ...]  # K-bar
    draws: int

    def measure(self, split: Split, positions: Sequence[Ints], *, seed: int) -> SampledRecall:
        """Recall of all models on the same draws."""
        truth = np.array([recall_at(position, split.label, self.cutoffs) for position in positions])
        shape = (len(positions), self.draws, len(self.judged))
        ure, old = np.empty((*shape, len(self.cutoffs))), np.empty((*shape, len(self.within)))
        for number in range(self.draws):
            column = split.draw(max(self.judged), seed=seed, number=number)
            label = np.take_along_axis(split.label, column, axis=1)
            for model, every in enumerate(positions):
                position = np.take_along_axis(every, column, axis=1)
                for at, n in enumerate(self.judged):
                    ure[model, number, at] = recall_at(position[:, :n], label[:, :n], self.cutoffs)
                    old[model, number, at] = traditional(position[:, :n], label[:, :n], self.within)
        return SampledRecall(truth, ure, old)


def cutoffs_up_to(n: int) -> tuple[int, ...]:
    """Cutoffs from 1 to n in equal ratios, each whole number once.

    >>> cutoffs_up_to(8)
    (1, 2, 3, 4, 6, 8)
    """
    number = int(np.ceil(np.log2(n) * 2)) + 1
    return tuple(int(k) for k in np.unique(np.round(np.geomspace(1, n, number))))


@dataclass(frozen=True, slots=True)
class AgreementCurve:
    """Over cutoffs K: the mean coefficient of all draws, the range of nine tenths of them, the largest p of any."""

    mean: Floats
    low: Floats
    high: Floats
    p: Floats

    @property
    def best(self) -> int:
        """The index of K_max: where the mean is highest, the first of equals."""
        return int(np.where(np.isnan(self.mean), -np.inf, self.mean).argmax())

    def cells(self, table: str, column: str, cutoffs: Sequence[int]) -> list[Cell]:
        values = zip(cutoffs, self.mean, self.low, self.high, strict=False)
        return [Cell(table, f"K = {k}", column, mean, low=low, high=high) for k, mean, low, high in values]


def coefficient(x: Floats, y: Floats, *, kendall: bool) -> tuple[float, float]:
    """Pearson's r or Kendall's τ with its two-sided p; NaN where a series does not vary.

    >>> x, y = np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 4, 3])
    >>> [round(coefficient(x, y, kendall=kendall)[0], 3) for kendall in (False, True)]
    [0.8, 0.667]
    """
    if kendall:
        order = rank_correlation(x, y)
        return order.coefficient, order.p
    linear = correlation(x, y)
    return linear.coefficient, linear.p


def curve(estimate: Floats, truth: Floats, *, kendall: bool) -> AgreementCurve:
    """Pearson's r or Kendall's τ over models of an estimate [models x draws] with truth at each cutoff [models x K].

    An estimate for each cutoff is [models x draws x K].
    """
    n_draws, n_cutoffs = estimate.shape[1], truth.shape[1]
    value, p = np.empty((n_draws, n_cutoffs)), np.empty((n_draws, n_cutoffs))
    for draw in range(n_draws):
        for at in range(n_cutoffs):
            x, y = estimate[:, draw, at] if estimate.ndim == 3 else estimate[:, draw], truth[:, at]
            value[draw, at], p[draw, at] = coefficient(x, y, kendall=kendall)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a cutoff at which every draw is constant has no number
        low, high = np.nanquantile(value, [0.05, 0.95], axis=0)
        return AgreementCurve(np.nanmean(value, axis=0), low, high, np.nanmax(p, axis=0))


def inclusion_chance(positives: Floats | Ints, size: Floats | Ints, *, judged: int) -> Floats:
    """The probability that a user has a labelled positive: π = 1 - C(N - N⁺, N-bar) / C(N, N-bar).

    >>> inclusion_chance(np.array([1, 0, 3]), np.array([4, 4, 4]), judged=2).round(6).tolist()
    [0.5, 0.0, 1.0]
    """
    n = size.astype(np.float64)
    return kept_chance(positives, n_candidates=n, n_judged=np.full(len(n), float(judged)))


def weighted_mean(ratio: Floats, chance: Floats) -> float:
    """Σ (m / n) / π over users with a labelled positive, over the number of users with π > 0: exactly unbiased.

    `ratio` is m / n, 0 for users without a labelled positive. Needs N⁺ of every user.

    >>> weighted_mean(np.array([1.0, 0.0]), np.array([0.5, 1.0]))
    1.0
    """
    can = chance > 0
    return float(np.sum(ratio[can] / chance[can]) / np.count_nonzero(can))


SCALE = 1000.0  # λ of the weights exp(-k / λ) that make the log biased; the paper names none
SLICE_PER_USER = 80  # cells drawn uniformly for each user; a tenth of them is for debiasing
SLICE = 0.1
SHAPE, QUICK_SHAPE = (1411, 3327), (60, 120)  # users and items of KuaiRec's block, and of the quick size
COAT_SHAPE, QUICK_COAT = (290, 300), (60, 80)
DIFFERENCES = (
    "The files here have no durations, so the biased log exposes items with many positives more often, with weights "
    f"exp(-k / {SCALE:g}) for the k-th in that order. The paper draws short videos more often and does not say how "
    "strongly. With the original files, which have durations, short videos are exposed more often.",
    "17,827 cells of KuaiRec's block (0.4 %) were not observed; in the compact files they count as negatives.",
)
SIMULATED = ("A simulated dataset replaces KuaiRec: compare relations between numbers, not the numbers.",)


@dataclass(frozen=True, slots=True)
class Block:
    """KuaiRec's block, or a simulated one; the smaller `scale`, the more the log exposes few items (inf: all alike)."""

    setting: Setting
    scale: float = SCALE

    @property
    def differences(self) -> tuple[str, ...]:
        return SIMULATED if self.setting.source.is_synthetic else DIFFERENCES

    def training_data(self) -> tuple[Log, Log]:
        """The biased log and the random slice."""
        split = split_of(self)
        return split.train, split.uniform

    def labels(self) -> Log:
        """Every cell with its label."""
        users, items = SHAPE if self.setting.full else QUICK_SHAPE
        if self.setting.source.is_synthetic:
            size = DatasetSettings(users=users, items=items, shown=items // 10, judged=items // 10)
            return simulate_dataset(size, seed=self.setting.seed).truth
        full = KuaiRec().load(self.setting.source.path("kuairec"), parts=["full"])["full"]
        if users >= len(full.users):
            return full
        return restrict(full, users=Ids.of(full.users.values[:users]), items=full.items)


@dataclass(frozen=True, slots=True)
class Split:
    """A biased log, a random slice for debiasing, and D_full as padded rows of candidates for each user.

    Candidates are in random order, so that a stable sort breaks ties at random. The first `count` columns of a user
    are candidates; `label` is False beyond.
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
        """The rank of every candidate from 1 by p_u · q_i, higher is better; padding comes last."""
        score = np.take_along_axis(user @ item.T, self.item, axis=1)
        score[np.arange(score.shape[1]) >= self.count[:, None]] = -np.inf
        order = np.argsort(-score, axis=1, kind="stable")
        position = np.empty(score.shape, dtype=np.int64)
        np.put_along_axis(position, order, np.arange(1, score.shape[1] + 1)[None, :], axis=1)
        return position

    def draw(self, most: int, *, seed: int, number: int) -> Ints:
        """Columns of a uniform sample without recolumnment for each user [users x most]; the first n are one of size n.

        `most` is at most the smallest number of candidates.
        """
        rng = generator(seed, f"D_rand {number}")
        key = rng.random(self.item.shape, dtype=np.float32)
        key[np.arange(key.shape[1]) >= self.count[:, None]] = 2.0
        first = np.argpartition(key, most - 1, axis=1)[:, :most] if most < key.shape[1] else np.argsort(key, axis=1)
        order = np.argsort(np.take_along_axis(key, first, axis=1), axis=1)
        return np.asarray(np.take_along_axis(first, order, axis=1))

    def sampled_log(self, column: Ints) -> Log:
        """The sample as a log of labelled pairs."""
        n_users, n = column.shape
        return Log(
            users=self.train.users,
            items=self.train.items,
            unit=np.repeat(np.arange(n_users), n),
            item=np.take_along_axis(self.item, column, axis=1).ravel(),
            rewards={"label": np.take_along_axis(self.label, column, axis=1).ravel().astype(np.float64)},
        )

    def ranks(self, position: Ints, column: Ints) -> Ranks:
        """The ranks of the sample's rows among all candidates."""
        count = self.count.astype(np.float64)
        above = np.take_along_axis(position, column, axis=1).ravel().astype(np.float64) - 1
        return Ranks(above, np.zeros(len(above)), count, count, np.ones(len(count), dtype=bool))


@lru_cache(maxsize=1)
def split_of(block: Block) -> Split:
    """The split of a block; a process keeps the last one, as all its pieces train on the same."""
    labels, seed = block.labels(), block.setting.seed
    weigh = short_first if "video_duration" in labels.rewards else popular_first
    parts = ure_kuairec(labels, weigh(labels, scale=block.scale), seed=seed, shown=_exposed(labels), uniform=SLICE)
    rest = parts["full"]
    return Split(parts["train"], parts["uniform"], *_padded(rest, rest.label == 1, seed=seed))


def _padded(rest: Log, label: Bools, *, seed: int) -> tuple[Ints, Bools, Ints]:
    """Padded rows of candidates for each user in random order: items, labels, and their numbers."""
    key = cell_uniforms(seed, "order of candidates", rest.users.keys()[rest.user], rest.items.keys()[rest.item])
    order = np.lexsort((key, rest.user))
    count = np.bincount(rest.user, minlength=len(rest.users))
    column = np.arange(len(rest)) - np.repeat(np.cumsum(count) - count, count)
    item = np.zeros((len(count), int(count.max())), dtype=np.int64)
    labels = np.zeros(item.shape, dtype=bool)
    item[rest.user[order], column] = rest.item[order]
    labels[rest.user[order], column] = label[order]
    return frozen(item), frozen(labels), frozen(count)


def _exposed(labels: Log) -> int:
    """80 for each user; more where users are few, so that the slice has positives; half of the items at most."""
    if len(labels.items) <= 2 * SLICE_PER_USER:
        return len(labels.items) // 2
    return max(SLICE_PER_USER, 4_800 // len(labels.users))


@dataclass(frozen=True, slots=True)
class CoatBlock:
    """Coat, or Yahoo!R3 where it is given: a biased log, and a random part of which a tenth is for debiasing."""

    setting: Setting
    dataset: str = Coat.name

    def training_data(self) -> tuple[Log, Log]:
        """The biased log and the random slice."""
        split, _ = coat_split(self)
        return split.train, split.uniform

    def parts(self) -> tuple[Log, Log]:
        """The biased and the random part, over the same users and items, without propensities."""
        if self.setting.source.is_synthetic:
            users, items = COAT_SHAPE if self.setting.full else QUICK_COAT
            size = DatasetSettings(users=users, items=items, shown=24, judged=16, density=0.15)
            world = simulate_dataset(size, seed=self.setting.seed)
            return world.train, world.random
        logs = (Coat() if self.dataset == Coat.name else YahooR3()).load(self.setting.source.path(self.dataset))
        train = replace(logs["train"], propensity=None)
        return train, restrict(logs["random"], users=train.users, items=train.items)


@lru_cache(maxsize=1)
def coat_split(block: CoatBlock) -> tuple[Split, Bools]:
    """Candidates are all items in neither the log nor the slice; the second value says which of them are labelled.

    Labels are those of labelled positives. Random rows that are also in the log are left out: models have seen them.
    """
    train, random = block.parts()
    seen, labelled, liked = (np.zeros((len(train.users), len(train.items)), dtype=bool) for _ in range(3))
    seen[train.user, train.item] = True
    unseen = random.select(~seen[random.user, random.item])
    rest, uniform = split_random(unseen, SLICE, seed=block.setting.seed)
    seen[uniform.user, uniform.item] = True
    user, item = np.nonzero(~seen)
    labelled[rest.user, rest.item] = True
    liked[rest.user, rest.item] = rest.label == 1
    candidates = Log(train.users, train.items, user, item, {"label": np.zeros(len(user))})
    items, label, count = _padded(candidates, liked[user, item], seed=block.setting.seed)
    among = np.take_along_axis(labelled, items, axis=1) & (np.arange(items.shape[1]) < count[:, None])
    return Split(train, uniform, items, label, count), frozen(among)
