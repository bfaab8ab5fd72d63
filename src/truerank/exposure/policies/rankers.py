"""Exposure of policies that are given by scores (paper 3, eq. 6): how often each item is expected to be viewed.

    ε(x, a) = Σ over candidate sets Σ over rankings Σ over ranks of P(candidates) P(ranking) P(V = 1 | r) 1{a at r}

Items are ranked in order or at random, all of them or drawn candidates. The probability of each item at each rank is
exact, without a sum over candidate sets: given the time at which an item's clock rings, each other item was retrieved
and has rung, or not (`clocks.py`); and a uniform subset is in the order of all items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.special import gammaln
from truerank.core.validation import COUNT, NUMBER, checked_arguments
from truerank.core.wording import option
from truerank.exposure.policies.targets import is_table
from truerank.exposure.positions import as_positions
from truerank.exposure.positions.position_models import FitRequest, Place, PositionModel, Positions
from truerank.io.batches import LazyTable
from truerank.io.columns import target_columns
from truerank.sampling.clocks import rank_probabilities

NEGLIGIBLE = 1e-18  # a probability that is left out


@checked_arguments(temperature=NUMBER, n_candidates=COUNT)
def exposures(
    source: Any,
    position: Any,
    *,
    temperature: float | None = None,
    n_candidates: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """The exposure ε(x, a) of every item that a policy scores in a session (paper 3, eq. 6); exact.

    `source` is a table session, item, score of all the items that can be shown, `position` a position model. With a
    `temperature` items are drawn one after the other in proportion to exp(score / temperature) (Plackett-Luce); without
    one, or at 0, they stand in the order of their scores. With `n_candidates` a uniform subset of so many items is
    ranked, and where there is a column `retrieval`, each item is a candidate with that probability. The table that
    comes back, session, item, exposure, is a target of `off_policy`; joined with a log it is its column propensity.

    Weights 3 : 1, and the second rank is viewed half of the time: ε = 3/4 + 1/4 · 1/2:

    >>> table = pl.DataFrame({"session": [1, 1], "item": ["a", "b"], "score": [np.log(3), 0.0]})
    >>> exposures(table, "exp:0.5", temperature=1.0)["exposure"].round(12).to_list()
    [0.875, 0.625]
    """
    model = _only_model(position)
    table = target_columns(source, columns)
    where, session, item = table.where, table.get("session"), table.get("item")
    values, retrieval = table.finite(table.get("score")).to_numpy(), table.find("retrieval")
    probability = None
    if retrieval is not None:
        probability = table.finite(retrieval).to_numpy()
        if n_candidates is not None:
            raise InputError(f"{where}: a column retrieval beside {option('n_candidates')}; expected one of both.")
    exposure, unit = np.zeros(len(values)), session.rank("dense").to_numpy()
    order = np.argsort(unit, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(unit[order])) + 1) if len(order) else ():
        if item.gather(rows).n_unique() < len(rows):
            raise InputError(f"{where}: an item is twice in session {session[int(rows[0])]}; expected it once.")
        exposure[rows] = ranker_exposures(
            values[rows],
            model,
            temperature=temperature,
            # of no more items all are candidates
            n_candidates=None if n_candidates is None or n_candidates >= len(rows) else n_candidates,
            retrieval=None if probability is None else probability[rows],
        )
    return pl.DataFrame({"session": session, "item": item, "exposure": np.clip(exposure, 0.0, 1.0)})


def _only_model(position: Any) -> PositionModel:
    """The one position model of all sessions, already fitted."""
    model = as_positions(position)
    if isinstance(model, Positions) and len(model.rules) == 1 and model.rules[0][0] == Place():
        model = model.rules[0][1]
    if isinstance(model, Positions):
        raise InputError("scores with several position models; expected one. Give exposures (or ranks) instead.")
    if isinstance(model, FitRequest):
        raise InputError(
            f"scores with {model}; expected a position model that is known, such as yule:1.5, as exposures are made "
            "before anything is fitted. Fit it first, and give what was found."
        )
    return model


def with_exposures(
    targets: Mapping[str, Any],
    position: Any,
    *,
    temperature: float | None = None,
    n_candidates: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The same targets, with exposures in place of scores.

    Scores are read as scores only where an option says how they rank: a column of that name could be anything.
    """
    if temperature is None and n_candidates is None:
        return dict(targets)
    scored = [name for name, target in targets.items() if is_table(target) and _has_scores(target, columns)]
    if not scored:
        unused = option("temperature" if temperature is not None else "n_candidates")
        raise InputError(f"{unused} is for targets with a column score, and there is none.")
    if position is None:
        raise InputError(f"{scored[0]}: scores need a position model, which says how likely each rank is viewed.")
    how: dict[str, Any] = {"temperature": temperature, "n_candidates": n_candidates, "columns": columns}
    return {**targets, **{name: exposures(targets[name], position, **how) for name in scored}}


def _has_scores(source: Any, columns: Mapping[str, str] | None) -> bool:
    """Whether a target's table gives scores, and neither ranks nor exposures."""
    names, mapping = LazyTable.of(source, columns=columns).columns, dict(columns or {})
    score, *others = (mapping.get(key, key) in names for key in ("score", "rank", "exposure"))
    return score and not any(others)


# ----------------------------------------------------------------------------------------------------- one session


def ranker_exposures(
    score: Floats,
    position: PositionModel,
    *,
    temperature: float | None = None,
    n_candidates: int | None = None,
    retrieval: Floats | None = None,
) -> Floats:
    """The exposure of every item of a session, as `exposures` says; equal scores stand in the order of the items.

    >>> from truerank.exposure.positions.position_models import Exponential
    >>> ranker_exposures(np.array([3.0, 2.0, 1.0]), Exponential(0.5), n_candidates=2).round(12).tolist()
    [0.666666666667, 0.5, 0.333333333333]
    """
    n = len(score)
    view = position.view(np.arange(1.0, n + 1.0))
    depth = int(np.flatnonzero(view > 0)[-1]) + 1
    if retrieval is not None and (retrieval.shape != (n,) or not ((retrieval >= 0) & (retrieval <= 1)).all()):
        raise InputError(f"retrieval probabilities of shape {retrieval.shape}; expected {n} numbers in [0, 1].")
    if n_candidates is not None and not 1 <= n_candidates <= n:
        raise InputError(f"{n_candidates} candidates of {n} items; expected from 1 to all of them.")
    if not temperature and n_candidates is None and retrieval is None:
        return view[_order(score)]
    probability = ranker_probabilities(
        score, temperature=temperature, n_candidates=n_candidates, retrieval=retrieval, depth=depth
    )
    return np.asarray(probability @ view[: probability.shape[1]])


def ranker_probabilities(
    score: Floats,
    *,
    temperature: float | None = None,
    n_candidates: int | None = None,
    retrieval: Floats | None = None,
    depth: int,
) -> Floats:
    """P(item i stands at rank r), [items x ranks up to `depth`]."""
    if temperature:
        weight = softened(score, temperature=temperature)
        if n_candidates is None:
            return rank_probabilities(weight, depth=depth, retrieval=retrieval)
        return subset_rank_probabilities(weight, n_candidates, depth=depth)
    if n_candidates is not None:
        return subset_order_probabilities(_order(score), n_candidates, depth=depth)
    certain = np.ones(len(score)) if retrieval is None else retrieval
    return retrieved_order_probabilities(_order(score), certain, depth=depth)


def _order(score: Floats) -> Ints:
    """0 for the best item, 1 for the next; equal scores in the order of the items."""
    return np.argsort(np.argsort(-score, kind="stable"))


def softened(score: Floats, *, temperature: float) -> Floats:
    """exp(score / temperature), scaled so that nothing overflows."""
    if not (math.isfinite(temperature) and temperature > 0):
        raise InputError(f"temperature {temperature}; expected a positive number.")
    score = np.asarray(score, dtype=np.float64) / temperature
    if not np.isfinite(score).all():
        raise InputError("a score that is no finite number; expected one for each item.")
    return np.asarray(np.exp(np.maximum(score - score.max(axis=-1, keepdims=True), -500.0)))


def subset_rank_probabilities(weight: Floats, k: int, *, depth: int) -> Floats:
    """P(item i stands at rank r), [items x ranks]: a uniform subset of k items, ranked by Plackett-Luce.

    Clocks ring in the same order whoever else has one: a subset is ranked as it stands in the ranking of all items.
    Rows sum to k / n where depth is k.

    >>> subset_rank_probabilities(np.array([1.0, 1.0, 1.0]), 2, depth=2).round(12).tolist()
    [[0.333333333333, 0.333333333333], [0.333333333333, 0.333333333333], [0.333333333333, 0.333333333333]]
    """
    of_rank = subset_order_probabilities(np.arange(len(weight)), k, depth=depth)  # given the rank among all items
    last = int(np.flatnonzero(of_rank.sum(axis=1) > NEGLIGIBLE)[-1]) + 1
    return np.asarray(rank_probabilities(weight, depth=last) @ of_rank[:last])


def subset_order_probabilities(order: Ints, k: int, *, depth: int) -> Floats:
    """P(item i stands at rank r): a uniform subset of k items in a fixed order; `order` is 0 for the best item.

    Hypergeometric: r - 1 of the `order` better items and k - r of the worse ones are in the subset with it.

    >>> subset_order_probabilities(np.array([0, 1, 2]), 2, depth=2).round(12).tolist()
    [[0.666666666667, 0.0], [0.333333333333, 0.333333333333], [0.0, 0.666666666667]]
    """
    n = len(order)
    better, rank = np.asarray(order, dtype=np.float64)[:, None], np.arange(1.0, min(depth, k) + 1.0)[None, :]
    possible = (rank - 1 <= better) & (k - rank <= n - 1 - better)
    ways = _log_choose(better, rank - 1) + _log_choose(n - 1 - better, k - rank)
    whole = _log_choose(np.float64(n), np.float64(k))
    return np.where(possible, np.exp(np.where(possible, ways, 0.0) - whole), 0.0)


def retrieved_order_probabilities(order: Ints, retrieval: Floats, *, depth: int) -> Floats:
    """P(item i stands at rank r): items retrieved each by itself, then in a fixed order; `order` is 0 for the best.

    >>> retrieved_order_probabilities(np.array([0, 1]), np.array([0.5, 1.0]), depth=2).tolist()
    [[0.5, 0.0], [0.5, 0.5]]
    """
    n = len(order)
    probability, better = np.zeros((n, min(depth, n))), np.zeros(min(depth, n))
    better[0] = 1.0
    for item in np.argsort(order):
        p = retrieval[item]
        probability[item] = p * better
        better = better * (1 - p) + np.concatenate([[0.0], better[:-1] * p])
    return probability


def _log_choose(n: Floats | np.float64, k: Floats | np.float64) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))
