"""The one place where the goldens meet the code under test: a call in, plain numbers out.

When the interface changes, this file changes, and nothing else here does:
calls, data and goldens stay as they are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

import truerank as tr
from tests.golden.house.call import Call
from tests.golden.house.data import Made, Model, log_of, made
from truerank import estimators, metrics
from truerank.core.errors import InputError, RefusedError
from truerank.core.ids import Ids
from truerank.core.log import Logged
from truerank.core.messages import Message
from truerank.estimators import RANKED
from truerank.estimators.discounted import IdealSum
from truerank.estimators.doubly_robust import ItemMeans, PredictionColumn
from truerank.estimators.impressions import Limited, Normaliser
from truerank.estimators.predictions import GivenRewards, ItemRates
from truerank.exposure import interventions
from truerank.exposure.kinds import BiasedExposure, FullExposure, RandomExposure
from truerank.exposure.policies.targets import ExposureColumn, RankColumn
from truerank.inference.clipping import AutoClip
from truerank.ranking import samplers
from truerank.reliability import Grid, Preset, study

Result = dict[str, Any]
ESTIMATE = (
    "model", "metric", "estimator", "reward", "clip", "segment", "value", "stderr", "low", "high", "units",
    "undefined", "ess",
)  # fmt: skip
COMPARISON = (
    "model", "baseline", "metric", "estimator", "reward", "clip", "segment", "difference", "stderr", "low", "high", "p",
    "p_adjusted", "units",
)  # fmt: skip
PLAIN = ("overlap", "n_items", "baseline", "ties", "level", "seed", "adjust", "like")


def run(call: Call) -> Result:
    """The estimates and comparisons (and tables) of a call; `refused` says that there is no answer."""
    try:
        return _KINDS[call.kind](made(call.data), dict(call.options))
    except RefusedError:
        return {"refused": "no honest answer"}
    except InputError:
        return {"refused": "wrong input"}


def plain(results: tr.Results, **more: Any) -> Result:
    return {
        "estimates": [
            {name: getattr(estimate, name) for name in ESTIMATE} | {"warnings": codes(estimate.warnings)}
            for estimate in results.estimates
        ],
        "comparisons": [
            {name: getattr(comparison, name) for name in COMPARISON}
            | {"verdict": str(comparison.verdict), "reasons": codes(comparison.reasons)}
            for comparison in results.comparisons
        ],
        "messages": codes(results.messages),
        **more,
    }


def codes(messages: Iterable[Message]) -> list[str]:
    """Severity and code of each message, sorted."""
    return sorted(f"{message.severity}:{message.code}" for message in messages)


# ----------------------------------------------------------------------------------------------------------- evaluate


def evaluate(data: Made, options: dict[str, Any], labels: Any = None, candidates: Any = None) -> Result:
    if labels is None:
        labels = _labels(data, options)
    if candidates is None and "candidates" in options:
        candidates = data.frames[options["candidates"]]
    return plain(
        tr.evaluate(
            {name: scores_of(data.models[name]) for name in options["models"]},
            labels,
            exposure=_exposure(data, options),
            metrics=[metrics.parse(text) for text in options["metrics"]] if "metrics" in options else None,
            estimators=[_estimator(data, each) for each in options["estimators"]] if "estimators" in options else None,
            exclude=data.frames[options["exclude"]] if "exclude" in options else None,
            candidates=candidates,
            items=Ids.of(data.ids[options["items"]]) if "items" in options else None,
            judge=data.frames[options["judge"]] if "judge" in options else None,
            assist=scores_of(data.models[options["assist"]]) if "assist" in options else None,
            item_groups=data.frames[options["item_groups"]] if "item_groups" in options else None,
            interval=_interval(options),
            **{name: options[name] for name in (*PLAIN, "threads", "block_users") if name in options},
        )
    )


def _labels(data: Made, options: Mapping[str, Any]) -> tr.Log:
    return tr.read(
        data.frames[options["labels"]],
        positive=options.get("positive"),
        users=data.ids[options["population"]] if "population" in options else None,
        items=data.ids[options["label_items"]] if "label_items" in options else None,
        name="labels",
    )


def scores_of(model: Model) -> Any:
    values = dict(model.values)
    if model.form == "table":
        return tr.scores.lists(values["frame"])
    if model.form == "factors":
        return tr.scores.factors(values.pop("user_factors"), values.pop("item_factors"), **values)
    matrix = values.pop("matrix")
    if model.form == "function":
        return tr.scores.function(lambda rows: matrix[rows], **values)
    return {"dense": tr.scores.dense, "sparse": tr.scores.sparse}[model.form](matrix, **values)


def _exposure(data: Made, options: Mapping[str, Any]) -> Any:
    kind, _, rate = options.get("exposure", "full").partition(":")
    if kind == "full":
        return FullExposure()
    if kind == "full-negative":
        return FullExposure("negative")  # type: ignore[arg-type]
    if kind == "random":
        return RandomExposure(float(rate) if rate else None)
    if kind in ("holdout", "designed"):
        return kind
    features = {name: data.frames[options[name]] for name in ("user_features", "item_features") if name in options}
    random = None
    if "random" in options:
        random = tr.read(data.frames[options["random"]], positive=options.get("positive"), name="random")
    return BiasedExposure(options.get("propensity"), random=random, **features)


def _estimator(data: Made, given: str | Mapping[str, Any]) -> Any:
    if isinstance(given, str):
        return estimators.named(given)()
    options = dict(given)
    kind = estimators.named(options.pop("name"))
    reward = options.pop("reward", None)
    if reward == "item-rates":
        names = ("folds", "strength")
        options["reward"] = ItemRates(**{name: options.pop(name) for name in names if name in options})
    elif reward is not None:
        options["reward"] = GivenRewards(scores_of(data.models[reward]))
    return kind(**options)


def _interval(options: Mapping[str, Any]) -> Any:
    kind, _, replicates = options.get("interval", "").partition(":")
    if kind == "bootstrap" and options.get("propensity", "column").split(":")[0] != "column":
        return None  # fitted propensities are refitted without groups of users; a bootstrap no longer refits them
    if kind == "bootstrap":
        return tr.Bootstrap(int(replicates), options.get("seed", 0))
    return {"": None, "population": tr.Population(), "design": tr.Design()}[kind]


def sampled(data: Made, options: dict[str, Any]) -> Result:
    """Evaluation among candidates that a sampler draws."""
    log = _labels(data, options)
    train = tr.read(data.frames["train"], values=False) if options.pop("train", None) else None
    drawn = tr.sample_candidates(
        log, samplers.parse(options.pop("sampler")), seed=options.get("seed", 0), train=train, pool=None
    )
    labels = drawn.labels()
    return evaluate(data, options, labels=labels, candidates=labels)


def intervened(data: Made, options: dict[str, Any]) -> Result:
    """Inclusion probabilities of a held-out log, and the evaluation with them; or a drawn part of the log."""
    log = _labels(data, options)
    strategy = getattr(interventions.STRATEGIES.named(options.pop("strategy")), options.pop("preset", "published"))()
    train, random = (tr.read(data.frames[name], values=False) for name in ("train", "slice"))
    how = {"train": train, "random": random, "fraction": options.pop("fraction", 0.5), "seed": options.get("seed", 0)}
    if options.pop("draw", False):
        drawn = tr.intervene(log, strategy, **how)
        return evaluate(data, options, labels=drawn)
    included = tr.with_inclusion(log, strategy, **how)
    if included.inclusion is None:
        raise TypeError("no inclusion probabilities were made")
    result = evaluate(data, options, labels=included)
    return {**result, "tables": {"inclusion": [[value] for value in included.inclusion.tolist()]}}


# --------------------------------------------------------------------------------------------------------- off-policy


def offpolicy(data: Made, options: dict[str, Any]) -> Result:
    clips = options.get("clips", "inf")
    loggers = options.get("loggers")
    position = options.get("position")
    seed = options.get("seed", 0)
    normaliser = Normaliser(options.get("normaliser", "session"))
    results = tr.off_policy(
        log_of(data.frames, options["log"], options["columns"]),
        {name: _target(data, text) for name, text in options["targets"].items()},
        position=None if position is None else tr.positions.parse_position(position),
        clips=AutoClip() if clips == "auto" else [float(text) for text in clips.split(",")],
        estimators=[_ranked(each, normaliser, seed) for each in options["estimators"]]
        if "estimators" in options
        else _default(normaliser, clips),
        normaliser=normaliser,
        rewards=options.get("rewards"),
        sessions=data.ids[options["sessions"]] if "sessions" in options else None,
        logged=Logged(options.get("rows", "viewed")),
        loggers=None if loggers is None else {name: _target(data, text) for name, text in loggers.items()},
        interval=_interval(options),
        **{name: options[name] for name in ("baseline", "level", "seed", "threads") if name in options},
    )
    chosen = [
        [each["of"], each["reward"], each["estimator"], each["clip"], each["value"]]
        for each in results.provenance.details["chosen"]
    ]
    fits = [[each["place"], each["parameter"], each["value"]] for each in results.provenance.details["fits"]]
    tables = {name: rows for name, rows in (("chosen clips", chosen), ("fits", fits)) if rows}
    return plain(results, **({"tables": tables} if tables else {}))


def _default(normaliser: Normaliser, clips: str) -> Any:
    """The default estimators, with the paper's clip; where nothing is clipped, those that come by themselves."""
    return None if clips == "inf" else [_ranked(name, normaliser, 0) for name in ("ips", "snips")]


def _target(data: Made, text: str) -> Any:
    """`rank:COLUMN`, `exposure:COLUMN`, `table:FRAME`, or `log` for the logging policy itself."""
    kind, _, name = text.partition(":")
    if kind == "table":
        return data.frames[name]
    return ExposureColumn(name) if kind == "exposure" else RankColumn(name or "position")


def _ranked(given: str | Mapping[str, Any], normaliser: Normaliser, seed: int) -> Any:
    options: dict[str, Any] = {} if isinstance(given, str) else dict(given)
    name = given if isinstance(given, str) else options.pop("name")
    kind = RANKED.named(name)
    # goldens are of the paper's clip, of 1/ε0
    inverse = {"of": Limited.INVERSE} if "of" in kind.__dataclass_fields__ else {}
    if name in ("ips", "snips"):
        return kind(Normaliser(options.get("normaliser", normaliser)), **inverse)
    if name == "doubly-robust":
        model = options.pop("model", "item-means")
        return kind(PredictionColumn() if model == "column" else ItemMeans(**options), seed=seed, **inverse)
    return kind(IdealSum(options["ideal"]), **inverse) if "ideal" in options else kind(**inverse)


# ------------------------------------------------------------------------------------------------------------ studies


_GRID = ("loggers", "sparsities", "samplers", "sizes", "repetitions")


def reliability(data: Made, options: dict[str, Any]) -> Result:
    grid = Grid.from_names(
        preset=Preset(options.get("preset", "published")),
        metrics=[metrics.parse(text) for text in options["metrics"]],
        **{name: options[name] for name in _GRID if name in options},
    )
    train = tr.read(data.frames["train"], name="train")
    with tempfile.TemporaryDirectory() as folder:
        found = study(
            {name: scores_of(model) for name, model in data.models.items()},
            tr.read(data.frames["labels"], name="world"),
            Path(folder) / "study",
            grid=grid,
            train=train,
            exclude=train if options.get("exclude") else None,
            seed=options.get("seed", 0),
            resamples=options.get("resamples", 200),
            level=options.get("level", 0.95),
            threads=1,
        )
    return {"tables": {name: _rows(getattr(found, name)) for name in ("results", "means", "pairs")}}


def _rows(table: pl.DataFrame) -> list[list[Any]]:
    """The header, and the rows in one order."""
    text = [name for name, kind in table.schema.items() if kind == pl.String or kind.is_integer() or name == "sparsity"]
    rows = table.sort(text, maintain_order=True).rows()
    return [table.columns, *(list(row) for row in rows)]


_KINDS: dict[str, Callable[[Made, dict[str, Any]], Result]] = {
    "evaluate": evaluate,
    "sampled-candidates": sampled,
    "intervened": intervened,
    "offpolicy": offpolicy,
    "study": reliability,
}
