"""The page on verdicts: it has every picture, and what they show is what the rules say."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

from docs.making.files import DOCS
from docs.making.verdicts import PICTURES, judged, users
from truerank.inference import verdicts
from truerank.inference.verdicts import UnseenExposure

PAGE = DOCS / "verdicts.md"
FOLDER = DOCS / "figures" / "verdicts"


def test_every_reason_that_takes_a_verdict_away_has_its_paragraph() -> None:
    codes = set(re.findall(r'message\(\s*"([a-z-]+)', inspect.getsource(verdicts)))
    assert codes >= {"few-informative", "no-spread", "one-cluster", "unseen-exposure"}
    page = PAGE.read_text()
    for code in codes:
        assert re.search(rf"^\*\*.*\(`{code}`\)\.\*\*", page, flags=re.M), code
        assert code in PICTURES


@pytest.mark.parametrize(
    ("difference", "verdict", "codes"),
    [
        (users(40, 0.07, 0.12), "better", ()),
        (users(40, 0.02, 0.12), "not shown", ()),
        (users(40, -0.06, 0.12), "worse", ()),
        (np.concatenate([users(5, 1.0, 0.05), np.zeros(40)]), "insufficient", ("few-informative",)),
        (np.ones(12), "insufficient", ("no-spread",)),
        (np.repeat([0.0, 1.0], [3, 9]), "better", ()),
        (np.concatenate([users(19, -0.05, 0.08), [1.3]]), "insufficient", ("one-cluster",)),
        (users(19, -0.05, 0.08), "worse", ()),
    ],
)
def test_what_the_pictures_show(difference: np.ndarray, verdict: str, codes: tuple[str, ...]) -> None:
    found = judged(difference)
    assert (found.verdict, found.codes) == (verdict, codes)


@pytest.mark.parametrize(("reach", "verdict"), [(0.12, "worse"), (0.45, "insufficient")])
def test_what_is_unseen_takes_a_verdict_only_where_it_can_turn_it(reach: float, verdict: str) -> None:
    found = judged(users(60, -0.3, 0.4), unseen=(UnseenExposure(0.25, reach), UnseenExposure()))
    assert found.verdict == verdict
