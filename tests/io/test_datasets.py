"""Loaders on generated files in the published layouts, and on real data where it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from realdata import folder_of
from truerank import datasets
from truerank.datasets.dataset import Dataset
from truerank.datasets.feeds import KuaiRand, KuaiRec, OpenBandit
from truerank.datasets.ratings import Coat, Jester, MovieLens1M, MovieLens100K, YahooR3

# ------------------------------------------------------------------------------------------ files as they are published


def kuairec(folder: Path) -> None:
    head = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n"
    rows = "14,148,4381,6067,2020-07-05 05:27:48.378,20200705,1593898068.378,0.722\n14,183,11635,5100,,,,2.281\n"
    (folder / "data").mkdir()
    (folder / "data" / "small_matrix.csv").write_text(f"{head}{rows}19,148,12135,6067,,,,2.0\n")
    (folder / "data" / "big_matrix.csv").write_text(f"{head}{rows}{rows}")


def kuairand(folder: Path) -> None:
    names = (
        "user_id,video_id,date,hourmin,time_ms,is_click,is_like,is_follow,is_comment,is_forward,is_hate,long_view,"
        "play_time_ms,duration_ms,profile_stay_time,comment_stay_time,is_profile_enter,is_rand,tab\n"
    )
    for name, rand in (("standard_4_08_to_4_21", 0), ("standard_4_22_to_5_08", 0), ("random_4_22_to_5_08", 1)):
        text = names + f"0,7,20220408,0,1649347200000,1,0,0,0,0,0,1,9000,8000,0,0,0,{rand},1\n"
        text += f"1,8,20220408,0,1649347200001,0,1,0,0,0,0,0,90,8000,0,0,0,{rand},1\n"
        (folder / f"log_{name}_1k.csv").write_text(text)
    (folder / "user_features_1k.csv").write_text("user_id\n0\n")


def coat(folder: Path) -> None:
    (folder / "train.ascii").write_text("0 5 0\n3 0 4\n")
    (folder / "test.ascii").write_text("1 0 0\n0 4 0\n")
    (folder / "propensities.ascii").write_text("0.1 0.2 0.3\n0.4 0.5 0.6\n")


def yahoo(folder: Path) -> None:
    (folder / YahooR3.files[0]).write_text("1\t14\t5\n1\t35\t1\n2\t14\t4\n")
    (folder / YahooR3.files[1]).write_text("1\t49\t1\n1\t126\t4\n")


def movielens_100k(folder: Path) -> None:
    (folder / "u.data").write_text("196\t242\t3\t881250949\n186\t302\t4\t891717742\n")


def movielens_1m(folder: Path) -> None:
    (folder / "ml-1m").mkdir()
    (folder / "ml-1m" / "ratings.dat").write_text("1::1193::5::978300760\n1::661::3::978302109\n")


def jester(folder: Path) -> None:
    lines = [[1, 3.5, *[99] * 99], [100, *[-1.25] * 50, *[2] * 50]]
    (folder / "jester-data-1.csv").write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    (folder / "jester-data-3.csv").write_text(",".join(map(str, lines[0])) + "\n")


def open_bandit(folder: Path) -> None:
    head = ",timestamp,item_id,position,click,propensity_score,user_feature_0,user-item_affinity_0\n"
    for policy in ("random", "bts"):
        (folder / policy / "men").mkdir(parents=True)
        rows = (
            "0,2019-11-24 00:00:34.762830+00:00,14,3,0,0.0125,81ce,0.0\n1,2019-11-24 00:00:53+00:00,9,1,1,0.5,4ae,1.0\n"
        )
        (folder / policy / "men" / "men.csv").write_text(head + rows)


@dataclass(frozen=True, slots=True)
class Case:
    dataset: Dataset
    write: Callable[[Path], None]
    labels: dict[str, list[int]]  # of the rows of each part, by user and item


CASES = [
    Case(KuaiRec(), kuairec, {"full": [0, 1, 0], "train": [0, 0, 1, 1]}),
    Case(KuaiRand(), kuairand, {"train": [1, 1, 0, 0], "random": [1, 0]}),
    Case(KuaiRand(signal="is_like"), kuairand, {"train": [0, 0, 1, 1], "random": [0, 1]}),
    Case(Coat(), coat, {"train": [1, 0, 1], "random": [0, 1]}),
    Case(Coat(positive=">=3"), coat, {"train": [1, 1, 1], "random": [0, 1]}),
    Case(YahooR3(), yahoo, {"train": [1, 0, 1], "random": [0, 1]}),
    Case(MovieLens100K(), movielens_100k, {"train": [1, 0]}),
    Case(MovieLens1M(), movielens_1m, {"train": [0, 1]}),
    Case(Jester(), jester, {"full": [0] * 50 + [1] * 50, "train": [1, 1]}),
    Case(OpenBandit(), open_bandit, {"random men": [0, 1], "bts men": [0, 1]}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.dataset))
def test_published_layouts_are_read_and_wrong_sizes_refused(case: Case, tmp_path: Path) -> None:
    case.write(tmp_path)
    logs = case.dataset.load(tmp_path, check=False)
    assert {part: log.label.astype(int).tolist() for part, log in logs.items()} == case.labels
    with refused(r"expected [\d,]+ .*as published.*check=False"):
        case.dataset.load(tmp_path)
    first = next(iter(case.labels))
    assert list(case.dataset.load(tmp_path, parts=[first], check=False)) == [first]
    with refused("no part 'nonsense'"):
        case.dataset.load(tmp_path, parts=["nonsense"], check=False)


@pytest.mark.parametrize("name", list(datasets.catalogue()))
def test_a_folder_without_the_files(name: str, tmp_path: Path) -> None:
    with refused(rf"no files of {name}; expected .*Get them from https"):
        datasets.named(name)().load(tmp_path)
    with refused("no such folder"):
        datasets.named(name)().load(tmp_path / "gone")


@pytest.mark.parametrize(
    ("write", "name", "damage", "words"),
    [
        (kuairec, "data/small_matrix.csv", lambda t: t.replace("watch_ratio", "ratio"), "no column 'watch_ratio'"),
        (kuairec, "data/small_matrix.csv", lambda t: t.replace("0.722", "much"), "cannot be read.*much"),
        (kuairec, "data/small_matrix.csv", lambda t: "", "cannot be read.*empty"),
        (kuairand, "log_random_4_22_to_5_08_1k.csv", lambda t: t.replace("is_click", "click"), "'is_click'"),
        (coat, "train.ascii", lambda t: t.replace("3 0 4", "3 0"), "cannot be read"),
        (coat, "train.ascii", lambda t: t.replace("3", "x"), "cannot be read"),
        (coat, "propensities.ascii", lambda t: t.replace("0.4", "1.4"), r"probabilities in \(0, 1\]"),
        (yahoo, YahooR3.files[1], lambda t: t.replace("126\t4", "126"), "row 2 is None"),
        (yahoo, YahooR3.files[1], lambda t: t.replace("\t", ","), "1 fields per line; expected 3"),
        (movielens_1m, "ml-1m/ratings.dat", lambda t: t.replace("::", ":"), "2 fields per line; expected 4"),
        (jester, "jester-data-1.csv", lambda t: t.replace("3.5", "99"), "line 1 counts 1 ratings"),
        (jester, "jester-data-1.csv", lambda t: t.replace("3.5", "35"), "outside -10 to 10"),
        (jester, "jester-data-1.csv", lambda t: t.replace("1,3.5", "3.5"), "line 1 counts 3.5"),
        (open_bandit, "bts/men/men.csv", lambda t: t.replace("0.5,4ae", "1.5,4ae"), "propensity is 1.5"),
    ],
)  # fmt: skip
def test_damaged_files_are_named(
    write: Callable[[Path], None], name: str, damage: Callable[[str], str], words: str, tmp_path: Path
) -> None:
    write(tmp_path)
    path = tmp_path / name
    path.write_text(damage(path.read_text()))
    dataset = next(case.dataset for case in CASES if case.write is write)
    with refused(words) as caught:
        dataset.load(tmp_path, check=False)
    assert str(path) in str(caught.value)


def test_what_is_kept_beside_the_label(tmp_path: Path) -> None:
    kuairec(tmp_path)
    full = KuaiRec().load(tmp_path, check=False)["full"]
    assert list(full.rewards) == ["label", "watch_ratio", "play_duration", "video_duration"]
    assert full.rewards["video_duration"].tolist() == [6067, 5100, 6067]
    assert full.time is not None
    np.testing.assert_array_equal(full.time, [1593898068.378, np.nan, np.nan])
    coat(tmp_path)
    train = Coat().load(tmp_path, check=False)["train"]
    assert train.propensity is not None
    assert train.propensity.tolist() == [0.2, 0.4, 0.6]
    assert train.rewards["rating"].tolist() == [5, 3, 4]
    assert (len(train.users), len(train.items)) == (2, 3)
    open_bandit(tmp_path)
    log = OpenBandit().load(tmp_path, check=False)["bts men"]
    assert log.position is not None
    assert log.propensity is not None
    assert log.time is not None
    assert (log.position.tolist(), log.propensity.tolist()) == ([3, 1], [0.0125, 0.5])
    assert str(log.time[0]) == "2019-11-24T00:00:34.762830"
    kuairand(tmp_path)
    shown = KuaiRand().load(tmp_path, check=False)["random"]
    assert shown.rewards["play_time_ms"].tolist() == [9000, 90]
    jester(tmp_path)
    rated = Jester().load(tmp_path, check=False)
    assert rated["full"].users.texts() == ["1"]
    assert rated["train"].users.texts() == ["0", "48483"]  # the third file begins after 24,983 + 23,500 users


def test_features(tmp_path: Path) -> None:
    for dataset in (KuaiRec(), Coat(), OpenBandit()):
        with refused("expected"):
            dataset.features(tmp_path)
    kuairec(tmp_path)
    (tmp_path / "data" / "item_categories.csv").write_text('video_id,feat\n0,[8]\n1,"[27, 9]"\n')
    assert KuaiRec().features(tmp_path)["items"].rows() == [(0, [8]), (1, [27, 9])]
    counts = ["show_cnt", "play_cnt", "play_duration", "complete_play_cnt", "valid_play_cnt", "like_cnt", "comment_cnt",
              "follow_cnt", "share_cnt", "download_cnt", "collect_cnt"]  # fmt: skip
    head = ",".join(["video_id", "date", "author_id", *counts])
    days = [(1, 20200706, 5), (1, 20200705, 9), (0, 20200705, 3), (0, 20200707, 4)]
    rows = [f"{video},{date},77,{','.join([str(n)] * 10)}," for video, date, n in days]  # no collects yet
    (tmp_path / "item_daily_features.csv").write_text("\n".join([head, *rows]) + "\n")
    users = "user_id,user_active_degree,follow_user_num,fans_user_num,friend_user_num,register_days,onehot_feat0"
    (tmp_path / "user_features.csv").write_text(f"{users}\n0,high_active,5,0,0,107,0\n1,full_active,386,4,2,327,1\n")
    tables = KuaiRec().features(tmp_path)
    assert [row[:2] for row in tables["daily"].rows()] == [(0, 4.0), (1, 5.0)]
    assert [row[:2] for row in KuaiRec().features(tmp_path, until=20200705)["daily"].rows()] == [(0, 3.0), (1, 9.0)]
    assert tables["users"].row(1) == (1, "full_active", 386.0, 4.0, 2.0, 327.0, 1)
    with refused("no day until 20190101"):
        KuaiRec().features(tmp_path, until=20190101)
    (tmp_path / "user_item_features").mkdir()
    (tmp_path / "user_item_features" / "user_features.ascii").write_text("0 1\n1 0\n")
    assert Coat().features(tmp_path)["users"].rows() == [(0, 0, 1), (1, 1, 0)]
    open_bandit(tmp_path)
    (tmp_path / "bts" / "men" / "item_context.csv").write_text(",item_id,item_feature_0\n0,0,-0.5\n1,1,0.25\n")
    assert OpenBandit().features(tmp_path)["men"].rows() == [(0, -0.5), (1, 0.25)]


def test_choices_that_cannot_be(tmp_path: Path) -> None:
    kuairand(tmp_path)
    (tmp_path / "log_random_4_22_to_5_08_pure.csv").write_text("")
    with refused("versions 1k, pure together"):
        KuaiRand().load(tmp_path)
    with refused("'is_bored' is not known"):
        KuaiRand(signal="is_bored").load(tmp_path)
    (tmp_path / "jester-data-1.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    with refused("Excel"):
        Jester().load(tmp_path)
    with refused("Did you mean kuairec"):
        datasets.named("KuaiRec2")


# ----------------------------------------------------------------------------------------------------------- real data

REAL: dict[str, tuple[Dataset, dict[str, tuple[int, int, int, int]]]] = {
    "kuairec": (
        KuaiRec(),
        {
            "full": (1411, 3327, 4_694_397, 217_175),
            "train": (7175, 10_611, 846_253, 846_253),
            "graded": (1411, 2519, 117_113, 5_799),
        },
    ),
    "jester": (Jester(), {"full": (7200, 100, 720_000, 438_927)}),
    "coat": (Coat(), {"train": (290, 300, 6960, 1905), "random": (290, 300, 4640, 860)}),
    "movielens_1m": (MovieLens1M(), {"train": (6040, 3706, 1_000_209, 1_000_209)}),
    "open_bandit_sample": (
        OpenBandit(),
        {
            f"{policy} {campaign}": (10_000, items, 10_000, clicks)
            for (policy, campaign, items), clicks in {
                ("random", "all", 80): 38, ("random", "men", 34): 46, ("random", "women", 46): 46,
                ("bts", "all", 80): 42, ("bts", "men", 34): 69, ("bts", "women", 46): 46,
            }.items()
        },
    ),
}  # fmt: skip


@pytest.mark.realdata
@pytest.mark.parametrize("name", list(REAL))
def test_counts_of_real_data(name: str) -> None:
    dataset, expected = REAL[name]
    logs = dataset.load(folder_of(name))
    found = {part: (len(log.users), len(log.items), len(log), int(log.label.sum())) for part, log in logs.items()}
    assert found == expected
