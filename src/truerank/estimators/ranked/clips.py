"""Questions about one reward at several clips, which are answered together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import Asked

Answer = TypeVar("Answer")


def by_reward(asked: Sequence[Asked], answer: Callable[[str, Floats], Sequence[Answer]]) -> list[Answer]:
    """The answers in the order asked, found for all clips of a reward at once.

    >>> asked = [Asked(reward="a", clip=2.0), Asked(reward="b", clip=1.0), Asked(reward="a", clip=1.0)]
    >>> by_reward(asked, lambda reward, clips: [f"{reward}{clip:g}" for clip in clips])
    ['a2', 'b1', 'a1']
    """
    found: dict[Asked, Answer] = {}
    for reward in dict.fromkeys(each.reward for each in asked):
        own = [each for each in asked if each.reward == reward]
        clips = np.array([each.clip for each in own])
        found |= dict(zip(own, answer(reward, clips), strict=True))
    return [found[each] for each in asked]
