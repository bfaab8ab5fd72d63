"""All calls, in groups that are stored in one file each; the kinds of calls have modules of their own."""

from __future__ import annotations

from collections.abc import Iterator

from tests.golden.house import calls_biased, calls_labels, calls_more, calls_offpolicy
from tests.golden.house.call import Call, Options

# -------------------------------------------------------------------------------------------------------------- studies


def _studies() -> Iterator[Call]:
    group = "studies"
    metrics = ["Recall@5", "nDCG@10"]
    small: Options = {
        "metrics": metrics,
        "sparsities": [0.0, 0.5],
        "sizes": [2, 6],
        "samplers": ["Full", "Exposed", "Random", "Skew"],
    }
    yield Call(
        "study/published",
        group,
        "study",
        "study",
        {**small, "loggers": ["uniform", "popularity"]},
    )
    yield Call(
        "study/released",
        group,
        "study",
        "study",
        {
            **small,
            "preset": "released",
            "loggers": ["uniform", "positivity"],
            "samplers": ["Full", "WTD", "Popularity"],
            "seed": 2,
        },
    )
    yield Call(
        "study/repeated",
        group,
        "study",
        "study",
        {
            **small,
            "loggers": ["positivity"],
            "repetitions": 2,
            "exclude": True,
            "samplers": ["Full", "Random@e", "WTDH"],
            "level": 0.9,
        },
    )


CALLS: tuple[Call, ...] = (
    *calls_labels.calls(),
    *calls_biased.calls(),
    *calls_more.calls(),
    *calls_offpolicy.calls(),
    *_studies(),
)
GROUPS: tuple[str, ...] = tuple(dict.fromkeys(call.group for call in CALLS))


def of_group(group: str) -> tuple[Call, ...]:
    return tuple(call for call in CALLS if call.group == group)
