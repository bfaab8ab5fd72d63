"""The ratings that every newcomer begins with, in the layout of MovieLens; run as a script it makes them again."""

from __future__ import annotations

from pathlib import Path

import numpy as np

RATINGS = Path(__file__).parent / "ratings.csv"
N_USERS, N_ITEMS = 60, 50


def rows() -> list[str]:
    """Users with tastes of their own, items of which few are popular; ids are neither small nor without gaps."""
    rng = np.random.default_rng(2024)
    taste, kind = rng.normal(size=(N_USERS, 3)), rng.normal(size=(N_ITEMS, 3))
    liking = taste @ kind.T + 1.5 * rng.normal(size=N_ITEMS) + rng.gumbel(size=(N_USERS, N_ITEMS))
    lines = ["userId,movieId,rating,timestamp"]
    for user in range(N_USERS):
        for at, item in enumerate(np.argsort(-liking[user])[: rng.integers(8, 20)]):
            rating = min(5.0, max(0.5, round(2 * (3.5 + 0.5 * liking[user, item] - 0.1 * at)) / 2))
            time = 978300000 + int(rng.integers(10**7))
            lines.append(f"{3 * user + 11},{7 * item + 101},{rating},{time}")
    return lines


if __name__ == "__main__":
    RATINGS.write_text("\n".join(rows()) + "\n")
