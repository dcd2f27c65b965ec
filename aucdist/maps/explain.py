"""What each feature adds to a score: of models of bins, and of linear ones."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy.sparse as sp

from aucdist.data.block import Block
from aucdist.errors import InputError
from aucdist.maps.base import FittedMap
from aucdist.maps.bins import BinMap
from aucdist.maps.shapes import Additive, additive, contributions

CONSTANT = "constant"


def shapes_of(w: np.ndarray, intercept: float, fitted: FittedMap | None) -> Additive:
    """Return a model of bins, taken apart.

    Raises
    ------
    InputError
        If its features are not binned.
    """
    if not isinstance(fitted, BinMap):
        raise InputError("a model has shapes if its features are binned: fit it with features='bins'")
    return additive(fitted, w, intercept)


def explanation(
    block: Block, features: Sequence[str], w: np.ndarray, intercept: float, fitted: FittedMap | None
) -> pd.DataFrame:
    """Return what each feature, and each pair of features, adds to the score of each row.

    Parameters
    ----------
    block : Block
        Rows as the model's feature map takes them, or as the weights do.
    features : sequence of str
        Their names.
    w : ndarray of shape (n_weights,), float64
    intercept : float
    fitted : FittedMap or None

    Returns
    -------
    DataFrame
        A column for each contribution, and ``constant``: the sum of a row is its score.

    Raises
    ------
    InputError
        For a map that mixes features.
    """
    if fitted is None:
        X = sp.csr_matrix(block.X).toarray() if sp.issparse(block.X) else block.X
        return _table(np.asarray(X, dtype=np.float64) * w, features, intercept)
    if not isinstance(fitted, BinMap):
        raise InputError(
            f"{type(fitted).__name__} mixes all features, so that a score is no sum of what each adds; bins do not: "
            "fit the model with features='bins'"
        )
    parts = additive(fitted, w, intercept)
    return _table(contributions(fitted, parts, block), parts.names(features), parts.constant)


def _table(values: np.ndarray, names: Sequence[str], constant: float) -> pd.DataFrame:
    """Return contributions and the constant; a feature may have the constant's name, so that no column is found by name."""
    whole = np.column_stack((values, np.full(len(values), constant)))
    return pd.DataFrame(whole, columns=[*names, CONSTANT])
