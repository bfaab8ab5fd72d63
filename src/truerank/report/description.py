"""What data files hold, as text, JSON or CSV."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.ranking import Scores
from truerank.exposure.randomness.tests import Description
from truerank.ranking.scores.scores import Factors, Lists
from truerank.report.checks import randomness_flat, randomness_plain, randomness_text
from truerank.report.text import as_csv, as_json, as_lines, encoded


def described(parts: Mapping[str, Description], form: str) -> bytes:
    """The summary of each part, and whether it is random; one part without a name stands for itself."""
    if form == "json":
        whole = {
            part: {**of.summary, "randomness": None if of.randomness is None else randomness_plain(of.randomness)}
            for part, of in parts.items()
        }
        return listed(whole.get("", whole), form)
    if form == "csv":
        flat = {
            part: {**of.summary, **({} if of.randomness is None else _prefixed(randomness_flat(of.randomness)))}
            for part, of in parts.items()
        }
        return listed(flat.get("", flat), form)
    blocks = []
    for part, of in parts.items():
        table = listed(of.summary if part == "" else {part: of.summary}, form)
        text = "" if of.randomness is None else "\n" + randomness_text(of.randomness)
        blocks.append(table + encoded(text))
    return b"\n".join(blocks)


def about_scores(scores: Scores) -> dict[str, Any]:
    """What a file of scores holds."""
    kind = "factors" if isinstance(scores, Factors) else "top lists" if isinstance(scores, Lists) else "dense"
    summary: dict[str, Any] = {"scores": kind, "users": len(scores.users), "items": len(scores.items)}
    if isinstance(scores, Factors):
        summary["dimensions (with biases)"] = scores.user.shape[1]
    if isinstance(scores, Lists):
        summary |= {"stored scores": len(scores.item), "longest list": scores.depth}
    for name, ids in (("users", scores.users), ("items", scores.items)):
        summary[f"first {name}"] = ids.texts(np.arange(min(3, len(ids))))
    return summary


def listed(summary: Mapping[str, Any], form: str) -> bytes:
    """Names and values, of parts one after the other."""
    if form == "json":
        return as_json(summary)
    texts = {
        name if inner is None else f"{name}: {inner}": _text(value)
        for name, outer in summary.items()
        for inner, value in (outer.items() if isinstance(outer, dict) else [(None, outer)])
    }
    if form == "csv":
        return as_csv([{"what": name, "value": value} for name, value in texts.items()])
    return encoded(as_lines(texts))


def _prefixed(values: dict[str, Any]) -> dict[str, Any]:
    return {f"random: {name}": value for name, value in values.items()}


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_text(entry) for entry in value)
    if isinstance(value, float):
        return f"{value:,.0f}" if value == round(value) else f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
