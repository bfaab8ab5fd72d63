"""What the options of `truerank evaluate` say about exposure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truerank.cli.groups import InputFile, Reading, input_files
from truerank.cli.options import choice, file, shared
from truerank.core.errors import InputError
from truerank.core.record import record

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
    help="With --exposure holdout: the metrics and users of that tool, so that numbers equal its own.",
)
COLLECTION = (
    choice(
        "--exposure", ["full", "holdout", "random", "designed", "biased"],
        help=f"How the labels were collected. {MEANINGS} Other options can decide it, and so do "
        "a column propensity (biased) and TREC qrels (holdout).",
    ),
    "unlisted: What a pair that is not listed means, with --exposure full.",
    file("--design", metavar="DIR",
         help="With --exposure designed: the folder of plan exposure --allocate, with which labels are joined; without "
         "it they have a column propensity."),
    shared("--rate", type=float, help="Random exposure by independent draws with this probability."),
    shared(
        "--propensity", metavar="COLUMN|MODEL",
        help="How likely each row was shown, with --exposure biased: a column of LABELS (default: propensity), or "
        "power:0.5, naive-bayes (needs --random), logistic (needs features).",
    ),
    "random",
    "user-features: A table user,... for --propensity logistic.",
    "item-features: A table item,... for --propensity logistic, and for --metric Diversity@K.",
)  # fmt: skip


@record(kw_only=True)
class Collection:
    """What the labels show, and how likely each row was shown."""

    exposure: str | None = None
    like: str | None = None
    unlisted: str = "unknown"
    design: Path | None = None
    rate: float | None = None
    propensity: str | None = None
    random: Path | None = None
    user_features: Path | None = None
    item_features: Path | None = None

    def decided(self, labels: Path, reading: Reading) -> Collection:
        """With the exposure that other options or the labels decide; where nothing does, it is asked for."""
        if self.exposure is not None:
            return self
        by_option = {
            "holdout": self.like is not None, "designed": self.design is not None, "random": self.rate is not None,
            "biased": self.propensity is not None, "full": self.unlisted != "unknown",
        }  # fmt: skip
        named = [exposure for exposure, is_named in by_option.items() if is_named]
        if not named:
            from truerank.io.batches import LazyTable
            from truerank.io.columns import with_usual

            columns = LazyTable.of(labels).columns
            by_file = {
                "biased": with_usual(columns, reading.mapping(), ("propensity",)).get("propensity", "propensity")
                in columns,
                "holdout": ".qrels" in labels.suffixes,
            }
            named = [exposure for exposure, is_named in by_file.items() if is_named]
        if not named:
            raise InputError(f"--exposure is missing: how {labels} was collected. {MEANINGS}")
        return replace(self, exposure=named[0])

    def files(self) -> list[InputFile]:
        """What is read: tables, and of a design what it shows."""
        shown = None if self.design is None else self.design / "shown.parquet"
        return input_files(**self._tables(), design=shown)

    def check(self, *, compared: bool, **biased: Any) -> None:
        """Options that do not go with the exposure are refused before anything is read; `biased` are further ones.

        Where items of lists are `compared`, their features go with every exposure.
        """
        if self.like is not None and self.exposure != "holdout":
            raise InputError(f"--like {self.like} goes with --exposure holdout.")
        if self.design is not None and self.exposure != "designed":
            raise InputError("--design goes with --exposure designed.")
        if self.rate is not None and self.exposure != "random":
            raise InputError("--rate goes with --exposure random.")
        if self.unlisted != "unknown" and self.exposure != "full":
            means = "taken as irrelevant by convention" if self.exposure == "holdout" else "unknown"
            raise InputError(
                f"--unlisted negative states a fact, and goes with --exposure full: with {self.exposure} exposure a "
                f"pair that is not listed is {means}."
            )
        options = {"propensity": self.propensity, **self._tables(), **biased}
        if compared:
            del options["item_features"]
        names = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
        if names and self.exposure != "biased":
            raise InputError(f"{', '.join(names)} {'goes' if len(names) == 1 else 'go'} with --exposure biased.")

    def model(self, reading: Reading) -> tuple[PropensityModel | None, Reading]:
        """The model of propensities, and reading with the column that holds them; what is no model is a column."""
        if self.propensity is None:
            return None, reading
        from truerank.exposure import propensities

        name, _, option = (part.strip() for part in self.propensity.partition(":"))
        model = name.partition("(")[0].strip().lower()
        if model == "column" or model not in propensities.catalogue():
            column = option if model == "column" and option else self.propensity.strip()
            return None, replace(reading, also={"propensity": column})
        return propensities.parse_propensity(self.propensity), reading

    def check_uses(self, model: PropensityModel | None, *, compared: bool) -> None:
        """Files that nothing uses are refused: who gives one expects it to matter."""
        tables = input_files(**self._tables())
        if not tables:
            return
        from truerank.exposure import propensities

        models = propensities.catalogue()
        uses = (models["column"].uses if model is None else model.uses) | ({"item_features"} if compared else set())
        for name in [table.role for table in tables if table.role not in uses]:
            users = " or ".join(f"--propensity {key}" for key, kind in models.items() if name in kind.uses)
            what = "a column of propensities" if model is None else f"--propensity {model}"
            raise InputError(f"--{name.replace('_', '-')} is not used by {what}; it goes with {users}. Leave one out.")

    def read(self, model: PropensityModel | None, reading: Reading) -> Exposure:
        from truerank.exposure.kinds import (
            BiasedExposure,
            DesignedExposure,
            FullExposure,
            HoldoutExposure,
            RandomExposure,
            Unlisted,
        )
        from truerank.io.features import read_features

        if self.exposure == "full":
            return FullExposure(Unlisted(self.unlisted))
        if self.exposure == "holdout":
            return HoldoutExposure()
        if self.exposure == "random":
            return RandomExposure(self.rate)
        if self.exposure == "designed":
            return DesignedExposure(self.design)
        uses = frozenset() if model is None else model.uses
        user, item = (
            None
            if path is None or f"{kind}_features" not in uses
            else read_features(path, kind=kind, columns=reading.for_file(f"{kind}_features").mapping())
            for kind, path in (("user", self.user_features), ("item", self.item_features))
        )
        random = None if self.random is None else reading.for_file("random").log(self.random)
        return BiasedExposure(model, random=random, user_features=user, item_features=item)

    def features(self, reading: Reading) -> Features | None:
        """Features of items, every text of which is a column: to tell how different items are."""
        from truerank.io.features import read_features

        path = self.item_features
        return (
            None
            if path is None
            else read_features(path, kind="item", columns=reading.for_file("item_features").mapping(), every=True)
        )

    def check_propensities(self, labels: LogSchema, model: PropensityModel | None) -> None:
        """A log must have the column of propensities that was named, unless they are to be fitted."""
        if self.exposure == "designed" and self.design is None and not labels.has("propensity"):
            raise InputError(
                f"{labels.table.where}: no column 'propensity' with the chance under which each row was drawn. Name "
                "the design: --design DIR, the folder that truerank plan exposure --allocate wrote."
            )
        if self.exposure != "biased" or model is not None or labels.has("propensity"):
            return
        from truerank.exposure import propensities

        models = ", ".join(name for name in propensities.catalogue() if name != "column")
        raise InputError(
            f"{labels.table.where}: no column {labels.mapping.get('propensity', 'propensity')!r} with the propensity "
            "of each row. Name it: --propensity COLUMN; or have propensities estimated: --propensity MODEL, one of "
            f"{models}."
        )

    def _tables(self) -> dict[str, Path | None]:
        return {
            "random": self.random,
            "user_features": self.user_features,
            "item_features": self.item_features,
        }
