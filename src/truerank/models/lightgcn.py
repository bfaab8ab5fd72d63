"""LightGCN, plain and with each method (docs/debiased-learners.md)."""

from __future__ import annotations

from truerank.models.learned import learned
from truerank.models.recipes import AutoDebias, Bias, DoublyRobustLearning, GraphConvolution, HardNegatives, IPSLearning

LightGCN = learned("LightGCN", "lightgcn", backbone=GraphConvolution, method=Bias, module=__name__)
LightGCNIPS = learned("LightGCNIPS", "lightgcn-ips", backbone=GraphConvolution, method=IPSLearning, module=__name__)
LightGCNDR = learned(
    "LightGCNDR", "lightgcn-dr", backbone=GraphConvolution, method=DoublyRobustLearning, module=__name__
)
LightGCNAutoDebias = learned(
    "LightGCNAutoDebias", "lightgcn-autodebias", backbone=GraphConvolution, method=AutoDebias, module=__name__
)
LightGCNDNS = learned("LightGCNDNS", "lightgcn-dns", backbone=GraphConvolution, method=HardNegatives, module=__name__)
