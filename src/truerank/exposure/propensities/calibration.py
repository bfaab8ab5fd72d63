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
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, frozen
from truerank.core.calls import CANDIDATES, Wanted, checked_arguments
from truerank.core.errors import InputError, some
from truerank.core.log import Log, Pairs
from truerank.core.options import Drawn
from truerank.core.ranking import Candidates
from truerank.exposure.counts import pair_order
from truerank.exposure.propensities import Fitted, n_cells
from truerank.exposure.randomness.draws import owners


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows of a random slice that are candidates; `left_out` rows are not.

    `unit` and `item` are positions in the log. Users whom the log does not know, `n_strangers` of them, follow after
    its units; an item that is not known by name is -1.
    """

    rows: Log
    unit: Ints
    item: Ints
    n_strangers: int
    left_out: int

    @property
    def said(self) -> str:
        """How large it is, and what was left out."""
        return size_of_slice(len(self.rows), len(np.unique(self.unit)), left_out=self.left_out)


def size_of_slice(n_rows: int, n_users: int, *, left_out: int) -> str:
    """How large a slice is, in words.

    >>> size_of_slice(8, 2, left_out=1)
    '8 rows of 2 users; of 9 rows, 1 are no candidates and were left out'
    """
    size = f"{n_rows:,} rows of {n_users:,} users"
    if left_out == 0:
        return size
    return f"{size}; of {n_rows + left_out:,} rows, {left_out:,} are no candidates and were left out"


def candidate_rows(random: Log, log: Log, candidates: Candidates | None) -> Slice:
    """A row is a candidate if its item is one for its user in the log, or of the catalogue if the user is a stranger.

    >>> from truerank.core.ids import Ids
    >>> log = Log(Ids.of([1, 2]), Ids.of([5, 6]), np.array([0]), np.array([0]), {})
    >>> random = Log(Ids.of([2, 9]), Ids.of([5, 7]), np.array([0, 0, 1]), np.array([0, 1, 0]), {})
    >>> found = candidate_rows(random, log, None)
    >>> found.unit.tolist(), found.item.tolist(), found.left_out
    ([1, 2], [0, 0], 1)
    """
    pair_order(random)
    unit, item, kept = able_rows(random, log, candidates)
    if not kept.any():
        raise no_candidate(random, log.source)
    rows, unit, item = random.select(kept), unit[kept].copy(), item[kept]
    strangers, at = np.unique(rows.user[unit < 0], return_inverse=True)
    unit[unit < 0] = log.n_units + at
    return Slice(rows, frozen(unit), frozen(item), len(strangers), int(np.count_nonzero(~kept)))


def able_rows(random: Log, log: Log, candidates: Candidates | None) -> tuple[Ints, Ints, Bools]:
    """The user and the item of each row of a slice as positions in a log (-1 for none), and whether it is a candidate.

    Of a user whom the log does not have, every item of the catalogue is a candidate.
    """
    if len(random) == 0:
        raise InputError(f"{random.source}: the random slice has no rows; expected pairs that were shown at random.")
    unit = log.users.locate(random.users, where=f"{random.source}, column 'user'")[random.user]
    item = log.items.locate(random.items, where=f"{random.source}, column 'item'")[random.item]
    if (item < 0).all():
        raise InputError(
            f"{random.source} and {log.source} have no item in common: items such as {some(random.items.texts()[:3])} "
            f"and {some(log.items.texts()[:3])}. Check the id columns."
        )
    return unit, item, _able(unit, item, candidates, n_items=len(log.items))


def no_candidate(random: Log, source: str) -> InputError:
    """What to say of a slice of which nothing is left."""
    return InputError(
        f"{random.source}: none of {len(random):,} rows is a candidate in {source}; expected pairs that could "
        "have been in the log. Check the exclusions and the candidates."
    )


def _able(unit: Ints, item: Ints, candidates: Candidates | None, *, n_items: int) -> Bools:
    if candidates is None:
        return item >= 0
    # where the catalogue is larger than what is known by name, a strange item is one of the others
    able = (item >= 0) | (candidates.n_items > n_items)
    known = (unit >= 0) & (item >= 0)
    if candidates.only is not None:
        able &= (unit < 0) | (known & _among(unit, item, candidates.only))
    if candidates.exclude is not None:
        able &= ~(known & _among(unit, item, candidates.exclude))
    return able


def _among(unit: Ints, item: Ints, pairs: Pairs) -> Bools:
    width = max(int(pairs.item.max(initial=0)), int(item.max(initial=0))) + 1
    return np.isin(unit * width + item, owners(pairs) * width + pairs.item)


FEW = 5.0  # common pairs expected by chance below which their absence says nothing


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    >>> from truerank.exposure.propensities.naive_bayes import NaiveBayes
    >>> import polars as pl
    >>> pairs = {"user": [1, 1, 2, 2], "item": [1, 2, 3, 4]}
    >>> log = read(pl.DataFrame({**pairs, "label": [1, 1, 1, 0]}))
    >>> random = read(pl.DataFrame({**pairs, "label": [1, 1, 0, 0]}))
    >>> found = calibration(fit_propensities(NaiveBayes(), log, random=random), log, random)
    >>> [(each.name, each.predicted, each.observed) for each in found.labels]
    [('label 0', 0.25, 0.25), ('label 1', 0.75, 0.75)]
    """
    if n_bins < 1:
        raise InputError(f"{n_bins} bins; expected a whole number from 1.")
    n = n_cells(log, candidates)
    part = candidate_rows(random, log, candidates)
    known = (part.unit < log.n_units) & (part.item >= 0)
    also, expected = in_both(log, part, known, n)
    common = int(also.sum())
    if drawn is None:
        drawn = Drawn.UNSEEN if common == 0 and expected >= FEW else Drawn.ALL
    labelled = "label" in log.rewards and "label" in random.rewards
    labels = _by_label(fitted, log, part.rows, float(n.sum()), drawn) if labelled else ()
    notes = [f"{common:,} of {len(known):,} random pairs are in the log; chance alone gives about {expected:,.0f}."]
    if part.left_out:
        notes.append(f"The slice has {part.said}.")
    bins: tuple[Bin, ...] = ()
    if drawn is Drawn.UNSEEN:
        notes.append("The slice was drawn among pairs that are not in the log: only labels can be compared.")
    elif expected < FEW and common == 0:
        notes.append("Too few pairs are expected in both for cells to say anything: only labels are compared.")
    else:
        bins = _by_prediction(fitted.at(part.rows.select(known)), also[known], n_bins)
    compared = bins or labels
    if not compared:
        raise InputError(
            f"{random.source}: nothing to compare with: {' '.join(notes)} Both logs need labels, or more random rows."
        )
    total = sum(each.pairs for each in compared)
    error = sum(each.pairs * abs(each.predicted - each.observed) for each in compared) / total
    return Calibration(bins, labels, error, drawn, common, expected, tuple(notes))


def in_both(log: Log, part: Slice, known: Bools, n_candidates: Floats) -> tuple[Bools, float]:
    """Which random pairs are in the log, and how many would be by chance: Σ_u random rows x pairs / candidates."""
    width = max(len(log.items), 1)
    also = known & np.isin(part.unit * width + part.item, log.user * width + log.item)
    pairs = Pairs.of(log.user, log.item, n_units=log.n_units).count
    share = np.divide(pairs, n_candidates, out=np.zeros(log.n_units), where=n_candidates > 0)
    return also, float(share[part.unit[known]].sum())


def _by_prediction(predicted: Floats, also: Bools, n_bins: int) -> tuple[Bin, ...]:
    """Bins with about equally many pairs; equal predictions stay together."""
    edge = np.unique(np.quantile(predicted, np.arange(1, n_bins) / n_bins, method="inverted_cdf"))
    at = np.searchsorted(edge, predicted, side="left")
    found = []
    for each in np.unique(at).tolist():
        inside = at == each
        low, high = float(predicted[inside].min()), float(predicted[inside].max())
        name = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        share = float(also[inside].mean())
        bounds = wilson(share, int(inside.sum()))
        found.append(Bin(name, float(inside.sum()), float(predicted[inside].mean()), share, *bounds))
    return tuple(found)


def _by_label(fitted: Fitted, log: Log, random: Log, cells: float, drawn: Drawn) -> tuple[Bin, ...]:
    """For each label: rows in the log, over how many such pairs there are by the slice."""
    found, weight = [], 1 / fitted.at(log)
    for label in (0.0, 1.0):
        rows: Ints = np.flatnonzero(log.label == label)
        if len(rows) == 0:
            continue
        share = float((random.label == label).mean())
        shares = share, *wilson(share, len(random))[::-1]
        among = cells if drawn is Drawn.ALL else cells - len(log)
        already = 0 if drawn is Drawn.ALL else len(rows)
        observed, low, high = (
            min(len(rows) / exist, 1.0) if (exist := already + among * each) > 0 else 1.0 for each in shares
        )
        predicted = len(rows) / float(weight[rows].sum())
        found.append(Bin(f"label {label:g}", already + among * share, predicted, observed, low, high))
    return tuple(found)


def wilson(share: float, n: int, *, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's interval of a share (Wilson 1927), at 95 % unless told.

    >>> [round(bound, 4) for bound in wilson(0.5, 100)]
    [0.4038, 0.5962]
    """
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
