"""Results as tables: polars and pandas frames, CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, get_type_hints

import polars as pl

from truerank.core.results import Comparison, Estimate, Evidence, Results
from truerank.report.numbers import clip_text
from truerank.report.questions import WORDS, clip_limit, questions_of, ranked_models

KINDS: dict[Any, Any] = {float: pl.Float64, float | None: pl.Float64, int: pl.Int64, int | None: pl.Int64,
                         bool: pl.Boolean}  # fmt: skip


def _schema(kind: type[Any], codes: str = "") -> dict[str, Any]:
    """The columns of a class, those of its evidence among them; what is no number is text."""
    schema: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        schema |= _schema(Evidence) if hint is Evidence else {name: KINDS.get(hint, pl.String)}
    return schema | ({codes: pl.String} if codes else {})


ESTIMATES, COMPARISONS = _schema(Estimate, "warning_codes"), _schema(Comparison, "reason_codes")
BOTH = {"kind": pl.String, "model": pl.String, "baseline": pl.String} | ESTIMATES | COMPARISONS
del BOTH["difference"]  # which is its value


def models(results: Results) -> pl.DataFrame:
    """A row for each model, best first, and a column for each question."""
    questions = questions_of(results)
    values = [{estimate.model: estimate.value for estimate in question.estimates} for question in questions]
    names = ranked_models(questions)
    columns = {question.label: [by_model.get(name) for name in names]
               for question, by_model in zip(questions, values, strict=True)}  # fmt: skip
    return pl.DataFrame({"model": names, **columns}, schema={"model": pl.String, **dict.fromkeys(columns, pl.Float64)})


def estimates(results: Results) -> pl.DataFrame:
    """One row per estimate; lists are joined by semicolons."""
    columns = _columns(results.estimates, Estimate)
    columns["settings"] = [
        "; ".join(f"{name}={value}" for name, value in settings.items()) for settings in columns["settings"]
    ]
    columns["assumptions"] = ["; ".join(texts) for texts in columns["assumptions"]]
    return pl.DataFrame(_with_texts(columns, "warnings", "warning_codes"), schema=ESTIMATES)


def comparisons(results: Results) -> pl.DataFrame:
    """One row per comparison."""
    columns = _columns(results.comparisons, Comparison)
    return pl.DataFrame(_with_texts(columns, "reasons", "reason_codes"), schema=COMPARISONS)


def _columns(values: Sequence[Any], kind: type[Any]) -> dict[str, list[Any]]:
    """The fields of values as columns, those of their evidence among them; of half a million rows each is one list."""
    columns = {field.name: [getattr(value, field.name) for value in values] for field in fields(kind)}
    return columns | (_columns(columns.pop("evidence"), Evidence) if "evidence" in columns else {})


def _with_texts(columns: dict[str, list[Any]], texts: str, codes: str) -> dict[str, list[Any]]:
    """Columns in which messages are their sentences, with their codes."""
    messages = columns[texts]
    return columns | {
        texts: ["; ".join(map(str, entries)) for entries in messages],
        codes: ["; ".join(message.code for message in entries) for entries in messages],
    }


def clips(results: Results) -> pl.DataFrame:
    """One row per estimate that a clip can limit: its shift against the largest clip, its error, and both together;
    `chosen` where the clip was chosen by the data.

    √(shift² + stderr²) is what the clip costs and what it saves, if the largest clip is taken as the truth.
    """
    key = ["model", "metric", "estimator", "reward", "segment"]
    choices = results.provenance.details.get("chosen", ())
    chosen = {tuple(choice[name] for name in ("of", "estimator", "reward", "clip")) for choice in choices}
    frame = estimates(results).select(*key, "clip", "value", "stderr").with_columns(
        clip=pl.Series([clip_limit(estimate) for estimate in results.estimates], dtype=pl.Float64),
        chosen=pl.Series([(estimate.model, estimate.estimator, estimate.reward, estimate.clip) in chosen
                          for estimate in results.estimates], dtype=pl.Boolean),
    ).sort([*key, "clip"], maintain_order=True)  # fmt: skip
    shift = pl.col("value") - pl.col("value").last().over(key)
    frame = frame.filter(pl.len().over(key) > 1).with_columns(shift=shift)
    return frame.with_columns(together=(pl.col("shift") ** 2 + pl.col("stderr") ** 2).sqrt())


def all_rows(results: Results, *, groups: Mapping[str, Results] | None = None) -> pl.DataFrame:
    """Estimates and comparisons in one table, told apart by `kind`; a comparison's value is its difference.

    With `groups` there are rows of each after those of the whole, whose `group` is empty.
    """
    frame = _both(results)
    if groups:
        parts = [_both(within).with_columns(group=pl.lit(name)) for name, within in groups.items()]
        frame = pl.concat([frame.with_columns(group=pl.lit(None, dtype=pl.String)), *parts])
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))


def _both(results: Results) -> pl.DataFrame:
    parts = [
        estimates(results).with_columns(kind=pl.lit("estimate")),
        comparisons(results).rename({"difference": "value"}).with_columns(kind=pl.lit("comparison")),
    ]
    return pl.concat([pl.DataFrame(schema=BOTH), *parts], how="diagonal")


# --------------------------------------------------------------------------------------------------------- displayed

KEY = ("metric", "estimator", "reward", "segment")
VALUES = ("model", "clip", "value", "low", "high", "units", "undefined", "ess")
DIFFERENCES = ("clip", "difference", "low", "high", "p", "p_adjusted", "verdict")
OPTIONAL = ("reward", "segment", "clip", "ess", "warning_codes", "reasons")  # columns that may tell nothing
TITLES = {"segment": "items", "stderr": "standard error", "undefined": "excluded", "ess": "effective rows",
          "warning_codes": "warnings", "p_adjusted": "p adjusted"}  # fmt: skip


def displayed_values(results: Results) -> pl.DataFrame:
    """All estimates, clips in words."""
    return estimates(results).with_columns(clip=_clip_texts(results, results.estimates))


def displayed_differences(results: Results) -> pl.DataFrame:
    """All comparisons as winner minus loser, verdicts and clips in words."""
    pairs = tuple(pair.reverse() if pair.difference < 0 else pair for pair in results.comparisons)
    return comparisons(replace(results, comparisons=pairs)).with_columns(
        pl.col("verdict").replace(WORDS),
        pair=pl.format("{} - {}", "model", "baseline"),
        clip=_clip_texts(results, results.comparisons),
    )


def _clip_texts(results: Results, entries: Sequence[Estimate | Comparison]) -> pl.Series:
    """The clip of each entry, marked where the data chose it; nothing where there are no clips."""
    chosen = {(choice["of"], choice["estimator"], choice["reward"], choice["clip"])
              for choice in results.provenance.details.get("chosen", ())}  # fmt: skip
    texts = [
        f"{'chosen: ' * ((entry.name, entry.estimator, entry.reward, entry.clip) in chosen)}{clip_text(entry.clip)}"
        for entry in entries
    ]
    return pl.Series(texts if any(entry.clip is not None for entry in entries) else [""] * len(texts), dtype=pl.String)


def titled(frame: pl.DataFrame, names: Sequence[str], *, unit: str) -> pl.DataFrame:
    """Columns that tell something, under their titles; effective rows as whole numbers."""
    if "ess" in names:
        frame = frame.with_columns(pl.col("ess").fill_nan(None).round().cast(pl.Int64, strict=False))
    texts = frame.select(pl.col(name).cast(pl.String).fill_null("") for name in names if name in OPTIONAL)
    told = {
        column.name: (column != "").any() and (column.name != "reward" or column.n_unique() > 1) for column in texts
    }
    told["p_adjusted"] = "family" in frame.columns and (frame["family"] > 1).any()
    return frame.select(
        (pl.col(name).fill_null("all") if name == "segment" else pl.col(name)).alias(
            (TITLES | {"units": f"{unit}s"}).get(name, name)
        )
        for name in names
        if told.get(name, True)
    )
