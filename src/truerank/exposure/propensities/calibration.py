"""Are propensities right? What a random slice can say about it.

A propensity claims P(O=1 | pair): of pairs like this one, that share is in the log. Two things can be checked against
pairs that were drawn at random:

Cells   where the slice was drawn from all pairs, each of its pairs is in the log or not. In a bin of equal predictions
        that share should be the prediction. This checks the model as a function of user and item.
Labels  the slice tells how many positives (and negatives) there are among all candidates, so what share of them is in
        the log. The log's rows weighted by 1/p should give the same number: this is what an estimator by inverse
        propensities relies on, and what pairs without labels cannot show.

Where the slice was drawn among pairs that are not in the log (Yahoo! R3), none of its pairs can be in the log: cells
say nothing, labels still do. Not identified by either: whether the propensity is right for single pairs within a bin
and label, and anything about users or items that the slice does not have. Rows of the slice that are no candidates are
left out; those of users whom the log does not know tell of labels only. A model that was fitted with this same slice
(naive Bayes) agrees with it on labels by construction; keep a part of the slice aside to check it.
"""

from __future__ import annotations

import math

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, quotient
from truerank.core.errors import InputError, some
from truerank.core.log import Log, Pairs
from truerank.core.options import Drawn
from truerank.core.ranking import Candidates
from truerank.core.record import record
from truerank.core.validation import CANDIDATES, Wanted, checked_arguments
from truerank.exposure.counts import pair_order
from truerank.exposure.propensities import Fitted, n_cells


def size_of_slice(n_rows: int, n_users: int, *, left_out: int) -> str:
    """How large a slice is, in words.

    >>> size_of_slice(8, 2, left_out=1)
    '8 rows of 2 users; of 9 rows, 1 are no candidates and were left out'
    """
    size = f"{n_rows:,} rows of {n_users:,} users"
    if left_out == 0:
        return size
    return f"{size}; of {n_rows + left_out:,} rows, {left_out:,} are no candidates and were left out"


def candidate_rows(random: Log, log: Log, candidates: Candidates | None) -> tuple[Ints, Ints, Bools]:
    """The user and the item of each row of a slice as positions in a log (-1 for none), and whether it is a candidate.

    Of a user whom the log does not have, every item of the catalogue is a candidate.

    >>> from truerank.core.ids import Ids
    >>> log = Log(Ids.of([1, 2]), Ids.of([5, 6]), np.array([0]), np.array([0]), {})
    >>> random = Log(Ids.of([2, 9]), Ids.of([5, 7]), np.array([0, 0, 1]), np.array([0, 1, 0]), {})
    >>> [column.tolist() for column in candidate_rows(random, log, None)]
    [[1, 1, -1], [0, -1, 0], [True, False, True]]
    """
    if len(random) == 0:
        raise InputError(f"{random.source}: the random slice has no rows; expected pairs that were shown at random.")
    unit, item = random.places_in(log.users, log.items)
    if (item < 0).all():
        raise InputError(
            f"{random.source} and {log.source} have no item in common: items such as {some(random.items.texts()[:3])} "
            f"and {some(log.items.texts()[:3])}. Check the id columns."
        )
    if candidates is None:
        return unit, item, item >= 0
    # where the catalogue is larger than its named items, a strange item is one of the others
    able = (item >= 0) | (candidates.n_items > len(log.items))
    if candidates.only is not None:
        able &= (unit < 0) | candidates.only.hold(unit, item)
    if candidates.exclude is not None:
        able &= ~candidates.exclude.hold(unit, item)
    return unit, item, able


def no_candidate(random: Log, source: str) -> InputError:
    """The refusal of a slice without candidates."""
    return InputError(
        f"{random.source}: none of {len(random):,} rows is a candidate in {source}; expected pairs that could "
        "have been in the log. Check the exclusions and the candidates."
    )


FEW = 5.0  # common pairs expected by chance below which their absence says nothing


@record
class Bin:
    """Pairs of similar predictions, or of one label: the propensity predicted and the one observed, with an interval.

    `predicted` is the mean over the pairs of a bin; of a label it is the harmonic mean over the log's rows, which is
    what weighting by 1/p takes for the share that is in the log.
    """

    name: str
    pairs: float
    predicted: float
    observed: float
    low: float
    high: float


@record
class Calibration:
    """Predicted against observed exposure: by bins of the prediction (none where cells say nothing), and by label.

    `error` is the expected calibration error: the mean of |predicted - observed| over pairs, by bins, or by labels
    where there are no bins. `notes` say what was compared.
    """

    bins: tuple[Bin, ...]
    labels: tuple[Bin, ...]
    error: float
    drawn: Drawn
    common: int
    expected_common: float
    notes: tuple[str, ...]


FITTED = Wanted(
    "what truerank.exposure.fit_propensities gives",
    lambda value: hasattr(value, "at") and hasattr(value, "description"),
)


@checked_arguments(candidates=CANDIDATES, fitted=FITTED)
def calibration(
    fitted: Fitted,
    log: Log,
    random: Log,
    *,
    candidates: Candidates | None = None,
    drawn: Drawn | None = None,
    n_bins: int = 10,
) -> Calibration:
    """Compare propensities with a random slice; `fitted` are those of `log`.

    `drawn` says from which pairs the slice was drawn; by default it is seen from the pairs it has in common with the
    log. Intervals are Wilson's at 95 % over the rows of the slice.

    >>> from truerank.io.read import read
    >>> from truerank.exposure.propensities import fit_propensities
    >>> from truerank.exposure.propensities.counted import NaiveBayes
    >>> import polars as pl
    >>> pairs = {"user": [1, 1, 2, 2], "item": [1, 2, 3, 4]}
    >>> log = read(pl.DataFrame({**pairs, "label": [1, 1, 1, 0]}))
    >>> random = read(pl.DataFrame({**pairs, "label": [1, 1, 0, 0]}))
    >>> compared = calibration(fit_propensities(NaiveBayes(), log, random=random), log, random)
    >>> [(part.name, part.predicted, part.observed) for part in compared.labels]
    [('label 0', 0.25, 0.25), ('label 1', 0.75, 0.75)]
    """
    if n_bins < 1:
        raise InputError(f"{n_bins} bins; expected a whole number from 1.")
    n = n_cells(log, candidates)
    pair_order(random)
    unit, item, able = candidate_rows(random, log, candidates)
    if not able.any():
        raise no_candidate(random, log.source)
    rows, unit, item = random.select(able), unit[able], item[able]
    observed, inside = Pairs.of(log.user, log.item, n_units=log.n_units), (unit >= 0) & (item >= 0)
    also, share = observed.hold(unit, item), quotient(observed.count, n)
    common, expected, left_out = int(also.sum()), float(share[unit[inside]].sum()), len(random) - len(rows)
    if drawn is None:
        drawn = Drawn.UNSEEN if common == 0 and expected >= FEW else Drawn.ALL
    labelled = "label" in log.rewards and "label" in random.rewards
    labels = _by_label(fitted, log, rows, float(n.sum()), drawn) if labelled else ()
    notes = [f"{common:,} of {len(rows):,} random pairs are in the log; chance alone gives about {expected:,.0f}."]
    if left_out:
        notes.append(f"The slice has {size_of_slice(len(rows), len(np.unique(rows.user)), left_out=left_out)}.")
    bins: tuple[Bin, ...] = ()
    if drawn is Drawn.UNSEEN:
        notes.append("The slice was drawn among pairs that are not in the log: only labels can be compared.")
    elif expected < FEW and common == 0:
        notes.append("Too few pairs are expected in both for cells to say anything: only labels are compared.")
    else:
        bins = _by_prediction(fitted.at(rows.select(inside)), also[inside], n_bins)
    compared = bins or labels
    if not compared:
        raise InputError(
            f"{random.source}: nothing to compare with: {' '.join(notes)} Both logs need labels, or more random rows."
        )
    apart = [abs(part.predicted - part.observed) for part in compared]
    error = float(np.average(apart, weights=[part.pairs for part in compared]))
    return Calibration(bins, labels, error, drawn, common, expected, tuple(notes))


def _by_prediction(predicted: Floats, also: Bools, n_bins: int) -> tuple[Bin, ...]:
    """Bins with about equally many pairs; equal predictions stay together."""
    edge = np.unique(np.quantile(predicted, np.arange(1, n_bins) / n_bins, method="inverted_cdf"))
    number = np.searchsorted(edge, predicted, side="left")
    bins = []
    for rows in (np.flatnonzero(number == part) for part in np.unique(number)):
        low, high = float(predicted[rows].min()), float(predicted[rows].max())
        name = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        share = float(also[rows].mean())
        bins.append(Bin(name, float(len(rows)), float(predicted[rows].mean()), share, *wilson(share, len(rows))))
    return tuple(bins)


def _by_label(fitted: Fitted, log: Log, random: Log, cells: float, drawn: Drawn) -> tuple[Bin, ...]:
    """For each label: rows in the log, over how many such pairs there are by the slice."""
    bins, weight = [], 1 / fitted.at(log)
    for label in (0.0, 1.0):
        n = int(np.count_nonzero(log.label == label))
        if n == 0:
            continue
        share = float((random.label == label).mean())
        shares = np.array([share, *wilson(share, len(random))[::-1]])
        pairs = cells * shares if drawn is Drawn.ALL else n + (cells - len(log)) * shares
        observed, low, high = (min(n / total, 1.0) if total > 0 else 1.0 for total in pairs.tolist())
        predicted = n / float(weight[log.label == label].sum())
        bins.append(Bin(f"label {label:g}", float(pairs[0]), predicted, observed, low, high))
    return tuple(bins)


def wilson(share: float, n: int, *, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's interval of a share (Wilson 1927), at 95 % by default.

    >>> [round(bound, 4) for bound in wilson(0.5, 100)]
    [0.4038, 0.5962]
    """
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
