"""A fitted linear model on disk: weights as ``.npy``, everything else as JSON, nothing that runs on loading."""

import hashlib
import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucdist.data.block import Block, as_rows, n_rows
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.data.storage.files import read_bytes, shown, write_bytes
from aucdist.errors import InputError
from aucdist.objectives.probability_maps import ProbabilityMap, map_from_json

FORMAT = 1
WEIGHTS, ABOUT = "weights.npy", "model.json"


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear scorer together with the encoding of its features.

    Attributes
    ----------
    coef : ndarray of shape (n_features,), float64
        Weights of the encoded features.
    intercept : float
    schema : Schema
        Features, label and classes.
    preprocessor : Preprocessor
        What is done to the features before the weights apply.
    about : dict
        What else was saved: estimator, parameters, certificate, data, versions.
    probability : ProbabilityMap or None
        From scores to probabilities, where the model has them.
    """

    coef: np.ndarray
    intercept: float
    schema: Schema
    preprocessor: Preprocessor
    about: dict[str, Any]
    probability: ProbabilityMap | None = None

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of rows; higher means more likely positive, and above zero means called positive.

        Parameters
        ----------
        X : ndarray or scipy sparse of shape (n_samples, n_features)
            Features in the order of ``schema.feature_names``, categories as their 0/1 columns, before any scaling.

        Returns
        -------
        ndarray of shape (n_samples,), float64

        Raises
        ------
        InputError
            If X has another number of features.
        """
        rows = as_rows(X)
        block = Block.of(X, np.ones(n_rows(rows), dtype=np.int8))
        if block.n_features != len(self.coef):
            raise InputError(f"X has {block.n_features} features, but the model was fitted on {len(self.coef)}")
        scores: np.ndarray = self.preprocessor.transform(block).X @ self.coef
        return scores + self.intercept

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
            raise InputError("this model gives no probabilities: fit it with calibration, or a LinkClassifier")
        return self.probability(self.decision_function(X))


def save_model(
    url: str,
    *,
    coef: np.ndarray,
    intercept: float,
    schema: Schema,
    preprocessor: Preprocessor,
    about: dict[str, Any],
    probability: ProbabilityMap | None = None,
) -> None:
    """Write a model into a folder.

    Parameters
    ----------
    url : str
        The folder, a path or an fsspec URL; made if need be.
    coef, intercept, schema, preprocessor, about, probability
        As the attributes of `LinearModel`; `about` in types of JSON.
    """
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(coef, dtype=np.float64), allow_pickle=False)
    weights = buffer.getvalue()
    content = {
        "format": FORMAT,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "intercept": float(intercept),
        "schema": schema.to_json(),
        "preprocessor": preprocessor.to_json(),
        "about": about,
        "probability": None if probability is None else probability.to_json(),
    }
    write_bytes(f"{url}/{WEIGHTS}", weights)
    write_bytes(f"{url}/{ABOUT}", json.dumps(content, indent=2, allow_nan=False).encode())


def load_model(url: str) -> LinearModel:
    """Read a model from a folder.

    Parameters
    ----------
    url : str
        The folder, a path or an fsspec URL.

    Raises
    ------
    InputError
        If there is no model, if it is damaged, or if a newer version of aucdist wrote it.

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
    try:
        content = json.loads(read_bytes(f"{url}/{ABOUT}"))
        weights = read_bytes(f"{url}/{WEIGHTS}")
    except ValueError as e:  # an InputError is one
        raise InputError(f"no model can be read from {shown(url)} ({ABOUT} and {WEIGHTS} are needed): {e}") from None
    found = content.get("format") if isinstance(content, dict) else None
    if not isinstance(found, int) or found < 1:
        raise InputError(f"{shown(url)}/{ABOUT} is not a model of aucdist")
    if found > FORMAT:
        raise InputError(
            f"{shown(url)} has model format {found}; this aucdist reads up to {FORMAT}. Install a newer one"
        )
    if hashlib.sha256(weights).hexdigest() != content.get("weights_sha256"):
        raise InputError(f"{shown(url)}/{WEIGHTS} is damaged: its checksum is not the one in {ABOUT}")
    try:
        return LinearModel(
            np.load(io.BytesIO(weights), allow_pickle=False),
            content["intercept"],
            Schema.from_json(content["schema"]),
            Preprocessor.from_json(content["preprocessor"]),
            content["about"],
            None if content.get("probability") is None else map_from_json(content["probability"]),
        )
    except (KeyError, TypeError, ValueError, MemoryError) as e:  # an array may say that it is endless
        raise InputError(f"{shown(url)}/{ABOUT} is damaged: {type(e).__name__}: {e}") from None
