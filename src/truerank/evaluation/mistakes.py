"""What is often forgotten or mixed up, said in one sentence: training pairs, and ids that do not meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from truerank.core.estimator import Exposed
from truerank.core.ids import Ids
from truerank.core.messages import Message, caution, note, warning
from truerank.core.ranking import JudgedChunk, Pool, Scores
from truerank.core.wording import option
from truerank.evaluation.question import Tallies
from truerank.ranks.kernel.rank import Aligned
from truerank.ranks.scores.scores import Lists

LOOKED_AT = 1000  # users whose lists tell whether training pairs were left out of them
FEW = 0.5  # of the users, below which ids may be those of other data


def without_exclusions(models: Mapping[str, Scores], exposed: Exposed) -> list[Message]:
    """That training pairs compete, where none were given to leave out."""
    if exposed is Exposed.FULL:
        return []
    if all(isinstance(scores, Lists) and scores.depth is not None for scores in models.values()):
        return [
            note(
                "no-exclusions",
                "nothing is excluded: lists are taken as they are; if they hold what users had in training, values are "
                f"too low ({option('exclude TRAIN')} leaves that out).",
            )
        ]
    return [
        caution(
            "no-exclusions",
            "nothing is excluded: what users had in training competes with the test items, and models score it "
            f"highest, so values are too low; give the training pairs with {option('exclude TRAIN')}.",
        )
    ]


def seen_items(models: Mapping[str, Aligned], chunk: JudgedChunk) -> Tallies:
    """How many items the first users' lists hold, and how many of these are excluded; those of other chunks add."""
    exclude = chunk.pools[Pool.CATALOGUE].exclude
    counted: dict[tuple[str, str], int] = {}
    if exclude is None:
        return counted
    for name, model in models.items():
        lists = model.scores
        if not isinstance(lists, Lists) or lists.depth is None or model.column is not None:
            continue
        row = model.of_units(chunk.unit).row
        for at in np.flatnonzero((chunk.unit < LOOKED_AT) & (row >= 0)):
            listed = lists.item[lists.start[row[at]] : lists.start[row[at] + 1]]
            left_out = exclude.item[exclude.start[at] : exclude.start[at + 1]]
            counted[name, "listed"] = counted.get((name, "listed"), 0) + len(listed)
            counted[name, "seen"] = counted.get((name, "seen"), 0) + int(np.isin(listed, left_out).sum())
    return counted


def about_seen(models: Sequence[str], tallies: Tallies) -> list[Message]:
    """That lists were made without leaving training pairs out."""
    counts = {model: [int(tallies.get((model, what), 0)) for what in ("listed", "seen")] for model in models}
    return [
        caution(
            "seen-in-lists",
            f"{model}: {seen / listed:.0%} of the listed items are excluded, what their users had in training: they do "
            "not compete here, and lists are that much shorter. Make the lists without them.",
            numbers={"seen": seen, "listed": listed},
            about=(model,),
        )
        for model, (listed, seen) in counts.items()
        if seen
    ]


def about_ids(models: Mapping[str, Scores], users: Ids, judged_items: Ids, *, source: str) -> list[Message]:
    """Ids that hardly meet: those of other data, or places in a matrix taken for ids."""
    messages = []
    for name, scores in models.items():
        missing = np.flatnonzero(scores.users.locate(users) < 0)
        if len(missing) > FEW * len(users):
            messages.append(
                caution(
                    "few-users-in-common",
                    f"{name} has no scores for {len(missing):,} of {len(users):,} users of {source}, such as "
                    f"{', '.join(users.texts(missing[:3]))}; its own are such as {_first(scores.users)}. If these are "
                    "the same users, name them alike.",
                    numbers={"users": len(users), "missing": len(missing)},
                    about=(name,),
                )
            )
        if (scores.items.locate(judged_items) < 0).all():
            messages.append(
                warning(
                    "no-item-in-common",
                    f"{name} and {source} have no item in common: {name} has items such as {_first(scores.items)}, "
                    f"{source} such as {_first(judged_items)}; so nothing relevant is ever recommended. Check the ids.",
                    about=(name,),
                )
            )
    return messages


def _first(ids: Ids) -> str:
    return ", ".join(ids.texts(np.arange(min(3, len(ids)))))
