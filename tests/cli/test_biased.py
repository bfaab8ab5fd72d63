"""truerank evaluate --exposure biased: what it says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from calling import Run

CALL = "evaluate log.csv --scores a=a.npz --exposure biased --metric Recall@2 --metric DCG@2"
ROWS = [(1, 10, 1, 0.5), (1, 20, 0, 0.5), (2, 20, 1, 0.25), (3, 30, 0, 1.0), (4, 10, 1, 0.2), (4, 50, 0, 0.4)]


@pytest.fixture(autouse=True)
def log(folder: Path) -> None:
    lines = ["user,item,label,propensity", *(",".join(str(value) for value in row) for row in ROWS)]
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    (folder / "plain.csv").write_text((folder / "log.csv").read_text().replace("propensity", "shown"))
    (folder / "mar.csv").write_text("user,item,label\n1,30,1\n2,10,0\n3,50,1\n4,20,0\n")
    (folder / "features.csv").write_text("item,length\n10,1\n20,2\n30,5\n40,3\n50,9\n")
    np.savez(folder / "r.npz", scores=np.full((4, 5), 0.3), users=[1, 2, 3, 4], items=[10, 20, 30, 40, 50])


def values(run: Run, call: str) -> dict[tuple[str, str], float]:
    found = run(f"{call} --format json --quiet").fine()
    return {(each["metric"], each["estimator"]): each["value"] for each in json.loads(found.out)["estimates"]}


def test_values_by_hand(run: Run) -> None:
    """Ranks of a.npz: user 1 has 10 first and 20 second, user 2 has 20 fourth, user 4 has 20, 50, 10."""
    found = values(run, f"{CALL} --estimator ips --estimator snips --estimator naive --estimator doubly-robust")
    second = 1 / np.log2(3)
    assert found["Recall@2", "ips"] == pytest.approx(2 / (2 + 4 + 5))
    assert found["Recall@2", "snips"] == found["Recall@2", "ips"]
    assert found["Recall@2", "naive"] == pytest.approx((5 / 2) / (5 / 2 + 5 + 5 / 2))
    assert found["DCG@2", "ips"] == pytest.approx(2 / 4)
    # shown in the top 2: user 1's 10 (rank 1) and 20 (rank 2), user 3's 30 (rank 1), user 4's 50 (rank 2)
    assert found["DCG@2", "snips"] == pytest.approx(2 / (2 + 2 * second + 1 + 2.5 * second) * (1 + second))


def test_a_column_of_another_name(run: Run) -> None:
    assert values(run, f"{CALL.replace('log.csv', 'plain.csv')} --propensity shown") == values(run, CALL)
    assert values(run, f"{CALL} --propensity column:propensity") == values(run, CALL)


def test_a_reward_model_from_a_file(run: Run) -> None:
    found = values(run, f"{CALL} --estimator doubly-robust --reward-model r.npz")
    second = 1 / np.log2(3)
    lists = 0.3 * (1 + second) * 4
    errors = 2 * 0.7 + 2 * -0.3 * second - 0.3 + 2.5 * -0.3 * second
    assert found["DCG@2", "doubly-robust"] == pytest.approx((lists + errors) / 4)


BAD = {
    "a propensity of 0": ("log.csv", "4,10,1,0.2", "4,10,1,0.0", "", "expected a probability in (0, 1]"),
    "a propensity that is no number": ("log.csv", "4,10,1,0.2", "4,10,1,often", "", "expected numbers"),
    "a column that is not there": ("log.csv", "", "", "--propensity exposed", "no column 'exposed'"),
    "no random slice": ("log.csv", "", "", "--propensity naive-bayes", "--random FILE"),
    "no features": ("log.csv", "", "", "--propensity logistic", "--item-features"),
    "a clip below 1": ("log.csv", "", "", "--clip 0.5", "expected a number from 1"),
    "a clip that the data chooses": ("log.csv", "", "", "--clip auto", "expected numbers"),
    "a reward model that is not there": (
        "log.csv", "", "", "--estimator doubly-robust --reward-model rates.npz", "rates.npz",
    ),
    "an option that a reward model has not": (
        "log.csv", "", "", "--estimator doubly-robust --reward-model item-rates(size=3)", "no option 'size'",
    ),
    "rewards for no estimator": ("log.csv", "", "", "--reward-model r.npz", "doubly-robust"),
    "an estimator of random exposure": ("log.csv", "", "", "--estimator pooled", "use post-stratified, snips"),
    "full labels wanted": ("log.csv", "", "", "--estimator full", "use post-stratified, snips"),
    "an interval for exactly these users": ("log.csv", "", "", "--interval design", "use --interval population"),
    "an interval for exactly these users of fitted propensities": (
        "log.csv", "", "", "--propensity power:0.5 --interval design", "Leave --bootstrap and --interval out",
    ),
    "a slice that a column does not use": ("log.csv", "", "", "--random mar.csv", "--random is not used by a column"),
    "a slice that a model does not use": (
        "log.csv", "", "", "--propensity power:0.5 --random mar.csv", "it goes with --propensity naive-bayes",
    ),
    "features that a model does not use": (
        "log.csv", "", "", "--propensity naive-bayes --random mar.csv --item-features features.csv",
        "--item-features is not used by --propensity naive-bayes; it goes with --propensity logistic",
    ),
    "features that do not exist": ("log.csv", "", "", "--user-features none.csv", "--user-features is not used by"),
    "a clip that nothing takes": ("log.csv", "", "", "--estimator naive --clip 3", "--clip cuts weights"),
    "a rate": ("log.csv", "", "", "--rate 0.1", "--rate goes with --exposure random"),
    "unlisted": ("log.csv", "", "", "--unlisted negative", "goes with --exposure full"),
    "kept exclusions": ("log.csv", "", "", "--exclude train.csv --overlap keep", "use --overlap drop"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input(run: Run, folder: Path, case: str) -> None:
    name, old, new, options, words = BAD[case]
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new) if old else text)
    found = run(f"{CALL} {options} --out result/out.json")
    assert found.code == 2, found
    assert words in found.message
    assert not found.out
    assert not list((folder / "result").iterdir())


def test_several_clips_cost_one_call(run: Run) -> None:
    """An estimator with a clip of its own keeps it."""
    call = f"{CALL} --metric DCG@2 --estimator ips --estimator snips(clip=2) --clip 1,3,inf --format json"
    content = json.loads(run(call).out)
    assert [(each["estimator"], each["clip"]) for each in content["estimates"] if each["metric"] == "DCG@2"] == [
        ("ips", 1.0), ("ips", 3.0), ("ips", None), ("snips", 2.0),
    ]  # fmt: skip
    alone = json.loads(run(call.replace("1,3,inf", "3")).out)
    assert [each for each in alone["estimates"] if each["clip"] == 3] == [
        each for each in content["estimates"] if each["clip"] == 3
    ]


def test_a_reward_model_without_some_item_is_refused(run: Run, folder: Path) -> None:
    np.savez(folder / "r.npz", scores=np.full((4, 4), 0.3), users=[1, 2, 3, 4], items=[10, 20, 30, 40])
    found = run(f"{CALL} --estimator doubly-robust --reward-model r.npz")
    assert found.code == 2
    assert "the reward model lacks some users or items" in found.message
