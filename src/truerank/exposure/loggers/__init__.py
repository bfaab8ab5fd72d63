"""Loggers: how much more often one item is shown than another. `exposure.expose` turns a world into a log with one.

A new logger is one new module here; `catalogue` and the law tests find it by themselves.

>>> str(named("popularity").released()), str(named("popularity").published())
('popularity', 'popularity(zipf=false,with_train=false)')
"""

from __future__ import annotations

from truerank.exposure.loggers.expose import LOGGERS as LOGGERS

catalogue = LOGGERS.catalogue
named = LOGGERS.named
parse = LOGGERS.parse
