"""Compare results with the goldens: python -m tests.golden.house.compare [GROUP ...].

Rows are matched by (model, baseline, metric, estimator, clip, reward, segment). Numbers agree to 1e-12 relative or
1e-13 absolute (a call whose fit is iterated says how closely); a difference is relative to the larger of itself and its
standard error. Verdicts, counts and the codes of reasons, warnings and messages are equal.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.golden.house.call import EXACT, Call
from tests.golden.house.calls import GROUPS, of_group
from tests.golden.house.files import TABLES, read
from tests.golden.house.run import run

NEAR_0 = 1e-13
KEY = ("model", "baseline", "metric", "estimator", "clip", "reward", "segment")

Row = Mapping[str, Any]


def compare(call: Call, golden: Mapping[str, Any], result: Mapping[str, Any]) -> list[str]:
    """One line for each number, verdict or code of a call that is not what is stored."""
    if set(golden) != set(result) or golden.get("refused") != result.get("refused"):
        return [f"{call.id}: {_kind(golden)} -> {_kind(result)}"]
    lines: list[str] = []
    for kind in TABLES:
        for name, old, new in _matched(golden.get(kind, []), result.get(kind, [])):
            if old is None or new is None:
                lines.append(f"{call.id} | {name}: {'no longer there' if new is None else 'was not there'}")
            else:
                lines += [f"{call.id} | {name} | {line}" for line in _row_differences(call, old, new)]
    if golden.get("messages") != result.get("messages"):
        lines.append(f"{call.id} | messages: {golden.get('messages')} -> {result.get('messages')}")
    for name, rows in golden.get("tables", {}).items():
        lines += _table_differences(call, name, rows, result["tables"].get(name, []))
    return lines


def _kind(result: Mapping[str, Any]) -> str:
    return f"refused ({result['refused']})" if "refused" in result else ", ".join(sorted(result))


def key_of(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in KEY)


def _matched(golden: Sequence[Row], result: Sequence[Row]) -> Iterator[tuple[str, Row | None, Row | None]]:
    new = {key_of(row): row for row in result}
    for row in golden:
        yield _name(row), row, new.pop(key_of(row), None)
    for row in new.values():
        yield _name(row), None, row


def _name(row: Row) -> str:
    return " ".join(str(part) for part in key_of(row) if part is not None)


def _row_differences(call: Call, old: Row, new: Row) -> list[str]:
    point = "difference" if "difference" in old else "value"
    scale = max(_magnitude(old[point]), _magnitude(old["stderr"]))
    return [
        f"{name}: {old[name]!r} -> {new.get(name)!r}"
        for name in old
        if not close(old[name], new.get(name), scale=0.0 if name == "ess" else scale, exact=call.exact)
    ]


def _table_differences(call: Call, name: str, golden: Sequence[Any], result: Sequence[Any]) -> list[str]:
    where = f"{call.id} | {name}"
    if [len(row) for row in golden] != [len(row) for row in result]:
        return [f"{where}: {len(golden)} rows -> {len(result)}, or other columns"]
    return [
        f"{where}, row {number}: {before!r} -> {after!r}"
        for number, (old, new) in enumerate(zip(golden, result, strict=True))
        for before, after in zip(old, new, strict=True)
        if not close(before, after, exact=call.exact)
    ]


def close(old: Any, new: Any, *, scale: float = 0.0, exact: float = EXACT) -> bool:
    """Whether two numbers agree to `exact` relative to themselves or to `scale`; NaN agrees with NaN."""
    if not isinstance(old, float) or not isinstance(new, float | int):
        return bool(old == new)
    if not math.isfinite(old):
        return (math.isnan(old) and math.isnan(new)) or old == new
    return abs(old - new) <= max(exact * max(abs(old), scale), NEAR_0)


def _magnitude(value: Any) -> float:
    return abs(value) if isinstance(value, float) and math.isfinite(value) else 0.0


def compare_group(group: str) -> list[str]:
    """All calls of a group, run now."""
    golden = read(group)
    calls = {call.id: call for call in of_group(group)}
    lines = [f"{name}: no call" for name in golden if name not in calls]
    lines += [f"{name}: no golden" for name in calls if name not in golden]
    return lines + [
        line for name, call in calls.items() if name in golden for line in compare(call, golden[name], run(call))
    ]


def main() -> None:
    failed = False
    for group in sys.argv[1:] or GROUPS:
        lines = compare_group(group)
        failed |= bool(lines)
        sys.stdout.write("\n".join([f"{group}: {len(lines)} differ", *(f"  {line}" for line in lines)]) + "\n")
    raise SystemExit(int(failed))


if __name__ == "__main__":
    main()
