"""Logging policies: how much more often one item is shown than another. `exposure.expose` makes a log with one.

A new one is one new class here; the catalogue and the law tests find it by themselves.

>>> str(LOGGERS.named("popularity").released()), str(LOGGERS.named("popularity").published())
('popularity', 'popularity(zipf=false,with_train=false)')
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.language import Kind
from truerank.core.log import Log
from truerank.core.record import record
from truerank.core.rng import cell_uniforms
from truerank.core.values import PaperValue
from truerank.datasets.split import first_by, short_first
from truerank.exposure.counts import rows_of_items, zipf

STEEPEST = 700.0  # exp(-700) is the last that is safely above 0


class LoggingPolicy(PaperValue):
    """A frozen value: which items are shown more often."""

    __slots__ = ()

    @property
    def needs_train(self) -> bool:
        """Whether the weights also depend on the training data."""
        return bool(getattr(self, "with_train", False))

    def weights(self, dataset: Log, *, train: Log | None = None) -> Floats:
        """q_i of each item of the dataset, not normalised."""
        raise NotImplementedError

    def _logs(self, dataset: Log, train: Log | None) -> tuple[Log, ...]:
        """The logs in which rows are counted."""
        if not self.needs_train:
            return (dataset,)
        if train is None:
            raise InputError(
                f"the {self.name} logger counts rows of training data and dataset together; give train=, or "
                "with_train=False, which looks at the dataset alone."
            )
        return dataset, train


LOGGERS: Kind[LoggingPolicy] = Kind("logger", __name__, LoggingPolicy)


@record
class DurationLogger(LoggingPolicy):
    """q_i = exp(-k / scale) for the k-th shortest video: the biased training data of the URE paper (its λ is `scale`).

    Durations are the column video_duration of the dataset (the median over a video's rows), or `duration`, one for each
    item of the dataset in the order of its ids. Equally long videos come in the order of ids.

    >>> from truerank.io.read import read
    >>> import polars as pl
    >>> dataset = read(pl.DataFrame({"user": [1, 1], "item": [1, 2], "label": [0, 1]}))
    >>> DurationLogger(scale=1, duration=(60, 7)).weights(dataset).round(4).tolist()
    [0.1353, 0.3679]
    """

    scale: float = 1000.0
    duration: tuple[float, ...] | None = None

    name: ClassVar[str] = "duration"

    def weights(self, dataset: Log, *, train: Log | None = None) -> Floats:
        if len(dataset.items) > STEEPEST * self.scale:
            raise InputError(
                f"a duration logger with scale {self.scale:g} for {len(dataset.items):,} items: the longest would "
                f"never be shown. Give a scale of at least {len(dataset.items) / STEEPEST:.3g}."
            )
        if self.duration is None:
            return np.exp(short_first(dataset, scale=self.scale))
        duration = np.asarray(self.duration, dtype=np.float64)
        if duration.shape != (len(dataset.items),) or not np.isfinite(duration).all():
            raise InputError(
                f"{duration.size:,} durations for {len(dataset.items):,} items; expected a finite number for each."
            )
        return np.exp(first_by(duration, scale=self.scale))


@record
class PopularityLogger(LoggingPolicy):
    """q_i = (rank_i + 1)^-1/2 by the number of rows in training data and dataset together; the best has rank 1.

    Ranks are over all items of both, equal numbers share the smallest. This is what the code of the sampler paper does,
    and the default, because its text, q_i ∝ rows in the dataset (`zipf=False`), is degenerate: in a fully observed
    dataset every item has as many rows as there are users.

    >>> from truerank.io.read import read
    >>> import polars as pl
    >>> dataset = read(pl.DataFrame({"user": [1, 1], "item": [1, 2], "label": [0, 1]}))
    >>> train = read(pl.DataFrame({"user": [1, 2], "item": [2, 2], "label": [0, 1]}))
    >>> PopularityLogger().weights(dataset, train=train).round(4).tolist()
    [0.5774, 0.7071]
    >>> PopularityLogger.published().weights(dataset).tolist()
    [1.0, 1.0]
    """

    zipf: bool = True
    with_train: bool = True

    name: ClassVar[str] = "popularity"

    @classmethod
    def published(cls) -> Self:
        return cls(zipf=False, with_train=False)

    def weights(self, dataset: Log, *, train: Log | None = None) -> Floats:
        logs = self._logs(dataset, train)
        items = Ids.union({f"{role}, items": log.items for role, log in zip(("dataset", "train"), logs, strict=False)})
        count = np.sum([rows_of_items(log, items) for log in logs], axis=0)
        weight = zipf(count, shift=1) if self.zipf else count.astype(np.float64)
        return np.asarray(weight[items.locate(dataset.items)])


@record
class PositivityLogger(LoggingPolicy):
    """q_i = the number of positives of the item in the dataset; `with_train` adds those in the training data.

    The text of the sampler paper counts in the dataset alone, its code in both. An item without positives has weight 0:
    it is shown only where a user's other items do not suffice.

    >>> from truerank.io.read import read
    >>> import polars as pl
    >>> dataset = read(pl.DataFrame({"user": [1, 1], "item": [1, 2], "label": [0, 1]}))
    >>> train = read(pl.DataFrame({"user": [1, 2], "item": [1, 2], "label": [1, 1]}))
    >>> PositivityLogger().weights(dataset).tolist(), PositivityLogger.released().weights(dataset, train=train).tolist()
    ([0.0, 1.0], [1.0, 2.0])
    """

    with_train: bool = False

    name: ClassVar[str] = "positivity"

    @classmethod
    def released(cls) -> Self:
        return cls(with_train=True)

    def weights(self, dataset: Log, *, train: Log | None = None) -> Floats:
        counts = [rows_of_items(log, dataset.items, positive=True) for log in self._logs(dataset, train)]
        return np.asarray(np.sum(counts, axis=0), dtype=np.float64)


@record
class UniformLogger(LoggingPolicy):
    """q_i = 1: exposure at random.

    With `item_seed`, q_i is drawn once for each item from U(0, 1), the same for all users. That is what the code of the
    sampler paper does under this name: a logger that favours random items, not a uniform one.

    >>> from truerank.io.read import read
    >>> import polars as pl
    >>> dataset = read(pl.DataFrame({"user": [1, 1], "item": [1, 2], "label": [0, 1]}))
    >>> UniformLogger().weights(dataset).tolist()
    [1.0, 1.0]
    """

    item_seed: int | None = None

    name: ClassVar[str] = "uniform"

    @classmethod
    def released(cls) -> Self:
        return cls(item_seed=42)

    def weights(self, dataset: Log, *, train: Log | None = None) -> Floats:
        if self.item_seed is None:
            return np.ones(len(dataset.items))
        item = dataset.items.keys()
        return cell_uniforms(self.item_seed, "uniform logger", np.zeros_like(item), item)
