"""E-D5: the paper's online experiments on a simulated platform whose truth is known (like Table 2 and Figure 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from truerank.core.progress import Progress
from truerank.core.values import text_of
from truerank.estimators.ranked import RankedEstimator
from truerank.estimators.ranked.clips import Limited
from truerank.estimators.ranked.ips import RankedIPS
from truerank.estimators.ranked.naive import LearntDiscountRaw, LogDiscountDebiased, LogDiscountRaw
from truerank.estimators.ranked.normalised import RankedNDCG
from truerank.evaluation.ranked import off_policy
from truerank.exposure.policies.targets import RankColumn
from truerank.studies.feed import Broken, FeedSettings, make_feed
from truerank.studies.feed_truth import TRUE_SESSIONS, draw_log, log_table, target_table, truth_of
from truerank.studies.papers.dcg import PAPER
from truerank.studies.papers.dcg.platform import NEW, OLD, REWARDS, Platform, draw_week
from truerank.studies.papers.dcg.platform_tables import (
    BIAS,
    DCG,
    EACH_DAY,
    FIGURE,
    FORMS,
    IMPROVED,
    LENGTH,
    LEVELS,
    MOOD,
    NDCG,
    NONE,
    REACH,
    REGIMES,
    TABLE,
    TURNS,
    WEEK,
    bias_cells,
    figure_cells,
    graphs,
    regime_cells,
    regime_name,
    table_cells,
)
from truerank.studies.papers.experiment import Measurements, Obtained
from truerank.studies.papers.paper import Cell, ClaimFinding, Paper, PaperClaim, PaperGraph, by_share
from truerank.studies.work import Keep, StudySize, StudySource, WorkPiece
from truerank.uncertainty.agreement import correlation
from truerank.uncertainty.clipping import GRID

FIRST, SECOND = LEVELS
PLATFORMS = {FIRST: Platform(length=20, rate=1.2), SECOND: Platform(length=100, rate=0.7)}
SPREAD = 0.3  # on the scale of log ρ and of logits, where days differ
SKILLS = dict(zip(IMPROVED, (0.5, 0.8), strict=True))  # of the new ranker; the old one has 0.4
ESTIMATORS: dict[str, RankedEstimator] = dict(
    zip(FORMS, (LogDiscountRaw(), LogDiscountDebiased(), LearntDiscountRaw(), RankedIPS(), RankedNDCG()), strict=True)
)
ERRORS = 3.0  # Monte-Carlo errors that chance explains
WIDE = 0.5  # of the clips above 1 are a wide range


@dataclass(frozen=True, slots=True)
class _Amount:
    """How much is simulated."""

    feeds: int
    days: int  # of a week, and one less for clips, as in the paper
    sessions: int  # a day
    logs: int  # for the bias of each switch
    feed: FeedSettings
    true_sessions: int  # that the truth is simulated with, where it is not exact

    @classmethod
    def of(cls, size: StudySize) -> _Amount:
        if size is StudySize.FULL:
            return cls(8, 6, 800, 80, FeedSettings(), TRUE_SESSIONS)
        small = FeedSettings(kinds=4, items=24, pool=8, candidates=6, length=4, sessions=200)
        return cls(1, 3, 60, 3, small, 20_000)


@dataclass(frozen=True, slots=True)
class SimulatedPlatform:
    """A week of long, uneven sessions with four rewards, on two levels of a feed."""

    name: ClassVar[str] = "E-D5"
    about: ClassVar[str] = "The online experiments on a simulated platform: long, uneven sessions and four rewards."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {PAPER: ("Table 2", "Figure 1")}
    data: ClassVar[tuple[str, ...]] = ()
    minutes: ClassVar[float] = 10.0
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = (
        PaperClaim(
            "correlates", "Over days, DCG correlates with online reward.", "Table 2",
            "By rows of Table 2 (level, reward, policy): the mean r of DCG pbm, Q̂ over feeds is above 0.",
        ),
        PaperClaim(
            "strongest", "DCG with a learnt position model and de-biased labels correlates best.", "Table 2",
            "By rows of Table 2: its mean r is at least that of each other form of DCG, to two digits.",
        ),
        PaperClaim(
            "negative", "Over days, nDCG correlates negatively with online reward.", "Table 2",
            "By rows of Table 2, with one position model for the week: the mean r of nDCG is below 0.",
        ),
        PaperClaim(
            "sign", "All offline differences have the sign of the online ones.", "Figure 1",
            "By rows of Figure 1 (improvement, clip) and metrics: the sign is right in every cell.",
        ),
        PaperClaim(
            "weights", "Weighing (m > 1) finds more improvements than raw labels, for DCG and nDCG.", "Figure 1",
            "By metrics and improvements: the best clip above 1 finds a larger share than m = 1, or both find all.",
        ),
        PaperClaim(
            "sensitive", "For a wide range of clips DCG finds more true improvements than nDCG.", "Figure 1",
            f"By improvements: DCG finds more than nDCG at {WIDE:.0%} of the clips above 1 or more.",
        ),
        PaperClaim(
            "variance", "Without a clip DCG finds fewer improvements than at its best; nDCG does not lose.", "Figure 1",
            "By improvements, for each metric: found without a clip against found at the best clip; what finds nothing "
            "at any clip has nothing to lose, and does not count for the claim.",
        ),
        PaperClaim(
            "unbiased", "Where its five assumptions hold, DCG is an unbiased estimate of reward.", "Eq. 9",
            f"By rewards: the bias over logs is at most {ERRORS:g} Monte-Carlo errors.",
        ),
        PaperClaim(
            "assumptions", "Each of the five assumptions is needed for that.", "Section 4",
            f"By assumptions: without it, the bias of a reward is more than {ERRORS:g} Monte-Carlo errors.",
        ),
    )  # fmt: skip

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        del source, progress
        amount = _Amount.of(size)
        numbers = range(seed * amount.feeds, (seed + 1) * amount.feeds)
        weeks: list[WorkPiece] = [_WeekPiece(*regime, feed=feed, size=size) for regime in REGIMES for feed in numbers]
        cells: list[WorkPiece] = [_ClipPiece(each, feed, size) for each in IMPROVED for feed in numbers]
        switches = (NONE, *(each.value for each in Broken))
        biases: list[WorkPiece] = [_BiasPiece(switch, seed, size) for switch in switches]
        correlated = pl.concat(keep(weeks, about="simulating weeks"))
        found = pl.concat(keep(cells, about="clipping weights"))
        biased = pl.concat(keep(biases, about="breaking assumptions"))
        cells_of = (
            *table_cells(correlated),
            *regime_cells(correlated),
            *figure_cells(found),
            *bias_cells(biased),
        )
        return Measurements(
            cells=cells_of,
            settings=settings_of(size),
            differs=(
                "A simulation: published numbers stand beside it for their signs, not to be met.",
                "Share and like are explicit rewards, long view and complete implicit; the paper prints one of each.",
                "The paper does not say whether its position model was learnt once or for each day; both were tried.",
            ),
        )

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        return (*_by_days(obtained), *_by_clips(obtained), *_by_switches(obtained))

    def graphs(self, obtained: Obtained) -> tuple[PaperGraph, ...]:
        return graphs(obtained.cells.all)


def settings_of(size: StudySize) -> dict[str, Any]:
    """How much is simulated, in words."""
    amount = _Amount.of(size)
    return {
        "feeds": amount.feeds, "sessions a day": amount.sessions, "days": amount.days,
        "days of Figure 1": amount.days - 1, "lists": "of 20 (1st level) and 100 items",
        "logs of each switch": amount.logs,
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ verdicts


def _by_days(obtained: Obtained) -> tuple[ClaimFinding, ...]:
    cells = obtained.cells
    by_row = {row: {form: cells.value(TABLE, row, form) for form in FORMS} for row in dict.fromkeys(
        cell.row for cell in cells.of(TABLE))}  # fmt: skip
    # a series that does not vary, as in few sessions without a reward, correlates with nothing
    rows = [row for row in by_row.values() if not any(math.isnan(value) for value in row.values())]
    own, normalised = [row[DCG] for row in rows], [row[NDCG] for row in rows]
    best = [
        all(round(row[DCG], 2) >= round(value, 2) for form, value in row.items() if form not in (DCG, NDCG))
        for row in rows
    ]
    turned = {regime: cells.value(TURNS, regime_name(*regime), f"nDCG of {OLD}") for regime in REGIMES}
    week, daily = (
        [value for (_, differs, own), value in turned.items() if own == model and differs != MOOD]
        for model in (WEEK, EACH_DAY)
    )
    moods = [value for (_, differs, _), value in turned.items() if differs == MOOD]
    below = sum(value < 0 for value in normalised)
    return (
        by_share("correlates", [value > 0 for value in own],
                 f"Mean r is {min(own):.2f} to {max(own):.2f} in {len(own)} rows."),
        by_share("strongest", best, f"It is best or equal in {sum(best)} of {len(best)} rows."),
        by_share("negative", [value < 0 for value in normalised],
                 f"Mean r is below 0 in {below} of {len(normalised)} rows ({min(normalised):.2f} to "
                 f"{max(normalised):.2f}). Of the logging policy it is {_span(week)} where days differ in length and "
                 f"one position model serves the week, {_span(daily)} with a model for each day, {_span(moods)} where "
                 "days differ only in how good items are."),
    )  # fmt: skip


def _span(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _by_clips(obtained: Obtained) -> tuple[ClaimFinding, ...]:
    cells = obtained.cells
    signs = [cell.obtained == 1 for cell in cells.of(FIGURE) if cell.column.endswith("right sign")]
    found: dict[tuple[str, str], list[float]] = {}
    for improved in IMPROVED:
        for metric in ("DCG", "nDCG"):
            rows = [cell for cell in cells.of(FIGURE, column=f"{metric}: found") if cell.row.startswith(improved)]
            found[improved, metric] = [each.obtained for each in rows if each.obtained is not None]
    weighed = [max(each[1:]) > each[0] or each[0] == 1 for each in found.values()]
    above = {
        improved: float(np.mean(np.array(found[improved, "DCG"][1:]) > np.array(found[improved, "nDCG"][1:])))
        for improved in IMPROVED
    }
    lost = {key: max(each) - each[-1] for key, each in found.items()}
    variance = [
        lost[improved, metric] > 0 if metric == "DCG" else max(found[improved, metric]) > 0 >= lost[improved, metric]
        for improved in IMPROVED
        for metric in ("DCG", "nDCG")
    ]
    said = "; ".join(f"{improved}: {share:.0%} of clips" for improved, share in above.items())
    losses = "; ".join(
        f"{metric}, {improved}: "
        + (f"{value * 100:.0f} points" if max(found[improved, metric]) > 0 else "nothing, as nothing is found")
        for (improved, metric), value in lost.items()
    )
    best = "; ".join(
        f"{metric}, {improved}: {each[0]:.0%} raw, at best {max(each[1:]):.0%}"
        for (improved, metric), each in found.items()
    )
    return (
        by_share("sign", signs, f"The sign is right in every cell in {sum(signs)} of {len(signs)} rows."),
        by_share("weights", weighed, f"Found of {best}."),
        by_share("sensitive", [share >= WIDE for share in above.values()], f"DCG finds more at {said}."),
        by_share("variance", variance, f"Lost without a clip: {losses}."),
    )


def _by_switches(obtained: Obtained) -> tuple[ClaimFinding, ...]:
    def shown(switch: str) -> list[float]:
        """How many Monte-Carlo errors the bias is, by reward."""
        rows: list[Cell] = obtained.cells.of(BIAS, row=switch)
        known = [(cell.obtained, cell.high) for cell in rows if cell.obtained is not None and cell.high is not None]
        return [abs(value) * REACH / (high - value) if high > value else math.inf for value, high in known]

    none = shown(NONE)
    broken = {each.value: max(shown(each.value)) for each in Broken}
    said = ", ".join(f"{name} {value:.0f}" for name, value in broken.items())
    return (
        by_share("unbiased", [value <= ERRORS for value in none],
                 f"The bias is {' and '.join(f'{value:.1f}' for value in none)} Monte-Carlo errors."),
        by_share("assumptions", [value > ERRORS for value in broken.values()],
                 f"Largest bias in Monte-Carlo errors: {said}."),
    )  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- pieces


@dataclass(frozen=True, slots=True)
class _WeekPiece:
    """The correlations of all forms over the days of one week."""

    level: str
    differs: str
    model: str
    feed: int
    size: StudySize

    @property
    def name(self) -> str:
        return f"week {self.level} {self.differs} {self.model} {self.feed}"

    def table(self) -> pl.DataFrame:
        amount = _Amount.of(self.size)
        platform = replace(
            PLATFORMS[self.level],
            days=amount.days,
            sessions=amount.sessions,
            lengths=0.0 if self.differs == MOOD else SPREAD,
            moods=0.0 if self.differs == LENGTH else SPREAD,
        )
        log, fresh = (draw_week(platform, seed=self.feed, part=part) for part in ("log", "online"))
        online = {policy: fresh.online(policy) for policy in (OLD, NEW)}
        offline: dict[tuple[str, str, str], list[float]] = {}
        whole = log.position() if self.model == WEEK else None
        for day in range(platform.days):
            results = off_policy(
                log.logged(day),
                {policy: RankColumn(policy) for policy in (OLD, NEW)},
                position=log.position(day) if whole is None else whole,
                estimators=list(ESTIMATORS.values()),
                rewards=list(REWARDS),
                threads=1,
            )
            for each in results.estimates:
                offline.setdefault((each.estimator, each.model, str(each.reward)), []).append(each.value)
        names = {each.about.name: form for form, each in ESTIMATORS.items()}
        rows = [
            (self.level, self.differs, self.model, self.feed, names[estimator], policy, reward,
             correlation(values, online[policy][:, list(REWARDS).index(reward)]).r)
            for (estimator, policy, reward), values in offline.items()
        ]  # fmt: skip
        schema = ["level", "differs", "model", "feed", "form", "policy", "reward", "r"]
        return pl.DataFrame(rows, schema=schema, orient="row")


@dataclass(frozen=True, slots=True)
class _ClipPiece:
    """Differences of both metrics and their errors at every clip, for each day and reward of five days."""

    improved: str
    feed: int
    size: StudySize

    @property
    def name(self) -> str:
        return f"clips {self.improved} {self.feed}"

    def table(self) -> pl.DataFrame:
        amount = _Amount.of(self.size)
        chosen = {"days": amount.days - 1, "sessions": amount.sessions}
        platform = replace(PLATFORMS[SECOND], **chosen, new=SKILLS[self.improved])
        log = draw_week(platform, seed=self.feed)
        position = log.position()
        forms: list[RankedEstimator] = [RankedIPS(of=Limited.INVERSE), RankedNDCG(of=Limited.INVERSE)]
        metric = {"ips": "DCG", "ndcg": "nDCG"}
        rows = []
        for day in range(platform.days):
            results = off_policy(
                log.logged(day), {policy: RankColumn(policy) for policy in (OLD, NEW)}, position=position,
                clips=GRID, estimators=forms, rewards=list(REWARDS), baseline=OLD, threads=1,
            )  # fmt: skip
            rows += [
                (self.improved, metric[each.estimator], math.inf if each.clip is None else each.clip, each.difference,
                 each.stderr)
                for each in results.comparisons
            ]  # fmt: skip
        schema = ["improved", "metric", "clip", "difference", "stderr"]
        return pl.DataFrame(rows, schema=schema, orient="row")


@dataclass(frozen=True, slots=True)
class _BiasPiece:
    """The relative error of DCG (pbm, Q̂) in many logs of a feed in which one assumption does not hold."""

    switch: str
    seed: int
    size: StudySize

    @property
    def name(self) -> str:
        return f"bias {self.switch}"

    def table(self) -> pl.DataFrame:
        amount = _Amount.of(self.size)
        broken = frozenset() if self.switch == NONE else frozenset({Broken(self.switch)})
        feed = make_feed(replace(amount.feed, broken=broken), seed=self.seed)
        truth = truth_of(feed, "better", sessions=amount.true_sessions)
        rows = []
        for at in range(amount.logs):
            log = draw_log(feed, seed=at)
            results = off_policy(
                log_table(feed, log), {"better": target_table(feed, log, "better")}, rewards=list(truth),
                estimators=[RankedIPS()], threads=1,
            )  # fmt: skip
            rows += [
                (self.switch, str(each.reward), each.value / truth[str(each.reward)].value - 1)
                for each in results.estimates
            ]
        return pl.DataFrame(rows, schema=["switch", "reward", "error"], orient="row")
