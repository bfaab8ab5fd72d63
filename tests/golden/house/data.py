"""Small data sets for the goldens, drawn with fixed seeds; nothing here comes from truerank.

    made("world")    labels and scores of recommenders: every kind of label, of score, ties, silent users, features
    made("feed")     impressions of a feed: sessions, users, positions, rewards, other rankers, whole lists
    made("bandit")   impressions without sessions, with the probability that an item was chosen
    made("study")    a fully observed world with training data, for the reliability study

Scores that are products are multiples of 1/16, so that they have the same bits in whatever order they are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_array

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Model:
    """The scores of one recommender: `form` is dense, sparse, factors, function or table."""

    form: str
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Made:
    """Tables, scores and lists of ids by name."""

    frames: dict[str, pl.DataFrame]
    models: dict[str, Model] = field(default_factory=dict)
    ids: dict[str, list[Any]] = field(default_factory=dict)


@cache
def made(name: str) -> Made:
    """The data set of a name."""
    return _MAKERS[name]()


def log_of(frames: dict[str, pl.DataFrame], frame: str, columns: Sequence[str]) -> pl.DataFrame:
    """A table with some of its columns; `new=old` renames one."""
    pairs = [text.partition("=") for text in columns]
    return frames[frame].select(pl.col(old if equals else new).alias(new) for new, equals, old in pairs)


# ------------------------------------------------------------------------------------------------------- recommenders


def _world(n_users: int, n_items: int, *, seed: int, text: bool = False, judged: int = 10) -> Made:
    """Labels of every kind and scores of every form; users 3, 7 and 23 have no positive, the last five no scores in
    `partial`, and every eleventh user no row in partial labels."""
    rng = np.random.default_rng(seed)
    users = [f"u{at:04}" for at in range(n_users)] if text else [1_000 + 3 * at for at in range(n_users)]
    items = [f"i{at:03}" for at in range(n_items)] if text else [7 + 2 * at for at in range(n_items)]
    popular = (1 - np.arange(n_items) / n_items) ** 2
    chance = (0.04 + 0.45 * popular) * (0.4 + rng.random((n_users, 1)))
    label = (rng.random((n_users, n_items)) < chance).astype(np.float64)
    if n_users > 30:
        label[[3, 7, 23]] = 0.0
    grade = np.where(label == 1, rng.integers(4, 6, label.shape), rng.integers(0, 4, label.shape)).astype(np.float64)
    shown = np.clip(0.06 + 0.8 * popular * (0.3 + rng.random((n_users, 1))), 0.06, 0.95)
    silent = np.arange(n_users) % 11 == 5 if n_users > 30 else np.zeros(n_users, dtype=bool)

    def pairs(kept: Array, **more: Array) -> pl.DataFrame:
        user, item = np.nonzero(kept)
        columns = {name: values[user, item] for name, values in more.items()}
        return pl.DataFrame({"user": [users[at] for at in user], "item": [items[at] for at in item], **columns})

    def some(n: int) -> Array:
        """n items of each user at random, none of silent users."""
        place = np.argsort(np.argsort(rng.random(label.shape), axis=1), axis=1)
        return np.asarray((place < n) & ~silent[:, None])

    everything = np.ones(label.shape, dtype=bool)
    uniform = some(judged)
    independent = rng.random(label.shape) < 0.3
    biased = (rng.random(label.shape) < shown) & ~silent[:, None]
    held_out = rng.random(label.shape) < 0.5 * shown
    train = (rng.random(label.shape) < 0.4 * shown) & ~held_out
    constant = np.full(label.shape, 0.3)
    competing = some(max(2, n_items // 3)) | uniform | (biased & (rng.random(label.shape) < 0.7))
    frames = {
        "full": pairs(everything, label=label),
        "full graded": pairs(everything, rating=grade),
        "positives": pairs(label == 1, label=label),
        "positives graded": pairs(label == 1, rating=grade),
        "random": pairs(uniform, label=label),
        "random graded": pairs(uniform, rating=grade),
        "bernoulli": pairs(independent, label=label),
        "bernoulli graded": pairs(independent, rating=grade),
        "biased": pairs(biased, label=label, propensity=shown),
        "biased graded": pairs(biased, rating=grade, propensity=shown),
        "biased plain": pairs(biased, label=label),
        "constant": pairs(independent, label=label, propensity=constant),
        "silent": pairs(biased, label=np.zeros(label.shape), propensity=shown),
        "slice": pairs(some(6), label=label),
        "slice graded": pairs(some(6), rating=grade),
        "held out": pairs(held_out, label=label),
        "train": pairs(train),
        "candidates": pairs(competing),
        "among": pairs(competing, label=label),
        "positives among": pairs(competing & (label == 1), label=label),
        "biased among": pairs(competing & biased, label=label, propensity=shown),
        "user features": pl.DataFrame(
            {"user": users, "age": rng.integers(18, 70, n_users), "kind": rng.choice(["a", "b", "c"], n_users)}
        ),
        "item features": pl.DataFrame(
            {"item": items, "price": popular + 0.3 * rng.random(n_items), "new": popular < 0.2}
        ),
    }
    models = _models(rng, users, items, label, popular)
    opinion = np.clip(0.15 + 0.6 * label + 0.2 * np.random.default_rng(seed + 1_000).standard_normal(label.shape), 0, 1)
    frames["judge"] = pairs(everything, label=np.round(opinion, 3))
    frames["partial judge"] = pairs(everything & (np.arange(n_users) % 3 > 0)[:, None], label=np.round(opinion, 3))
    frames["item groups"] = pl.DataFrame(
        {"item": items, "group": ["head" if at < 9 else "tail" for at in range(n_items)]}
    )
    return Made(
        frames,
        models,
        {
            "users": users,
            "items": items,
            "more users": [*users, *(["u9998", "u9999"] if text else [90_001, 90_002])],
            "more items": [*items, *(["i990", "i991", "i992"] if text else [9_001, 9_003, 9_005])],
        },
    )


def _models(
    rng: np.random.Generator, users: list[Any], items: list[Any], label: Array, popular: Array
) -> dict[str, Model]:
    ids = {"users": users, "items": items}

    def noise() -> Array:
        return np.asarray(rng.standard_normal(label.shape))

    good, tied, never, single = (
        0.8 * label + popular + 0.7 * noise(),
        np.round(0.6 * label + popular + 0.6 * noise(), 1) * 2 // 1,
        0.5 * label + 0.5 * popular + 0.8 * noise(),
        (0.9 * label + 0.3 * popular + noise()).astype(np.float32),
    )
    never[rng.random(label.shape) < 0.2] = -np.inf
    never[0] = -np.inf
    p, q = (np.round(4 * rng.standard_normal((n, 5))) / 4 for n in (len(users), len(items)))
    q[:, 0] += np.round(4 * popular) / 4
    bias = np.round(4 * popular) / 4
    stored = np.where(rng.random(label.shape) < 0.6, np.round(good, 1), 0.0)
    place = np.argsort(np.argsort(-good, axis=1), axis=1)
    user, item = (axis.ravel() for axis in np.indices(label.shape))
    every = {"user": [users[at] for at in user], "item": [items[at] for at in item]}
    whole = pl.DataFrame({**every, "score": np.round(never, 1).ravel()})
    ranked = pl.DataFrame({**every, "rank": place.ravel() + 1})
    scored = pl.DataFrame({**every, "score": np.round(single, 1).ravel(), "place": place.ravel()})
    fewer = max(1, len(users) - 5)
    return {
        "good": Model("dense", {"matrix": good, **ids}),
        "tied": Model("dense", {"matrix": tied, **ids}),
        "never": Model("dense", {"matrix": never, **ids}),
        "single": Model("dense", {"matrix": single, **ids}),
        "constant": Model("dense", {"matrix": np.ones(label.shape), **ids}),
        "turned": Model("dense", {"matrix": np.round(good, 1)[::-1, ::-1], "users": users[::-1], "items": items[::-1]}),
        "partial": Model(
            "dense", {"matrix": good[:fewer] + 0.5 * noise()[:fewer], "users": users[:fewer], "items": items}
        ),
        "factors": Model("factors", {"user_factors": p, "item_factors": q, "item_bias": bias, **ids}),
        "plain factors": Model("factors", {"user_factors": p, "item_factors": q, "item_bias": None, **ids}),
        "function": Model("function", {"matrix": np.round(single.astype(np.float64), 1), **ids}),
        "sparse": Model("sparse", {"matrix": csr_array(stored), **ids}),
        "table": Model("table", {"frame": whole}),
        "top": Model("table", {"frame": scored.filter(pl.col("place") < 12).drop("place")}),
        "ranks": Model("table", {"frame": ranked.filter(pl.col("rank") <= 12)}),
        "quality": Model("dense", {"matrix": np.clip(0.1 + 0.5 * popular + 0.2 * label, 0, 1), **ids}),
    }


# -------------------------------------------------------------------------------------------------------- impressions


@dataclass(frozen=True, slots=True)
class _Feed:
    """What a feed is made of: sizes, and whether two loggers share the traffic or lists are in random order."""

    n_sessions: int
    n_users: int
    n_items: int = 30
    shortest: int = 6
    longest: int = 12
    stay: float = 0.75
    loggers: str = ""  # "" for one, "user" or "session" for two that share users, or the sessions of each
    shuffled: bool = False
    pays: bool = True


def _feed(feed: _Feed, *, seed: int) -> Made:
    """Sessions of a list each, looked at from the top to some depth; another ranker's places of every item."""
    rng = np.random.default_rng(seed)
    quality = np.clip(rng.random(feed.n_items) ** 2, 0.02, 0.9)
    group_of_user = rng.choice(["old", "young"], feed.n_users)
    logger_of_user = rng.choice(["a", "b"], feed.n_users)
    rows: list[dict[str, Any]] = []
    sessions = []
    for session in range(feed.n_sessions):
        user = int(rng.integers(feed.n_users))
        n = int(rng.integers(feed.shortest, feed.longest + 1))
        item = np.sort(rng.choice(feed.n_items, n, replace=False))
        places = {
            name: np.argsort(np.argsort(-(weight * quality[item] + spread * rng.random(n)))) + 1
            for name, weight, spread in (("a", 0.6, 1.0), ("b", 0.0, 1.0), ("new", 1.0, 0.5), ("other", -0.5, 1.0))
        }
        logger = "a"
        if feed.loggers:
            logger = str(logger_of_user[user]) if feed.loggers == "user" else str(rng.choice(["a", "b"]))
        position = places["b"] if feed.shuffled else places[logger]
        depth = int(np.argmax(np.append(rng.random(n) >= feed.stay, [True]))) + 1
        if rng.random() < 0.05:
            depth = 0  # nothing was looked at
        surface = str(rng.choice(["main", "side"]))
        viewed = position <= depth
        click = (rng.random(n) < quality[item]) & viewed & feed.pays
        like = (rng.random(n) < 0.3) & click
        dwell = np.where(viewed & feed.pays, np.round(60 * quality[item] * rng.random(n), 3), 0.0)
        value = np.where(viewed & feed.pays, np.round(rng.standard_normal(n) + quality[item], 3), 0.0)
        never = rng.random(n) < 0.15
        listed = [int(100 + at) for at in item]
        sessions.append(5_000 + 2 * session)
        rows += [
            {
            "session": 5_000 + 2 * session, "user": f"u{user:03}", "item": int(100 + item[at]),
            "position": int(position[at]), "click": int(click[at]), "like": int(like[at]),
            "dwell": float(dwell[at]), "value": float(value[at]), "viewed": bool(viewed[at]),
            "new": int(places["new"][at]), "other": int(places["other"][at]),
            "a": int(places["a"][at]), "b": int(places["b"][at]), "logger": logger,
            "surface": surface, "group": str(group_of_user[user]), "candidates": n, "listed": listed,
            "propensity": round(float(feed.stay ** (position[at] - 1)), 12),
            "exposed": round(float(0.8 ** (places["new"][at] - 1)), 12),
            "blank": None if never[at] else int(places["new"][at]),
            "prediction": round(float(0.8 * quality[item[at]] + 0.05), 6),
            "exposed_a": round(float(0.7 ** (places["a"][at] - 1)), 12),
            "exposed_b": round(float(0.7 ** (places["b"][at] - 1)), 12),
                }
            for at in range(n)
        ]  # fmt: skip
    displayed = pl.DataFrame(rows, infer_schema_length=None)
    return Made(_lists(displayed), {}, {"sessions": sessions})


def _lists(displayed: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Logs, and tables of what targets would show."""
    viewed = displayed.filter(pl.col("viewed"))
    table = displayed.select("session", "item", rank="new", prediction="prediction")
    kept = displayed.filter(pl.col("session") % 10 != 0)
    whole = dict.fromkeys(("session", "item", "rank"), pl.Int64)
    strange = pl.DataFrame({"session": [1, 1, 3], "item": [100, 9_999, 101], "rank": [1, 2, 1]}, schema=whole)
    unknown = displayed.group_by("session", maintain_order=True).agg(
        item=pl.lit(9_998, dtype=pl.Int64).first(), rank=pl.len().cast(pl.Int64) + 1
    )
    return {
        "viewed": viewed,
        "displayed": displayed,
        "mixed order": displayed.sample(fraction=1.0, shuffle=True, seed=3).filter(pl.col("viewed")),
        "table": table.drop("prediction"),
        "other table": displayed.select("session", "item", rank="other"),
        "predicted table": table,
        "partial table": pl.concat([kept.select("session", "item", rank="other"), strange]),
        "longer table": pl.concat([table.drop("prediction"), unknown]),
        "exposure table": displayed.select("session", "item", exposure="exposed"),
        "surface table": displayed.select("session", "item", "surface", "group", rank="new"),
        "few": viewed.head(40),
        "short": viewed.filter(pl.col("position") <= 6),
        "one user": viewed.filter(pl.col("user") == pl.col("user").first()),
        "one session": viewed.filter(pl.col("session") == pl.col("session").first()),
    }


def _bandit(*, seed: int, n: int = 900, n_users: int = 120, n_items: int = 12) -> Made:
    """One item is chosen in each impression, with a known probability; targets choose with others."""
    rng = np.random.default_rng(seed)
    quality = rng.random(n_items)
    logging, new, other = (np.round(rng.dirichlet(np.full(n_items, 3.0), size=4), 6) for _ in range(3))
    context, user = rng.integers(0, 4, n), rng.integers(0, n_users, n)
    draw = rng.random((n, 1)) * logging.sum(axis=1)[context][:, None]
    item = np.minimum((np.cumsum(logging, axis=1)[context] < draw).sum(axis=1), n_items - 1)
    frame = pl.DataFrame(
        {
            "user": user, "item": item, "reward": (rng.random(n) < quality[item]).astype(np.int64),
            "spent": np.round(rng.random(n) * quality[item], 4), "propensity": np.maximum(logging[context, item], 1e-3),
            "new": new[context, item], "other": other[context, item], "position": 1 + context % 3,
        }
    )  # fmt: skip
    return Made({"rows": frame, "few": frame.head(12)})


# -------------------------------------------------------------------------------------------------------------- study


def _study(*, seed: int, n_users: int = 40, n_items: int = 40, n_models: int = 4) -> Made:
    """A fully observed world but for a few missing cells, with scores that tie and items that are never recommended."""
    rng = np.random.default_rng(seed)
    label = (rng.random((n_users, n_items)) < 0.5 * rng.random(n_items)).astype(np.float64)
    label[3] = 0.0
    user, item = (axis.ravel() for axis in np.indices(label.shape))
    kept = np.delete(np.arange(label.size), 7 * np.arange(1, 4))
    users, items = list(range(200, 200 + n_users)), [f"i{at:03}" for at in range(n_items)]
    world = pl.DataFrame(
        {"user": [users[at] for at in user], "item": [items[at] for at in item], "label": label.ravel()}
    )
    some = rng.integers(0, n_items, 300)
    train = pl.DataFrame(
        {
            "user": rng.integers(190, 240, 300),
            "item": [items[at] for at in some],
            "label": (rng.random(300) < 0.4) * 1.0,
        }
    ).unique(["user", "item"], keep="first", maintain_order=True)
    models = {}
    for at in range(n_models):
        matrix = np.round(label + rng.standard_normal(label.shape) * (0.5 + at), 1)
        if at == 1:
            matrix[rng.random(label.shape) < 0.2] = -np.inf
        models[f"m{at}"] = Model("dense", {"matrix": matrix, "users": users, "items": items})
    return Made({"labels": world[kept.tolist()], "full": world, "train": train}, models)


_MAKERS: dict[str, Callable[[], Made]] = {
    "world": lambda: _world(60, 40, seed=11),
    "text": lambda: _world(45, 30, seed=12, text=True),
    "large": lambda: _world(300, 60, seed=13, judged=15),
    "few": lambda: _world(6, 20, seed=14, judged=6),
    "one": lambda: _world(1, 20, seed=15, judged=12),
    "feed": lambda: _feed(_Feed(400, 90), seed=21),
    "small feed": lambda: _feed(_Feed(60, 25), seed=22),
    "loggers by user": lambda: _feed(_Feed(300, 80, loggers="user"), seed=23),
    "loggers by session": lambda: _feed(_Feed(300, 80, loggers="session"), seed=24),
    "silent feed": lambda: _feed(_Feed(60, 25, pays=False), seed=25),
    "shuffled feed": lambda: _feed(_Feed(500, 120, n_items=12, shortest=6, longest=6, shuffled=True), seed=26),
    "bandit": lambda: _bandit(seed=27),
    "study": lambda: _study(seed=31),
}
