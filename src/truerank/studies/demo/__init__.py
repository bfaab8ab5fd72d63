"""The demo: a world whose truth is known is hidden, evaluated in several ways, and compared with its truth.

`first` asks one question and shows one picture; a module in `topics` tells one part of the rest. A new topic is one new
module there: the command line, `--all` and the tests find it by themselves.

>>> sorted(TOPICS.catalogue())
['biased', 'holdout', 'judges', 'random', 'ranked', 'sampled', 'targeted']
"""

from __future__ import annotations

from truerank.core.rooms import room
from truerank.studies.demo.chapter import TOPICS as TOPICS

__getattr__, __dir__ = room(__name__, lambda: (TOPICS,))
