"""The input of the golden values of lists, by chance (random() alone never changes): python make_input.py.

lists.csv: what 14 users are recommended, 1 to 10 of 20 items; train.csv: what they and 6 others had before, nothing of
which they are recommended; test.csv: what they chose later; features.csv: three features of each item. Two items are in
no training row, user 13 has none, and user 12 chose nothing later that is recommended.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
N_USERS, N_OTHERS, N_ITEMS = 14, 6, 20


def main() -> None:
    rng = random.Random(20250301)
    lists: list[tuple[int, ...]] = []
    train: list[tuple[int, ...]] = []
    test: list[tuple[int, ...]] = []
    for user in range(N_USERS + N_OTHERS):
        order = sorted(range(N_ITEMS), key=lambda item: rng.random() ** (1 / (1 + item % 7)))
        known = [] if user == N_USERS - 1 else [item for item in order[:6] if item < N_ITEMS - 2]
        train += [(user, item) for item in known]
        if user >= N_USERS:
            continue
        length = 1 + int(10 * rng.random())
        rest = sorted(
            (item for item in range(N_ITEMS) if item not in known), key=lambda item: rng.random() * (1 + item)
        )
        lists += [(user, item, place) for place, item in enumerate(rest[:length], start=1)]
        liked = rest[length:] if user == N_USERS - 2 else rest
        test += [(user, item) for item in liked if rng.random() < 0.4] or [(user, rest[-1])]
    features = [(item, int(3 * rng.random()), int(2 * rng.random()), int(4 * rng.random())) for item in range(N_ITEMS)]
    write("lists", ("user", "item", "rank"), lists)
    write("train", ("user", "item"), train)
    write("test", ("user", "item"), test)
    write("features", ("item", "size", "new", "kind"), features)


def write(name: str, head: tuple[str, ...], rows: Sequence[tuple[int, ...]]) -> None:
    with (HERE / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
