"""What the Open Bandit Pipeline says about a small log of slates; also writes the log itself."""

from __future__ import annotations

import csv
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def make_log() -> list[dict[str, float]]:
    """60 slates of three positions; item choice independent at each position, with known probabilities."""
    rng = np.random.default_rng(20240817)
    rows = []
    for slate in range(60):
        for position in range(3):
            logged = rng.dirichlet(np.ones(5))
            target = rng.dirichlet(np.full(5, 0.5))
            item = int(rng.choice(5, p=logged))
            rows.append(
                {
                    "slate": slate,
                    "position": position,
                    "item": 5 * position + item,
                    "reward": float(rng.integers(0, 2)) if slate % 2 else round(float(rng.normal()), 6),
                    "propensity": float(logged[item]),
                    "target": float(target[item]),
                }
            )
    return rows


def main() -> None:
    from obp.ope import InverseProbabilityWeighting, SlateIndependentIPS

    rows = make_log()
    with (HERE / "slates.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    of = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    slate, position = of["slate"].astype(int), of["position"].astype(int)
    found = {"slate independent ips": SlateIndependentIPS(len_list=3).estimate_policy_value(
        slate_id=slate, reward=of["reward"], position=position, pscore_item_position=of["propensity"],
        evaluation_policy_pscore_item_position=of["target"],
    )}  # fmt: skip
    # one round per row: only the chosen action's probability enters, so two actions suffice
    target = np.stack([of["target"], 1 - of["target"]], axis=1)[:, :, None]
    found["ipw of rows"] = InverseProbabilityWeighting().estimate_policy_value(
        reward=of["reward"], action=np.zeros(len(rows), dtype=int), pscore=of["propensity"], action_dist=target,
        position=np.zeros(len(rows), dtype=int),
    )  # fmt: skip
    content = {
        "tool": "obp",
        "version": version("obp"),
        "values": {name: float(value) for name, value in found.items()},
    }
    (HERE / "expected.json").write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
