"""WTD and WTD_H: towards the posteriors of randomly shown data (Carraro and Bridge 2020, sections 4.2 and 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from truerank.core.arrays import Floats
from truerank.core.log import Log
from truerank.core.values import NotNegative, check, text_of
from truerank.exposure.counts import Floor, Margins, Zero, ratio_of
from truerank.exposure.interventions.design import DrawingRule
from truerank.sampling.pools import Share

DEFAULT = Floor()


@dataclass(frozen=True, slots=True)
class WTDIntervention:
    """P_S(u, i) ∝ w_u^`user_power` w_i^`item_power`, w = P_mar / P_mnar of the user and of the item (eqs. 13 and 14).

    P_mnar is the share of rows in the training log, P_mar the share in a randomly shown slice; `zero` says what a share
    of 0 becomes. The paper squares the item's weight, on the grounds of preliminary experiments; its code does not.

    >>> import polars as pl, truerank as tr
    >>> train = tr.read(pl.DataFrame({"user": [1, 2, 3, 4], "item": [7, 7, 7, 8]}))
    >>> shown = tr.read(pl.DataFrame({"user": [1, 2, 3, 4], "item": [7, 7, 8, 8]}))
    >>> WTDIntervention().weights(train, train=train, random=shown).round(3).tolist()  # w of items: 2/3 and 2
    [0.444, 0.444, 0.444, 4.0]
    """

    user_power: NotNegative = 1.0
    item_power: NotNegative = 2.0
    zero: Zero = DEFAULT
    name: ClassVar[str] = "wtd"
    margins: ClassVar[tuple[str, ...]] = ("user", "item")
    needs_random: ClassVar[bool] = True

    __str__ = text_of

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def published(cls) -> Self:
        return cls()

    @classmethod
    def released(cls) -> Self:
        return cls(item_power=1.0)

    def weights(self, log: Log, *, train: Log, random: Log) -> Floats:
        return _weights(self, log, train=train, random=random)

    def rule(self, log: Margins, *, train: Margins, random: Margins | None, fraction: float, seed: int) -> DrawingRule:
        return _rule(self, log, train=train, random=random, fraction=fraction)


@dataclass(frozen=True, slots=True)
class WTDHIntervention:
    """WTD with the posteriors that random data is expected to have: 1 / users and 1 / items. Needs no random data.

    >>> import polars as pl, truerank as tr
    >>> train = tr.read(pl.DataFrame({"user": [1, 2, 3, 4], "item": [7, 7, 7, 8]}))
    >>> WTDHIntervention(item_power=1).weights(train, train=train).round(3).tolist()  # 1/2 over 3/4 and 1/4
    [0.667, 0.667, 0.667, 2.0]
    """

    user_power: NotNegative = 1.0
    item_power: NotNegative = 2.0
    zero: Zero = DEFAULT
    name: ClassVar[str] = "wtd_h"
    margins: ClassVar[tuple[str, ...]] = ("user", "item")
    needs_random: ClassVar[bool] = False

    __str__ = text_of

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def published(cls) -> Self:
        return cls()

    @classmethod
    def released(cls) -> Self:
        return cls(item_power=1.0)

    def weights(self, log: Log, *, train: Log) -> Floats:
        return _weights(self, log, train=train, random=None)

    def rule(self, log: Margins, *, train: Margins, random: Margins | None, fraction: float, seed: int) -> DrawingRule:
        return _rule(self, log, train=train, random=None, fraction=fraction)


def _weights(strategy: WTDIntervention | WTDHIntervention, log: Log, *, train: Log, random: Log | None) -> Floats:
    shown = None if random is None else Margins.of(random)
    return _rule(strategy, Margins.of(log), train=Margins.of(train), random=shown, fraction=1.0).weights(log)


def _rule(
    strategy: WTDIntervention | WTDHIntervention,
    log: Margins,
    *,
    train: Margins,
    random: Margins | None,
    fraction: float,
) -> DrawingRule:
    user, item = (ratio_of(log, margin, train=train, random=random, zero=strategy.zero) for margin in strategy.margins)
    return DrawingRule(
        Share(fraction).of(len(log)), of_user=user**strategy.user_power, of_item=item**strategy.item_power
    )
