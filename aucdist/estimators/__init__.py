"""Estimators on scikit-learn's contract, each named after what it minimises."""

from aucdist.estimators.display import RankingWarning
from aucdist.estimators.hinge import HingeClassifier
from aucdist.estimators.linear import lam_path
from aucdist.estimators.link import LinkClassifier, SeparationWarning
from aucdist.estimators.margin_mean import MarginMeanClassifier
from aucdist.estimators.ranking import (
    CollapseWarning,
    PairwiseHingeClassifier,
    PairwiseRampClassifier,
    PairwiseSquareClassifier,
    UnivariateRankingClassifier,
)

ESTIMATORS = {
    cls.__name__: cls
    for cls in (
        HingeClassifier,
        LinkClassifier,
        MarginMeanClassifier,
        PairwiseHingeClassifier,
        PairwiseRampClassifier,
        PairwiseSquareClassifier,
        UnivariateRankingClassifier,
    )
}
"""Every estimator by name, for configurations."""

__all__ = [
    "ESTIMATORS",
    "CollapseWarning",
    "HingeClassifier",
    "LinkClassifier",
    "MarginMeanClassifier",
    "PairwiseHingeClassifier",
    "PairwiseRampClassifier",
    "PairwiseSquareClassifier",
    "RankingWarning",
    "SeparationWarning",
    "UnivariateRankingClassifier",
    "lam_path",
]
