"""ALS: factors of implicit feedback by alternating least squares, fitted by implicit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truerank.core.chance import library_seed
from truerank.core.errors import extra
from truerank.core.log import Log
from truerank.core.progress import Watching, watching
from truerank.models import NOTHING_BESIDE, Model, Side
from truerank.models.implicit_library import FACTORS, ITERATIONS, REGULARISATION, as_input, callback
from truerank.models.matrix import check_factors, counts, one_thread
from truerank.models.settings import WholeNumbers, load, setting
from truerank.ranking.scores.scores import Factors, factors


@dataclass(frozen=True, slots=True)
class ALS(Model):
    """Factors that minimise Σ_{u,i} c_ui (p_ui - x_u · y_i)² + λ(Σ‖x_u‖² + Σ‖y_i‖²) (Hu, Koren and Volinsky 2008).

    p_ui is 1 for pairs with positive rows and 0 for all others, c_ui = 1 + α · number of positive rows. Solved by
    implicit with conjugate gradients, which is given 1 + α · number as its confidence. A user or an item without
    positives has factors 0, hence scores 0.

    One user, one item, one factor: x = c y / (c y² + λ) and the same for y, hence x² = y² = 1 - λ/c, the score:

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1], "item": [7]}))
    >>> ALS(factors=1, iterations=50, regularisation=0.5, alpha=1.0).fit(log, seed=0).block([0]).round(4).tolist()
    [[0.75]]
    """

    factors: int = setting(32, "numbers that describe a user or an item", least=1, search=FACTORS)
    iterations: int = setting(15, "rounds of both sides", least=1, search=ITERATIONS)
    regularisation: float = setting(0.1, "λ", least=0, search=REGULARISATION)
    alpha: float = setting(10.0, "α: how much a positive row counts more than an unlisted pair", least=0,
                           search=WholeNumbers(1, 100))  # fmt: skip
    name: ClassVar[str] = "als"
    about: ClassVar[str] = "Factors of implicit feedback by alternating least squares (implicit)."
    needs: ClassVar[str | None] = "models"

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Factors:
        confidence = counts(log)
        confidence.data[:] = 1 + self.alpha * confidence.data
        check_factors(self.name, log, self.factors)
        library = load("implicit.cpu.als", install=extra("models"), who=self.name)
        with watching(progress) as say, one_thread():
            model = library.AlternatingLeastSquares(
                factors=self.factors,
                iterations=self.iterations,
                regularization=self.regularisation,
                random_state=library_seed(seed, self.name),
            )
            model.fit(as_input(confidence), show_progress=False, callback=callback(say, "fitting als", self.iterations))
        return factors(model.user_factors, model.item_factors, users=log.users, items=log.items)
