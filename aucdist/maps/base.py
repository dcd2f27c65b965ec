"""The base classes of feature maps: the fitted map, which is sent to workers, and the transformer that fits it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, Self, cast

import numpy as np
from numpy import ndarray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import _check_feature_names_in, _check_sample_weight, check_is_fitted, validate_data

from aucdist.data.block import Block, as_dense, matrix_of, unmasked
from aucdist.data.column_statistics import moments
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary
from aucdist.engine.view import ViewBlocks
from aucdist.errors import InputError
from aucdist.kernels.codes import BinRows
from aucdist.kernels.rows import CsrRows
from aucdist.parameters import check_constraints, frozen

LINEAR_CHOICES = ("keep", "drop")
"""The values of `linear`: whether the features themselves are columns as well."""
ROW_FORM: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
"""The keyword arguments of `validate_data`: rows are CSR or dense, and float32 stays float32."""


def no_directions_message(name: str) -> str:
    """Return the message for a map that cannot keep directions of features."""
    return (
        f"{name} mixes all features, so no signs of weights can make the score rise in one of them: to use monotone, leave out "
        "the feature map, or use features='bins' or 'leaves'"
    )


class FittedMap(ABC):
    """A fitted feature map, which computes the basis functions of rows. It is pickled to workers.

    A subclass is a frozen dataclass whose fields are numbers, strings, arrays, and lists and tuples of these.
    """

    n_features_in: int

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields only, because cached values can be computed from them."""
        return {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}

    @property
    @abstractmethod
    def n_features_out(self) -> int:
        """The number of basis functions, which is the number of weights of a model."""

    @abstractmethod
    def map_block(self, block: Block) -> Block:
        """Return the block with its basis functions, as numbers of bins or leaves (codes) or as dense rows.

        Parameters
        ----------
        block : Block
            Rows with the features of the training rows.

        Returns
        -------
        Block

        Raises
        ------
        InputError
            If it has another number of features, or a value that the map does not accept.
        """

    @abstractmethod
    def names(self, features: Sequence[str]) -> list[str]:
        """Return the name of each basis function, given the names of the features."""

    @abstractmethod
    def check(self) -> None:
        """Raise an InputError, or any ValueError, TypeError or IndexError, if the parts of the map do not fit together."""

    def signs(self, directions: ndarray) -> ndarray:
        """Return the signs of weights with which scores rise or fall in some features: see `aucdist.solvers.signs`.

        Parameters
        ----------
        directions : ndarray of shape (n_features_in,), int8
            +1 or -1 for a feature in which scores must rise or fall, and 0 for all others.

        Returns
        -------
        ndarray of shape (n_features_out,), int8

        Raises
        ------
        InputError
            If no signs of weights ensure these directions.
        """
        raise InputError(no_directions_message(type(self).__name__))

    def groups(self) -> ndarray | None:
        """Return the number of the group of each weight, ascending from 0, int64 of shape (n_features_out,).

        A group has all weights of a feature or of an interaction. The result is None if weights do not belong to single
        features.
        """
        return None

    def check_width(self, block: Block) -> None:
        """Raise an InputError if the block has another number of features than the training rows."""
        if block.n_features != self.n_features_in:
            raise InputError(
                f"the rows have {block.n_features} features, but the map was fitted on {self.n_features_in}: give those"
            )


def with_weight(block: Block) -> Block:
    """Return the rows with a weight above 0. If all these weights are 1, the rows have no weights."""
    if block.weight is None:
        return block
    counted = block.weight > 0
    if not counted.all():
        block = block.take(np.flatnonzero(counted), index=block.index)
    return replace(block, weight=None) if (block.weights() == 1.0).all() else block


def moments_of(block: Block) -> Summary:
    """Return the moments of the columns over the rows with a weight above 0, and whether the rows are sparse."""
    rows = with_weight(block).rows
    with np.errstate(over="ignore", invalid="ignore"):  # not set by the caller, because this also runs on workers
        block_moments = moments(rows)
    return {"moments": block_moments, "sparse": [isinstance(rows, CsrRows)]}


@frozen
class ApplyMap:
    """A function that maps the rows of a block whose weight is above 0. Checkpoints store it by its fields."""

    fitted: FittedMap

    def __call__(self, block: Block) -> Block:
        """Return the block of the mapped rows."""
        return self.fitted.map_block(with_weight(block))


def map_blocks(blocks: Blocks, fitted: FittedMap) -> Blocks:
    """Return the mapped rows. Each block is mapped where it is stored."""
    return apply_to_blocks(blocks, ApplyMap(fitted)).set_feature_map(fitted, blocks)


def apply_to_blocks(blocks: Blocks, change: Callable[[Block], Block]) -> Blocks:
    """Apply a function to each block, and keep the results in memory or on the local disk, like the original rows."""
    # Codes are small enough to be kept in memory for each fold.
    return ViewBlocks(blocks, change, keep="memory" if blocks.features_lasting else "disk")


class Expander(TransformerMixin, BaseEstimator):
    """A scikit-learn transformer that fits a feature map. A subclass has parameters and `fit_blocks`."""

    has_groups = False
    """Whether weights belong to single features or to interactions, see `FittedMap.groups`."""
    allows_missing = False
    map_: FittedMap

    @abstractmethod
    def fit_blocks(self, blocks: Blocks, directions: ndarray | None = None) -> FittedMap:
        """Return the map fitted to blocks of rows. Rows of weight 0 are ignored.

        Parameters
        ----------
        blocks : Blocks
            The training rows.
        directions : ndarray of shape (n_features,), int8, optional
            The direction of each feature, +1, -1 or 0, if scores must rise or fall in some features. The basis functions of
            some maps depend on these directions.

        Returns
        -------
        FittedMap

        Raises
        ------
        InputError
            If a parameter is outside its range, or the data cannot be mapped.
        """

    @property
    def complexity(self) -> tuple[int, int, int]:
        """A key that orders maps from the simplest to the most complex.

        The first number is 1 for maps of single features and landmarks, 2 with interactions, and 3 for leaves. The others order
        maps of the same kind.
        """
        return (1, 2, 0)

    @property
    def _rows(self) -> dict[str, Any]:
        """The keyword arguments of `validate_data` that say which rows are accepted."""
        return {**ROW_FORM, "ensure_all_finite": "allow-nan" if self.allows_missing else True}

    def check_parameters(self) -> None:
        """Raise an InputError for a parameter outside its range."""
        check_constraints(self)

    def check_directions(self) -> None:
        """Raise an InputError if no signs of weights make scores rise in a feature, see `FittedMap.signs`."""
        raise InputError(no_directions_message(type(self).__name__))

    def supervised(self) -> bool:
        """Return whether the map depends on the classes with these parameters, so that `fit` needs `y`.

        Returns
        -------
        bool
        """
        return True

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,), optional
            Two classes, of which the larger label is positive. Only maps that depend on the classes need it.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight 0 are ignored.

        Returns
        -------
        self : object
            The fitted transformer.

        Raises
        ------
        InputError
            A ValueError, if a parameter is outside its range, or the data cannot be mapped.
        """
        self.check_parameters()
        if self.supervised():
            if y is None:
                raise InputError(
                    f"{type(self).__name__} with these parameters requires y to be passed, but the target y is None"
                )
            X, y = validate_data(self, unmasked(X), y, **self._rows)
            classes = np.unique(y)
            if len(classes) != 2:
                raise InputError(f"Only binary classification is supported: y has {len(classes)} classes")
            labels = np.where(y == classes[1], 1, -1)
        else:
            X = validate_data(self, unmasked(X), **self._rows)
            labels = np.full(X.shape[0], -1)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        self.map_ = self.fit_blocks(LocalBlocks([Block.of(X, labels, weight=weight)]))
        return self

    def transform(self, X: Any) -> Any:
        """Return the values of the basis functions.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows to map.

        Returns
        -------
        csr_matrix or ndarray of shape (n_samples, n_features_out), float64
            Sparse rows if the map has codes and `sparse_output` is True.
        """
        check_is_fitted(self)
        X = validate_data(self, unmasked(X), reset=False, **self._rows)
        block = self.map_.map_block(Block.of(X, np.ones(X.shape[0], dtype=np.int8)))
        if not isinstance(block.rows, BinRows):
            return block.X
        matrix = matrix_of(block.rows)
        return matrix if getattr(self, "sparse_output", False) else as_dense(matrix)

    def get_feature_names_out(self, input_features: Any = None) -> ndarray:
        """Return the name of each column of `transform`.

        Parameters
        ----------
        input_features : array-like of str, optional
            The names of the features. By default, they are those of X in `fit`, or x0, x1 and so on.

        Returns
        -------
        ndarray of shape (n_features_out,), str
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features).tolist()
        return np.asarray(self.map_.names(names), dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.allows_missing
        tags.target_tags.required = self.supervised()
        if self.supervised():
            tags.classifier_tags = ClassifierTags(multi_class=False)
        tags.requires_fit = True
        return tags
