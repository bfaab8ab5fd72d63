"""How the candidates of a sampler come about, and what an item is to a user; numbers, for the kernels."""

from __future__ import annotations

from enum import IntEnum


class CandidateKind(IntEnum):
    """All items of the pool, the user's own rows, or draws from the pool: without or with the user's positives."""

    FULL = 0
    EXPOSED = 1
    DRAWN = 2
    DRAWN_WITH_POSITIVES = 3


class Mark(IntEnum):
    """What an item is to a user: one that is liked, one that is excluded or held out (never shown, no candidate), or
    any other."""

    OTHER = 0
    LIKED = 1
    EXCLUDED = 2
