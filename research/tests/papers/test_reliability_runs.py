"""Parts of the study of sampled candidates: datasets, stored scores, the search for settings, verdicts from counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from truerank_research.claims import Cell, Cells, Verdict
from truerank_research.papers.reliability.data import (
    AS_RELEASED,
    PUBLISHED,
    RELEASED,
    kuairec_data,
)
from truerank_research.papers.reliability.questions import STUDIES, SUPPORT


def test_labels_of_the_original_kuairec_files_are_kept(tmp_path: Path) -> None:
    head = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n"
    row = "{},{},4381,6067,2020-07-05 05:27:48.378,20200705,1593898068.378,{}\n"
    small = [(14, 148, 0.7), (14, 183, 2.3), (19, 148, 2.5), (19, 183, 0.1)]
    big = [(14, 7, 0.5), (14, 9, 2.1), (19, 7, 0.2), (19, 7, 3.0), (20, 9, 2.0), (20, 9, 0.1)]
    for name, rows in (("small", small), ("big", big)):
        (tmp_path / f"{name}_matrix.csv").write_text(head + "".join(row.format(*values) for values in rows))
    (tmp_path / "item_categories.csv").write_text('video_id,feat\n7,"[8]"\n9,"[27, 9]"\n')
    train = kuairec_data(tmp_path, check=False).train
    users, items = (ids.values.gather(at) for ids, at in ((train.users, train.user), (train.items, train.item)))
    assert sorted(zip(users, items, train.label, strict=True)) == [(14, 7, 0), (14, 9, 1), (19, 7, 1), (20, 9, 0)]
    assert [len(train.users), len(train.items)] == [3, 4]


@pytest.mark.parametrize(
    ("released", "published", "verdict"),
    [
        ((10, 10), (8, 10), Verdict.REPLICATES),
        ((10, 10), (7, 10), Verdict.IN_PART),
        ((3, 10), (0, 10), Verdict.FAILS),
        ((4, 10), (5, 10), Verdict.IN_PART),
        ((0, 0), (0, 0), Verdict.UNTESTABLE),
    ],
)
def test_both_presets_decide_on_the_papers_dataset(
    released: tuple[int, int], published: tuple[int, int], verdict: Verdict
) -> None:
    claim = STUDIES[3].claims[0]
    counts = {f"KuaiRec, {RELEASED}": released, f"KuaiRec, {PUBLISHED}": published, f"Jester, {RELEASED}": (0, 10)}
    counts |= {f"KuaiRec, {AS_RELEASED}": (10, 10)}  # which is told and decides nothing
    cells = [
        Cell(SUPPORT, f"{claim.key} {claim.text}", f"{study}: {name}", float(value))
        for study, (n, of) in counts.items()
        for name, value in (("support", n), ("of", of), ("median", 0.5))
    ]
    finding = claim.rule(Cells(tuple(cells)))
    assert finding.verdict is verdict
    assert f"Jester, {RELEASED} 0 of 10" in finding.why
