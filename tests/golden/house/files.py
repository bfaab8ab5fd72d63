"""The stored goldens: one JSON file for each group of calls, one row on each line, floats with all their digits."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "goldens"
TABLES = ("comparisons", "estimates")


def write(group: str, results: Mapping[str, Mapping[str, Any]]) -> Path:
    """Results by the id of their call; rows of estimates and comparisons are stored without the names of columns."""
    columns = {kind: _columns(kind, results) for kind in TABLES}
    lines = ["{", '"calls": {']
    for at, (name, result) in enumerate(sorted(results.items())):
        lines.append(f"{json.dumps(name)}: {{")
        lines.append(
            ",\n".join(f"{json.dumps(kind)}: {_value(result[kind], columns, kind)}" for kind in sorted(result))
        )
        lines.append("}," if at < len(results) - 1 else "}")
    lines += ["},", f'"columns": {json.dumps(columns, sort_keys=True)}', "}"]
    path = FOLDER / f"{group}.json"
    path.write_text("\n".join(lines) + "\n")
    return path


def read(group: str) -> dict[str, dict[str, Any]]:
    """The results of a group's calls, as `run.run` gives them."""
    stored = json.loads((FOLDER / f"{group}.json").read_text())
    return {
        name: {kind: _back(value, stored["columns"], kind) for kind, value in result.items()}
        for name, result in stored["calls"].items()
    }


def _columns(kind: str, results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return next((list(row) for result in results.values() for row in result.get(kind, [])), [])


def _value(value: Any, columns: Mapping[str, list[str]], kind: str) -> str:
    if kind in TABLES:
        return _rows([[row[name] for name in columns[kind]] for row in value])
    if kind == "tables":
        parts = (f"{json.dumps(name)}: {_rows(rows)}" for name, rows in sorted(value.items()))
        return "{\n" + ",\n".join(parts) + "\n}"
    return json.dumps(value)


def _rows(rows: list[list[Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps([_text(each) for each in row], allow_nan=False) for row in rows) + "\n]"


def _text(value: Any) -> Any:
    """Numbers that JSON does not have are text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and value in ("nan", "inf", "-inf") else value


def _back(value: Any, columns: Mapping[str, list[str]], kind: str) -> Any:
    if kind in TABLES:
        return [dict(zip(columns[kind], map(_number, row), strict=True)) for row in value]
    if kind == "tables":
        return {name: [[_number(each) for each in row] for row in rows] for name, rows in value.items()}
    return value
