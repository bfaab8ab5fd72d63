"""BPR: factors that rank positives above the rest, fitted by implicit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truerank.core.chance import library_seed
from truerank.core.errors import extra
from truerank.core.log import Log
from truerank.core.progress import Watching, watching
from truerank.models import NOTHING_BESIDE, Model, Side
from truerank.models.implicit_library import FACTORS, ITERATIONS, REGULARISATION, as_input, callback
from truerank.models.matrix import check_factors, one_thread, positives
from truerank.models.settings import LogUniform, load, setting
from truerank.ranking.scores.scores import Factors, factors


@dataclass(frozen=True, slots=True)
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

    factors: int = setting(32, "numbers that describe a user or an item", least=1, search=FACTORS)
    iterations: int = setting(50, "passes over the positives", least=1, search=ITERATIONS)
    regularisation: float = setting(0.01, "λ", least=0, search=REGULARISATION)
    learning_rate: float = setting(0.05, "size of a step", above=0, search=LogUniform(1e-4, 0.1))
    name: ClassVar[str] = "bpr"
    about: ClassVar[str] = "Factors that rank positives above other items (implicit, one thread)."
    needs: ClassVar[str | None] = "models"

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Factors:
        liked = as_input(positives(log))
        check_factors(self.name, log, self.factors)
        library = load("implicit.cpu.bpr", install=extra("models"), who=self.name)
        with watching(progress) as say, one_thread():
            model = library.BayesianPersonalizedRanking(
                factors=self.factors,
                iterations=self.iterations,
                regularization=self.regularisation,
                learning_rate=self.learning_rate,
                num_threads=1,
                random_state=library_seed(seed, self.name),
            )
            model.fit(liked, show_progress=False, callback=callback(say, "fitting bpr", self.iterations))
        return factors(model.user_factors, model.item_factors, users=log.users, items=log.items)
