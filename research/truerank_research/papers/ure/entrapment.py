"""E-U2: hard negatives without any debiasing, evaluated by the traditional scheme (Table 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.datasets.ratings import YahooR3
from truerank_research.claims import Cell, Cells, Claim, Finding, Verdict, cell_rows, share
from truerank_research.learners.recipes import Recipe
from truerank_research.papers.ure.data import Block, CoatBlock, Split, recall_at, split_of, traditional
from truerank_research.papers.ure.training import (
    BACKBONES,
    BATCH,
    HARDNESS,
    METHODS,
    NEGS,
    TABLE_4,
    YAHOO_BATCH,
    on_random_part,
    positions_of,
    size_settings,
    small_batches,
    train_model,
    tuning_recipe,
)
from truerank_research.results import Measured, Result
from truerank_research.runner import Run, Study

CONFIGURATIONS, DRAWS, CHOOSING = 2, 20, 1_000_000  # the last is the number of the draw that chooses settings
WITHIN, CUTOFFS = 5, (5, 50, 500)
RULES = {"auc": "tuned by pooled AUC", "recall": "tuned by Recall@5̄"}
NEAR, LARGE = 0.97, 0.5
KUAIREC, COAT, YAHOO = "KuaiRec", "Coat", "Yahoo!R3"
BATCHES = {COAT: 512, YAHOO: YAHOO_BATCH}
PRINTED_COLUMN = {KUAIREC: 0, YAHOO: 5}  # of Table 4


def measure(run: Run) -> Measured:
    draws = DRAWS if run.full else 2
    sizes = (20, 80) if run.full else (20, 40)
    block = Block(run.setting)
    random_parts = {COAT: CoatBlock(run.setting)}
    if run.source.has(YahooR3.name):
        random_parts[YAHOO] = CoatBlock(run.setting, YahooR3.name)
    candidates = contenders()
    on_block = [(block, contender.recipe(run), run.seed) for contender in candidates]
    trained = run.pieces(train_model, on_block, about=f"training models on {KUAIREC}")
    split = split_of(block)
    cells: list[Cell] = []
    for name, part in random_parts.items():
        arguments = [(part, contender.recipe(run, data=name), run.seed) for contender in candidates]
        tables = run.pieces(train_model, arguments, about=f"training models on {name}")
        cells += _cells(name, _on_random_part(candidates, tables, part), "Recall@5̄" * (name == YAHOO))
    on_kuairec = _on_kuairec(candidates, trained, split, sizes=sizes, draws=draws, seed=run.seed)
    cells = [*_cells(KUAIREC, on_kuairec, f"Recall@5̄, N̄ = {sizes[0]}"), *cells]
    return Measured(
        {"cells": cell_rows(cells)},
        {"configurations of each method": CONFIGURATIONS, "draws of D_rand": draws, **size_settings(split)},
        [
            *block.differences,
            "The paper does not give N̄ of Table 3. As printed it is below about 33 (E-U4): it is 20 here, and 80 too.",
            f"Each method is tuned over {CONFIGURATIONS} configurations; the paper searches a grid of 16 and more. "
            f"LightGCN has 32 dimensions and 2 layers, U = 50. Batches have {BATCH:,} rows ({NEGS}: 4,096 positives).",
            "Training stops, and settings are chosen, by pooled AUC on a tenth of the biased log; they are chosen by "
            "Recall@5̄ in a separate draw of D_rand too. The paper does not say how.",
            "Yahoo!R3 is replaced by Coat, which has the same parts; it is used too where it is given.",
        ],
    )


def _names() -> list[tuple[str, str]]:
    return [(backbone, method) for backbone in BACKBONES for method in METHODS]


@dataclass(frozen=True, slots=True)
class Contender:
    """A backbone with a method in one of its configurations."""

    backbone: str
    method: str
    number: int

    def recipe(self, run: Run, *, data: str = KUAIREC) -> Recipe:
        backbone = BACKBONES[self.backbone]
        recipe = tuning_recipe(backbone, self.method, self.number, full=run.full, seed=run.seed)
        return small_batches(recipe, BATCHES[data]) if data in BATCHES and run.full else recipe


def contenders() -> list[Contender]:
    """Every backbone with every method in each of its configurations."""
    return [Contender(*names, number) for names in _names() for number in range(CONFIGURATIONS)]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A contender with what tuning sees of it, and its numbers by column: value, and range over draws."""

    contender: Contender
    auc: float
    recall: float
    columns: Mapping[str, tuple[float, ...]]


def _on_kuairec(
    contenders: Sequence[Contender],
    tables: Sequence[pl.DataFrame],
    split: Split,
    *,
    sizes: Sequence[int],
    draws: int,
    seed: int,
) -> Iterator[Evaluated]:
    """Recall on D_full, and among labelled items over draws; settings are chosen in another draw."""
    drawn = [split.draw(max(sizes), seed=seed, number=number) for number in range(draws)]
    choosing = split.draw(max(sizes), seed=seed, number=CHOOSING)
    for contender, table in zip(contenders, tables, strict=True):
        if not table.height:
            continue
        position = positions_of(table, split)
        true = recall_at(position, split.label, CUTOFFS)
        columns = {f"Recall@{k}": (float(value),) for k, value in zip(CUTOFFS, true, strict=True)}
        for n in sizes:
            values = np.array([_sampled(split, position, column[:, :n]) for column in drawn])
            columns[f"Recall@5̄, N̄ = {n}"] = (float(values.mean()), *np.quantile(values, [0.05, 0.95]).tolist())
        chosen_by = _sampled(split, position, choosing[:, : sizes[0]])
        yield Evaluated(contender, float(table["auc"][0]), chosen_by, columns)


def _sampled(split: Split, position: Ints, column: Ints) -> float:
    label = np.take_along_axis(split.label, column, axis=1)
    return float(traditional(np.take_along_axis(position, column, axis=1), label, [WITHIN])[0])


def _on_random_part(
    contenders: Sequence[Contender], tables: Sequence[pl.DataFrame], block: CoatBlock
) -> Iterator[Evaluated]:
    for contender, table in zip(contenders, tables, strict=True):
        if table.height:
            values = on_random_part(block, table, CUTOFFS[:2])
            columns = {name: (value,) for name, value in values.items()}
            yield Evaluated(contender, float(table["auc"][0]), values["Recall@5̄"], columns)


def _cells(data: str, evaluated: Iterator[Evaluated], printed_column: str = "") -> Iterator[Cell]:
    by_name: dict[tuple[str, str], list[Evaluated]] = {}
    for model in evaluated:
        by_name.setdefault((model.contender.backbone, model.contender.method), []).append(model)
    for rule in RULES:
        for (backbone, method), models in by_name.items():
            best = max(models, key=lambda model: model.auc if rule == "auc" else model.recall)
            table, key = _table(data, rule), f"{backbone} {method}"
            for column, (value, *ends) in best.columns.items():
                is_printed = column == printed_column and key in TABLE_4
                printed = TABLE_4[key][PRINTED_COLUMN[data]] if is_printed else None
                yield Cell(table, method, f"{backbone}, {column}", value, printed, *ends)
            yield Cell(table, method, f"{backbone}, configuration", float(best.contender.number))
            if method == NEGS:
                yield Cell(table, method, f"{backbone}, H/U", HARDNESS[best.contender.number])


def _table(data: str, rule: str) -> str:
    return f"Table 3, {data}, {RULES[rule]}"


def chosen_configurations(result: Result) -> dict[tuple[str, str], int]:
    """By backbone and method the number of the configuration that was chosen by AUC on KuaiRec."""
    cells = Cells.read(result)
    return {
        (backbone, method): int(cells.value(_table(KUAIREC, "auc"), method, f"{backbone}, configuration"))
        for backbone, method in _names()
    }


def _by_case(cells: Cells) -> Iterator[tuple[str, dict[str, float], dict[str, float]]]:
    """By way of tuning and backbone: its name, and Recall@5̄ at the smallest sample and Recall@5 of each method."""
    for rule, tuned in RULES.items():
        for backbone in BACKBONES:
            table = _table(KUAIREC, rule)
            sampled = next(
                cell.column for cell in cells.select(table) if cell.column.startswith(f"{backbone}, Recall@5̄")
            )
            old, new = (
                {method: cells.value(table, method, column) for method in METHODS}
                for column in (sampled, f"{backbone}, Recall@5")
            )
            yield f"{backbone}, {tuned}", old, new


def _best(values: Mapping[str, float]) -> str:
    return max(values, key=lambda name: values[name])


def _comparable_rule(cells: Cells) -> Finding:
    cases = [(name, old[NEGS], old[_best(old)], _best(old)) for name, old, _ in _by_case(cells)]
    text = "; ".join(f"{value / top:.0%} of {best} ({name})" for name, value, top, best in cases)
    return share([value >= NEAR * top for _, value, top, _ in cases], f"NegS has {text}.")


def _hardness_rule(cells: Cells) -> Finding:
    chosen = [cells.value(_table(KUAIREC, "recall"), NEGS, f"{backbone}, H/U") for backbone in BACKBONES]
    return share([value >= LARGE for value in chosen], f"H/U is {' and '.join(f'{value:g}' for value in chosen)}.")


def _trap_rule(cells: Cells) -> Finding:
    trapped = [max(new.values()) > new[_best(old)] for _, old, new in _by_case(cells)]
    return share(trapped, f"In {sum(trapped)} of {len(trapped)} cases another method has a higher Recall@5.")


def _yahoo_rule(cells: Cells) -> Finding:
    is_given = bool(cells.select(_table(YAHOO, "recall")))
    table = _table(YAHOO if is_given else COAT, "recall")
    best = [
        _best({method: cells.value(table, method, f"{name}, Recall@5̄") for method in METHODS}) for name in BACKBONES
    ]
    if is_given:
        return share([name == NEGS for name in best], f"The best by Recall@5̄ is {' and '.join(best)}.")
    why = f"Yahoo!R3 needs a signed agreement. On Coat the best by Recall@5̄ is {' and '.join(best)}."
    return Finding(Verdict.UNTESTABLE, why)


CLAIMS = (
    Claim(
        "comparable", "NegS, which does no debiasing, is best or close to the best by Recall@5̄.", "Table 3",
        "On KuaiRec at N̄ = 20: NegS reaches 97 % of the best method (the paper's lowest is 97.7 %) with both backbones "
        "and both ways of tuning.", _comparable_rule,
    ),
    Claim(
        "hardness", "The best NegS has a large H/U.", "section 4.2.2",
        "Tuning by Recall@5̄ chooses an H/U of at least 0.5 with both backbones on KuaiRec.", _hardness_rule,
    ),
    Claim(
        "trap", "A model that is best by Recall@5̄ need not be best by Recall@5 on all candidates.",
        "sections 4 and 6.2",
        "With both backbones and both ways of tuning another method has a higher Recall@5 on D_full than the best by "
        "Recall@5̄.", _trap_rule,
    ),
    Claim(
        "yahoo", "On Yahoo!R3 NegS is best by Recall@5̄ with both backbones.", "Table 3",
        "Needs Yahoo!R3, in a folder yahoo-r3.", _yahoo_rule,
    ),
)  # fmt: skip
STUDIES = (
    Study(
        "E-U2", "Do hard negatives without debiasing beat debiased models under the traditional scheme?", measure,
        data=("kuairec", "coat"), optional=("yahoo-r3",), minutes=10, claims=CLAIMS, shows={"ure": ("Table 3",)},
    ),
)  # fmt: skip
