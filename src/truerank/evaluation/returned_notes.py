"""What is said of what came back of a designed exposure."""

from __future__ import annotations

from truerank.core.messages import Message, caution, note, warning
from truerank.core.ranking import Returned

MUCH_MISSING = 0.2  # of the rows that were to be shown, from which what is missing is more than a caution


def about_returned(returned: Returned | None) -> list[Message]:
    """How much of the design came back, and by which rule the rest is read."""
    if returned is None:
        return []
    drawn, back = returned.drawn, returned.back
    if not back:
        sentence = (
            f"none of the {returned.unasked:,} rows is in the design: its users and items have other ids, or the "
            "labels are of another design"
        )
        return [warning("nothing-returned", sentence, numbers={"drawn": drawn, "rows": returned.unasked})]
    messages = [
        note(
            "returned",
            f"{back:,} of the {drawn:,} pairs that the design shows these users came back with a label.",
            numbers={"drawn": drawn, "back": back},
        )
    ]
    if returned.unasked:
        messages.append(
            caution(
                "unasked",
                f"{returned.unasked:,} rows are not in the design, so that their chance is unknown, and are left out.",
                numbers={"rows": returned.unasked},
            )
        )
    if back < drawn:
        share = 1 - back / drawn
        serious = warning if share > MUCH_MISSING else caution
        messages.append(
            serious(
                "not-returned",
                f"{drawn - back:,} pairs of the design ({share:.0%}) did not come back: rows of the same user that did "
                f"stand for them ({returned.partial:,} users), as if chance alone had taken them away, and "
                f"{returned.silent:,} users of whom none did are left out. If what is missing depends on whether it "
                "was liked, values are off.",
                numbers={"rows": drawn - back, "users": returned.partial, "silent": returned.silent},
            )
        )
    return messages


def about_unheard(users: int, of: int) -> list[Message]:
    """That users of the design are not in the labels at all."""
    if not users:
        return []
    return [
        caution(
            "users-not-returned",
            f"{users:,} of the {of:,} users of the design have no row in the labels and are left out, as if they had "
            "not been asked.",
            numbers={"users": users, "of": of},
        )
    ]
