"""LightFM: factors of users, items and their features, fitted by lightfm."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np
from scipy.sparse import coo_matrix

from truerank.core.chance import library_seed
from truerank.core.errors import InputError, extra
from truerank.core.log import Log
from truerank.core.progress import Watching, watching
from truerank.models import NOTHING_BESIDE, Model, Side
from truerank.models.features import indicators
from truerank.models.matrix import check_factors, one_thread, positives
from truerank.models.settings import LogUniform, OneOf, WholeNumbers, load, setting
from truerank.ranking.scores.scores import Factors, factors


class LightFMLoss(StrEnum):
    """What LightFM minimises: WARP and BPR rank positives above drawn items, LOGISTIC fits the positives alone."""

    WARP = "warp"
    BPR = "bpr"
    LOGISTIC = "logistic"


@dataclass(frozen=True, slots=True)
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

    components: int = setting(32, "numbers that describe a feature", least=1, search=WholeNumbers(10, 200))
    loss: LightFMLoss = setting(LightFMLoss.WARP, "what is minimised", search=OneOf(tuple(LightFMLoss)))
    epochs: int = setting(20, "passes over the positives", least=1, search=WholeNumbers(10, 50))
    user_alpha: float = setting(1e-6, "penalty on features of users", least=0, search=LogUniform(1e-6, 1e-2))
    item_alpha: float = setting(1e-6, "penalty on features of items", least=0, search=LogUniform(1e-6, 1e-2))
    name: ClassVar[str] = "lightfm"
    about: ClassVar[str] = "Factors of users and items and of their features, where given (lightfm, one thread)."
    needs: ClassVar[str | None] = "lightfm"

    def fit(self, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Factors:
        liked = positives(log).tocoo()
        liked = coo_matrix((liked.data.astype(np.float32), (liked.row, liked.col)), shape=liked.shape)
        user_features = indicators(side.user_features, log.users, kind="user")
        item_features = indicators(side.item_features, log.items, kind="item")
        check_factors(self.name, log, self.components, bytes_each=12.0)  # with the state of adadelta
        library = load("lightfm", install=extra("lightfm"), who=self.name)
        with watching(progress) as say, one_thread():
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
                if say is not None:
                    say("fitting lightfm", epoch + 1, self.epochs)
            _, user = model.get_user_representations(user_features)
            bias, item = model.get_item_representations(item_features)
        alone = np.diff(user_features.indptr) == 1  # users whose only feature is themselves
        user[alone & (np.bincount(liked.row, minlength=len(log.users)) == 0)] = 0.0
        return factors(user, item, item_bias=bias, users=log.users, items=log.items)
