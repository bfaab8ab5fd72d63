"""How much data is needed, what to show, and what is watched while data arrive, as answers for every form."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.core.requirements import Outcome
from truerank.core.wording import option, worded
from truerank.evaluation.design import PlannedDesign
from truerank.evaluation.planning import SamplePlan
from truerank.evaluation.power import PlannedPair
from truerank.evaluation.watch import Watched, WatchedPair, WatchState
from truerank.report.charts import BLUE, PlotPanel, Rows, alt, chart_of, dashed_at, layered, tooltips
from truerank.report.numbers import decimals, signed_interval
from truerank.report.panels import curve
from truerank.report.summary import estimands
from truerank.report.view import Answer, AnswerSummary, Cell, DataTable, Detail, ResultTable

MANY_PAIRS = 6  # of one question, beyond which details have the one that needs most
MANY_SAVINGS = 12  # lines of one metric, beyond which the table shows single models alone
TYPICAL = 20.0  # rows per user for which a plan without a pilot names a number of users
NEXT = (
    f"Show them, and evaluate what comes back with {option('exposure designed')} and {option('design DIR')}, this "
    "folder."
)


def plan_answer(plan: SamplePlan, *, for_cli: bool = True) -> Answer:
    """The users that the hardest question needs, a line for each question, and behind it the curve of each pair."""
    by_question: dict[str, list[PlannedPair]] = {}
    for pair in plan.pairs:
        by_question.setdefault(pair.name, []).append(pair)
    hardest = [max(pairs, key=lambda pair: _rows_of(plan, pair)[0]["needed"]) for pairs in by_question.values()]
    first = hardest[0]
    main = {pair.name: min(_rows_of(plan, pair), key=lambda row: (not row["at_hand"], abs(row["per_user"] - TYPICAL)))
            for pair in hardest}  # fmt: skip
    worst = max(hardest, key=lambda pair: main[pair.name]["needed"])
    whom = "exactly these users" if first.components.by_rows else f"the population these {first.cluster}s come from"
    adjusted = f", adjusted for {plan.sure.family:,} comparisons" if plan.sure.family > 1 else ""
    messages = [message.said(for_cli=for_cli) for message in plan.at_hand]
    summary = AnswerSummary(
        f"A difference of {plan.difference:g}{_on(worst, len(hardest))} needs {_needs(worst, main[worst.name])}.",
        table=(_curve(plan, first) if len(hardest) == 1 else _needs_table(
            first, f"{main[first.name]['per_user']:,.4g} {first.row}s per {first.cluster}", main)).texts(),
        notes=(f"{plan.sure.power:.0%} power at level {plan.sure.level:g}{adjusted}, for {whom}.",
               *messages[: len(hardest) == 1]),
        warnings=tuple(message.said(for_cli=for_cli) for message in plan.messages),
        details=partial(_details, plan, by_question, hardest) if len(plan.pairs) > 1 else tuple,
        remarks=tuple(messages),
        next_step=f"Collect {_needs(worst, main[worst.name])}, then compare the models.",
    )  # fmt: skip
    document = {
        "difference": plan.difference, "power": plan.sure.power, "level": plan.sure.level,
        "comparisons": plan.sure.family, "plan": plan.table().to_dicts(),
        "messages": (*plan.messages, *plan.at_hand),
    }  # fmt: skip
    question = f"How much data does a difference of {plan.difference:g} need?"
    return Answer(question, summary, plan.table, document, lambda: plan_panels(plan))


def _details(
    plan: SamplePlan, by_question: Mapping[str, Sequence[PlannedPair]], hardest: Sequence[PlannedPair]
) -> Iterator[Detail]:
    """The curve of each pair; where they are many, of the one that needs most."""
    for (name, pairs), worst in zip(by_question.items(), hardest, strict=True):
        many = len(pairs) > MANY_PAIRS
        note = f"of {len(pairs):,} pairs the one that needs most; JSON and CSV have all" if many else ""
        for pair in [worst] if many else pairs:
            yield Detail(f"{name}: {pair.model} - {pair.baseline}", note, [_curve(plan, pair)])


def _rows_of(plan: SamplePlan, pair: PlannedPair) -> Rows:
    """The curve of a pair; `needed` is infinite where no number of users would do."""
    names = ("metric", "estimator", "reward", "model", "baseline")
    rows = plan.table().filter(**{name: getattr(pair, name) for name in names}).to_dicts()
    return [{**row, "needed": math.inf if row["users"] is None else row["users"]} for row in rows]


def _on(pair: PlannedPair, n_questions: int) -> str:
    return f" in {pair.metric}" if n_questions == 1 else f" on all {n_questions:,} metrics and estimators"


def _needs(pair: PlannedPair, row: dict[str, Any]) -> str:
    if row["users"] is None:
        return f"more than any number of {pair.cluster}s with {row['per_user']:,.4g} {pair.row}s each"
    return f"about {row['users']:,} {pair.cluster}s with {row['per_user']:,.4g} {pair.row}s each"


def _needs_table(pair: PlannedPair, title: str, rows: Mapping[str, dict[str, Any]]) -> DataTable:
    """Users and rows needed, and what the users at hand show, a line for each name."""
    columns = {title: [*rows]} | {
        head: [row[name] for row in rows.values()]
        for head, name in (
            (f"{pair.cluster}s needed", "users"), ("rows", "rows"),
            *([] if pair.users is None else [(f"detected by {pair.users:,}", "detectable")]),
        )
    }  # fmt: skip
    return DataTable("", pl.DataFrame(columns, strict=False))


def _curve(plan: SamplePlan, pair: PlannedPair) -> DataTable:
    """A line for each number of rows per user."""
    rows = {f"{row['per_user']:,.4g}{' (at hand)' * row['at_hand']}": row for row in _rows_of(plan, pair)}
    return _needs_table(pair, f"{pair.row}s per {pair.cluster}", rows)


def plan_panels(plan: SamplePlan) -> list[PlotPanel]:
    """Users needed, and the smallest difference that the users at hand show, over rows per user."""
    pair = plan.pairs[0]
    alone = len(plan.pairs) == len({pair.name for pair in plan.pairs})  # one pair of models
    rows: Rows = [
        {**row, "model": row["metric"] if alone else f"{row['metric']}: {row['model']} - {row['baseline']}"}
        for row in plan.table().to_dicts()
    ]
    scale = {"type": "log" if len({row["per_user"] for row in rows}) > 1 else "linear", "nice": False}
    x = alt.X("per_user:Q", title=f"{pair.row}s per {pair.cluster}", scale=scale, axis={"format": "~g"})
    y: dict[str, Any] = {"scale": {"type": "log", "nice": False}, "axis": {"format": ",~r"}}
    tips = ("model:N", "per_user:Q", "users:Q", "rows:Q", "detectable:Q")
    summary = plan_answer(plan).summary

    def panel(field: str, title: str, sentence: str) -> PlotPanel:
        return PlotPanel(
            title, sentence, curve([row for row in rows if (row[field] or 0) > 0], x, field, title, tips, **y)
        )

    panels = [panel("users", f"{pair.cluster}s needed to detect {plan.difference:g}", summary.verdict)]
    if pair.users is not None:
        title = f"smallest difference detected by the {pair.users:,} {pair.cluster}s at hand"
        panels.append(panel("detectable", title, f"At hand are {pair.components.rows:,.4g} {pair.row}s each."))
    return panels


# -------------------------------------------------------------------------------------------------------------- design


def design_answer(planned: PlannedDesign, place: Path) -> Answer:
    """What is to be shown, what that saves against uniform exposure, and how it is evaluated."""
    design, propensity = planned.design, planned.design.pairs["propensity"].to_numpy()
    per_user = np.bincount(design.pairs["user"], minlength=len(design.users))
    few, none = int(np.count_nonzero(per_user < planned.per_user)), int(np.count_nonzero(per_user == 0))
    saved = planned.saved()
    savings = saved if len(saved) <= MANY_SAVINGS * saved["metric"].n_unique() else saved.filter(baseline="")
    of = pl.when(pl.col("baseline") == "").then("model").otherwise(pl.format("{} - {}", "model", "baseline"))
    table = savings.select(
        "metric", of.alias("of"), pl.col("variance_ratio").alias("variance / uniform"),
        pl.col("uniform_items").round().cast(pl.Int64, strict=False).alias("uniform items for as much"),
    )  # fmt: skip
    summary = AnswerSummary(
        f"{len(propensity):,} pairs to expose, {planned.per_user} items to each of {len(design.users):,} users.",
        table=DataTable("", table).texts(),
        notes=(
            *([f"{few:,} of the users have fewer items left to show, {none:,} of them none."] if few else []),
            f"Probabilities are {propensity.min():.2g} to {propensity.max():.2g}. Savings are against "
            f"{planned.per_user} uniformly drawn items, by a guess of what is relevant; a model unlike all of these "
            f"has at most about {1 / planned.uniform:.2g} times the variance of uniform exposure.",
            f"The pairs are in {place / 'shown.parquet'}. {worded(NEXT, for_cli=True)}",
        ),
    )
    document = {"design": design.settings, "pairs": len(propensity), "savings": saved.to_dicts()}
    return Answer("What to show?", summary, planned.saved, document)


# --------------------------------------------------------------------------------------------------------------- watch


def watch_answer(watched: Watched) -> Answer:
    """Whether to stop, then a line for each comparison."""
    pairs = watched.pairs
    decided = [pair for pair in pairs if pair.state.outcome is not Outcome.INSUFFICIENT]
    verdict = watch_sentence(pairs[0], watched)
    if len(pairs) > 1:
        stop = "Stop: all" if len(decided) == len(pairs) else f"Continue: {len(decided):,} of"
        verdict = f"{stop} {len(pairs):,} comparisons are decided."
    alike = len({(pair.model, pair.baseline) for pair in pairs}) == 1
    rows = []
    for pair in pairs:
        look = pair.look
        places = decimals(look.difference if math.isnan(look.low) else look.high - look.low, digits=2)
        significant = pair.state in (WatchState.SHOWN, WatchState.OPPOSITE)
        rows.append([
            Cell(f"{pair.metric}, {pair.estimator}" if alike else str(pair)),
            Cell(signed_interval(look.difference, look.low, look.high, places), "*" * significant),
            *(Cell(f"{n:,}") for n in (look.users, look.informative)),
            *([Cell(str(pair.state))] if len(pairs) > 1 else []),
        ])  # fmt: skip
    name = f"{pairs[0].model} - {pairs[0].baseline}" if alike else "difference"
    first, interval = "metric" if alike else "comparison", f"{name} ({watched.level:.0%} CI)"
    head = [first, interval, "users", "differ", *["state"] * (len(pairs) > 1)]
    cautions = dict.fromkeys(str(text) for pair in pairs for text in (*pair.reasons, *pair.cautions))
    summary = AnswerSummary(
        verdict,
        "sufficient" if len(decided) == len(pairs) else "insufficient",
        ResultTable(head, rows),
        warnings=tuple(cautions),
        estimands=f"{estimands(pairs)} Intervals are anytime-valid.",
        remarks=(*(watch_sentence(pair, watched) for pair in pairs * (len(pairs) > 1)), *map(str, watched.messages)),
        next_step=_next(pairs[0])
        if len(pairs) == 1 or len(decided) < len(pairs)
        else "Read the table: each line is decided.",
    )
    document = {
        "level": watched.level,
        "planned": watched.planned,
        "difference": watched.difference,
        "watched": [
            row | {"reasons": pair.reasons, "cautions": pair.cautions}
            for row, pair in zip(watched.table().to_dicts(), pairs, strict=True)
        ],
        "messages": watched.messages,
    }
    question = f"Which is better so far: {', '.join(dict.fromkeys(n for p in pairs for n in (p.model, p.baseline)))}?"
    return Answer(question, summary, watched.table, document, lambda: watch_panels(watched))


def watch_sentence(pair: WatchedPair, watched: Watched) -> str:
    """What to do about one comparison, in words."""
    model, baseline, users = pair.model, pair.baseline, f"with {pair.look.users:,} users"
    sentences = {
        WatchState.SHOWN: f"Stop: {model} is better than {baseline} on {pair.metric}, significant {users}.",
        WatchState.OPPOSITE: f"Stop: {baseline} is better than {model} on {pair.metric}, significant {users}.",
        WatchState.GOING_ON: f"Continue: {model} and {baseline} do not differ significantly on {pair.metric} yet.",
        WatchState.EARLY: f"Continue: {model} and {baseline} differ for too few users to compute an interval.",
        WatchState.REFUSED: f"No verdict on {model} and {baseline}: assumptions are violated.",
    }
    close = f"Stop: {model} and {baseline} differ by less than {watched.difference or 0:g} either way {users}."
    return sentences.get(pair.state, close)


def _next(pair: WatchedPair) -> str:
    steps = {
        WatchState.SHOWN: f"Use {pair.model}.",
        WatchState.OPPOSITE: f"Use {pair.baseline}.",
        WatchState.CLOSE: "Use either: the difference does not matter.",
        WatchState.REFUSED: "Correct the data or the options that the caveat names.",
    }
    return steps.get(pair.state, "Collect labels of more users, and run the same command again.")


def watch_panels(*looks: Watched) -> list[PlotPanel]:
    """The difference at each look, and the intersection of all intervals so far, by the number of users.

    All intervals cover the true difference together with probability `level`, so their intersection does too: once it
    excludes 0, it excludes 0 for good.
    """
    tables = [watched.table() for watched in looks]
    return [_watch_panel(pair, looks[-1], [table.row(place, named=True) for table in tables])
            for place, pair in enumerate(looks[-1].pairs)
            if not all(math.isnan(table.row(place, named=True)["difference"]) for table in tables)]  # fmt: skip


def _watch_panel(pair: WatchedPair, watched: Watched, looks: Rows) -> PlotPanel:
    known = [row for row in looks if not math.isnan(row["low"])] or looks  # differences alone before any interval
    table = pl.DataFrame(known, schema=watched.table().schema)
    low, high = (pl.col(name).fill_nan(None) for name in ("low", "high"))
    rows: Rows = table.with_columns(low.cum_max(), high.cum_min()).to_dicts()
    scale = {"type": "log" if len(rows) > 1 else "linear", "nice": False}
    axis = {"format": ",d", "labelOverlap": True}
    base = chart_of(rows).encode(x=alt.X("users:Q", title="users so far", scale=scale, axis=axis))
    title = f"{pair.model} - {pair.baseline}"
    tips = tooltips("users:Q", "difference:Q", "low:Q", "high:Q")
    layers = (
        base.mark_rule(color=BLUE, opacity=0.3, strokeWidth=4).encode(y=alt.Y("low:Q", title=title), y2="high:Q"),
        base.mark_point(color=BLUE, filled=True, opacity=1).encode(y=alt.Y("difference:Q", title=title), tooltip=tips),
        dashed_at(0, "zero", along="y"),
    )
    sentence = watch_sentence(pair, watched)
    if len(looks) > 1:
        sentence += " Bars: intersection of all intervals so far."
    return PlotPanel(f"{pair.metric}, {pair.estimator}", sentence, layered(*layers, height=220))
