"""Explain additive models: the shape of each feature's contribution to the score, and its contribution for each row.

A score is ``constant + sum of shapes + sum of interactions``. A loss over pairs of rows depends only on differences of scores,
so each shape is shifted to the mean 0 over the training rows. The part of an interaction that depends on one of its features
alone is moved to the shape of this feature. The rows and the columns of the grid of an interaction therefore have mean 0, where
the weight of a cell is the product of the shares of its row and its column.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray

from aucdist.data.block import Block, as_dense
from aucdist.data.dataset import category_features
from aucdist.errors import InputError
from aucdist.kernels.codes import expand
from aucdist.maps.base import FittedMap
from aucdist.maps.bins import BinMap
from aucdist.parameters import frozen

CONSTANT, ROUNDING = "constant", "rounding"
BETWEEN = " & "
"""The separator between the names of two features that interact."""
ADDS_PREFIX = "adds_"
"""The prefix of the names of contributions in tables that also have scores or columns of the data."""
MIN_SHARE = 0.005
"""The share of the training rows from which a category may be the most favourable one, because few rows give uncertain
results."""
MAX_CONTRIBUTIONS = 4096
"""The largest number of columns of contributions in a table that is written with the scores."""


@frozen
class Shape:
    """The contribution of one feature to the score: a step function.

    Attributes
    ----------
    feature : int
        The position of the feature among the columns of X, or among `feature_names_out_` if X has columns of categories.
    edges : ndarray of shape (n_bins - 1,), float64
        The edges of the bins, in the feature's own units. The position of a value's bin is the number of edges below the
        value.
    values : ndarray of shape (n_bins,), float64
        The contribution in each bin.
    shares : ndarray of shape (n_bins,), float64
        The share of each bin among the training rows with a value.
    missing : float or None
        The contribution of a missing value; None if the training rows had none.
    means : ndarray of shape (n_bins,), float64
        The mean of the training values in each bin.
    extremes : ndarray of shape (2,), float64
        The smallest and the largest training value; infinite in models of older versions, and in scorecards.
    """

    feature: int
    edges: ndarray
    values: ndarray
    shares: ndarray
    missing: float | None
    means: ndarray
    extremes: ndarray

    @property
    def spread(self) -> float:
        """Standard deviation of the contribution over the training rows with a value."""
        return float(np.sqrt(self.shares @ (self.values - self.shares @ self.values) ** 2))

    @property
    def distinct(self) -> bool:
        """Whether each bin has a single training value. Then each edge is in the middle of two means."""
        middles = 0.5 * self.means[1:] + 0.5 * self.means[:-1]
        gaps = np.append(middles - self.edges, self.extremes - self.means[[0, -1]])
        return bool(np.abs(gaps).max() <= 1e-9 * np.abs(self.means).max())

    @property
    def bin_values(self) -> ndarray:
        """The contribution of each bin. That of missing values comes first, if there were some."""
        return self.values if self.missing is None else np.append(self.missing, self.values)


@frozen
class InteractionShape:
    """The contribution of an interaction beyond the shapes of its two features, in the cells of a grid.

    Attributes
    ----------
    features : tuple of int
        The features of the rows and of the columns of the grid.
    edges : tuple of ndarray
        The edges between the rows, and between the columns, in the units of the features, without those of missing values.
    missing : tuple of bool
        Whether the first row, and the first column, belongs to missing values.
    values : ndarray of shape (n_rows, n_columns), float64
        The contribution of each cell, in the units of the score.
    shares : tuple of ndarray
        The shares of the training rows, in each row and in each column.
    """

    features: tuple[int, int]
    edges: tuple[ndarray, ...]
    missing: tuple[bool, bool]
    values: ndarray
    shares: tuple[ndarray, ...]

    @property
    def spread(self) -> float:
        """The standard deviation of the contribution, computed as if the two features were independent."""
        return float(np.sqrt(self.shares[0] @ self.values**2 @ self.shares[1]))


@frozen
class Additive:
    """A model of bins as a constant, shapes of features and shapes of interactions.

    Attributes
    ----------
    constant : float
        The score of a row whose contributions are all 0, which is about that of an average row.
    shapes : tuple of Shape
        One shape for each feature with more than one value, in the order of the features.
    interactions : tuple of InteractionShape
        One for each interaction of the map, in its order.
    """

    constant: float
    shapes: tuple[Shape, ...]
    interactions: tuple[InteractionShape, ...]

    @property
    def tables(self) -> list[ndarray]:
        """The contribution in each cell of each code: first those of the shapes, then those of the interactions."""
        return [*(shape.bin_values for shape in self.shapes), *(part.values for part in self.interactions)]


def additive(fitted: FittedMap | None, w: ndarray, intercept: float = 0.0) -> Additive:
    """Return the constant, the shapes and the interactions of a model of bins.

    Parameters
    ----------
    fitted : FittedMap or None
        The feature map of the model.
    w : ndarray of shape (n_features_out,), float64
        The weights of its basis functions.
    intercept : float, default=0.0
        The intercept of the model.

    Returns
    -------
    Additive
        Its constant, shapes and interactions add up to the score.

    Raises
    ------
    InputError
        If the model has no bins.
    """
    if not isinstance(fitted, BinMap):
        raise InputError("this model has no shapes: fit it with features='bins'")
    n = len(fitted.used)
    table = expand(fitted.code_basis, np.ascontiguousarray(w, dtype=np.float64))
    tables = np.split(table, fitted.code_basis.starts[1:-1])
    feature_cells = {j: tables[k].copy() for k, j in enumerate(fitted.used.tolist())}
    constant, interactions = intercept, []
    for k, (a, b) in enumerate(fitted.interactions.tolist()):
        grid = tables[n + k].reshape(fitted.grid_size(a), fitted.grid_size(b))
        edges, shares = [], []
        for j in (a, b):
            rows = fitted.grid(j)[int(fitted.missing[j]) :]
            # These are the edges at which rows of the grid end.
            edges.append(fitted.bins[j].edges[np.flatnonzero(np.diff(rows))])
            shares.append(np.bincount(rows, fitted.bins[j].shares, minlength=fitted.grid_size(j)))
        row_means, column_means = grid @ shares[1], shares[0] @ grid
        middle = float(shares[0] @ row_means)
        feature_cells[a] += (row_means - middle)[fitted.grid(a)]
        feature_cells[b] += (column_means - middle)[fitted.grid(b)]
        constant += middle
        values = grid - row_means[:, np.newaxis] - column_means + middle
        first = bool(fitted.missing[a]), bool(fitted.missing[b])
        interactions.append(InteractionShape((a, b), tuple(edges), first, values, tuple(shares)))
    shapes = []
    for j, cells in feature_cells.items():
        bins, missing = fitted.bins[j], bool(fitted.missing[j])
        values = cells[int(missing) :]
        centre = float(bins.shares @ values)
        constant += centre
        gap = float(cells[0]) - centre if missing else None
        extremes = np.array([-np.inf, np.inf]) if fitted.ranges is None else fitted.ranges[:, j]
        shapes.append(Shape(j, bins.edges, values - centre, bins.shares, gap, bins.means, extremes))
    return Additive(constant, tuple(shapes), tuple(interactions))


def contributions(fitted: BinMap, parts: Additive, block: Block) -> ndarray:
    """Return what each feature and each interaction adds to the score of each row.

    Parameters
    ----------
    fitted : BinMap
        The feature map of the model.
    parts : Additive
        What `additive` returned for the model.
    block : Block
        Rows as the feature map takes them.

    Returns
    -------
    ndarray of shape (n_samples, n_shapes + n_interactions), float64
        The sum of a row plus ``parts.constant`` is its score.
    """
    codes = fitted.codes(block)
    columns = [table.ravel()[codes[:, k]] for k, table in enumerate(parts.tables)]
    return np.column_stack(columns) if columns else np.zeros((block.n_samples, 0))


def values_at_bins(parts: Additive, fitted: BinMap, other: Additive) -> list[ndarray]:
    """Evaluate the shapes of another model in the bins of a model. Each has mean 0 over the rows of this model.

    Parameters
    ----------
    parts : Additive
        The model.
    fitted : BinMap
        The bins of the model.
    other : Additive
        A model that may have other bins: a shape is evaluated at the mean of each bin. Features without a shape are 0.

    Returns
    -------
    list of ndarray of shape (n_bins,), float64
        In the order of ``parts.shapes``.
    """
    by_feature, shapes = {shape.feature: shape for shape in other.shapes}, []
    for shape in parts.shapes:
        same, values = by_feature.get(shape.feature), np.zeros(len(shape.values))
        if same is not None:
            values = same.values[np.searchsorted(same.edges, fitted.bins[shape.feature].means)]
        shapes.append(values - shape.shares @ values)
    return shapes


def explanation(
    block: Block,
    features: Sequence[str],
    w: ndarray,
    intercept: float,
    fitted: FittedMap | None,
    categories: Mapping[str, Sequence[str]] | None = None,
    index: Any = None,
) -> pd.DataFrame:
    """Return what each feature, and each interaction, adds to the score of each row.

    Parameters
    ----------
    block : Block
        Rows as the model's feature map takes them, or without a map as the weights do.
    features : sequence of str
        The names of the features.
    w : ndarray of shape (n_weights,), float64
        The weights of the model.
    intercept : float
        The intercept of the model.
    fitted : FittedMap or None
        The feature map of the model.
    categories : mapping of str to sequence of str, optional
        The categories of each categorical column, as in `Schema`. The terms of all categories of a column are added up.
    index : object, optional
        The index of the table. By default, rows are numbered.

    Returns
    -------
    DataFrame
        A column for each contribution, and ``constant`` at the end. The sum of a row is its score. If a feature is called
        ``constant``, an underscore is appended.

    Raises
    ------
    InputError
        For a map that mixes features.
    """
    (_, places), constant = _places_of(features, categories or {}, fitted), intercept
    if isinstance(fitted, BinMap):
        parts = additive(fitted, w, intercept)
        values, constant = contributions(fitted, parts, block), parts.constant
    else:
        values = as_dense(block.X).astype(np.float64, copy=False) * w
    columns = [values[:, among].sum(axis=1) for among in places.values()]
    values = np.column_stack((*columns, np.full(len(values), constant)))
    return pd.DataFrame(values, index, [*places, _free_name(CONSTANT, places)])


def index_of(X: Any) -> Any:
    """Return the index of a DataFrame of pandas, or None for other rows."""
    return X.index if hasattr(X, "iloc") else None


def _places_of(
    features: Sequence[str], categories: Mapping[str, Sequence[str]], fitted: FittedMap | None
) -> tuple[list[str], dict[str, list[int]]]:
    """Return the column of each feature, and the positions of the contributions of each column or interacting pair."""
    is_category, places = category_features(categories), dict[str, list[int]]()
    columns = [is_category.get(name, (name,))[0] for name in features]
    for place, name in enumerate(contribution_names(columns, fitted)):
        places.setdefault(name, []).append(place)
    return columns, places


def _features_of_parts(features: Sequence[str], fitted: FittedMap | None) -> list[tuple[int, ...]]:
    """Return, for each contribution, the position of the feature, or of the two features that interact."""
    if fitted is None:
        return [(j,) for j in range(len(features))]
    if not isinstance(fitted, BinMap):
        raise InputError(
            f"the feature map, {type(fitted).__name__}, mixes all features, so a score is not a sum of their terms: use "
            "features='bins' or none, or features={'map': 'auto', 'readable': True} in place of features='auto'"
        )
    return [*((int(j),) for j in fitted.used), *map(tuple, fitted.interactions.tolist())]


def contribution_names(features: Sequence[str], fitted: FittedMap | None) -> list[str]:
    """Return the name of each contribution to a score: features, then interactions, without the constant.

    Raises
    ------
    InputError
        For a map that mixes features.
    """
    return [BETWEEN.join(features[j] for j in of_part) for of_part in _features_of_parts(features, fitted)]


def exported_names(features: Sequence[str], maps: Mapping[str, FittedMap | None]) -> list[str]:
    """Return the names of the contributions that are exported with the scores: those of each class, with its constant last.

    Parameters
    ----------
    features : sequence of str
        The names of the features.
    maps : mapping of str to FittedMap or None
        The feature map of each class, by the end of the names of its contributions.

    Raises
    ------
    InputError
        If a map mixes features, there are too many contributions, or two have the same name.
    """
    names, roundings = list[str](), []
    for suffix, fitted in maps.items():
        feature_names = contribution_names(features, fitted)
        columns = [f"{ADDS_PREFIX}{name}{suffix}" for name in (*feature_names, _free_name(CONSTANT, feature_names))]
        names += columns
        roundings.append(_free_name(f"{ADDS_PREFIX}{ROUNDING}{suffix}", columns))
    all_names = pd.Index([*names, *roundings])
    if len(all_names) > MAX_CONTRIBUTIONS + 1:
        raise InputError(
            f"a score has {len(all_names) - 1} contributions, and at most {MAX_CONTRIBUTIONS} can be written: leave contributions"
            " out"
        )
    for name in all_names[all_names.duplicated()]:
        raise InputError(f"two contributions have the name {name!r}: rename the feature of this name")
    return names


def with_rounding(table: pd.DataFrame, scores: ndarray, names: Sequence[str], suffix: str) -> dict[str, ndarray]:
    """Return contributions as columns whose sum, from the first to the last, is the score to the last bit.

    The last column is the rounding error of the sum of the others. A difference of nearby floats is exact, so the sum
    is exact as well, unless a score is so much smaller than its parts that it consists of rounding errors.

    Parameters
    ----------
    table : DataFrame
        As `explanation` returns it.
    scores : ndarray of shape (n_samples,), float64
        The scores of the rows.
    names : sequence of str
        As `exported_names` returns them.
    suffix : str
        The end of the name of the rounding error.
    """
    values = table.to_numpy()
    rounding = scores - values.cumsum(axis=1)[:, -1]  # cumsum adds from the first to the last
    return dict(zip(names, values.T, strict=True)) | {_free_name(f"{ADDS_PREFIX}{ROUNDING}{suffix}", names): rounding}


def _free_name(name: str, taken: Collection[str]) -> str:
    """Append underscores to a name until it differs from all names that are taken."""
    while name in taken:
        name += "_"
    return name


@frozen
class Reasons:
    """The contribution of each column and each interaction to the score of each row, compared with two reference values.

    Both tables have a row for each row of X, with its index, and a column for each column of X and for each two that interact.
    All categories of a column count as one.

    Attributes
    ----------
    above_most_favourable : DataFrame or None
        What the column adds beyond its most favourable value, which is the one that adds least among all bins and frequent
        categories. At least 0. None for a linear model, where no value of a number adds least.
    above_average : DataFrame
        What the column adds beyond its mean over the training rows.
    """

    above_most_favourable: pd.DataFrame | None
    above_average: pd.DataFrame


def reasons(
    block: Block,
    features: Sequence[str],
    categories: Mapping[str, Sequence[str]],
    w: ndarray,
    fitted: FittedMap | None,
    index: Any = None,
) -> Reasons:
    """Return the reasons of rows.

    Parameters
    ----------
    block : Block
        Rows as the model's feature map takes them. Without a map, the mean of each feature over the training rows is 0.
    features : sequence of str
        The names of the features.
    categories : mapping of str to sequence of str
        The categories of each categorical column, as in `Schema`.
    w : ndarray of shape (n_weights,), float64
        The weights of the model.
    fitted : FittedMap or None
        The feature map of the model.
    index : object, optional
        The index of the tables. By default, rows are numbered.

    Returns
    -------
    Reasons

    Raises
    ------
    InputError
        For a map that mixes features.
    """
    columns, places = _places_of(features, categories, fitted)
    total = explanation(block, features, w, 0.0, fitted, categories, index).iloc[:, :-1]
    if not isinstance(fitted, BinMap):
        return Reasons(None, total)
    of_parts, tables = _features_of_parts(features, fitted), additive(fitted, w).tables

    def cell(value: int | None, j: int) -> Any:
        """Return the cell of a value: a bin of a number, or the 0/1 feature of a category. None stands for other categories."""
        return (-1 if value == j else -2) if columns[j] in categories else value

    least = []
    for among in places.values():
        values = list[Any]()
        for axis, j in enumerate(of_parts[among[0]]):
            known = {of_parts[k][axis] for k in among}
            # A category that all or no training rows have has no shape, so its contribution is 0.
            others = [None] * (len(categories.get(columns[j], ())) > len(known))
            frequent = [c for c in known if fitted.bins[c].shares[-1] >= MIN_SHARE] + others
            values.append((frequent or known) if columns[j] in categories else range(tables[among[0]].shape[axis]))
        sums = (
            sum(float(tables[k][tuple(map(cell, chosen, of_parts[k]))]) for k in among) for chosen in product(*values)
        )
        least.append(min(sums))
    return Reasons((total - np.array(least)).clip(lower=0.0), total)
