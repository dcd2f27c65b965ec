"""Samplers with the method `fit_resample` of imbalanced-learn, which remove rows of the larger class or add rows of the smaller.

`DistanceUnderSampler` removes rows by their distance to a separating hyperplane: the nearer a row of the majority class is, the
more likely it is kept. It implements algorithms 1 and 2 (U1, U2) of Lu, Zhang & Cai, "Zeroth order optimization algorithm based
on undersampling" (Journal of Nanjing University of Aeronautics & Astronautics 51(5), 2019). It differs from the paper:

* The paper measures the bins of (4) from 0. Here they start at the smallest distance. Otherwise the nearest bin could be empty,
  and the sampling probability of the farthest rows could be 0 or negative.
* U2 selects the rows nearest to the hyperplane and samples them by (4). The paper sorts in descending order, but means the near
  rows.
* The paper's hyperplane is that of a support vector machine with equal weights for all rows. With very unequal classes its
  weights are often 0, and then all rows have the same distance. By default both classes have the same total weight here.

Whether a row is kept depends on its distance, and on a random number from its ``row_id`` and the seed. So the sample for a
given hyperplane depends neither on the workers nor on the blocks. The default hyperplane, which is fitted to a gap of 1 %,
depends on the blocks only.

`MWMOTE` adds rows of the minority class where it is hard to separate from the majority class. It implements Barua, Islam, Yao &
Murase, "MWMOTE: majority weighted minority oversampling technique for imbalanced data set learning" (IEEE Transactions on
Knowledge and Data Engineering 26(2), 2014), algorithm 1 with its parameters. Comments in the code number the steps as the
algorithm does.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy import ndarray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, clone
from sklearn.utils import InputTags, Tags, TargetTags, _safe_indexing, check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _is_fitted, column_or_1d, validate_data

from aucdist.data.block import Block, as_dense, as_rows, concatenate_columns, unmasked
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary, all_rows, block_seed
from aucdist.engine.view import ViewBlocks
from aucdist.errors import InputError
from aucdist.kernels.random import hash_ids
from aucdist.kernels.rows import project
from aucdist.papers.scd.dual import SDCD
from aucdist.parameters import (
    SEED,
    Condition,
    Number,
    OneOf,
    above_0,
    check_constraints,
    count,
    frozen,
    keyword_parameters,
)
from aucdist.solvers.base import solve
from aucdist.solvers.sample import uniforms

__all__ = ["MWMOTE", "DistanceUnderSampler"]
METHODS = ("auto", "u1", "u2")
MIN_RATIO_OF_U2 = 10.0
"""From this imbalance ratio on, `auto` uses u2, as in the paper."""
MAX_GAP = 0.1
"""If the relative gap of the default hyperplane is larger than this, the fit is repeated with a tenth of C, and so on. With many
rows of overlapping classes, dual coordinate descent takes a thousand passes at C = 1."""
MAX_TRIES = 5
"""The largest number of values of C that are tried."""
COST = 1.0
"""The paper's lam2 in (1), for the default hyperplane."""
TOL = 1e-2
"""The relative gap at which the fit of the default hyperplane ends. The sampling probabilities hardly depend on it."""
MAX_PASSES = 100
"""The largest number of passes of the fit of the default hyperplane."""


@dataclass(slots=True)
class SamplerInputTags(InputTags):
    """scikit-learn's tags of the input, and the tag that imbalanced-learn adds."""

    dataframe: bool = True


@dataclass(slots=True)
class SamplerTags:
    """imbalanced-learn's tag of a sampler, which says whether the sampler has `sample_indices_`."""

    sample_indices: bool = False


@dataclass(slots=True)
class TagsOfSampler(Tags):
    """scikit-learn's tags, and those that imbalanced-learn adds."""

    sampler_tags: SamplerTags | None = None


class Sampler(OneToOneFeatureMixin, BaseEstimator, ABC):
    """The base class of samplers, with the methods that imbalanced-learn expects.

    A subclass implements `_resample` for checked arrays.
    """

    returns_rows_of_input = False
    """Whether the result consists of rows of the input, whose positions are `sample_indices_`."""

    def fit(self, X: Any, y: Any) -> Self:
        """Set the fitted attributes as `fit_resample` does, without returning rows.

        Parameters
        ----------
        X, y
            As for `fit_resample`.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self.fit_resample(X, y)
        return self

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the resampled rows and their labels, in the types of X and y.

        Parameters
        ----------
        X : array-like, sparse matrix or array, or DataFrame of shape (n_samples, n_features)
            float32 stays float32.
        y : array-like of shape (n_samples,), (n_samples, 1), or (n_samples, n_classes) with one 1 in each row
            Labels of two or more classes.

        Returns
        -------
        X : the type of X, of shape (n_samples_new, n_features)
            The rows after sampling.
        y : the type of y
            Their labels.

        Raises
        ------
        InputError
            A ValueError: if a parameter is out of its range, or the data cannot be sampled.
        """
        self.check_parameters()
        if np.ma.is_masked(y):
            raise InputError("labels are masked, and NumPy would take the values below the mask: leave these rows out")
        kind = type_of_target(y, input_name="y")
        if kind.startswith("multilabel") or kind.endswith("multioutput"):
            indicator = np.asarray(y)
            if kind != "multilabel-indicator" or (indicator.sum(axis=1) != 1).any():
                raise InputError("Multilabel and multioutput targets are not supported.")
            labels = np.asarray(indicator.argmax(axis=1))
        else:
            check_classification_targets(y)
            labels = np.asarray(column_or_1d(y))
        rows, labels = validate_data(self, unmasked(X), labels, accept_sparse="csr", dtype=[np.float64, np.float32])
        classes, counts = np.unique(labels, return_counts=True)
        if len(classes) < 2:
            raise InputError(
                f"there are {len(classes)} classes in y; a sampler needs at least two: give rows of two classes"
            )
        # The smallest class first. Among classes of equal size, the largest label counts as the smallest class.
        order = np.lexsort((-np.arange(len(classes)), counts))
        return self._resample(X, y, rows, labels, classes[order])

    def check_parameters(self) -> None:
        """Check every parameter.

        Raises
        ------
        InputError
            Naming the parameter, its value and what is allowed.
        """
        check_constraints(self)

    @abstractmethod
    def _resample(self, X: Any, y: Any, rows: Any, labels: ndarray, classes: ndarray) -> tuple[Any, Any]:
        """Return the resampled X and y.

        Parameters
        ----------
        X, y : object
            The input, in the types that the user gave.
        rows : ndarray or csr_matrix of shape (n_samples, n_features)
            The checked rows.
        labels : ndarray of shape (n_samples,)
            The checked labels.
        classes : ndarray of shape (n_classes,)
            The distinct labels, by the size of their class, the smallest first.

        Returns
        -------
        X, y : object
            In the types of the input.
        """

    def __sklearn_tags__(self) -> TagsOfSampler:
        return TagsOfSampler(
            estimator_type="sampler",
            target_tags=TargetTags(required=True),
            input_tags=SamplerInputTags(sparse=True),
            sampler_tags=SamplerTags(sample_indices=self.returns_rows_of_input),
        )


def appended(values: Any, more: ndarray) -> Any:
    """Append rows or labels to others, and return the result in the type of the first.

    Columns and series keep their types. The exception is that integers become floats if the appended rows are floats.

    Parameters
    ----------
    values : list, DataFrame, Series, sparse or array-like of shape (n_samples, ...)
        The rows or labels that come first.
    more : ndarray of shape (n_more, ...)
        The rows or labels to append.

    Returns
    -------
    object of the type of `values`
    """
    if hasattr(values, "iloc"):
        if values.ndim == 1:
            return pd.concat([values, pd.Series(more, name=values.name).astype(values.dtype)], ignore_index=True)
        # The dtype of a sparse column has the type of its values in `subtype`.
        kept = {
            name: kind
            for name, kind in values.dtypes.items()
            if more.dtype.kind != "f" or getattr(kind, "subtype", kind).kind == "f"
        }
        return pd.concat([values, pd.DataFrame(more, columns=values.columns).astype(kept)], ignore_index=True)
    if sp.issparse(values):
        return sp.vstack([values, sp.csr_matrix(more)], format=values.format, dtype=more.dtype)
    values_and_more = np.concatenate([np.asarray(values), more])
    return values_and_more.tolist() if isinstance(values, list) else values_and_more


@frozen
class Hyperplane:
    """A separating hyperplane, w.x + b = 0, which `DistanceUnderSampler` fits by default."""

    w: ndarray
    b: float

    def decision_function(self, X: Any) -> ndarray:
        """Return w.x + b for each row."""
        out = np.empty(X.shape[0])
        project(as_rows(X), self.w, out)
        return out + self.b


@frozen
class Rule:
    """The rule by which `DistanceUnderSampler` decides which rows are kept.

    Attributes
    ----------
    model : object
        A model with `decision_function`, whose absolute values are the distances. A common factor has no effect.
    majority : int
        The majority class, -1 or 1.
    low, high : float
        The smallest and the largest distance of the rows that are sampled.
    last_lot : int
        Breaks ties at the largest distance: of the rows at this distance, those whose random number is at most `last_lot` are
        sampled. The others are left out.
    n_bins : int
        Number of bins between the smallest and the largest distance.
    seed : int
        The seed of the random numbers.
    """

    model: Any
    majority: int
    low: float
    high: float
    last_lot: int
    n_bins: int
    seed: int

    def rates(self, distances: ndarray) -> ndarray:
        """Return the probability of keeping rows at these distances.

        The probability is that of equation (4). Rows beyond `high` are not treated separately.

        Parameters
        ----------
        distances : ndarray of shape (n_samples,), float64
            The distances of rows of the majority class.

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """
        width = (self.high - self.low) / self.n_bins
        number = np.ceil((distances - self.low) / width)
        return 1.0 - (np.clip(number, 1, self.n_bins) - 1) / self.n_bins

    def stays(self, block: Block) -> ndarray:
        """Return which rows of a block are kept. Rows of weight 0 are never kept.

        Parameters
        ----------
        block : Block
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,), bool
        """
        kept = block.weights() > 0
        positions, near, lots = _majority_rows(block, self.model, self.majority, self.seed)
        near_enough = (near < self.high) | ((near == self.high) & (lots <= np.uint64(self.last_lot)))
        chance = uniforms(block.row_id[positions], block_seed(self.seed, 1, 0))
        kept[positions] = near_enough & (chance < self.rates(near))
        return kept

    def __call__(self, block: Block) -> Block:
        """Return a block with the rows that are kept."""
        return block.take(self.stays(block), index=block.index)


@keyword_parameters(
    method=OneOf(METHODS),
    n_bins=count(2),
    ratio=Number("at least 1 and finite", lambda v: 1 <= v < np.inf),
    random_state=SEED,
    svm=Condition(
        lambda v: v is None or hasattr(v, "decision_function"), "None or a classifier with decision_function"
    ),
)
class DistanceUnderSampler(Sampler):
    """Undersample the majority class by the distance to a hyperplane. Rows near it are more likely to be kept.

    The smallest class is kept whole. If there are more than two classes, each other class is sampled by its own hyperplane, which
    separates it from the smallest class.

    Parameters
    ----------
    method : {"auto", "u1", "u2"}, default="auto"
        ``u1`` divides the range of distances into `n_bins` bins of equal width and keeps a row in the j-th bin with probability
        1 - (j - 1) / n_bins. ``u2`` does the same among the `ratio` times n_minority rows nearest to the hyperplane, and
        removes the others. ``auto`` takes u1 if the majority class has less than 10 times the rows of the minority class, and
        u2 otherwise.
    n_bins : int, default=10
        Number of bins, the paper's m, for which it gives no value. At least 2, because with one bin every row would be kept.
    ratio : float, default=10
        Only for ``u2``: number of rows to sample from, per row of the minority class.
    svm : object or None, default=None
        The model that measures the distance: a classifier with `decision_function`, linear or with a kernel, fitted or not.
        None means a linear support vector machine with C = 1, or less where that takes too long, and the same total weight for
        both classes. Scale the features first; for a fitted model, scale them as for its fit.
    random_state : int, RandomState or None, default=None
        The seed of everything that is drawn at random.

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_kept,), int64
        Positions of the rows that are kept, ascending.
    sampling_strategy_ : dict
        For each class that is sampled, the number of its rows that are kept.
    rules_ : dict
        For each class that is sampled, the `Rule` that decides which of its rows are kept.
    rule_ : Rule
        The same for two classes: the rule of the majority class.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        If X has column names.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist.sampling import DistanceUnderSampler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> X_kept, y_kept = DistanceUnderSampler(random_state=0).fit_resample(X, y)
    >>> int(np.sum(y == 0)), int(np.sum(y_kept == 0)), len(y_kept) < len(y)  # the whole minority class is kept
    (212, 212, True)
    """

    returns_rows_of_input = True

    method: str = "auto"
    n_bins: int = 10
    ratio: float = 10.0
    svm: Any = None
    random_state: int | np.random.RandomState | None = None

    def _resample(self, X: Any, y: Any, rows: Any, labels: ndarray, classes: ndarray) -> tuple[Any, Any]:
        smallest, *others = classes.tolist()
        self.rules_, self.sampling_strategy_ = {}, {}
        kept = labels == smallest
        for label in others:
            chosen = np.flatnonzero((labels == smallest) | (labels == label))
            block = Block.of(rows if len(others) == 1 else rows[chosen], np.where(labels[chosen] == smallest, 1, -1))
            rule = self.rule(LocalBlocks([block]))
            stays = rule.stays(block)
            kept[chosen] |= stays
            self.rules_[label], self.sampling_strategy_[label] = rule, int((stays & (block.y < 0)).sum())
        if len(others) == 1:
            self.rule_ = rule
        self.sample_indices_ = np.flatnonzero(kept)
        return _safe_indexing(X, self.sample_indices_), _safe_indexing(y, self.sample_indices_)

    def resample_blocks(self, blocks: Blocks) -> Blocks:
        """Return the rows that are kept, as blocks on the same workers.

        Once there is a hyperplane, this takes two passes: one for the distances, of which 16 bytes for each row come to this
        process, and one for the sample.

        Parameters
        ----------
        blocks : Blocks
            The rows. Each row must have a ``row_id`` of its own.

        Returns
        -------
        Blocks
        """
        self.check_parameters()
        return ViewBlocks(blocks, self.rule(blocks))

    def rule(self, blocks: Blocks) -> Rule:
        """Return the rule that decides which rows of the blocks are kept.

        Parameters
        ----------
        blocks : Blocks
            The rows.

        Returns
        -------
        Rule
        """
        n_minority, n_majority = sorted((blocks.n_pos, blocks.n_neg))
        if n_minority == 0:
            raise InputError(
                "the rows are of one class only, so no hyperplane separates classes: give rows of both classes"
            )
        majority = -1 if blocks.n_pos <= blocks.n_neg else 1
        seed = int(check_random_state(self.random_state).randint(2**31))
        model = self.svm
        if model is None:  # weights classes equally, unlike the paper: see the top of this module
            class_weight = (0.5 * blocks.n_samples / blocks.weight_neg, 0.5 * blocks.n_samples / blocks.weight_pos)
            lam = 0.5 / (COST * blocks.n_samples)
            for _ in range(MAX_TRIES):
                rounds = SDCD().rounds(blocks, lam, intercept=True, class_weight=class_weight)
                solution = solve(rounds, tol=TOL, max_passes=MAX_PASSES)
                if solution.certificate.relative_gap <= MAX_GAP:
                    break
                lam *= 10.0
            model = Hyperplane(solution.w[:-1], float(solution.w[-1]))
        elif hasattr(model, "fit") and not _is_fitted(model):  # a model without `fit` is taken as fitted
            if blocks.n_blocks > 1:
                raise InputError("svm is not fitted, and the rows are in several blocks: fit it first, or use None")
            rows = all_rows(blocks)
            model = clone(model).fit(rows.X, rows.y)
        distances, lots = concatenate_columns(blocks.sum(measure_distances, model, majority, seed))
        if not len(distances) or not np.isfinite(distances).all():
            raise InputError("the distances to the hyperplane are not all finite: scale the features")
        low, high, last_lot = float(distances.min()), float(distances.max()), 2**64 - 1
        n_near = int(self.ratio * n_minority)
        lopsided = n_majority >= MIN_RATIO_OF_U2 * n_minority
        if (self.method == "u2" or (self.method == "auto" and lopsided)) and n_near < len(distances):
            high = float(np.partition(distances, n_near - 1)[n_near - 1])
            tied = np.sort(lots[distances == high])
            last_lot = int(tied[n_near - int((distances < high).sum()) - 1])
        if not high > low:
            raise InputError(
                f"all rows of the larger class are equally far from the hyperplane ({low:g}), so that distance cannot "
                "decide which to keep: scale the features, or give another svm"
            )
        return Rule(model, majority, low, high, last_lot, self.n_bins, seed)


def measure_distances(block: Block, model: Any, majority: int, seed: int) -> Summary:
    """Return the distance and a random number of each majority row of a block."""
    return [_majority_rows(block, model, majority, seed)[1:]]


def _majority_rows(block: Block, model: Any, majority: int, seed: int) -> tuple[ndarray, ndarray, ndarray]:
    """Return the positions, the distances and the random numbers of the majority rows of a block."""
    positions = np.flatnonzero((block.y == majority) & (block.weights() > 0))
    if len(positions) == 0:
        return positions, np.zeros(0), np.zeros(0, dtype=np.uint64)
    # All rows of the block are scored, so that scoring them again gives the same bits.
    scores = np.asarray(model.decision_function(block.X), dtype=np.float64)
    if scores.ndim != 1:
        raise InputError(
            "svm was fitted to more than two classes: give a model of two classes, an unfitted one, or None"
        )
    return positions, np.abs(scores[positions]), hash_ids(block.row_id[positions], block_seed(seed, 0, 0))


@keyword_parameters(
    sampling_strategy=Number("above 0 and up to 1", lambda v: 0 < v <= 1, words=("auto",)),
    k1=count(),
    k2=count(),
    k3=count(optional=True),
    c_f_th=above_0(),
    c_max=above_0(),
    c_p=above_0(),
    random_state=SEED,
)
class MWMOTE(Sampler):
    """Oversample the minority class with synthetic rows, each between two rows of the same minority cluster.

    If there are more than two classes, each class but the largest is oversampled in turn, and all other classes together count
    as the majority. Distances are Euclidean, so scale the features. Sparse rows are made dense inside.

    Parameters
    ----------
    sampling_strategy : "auto" or float, default="auto"
        Ratio of minority rows (original and synthetic) to the rows of the largest class after sampling; ``"auto"`` means 1.
    k1 : int, default=5
        A minority row without another minority row among its k1 nearest neighbours counts as noise.
    k2 : int, default=3
        The border consists of the k2 majority rows nearest to each minority row that is not noise.
    k3 : int or None, default=None
        Synthetic rows start from the k3 minority rows nearest to each border row; None means half of the minority rows.
    c_f_th : float, default=5
        Upper limit of the closeness (the number of features over the distance), the paper's C_f(th).
    c_max : float, default=2
        The weight of the largest closeness, the paper's CMAX.
    c_p : float, default=3
        Clusters are merged if their distance is at most this times the mean nearest-neighbour distance.
    random_state : int, RandomState or None, default=None
        The seed of everything that is drawn at random.

    Attributes
    ----------
    sampling_strategy_ : dict
        For each class that is oversampled, the number of synthetic rows.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        If X has column names.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist.sampling import MWMOTE
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> X_more, y_more = MWMOTE(random_state=0).fit_resample(X, y)
    >>> np.bincount(y).tolist(), np.bincount(y_more).tolist()
    ([212, 357], [357, 357])
    """

    sampling_strategy: str | float = "auto"
    k1: int = 5
    k2: int = 3
    k3: int | None = None
    c_f_th: float = 5.0
    c_max: float = 2.0
    c_p: float = 3.0
    random_state: int | np.random.RandomState | None = None

    def _resample(self, X: Any, y: Any, rows: Any, labels: ndarray, classes: ndarray) -> tuple[Any, Any]:
        dense = as_dense(rows).astype(np.float64, copy=False)
        largest = int((labels == classes[-1]).sum())
        ratio = 1.0 if isinstance(self.sampling_strategy, str) else self.sampling_strategy
        random = check_random_state(self.random_state)
        self.sampling_strategy_, made, sources = {}, [dense[:0]], [np.zeros(0, dtype=np.int64)]
        for label in classes[:-1].tolist():
            small = np.flatnonzero(labels == label)
            n_new = max(0, round(ratio * largest) - len(small))
            self.sampling_strategy_[label] = n_new
            if n_new:
                made.append(self._made(dense, small, n_new, random))
                sources.append(np.full(n_new, small[0]))
        # The label of a synthetic row, which may be a one-hot row, is copied from an original row of the class.
        new_labels = _safe_indexing(np.asarray(y), np.concatenate(sources))
        return appended(X, np.vstack(made).astype(rows.dtype, copy=False)), appended(y, new_labels)

    def _made(self, rows: ndarray, small: ndarray, n_new: int, random: np.random.RandomState) -> ndarray:
        """Return the synthetic rows. `small` has the positions of the minority rows."""
        minority_rows = rows[small]
        weights, kept = self._weights(rows, small)
        cluster = self._clusters(minority_rows, kept)  # 10
        starts = random.choice(len(small), size=n_new, p=weights / weights.sum())  # 9, 11
        members = [np.flatnonzero(cluster == number) for number in range(cluster.max() + 1)]
        ends = [members[cluster[start]][random.randint(len(members[cluster[start]]))] for start in starts]
        gaps = random.uniform(size=(n_new, 1))
        return minority_rows[starts] + gaps * (minority_rows[ends] - minority_rows[starts])

    def _weights(self, rows: ndarray, small: ndarray) -> tuple[ndarray, ndarray]:
        """Return the weight of each minority row, and which minority rows are not noise.

        Synthetic rows start from a minority row with a probability that is proportional to its weight.
        """
        from sklearn.neighbors import NearestNeighbors

        minority, majority = rows[small], np.delete(rows, small, axis=0)
        k3 = len(small) // 2 if self.k3 is None else self.k3
        _enough("neighbours (k1) and itself", self.k1 + 1, len(rows), "")
        _enough("neighbours (k2)", self.k2, len(majority), " of the larger class")
        _enough("neighbours (k3)", max(k3, 2 if self.k3 is None else 1), len(small), " of the smaller class")
        around = NearestNeighbors(n_neighbors=self.k1 + 1).fit(rows).kneighbors(rows[small], return_distance=False)
        other = around != small[:, np.newaxis]
        other[other.all(axis=1), -1] = False  # a row equal to another one need not be its own nearest neighbour
        kept = (np.isin(around, small) & other).any(axis=1)  # 1, 2
        if not kept.any():
            raise InputError(
                f"none of the {len(small)} rows of the smaller class has a row of the same class among its {self.k1} nearest "
                "neighbours, so all of them count as noise: use a larger k1"
            )
        nearest = NearestNeighbors(n_neighbors=self.k2).fit(majority).kneighbors(minority[kept])[1]  # 3
        border = majority[np.unique(nearest)]  # 4
        distances, starts = NearestNeighbors(n_neighbors=k3).fit(minority).kneighbors(border)  # 5, 6
        # if rows of both classes are equal, the closeness is infinite, and then cut off
        with np.errstate(divide="ignore"):
            closeness = np.minimum(rows.shape[1] / distances, self.c_f_th) * (self.c_max / self.c_f_th)
        density = closeness / closeness.sum(axis=1, keepdims=True)
        weights = np.zeros(len(small))
        np.add.at(weights, starts, closeness * density)  # 7, 8
        return weights, kept

    def _clusters(self, minority_rows: ndarray, kept: ndarray) -> ndarray:
        """Return the number of the cluster of each row, counted from 0. The clusters are those of average linkage."""
        if len(minority_rows) == 1:
            return np.zeros(1, dtype=np.int64)
        from scipy.cluster.hierarchy import fcluster, linkage
        from scipy.spatial.distance import pdist
        from sklearn.neighbors import NearestNeighbors

        clean = minority_rows[kept]
        mean = 0.0  # a single row has no neighbour, so that no clusters are merged
        if len(clean) > 1:
            mean = float(NearestNeighbors(n_neighbors=1).fit(clean).kneighbors()[0].mean())
        numbers: ndarray = fcluster(linkage(pdist(minority_rows), "average"), self.c_p * mean, criterion="distance")
        return numbers.astype(np.int64) - 1


def _enough(subject: str, needed: int, n_rows: int, class_name: str) -> None:
    if n_rows < needed:
        raise InputError(
            f"{needed} rows{class_name} are needed as {subject}, but there are {n_rows}: ask for fewer, or give more rows"
        )
