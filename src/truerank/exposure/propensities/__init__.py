"""Propensities for logs that lack them: how likely each row was to be in the log, by a stated model.

A new model is one new module here: a frozen configuration that has `name` and `fit`, and is written `name` or
`name:option`. `catalogue`, `parse_propensity` and the law tests find it by its place.

>>> parse_propensity("power:0.5")
PopularityPower(power=0.5, clip=0.01)
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.core.language import Kind
from truerank.core.log import Log
from truerank.core.ranking import Candidates
from truerank.data.features import Features


class Fitted(Protocol):
    """Propensities of the rows of the log they were fitted to.

    `description` is one sentence: what was assumed and fitted. `fitted` is False where nothing varies with the sample,
    as for a given column; then `under` gives `value` whatever the weights.
    """

    @property
    def description(self) -> str: ...
    @property
    def fitted(self) -> bool: ...
    @property
    def value(self) -> Floats:
        """One propensity in (0, 1] for each row of the log."""
        ...

    def under(self, weight: Floats) -> Floats:
        """The same, refitted when unit u counts weight[u] times: [units] -> [rows]; for replicates of a bootstrap."""
        ...

    def at(self, cells: Log) -> Floats:
        """What the model says of other pairs, with their labels where it uses labels: [rows of cells]."""
        ...


class PropensityModel(Protocol):
    """A frozen configuration such as PopularityPower(0.5); its text form `power:0.5` parses back.

    `random` is a log of pairs that were drawn at random, with labels. `candidates` says which pairs could have been in
    the log, in positions of its users and items; every pair of them, where it is None.
    """

    name: ClassVar[str]
    uses: ClassVar[frozenset[str]]  # which of random, user_features and item_features; it ignores the others

    def fit(
        self,
        log: Log,
        *,
        random: Log | None = None,
        user_features: Features | None = None,
        item_features: Features | None = None,
        candidates: Candidates | None = None,
        seed: int = 0,
    ) -> Fitted: ...


PROPENSITIES: Kind[PropensityModel] = Kind(
    "propensity", __name__, PropensityModel, otherwise="For a column of that name, say column:{name}."
)
catalogue = PROPENSITIES.catalogue
parse_propensity = PROPENSITIES.parse


def check_propensity(value: Floats, log: Log, *, what: str, advice: str) -> Floats:
    """The same propensities; refused where one is not in (0, 1], naming the first such row."""
    bad = np.flatnonzero(~((value > 0) & (value <= 1)))
    if len(bad):
        row = int(bad[0])
        user, item = log.users.values[int(log.user[row])], log.items.values[int(log.item[row])]
        raise InputError(
            f"{log.source}: {what} of row {row + 1:,} (user {user}, item {item}) is {value[row]:.6g}; "
            f"expected a probability in (0, 1] ({len(bad):,} rows are not). {advice}"
        )
    return value


def n_cells(log: Log, candidates: Candidates | None) -> Floats:
    """How many pairs of each user could have been in the log."""
    n = np.full(log.n_units, float(len(log.items))) if candidates is None else candidates.count
    if np.isnan(n).any():
        raise InputError(
            f"{log.source}: propensities need the number of candidates, which top lists leave open. Give the catalogue "
            "with --items FILE or --n-items N."
        )
    return n
