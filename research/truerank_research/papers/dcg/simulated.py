"""E-D5: the paper's online experiments on a simulated platform whose truth is known (like Table 2 and Figure 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.estimators.weighted import IPS
from truerank.evaluation.impressions import off_policy
from truerank.inference.agreement import correlation, sensitivity
from truerank.inference.clipping import GRID
from truerank.simulation.feed import Broken, FeedSettings, make_feed
from truerank.simulation.feed_truth import TRUE_SESSIONS, draw_log, log_table, target_table, truth_of
from truerank_research.claims import (
    Cell,
    Cells,
    Claim,
    Finding,
    Verdict,
    cell_rows,
    numbers,
    printed_table,
    share,
    span,
    untestable,
)
from truerank_research.papers.dcg.platform import (
    FORMS,
    LEVELS,
    NEW,
    OLD,
    READINGS,
    REWARDS,
    draw_week,
)
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

# what is switched off, one at a time
BASE, DAILY = "nothing", "one position model for the week"
SWITCHES: dict[str, dict[str, float]] = {
    BASE: {}, "days that differ in length": {"lengths": 0.0}, "days that differ in quality": {"moods": 0.0},
    "users that differ in patience": {"patience": 0.0}, DAILY: {},
}  # fmt: skip
SKILLS = {"small improvement": 0.5, "large improvement": 0.8}  # of the new ranker; the old one has 0.4
*OTHER_FORMS, DCG, NDCG = FORMS
METRICS = {"DCG": DCG, "nDCG": NDCG}
TABLE, FIGURE, SWITCHED = "Table 2, ranks {}", "Figure 1, ranks {}", "r of nDCG by what is switched off, ranks {}"
BIAS, NONE = "Bias of DCG pbm, Q̂, relative to the truth", "every assumption holds"
ERRORS = 3.0  # Monte-Carlo errors that sampling explains
REACH = 1.96  # standard errors to either side of a mean
WIDE = 0.5  # share of the clips above 1 that is a wide range
FEW = 0.05  # share of improvements that noise can lose
# r in Table 2 for the explicit and the implicit reward, in the order of the forms
PRINTED = printed_table("""
1st level, like, R0 | .97 .96 .97 .98 -.91
1st level, like, Rt | .86 .86 .87 .91 -.80
1st level, complete, R0 | .57 .70 .57 .70 -.80
1st level, complete, Rt | .05 .17 .05 .17 -.32
2nd level, like, R0 | .75 .71 .77 .79 -.42
2nd level, like, Rt | .28 .25 .38 .49 -.34
2nd level, complete, R0 | .10 .58 .48 .85 -.93
2nd level, complete, Rt | .55 .88 .70 .88 -.77""")


class Amount(NamedTuple):
    """How much is simulated."""

    feeds: int
    days: int  # of a week, and one less for clips, as in the paper
    sessions: int  # a day
    logs: int  # for the bias of each switch
    feed: FeedSettings
    true_sessions: int  # that the truth is simulated with, where it is not exact


FULL = Amount(8, 6, 800, 80, FeedSettings(), TRUE_SESSIONS)
QUICK = Amount(
    1, 3, 60, 3, FeedSettings(kinds=4, items=24, pool=8, candidates=6, length=4, sessions=200), 20_000
)  # fmt: skip


def measure(run: Run) -> Measured:
    amount = FULL if run.full else QUICK
    feeds = range(run.seed * amount.feeds, (run.seed + 1) * amount.feeds)
    weeks = pl.concat(run.pieces(correlate_week, [(*case, amount) for case in product(LEVELS, SWITCHES, feeds)]))
    clips = pl.concat(run.pieces(clip_weights, [(*case, amount) for case in product(SKILLS, feeds)]))
    switches = (NONE, *(broken.value for broken in Broken))
    biases = pl.concat(run.pieces(break_assumption, [(switch, run.seed, amount) for switch in switches]))
    cells = [*_table_cells(weeks), *_switch_cells(weeks), *_figure_cells(clips), *_bias_cells(biases)]
    return Measured(
        {"cells": cell_rows(cells)},
        {
            "feeds": amount.feeds, "sessions a day": amount.sessions, "days": amount.days,
            "days of Figure 1": amount.days - 1, "logs of each switch": amount.logs,
            "1st level": "lists of 20, Yule-Simon with ρ = 1.2", "2nd level": "lists of 200, γ = 0.95, clip 200",
        },
        [
            "A simulation: published numbers stand beside it for their signs.",
            "Share and like are explicit rewards, long view and complete implicit; the paper prints one of each.",
            "The paper does not say whether its position model was fitted once or for each day; both were tried.",
            "Only viewed items are logged. The paper does not say whether the target's ranks are among all candidates "
            "or among these; both were tried. No other length, γ or clip was tried.",
        ],
    )  # fmt: skip


def correlate_week(level: str, switch: str, feed: int, amount: Amount) -> pl.DataFrame:
    """The correlations of all forms with online reward over the days of one week, in both readings of ranks."""
    settings: Any = {"days": amount.days, "sessions": amount.sessions, **SWITCHES[switch]}
    platform = replace(LEVELS[level], **settings)
    log, fresh = (draw_week(platform, seed=feed, part=part) for part in ("log", "online"))
    view = np.stack([log.position(day) for day in range(platform.days)]) if switch == DAILY else log.position()
    logged, rows = log.logged(), []
    for reading, policy in product(READINGS, (OLD, NEW)):
        online = fresh.online(policy)
        rank = logged.item + 1 if policy == OLD else logged.rank[reading]
        for form, values in log.estimates(logged, rank, view, platform.clip).items():
            offline = log.by_day(values)
            for column, reward in enumerate(REWARDS):
                pair = offline[:, column], online[:, column]
                r = correlation(*pair).coefficient if np.isfinite(pair).all() else math.nan
                rows.append((level, switch, feed, reading, form, policy, reward, r))
    schema = ["level", "switch", "feed", "reading", "form", "policy", "reward", "r"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def clip_weights(skill: str, feed: int, amount: Amount) -> pl.DataFrame:
    """Differences of both metrics and their errors at every clip, for each day, reward and reading."""
    settings: Any = {"days": amount.days - 1, "sessions": amount.sessions, "new": SKILLS[skill]}
    log = draw_week(replace(LEVELS["2nd level"], **settings), seed=feed)
    view, logged, rows = log.position(), log.logged(), []
    for reading, clip in product(READINGS, GRID):
        new, old = (log.estimates(logged, rank, view, clip) for rank in (logged.rank[reading], logged.item + 1))
        for metric, form in METRICS.items():
            difference = new[form] - old[form]
            mean, square = log.by_day(difference), log.by_day(difference**2)
            n = log.by_day(np.isfinite(difference) * 1.0) * amount.sessions
            error = np.sqrt(np.maximum(square - mean**2, 0.0) / np.maximum(n - 1, 1))
            rows += [
                (skill, reading, metric, clip, *pair)
                for pair in zip(mean.ravel(), error.ravel(), strict=True)
                if math.isfinite(pair[0])
            ]
    schema = ["skill", "reading", "metric", "clip", "difference", "stderr"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def break_assumption(switch: str, seed: int, amount: Amount) -> pl.DataFrame:
    """The relative error of DCG (pbm, Q̂) in many logs of a feed in which one assumption does not hold."""
    broken = frozenset() if switch == NONE else frozenset({Broken(switch)})
    feed = make_feed(replace(amount.feed, broken=broken), seed=seed)
    truth = truth_of(feed, "better", sessions=amount.true_sessions)
    rows = []
    for number in range(amount.logs):
        log = draw_log(feed, seed=number)
        results = off_policy(
            log_table(feed, log), {"better": target_table(feed, log, "better")}, rewards=list(truth),
            estimators=[IPS()], threads=1,
        )  # fmt: skip
        for estimate in results.estimates:
            reward = str(estimate.reward)
            rows.append((switch, reward, estimate.value / truth[reward].value - 1))
    return pl.DataFrame(rows, schema=["switch", "reward", "error"], orient="row")


def _table_cells(weeks: pl.DataFrame) -> Iterable[Cell]:
    """Mean correlation over feeds, by reading, level, reward and policy."""
    for reading, level, reward, policy in product(READINGS, LEVELS, REWARDS, (OLD, NEW)):
        row = weeks.filter(switch=BASE, reading=reading, level=level, reward=reward, policy=policy)
        name = f"{level}, {reward}, {policy}"
        for form, number in zip(FORMS, PRINTED.get(name, (None,) * len(FORMS)), strict=True):
            values = row.filter(form=form)["r"].to_numpy()
            yield _mean_cell(TABLE.format(reading), name, form, values, number)


def _switch_cells(weeks: pl.DataFrame) -> Iterable[Cell]:
    """Mean correlation of nDCG over rewards and feeds, and in how many of the eight rows it is below 0."""
    for reading, level, switch in product(READINGS, LEVELS, SWITCHES):
        part = weeks.filter(reading=reading, level=level, switch=switch, form=NDCG).fill_nan(None)
        means = part.group_by("reward", "policy", maintain_order=True).agg(pl.mean("r"))["r"]
        by_feed = part.group_by("feed", maintain_order=True).agg(pl.mean("r"))["r"].drop_nulls()
        table = SWITCHED.format(reading)
        yield _mean_cell(table, f"{level}: {switch}", "mean r", by_feed.to_numpy())
        yield Cell(table, f"{level}: {switch}", "rows below 0", float((means < 0).sum()))


def _figure_cells(clips: pl.DataFrame) -> Iterable[Cell]:
    """Detected improvements, mean p and correct signs over days, rewards and feeds, for every clip."""
    for reading, skill, clip in product(READINGS, SKILLS, GRID):
        row = f"{skill}, {'no clip' if math.isinf(clip) else f'm = {clip:g}'}"
        for metric in METRICS:
            part = clips.filter(reading=reading, skill=skill, clip=clip, metric=metric)
            power = sensitivity(part["difference"].to_numpy(), part["stderr"].to_numpy(), clip=clip)
            table = FIGURE.format(reading)
            yield Cell(table, row, f"{metric}: found", power.true_positive_rate)
            yield Cell(table, row, f"{metric}: mean p", power.mean_p)
            yield Cell(table, row, f"{metric}: right sign", power.sign_agreement, published=1.0)


def _bias_cells(biases: pl.DataFrame) -> Iterable[Cell]:
    for (switch, reward), rows in biases.group_by("switch", "reward", maintain_order=True):
        yield _mean_cell(BIAS, str(switch), str(reward), rows["error"].to_numpy())


def _mean_cell(table: str, row: str, column: str, values: Floats, printed: float | None = None) -> Cell:
    """A mean with the interval of its Monte-Carlo error; none of a single value."""
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return Cell(table, row, column, mean, printed, mean - REACH * error, mean + REACH * error)


def _both(rule: Callable[[Cells, str], Finding]) -> Callable[[Cells], Finding]:
    """A rule under both readings of ranks: the verdict that they share, in part where they differ."""

    def judge(cells: Cells) -> Finding:
        findings = {reading: rule(cells, reading) for reading in READINGS}
        verdicts = {finding.verdict for finding in findings.values()}
        why = " ".join(f"Ranks {reading} ({finding.verdict}): {finding.why}" for reading, finding in findings.items())
        return Finding(verdicts.pop() if len(verdicts) == 1 else Verdict.IN_PART, why)

    return judge


def _rows(cells: Cells, reading: str) -> list[dict[str, float]]:
    """r of every form in the rows of Table 2 in which all are defined (some series do not vary in few sessions)."""
    table = TABLE.format(reading)
    names = dict.fromkeys(cell.row for cell in cells.select(table))
    rows = [{form: cells.value(table, name, form) for form in FORMS} for name in names]
    return [row for row in rows if not any(math.isnan(value) for value in row.values())]


def _correlates_rule(cells: Cells, reading: str) -> Finding:
    values = [row[DCG] for row in _rows(cells, reading)]
    return share([value > 0 for value in values], f"Mean r is {span(values)} in {len(values)} rows.")


def _strongest_rule(cells: Cells, reading: str) -> Finding:
    best = [all(round(row[DCG], 2) >= round(row[form], 2) for form in OTHER_FORMS) for row in _rows(cells, reading)]
    return share(best, f"It is best or equal in {sum(best)} of {len(best)} rows.")


def _negative_rule(cells: Cells, reading: str) -> Finding:
    values = [row[NDCG] for row in _rows(cells, reading)]
    table = SWITCHED.format(reading)
    by_switch = {
        switch: [cells.value(table, f"{level}: {switch}", "rows below 0") for level in LEVELS] for switch in SWITCHES
    }
    without = ", ".join(f"{switch} {sum(counts):.0f}" for switch, counts in by_switch.items() if switch != BASE)
    below = sum(value < 0 for value in values)
    why = (
        f"Mean r is below 0 in {below} of {len(values)} rows ({span(values)}); with one thing switched off: {without}."
    )
    return share([value < 0 for value in values], why)


def _sign_rule(cells: Cells, reading: str) -> Finding:
    signs = [cell.obtained == 1 for cell in cells.select(FIGURE.format(reading)) if cell.column.endswith("right sign")]
    return share(signs, f"All signs are correct in {sum(signs)} of {len(signs)} rows.")


def _by_clip(cells: Cells, reading: str) -> dict[tuple[str, str], list[float]]:
    """The share of improvements that are detected, from the smallest clip to none."""
    table = FIGURE.format(reading)
    return {
        (skill, metric): numbers(
            cell for cell in cells.select(table, column=f"{metric}: found") if cell.row.startswith(skill)
        )
        for skill, metric in product(SKILLS, METRICS)
    }


def _weights_rule(cells: Cells, reading: str) -> Finding:
    detected = _by_clip(cells, reading)
    text = "; ".join(
        f"{metric}, {skill}: {values[0]:.0%} raw, at best {max(values[1:]):.0%}"
        for (skill, metric), values in detected.items()
    )
    return share([max(values[1:]) > values[0] or values[0] == 1 for values in detected.values()], f"Detected: {text}.")


def _sensitive_rule(cells: Cells, reading: str) -> Finding:
    detected = _by_clip(cells, reading)
    above = {
        skill: float(np.mean(np.array(detected[skill, "DCG"][1:]) > np.array(detected[skill, "nDCG"][1:])))
        for skill in SKILLS
    }
    text = "; ".join(f"{skill}: {part:.0%} of clips" for skill, part in above.items())
    return share([part >= WIDE for part in above.values()], f"DCG detects more at {text}.")


def _variance_rule(cells: Cells, reading: str) -> Finding:
    detected = _by_clip(cells, reading)
    lost = {key: max(values) - values[-1] for key, values in detected.items()}
    parts = [
        (lost[skill, metric] > FEW) == (metric == "DCG") and max(detected[skill, metric]) > 0
        for skill, metric in detected
    ]
    text = "; ".join(f"{metric}, {skill}: {value * 100:.0f} points" for (skill, metric), value in lost.items())
    return share(parts, f"Lost without a clip: {text}.")


def _bias_in_errors(cells: Cells, switch: str) -> list[float]:
    """The bias in Monte-Carlo errors, by reward."""
    ends = [(cell.obtained, cell.high) for cell in cells.select(BIAS, row=switch)]
    return [
        abs(value) * REACH / (high - value) if high > value else math.inf
        for value, high in ends
        if value is not None and high is not None
    ]


def _unbiased_rule(cells: Cells) -> Finding:
    errors = _bias_in_errors(cells, NONE)
    text = " and ".join(f"{value:.1f}" for value in errors)
    return share([value <= ERRORS for value in errors], f"The bias is {text} Monte-Carlo errors.")


def _assumptions_rule(cells: Cells) -> Finding:
    largest = {broken.value: max(_bias_in_errors(cells, broken.value)) for broken in Broken}
    text = ", ".join(f"{name} {value:.0f}" for name, value in largest.items())
    return share([value > ERRORS for value in largest.values()], f"Largest bias in Monte-Carlo errors: {text}.")


CLAIMS = (
    Claim(
        "correlates", "Over days, DCG correlates with online reward.", "Table 2",
        "By rows of Table 2 (level, reward, policy): the mean r of DCG pbm, Q̂ over feeds is above 0.",
        _both(_correlates_rule),
    ),
    Claim(
        "strongest", "DCG with a fitted position model and debiased labels correlates best.", "Table 2",
        "By rows of Table 2: its mean r is at least that of each other form of DCG, to two digits.",
        _both(_strongest_rule),
    ),
    Claim(
        "negative", "Over days, nDCG correlates negatively with online reward.", "Table 2",
        "By rows of Table 2: the mean r of nDCG is below 0.", _both(_negative_rule),
    ),
    Claim(
        "sign", "All offline differences have the sign of the online ones.", "Figure 1",
        "By rows of Figure 1 (improvement, clip) and metrics: the sign is correct in every cell.", _both(_sign_rule),
    ),
    Claim(
        "weights", "Weighting (m > 1) detects more improvements than raw labels, for DCG and nDCG.", "Figure 1",
        "By metrics and improvements: the best clip above 1 detects a larger share than m = 1, or both detect all.",
        _both(_weights_rule),
    ),
    Claim(
        "sensitive", "For a wide range of clips DCG detects more true improvements than nDCG.", "Figure 1",
        f"By improvements: DCG detects more than nDCG at {WIDE:.0%} of the clips above 1 or more.",
        _both(_sensitive_rule),
    ),
    Claim(
        "variance", "Without a clip DCG detects fewer improvements than at its best; nDCG does not lose.", "Figure 1",
        f"By improvements and metrics: without a clip DCG detects at least {FEW:.0%} less than at the best clip, nDCG "
        "does not. A metric that "
        "detects nothing at any clip has nothing to lose and does not support the claim.", _both(_variance_rule),
    ),
    Claim(
        "unbiased", "Where its five assumptions hold, DCG is an unbiased estimate of reward.", "Eq. 9",
        f"By rewards: the bias over logs is at most {ERRORS:g} Monte-Carlo errors.", _unbiased_rule,
    ),
    Claim(
        "assumptions", "Each of the five assumptions is needed for that.", "Section 4",
        f"By assumptions: without it, the bias of a reward is more than {ERRORS:g} Monte-Carlo errors.",
        _assumptions_rule,
    ),
)  # fmt: skip
UNAVAILABLE = "it needs the logs of a platform with 40 million users, which are not public; E-D5 simulates one."


STUDIES = (
    *(
        Study(
            name, question, shows={"dcg": (part,)}, unavailable=UNAVAILABLE,
            claims=tuple(
                Claim(key, text, part, "The logs are not public.", untestable(UNAVAILABLE))
                for key, text in claims.items()
            ),
        )
        for name, part, question, claims in (
            (
                "E-D3", "Table 2", "Do daily offline estimates correlate with daily online reward on a real platform?",
                {
                    "platform-dcg": "On the platform DCG correlates with online reward.",
                    "platform-ndcg": "On the platform nDCG correlates negatively with online reward.",
                },
            ),
            (
                "E-D4", "Figure 1",
                "How many true improvements do offline estimates detect on a real platform, by the clip of weights?",
                {"platform-sensitivity": "On the platform DCG detects more improvements than nDCG at most clips."},
            ),
        )
    ),
    Study(
        "E-D5", "What do the online experiments show on a simulated platform with long, uneven sessions?", measure,
        minutes=4, claims=CLAIMS, shows={"dcg": ("Table 2", "Figure 1")},
    ),
)  # fmt: skip
