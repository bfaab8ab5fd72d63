"""The input of the golden values: example.csv by hand, generated.csv by chance (random() alone never changes)."""

from __future__ import annotations

import csv
import random
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    # all users see items 1 ... 6 in this order; the third user likes nothing
    grades = {1: {2: 1, 3: 3, 5: 2, 6: 1}, 2: {1: 2}, 3: {}}
    write("example", [(user, item, item, grades[user].get(item, 0)) for user in grades for item in range(1, 7)])
    rng = random.Random(20240501)
    rows: list[tuple[int, int, int | None, int]] = []
    for user in range(12):
        share = (0.0, 0.9, 0.05)[user] if user < 3 else 0.3
        length = {3: 2, 4: 0, 5: 7}.get(user, 15)  # short lists, and an empty one
        order = sorted(range(15), key=lambda _: rng.random())
        rows += [
            (user, item, place if place <= length else None, 1 + int(3 * rng.random()) if rng.random() < share else 0)
            for place, item in enumerate(order, start=1)
        ]
    write("generated", rows)


def write(name: str, rows: list[tuple[int, int, int | None, int]]) -> None:
    with (HERE / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["user", "item", "rank", "grade"])
        ordered = sorted(rows, key=lambda row: (row[0], row[1]))
        writer.writerows(ordered)


if __name__ == "__main__":
    main()
