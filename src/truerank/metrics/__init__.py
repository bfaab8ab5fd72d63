"""Layer 4: Ranks -> Worth. Metrics are values: Recall(50) == Recall(50), and `Recall@50` parses back.

A new metric is one new class here; `catalogue`, the command line and the law tests find it by themselves.

>>> from truerank.metrics.additive import Recall
>>> parse("Recall@50") == Recall(50)
True
>>> str(parse("ndcg@10(gain=exponential)")), [str(each) for each in METRICS.parse_all("MRR@{1,5}")]
('nDCG@10(gain=exponential)', ['RR@1', 'RR@5'])
"""

from __future__ import annotations

from truerank.core.language import Kind
from truerank.core.lazy_imports import export_classes
from truerank.core.metric import Metric

METRICS: Kind[Metric] = Kind("metric", __name__, Metric, group="truerank.metrics")
catalogue = METRICS.catalogue
parse = METRICS.parse
__getattr__, __dir__ = export_classes(__name__, lambda: (METRICS,))
