"""Train linear and additive models that rank a rare class above the rest.

The loss of `PairwiseHingeClassifier` is over all pairs of a positive and a negative row. Fits of convex losses end with a proof
of how close to the optimum they are. For example::

    from aucdist import PairwiseHingeClassifier

    model = PairwiseHingeClassifier(features="bins").fit(X, y)
    model.certificate_             # no weights have an objective below its dual, rounding included
    model.decision_function(X)     # the higher, the more likely a positive row
    model.explain(X)               # what each feature adds

Use `PairwiseHingeClassifier` if the order of the rows counts (with `max_fpr` if only the top counts), and `LinkClassifier` for
probabilities. `PairwiseRampClassifier` tolerates rows that no linear score ranks correctly, and has no lower bound.
`aucdist.metrics` has metrics with intervals, `aucdist.maps` feature maps, and `aucdist.model` saved models. `aucdist.export`
writes models for other systems. The command `aucdist --help` does the same for files.
"""

import importlib
from typing import TYPE_CHECKING, Any

from aucdist import estimators

if TYPE_CHECKING:
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

__version__ = "0.5.0"

__all__ = [
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
    "__version__",
    "lam_path",
]
MODULES = ("export", "maps", "metrics", "model")
"""Modules that are imported when they are first used."""


def __getattr__(name: str) -> Any:
    # Lazily, so that the command line can print its help before scikit-learn and Numba are loaded.
    if name in __all__:
        return getattr(estimators, name)
    if name in MODULES:
        return importlib.import_module(f"aucdist.{name}")
    raise AttributeError(
        f"module 'aucdist' has no attribute {name!r}. It has the estimators. aucdist.model has load_model and write_model, "
        "aucdist.metrics has the metrics, and aucdist.maps the feature maps"
    )


def __dir__() -> list[str]:
    """Return the names that completion shows, including those that are not loaded yet."""
    return sorted(({*globals(), *__all__, *MODULES}) - {"Any", "TYPE_CHECKING", "importlib"})
