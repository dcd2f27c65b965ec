"""Choosing parameters by cross-validation: grids, folds on blocks anywhere, and the choice."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aucdist.engine.view import AnyBlocks
    from aucdist.estimators.base import BlockClassifier
    from aucdist.search.schedule import Point


def with_chosen_features(estimator: "BlockClassifier", rows: "AnyBlocks") -> "tuple[BlockClassifier, Point]":
    """Choose the feature map and `lam` by cross-validation; return an unfitted estimator with them, and the chosen parameters.

    See `aucdist.search.auto`, which is imported here because few fits need it.
    """
    from aucdist.search.auto import with_chosen_features

    return with_chosen_features(estimator, rows)
