"""What libraries gave that need environments of their own: `python tests/support/newcomers.py NAME` stores it again.

NAME is lenskit, ranx, recbole or rectools, with that library and truerank installed. Its recommendations are stored as
they came out, and its own numbers; before that, truerank must give these numbers for the live objects.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

SCRIPTS = Path(__file__).parents[1] / "newcomers"
FOLDER = SCRIPTS / "stored"
NAMES = ("lenskit", "ranx", "recbole", "rectools")


def script(name: str) -> ModuleType:
    """The first steps with a library."""
    spec = spec_from_file_location(f"with_{name}", SCRIPTS / f"with_{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def live(name: str, folder: Path) -> dict[str, Any]:
    """What the library gives now; RecBole begins with files in a folder."""
    first = script(name)
    if name != "recbole":
        return dict(first.theirs())
    first.files(folder)
    return {"folder": folder, **first.theirs(folder)}


def store(name: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        made = live(name, Path(place))
        numbers = made.pop("numbers")
        check(script(name).ours(**made), numbers)
    given = {key: _plain(value) for key, value in made.items() if key != "folder"}
    content = {"library": name, "version": version(name), "numbers": numbers, "given": given}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(content) + "\n")


def load(name: str, folder: Path) -> dict[str, Any]:
    """What the library gave, as objects that look like its own."""
    content = json.loads((FOLDER / f"{name}.json").read_text())
    made = {"numbers": content["numbers"], **{key: _object(value) for key, value in content["given"].items()}}
    if name != "recbole":
        return made
    script(name).files(folder)
    return {"folder": folder, **made}


def check(results: Any, numbers: dict[str, float]) -> None:
    """Every value of every model equals the library's number, to 1e-9."""
    metrics = list(numbers)
    models = list(dict.fromkeys(each.model for each in results.estimates))
    found = {(each.model, each.metric.partition("(")[0]): each.value for each in results.estimates}
    if len(found) != len(models) * len(metrics):
        raise AssertionError(f"{len(found)} values of {models}; expected one for each of {metrics}")
    for (model, metric), value in found.items():
        if not math.isclose(value, numbers[metric], rel_tol=0, abs_tol=1e-9):
            raise AssertionError(f"{model} {metric}: {value!r}, but {numbers[metric]!r} by the library")


class LensKitStandIn:
    """A collection of lists, or a dataset, as far as it is looked at."""

    __module__ = "lenskit.data"

    def __init__(self, frame: Any, how: str) -> None:
        setattr(self, how, lambda **_: frame)


def _plain(value: Any) -> Any:
    for how in ("to_df", "interaction_table"):
        if type(value).__module__.startswith("lenskit") and hasattr(value, how):
            frame = value.to_df() if how == "to_df" else value.interaction_table(format="pandas", original_ids=True)
            return {"lenskit": how, **_plain(frame)}
    if type(value).__module__.startswith("pandas"):
        return {"frame": {name: value[name].astype(str if value[name].dtype.kind == "M" else value[name].dtype).tolist()
                          for name in value.columns}}  # fmt: skip
    if hasattr(value, "field2id_token"):
        fields = [value.uid_field, value.iid_field]
        return {"recbole": fields, "tokens": {name: list(map(str, value.field2id_token[name])) for name in fields}}
    if isinstance(value, tuple):
        return {"arrays": [part.tolist() for part in value]}
    return value.tolist() if hasattr(value, "tolist") else value


def _object(value: Any) -> Any:
    import numpy as np
    import pandas as pd

    if not isinstance(value, dict):
        return np.array(value) if isinstance(value, list) else value
    if "lenskit" in value:
        return LensKitStandIn(pd.DataFrame(value["frame"]), value["lenskit"])
    if "frame" in value:
        return pd.DataFrame(value["frame"])
    if "recbole" in value:
        user, item = value["recbole"]
        return SimpleNamespace(uid_field=user, iid_field=item, field2id_token=value["tokens"])
    return tuple(np.array(part) for part in value["arrays"]) if "arrays" in value else value


if __name__ == "__main__":
    store(sys.argv[1])
