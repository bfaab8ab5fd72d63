"""`advise`: a headline says no more than the study measured. Pairs without a known order are counted in it, and a log
outside of what was measured is told so there, not in a footnote.
"""

from __future__ import annotations

import pytest
from tiny_advice import PAIRS, tiny_look, tiny_studied

from truerank.reliability import Advice, advice_for
from truerank.reliability.advice_words import verdict
from truerank.reliability.studied import LogProfile
from truerank.report.advice import advice_answer

SURE = dict.fromkeys(PAIRS, ((0.5, 0.5), (0.5, 0.5)))  # told apart by every choice
CLOSE = dict.fromkeys(PAIRS, ((0.04, 0.5), (0.04, 0.5)))  # 0.04 < 1.96 x 0.5 / √400: the order is not known


def advised(*, known: int, unknown: int, look: LogProfile | None = None, sparsity: float = 0.6) -> Advice:
    """Of a study in which so many pairs of models have a known order, and so many have none."""
    more = {("a", f"known{at}"): SURE for at in range(1, known)} | {("a", f"near{at}"): CLOSE for at in range(unknown)}
    studied = tiny_studied(SURE, more=more)
    return advice_for(studied, tiny_look() if look is None else look, users=100, sparsity=sparsity)


def test_a_pair_without_a_known_order_is_in_the_headline() -> None:
    """Nine of ten pairs always in the right order: tau 1 over these, 0.8 over all if the tenth comes out wrong."""
    found = advised(known=9, unknown=1)
    assert found.recommended.tau == pytest.approx(1.0, abs=1e-6)
    assert found.tau_of_all == pytest.approx((0.8, 1.0), abs=1e-6)
    assert "use Random, 10 negatives" in verdict(found)
    assert (
        "tau 1.00 (95 % interval 1.00 to 1.00) over 9 of 10 pairs of models; the study does not know the true order of "
        "the other, so over all it can be anything from 0.80 to 1.00"
    ) in verdict(found)


def test_all_pairs_known_are_said_to_be_all() -> None:
    assert "over all 10 pairs of models." in verdict(advised(known=10, unknown=0))
    assert "over 1 pair of models." in verdict(advised(known=1, unknown=0))


def test_where_most_orders_are_unknown_nothing_is_advised_to_be_used() -> None:
    few, half = advised(known=2, unknown=3), advised(known=2, unknown=2)
    assert "the choice would be Random, 10 negatives" in verdict(few)
    assert "use " not in verdict(few)
    assert "over 2 of 5 pairs of models" in verdict(few)
    assert "use Random, 10 negatives" in verdict(half)


@pytest.mark.parametrize(
    ("look", "sparsity", "words"),
    [
        (tiny_look(), 0.998, "your log is sparser than any in the study (99.8% against 60.0%)"),
        (
            tiny_look(spread=2.0),
            0.6,
            "its exposure is unlike that of the nearest logging policy, popularity (distance 1.40)",
        ),
        (
            tiny_look(items=1000, rows=200_000, positives=2000),
            0.6,
            "your catalogue has 1,000 items, that of the study 100",
        ),
        (tiny_look(positives=200), 0.6, "your users have 0.4 positives each, those of the study 4.0"),
    ],
)
def test_outside_of_what_was_measured_is_how_the_headline_begins(look: LogProfile, sparsity: float, words: str) -> None:
    said = verdict(advised(known=3, unknown=0, look=look, sparsity=sparsity))
    assert said.startswith("Outside of what was measured: ")
    assert words in said.split(". For the nearest that was, by nDCG@100 over 100 users, ")[0]
    assert "the choice would be Random, 10 negatives" in said
    assert "use " not in said


def test_inside_of_it_nothing_of_the_kind_is_said() -> None:
    assert verdict(advised(known=3, unknown=0)).startswith("By nDCG@100 over 100 users, use Random, 10 negatives: ")


def test_every_form_says_so() -> None:
    found = advised(known=9, unknown=1, sparsity=0.998)
    said = "your log is sparser than any in the study (99.8% against 60.0%)"
    answer = advice_answer(found, top=3)
    assert answer.summary.verdict == verdict(found)
    plain = answer.document
    assert (plain["outside"], plain["pairs"], plain["undecided"]) == ((said,), 9, (("a", "near0"),))
    assert plain["tau_of_all_pairs"] == pytest.approx([0.8, 1.0], abs=1e-6)
    for row in answer.frame().to_dicts():
        assert (row["outside"], row["pairs"], row["undecided"]) == (said, 9, 1)
