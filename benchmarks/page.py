"""docs/performance.md, written from one run of all workloads."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import start

PAGE = Path("docs/performance.md")
ONE_RUN = re.compile(r"rom one run(?:; (.+?) later, in runs of their own)?\.")


def write() -> None:
    """Run everything and write the page."""
    text = page(
        begin=alone("start"),
        lists_found=alone("lists"),
        ranks_found=alone("ranks"),
        offpolicy_found=alone("offpolicy"),
        grid_found=alone("grid"),
        stream_found=alone("stream"),
    )
    PAGE.write_text(text)


def renew(name: str) -> None:
    """Run one workload and write its section, and which of its goals are met; the page says when the others were run."""
    PAGE.write_text(renewed(PAGE.read_text(), SECTIONS[name](found := alone(name)), found["goals"]))


def alone(name: str) -> dict[str, Any]:
    """What a workload found in a process of its own, whose memory no other has used before."""
    words = [sys.executable, "-m", "benchmarks", name, "--json"]
    return dict(json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout))


def renewed(text: str, section: list[str], goals: dict[str, bool]) -> str:
    """A page with another section of the same heading, and other answers to its goals.

    >>> renewed("From one run.\\n| fast | no |\\n\\n## A\\n\\nold\\n\\n## B\\n", ["## A", "", "new", ""], {"fast": True})
    'From one run; A later, in runs of their own.\\n| fast | yes |\\n\\n## A\\n\\nnew\\n\\n## B\\n'
    """
    before, rest = text.split(f"{section[0]}\n", 1)
    letter = section[0].removeprefix("## ").split(".")[0]
    before = ONE_RUN.sub(lambda found: _later(letter, found[1] or ""), before)
    behind = rest[rest.index("\n## ") + 1 :]
    for goal, met in goals.items():
        answers = {answer: f"| {goal} | {answer} |" for answer in ("yes", "no")}
        before = before.replace(answers["no" if met else "yes"], answers["yes" if met else "no"])
    return before + "\n".join(section) + "\n" + behind


def _later(letter: str, others: str) -> str:
    """
    >>> _later("E", "C")
    'rom one run; C, E later, in runs of their own.'
    """
    return f"rom one run; {', '.join(sorted({letter, *filter(None, others.split(', '))}))} later, in runs of their own."


def page(
    *,
    begin: dict[str, Any],
    lists_found: dict[str, Any],
    ranks_found: dict[str, Any],
    offpolicy_found: dict[str, Any],
    grid_found: dict[str, Any],
    stream_found: dict[str, Any],
) -> str:
    peers = lists_found["peers"]
    parts = (begin, lists_found, ranks_found, offpolicy_found, grid_found, stream_found)
    goals = {name: met for part in parts for name, met in part["goals"].items()}
    lines = [
        "# Speed",
        "",
        "Written by `make bench` from one run. Times depend on the machine and on what else it does; ratios are medians of "
        f"interleaved rounds in the same run. {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}.",
        "",
        "| goal | met |",
        "|---|---|",
        *(f"| {name} | {'yes' if met else 'no'} |" for name, met in goals.items()),
        "",
        "## A. Metrics from top-100 lists",
        "",
        f"{lists_found['users']:,} users, {lists_found['rows']:,} rows, 17 metrics (Recall, Precision, nDCG, AP at 5, 10, 50, 100, and RR). "
        "The kernel starts from lists and labels in memory and ends with the values of every user; peers start from their own prepared "
        "objects. End to end starts from a shuffled table user, item, score and ends, for us, with estimates and intervals.",
        "",
        "| peer | against | peer, us per user | ours, us per user | ratio (wall) | ratio (processor) |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | {row['against']} | {row['us']:.2f} | {row['reference_us']:.2f} | {row['ratio_wall']:.1f} | {row['ratio_cpu']:.1f} |"
            for name, row in peers.items()
        ),
        "",
        f"End to end: {lists_found['end_to_end_ns_per_row']} ns per row (best round).",
        "",
        "## B. Ranks from factors",
        "",
        f"{ranks_found['users']:,} users, {ranks_found['items']:,} items, 64 dimensions, 20 labelled and 50 excluded items per user: above and tied counts of "
        "every labelled item, and Recall, Precision and DCG at 5, 50 and 500, against the matrix product alone in its fastest blocks. A rank "
        "tells of every cut-off whether an item is inside, so no cut-off score is selected.",
        "",
        "| | product alone | ranks and metrics | ratio (wall) | ratio (processor) | memory above the inputs |",
        "|---|---|---|---|---|---|",
        f"| us per user | {ranks_found['reference_us']:.1f} | {ranks_found['us']:.1f} | {ranks_found['ratio_wall']:.2f} | "
        f"{ranks_found['ratio_cpu']:.2f} | {ranks_found['memory_mb_above_inputs']:.0f} MB |",
        "",
        "Growth, nanoseconds of processor time per score (constant means linear):",
        "",
        "| users (5,000 items) | ns per score |",
        "|---|---|",
        *(f"| {int(n):,} | {value} |" for n, value in ranks_found["growth_users"].items()),
        "",
        "| items (2,000 users) | ns per score |",
        "|---|---|",
        *(f"| {int(n):,} | {value} |" for n, value in ranks_found["growth_items"].items()),
        "",
        *offpolicy_section(offpolicy_found),
        "## D. The reliability grid",
        "",
        f"{grid_found['scenarios']:,} scenarios, {grid_found['models']} models, {grid_found['users']:,} users x {grid_found['items']:,} items, "
        f"{grid_found['metrics']} metrics, {grid_found['repetitions']} repetitions, {grid_found['threads']} threads: {grid_found['seconds']:.0f} s from labels and "
        f"scores to tables with intervals ({grid_found['cpu_seconds']:.0f} s of processor time). All scenarios of one user and logging policy take "
        f"{grid_found['ms_per_user_and_logger']} ms, in vectorised numpy {grid_found['ms_per_user_and_logger_numpy']} ms: {grid_found['ratio_cpu']} times as long.",
        "",
        *stream_section(stream_found),
        *start.section(begin),
        "## How",
        "",
        "Scores are made in tiles that stay in cache, masked, counted against the scores of the labelled items with vector compares, and thrown away; the "
        "score matrix is never stored. The tile's shape is fixed, so a score has the same bits wherever it is computed. Lists are "
        "bucketed by user and counted, not sorted. Metrics enter one compiled walk as tables made from themselves. The plain numpy kernels give the "
        "same ranks and the same values; they serve small inputs and machines without numba, and are what the tests compare with.",
    ]
    return "\n".join(lines) + "\n"


def offpolicy_section(found: dict[str, Any]) -> list[str]:
    return [
        "## C. Off-policy values over clips",
        "",
        f"{found['rows']:,} viewed items in {found['sessions']:,} sessions, {found['clips']} clips: value, variance and interval of ips, against polars written by hand "
        "with the same filter on rewarded rows (4 % of the rows; with dwell times, all of them). Diagnostics add the sums of all weights for every clip, the largest "
        f"weights and their tail. Reading and checking the log costs {found['reading_ns_per_row']:.0f} ns of processor time per row once, and is not in these times.",
        "",
        "| | polars, ns per row | ours, ns per row | ratio (wall) | ratio (processor) |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {1e3 * found[key]['reference_us']:.1f} | {1e3 * found[key]['us']:.1f} | {found[key]['ratio_wall']:.2f} | {found[key]['ratio_cpu']:.2f} |"
            for name, key in (
                ("clicks", "sparse"),
                ("clicks, with diagnostics", "diagnostics"),
                ("dwell times", "dense"),
            )
        ),
        "",
    ]


def stream_section(found: dict[str, Any]) -> list[str]:
    parts = {name: part for name, part in found.items() if isinstance(part, dict) and "peak_gb" in part}
    return [
        "## E. Files larger than memory",
        "",
        "Generated Parquet files in no order of users, removed afterwards, through the command line (`python -m benchmarks stream`): labelled rows with "
        "two factor models; impressions with two targets as columns, 13 clips, ips and snips, a fitted position model and diagnostics; impressions "
        "with a target table in another order. The goal is 2 GB of resident memory.",
        "",
        "| | rows | peak memory, GB | seconds | processor seconds |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {part['rows']:,} | {part['peak_gb']:.2f} | {part['seconds']:.0f} | {part['cpu_seconds']:.0f} |"
            for name, part in parts.items()
        ),
        "",
    ]


SECTIONS: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "offpolicy": offpolicy_section,
    "start": start.section,
    "stream": stream_section,
}
