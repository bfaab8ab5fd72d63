"""The page of the study of off-policy estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from truerank.report.study_charts import BAND, GREEN, HELD, dot, percent, ranges, span, with_clip
from truerank.report.study_pages import StudyPage
from truerank.studies.own.offpolicy.days import COMPARED, CORRELATED
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row

RAW = "dcg-raw"
NAMES = {
    "dcg-log-raw": "DCG log, C",
    "dcg-log-debiased": "DCG log, Q̂",
    "dcg-raw": "DCG pbm, C",
    "ips": "DCG pbm, Q̂ (ips)",
    "ndcg": "nDCG pbm, Q̂",
}


def page(result: StudyResult) -> StudyPage:
    rows = result.rows("coverage")
    held = [row["coverage"] for row in rows if row["clip"] is None and row["estimator"] != RAW]
    raw = [abs(row["relative bias"]) for row in rows if row["estimator"] == RAW]
    dots = [dot(f"{with_clip(row)}, {row['reward']}", row["what"], row["coverage"]) for row in rows]
    return StudyPage(
        "Off-policy estimates against the truth",
        ranges(dots, HELD, band=BAND, form="%"),
        "How often intervals held the true reward, by estimator",
        (
            "Feeds were made in which it is known what another ranker would have earned, and that was estimated from the log of the first.",
            f"Where all assumptions hold, 95 % intervals of the weighted estimators without a clip held the truth in {span(held)} of logs; {GREEN}.",
            f"DCG of the log as it is, without weights, is off by {percent(min(raw), 0)} or more; what breaks when an assumption fails stands below.",
        ),
        [
            *_coverage(rows, result.settings),
            *_switches(result),
            *_days(result),
            *_chosen_clip(result),
            *_open_bandit(result.rows("open bandit"), result.settings),
        ],
    )


def _coverage(rows: Sequence[Row], settings: Mapping[str, Any]) -> Iterator[str]:
    yield (
        "Seeds were fixed before anything was looked at. Coverage and the switches are from their first run; the days and the clip curves were set up again after a first look (target ranks over the displayed list, a position model fitted per day, a steeper feed and 2,000 sessions a day for the curves, one standard error in the clip rule). "
        f"Feeds are those of `truerank simulate feed` ({settings['kinds']} kinds of users with pools of {settings['pool']}"
    )
    yield (
        f"items, {settings['candidates']} random candidates, lists of {settings['length']}, two surfaces; {settings['sessions']:,} sessions of {settings['users']:,} users per log); "
        "the target is the policy `better`, a moderate shift from the logging policy. Clips on this page are the paper's, of 1/ε0 (`of=inverse`)."
    )
    yield from ("", "## Coverage with every assumption in force", "")
    yield f"{settings['logs']:,} logs, users and their contexts drawn anew in each, intervals of 95 % over users. Bias in parts of the truth, with its Monte-Carlo error."
    yield ""
    yield "| | estimator | reward | truth | bias | RMSE | coverage |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        yield (
            f"| {row['what']} | {with_clip(row)} | {row['reward']} | {row['truth']:.4f} | {row['relative bias']:+.2%} ± "
            f"{row['relative noise']:.2%} | {row['rmse']:.4f} | {row['coverage']:.1%} |"
        )
    yield ""
    yield "Clipped and raw forms (`clip 8`, `dcg-raw`) are biased by design: their intervals are about their own mean, not about the reward. With propensities that are exact, ips and"
    yield "doubly-robust are unbiased; snips is a ratio and steadier. These propensities are exact and no position model is fitted."
    yield ""


def _switches(result: StudyResult) -> Iterator[str]:
    yield from ("## What breaks when an assumption fails", "")
    yield f"The same feed with one switch on, {result.settings['switched logs']} logs each. Bias and RMSE in parts of the truth of that feed; coverage of the 95 % interval."
    yield ""
    yield "| broken | estimator | reward | bias | RMSE | coverage |"
    yield "|---|---|---|---|---|---|"
    for row in result.rows("switches"):
        yield (
            f"| {row['broken']} | {with_clip(row)} | {row['reward']} | {row['relative bias']:+.1%} | {row['relative rmse']:.1%} | "
            f"{row['coverage']:.0%} |"
        )
    yield ""
    yield "Differences between the target and the log, ips, snips (same logs), bias in parts of the true difference:"
    yield ""
    yield "| broken | estimator | reward | true difference | bias | coverage |"
    yield "|---|---|---|---|---|---|"
    for row in result.rows("switched differences"):
        yield f"| {row['broken']} | {row['estimator']} | {row['reward']} | {row['truth']:.4f} | {row['relative bias']:+.0%} | {row['coverage']:.0%} |"
    yield ""


def _days(result: StudyResult) -> Iterator[str]:
    settings = result.settings
    yield from ("## Daily estimates against daily online reward (as Table 2 of the paper)", "")
    yield f"A first-level feed (Yule-Simon scrolling; users differ in patience), six days that differ in how good items are and how far users scroll, {settings['sessions of days']:,} sessions per log. The target"
    yield "orders each displayed list by the scores of `better`. Ranks enter as in eq. 9 and the position model is fitted to each day's scroll depths. Online reward comes from fresh"
    yield f"sessions of each policy. Pearson's r over the six days, mean over {settings['feeds']} feeds; in brackets the share of feeds with p < 0.05."
    yield ""
    yield "| reward | policy | " + " | ".join(NAMES[name] for name in CORRELATED) + " |"
    yield "|---|---|" + "---|" * len(CORRELATED)
    found = {(row["reward"], row["policy"], row["estimator"]): row for row in result.rows("correlations")}
    for reward, policy in dict.fromkeys(key[:2] for key in found):
        own = [found[reward, policy, name] for name in CORRELATED]
        yield f"| {reward} | {policy} | " + " | ".join(f"{row['r']:.2f} ({row['shown']:.0%})" for row in own) + " |"
    yield ""
    yield "The paper found negative correlations of nDCG. Here sessions are short and every day has its own position model; what becomes of it in long, uneven sessions, and with one position model for a week, is asked in [E-D5](papers/dcg.md)."
    yield from ("", "## Sensitivity over clips (as Figure 1 of the paper)", "")
    yield f"A second-level feed (exponential, γ = 0.5, so weights up to 512), differences between `better` and the logging order on each day ({settings['sessions of a day']:,} sessions) of {settings['feeds']} feeds and for both rewards:"
    yield f"{settings['cells']} cells, of which {settings['improvements']:.0%} are true improvements. Found: the share whose 99 % interval of the paired difference is above 0; p one-sided."
    yield ""
    yield "| clip | DCG: found | DCG: mean p | DCG: right sign | nDCG: found | nDCG: mean p | nDCG: right sign |"
    yield "|---|---|---|---|---|---|---|"
    dcg, ndcg = ([row for row in result.rows("clips") if row["form"] == form] for form in COMPARED)
    for a, b in zip(dcg, ndcg, strict=True):
        cells = (f"{row['found']:.0%} | {row['p']:.3f} | {row['right sign']:.0%}" for row in (a, b))
        yield f"| {'none' if a['clip'] is None else format(a['clip'], 'g')} | {' | '.join(cells)} |"
    yield ""
    yield "A clip of 1 is the raw label: items that stood far down look worthless, so a ranker that lifts them looks worse than it is. nDCG divides each session by an ideal made of the same"
    yield "lifted labels and leaves out sessions without a reward; it does not see these improvements at any clip."
    yield ""


def _chosen_clip(result: StudyResult) -> Iterator[str]:
    settings = result.settings
    yield from ("## The chosen clip", "")
    yield f"`--clip auto` against no clip, {settings['chosen logs']} logs of {settings['chosen sessions']} sessions each from the feed above (default) and from one of weights up to 512 (steep); the rule was taken from six tried on other logs of the"
    yield "same feeds. Chosen: the share of logs in which a clip was taken at all. Ratio: the RMSE at the chosen clip over that without a clip. Coverage of 95 % intervals, which do not include the choice."
    yield ""
    yield "| feed | estimator | reward | of | chosen | bias / truth | RMSE | RMSE, no clip | ratio | coverage | coverage, no clip |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for row in result.rows("chosen clip"):
        yield (
            f"| {row['feed']} | {row['estimator']} | {row['reward']} | {row['of']} | {row['chosen']:.0%} | {row['relative bias']:+.1%} | {row['rmse']:.4f} | {row['unclipped rmse']:.4f} | "
            f"{row['ratio']:.2f} | {row['coverage']:.0%} | {row['unclipped coverage']:.0%} |"
        )
    yield ""
    for row in result.rows("choice"):
        yield f"On the {row['feed']} feed the ratio is {row['least ratio']:.2f} to {row['largest ratio']:.2f} for ips and doubly-robust, and coverage falls by up to {row['coverage lost'] * 100:.1f} points."
    yield "**No clip is the default**; for snips no clip is chosen."
    yield ""


def _open_bandit(rows: Sequence[Row], settings: Mapping[str, Any]) -> Iterator[str]:
    least, most = (round(end(row["clicks"] for row in rows), -1) for end in (min, max))
    yield from ("## Open Bandit sample", "")
    yield f"{settings['impressions']:,} impressions of a uniformly random and of a Thompson-sampling policy per campaign, item-choice propensities, each impression a unit of its own. The other policy's"
    yield "click rate is estimated from each log (the Thompson policy's probability per item and position is the mean of its own log's propensities, the random policy's is 1/items)"
    yield "and stands beside what its own log says. Means of logged propensities are over the moments at which an item was shown, so they lean upwards and sum to more than 1 over the items:"
    yield f"ips is then too large by that factor, which snips divides out, and the warning about support says so; the share of impressions (by frequency) has no such bias. **{least} to {most} clicks per log decide little**: the intervals of both sides overlap almost everywhere, and agreement here proves the path,"
    yield "not the method."
    yield ""
    yield "| campaign | target | from the log of | clicks there | estimator | estimate | 95 % interval | on its own log | 95 % interval | effective rows |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        yield (
            f"| {row['campaign']} | {row['target']} | {row['log']} | {row['clicks']} | {row['estimator']} | {row['value']:.4f} | {row['low']:.4f} to {row['high']:.4f} | "
            f"{row['own']:.4f} | {row['own low']:.4f} to {row['own high']:.4f} | {row['effective rows']:,.0f} |"
        )
