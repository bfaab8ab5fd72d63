"""What the labels show of the truth.

Every kind says which estimators are for it (`exposed`), whether pairs that are not listed have a label (`complete`),
which rows are relevant (`labelled`), the declared `rate` of uniform draws, and what must be learned of exposure: a
`learner` of propensities or None, and a `description` of what it found.

A design of exposure says which items to expose to whom: a folder with `shown.parquet` (user, item, batch, propensity)
and `design.json` (how it was made). The propensity of a row is its probability to be drawn in its batch, given what was
drawn in the batches before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
import polars as pl

from truerank.core.arrays import LEAST_CHANCE, frozen
from truerank.core.errors import InputError
from truerank.core.estimator import Exposed, Learned
from truerank.core.ids import Ids
from truerank.core.language import Kind, as_value
from truerank.core.log import Log
from truerank.core.ranking import Returned
from truerank.core.record import record
from truerank.core.values import Probability, Value
from truerank.core.wording import either
from truerank.exposure.propensities import (
    PROPENSITIES,
    Fitted,
    GivenPropensity,
    PropensityLearner,
    PropensityModel,
    column_of,
)
from truerank.io.atomic_write import FolderKind, check_folder, whole_file, whole_folder
from truerank.io.features import Features, read_features
from truerank.io.files import read_table, write_table
from truerank.io.read import read


class Unlisted(StrEnum):
    """What a pair that is not listed means."""

    UNKNOWN = "unknown"
    NEGATIVE = "negative"


class Exposure(Value):
    """How labels were collected. By default only listed pairs have a label, and nothing is learned of exposure.

    `scaled` says whether propensities are probabilities, or known only up to a factor.
    """

    __slots__ = ()
    _word: ClassVar[str] = "exposure"

    exposed: ClassVar[Exposed]
    rate: float | None = None
    scaled: ClassVar[bool] = True
    complete: ClassVar[bool] = False

    def labelled(self, log: Log) -> Log:
        """The rows with their labels."""
        return log

    def joined(self, log: Log) -> tuple[Log, Returned | None]:
        """The rows that a design drew, with their inclusion probabilities, and how much of the design they are."""
        return log, None

    def learner(self, seed: int) -> PropensityLearner | None:
        """What has to be learned of exposure, None where nothing has."""
        return None

    def description(self, learned: Learned) -> str | None:
        """One sentence on the propensities: what was assumed and fitted."""
        return None


@record
class FullExposure(Exposure):
    """Every candidate was shown to every user: each pair is labelled, or `unlisted` pairs are negatives."""

    unlisted: Unlisted = Unlisted.UNKNOWN
    name: ClassVar[str] = "full"

    exposed: ClassVar[Exposed] = Exposed.FULL

    @property
    def complete(self) -> bool:  # type: ignore[override]
        """Whether a pair that is not listed has a label all the same."""
        return self.unlisted is Unlisted.NEGATIVE


@record
class HoldoutExposure(Exposure):
    """The rows are what was held out of a log, as most evaluations have it: other pairs count as irrelevant.

    That is a convention, not a fact: nobody asked about the others. Rows with label 1 are relevant, those that a rule
    makes positive, or all of them where there is no value; other values need a rule. Users are those with a relevant
    row, for every metric.

    >>> str(HoldoutExposure())
    'holdout'
    """

    name: ClassVar[str] = "holdout"

    exposed: ClassVar[Exposed] = Exposed.HOLDOUT
    complete: ClassVar[bool] = True

    def labelled(self, log: Log) -> Log:
        """Labels are 1 where there is no value."""
        return log if log.rewards else replace(log, rewards={"label": frozen(np.ones(len(log)))})


@record
class RandomExposure(Exposure):
    """The judged items of a user are a uniform sample of the user's candidates, drawn without a look at the labels.

    By default their number is taken as fixed in advance. `rate` declares independent draws with that probability
    instead (Bernoulli); then a user without a judged item is a user with an empty sample, not an unknown one.
    """

    rate: Probability | None = None
    name: ClassVar[str] = "random"

    exposed: ClassVar[Exposed] = Exposed.RANDOM


@record
class DesignedExposure(Exposure):
    """Rows were drawn with chances that are known: what `truerank plan exposure --allocate` said to show.

    `design` is its folder (or what `tr.design_exposure` gave), with which the labels that came back are joined; without
    it each row carries its chance in the column propensity, and all that were drawn came back.

    >>> str(DesignedExposure())
    'designed'
    """

    design: Any = field(default=None, repr=False)
    name: ClassVar[str] = "designed"

    exposed: ClassVar[Exposed] = Exposed.DESIGNED

    def __post_init__(self) -> None:
        if not isinstance(self.design, ExposureDesign | None):
            object.__setattr__(self, "design", ExposureDesign.read(self.design))

    def joined(self, log: Log) -> tuple[Log, Returned | None]:
        """The rows that were asked for, each with the chance under which it stands for others; and what came back."""
        if isinstance(self.design, ExposureDesign):
            return self.design.joined(log)
        column_of(log, "propensity")
        return log, None

    def description(self, learned: Learned) -> str:
        where = "the rows' own column propensity" if self.design is None else self.design.source
        return f"the chances under which rows were drawn are those of {where}, and exact"


COLUMN = GivenPropensity()
SIDE = ("random", "user_features", "item_features")  # what propensities may be fitted with, beside the log


@record
class BiasedExposure(Exposure):
    """Some pairs were likelier to be shown than others; a pair that is not listed was not shown, its label is unknown.

    `propensity` says how likely: by default the log's own column; otherwise a model that is fitted (or its text form),
    which may need pairs that were shown at `random`, or features. These are read where they are files or frames.

    >>> BiasedExposure("power:0.5")
    BiasedExposure(propensity=PopularityPower(power=0.5, clip=0.01))
    """

    propensity: PropensityModel | str | None = None
    random: Any = field(default=None, repr=False)
    user_features: Any = field(default=None, repr=False)
    item_features: Any = field(default=None, repr=False)
    name: ClassVar[str] = "biased"

    exposed: ClassVar[Exposed] = Exposed.BIASED

    def __post_init__(self) -> None:
        if self.propensity is not None:
            object.__setattr__(self, "propensity", as_value(self.propensity, PROPENSITIES))
        uses = self.model.uses
        for name in SIDE:  # who gives something expects it to matter
            if getattr(self, name) is not None and name not in uses:
                what = "a column of propensities" if self.propensity is None else f"propensity {self.propensity}"
                raise InputError(f"{name}= is not used by {what}. Leave it out, or choose a model that uses it.")
        if not isinstance(self.random, Log | None):
            object.__setattr__(self, "random", read(self.random, name="random"))
        for kind in ("user", "item"):
            features = getattr(self, f"{kind}_features")
            if not isinstance(features, Features | None):
                object.__setattr__(self, f"{kind}_features", read_features(features, kind=kind))

    def learner(self, seed: int) -> PropensityLearner | None:
        if self.model == COLUMN:
            return None
        return PropensityLearner(self.model, self.random, self.user_features, self.item_features, seed)

    def description(self, learned: Learned) -> str:
        learner = learned.facts.get("propensity")
        fitted: Fitted = COLUMN if learner is None else learned[learner]
        return fitted.description

    @property
    def scaled(self) -> bool:  # type: ignore[override]
        return self.model.scaled

    @property
    def model(self) -> PropensityModel:
        """The model of propensities; a column where none was chosen."""
        return COLUMN if self.propensity is None else as_value(self.propensity, PROPENSITIES)


EXPOSURES: Kind[Exposure] = Kind(
    "exposure", also=(FullExposure, HoldoutExposure, RandomExposure, DesignedExposure, BiasedExposure)
)


SHOWN, SETTINGS = "shown.parquet", "design.json"
FOLDER = FolderKind("exposure design", (SHOWN, SETTINGS))
A_DESIGN = f"a folder of what {either('truerank plan exposure --allocate', 'truerank.design_exposure')} chose"
COLUMNS = ("user", "item", "batch", "propensity")


@record(eq=False)
class ExposureDesign:
    """Pairs to be exposed: `pairs` has columns user and item, which are positions in `users` and `items`.

    A pair was drawn in its `batch`, from 1, with its `propensity`, given the batches before. `settings` say how.
    """

    users: Ids
    items: Ids
    pairs: pl.DataFrame
    settings: Mapping[str, Any] = field(default_factory=dict)
    source: str = "the design"

    @classmethod
    def from_table(
        cls, shown: pl.DataFrame, *, source: str = "the design", settings: Mapping[str, Any] | None = None
    ) -> Self:
        """From a table of users, items, batches and propensities."""
        missing = [name for name in COLUMNS if name not in shown.columns]
        if missing:
            raise InputError(
                f"{source}: no column {missing[0]!r}; expected {', '.join(COLUMNS)}. Make the design again."
            )
        if not shown.height:
            raise InputError(f"{source}: has no rows; expected pairs to be shown. Make the design again.")
        users, user = Ids.factorise(shown["user"], where=f"{source}, column 'user'")
        items, item = Ids.factorise(shown["item"], where=f"{source}, column 'item'")
        drawn = shown.select(pl.col("batch").cast(pl.Int64), pl.col("propensity").cast(pl.Float64))
        bad = drawn.with_row_index("row", 1).filter(
            ~(pl.col("propensity").is_between(LEAST_CHANCE, 1) & (pl.col("batch") >= 1)).fill_null(False)
        )
        for row, batch, propensity in bad.head(1).rows():
            raise InputError(
                f"{source}: row {row:,} has propensity {propensity} and batch {batch}; expected a probability in "
                "(0, 1] and a batch from 1. Make the design again."
            )
        pairs = pl.DataFrame({"user": user, "item": item}).with_columns(drawn.get_columns())
        if pairs.select("user", "item").is_duplicated().any():
            raise InputError(f"{source}: a pair is to be shown twice; expected each once. Make the design again.")
        return cls(users, items, pairs, settings or {}, source)

    @classmethod
    def read(cls, source: Any) -> Self:
        """From the folder that `write` made, or from a table."""
        if isinstance(source, pl.DataFrame):
            return cls.from_table(source)
        if not isinstance(source, str | Path):
            raise InputError(
                f"design is a {type(source).__name__}; expected the folder of a design, or what design_exposure gave."
            )
        folder = Path(source)
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder; expected {A_DESIGN}.")
        check_folder(folder, kind=FOLDER.name, expected=A_DESIGN)
        settings = msgspec.json.decode((folder / SETTINGS).read_bytes())
        return cls.from_table(read_table(folder / SHOWN), source=str(folder), settings=settings)

    def table(self) -> pl.DataFrame:
        """A row for each pair to be exposed, sorted by user, batch and item."""
        ids = (self.users.values.gather(self.pairs["user"]), self.items.values.gather(self.pairs["item"]))
        named = dict(zip(COLUMNS, (*ids, *self.pairs.select("batch", "propensity").get_columns()), strict=True))
        return pl.DataFrame(named).sort("user", "batch", "item")

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """A folder with the table and the settings, whole or not at all."""
        with whole_folder(Path(path), kind=FOLDER, force=force) as part:
            write_table(self.table(), part / SHOWN)
            with whole_file(part / SETTINGS) as temporary:
                temporary.write_bytes(msgspec.json.format(msgspec.json.encode(self.settings)) + b"\n")

    @property
    def n_batches(self) -> int:
        return max(self.pairs["batch"].to_list(), default=1)

    def joined(self, log: Log) -> tuple[Log, Returned]:
        """The rows of a log that the design has, with what each represents as 1 / propensity; and how much came back.

        Rows that are not in the design have no known probability: they are left out, and counted. Rows that did not
        come back count as missing at random: those of the same user and batch that did represent them. A row of batch s
        represents 1 / π in the estimate of its own batch, and itself in those of later ones; batches of which
        something came back count the same, whatever came back of them.

        >>> table = pl.DataFrame({"user": [7] * 2, "item": [1, 2], "batch": [1, 1], "propensity": [0.5, 0.25]})
        >>> back = Log(Ids.of([7]), Ids.of([2, 9]), np.zeros(2, np.int64), np.arange(2), {"label": np.ones(2)})
        >>> rows, returned = ExposureDesign.from_table(table).joined(back)
        >>> rows.propensity.tolist(), returned.unasked, returned.partial  # one of two came back
        ([0.125], 1, 1)
        """
        users = self.users.locate(log.users, where=f"{log.source}, column 'user', against the users of {self.source}")
        items = self.items.locate(log.items, where=f"{log.source}, column 'item', against {self.source}")
        labels = pl.DataFrame({"unit": log.user, "user": users[log.user], "item": items[log.item]}).with_row_index()
        rows = labels.join(self.pairs, on=["user", "item"], maintain_order="left")
        key = ["user", "batch"]
        back = rows.group_by(key).agg(back=pl.len())
        batches = (
            self.pairs.group_by(key)
            .agg(drawn=pl.len())
            .join(back, on=key)
            .with_columns(
                n_batches=pl.len().over("user"), later=pl.col("batch").rank("dense", descending=True).over("user") - 1
            )
        )
        missing = pl.col("drawn") / pl.col("back")  # how many each row represents
        represented = (1 / pl.col("propensity") + pl.col("later")) * missing / pl.col("n_batches")
        joined = rows.join(batches, on=key, maintain_order="left").select("index", propensity=1 / represented)
        n_drawn = np.append(np.bincount(self.pairs["user"], minlength=len(self.users)), 0)[users]
        n_back = np.bincount(rows["unit"], minlength=len(users))
        returned = Returned(
            drawn=int(n_drawn.sum()),
            back=len(rows),
            unasked=len(log) - len(rows),
            partial=int(np.count_nonzero((n_back > 0) & (n_back < n_drawn))),
            silent=int(np.count_nonzero(n_back == 0)),
        )
        labelled = log.select(joined["index"].to_numpy().astype(np.int64))
        return replace(labelled, propensity=frozen(joined["propensity"].to_numpy().copy())), returned

    def absent_users(self, users: Ids) -> int:
        """How many users of the design are not among these."""
        return int(np.count_nonzero(users.locate(self.users) < 0))
