"""Input that other tools were given, and what they answered. Plain Python: it is read in their environments too.

To make a tool's values again: `pip install` the version in its source.md, then `python tests/golden/make.py TOOL`.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parents[1] / "golden"
CUTOFFS = (1, 3, 5, 10, 20)  # the last is more than there are items
MEAN = "mean"

Values = Mapping[str, float | None]  # by user, and the tool's own mean where it gives one


@dataclass(frozen=True)
class Case:
    """Each user's recommended items, best first, and the grades above 0 of all candidates."""

    lists: Mapping[int, list[int]]
    grades: Mapping[int, Mapping[int, int]]
    items: tuple[int, ...]

    @property
    def relevant_users(self) -> list[int]:
        return [user for user, grades in self.grades.items() if grades]


def cases() -> dict[str, Case]:
    """`example`: three users to check by hand. `generated`: 12 users and 15 items with every edge case."""
    return {name: read_case(name) for name in ("example", "generated")}


def read_case(name: str) -> Case:
    """Rows user, item, rank (empty: never recommended), grade; every candidate is listed."""
    with (HERE / f"{name}.csv").open(newline="") as file:
        rows = [{key: int(value) if value else 0 for key, value in row.items()} for row in csv.DictReader(file)]
    users, items = (sorted({row[key] for row in rows}) for key in ("user", "item"))
    of = {user: sorted((row for row in rows if row["user"] == user), key=lambda row: row["rank"]) for user in users}
    return Case(
        lists={user: [row["item"] for row in of[user] if row["rank"]] for user in users},
        grades={user: {row["item"]: row["grade"] for row in of[user] if row["grade"]} for user in users},
        items=tuple(items),
    )


def store(tool: str, version: str, answers: Callable[[Case], Mapping[str, Values]]) -> None:
    """Write what a tool says about every case."""
    content = {
        "tool": tool,
        "version": version,
        "cases": {
            name: {metric: {str(k): _plain(v) for k, v in values.items()} for metric, values in answers(case).items()}
            for name, case in cases().items()
        },
    }
    (HERE / tool / "expected.json").write_text(json.dumps(content, indent=1) + "\n")


def stored(tool: str) -> dict[str, dict[str, dict[str, float]]]:
    """What a tool said: case, metric, user; NaN where it gave none."""
    content = json.loads((HERE / tool / "expected.json").read_text())
    return {
        case: {
            metric: {key: math.nan if value is None else value for key, value in values.items()}
            for metric, values in metrics.items()
        }
        for case, metrics in content["cases"].items()
    }


def _plain(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def ours(metric: object, case: Case) -> dict[str, float]:
    """The value of every user here, NaN where undefined."""
    import numpy as np

    from truerank import estimators
    from truerank.core.ids import Ids
    from truerank.core.log import Log
    from truerank.core.metric import Metric
    from truerank.core.ranking import Candidates
    from truerank.estimators.full import Full
    from truerank.ranking.kernel.rank import rank
    from truerank.ranking.scores.scores import dense

    if not isinstance(metric, Metric):
        raise TypeError(metric)
    users, items = list(case.lists), list(case.items)
    scores = np.full((len(users), len(items)), -np.inf)
    grades = np.zeros(scores.shape)
    for at, user in enumerate(users):
        for place, item in enumerate(case.lists[user]):
            scores[at, items.index(item)] = -place
        for item, grade in case.grades[user].items():
            grades[at, items.index(item)] = grade
    user_at, item_at = np.divmod(np.arange(scores.size), len(items))
    rewards = {"label": (grades > 0).astype(np.float64).ravel(), "rating": grades.ravel()}
    log = Log(Ids.of(np.array(users)), Ids.of(np.array(items)), user_at, item_at, rewards)
    pool = Candidates(len(users), float(len(items)))
    (ranks,) = rank(dense(scores, users=users, items=items), log, pools=[pool])
    (terms,) = estimators.terms_of(Full(), log, ranks, metrics=[metric])
    return {str(user): float(terms.sums[at, 0]) if terms.defined[at] else math.nan for at, user in enumerate(users)}
