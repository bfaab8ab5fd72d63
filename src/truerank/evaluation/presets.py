"""The options and the population under which numbers equal those of another tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any, Final

import numpy as np

from truerank.core.arrays import frozen
from truerank.core.errors import InputError
from truerank.core.messages import Message, message
from truerank.core.metric import Metric
from truerank.core.options import AbsentUsers, CoveredItems, Denominator, Discount, Gain, Ideal, InformationUnit
from truerank.core.ranking import Scores
from truerank.core.record import record
from truerank.estimators.full import Holdout
from truerank.evaluation.label_source import Rows, label_by
from truerank.io.columns import PositiveRule
from truerank.metrics.additive import DCG, Precision, Recall
from truerank.metrics.listed import CatalogueCoverage, Novelty
from truerank.metrics.listwise import NDCG
from truerank.metrics.pairwise import AUC, AveragePrecision
from truerank.ranking.scores.scores import Lists

RELEVANT_VALUES: Final = PositiveRule(">", 0.0)
POSITIVES: Final = Denominator.POSITIVES
SMALLER: Final = Denominator.SMALLER

Variant = Callable[[Any], Metric]

EVERYONE = Holdout(without_relevant=AbsentUsers.ZERO, without_list=AbsentUsers.ZERO)
WITH_LISTS = Holdout(without_relevant=AbsentUsers.ZERO)
RELEVANT = Holdout(without_list=AbsentUsers.ZERO)


@record
class ToolPreset:
    """How another tool evaluates: its forms of metrics, whom it counts, how it breaks ties, what cannot be had."""

    name: str
    variants: Mapping[type[Metric], Variant] = field(default_factory=dict)
    users: Holdout = RELEVANT
    later_names_first: bool = False  # among equal scores
    unmatched: Mapping[type[Metric], str] = field(default_factory=dict)

    def form(self, metric: Metric) -> Metric:
        """The tool's form of a metric; one that is asked for with options of its own stays as it is."""
        variant = self.variants.get(type(metric))
        options: Any = metric
        plain = all(option.name == "k" or getattr(metric, option.name) == option.default for option in fields(options))
        return variant(metric) if variant is not None and plain else metric

    def messages(self, metrics: Sequence[Metric]) -> list[Message]:
        """What was chosen for the tool's sake, and what still differs."""
        forms = {metric: self.form(metric) for metric in metrics}
        changed = [f"{metric} is {form}" for metric, form in forms.items() if metric != form]
        chosen = "; ".join([*changed, f"means are over {self.users.users}"])
        return [
            message("like", tool=self.name, choices=chosen),
            *(
                message("unlike", metric=metric, difference=self.unmatched[type(metric)])
                for metric in metrics
                if type(metric) in self.unmatched
            ),
        ]

    def labelled(self, rows: Rows) -> tuple[Rows, list[Message]]:
        """Rows with labels where their values are neither 0/1 nor come with a rule: these tools take values above 0."""
        labelled = label_by(rows, RELEVANT_VALUES)
        if labelled is rows:
            return rows, []
        return labelled, [message("relevant-rows.rule", source=rows.source, rule=RELEVANT_VALUES, tool=self.name)]

    def scores(self, scores: Scores) -> Scores:
        """Scores with ties broken as the tool does, where these are lists."""
        if not self.later_names_first or not isinstance(scores, Lists) or scores.distinct:
            return scores
        return later_names_first(scores)


def later_names_first(lists: Lists) -> Lists:
    """Lists without ties: of equal scores the item comes first whose name is later in the alphabet (trec_eval).

    >>> import polars as pl, truerank as tr
    >>> tied = tr.scores.lists(pl.DataFrame({"user": [1, 1], "item": ["a", "b"], "score": [2.0, 2.0]}))
    >>> broken = later_names_first(tied)
    >>> broken.items.texts(broken.item), broken.above.tolist()
    (['b', 'a'], [0, 1])
    """
    texts = np.array(lists.items.texts())
    place = np.empty(len(texts), dtype=np.int64)
    place[np.argsort(texts, kind="stable")[::-1]] = np.arange(len(texts))
    user = np.repeat(np.arange(len(lists.start) - 1), np.diff(lists.start))
    order = np.lexsort((place[lists.item], lists.above, user))
    above = np.arange(len(order)) - lists.start[user]
    return replace(
        lists,
        item=frozen(lists.item[order]),
        above=frozen(above),
        tied=frozen(np.zeros(len(order), dtype=np.int64)),
        distinct=True,
    )


TREC: dict[type[Metric], Variant] = {
    AveragePrecision: lambda metric: AveragePrecision(metric.k, POSITIVES),
    NDCG: lambda metric: NDCG(metric.k, Gain.LINEAR),
}
PRESETS = {
    tool.name: tool
    for tool in (
        ToolPreset("trec_eval", TREC, WITH_LISTS, later_names_first=True),
        ToolPreset("pytrec_eval", TREC, WITH_LISTS, later_names_first=True),
        ToolPreset("ir-measures", TREC, EVERYONE, later_names_first=True),
        ToolPreset("ranx", {**TREC, DCG: lambda metric: DCG(metric.k, Gain.LINEAR)}, RELEVANT),
        ToolPreset(
            "rectools",
            {
                AveragePrecision: lambda metric: AveragePrecision(metric.k, POSITIVES),
                NDCG: lambda metric: NDCG(metric.k, ideal=Ideal.CUTOFF),
            },
            RELEVANT,
        ),
        ToolPreset(
            "lenskit",
            {
                Recall: lambda metric: Recall(metric.k, SMALLER),
                Precision: lambda metric: Precision(metric.k, Denominator.LIST),
                DCG: lambda metric: DCG(metric.k, discount=Discount.ORIGINAL),
                NDCG: lambda metric: NDCG(metric.k, discount=Discount.ORIGINAL),
            },
            RELEVANT,
            unmatched={AveragePrecision: "LensKit divides by the length of lists that are shorter than the cut-off"},
        ),
        ToolPreset("recbole"),
        ToolPreset(
            "replay",
            {
                CatalogueCoverage: lambda metric: CatalogueCoverage(metric.k, CoveredItems.TRAIN),
                Novelty: lambda metric: Novelty(metric.k, InformationUnit.SHARE, Denominator.CUTOFF),
            },
            EVERYONE,
            unmatched={
                AUC: "RePlay compares only items of the list",
                Novelty: "RePlay calls this Surprisal, and gives the share of items that are not in the user's train "
                "rows under the name Novelty",
            },
        ),
        ToolPreset(
            "implicit",
            unmatched={
                Precision: "implicit gives Σ hits / Σ min(K, relevant) over all users under this name",
                AUC: "implicit takes relevant items beyond the cut-off as spread evenly over the rest",
            },
        ),
    )
}


def preset_named(name: str) -> ToolPreset:
    """The preset of a tool, in whatever spelling.

    >>> preset_named("RecTools").name, preset_named("ir_measures").name
    ('rectools', 'ir-measures')
    """
    plain = {_plain(spelling): preset for spelling, preset in PRESETS.items()}
    if not isinstance(name, str) or _plain(name) not in plain:
        raise InputError(f"like {name!r}: not known; expected one of {', '.join(PRESETS)}.")
    return plain[_plain(name)]


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
