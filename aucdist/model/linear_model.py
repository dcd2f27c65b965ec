"""A fitted linear model: the encoding of the features, the weights of each class, and the scores of rows."""

from dataclasses import field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block, as_rows, n_rows
from aucdist.data.dataset import Schema
from aucdist.data.labels import class_order, listed
from aucdist.data.preprocess import Preprocessor
from aucdist.errors import InputError, Json, counted
from aucdist.parameters import frozen
from aucdist.probability.links import ProbabilityMap, probabilities_of_classes

if TYPE_CHECKING:
    import pandas as pd

    from aucdist.maps.base import FittedMap
    from aucdist.maps.explain import Reasons


@frozen
class ClassWeights:
    """The weights that score one class against the rest.

    Attributes
    ----------
    coef : ndarray of shape (n_weights,), float64
        Weights of the encoded features, or of the basis functions of the feature map.
    about : dict
        What else was saved: estimator, parameters, certificate, data, versions.
    probability : ProbabilityMap or None
        The map from scores to probabilities, if the model has one.
    feature_map : FittedMap or None
        The map that is applied to the encoded features before the weights.
    spread : float
        The number that scores are divided by, so that classes without probabilities can be compared.
    """

    coef: ndarray
    intercept: float
    about: Json
    probability: ProbabilityMap | None = None
    feature_map: "FittedMap | None" = None
    spread: float = 1.0


@frozen
class LinearModel:
    """A linear model of two classes, or of each of several classes against the rest, with the encoding of its features.

    Attributes
    ----------
    weights : tuple of ClassWeights
        One for two classes, else one for each of ``schema.classes``.
    schema : Schema
        Features, label and classes.
    preprocessor : Preprocessor
        The preprocessing of the features before the weights apply.
    reading : dict
        The keys of the training data's source that say how other files with these features are read; empty in older models.
    cutoff : int or None
        The cutoff of a scorecard: the points that a score of 0 stands for.
    """

    weights: tuple[ClassWeights, ...]
    schema: Schema
    preprocessor: Preprocessor
    reading: Json = field(default_factory=dict)
    cutoff: int | None = None

    def __repr__(self) -> str:
        s = self.schema
        columns, classes = counted(len(s.columns()), "column"), listed(s.classes or s.positive)
        return (
            f"<LinearModel of {columns}, label {s.label!r}, {'classes' if s.classes else 'positive class'} {classes}>"
        )

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes of a model of several classes, a tuple of str. It is empty for two classes."""
        return self.schema.classes

    @property
    def topics(self) -> bool:
        """Whether a row may have several of the classes, or none of them."""
        return self.schema.topics

    @property
    def coef(self) -> ndarray:
        """The weights of a model of two classes."""
        return self.weights[0].coef

    @property
    def intercept(self) -> float:
        """The intercept of a model of two classes."""
        return self.weights[0].intercept

    @property
    def about(self) -> Json:
        """What else was saved with the model, a dict. For several classes, it is about the first one.

        Models of runs have the warnings of the run under ``"warnings"``.
        """
        return self.weights[0].about

    @property
    def probability(self) -> ProbabilityMap | None:
        """The map from scores to probabilities of a model of two classes, or None."""
        return self.weights[0].probability

    @property
    def feature_map(self) -> "FittedMap | None":
        """The feature map of a model of two classes, or None."""
        return self.weights[0].feature_map

    @property
    def spreads(self) -> ndarray:
        """The numbers that the scores of the classes are divided by, float64."""
        return np.array([weights.spread for weights in self.weights])

    @property
    def models(self) -> "tuple[LinearModel, ...]":
        """The model of each class against the rest. The scores of these models are not divided by their spread."""
        return tuple(map(self.of_class, range(len(self.weights))))

    def of_class(self, k: int) -> "LinearModel":
        """Return the model of one class against all others, including classes that the training left out.

        Parameters
        ----------
        k : int
            The position of the class in `classes`.

        Returns
        -------
        LinearModel
            A model of two classes. A model of two classes returns itself.
        """
        if not self.classes:
            return self
        name, schema = self.classes[k], self.schema
        others = tuple(other for other in (*schema.positive, *schema.negative) if other != name)
        schema = replace(schema, positive=(name,), negative=others, classes=(), topics=False, sets=())
        return replace(self, weights=self.weights[k : k + 1], schema=schema).with_weights(spread=1.0)

    def with_weights(self, **changes: Any) -> "LinearModel":
        """Return a model of two classes in which attributes of its `ClassWeights` are replaced.

        Parameters
        ----------
        **changes : object
            The new values of the attributes, by name.

        Returns
        -------
        LinearModel
            The changed copy.
        """
        return replace(self, weights=(replace(self.weights[0], **changes),))

    @property
    def _suffixes(self) -> list[str]:
        """Return the ends of the column names of each class."""
        return [f" {name}" for name in self.classes] or [""]

    @property
    def schema_of_labels(self) -> Schema:
        """The schema of labelled rows. It has all of several classes, including those that were left out of the training."""
        if not self.classes:
            return self.schema
        classes = tuple(sorted({*self.schema.positive, *self.schema.negative}, key=class_order))
        return replace(self.schema, positive=classes[:1], negative=classes[1:], classes=classes)

    def decision_function(self, X: Any) -> ndarray:
        """Return the scores of rows. A row with a score above 0 is predicted positive.

        Parameters
        ----------
        X : DataFrame, ndarray or scipy sparse of shape (n_samples, n_features)
            A table of pandas, polars or pyarrow has the columns of the training files, with texts and categories as they are,
            in any order; other columns are ignored. An array has features in the order of ``schema.feature_names``, categories
            as their 0/1 columns, before any scaling.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            For several classes the shape is (n_samples, n_classes), and scores are divided by `spreads`.

        Raises
        ------
        InputError
            If X has another number of features, or if a score is not finite.
        """
        return self.scores(self.encoded(X))

    def scores(self, block: Block) -> ndarray:
        """Return the scores of encoded rows, as `decision_function` does.

        Parameters
        ----------
        block : Block
            Rows that `encoded` returned.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes), float64
            The scores.
        """
        mapped: dict[int, Block] = {}
        columns = []
        with np.errstate(over="ignore", invalid="ignore"):
            for weights in self.weights:
                key = id(weights.feature_map)
                if key not in mapped:
                    mapped = {key: block if weights.feature_map is None else weights.feature_map.map_block(block)}
                # The kernel is the one that scored the rows of the run, so that both scores have the same bits.
                columns.append(mapped[key].scores(weights.coef) + weights.intercept)
            scores = np.column_stack(columns) / self.spreads if self.classes else columns[0]
        if not np.isfinite(scores).all():
            row = int(np.argmin(np.isfinite(scores).reshape(len(scores), -1).all(axis=1)))
            raise InputError(
                f"the score of row {row} (counted from 0) is not finite: correct its missing or huge values, or leave the row out"
            )
        return scores

    def encoded(self, X: Any) -> Block:
        """Return rows with encoded features, before the feature map. All their labels are 1.

        Parameters
        ----------
        X : DataFrame, ndarray or scipy sparse of shape (n_samples, n_features)
            As for `decision_function`.

        Raises
        ------
        InputError
            If X has another number of features.

        Returns
        -------
        Block
        """
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            from aucdist.estimators.tables import features_of_table  # loads scikit-learn

            X = features_of_table(X, self.schema, self.reading)
        rows, n_features = as_rows(X), len(self.schema.feature_names)
        block = Block.of(X, np.ones(n_rows(rows), dtype=np.int8))
        if block.n_features != n_features:
            raise InputError(
                f"X has {block.n_features} features, but the model was fitted on {n_features}: give the training columns"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            return self.preprocessor.transform(block)

    def explain(self, X: Any) -> "pd.DataFrame":
        """Return what each column, and each interaction, adds to the score of each row, of a model of two classes.

        Parameters
        ----------
        X : DataFrame, ndarray or scipy sparse of shape (n_samples, n_features)
            As for `decision_function`.

        Returns
        -------
        DataFrame
            A column for each contribution, and ``constant``: the sums of its rows are the scores. A feature of a model of bins
            contributes its shape, whose mean over the training rows is 0. Without a feature map, it contributes its weight
            times its encoded value. The terms of all categories of a column are added up. The index is that of X.

        Raises
        ------
        InputError
            If X has another number of features, or the model's feature map mixes features.
        """
        from aucdist.maps.explain import explanation, index_of  # loads scikit-learn and pandas

        schema = self.schema
        return explanation(
            self.encoded(X),
            schema.feature_names,
            self.coef,
            self.intercept,
            self.feature_map,
            schema.categories,
            index_of(X),
        )

    def contribution_names(self) -> list[str]:
        """Return the column names of contributions: ``adds_`` and the name from `explain`, with the constant last.

        For several classes, the names of each class follow one another, such as ``adds_age sports``.

        Returns
        -------
        list of str
            The names.

        Raises
        ------
        InputError
            If the model's feature map mixes features, there are more than 4,096 of them, or two have one name.
        """
        from aucdist.maps.explain import exported_names  # loads scikit-learn and pandas

        maps = (weights.feature_map for weights in self.weights)
        return exported_names(self.schema.feature_names, dict(zip(self._suffixes, maps, strict=True)))

    def contributions(self, X: Any, scores: ndarray) -> dict[str, ndarray]:
        """Return columns of what each feature adds to the score of each row.

        Parameters
        ----------
        X : DataFrame, ndarray or scipy sparse of shape (n_samples, n_features)
            As for `decision_function`.
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes), float64
            The scores that `decision_function` returned for X.

        Returns
        -------
        dict
            Columns that add up to the score to the last bit, because the last one holds the rounding. For several classes, those
            of each class follow one another.
        """
        from aucdist.maps.explain import explanation, with_rounding  # loads scikit-learn and pandas

        names, columns, block = iter(self.contribution_names()), dict[str, ndarray](), self.encoded(X)
        for k, (weights, suffix) in enumerate(zip(self.weights, self._suffixes, strict=True)):
            table = explanation(block, self.schema.feature_names, weights.coef, weights.intercept, weights.feature_map)
            class_scores = scores[:, k] if self.classes else scores
            columns |= with_rounding(table / weights.spread, class_scores, list(islice(names, table.shape[1])), suffix)
        return columns

    def reasons(self, X: Any, sign: int = 1) -> "Reasons":
        """Return the columns that raise the score of each row most, for a model of two classes that is linear or has bins.

        Parameters
        ----------
        X : DataFrame, ndarray or scipy sparse of shape (n_samples, n_features)
            As for `decision_function`.
        sign : int
            With -1, return the columns that lower the score most. They are the reasons of the score times -1.

        Returns
        -------
        Reasons
            With two DataFrames, ``above_average`` and ``above_most_favourable``. They have a row for each row of X, with its
            index, and a column for each column and each interaction, with the names that `explain` uses.

        Raises
        ------
        InputError
            If X has another number of features, or the model has neither bins nor standardised features.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from aucdist import PairwiseHingeClassifier
        >>> from aucdist.model import as_model
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> model = as_model(PairwiseHingeClassifier(features="bins", lam=1e-2).fit(X, y == 0))
        >>> reasons = model.reasons(X[:3]).above_average
        >>> reasons.shape
        (3, 30)
        >>> reasons.idxmax(axis=1)[0]  # the column that raises the score of the first row most
        'worst symmetry'
        """
        from aucdist.maps.explain import index_of, reasons  # loads scikit-learn

        if self.feature_map is None and self.preprocessor.scale != "standard":
            raise InputError(
                "reasons compare a row with the average row: train the model with `features: bins` or `scale: standard`"
            )
        schema = self.schema
        weights = sign * self.coef
        return reasons(self.encoded(X), schema.feature_names, schema.categories, weights, self.feature_map, index_of(X))

    def predict(self, X: Any) -> ndarray:
        """Return the prediction of each row.

        Parameters
        ----------
        X : DataFrame, ndarray or scipy sparse of shape (n_samples, n_features)
            As for `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,), int8
            1 for the positive class and -1 for the negative one, whatever the labels of the training rows were. For several
            classes, these are the names of the predicted classes, with the dtype object. If a row may have several classes, there
            are commas between their names.

        Raises
        ------
        InputError
            As `decision_function`.
        """
        return self.predictions(self.decision_function(X))

    def predictions(self, scores: ndarray) -> ndarray:
        """Return the predictions for scores.

        For several classes, the prediction is the name of the class with the largest probability, or, without probabilities,
        with the largest score. If rows may have several classes, it is the names of the classes whose score is above 0, with
        commas between them.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes), float64
            What `decision_function` returned.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if not self.classes:
            return np.where(scores > 0, 1, -1).astype(np.int8)
        if self.topics:
            names = np.array(self.classes, dtype=object)
            return np.array([",".join(names[row]) for row in scores > 0], dtype=object)
        return self.most_likely(scores, 1)[:, 0]

    def most_likely(self, scores: ndarray, n: int) -> ndarray:
        """Return the names of the n most likely classes of each row, the most likely one first.

        Parameters
        ----------
        scores : ndarray of shape (n_samples, n_classes), float64
            What `decision_function` returned.
        n : int
            The number of classes to name.

        Returns
        -------
        ndarray of shape (n_samples, n), object
        """
        probabilities = self.probabilities(scores)
        order = np.argsort(-(scores if probabilities is None else probabilities), axis=1, kind="stable")[:, :n]
        return np.asarray(np.array(self.classes, dtype=object)[order])

    def predict_proba(self, X: Any) -> ndarray:
        """Return the probabilities of the classes of each row.

        Parameters
        ----------
        X : DataFrame, ndarray or scipy sparse of shape (n_samples, n_features)
            As for `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, 2), float64
            The probabilities of the negative and of the positive class. For several classes, what `probabilities` returns.

        Raises
        ------
        InputError
            If the model gives no probabilities, or X has another number of features.
        """
        scores = self.decision_function(X)
        probabilities = self.probabilities(scores)
        if probabilities is None:
            raise InputError(
                "this model gives no probabilities: fit it with calibration='logit', or fit a LinkClassifier "
                "(`model: {calibration: logit}` or `model: {estimator: LinkClassifier}` in a YAML file)"
            )
        return probabilities if self.classes else self.probability(scores)  # type: ignore[misc]

    def probabilities(self, scores: ndarray) -> ndarray | None:
        """Return the probability of the positive class, or of each of several classes.

        The probabilities of classes sum to 1 in each row, unless rows may have several classes.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes), float64
            What `decision_function` returned.

        Returns
        -------
        ndarray of the shape of `scores`, float64, or None
            None if the model gives no probabilities.
        """
        maps = [weights.probability for weights in self.weights if weights.probability is not None]
        if len(maps) < len(self.weights):
            return None
        if not self.classes:
            return maps[0](scores)[:, 1]
        return probabilities_of_classes(maps, scores, not self.topics)
