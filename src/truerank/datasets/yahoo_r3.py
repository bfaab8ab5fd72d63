"""Yahoo! R3 (Webscope; Marlin and Zemel, RecSys 2009): songs that users chose to rate, and songs drawn at random."""

from __future__ import annotations

from typing import ClassVar

from truerank.core.record import record
from truerank.datasets.dataset import Dataset, PublishedSize, RatedFile


@record
class YahooR3(Dataset):
    """`train` is what 15,400 users chose, `random` 10 random songs for each of 5,400 of them; label = rating > 3.

    No pair is in both parts, where chance would give about 1,290: the random songs were drawn among those the user had
    not rated, so `random` is a uniform sample of the songs outside `train`. Exclude the training pairs.
    """

    positive: str = ">3"

    name = "yahoo-r3"
    summary = "ratings of songs; chosen by the users, and at random"
    home = "https://webscope.sandbox.yahoo.com (R3, Yahoo! Music ratings)"
    terms = "signed agreement with Yahoo!, no redistribution"
    files = (
        "ydata-ymusic-rating-study-v1_0-train.txt",
        "ydata-ymusic-rating-study-v1_0-test.txt",
    )
    published: ClassVar = {
        "train": PublishedSize(15_400, 1_000, 311_704, 125_077),
        "random": PublishedSize(5_400, 1_000, 54_000, 4_749),
    }
    rated: ClassVar = {part: RatedFile(name, n_fields=3) for part, name in zip(published, files, strict=True)}
