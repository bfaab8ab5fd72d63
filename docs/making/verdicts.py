"""The pictures of docs/verdicts.md: one for each rule, from users' values that the rules themselves judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.results import BETTER, INSUFFICIENT, NOT_SHOWN, WORSE
from truerank.core.terms import ratio
from truerank.inference.linearization import Spread, difference_of
from truerank.inference.multiplicity import ComparisonFamily
from truerank.inference.verdicts import FEWEST, UnseenExposure, doubts, verdict_of
from truerank.report.charts import TYPEFACE, altair

WHO = "the pictures of verdicts"
LEVEL = 0.95
GOES_ON = "goes on"  # no rule against a verdict: the interval decides
WORDS = {NOT_SHOWN: "inconclusive"}
COLOURS = {BETTER: "#0072B2", WORSE: "#C44E00", NOT_SHOWN: "#6E6E6E", INSUFFICIENT: "#9B3F86", GOES_ON: "#444444"}
WIDTH, ROW, FONT = 440, 44, 13
CASE, PLACE, STEP = 125, 0.05, 0.06  # height of a row of rings, what stands at one place, from one ring to the next
# measured on a short-video platform's randomly exposed rows: share of the list's places that rows stand for, and its z
LISTS = (("popularity", 0.92, -2.5), ("item-kNN", 0.81, -6.7), ("EASE", 0.70, -11.2))
FAR = 3.0  # standard errors from which a share is no chance
# coefficients of variation of exposure beyond chance, by `tr.describe`
EFFECTS = (("Coat, shown at random", 0.0), ("Coat, chosen by users", 0.577), ("KuaiRec, positives alone", 1.353))
LARGE = 0.10


@dataclass(frozen=True, slots=True)
class Judged:
    """Two models' values of each user, and what the rules say of their difference."""

    spread: Spread
    verdict: str
    codes: tuple[str, ...]


def judged(
    difference: Floats, *, unseen: tuple[UnseenExposure, UnseenExposure] = (UnseenExposure(), UnseenExposure())
) -> Judged:
    """The verdict on a model that earns `difference` more than another, user by user."""
    n = len(difference)
    first, second = ratio(1.0 + difference, np.ones(n)), ratio(np.ones(n), np.ones(n))
    spread = difference_of(first, second).spread(level=LEVEL, difference=True)
    reasons = doubts(first, second, spread, unseen=unseen, level=LEVEL)
    verdict = verdict_of(spread.value, spread.p, level=LEVEL, reasons=reasons)
    return Judged(spread, verdict, tuple(each.code for each in reasons))


def users(n: int, mean: float, sd: float) -> Floats:
    """n differences at the middles of n equal parts of a normal distribution: no chance, the same each time."""
    from scipy.special import ndtri

    return np.asarray(mean + sd * ndtri((np.arange(n) + 0.5) / n))


# ----------------------------------------------------------------------------------------------------------- the pictures


def shown() -> Any:
    """Better, not shown, worse: where the interval lies."""
    cases = [judged(users(40, mean, 0.12)) for mean in (0.07, 0.02, -0.06)]
    return _intervals(
        [_row(name, case) for name, case in zip(("new A - old", "new B - old", "new C - old"), cases, strict=True)],
        axis="difference of the two models, with its 95 % interval",
        domain=(-0.12, 0.12),
    )


def together() -> Any:
    """Three models against one: p before and after the adjustment for all three, correlated by one half."""
    alt = altair(WHO)
    p = np.array([0.004, 0.03, 0.04])
    adjusted = ComparisonFamily.correlated(np.full((3, 3), 0.5) + np.eye(3) / 2).adjust(p)
    rows = []
    for at, (own, after) in enumerate(zip(p.tolist(), adjusted.tolist(), strict=True)):
        verdict = verdict_of(1.0, after, level=LEVEL, reasons=())
        rows.append(
            {
                "name": f"new {'ABC'[at]} - old",
                "p": own,
                "adjusted": after,
                "verdict": verdict,
                "text": WORDS.get(verdict, verdict),
            }
        )
    data = alt.Data(values=rows)
    x = _across(
        alt,
        (0.002, 0.2),
        "p alone (ring) and adjusted for all three (dot), log axis",
        ticks=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2),
    )
    y = _down(alt, [row["name"] for row in rows])
    arrows = alt.Chart(data).mark_rule(strokeWidth=2).encode(x=x("p"), x2="adjusted:Q", y=y, color=_colour(alt))
    rings = alt.Chart(data).mark_point(size=80, strokeWidth=2, fill="white", opacity=1).encode(
        x=x("p"), y=y, color=_colour(alt))  # fmt: skip
    dots = alt.Chart(data).mark_point(size=90, filled=True, opacity=1).encode(
        x=x("adjusted"), y=y, color=_colour(alt))  # fmt: skip
    return _finish(
        alt, [_line(alt, 1 - LEVEL, x, "0.05"), arrows, rings, dots, _verdicts(alt, data, y)], rows=len(rows)
    )


def few_informative() -> Any:
    """The smallest p that so many users can give: all of them on one side."""
    alt = altair(WHO)
    rows = []
    for n in range(2, 11):
        case = judged(np.concatenate([users(n, 1.0, 0.05), np.zeros(40)]))
        told = INSUFFICIENT if "few-informative" in case.codes else GOES_ON
        rows.append({"users": n, "p": 2.0 ** (1 - n), "verdict": told})
    few, enough = ([row for row in rows if row["verdict"] == told] for told in (INSUFFICIENT, GOES_ON))
    x = alt.X("users:O", axis=alt.Axis(title="users for whom the two models differ", labelAngle=0))
    scale = alt.Scale(type="log", domain=[0.001, 1], nice=False)
    axis = alt.Axis(title="smallest possible p (log axis)", values=[0.001, 0.01, 0.1, 1], format="~r")
    y = alt.Y("p:Q", scale=scale, axis=axis)
    limit = alt.Data(values=[{"p": 1 - LEVEL, "text": "0.05"}])
    layers = [
        alt.Chart(limit).mark_rule(strokeDash=[5, 4], strokeWidth=1.5, color="#333333").encode(y=y),
        alt.Chart(limit).mark_text(align="left", dx=4, fontSize=FONT - 1).encode(
            x=alt.value(WIDTH), y=y, text="text:N"),
        alt.Chart(alt.Data(values=rows)).mark_point(size=90, filled=True, opacity=1).encode(
            x=x, y=y, color=_colour(alt)),
    ]  # fmt: skip
    words = (
        (few, -12, (260, 24), f"fewer than {FEWEST}: insufficient"),
        (enough, 16, (175, 172), "enough for a verdict"),
    )
    for part, above, (left, down), text in words:
        number = alt.Text("p:Q", format=".2~g")
        layers.append(
            alt.Chart(alt.Data(values=part)).mark_text(dy=above, fontSize=FONT - 1).encode(x=x, y=y, text=number)
        )
        word = alt.Data(values=[{"text": text, "verdict": part[0]["verdict"]}])
        layers.append(
            alt.Chart(word).mark_text(fontSize=FONT, fontWeight="bold").encode(
                x=alt.value(left), y=alt.value(down), text="text:N", color=_colour(alt))
        )  # fmt: skip
    return _configured(alt, alt.layer(*layers, width=WIDTH, height=220))


def no_spread() -> Any:
    """Twelve users who all differ by the same, beside twelve who do not."""
    same, differing = np.ones(12), np.repeat([0.0, 1.0], [3, 9])
    cases = {"all 12 users: +1": same, "9 users: +1, 3 users: 0": differing}
    return _dots(cases, axis="difference of each user (ring), mean with its interval", domain=(-0.2, 1.4))


def one_cluster() -> Any:
    """Nineteen users who lean one way and one who turns the mean round."""
    everyone = np.concatenate([users(19, -0.05, 0.08), [1.3]])
    cases = {"all 20 users": everyone, "without that user": everyone[:-1]}
    return _dots(cases, axis="difference of each user (ring), mean with its interval", domain=(-0.5, 1.5))


def unbalanced() -> Any:
    """How much of each model's list the rows stand for."""
    rows = []
    for name, share, z in LISTS:
        error = abs((1 - share) / z)
        verdict = INSUFFICIENT if abs(z) > FAR else GOES_ON
        text = f"z = {_minus(z)}: {INSUFFICIENT if verdict == INSUFFICIENT else 'may be sampling error'}"
        rows.append({"name": name, "value": share, "low": share - FAR * error, "high": share + FAR * error,
                     "verdict": verdict, "text": text})  # fmt: skip
    axis = "share of the list that the rows represent, ± 3 standard errors"
    return _intervals(rows, axis=axis, domain=(0.55, 1.1), line=1.0, percent=True)


def not_random() -> Any:
    """How uneven the exposure of items is beyond chance."""
    rows = [
        {"name": name, "value": effect, "low": 0.0, "high": effect, "verdict": INSUFFICIENT if effect > LARGE else GOES_ON,
         "text": f"{effect:.2f}: {INSUFFICIENT if effect > LARGE else 'as in a uniform sample'}"}
        for name, effect in EFFECTS
    ]  # fmt: skip
    return _intervals(
        rows, axis="variation of exposure beyond sampling error", domain=(0.0, 1.5), line=LARGE, label="0.10"
    )


def unseen_exposure() -> Any:
    """Two targets of which a part was never logged: what that part could earn, added to the interval."""
    rows = []
    for name, mean, unseen in (
        ("new A - log", -0.5, UnseenExposure(0.08, 0.12)),
        ("new B - log", -0.3, UnseenExposure(0.25, 0.45)),
    ):
        case = judged(users(60, mean, 0.4), unseen=(unseen, UnseenExposure()))
        rows.append(_row(name, case) | {"far": case.spread.high + unseen.reach})
    axis = "difference, its interval, and (dashed) what the unseen part could add"
    return _intervals(rows, axis=axis, domain=(-0.7, 0.4), far=True)


PICTURES = {
    "shown": shown,
    "together": together,
    "few-informative": few_informative,
    "no-spread": no_spread,
    "one-cluster": one_cluster,
    "unbalanced": unbalanced,
    "not-random": not_random,
    "unseen-exposure": unseen_exposure,
}


def made() -> dict[str, Any]:
    return {f"figures/verdicts/{name}.svg": draw() for name, draw in PICTURES.items()}


# -------------------------------------------------------------------------------------------------------------- the parts


def _row(name: str, case: Judged) -> dict[str, Any]:
    spread = case.spread
    return {"name": name, "value": spread.value, "low": spread.low, "high": spread.high, "verdict": case.verdict}


def _intervals(
    rows: Sequence[Mapping[str, Any]],
    *,
    axis: str,
    domain: tuple[float, float],
    line: float = 0.0,
    label: str = "",
    percent: bool = False,
    far: bool = False,
) -> Any:
    """Values with intervals, one below the other, the verdict at the right."""
    alt = altair(WHO)
    data = alt.Data(values=[{"text": WORDS.get(row["verdict"], row["verdict"]), **row} for row in rows])
    x, y = _across(alt, domain, axis, percent=percent), _down(alt, [row["name"] for row in rows])
    layers = [_line(alt, line, x, label)]
    if far:
        layers.append(
            alt.Chart(data).mark_rule(strokeWidth=3, strokeDash=[3, 3], opacity=0.8).encode(
                x=x("high"), x2="far:Q", y=y, color=_colour(alt))
        )  # fmt: skip
    layers += [
        alt.Chart(data).mark_rule(strokeWidth=3).encode(x=x("low"), x2="high:Q", y=y, color=_colour(alt)),
        alt.Chart(data).mark_point(size=90, filled=True, opacity=1).encode(x=x("value"), y=y, color=_colour(alt)),
        _verdicts(alt, data, y),
    ]
    return _finish(alt, layers, rows=len(rows))


def _dots(cases: Mapping[str, Floats], *, axis: str, domain: tuple[float, float]) -> Any:
    """Every user as a ring, stacked where several are at one place; the mean with its interval below them."""
    alt = altair(WHO)
    rings: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for at, (name, difference) in enumerate(cases.items()):
        case, foot = judged(difference), float(len(cases) - 1 - at)
        height: dict[float, int] = {}
        for value in (np.round(difference / PLACE) * PLACE).round(6).tolist():
            rings.append({"value": value, "up": foot + 0.22 + STEP * height.get(value, 0), "verdict": case.verdict})
            height[value] = height.get(value, 0) + 1
        known = not np.isnan(case.spread.low)
        rows.append(
            {
                "name": name, "value": case.spread.value, "up": foot + 0.08, "middle": foot + 0.4,
                "low": case.spread.low if known else None, "high": case.spread.high if known else None,
                "verdict": case.verdict, "text": case.verdict if known else f"no interval: {case.verdict}",
            }
        )  # fmt: skip
    x = _across(alt, domain, axis)
    y = {
        field: alt.Y(f"{field}:Q", scale=alt.Scale(domain=[0, len(cases)], nice=False), axis=None)
        for field in ("up", "middle")
    }
    means, colour = alt.Data(values=rows), _colour(alt)
    layers = [
        _line(alt, 0.0, x, ""),
        alt.Chart(alt.Data(values=rings)).mark_point(size=34, strokeWidth=1.5, opacity=0.9).encode(
            x=x("value"), y=y["up"], color=colour),
        alt.Chart(alt.Data(values=[row for row in rows if row["low"] is not None])).mark_rule(strokeWidth=3).encode(
            x=x("low"), x2="high:Q", y=y["up"], color=colour),
        alt.Chart(means).mark_point(size=90, filled=True, opacity=1).encode(x=x("value"), y=y["up"], color=colour),
        alt.Chart(means).mark_text(align="right", dx=-8, fontSize=FONT).encode(
            x=alt.value(0), y=y["middle"], text="name:N"),
        _verdicts(alt, means, y["middle"]),
    ]  # fmt: skip
    return _configured(alt, alt.layer(*layers, width=WIDTH, height=CASE * len(cases)))


def _across(
    alt: Any, domain: tuple[float, float], title: str, *, ticks: Sequence[float] = (), percent: bool = False
) -> Any:
    """The axis of values, for any field; with `ticks` of its own it is logarithmic."""
    scale = alt.Scale(domain=list(domain), nice=False, zero=False, type="log" if ticks else "linear")
    axis = alt.Axis(title=title, tickCount=6, grid=False)
    if ticks:
        axis = alt.Axis(title=title, values=list(ticks), grid=False, format="~g")
    if percent:
        axis.format = "~%"

    def of(field: str) -> Any:
        return alt.X(f"{field}:Q", scale=scale, axis=axis)

    return of


def _down(alt: Any, names: Sequence[str]) -> Any:
    return alt.Y("name:N", sort=list(names), axis=alt.Axis(title=None, ticks=False, domain=False, labelPadding=12))


def _colour(alt: Any) -> Any:
    return alt.Color("verdict:N", scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())), legend=None)


def _line(alt: Any, at: float, x: Any, label: str) -> Any:
    """A dashed line across all rows, with its number above it."""
    data = alt.Data(values=[{"line": at, "text": label}])
    rule = alt.Chart(data).mark_rule(strokeDash=[5, 4], strokeWidth=1.5, color="#333333").encode(x=x("line"))
    text = alt.Chart(data).mark_text(dy=-6, baseline="bottom", fontSize=FONT - 1).encode(
        x=x("line"), y=alt.value(0), text="text:N")  # fmt: skip
    return alt.layer(rule, text) if label else rule


def _verdicts(alt: Any, data: Any, y: Any) -> Any:
    """What each row ends in, at its right."""
    return alt.Chart(data).mark_text(align="left", dx=12, fontSize=FONT, fontWeight="bold").encode(
        x=alt.value(WIDTH), y=y, text="text:N", color=_colour(alt))  # fmt: skip


def _finish(alt: Any, layers: Sequence[Any], *, rows: int) -> Any:
    return _configured(alt, alt.layer(*layers, width=WIDTH, height=ROW * rows))


def _configured(alt: Any, chart: Any) -> Any:
    return chart.properties(
        background="white",
        padding={"left": 10, "right": 12, "top": 14, "bottom": 8},
    ).configure(
        font=TYPEFACE,
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(labelFontSize=FONT, titleFontSize=FONT, titleFontWeight="normal", titlePadding=8,
                            labelLimit=220, tickColor="#bbbbbb", domainColor="#bbbbbb", gridColor="#eeeeee"),
    )  # fmt: skip


def _minus(number: float) -> str:
    return f"{number:.1f}".replace("-", "\N{MINUS SIGN}")
