"""Randomness: one seed in; streams derived from (seed, purpose, user or cell), so that order never matters."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from truerank.core.ids import Keys

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def generator(seed: int, purpose: str) -> np.random.Generator:
    """A generator for one purpose; two purposes never share a stream."""
    return np.random.Generator(np.random.PCG64(_base(seed, purpose)))


def library_seed(seed: int, purpose: str) -> int:
    """A 31-bit seed for a library that has a generator of its own."""
    return _base(seed, purpose) & 0x7FFFFFFF


def cell_keys(seed: int, purpose: str, user: Keys, item: Keys) -> Keys:
    """A uniform 64-bit number for each cell (user, item), a function of seed, purpose and the two ids alone.

    The k cells of a user with the smallest keys are a uniform sample without replacement, nested in k.
    """
    start = np.uint64(_base(seed, purpose) & 0xFFFFFFFFFFFFFFFF)
    with np.errstate(over="ignore"):
        return _mixed(_mixed(user * _GOLDEN + start) ^ _mixed(item + _GOLDEN))


def cell_uniforms(seed: int, purpose: str, user: Keys, item: Keys) -> npt.NDArray[np.float64]:
    """A uniform number in [0, 1) for each cell."""
    return (cell_keys(seed, purpose, user, item) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _base(seed: int, purpose: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=16).digest(), "little")


def _mixed(x: Keys) -> Keys:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014): a bijection that spreads every bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
