"""A fitted linear model: its weights, the encoding of its features, and the scores of rows; of several classes one for each."""

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from aucdist.data.block import Block, as_rows, n_rows
from aucdist.data.dataset import Schema
from aucdist.data.labels import class_order
from aucdist.data.preprocess import Preprocessor
from aucdist.errors import InputError
from aucdist.objectives.probability_maps import ProbabilityMap

if TYPE_CHECKING:
    import pandas as pd

    from aucdist.maps.base import FittedMap
    from aucdist.maps.explain import Reasons


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear scorer together with the encoding of its features.

    Attributes
    ----------
    coef : ndarray of shape (n_weights,), float64
        Weights of the encoded features, or of the basis functions of the feature map.
    schema : Schema
        Features, label and classes.
    preprocessor : Preprocessor
        What is done to the features before the weights apply.
    about : dict
        What else was saved: estimator, parameters, certificate, data, versions.
    probability : ProbabilityMap or None
        From scores to probabilities, where the model has them.
    feature_map : FittedMap or None
        What the encoded features go through before the weights apply.
    reading : dict
        The keys of the training data's source that say how other files with these features are read; empty in older models.
    cutoff : int or None
        The cutoff of a scorecard: the points that a score of 0 stands for.
    """

    coef: np.ndarray
    intercept: float
    schema: Schema
    preprocessor: Preprocessor
    about: dict[str, Any]
    probability: ProbabilityMap | None = None
    feature_map: "FittedMap | None" = None
    reading: dict[str, Any] = field(default_factory=dict)
    cutoff: int | None = None

    classes: ClassVar[tuple[str, ...]] = ()
    topics: ClassVar[bool] = False

    @property
    def models(self) -> "tuple[LinearModel, ...]":
        """The model itself, as `ClassModels` has one for each class."""
        return (self,)

    @property
    def schema_of_labels(self) -> Schema:
        """The schema of labelled rows."""
        return self.schema

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of rows; higher means more likely positive, and above zero means called positive.

        Parameters
        ----------
        X : DataFrame, ndarray or scipy sparse of shape (n_samples, n_features)
            A table of pandas, polars or pyarrow has the columns of the training files, with texts and categories as they are, in
            any order and among others. An array has features in the order of ``schema.feature_names``, categories as their 0/1
            columns, before any scaling.

        Returns
        -------
        ndarray of shape (n_samples,), float64

        Raises
        ------
        InputError
            If X has another number of features, or if a score is not finite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self.scores(self.encoded(X))
        refuse_infinite(scores)
        return scores

    def scores(self, block: Block) -> np.ndarray:
        """Return the scores of rows that `encoded` returned, float64 of shape (n_samples,); not finite where X is not."""
        # By the kernel that scored the rows of the run, so that both have the same bits.
        mapped = block if self.feature_map is None else self.feature_map.encode(block)
        return mapped.scores(self.coef) + self.intercept

    def encoded(self, X: Any) -> Block:
        """Return rows with encoded features, before the feature map; their labels are all 1.

        Parameters
        ----------
        X : ndarray or scipy sparse of shape (n_samples, n_features)
            As for `decision_function`.

        Raises
        ------
        InputError
            If X has another number of features.
        """
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            from aucdist.estimators.tables import features_of_table  # loads scikit-learn

            X = features_of_table(X, self.schema, self.reading)
        rows = as_rows(X)
        block = Block.of(X, np.ones(n_rows(rows), dtype=np.int8))
        n_features = len(self.coef) if self.feature_map is None else self.feature_map.n_features_in
        if block.n_features != n_features:
            raise InputError(f"X has {block.n_features} features, but the model was fitted on {n_features}")
        return self.preprocessor.transform(block)

    def explain(self, X: Any) -> "pd.DataFrame":
        """Return what each feature, and each pair of features, adds to the score of each row.

        Parameters
        ----------
        X : ndarray or scipy sparse of shape (n_samples, n_features)
            As for `decision_function`.

        Returns
        -------
        DataFrame
            A column for each contribution, and ``constant``: the sums of its rows are the scores. A feature of a model of bins
            contributes its shape, whose mean over the training rows is 0; one of a model without a map its weight times its
            encoded value.

        Raises
        ------
        InputError
            If X has another number of features, or the model's feature map mixes features.
        """
        from aucdist.maps.explain import explanation  # loads scikit-learn and pandas

        return explanation(self.encoded(X), self.schema.feature_names, self.coef, self.intercept, self.feature_map)

    def contribution_names(self) -> list[str]:
        """Return the names that contributions have beside scores: ``adds_`` and what `explain` calls each, the constant last.

        Raises
        ------
        InputError
            If the model's feature map mixes features, there are more than 4096 of them, or two have one name.
        """
        from aucdist.maps.explain import exported_names  # loads scikit-learn and pandas

        return exported_names(self.schema.feature_names, self.feature_map)

    def contributions(self, X: Any, scores: np.ndarray) -> dict[str, np.ndarray]:
        """Return columns of what each feature adds to the score of each row.

        Parameters
        ----------
        X : ndarray or scipy sparse of shape (n_samples, n_features)
            As for `decision_function`.
        scores : ndarray of shape (n_samples,), float64
            What `decision_function` returned of X.

        Returns
        -------
        dict
            Columns that add up to the score to the last bit, as `aucdist.maps.explain.with_rounding` says.
        """
        from aucdist.maps.explain import with_rounding  # loads scikit-learn and pandas

        return with_rounding(self.explain(X), scores, self.contribution_names())

    def reasons(self, X: Any) -> "Reasons":
        """Return which columns raise the score of each row most, of a model of bins.

        Parameters
        ----------
        X : ndarray or scipy sparse of shape (n_samples, n_features)
            As for `decision_function`.

        Raises
        ------
        InputError
            If X has another number of features, or the model has no bins.
        """
        from aucdist.maps.explain import reasons  # loads scikit-learn

        names, categories = self.schema.feature_names, self.schema.categories
        return reasons(self.encoded(X), names, categories, self.coef, self.feature_map)

    def predict(self, X: Any) -> np.ndarray:
        """Return -1 or +1 for each row, int8 of shape (n_samples,); parameters and errors as `decision_function`."""
        return np.where(self.decision_function(X) > 0, 1, -1).astype(np.int8)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the negative and of the positive class, float64 of shape (n_samples, 2).

        Parameters
        ----------
        X : ndarray or scipy sparse of shape (n_samples, n_features)
            As for `decision_function`.

        Raises
        ------
        InputError
            If the model gives no probabilities, or X has another number of features.
        """
        if self.probability is None:
            raise InputError(
                "this model gives no probabilities: fit it with calibration='logit', or fit a LinkClassifier "
                "(`model: {calibration: logit}` or `model: {estimator: LinkClassifier}` in a YAML file)"
            )
        return self.probability(self.decision_function(X))


def refuse_infinite(scores: np.ndarray) -> None:
    """Raise an InputError if a score is not finite."""
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores)))
        raise InputError(f"the score of row {row} (from 0) is not finite: a value of it is missing, or too large")


@dataclass(frozen=True, eq=False)
class ClassModels:
    """A model for each class against the rest, with the same features and encoding.

    Attributes
    ----------
    models : tuple of LinearModel
        In the order of the classes.
    topics : bool
        Whether a row may have several of the classes, or none.
    spreads : ndarray of shape (n_classes,), float64
        What scores are divided by so that those of classes without probabilities can be compared.
    """

    classes: tuple[str, ...]
    models: tuple[LinearModel, ...]
    topics: bool
    spreads: np.ndarray

    @property
    def schema(self) -> Schema:
        """Features, label and classes."""
        return self.models[0].schema

    @property
    def schema_of_labels(self) -> Schema:
        """The schema of labelled rows: with all classes, those among them that were left out of the training."""
        first = self.models[0].schema
        classes = tuple(sorted({*first.positive, *first.negative}, key=class_order))
        return replace(first, positive=classes[:1], negative=classes[1:], classes=classes, topics=self.topics)

    @property
    def reading(self) -> dict[str, Any]:
        """The keys of the training data's source that say how other files with these features are read."""
        return self.models[0].reading

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of rows for each class, divided by `spreads`.

        Parameters
        ----------
        X : ndarray or scipy sparse of shape (n_samples, n_features)
            As for `LinearModel.decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
        """
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self.scores(self.encoded(X))
        refuse_infinite(scores)
        return scores

    def encoded(self, X: Any) -> Block:
        """Return rows as the training rows were encoded; as of `LinearModel.encoded`."""
        return self.models[0].encoded(X)

    def scores(self, rows: Block) -> np.ndarray:
        """Return what `decision_function` does, given encoded rows."""
        return np.column_stack([model.scores(rows) for model in self.models]) / self.spreads

    def contribution_names(self) -> list[list[str]]:
        """Return for each class the names that contributions have beside its scores, such as ``adds_age sports``.

        Raises
        ------
        InputError
            As `LinearModel.contribution_names`; the limit is on the contributions to all classes.
        """
        from aucdist.maps.explain import PREFIX, ROUNDING, refuse_names  # loads scikit-learn and pandas

        names = [
            [f"{column} {name}" for column in model.contribution_names()]
            for name, model in zip(self.classes, self.models, strict=True)
        ]
        refuse_names([*itertools.chain(*names), *(f"{PREFIX}{ROUNDING} {name}" for name in self.classes)])
        return names

    def contributions(self, X: Any, scores: np.ndarray) -> dict[str, np.ndarray]:
        """Return columns of what each feature adds to the score of each class, divided by `spreads` as the scores are.

        Parameters
        ----------
        X : ndarray or scipy sparse of shape (n_samples, n_features)
            As for `LinearModel.decision_function`.
        scores : ndarray of shape (n_samples, n_classes), float64
            What `decision_function` returned of X.

        Returns
        -------
        dict
            The columns of a class add up to its score to the last bit, as `aucdist.maps.explain.with_rounding` says.
        """
        from aucdist.maps.explain import PREFIX, ROUNDING, with_rounding  # loads scikit-learn and pandas

        of_classes: dict[str, np.ndarray] = {}
        for k, names in enumerate(self.contribution_names()):
            columns = with_rounding(self.models[k].explain(X) / self.spreads[k], scores[:, k], names)
            rounding = columns.pop(f"{PREFIX}{ROUNDING}")
            of_classes |= columns | {f"{PREFIX}{ROUNDING} {self.classes[k]}": rounding}
        return of_classes

    def probabilities(self, scores: np.ndarray) -> np.ndarray | None:
        """Return the probability of each class for scores, float64 of shape (n_samples, n_classes); None without such.

        Those of classes sum to 1 in each row, those of topics do not.
        """
        if any(model.probability is None for model in self.models):
            return None
        each = np.column_stack([model.probability(scores[:, k])[:, 1] for k, model in enumerate(self.models)])  # type: ignore[misc]
        if self.topics:
            return each
        total = each.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.where(total > 0.0, each / total, 1.0 / each.shape[1])

    def most_likely(self, scores: np.ndarray, n: int) -> np.ndarray:
        """Return the names of the n classes of the largest probabilities, or else scores, of each row, the largest first."""
        probabilities = self.probabilities(scores)
        order = np.argsort(-(scores if probabilities is None else probabilities), axis=1, kind="stable")[:, :n]
        return np.asarray(np.array(self.classes, dtype=object)[order])

    def predict(self, scores: np.ndarray) -> np.ndarray:
        """Return the class of each row for its scores, ndarray of str: of the largest probability, or else the largest score.

        For topics these are the ones with a score above 0, with commas between them.
        """
        names = np.array(self.classes, dtype=object)
        if self.topics:
            return np.array([",".join(names[row]) for row in scores > 0], dtype=object)
        probabilities = self.probabilities(scores)
        return np.asarray(names[np.argmax(scores if probabilities is None else probabilities, axis=1)])


AnyModel = LinearModel | ClassModels
"""A model of two classes, or of several."""


def schema_of_class(schema: Schema, k: int) -> Schema:
    """Return the schema of the model of the class at position `k` against the rest, which has the classes that were left out."""
    name = schema.classes[k]
    others = tuple(other for other in (*schema.positive, *schema.negative) if other != name)
    return replace(schema, positive=(name,), negative=others, classes=(), topics=False, sets=())
