"""Backbone x method = model: the classes of the learned models are products, none is written by hand."""

from __future__ import annotations

import typing
from dataclasses import field, fields, make_dataclass
from typing import Any

from truerank.core.log import Log
from truerank.core.plugins import INSTALL, RESEARCH
from truerank.core.progress import Watching, watching
from truerank.core.values import check, text_of
from truerank.models import NOTHING_BESIDE, Side, load
from truerank.models.matrix import check_factors
from truerank.ranking.scores.scores import Factors, factors
from truerank_research.learners.recipes import (
    AutoDebias,
    Bias,
    DoublyRobustLearning,
    GraphConvolution,
    HardNegatives,
    IPSLearning,
    MatrixFactorisation,
    Recipe,
    Training,
)

NEEDS = "torch"


def learned(title: str, name: str, backbone: type[Any], method: type[Any]) -> type[Any]:
    """The model class of a backbone and a method: a frozen dataclass with the settings of both and of training."""
    parts = (backbone, method, Training)

    def fit(self: Any, log: Log, *, seed: int, side: Side = NOTHING_BESIDE, progress: Watching = None) -> Factors:
        check_factors(name, log, self.dimensions)
        load("torch", install=INSTALL, who=name)
        from truerank_research.learners.train import train

        own: list[Any] = [part(**{each.name: getattr(self, each.name) for each in fields(part)}) for part in parts]
        recipe = Recipe(name, backbone=own[0], method=own[1], training=own[2])
        with watching(progress) as say:
            found = train(recipe, log, seed=seed, side=side, progress=say)
        return factors(
            found.user_factors,
            found.item_factors,
            user_bias=found.user_bias,
            item_bias=found.item_bias,
            users=log.users,
            items=log.items,
            name=name,
        )

    found = make_dataclass(
        title,
        [
            (each.name, typing.get_type_hints(part, include_extras=True)[each.name], field(default=each.default))
            for part in parts
            for each in fields(part)
        ],
        namespace={
            "__doc__": f"{backbone.__doc__}\n\n    {method.__doc__}",
            "name": name,
            "summary": f"{backbone.summary}, {method.summary} (experimental, {RESEARCH}).",
            "needs": NEEDS,
            "labels": method.labels,
            "__post_init__": check,
            "__str__": text_of,
            "fit": fit,
        },
        frozen=True,
        slots=True,
    )
    found.__module__ = __name__  # so that it can be pickled
    return found


MF = learned("MF", "mf", MatrixFactorisation, Bias)
MFIPS = learned("MFIPS", "mf-ips", MatrixFactorisation, IPSLearning)
MFDR = learned("MFDR", "mf-dr", MatrixFactorisation, DoublyRobustLearning)
MFAutoDebias = learned("MFAutoDebias", "mf-autodebias", MatrixFactorisation, AutoDebias)
MFDNS = learned("MFDNS", "mf-dns", MatrixFactorisation, HardNegatives)


LightGCN = learned("LightGCN", "lightgcn", GraphConvolution, Bias)
LightGCNIPS = learned("LightGCNIPS", "lightgcn-ips", GraphConvolution, IPSLearning)
LightGCNDR = learned("LightGCNDR", "lightgcn-dr", GraphConvolution, DoublyRobustLearning)
LightGCNAutoDebias = learned("LightGCNAutoDebias", "lightgcn-autodebias", GraphConvolution, AutoDebias)
LightGCNDNS = learned("LightGCNDNS", "lightgcn-dns", GraphConvolution, HardNegatives)
