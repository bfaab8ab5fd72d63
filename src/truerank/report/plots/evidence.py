"""How far numbers can be trusted: whether rows stand for the list, how many clusters tell, what hangs on one."""

from __future__ import annotations

from typing import Any

from truerank.core.results import Comparison, Estimate, Results
from truerank.inference.balance import FAR, MUCH
from truerank.inference.verdicts import FEWEST, HALF, MUCH_LOST
from truerank.report.plots.differences import pair
from truerank.report.plots.panels import (
    BLUE,
    INK,
    MOST_COLOURS,
    PlotPanel,
    Rows,
    inline,
    layered,
    library,
    model_colour,
    named,
    tooltips,
)
from truerank.report.questions import ShownQuestion, questions_of

ROW = 26


def balance(results: Results) -> list[PlotPanel]:
    """How much of each list the rows stand for, 100 % where all of it; nothing where that cannot be known."""
    questions = questions_of(results)
    found = [(question, each) for question in questions for each in question.estimates[:MOST_COLOURS]
             if each.evidence.balance is not None]  # fmt: skip
    if not found:
        return []
    rows: Rows = [
        {"question": question.title, "model": each.model, "share": each.evidence.balance, "z": each.evidence.balance_z}
        for question, each in found
    ]
    chart = _by_model(rows, title="share of the list that the rows stand for", at=1.0, zero=False)
    return [PlotPanel("balance of the list", _of_balance(rows), chart)]


def evidence(results: Results) -> list[PlotPanel]:
    """Balance, clusters that tell models apart, what one cluster holds, weight lost and exposure without support."""
    questions = questions_of(results)
    weighed = bool(results.provenance.details.get("diagnostics"))  # then `weights` tells it in full
    return [
        *balance(results),
        *_informative(questions, cluster=results.provenance.details.get("cluster", results.provenance.unit)),
        *_shares(questions, "largest", "largest share of one cluster", HALF,
                 "one cluster holds {share:.0%} of the variance of {model} at {question}"),
        *_shares([] if weighed else questions, "lost", "weight lost to clips", MUCH_LOST,
                 "a clip takes {share:.1%} of the weight of {model} at {question} away"),
        *_shares([] if weighed else questions, "unsupported", "exposure without support", MUCH_LOST,
                 "{share:.1%} of what {model} would show at {question} is not in the data"),
    ]  # fmt: skip


def _of_balance(rows: Rows) -> str:
    worst = max(rows, key=lambda row: abs(row["z"] or 0.0))
    about = f"{worst['model']} at {worst['question']}: {worst['share']:.0%}"
    if worst["z"] is None:
        return f"How much of a list the rows stand for, {about}."
    far = abs(worst["z"]) > FAR and abs(worst["share"] - 1) > MUCH
    said = "more than chance explains" if far else "no more than chance explains"
    return f"Rows stand for the lists of models; furthest off is {about}, {abs(worst['z']):.1f} errors, {said}."


def _informative(questions: list[ShownQuestion], *, cluster: str) -> list[PlotPanel]:
    found: list[tuple[ShownQuestion, Comparison]] = [
        (question, each) for question in questions for each in question.top_differences(MOST_COLOURS)
    ]
    if not found:
        return []
    rows: Rows = [
        {"question": question.title, "pair": pair(each), "n": each.evidence.informative, "df": each.evidence.df,
         "share": max(each.evidence.informative, 0.5)}
        for question, each in found
    ]  # fmt: skip
    least = min(rows, key=lambda row: row["n"])
    enough = "enough for" if least["n"] >= FEWEST else "too few for"
    sentence = (
        f"At least {least['n']:,} {cluster}s tell two models apart ({least['pair']} at {least['question']}): "
        f"{enough} a verdict, which needs {FEWEST}."
    )
    return [PlotPanel(f"{cluster}s that tell models apart", sentence, _clusters(rows, cluster=cluster))]


def _shares(questions: list[ShownQuestion], name: str, title: str, limit: float, text: str) -> list[PlotPanel]:
    found: list[tuple[ShownQuestion, Estimate]] = [
        (question, each)
        for question in questions
        for each in question.estimates[:MOST_COLOURS]
        if getattr(each.evidence, name) is not None
    ]
    if not found:
        return []
    rows: Rows = [
        {"question": question.title, "model": each.model, "share": getattr(each.evidence, name)}
        for question, each in found
    ]
    most = max(rows, key=lambda row: row["share"])
    said = text.format(**most)
    end = f"above {limit:.0%}, where it may change what is said" if most["share"] > limit else f"below {limit:.0%}"
    return [PlotPanel(title, f"At most, {said}: {end}.", _by_model(rows, title=title, at=limit, zero=True))]


def _by_model(rows: Rows, *, title: str, at: float, zero: bool) -> Any:
    alt = library()
    models = list(dict.fromkeys(row["model"] for row in rows))[:MOST_COLOURS]
    labels = list(dict.fromkeys(row["question"] for row in rows))
    colour, shape = model_colour(alt, models)
    shown = [row for row in rows if row["model"] in models]
    points = (
        alt.Chart(inline(shown))
        .mark_point(filled=True, size=65, opacity=0.9)
        .encode(
            y=alt.Y("question:N", sort=named(labels), title=None, axis=alt.Axis(ticks=False)),
            yOffset=alt.YOffset("model:N", sort=named(models)),
            x=alt.X("share:Q", title=title, axis=alt.Axis(format="%"), scale=alt.Scale(zero=zero, padding=10)),
            color=colour,
            shape=shape,
            tooltip=tooltips(alt, question="question:N", model="model:N", share="share:Q"),
        )
    )
    limit = alt.Chart(inline([{"at": at}])).mark_rule(color=INK, strokeDash=[4, 3], opacity=0.7).encode(x="at:Q")
    return layered(limit, points).properties(height=max(2, len(labels)) * max(ROW, 9 * len(models)))


def _clusters(rows: Rows, *, cluster: str) -> Any:
    alt = library()
    labels = list(dict.fromkeys(row["question"] for row in rows))
    points = (
        alt.Chart(inline(rows))
        .mark_point(filled=True, size=60, opacity=0.75, color=BLUE)
        .encode(
            y=alt.Y("question:N", sort=named(labels), title=None, axis=alt.Axis(ticks=False)),
            x=alt.X("share:Q", title=f"{cluster}s that tell two models apart (log axis)", scale=alt.Scale(type="log")),
            tooltip=tooltips(
                alt, question="question:N", of="pair:N", degrees_of_freedom="df:Q", **{f"{cluster}s": "n:Q"}
            ),
        )
    )
    limit = alt.Chart(inline([{"at": FEWEST}])).mark_rule(color=INK, strokeDash=[4, 3], opacity=0.7).encode(x="at:Q")
    return layered(limit, points).properties(height=max(2, len(labels)) * ROW)
