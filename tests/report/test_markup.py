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
    assert lines[0] == "| model | Recall@5 | nDCG@5 |"
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines[2:5]]
    assert all(len(row) == 3 for row in rows)
    best = found.estimates[0]
    assert rows[0][1].strip() == f"**{best.value:.4f}** *"
    assert "**" not in rows[1][1] + rows[2][1]
    assert "mean Recall@5 over users with a relevant item" in found.markdown()
    assert "<script>" not in found.markdown()


def test_with_a_baseline_arrows_say_better_and_worse() -> None:
    found = results(baseline="bad").markdown().splitlines()
    assert found[2].count("↑") == 2
    assert "↑" not in found[4]
    assert "better and ↓ worse than bad" in found[-1]


def test_a_single_model_is_not_the_best() -> None:
    test = pl.DataFrame({"user": [1, 2], "item": [1, 2]})
    lists = pl.DataFrame({"user": [1, 2], "item": [1, 1], "rank": [1, 1]})
    assert "**" not in tr.evaluate({"m": lists}, test, exposure="holdout", metrics=["Recall@1"]).markdown()


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


def test_clips_are_rows_and_rewards_are_named() -> None:
    rng = np.random.default_rng(2)
    n = 60
    session, position = np.repeat(np.arange(n), 3), np.tile([1, 2, 3], n)
    log = pl.DataFrame(
        {"session": session, "item": position, "position": position, "click": rng.random(3 * n) < 0.5,
         "buys": rng.random(3 * n) < 0.2}
    ).with_columns(pl.col("click", "buys").cast(pl.Int64))  # fmt: skip
    same = log.select("session", "item", rank="position")
    turned = log.select("session", "item", rank=4 - pl.col("position"))
    found = tr.off_policy(
        log, {"same": same, "turned": turned}, position="exp:0.5", rewards=["click", "buys"], clips=[1, 4]
    ).markdown()
    head = found.splitlines()[0]
    assert head.startswith("| model | clip |")
    titles = [title.strip() for title in head.split("|")[3:-1]]
    assert len(set(titles)) == len(titles)
    assert sum("click" in title for title in titles) == sum("buys" in title for title in titles) == len(titles) / 2
    assert [line.split("|")[2].strip() for line in found.splitlines()[2:6]] == ["1", "4", "1", "4"]


def test_equal_values_have_no_best() -> None:
    test = pl.DataFrame({"user": [1, 2], "item": [1, 2]})
    lists = pl.DataFrame({"user": [1, 2], "item": [1, 1], "rank": [1, 1]})
    assert "**" not in tr.evaluate({"m": lists, "n": lists}, test, exposure="holdout", metrics=["Recall@1"]).markdown()
