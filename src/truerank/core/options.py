"""The choices in which tools of the same name differ, as named values; docs/definitions.md says who chooses what."""

from __future__ import annotations

from enum import StrEnum


class Denominator(StrEnum):
    """What the sum over a user's relevant items is divided by.

    NOTHING    it stays a sum
    CUTOFF     K
    LIST       the length of the list: K, or the number of items that are recommended where that is less
    POSITIVES  all relevant items of the user
    SMALLER    the smaller of K and all relevant items of the user
    """

    NOTHING = "nothing"
    CUTOFF = "cutoff"
    LIST = "list"
    POSITIVES = "positives"
    SMALLER = "smaller"

    @property
    def needs_every_label(self) -> bool:
        """From partial labels the number of all relevant items is not known."""
        return self in (Denominator.POSITIVES, Denominator.SMALLER)


class Gain(StrEnum):
    """What an item of grade g adds at rank 1.

    BINARY       its label, 0 or 1
    LINEAR       g
    EXPONENTIAL  2^g - 1
    """

    BINARY = "binary"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"


class Discount(StrEnum):
    """What the gain of an item at rank r is divided by.

    SMOOTH    log2(r + 1), as nearly everybody has it today
    ORIGINAL  max(1, log2(r)): none up to rank 2, as Järvelin and Kekäläinen (2002) wrote it, and LensKit has it
    """

    SMOOTH = "smooth"
    ORIGINAL = "original"


class Ideal(StrEnum):
    """The list that nDCG divides by.

    POSITIVES  the best order of the user's own items, which ends with the last relevant one
    CUTOFF     always K long: K items as good as the user's best
    """

    POSITIVES = "positives"
    CUTOFF = "cutoff"


class AbsentUsers(StrEnum):
    """What becomes of users of whom a value cannot be had.

    OUT   they are left out, and counted
    ZERO  they count as 0, as some tools have it
    """

    OUT = "out"
    ZERO = "zero"


class ListsAre(StrEnum):
    """What lists of recommended items are.

    TOP       the top of a longer order, of which the rest is unknown
    COMPLETE  all that a model would ever show: what is missing was not retrieved
    """

    TOP = "top"
    COMPLETE = "complete"


class Drawn(StrEnum):
    """From which items a random log was drawn for each user.

    ALL     from every item
    UNSEEN  from the items that the user has no row for in the other log (training data, or the biased log)
    """

    ALL = "all"
    UNSEEN = "unseen"


class CoveredItems(StrEnum):
    """Of which items a share is covered.

    CATALOGUE  of all that can be recommended
    TRAIN      of those of the training log, as RePlay has it; others count on neither side
    """

    CATALOGUE = "catalogue"
    TRAIN = "train"


class InformationUnit(StrEnum):
    """In what self-information is measured.

    BITS   -log2 of the share of users
    SHARE  of the most there can be, log2 of the number of users
    """

    BITS = "bits"
    SHARE = "share"


class PopularityBase(StrEnum):
    """What the popularity of lists is compared with.

    HISTORY    the items that the same users have in the training log
    CATALOGUE  all items
    """

    HISTORY = "history"
    CATALOGUE = "catalogue"


class Distance(StrEnum):
    """How far two items are apart.

    HAMMING  the number of features that differ
    COSINE   1 - the cosine of the angle between their features
    """

    HAMMING = "hamming"
    COSINE = "cosine"
