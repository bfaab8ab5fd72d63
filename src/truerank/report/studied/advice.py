"""The page of the study of advice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from truerank.report.study_charts import curves, percent
from truerank.report.study_pages import StudyPage
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row

SERIES = {
    "advised": "as advised",
    "best": "best in hindsight",
    "full": "all items",
    "exposed": "only what was shown",
}


def page(result: StudyResult) -> StudyPage:
    rows, known = result.rows("regrets"), result.rows("recognised")
    worlds = dict.fromkeys(row["world"] for row in rows)
    points = [
        {"at": f"{sparsity:.0%}", "group": word, "panel": world, "value": fmean(row[name] for row in own if row["sparsity"] == sparsity)}
        for world in worlds
        for own in [[row for row in rows if row["world"] == world]]
        for name, word in SERIES.items()
        for sparsity in dict.fromkeys(row["sparsity"] for row in own)
    ]  # fmt: skip
    regret = [row["regret"] for row in rows]
    gain = fmean(row["advised"] - row["full"] for row in rows)
    right, of = _right(known)
    return StudyPage(
        "Does the advice hold?",
        curves(points, across="share of pairs that were hidden", title="τ with the true order of models"),
        "Agreement with the true order of models over sparsity, as advised and otherwise",
        (
            "`truerank advise` says which candidates to rank so that models come out in their true order; here its advice was followed on fresh logs whose truth is known.",
            f"It loses {fmean(regret):.3f} of τ on average (at most {max(regret):.3f}) against the best choice in hindsight, and gains {gain:.3f} over ranking all items{_beaten(points)}.",
            f"It recognised how the log came about in {percent(right / of)} of {of:,.0f} logs.",
        ),
        [
            *_introduction(result),
            "",
            *_in_short(worlds, result.rows("in short"), known),
            *(line for world in worlds for line in _world(world, result)),
        ],
    )


def _right(known: Sequence[Row]) -> tuple[int, int]:
    """Logs whose logger was recognised, and all."""
    return sum(row["logs"] for row in known if row["logger"] == row["taken for"]), sum(row["logs"] for row in known)


def _introduction(result: StudyResult) -> Iterator[str]:
    settings = result.settings
    yield f"On each world a reliability study is run on one half of the users ({settings['models']} models, {settings['ways']} ways to choose candidates,"
    yield f"nDCG@100, {settings['repetitions']} repetitions). Fresh logs are then drawn with other seeds, of n users with replacement, at sparsities that the study does not have"
    yield "(20 %, 60 %, 80 %, 93 %, and 98 %, which is sparser than any of its logs): of the other half of the users, and of the study's own, where only the formula is"
    yield "tested. Truth is the order that Full gives at sparsity 0 for that half. τ is over the pairs whose order the study knows, so it is between -1 and 1; τ expected"
    yield 'and realised are of the same pairs. Differences are in units of τ; "within 2 errors" counts |expected - realised| ≤ 2 Monte-Carlo errors + 0.005.'
    yield f"Draws of one logger and number of users share their users and clocks over sparsities. The best in hindsight is the largest of {settings['ways']} noisy means, so regret"
    yield 'is overstated. "As stated" is the expected τ of what was advised. A tenth of each user\'s pairs is held out as random data, in the study and in fresh logs: it is'
    yield "neither shown nor a candidate."


def _beaten(points: Sequence[Row]) -> str:
    """Where ranking only what was shown does better."""
    tau = {(point["panel"], point["at"], point["group"]): point["value"] for point in points}
    where = [
        f"{world} with {at} hidden"
        for world, at in dict.fromkeys(key[:2] for key in tau)
        if tau[world, at, SERIES["exposed"]] > tau[world, at, SERIES["advised"]]
    ]
    return f" ({SERIES['exposed']} is better still on {', '.join(where)})" if where else ""


def _in_short(worlds: Iterable[str], rows: Sequence[Row], known: Sequence[Row]) -> Iterator[str]:
    """A line for each world, within and beyond the study's sparsities, of users who were not in the study."""
    yield "| world | logs | logger recognised | expected τ is off by (root mean square) | τ as advised | as stated | Full | best in hindsight |"
    yield "|---|---|---|---|---|---|---|---|"
    for world in worlds:
        right, of = _right([row for row in known if row["world"] == world])
        for row in sorted((row for row in rows if row["world"] == world), key=lambda row: row["beyond"]):
            logs = "sparser than the study's" if row["beyond"] else "as sparse as the study's"
            figures = " | ".join(f"{row[name]:.3f}" for name in ("off", "advised", "stated", "full", "best"))
            yield f"| {world} | {logs} | {right / of:.1%} of {of:,} | {figures} |"


def _world(world: str, result: StudyResult) -> Iterator[str]:
    known, predicted, regrets = (
        [row for row in result.rows(name) if row["world"] == world] for name in ("recognised", "predicted", "regrets")
    )
    right, of = _right(known)
    yield from ("", f"## {world}", "")
    yield f"**Is the logger recognised?** In {right:,} of {of:,} logs of users who were not in the study."
    yield ""
    yield from _recognised(known)
    yield ""
    yield "**Is the expected τ what comes out?** Over all loggers, sparsities and ways to choose candidates."
    yield ""
    yield "| logs | users | expected τ | realised τ | mean difference | root mean square | of which Monte Carlo | within 2 errors |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in predicted:
        yield (
            f"| {row['logs']} | {row['users']:,} | {row['expected']:.3f} | {row['realised']:.3f} | {row['difference']:+.3f} "
            f"| {row['root mean square']:.3f} | {row['noise']:.3f} | {row['within']:.0%} |"
        )
    yield ""
    yield "**What is lost by following the advice?** Realised τ, beside that stated; mean over loggers, logs of users not in the study."
    yield ""
    yield "| sparsity | users | advised | as stated | best expected | best in hindsight | regret | Full | Exposed |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in regrets:
        yield (
            f"| {row['sparsity']:.0%} | {row['users']:,} | {row['advised']:.3f} | {row['stated']:.3f} | {row['first']:.3f} | {row['best']:.3f} "
            f"| {row['regret']:.3f} | {row['full']:.3f} | {row['exposed']:.3f} |"
        )


def _recognised(known: Sequence[Row]) -> Iterator[str]:
    loggers = list(dict.fromkeys(row["logger"] for row in known))
    yield "| logger | " + " | ".join(f"taken for {each}" for each in loggers) + " |"
    yield "|---" * (len(loggers) + 1) + "|"
    for logger in loggers:
        yield f"| {logger} | " + " | ".join(f"{row['logs']:,}" for row in known if row["logger"] == logger) + " |"
