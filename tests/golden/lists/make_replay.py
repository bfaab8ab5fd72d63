"""What RePlay says about the golden lists."""

from __future__ import annotations

import csv
import json
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
CUTOFFS = (1, 3, 10)


def rows_of(name: str) -> list[dict[str, int]]:
    with (HERE / f"{name}.csv").open(newline="") as file:
        return [{key: int(value) for key, value in row.items()} for row in csv.DictReader(file)]


def answers() -> dict[str, dict[str, float]]:
    from replay.metrics import Coverage, PerUser, Surprisal

    lists: dict[int, list[tuple[int, float]]] = {}
    for row in rows_of("lists"):
        lists.setdefault(row["user"], []).append((row["item"], -float(row["rank"])))
    train: dict[int, list[int]] = {}
    for row in rows_of("train"):
        train.setdefault(row["user"], []).append(row["item"])
    found: dict[str, dict[str, float]] = {}
    coverage = Coverage(list(CUTOFFS))(lists, train)
    per_user = Surprisal(list(CUTOFFS), mode=PerUser())(lists, train)
    mean = Surprisal(list(CUTOFFS))(lists, train)
    for k in CUTOFFS:
        found[f"Coverage@{k}"] = {"all": float(coverage[f"Coverage@{k}"])}
        by_user = {str(user): float(value) for user, value in per_user[f"Surprisal-PerUser@{k}"].items()}
        found[f"Surprisal@{k}"] = {**by_user, "all": float(mean[f"Surprisal@{k}"])}
    return found


if __name__ == "__main__":
    content = {"tool": "replay", "version": version("replay-rec"), "values": answers()}
    (HERE / "replay.json").write_text(json.dumps(content, indent=1) + "\n")
