"""Components of differences from a few assumed figures, where there is no pilot."""

from __future__ import annotations

import math
from dataclasses import replace

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.inference.planning import Components

USUAL_ROWS = 20.0  # at which shapes are worked out; any number gives the same plan


def assumed_lists(
    worth: Floats, *, n_items: int, value: float, relevant: float | None, shared: float, normalised: bool
) -> Components:
    """Of two lists of items worth `worth` by place, whose value is about `value` and that share a part of their items.

    Labels are independent and as often 1 in both lists, p = value / Σw; of a recall (`relevant` is the share of
    relevant items among all) the worth of a place is 1 / (relevant x items). An item that one of them lists adds ±w y,
    so that Σd² = 2 (1 - shared) p Σw², S² = Σd² / N, and σ_B² = 2 (1 - shared) p (1 - p) Σw². `normalised` subtracts
    from y what is expected there: Hájek's ratio p, post-stratified recall R the share (1 - R) p + R q, with q that of
    relevant items among those that are not listed.

    >>> import numpy as np
    >>> of = assumed_lists(np.full(10, 0.1), n_items=100, value=0.5, relevant=None, shared=0.0, normalised=False)
    >>> round(of.within, 6), round(of.finite, 6), round(of.between, 6)  # Σd² = 2 · 0.5 · 0.1
    (10.0, 0.1, 0.05)
    """
    if relevant is None:
        p = value / float(worth.sum())
        scaled = worth
        expected = f"between 0 and {worth.sum():g}, what a list of relevant items alone is worth"
    else:
        p = value * relevant * n_items / len(worth)  # hits = value x relevant items, over the places of the list
        scaled = worth / (relevant * n_items)
        expected = f"between 0 and {len(worth) / (relevant * n_items):.3g}, what a list of relevant items alone reaches"
    if not 0 < p < 1:
        raise InputError(f"a value of {value:g}; expected one {expected}.")
    differ = 2.0 * (1.0 - shared)
    expected_label = 0.0
    if normalised and relevant is None:
        expected_label = p
    elif normalised and relevant is not None:
        unlisted = (1.0 - value) * relevant * n_items / (n_items - len(worth)) if n_items > len(worth) else 0.0
        expected_label = (1.0 - value) * p + value * unlisted
    rate, fourth_rate = (p * (1.0 - expected_label) ** power + (1.0 - p) * expected_label**power for power in (2, 4))
    square, fourth = float((scaled**2).sum()), float((scaled**4).sum())
    s2 = differ * rate * square / n_items
    fourth_moment = differ * fourth_rate * fourth / n_items
    places = differ * len(worth) * (1.0 if normalised else p) / n_items
    of = Components(
        between=differ * p * (1.0 - p) * square,
        within=n_items**2 * s2,
        finite=n_items * s2,
        rows=min(USUAL_ROWS, float(n_items)),
        row_fourth=n_items**4 * (fourth_moment - 3.0 * s2**2),
        most_rows=float(n_items),
    )
    excess = of.row_fourth / of.rows**3 / of.variance(of.rows) ** 2
    telling = 1.0 - (1.0 - min(places, 1.0)) ** of.rows
    return replace(of, kurtosis=max(3.0 + excess, 1.0), telling=telling)


def assumed_sessions(*, reward: float, effective: float, sessions: float, alike: float, normalised: bool) -> Components:
    """Of a target against the policy that logged: what its weights and the rewards of sessions vary by.

    Sessions earn `reward` on average, most once or nothing; weights w have mean 1 and leave the `effective` share of
    sessions, 1 / E w². (w - 1) c varies by (1 / effective - 1) r, and normalised (w - 1) (c - r) by
    (1 / effective - 1) r (1 - r). `alike` is the correlation of two sessions of one user.

    >>> of = assumed_sessions(reward=0.2, effective=0.5, sessions=4.0, alike=0.0, normalised=False)
    >>> of.between, of.within, of.variance(4.0)
    (0.0, 0.2, 0.05)
    """
    for name, share in (("effective", effective), ("alike", alike)):
        if not 0 <= share <= 1 or (name == "effective" and not 0 < share < 1):
            raise InputError(f"{name} {share:g}; expected a share between 0 and 1.")
    if not 0 < reward < 1:
        raise InputError(f"a mean reward of {reward:g}; expected a share of sessions, between 0 and 1.")
    varies = (1.0 / effective - 1.0) * (reward * (1.0 - reward) if normalised else reward)
    return Components(
        between=alike * varies,
        within=(1.0 - alike) * varies,
        rows=sessions,
        telling=1.0 - math.pow(1.0 - reward, sessions),
    )
