"""Compare results with the goldens: python -m tests.golden.house.compare [--table] [GROUP ...].

Rows are matched by (model, baseline, metric, estimator, clip, reward). Values and differences agree to 1e-12 relative:
of the number itself, or of the value or standard error that it is a sum with (a difference near 0 has no more digits
than its parts). What is drawn or fitted again may differ as the call says; `--table` lists all of that. Intervals and p
have followed another rule since (few and unequal clusters): `tests/laws/test_intervals.py` has an oracle of that.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.golden.house.call import EXACT, Call
from tests.golden.house.calls import GROUPS, of_group
from tests.golden.house.files import TABLES, read
from tests.golden.house.run import run

NEAR_0 = 1e-15
KEY = ("model", "baseline", "metric", "estimator", "clip", "reward")
WHOLE = ("units", "undefined")
# columns of tables of coverage that rest on intervals, which follow another rule now
OF_INTERVALS = frozenset({"covered", "width"})
# columns of tables of studies that rest on resampling
REDRAWN = frozenset({"low", "high"})

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Loose:
    """A number that may differ: what it was, what it is, and by how much at most."""

    call: str
    row: str
    what: str
    golden: float
    found: float
    most: float

    @property
    def difference(self) -> float:
        return abs(self.found - self.golden)

    @property
    def good(self) -> bool:
        return same_nan(self.golden, self.found) if math.isnan(self.golden) else self.difference <= self.most

    def __str__(self) -> str:
        share = self.difference / abs(self.golden) if self.golden else self.difference
        return f"{self.call} | {self.row} | {self.what}: {self.golden:.6g} -> {self.found:.6g} ({share:.2%})"


@dataclass(frozen=True, slots=True)
class Compared:
    """What does not agree, and what was allowed to differ."""

    wrong: tuple[str, ...]
    loose: tuple[Loose, ...]


def compare(call: Call, golden: Mapping[str, Any], found: Mapping[str, Any]) -> Compared:
    """One call's result against its golden."""
    if set(golden) != set(found) or golden.get("refused") != found.get("refused"):
        return Compared((f"{call.id}: {_kinds(golden)} -> {_kinds(found)}",), ())
    wrong: list[str] = []
    loose: list[Loose] = []
    for kind in TABLES:
        for name, old, new in _matched(golden.get(kind, []), found.get(kind, [])):
            if old is None or new is None:
                wrong.append(f"{call.id} | {name}: {'no longer there' if new is None else 'was not there'}")
                continue
            wrong += [f"{call.id} | {name} | {each}" for each in _differences(call, old, new)]
            loose += _loose(call, name, old, new)
    for name, rows in golden.get("tables", {}).items():
        compared = _table(call, name, rows, found["tables"].get(name, []))
        wrong += compared.wrong
        loose += compared.loose
    wrong += [str(each) for each in loose if not each.good]
    return Compared(tuple(wrong), tuple(loose))


def _kinds(result: Mapping[str, Any]) -> str:
    return f"refused ({result['refused']})" if "refused" in result else f"{', '.join(sorted(result))}"


# --------------------------------------------------------------------------------------------------------------- rows


def key_of(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in KEY)


def _matched(golden: Sequence[Row], found: Sequence[Row]) -> Iterator[tuple[str, Row | None, Row | None]]:
    """Rows of the same key; a golden comparison without a reward takes whatever reward the new one names."""
    new = {key_of(row): row for row in found}
    nameless = {key[:-1]: key for key in new}
    for row in golden:
        key = key_of(row)
        if key not in new and key[-1] is None:
            key = nameless.get(key[:-1], key)
        yield _name(row), row, new.pop(key, None)
    for row in new.values():
        yield _name(row), None, row


def _name(row: Row) -> str:
    return " ".join(str(each) for each in key_of(row) if each is not None)


def _point(row: Row) -> str:
    return "difference" if "difference" in row else "value"


def _differences(call: Call, old: Row, new: Row) -> list[str]:
    """What must agree and does not."""
    point = _point(old)
    scale = max(_size(old[point]), _size(old["stderr"]))
    scales = {point: scale}
    names = [] if call.folds else [point, "ess"] if "ess" in old else [point]
    wrong = [
        f"{name}: {old[name]!r} -> {new[name]!r}"
        for name in names
        # the effective number of rows was a difference of two large sums, and lost digits where a clip cuts nothing
        if not close(old[name], new[name], scale=scales.get(name, 0.0), exact=1e-8 if name == "ess" else call.exact)
    ]
    return wrong + [f"{name}: {old[name]} -> {new[name]}" for name in WHOLE if name in old and old[name] != new[name]]


def _loose(call: Call, name: str, old: Row, new: Row) -> list[Loose]:
    """What may differ, with how much at most."""
    if not (call.folds or call.resampled):
        return []
    point = _point(old)
    error = old["stderr"]
    found = [Loose(call.id, name, point, old[point], new[point], 3 * error + NEAR_0)] if call.folds else []
    if error > 0 and not math.isnan(new["stderr"]):  # where nothing differs there is no interval any more
        found.append(Loose(call.id, name, "stderr", error, new["stderr"], call.loose * error + NEAR_0))
    return found


def close(old: Any, new: Any, *, scale: float = 0.0, exact: float = EXACT) -> bool:
    """Whether two numbers agree to `exact` relative to themselves or to `scale`; NaN agrees with NaN."""
    if not isinstance(old, float) or not isinstance(new, float | int):
        return bool(old == new)
    if math.isnan(old) or math.isinf(old):
        return same_nan(old, new)
    return abs(old - new) <= max(exact * max(abs(old), scale), NEAR_0)


def same_nan(old: float, new: float) -> bool:
    return (math.isnan(old) and math.isnan(new)) or old == new


def _size(value: Any) -> float:
    return abs(value) if isinstance(value, float) and math.isfinite(value) else 0.0


# -------------------------------------------------------------------------------------------------------------- tables


def _table(call: Call, name: str, golden: Sequence[Sequence[Any]], found: Sequence[Sequence[Any]]) -> Compared:
    """Tables cell by cell; those with a header have columns that may rest on resampling."""
    where = f"{call.id} | {name}"
    if len(golden) != len(found):
        return Compared((f"{where}: {len(golden)} rows -> {len(found)}",), ())
    header = [str(each) for each in golden[0]] if all(isinstance(each, str) for each in golden[0]) else []
    redrawn = [call.resampled and not REDRAWN.isdisjoint(each.split("_")) for each in header]
    wrong: list[str] = []
    loose: list[Loose] = []
    for at, (old, new) in enumerate(zip(golden, found, strict=True)):
        if len(old) != len(new):
            wrong.append(f"{where}, row {at}: {len(old)} cells -> {len(new)}")
            continue
        for column, (before, after) in enumerate(zip(old, new, strict=True)):
            if header and at and header[column] in OF_INTERVALS:
                continue
            if redrawn and redrawn[column] and isinstance(before, float) and isinstance(after, float):
                label = " ".join(str(each) for each in old if isinstance(each, str))
                loose.append(Loose(call.id, f"{name} {label}", header[column], before, after, call.loose))
            elif not close(before, after, exact=call.exact):
                wrong.append(f"{where}, row {at}, {header[column] if header else column}: {before!r} -> {after!r}")
    return Compared(tuple(wrong), tuple(loose))


def compare_group(group: str) -> Compared:
    """All calls of a group, run now."""
    golden = read(group)
    calls = {call.id: call for call in of_group(group)}
    missing = [f"{name}: no call" for name in golden if name not in calls]
    missing += [f"{name}: no golden" for name in calls if name not in golden]
    parts = [compare(call, golden[name], run(call)) for name, call in calls.items() if name in golden]
    return Compared(
        (*missing, *(line for part in parts for line in part.wrong)),
        tuple(each for part in parts for each in part.loose),
    )


def main() -> None:
    words = sys.argv[1:]
    failed = False
    for group in [word for word in words if not word.startswith("-")] or GROUPS:
        compared = compare_group(group)
        failed |= bool(compared.wrong)
        lines = [f"{group}: {len(compared.wrong)} wrong, {len(compared.loose)} numbers that may differ"]
        lines += [f"  wrong: {line}" for line in compared.wrong]
        if "--table" in words:
            lines += [f"  {each}" for each in compared.loose if each.difference > 0]
        sys.stdout.write("\n".join(lines) + "\n")
    raise SystemExit(int(failed))


if __name__ == "__main__":
    main()
