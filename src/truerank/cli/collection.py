"""What the options of `truerank evaluate` say about exposure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truerank.cli.inputs import column_names, read_log
from truerank.cli.options import Call, choice, file, shared
from truerank.core.errors import InputError

if TYPE_CHECKING:
    from truerank.exposure.kinds import Exposure
    from truerank.exposure.propensities import PropensityModel
    from truerank.io.features import Features
    from truerank.io.log_schema import LogSchema

MEANINGS = (
    "holdout: held out of a log, other pairs count as irrelevant; random: a uniform random sample of candidates; "
    "designed: drawn with known probabilities; biased: what a system exposed; full: every candidate is labelled."
)
LIKE = choice(
    "--like",
    ["trec_eval", "pytrec_eval", "ir-measures", "ranx", "rectools", "lenskit", "recbole", "replay", "implicit"],
    help="With --exposure holdout: the metric definitions and users of that tool, so that values equal its own.",
)
COLLECTION = (
    choice(
        "--exposure", ["full", "holdout", "random", "designed", "biased"],
        help=f"How the labels were collected. {MEANINGS} Other options can decide it, and so do "
        "a column propensity (biased) and TREC qrels (holdout).",
    ),
    "unlisted: What a missing pair means, with --exposure full.",
    file("--design", metavar="DIR",
         help="With --exposure designed: the folder of plan exposure --allocate, with which labels are joined; without "
         "it they have a column propensity."),
    shared("--rate", type=float, help="Random exposure by independent draws with this probability."),
    shared(
        "--propensity", metavar="COLUMN|MODEL",
        help="Exposure probability of each row, with --exposure biased: a column of LABELS (default: propensity), or "
        "power:0.5, naive-bayes (needs --random), logistic (needs features).",
    ),
    "random",
    "user-features: A table user,... for --propensity logistic.",
    "item-features: A table item,... for --propensity logistic, and for --metric Diversity@K.",
)  # fmt: skip


TABLES = ("random", "user_features", "item_features")
# the options that go with one exposure alone, which they decide where --exposure does not
DECIDE = {"like": "holdout", "design": "designed", "rate": "random", "propensity": "biased"}


def with_exposure(call: Call, *, compared: bool) -> Call:
    """A call with its exposure, which other options or the labels may decide; where nothing does, it is asked for.

    Options that do not go with the exposure are refused before anything is read. Where items of lists are `compared`,
    their features go with every exposure.
    """
    call = call if call.exposure else call.changed(exposure=_decided_exposure(call))
    given = {name: value for name, value in call.values.items() if value is not None and value != ()}
    for name, exposure in DECIDE.items():
        if name in given and call.exposure != exposure != "biased":
            value = f" {call.like}" if name == "like" else ""
            raise InputError(f"--{name}{value} goes with --exposure {exposure}.")
    if call.unlisted != "unknown" and call.exposure != "full":
        means = "taken as irrelevant by convention" if call.exposure == "holdout" else "unknown"
        raise InputError(
            f"--unlisted negative states a fact, and goes with --exposure full: with {call.exposure} exposure a pair "
            f"that is not listed is {means}."
        )
    biased = ["propensity", *TABLES[: 2 if compared else 3], "clip", "reward_model"]
    names = [f"--{name.replace('_', '-')}" for name in biased if name in given]
    if names and call.exposure != "biased":
        raise InputError(f"{', '.join(names)} {'goes' if len(names) == 1 else 'go'} with --exposure biased.")
    return call


def _decided_exposure(call: Call) -> str:
    named = [exposure for name, exposure in DECIDE.items() if call.values.get(name) is not None]
    named += ["full"] if call.unlisted != "unknown" else []
    if not named:
        from truerank.io.batches import LazyTable
        from truerank.io.columns import with_usual

        columns = LazyTable.of(call.labels).columns
        names = with_usual(columns, column_names(call), ("propensity",))
        named += ["biased"] if names.get("propensity", "propensity") in columns else []
        named += ["holdout"] if ".qrels" in call.labels.suffixes else []
    if not named:
        raise InputError(f"--exposure is missing: how {call.labels} was collected. {MEANINGS}")
    return named[0]


def with_propensities(call: Call, *, compared: bool) -> tuple[PropensityModel | None, Call]:
    """The model of propensities, and the call with the column that holds them; what is no model is a column.

    Files that nothing uses are refused: who gives one expects it to matter.
    """
    from truerank.exposure import propensities

    models = propensities.catalogue()
    model: Any = None
    used: Any = models["column"]
    if call.propensity is not None:
        name, _, option = (part.strip() for part in call.propensity.partition(":"))
        kind = name.partition("(")[0].strip().lower()
        if kind == "column" or kind not in models:
            column = option if kind == "column" and option else call.propensity.strip()
            call = call.changed(propensity_column={"propensity": column})
        else:
            used = model = propensities.parse_propensity(call.propensity)
    for name in TABLES:
        if getattr(call, name) is not None and name not in {*used.uses, *["item_features"] * compared}:
            users = " or ".join(f"--propensity {key}" for key, kind in models.items() if name in kind.uses)
            what = "a column of propensities" if model is None else f"--propensity {model}"
            raise InputError(f"--{name.replace('_', '-')} is not used by {what}; it goes with {users}. Leave one out.")
    return model, call


def read_exposure(call: Call, model: PropensityModel | None) -> Exposure:
    from truerank.exposure import kinds

    if call.exposure == "full":
        return kinds.FullExposure(kinds.Unlisted(call.unlisted))
    if call.exposure == "holdout":
        return kinds.HoldoutExposure()
    if call.exposure == "random":
        return kinds.RandomExposure(call.rate)
    if call.exposure == "designed":
        return kinds.DesignedExposure(call.design)
    uses = frozenset() if model is None else model.uses
    features = {f"{kind}_features": read_features(call, kind) for kind in ("user", "item")
                if f"{kind}_features" in uses}  # fmt: skip
    return kinds.BiasedExposure(model, random=read_log(call, "random"), **features)


def read_features(call: Call, kind: str, *, every: bool = False) -> Features | None:
    """Features of users or items; with `every`, each text of items is a column: to tell how different items are."""
    from truerank.io import features

    role = f"{kind}_features"
    path = getattr(call, role)
    if path is None:
        return None
    return features.read_features(path, kind=kind, columns=column_names(call, role), every=every)


def check_propensities(call: Call, labels: LogSchema, model: PropensityModel | None) -> None:
    """A log must have the column of propensities that was named, unless they are to be fitted."""
    if labels.has("propensity"):
        return
    if call.exposure == "designed" and call.design is None:
        raise InputError(
            f"{labels.table.where}: no column 'propensity' with the chance under which each row was drawn. Name the "
            "design: --design DIR, the folder that truerank plan exposure --allocate wrote."
        )
    if call.exposure == "biased" and model is None:
        from truerank.exposure import propensities

        models = ", ".join(name for name in propensities.catalogue() if name != "column")
        raise InputError(
            f"{labels.table.where}: no column {labels.mapping.get('propensity', 'propensity')!r} with the propensity "
            "of each row. Name it: --propensity COLUMN; or have propensities estimated: --propensity MODEL, one of "
            f"{models}."
        )
