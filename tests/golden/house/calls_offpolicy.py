"""Calls of `off_policy`: estimators, logs of every shape, position models given and fitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.golden.house.call import EXACT, ITERATED, Call, Options

# ----------------------------------------------------------------------------------------------------------- off-policy

BASE = ["session", "item", "position", "click", "new", "other", "blank"]
USERS = [*BASE, "user"]
COUNTED = [*USERS, "candidates"]
NEW = {"new": "rank:new"}
BOTH = {"new": "rank:new", "log": "log"}
TABLES = {"new": "table:table", "other": "table:other table", "log": "log"}
CLICK = ["click"]
CLIPS = "1,2,4,8,32,inf"
EVERY = ["ips", "snips", "ndcg", "post-normalised", "dcg-log-raw", "dcg-log-debiased", "dcg-raw"]


def _off(end: str, options: Mapping[str, Any], *, group: str = "offpolicy", data: str = "feed", **more: Any) -> Call:
    plain = {"log": "viewed", "columns": USERS, "targets": BOTH, "rewards": CLICK, "position": "exp:0.8", **options}
    kept = {name: value for name, value in plain.items() if value is not None}
    kept["columns"] = list(dict.fromkeys([*kept["columns"], *kept.get("rewards", ())]))
    return Call(f"offpolicy/{end}", group, "offpolicy", data, kept, **more)


def _offpolicy_estimators() -> Iterator[Call]:
    for name in EVERY:
        one: Options = {"estimators": [name], "columns": COUNTED, "clips": CLIPS}
        yield _off(f"{name}/columns", {**one, "targets": {**BOTH, "other": "rank:other"}})
        yield _off(f"{name}/tables", {**one, "targets": TABLES})
        yield _off(f"{name}/sessions alone", {**one, "columns": [*BASE, "candidates"], "targets": TABLES})
        yield _off(f"{name}/partial", {**one, "targets": {"new": "rank:new", "other": "table:partial table"}})
    for normaliser in ("session", "impression", "mean-of-means"):
        ips = [{"name": "ips", "normaliser": normaliser}]
        snips = [{"name": "snips", "normaliser": normaliser}] if normaliser != "mean-of-means" else []
        one = {
            "columns": COUNTED,
            "clips": "4,inf",
            "estimators": ips + snips,
            "rewards": ["click", "dwell", "value"],
        }
        yield _off(f"normaliser/{normaliser}", one)
        yield _off(f"normaliser/{normaliser}/sessions alone", {**one, "columns": [*BASE, "candidates"]})
        yield _off(f"normaliser/{normaliser}/declared", {**one, "sessions": "sessions"})
    yield _off("normaliser/default impression", {"normaliser": "impression"})
    yield _off("normaliser/refused", {"estimators": [{"name": "snips", "normaliser": "mean-of-means"}]})
    for ideal in ("order", "labels"):
        both = [{"name": name, "ideal": ideal} for name in ("ndcg", "post-normalised")]
        yield _off(f"ideal/{ideal}", {"estimators": both, "clips": "2,8,inf", "rewards": ["click", "dwell"]})
    yield _off("all", {"estimators": EVERY, "columns": COUNTED, "targets": TABLES, "rewards": ["click", "like"]})
    yield _off("defaults", {"columns": COUNTED})
    yield _off("defaults/snips left out", {})
    given: Options = {"name": "doubly-robust", "model": "column"}
    predicted: Options = {"columns": [*USERS, "prediction"], "targets": {"new": "table:predicted table"}}
    yield _off("given predictions", {**predicted, "estimators": [given], "clips": CLIPS})
    yield _off(
        "given predictions/displayed", {**predicted, "log": "displayed", "rows": "displayed", "estimators": [given]}
    )
    folded: dict[str, Options] = {
        "default": {"estimators": ["doubly-robust"], "clips": "4,inf"},
        "few folds": {"estimators": [{"name": "doubly-robust", "folds": 2, "strength": 5.0}]},
        "no users": {"estimators": ["doubly-robust"], "columns": BASE},
        "displayed": {"estimators": ["doubly-robust"], "log": "displayed", "rows": "displayed"},
        "exposures": {"estimators": ["doubly-robust"], "targets": {"new": "table:exposure table"}},
    }
    for name, options in folded.items():
        tables = {"new": "table:table", "other": "table:other table"}
        yield _off(f"folds/{name}", {"targets": tables, **options}, group="offpolicy-resampled")


def _offpolicy_logs() -> Iterator[Call]:
    group = "offpolicy-logs"
    rewards = ["click", "dwell", "value", "like"]
    every = [*COUNTED, "dwell", "value", "like"]
    yield _off("rewards", {"columns": every, "rewards": rewards, "clips": "1,8,inf"}, group=group)
    yield _off(
        "one reward",
        {"columns": ["session", "item", "position", "reward=dwell", "new"], "targets": BOTH, "rewards": None},
        group=group,
    )
    yield _off(
        "mixed order", {"log": "mixed order", "columns": every, "rewards": rewards, "clips": "8,inf"}, group=group
    )
    yield _off("declared", {"columns": COUNTED, "sessions": "sessions", "targets": TABLES}, group=group)
    yield _off("declared/users", {"columns": USERS, "sessions": "sessions"}, group=group)
    yield _off(
        "blank", {"columns": COUNTED, "targets": {"blank": "rank:blank", "log": "log"}, "clips": "2,inf"}, group=group
    )
    yield _off("longer", {"targets": {"long": "table:longer table", "log": "log"}}, group=group)
    yield _off(
        "exposure table", {"targets": {"new": "table:exposure table", "log": "log"}, "clips": "4,inf"}, group=group
    )
    yield _off("flagged", {"log": "displayed", "columns": [*COUNTED, "viewed"], "clips": "4,inf"}, group=group)
    yield _off("flagged/tables", {"log": "displayed", "columns": [*USERS, "viewed"], "targets": TABLES}, group=group)
    yield _off(
        "displayed",
        {"log": "displayed", "rows": "displayed", "estimators": ["ips", "ndcg", "post-normalised"]},
        group=group,
    )
    yield _off(
        "displayed/tables",
        {"log": "displayed", "rows": "displayed", "targets": TABLES, "clips": "3,inf", "estimators": ["ips"]},
        group=group,
    )
    yield _off("listed", {"columns": [*USERS, "candidates=listed"], "clips": "4,inf"}, group=group)
    yield _off("no users", {"columns": BASE, "clips": "4,inf"}, group=group)
    yield _off(
        "baseline", {"targets": {**TABLES, "blank": "rank:blank"}, "baseline": "log", "clips": "8,inf"}, group=group
    )
    for level in (0.5, 0.99):
        yield _off(f"level-{level}", {"level": level, "columns": COUNTED}, group=group)
    yield _off("threads", {"columns": COUNTED, "threads": 2, "clips": CLIPS}, group=group)
    propensities = [*USERS, "propensity", "exposed", "candidates"]
    yield _off(
        "propensities",
        {
            "columns": propensities,
            "position": None,
            "targets": {"new": "exposure:exposed", "log": "exposure:propensity"},
            "clips": "2,8,inf",
            "normaliser": "impression",
        },
        group=group,
    )
    yield _off("propensities/position", {"columns": propensities, "clips": "2,8,inf"}, group=group)
    yield _off(
        "propensities/tables",
        {"columns": propensities, "position": None, "targets": {"new": "table:exposure table"}},
        group=group,
    )
    for name, data in {"user": "loggers by user", "session": "loggers by session"}.items():
        several: Options = {
            "columns": [*COUNTED, "logger", "a", "b"],
            "loggers": {"a": "rank:a", "b": "rank:b"},
            "clips": "2,inf",
        }
        yield _off(f"loggers/{name}", several, group=group, data=data)
        yield _off(
            f"loggers/{name}/no users", {**several, "columns": [*BASE, "logger", "a", "b"]}, group=group, data=data
        )
        yield _off(
            f"loggers/{name}/groups", {**several, "columns": [*several["columns"], "group"]}, group=group, data=data
        )
        exposed = {
            **several,
            "columns": [*COUNTED, "logger", "exposed_a", "exposed_b"],
            "loggers": {"a": "exposure:exposed_a", "b": "exposure:exposed_b"},
        }
        yield _off(f"loggers/{name}/exposures", exposed, group=group, data=data)
    bandit: Options = {
        "log": "rows",
        "columns": ["item", "reward", "propensity", "new", "other"],
        "position": None,
        "rewards": None,
    }
    chosen: Options = {"targets": {"new": "exposure:new", "other": "exposure:other", "log": "exposure:propensity"}}
    yield _off("bandit", {**bandit, **chosen, "clips": CLIPS}, group=group, data="bandit")
    yield _off(
        "bandit/users",
        {**bandit, **chosen, "columns": [*bandit["columns"], "user"], "clips": "3,inf"},
        group=group,
        data="bandit",
    )
    yield _off("bandit/few", {**bandit, **chosen, "log": "few"}, group=group, data="bandit")
    yield _off(
        "bandit/rewards",
        {**bandit, **chosen, "columns": [*bandit["columns"], "spent"], "rewards": ["reward", "spent"]},
        group=group,
        data="bandit",
    )
    yield _off("few", {"log": "few", "columns": COUNTED, "clips": "2,inf", "estimators": EVERY}, group=group)
    yield _off("one user", {"log": "one user", "columns": COUNTED}, group=group)
    yield _off("one session", {"log": "one session", "columns": COUNTED}, group=group)
    yield _off("silent", {"columns": COUNTED, "targets": TABLES}, group=group, data="silent feed")
    yield _off("silent/ndcg", {"columns": COUNTED, "estimators": ["ndcg"]}, group=group, data="silent feed")
    yield _off("refused/design", {"interval": "design"}, group=group)
    yield _off("refused/no model", {"position": None}, group=group)
    for clips in ("auto", "1,inf"):
        yield _off(
            f"clips/{clips}",
            {"clips": clips, "columns": COUNTED, "rewards": ["click", "dwell"], "targets": TABLES},
            group=group,
        )
    yield _off(
        "clips/auto/all",
        {"clips": "auto", "columns": COUNTED, "estimators": ["ips", "dcg-log-debiased", "dcg-raw"]},
        group=group,
    )
    redrawn: dict[str, Options] = {
        "columns": {"columns": COUNTED, "clips": "2,inf"},
        "no users": {"columns": BASE},
        "tables": {"targets": TABLES, "estimators": ["ips", "snips", "post-normalised", "ndcg"]},
        "bandit": {**bandit, **chosen},
        "loggers": {"columns": [*COUNTED, "logger", "a", "b"], "loggers": {"a": "rank:a", "b": "rank:b"}},
    }
    for name, options in redrawn.items():
        data = {"bandit": "bandit", "loggers": "loggers by user"}.get(name, "feed")
        yield _off(
            f"bootstrap/{name}",
            {**options, "interval": "bootstrap:300"},
            group="offpolicy-resampled",
            data=data,
        )


def _offpolicy_positions() -> Iterator[Call]:
    group = "offpolicy-positions"
    shown: Options = {"columns": COUNTED, "clips": "4,inf"}
    for text in (
        "exp:0.75",
        "exp:0.9@8",
        "yule:1.2",
        "log",
        "log:3",
        "log@10",
        "table:1:0.8:0.6:0.5:0.45:0.4:0.35:0.3:0.3:0.2:0.2:0.1",
    ):
        log = "short" if "@" in text else "viewed"
        yield _off(
            f"position/{text}",
            {
                **shown,
                "log": log,
                "position": text,
                "targets": {"new": "table:table", "other": "rank:other", "log": "log"},
            },
            group=group,
        )
    places = [*USERS, "surface", "group"]
    for name, text in {
        "surface": "main=exp:0.7,side=yule:1.5",
        "group": "*/old=exp:0.7,*/young=exp:0.85",
        "default": "*=log,side=exp:0.8",
        "both": "main=exp:0.8,side/old=yule:1.4,side/young=log",
    }.items():
        yield _off(f"position/by {name}", {"columns": places, "position": text, "clips": "4,inf"}, group=group)
        surface = {"new": "table:surface table", "other": "table:other table"}
        yield _off(f"position/by {name}/table", {"columns": places, "position": text, "targets": surface}, group=group)
    group = "offpolicy-resampled"
    for family in ("exp", "yule", "log", "table"):
        exact = EXACT if family in ("exp", "table") else ITERATED
        yield _off(f"fit/{family}", {**shown, "position": f"fit:{family}"}, group=group, exact=exact)
    yield _off("fit/exp@6", {"position": "fit:exp@6", "log": "short", "columns": BASE}, group=group)
    yield _off(
        "fit/exp/tables",
        {"position": "fit:exp", "targets": TABLES, "estimators": ["ips", "snips", "ndcg"]},
        group=group,
    )
    yield _off(
        "fit/exp/flagged", {"position": "fit:exp", "log": "displayed", "columns": [*USERS, "viewed"]}, group=group
    )
    yield _off(
        "fit/by surface", {"position": "main=fit:exp,side=fit:yule", "columns": places}, group=group, exact=ITERATED
    )
    yield _off("fit/by group", {"position": "*/old=fit:exp,*/young=exp:0.8", "columns": places}, group=group)
    yield _off("fit/small", {"position": "fit:exp", "rewards": ["click"]}, data="small feed", group=group)
    several: Options = {"columns": [*COUNTED, "logger", "a", "b"], "loggers": {"a": "rank:a", "b": "rank:b"}}
    yield _off("fit/loggers", {**several, "position": "fit:exp"}, data="loggers by user", group=group)
    yield _off("fit/declared", {"position": "fit:exp", "columns": COUNTED, "sessions": "sessions"}, group=group)
    blank = {"blank": "rank:blank", "partial": "table:partial table"}
    yield _off("fit/blank", {"position": "fit:exp", "targets": blank, "clips": "2,inf"}, group=group)
    yield _off("fit/one user", {"position": "fit:exp", "log": "one user"}, group=group)
    displayed: Options = {"log": "displayed", "rows": "displayed", "estimators": ["ips"], "targets": NEW}
    for family in ("clicks", "harvest"):
        yield _off(
            f"fit/{family}",
            {**displayed, "position": f"fit:{family}"},
            data="shuffled feed",
            group=group,
            exact=ITERATED,
        )
    yield _off("fit/refused", {"position": "fit:exp", "interval": "bootstrap:200"}, group=group)
    yield _off(
        "fit/folds",
        {"position": "fit:exp", "targets": {"new": "table:table"}, "estimators": ["doubly-robust"]},
        group=group,
    )


def calls() -> Iterator[Call]:
    yield from _offpolicy_estimators()
    yield from _offpolicy_logs()
    yield from _offpolicy_positions()
