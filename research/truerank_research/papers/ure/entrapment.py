"""E-U2: hard negatives without any debiasing, judged by the traditional scheme (Table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.progress import Progress
from truerank.core.values import text_of
from truerank.studies.papers.experiment import Measurements, Obtained
from truerank.studies.papers.paper import (
    Cell,
    Cells,
    ClaimFinding,
    ClaimVerdict,
    GraphKind,
    GraphPoint,
    Paper,
    PaperClaim,
    PaperGraph,
    by_share,
)
from truerank.studies.papers.ure import PAPER
from truerank.studies.papers.ure.block import UreBlock, UreSplit, split_of
from truerank.studies.papers.ure.coat import CoatBlock, coat_split
from truerank.studies.papers.ure.lists import recall_at, traditional
from truerank.studies.papers.ure.methods import ALL_BACKBONES, BACKBONES, METHODS, SAMPLED, SHARES, tried
from truerank.studies.papers.ure.plain import plainly
from truerank.studies.papers.ure.training import LearningBlock, TrainedModel, positions_of, recipe_of, trained
from truerank.studies.work import Keep, StudySize, StudySource

CONFIGURATIONS, DRAWS, CHOOSING = 6, 20, 1_000_000  # the last is the number of the draw that chooses settings
JUDGED = (20, 80)
WITHIN, CUTOFFS = 5, (5, 50, 500)
RULES = {"auc": "tuned by pooled AUC", "recall": "tuned by Recall@5̄"}
NEAR, LARGE = 0.97, 0.5
KUAIREC, COAT = "KuaiRec", "Coat"
PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "MF": {"Bias": 0.3546, "IPS": 0.3102, "DR": 0.5465, "AutoDebias": 0.5482, "NegS": 0.5358},
    "LightGCN": {"Bias": 0.4859, "IPS": 0.4889, "DR": 0.4849, "AutoDebias": 0.5181, "NegS": 0.5288},
}


def table_of(data: str, rule: str) -> str:
    return f"Table 3, {data}, {RULES[rule]}"


@dataclass(frozen=True, slots=True)
class Entrapment:
    """Bias, IPS, DR, AutoDebias and hard negatives with two backbones, by recall among judged items alone."""

    name: ClassVar[str] = "E-U2"
    about: ClassVar[str] = "Whether hard negatives without debiasing beat debiased models under the traditional scheme."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Table 3",)}
    data: ClassVar[tuple[str, ...]] = ("kuairec", "coat")
    minutes: ClassVar[float] = 15.0
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = (
        PaperClaim(
            "comparable",
            "NegS, which does no debiasing, is best or close to the best by Recall@5̄.",
            "Table 3",
            "On KuaiRec at N̄ = 20: holds if NegS reaches 97 % of the best method (the paper's lowest is 97.7 %) "
            "with both backbones and both ways of tuning; in part if with some.",
        ),
        PaperClaim(
            "hardness",
            "The best NegS has a large H/U.",
            "section 4.2.2",
            "Holds if tuning by Recall@5̄ chooses an H/U of at least 0.5 with both backbones on KuaiRec; in part if "
            "with one.",
        ),
        PaperClaim(
            "trap",
            "A model that is best by Recall@5̄ need not be best by Recall@5 on all candidates.",
            "sections 4 and 6.2",
            "Holds if with both backbones and both ways of tuning another method has a higher Recall@5 on D_full "
            "than the best by Recall@5̄; in part if with some.",
        ),
        PaperClaim(
            "yahoo",
            "On Yahoo!R3 NegS is best by Recall@5̄ with both backbones.",
            "Table 3",
            "Cannot be tested: Yahoo!R3 is given out under a signed agreement and is not here. What Coat gives "
            "stands beside it.",
        ),
    )

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        del progress
        full = size is StudySize.FULL
        number = CONFIGURATIONS if full else 2
        block, small = UreBlock.of(source, size=size, seed=seed), CoatBlock.of(source, size=size, seed=seed)
        contenders = _contenders(number, size=size, seed=seed)
        cells: list[Cell] = []
        pieces = [each.piece(block, KUAIREC, seed) for each in contenders]
        tables = keep(pieces, about=f"training models on {KUAIREC}")
        sizes = JUDGED if full else (20, 40)
        found = _on_kuairec(contenders, tables, split_of(block), sizes=sizes, draws=DRAWS if full else 2, seed=seed)
        cells += _cells(KUAIREC, found, sizes)
        tables = keep([each.piece(small, COAT, seed) for each in contenders], about=f"training models on {COAT}")
        cells += _cells(COAT, _on_coat(contenders, tables, small), ())
        return Measurements(
            cells=tuple(cells),
            settings={
                "configurations of each method": number,
                "draws of D_rand": DRAWS if full else 2,
                "users": len(split_of(block).count),
                "candidates per user": round(split_of(block).n_candidates, 1),
            },
            differs=(
                *block.differs,
                "N̄ of Table 3 is not given; as printed it is below about 33 (E-U4): N̄ = 20 stands here, and 80 "
                "beside it.",
                f"Each method is tuned over {number} configurations, where the paper searches a grid of 16 and "
                "more; LightGCN has 32 "
                "dimensions and 2 layers, training at most 12 epochs, U = 50.",
                "Settings are chosen by pooled AUC of the part of the random slice that decides when to stop, and "
                "by Recall@5̄ in a draw "
                "of D_rand of its own; the paper does not say how.",
                "Yahoo!R3 is not here; Coat, which has the same parts, stands for it.",
            ),
        )

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        cells = obtained.cells
        near, trapped, told = [], [], []
        for rule, tuned in RULES.items():
            for backbone in BACKBONES:
                table = table_of(KUAIREC, rule)
                column = _sample_column(cells, table, backbone)
                old, new = (
                    {method: cells.value(table, method, name) for method in METHODS}
                    for name in (column, f"{backbone}, Recall@5")
                )
                best = max(old, key=lambda method: old[method])
                near.append(old[SAMPLED] >= NEAR * old[best])
                trapped.append(max(new.values()) > new[best])
                told.append(f"{old[SAMPLED] / old[best]:.0%} of {best} ({backbone}, {tuned})")
        chosen = table_of(KUAIREC, "recall")
        shares = [cells.value(chosen, SAMPLED, f"{backbone}, H/U") for backbone in BACKBONES]
        coat = [
            max(METHODS, key=lambda method: cells.value(table_of(COAT, "recall"), method, f"{name}, Recall@5̄"))
            for name in BACKBONES
        ]
        return (
            by_share("comparable", near, f"NegS has {'; '.join(told)}."),
            by_share(
                "hardness",
                [share >= LARGE for share in shares],
                f"H/U is {' and '.join(f'{share:g}' for share in shares)}.",
            ),
            by_share(
                "trap", trapped, f"In {sum(trapped)} of {len(trapped)} cases another method has a higher Recall@5."
            ),
            ClaimFinding(
                "yahoo",
                ClaimVerdict.UNTESTED,
                f"Yahoo!R3 is not here; on Coat the best by Recall@5̄ is {' and '.join(coat)}.",
            ),
        )

    def graphs(self, obtained: Obtained) -> tuple[PaperGraph, ...]:
        return (plainly(_graph(obtained.cells)),)


# ----------------------------------------------------------------------------------------------------------- contenders


@dataclass(frozen=True, slots=True)
class _Contender:
    """A backbone with a method in one of its configurations."""

    backbone: str
    method: str
    number: int
    size: StudySize
    seed: int

    def piece(self, block: LearningBlock, data: str, seed: int) -> TrainedModel:
        _, how, training = tried(self.method, self.number + 1, size=self.size, seed=self.seed)[self.number]
        if data == COAT and self.size is StudySize.FULL:  # a log of 7,000 rows
            training = replace(training, batch=512, epochs=40, patience=10)
        recipe = recipe_of(ALL_BACKBONES[self.backbone], how, training)
        return TrainedModel(f"{data} {self.backbone} {self.method} {self.number}", block, recipe, seed)


def _contenders(number: int, *, size: StudySize, seed: int) -> list[_Contender]:
    return [
        _Contender(backbone, method, at, size, seed)
        for backbone in ALL_BACKBONES
        for method in METHODS
        for at in range(number)
    ]


@dataclass(frozen=True, slots=True)
class _Judged:
    """A contender with what tuning sees of it, and its numbers by column."""

    contender: _Contender
    auc: float
    recall: float
    numbers: Mapping[str, tuple[float, float | None, float | None]]


def _on_kuairec(
    contenders: Sequence[_Contender],
    tables: Sequence[pl.DataFrame],
    split: UreSplit,
    *,
    sizes: Sequence[int],
    draws: int,
    seed: int,
) -> list[_Judged]:
    """Recall of every contender: on D_full, and among judged items over draws; settings are chosen in another draw."""
    places = [split.drawn(max(sizes), seed=seed, number=number) for number in range(draws)]
    chosen = split.drawn(max(sizes), seed=seed, number=CHOOSING)
    found = []
    for contender, table in zip(contenders, tables, strict=True):
        if not trained(table):
            continue
        position = positions_of(table, split)
        true = recall_at(position, split.label, CUTOFFS)
        numbers: dict[str, tuple[float, float | None, float | None]] = {
            f"Recall@{k}": (float(value), None, None) for k, value in zip(CUTOFFS, true, strict=True)
        }
        for n in sizes:
            values = np.array([_sampled(split, position, place[:, :n]) for place in places])
            low, high = np.quantile(values, [0.05, 0.95]).tolist()
            numbers[f"Recall@5̄, N̄ = {n}"] = (float(values.mean()), low, high)
        found.append(
            _Judged(contender, float(table["auc"][0]), _sampled(split, position, chosen[:, : sizes[0]]), numbers)
        )
    return found


def _sampled(split: UreSplit, position: Ints, place: Ints) -> float:
    label = np.take_along_axis(split.label, place, axis=1)
    return float(traditional(np.take_along_axis(position, place, axis=1), label, [WITHIN])[0])


def _on_coat(contenders: Sequence[_Contender], tables: Sequence[pl.DataFrame], block: CoatBlock) -> list[_Judged]:
    """The same where the truth is not known: the traditional scheme and the URE estimate on the one random part."""
    split, judged = coat_split(block)
    found = []
    for contender, table in zip(contenders, tables, strict=True):
        if not trained(table):
            continue
        position = positions_of(table, split)
        alone = np.where(judged, position, position.shape[1] + 1)  # those that were not judged do not compete
        old: Floats = traditional(alone, split.label, [WITHIN])
        ure = recall_at(position, split.label, CUTOFFS[:2])
        numbers: dict[str, tuple[float, float | None, float | None]] = {"Recall@5̄": (float(old[0]), None, None)}
        numbers |= {f"URE@{k}": (float(value), None, None) for k, value in zip(CUTOFFS, ure, strict=False)}
        found.append(_Judged(contender, float(table["auc"][0]), float(old[0]), numbers))
    return found


# ---------------------------------------------------------------------------------------------------------------- cells


def _cells(data: str, found: Sequence[_Judged], sizes: Sequence[int]) -> list[Cell]:
    cells = []
    for rule in RULES:
        for method in METHODS:
            for backbone in ALL_BACKBONES:
                own = [each for each in found if (each.contender.backbone, each.contender.method) == (backbone, method)]
                if not own:
                    continue
                best = max(own, key=lambda each: each.auc if rule == "auc" else each.recall)
                printed = PUBLISHED.get(backbone, {}).get(method) if data == KUAIREC else None
                for column, (value, low, high) in best.numbers.items():
                    said = printed if sizes and column == f"Recall@5̄, N̄ = {sizes[0]}" else None
                    cells.append(Cell(table_of(data, rule), method, f"{backbone}, {column}", value, said, low, high))
                if method == SAMPLED:
                    share = SHARES[best.contender.number]
                    cells.append(Cell(table_of(data, rule), method, f"{backbone}, H/U", share))
    return cells


def _sample_column(cells: Cells, table: str, backbone: str) -> str:
    """The column of recall among the fewest judged items."""
    return next(cell.column for cell in cells.of(table) if cell.column.startswith(f"{backbone}, Recall@5̄"))


def _graph(cells: Cells) -> PaperGraph:
    table = table_of(KUAIREC, "recall")
    judged = _sample_column(cells, table, next(iter(BACKBONES))).rsplit("= ", 1)[1]
    points = tuple(
        GraphPoint(
            method, cell.obtained, group=cell.column.split(", ", 1)[0], panel=panel, low=cell.low, high=cell.high
        )
        for panel, wanted in ((f"Recall@5̄, N̄ = {judged}", f"Recall@5̄, N̄ = {judged}"), ("Recall@5", "Recall@5"))
        for method in METHODS
        for cell in cells.of(table, row=method)
        if cell.column.split(", ", 1)[1] == wanted
    )
    best = {
        name: max(METHODS, key=lambda method: cells.value(table, method, f"MF, {name}"))
        for name in (f"Recall@5̄, N̄ = {judged}", "Recall@5")
    }
    old, new = best.values()
    return PaperGraph(
        "table-3",
        f"KuaiRec, {RULES['recall']}: among {judged} judged items, and among all candidates",
        f"With MF, {old} is best among judged items{f', {new}' if old != new else ' and'} among all candidates.",
        GraphKind.RANGES,
        x="",
        y="recall",
        points=points,
    )
