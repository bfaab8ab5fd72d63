"""Models fitted with other libraries become Scores. A library is imported only if its model is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import as_array
from truerank.core.errors import InputError
from truerank.core.ids import IdColumn, Ids
from truerank.core.ranking import Scores
from truerank.io.text import TextTypes
from truerank.models import load
from truerank.ranking.scores.scores import factors, per_user, product
from truerank.ranking.scores.tables import lists, top

Named = Sequence[Any] | npt.NDArray[Any]  # ids in an order, each asked for by its place


def from_implicit(
    model: Any, *, users: IdColumn | Ids | None = None, items: IdColumn | Ids | None = None, history: Any = None
) -> Scores:
    """Scores of a model fitted with implicit: factors, or nearest items.

    `users` and `items` name the rows and columns of the matrix it was fitted on, in their order (0, 1, ... without). A
    nearest-item model keeps no users: `history` is the users x items matrix to recommend from.
    """
    if _fitted(model, "user_factors", "item_factors"):
        return factors(
            as_array(model.user_factors), as_array(model.item_factors), users=users, items=items, name="implicit"
        )
    if _fitted(model, "similarity"):
        if history is None:
            raise InputError(
                "from_implicit: a nearest-item model keeps no users; give history=..., the matrix users x items."
            )
        return product(history, model.similarity, users=users, items=items, name="implicit")
    raise _unfitted("from_implicit", model, "user_factors and item_factors, or similarity")


def from_lightfm(
    model: Any,
    *,
    users: IdColumn | Ids | None = None,
    items: IdColumn | Ids | None = None,
    user_features: Any = None,
    item_features: Any = None,
) -> Scores:
    """Scores of a model fitted with LightFM, or a fork of it; feature matrices as they were given to its `fit`.

    The bias of a user is left out: it changes no order.
    """
    if not _fitted(model, "user_embeddings", "item_embeddings"):
        raise _unfitted("from_lightfm", model, "user_embeddings and item_embeddings")
    _, user = model.get_user_representations(user_features)
    bias, item = model.get_item_representations(item_features)
    return factors(user, item, item_bias=bias, users=users, items=items, name="lightfm")


def from_lenskit(model: Any, *, users: Named, items: Named) -> Scores:
    """Scores of a trained LensKit pipeline, or of a trained scorer alone, for these users and items.

    What LensKit gives no score (an item or user it has not seen) is never recommended.
    """
    data, library = (load(module, install="lenskit", who="from_lenskit") for module in ("lenskit.data", "lenskit"))
    candidates = data.ItemList(item_ids=np.asarray(items))
    if not hasattr(model, "run") and not callable(model):
        raise _unfitted("from_lenskit", model, "a trained pipeline or scorer")

    def call(position: int) -> Any:
        user = users[position]
        result = library.score(model, user, candidates) if hasattr(model, "run") else model(user, candidates)
        if result.scores() is None:
            raise _unfitted("from_lenskit", model, "a component that gives scores")
        values = np.asarray(result.scores(), dtype=np.float64)
        return np.where(np.isnan(values), -np.inf, values)

    return per_user(call, users=users, items=items, name="lenskit")


def from_rectools(model: Any, dataset: Any) -> Scores:
    """Scores of a model fitted with RecTools for all users and items of its dataset, viewed ones too.

    What it does not list is never recommended.
    """
    if not getattr(model, "is_fitted", False) or not hasattr(model, "recommend"):
        raise _unfitted("from_rectools", model, "a fitted model with recommend")
    items = dataset.item_id_map.external_ids
    table = model.recommend(users=dataset.user_id_map.external_ids, dataset=dataset, k=len(items), filter_viewed=False)
    named = {"user": "user_id", "item": "item_id", "score": "score"}
    return lists(table[list(named.values())], columns=named, name="rectools")


def from_cornac(model: Any) -> Scores:
    """Scores of a model fitted with Cornac, for the users and items it was fitted on."""
    if not getattr(model, "uid_map", None) or not getattr(model, "iid_map", None):
        raise _unfitted("from_cornac", model, "uid_map and iid_map")
    users = sorted(model.uid_map, key=model.uid_map.__getitem__)[: model.num_users]
    items = sorted(model.iid_map, key=model.iid_map.__getitem__)[: model.num_items]

    def call(position: int) -> Any:
        result = np.asarray(model.score(position), dtype=np.float64)
        return np.full(len(items), float(result)) if result.ndim == 0 else result[: len(items)]

    return per_user(call, users=users, items=items, name="cornac")


def from_recbole(top_k: Any, dataset: Any, *, users: Any) -> Scores:
    """The lists of RecBole: what its `full_sort_topk(users, ...)` gave, (scores, items), by the names of its dataset.

    Users and items are RecBole's own numbers; their tokens become ids as they would be read from its files.
    """
    if not isinstance(top_k, tuple) or len(top_k) != 2 or not hasattr(dataset, "field2id_token"):
        raise InputError(
            "from_recbole: expected the two results of full_sort_topk(users, model, test_data, k), scores and items, "
            "and the dataset of the model."
        )
    scores, listed = top_k
    user, item = (_tokens(dataset, field) for field in (dataset.uid_field, dataset.iid_field))
    # 0 is RecBole's padding, no item
    return top(as_array(listed) - 1, scores, users=user[as_array(users) - 1], items=item, name="recbole")


def _tokens(dataset: Any, field: str) -> pl.Series:
    """The ids of RecBole's numbers from 1: whole numbers where all are written so, as in its files."""
    tokens = pl.DataFrame({"id": [str(token) for token in dataset.field2id_token[field][1:]]})
    return tokens["id"].cast(TextTypes.of(tokens.lazy()).ids().schema()["id"])


def from_factors(
    model: Any, matrix: Any, *, users: IdColumn | Ids | None = None, items: IdColumn | Ids | None = None
) -> Scores:
    """Scores W H of a fitted factoriser in scikit-learn's form: W = model.transform(matrix), H = model.components_.

    NMF, TruncatedSVD and their like; `matrix` is users x items, whose rows and columns `users` and `items` name.

    >>> from sklearn.decomposition import TruncatedSVD
    >>> matrix = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    >>> scores = from_factors(TruncatedSVD(2, random_state=0).fit(matrix), matrix)
    >>> (scores.block(np.arange(3)).round(4) + 0.0).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]
    """
    if not _fitted(model, "components_") or not hasattr(model, "transform"):
        raise _unfitted("from_factors", model, "transform and components_")
    return factors(model.transform(matrix), np.asarray(model.components_).T, users=users, items=items, name="factors")


def from_callable(call: Callable[[Any, Any], Any], *, users: Named, items: Named) -> Scores:
    """Scores of any function `(user id, item ids) -> one score for each item`, asked for one user at a time.

    A function that answers for many users at once is faster as `truerank.scores.function`.

    >>> scores = from_callable(lambda user, items: [len(user + item) for item in items], users=["u"], items=["bb", "a"])
    >>> scores.items.texts(), scores.block(np.array([0])).tolist()
    (['a', 'bb'], [[2.0, 3.0]])
    """
    return per_user(lambda position: call(users[position], items), users=users, items=items, name="callable")


def _fitted(model: Any, *names: str) -> bool:
    return all(getattr(model, name, None) is not None for name in names)


def _unfitted(who: str, model: Any, expected: str) -> InputError:
    return InputError(f"{who}: a {type(model).__name__} without {expected}. Fit it first, or use another adapter.")
