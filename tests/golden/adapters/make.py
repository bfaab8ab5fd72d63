"""What fitted models of other libraries say about a small log: stored beside this script, LIBRARY.json.

    python tests/golden/adapters/make.py cornac|lenskit|rectools

with the library installed. `scores` is asked pair by pair through the library's own calls; what an adapter needs beside
that is kept too, so that the adapter can be tested where the library is not installed. With truerank importable the
adapter itself is also run on the live model and compared.
"""

from __future__ import annotations

import json
import math
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

LIKED = {
    "ann": ["tea", "milk", "bread"],
    "bob": ["tea", "bread"],
    "cat": ["milk", "salt", "jam"],
    "dan": ["jam", "rice"],
    "eve": ["rice", "salt", "tea"],
}
PAIRS = [(user, item) for user, items in LIKED.items() for item in items]
USERS = sorted(LIKED)
ITEMS = sorted({item for _, item in PAIRS})


def cornac() -> tuple[Any, dict[str, Any], Any]:
    from cornac.data import Dataset
    from cornac.models import MF

    model = MF(k=3, max_iter=50, learning_rate=0.05, seed=1, verbose=False)
    model.fit(Dataset.from_uir([(user, item, 1.0 + len(item)) for user, item in PAIRS], seed=1))
    scores = [[float(model.score(model.uid_map[user], model.iid_map[item])) for item in ITEMS] for user in USERS]
    rows = [[float(x) for x in model.score(at)] for at in range(model.num_users)]
    kept = {"uid_map": dict(model.uid_map), "iid_map": dict(model.iid_map), "rows": rows}
    return scores, kept, lambda tr: tr.models.from_cornac(model)


def lenskit() -> tuple[Any, dict[str, Any], Any]:
    import pandas as pd
    from lenskit import score, topn_pipeline
    from lenskit.data import ItemList, from_interactions_df
    from lenskit.knn import ItemKNNScorer
    from lenskit.training import TrainingOptions

    frame = pd.DataFrame(PAIRS, columns=["user_id", "item_id"])
    pipeline = topn_pipeline(ItemKNNScorer(max_nbrs=3, min_nbrs=1, feedback="implicit"))
    pipeline.train(from_interactions_df(frame), TrainingOptions(rng=1))
    asked = [*ITEMS, "unknown"]
    scores = [[float(score(pipeline, user, ItemList(item_ids=[item])).scores()[0]) for item in asked] for user in USERS]
    return scores, {"items": asked}, lambda tr: tr.models.from_lenskit(pipeline, users=USERS, items=asked)


def rectools() -> tuple[Any, dict[str, Any], Any]:
    import pandas as pd
    from rectools import Columns
    from rectools.dataset import Dataset
    from rectools.models import EASEModel

    frame = pd.DataFrame(PAIRS, columns=[Columns.User, Columns.Item])
    frame[Columns.Weight], frame[Columns.Datetime] = 1.0, pd.Timestamp("2026-01-01")
    dataset = Dataset.construct(frame)
    model = EASEModel(regularization=2.0).fit(dataset)
    listed = [
        model.recommend([user], dataset, k=1, filter_viewed=False, items_to_recommend=[item])
        for user in USERS
        for item in ITEMS
    ]
    found = [float(each["score"].iloc[0]) for each in listed]
    scores = [found[at : at + len(ITEMS)] for at in range(0, len(found), len(ITEMS))]
    table = model.recommend(dataset.user_id_map.external_ids, dataset, k=len(ITEMS), filter_viewed=False)
    kept = {
        "users": [str(x) for x in dataset.user_id_map.external_ids],
        "items": [str(x) for x in dataset.item_id_map.external_ids],
        "table": {name: table[name].tolist() for name in table.columns},
    }
    return scores, kept, lambda tr: tr.models.from_rectools(model, dataset)


def compare_live(adapt: Any, scores: Any, items: list[str]) -> None:
    import numpy as np

    try:
        import truerank as tr
    except ImportError:
        sys.stderr.write("truerank is not importable here: the adapter itself was not run\n")
        return
    found = adapt(tr)
    block = found.block(np.arange(len(USERS)))[:, [found.items.texts().index(item) for item in items]]
    expected = np.array(scores, dtype=float)
    if found.depth is not None or type(found).__name__ == "Lists":  # lists know orders, not scores
        block, expected = (np.argsort(np.argsort(-each, axis=1, kind="stable"), axis=1) for each in (block, expected))
    np.testing.assert_allclose(block, np.where(np.isnan(expected), -np.inf, expected), rtol=1e-5, atol=1e-6)
    sys.stderr.write("the adapter agrees with the live model\n")


def main() -> None:
    name = sys.argv[1]
    scores, kept, adapt = {"cornac": cornac, "lenskit": lenskit, "rectools": rectools}[name]()
    items = kept["items"] if name == "lenskit" else ITEMS
    compare_live(adapt, scores, items)
    plain = [[None if math.isnan(x) else x for x in row] for row in scores]
    content = {"library": name, "version": version(name), "users": USERS, "asked": items, "scores": plain, "kept": kept}
    (Path(__file__).parent / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
