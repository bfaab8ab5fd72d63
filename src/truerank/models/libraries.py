"""Factors fitted by other libraries, on one thread: ALS and BPR by implicit, LightFM by lightfm.

Feature tables are 0/1 matrices there: every value of a column is one feature.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl
from scipy.sparse import coo_matrix, csr_matrix

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError, extra
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.progress import Watching, watching
from truerank.core.record import record
from truerank.core.rng import library_seed
from truerank.core.values import Count, NotNegative, Positive
from truerank.models import NOTHING_BESIDE, Model, Side, load
from truerank.models.matrix import check_factors, counts, one_thread, positives
from truerank.ranking.scores.scores import Factors, factors


@record
class ALS(Model):
    """Factors that minimise Σ_{u,i} c_ui (p_ui - x_u · y_i)² + λ(Σ‖x_u‖² + Σ‖y_i‖²) (Hu, Koren and Volinsky 2008).

    p_ui is 1 for pairs with positive rows and 0 for all others, c_ui = 1 + α · number of positive rows. Solved by
    implicit with conjugate gradients, which gets 1 + α · number as its confidence. A user or an item without positives
    has factors 0, hence scores 0.

    One user, one item, one factor: x = c y / (c y² + λ) and the same for y, hence x² = y² = 1 - λ/c, the score:

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1], "item": [7]}))
    >>> ALS(factors=1, iterations=50, regularisation=0.5, alpha=1.0).fit(log, seed=0).block([0]).round(4).tolist()
    [[0.75]]
    """

    factors: Annotated[Count, "numbers that describe a user or an item"] = 32
    iterations: Annotated[Count, "rounds of both sides"] = 15
    regularisation: Annotated[NotNegative, "λ"] = 0.1
    alpha: Annotated[NotNegative, "α: how much a positive row counts more than an unlisted pair"] = 10.0
    name: ClassVar[str] = "als"
    summary: ClassVar[str] = "Factors of implicit feedback by alternating least squares (implicit)."
    needs: ClassVar[str | None] = "models"

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Factors:
        confidence = counts(log)
        confidence.data[:] = 1 + self.alpha * confidence.data
        settings = {"factors": self.factors, "iterations": self.iterations, "regularization": self.regularisation}
        return _by_implicit(
            "AlternatingLeastSquares", log, confidence, settings, name=self.name, seed=seed, progress=progress
        )


@record
class BPR(Model):
    """Factors and item biases by gradient steps on -ln σ(s_ui - s_uj) + λ‖·‖² (Rendle et al. 2009).

    i is a positive of u, j an item drawn uniformly that is none. Fitted by implicit on one thread: several would race,
    and no two runs would agree. A user without positives has factors 0, so that the item biases alone decide; an item
    without positives has factors and bias 0.

    Whoever likes 7 or 8 likes both, and the same for 5 and 6: user 1 gets 8 next, user 2 gets 6.

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 3, 3, 4, 4], "item": [7, 5, 7, 8, 5, 6]}))
    >>> scores = BPR(factors=4, iterations=200).fit(log, seed=0).block([0, 1])  # of items 5, 6, 7, 8
    >>> bool(scores[0, 3] > scores[0, 1]), bool(scores[1, 1] > scores[1, 3])
    (True, True)
    """

    factors: Annotated[Count, "numbers that describe a user or an item"] = 32
    iterations: Annotated[Count, "passes over the positives"] = 50
    regularisation: Annotated[NotNegative, "λ"] = 0.01
    learning_rate: Annotated[Positive, "size of a step"] = 0.05
    name: ClassVar[str] = "bpr"
    summary: ClassVar[str] = "Factors that rank positives above other items (implicit, one thread)."
    needs: ClassVar[str | None] = "models"

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Factors:
        settings = {
            "factors": self.factors, "iterations": self.iterations, "regularization": self.regularisation,
            "learning_rate": self.learning_rate, "num_threads": 1,
        }  # fmt: skip
        return _by_implicit(
            "BayesianPersonalizedRanking", log, positives(log), settings, name=self.name, seed=seed, progress=progress
        )


def _by_implicit(
    cls: str, log: Log, matrix: Any, settings: dict[str, Any], *, name: str, seed: int, progress: Watching
) -> Factors:
    """The factors of a model of implicit, given a matrix in the one form that it takes without a warning."""
    check_factors(name, log, settings["factors"])
    library = load(f"implicit.cpu.{name}", install=extra("models"), who=name)
    places = (matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
    data = csr_matrix((matrix.data.astype(np.float32), *places), shape=matrix.shape)
    with watching(progress) as report, one_thread():
        callback: Callable[..., None] | None = None
        if report is not None:

            def callback(iteration: int, *rest: Any) -> None:
                report(f"fitting {name}", iteration + 1, settings["iterations"])

        model = getattr(library, cls)(**settings, random_state=library_seed(seed, name))
        model.fit(data, show_progress=False, callback=callback)
    return factors(model.user_factors, model.item_factors, users=log.users, items=log.items)


class LightFMLoss(StrEnum):
    """What LightFM minimises: WARP and BPR rank positives above drawn items, LOGISTIC fits the positives alone."""

    WARP = "warp"
    BPR = "bpr"
    LOGISTIC = "logistic"


@record
class LightFM(Model):
    """s_ui = p_u · q_i + b_u + b_i, each the sum over the features of the user or item (Kula 2015), by Adadelta.

    Without feature tables every user and item has one feature, itself: plain factors. With user or item features (Side)
    these are added to it. Fitted on one thread: several would race, and no two runs would agree. A user without
    positives and without features has factors 0, so that the item biases alone decide. WARP draws items until one
    scores above the positive less 1, and steps by ln of how few it took. Adadelta sets its own steps: there is no
    learning rate to choose.

    Whoever likes 7 or 8 likes both, and the same for 5 and 6: user 1 gets 8 next, user 2 gets 6.

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 2, 3, 3, 4, 4], "item": [7, 5, 7, 8, 5, 6]}))
    >>> scores = LightFM(components=4, epochs=100).fit(log, seed=0).block([0, 1])  # of items 5, 6, 7, 8
    >>> bool(scores[0, 3] > scores[0, 1]), bool(scores[1, 1] > scores[1, 3])
    (True, True)
    """

    components: Annotated[Count, "numbers that describe a feature"] = 32
    loss: Annotated[LightFMLoss, "what is minimised"] = LightFMLoss.WARP
    epochs: Annotated[Count, "passes over the positives"] = 20
    user_alpha: Annotated[NotNegative, "penalty on features of users"] = 1e-6
    item_alpha: Annotated[NotNegative, "penalty on features of items"] = 1e-6
    name: ClassVar[str] = "lightfm"
    summary: ClassVar[str] = "Factors of users and items and of their features, where given (lightfm, one thread)."
    needs: ClassVar[str | None] = "lightfm"

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Factors:
        liked = positives(log).tocoo()
        liked = coo_matrix((liked.data.astype(np.float32), (liked.row, liked.col)), shape=liked.shape)
        user_features = indicators(side.user_features, log.users, kind="user")
        item_features = indicators(side.item_features, log.items, kind="item")
        check_factors(self.name, log, self.components, bytes_each=12.0)  # with the state of adadelta
        library = load("lightfm", install=extra("lightfm"), who=self.name)
        with watching(progress) as report, one_thread():
            model = library.LightFM(
                no_components=self.components,
                loss=self.loss.value,
                learning_schedule="adadelta",
                user_alpha=self.user_alpha,
                item_alpha=self.item_alpha,
                random_state=library_seed(seed, self.name),
            )
            for epoch in range(self.epochs):
                try:
                    with np.errstate(invalid="ignore"):
                        model.fit_partial(liked, user_features, item_features, epochs=1, num_threads=1)
                except ValueError:
                    raise InputError(
                        f"{self.name}: the fit diverged in epoch {epoch + 1} with user_alpha={self.user_alpha:g} and "
                        f"item_alpha={self.item_alpha:g}; expected finite factors. Take smaller penalties."
                    ) from None
                if report is not None:
                    report("fitting lightfm", epoch + 1, self.epochs)
            _, user = model.get_user_representations(user_features)
            bias, item = model.get_item_representations(item_features)
        alone = np.diff(user_features.indptr) == 1  # users whose only feature is themselves
        user[alone & (np.bincount(liked.row, minlength=len(log.users)) == 0)] = 0.0
        return factors(user, item, item_bias=bias, users=log.users, items=log.items)


QUARTILES = (0.25, 0.5, 0.75)


def indicators(table: pl.DataFrame | None, ids: Ids, *, kind: str) -> Any:
    """Ids x features, 1 where an id has a feature: itself, and one for each value of each column of the table.

    Text, whole numbers and true/false are categories; of a list every member is one; decimal numbers are cut at their
    quartiles into four. An empty cell is no feature; ids without a row have themselves alone; rows of other ids are
    left out. Each id has at most one row.

    >>> table = pl.DataFrame({"item": ["a", "b"], "genre": [["x", "y"], ["y"]]})
    >>> indicators(table, Ids.of(["a", "b"]), kind="item").toarray().tolist()
    [[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]]
    """
    n = len(ids)
    rows, columns, width = [np.arange(n)], [np.arange(n)], n
    for row, value, size in [] if table is None else _columns(table, ids, kind=kind):
        rows.append(row)
        columns.append(width + value)
        width += size
    row, column = np.concatenate(rows), np.concatenate(columns)
    return csr_matrix((np.ones(len(row), dtype=np.float32), (row, column)), shape=(n, width))


def _columns(table: pl.DataFrame, ids: Ids, *, kind: str) -> list[tuple[Ints, Ints, int]]:
    """Of each feature column: row, number of the value, how many values there are."""
    if kind not in table.columns:
        raise InputError(f"{kind} features: no column {kind!r}; found {', '.join(table.columns) or 'no columns'}.")
    if len(table.columns) == 1:
        raise InputError(f"{kind} features: only the column {kind!r}; expected features beside it.")
    index = ids.locate(table[kind], where=f"{kind} features, column {kind!r}")
    known = np.flatnonzero(index >= 0)
    if len(known) == 0:
        raise InputError(f"{kind} features: none of the {kind}s is one of the log; expected some in common.")
    if len(np.unique(index[known])) < len(known):
        raise InputError(f"{kind} features: some {kind}s have several rows; expected one row for each.")
    kept = table[known]
    return [
        _column(pl.DataFrame({"at": index[known], "value": kept[name]}), where=f"{kind} features, column {name!r}")
        for name in table.columns
        if name != kind
    ]


def _column(pairs: pl.DataFrame, *, where: str) -> tuple[Ints, Ints, int]:
    kind = pairs["value"].dtype
    if isinstance(kind, pl.List | pl.Array):
        if isinstance(kind.inner, pl.List | pl.Array):
            raise InputError(f"{where}: {kind}; expected text, numbers, true/false or flat lists of these. Flatten it.")
        pairs = pairs.explode("value").unique(maintain_order=True)
    pairs = pairs.drop_nulls()
    if pairs["value"].dtype.is_float():
        value = pairs["value"].to_numpy()
        bins = np.searchsorted(_cuts(value), value, side="left") if len(value) else np.zeros(0, dtype=np.int64)
        pairs = pairs.with_columns(pl.Series("value", bins))
    try:
        text = pairs["value"].cast(pl.String)
    except pl.exceptions.PolarsError:
        raise InputError(
            f"{where}: {kind} whose values are no text, as bytes that are not UTF-8; expected text, numbers, "
            "true/false or flat lists of these. Write them as text."
        ) from None
    distinct, place = np.unique(text.to_numpy().astype(str), return_inverse=True)
    return pairs["at"].to_numpy().astype(np.int64), place.astype(np.int64), len(distinct)


def _cuts(value: Floats) -> Floats:
    if not np.isfinite(value).all():
        raise InputError("features: a number is NaN or infinite; expected finite numbers or empty cells.")
    return np.unique(np.quantile(value, QUARTILES))
