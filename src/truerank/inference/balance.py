"""Do the labelled rows represent the ranks of a list? What they tell of it against what is known.

Each row represents 1 / π rows like it (π its probability to be labelled), so Σ w / π over labelled rows estimates the
discount of all ranks, Σ_{r <= K} w(r), which is known without a single label. If the two differ by more than sampling
error, the rows avoid or prefer what a model recommends, or some that would weigh much were not drawn; then labels tell
of other rows.
"""

from __future__ import annotations

import math
from dataclasses import field, fields, replace

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.metric import Additive
from truerank.core.ranking import JudgedChunk, Ranks
from truerank.core.record import record
from truerank.core.terms import Smooth
from truerank.estimators.rows import Sample, total_discount
from truerank.inference.linearization import influences
from truerank.metrics.discounts import expected_discount, known_divisor, relevant

FAR = 3.0  # standard errors
MUCH = 0.02  # of the ranks
FEWEST_ROWS = 10.0  # labelled rows in the lists: fewer carry no verdict and no check of balance
WEIGHT_BINS = 40  # of labelled rows in lists by weight 1 / π, each twice as heavy as the one before
PRIOR_ROWS = 4.0  # what the lighter rows tell counts as so many rows of the next heavier ones
LARGER = 1.25  # errors as the weights make them against what the interval shows; between users it shows more, not less


@record
class ListedRows:
    """The labelled `rows` in each user's list with their discount w (whatever their label), and of all ranks Σ w, Σ w²,
    and how many there are.

    All divided by what the metric divides by, where that is known; users whose value is not `defined` have none.
    """

    rows: Ints
    discount: Floats
    total: Floats
    squares: Floats
    n_ranks: Floats
    defined: Bools

    @classmethod
    def select(cls, metric: Additive, ranks: Ranks, chunk: JudgedChunk) -> ListedRows:
        cutoff, denominator = metric.cutoff, metric.denominator
        n_users = len(ranks.scored)
        divisor = np.ones(n_users) if denominator.needs_every_label else known_divisor(denominator, cutoff, ranks)
        defined = ranks.scored & ~np.isnan(divisor) & ~(ranks.n_candidates == 0)
        divisor = np.where(defined, divisor, 1.0)
        total, squares = (
            np.where(defined, total_discount(metric, ranks, power=power) / divisor**power, 0.0) for power in (1, 2)
        )
        if cutoff is None:  # every rank counts, but few of them much: the effective number of equal ones
            n_ranks = np.divide(total**2, squares, out=np.zeros(n_users), where=squares > 0)
        else:
            n_ranks = np.where(defined, np.minimum(ranks.n_recommended, cutoff), 0.0)
        # few rows are in lists: the others are not looked at twice
        rows = np.flatnonzero(ranks.above < (np.inf if cutoff is None else cutoff))
        unit = chunk.labels.unit[rows]
        listed = replace(ranks, above=ranks.above[rows], tied=ranks.tied[rows])
        discount = np.where(defined[unit], expected_discount(metric, listed) / divisor[unit], 0.0)
        return cls(rows, discount, total, squares, n_ranks, defined)

    def by_user(self, chunk: JudgedChunk, values: Floats) -> Floats:
        """Sums of values of the rows in lists over each user."""
        return sums_by(chunk.labels.unit[self.rows], values, n=len(self.defined))


@record
class Balance:
    """Sums over users of the discount of the ranks of a list, and of its estimate from labelled rows; others add.

    `total` is D = Σ w over ranks, `estimate` D̂ = Σ w / π over labelled rows with its `variance` V, `rows` how many
    labelled rows of the lists are expected. Where propensities were fitted or have no scale (`relative`), shares are
    compared: D̂ of Σ 1 / π (`represented`) with D of all `pairs`; then V is Σ (w - D / pairs)² / π² over labelled rows,
    never too small.

    >>> found = Balance(total=200.0, estimate=140.0, variance=36.0, rows=60.0)
    >>> found.share, found.z, found.failed
    (0.7, -10.0, True)
    """

    total: float
    estimate: float
    variance: float
    rows: float
    pairs: float = 0.0
    represented: float = 0.0
    squares: float = 0.0  # Σ w² / π²
    products: float = 0.0  # Σ w / π²
    inverses: float = 0.0  # Σ 1 / π²
    relative: bool = False
    # how many labelled rows of each weight, how many of them are relevant, and Σ w² (1 - π) / π² over them
    by_weight: Floats = field(default_factory=lambda: np.zeros((3, WEIGHT_BINS)), compare=False)

    def __add__(self, more: Balance) -> Balance:
        names = [column.name for column in fields(self) if column.name != "relative"]
        return replace(self, **{name: getattr(self, name) + getattr(more, name) for name in names})

    @property
    def expected(self) -> float:
        """What D̂ should be: D, or its share of all pairs that the rows represent."""
        return self.total * self.represented / self.pairs if self.relative and self.pairs else self.total

    @property
    def share(self) -> float:
        """D̂ / D: 1 if the rows represent all ranks."""
        return self.estimate / self.expected if self.expected > 0 else math.nan

    @property
    def z(self) -> float:
        """How many standard errors D̂ is from what it should be."""
        variance, apart = self.variance, self.estimate - self.expected
        if self.relative:
            mean = self.total / self.pairs if self.pairs else math.nan
            variance = self.squares - 2 * mean * self.products + mean**2 * self.inverses
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
    listed = ListedRows.select(metric, ranks, chunk)
    if np.isnan(ranks.n_candidates).any():  # top lists of an unknown catalogue: nothing tells what a row represents
        return Balance(math.nan, math.nan, math.nan, 0.0), np.zeros(len(ranks.scored))
    sample = Sample.uniform(chunk, ranks, rate=rate, usable=listed.defined)
    used, n, labelled = sample.defined, sample.n_candidates, sample.n_labelled
    estimate = np.where(used, sample.expansion * listed.by_user(chunk, listed.discount), 0.0)
    if rate is None:
        nothing = np.zeros(len(n))
        share = np.divide(labelled, n, out=nothing.copy(), where=used)
        around = np.maximum(listed.squares - listed.total**2 / np.maximum(n, 1), 0.0)
        spread = np.divide(around, n - 1, out=nothing.copy(), where=n > 1)
        variance = np.divide(n**2 * (1 - share) * spread, labelled, out=nothing, where=used)
    else:
        share, variance = np.full(len(n), rate), listed.squares * (1 - rate) / rate
    total, rows, noise = (float(column[used].sum()) for column in (listed.total, listed.n_ranks * share, variance))
    return Balance(total, float(estimate.sum()), noise, rows), estimate


def weighted_balance(
    chunk: JudgedChunk, ranks: Ranks, metric: Additive, *, propensity: Floats, relative: bool
) -> tuple[Balance, Floats]:
    """The balance of rows that were drawn with unequal propensities π; and Σ w / π of every user.

    π is known of drawn rows alone, so V is estimated from them, Σ w² (1 - π) / π²: unbiased, but blind to rows that
    would weigh much and were not drawn. Where such rows are missing, V is too small as well, and the balance fails
    more readily: that is as it should be, since the estimate then misses what they represent.
    """
    listed = ListedRows.select(metric, ranks, chunk)
    inverse = np.where(listed.defined[chunk.labels.unit], 1.0 / propensity, 0.0)
    discount, weight = listed.discount, inverse[listed.rows]
    estimate = listed.by_user(chunk, discount * weight)
    variance = discount**2 * np.maximum(1 - propensity[listed.rows], 0.0) * weight**2
    counted = discount > 0
    positive = relevant(chunk.labels)[listed.rows]
    balance = Balance(
        total=float(listed.total.sum()),
        estimate=float(estimate.sum()),
        variance=float(variance.sum()),
        rows=float(np.count_nonzero(discount)),  # E Σ 1{drawn} = Σ π
        pairs=float(np.where(listed.defined, ranks.n_candidates, 0.0).sum()),
        represented=float(inverse.sum()),
        squares=float((discount**2 * weight**2).sum()),
        products=float((discount * weight**2).sum()),
        inverses=float((inverse**2).sum()),
        relative=relative,
        by_weight=_by_weight(weight[counted], positive[counted], variance[counted]),
    )
    return balance, estimate


def _by_weight(weight: Floats, positive: Bools, variance: Floats) -> Floats:
    """Labelled rows in lists, relevant ones and their variances, by powers of 2 of the weight.

    >>> _by_weight(np.array([1.0, 1.5, 9.0]), np.array([True, False, True]), np.array([0.0, 1.0, 5.0]))[:, :4].tolist()
    [[2.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 5.0]]
    """
    place = np.clip(np.log2(np.maximum(weight, 1.0)).astype(np.int64), 0, WEIGHT_BINS - 1)
    return np.stack([sums_by(place, values, n=WEIGHT_BINS) for values in (np.ones(len(place)), positive, variance)])


def designed_balance(chunk: JudgedChunk, ranks: Ranks, metric: Additive) -> tuple[Balance, Floats]:
    """The same of rows that carry the probabilities of a design, among users of whom something came back.

    What a sample of fixed size varies less than independent draws would is not taken off: V is rather too large.
    """
    log = chunk.labels
    answered = np.bincount(log.unit, minlength=log.n_units) > 0
    propensity = np.ones(len(log)) if log.propensity is None else log.propensity
    among = replace(ranks, scored=ranks.scored & answered)
    return weighted_balance(chunk, among, metric, propensity=propensity, relative=False)


def quiet_weights(balance: Balance, terms: Smooth, *, recall: bool) -> tuple[float, float]:
    """The error that the weights of rows in lists imply and the one that the interval shows; 0, 0 where it shows all.

    Heavy rows of the lists may happen to have no relevant item, so that the error does not show what they weigh. Rows
    of one weight of which a share p is relevant have Var Σ w y / π of about p (1 - p) Σ w² (1 - π) / π². The sum is a
    part of the error of the value (for recall, of its numerator); where it is larger than the error that the relevant
    rows show, the next heavy row that is relevant changes value and error at once.
    """
    value, divided = terms.value(), terms.totals()[1]
    per = divided / (1 - value) if recall and value < 1 else float(terms.n_defined)
    if not (balance.total > 0 and per > 0):
        return 0.0, 0.0
    implied = math.sqrt(_implied_variance(balance.by_weight)) / per
    error = math.sqrt(float((influences(terms).effect ** 2).sum()))
    return (implied, error) if error > 0 and implied > LARGER * error else (0.0, 0.0)


def _implied_variance(by_weight: Floats) -> float:
    """Σ p (1 - p) Σ w² (1 - π) / π² over weights, p from the lightest to the heaviest.

    Those before count as a few rows of the next: many heavy rows that are seldom relevant are so, and few that are not
    may have been so by chance.

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
