"""A fitted linear model on disk: weights as ``.npy``, everything else as JSON, nothing that runs on loading."""

import hashlib
import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from aucdist.data.block import Block, as_rows, n_rows
from aucdist.data.checked import CHECKED, Sha256, parse_checked
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.data.storage.files import exists, read_bytes, shown, write_bytes
from aucdist.errors import InputError
from aucdist.kernels.rows import project
from aucdist.objectives.probability_maps import ProbabilityMap, map_from_json
from aucdist.scorecard import Scorecard, parse_card
from aucdist.store.history import resolve

if TYPE_CHECKING:
    import pandas as pd

    from aucdist.maps.base import FittedMap
    from aucdist.maps.explain import Reasons

FORMAT = 2
"""Models without a feature map are written as format 1, which older versions read."""
CLASSES_FORMAT = 3
"""A list of models of two classes, see `aucdist.class_models`."""
Odds = Annotated[float, Field(gt=0.0)]
WEIGHTS, ABOUT, FEATURES = "weights.npy", "model.json", "features.npz"
PROFILE, DIGESTS = "profile.json", "digests.npy"
"""Of the training rows, where a run made the model: scores do not need them, `aucdist watch` and `aucdist promote` do."""


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
        Of a scorecard: the points that a score of 0 stands for.
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
        scores = np.empty(block.n_samples)
        project((block if self.feature_map is None else self.feature_map.encode(block)).rows, self.coef, scores)
        scores += self.intercept
        return scores

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


def save_model(
    url: str,
    *,
    coef: np.ndarray,
    intercept: float,
    schema: Schema,
    preprocessor: Preprocessor,
    about: dict[str, Any],
    probability: ProbabilityMap | None = None,
    feature_map: "FittedMap | None" = None,
    reading: dict[str, Any] | None = None,
) -> None:
    """Write a model into a folder.

    Parameters
    ----------
    url : str
        The folder, a path or an fsspec URL; made if need be.
    coef, intercept, schema, preprocessor, about, probability, feature_map, reading
        As the attributes of `LinearModel`; `about` and `reading` in types of JSON.
    """
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(coef, dtype=np.float64), allow_pickle=False)
    weights = buffer.getvalue()
    content = {
        "format": 1 if feature_map is None else FORMAT,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "intercept": float(intercept),
        "schema": schema.to_json(),
        "preprocessor": preprocessor.to_json(),
        "about": about,
        "probability": None if probability is None else probability.to_json(),
    }
    if reading:
        content["reading"] = reading
    if feature_map is not None:
        from aucdist.maps.state import map_to_bytes

        features = map_to_bytes(feature_map)
        content["features_sha256"] = hashlib.sha256(features).hexdigest()
        write_bytes(f"{url}/{FEATURES}", features)
    write_bytes(f"{url}/{WEIGHTS}", weights)
    write_bytes(f"{url}/{ABOUT}", json.dumps(content, indent=2, allow_nan=False).encode())


def load_model(url: str) -> LinearModel:
    """Read a model from a folder.

    Parameters
    ----------
    url : str
        The folder, the run folder that it is in, the ``.json`` file of a scorecard, or a model store, whose current version is
        meant, or ``store@3``: a path or an fsspec URL.

    Raises
    ------
    InputError
        If there is no model, if it is damaged (weights that are not finite, another number of weights than of features, ...), or
        if a newer version of aucdist wrote it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from aucdist.data.dataset import Schema
    >>> from aucdist.data.preprocess import Preprocessor
    >>> from aucdist.model import load_model, save_model
    >>> schema = Schema(("age", "income"), "clicked", ("yes",), ("no",), {})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(folder, coef=np.array([1.0, -2.0]), intercept=0.5, schema=schema,
    ...                preprocessor=Preprocessor((), "none", None, None), about={})
    ...     model = load_model(folder)
    >>> model.decision_function(np.array([[1.0, 1.0], [3.0, 1.0]])).tolist()
    [-0.5, 1.5]
    """
    if is_card(url):
        return card_model(parse_card(read_bytes(url), shown(url)))
    url = resolve(url.rstrip("/"), ABOUT)
    if not exists(f"{url}/{ABOUT}") and exists(f"{url}/model/{ABOUT}"):
        url = f"{url}/model"
    where, about = shown(url), f"{shown(url)}/{ABOUT}"
    try:
        data = read_bytes(f"{url}/{ABOUT}")
        found = parse_checked(data, _Version, about)
        if found.format == CLASSES_FORMAT:
            raise InputError(
                f"it is a model of several classes; take the folder of one of them, such as {where}/class-00000"
            )
        weights = read_bytes(f"{url}/{WEIGHTS}")
    except InputError as e:
        raise InputError(f"no model can be read from {where} ({ABOUT} and {WEIGHTS} are needed): {e}") from None
    if found.format is None or found.format < 1:
        raise InputError(f"{about} is not a model of aucdist")
    if found.format > CLASSES_FORMAT:
        raise InputError(
            f"{where} has model format {found.format}; this aucdist reads up to {CLASSES_FORMAT}. Install a newer one"
        )
    if hashlib.sha256(weights).hexdigest() != found.weights_sha256:
        raise InputError(f"{where}/{WEIGHTS} is damaged: its checksum is not the one in {ABOUT}")
    content = parse_checked(data, _ModelFile, about)
    try:
        preprocessor = Preprocessor.from_json(content.preprocessor)
        n_features = len(content.schema_.feature_names)
        preprocessor.check_width(n_features)
        probability = None if content.probability is None else map_from_json(content.probability.model_dump())
        feature_map = None if content.features_sha256 is None else _read_map(url, content.features_sha256, n_features)
        coef = _read_weights(weights, n_features if feature_map is None else feature_map.n_features_out)
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        reason = str(e) if isinstance(e, InputError) else f"{type(e).__name__}: {e}"
        raise InputError(f"{about} is damaged: {reason}") from None
    return LinearModel(
        coef, content.intercept, content.schema_, preprocessor, content.about, probability, feature_map, content.reading
    )  # fmt: skip


def is_card(url: str) -> bool:
    """Return whether a model is the file of a scorecard, by its name."""
    return url.endswith(".json")


def digest_of_model(url: str) -> str:
    """Return the SHA-256 of the file of a model that has the digests of its other files; a copy has the same."""
    return hashlib.sha256(read_bytes(url if is_card(url) else f"{url}/{ABOUT}")).hexdigest()


def card_model(card: Scorecard) -> LinearModel:
    """Return a scorecard as a model, whose scores are the points above the cutoff.

    Raises
    ------
    InputError
        If its map to probabilities is damaged.
    """
    probability = None
    if card.probability is not None:
        content = json.dumps(card.probability).encode()
        checked: _LinkMap | _IsotonicMap = parse_checked(content, _Probability, "the probability of the card")
        probability = map_from_json(checked.model_dump())
    return LinearModel(
        card.weights(), float(card.base - card.cutoff), card.schema, card.preprocessor, card.about, probability,
        card.bins(), card.reading, card.cutoff,
    )  # fmt: skip


class _Version(BaseModel):
    """What is read of a model first; a newer format may have other keys."""

    model_config = ConfigDict(strict=True)

    format: int | None = None
    weights_sha256: str = ""


class _Link(BaseModel):
    model_config = CHECKED

    name: str
    xi: float


class _LinkMap(BaseModel):
    model_config = CHECKED

    kind: Literal["link"]
    odds: Odds
    link: _Link
    slope: float
    offset: float


class _IsotonicMap(BaseModel):
    model_config = CHECKED

    kind: Literal["isotonic"]
    odds: Odds
    scores: list[float] = Field(min_length=1)
    probabilities: list[Annotated[float, Field(ge=0.0, le=1.0)]]

    @model_validator(mode="after")
    def _ascending(self) -> "_IsotonicMap":
        if len(self.scores) != len(self.probabilities):
            raise ValueError(f"{len(self.scores)} scores, but {len(self.probabilities)} probabilities")
        if self.scores != sorted(self.scores) or self.probabilities != sorted(self.probabilities):
            raise ValueError("scores and probabilities must ascend")
        return self


_Probability: Any = Annotated[_LinkMap | _IsotonicMap, Field(discriminator="kind")]


class _ModelFile(BaseModel):
    """A model in JSON."""

    model_config = CHECKED

    format: int
    weights_sha256: Sha256
    intercept: float
    schema_: Schema = Field(alias="schema")
    preprocessor: dict[str, Any]
    about: dict[str, Any]
    probability: _Probability | None = None
    features_sha256: Sha256 | None = None
    reading: dict[str, Any] = Field(default_factory=dict)


def _read_map(url: str, sha256: str, n_features: int) -> "FittedMap":
    """Return the feature map of a model."""
    from aucdist.maps.state import map_from_bytes  # loads scikit-learn

    data = read_bytes(f"{url}/{FEATURES}")
    if hashlib.sha256(data).hexdigest() != sha256:
        raise InputError(f"{FEATURES} is damaged: its checksum is not the one in {ABOUT}")
    feature_map = map_from_bytes(data)
    if feature_map.n_features_in != n_features:
        raise InputError(f"{FEATURES} maps {feature_map.n_features_in} features, and the model has {n_features}")
    return feature_map


def _read_weights(data: bytes, n_features: int) -> np.ndarray:
    """Return the weights in a ``.npy`` file, of shape (n_features,). Its header is checked before any memory is taken."""
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise ValueError(f"version {version} of the npy format")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    except (
        Exception
    ) as e:  # NumPy parses the header as Python: damaged ones raise errors of its tokenizer and compiler as well
        raise InputError(f"{WEIGHTS} has no sound header: {e}") from None
    if shape != (n_features,) or dtype != np.float64 or dtype.hasobject:
        raise InputError(f"{WEIGHTS} has {dtype} of shape {shape}; float64 of shape ({n_features},) is needed")
    if len(data) - file.tell() != 8 * n_features:
        raise InputError(f"{WEIGHTS} has {len(data) - file.tell()} bytes of weights; {8 * n_features} are needed")
    coef = np.frombuffer(data, np.float64, n_features, file.tell()).copy()
    if not np.isfinite(coef).all():
        raise InputError(f"{WEIGHTS}: weight {int(np.argmin(np.isfinite(coef)))} (from 0) is not finite")
    return coef
