"""Position models: the published values, cut-offs, tables, places, and text forms that parse back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from truerank.core.errors import RefusedError
from truerank.core.values import options_of
from truerank.exposure.positions import catalogue, parse_position
from truerank.exposure.positions.position_models import (
    Exponential,
    FitRequest,
    Logarithmic,
    Place,
    PositionModel,
    Positions,
    Table,
)

RANKS = np.arange(1.0, 7.0)
FIXTURES = {
    "yule:1.5": [1, 0.4, 0.228571, 0.152381, 0.110823, 0.085248],
    "yule:0.5": [1, 0.666667, 0.533333, 0.457143, 0.406349, 0.369408],
    "log": [1, 0.630930, 0.5, 0.430677, 0.386853, 0.356207],
    "log:100": [1, 0.215890, 0.188259, 0.175045, 0.166716, 0.160771],
    "exp:0.9": [1, 0.9, 0.81, 0.729, 0.6561, 0.59049],
}


def single(text: str) -> PositionModel:
    found = parse_position(text)
    assert isinstance(found, PositionModel)
    return found


@pytest.mark.parametrize("text", FIXTURES)
def test_published_values(text: str) -> None:
    np.testing.assert_allclose(single(text).view(RANKS), FIXTURES[text], atol=5.1e-7)


PARAMETERS = {"table": ((1.0, 0.5, 0.5, 0.1),), "generalised-log": (3.0,)}  # the others take a number below 1, or none


def model_of(cls: type[Any]) -> Any:
    own = (0.7,) * sum(option.needed for option in options_of(cls).values())
    return cls(*PARAMETERS.get(cls.name, own))


MODELS = [model_of(cls) for cls in catalogue().values() if cls is not FitRequest]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_model_is_1_at_rank_1_never_rises_and_is_0_beyond_its_cutoff(model: Any) -> None:
    view = model.view(np.arange(1.0, 3000.0))
    assert view[0] == 1
    assert (np.diff(view) <= 0).all()
    assert ((view >= 0) & (view <= 1)).all()
    cut = type(model)(*(getattr(model, name) for name in type(model).__slots__ if name != "cutoff"), cutoff=2)
    np.testing.assert_array_equal(cut.view(RANKS), np.where(RANKS <= 2, model.view(RANKS), 0.0))
    assert parse_position(str(cut)) == cut
    assert parse_position(str(model)) == model


@pytest.mark.parametrize(
    "text",
    ["", "lgo", "exp", "exp:1.5", "exp:0", "exp:x", "yule:-1", "yule:nan", "log:0", "log@0", "log@x", "exp:0.9:0.8",
     "fit:log2", "fit:", "table:1:0.5:0.7", "table:0.5", "table:1:2", "a=log,b", "=log", "a/=log", "a=log,a=exp:0.5",
     "missing.csv"],
)  # fmt: skip
def test_wrong_texts_are_explained(text: str) -> None:
    with refused(r"expected|no such file|Did you mean"):
        parse_position(text)


def test_the_most_special_place_holds() -> None:
    feed = Positions(
        (
            (Place(), Exponential(0.1)),
            (Place(group="new"), Exponential(0.2)),
            (Place("home"), Exponential(0.3)),
            (Place("home", "new"), Exponential(0.4)),
        )
    )
    surface, group = np.array(["x", "x", "home", "home"]), np.array(["old", "new", "old", "new"])
    np.testing.assert_allclose(
        feed.view_by(feed.at(4, surface=surface, group=group), np.full(4, 2.0)), [0.1, 0.2, 0.3, 0.4]
    )


def test_places_without_a_model_or_a_column_are_refused() -> None:
    feed = Positions(((Place("home"), Logarithmic()),))
    with refused("row 2: no position model for other"):
        feed.at(2, surface=np.array(["home", "other"]))
    with refused("no column surface"):
        feed.at(len(RANKS))
    with refused("still to be fitted"):
        Positions.everywhere(FitRequest("exp")).view_by(np.zeros(len(RANKS), dtype=np.int64), RANKS)


def test_a_table_is_read_from_a_file(tmp_path: Path) -> None:
    plain, places = tmp_path / "plain.csv", tmp_path / "places.csv"
    plain.write_text("position,probability\n2,0.5\n1,1\n3,0.2\n")
    assert parse_position(str(plain)) == Table((1.0, 0.5, 0.2))
    assert parse_position(f"{plain}@2") == Table((1.0, 0.5, 0.2), cutoff=2)
    places.write_text("position,probability,surface,group\n1,1,a,7\n2,0.5,a,7\n1,1,b,8\n")
    found = parse_position(str(places))
    assert found == Positions(((Place("a", "7"), Table((1.0, 0.5))), (Place("b", "8"), Table((1.0,)))))
    for text in (
        "position,probability\n1,1\n3,0.5\n",
        "position\n1\n",
        "position,probability\n1,1\n2,2\n",
        "position,probability\n",
    ):
        plain.write_text(text)
        with refused(r"plain\.csv"):
            parse_position(str(plain))


def test_frequencies_become_monotone() -> None:
    """Pool adjacent violators, weighted: (30 + 60) / (100 + 100) = 0.45 at ranks 2 and 3."""
    found = Table.of_frequencies([100, 30, 60, 10], [100, 100, 100, 100])
    np.testing.assert_allclose(found.probability, (1.0, 0.45, 0.45, 0.1))
    with refused("rank 2 was never shown", RefusedError):
        Table.of_frequencies([5, 0], [10, 0])
    with refused("nothing was ever viewed", RefusedError):
        Table.of_frequencies([0, 0], [10, 5])
    with refused("more views"):
        Table.of_frequencies([5, 6], [10, 5])
