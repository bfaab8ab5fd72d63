"""Markdown and LaTeX tables: best in bold, what is shown marked, hostile names as text, estimands in the caption."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl

import truerank as tr

ODD = r"[1]* a_b & 50% <script>|x|</script> {y} \ ~^#$x$ --"


def results(**how: Any) -> tr.Results:
    rng = np.random.default_rng(1)
    truth = rng.random((120, 30)) < 0.2
    good, bad = truth + rng.normal(0, 0.5, truth.shape), rng.normal(size=truth.shape)
    user, item = np.nonzero(truth)
    test = pl.DataFrame({"user": user, "item": item})
    scores = {"good": good, ODD: bad, "bad": bad[::-1].copy()}
    return tr.evaluate(scores, test, exposure="holdout", metrics=["Recall@5", "nDCG@5"], **how)


def test_markdown_has_every_value_and_marks_what_is_shown() -> None:
    found = results()
    lines = found.markdown().splitlines()
    assert lines[0] == "|  | model | Recall@5 | nDCG@5 |"
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines[2:5]]
    assert all(len(row) == 4 for row in rows)
    best = found.estimates[0]
    assert rows[0][2].strip() == f"**{best.value:.3f}**<sup>bc</sup>"
    assert "**" not in rows[1][2] + rows[2][2]
    assert "Recall, nDCG: mean over users with a relevant item" in found.markdown()
    assert "<script>" not in found.markdown()


def test_with_a_baseline_its_letter_says_who_is_better() -> None:
    lines = results(baseline="bad").markdown().splitlines()
    letter = next(line for line in lines if "| bad |" in line).split("|")[1].strip()
    assert lines[2].count(f"<sup>{letter}</sup>") == 2
    assert lines[-1].startswith("Against bad: good better on both metrics")


def test_latex_is_balanced_and_escaped() -> None:
    text = results().latex()
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert r"a\_b \& 50\%" in text
    assert r"\textbf{" in text
    # a bracket or a star at the begin of a line would be an option of the one before it
    assert not re.search(r"\\\\\s*[\[*]|rule\s*[\[*]", text)
    assert "--" not in text
    assert "$" not in results().markdown().replace(r"\$", "")
