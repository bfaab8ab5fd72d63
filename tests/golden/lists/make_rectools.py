"""What RecTools says about the golden lists."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CUTOFFS = (1, 3, 10)


def answers() -> dict[str, dict[str, float]]:
    import pandas as pd
    from rectools.metrics import AvgRecPopularity, CatalogCoverage, IntraListDiversity, MeanInvUserFreq, Serendipity
    from rectools.metrics.distances import PairwiseHammingDistanceCalculator

    names = {"user": "user_id", "item": "item_id"}
    reco, train, test, features = (
        pd.read_csv(HERE / f"{name}.csv").rename(columns=names) for name in ("lists", "train", "test", "features")
    )
    catalogue = features["item_id"].tolist()
    distance = PairwiseHammingDistanceCalculator(features.set_index("item_id"))
    found: dict[str, dict[str, float]] = {}
    for k in CUTOFFS:
        coverage = CatalogCoverage(k, normalize=True).calc(reco, catalogue)
        found[f"CatalogCoverage@{k}"] = {"all": float(coverage)}
        per_user: dict[str, Any] = {
            "MeanInvUserFreq": MeanInvUserFreq(k).calc_per_user(reco, train),
            "AvgRecPopularity": AvgRecPopularity(k).calc_per_user(reco, train),
            "IntraListDiversity": IntraListDiversity(k, distance).calc_per_user(reco),
            "Serendipity": Serendipity(k).calc_per_user(reco, test, train, catalogue),
        }
        for name, values in per_user.items():
            by_user = {str(user): float(value) for user, value in values.items()}
            found[f"{name}@{k}"] = {**by_user, "all": float(values.mean())}
    return found


if __name__ == "__main__":
    content = {"tool": "rectools", "version": version("rectools"), "values": answers()}
    (HERE / "rectools.json").write_text(json.dumps(content, indent=1) + "\n")
