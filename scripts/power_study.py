"""Whether plans keep their word: draws worlds with known truth and writes docs/results/power.md and its picture.

python scripts/power_study.py --draws 4000
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import asdict
from pathlib import Path
from typing import Any

from truerank.report.reliability_charts import TYPEFACE, PictureFormat, altair, picture
from truerank.studies.power import PowerFound, power_found, worlds

PAGE = Path("docs/results/power.md")
PICTURE = Path("docs/results/power.svg")
FOLDER = Path("build")
WHO = "the page of power"
CLOSE = 0.03


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    found = kept(FOLDER / f"power-{arguments.draws}-{arguments.seed}.csv", arguments.draws, arguments.seed)
    PICTURE.write_bytes(picture(chart(found), PictureFormat.SVG, who=WHO))
    PAGE.write_text(page(found))


def kept(path: Path, draws: int, seed: int) -> list[PowerFound]:
    """What was found in each world; worlds that are in the file already are not drawn again."""
    path.parent.mkdir(exist_ok=True)
    known = {}
    if path.is_file():
        with path.open() as file:
            known = {
                row["world"]: PowerFound(
                    row["world"], float(row["difference"]), float(row["planned"]), float(row["shown"]), draws
                )
                for row in csv.DictReader(file)
            }
    for world in worlds():
        if world.name not in known:
            known[world.name] = power_found(world, draws=draws, seed=seed)
            print(known[world.name])
            with path.open("w", newline="") as file:
                rows = csv.DictWriter(file, ["world", "difference", "planned", "shown", "draws"])
                rows.writeheader()
                rows.writerows(asdict(each) for each in known.values())
    return [known[world.name] for world in worlds()]


def chart(found: list[PowerFound]) -> Any:
    """Planned against shown; a dot on the line is a plan that kept its word."""
    library = altair(WHO)
    values = [{"world": each.world, "planned": each.planned, "shown": each.shown} for each in found]
    share = library.Scale(domain=[0.1, 0.9])
    ends = [{"x": at, "low": at - CLOSE, "high": at + CLOSE} for at in (0.1, 0.9)]
    band = library.Chart(library.Data(values=ends)).mark_area(color="#d9ead3", opacity=0.8, clip=True)
    dots = library.Chart(library.Data(values=values)).mark_circle(size=70, color="#1f6f8b", opacity=0.9)
    axis = library.Axis(format="%", grid=False)
    return (
        (
            band.encode(x=library.X("x:Q", scale=share), y=library.Y("low:Q", scale=share), y2="high:Q")
            + dots.encode(
                x=library.X("planned:Q", title="power as planned", scale=share, axis=axis),
                y=library.Y("shown:Q", title="how often the difference was shown", scale=share, axis=axis),
            )
        )
        .properties(width=380, height=380)
        .configure(font=TYPEFACE, view=library.ViewConfig(stroke="#bbbbbb"))
    )


def page(found: list[PowerFound]) -> str:
    """The document."""
    close = [each for each in found if abs(each.apart) <= CLOSE]
    furthest = max(found, key=lambda each: abs(each.apart))
    lines = [
        "# Does a plan keep its word?",
        "",
        "![Power as planned against how often the difference was shown: dots along the diagonal](power.svg)",
        "",
        f"In {len(found)} worlds whose truth is known the power was planned from a pilot, and then {found[0].draws:,} data sets of the planned size were drawn and tested as `truerank evaluate` tests. "
        f"{len(close)} plans are within 3 points of what happened (the green band); the furthest, {furthest.world}, is off by {100 * abs(furthest.apart):.1f}. "
        "The pilot has half as many judged items or sessions per user as the plan, and so many users that its own luck does not matter; a pilot of yours has luck of its own.",
        "",
        "What the worlds do not cover: where single users hold most of the spread (rewards with very long tails) and there are fewer than about 100 of them, true power can be 15 points above the plan; "
        "where only about six users are expected to tell two models apart, it can be 6 points below.",
        "",
        "Written by `python scripts/power_study.py`; the seed is fixed, and a stopped run goes on.",
        "",
        "| world | true difference | planned | shown | apart (points) |",
        "|---|---|---|---|---|",
        *(
            f"| {each.world} | {each.difference:.4f} | {each.planned:.1%} | {each.shown:.1%} ± {each.noise:.1%} | {100 * each.apart:+.1f} |"
            for each in found
        ),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
