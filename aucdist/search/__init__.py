"""Choosing parameters by cross-validation: grids, folds on blocks anywhere, and the choice."""

from typing import Any


def with_chosen_features(estimator: Any, rows: Any) -> Any:
    """Return what `aucdist.search.auto.with_chosen_features` does; it is loaded here, because few fits need it."""
    from aucdist.search.auto import with_chosen_features

    return with_chosen_features(estimator, rows)
