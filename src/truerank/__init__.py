"""truerank: which recommender is truly better, from data that shows only part of the truth.

Names load when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from truerank.version import __version__ as __version__

if TYPE_CHECKING:
    from truerank.core.ids import Ids as Ids
    from truerank.core.log import Log as Log
    from truerank.core.options import Denominator as Denominator
    from truerank.core.options import Drawn as Drawn
    from truerank.core.options import Gain as Gain
    from truerank.core.options import Ideal as Ideal
    from truerank.core.ranking import Ties as Ties
    from truerank.core.results import Results as Results
    from truerank.data.features import Features as Features
    from truerank.data.features import read_features as read_features
    from truerank.data.files import write as write
    from truerank.data.impressions import Impressions as Impressions
    from truerank.data.impressions import Logged as Logged
    from truerank.data.read import read as read
    from truerank.data.read_impressions import read_impressions as read_impressions
    from truerank.data.split import split_by_time as split_by_time
    from truerank.data.split import split_per_user as split_per_user
    from truerank.data.split import split_random as split_random
    from truerank.data.survey import scan as scan
    from truerank.estimators.biased.doubly_robust import DoublyRobust as DoublyRobust
    from truerank.estimators.biased.intervened import Intervened as Intervened
    from truerank.estimators.biased.intervened import IntervenedPooled as IntervenedPooled
    from truerank.estimators.biased.ips import IPS as IPS
    from truerank.estimators.biased.naive import Naive as Naive
    from truerank.estimators.biased.snips import SNIPS as SNIPS
    from truerank.estimators.judged.full import Full as Full
    from truerank.estimators.judged.full import Traditional as Traditional
    from truerank.estimators.judged.hajek import Hajek as Hajek
    from truerank.estimators.judged.horvitz_thompson import HorvitzThompson as HorvitzThompson
    from truerank.estimators.judged.pooled import Pooled as Pooled
    from truerank.estimators.judged.published import Published as Published
    from truerank.estimators.ranked.doubly_robust import ItemMeans as ItemMeans
    from truerank.estimators.ranked.doubly_robust import PredictionColumn as PredictionColumn
    from truerank.estimators.ranked.doubly_robust import RankedDoublyRobust as RankedDoublyRobust
    from truerank.estimators.ranked.ips import RankedIPS as RankedIPS
    from truerank.estimators.ranked.naive import LearntDiscountRaw as LearntDiscountRaw
    from truerank.estimators.ranked.naive import LogDiscountDebiased as LogDiscountDebiased
    from truerank.estimators.ranked.naive import LogDiscountRaw as LogDiscountRaw
    from truerank.estimators.ranked.normalised import RankedNDCG as RankedNDCG
    from truerank.estimators.ranked.normalised import RankedPostNormalised as RankedPostNormalised
    from truerank.estimators.ranked.normalisers import Normaliser as Normaliser
    from truerank.estimators.ranked.snips import RankedSNIPS as RankedSNIPS
    from truerank.evaluation.judged import evaluate as evaluate
    from truerank.evaluation.ranked import off_policy as off_policy
    from truerank.exposure.interventions import intervene as intervene
    from truerank.exposure.interventions import with_inclusion as with_inclusion
    from truerank.exposure.kinds import BiasedExposure as BiasedExposure
    from truerank.exposure.kinds import FullExposure as FullExposure
    from truerank.exposure.kinds import RandomExposure as RandomExposure
    from truerank.exposure.kinds import Unlisted as Unlisted
    from truerank.exposure.loggers.expose import expose as expose
    from truerank.exposure.policies.targets import ExposureColumn as ExposureColumn
    from truerank.exposure.policies.targets import RankColumn as RankColumn
    from truerank.exposure.positions import parse_position as parse_position
    from truerank.exposure.propensities import fit_propensities as fit_propensities
    from truerank.exposure.propensities.calibration import calibration as calibration
    from truerank.exposure.propensities.given import GivenPropensity as GivenPropensity
    from truerank.exposure.propensities.logistic import Logistic as Logistic
    from truerank.exposure.propensities.naive_bayes import NaiveBayes as NaiveBayes
    from truerank.exposure.propensities.power import PopularityPower as PopularityPower
    from truerank.exposure.randomness.description import describe as describe
    from truerank.exposure.randomness.tests import Randomness as Randomness
    from truerank.exposure.randomness.tests import randomness as randomness
    from truerank.metrics.auc import AUC as AUC
    from truerank.metrics.average_precision import AveragePrecision as AveragePrecision
    from truerank.metrics.dcg import DCG as DCG
    from truerank.metrics.expected_reciprocal_rank import ERR as ERR
    from truerank.metrics.hit_rate import HitRate as HitRate
    from truerank.metrics.ndcg import NDCG as NDCG
    from truerank.metrics.precision import Precision as Precision
    from truerank.metrics.r_precision import RPrecision as RPrecision
    from truerank.metrics.rank_biased_precision import RBP as RBP
    from truerank.metrics.recall import Recall as Recall
    from truerank.metrics.reciprocal_rank import MeanRR as MeanRR
    from truerank.metrics.reciprocal_rank import ReciprocalRank as ReciprocalRank
    from truerank.models.adapters import from_callable as from_callable
    from truerank.models.adapters import from_cornac as from_cornac
    from truerank.models.adapters import from_factors as from_factors
    from truerank.models.adapters import from_implicit as from_implicit
    from truerank.models.adapters import from_lenskit as from_lenskit
    from truerank.models.adapters import from_lightfm as from_lightfm
    from truerank.models.adapters import from_rectools as from_rectools
    from truerank.ranks.candidates import Overlap as Overlap
    from truerank.ranks.samplers.draw import sample_candidates as sample_candidates
    from truerank.ranks.scores.files import read_scores as read_scores
    from truerank.ranks.scores.files import write_scores as write_scores
    from truerank.ranks.scores.matrices import sparse as sparse
    from truerank.ranks.scores.scores import dense as dense
    from truerank.ranks.scores.scores import factors as factors
    from truerank.ranks.scores.scores import function as function
    from truerank.ranks.scores.tables import lists as lists
    from truerank.uncertainty.clipping import AutoClip as AutoClip
    from truerank.uncertainty.intervals import Bootstrap as Bootstrap
    from truerank.uncertainty.intervals import Design as Design
    from truerank.uncertainty.intervals import Population as Population

_HOME = {
    "data.impressions": ("Impressions", "Logged"),
    "data.read_impressions": ("read_impressions",),
    "estimators.ranked.doubly_robust": ("RankedDoublyRobust",),
    "estimators.ranked.ips": ("RankedIPS",),
    "estimators.ranked.naive": ("LearntDiscountRaw", "LogDiscountDebiased", "LogDiscountRaw"),
    "estimators.ranked.normalised": ("RankedNDCG", "RankedPostNormalised"),
    "estimators.ranked.normalisers": ("Normaliser",),
    "estimators.ranked.reward_models": ("ItemMeans", "PredictionColumn"),
    "estimators.ranked.snips": ("RankedSNIPS",),
    "exposure.policies.targets": ("ExposureColumn", "RankColumn"),
    "exposure.positions": ("parse_position",),
    "evaluation.ranked": ("off_policy",),
    "uncertainty.clipping": ("AutoClip",),
    "core.log": ("Log",),
    "core.ranking": ("Ties",),
    "core.results": ("Results",),
    "core.ids": ("Ids",),
    "core.options": ("Denominator", "Drawn", "Gain", "Ideal"),
    "data.features": ("Features", "read_features"),
    "data.read": ("read",),
    "data.split": ("split_by_time", "split_per_user", "split_random"),
    "data.survey": ("scan",),
    "data.write": ("write",),
    "evaluation.judged": ("evaluate",),
    "exposure.kinds": ("BiasedExposure", "FullExposure", "RandomExposure", "Unlisted"),
    "exposure.loggers.expose": ("expose",),
    "exposure.propensities": ("fit_propensities",),
    "exposure.propensities.calibration": ("calibration",),
    "exposure.randomness.description": ("describe",),
    "exposure.propensities.given": ("GivenPropensity",),
    "exposure.propensities.logistic": ("Logistic",),
    "exposure.propensities.naive_bayes": ("NaiveBayes",),
    "exposure.propensities.power": ("PopularityPower",),
    "exposure.randomness.tests": ("Randomness", "randomness"),
    "exposure.interventions": ("intervene", "with_inclusion"),
    "models.adapters": (
        "from_callable",
        "from_cornac",
        "from_factors",
        "from_implicit",
        "from_lenskit",
        "from_lightfm",
        "from_rectools",
    ),
    "ranks.candidates": ("Overlap",),
    "ranks.scores.files": ("read_scores", "write_scores"),
    "ranks.samplers.draw": ("sample_candidates",),
    "ranks.scores.scores": ("dense", "factors", "function"),
    "ranks.scores.matrices": ("sparse",),
    "ranks.scores.tables": ("lists",),
    "uncertainty.intervals": ("Bootstrap", "Design", "Population"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULE:
        return getattr(importlib.import_module(f"truerank.{_MODULE[name]}"), name)
    # metrics and estimators are found in their packages: a new one needs no entry here
    if not name.startswith("_") and name[0].isupper():
        for kind in ("metrics", "estimators"):
            for cls in importlib.import_module(f"truerank.{kind}").catalogue().values():
                if cls.__name__ == name:
                    return cls
    raise AttributeError(f"module 'truerank' has no attribute {name!r}")


def __dir__() -> list[str]:
    classes = [
        cls.__name__
        for kind in ("metrics", "estimators")
        for cls in importlib.import_module(f"truerank.{kind}").catalogue().values()
    ]
    return sorted([*_MODULE, *classes, "__version__"])
