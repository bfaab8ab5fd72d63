"""How far estimates of mean recall are from it: draws of a fully observed world, whose users are redrawn each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from truerank.core.chance import generator
from truerank.core.estimator import Asked, Estimator, Learned
from truerank.core.ranking import JudgedChunk, RankView
from truerank.estimators.judged.corrected import Corrected
from truerank.estimators.judged.full import Full
from truerank.estimators.judged.published import Published
from truerank.metrics.recall import Recall
from truerank.studies.coverage import ObservedWorld, Uniformly
from truerank.uncertainty.intervals import Population
from truerank.uncertainty.modelled import distrust

ESTIMATORS: tuple[Estimator, ...] = (Published(), Corrected())
SCHEMA = {
    "run": pl.Int64, "judged": pl.Int64, "k": pl.Int64, "what": pl.String, "estimator": pl.String,
    "truth": pl.Float64, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "p": pl.Float64,
    "distrusted": pl.Boolean,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MeanRecallDraws:
    """What is drawn of a world: judged items per user, cut-offs, estimators; values and differences of models."""

    world: ObservedWorld
    judged: Sequence[int]
    cutoffs: Sequence[int]
    seed: int
    estimators: Sequence[Estimator] = ESTIMATORS

    def truths(self) -> dict[tuple[str, int], float]:
        """The mean recall of every model at every cut-off."""
        metrics = [Recall(k) for k in self.cutoffs]
        chunk, learned = JudgedChunk(self.world.labels, {}), Learned()
        found: dict[tuple[str, int], float] = {}
        for name, ranks in self.world.ranks.items():
            asked = [Asked(metric) for metric in metrics]
            parts = Full().terms(chunk, RankView(ranks), asked=asked, learned=learned)
            found |= {(name, k): part.value() for k, part in zip(self.cutoffs, parts, strict=True)}
        return found

    def run(self, run: int, truths: Mapping[tuple[str, int], float]) -> pl.DataFrame:
        """One draw of users and of their judged items, for every number; a row for each value and difference."""
        rows: list[tuple[object, ...]] = []
        names = list(self.world.ranks)
        pairs = [(b, a) for at, a in enumerate(names) for b in names[at + 1 :]]
        for n in self.judged:
            rng = generator(self.seed, f"mean recall {n} {run}")
            units = rng.integers(0, self.world.n_users, self.world.n_users)
            log, ranks = Uniformly(n)(self.world, units=units, rng=rng)
            chunk = JudgedChunk(log, {})
            for k in self.cutoffs:
                for estimator in self.estimators:
                    asked = [Asked(Recall(k))]
                    terms = {
                        name: estimator.terms(chunk, RankView(each), asked=asked, learned=Learned())[0]
                        for name, each in ranks.items()
                    }
                    alone, apart = Population().spreads(terms, pairs, level=0.95)
                    doubted = {name: bool(distrust(part, name)) for name, part in terms.items()}
                    about = estimator.about.name
                    for name, found in alone.items():
                        said = (found.value, found.low, found.high, found.p, doubted[name])
                        rows.append((run, n, k, name, about, truths[name, k], *said))
                    for (b, a), found in apart.items():
                        said = (found.value, found.low, found.high, found.p, doubted[a] or doubted[b])
                        rows.append((run, n, k, f"{b} - {a}", about, truths[b, k] - truths[a, k], *said))
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def mean_recall_table(draws: pl.DataFrame) -> pl.DataFrame:
    """Of all draws: bias as a share of the truth, root mean squared error over that of `published`, coverage, signs.

    >>> rows = [(run, 20, 5, "m", name, 0.5, value, 0.4, 0.7, 0.0, False) for run, name, value in
    ...         [(0, "published", 0.3), (0, "corrected", 0.6)]]
    >>> mean_recall_table(pl.DataFrame(rows, schema=SCHEMA, orient="row")).select("estimator", "bias", "error").rows()
    [('corrected', 0.2, 0.5), ('published', -0.4, 1.0)]
    """
    by = ["judged", "k", "what"]
    error = ((pl.col("value") - pl.col("truth")) ** 2).mean().sqrt()
    found = draws.group_by(*by, "estimator").agg(
        truth=pl.col("truth").first(),
        bias=((pl.col("value").mean() - pl.col("truth").first()) / pl.col("truth").first().abs()).round(6),
        rmse=error,
        covered=((pl.col("low") <= pl.col("truth")) & (pl.col("truth") <= pl.col("high"))).mean(),
        right_sign=(pl.col("value").sign() == pl.col("truth").sign()).mean(),
        width=(pl.col("high") - pl.col("low")).mean(),
        distrusted=pl.col("distrusted").mean(),
        draws=pl.len(),
    )
    published = found.filter(pl.col("estimator") == "published").select(*by, usual="rmse", usual_bias="bias")
    joined = found.join(published, on=by, how="left").with_columns(error=(pl.col("rmse") / pl.col("usual")).round(6))
    return joined.sort(*by, "estimator")
