"""What the draws of the simulated platform say: like Table 2 and Figure 1, when nDCG turns negative, and biases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import polars as pl

from truerank.core.arrays import Floats
from truerank.studies.papers.dcg.platform import NEW, OLD, REWARDS
from truerank.studies.papers.paper import Cell, GraphKind, GraphPoint, PaperGraph
from truerank.uncertainty.agreement import sensitivity

LEVELS = ("1st level", "2nd level")
WEEK, EACH_DAY = "one position model for the week", "a position model for each day"
BOTH, LENGTH, MOOD = "days differ in length and quality", "days differ in length", "days differ in quality"
REGIMES = tuple(product(LEVELS, (BOTH, LENGTH, MOOD), (WEEK, EACH_DAY)))
FORMS = ("DCG log, C", "DCG log, Q̂", "DCG pbm, C", "DCG pbm, Q̂", "nDCG pbm, Q̂")
DCG, NDCG = FORMS[3], FORMS[4]
IMPROVED = ("small improvement", "large improvement")
TABLE, FIGURE, TURNS = "Table 2", "Figure 1", "When nDCG turns negative"
BIAS, NONE = "Bias of DCG pbm, Q̂, in parts of the truth", "every assumption holds"
REACH = 1.96  # standard errors to either side of a mean

# r that Table 2 prints for the explicit and the implicit reward, in the order of the forms
PRINTED = {
    ("1st level", "like", OLD): (0.97, 0.96, 0.97, 0.98, -0.91),
    ("1st level", "like", NEW): (0.86, 0.86, 0.87, 0.91, -0.80),
    ("1st level", "complete", OLD): (0.57, 0.70, 0.57, 0.70, -0.80),
    ("1st level", "complete", NEW): (0.05, 0.17, 0.05, 0.17, -0.32),
    ("2nd level", "like", OLD): (0.75, 0.71, 0.77, 0.79, -0.42),
    ("2nd level", "like", NEW): (0.28, 0.25, 0.38, 0.49, -0.34),
    ("2nd level", "complete", OLD): (0.10, 0.58, 0.48, 0.85, -0.93),
    ("2nd level", "complete", NEW): (0.55, 0.88, 0.70, 0.88, -0.77),
}


def regime_name(level: str, differs: str, model: str) -> str:
    return f"{level}, {differs}, {model}"


def table_cells(correlated: pl.DataFrame) -> list[Cell]:
    """Mean correlation over feeds, by level, reward and policy; days differ in both, one position model a week."""
    chosen = correlated.filter((pl.col("differs") == BOTH) & (pl.col("model") == WEEK))
    found = []
    for level, reward, policy in product(LEVELS, REWARDS, (OLD, NEW)):
        for at, form in enumerate(FORMS):
            of = {"level": level, "reward": reward, "policy": policy, "form": form}
            printed = PRINTED.get((level, reward, policy))
            value, low, high = _mean(_of(chosen, of, "r"))
            published = None if printed is None else printed[at]
            found.append(Cell(TABLE, f"{level}, {reward}, {policy}", form, value, published, low, high))
    return found


def regime_cells(correlated: pl.DataFrame) -> list[Cell]:
    """Mean correlation over rewards and feeds in every regime, of both metrics and policies."""
    found = []
    for level, differs, model in REGIMES:
        for form, policy in product((DCG, NDCG), (OLD, NEW)):
            of = {"level": level, "differs": differs, "model": model, "form": form, "policy": policy}
            per_feed = (
                correlated.filter(*(pl.col(name) == value for name, value in of.items()))
                .group_by("feed", maintain_order=True)
                .agg(pl.col("r").mean())["r"]
                .to_numpy()
            )
            value, low, high = _mean(per_feed)
            column = f"{'DCG' if form == DCG else 'nDCG'} of {policy}"
            found.append(Cell(TURNS, regime_name(level, differs, model), column, value, low=low, high=high))
    return found


def figure_cells(cells: pl.DataFrame) -> list[Cell]:
    """Found improvements, mean p and right signs over days, rewards and feeds, for every clip."""
    found = []
    for improved in IMPROVED:
        part = cells.filter(pl.col("improved") == improved)
        for clip in sorted(set(part["clip"].to_list())):
            for metric in ("DCG", "nDCG"):
                own = part.filter((pl.col("clip") == clip) & (pl.col("metric") == metric))
                sight = sensitivity(own["difference"].to_numpy(), own["stderr"].to_numpy(), clip=clip)
                row = f"{improved}, {'no clip' if math.isinf(clip) else f'm = {clip:g}'}"
                found += [
                    Cell(FIGURE, row, f"{metric}: found", sight.true_positive_rate),
                    Cell(FIGURE, row, f"{metric}: mean p", sight.mean_p),
                    Cell(FIGURE, row, f"{metric}: right sign", sight.sign_agreement, published=1.0),
                ]
    return found


def bias_cells(biased: pl.DataFrame) -> list[Cell]:
    """The mean relative error over logs, with the interval of its Monte-Carlo error."""
    found = []
    for switch, reward in dict.fromkeys(biased.select("switch", "reward").iter_rows()):
        value, low, high = _mean(_of(biased, {"switch": switch, "reward": reward}, "error"))
        found.append(Cell(BIAS, switch, reward, value, low=low, high=high))
    return found


def graphs(cells: Sequence[Cell]) -> tuple[PaperGraph, ...]:
    """When nDCG turns negative, the rows of Table 2, and found improvements over clips."""
    turns = [cell for cell in cells if cell.table == TURNS and cell.column.endswith(OLD)]
    longer = [cell.obtained or 0.0 for cell in turns if cell.column.startswith("nDCG") and _turned(cell.row)]
    said = "goes against reward" if max(longer) < 0 else "goes with reward in part"
    regimes = tuple(
        GraphPoint(_short(cell.row), cell.obtained, group=cell.column.split(" of ")[0], low=cell.low, high=cell.high)
        for cell in turns
    )
    found = tuple(
        GraphPoint(cell.row.split("= ")[-1].split(", ")[-1], cell.obtained, group=cell.column.split(":")[0],
                   panel=cell.row.split(", ")[0])
        for cell in cells if cell.table == FIGURE and cell.column.endswith("found")
    )  # fmt: skip
    return (
        PaperGraph(
            "regimes",
            "Correlation over days of offline estimates of the logging policy with its online reward, by what days "
            "differ in",
            f"Where days differ in length and one position model serves the week, nDCG {said} "
            f"(r {min(longer):.2f} to {max(longer):.2f}).", GraphKind.RANGES, x="", y="mean r over feeds and rewards",
            points=regimes, level=0.0,
        ),
        PaperGraph(
            "clips", "Share of true improvements that a 99 % interval finds, by the clip m of 1/ε0",
            "How many true improvements DCG and nDCG find depends on the clip.", GraphKind.LINES, x="clip m",
            y="share found", points=found,
        ),
    )  # fmt: skip


def _short(row: str) -> str:
    """A regime in few words.

    >>> _short(regime_name("1st level", LENGTH, WEEK))
    '1st level, length, model of the week'
    """
    return row.replace("days differ in ", "").replace(WEEK, "model of the week").replace(EACH_DAY, "model of the day")


def _turned(row: str) -> bool:
    return WEEK in row and "length" in row


def _of(table: pl.DataFrame, of: dict[str, str], value: str) -> Floats:
    return table.filter(*(pl.col(name) == each for name, each in of.items()))[value].to_numpy()


def _mean(values: Floats) -> tuple[float, float, float]:
    """A mean with the interval of its Monte-Carlo error; none of a single value."""
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return mean, mean - REACH * error, mean + REACH * error
