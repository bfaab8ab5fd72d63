"""Do the judged rows stand for the places of a list? What they say of it against what is known.

Each row stands for 1 / π rows like it (π its chance to be judged), so Σ w / π over judged rows estimates the worth of
all places, Σ_{r <= K} w(r), which is known without a single label. If the two differ by more than chance, the rows
avoid or prefer what a model recommends, or some that would weigh much were not drawn; then labels tell of other rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.metric import Additive
from truerank.core.ranking import JudgedChunk, Ranks
from truerank.core.terms import Smooth
from truerank.estimators.rows import Sample, total_discount
from truerank.inference.linearization import influences
from truerank.metrics.worth import expected_worth, known_divisor, relevant

FAR = 3.0  # standard errors
MUCH = 0.02  # of the places
FEWEST_ROWS = 10.0  # labelled rows in the lists: fewer carry no verdict and no check of balance
WEIGHT_BINS = 40  # of labelled rows in lists by weight 1 / π, each twice as heavy as the one before
PRIOR_ROWS = 4.0  # what the lighter rows say counts as so many rows of the next heavier ones
LARGER = 1.25  # errors as the weights make them against what the interval says; between users it says more, not less


@dataclass(frozen=True, slots=True)
class Places:
    """The places of each user's list: the judged `rows` in it with their worth w (whatever their label), Σ w, Σ w², and
    how many there are.

    All divided by what the metric divides by, where that is known; users whose value is not `defined` have none.
    """

    rows: Ints
    worth: Floats
    total: Floats
    squares: Floats
    number: Floats
    defined: Bools

    @classmethod
    def of(cls, metric: Additive, ranks: Ranks, chunk: JudgedChunk) -> Places:
        unknown = metric.denominator.needs_every_label
        divisor = np.ones(len(ranks.scored)) if unknown else known_divisor(metric.denominator, metric.cutoff, ranks)
        defined = ranks.scored & ~np.isnan(divisor) & ~(ranks.n_candidates == 0)
        divisor = np.where(defined, divisor, 1.0)
        total = np.where(defined, total_discount(metric, ranks) / divisor, 0.0)
        squares = np.where(defined, total_discount(metric, ranks, power=2) / divisor**2, 0.0)
        if metric.cutoff is None:  # every rank counts, but few of them much: as many equal ones as are worth as much
            number = np.divide(total**2, squares, out=np.zeros(len(total)), where=squares > 0)
        else:
            number = np.where(defined, np.minimum(ranks.n_recommended, metric.cutoff), 0.0)
        # few rows are in lists: the others are not looked at twice
        rows = np.flatnonzero(ranks.above < (np.inf if metric.cutoff is None else metric.cutoff))
        unit = chunk.labels.unit[rows]
        listed = replace(ranks, above=ranks.above[rows], tied=ranks.tied[rows])
        worth = np.where(defined[unit], expected_worth(metric, listed) / divisor[unit], 0.0)
        return cls(rows, worth, total, squares, number, defined)

    def by_user(self, chunk: JudgedChunk, values: Floats) -> Floats:
        """Sums of values of the rows in lists over each user."""
        return sums_by(chunk.labels.unit[self.rows], values, n=len(self.defined))


@dataclass(frozen=True, slots=True)
class Balance:
    """Sums over users of what is known of the places of a list, and of what judged rows say; those of others add.

    `known` is D = Σ w over places, `said` D̂ = Σ w / π over judged rows with its `variance` V, `rows` how many judged
    rows of the lists are expected. Where propensities were fitted or have no scale (`relative`), shares are compared: D̂
    of Σ 1 / π (`stand_for`) with D of all `pairs`; then V is Σ (w - D / pairs)² / π² over judged rows, never too small.

    >>> found = Balance(known=200.0, said=140.0, variance=36.0, rows=60.0)
    >>> found.share, found.z, found.failed
    (0.7, -10.0, True)
    """

    known: float
    said: float
    variance: float
    rows: float
    pairs: float = 0.0
    stand_for: float = 0.0
    squares: float = 0.0  # Σ w² / π²
    products: float = 0.0  # Σ w / π²
    inverses: float = 0.0  # Σ 1 / π²
    relative: bool = False
    # how many labelled rows of each weight, how many of them are relevant, and Σ w² (1 - π) / π² over them
    by_weight: Floats = field(default_factory=lambda: np.zeros((3, WEIGHT_BINS)), compare=False)

    def __add__(self, other: Balance) -> Balance:
        sums = {
            each.name: getattr(self, each.name) + getattr(other, each.name)
            for each in fields(self)
            if each.name != "relative"
        }
        return Balance(**sums, relative=self.relative)

    @property
    def expected(self) -> float:
        """What D̂ should be: D, or its share of all pairs that the rows stand for."""
        return self.known * self.stand_for / self.pairs if self.relative and self.pairs else self.known

    @property
    def share(self) -> float:
        """D̂ / D: 1 if the rows stand for all places."""
        return self.said / self.expected if self.expected > 0 else math.nan

    @property
    def z(self) -> float:
        """How many standard errors D̂ is from what it should be."""
        variance, apart = self.variance, self.said - self.expected
        if self.relative:
            each = self.known / self.pairs if self.pairs else math.nan
            variance = self.squares - 2 * each * self.products + each**2 * self.inverses
        if not apart or abs(apart) <= 1e-9 * self.expected:
            return 0.0
        return apart / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, apart)

    @property
    def checkable(self) -> bool:
        """Whether enough rows of the lists are expected to see anything."""
        return self.rows >= FEWEST_ROWS and math.isfinite(self.share)

    @property
    def failed(self) -> bool:
        return self.checkable and abs(self.z) > FAR and abs(self.share - 1) > MUCH


def uniform_balance(
    chunk: JudgedChunk, ranks: Ranks, metric: Additive, *, rate: float | None
) -> tuple[Balance, Floats]:
    """The balance of rows that were drawn uniformly, N-bar of N or each at a `rate`; and Σ w / π of every user.

    V is that of the design over all candidates, not of the rows that were drawn: Σ_u N² (1 - N-bar / N) S² / N-bar with
    S² = (Σ w² - (Σ w)² / N) / (N - 1), users with N-bar >= 1; or Σ w² (1 - rate) / rate over all users. Tied candidates
    share what their ranks are worth, so that the true Σ w² can only be smaller: V is never too small.
    """
    places = Places.of(metric, ranks, chunk)
    if np.isnan(ranks.n_candidates).any():  # top lists of an unknown catalogue: nothing tells what a row stands for
        return Balance(math.nan, math.nan, math.nan, 0.0), np.zeros(len(ranks.scored))
    sample = Sample.uniform(chunk, ranks, rate=rate, usable=places.defined)
    used, n, judged = sample.defined, sample.n_candidates, sample.n_labelled
    said = np.where(used, sample.expansion * places.by_user(chunk, places.worth), 0.0)
    if rate is None:
        share = np.divide(judged, n, out=np.zeros(len(n)), where=used)
        around = np.maximum(places.squares - places.total**2 / np.maximum(n, 1), 0.0)
        spread = np.divide(around, n - 1, out=np.zeros(len(n)), where=n > 1)
        variance = np.divide(n**2 * (1 - share) * spread, judged, out=np.zeros(len(n)), where=used)
    else:
        share, variance = np.full(len(n), rate), places.squares * (1 - rate) / rate
    known, rows, noise = (float(each[used].sum()) for each in (places.total, places.number * share, variance))
    return Balance(known, float(said.sum()), noise, rows), said


def weighted_balance(
    chunk: JudgedChunk, ranks: Ranks, metric: Additive, *, propensity: Floats, relative: bool
) -> tuple[Balance, Floats]:
    """The balance of rows that were drawn with unequal propensities π; and Σ w / π of every user.

    π is known of drawn rows alone, so V is estimated from them, Σ w² (1 - π) / π²: unbiased, but blind to rows that
    would weigh much and were not drawn. Where such rows are missing, V is too small as well, and the balance fails
    more readily: that is as it should be, since the estimate then misses what they stand for.
    """
    places = Places.of(metric, ranks, chunk)
    every = np.where(places.defined[chunk.labels.unit], 1.0 / propensity, 0.0)
    worth, weight = places.worth, every[places.rows]
    said = places.by_user(chunk, worth * weight)
    variance = worth**2 * np.maximum(1 - propensity[places.rows], 0.0) * weight**2
    balance = Balance(
        known=float(places.total.sum()),
        said=float(said.sum()),
        variance=float(variance.sum()),
        rows=float(np.count_nonzero(worth)),  # E Σ 1{drawn} = Σ π
        pairs=float(np.where(places.defined, ranks.n_candidates, 0.0).sum()),
        stand_for=float(every.sum()),
        squares=float((worth**2 * weight**2).sum()),
        products=float((worth * weight**2).sum()),
        inverses=float((every**2).sum()),
        relative=relative,
        by_weight=_by_weight(weight[worth > 0], relevant(chunk.labels)[places.rows][worth > 0], variance[worth > 0]),
    )
    return balance, said


def _by_weight(weight: Floats, positive: Bools, variance: Floats) -> Floats:
    """Labelled rows in lists, relevant ones and their variances, by powers of 2 of the weight.

    >>> _by_weight(np.array([1.0, 1.5, 9.0]), np.array([True, False, True]), np.array([0.0, 1.0, 5.0]))[:, :4].tolist()
    [[2.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 5.0]]
    """
    place = np.clip(np.log2(np.maximum(weight, 1.0)).astype(np.int64), 0, WEIGHT_BINS - 1)
    return np.stack([sums_by(place, values, n=WEIGHT_BINS) for values in (np.ones(len(place)), positive, variance)])


def designed_balance(chunk: JudgedChunk, ranks: Ranks, metric: Additive) -> tuple[Balance, Floats]:
    """The same of rows that carry the chances of a design, among users of whom something came back.

    What a sample of fixed size varies less than independent draws would is not taken off: V is rather too large.
    """
    log = chunk.labels
    answered = np.bincount(log.unit, minlength=log.n_units) > 0
    chance = np.ones(len(log)) if log.propensity is None else log.propensity
    among = replace(ranks, scored=ranks.scored & answered)
    return weighted_balance(chunk, among, metric, propensity=chance, relative=False)


def quiet_weights(balance: Balance, terms: Smooth, *, recall: bool) -> tuple[float, float]:
    """The error that the weights of rows in lists imply and the one that the interval shows; 0, 0 where it shows all.

    Heavy rows of the lists may happen to have no relevant item, so that the error does not show what they weigh. Rows
    of one weight of which a share p is relevant have Var Σ w y / π of about p (1 - p) Σ w² (1 - π) / π². p is
    estimated from the lightest rows to the heaviest, those before counting as a few rows of the next: many heavy rows
    that are seldom relevant are so, and few that are not may have been so by chance. The sum is a part of the error of
    the value (for recall, of its numerator); where it is larger than the error that the relevant rows show, the next
    heavy row that is relevant changes value and error at once.
    """
    if not balance.known > 0:
        return 0.0, 0.0
    value, divided = terms.value(), terms.totals()[1]
    per = divided / (1 - value) if recall and value < 1 else float(terms.n_defined)
    if not per > 0:
        return 0.0, 0.0
    implied = math.sqrt(_implied_variance(balance.by_weight)) / per
    error = math.sqrt(float((influences(terms).effect ** 2).sum()))
    return (implied, error) if error > 0 and implied > LARGER * error else (0.0, 0.0)


def _implied_variance(by_weight: Floats) -> float:
    """Σ p (1 - p) Σ w² (1 - π) / π² over weights, p from the lightest to the heaviest.

    >>> light, heavy = [100.0, 20.0, 50.0], [1.0, 0.0, 1000.0]
    >>> round(_implied_variance(np.array([light, heavy]).T), 2)  # p = .2, then 4 x .2 / (4 + 1) = .16
    142.36
    """
    rows, positive, variance = by_weight
    total, share = 0.0, positive.sum() / max(rows.sum(), 1.0)
    for place in np.flatnonzero(rows):
        share = (positive[place] + PRIOR_ROWS * share) / (rows[place] + PRIOR_ROWS)
        total += share * (1.0 - share) * variance[place]
    return float(total)
