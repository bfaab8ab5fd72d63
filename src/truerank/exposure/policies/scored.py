"""Exposures of policies that are given by scores: ranked in order or at random, of all items or of drawn candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.core.calls import COUNT, NUMBER, checked_arguments
from truerank.core.errors import InputError
from truerank.core.wording import option
from truerank.exposure.policies.rankers import (
    PlackettLuce,
    Ranked,
    Ranker,
    RetrievedCandidates,
    TwoStage,
    UniformCandidates,
)
from truerank.exposure.policies.targets import is_table
from truerank.exposure.positions import as_positions
from truerank.exposure.positions.position_models import FitRequest, Place, PositionModel, Positions
from truerank.io.batches import LazyTable
from truerank.io.columns import table_columns


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
    ranked, and where there is a column `retrieval`, each item competes with that probability. The table that comes
    back, session, item, exposure, is a target of `off_policy`; joined with a log it is its column propensity.

    Weights 3 : 1, and the second rank is viewed half of the time: ε = 3/4 + 1/4 · 1/2:

    >>> table = pl.DataFrame({"session": [1, 1], "item": ["a", "b"], "score": [np.log(3), 0.0]})
    >>> exposures(table, "exp:0.5", temperature=1.0)["exposure"].round(12).to_list()
    [0.875, 0.625]
    """
    model = _one_model(position)
    table = table_columns(source, columns)
    where = table.where
    session, item, score = (table.get(name) for name in ("session", "item", "score"))
    values, probability = table.finite(score).to_numpy(), table.find("retrieval")
    retrieval = None if probability is None else table.finite(probability).to_numpy()
    if retrieval is not None and n_candidates is not None:
        raise InputError(f"{where}: a column retrieval beside {option('n_candidates')}; expected one of both.")
    found = np.zeros(len(values))
    order = np.argsort(session.rank("dense").to_numpy(), kind="stable")
    starts = np.flatnonzero(np.diff(session.rank("dense").to_numpy()[order], prepend=-1))
    for rows in np.split(order, starts[1:]) if len(order) else ():
        if item.gather(rows).n_unique() < len(rows):
            raise InputError(f"{where}: an item is twice in session {session[int(rows[0])]}; expected it once.")
        ranker = _ranker(values[rows], None if retrieval is None else retrieval[rows], temperature, n_candidates)
        found[rows] = ranker.exposures(model).value
    return pl.DataFrame({"session": session, "item": item, "exposure": np.clip(found, 0.0, 1.0)})


def _ranker(score: Floats, retrieval: Floats | None, temperature: float | None, n_candidates: int | None) -> Ranker:
    """The policy in one session."""
    chosen: Ranked | PlackettLuce = Ranked.by_score(score)
    if temperature:
        chosen = PlackettLuce.by_score(score, temperature=temperature)
    if retrieval is not None:
        return TwoStage(RetrievedCandidates(retrieval), chosen)
    if n_candidates is not None and n_candidates < len(score):  # of no more items all are candidates
        return TwoStage(UniformCandidates(n_candidates), chosen)
    return chosen


def _one_model(position: Any) -> PositionModel:
    """The one position model of all sessions, which is known."""
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

    Scores are taken for what they are only where how they rank is said: a column of that name could be anything.
    """
    if temperature is None and n_candidates is None:
        return dict(targets)
    found = dict(targets)
    scored = [name for name, target in targets.items() if is_table(target) and _has_scores(target, columns)]
    if not scored:
        unused = option("temperature" if temperature is not None else "n_candidates")
        raise InputError(f"{unused} is for targets with a column score, and there is none.")
    for name in scored:
        if position is None:
            raise InputError(f"{name}: scores need a position model, which says how likely each rank is viewed.")
        how: dict[str, Any] = {"temperature": temperature, "n_candidates": n_candidates, "columns": columns}
        found[name] = exposures(targets[name], position, **how)
    return found


def _has_scores(source: Any, columns: Mapping[str, str] | None) -> bool:
    """Whether a target's table gives scores, and neither ranks nor exposures."""
    names, mapping = LazyTable.of(source, columns=columns).columns, dict(columns or {})
    score, *others = (mapping.get(key, key) in names for key in ("score", "rank", "exposure"))
    return score and not any(others)
