"""Estimators on scikit-learn's contract, each named after what it minimises."""

from aucdist.estimators.pairwise_hinge import PairwiseHingeClassifier

ESTIMATORS = {cls.__name__: cls for cls in (PairwiseHingeClassifier,)}
"""Every estimator by name, for configurations."""

__all__ = ["ESTIMATORS", "PairwiseHingeClassifier"]
