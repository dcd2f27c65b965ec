"""Estimators on scikit-learn's contract, each named after what it minimises."""

from aucdist.estimators.hinge import HingeClassifier
from aucdist.estimators.linear import lam_path
from aucdist.estimators.link import LinkClassifier, SeparationWarning
from aucdist.estimators.margin_mean import MarginMeanClassifier
from aucdist.estimators.messages import RankingWarning
from aucdist.estimators.pair_options import CollapseWarning
from aucdist.estimators.pairwise_hinge import PairwiseHingeClassifier
from aucdist.estimators.pairwise_ramp import PairwiseRampClassifier
from aucdist.estimators.pairwise_square import PairwiseSquareClassifier
from aucdist.estimators.univariate import UnivariateRankingClassifier

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
