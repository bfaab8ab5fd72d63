"""Fitted models of other libraries give the scores that the libraries themselves give."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from scipy.sparse import coo_matrix, csr_matrix

import truerank as tr

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "adapters"
USERS = ["u3", "u1", "u5", "u2", "u4"]  # not in sorted order: rows must follow their names
ITEMS = ["i6", "i2", "i3", "i1", "i5", "i4"]
MATRIX = (np.random.default_rng(8).random((5, 6)) < 0.5).astype(np.float32)


def in_given_order(scores: Any, users: list[str], items: list[str]) -> Any:
    """Scores with rows and columns as the library has them."""
    row, column = ([ids.texts().index(each) for each in given] for ids, given in
                   ((scores.users, users), (scores.items, items)))  # fmt: skip
    return scores.block(np.array(row))[:, column]


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text())


def expected(content: Any) -> Any:
    found = np.array([[np.nan if x is None else x for x in row] for row in content["scores"]])
    return np.where(np.isnan(found), -np.inf, found)


@pytest.mark.parametrize("kind", ["als", "bpr", "lmf"])
def test_implicit_factors(kind: str) -> None:
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.cpu.bpr import BayesianPersonalizedRanking
    from implicit.cpu.lmf import LogisticMatrixFactorization
    from threadpoolctl import threadpool_limits

    classes = {"als": AlternatingLeastSquares, "bpr": BayesianPersonalizedRanking, "lmf": LogisticMatrixFactorization}
    with threadpool_limits(1, "blas"):
        model = classes[kind](factors=3, iterations=10, random_state=1, num_threads=1)
        model.fit(csr_matrix(MATRIX), show_progress=False)
        ids, values = model.recommend(
            np.arange(5), csr_matrix(MATRIX), N=6, filter_already_liked_items=False, filter_items=None
        )
    found = in_given_order(tr.models.from_implicit(model, users=USERS, items=ITEMS), USERS, ITEMS)
    np.testing.assert_allclose(np.take_along_axis(found, ids, axis=1), values, rtol=1e-5, atol=1e-6)
    assert tr.models.from_implicit(model).users.texts() == ["0", "1", "2", "3", "4"]


def test_implicit_nearest_items() -> None:
    from implicit.nearest_neighbours import CosineRecommender

    model = CosineRecommender(K=3, num_threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own, about a matrix that it made itself
        model.fit(csr_matrix(MATRIX, dtype=np.float64), show_progress=False)
    scores = tr.models.from_implicit(model, users=USERS, items=ITEMS, history=csr_matrix(MATRIX))
    found = in_given_order(scores, USERS, ITEMS)
    for user in range(5):
        ids, values = model.recommend(user, csr_matrix(MATRIX)[user], N=6, filter_already_liked_items=False)
        np.testing.assert_allclose(found[user, ids], values, rtol=1e-6)
    with refused("give history="):
        tr.models.from_implicit(model)


@pytest.mark.parametrize("features", [False, True])
def test_lightfm(features: bool) -> None:
    from lightfm import LightFM

    rng = np.random.default_rng(0)
    item_features = csr_matrix(np.hstack([np.eye(6), rng.random((6, 2)) < 0.5]), dtype=np.float32) if features else None
    model = LightFM(no_components=3, loss="warp", random_state=1)
    model.fit(coo_matrix(MATRIX), item_features=item_features, epochs=5)
    user, item = np.repeat(np.arange(5), 6), np.tile(np.arange(6), 5)
    said = model.predict(user, item, item_features=item_features).reshape(5, 6) - model.user_biases[:, None]
    scores = tr.models.from_lightfm(model, users=USERS, items=ITEMS, item_features=item_features)
    np.testing.assert_allclose(in_given_order(scores, USERS, ITEMS), said, rtol=1e-5, atol=1e-6)


def test_callables() -> None:
    said = np.arange(30.0).reshape(5, 6)
    place = {user: at for at, user in enumerate(USERS)}
    scores = tr.models.from_callable(lambda user, items: said[place[user]], users=USERS, items=ITEMS)
    assert (in_given_order(scores, USERS, ITEMS) == said).all()
    wrong = tr.models.from_callable(lambda user, items: [1.0], users=USERS, items=ITEMS)
    with refused(r"scores of shape \(1,\) for one user; expected \(6,\)"):
        wrong.block(np.array([0]))


def test_cornac() -> None:
    content = golden("cornac")
    kept = content["kept"]
    model = SimpleNamespace(
        uid_map=kept["uid_map"], iid_map=kept["iid_map"], num_users=5, num_items=6,
        score=lambda position: np.array(kept["rows"][position]),
    )  # fmt: skip
    scores = tr.models.from_cornac(model)
    np.testing.assert_allclose(in_given_order(scores, content["users"], content["asked"]), expected(content))


def test_lenskit(monkeypatch: pytest.MonkeyPatch) -> None:
    content = golden("lenskit")
    rows = dict(zip(content["users"], expected(content), strict=True))

    class ItemList:
        def __init__(self, item_ids: Any) -> None:
            self.ids = list(item_ids)

    def said(user: str, items: Any) -> Any:
        values = [rows[user][content["asked"].index(item)] for item in items.ids]
        return SimpleNamespace(scores=lambda: np.array([np.nan if np.isneginf(x) else x for x in values]))

    library, data = ModuleType("lenskit"), ModuleType("lenskit.data")
    library.score = lambda pipeline, user, items: said(user, items)  # type: ignore[attr-defined]
    data.ItemList = ItemList  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lenskit", library)
    monkeypatch.setitem(sys.modules, "lenskit.data", data)
    for model in (SimpleNamespace(run=None), said):  # a pipeline, a scorer alone
        scores = tr.models.from_lenskit(model, users=content["users"], items=content["asked"])
        assert (in_given_order(scores, content["users"], content["asked"]) == expected(content)).all()
    with refused("a trained pipeline or scorer"):
        tr.models.from_lenskit(SimpleNamespace(), users=["a"], items=["b"])


def test_rectools() -> None:
    content = golden("rectools")
    kept = content["kept"]

    class Dataset:
        user_id_map = SimpleNamespace(external_ids=np.array(kept["users"]))
        item_id_map = SimpleNamespace(external_ids=np.array(kept["items"]))

    def recommend(users: Any, dataset: Any, k: int, filter_viewed: bool) -> Any:
        assert (len(users), k, filter_viewed) == (5, 6, False)
        return pd.DataFrame(kept["table"])

    scores = tr.models.from_rectools(SimpleNamespace(is_fitted=True, recommend=recommend), Dataset())
    found = in_given_order(scores, content["users"], content["asked"])
    said = expected(content)
    for mine, theirs in zip(found, said, strict=True):  # lists know orders, not scores
        assert (np.argsort(-mine, kind="stable") == np.argsort(-theirs, kind="stable")).all()


def test_what_is_not_fitted_and_wrong_ids_are_refused() -> None:
    nothing: Any = SimpleNamespace()
    by_factors, by_table = tr.models.from_factors, tr.models.from_rectools
    others = (lambda model: by_factors(model, MATRIX), lambda model: by_table(model, model))
    calls = (tr.models.from_implicit, tr.models.from_lightfm, tr.models.from_cornac, *others)
    for adapt in calls:
        with refused("Fit it first"):
            adapt(nothing)
    with refused("4 ids for 5 rows"):
        tr.models.from_factors(SimpleNamespace(components_=np.ones((2, 6)), transform=lambda x: np.ones((5, 2))),
                               MATRIX, users=USERS[:4])  # fmt: skip


def test_a_missing_library_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    from truerank import models

    for module in ("implicit.cpu.als", "implicit.cpu.bpr", "lightfm", "lenskit.data"):
        monkeypatch.setitem(sys.modules, module, None)
    log = tr.read(pd.DataFrame({"user": [1, 2], "item": [3, 4]}))
    for name, extra in (("als", "models"), ("bpr", "models"), ("lightfm", "lightfm")):
        with refused(rf"{name} needs .* pip install '\.\[{extra}\]' in a checkout of truerank\."):
            models.make(name, {}).fit(log, seed=0)
    with refused(r"from_lenskit needs lenskit, .* pip install lenskit"):
        tr.models.from_lenskit(None, users=["a"], items=["b"])
