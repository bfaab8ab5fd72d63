"""What runs would take, as text."""

from __future__ import annotations

from collections.abc import Sequence

from truerank.engines.costs import Cost, Sized, compared_rows

HEADER = ("", "engine", "hours", "on one machine", "core hours", "GB per worker", "GB where started", "GB of disk")


def costs_text(costs: Sequence[Cost], size: Sized) -> str:
    """A line for every command and engine, and what to think of it.

    >>> found = Cost("evaluate", "dask", 2.5, 1.0, 4.0, 1.0, 1.2, 43.2)
    >>> print(costs_text([found], Sized(rows=3.6e9, users=1e6, workers=2)).splitlines()[0])
    3.6e+09 rows of 1e+06 users, 2 models, 2 workers; reckoned, not measured at this size:
    """
    ranked = f", {size.items:g} items, {size.dim:g} dimensions" if size.items and size.dim else ""
    rows: list[tuple[str, ...]] = [HEADER]
    for each in costs:
        numbers = (each.hours, each.driver_hours, each.core_hours, each.worker_gb, each.driver_gb, each.disk_gb)
        rows.append((each.command, each.engine, *(_figure(number) for number in numbers)))
    width = [max(len(row[at]) for row in rows) for at in range(len(HEADER))]
    compared = (f"{compared_rows(command) / 1e6:g} million ({command})" for command in _groups(costs))
    lines = [
        f"{size.rows:g} rows of {size.users:g} users, {size.models:,} models{ranked}, {size.workers:,} workers; "
        "reckoned, not measured at this size:",
        "",
        *("  " + "  ".join(f"{cell:>{width[at]}}" for at, cell in enumerate(row)).rstrip() for row in rows),
        "",
        f"What takes longest: {_slowest(costs)}. Rows that are sorted by user need no partitioning and no disk.",
        f"Dask and Spark are reckoned by their ratio to local on rows in memory, {' and '.join(compared)}, with two "
        "workers of one machine. GB are reckoned from bytes per row and user, measured like times.",
    ]
    return "\n".join(lines) + "\n"


def _groups(costs: Sequence[Cost]) -> dict[str, dict[str, list[str]]]:
    """Of each command what takes longest, and on which engines."""
    found: dict[str, dict[str, list[str]]] = {}
    for each in costs:
        found.setdefault(each.command, {}).setdefault(each.bottleneck, []).append(each.engine)
    return found


def _slowest(costs: Sequence[Cost]) -> str:
    """Engines are named where they differ.

    >>> local = Cost("offpolicy", "local", 1.5, 0.8, 11.0, 1.6, 4.0, 43.2)
    >>> dask = Cost("offpolicy", "dask", 1.9, 0.8, 18.0, 1.6, 4.0, 43.2)
    >>> _slowest([local, dask]), _slowest([dask])
    ('offpolicy: partitioning on one machine (local), workers (dask)', 'offpolicy: workers')
    """
    return "; ".join(
        f"{command}: " + ", ".join(what + f" ({', '.join(on)})" * (len(by) > 1) for what, on in by.items())
        for command, by in _groups(costs).items()
    )


def _figure(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.2g}"
