"""Files as MovieLens, RecBole and TREC have them, without a word on columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from refusals import refused

import truerank as tr
from truerank.core.errors import InputError

ROWS = [("1", "1193", 5), ("1", "661", 3), ("2", "1193", 4)]


def written(name: str) -> str:
    """The same three ratings in each layout."""
    if name == "ratings.dat":
        return "".join(f"{user}::{item}::{rating}::97830076{at}\n" for at, (user, item, rating) in enumerate(ROWS))
    if name == "u.data":
        return "".join(f"{user}\t{item}\t{rating}\t97830076{at}\n" for at, (user, item, rating) in enumerate(ROWS))
    if name == "ml.inter":
        head = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
        return head + "".join(
            f"{user}\t{item}\t{rating}\t97830076{at}\n" for at, (user, item, rating) in enumerate(ROWS)
        )
    if name == "ratings.csv":
        head = "userId,movieId,rating,timestamp\n"
        return head + "".join(f"{user},{item},{rating},97830076{at}\n" for at, (user, item, rating) in enumerate(ROWS))
    return "# judged by hand\n" + "".join(f"{user} 0 {item} {rating}\n" for user, item, rating in ROWS) + "# the end\n"


@pytest.mark.parametrize("name", ["ratings.dat", "u.data", "ml.inter", "ratings.csv", "judged.qrels"])
def test_the_same_ratings_in_every_layout(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(written(name))
    log = tr.read(path, positive=">3")
    assert log.users.texts() == ["1", "2"]
    assert log.items.texts() == ["661", "1193"]
    assert log.rewards["rating"].tolist() == [3.0, 5.0, 4.0]
    assert log.label.tolist() == [0.0, 1.0, 1.0]
    if name != "judged.qrels":
        assert log.time is not None
        assert [int(float(each)) for each in log.time] == [978300761, 978300760, 978300762]


@pytest.mark.parametrize("text", ["", "1,2,3\n", "1::2::3\n", "1::2::x::4\n", "1::2::3::x\n"])
def test_what_is_not_movielens_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.dat"
    path.write_text(text)
    with pytest.raises(InputError):
        tr.read(path)


def test_comments_of_trec_files_keep_the_numbers_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.qrels"
    path.write_text("# comment\n1 0 2 1\n# comment\n1 0 3\n")
    with refused("line 4 has 3 fields"):
        tr.read(path)
