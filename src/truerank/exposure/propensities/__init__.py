"""Propensities for logs that lack them: how likely each row was to be in the log, by a stated model.

A new model is a class in a module here: a frozen configuration that has a `name`, says what it `uses`, counts what it
needs of a chunk of users (`tally`) and fits to these counts (`fit`); it is written `name` or `name:option`.
`catalogue`, `parse_propensity` and the law tests find it by its place.

>>> parse_propensity("power:0.5")
PopularityPower(power=0.5, clip=0.01)
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.core.estimator import Counts, Groups, Learned, Learner, Tally, learn
from truerank.core.language import Kind, as_value
from truerank.core.log import Log, Pairs
from truerank.core.ranking import Candidates, JudgedChunk, Pool
from truerank.core.record import record
from truerank.core.threads import one_blas_thread
from truerank.core.validation import ANYTHING, CANDIDATES, checked_arguments
from truerank.core.values import Value
from truerank.core.wording import columns_option, option
from truerank.io.features import Features


class Fitted(Protocol):
    """Propensities of any pair. `description` is one sentence: what was assumed and fitted."""

    @property
    def description(self) -> str: ...
    def at(self, cells: Log) -> Floats:
        """One propensity in (0, 1] for each row, with its label where the model uses labels."""
        ...


class PropensityModel(Value):
    """A frozen configuration such as PopularityPower(0.5); its text form `power:0.5` parses back.

    `uses` says which of random, user_features and item_features it looks at; `fitted` whether it learns from the log;
    `scaled` whether its propensities are probabilities, or known only up to a factor.
    Counts are by group of users, so that it can be fitted without one. `learner` has what it may look at beside.
    """

    __slots__ = ()
    _word: ClassVar[str] = "propensity"

    uses: ClassVar[frozenset[str]] = frozenset()
    fitted: ClassVar[bool] = True
    scaled: ClassVar[bool] = True

    def tally(self, chunk: JudgedChunk, *, learner: PropensityLearner, groups: Groups, learned: Learned) -> Tally:
        """What it needs of a chunk of users."""
        raise NotImplementedError

    def fit(self, tally: Any, *, learner: PropensityLearner) -> Fitted:
        raise NotImplementedError


@record
class GivenPropensity(PropensityModel):
    """The propensities in a column of the log, which are exact: nothing is estimated.

    >>> str(GivenPropensity())
    'column'
    """

    column: str = "propensity"

    name: ClassVar[str] = "column"
    positional: ClassVar[tuple[str, ...]] = ("column",)
    fitted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.column:
            raise InputError("propensity column: has no name; expected column:NAME.")

    def tally(self, chunk: JudgedChunk, *, learner: PropensityLearner, groups: Groups, learned: Learned) -> Counts:
        return Counts({})

    def fit(self, tally: Counts, *, learner: PropensityLearner) -> GivenPropensity:
        return self

    @property
    def description(self) -> str:
        return f"propensities are given by the log (column {self.column}) and taken as exact"

    def at(self, cells: Log) -> Floats:
        return column_of(cells, self.column)


def column_of(log: Log, name: str) -> Floats:
    """The column `propensity` of a log, or one of its value columns."""
    values = log.propensity if name == "propensity" else log.rewards.get(name)
    if values is None:
        raise InputError(
            f"{log.source}: no propensities in a column {name!r}. Name the one that holds them: "
            f"{columns_option('propensity')}, or fit them: power:0.5, naive-bayes, logistic."
        )
    return check_propensity(values, log, what=f"column {name!r}", advice="Correct the column.")


@record(eq=False)
class PropensityLearner:
    """A model of propensities with what it may look at beside the log, to be fitted to chunks of users.

    `random` is a log of pairs that were drawn at random, with labels. Two learners are the same if they have the same
    model and seed and look at the very same tables.
    """

    model: PropensityModel
    random: Log | None = None
    user_features: Features | None = None
    item_features: Features | None = None
    seed: int = 0

    def __eq__(self, more: object) -> bool:
        return isinstance(more, PropensityLearner) and self._key == more._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[PropensityModel, int, int, int, int]:
        return self.model, id(self.random), id(self.user_features), id(self.item_features), self.seed

    @property
    def needs(self) -> tuple[Learner, ...]:
        return ()

    @property
    def refitted(self) -> bool:
        return self.model.fitted

    def tally(self, chunk: JudgedChunk, *, groups: Groups, learned: Learned) -> Tally:
        return self.model.tally(chunk, learner=self, groups=groups, learned=learned)

    def fit(self, tally: Any) -> Fitted:
        with one_blas_thread():  # the same bits however many cores there are
            return self.model.fit(tally, learner=self)


@checked_arguments(candidates=CANDIDATES, model=ANYTHING)
def fit_propensities(
    model: PropensityModel | str,
    log: Log,
    *,
    random: Log | None = None,
    user_features: Features | None = None,
    item_features: Features | None = None,
    candidates: Candidates | None = None,
    seed: int = 0,
) -> Fitted:
    """The propensities of a whole log; `candidates` says which pairs could have been in it, by default every pair.

    >>> from truerank.io.read import read
    >>> import polars as pl
    >>> log = read(pl.DataFrame({"user": [1, 2, 3, 4, 5], "item": [7, 7, 7, 7, 8], "label": [1, 1, 1, 1, 1]}))
    >>> fit_propensities("power:0.5", log).at(log).tolist()
    [1.0, 1.0, 1.0, 1.0, 0.5]
    """
    chosen = as_value(model, PROPENSITIES)
    learner = PropensityLearner(chosen, random, user_features, item_features, seed)
    pool = Candidates(log.n_units, float(len(log.items))) if candidates is None else candidates
    facts = {
        "users": log.users,
        "n_rows": float(Pairs.of(log.user, log.item, n_units=log.n_units).count.sum()),
        "n_cells": float(pool.count.sum()),
    }
    chunk = JudgedChunk(log, {Pool.CATALOGUE: pool})
    fit: Fitted = learn([learner], lambda work: [work(chunk)], groups=Groups(seed, "one"), facts=facts)[learner]
    fit.at(log)  # a row without a propensity in (0, 1] is refused here and now
    return fit


PROPENSITIES: Kind[PropensityModel] = Kind(
    "propensity",
    __name__,
    PropensityModel,
    also=(GivenPropensity,),
    otherwise="For a column of that name, say column:{name}.",
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
            f"with {option('items FILE')} or {option('n_items N')}."
        )
    return n
