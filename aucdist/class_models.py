"""A fitted model of several classes on disk: one model for each class against the rest, and a file that lists them.

The folder of each class is a model of two classes, which whatever reads models takes as it is.
"""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from aucdist.data.block import Block
from aucdist.data.checked import CHECKED, FileName, Sha256, parse_any, parse_checked
from aucdist.data.dataset import Schema
from aucdist.data.labels import class_order
from aucdist.data.storage.files import read_bytes, shown, write_bytes
from aucdist.errors import InputError
from aucdist.model import ABOUT, CLASSES_FORMAT, LinearModel, digest_of_model, is_card, load_model, refuse_infinite
from aucdist.store.history import resolve


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

        found: dict[str, np.ndarray] = {}
        for k, names in enumerate(self.contribution_names()):
            columns = with_rounding(self.models[k].explain(X) / self.spreads[k], scores[:, k], names)
            rounding = columns.pop(f"{PREFIX}{ROUNDING}")
            found |= columns | {f"{PREFIX}{ROUNDING} {self.classes[k]}": rounding}
        return found

    def probabilities(self, scores: np.ndarray) -> np.ndarray | None:
        """Return the probability of each class for scores, float64 of shape (n_samples, n_classes); None without such.

        Those of classes sum to 1 in each row, those of topics do not.
        """
        if any(model.probability is None for model in self.models):
            return None
        found = np.column_stack([model.probability(scores[:, k])[:, 1] for k, model in enumerate(self.models)])  # type: ignore[misc]
        if self.topics:
            return found
        total = found.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.where(total > 0.0, found / total, 1.0 / found.shape[1])

    def most_likely(self, scores: np.ndarray, n: int) -> np.ndarray:
        """Return the names of the n classes of the largest probabilities, or else scores, of each row, the largest first."""
        probabilities = self.probabilities(scores)
        order = np.argsort(-(scores if probabilities is None else probabilities), axis=1, kind="stable")[:, :n]
        return np.asarray(np.array(self.classes, dtype=object)[order])

    def predict(self, scores: np.ndarray) -> np.ndarray:
        """Return the class of each row for its scores, ndarray of str: of the largest probability, or else the largest score.

        Of topics it is those whose score is above 0, with commas between them.
        """
        names = np.array(self.classes, dtype=object)
        if self.topics:
            return np.array([",".join(names[row]) for row in scores > 0], dtype=object)
        probabilities = self.probabilities(scores)
        return np.asarray(names[np.argmax(scores if probabilities is None else probabilities, axis=1)])


@dataclass(frozen=True)
class _Member:
    __pydantic_config__: ClassVar = CHECKED

    name: str
    folder: FileName
    about_sha256: Sha256
    spread: float


@dataclass(frozen=True)
class _ListFile:
    __pydantic_config__: ClassVar = CHECKED

    format: Literal[3]
    topics: bool
    classes: list[_Member]


def class_folder(k: int) -> str:
    """Return the name of the folder of the class at position `k`."""
    return f"class-{k:05d}"


def save_class_models(url: str, classes: Sequence[str], *, topics: bool, spreads: np.ndarray) -> None:
    """Write the list of the classes, whose own models lie below the folder already.

    Parameters
    ----------
    url : str
        The folder, a path or an fsspec URL.
    classes : sequence of str
        Their models are in the folders that `class_folder` names.
    topics, spreads
        As the attributes of `ClassModels`.
    """
    members = [
        {
            "name": name, "folder": class_folder(k), "spread": float(spreads[k]),
            "about_sha256": digest_of_model(f"{url}/{class_folder(k)}"),
        }
        for k, name in enumerate(classes)
    ]  # fmt: skip
    content = {"format": CLASSES_FORMAT, "topics": topics, "classes": members}
    write_bytes(f"{url}/{ABOUT}", json.dumps(content, indent=1, allow_nan=False).encode())


def has_classes(url: str) -> bool:
    """Return whether a folder, a file of a scorecard or a model store has a model of several classes."""
    if is_card(url):
        return False
    where = resolve(url, ABOUT)
    try:
        found = parse_any(read_bytes(f"{where}/{ABOUT}"), f"{shown(where)}/{ABOUT}")
    except InputError:  # reading the model says more of it
        return False
    return isinstance(found, dict) and found.get("format") == CLASSES_FORMAT


def load_class_models(url: str) -> ClassModels:
    """Read a model of several classes from a folder.

    Parameters
    ----------
    url : str
        The folder, a path or an fsspec URL.

    Raises
    ------
    InputError
        If there is no such model, or if it is damaged.
    """
    url = resolve(url, ABOUT)
    where = f"{shown(url)}/{ABOUT}"
    content = parse_checked(read_bytes(f"{url}/{ABOUT}"), _ListFile, where)
    if not content.classes or not all(np.isfinite(one.spread) and one.spread > 0 for one in content.classes):
        raise InputError(f"{where} is damaged: it lists no classes, or a spread that is not above 0")
    models = []
    for one in content.classes:
        folder = f"{url}/{one.folder}"
        if digest_of_model(folder) != one.about_sha256:
            raise InputError(f"{shown(folder)}/{ABOUT} is damaged: its checksum is not the one in {where}")
        models.append(load_model(folder))
    if len({model.schema.feature_names for model in models}) > 1:
        raise InputError(f"{where} is damaged: its classes have different features")
    names = tuple(one.name for one in content.classes)
    return ClassModels(names, tuple(models), content.topics, np.array([one.spread for one in content.classes]))


def load_any_model(url: str) -> LinearModel | ClassModels:
    """Read a model of two classes or of several; parameters and errors as `aucdist.model.load_model`."""
    return load_class_models(url) if has_classes(url) else load_model(url)


def labels_schema(model: LinearModel | ClassModels) -> Schema:
    """Return the schema of labelled rows of a model of two classes or of several."""
    return model.schema_of_labels if isinstance(model, ClassModels) else model.schema


def schema_of_class(schema: Schema, k: int) -> Schema:
    """Return the schema of the model of the class at position `k` against the rest, which has the classes that were left out."""
    name = schema.classes[k]
    others = tuple(other for other in (*schema.positive, *schema.negative) if other != name)
    return replace(schema, positive=(name,), negative=others, classes=(), topics=False, sets=())
