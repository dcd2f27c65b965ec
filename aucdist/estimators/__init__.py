"""Estimators that follow scikit-learn's contract, each named after the objective that it minimises.

Modules are imported on demand.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

MODULES = {
    "CollapseWarning": "ranking",
    "HingeClassifier": "hinge",
    "LinkClassifier": "link",
    "MarginMeanClassifier": "margin_mean",
    "PairwiseHingeClassifier": "ranking",
    "PairwiseRampClassifier": "ranking",
    "PairwiseSquareClassifier": "ranking",
    "RankingWarning": "display",
    "SeparationWarning": "link",
    "UnivariateRankingClassifier": "ranking",
    "lam_path": "linear",
}


def __getattr__(name: str) -> Any:
    # Modules are imported on demand, because importing all of them takes as long as a small fit.
    if name in MODULES:
        return getattr(import_module(f"aucdist.estimators.{MODULES[name]}"), name)
    if name == "ESTIMATORS":
        return {kind: __getattr__(kind) for kind in CLASSIFIERS}
    raise AttributeError(f"module 'aucdist.estimators' has no attribute {name!r}")


CLASSIFIERS = tuple(name for name in MODULES if name.endswith("Classifier"))
"""The names of all estimators, for configurations."""

ESTIMATORS: Mapping[str, Any]
"""The class of each estimator by its name. Asking for it imports all of them."""

__all__ = ["ESTIMATORS", *MODULES]
