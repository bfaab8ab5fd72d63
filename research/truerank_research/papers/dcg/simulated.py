"""E-D5: the paper's online experiments on a simulated platform whose truth is known (like Table 2 and Figure 1)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.estimators.discounted import LearntDiscountRaw, LogDiscountDebiased, LogDiscountRaw, RankedNDCG
from truerank.estimators.impressions import Limited
from truerank.estimators.refitting import RankedEstimator
from truerank.estimators.weighted import IPS
from truerank.evaluation.impressions import off_policy
from truerank.exposure.policies.targets import RankColumn
from truerank.inference.agreement import correlation, sensitivity
from truerank.inference.clipping import GRID
from truerank.simulation.feed import Broken, FeedSettings, make_feed
from truerank.simulation.feed_truth import TRUE_SESSIONS, draw_log, log_table, target_table, truth_of
from truerank_research.claims import Cell, Cells, Claim, Finding, cell_rows, numbers, share, span, untestable
from truerank_research.papers.dcg.platform import NEW, OLD, REWARDS, Platform, draw_week
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

PLATFORMS = {"1st level": Platform(length=20, rate=1.2), "2nd level": Platform(length=100, rate=0.7)}
LEVELS = tuple(PLATFORMS)
WEEK, DAY = "one position model for the week", "a position model for each day"
BOTH, LENGTH, MOOD = "days differ in length and quality", "days differ in length", "days differ in quality"
REGIMES = tuple(product(LEVELS, (BOTH, LENGTH, MOOD), (WEEK, DAY)))
SPREAD = 0.3  # on the scale of log ρ and of logits, where days differ
SKILLS = {"small improvement": 0.5, "large improvement": 0.8}  # of the new ranker; the old one has 0.4
ESTIMATORS: dict[str, RankedEstimator] = {
    "DCG log, C": LogDiscountRaw(),
    "DCG log, Q̂": LogDiscountDebiased(),
    "DCG pbm, C": LearntDiscountRaw(),
    "DCG pbm, Q̂": IPS(),
    "nDCG pbm, Q̂": RankedNDCG(),
}
*OTHER_FORMS, DCG, NDCG = ESTIMATORS
METRICS = ("DCG", "nDCG")
TABLE, FIGURE, REVERSAL = "Table 2", "Figure 1", "When nDCG turns negative"
BIAS, NONE = "Bias of DCG pbm, Q̂, relative to the truth", "every assumption holds"
ERRORS = 3.0  # Monte-Carlo errors that sampling explains
REACH = 1.96  # standard errors to either side of a mean
WIDE = 0.5  # share of the clips above 1 that is a wide range
# r in Table 2 for the explicit and the implicit reward, in the order of the forms
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
    weeks = pl.concat(run.pieces(correlate_week, [(*regime, feed, amount) for regime in REGIMES for feed in feeds]))
    clips = pl.concat(run.pieces(clip_weights, [(skill, feed, amount) for skill in SKILLS for feed in feeds]))
    switches = (NONE, *(broken.value for broken in Broken))
    biases = pl.concat(run.pieces(break_assumption, [(switch, run.seed, amount) for switch in switches]))
    cells = [*_table_cells(weeks), *_reversal_cells(weeks), *_figure_cells(clips), *_bias_cells(biases)]
    return Measured(
        {"cells": cell_rows(cells)},
        {
            "feeds": amount.feeds, "sessions a day": amount.sessions, "days": amount.days,
            "days of Figure 1": amount.days - 1, "lists": "of 20 (1st level) and 100 items",
            "logs of each switch": amount.logs,
        },
        [
            "A simulation: published numbers stand beside it for their signs.",
            "Share and like are explicit rewards, long view and complete implicit; the paper prints one of each.",
            "The paper does not say whether its position model was fitted once or for each day; both were tried.",
        ],
    )  # fmt: skip


def correlate_week(level: str, variation: str, model: str, feed: int, amount: Amount) -> pl.DataFrame:
    """The correlations of all forms with online reward over the days of one week."""
    platform = replace(
        PLATFORMS[level], days=amount.days, sessions=amount.sessions, lengths=0.0 if variation == MOOD else SPREAD,
        moods=0.0 if variation == LENGTH else SPREAD,
    )  # fmt: skip
    log, fresh = (draw_week(platform, seed=feed, part=part) for part in ("log", "online"))
    online = {policy: fresh.online(policy) for policy in (OLD, NEW)}
    offline: dict[tuple[str, str, str], list[float]] = {}
    weekly = log.position() if model == WEEK else None
    for day in range(platform.days):
        results = off_policy(
            log.logged(day), {policy: RankColumn(policy) for policy in (OLD, NEW)},
            position=log.position(day) if weekly is None else weekly, estimators=list(ESTIMATORS.values()),
            rewards=list(REWARDS), threads=1,
        )  # fmt: skip
        for estimate in results.estimates:
            key = (estimate.estimator, estimate.model, str(estimate.reward))
            offline.setdefault(key, []).append(estimate.value)
    names = {estimator.about.name: form for form, estimator in ESTIMATORS.items()}
    rows = [
        (level, variation, model, feed, names[estimator], policy, reward,
         correlation(values, online[policy][:, list(REWARDS).index(reward)]).r)
        for (estimator, policy, reward), values in offline.items()
    ]  # fmt: skip
    schema = ["level", "variation", "model", "feed", "form", "policy", "reward", "r"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def clip_weights(skill: str, feed: int, amount: Amount) -> pl.DataFrame:
    """Differences of both metrics and their errors at every clip, for each day and reward."""
    platform = replace(PLATFORMS["2nd level"], days=amount.days - 1, sessions=amount.sessions, new=SKILLS[skill])
    log = draw_week(platform, seed=feed)
    position = log.position()
    forms: list[RankedEstimator] = [IPS(of=Limited.INVERSE), RankedNDCG(of=Limited.INVERSE)]
    metrics = {"ips": "DCG", "ndcg": "nDCG"}
    rows = []
    for day in range(platform.days):
        results = off_policy(
            log.logged(day), {policy: RankColumn(policy) for policy in (OLD, NEW)}, position=position, clips=GRID,
            estimators=forms, rewards=list(REWARDS), baseline=OLD, threads=1,
        )  # fmt: skip
        rows += [
            (skill, metrics[pair.estimator], math.inf if pair.clip is None else pair.clip, pair.difference, pair.stderr)
            for pair in results.comparisons
        ]
    return pl.DataFrame(rows, schema=["skill", "metric", "clip", "difference", "stderr"], orient="row")


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
    """Mean correlation over feeds, by level, reward and policy; days differ in both, one position model a week."""
    table = weeks.filter(variation=BOTH, model=WEEK)
    for level, reward, policy in product(LEVELS, REWARDS, (OLD, NEW)):
        printed = PRINTED.get((level, reward, policy), (None,) * len(ESTIMATORS))
        for form, number in zip(ESTIMATORS, printed, strict=True):
            values = table.filter(level=level, reward=reward, policy=policy, form=form)["r"].to_numpy()
            yield _mean_cell(TABLE, f"{level}, {reward}, {policy}", form, values, number)


def _reversal_cells(weeks: pl.DataFrame) -> Iterable[Cell]:
    """Mean correlation over rewards and feeds in every regime, for both metrics and policies."""
    for level, variation, model in REGIMES:
        regime = weeks.filter(level=level, variation=variation, model=model)
        for (metric, form), policy in product(zip(METRICS, (DCG, NDCG), strict=True), (OLD, NEW)):
            by_feed = regime.filter(form=form, policy=policy).group_by("feed", maintain_order=True).agg(pl.mean("r"))
            column = f"{metric} of {policy}"
            yield _mean_cell(REVERSAL, f"{level}, {variation}, {model}", column, by_feed["r"].to_numpy())


def _figure_cells(clips: pl.DataFrame) -> Iterable[Cell]:
    """Detected improvements, mean p and correct signs over days, rewards and feeds, for every clip."""
    for skill in SKILLS:
        for clip in sorted(set(clips.filter(skill=skill)["clip"].to_list())):
            row = f"{skill}, {'no clip' if math.isinf(clip) else f'm = {clip:g}'}"
            for metric in METRICS:
                part = clips.filter(skill=skill, clip=clip, metric=metric)
                power = sensitivity(part["difference"].to_numpy(), part["stderr"].to_numpy(), clip=clip)
                yield Cell(FIGURE, row, f"{metric}: found", power.true_positive_rate)
                yield Cell(FIGURE, row, f"{metric}: mean p", power.mean_p)
                yield Cell(FIGURE, row, f"{metric}: right sign", power.sign_agreement, published=1.0)


def _bias_cells(biases: pl.DataFrame) -> Iterable[Cell]:
    for (switch, reward), rows in biases.group_by("switch", "reward", maintain_order=True):
        yield _mean_cell(BIAS, str(switch), str(reward), rows["error"].to_numpy())


def _mean_cell(table: str, row: str, column: str, values: Floats, printed: float | None = None) -> Cell:
    """A mean with the interval of its Monte-Carlo error; none of a single value."""
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return Cell(table, row, column, mean, printed, mean - REACH * error, mean + REACH * error)


def _rows(cells: Cells) -> list[dict[str, float]]:
    """r of every form in the rows of Table 2 in which all are defined (some series do not vary in few sessions)."""
    names = dict.fromkeys(cell.row for cell in cells.select(TABLE))
    rows = [{form: cells.value(TABLE, name, form) for form in ESTIMATORS} for name in names]
    return [row for row in rows if not any(math.isnan(value) for value in row.values())]


def _correlates_rule(cells: Cells) -> Finding:
    values = [row[DCG] for row in _rows(cells)]
    return share([value > 0 for value in values], f"Mean r is {span(values)} in {len(values)} rows.")


def _strongest_rule(cells: Cells) -> Finding:
    best = [all(round(row[DCG], 2) >= round(row[form], 2) for form in OTHER_FORMS) for row in _rows(cells)]
    return share(best, f"It is best or equal in {sum(best)} of {len(best)} rows.")


def _negative_rule(cells: Cells) -> Finding:
    values = [row[NDCG] for row in _rows(cells)]
    by_regime = {regime: cells.value(REVERSAL, ", ".join(regime), f"nDCG of {OLD}") for regime in REGIMES}
    weekly, daily = (
        span([value for (_, variation, used), value in by_regime.items() if used == model and variation != MOOD])
        for model in (WEEK, DAY)
    )
    moods = span([value for (_, variation, _), value in by_regime.items() if variation == MOOD])
    return share(
        [value < 0 for value in values],
        f"Mean r is below 0 in {sum(value < 0 for value in values)} of {len(values)} rows ({span(values)}). For the "
        f"logging policy it is {weekly} where days differ in length and one position model serves the week, {daily} "
        f"with a model for each day, {moods} where days differ only in the quality of items.",
    )


def _sign_rule(cells: Cells) -> Finding:
    signs = [cell.obtained == 1 for cell in cells.select(FIGURE) if cell.column.endswith("right sign")]
    return share(signs, f"All signs are correct in {sum(signs)} of {len(signs)} rows.")


def _by_clip(cells: Cells) -> dict[tuple[str, str], list[float]]:
    """The share of improvements that are detected, from the smallest clip to none."""
    return {
        (skill, metric): numbers(
            cell for cell in cells.select(FIGURE, column=f"{metric}: found") if cell.row.startswith(skill)
        )
        for skill in SKILLS
        for metric in METRICS
    }


def _weights_rule(cells: Cells) -> Finding:
    detected = _by_clip(cells)
    text = "; ".join(
        f"{metric}, {skill}: {values[0]:.0%} raw, at best {max(values[1:]):.0%}"
        for (skill, metric), values in detected.items()
    )
    return share([max(values[1:]) > values[0] or values[0] == 1 for values in detected.values()], f"Detected: {text}.")


def _sensitive_rule(cells: Cells) -> Finding:
    detected = _by_clip(cells)
    above = {
        skill: float(np.mean(np.array(detected[skill, "DCG"][1:]) > np.array(detected[skill, "nDCG"][1:])))
        for skill in SKILLS
    }
    text = "; ".join(f"{skill}: {part:.0%} of clips" for skill, part in above.items())
    return share([part >= WIDE for part in above.values()], f"DCG detects more at {text}.")


def _variance_rule(cells: Cells) -> Finding:
    detected = _by_clip(cells)
    lost = {key: max(values) - values[-1] for key, values in detected.items()}
    parts = [
        lost[skill, metric] > 0 if metric == "DCG" else max(detected[skill, metric]) > 0 >= lost[skill, metric]
        for skill, metric in detected
    ]
    text = "; ".join(
        f"{metric}, {skill}: "
        + (f"{value * 100:.0f} points" if max(detected[skill, metric]) > 0 else "nothing, as nothing is detected")
        for (skill, metric), value in lost.items()
    )
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
        _correlates_rule,
    ),
    Claim(
        "strongest", "DCG with a fitted position model and debiased labels correlates best.", "Table 2",
        "By rows of Table 2: its mean r is at least that of each other form of DCG, to two digits.", _strongest_rule,
    ),
    Claim(
        "negative", "Over days, nDCG correlates negatively with online reward.", "Table 2",
        "By rows of Table 2, with one position model for the week: the mean r of nDCG is below 0.", _negative_rule,
    ),
    Claim(
        "sign", "All offline differences have the sign of the online ones.", "Figure 1",
        "By rows of Figure 1 (improvement, clip) and metrics: the sign is correct in every cell.", _sign_rule,
    ),
    Claim(
        "weights", "Weighting (m > 1) detects more improvements than raw labels, for DCG and nDCG.", "Figure 1",
        "By metrics and improvements: the best clip above 1 detects a larger share than m = 1, or both detect all.",
        _weights_rule,
    ),
    Claim(
        "sensitive", "For a wide range of clips DCG detects more true improvements than nDCG.", "Figure 1",
        f"By improvements: DCG detects more than nDCG at {WIDE:.0%} of the clips above 1 or more.", _sensitive_rule,
    ),
    Claim(
        "variance", "Without a clip DCG detects fewer improvements than at its best; nDCG does not lose.", "Figure 1",
        "By improvements and metrics: detected without a clip against detected at the best clip. A metric that "
        "detects nothing at any clip has nothing to lose and does not support the claim.", _variance_rule,
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


def _platform_claim(key: str, text: str, where: str) -> Claim:
    return Claim(key, text, where, "The logs are not public.", untestable(UNAVAILABLE))


STUDIES = (
    Study(
        "E-D3", "Do daily offline estimates correlate with daily online reward on a real platform?",
        shows={"dcg": ("Table 2",)}, unavailable=UNAVAILABLE,
        claims=(
            _platform_claim("platform-dcg", "On the platform DCG correlates with online reward.", "Table 2"),
            _platform_claim(
                "platform-ndcg", "On the platform nDCG correlates negatively with online reward.", "Table 2"
            ),
        ),
    ),
    Study(
        "E-D4", "How many true improvements do offline estimates detect on a real platform, by the clip of weights?",
        shows={"dcg": ("Figure 1",)}, unavailable=UNAVAILABLE,
        claims=(
            _platform_claim(
                "platform-sensitivity", "On the platform DCG detects more improvements than nDCG at most clips.",
                "Figure 1",
            ),
        ),
    ),
    Study(
        "E-D5", "What do the online experiments show on a simulated platform with long, uneven sessions?", measure,
        minutes=10, claims=CLAIMS, shows={"dcg": ("Table 2", "Figure 1")},
    ),
)  # fmt: skip
