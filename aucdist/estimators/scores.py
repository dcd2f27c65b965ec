"""Scores of rows by a fitted model, and its threshold, which is set by hand or for a target.

The module also has the classes and the probabilities of rows by several models, each of which is fitted to one class against
the rest.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy import ndarray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from aucdist.data.block import Block, as_dense
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.estimators.tables import checked_rows, is_dask, names_of_features
from aucdist.maps.base import FittedMap, map_blocks
from aucdist.maps.bins import MissingInFeature
from aucdist.metrics import guaranteed_threshold, threshold_at
from aucdist.metrics.counts import ScoreCounts, check_values, dot, labels_of
from aucdist.metrics.decisions import CostCounts, Costs
from aucdist.metrics.ranking import auc
from aucdist.probability.links import ProbabilityMap, probabilities_of_classes

Scorer = ndarray | Callable[[Block], ndarray]
"""Weights of shape (n_features,), float64, or a function that returns the scores of the rows of a block. It is sent to
workers."""
SAME_AUC = 1e-12
"""If two values of the AUC differ by less than this, they are probably those of the same rows."""
ROWS_LOOKED_AT_FIRST = 4096
"""The number of rows of a class or of a block that are examined first."""


def map_matrix(X: Any, fitted: FittedMap | None) -> Block:
    """Return a matrix as rows whose labels are all 1, after applying the feature map if there is one."""
    block = Block.of(X, np.ones(X.shape[0], dtype=np.int8))
    return block if fitted is None else fitted.map_block(block)


def map_for_model(model: Any, blocks: Blocks) -> Blocks:
    """Return the blocks to which the weights of a model apply.

    The feature map is applied unless the blocks have been mapped already.
    """
    fitted = getattr(model, "feature_map_", None)
    return blocks if fitted is None or blocks.feature_map is fitted else map_blocks(blocks, fitted)


def count_scores(blocks: Blocks, scorer: Scorer) -> ScoreCounts:
    """Return how many rows of each class have each score, by one reduction.

    Above a million scores, intervals of scores are counted.
    """
    return blocks.sum(
        lambda block: ScoreCounts.from_scores(block.y, scores_of(block, scorer), block.weight).within_bounds()
    )


def scores_of(block: Block, scorer: Scorer) -> ndarray:
    """Return the scores of the rows of a block."""
    return block.scores(scorer) if isinstance(scorer, ndarray) else scorer(block)


def auc_of_rows(blocks: Blocks, w: ndarray) -> float:
    """Return the AUC of the scores, or of those of a part of the rows if the part shows that the AUC is above 1/2.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    w : ndarray of shape (n_features,), float64
        The weights.

    Returns
    -------
    float
    """
    few = blocks.sum(_count_few, w)
    # The standard deviation of the AUC of m and n rows is at most 1 / (2 sqrt(min(m, n))).
    if min(few.n_pos, few.n_neg) > 0 and auc(few) > 0.5 + 3.0 / np.sqrt(min(few.n_pos, few.n_neg)):
        return auc(few)
    return auc(count_scores(blocks, w))


def separates(blocks: Blocks, w: ndarray) -> bool:
    """Return whether every positive row has a higher score than all negative ones, by one reduction.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    w : ndarray of shape (n_features,), float64
        The weights.

    Returns
    -------
    bool
    """
    lowest, highest = zip(*blocks.sum(_inner_ends, w), strict=True)
    return bool(min(lowest) > max(highest))


def mean_and_std(counts: ScoreCounts) -> tuple[float, float]:
    """Return the mean and the standard deviation of scores. The deviation is 1 if all scores are equal."""
    weight, values = counts.pos + counts.neg, counts.middles()
    total = float(weight.sum())
    mean = dot(weight, values) / total
    return mean, float(np.sqrt(dot(weight, (values - mean) ** 2) / total)) or 1.0


def count_costs(blocks: Blocks, scorer: Scorer, costs: Costs) -> CostCounts:
    """Return the counts of scores in which each row is weighted by the cost of a wrong decision on it, by one reduction.

    Parameters
    ----------
    blocks : Blocks
        The rows as the weights apply to them, with costs if `costs` refers to those of the rows.
    scorer : Scorer
        The weights.
    costs : Costs
        What wrong decisions cost.

    Returns
    -------
    CostCounts
    """
    return blocks.sum(_count_costs, scorer, costs)


def _count_few(block: Block, w: ndarray) -> Summary:
    counted = block.weights() > 0
    class_rows = [np.flatnonzero(counted & (block.y == label)) for label in (-1, 1)]
    few = block.take(np.concatenate([rows[:: max(1, len(rows) // ROWS_LOOKED_AT_FIRST)] for rows in class_rows]))
    return ScoreCounts.from_scores(few.y, few.scores(w))


def _inner_ends(block: Block, w: ndarray) -> Summary:
    """Return the lowest score of a positive row and the highest of a negative row.

    The first few rows suffice if their scores overlap.
    """
    weight = block.weights()
    for n in sorted({min(ROWS_LOOKED_AT_FIRST, block.n_samples), block.n_samples}):
        first_rows = block.between(0, n)
        scores, y, counted = first_rows.scores(w), first_rows.y, weight[:n] > 0
        lowest = scores[counted & (y > 0)].min(initial=np.inf)
        highest = scores[counted & (y < 0)].max(initial=-np.inf)
        if lowest <= highest:
            break
    return [(lowest, highest)]


def _count_costs(block: Block, scorer: Scorer, costs: Costs) -> Summary:
    scores, weight = scores_of(block, scorer), block.weights()
    row_costs = weight * costs.of_rows(block.y > 0, block.cost)
    return CostCounts(ScoreCounts.from_scores(block.y, scores, row_costs).within_bounds(), float(weight.sum()))


def _thresholds_of_rows(
    model: Any, X: Any, y: Any, sample_weight: Any, requirement: Mapping[str, Any], confidence: float | None
) -> list[float]:
    """Return the threshold of X w that meets a target on rows.

    For several classes, return one for each class against the rest.
    """
    several = model.has_several_classes
    check_consistent_length(X, y)
    if several and y is not None and not model.label_sets_.exclusive:
        indicator, n = as_dense(y), len(model.estimators_)
        if indicator.ndim != 2 or indicator.shape[1] != n or not np.isin(indicator, (0, 1)).all():
            raise InputError(
                f"y must be an indicator matrix of 0 and 1 with {n} columns, one for each label of the model"
            )
        members = indicator == 1
    elif y is not None:
        labels = labels_of("y", y)
        graded = " (with grade_weight: the lowest grade, and all others)" * (model.grade_weight is not None)
        known = f"is not one of the classes of the model, {model.classes_.tolist()}{graded}"
        check_values("y: the label", labels, ~np.isin(labels, model.classes_), known)
        members = labels[:, np.newaxis] == (model.classes_ if several else model.classes_[1:])
    X, thresholds = checked_rows(model, X), []
    for k, class_model in enumerate(model.class_models):
        scores = class_model._scores_without_intercept(X)
        # A target that needs no labels is a share of all rows, so that any labels will do.
        positive = np.arange(len(scores)) % 2 == 0 if y is None else members[:, k]
        with errors_name_class(model, k):
            if confidence is None:
                thresholds.append(threshold_at(positive, scores, sample_weight=sample_weight, **requirement))
                continue
            area = auc(ScoreCounts.from_scores(np.where(positive, 1, -1), scores))
            if area < 1.0 and abs(area - getattr(class_model, "_auc", np.inf)) < SAME_AUC:
                warnings.warn(
                    "the AUC of X is that of the training rows: if X are these rows, new rows will miss the guarantee more often "
                    "than `confidence` says. Give rows that the fit has not seen",
                    stacklevel=3,
                )
            guarantee = guaranteed_threshold(positive, scores, confidence, sample_weight=sample_weight, **requirement)
            if not guarantee.meets_target:
                raise InputError(
                    f"no threshold guarantees {guarantee.metric} {guarantee.target:g} with confidence {confidence:g}, given "
                    f"these {len(scores)} rows; the best guarantee is {guarantee.guaranteed:.4g}. Ask for this or a weaker "
                    "target, lower the confidence, or give more rows"
                )
            thresholds.append(guarantee.threshold)
    return thresholds


def _raw_thresholds(model: Any, threshold: Any) -> list[float]:
    """Return the threshold of X w of each class, given scores of `decision_function`."""
    values, spreads = np.asarray(threshold, dtype=float), model.class_spreads
    shape = spreads.shape if model.has_several_classes else ()
    if not (values.shape == shape and (np.abs(scaled := values * spreads) < np.finfo(float).max).all()):
        raise InputError(
            "set_threshold: threshold must be a finite number, or one for each class in the order of classes_; got "
            f"{threshold!r}. To flag no row of X, give X with `alerts=0`"
        )
    return [
        without_intercept(value, one.decision_intercept)
        for value, one in zip(scaled.tolist(), model.class_models, strict=True)
    ]


@contextmanager
def errors_name_class(model: Any, k: int) -> Iterator[None]:
    """Add the name of the class at position `k` to an InputError, if the model has several classes."""
    try:
        yield
    except InputError as error:
        if not hasattr(model, "label_sets_"):
            raise
        raise InputError(f"class {model.label_sets_.names()[k]!r}: {error}") from None


def without_intercept(threshold: float, intercept: float) -> float:
    """Return a threshold of X w that is exceeded exactly if the rounded sum X w + intercept exceeds `threshold`."""
    if not np.isfinite([threshold, intercept]).all():
        return threshold
    middle = (Fraction(threshold) + Fraction(float(np.nextafter(threshold, np.inf)))) / 2 - Fraction(intercept)
    cut = float(middle)  # sums up to about this number are rounded to the threshold
    while Fraction(cut) > middle or cut + intercept > threshold:
        cut = float(np.nextafter(cut, -np.inf))
    return cut


class WithThreshold:
    """An estimator whose threshold can be set."""

    estimators_: list[Any]
    intercept_: ndarray
    probability_: ProbabilityMap

    @property
    def has_several_classes(self) -> bool:
        """Whether the last fit had several classes, each fitted against the rest."""
        return "estimators_" in vars(self)

    @property
    def class_models(self) -> Sequence[Any]:
        """The fitted model of each class against the rest. With two classes, it is the estimator itself."""
        return vars(self).get("estimators_", [self])

    @property
    def class_spreads(self) -> ndarray:
        """The number by which the scores of each class are divided, float64 of shape (n_classes,). It is 1 for two classes."""
        return vars(self).get("spreads_", np.ones(1))

    @property
    def threshold_(self) -> float:
        """The threshold of `predict` on the scale of `decision_function`: always 0."""
        check_is_fitted(self)
        if self.has_several_classes:
            raise AttributeError
        return 0.0

    @property
    def thresholds_(self) -> ndarray:
        """The threshold of each class, after a fit of several classes: always 0."""
        return np.zeros(len(self.estimators_))

    def set_threshold(
        self,
        threshold: Any = None,
        y: Any = None,  # by position, so that `set_threshold(X, y, recall=0.8)` gets the error that shows the right call
        *,
        X: Any = None,
        sample_weight: Any = None,
        fpr: float | None = None,
        alerts: float | None = None,
        precision: float | None = None,
        recall: float | None = None,
        cost: Mapping[str, Any] | None = None,
        per: float | None = None,
        confidence: float | None = None,
        **others: Any,
    ) -> Self:
        """Set the threshold of `predict`, by shifting the scores; the ranking and the probabilities do not change.

        If classes exclude each other and the model has probabilities, `predict` returns the most probable class, so
        it does not change. Only the scores of `decision_function` are shifted: a class is flagged if its score is above 0.

        Parameters
        ----------
        threshold : float, optional
            A score of `decision_function` before this call. It becomes 0, so that rows with higher scores are predicted
            positive. Without it, give rows and one target. For several classes, give an array of shape (n_classes,), in
            the order of `classes_`.
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features), optional
            The rows that choose the threshold: rows that the fit has not seen, and that you will not test on. On training rows
            the scores are too good, so the target may be missed on new rows. With `alerts` and no labels, give the batch that is
            to be flagged. With several classes, each class gets the threshold that meets the target for this class against the
            rest.
        y, sample_weight : array-like of shape (n_samples,), optional
            The labels and the weights of these rows, as for `fit`. `alerts` without `confidence` needs no labels. For a model of
            grades, the labels are -1 for the lowest grade and 1 for higher grades.
        fpr : float, optional
            At most this share of the negatives is flagged; from 0 to 1.
        alerts : float, optional
            At most this share of all rows is flagged; from 0 to 1.
        precision : float, optional
            At least this share of the flagged rows is positive; above 0 and at most 1.
        recall : float, optional
            At least this share of the positives is flagged; above 0 and at most 1.
        cost : mapping, optional
            Costs such as ``{"false_positive": 1, "miss": 40}``: the total cost of wrong decisions is smallest. If costs differ by
            row, give an array: ``{"false_positive": 5, "miss": amount}``.
        per : float, optional
            The number of rows that `alerts` refers to: ``alerts=50, per=len(X)`` flags 50 rows of X if scores have no ties.
        confidence : float, optional
            The probability with which the target is to hold for new rows: see `aucdist.metrics.guaranteed_threshold`. X must
            then be rows that the fit has not seen.
        **others
            There are no other arguments: the error shows a right call.

        Returns
        -------
        self : object
            The model, with the new threshold.

        Raises
        ------
        InputError
            If there is neither a threshold nor rows with one target, or if no threshold can meet or guarantee it.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from aucdist import PairwiseHingeClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
        >>> model = PairwiseHingeClassifier(lam=1e-3).fit(X[::2], y[::2])
        >>> X_set, y_set, X_new = X[1::4], y[1::4], X[3::4]  # the fit has seen neither

        A recall on rows that only set the threshold, a number of alerts in a batch without labels, and a score:

        >>> int(model.set_threshold(X=X_set, y=y_set, recall=0.95).predict(X_new).sum())
        95
        >>> int(model.set_threshold(X=X_new, alerts=20, per=len(X_new)).predict(X_new).sum())
        20
        >>> n_above_1 = (model.decision_function(X_new) > 1).sum()
        >>> bool(model.set_threshold(1.0).predict(X_new).sum() == n_above_1)
        True
        """
        check_is_fitted(self)
        targets: dict[str, Any] = {"fpr": fpr, "alerts": alerts, "precision": precision, "recall": recall}
        if confidence is None:  # no bound is known for a guaranteed cost
            targets["cost"] = cost
        rows = {"threshold": threshold, "X": X, "y": y, "sample_weight": sample_weight}
        arguments = {**rows, **targets, "cost": cost, "per": per, "confidence": confidence, **others}
        passed = [name for name, value in arguments.items() if value is not None]
        if passed == ["threshold"]:
            self.set_raw_threshold(_raw_thresholds(self, threshold))
            return self
        requirement = {name: value for name, value in targets.items() if value is not None}
        if threshold is not None or X is None or len(requirement) != 1 or others:
            raise InputError(
                "set_threshold: give either a threshold as the first argument, or rows as X=X and one of "
                f"{', '.join(targets)}, as in set_threshold(X=X, y=y, recall=0.8); this call has {', '.join(passed) or 'none'}"
            )
        if y is None and (alerts is None or confidence is not None):
            raise InputError(f"set_threshold: {passed[-1]} needs the labels of X: pass y as well")
        if alerts is not None or per is not None:
            n_rows = 1 if per is None else per
            if alerts is None or not (isinstance(n_rows, Real) and n_rows > 0 and alerts <= n_rows):
                raise InputError(
                    f"alerts is {alerts!r} and per is {per!r}: give a share from 0 to 1, or both as numbers of rows, `alerts` at "
                    "most `per`, as in alerts=50, per=len(X)"
                )
            requirement["alerts"] = alerts / n_rows
        if is_dask(X):
            raise InputError(
                "set_threshold takes rows in memory: give some rows of the dask collection, with .compute()"
            )
        self.set_raw_threshold(_thresholds_of_rows(self, X, y, sample_weight, requirement, confidence))
        return self

    @property
    def raw_threshold(self) -> float:
        """The threshold on X w (for a kernel machine, on the sum of kernel values), a float: minus the intercept.

        For several classes, take that of a class from `estimators_`.
        """
        return 0.0 - self.decision_intercept

    def set_raw_threshold(self, threshold: Any) -> None:
        """Set the threshold on the scale of X w, or of sums of kernel values for a kernel machine.

        Parameters
        ----------
        threshold : float, or array-like of shape (n_classes,)
            The value above which a row is predicted positive.
        """
        for model, value in zip(self.class_models, np.atleast_1d(threshold).tolist(), strict=True):
            if hasattr(model, "probability_"):
                model.probability_ = model.probability_.shifted(value + model.decision_intercept)
            model._set_intercept(0.0 - value)
        self.intercept_ = np.concatenate([model.intercept_ for model in self.class_models])

    @property
    def decision_intercept(self) -> float:
        """What `decision_function` adds to X w, or to the sums of kernel values."""
        return float(self.intercept_[0])

    def _set_intercept(self, intercept: float) -> None:
        self.intercept_ = np.array([intercept])


def check_two_classes(model: BaseEstimator, attribute: str) -> None:
    """Raise an InputError if the model has several classes, because `attribute` is defined for two classes only."""
    if model.has_several_classes:
        raise InputError(
            f"{attribute} is not defined for several classes, and this model has {len(model.estimators_)}: use "
            f"estimators_[k].{attribute}, where estimators_[k] is the model of classes_[k] against the rest"
        )


def scores_of_classes(model: BaseEstimator, X: Any) -> ndarray:
    """Return the scores of validated rows for each class, with the intercepts, float64 of shape (n_samples, n_classes).

    With two classes, there is one column. With several classes and no probabilities, each column is divided by the standard
    deviation of its scores on the training rows. The weights of the models differ in length, so that the scores of different
    classes could not be compared otherwise.
    """
    models, shared = model.class_models, model._map
    if all(hasattr(one_model, "coef_") and one_model._map is shared for one_model in models):
        try:
            block = map_matrix(X, shared)
        except MissingInFeature as error:
            raise MissingInFeature(error.args[0], names_of_features(model)) from None
        columns = [block.scores(one_model.coef_[0]) + one_model.decision_intercept for one_model in models]
    else:
        columns = [one_model._scores_without_intercept(X) + one_model.decision_intercept for one_model in models]
    return np.column_stack(columns) / model.class_spreads


def predicted_classes(model: BaseEstimator, scores: ndarray) -> ndarray:
    """Return the class of each row.

    Parameters
    ----------
    model : estimator of aucdist
        A fitted one.
    scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        What `decision_function` returned.

    Returns
    -------
    ndarray of shape (n_samples,)
        If the labels were an indicator matrix, an indicator matrix of int64.
    """
    if not model.label_sets_.exclusive:
        return (scores > 0).astype(np.int64)
    if all(hasattr(one_model, "probability_") for one_model in model.estimators_):
        scores = probabilities(model, scores)
    return model.classes_[np.argmax(scores, axis=1)]


def probabilities(model: BaseEstimator, scores: ndarray) -> ndarray:
    """Return the probability of each class, given the scores of `decision_function`: see `probabilities_of_classes`."""
    return probabilities_of_classes(
        [one_model.probability_ for one_model in model.estimators_], scores, model.label_sets_.exclusive
    )
